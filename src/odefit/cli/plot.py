"""The command ``odefit plot``."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.cli.exit_statuses import DONE
from odefit.cli.shared import add_values, check_writable, progress_line, saved_result, scenarios_in
from odefit.common.errors import InputError, one_of
from odefit.common.packages import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odefit.result.result import Result

KINDS = {
    "fit": "measurements and model",
    "parity": "measured against predicted values",
    "residuals": "residuals against time",
    "residuals-prediction": "residuals against predicted values",
    "residuals-experiment": "residuals by experiment",
    "qq": "residuals against the quantiles of the normal distribution",
    "histogram": "the distribution of residuals",
    "autocorrelation": "the correlation of successive residuals",
    "diagnostics": "all of these, a row for each observable",
    "profiles": "profile likelihoods, which the result holds after odefit profile --json",
    "parameters": "confidence intervals in per cent of the estimates",
    "correlation": "correlation of the estimates",
    "starts": "how much worse than the best each start ended",
    "parallel": "the ends of all starts as parallel coordinates",
    "bounds": "bounds of the objective, where the method proves them",
}
"""The figures, with a description of each."""

DESCRIPTION = "Draw a result to a file. What can be drawn: " + "; ".join(
    f"{name} ({meaning})" for name, meaning in KINDS.items()
)

DIAGNOSTICS = {
    "parity": "parity",
    "residuals": "residuals",
    "residuals-prediction": "residuals-prediction",
    "residuals-experiment": "residuals-experiment",
    "qq": "qq",
    "histogram": "histogram",
    "autocorrelation": "autocorrelation",
    "diagnostics": "all",
}
"""Figures of residuals, by their names in :data:`odefit.reporting.figures.diagnostics`."""

OPTIONS = {
    "experiment": ("fit", *DIAGNOSTICS),
    "observable": ("fit", *DIAGNOSTICS),
    "band": ("fit",),
    "scenario": ("fit",),
    "log_y": ("fit",),
    "until": ("fit",),
    "share_axes": ("fit",),
    "inputs": ("fit",),
    "overlay": ("fit",),
}
"""Options that apply to some figures only."""

SUFFIXES = (".svg", ".pdf", ".png")
"""Formats of figures by the suffix of the file."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit plot``."""
    parser.add_argument("result", metavar="RESULT.json")
    parser.add_argument("--what", metavar="KIND", default="fit", help=", ".join(KINDS))
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help=f"the file, whose name decides the format: {', '.join(SUFFIXES)} "
        "(default: RESULT-KIND.svg)",
    )
    parser.add_argument(
        "--width",
        metavar="WIDTH",
        help='for a journal: "single" or "double" column, or a width such as "8.5 cm" '
        "(default: for a screen)",
    )
    parser.add_argument(
        "--experiment", metavar="NAME", help="for a fit and residuals: only this experiment"
    )
    parser.add_argument(
        "--observable",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="for a fit and residuals: only these observables",
    )
    parser.add_argument(
        "--band", choices=("linear", "profile"), help="for a fit: confidence and prediction bands"
    )
    add_values(
        parser,
        "--scenario",
        "FILE.toml|FILE.csv",
        "for a fit: predicted runs with their bands in one figure, instead of the experiments",
    )
    parser.add_argument(
        "--until",
        metavar="TIME",
        help="for a fit: extend curves and bands to this time or date beyond the data",
    )
    parser.add_argument(
        "--share-axes",
        action="store_true",
        help="for a fit: the same time axis in all panels, the same vertical axis for each "
        "observable",
    )
    parser.add_argument(
        "--overlay",
        action="store_true",
        help="for a fit: all experiments in one panel for each observable",
    )
    parser.add_argument(
        "--inputs",
        action="store_true",
        help="for a fit: panels of inputs and doses, which --overlay and --scenario always have",
    )
    parser.add_argument(
        "--log-y", action="store_true", help="for a fit: a logarithmic vertical axis"
    )


def run(options: argparse.Namespace) -> int:
    """Run ``odefit plot``: draw a figure to a file, and print its name."""
    if options.what not in KINDS:
        raise InputError(
            f"--what: there is no figure {options.what!r}{one_of(options.what, KINDS)}"
        )
    for name, kinds in OPTIONS.items():
        if options.what not in kinds and getattr(options, name) not in (None, False, []):
            option = name.replace("_", "-")
            raise InputError(f"--{option}: belongs to --what {kinds[0]}, not to {options.what}")
    source = Path(options.result)
    path = options.output or source.with_name(f"{source.stem}-{options.what}.svg")
    check_figure(path)
    check_writable(path)
    result = saved_result(source)
    write_figure(_drawn(result, options), path)
    print(path)
    return DONE


def check_figure(path: Path) -> None:
    """Refuse the name of a figure in an unknown format, and figures without matplotlib."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a figure is written as one of {', '.join(SUFFIXES)}")
    require("matplotlib")


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file in the common style."""
    from odefit.common.partial_files import write_atomically
    from odefit.reporting.figures.style import plain_style

    buffer = io.BytesIO()
    with plain_style():
        try:
            figure.savefig(buffer, format=path.suffix.lower().removeprefix("."))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be drawn: {error}") from error
    write_atomically(path, buffer.getvalue())


def _predicted(result: Result, options: argparse.Namespace) -> Figure:
    """Draw scenarios."""
    from odefit.methods.running.control import Control
    from odefit.reporting.figures.predictions import plot_predictions
    from odefit.result.result_figures import canvas_of

    if options.until is not None or options.share_axes or options.overlay:
        raise InputError(
            "--until, --share-axes, --overlay: belong to a fit; scenarios give their times, and "
            "are drawn together"
        )
    if options.experiment is not None:
        raise InputError("--experiment: a scenario names its experiment itself")
    with progress_line("drawing ...") as report:
        return plot_predictions(
            result,
            scenarios_in(result, options.scenario),
            options.observable,
            band=options.band or "linear",
            canvas=canvas_of(options.width, None, None),
            log_y=options.log_y,
            control=Control(report=report),
            say=lambda sentence: print(f"note: {sentence}", file=sys.stderr),
        )


def _overlaid(result: Result, options: argparse.Namespace) -> Figure:
    """Draw all experiments in one panel for each observable."""
    from odefit.methods.running.control import Control
    from odefit.reporting.figures.predictions import plot_overlay
    from odefit.result.result_figures import canvas_of

    if options.share_axes:
        raise InputError("--share-axes: experiments that are drawn together have the same axes")
    with progress_line("drawing ...") as report:
        return plot_overlay(
            result,
            options.experiment,
            options.observable,
            band=options.band or "linear",
            until=options.until,
            canvas=canvas_of(options.width, None, None),
            log_y=options.log_y,
            control=Control(report=report),
            say=lambda sentence: print(f"note: {sentence}", file=sys.stderr),
        )


def _drawn(result: Result, options: argparse.Namespace) -> Figure:
    if options.scenario:
        return _predicted(result, options)
    if options.overlay:
        return _overlaid(result, options)
    if options.what == "fit":
        from odefit.methods.running.control import Control
        from odefit.reporting.figures.fit import plot_fit
        from odefit.result.result_figures import canvas_of

        canvas = canvas_of(options.width, None, None)
        with progress_line("drawing ...") as report:
            return plot_fit(
                result,
                options.experiment,
                options.observable,
                band=options.band,
                canvas=canvas,
                log_y=options.log_y,
                until=options.until,
                share_axes=options.share_axes,
                inputs=options.inputs,
                control=Control(report=report),
                say=lambda sentence: print(f"note: {sentence}", file=sys.stderr),
            )
    if options.what in DIAGNOSTICS:
        return result.plot_diagnostics(
            DIAGNOSTICS[options.what], options.experiment, options.observable, width=options.width
        )
    if options.what == "profiles":
        if result.profiles is None:
            raise InputError(
                f"{options.result}: contains no profiles; compute them first: "
                f"odefit profile {options.result} --json {options.result}"
            )
        from odefit.reporting.figures.profiles import plot_profiles
        from odefit.result.result_figures import canvas_of

        return plot_profiles(result.profiles, None, canvas_of(options.width, None, None))
    if options.what == "bounds" and result.assessment.bounds is None:
        raise InputError(
            f"{options.result}: {result.method} proves no bounds; fit with --certify, or with "
            "branch-and-bound or outer-approximation"
        )
    drawn: Figure = getattr(result, f"plot_{options.what}")(width=options.width)
    return drawn
