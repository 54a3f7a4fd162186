"""Make the pictures of the README and of the documentation.

    python tools/make_pictures.py docs/pictures

The figures are drawn by odefit. The picture of a report is taken by Chromium, which has to be
installed (``--browser`` names another program that understands its options).
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import guide_pictures
import odefit
from odefit.reporting.figures import style

WIDTH = 4.2
"""Width of the figures in inches."""

REPORT_SIZE, REPORT_WIDTH = (900, 2064), 1500
"""Width and height of the part of the report in the picture, in pixels, and the width of the
picture, which shows the lower half beside the upper."""

LONG = re.compile(r"-?\d+\.\d{3,}")
"""A number with digits that nobody sees."""

COLOURS = 128
"""Number of colours of the picture of a report: enough for text and lines."""


def fit_of_alpha_pinene() -> odefit.Result:
    return odefit.fit(odefit.library.load("alpha-pinene"), seed=1)


def picture_of_a_fit(result: odefit.Result) -> Figure:
    shown = ["y1", "y2", "y3", "y5"]
    return result.plot_fit(observables=shown, band="linear", width=WIDTH)


def picture_of_profiles(result: odefit.Result) -> Figure:
    return result.profile(["p2", "p3", "p4", "p5"]).plot(width=WIDTH)


def picture_of_a_certificate() -> Figure:
    problem = odefit.library.load("alpha-pinene")
    rates = dict.fromkeys(problem.model.parameters, (1e-6, 1e-3))
    return odefit.fit(problem, odefit.BranchAndBound(bounds=rates), seed=1).plot_bounds(width=WIDTH)


def picture_of_a_design() -> Figure:
    problem = odefit.Problem(
        odefit.Model(ode={"a": "-k1*a", "b": "k1*a - k2*b"}, observables={"y": "b"}),
        data={"t": [1.0, 3.0], "y": [0.414, 0.602]},
        parameters={name: {"lower": 0.0, "upper": 10.0} for name in ("k1", "k2")},
        initial={"a": 1.0, "b": 0.0},
        noise={"y": {"sd": 0.02}},
        t0=0.0,
        time_unit="h",
    )
    design = odefit.design(problem, {"k1": 0.7, "k2": 0.2}, times=(0, 20), count=2)
    return design.plot()


def theophylline() -> odefit.Problem:
    rate = {"lower": 0.001, "upper": 10.0, "scale": "log10"}
    return odefit.Problem(
        odefit.Model(
            ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}
        ),
        data={
            "t": [0.25, 0.57, 1.12, 2.02, 3.82, 5.10, 7.03, 9.05, 12.12, 24.37],
            "c": [2.84, 6.57, 10.50, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28],
        },
        parameters={"ka": rate, "ke": rate, "V": rate},
        initial={"gut": 4.02, "blood": 0.0},
        t0=0.0,
        time_unit="h",
    )


def picture_of_two_solutions() -> Figure:
    problem = theophylline()
    result = odefit.fit(problem, seed=1)
    times = np.linspace(0.0, 24.0, 241)
    with style.plain_style():
        figure = style.new_figure(WIDTH, 3.4)
        above, below = figure.subplots(2, 1, sharex=True)
        measured = problem.conditions[0]
        above.plot(
            measured.times,
            measured.series["c"].values,
            linestyle="none",
            marker="o",
            markersize=3.2,
            color=style.DATA,
        )
        for solution, line, colour in zip(
            result.solutions[:2], ("-", "--"), style.SERIES[::2], strict=False
        ):
            found = odefit.simulate(problem, solution.vector, times)
            assert not isinstance(found, odefit.Failure)
            values = solution.parameters
            label = f"ka = {values['ka']:.2g}, ke = {values['ke']:.2g}"
            above.plot(times, found.observables["c"], line, color=colour, linewidth=1.4)
            below.plot(times, found.states["gut"], line, color=colour, linewidth=1.4, label=label)
        above.set_ylabel("in the blood\n(measured)", fontsize=7.5)
        below.set_ylabel("in the gut\n(not measured)", fontsize=7.5)
        below.set_xlabel("time (h)", fontsize=7.5)
        below.legend(frameon=False, fontsize=7.0)
        for axes in (above, below):
            style.dress(axes)
            axes.tick_params(labelsize=6.8)
    return figure


def picture_of_scenarios() -> Figure:
    problem = theophylline().with_parameters(ka=(0.5, 10.0)).with_unknowns(guess={"ka": 1.5})
    result = odefit.fit(problem, seed=1)
    doses = [{"time": 0, "amount": 2.01, "into": "gut", "every": 12, "count": 4}]
    half = odefit.Scenario("half twice a day", initial={"gut": 0.0}, doses=doses, times=[0.0, 48.0])
    once = odefit.Scenario("once, as fitted", times=[0.0, 48.0])
    return result.plot_predictions([once, half], width=WIDTH)


def picture_of_diagnostics() -> Figure:
    random, times = np.random.default_rng(5), np.linspace(0.0, 9.0, 28)
    runs = [
        odefit.Experiment(
            name,
            {"t": times, "x": x0 * np.exp(-0.3 * times) + 0.2 * random.standard_normal(len(times))},
            initial={"x": x0},
        )
        for name, x0 in (("large", 10.0), ("small", 4.0))
    ]
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        experiments=runs,
        parameters={"k": (0.01, 3.0)},
        initial={"x": 1.0},
        noise={"x": {"sd": "estimate"}},
        time_unit="h",
        units={"x": "mg"},
    )
    kinds = ["parity", "residuals", "qq", "autocorrelation"]
    return odefit.fit(problem, seed=1).plot_diagnostics(kinds, width=WIDTH + 1.0)


def picture_of_a_validation() -> Figure:
    random, times = np.random.default_rng(3), np.linspace(0.5, 8.0, 16)
    model = odefit.Model(ode={"x": "b*u - k*x"}, inputs={"u": "constant"})

    def data(u: float, drift: float = 0.0) -> dict[str, np.ndarray]:
        values = 4.0 * u * (1.0 - np.exp(-0.5 * times)) + 0.15 * random.standard_normal(16)
        values += drift * np.sin(0.8 * times)
        inputs = np.full(17, u)
        return {"t": np.append(0.0, times), "u": inputs, "x": np.append(np.nan, values)}

    problem = odefit.Problem(
        model,
        data(1.0),
        {"b": (0.1, 10.0), "k": (0.05, 5.0)},
        {"x": 0.0},
        noise={"x": {"sd": 0.15}},
    )
    runs = [
        odefit.Scenario("u = 0.6", data=data(0.6)),
        odefit.Scenario("u = 1.4, disturbed", data=data(1.4, 0.8)),
    ]
    return odefit.fit(problem, seed=1).validate(runs).plot(width=WIDTH + 1.5)


def picture_of_a_report(result: odefit.Result, target: Path, browser: str) -> None:
    """Write the top of a report as a picture of few colours."""
    program = shutil.which(browser)
    if program is None:
        sys.exit(f"{browser}: no such program; install Chromium, or name one by --browser")
    with tempfile.TemporaryDirectory() as folder:
        report, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        result.report(report)
        command = [program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-sandbox"]
        size = f"--window-size={REPORT_SIZE[0]},{REPORT_SIZE[1]}"
        subprocess.run(
            [*command, size, f"--screenshot={shot}", report.as_uri()],
            check=True,
            capture_output=True,
        )
        with Image.open(shot) as picture:
            halves = side_by_side(picture.convert("RGB"))
    height = round(REPORT_WIDTH * halves.height / halves.width)
    small = halves.resize((REPORT_WIDTH, height), Image.Resampling.LANCZOS)
    few = small.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=4)
    few.save(target, optimize=True)


def side_by_side(page: Image.Image) -> Image.Image:
    """Return a page as two columns, cut where the widest empty space near the middle is."""
    empty = (np.asarray(page) == 255).all(axis=(1, 2))
    first, last = int(0.45 * page.height), int(0.55 * page.height)
    filled = np.flatnonzero(~empty[first:last]) + first
    widest = int(np.argmax(np.diff(filled)))
    cut = int(filled[widest] + filled[widest + 1]) // 2
    parts = [page.crop((0, 0, page.width, cut)), page.crop((0, cut, page.width, page.height))]
    both = Image.new("RGB", (2 * page.width, max(part.height for part in parts)), "white")
    for k, part in enumerate(parts):
        both.paste(part, (k * page.width, 0))
    return both


def rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}"


def write_short(figure: Figure, target: Path) -> None:
    """Write a figure as SVG with coordinates of hundredths of a point, finer than can be seen."""
    buffer = io.BytesIO()
    style.save_outlines(figure, buffer, metadata={"Date": None})
    target.write_text(shortened(buffer.getvalue().decode()), encoding="utf-8")


def shortened(svg: str) -> str:
    """Return a figure whose paths have coordinates of hundredths of a point."""
    paths = re.compile(r'(?<= d=")[^"]+')
    return paths.sub(lambda path: LONG.sub(rounded, path[0]), svg)


FIGURES: dict[str, Callable[[odefit.Result], Figure]] = {
    "fit.svg": picture_of_a_fit,
    "profiles.svg": picture_of_profiles,
    "certificate.svg": lambda _: picture_of_a_certificate(),
    "two-solutions.svg": lambda _: picture_of_two_solutions(),
    "design.svg": lambda _: picture_of_a_design(),
    "diagnostics.svg": lambda _: picture_of_diagnostics(),
    "validation.svg": lambda _: picture_of_a_validation(),
    "scenarios.svg": lambda _: picture_of_scenarios(),
    **guide_pictures.FIGURES,
}
"""Pictures that odefit draws of the fit of alpha-pinene, with their functions."""

REPORT = "report.png"
"""The picture of a report."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pictures of README and documentation.")
    parser.add_argument("folder", type=Path, help="where they are written")
    parser.add_argument("--browser", default="chromium", help="the program that shows the report")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    result = fit_of_alpha_pinene()
    for name, draw in FIGURES.items():
        write_short(draw(result), options.folder / name)
    moving = shortened(guide_pictures.moving_fit())
    (options.folder / guide_pictures.MOVING).write_text(moving, encoding="utf-8")
    picture_of_a_report(result, options.folder / REPORT, options.browser)


if __name__ == "__main__":
    main()
