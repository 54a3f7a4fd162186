"""The figures of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.result_data import ResultData

if TYPE_CHECKING:
    import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from odefit.reporting.figures.canvas import Canvas, Width
    from odefit.reporting.predictions import BandKind


class ResultFigures:
    """The figures of a result, for a screen or for a column of a journal.

    All take ``width``: "single" or "double" for a column or a page of a journal (89 and 183 mm), a
    text such as "8.5 cm", or inches. By default the figure suits a screen. With ``figure``, a
    matplotlib figure or subfigure, they draw there; figures of one panel also accept ``ax``. They
    return a figure whose ``savefig`` writes ``.pdf`` with embedded fonts, ``.svg`` with editable
    text, or ``.png`` at 300 pixels per inch.

    They raise :class:`odefit.InputError` for an invalid width, or for several panels with one
    ``ax``.
    """

    def plot_fit(
        self,
        experiment: str | None = None,
        observables: Sequence[str] | None = None,
        *,
        band: BandKind | None = None,
        level: float = 0.95,
        validation: Any = None,
        until: float | str | datetime.date | None = None,
        share_axes: bool = False,
        inputs: bool = False,
        overlay: bool = False,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw measurements and model, one panel for each observable of each experiment.

        Parameters
        ----------
        experiment, observables
            The only experiment and the only observables to show; None for all.
        band
            The method for the confidence band (dark) and the prediction band (light), as in
            :meth:`predict`; None for no bands.
        level
            Their level, between 0 and 1.
        validation
            Measurements that were not fitted, drawn as open squares: a table with the column
            ``t`` and columns of observables, or a mapping of such tables by experiment.
        until
            A time, or a date where times are dates, beyond the measurements to which curves
            extend, with linear bands if `band` is None; the background there is grey.
        share_axes
            Whether all panels share their times, and panels of one observable their values.
        inputs
            Whether inputs, doses and constants that events change have panels, too.
        overlay
            Whether all experiments are in one panel for each observable, a colour each, with the
            inputs and doses; bands are linear if `band` is None.
        width, figure, ax
            See :class:`odefit.result.result_figures.ResultFigures`; ``ax`` where there is one
            panel.

        Raises
        ------
        InputError
            An argument is invalid.
        """
        canvas = canvas_of(width, figure, ax)
        if overlay:
            if validation is not None or share_axes:
                raise InputError("overlay: leave out validation and share_axes")
            from odefit.reporting.figures.predictions import plot_overlay

            return plot_overlay(
                _data(self), experiment, observables, band=band or "linear", level=level,
                until=until, canvas=canvas,
            )  # fmt: skip
        from odefit.reporting.figures.fit import plot_fit

        return plot_fit(
            _data(self),
            experiment,
            observables,
            band=band,
            level=level,
            validation=validation,
            until=until,
            share_axes=share_axes,
            inputs=inputs,
            canvas=canvas,
        )

    def plot_predictions(
        self,
        experiment: Any = None,
        observables: Sequence[str] | None = None,
        *,
        times: Any = None,
        band: BandKind = "linear",
        level: float = 0.95,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw runs of the model with their bands, all in one panel for each observable.

        Inputs have panels of their own. Measurements of fitted experiments are dots, those in the
        tables of scenarios open squares.

        Parameters
        ----------
        experiment
            An experiment, a scenario, or a list of these, as in :meth:`odefit.Result.predict`.
        observables
            The only observables to show; None for all.
        times
            Times; curves extend to the last of them. None for those of each run.
        band, level
            The method for the bands, and their level, as in :meth:`odefit.Result.predict`.
        width, figure, ax
            See :class:`odefit.result.result_figures.ResultFigures`; ``ax`` where there is one
            panel.

        Raises
        ------
        InputError
            An argument is invalid.
        """
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.predictions import plot_predictions

        return plot_predictions(
            _data(self),
            experiment,
            observables,
            times=times,
            band=band,
            level=level,
            canvas=canvas,
        )

    def plot_residuals(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw residuals (measured minus modelled) against time, one panel for each observable."""
        return self.plot_diagnostics("residuals", width=width, figure=figure, ax=ax)

    def plot_parity(
        self,
        experiment: str | None = None,
        observables: Sequence[str] | None = None,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw measured against predicted values, one panel for each observable.

        The arguments are those of :meth:`plot_diagnostics`.
        """
        return self.plot_diagnostics(
            "parity", experiment, observables, width=width, figure=figure, ax=ax
        )

    def plot_diagnostics(
        self,
        kind: str | Sequence[str] = "all",
        experiment: str | None = None,
        observables: Sequence[str] | None = None,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw a diagnostic of the residuals, one panel for each observable.

        Parameters
        ----------
        kind
            ``"parity"`` (measured against predicted), ``"residuals"`` (against time),
            ``"residuals-prediction"``, ``"residuals-experiment"``, ``"qq"`` (against normal
            quantiles), ``"histogram"``, ``"autocorrelation"``, several of these, or
            ``"all"``, a row for each observable. Residuals are in standard deviations where these
            are known: deviance residuals of counts and losses, innovations of correlated noise.
            Those of ``"qq"``, ``"histogram"`` and ``"autocorrelation"`` are quantile residuals,
            which are standard normal if model and noise are right, whatever the
            distribution (P. K. Dunn and G. K. Smyth 1996).
        experiment, observables
            The only experiment and the only observables to show; None for all.
        width, figure, ax
            See :class:`odefit.result.result_figures.ResultFigures`; ``ax`` where there is one
            panel.

        Raises
        ------
        InputError
            An argument is invalid.
        """
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.diagnostics import plot_diagnostic

        return plot_diagnostic(_data(self), kind, experiment, observables, canvas)

    def plot_starts(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the waterfall: how much worse than the best each start ended, sorted."""
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.starts import plot_starts

        return plot_starts(_data(self), canvas)

    def plot_parallel(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the ends of all starts as parallel coordinates, coloured by solution."""
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.starts import plot_parallel

        return plot_parallel(_data(self), canvas)

    def plot_parameters(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the confidence intervals, in per cent of the estimates."""
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.parameters import plot_parameters

        return plot_parameters(_data(self), canvas)

    def plot_correlation(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the correlation matrix of the estimates."""
        canvas = canvas_of(width, figure, ax)
        from odefit.reporting.figures.correlation import plot_correlation

        return plot_correlation(_data(self), canvas)

    def plot_bounds(
        self, *, width: Width | None = None, figure: Figure | SubFigure | None = None
    ) -> Figure:
        """Draw the bounds of the objective against time, where a method proves them."""
        canvas = canvas_of(width, figure)
        from odefit.reporting.figures.bounds import plot_bounds

        return plot_bounds(_data(self), canvas)


def canvas_of(
    width: Width | None, figure: Figure | SubFigure | None, ax: Axes | None = None
) -> Canvas:
    """Return where a figure is drawn; a missing matplotlib raises an InputError."""
    require("matplotlib")
    from odefit.reporting.figures.canvas import Canvas

    return Canvas(width, figure, ax)


def _data(result: object) -> ResultData:
    """Return the result whose figures these are."""
    assert isinstance(result, ResultData)
    return result
