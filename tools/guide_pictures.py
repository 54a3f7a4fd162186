"""Pictures of the guides, of a converging fit, and of the way from a problem to its result.

The figure at the top of a guide comes from the guide's own example: its files, or its Python.
"""

from __future__ import annotations

import io
import re
import runpy
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import guide_plans
import odefit
from odefit.reporting.figures import style

DOCS = Path(__file__).parents[1] / "docs"

WIDTH = 4.2
"""Width of the figures in inches."""

FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"(?<!<!-- sketch -->\n)^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

FRAME_SECONDS, LAST_SECONDS = 0.7, 2.5
"""Time for which the moving picture shows an iteration, and the last one."""


def problem_of(page: str) -> odefit.Problem:
    """Return the problem whose files a page of the documentation shows."""
    text = (DOCS / page).read_text(encoding="utf-8")
    files = dict(FILE.findall(text))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        first = next(name for name in files if name.endswith((".toml", ".yaml")))
        return odefit.load(Path(folder) / first)


def names_of(page: str, last: str) -> dict[str, Any]:
    """Return variables of the Python code of a page, run until the last of them is set.

    The code runs in a folder with the files of the page.
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"print": lambda *_, **__: None}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, content in FILE.findall(text):
            Path(name).write_text(content, encoding="utf-8")
        for code in PYTHON.findall(text):
            exec(code, names)  # noqa: S102 - the documentation's own code
            if last in names:
                return names
    raise LookupError(f"{page}: no {last}")


def result_of(page: str, name: str = "result") -> odefit.Result:
    """Return the result that the Python code of a page computes."""
    result = names_of(page, name)[name]
    assert isinstance(result, odefit.Result)
    return result


def picture_of(page: str, name: str = "result") -> Figure:
    """Return the picture of the fit in the Python code of a page, with bands."""
    return result_of(page, name).plot_fit(band="linear", width=WIDTH)


def picture_of_files(page: str) -> Figure:
    """Return the picture of the fit of the problem in the files of a page, with bands."""
    return odefit.fit(problem_of(page), seed=1).plot_fit(band="linear", width=WIDTH)


def picture_of_an_export() -> Figure:
    """Return the fit of the problem that the page on PEtab writes as PEtab, read back."""
    text = (DOCS / "petab.md").read_text(encoding="utf-8")
    (code,) = (c for c in PYTHON.findall(text) if "odefit.save(" in c)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        exec(code, {})  # noqa: S102 - the documentation's own code
        problem = odefit.load("harmonic-petab/problem.yaml")
    return odefit.fit(problem, seed=1).plot_fit(band="linear", width=WIDTH)


def picture_of_a_program() -> Figure:
    """Return the curve of odefit and the points that the program in Python computes."""
    result = odefit.fit(problem_of("programs.md"), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.py"
        result.save(target)
        program = runpy.run_path(str(target))
    fine, coarse = np.linspace(0.0, 4.0, 201), np.linspace(0.0, 4.0, 13)
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.4)
        axes = figure.subplots()
        curve = odefit.simulate(result.problem, result.best.vector, fine)
        assert not isinstance(curve, odefit.Failure)
        axes.plot(fine, curve.observables["y"], color=style.MODEL, linewidth=1.5, label="odefit")
        points = program["simulate"](coarse)["y"]
        axes.plot(coarse, points, "s", color=style.SERIES[2], markersize=4.5, label="model.py")
        style.dress(axes)
        axes.set_xlabel("time t", fontsize=7.5)
        axes.set_ylabel("y", fontsize=7.5)
        axes.legend(frameon=False, fontsize=7.0)
        axes.tick_params(labelsize=6.8)
    return figure


def picture_of_residuals() -> Figure:
    return result_of("goodness-of-fit.md").plot_residuals(width=WIDTH + 1.0)


def picture_of_a_comparison() -> Figure:
    """Return both models of the page on comparing models with their data."""
    names = names_of("compare.md", "larger")
    times = np.linspace(0.0, 5.0, 201)
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.4)
        axes = figure.subplots()
        axes.plot(
            names["t"], names["y"], linestyle="none", marker="o", markersize=3.6, color=style.DATA
        )
        for result, label, line in (("larger", "with offset", "-"), ("smaller", "without", "--")):
            fitted: odefit.Result = names[result]
            path = odefit.simulate(fitted.problem, fitted.best.vector, times)
            assert not isinstance(path, odefit.Failure)
            shown = f"{label}: AICc {fitted.aicc:.0f}"
            axes.plot(
                times, path.observables["y"], line, linewidth=1.5, color=style.MODEL, label=shown
            )
        style.dress(axes)
        axes.set_xlabel("time t", fontsize=7.5)
        axes.set_ylabel("y", fontsize=7.5)
        axes.legend(frameon=False, fontsize=7.0)
        axes.tick_params(labelsize=6.8)
    return figure


def picture_of_an_unknown_function() -> Figure:
    result = odefit.fit(problem_of("unknown-functions.md"), seed=1)
    return result.plot_predictions(observables=["cases", "beta"], width=WIDTH)


def picture_of_sensitivities() -> Figure:
    return odefit.sensitivity(problem_of("sensitivity.md")).plot(width=WIDTH)


def picture_of_a_forecast(result: odefit.Result) -> Figure:
    shown = ["y1", "y2", "y3", "y5"]
    return result.plot_fit(observables=shown, until=80_000.0, band="linear", width=WIDTH)


def picture_of_the_way() -> Figure:
    """Return a diagram of the way from problem and data to an assessed result."""
    boxes = [
        ("Problem", "equations, data,\nunknowns, noise"),
        ("Check", "units, names,\nwhat can be known"),
        ("Search", "several methods,\nmany starts"),
        ("Polish", "exact trajectories\nand sensitivities"),
        ("Assess", "optimum, errors,\nresiduals, proof"),
        ("Result", "table, figures,\nreport, file"),
    ]
    with style.plain_style():
        figure = style.new_figure(4.2, 2.1)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0.0, 3.0), ylim=(0.0, 2.0))
        axes.axis("off")
        centred: dict[str, Any] = {"ha": "center", "va": "center"}
        for k, (title, words) in enumerate(boxes):
            # Two rows, the second from right to left: legible on a telephone.
            left, low = (k if k < 3 else 5 - k), (1.0 if k < 3 else 0.0)
            ends = k in (0, len(boxes) - 1)
            colour = style.SERIES[0] if ends else style.INK
            axes.add_patch(
                FancyBboxPatch(
                    (left + 0.1, low + 0.16),
                    0.76,
                    0.68,
                    boxstyle="round,pad=0.02,rounding_size=0.06",
                    linewidth=1.0,
                    edgecolor=colour,
                    facecolor="none",
                    mutation_aspect=1.3,
                )
            )
            axes.text(left + 0.48, low + 0.67, title, fontsize=9.5, color=colour, **centred)
            axes.text(left + 0.48, low + 0.38, words, fontsize=7.2, color=style.INK, **centred)
            if k < len(boxes) - 1:
                begin, end = (left + 0.9, low + 0.5), (left + 1.08, low + 0.5)
                if k == 2:
                    begin, end = (left + 0.48, low + 0.13), (left + 0.48, low - 0.12)
                elif k > 2:
                    begin, end = (left + 0.06, low + 0.5), (left - 0.12, low + 0.5)
                arrow = {"arrowstyle": "->", "color": style.INK, "linewidth": 0.9}
                axes.annotate("", xy=end, xytext=begin, arrowprops=arrow)
    return figure


def moving_fit() -> str:
    """Return an SVG that shows the iterations of multiple shooting in an endless loop."""
    problem = odefit.library.load("lotka-volterra-p")
    history = odefit.MultipleShooting(states="data").follow(problem)
    condition, count = problem.conditions[0], len(history.iterations)
    with style.plain_style():
        figure = style.new_figure(WIDTH, 2.6)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.1, 0.17, 0.87, 0.72))
        measured = condition.series["y1"]
        axes.plot(
            condition.times[measured.rows],
            measured.values,
            linestyle="none",
            marker="o",
            markersize=3.6,
            color=style.DATA,
        )
        for k in range(count):
            path = history.trajectory(k)
            (line,) = axes.plot(
                path.times, path.observables["y1"], color=style.MODEL, linewidth=1.5
            )
            line.set_gid(f"line-{k}")
            title = axes.text(
                0.0, 1.03, f"iteration {k} of {count - 1}", transform=axes.transAxes, fontsize=8.0
            )
            title.set_gid(f"title-{k}")
        style.dress(axes)
        axes.set_xlabel("time t", fontsize=7.5)
        buffer = io.BytesIO()
        style.save_outlines(figure, buffer, metadata={"Date": None})
    text = buffer.getvalue().decode()
    for k in range(count):
        for name in ("line", "title"):
            group = f'<g id="{name}-{k}">'
            assert text.count(group) == 1, group
            text = text.replace(group, group + appearance(k, count))
    return text


def appearance(k: int, count: int) -> str:
    """Return the animation that shows a group during frame `k` of `count`."""
    length = FRAME_SECONDS * (count - 1) + LAST_SECONDS
    ends = [FRAME_SECONDS * k / length, FRAME_SECONDS * (k + 1) / length]
    values, times = ["0", "1", "0"], [0.0, *ends]
    if k == 0:
        values, times = values[1:], times[1:]
    if k == count - 1:
        values, times = values[:-1], times[:-1]
    listed = ";".join(f"{time:.4f}" for time in times)
    return (
        f'<animate attributeName="opacity" values="{";".join(values)}" keyTimes="{listed}" '
        f'dur="{length:g}s" calcMode="discrete" repeatCount="indefinite"/>'
    )


FIGURES: dict[str, Callable[[odefit.Result], Figure]] = {
    "way.svg": lambda _: picture_of_the_way(),
    "counts.svg": lambda _: picture_of("fit-counts.md"),
    "detection-limit.svg": lambda _: picture_of("detection-limit.md"),
    "subjects.svg": lambda _: picture_of_files("fit-subjects.md"),
    "reactions.svg": lambda _: picture_of_files("writing-models.md"),
    "dosing.svg": lambda _: picture_of_files("dosing.md"),
    "motor.svg": lambda _: picture_of_files("from-matlab.md"),
    "copasi.svg": lambda _: picture_of("from-copasi.md"),
    "exchange.svg": lambda _: picture_of_files("coming-from.md"),
    "program.svg": lambda _: picture_of_a_program(),
    "outlier.svg": lambda _: picture_of("noise.md"),
    "lmfit.svg": lambda _: picture_of("from-lmfit.md"),
    "sbml.svg": lambda _: picture_of("sbml.md"),
    "steady-state.svg": lambda _: picture_of("steady-states.md"),
    "going-on.svg": lambda _: picture_of("going-on.md", "second"),
    "petab.svg": lambda _: picture_of_an_export(),
    "goodness.svg": lambda _: picture_of_residuals(),
    "comparison.svg": lambda _: picture_of_a_comparison(),
    "checkpoint.svg": lambda _: guide_plans.picture_of_a_checkpoint(),
    "cluster.svg": lambda _: guide_plans.picture_of_a_cluster(),
    "limit.svg": lambda _: guide_plans.picture_of_a_limit(),
    "sizes.svg": lambda _: guide_plans.picture_of_sizes(),
    "unknown-function.svg": lambda _: picture_of_an_unknown_function(),
    "sensitivity.svg": lambda _: picture_of_sensitivities(),
    "forecast.svg": picture_of_a_forecast,
}
"""Pictures of the guides and the diagram; one shows the fit of alpha-pinene."""

MOVING = "moving-fit.svg"
"""The moving picture of the first page."""
