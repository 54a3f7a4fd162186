"""Profile likelihoods: intervals that hold even if the model is far from linear."""

from odefit.assessment.profiles.parts import Profile, ProfilesData

__all__ = ["Profile", "ProfilesData"]
