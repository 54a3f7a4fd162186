"""An outlier: a measured value that is further from the model than noise explains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outlier:
    """A value that is further from the model than noise explains.

    Attributes
    ----------
    experiment, observable, time
        The place of the measurement.
    value
        The measured value.
    distance
        The prediction minus the value, in standard deviations, on the scale of the noise model.
    weight
        The weight in the loss relative to a value on the curve, between 0 and 1.
    """

    experiment: str
    observable: str
    time: float
    value: float
    distance: float
    weight: float

    @property
    def words(self) -> str:
        """The kind and place of the outlier, in words."""
        return f"{self.observable} = {self.value:.4g} at t = {self.time:g}"
