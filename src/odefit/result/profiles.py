"""Profile likelihoods with a table, a figure and a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odefit.assessment.profiles import Profile, ProfilesData
from odefit.result.result_figures import canvas_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from odefit.reporting.figures.canvas import Width

__all__ = ["Profile", "Profiles"]


@dataclass(frozen=True, eq=False, repr=False)
class Profiles(ProfilesData):
    """Profile likelihoods, with intervals by the likelihood ratio.

    ``print(profiles)`` shows them as text. ``profiles["k1"]`` is the :class:`Profile` of one
    unknown or expression. The data are the attributes of
    :class:`odefit.assessment.profiles.ProfilesData`.
    """

    def __getitem__(self, key: str) -> Profile:
        """Return the profile of an unknown or of an expression by its name.

        Raises
        ------
        KeyError
            There is no such profile.
        """
        for profile in self.profiles:
            if profile.key == key:
                return profile
        raise KeyError(f"{key}: there are profiles of {', '.join(p.key for p in self.profiles)}")

    @property
    def table(self) -> pd.DataFrame:
        """The intervals as a table indexed by key.

        Its columns are ``estimate``, ``ci_low``, ``ci_high``, ``linear_low``, ``linear_high``,
        ``verdict`` and ``note``. The limits by the likelihood ratio are infinite where the interval
        is open, and NaN where the end was not found. Those by linearisation are NaN if missing. The
        level is in ``attrs["level"]``.
        """
        from odefit.reporting.profiles import profile_table

        return profile_table(self)

    def plot(
        self,
        keys: Sequence[str] | None = None,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the deviance against each quantity, one panel each.

        The dashed line is the limit of the deviance, vertical lines are the ends of the interval,
        and the dotted parabola is the prediction of linearisation.

        Parameters
        ----------
        keys
            The profiles to draw; None for all.
        width, figure, ax
            The width, or where to draw, see :class:`odefit.result.result_figures.ResultFigures`;
            ``ax`` where there is one panel.

        Raises
        ------
        InputError
            The width is invalid, or ``ax`` is given for several panels.
        """
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.profiles import plot_profiles

        return plot_profiles(self, keys, canvas)

    def __str__(self) -> str:
        from odefit.reporting.profiles import profile_text

        return profile_text(self)

    def __repr__(self) -> str:
        keys = ", ".join(p.key for p in self.profiles)
        return f"Profiles({keys}: {self.message})"
