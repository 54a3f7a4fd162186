"""How long it takes from a slider to the curves on the page of ``odefit explore``.

    python -m evidence.speed.explore [PROBLEM ...] [--moves 100]

Sliders are moved in Chromium. The time runs from the event of the slider, in the page, until all
curves are drawn, which includes the way to the server, the integration and the way back, and until
the browser has made its next frame. Moves follow each other one by one; while a slider is dragged
faster than that, places in between are left out.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

import odefit
from odefit.explorer import explore
from odefit.problem.problem import Problem

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
    page.evaluate(MOVE, 5)  # what is compiled at first use
    times = np.array(page.evaluate(MOVE, moves))
    return times, page.locator("path.live").count()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("problems", nargs="*", default=SMALL, help="names of the library, or files")
    parser.add_argument("--moves", type=int, default=100)
    options = parser.parse_args(arguments)
    sys.path.append(str(Path(__file__).parents[2] / "tools"))
    from explore_browser import chromium, watched

    print(f"{options.moves} moves each; Chromium without a GPU; {platform.machine()}\n")
    print("| problem | states | unknowns | figures | curves, ms | 95 % | frame, ms | 95 % |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with chromium() as browser:
        for name in options.problems:
            problem = loaded(name)
            explorer = explore(problem)
            with watched(browser, explorer) as (page, watch):
                times, figures = measured(page, options.moves)
            explorer.stop()
            row = [problem.name, len(problem.model.states), len(problem.unknowns), figures]
            for column in times.T:
                row += [f"{np.median(column):.1f}", f"{np.quantile(column, 0.95):.1f}"]
            print(f"| {' | '.join(map(str, row))} |", flush=True)
            for problem_found in watch.problems:
                print(f"  {problem_found}")


def loaded(name: str) -> Problem:
    """Return a problem of the library, or in a file."""
    return odefit.load(name) if Path(name).exists() else odefit.library.load(name)


if __name__ == "__main__":
    main()
