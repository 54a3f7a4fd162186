"""The default method: it combines all others, as the problem requires."""

from odefit.methods.automatic.automatic import Automatic

__all__ = ["Automatic"]
