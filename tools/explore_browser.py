"""Start Chromium on the page of ``odefit explore``, record its errors, and use it at random.

``python tools/explore_browser.py --count 500 --seed 1`` performs this number of random actions on a
page, and reports errors: messages in the console, errors of the page or of the server, and requests
to any other machine.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, ElementHandle, Error, Page, sync_playwright

import odefit
from odefit.explorer import Explorer, explore

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""The browser; None if it is not installed."""

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""Options for running without a screen and without requests of the browser itself."""

PATIENCE = 20_000
"""Milliseconds after which an element that has not appeared counts as missing."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Watch:
    """The errors of a page and its server, in words.

    Attributes
    ----------
    problems
        A sentence for each error.
    requests
        The addresses of all requests.
    """

    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


class _Errors(logging.Handler):
    """A log handler that records the errors of the server."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(f"server: {record.getMessage()} {record.exc_info or ''}")


@contextmanager
def watched(
    browser: Browser, explorer: Explorer, width: int = 1200
) -> Iterator[tuple[Page, Watch]]:
    """Open the page, and watch it.

    Answers with a sentence for the user (status 422) are no errors, although the console shows them
    as such.
    """
    base = explorer.url.split("?")[0]
    watch = Watch()
    server = _Errors(watch.problems)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(server)
    context = browser.new_context(viewport={"width": width, "height": 800}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)

    def asked(address: str) -> None:
        watch.requests.append(address)
        if not address.startswith((base, "blob:", "data:")):
            watch.problems.append(f"request to another place: {address}")

    def answered(status: int, address: str) -> None:
        if status >= 400 and status != 422:
            watch.problems.append(f"status {status}: {address}")

    def said(kind: str, text: str) -> None:
        if kind in ("error", "warning") and "422" not in text:
            watch.problems.append(f"console: {text}")

    context.on("request", lambda r: asked(r.url))
    context.on("response", lambda r: answered(r.status, r.url))
    page.on("console", lambda m: said(m.type, m.text))
    page.on("pageerror", lambda e: watch.problems.append(f"page: {e.stack or e}"))
    page.goto(explorer.url)
    page.wait_for_selector("#tabs [aria-selected=true]")
    page.wait_for_selector("path.live", state="attached")
    yield page, watch
    context.close()
    for logger in loggers:
        logger.removeHandler(server)


TEXTS = ("0.5", "1e-3", "-1", "0", "1e9", "abc", "", "3,5", "0x10", "1e400", "NaN", " 2 ", "<b>")
"""Texts that are typed into fields."""


CHOOSE = """(select, share) => {
    const offered = [...select.options].filter((option) => !option.disabled);
    if (offered.length === 0) return;
    offered[Math.floor(share * offered.length)].selected = true;
    for (const name of ["input", "change"])
        select.dispatchEvent(new Event(name, { bubbles: true }));
}"""
"""Choose one of the options that a user can choose: some views offer only single experiments. The
choice is one step in the page, since an answer of the server may replace the options between two
steps.
"""


class RandomUser:
    """Performs random actions on the elements of the page; a seed determines their order."""

    def __init__(self, page: Page, seed: int) -> None:
        self.page = page
        self.random = random.Random(seed)
        self.element: ElementHandle | None = None
        self.log: list[str] = []
        self.actions: list[Callable[[], None]] = [
            *[self.drag] * 4, *[self.press] * 4, *[self.type] * 3, *[self.tab] * 3,
            self.hold, self.click, self.click, self.click, self.choose, self.choose, self.undo,
            self.hover, self.resize, self.keep, self.dialog, self.find, self.tick,
        ]  # fmt: skip

    def act(self) -> None:
        """Perform one action."""
        action = self.random.choice(self.actions)
        self.log.append(action.__name__)
        self.element = None
        dialog = self.page.locator("dialog[open]")
        if dialog.count():  # an open dialog covers everything else
            name = self.random.choice(["#keep-file", "#keep-file", "#write:not(:disabled)"])
            button = self.page.locator(name)
            if button.count():
                button.evaluate("e => e.click()")  # the dialog may just be closing
            else:
                self.page.keyboard.press("Escape")
            return
        try:
            action()
        except Error:
            # A late answer of the server may have opened a dialog in front of the element,
            # hidden the element, or replaced it.
            if not dialog.count() and (self.element is None or self.element.is_visible()):
                raise

    def one(self, selector: str) -> ElementHandle | None:
        """Return a random visible element.

        It is returned itself, not by its number in the list: a late answer of the server may hide
        an earlier element and change the numbers.
        """
        elements = self.page.locator(f":is({selector}):visible").element_handles()
        self.element = self.random.choice(elements) if elements else None
        return self.element

    def drag(self) -> None:
        slider = self.one("input[type=range]")
        if slider is None:
            return
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        if box is None:
            return
        y = box["y"] + box["height"] / 2
        places = [box["x"] + self.random.random() * box["width"] for _ in range(3)]
        self.page.mouse.move(places[0], y)
        self.page.mouse.down()
        for x in places[1:]:
            self.page.mouse.move(x, y, steps=5)
        self.page.mouse.up()

    def press(self) -> None:
        slider = self.one("input[type=range]")
        if slider is None:
            return
        slider.focus()
        keys = ("ArrowRight", "ArrowLeft", "PageUp", "PageDown", "Home", "End")
        for _ in range(self.random.randint(1, 5)):
            self.page.keyboard.press(self.random.choice(keys))

    def type(self) -> None:
        box = self.one(".unknown input[type=text], #limit")
        if box is None:
            return
        box.fill(self.random.choice(TEXTS))
        box.press(self.random.choice(["Enter", "Tab", "Escape"]))

    def tab(self) -> None:
        tab = self.one("[role=tab]")
        if tab is None:
            return
        tab.click()
        if self.random.random() < 0.5:
            self.page.keyboard.press(self.random.choice(["ArrowLeft", "ArrowRight", "Home", "End"]))

    def hold(self) -> None:
        box = self.one(".hold input")
        if box is not None:
            box.click()

    def click(self) -> None:
        button = self.one("summary, button:not(:disabled):not(#quit):not([role=tab])")
        if button is not None:
            # An answer of the server may have removed it.
            self.log[-1] += f" {button.text_content()}"
            button.evaluate("e => e.click()")

    def choose(self) -> None:
        select = self.one("select")
        if select is not None:
            select.evaluate(CHOOSE, self.random.random())

    def undo(self) -> None:
        self.page.keyboard.press(self.random.choice(["Control+z", "Control+y", "Control+Shift+z"]))

    def hover(self) -> None:
        figure = self.one(".panel svg")
        if figure is not None:
            figure.hover(force=True)

    def resize(self) -> None:
        width = self.random.choice([320, 500, 800, 1100, 1400])
        self.page.set_viewport_size({"width": width, "height": 800})

    def keep(self) -> None:
        name = self.one("#snapshot-name")
        if name is not None:
            name.fill(self.random.choice(["", "a", "b", "<i>c</i>", "long " * 8]))
            name.press("Enter")

    def dialog(self) -> None:
        button = self.one("#propose")
        if button is not None:
            button.click()
            self.page.wait_for_timeout(200)

    def find(self) -> None:
        box = self.one("#filter")
        if box is not None:
            box.fill(self.random.choice(["", "", "k", "zzz"]))

    def tick(self) -> None:
        box = self.one("label.tick input")
        if box is not None:
            box.click()


def use_at_random(
    browser: Browser, explorer: Explorer, count: int, seed: int
) -> tuple[Watch, list[str]]:
    """Return the errors of a number of random actions, and these actions."""
    with watched(browser, explorer) as (page, watch):
        page.set_default_timeout(4000)
        user = RandomUser(page, seed)
        for _ in range(count):
            user.act()
        page.wait_for_timeout(500)
        return watch, user.log


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--problem", default="lotka-volterra-f", help="of the library, or a file")
    options = parser.parse_args()
    if Path(options.problem).exists():
        problem = odefit.load(options.problem)
    else:
        problem = odefit.library.load(options.problem)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.toml"
        odefit.save(problem, file)
        os.chdir(folder)  # the folder of saved copies
        result = odefit.fit(problem, odefit.SingleShooting())
        explorer = explore(odefit.load(file), result=result, file=file)
        with chromium() as browser:
            watch, log = use_at_random(browser, explorer, options.count, options.seed)
        explorer.stop()
    kinds = sorted({entry.split()[0] for entry in log})
    print(f"{len(log)} actions of {len(kinds)} kinds, {len(watch.requests)} requests")
    print("\n".join(watch.problems) or "nothing went wrong")


if __name__ == "__main__":
    main()
