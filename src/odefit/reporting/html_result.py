"""Sections of the report about the result: estimates, figures, trust, starts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from odefit.problem.problem import Problem
from odefit.reporting.curves import fit_curves
from odefit.reporting.equations import inline
from odefit.reporting.figures import bounds, correlation, fit, parameters, residuals, starts
from odefit.reporting.figures.style import Plot
from odefit.reporting.markup import Markup, element, join
from odefit.reporting.mathml import Symbols
from odefit.reporting.numbers import duration, level_words, significant, typeset
from odefit.reporting.parameters import Row, parameter_rows
from odefit.reporting.sentences import (
    Verdict,
    data_sentence,
    endings,
    findings,
    objective_name,
    sentence,
    starts_sentence,
    weighted,
)
from odefit.reporting.svg import inline_svg
from odefit.reporting.tables import NONE, bullets, definitions, paragraph, subsection, table

if TYPE_CHECKING:
    from odefit.result_data import ResultData

MARKS = {"good": "✓", "caution": "!", "bad": "✕"}

MOST_SOLUTIONS = 20
MOST_ENDINGS = 12


def number(value: float, digits: int = 5) -> Markup:
    """A number, or the word that there is none."""
    return NONE if math.isnan(value) else typeset(significant(value, digits))


def verdict_box(found: Verdict) -> Markup:
    """The answer in short."""
    mark = element("span", MARKS[found.tone], class_="mark", aria_hidden="true")
    return element(
        "div",
        mark,
        element(
            "div",
            paragraph(element("strong", found.headline)),
            paragraph(" ".join(found.sentences)) if found.sentences else "",
        ),
        class_=f"verdict {found.tone}",
        role="note",
        aria_label="Verdict",
    )


def key_facts(result: ResultData) -> Markup:
    """A few numbers below the verdict."""
    facts: list[tuple[str, str]] = []
    if result.solutions:
        name = objective_name(result.problem).capitalize()
        facts.append((name, number(result.best.objective, 7)))
        if result.best.log_likelihood is not None:
            facts.append(("Log-likelihood", number(result.best.log_likelihood, 7)))
    facts.append(("Measured values", str(result.problem.size)))
    facts.append(("Unknowns", str(len(result.problem.unknowns))))
    facts.append(("Method", result.method))
    facts.append(("Wall time", duration(result.seconds)))
    return definitions(facts)


def warnings_box(result: ResultData) -> Markup:
    """What the user should know; nothing if there is nothing."""
    if not result.warnings:
        return Markup("")
    return element(
        "div",
        paragraph(element("strong", "Please note")),
        bullets(result.warnings),
        class_="verdict caution plain",
        role="note",
        aria_label="Warnings",
    )


def estimates(result: ResultData, symbols: Symbols) -> Markup:
    """Tables of estimates, and their intervals as a figure."""
    rows = parameter_rows(result)
    groups = (
        ("Parameters", [r for r in rows if r.kind == "parameter"]),
        ("Initial values", [r for r in rows if r.kind == "initial"]),
        ("Noise", [r for r in rows if r.kind == "noise"]),
    )
    level = level_words(result.uncertainty.level) if result.uncertainty else "95 %"
    parts = [_estimates_table(caption, group, level, symbols) for caption, group in groups if group]
    if not parts:
        parts.append(paragraph("The problem has neither parameters nor unknown initial values."))
    if result.uncertainty is not None:
        freedom = result.uncertainty.degrees_of_freedom
        source = (
            "the normal distribution, the noise being known"
            if math.isinf(freedom)
            else f"the t distribution with {significant(freedom)} degrees of freedom"
        )
        parts.append(
            paragraph(
                "Standard errors and intervals are from the linearisation at the estimate and "
                f"{source}; far from it, or near a bound, they are approximate.",
                class_="small",
            )
        )
    return join(*parts)


def _estimates_table(caption: str, rows: list[Row], level: str, symbols: Symbols) -> Markup:
    has_units = any(row.unit for row in rows)
    has_errors = any(row.estimated for row in rows)
    has_notes = any(row.note for row in rows)
    columns = ["Name", "Estimate"]
    columns += ["Std. error", f"{level} interval", "Determined"] if has_errors else []
    columns += ["Unit"] if has_units else []
    columns += ["Remark"] if has_notes else []
    body = []
    for row in rows:
        cells: list[str] = [_name(row, symbols)]
        estimate, error = row.shown[:2]
        cells.append(typeset(estimate) if estimate else NONE)
        if has_errors:
            missing = NONE if row.estimated else ""
            cells += [typeset(error) if error else missing, _interval(row) or missing]
            cells += [_identifiable(row)]
        cells += [row.unit] if has_units else []
        cells += [row.note] if has_notes else []
        body.append(cells)
    classes = ["" if row.estimated else "known" for row in rows]
    numeric = (1, 2, 3) if has_errors else (1,)
    wrapped = (len(columns) - 1,) if has_notes else ()
    return table(caption, columns, body, numeric, wrapped, classes)


def _name(row: Row, symbols: Symbols) -> Markup:
    if row.kind == "noise":
        base = row.name.removesuffix("_sd")
        shown = join("sd of ", inline(symbols, base))
    else:
        shown = inline(symbols, row.name)
    return join(shown, f" [{row.experiment}]") if row.experiment else shown


def _interval(row: Row) -> Markup:
    low, high = row.shown[2:]
    return join("[", typeset(low), ", ", typeset(high), "]") if low and high else Markup("")


def _identifiable(row: Row) -> Markup:
    if not row.estimated:
        return Markup("")
    if row.identifiable is None:
        return element("span", "undecided", class_="none")
    word = "yes" if row.identifiable else "no"
    return element("span", word, class_=word)


def intervals_figure(result: ResultData) -> Markup:
    """The intervals on one relative scale."""
    if not result.solutions or not result.problem.unknowns:
        return Markup("")
    return _figure(
        parameters.plot_parameters(result),
        "fig-intervals",
        "Estimates with their confidence intervals",
        "Intervals in per cent of the estimate; the estimates stand at the right.",
    )


def _figure(figure: Plot, prefix: str, title: str, caption: str) -> Markup:
    drawing = inline_svg(figure, prefix, title, caption)
    frame = element("div", drawing, class_="drawing")
    return element("figure", frame, element("figcaption", caption))


def fits(result: ResultData) -> Markup:
    """A panel for everything measured, grouped by experiment."""
    problem = result.problem
    groups: dict[str, list[Markup]] = {c.name: [] for c in problem.conditions}
    with_spread = with_model = False
    failures: dict[str, str] = {}
    for index, curve in enumerate(fit_curves(result)):
        with_spread |= curve.spread is not None
        with_model |= not curve.failure
        if curve.failure:
            failures[curve.experiment] = curve.failure
        title = f"{curve.observable} in experiment {curve.experiment}: data and fitted model"
        drawing = inline_svg(fit.panel_figure(curve), f"fit{index}", title)
        groups[curve.experiment].append(element("div", drawing, class_="panel"))
    keys = [
        ("dot", "measured", True),
        ("line", "model", with_model),
        ("bar", "± 1 standard deviation", with_spread),
        ("event", "event", any(c.events for c in problem.conditions)),
    ]
    legend = [
        element("span", element("i", class_=f"key {key}"), word, class_="legend")
        for key, word, present in keys
        if present
    ]
    parts = [paragraph(*legend, class_="legends")]
    if not result.solutions:
        parts.append(paragraph("The measurements alone: no solution was found."))
    elif failures:
        parts.append(bullets(f"{name}: {reason}" for name, reason in failures.items()))
    compact = all(len(panels) <= 1 for panels in groups.values()) and len(groups) > 1
    if compact:  # one panel each: a heading for every one would tear them apart
        cells = [
            element("div", element("h3", name, class_="over"), *panels, class_="cell")
            for name, panels in groups.items()
        ]
        return join(*parts, element("div", *cells, class_="panels"))
    for name, panels in groups.items():
        if len(groups) > 1:
            parts.append(element("h3", f"Experiment {name}"))
        parts.append(element("div", *panels, class_="panels"))
    return join(*parts)


def residual_section(result: ResultData) -> Markup:
    """Residuals against time, and their size by observable."""
    entries = residuals.residuals_of(result)
    groups = residuals.by_observable(entries)
    if not groups:
        return paragraph("There are no residuals: no solution was found that can be simulated.")
    in_sds = weighted(result.problem)
    panels = []
    for index, (observable, of_it) in enumerate(groups.items()):
        figure = residuals.panel_figure(observable, of_it, result.problem.time_unit, in_sds)
        drawing = inline_svg(figure, f"res{index}", f"Residuals of {observable} against time")
        panels.append(element("div", drawing, class_="panel"))
    rows = []
    for observable, of_it in groups.items():
        values = np.concatenate([e.values for e in of_it])
        finite = values[np.isfinite(values)]
        rows.append(
            [
                observable,
                str(len(values)),
                number(float(np.sqrt(np.mean(finite**2))) if len(finite) else math.nan, 3),
                number(float(np.max(np.abs(finite))) if len(finite) else math.nan, 3),
                number(float(np.mean(finite)) if len(finite) else math.nan, 3),
            ]
        )
    unit = "in standard deviations" if in_sds else "in the units of the data"
    words = (
        "Measured minus modelled, in standard deviations; the grey band holds about 95 % of them "
        "if model and noise are right."
        if in_sds
        else "Measured minus modelled."
    )
    columns = ["Observable", "Values", "Root mean square", "Largest absolute", "Mean"]
    return join(
        paragraph(f"{words} A pattern means that the model misses something."),
        element("div", *panels, class_="panels"),
        table(f"Residuals, {unit}", columns, rows, (1, 2, 3, 4)),
    )


def trust(result: ResultData) -> Markup:
    """The assessment in sentences, undetermined directions, correlation."""
    if not result.solutions:
        return Markup("")
    items = []
    for found in findings(result):
        mark = element(
            "span",
            MARKS["good"] if found.shown else "–",
            class_="mark shown" if found.shown else "mark",
            aria_hidden="true",
        )
        items.append(
            element("li", mark, element("div", element("strong", found.title), " ", found.sentence))
        )
    parts = [element("ul", *items, class_="findings")]
    certificate = result.assessment.bounds
    if certificate is not None and certificate.history:
        drawing = _figure(
            bounds.plot_bounds(result),
            "fig-bounds",
            "Lower and upper bound of the objective against time",
            "No answer within the bounds of the unknowns has an objective below the lower bound; "
            f"the upper one was reached. Both are of the problem in: {certificate.scope}.",
        )
        parts.append(subsection("How the bounds came together", drawing))
    uncertainty = result.uncertainty
    if uncertainty is not None and uncertainty.directions:
        sentences = [d.sentence for d in uncertainty.directions]
        parts.append(subsection("What the data do not determine", bullets(sentences)))
    if (
        uncertainty is not None
        and len(uncertainty.keys) > 1
        and np.isfinite(uncertainty.correlation).any()
    ):
        drawing = _figure(
            correlation.plot_correlation(result),
            "fig-correlation",
            "Correlation matrix of the estimates",
            "Near 1 or −1, two unknowns are determined only together. "
            "Empty cells: no standard error.",
        )
        parts.append(subsection("Correlation of the estimates", drawing))
    return join(*parts)


def start_section(result: ResultData, symbols: Symbols) -> Markup:
    """How the starts ended, and the distinct solutions."""
    parts = [paragraph(starts_sentence(result.starts), " ", sentence(result.message))]
    if len(result.starts) > 1:
        parts.append(
            _figure(
                starts.plot_starts(result),
                "fig-starts",
                "Final objective of each start, sorted",
                "A step at the left that many starts share speaks for the best solution; "
                "it proves nothing.",
            )
        )
    groups = endings(result.starts)
    if groups and (len(result.starts) > 1 or groups[0].status != "converged"):
        rows = [[e.status, str(e.count), e.message] for e in groups[:MOST_ENDINGS]]
        if len(groups) > MOST_ENDINGS:
            rest = sum(e.count for e in groups[MOST_ENDINGS:])
            rows.append(["other", str(rest), ""])
        columns = ["Ending", "Starts", "For example"]
        parts.append(table("How the starts ended", columns, rows, (1,), (2,)))
    if len(result.solutions) > 1:
        parts.append(_solutions_table(result, symbols))
    return join(*parts)


def _solutions_table(result: ResultData, symbols: Symbols) -> Markup:
    by_key = {u.key: u for u in result.problem.unknowns}
    columns = ["No.", "Objective", "Found by"]
    names: list[str] = [
        inline(symbols, u.name) if u.kind != "noise" and u.experiment is None else key
        for key, u in by_key.items()
    ]
    rows = []
    for place, solution in enumerate(result.solutions[:MOST_SOLUTIONS], 1):
        hits = f"{solution.hits} start" if solution.hits == 1 else f"{solution.hits} starts"
        values = [number(float(v), 4) for v in solution.vector]
        rows.append([str(place), number(solution.objective, 7), hits, *values])
    count = len(result.solutions)
    caption = "Distinct solutions, the best first"
    if count > MOST_SOLUTIONS:
        caption = f"{caption} ({MOST_SOLUTIONS} of {count})"
    numeric = (1, *range(3, 3 + len(names)))
    return table(caption, [*columns, *names], rows, numeric)


def data_words(problem: Problem) -> Markup:
    """How much was measured."""
    return paragraph(data_sentence(problem))
