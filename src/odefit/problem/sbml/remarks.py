"""What was translated how, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odefit.problem.sbml.equations import Equations
from odefit.problem.sbml.sbml_model import SbmlModel
from odefit.problem.sbml.sbml_packages import declared_packages
from odefit.problem.sbml.symbols import Symbols

SECONDS = {1e-3: "ms", 1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "d"}
"""Labels of units of time, by their length in seconds."""


def time_unit(model: Any) -> str:
    """Return the unit of time as a label, empty if the model does not say it."""
    import libsbml

    name = model.getTimeUnits() if model.getLevel() > 2 else "time"
    definition = model.getUnitDefinition(name) if name else None
    if definition is None:
        return "s" if name == "second" or (name == "time" and model.getLevel() < 3) else ""
    if definition.getNumUnits() != 1:
        return str(definition.getName() or definition.getId())
    unit = definition.getUnit(0)
    if unit.getKind() == libsbml.UNIT_KIND_SECOND and unit.getExponent() == 1:
        seconds = unit.getMultiplier() * 10.0 ** unit.getScale()
        label = next((v for k, v in SECONDS.items() if abs(seconds / k - 1) < 1e-9), "")
        if label:
            return label
    label = definition.getName() or definition.getId()
    return "" if label in {"time", "time_unit"} else str(label)


def remarks_on(model: Any, symbols: Symbols, equations: Equations, result: SbmlModel) -> list[str]:
    """Return sentences on everything that is not in the model word for word."""
    found = _compartments(symbols, equations)
    unchanged = {*result.constants, *result.computed}
    constants = [s.id for s in symbols.of("species") if s.name in unchanged]
    if constants:
        found.append(f"{_named('species', constants)} changed by nothing: constant")
    found += [f"the function '{name}' is written out" for name in symbols.functions]
    for rule, words in (
        ("assignment", "given by assignment rules, which are written out"),
        ("rate", "given by rate rules"),
        ("algebraic", "determined by algebraic rules"),
    ):
        names = [s.id for s in symbols.by_id.values() if s.rule == rule]
        if names:
            found.append(f"{_named('variable', names)} {words}")
    names = [s.id for s in symbols.by_id.values() if s.assigned_at_start]
    if names:
        found.append(f"{_named('initial value', names)} computed by initial assignments")
    found += [f"'{old}' is named '{new}'" for old, new in symbols.renamed.items()]
    found += [
        f"the event '{e.id}' happens when {e.trigger}"
        + ("" if e.initial_value else ", and at the start if that holds then")
        for e in result.events
    ]
    if result.without_value:
        found.append(f"{_named('name', result.without_value)} without a value in the file")
    own = {s.name for s in symbols.by_id.values()} | set(equations.amounts.values())
    found += [
        f"nothing changes in time; the state '{name}', which is 0, stands for that"
        for name in result.states
        if name not in own
    ]
    found += [f"nothing of the package '{p}' is read" for p in declared_packages(model)]
    if model.getNumConstraints():
        found.append(f"{model.getNumConstraints()} constraints are not checked")
    if model.getNumUnitDefinitions():
        found.append("units are taken as they are, nothing is converted")
    return found


def _compartments(symbols: Symbols, equations: Equations) -> list[str]:
    found = []
    for compartment in symbols.of("compartment"):
        species = [s for s in symbols.of("species") if s.compartment == compartment.id]
        if not species:
            continue
        size = "1, as the file gives none" if compartment.value is None else compartment.value
        size = f"{size:g}" if isinstance(size, float) else size
        if compartment.rule or compartment.event or compartment.assigned_at_start:
            size = "that is computed"
        kept = [s.id for s in species if s.name in equations.amounts]
        amounts = [s.id for s in species if s.amount]
        others = len(species) - len(amounts)
        what = f"{others} of its species are concentrations" if others else ""
        if amounts:
            what += f"{', ' * bool(what)}{len(amounts)} are amounts"
        if kept:
            what += f" (the amounts of {_listed(kept)} are the states)"
        found.append(f"'{compartment.id}' is a compartment of size {size}: {what}")
    return found


def _named(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    plural = what if what == "species" else f"{what}s"
    if len(listed) == 1:
        return f"the {what} {_listed(listed)} is"
    return f"the {plural} {_listed(listed)} are"


def _listed(names: Iterable[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > 12:
        quoted = [*quoted[:12], f"{len(quoted) - 12} more"]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else quoted[0]
