"""Validations and cross-validations with tables, figures and texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.assessment.predictions.cross_validation import CrossValidationData
from odefit.assessment.predictions.validation_data import ValidationData

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure, SubFigure

    from odefit.reporting.figures.canvas import Width


@dataclass(frozen=True, eq=False, repr=False)
class Validation(ValidationData):
    """New measurements compared with the model; ``print`` shows them as text."""

    @property
    def sentence(self) -> str:
        """The verdict on whether the model predicts as well as it fits."""
        from odefit.reporting.validations import verdict_sentence

        return verdict_sentence(self)

    def table(self) -> pd.DataFrame:
        """Return one row for each observable of each run.

        Its columns are ``experiment``, ``observable``, ``measurements``, ``fit_percent`` (as
        MATLAB's ``compare``), ``one_step_percent``, ``r_squared`` and ``reduced_chi_square``. Then
        follow ``coverage`` (the share inside the prediction band), ``bias`` (the mean residual in
        standard deviations), ``autocorrelation`` (of successive residuals) and ``runs_p``.
        ``one_step_percent`` is the fit of predictions one step ahead, NaN without them. ``runs_p``
        is the probability of so few or so many changes of sign.
        """
        from odefit.reporting.validations import validation_table

        return validation_table(self)

    @property
    def measurements(self) -> pd.DataFrame:
        """One row for each new measurement, with its prediction band and its residual."""
        from odefit.reporting.validations import measurement_table

        return measurement_table(self)

    def plot(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
    ) -> Figure:
        """Draw the course in time, measured against predicted values, and residuals."""
        from odefit.reporting.figures.validation import plot_validation
        from odefit.result.result_figures import canvas_of

        return plot_validation(self, canvas_of(width, figure))

    def save(self, path: str | Path) -> None:
        """Write the validation as JSON.

        Raises InputError if the file cannot be written.
        """
        import json

        from odefit.common.partial_files import write_atomically
        from odefit.reporting.validations import validation_mapping

        text = json.dumps(validation_mapping(self), indent=1, allow_nan=False)
        write_atomically(path, text + "\n")

    def report(self, path: str | Path, *, date: str | None = None) -> None:
        """Write a report: one ``.html`` file with its figure, or ``.md`` without.

        Raises InputError if the name has another suffix, or the file cannot be written.
        """
        from odefit.reporting.documents.validation_report import write_validation_report

        write_validation_report(self, path, date)

    def __repr__(self) -> str:
        return f"Validation of {self.count} measurements: {self.sentence}"

    def __str__(self) -> str:
        from odefit.reporting.validations import validation_text

        return validation_text(self)


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(CrossValidationData):
    """A cross-validated model; ``print`` shows it as text."""

    def table(self) -> pd.DataFrame:
        """Return one row for each part that was left out.

        Its columns are ``fold``, ``measurements``, ``mean_square`` (of residuals in standard
        deviations of the noise), ``failure`` and the estimates from the rest by name.
        """
        from odefit.reporting.validations import fold_table

        return fold_table(self)

    def plot(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
    ) -> Figure:
        """Draw predictions of the parts that were left out, as those of a validation."""
        from odefit.reporting.figures.validation import plot_cross_validation
        from odefit.result.result_figures import canvas_of

        return plot_cross_validation(self, canvas_of(width, figure))

    def save(self, path: str | Path) -> None:
        """Write the cross-validation as JSON.

        Raises InputError if the file cannot be written.
        """
        import json

        from odefit.common.partial_files import write_atomically
        from odefit.reporting.validations import cross_validation_mapping

        text = json.dumps(cross_validation_mapping(self), indent=1, allow_nan=False)
        write_atomically(path, text + "\n")

    def report(self, path: str | Path, *, date: str | None = None) -> None:
        """Write a report: one ``.html`` file with its figure, or ``.md`` without.

        Raises InputError if the name has another suffix, or the file cannot be written.
        """
        from odefit.reporting.documents.validation_report import write_validation_report

        write_validation_report(self, path, date)

    def __repr__(self) -> str:
        return f"CrossValidation by {self.by}: mean square {self.mean_square:.4g}"

    def __str__(self) -> str:
        from odefit.reporting.validations import cross_validation_text

        return cross_validation_text(self)
