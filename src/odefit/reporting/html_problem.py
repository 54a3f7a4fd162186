"""Sections of the report about the problem: equations, data, bounds; and how it was solved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from odefit.problem.expressions import as_expression
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.reporting import equations
from odefit.reporting.markup import Markup, element, join
from odefit.reporting.mathml import Symbols
from odefit.reporting.numbers import duration, significant, typeset
from odefit.reporting.sentences import data_sentence, some
from odefit.reporting.tables import bullets, definitions, paragraph, subsection, table

if TYPE_CHECKING:
    from odefit.result_data import ResultData

MOST_ROWS = 60
"""Of a table of experiments."""


def model_section(problem: Problem, symbols: Symbols) -> Markup:
    """All equations."""
    estimated = equations.unknown_initial(problem)
    start_words = paragraph(f"Estimated: {some(estimated)}.") if estimated else Markup("")
    same = [n for n, e in problem.model.observables.items() if e.name == n]
    observed = paragraph(f"Measured as they are: {some(same)}.") if same else Markup("")
    inputs = [
        f"{name}: column of the data, {_INTERPOLATION[kind]}"
        for name, kind in problem.model.inputs.items()
    ]
    return join(
        subsection("Differential equations", _equations(equations.ode_equations(problem, symbols))),
        subsection(
            "Algebraic equations", _equations(equations.algebraic_equations(problem, symbols))
        ),
        subsection(
            "Initial values",
            _equations(equations.initial_equations(problem, symbols), short=True),
            start_words,
        ),
        subsection(
            "Observables",
            _equations(equations.observable_equations(problem, symbols), short=True),
            observed,
        ),
        subsection(
            "Constants", _equations(equations.constant_equations(problem, symbols), short=True)
        ),
        subsection("Known inputs", bullets(inputs) if inputs else ""),
        subsection("Noise", _noise(problem, symbols)),
    )


_INTERPOLATION = {
    "linear": "interpolated linearly",
    "constant": "held from the left",
    "cubic": "interpolated by a cubic spline",
}


def _equations(items: Iterable[Markup], *, short: bool = False) -> Markup:
    """One below the other; `short` ones side by side."""
    lines = [element("div", item, class_="equation") for item in items]
    if not lines:
        return Markup("")
    return element(
        "div",
        *lines,
        class_="equations short" if short else "equations",
        tabindex="0",
        role="region",
        aria_label="Equations",
    )


def _noise(problem: Problem, symbols: Symbols) -> Markup:
    measured = {name for c in problem.conditions for name in c.series}
    observed = [name for name in problem.model.observables if name in measured]
    words = {name: equations.noise_words(problem, symbols, name) for name in observed}
    if len(set(words.values())) == 1 and len(words) > 1:
        return paragraph("Of all observables: ", next(iter(words.values())), ".")
    items = [join(equations.inline(symbols, name), ": ", said) for name, said in words.items()]
    return bullets(items) if items else Markup("")


def data_section(problem: Problem, symbols: Symbols) -> Markup:
    """What was measured, by experiment."""
    parts = [paragraph(data_sentence(problem))]
    rows = []
    for condition in problem.conditions[:MOST_ROWS]:
        counts = ", ".join(f"{name} {len(s.values)}" for name, s in condition.series.items())
        rows.append(
            [
                condition.name,
                number(condition.t0),
                join(number(float(condition.times[0])), " to ", number(float(condition.times[-1]))),
                str(condition.size),
                counts,
            ]
        )
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    caption = "Experiments"
    if len(problem.conditions) > MOST_ROWS:
        caption = f"Experiments, the first {MOST_ROWS} of {len(problem.conditions)}"
    columns = ["Experiment", f"Start{unit}", f"Measured{unit}", "Values", "By observable"]
    parts.append(table(caption, columns, rows, (1, 2, 3), (4,)))
    special = _special(problem, symbols)
    if special:
        parts.append(subsection("What is special about an experiment", bullets(special)))
    return join(*parts)


def _special(problem: Problem, symbols: Symbols) -> list[Markup]:
    """Overrides and events, a line for each experiment that has some."""
    found = []
    for experiment in problem.experiments[:MOST_ROWS]:
        pieces: list[str] = []
        for name, value in {**experiment.constants, **experiment.initial}.items():
            where = "(t0)" if name in experiment.initial else ""
            if isinstance(value, (Parameter, Mapping)):
                fixed = value.fixed if isinstance(value, Parameter) else value.get("fixed")
                said = join("estimated" if fixed is None else significant(float(fixed)))
            else:
                said = equations.quantity(symbols, as_expression(value))
            pieces.append(join(equations.inline(symbols, name), f"{where} = ", said))
        for event in experiment.events:
            times = [significant(t) for t in event.times]
            assigned = [
                join(
                    equations.inline(symbols, name),
                    " ← ",
                    equations.quantity(symbols, as_expression(value)),
                )
                for name, value in event.assign.items()
            ]
            pieces.append(join(f"at t = {some(times)}: ", join(*assigned, separator=", ")))
        if pieces:
            found.append(join(element("strong", experiment.name), ": ", *_commas(pieces)))
    return found


def _commas(pieces: list[str]) -> list[str]:
    return [join(*pieces, separator="; ")]


def number(value: float) -> Markup:
    """A number; infinity by its sign."""
    if math.isinf(value):
        return join("∞" if value > 0 else "−∞")
    return typeset(significant(value))


def bounds_section(problem: Problem, symbols: Symbols) -> Markup:
    """What was known of the unknowns before."""
    if not problem.unknowns:
        return paragraph("Nothing was estimated.")
    rows = []
    has_prior = any(u.parameter.prior for u in problem.unknowns)
    has_guess = any(u.parameter.guess is not None for u in problem.unknowns)
    for unknown in problem.unknowns:
        p = unknown.parameter
        name = unknown.key
        if unknown.kind != "noise":
            name = equations.inline(symbols, unknown.name)
            if unknown.experiment:
                name = join(name, f" [{unknown.experiment}]")
        cells: list[str] = [name, _KINDS[unknown.kind], number(p.lower), number(p.upper)]
        if has_guess:
            cells.append(number(p.guess) if p.guess is not None else "")
        cells.append(p.scale or "chosen by the method")
        if has_prior:
            prior = p.prior
            cells.append(join(number(prior.mean), " ± ", number(prior.sd)) if prior else "")
        rows.append(cells)
    columns = ["Unknown", "Kind", "Lower", "Upper"]
    columns += ["Guess"] if has_guess else []
    columns += ["Scale"]
    columns += ["Prior"] if has_prior else []
    numeric = (2, 3, 4) if has_guess else (2, 3)
    return join(
        table("Unknowns and their bounds, in natural units", columns, rows, numeric),
        paragraph("The scale is the optimiser's coordinate alone.", class_="small"),
    )


_KINDS = {"parameter": "parameter", "initial": "initial value", "noise": "noise"}


def settings_section(result: ResultData, date: str) -> Markup:
    """With what the result can be repeated."""
    facts = [
        ("Method", result.method),
        ("Ended", result.status.value),
        *([("Message", result.message)] if result.message else []),
        ("Seed", str(result.seed)),
        ("Wall time", duration(result.seconds)),
        *((f"Version of {name}", version) for name, version in result.versions.items()),
    ]
    if date:
        facts.append(("Date of this report", date))
    return definitions(facts, class_="settings")
