"""The assessment of an answer: local optimality, uncertainty, certificates."""

from odefit.assessment.parts import Assessment, Continuity, Direction, Local, Uncertainty
from odefit.methods.estimate import Agreement, Certificate, Completeness

__all__ = [
    "Agreement",
    "Assessment",
    "Certificate",
    "Completeness",
    "Continuity",
    "Direction",
    "Local",
    "Uncertainty",
]
