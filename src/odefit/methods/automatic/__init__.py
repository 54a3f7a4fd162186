"""The default method: all others together, as the problem asks for."""

from odefit.methods.automatic.automatic import Automatic

__all__ = ["Automatic"]
