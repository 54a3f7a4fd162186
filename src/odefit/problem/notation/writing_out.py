"""A model in its own notation as plain tables: equations, observables, constants and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odefit.common.errors import shown
from odefit.expressions.expressions import Expression, ExpressionError, as_expression
from odefit.expressions.formulas import Part, number
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays, number_text, whole_numbers
from odefit.problem.notation.network import network_of, read_compartments
from odefit.problem.notation.notation import Notation, notation_of
from odefit.problem.notation.reactions import read_reactions

PLAIN = ("ode", "algebraic", "observables", "constants", "inputs")
"""Tables that remain."""


@dataclass(frozen=True)
class WrittenOut:
    """A model without its own notation."""

    # the tables of :data:`PLAIN`; a table that was none is as it was given
    tables: Mapping[str, Any]
    notation: Notation  # what the notation means, for the expressions of a problem


def written_out(tables: Mapping[str, Any], arrays: Iterable[str], issues: Issues) -> WrittenOut:
    """Return a model without functions, definitions, arrays and reactions.

    `tables` has the tables of :data:`PLAIN`, and ``functions``, ``definitions``, ``reactions`` and
    ``compartments``, or None for each; `arrays` are keys of arrays of parameters.
    """
    given = {name: {} if table is None else table for name, table in tables.items()}
    known = {name: t if isinstance(t, Mapping) else {} for name, t in given.items()}
    own = {
        name: dict(issues.items(f"[{name}]", given[name]))
        for name in ("functions", "definitions", "reactions", "compartments")
    }
    numbers = Arrays(whole_numbers(known["constants"]))
    reactions, members = read_reactions(own["reactions"], numbers, issues)
    compartments = read_compartments(own["compartments"], numbers, issues)
    definitions = dict(own["definitions"])
    for name, compartment in compartments.items():
        if name in definitions:
            issues.error(f"[compartments] {name}", f"'{name}' is in [definitions], too; rename one")
        definitions.setdefault(name, compartment.size)
    notation = notation_of(
        own["functions"],
        definitions,
        [known[name] for name in ("ode", "algebraic", "constants", "inputs")],
        known["constants"],
        [*arrays, *members],
        issues,
    )
    plain = {name: notation.table(given[name], f"[{name}]", issues) for name in PLAIN}
    states = plain["ode"] if isinstance(plain["ode"], Mapping) else {}
    held = {*notation.own, *notation.broken}
    for name in ("algebraic", "constants", "inputs"):
        held |= set(plain[name]) if isinstance(plain[name], Mapping) else set()
    network = network_of(
        reactions,
        compartments,
        frozenset(held),
        _parts(states) if reactions else {},
        notation.written_out,
        notation.own,
        issues,
    )
    if reactions:
        made = {name: part.expression() for name, part in network.terms.items()}
        plain["ode"] = {**states, **made}
    written = {name: {str(k): _shown(v) for k, v in own[name].items()} for name in own}
    return WrittenOut(
        plain,
        replace(
            notation,
            written=written,
            species=frozenset(network.terms),
            conserved=tuple(part.expression() for part in network.conserved),
        ),
    )


def _parts(states: Mapping[str, Any]) -> dict[str, Part]:
    """Return the right-hand sides that have no mistake; others are reported where they stand."""
    found = {}
    for name, value in states.items():
        try:
            found[name] = Part(as_expression(value).program)
        except (ExpressionError, TypeError, ValueError, OverflowError):
            found[name] = number(0.0)
    return found


def _shown(value: object) -> str:
    """Return a value of a table as a reader of the model sees it."""
    if isinstance(value, Mapping):
        if isinstance(value.get("equation"), str):
            return f"{value['equation']}, with the rate {_shown(value.get('rate'))}"
        if isinstance(value.get("species"), (list, tuple)):
            names = [s for s in value["species"] if isinstance(s, str)]
            return f"size {_shown(value.get('size'))}: {', '.join(names)}"
    if isinstance(value, (Expression, str)):
        return str(value)
    return number_text(value) or shown(value)
