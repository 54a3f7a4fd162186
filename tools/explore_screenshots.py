"""Screenshots of the page of ``odefit explore``, at widths of a phone, a tablet and a screen.

``python tools/explore_screenshots.py FOLDER`` takes every view. The picture in the documentation is
made by ``python tools/explore_screenshots.py --page docs/_static/explore.webp``.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Page, ViewportSize

import odefit
from explore_browser import chromium
from odefit.explorer import explore

WIDTHS = {320: 640, 800: 900, 1400: 900}
"""Widths of the window and its heights, in pixels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--problem", default="alpha-pinene", help="of the library, or a file")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--page", type=Path, metavar="FILE.webp", help="one picture alone")
    options = parser.parse_args()
    known = Path(options.problem).exists()
    problem = odefit.load(options.problem) if known else odefit.library.load(options.problem)
    explorer = explore(problem, result=odefit.fit(problem, odefit.SingleShooting()))
    scheme: Literal["dark", "light"] = "dark" if options.dark else "light"
    with chromium() as browser:
        for width in [1280] if options.page else options.widths:
            size = ViewportSize(width=width, height=WIDTHS.get(width, 800))
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(explorer.url)
            page.wait_for_selector("path.live", state="attached")
            for key in ("PageDown", "PageDown", "Tab"):  # away from the answer
                page.locator("#unknowns input[type=range]").first.press(key)
            page.wait_for_timeout(700)
            if options.page:
                picture = Image.open(io.BytesIO(page.screenshot()))
                picture.convert("RGB").save(options.page, quality=82, method=6)
            elif options.folder:
                take(page, options.folder, str(width))
            page.close()
    explorer.stop()


def take(page: Page, folder: Path, width: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.wait_for_timeout(700)
        page.get_by_text("Drawing …").wait_for(state="hidden", timeout=60_000)
        name = (tab.get_attribute("id") or "").removeprefix("tab-")
        page.screenshot(path=folder / f"{name}-{width}.png")
    page.get_by_role("tab").first.click()
    page.screenshot(path=folder / f"whole-{width}.png", full_page=True)


if __name__ == "__main__":
    main()
