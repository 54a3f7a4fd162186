"""A real browser on the page: every control by mouse and keyboard, and nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import odefit
from explore_browser import CHROMIUM, PATIENCE, chromium, use_at_random, watched
from odefit.explorer import Explorer, explore

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; Debian: apt install chromium"),
    pytest.mark.slow,
]

DECAY = """# a decay in two steps
format = 1
name = "two steps"

[ode]
a = "-k*a"
b = "k*a - m*b"

[parameters]
k = { lower = 0.01, upper = 10.0, scale = "log10", guess = 0.3, unit = "1/h" }  # fast
m = { lower = 0.0, upper = 2.0, guess = 0.5 }

[initial]
a = { lower = 0.0, upper = 5.0, guess = 2.0 }
b = 0.0

[noise]
a = { sd = 0.1 }
b = { sd = 0.1 }

[[experiment]]
name = "one"
data = { t = [0, 1, 2, 4], a = [2.1, 1.3, 0.7, 0.3], b = [0.0, 0.6, 0.8, 0.7] }

[[experiment]]
name = "two"
initial = { b = 1.0 }
data = { t = [1, 2, 3], a = [1.2, 0.75, 0.5], b = [1.2, 1.1, 0.9] }
"""

expect.set_options(timeout=PATIENCE)

OUTSIDE = """[...document.querySelectorAll("#view svg")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const { left, right, bottom } = text.getBoundingClientRect();
    return left < box.left - 1 || right > box.right + 1 || bottom > box.bottom + 1;
  }).map((text) => text.textContent);
})"""
"""The labels that are cut by the edge of their figure."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "steps.toml"
    path.write_text(DECAY, encoding="utf-8")
    return path


@pytest.fixture
def explorer(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Explorer]:
    monkeypatch.chdir(file.parent)  # where copies are saved
    made = explore(odefit.load(file), file=file)
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, explorer: Explorer) -> Iterator[Page]:
    """The page; at the end nothing may have gone wrong, in the console or in the server."""
    with watched(browser, explorer) as (opened, watch):
        yield opened
        opened.wait_for_timeout(100)
    assert watch.problems == []
    assert watch.requests


def slider(page: Page, key: str) -> Locator:
    return page.get_by_label(f"{key}, slider", exact=True)


def field(page: Page, key: str) -> Locator:
    return page.locator(".unknown", has=slider(page, key)).locator("input[type=text]")


def curve(page: Page, number: int = 0) -> str:
    return page.locator("path.live").nth(number).get_attribute("d") or ""


def wait_until(page: Page, condition: str, argument: object = None) -> None:
    """Ask again until it holds; Playwright's own waiting evaluates text, which the page forbids."""
    for _ in range(600):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"this has not come true in 30 seconds: {condition}")


def moved(page: Page, before: str, number: int = 0) -> None:
    wait_until(
        page,
        "([n, d]) => document.querySelectorAll('path.live')[n].getAttribute('d') !== d",
        [number, before],
    )


def objective(page: Page) -> float:
    return float(page.locator("#facts dd").first.text_content() or "nan")


def test_a_slider_moves_curves_and_objective_by_mouse_and_by_keyboard(
    page: Page, explorer: Explorer
) -> None:
    assert page.locator("path.live").count() == 4
    first = curve(page)
    k = slider(page, "k")
    box = k.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    moved(page, first)
    assert explorer.values["k"] > 2
    second = curve(page)
    k.focus()
    page.keyboard.press("Home")
    moved(page, second)
    assert explorer.values["k"] == 0.01
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(field(page, "k")).to_have_value("0.01021")  # 0.01 * 1000^(3/1000)
    page.keyboard.press("End")
    expect(field(page, "k")).to_have_value("10")
    assert k.get_attribute("aria-valuetext") == "10 1/h"


def test_the_curve_is_at_the_place_that_the_solution_has(page: Page) -> None:
    field(page, "k").fill("0.5")
    field(page, "k").press("Enter")
    wait_until(page, "window.odefit.answer.experiments.one.observables.a.at(-1) < 0.271")
    curves = page.evaluate("window.odefit.answer.experiments.one")
    np.testing.assert_allclose(
        curves["observables"]["a"], 2 * np.exp(-0.5 * np.array(curves["times"])), rtol=1e-6
    )
    # The pixels of the curve's end lie where the axes say.
    ends = page.evaluate("""() => {
      const chart = window.odefit.views.curves.view.grid.charts[0].chart;
      const [x, y] = document.querySelector("path.live").getAttribute("d").split("L").at(-1)
        .split(",").map(Number);
      return [x - chart.toX(4), y - chart.toY(2 * Math.exp(-2))];
    }""")
    np.testing.assert_allclose(ends, 0, atol=0.11)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("abc", "Expected a number such as 0.5 or 1e-3."),
        ("", "Expected a number such as 0.5 or 1e-3."),
        ("11", "Expected a number from 0.01 to 10, the bounds."),
    ],
)
def test_a_field_says_what_it_expects(
    page: Page, explorer: Explorer, text: str, sentence: str
) -> None:
    k = field(page, "k")
    k.fill(text)
    k.press("Tab")
    expect(page.get_by_role("alert").filter(has_text=sentence)).to_be_visible()
    expect(k).to_have_attribute("aria-invalid", "true")
    assert explorer.values["k"] == 0.3
    k.fill("0.7")
    k.press("Enter")
    expect(k).to_have_attribute("aria-invalid", "false")
    wait_until(page, "window.odefit.state.values[0] === 0.7")


def test_steps_are_undone_and_redone(page: Page, explorer: Explorer) -> None:
    for text in ("0.6", "0.9"):
        field(page, "k").fill(text)
        field(page, "k").press("Enter")
    slider(page, "k").focus()
    page.keyboard.press("Control+z")
    expect(field(page, "k")).to_have_value("0.6")
    page.get_by_role("button", name="Undo").click()
    expect(field(page, "k")).to_have_value("0.3")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.get_by_role("button", name="Redo").click()
    expect(field(page, "k")).to_have_value("0.6")
    page.get_by_label("Reset to").select_option("guesses")
    expect(field(page, "k")).to_have_value("0.3")


def test_a_fit_from_here_moves_the_sliders_and_holds_what_is_held(
    page: Page, explorer: Explorer, file: Path
) -> None:
    before = objective(page)
    page.get_by_label("hold m: it is not fitted").check()
    page.get_by_role("button", name="Fit from here").click()
    expect(page.locator("#progress")).to_contain_text("has ended", timeout=60_000)
    assert page.evaluate("window.odefit.state.values[1]") == 0.5
    problem = odefit.load(file).with_unknowns(fix={"m": 0.5})
    best = odefit.fit(problem, odefit.SingleShooting()).best
    assert page.evaluate("window.odefit.state.values[0]") == pytest.approx(
        best.parameters["k"], rel=1e-5
    )
    wait_until(page, "o => Number(document.querySelector('#facts dd').textContent) < o", before)
    assert objective(page) == pytest.approx(best.objective, rel=1e-4)
    expect(page.locator("#snapshots li")).to_contain_text("fit 1")
    assert explorer.fit is not None
    page.get_by_role("button", name="Undo").click()
    expect(field(page, "k")).to_have_value("0.3")


AS_SOON_AS_POSSIBLE = """button => {
  button.dataset.clicks = 0;
  const look = () => {
    if (button.disabled || !button.checkVisibility()) { setTimeout(look, 1); return; }
    button.dataset.clicks = 1;
    button.click();
  };
  look();
}"""
"""Clicks a button once it can be clicked. A test on a busy machine would do so after the fit."""


def test_a_fit_is_stopped_with_the_best_so_far(page: Page) -> None:
    page.get_by_label("Method").select_option("automatic")
    stop = page.get_by_role("button", name="Stop", include_hidden=True)
    stop.evaluate(AS_SOON_AS_POSSIBLE)
    page.get_by_role("button", name="Fit from here").click()
    expect(stop).to_have_attribute("data-clicks", "1")
    expect(page.get_by_role("button", name="Fit from here")).to_be_enabled(timeout=60_000)
    text = page.locator("#progress").text_content() or ""
    assert "has ended" in text or "No solution" in text


def test_tabs_work_by_keyboard_and_every_view_draws(page: Page) -> None:
    curves = page.get_by_role("tab", name="Curves")
    curves.focus()
    views = ("States", "Residuals", "Phase plane", "Sensitivities", "Figures", "Compare", "Curves")
    for name in views:
        page.keyboard.press("ArrowRight")
        tab = page.get_by_role("tab", name=name)
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(tab).to_be_focused()
        if name == "Compare":
            expect(page.locator("#view")).to_contain_text("Nothing is kept yet")
        elif name == "Figures":
            expect(page.locator("#view")).to_contain_text("fit first")
        elif name == "Residuals":
            expect(page.locator("#view path.dots")).to_have_count(4)
        elif name == "Sensitivities":
            expect(page.locator("#view .bar-row")).to_have_count(3)
            expect(page.locator("#view path.sensitivity").first).to_be_attached()
        else:
            expect(page.locator("#view path.live").first).to_be_attached()


def test_the_view_of_figures_draws_those_of_the_last_fit(page: Page) -> None:
    page.get_by_role("tab", name="Figures").click()
    page.get_by_role("button", name="Fit from here").click()
    expect(page.locator("#progress")).to_contain_text("has ended", timeout=60_000)
    drawn = page.locator("#view img.drawn")
    seen = set()
    for kind in ("overlay", "starts", "diagnostics"):
        page.locator("#figure-kind").select_option(kind)
        expect(page.locator("#view [role=status]")).to_have_text("")
        expect(drawn).to_be_visible()
        wait_until(page, "() => document.querySelector('#view img.drawn').naturalWidth > 100")
        seen.add(drawn.get_attribute("src"))
    assert len(seen) == 3
    # On a phone its letters stay legible: it scrolls in its box, and the page does not.
    page.set_viewport_size({"width": 320, "height": 640})
    width, box = drawn.evaluate("e => [e.clientWidth, e.parentElement.clientWidth]")
    assert box <= 320
    assert width > min(500, drawn.evaluate("e => e.naturalWidth") - 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_phase_plane_of_two_states_has_its_field(page: Page) -> None:
    page.get_by_role("tab", name="Phase plane").click()
    expect(page.locator("path.field")).to_be_attached()
    before = page.locator("path.field").get_attribute("d")
    slider(page, "k").focus()
    page.keyboard.press("End")
    wait_until(page, "d => document.querySelector('path.field')?.getAttribute('d') !== d", before)
    page.get_by_label("Up").select_option("a")
    page.get_by_label("Across").select_option("a")
    expect(page.locator("#view")).to_contain_text("Choose two different states.")


def test_sensitivities_are_chosen_by_their_bars(page: Page) -> None:
    page.get_by_role("tab", name="Sensitivities").click()
    bars = page.locator(".bar-row")
    expect(bars).to_have_count(3)
    sizes = [float(t) for t in page.locator(".bar-row .value").all_text_contents()]
    assert sizes == sorted(sizes, reverse=True)
    lines = page.locator("path.sensitivity").count()
    bars.first.press("Enter")
    expect(bars.first).to_have_attribute("aria-pressed", "false")
    assert page.locator("path.sensitivity").count() < lines
    slider(page, "m").focus()
    page.keyboard.press("PageUp")
    expect(page.locator("#view")).to_contain_text("The sliders have moved since")
    page.get_by_role("button", name="Compute at these values").click()
    expect(page.locator("#view")).to_contain_text("Each bar")


def test_snapshots_can_be_taken_drawn_compared_and_removed(page: Page) -> None:
    page.locator("#snapshot-block summary").click()
    page.get_by_label("Name").fill("slow")
    page.get_by_label("Name").press("Enter")
    expect(page.locator("path.other")).to_have_count(4)
    field(page, "k").fill("0.6")
    field(page, "k").press("Enter")
    page.get_by_role("tab", name="Compare").click()
    row = page.locator("#view tbody tr").first
    expect(row.locator("td")).to_have_text(["0.6", "0.3", "−50 %"])
    page.get_by_role("button", name="take the values of slow").click()
    expect(field(page, "k")).to_have_value("0.3")
    page.get_by_role("tab", name="Curves").click()
    page.locator("#snapshots input").uncheck()
    expect(page.locator("path.other")).to_have_count(0)
    page.get_by_role("button", name="remove slow").click()
    expect(page.locator("#snapshots li")).to_have_count(0)


def test_experiments_are_chosen_and_figures_made_larger(page: Page) -> None:
    page.get_by_label("Experiment").select_option("two")
    expect(page.locator("path.live")).to_have_count(2)
    title = page.get_by_role("button", name="a · two")
    small = title.bounding_box()
    title.press("Enter")
    expect(title).to_have_attribute("aria-pressed", "true")
    assert small is not None
    page.get_by_label("log scale").check()
    page.get_by_label("Experiment").select_option("")
    expect(page.locator("path.live")).to_have_count(4)


def test_guesses_are_written_after_a_look_at_the_difference(page: Page, file: Path) -> None:
    page.locator("#file-block summary").press("Enter")
    field(page, "k").fill("0.6")
    field(page, "k").press("Enter")
    page.get_by_role("button", name="Write to steps.toml").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text('guess = 0.6, unit = "1/h" }  # fast')
    assert file.read_text(encoding="utf-8") == DECAY
    dialog.get_by_role("button", name="Keep the file unchanged").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Write to steps.toml").press("Enter")
    expect(dialog).to_be_visible()
    file.write_text(DECAY + "# theirs\n", encoding="utf-8")
    dialog.get_by_role("button", name="Write").click()
    expect(page.locator("#message")).to_contain_text("has changed since the difference was shown")
    page.get_by_role("button", name="Write to steps.toml").click()
    dialog.get_by_role("button", name="Write").click()
    expect(page.locator("#message")).to_contain_text("The guesses of steps.toml have these values")
    expected = DECAY.replace("guess = 0.3", "guess = 0.6") + "# theirs\n"
    assert file.read_text(encoding="utf-8") == expected


def test_values_curves_and_figures_are_saved(page: Page, tmp_path: Path) -> None:
    page.locator("#file-block summary").click()
    saved = {}
    for name in ("Values (JSON)", "Curves (CSV)", "Figure (SVG)"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        saved[path.name] = path.read_text(encoding="utf-8")
    assert json.loads(saved["two_steps_values.json"])["values"] == {"k": 0.3, "m": 0.5, "a": 2}
    rows = saved["two_steps_curves.csv"].splitlines()
    assert rows[:2] == ["experiment,kind,name,t,value", "one,observable,a,0,2"]
    figure = saved["two_steps.svg"]
    assert figure.startswith("<svg")
    assert figure.count("<svg") == 5
    assert "var(" not in figure


def test_a_failed_integration_keeps_the_curves_and_says_why(browser: Browser) -> None:
    model = odefit.Model(ode={"x": "k*x^2"})
    data = {"t": [0, 1, 2], "x": [1.0, 1.2, 1.5]}
    problem = odefit.Problem(model, data, {"k": {"lower": 0, "upper": 9, "guess": 0.2}}, {"x": 1.0})
    explorer = explore(problem)
    with watched(browser, explorer) as (page, watch):
        before = curve(page)
        slider(page, "k").focus()
        page.keyboard.press("End")
        expect(page.locator("#message")).to_contain_text("fails at t = 0.11")
        expect(page.locator("#message")).to_contain_text("The curves are from before this failure.")
        assert curve(page) == before
        page.keyboard.press("Home")
        expect(page.locator("#message")).to_be_empty()
    explorer.stop()
    assert watch.problems == []


CUT = """() => [...document.querySelectorAll(".views select, .views input, .views label")]
  .filter(e => e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1)
  .map(e => e.textContent.trim().slice(0, 40))"""
"""Controls above the curves that the edge of the window or of their box cuts off."""


@pytest.mark.parametrize("width", [320, 800, 1400])
def test_nothing_is_wider_than_the_window(browser: Browser, explorer: Explorer, width: int) -> None:
    with watched(browser, explorer, width) as (page, watch):
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.wait_for_timeout(200)
            wide, shown = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert wide <= shown <= width
            # Labels of axes lie within their figures.
            assert page.evaluate(OUTSIDE) == []
            assert page.evaluate(CUT) == []
    assert watch.problems == []


def test_every_control_has_a_name_and_is_reached_by_tab(page: Page) -> None:
    unnamed = page.evaluate("""[...document.querySelectorAll("button, input, select")]
      .filter((e) => !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim()))
      .map((e) => e.outerHTML)""")
    assert unnamed == []
    slider(page, "k").focus()
    page.keyboard.press("Tab")
    expect(field(page, "m")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("hold m: it is not fitted")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_label("hold m: it is not fitted")).to_be_checked()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_figures_never_cover_the_focused_element_on_a_phone(
    browser: Browser, explorer: Explorer
) -> None:
    with watched(browser, explorer, 320) as (page, watch):
        slider(page, "k").focus()
        seen = set()
        for key in ["Tab"] * 12 + ["Shift+Tab"] * 12:
            page.keyboard.press(key)
            top, bottom, name = page.evaluate("""() => {
              const views = document.querySelector(".views").getBoundingClientRect();
              const at = document.activeElement;
              const inside = at.closest(".controls");
              return [at.getBoundingClientRect().top, views.bottom, inside ? at.id : ""];
            }""")
            if name:
                assert top >= bottom - 1, name
                seen.add(name)
    assert len(seen) > 6
    assert watch.problems == []


def test_an_unauthorised_browser_gets_nothing(browser: Browser, explorer: Explorer) -> None:
    context = browser.new_context()
    page = context.new_page()
    base = explorer.url.split("?")[0]
    for address in (base, f"{base}?token=wrong", f"{base}api/problem", f"{base}t/wrong/"):
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 403
    with watched(browser, explorer) as (owner, _):
        assert "token" not in owner.url  # the address bar is no secret
        script = owner.evaluate("document.cookie")
        assert script == ""
    context.close()


def test_a_frame_of_a_notebook_works_without_cookies(
    browser: Browser, explorer: Explorer, tmp_path: Path
) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<body>{explorer._repr_html_()}</body>", encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(notebook.as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator("path.live").first).to_be_attached()
    frame.get_by_label("k, slider", exact=True).press("Home")
    expect(frame.locator(".unknown input[type=text]").first).to_have_value("0.01")
    context.close()


def test_close_ends_the_server(browser: Browser, explorer: Explorer) -> None:
    with watched(browser, explorer) as (page, _):
        page.get_by_role("button", name="Close").click()
        expect(page.locator("body")).to_contain_text("The server has ended.")
        assert explorer.wait(5)


@pytest.mark.parametrize(("seed", "count"), [(1, 70), (3, 300)])
def test_random_actions_raise_no_error_anywhere(
    browser: Browser, explorer: Explorer, seed: int, count: int
) -> None:
    watch, done = use_at_random(browser, explorer, count, seed)
    assert watch.problems == []
    assert len(done) == count
    assert len({entry.split()[0] for entry in done}) > 10
    assert len(watch.requests) > 50


def test_a_result_file_of_this_computer_becomes_a_snapshot(page: Page, file: Path) -> None:
    result = odefit.fit(odefit.load(file), "single-shooting", jobs=1)
    result.save(file.parent / "best fit.json")
    (file.parent / "other.json").write_text('{"parameters": {"z": 1.0}}', encoding="utf-8")
    (file.parent / "part.json").write_text('{"values": {"k": 99.0}}', encoding="utf-8")
    (file.parent / "wrong.json").write_text("k = 1", encoding="utf-8")
    page.locator("#snapshot-block summary").click()
    chooser, message = page.get_by_label("Compare with a saved result"), page.locator("#message")
    chooser.set_input_files(file.parent / "best fit.json")
    expect(page.locator("#snapshots li")).to_contain_text("best fit")
    wait_until(page, "() => document.querySelectorAll('path.other-0').length === 4")
    page.get_by_label("take the values of best fit").click()
    wait_until(
        page,
        "([best]) => Math.abs(Number(document.querySelector('#facts dd').textContent) - best)"
        " < 1e-4 * best",
        [result.objective],
    )
    chooser.set_input_files(file.parent / "other.json")
    expect(message).to_contain_text(
        "other.json cannot be used: none of the unknowns of this problem is in it; it has z."
    )
    chooser.set_input_files(file.parent / "wrong.json")
    expect(message).to_contain_text("wrong.json cannot be used: it is not JSON; choose a file that")
    chooser.set_input_files(file.parent / "part.json")
    expect(message).to_contain_text("not in the file, and unchanged: m, a")
    expect(message).to_contain_text("outside the bounds here, and moved to them: k")


def test_curves_that_arrive_late_leave_the_answers_of_actions(page: Page, file: Path) -> None:
    (file.parent / "part.json").write_text('{"values": {"k": 99.0}}', encoding="utf-8")
    message, before = page.locator("#message"), curve(page)
    late: list[Route] = []
    page.route("**/curves", lambda route: late.append(route), times=1)
    slider(page, "k").focus()
    with page.expect_request("**/curves"):
        page.keyboard.press("End")
    page.locator("#snapshot-block summary").click()
    page.get_by_label("Compare with a saved result").set_input_files(file.parent / "part.json")
    expect(message).to_contain_text("moved to them: k")
    assert late, "the curves are still to come"
    late[0].continue_()
    moved(page, before)
    expect(message).to_contain_text("moved to them: k")
    slider(page, "k").focus()
    page.keyboard.press("Home")
    expect(message).to_be_empty()


DATED = """format = 1
name = "two doses"

[ode]
gut = "-gut"
blood = "gut - k*blood"

[parameters]
k = { lower = 0.01, upper = 1.0, guess = 0.1 }

[initial]
gut = 0.0
blood = 0.0

[[experiment]]
data = { t = [5, 20, 35, 50, 65], blood = [60, 16, 40, 10, 2] }
origin = "2024-01-01"
t0 = 0.0

[[experiment.event]]
times = [0, 30]
assign = { gut = "gut + 100" }
"""

SHARE = """(() => {
  const figures = [...document.querySelectorAll("#view svg")];
  const boxes = figures.map((svg) => svg.getBoundingClientRect());
  const area = boxes.reduce((sum, box) => sum + box.width * box.height, 0);
  const pane = document.querySelector("#view").getBoundingClientRect();
  return area / (pane.width * (window.innerHeight - pane.top));
})()"""
"""The part of the pane that its figures cover."""


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[Explorer]:
    (tmp_path / "dated.toml").write_text(DATED, encoding="utf-8")
    made = explore(odefit.load(tmp_path / "dated.toml"))
    yield made
    made.stop()


def test_dates_stand_on_the_axis_of_time_and_beside_the_pointer(
    browser: Browser, dated: Explorer
) -> None:
    with watched(browser, dated, 1400) as (page, watch):
        texts = page.locator("#view svg text").all_text_contents()
        assert texts[texts.index("1 Jan") + 1] == "2024"
        assert {"15 Jan", "1 Feb", "15 Feb", "1 Mar"} <= set(texts)
        assert not any(text.startswith("time") for text in texts)
        box = page.locator("#view svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.locator(".readout")).to_contain_text("2024-02-0")
    assert watch.problems == []


def test_one_dose_can_be_changed_beside_the_curve_as_it_was(
    browser: Browser, dated: Explorer
) -> None:
    with watched(browser, dated, 1400) as (page, watch):
        page.locator("#scenario-block > summary").click()
        second = page.get_by_role("group", name="dose or change 2")
        expect(second.get_by_role("textbox")).to_have_count(2)
        amount = second.get_by_label("gut +")
        expect(amount).to_have_value("100")
        before = curve(page)
        amount.fill("40")
        amount.press("Enter")
        expect(page.locator("path.scenario")).to_have_count(1)
        assert curve(page) == before
        changed = page.locator("path.scenario").get_attribute("d")
        second.get_by_label("at t =").fill("40")
        second.get_by_label("at t =").press("Enter")
        wait_until(
            page,
            "(d) => document.querySelector('path.scenario').getAttribute('d') !== d",
            changed,
        )
        page.get_by_role("button", name="Reset scenario").click()
        expect(page.locator("path.scenario")).to_have_count(0)
    assert watch.problems == []


def test_figures_fill_the_pane_of_a_wide_window(
    browser: Browser, explorer: Explorer, dated: Explorer
) -> None:
    for one in (explorer, dated):  # two figures of each experiment, and a single one
        with watched(browser, one, 1400) as (page, watch):
            page.wait_for_timeout(300)
            assert page.evaluate(SHARE) > 0.6
        assert watch.problems == []
