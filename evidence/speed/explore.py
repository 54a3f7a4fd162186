"""The time from a slider to the curves on the page of ``odefit explore``.

Sliders are moved in Chromium. The time runs from the event of the slider in the page until all
curves are drawn. This includes the way to the server, the integration and the way back. A second
time ends when the browser has made its next frame. Each move waits for the curves of the last; a
slider that is dragged faster skips places.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from playwright.sync_api import Page

from evidence.running.campaign import Option, Task, tasks_of
from evidence.running.measuring import ROOT, problem_named
from odefit import explore

# Problems of the library that are moved by default
SMALL = ("lotka-volterra-f", "alpha-pinene", "bbg", "sir", "fitzhugh-nagumo", "hiv-proteinase")

# Moves sliders a little, one after the other, and returns both times of each move
MOVE = """async (count) => {
  const sliders = [...document.querySelectorAll("#unknowns input[type=range]")];
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const slider = sliders[i % sliders.length];
    await frame();
    const place = (Number(slider.value) + (i % 2 ? 15 : 985)) % 1000;
    const drawn = new Promise((resolve) => {
      document.addEventListener("odefit:drawn", resolve, { once: true });
    });
    const began = performance.now();
    slider.value = String(place);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await drawn;
    const curves = performance.now() - began;
    await frame();
    times.push([curves, performance.now() - began]);
  }
  return times;
}"""


def measured(page: Page, moves: int) -> tuple[np.ndarray, int]:
    """Return the times of moves in milliseconds, shape (moves, 2), and the number of curves."""
    page.evaluate(MOVE, 5)  # kernels are compiled at first use
    times = np.array(page.evaluate(MOVE, moves))
    return times, page.locator("path.live").count()


HEAD = (
    *("problem", "states", "unknowns", "figures"),
    *("curves, ms", "curves, 95 %", "frame, ms", "frame, 95 %"),
)
OPTIONS = (
    Option("problems", SMALL, "names of the library, or files"),
    Option("moves", 100, "moves of a slider", least=1),
)


def tasks(problems: Sequence[str], moves: int) -> list[Task]:
    return tasks_of("problem", problems, moves=moves)


def run(task: Task) -> Mapping[str, Any]:
    """Return the row of a problem, in Chromium without a GPU, and errors of the page."""
    sys.path.append(str(ROOT / "tools"))
    from explore_browser import chromium, watched

    problem = problem_named(task["problem"])
    with chromium() as browser:
        explorer = explore(problem)
        with watched(browser, explorer) as (page, watch):
            times, figures = measured(page, task["moves"])
        explorer.stop()
    row = [problem.name, len(problem.model.states), len(problem.unknowns), figures]
    for column in times.T:
        row += [f"{np.median(column):.1f}", f"{np.quantile(column, 0.95):.1f}"]
    return {"rows": [list(map(str, row))], "notes": list(map(str, watch.problems))}
