"""The output of ``odefit check``: a description of a problem, and of its identifiability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from odefit.assessment.identifiability import (
    ASSUMED_NOISE,
    POINTS,
    Identifiability,
    local_identifiability,
)
from odefit.common.errors import counted, some
from odefit.common.packages import installed
from odefit.problem.condition import AT_T0
from odefit.problem.parameters import Parameter, Unknown
from odefit.problem.problem import Problem
from odefit.problem.unit_check import check_units, has_units
from odefit.problem.variants.start_ranges import Range, ranges
from odefit.reporting.formulas.equations import (
    PLAIN,
    conserved_lines,
    initial_lines,
    input_lines,
    noise_words,
    ode_lines,
    special_words,
    written_lines,
)
from odefit.reporting.numbers import percent, significant
from odefit.reporting.sentences import data_sentence, sentence
from odefit.reporting.tables import Column, columns_that_fit, inset, name_column, table_of
from odefit.reporting.terminal import NARROW_WIDTH, bulleted, output, plain_only
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import ENGINES, EXPLICIT
from odefit.simulation.modes.surfaces import Surfaces
from odefit.structure.identifiability import analysed
from odefit.structure.series.deadline import Deadline
from odefit.structure.structural_identifiability import StructuralIdentifiability

UNITS_UNCHECKED = (
    "They were not checked, because the package pint is missing; install it with "
    "'pip install odefit[units]'."
)
"""The sentence on units where Pint is missing."""

MAX_ROWS = 60
"""Largest number of rows of the table of experiments."""

STRUCTURE_WORK, COUNT_WORK = 1e8, 1.5e7
"""Operations (:mod:`odefit.structure.series.deadline`) allowed for the analysis of the equations
and the count of solutions. Problems of the library that finish within 1e9 need at most 2e6."""


def print_description(problem: Problem, seed: int = 0, console: Console | None = None) -> None:
    """Print to `console` (standard output) what `problem` is, and what its data can determine.

    The sensitivities are computed at points that depend on `seed`.
    """
    console = console or output()
    for part in _described(problem, console):
        console.print(part, highlight=False)
    with console.status("looking at the equations ...") as status:
        # Only a terminal shows this line, and interim findings while the solutions are counted.
        structure = analysed(
            problem,
            Deadline(work=STRUCTURE_WORK),
            seed=seed,
            count_work=COUNT_WORK,
            report=lambda analysis: status.update(f"{analysis.finding} Counting solutions ..."),
        )
    for part in _structure(problem, structure, console):
        console.print(part, highlight=False)
    forward = ForwardMap(problem)
    analysis = local_identifiability(forward, seed)
    for part in _findings(problem, forward, analysis):
        console.print(part, highlight=False)


def _described(problem: Problem, console: Console) -> Iterator[RenderableType]:
    # Every text of the user becomes a Text: in a string, rich would read [brackets] as markup.
    yield Text(problem.name, style="bold")
    if problem.description:
        yield Text(problem.description)
    yield Text(_counts(problem))
    yield Text(data_sentence(problem))
    yield from _section("Written as", _lines(written_lines(problem)))
    yield from _section("Equations", _lines(ode_lines(problem)))
    by = "reactions" if problem.given.notation.conserved else "equations"
    yield from _section(f"Conserved by the {by}", _lines(conserved_lines(problem)))
    yield from _section("Initial values", _lines(initial_lines(problem)))
    yield from _section(
        "Constants and inputs", _lines([*_constants(problem), *input_lines(problem)])
    )
    yield from _section("Observables", _observables(problem, console))
    yield from _section("Unknowns", _unknowns(problem, console))
    yield from _section("Held fixed", _lines(_fixed(problem)))
    yield from _section("Experiments", _experiments(problem, console))
    yield from _section("Units", [bulleted(Text(line)) for line in _units(problem)])
    yield from _section("As the files were read", [bulleted(Text(n)) for n in problem.notes])
    yield from _section("Please note", [bulleted(Text(w)) for w in problem.warnings])


def _units(problem: Problem) -> list[str]:
    """Return the findings on units; without Pint one sentence, if the problem declares units."""
    if not has_units(problem):
        return []
    if not installed("pint"):
        return [UNITS_UNCHECKED] if problem.units else []
    return check_units(problem).lines()


def _section(title: str, parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    shown_parts = list(parts)
    if shown_parts:
        yield Text("")
        yield Text(title, style="bold")
        yield from shown_parts


def _lines(texts: Iterable[str]) -> list[RenderableType]:
    return [inset(Text(text)) for text in texts]


def _noise_kind(problem: Problem) -> tuple[str, str]:
    if any(not n.law.located and n.spread == "estimate" for n in problem.noise.values()):
        return "noise parameter", "noise parameters"
    return "standard deviation", "standard deviations"


def _counts(problem: Problem) -> str:
    model = problem.given
    kinds = [u.kind for u in problem.unknowns]
    parts = [
        (kinds.count("parameter"), "parameter", "parameters"),
        (kinds.count("initial"), "initial value", "initial values"),
        (kinds.count("noise"), *_noise_kind(problem)),
    ]
    listed = [f"{n} {one if n == 1 else more}" for n, one, more in parts if n]
    of = f" ({', '.join(listed)})" if len(listed) > 1 else ""
    total = len(kinds)
    unknowns = listed[0] if len(listed) == 1 else f"{total} unknowns{of}"
    states = f"{len(model.ode)} state{'s' * (len(model.ode) != 1)}"
    if model.algebraic:
        count = len(model.algebraic)
        states += f", {count} algebraic variable{'s' * (count != 1)}"
    return f"{states}; {unknowns if total else 'nothing'} to estimate."


def _rows(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[int],
    console: Console,
    giving_way: Sequence[int] = (),
) -> list[RenderableType]:
    """Return a table without empty columns; on a narrow terminal each row takes several lines.

    Where there is no room, the columns in `giving_way` are dropped in this order.
    """
    if not rows:
        return []
    inside = console.width - 2
    columns = [name_column([Text(row[0]) for row in rows], inside)] + [
        Column(
            titles[i],
            [Text(row[i]) for row in rows],
            "right" if i in numeric else "left",
            wraps=True,
            gives_way=giving_way.index(i) if i in giving_way else None,
        )
        for i in range(1, len(titles))
        if any(row[i] for row in rows)
    ]
    fitting_columns = columns_that_fit(columns, inside) if console.width >= NARROW_WIDTH else None
    if fitting_columns is not None:
        table = table_of(fitting_columns, inside, ascii_only=plain_only(console))
        return [Padding(table, (0, 0, 0, 2), expand=False)]
    name, *others = columns
    return [
        Group(
            inset(Text(key.plain, style="bold")),
            *(inset(Text(f"{c.title}: {c.cells[k]}"), 4) for c in others if c.cells[k].plain),
        )
        for k, key in enumerate(name.cells)
    ]


def _observables(problem: Problem, console: Console) -> list[RenderableType]:
    rows, functions = [], problem.given.unknown_functions
    for name, expression in problem.given.observables.items():
        measured = [c for c in problem.conditions if name in c.series]
        number = sum(len(c.series[name].values) for c in measured)
        where = "all" if len(measured) == len(problem.conditions) else _names(measured)
        rows.append(
            [
                name,
                "" if expression.name == name or name in functions else expression.text,
                str(number) if number else "never",
                "" if len(problem.conditions) == 1 else where,
                noise_words(problem, name, PLAIN, "sd") if number else "",
            ]
        )
    return _rows(["", "is", "measured", "experiments", "noise"], rows, [2], console)


def _names(conditions: Sequence[object]) -> str:
    return some([str(getattr(c, "name", c)) for c in conditions])


def _unknowns(problem: Problem, console: Console) -> list[RenderableType]:
    rows = [
        _unknown_row(unknown, start)
        for unknown, start in zip(problem.unknowns, ranges(problem), strict=True)
    ]
    columns = ["", "kind", "bounds", "guess", "starts from", "scale", "prior", "unit"]
    if len({row[1] for row in rows}) == 1:
        rows = [[row[0], "", *row[2:]] for row in rows]
    table = _rows(columns, rows, [], console, giving_way=[7, 5, 1])
    if any(start.logarithmic for start in ranges(problem)):
        table.append(inset(Text("log: spread evenly over orders of magnitude", style="dim")))
    return table


def _unknown_row(unknown: Unknown, start: Range) -> list[str]:
    p = unknown.parameter
    kind = {"parameter": "parameter", "initial": "initial value", "noise": "noise"}[unknown.kind]
    return [
        unknown.key,
        kind,
        _bounds(p),
        "" if p.guess is None else significant(p.guess),
        _start(start),
        p.scale or "",
        str(p.prior) if p.prior else "",
        p.unit or "",
    ]


def _start(start: Range) -> str:
    spread = ", log" if start.logarithmic else ""
    return f"{significant(start.low, 3)} to {significant(start.high, 3)}{spread}"


def _bounds(p: Parameter) -> str:
    if math.isinf(p.lower) and math.isinf(p.upper):
        return "none"
    if math.isinf(p.upper):
        return f"at least {significant(p.lower)}"
    if math.isinf(p.lower):
        return f"at most {significant(p.upper)}"
    return f"{significant(p.lower)} to {significant(p.upper)}"


def _constants(problem: Problem) -> Iterator[str]:
    for name, number in problem.given.constants.items():
        yield f"{name} = {significant(number, 8)}"


def _fixed(problem: Problem) -> Iterator[str]:
    for name, p in problem.parameters.items():
        if p.fixed is not None:
            yield f"{name} = {significant(p.fixed, 8)}{f' {p.unit}' if p.unit else ''}"


def _experiments(problem: Problem, console: Console) -> list[RenderableType]:
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    rows = []
    for i, condition in enumerate(problem.conditions[:MAX_ROWS]):
        first, last = (significant(float(condition.times[k])) for k in (0, -1))
        rows.append(
            [
                condition.name,
                significant(condition.t0),
                f"{first} to {last}" if first != last else first,
                str(condition.size),
                "; ".join(special_words(problem, problem.experiments[i], PLAIN)),
            ]
        )
    columns = ["", f"t0{unit}", f"measured{unit}", "values", "special"]
    table = _rows(columns, rows, [1, 3], console)
    more = len(problem.conditions) - MAX_ROWS
    return [*table, *_lines([f"and {more} more"])] if more > 0 else table


def _structure(
    problem: Problem, analysis: StructuralIdentifiability, console: Console
) -> Iterator[RenderableType]:
    if not problem.unknowns:
        return
    parts: list[RenderableType] = []
    several = any(u.remark or (u.values or 1) > 1 for u in analysis.unknowns)
    if several or len({u.status for u in analysis.unknowns}) > 1:
        rows = [[u.key, str(u)] for u in analysis.unknowns]
        parts += _rows(["", "identifiable"], rows, [], console)
    parts += [bulleted(Text(line)) for line in analysis.lines()]
    if analysis.unfinished:
        limit = STRUCTURE_WORK if analysis.named("undecided") else COUNT_WORK
        parts.append(
            bulleted(
                Text(
                    f"The limit was {limit:g} operations; in Python, "
                    "odefit.identifiability(problem, time_limit=None) has none."
                )
            )
        )
    yield from _section("What the equations can tell (perfect data)", parts)


def _findings(
    problem: Problem, forward: ForwardMap, analysis: Identifiability
) -> Iterator[RenderableType]:
    yield from _section(
        "Integration", [bulleted(Text(t)) for t in _integration(problem, forward, analysis)]
    )
    if problem.unknowns:
        texts = [bulleted(Text(text)) for text in _determined(problem, analysis)]
        yield from _section("What the data can determine", texts)


def _integration(problem: Problem, forward: ForwardMap, analysis: Identifiability) -> Iterator[str]:
    model, field = problem.given, forward.field
    if field.algebraic:
        yield "Differential-algebraic equations: IDAS (implicit, variable order) integrates them."
    else:
        if model.algebraic:
            yield (
                "The algebraic equations are linear in their variables. These are eliminated, "
                "and an ODE remains."
            )
        stiff = sum(ENGINES[p.engine].stiff for p in analysis.usable)
        method = ENGINES[forward.engines.implicit_name(field)].method
        explicit = (forward.engines.explicit(field) or EXPLICIT).label
        if Surfaces.of(field) is not None:
            yield (
                "The right-hand sides switch where conditions on states change: such times are "
                "located, and motions along a threshold (friction that holds, a level that is "
                "kept) are integrated as such."
            )
        elif not field.smooth:
            yield (
                f"The right-hand sides have kinks (abs, min, max): {method} (implicit, variable "
                "order) integrates them."
            )
        elif stiff:
            yield (
                f"Stiff at {stiff} of {len(analysis.usable)} points: {method} (implicit, "
                f"variable order) takes over there from {explicit}."
            )
        elif analysis.usable:
            yield (f"Not stiff at the points that were tried: {explicit} integrates the equations.")
    failed = [str(p.failure) for p in analysis.points if p.failure is not None]
    if failed:
        reasons = "; ".join(dict.fromkeys(failed))
        yield (
            f"At {len(failed)} of {len(analysis.points)} points the model cannot be "
            f"evaluated (a fit avoids such points): {reasons}."
        )


def _determined(problem: Problem, analysis: Identifiability) -> Iterator[str]:
    if problem.size < len(problem.unknowns):
        yield (
            f"{counted(problem.size, 'measured value')} cannot determine "
            f"{counted(len(problem.unknowns), 'unknown')}: "
            "fix some, give priors, or add data."
        )
    if not any(c.evolves for c in problem.conditions):
        yield sentence(AT_T0)
    yield analysis.sentence
    if analysis.rank is None:
        yield "Give narrower bounds, or a guess at which the model can be integrated."
        return
    if len(analysis.points) < POINTS and analysis.rank < len(analysis.keys) - len(analysis.scatter):
        yield (
            "The model is slow to integrate, so few points were examined; other points may "
            "determine more."
        )
    if analysis.no_effect:
        yield f"No effect on any measurement at these points: {', '.join(analysis.no_effect)}."
    for direction in analysis.directions:
        yield (direction.sentence if analysis.confirmed else f"At that point: {direction.sentence}")
    in_directions = {key for d in analysis.directions for key in d.keys}
    rest = [key for key in analysis.undetermined if key not in in_directions]
    if rest:
        yield f"Not determined: {', '.join(rest)}."
    helped = [
        u.key
        for u in problem.unknowns
        if u.parameter.prior and u.key in (*analysis.no_effect, *analysis.undetermined)
    ]
    if helped:
        yield f"Determined only by the prior: {', '.join(helped)}."
    if analysis.weak:
        noise = (
            f"noise of {percent(ASSUMED_NOISE)} of the largest value (the "
            "problem gives no standard deviation)"
            if analysis.assumed_noise
            else "the noise that the problem gives"
        )
        yield (
            f"Weakly: with {noise}, the error would exceed the value, at every point: "
            f"{', '.join(analysis.weak)}."
        )
    if analysis.sometimes:
        least = min(analysis.sometimes.values())
        yield (
            f"At some points ({len(analysis.usable) - least} at most) without effect: "
            f"{some(list(analysis.sometimes))}. There the data cannot distinguish values."
        )
    if analysis.scatter:
        yield f"From the scatter of the residuals: {', '.join(analysis.scatter)}."
