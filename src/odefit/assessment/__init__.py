"""What an answer is worth: local optimality, uncertainty, certificates."""

from odefit.assessment.parts import (
    Assessment,
    Bounds,
    Complete,
    Direction,
    Local,
    Uncertainty,
)

__all__ = ["Assessment", "Bounds", "Complete", "Direction", "Local", "Uncertainty"]
