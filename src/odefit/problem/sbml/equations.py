"""Rules and reactions of a model as equations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odefit.common.errors import did_you_mean, shown
from odefit.expressions.expressions import ExpressionError, parse
from odefit.expressions.formulas import Part, linear_in
from odefit.problem.sbml.math_trees import RATE_PREFIX
from odefit.problem.sbml.splines import spline_of
from odefit.problem.sbml.symbols import Reading, Symbol, place_of
from odefit.problem.sbml.terms import (
    ZERO,
    Term,
    as_term,
    difference,
    expanded,
    names_in,
    negative,
    number,
    numeric,
    product,
    quotient,
    replaced_in,
    total,
    without_factor,
)


def read_rules(reading: Reading) -> None:
    """Read the rules of a model, except the variables of algebraic rules."""
    for rule in reading.model.getListOfRules():
        if rule.isAlgebraic():
            continue
        identifier = rule.getVariable()
        kind = "assignment" if rule.isAssignment() else "rate"
        place = place_of(rule, f"{kind} rule of", identifier)
        symbol = reading.variable(identifier, place)
        if symbol is None:
            continue
        if symbol.rule:
            reading.error(place, f"'{identifier}' has two rules; remove one of them")
            continue
        if symbol.constant and reading.model.getLevel() > 1:
            reading.error(place, f"'{identifier}' is constant and cannot have a rule")
        symbol.rule = kind
        term = spline_of(rule, reading, place) if kind == "assignment" else None
        if term is not None:
            reading.splines.append(identifier)
        elif rule.getMath() is not None:
            term = reading.term(rule.getMath(), place)
        target = reading.definitions if kind == "assignment" else reading.rate_rules
        target[symbol.name] = ZERO if term is None else numeric(term)


def read_reactions(reading: Reading) -> None:
    """Read the reactions of a model: their rates and their effect on each species."""
    for reaction in reading.model.getListOfReactions():
        symbol = reading.by_id.get(reaction.getId())
        if symbol is None or (symbol.element is not reaction and symbol.kind != "reaction"):
            continue
        place = symbol.place
        if reaction.isSetFast() and reaction.getFast():
            reading.fast.append(symbol.name)
        for modifier in reaction.getListOfModifiers():
            _species_of(modifier, place, reading)
        changed = [
            _stoichiometry(reference, sign, symbol, reading)
            for sign, references in (
                (-1.0, reaction.getListOfReactants()),
                (1.0, reaction.getListOfProducts()),
            )
            for reference in references
        ]
        law = reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            if any(changed):
                reading.error(place, "it has no kinetic law, so its speed is unknown")
            continue
        term = reading.term(law.getMath(), place)
        reading.definitions[symbol.name] = ZERO if term is None else numeric(term)


def _species_of(reference: Any, place: str, reading: Reading) -> Symbol | None:
    species = reading.by_id.get(reference.getSpecies())
    if species is None or species.kind != "species":
        known = did_you_mean(reference.getSpecies(), [s.id for s in reading.of("species")])
        reading.error(place, f"there is no species {shown(reference.getSpecies())}{known}")
        return None
    return species


def _stoichiometry(reference: Any, sign: float, reaction: Symbol, reading: Reading) -> bool:
    """Record how often a reaction makes (with `sign` -1, takes) a species; return success."""
    species = _species_of(reference, reaction.place, reading)
    if species is None or species.boundary:
        return False
    if species.constant or species.rule:
        why = "is constant" if species.constant else "has a rule"
        reading.error(
            reaction.place,
            f"it changes '{species.id}', which {why}; a boundaryCondition is missing",
        )
        return False
    coefficient = _coefficient(reference, reaction.place, reading)
    if coefficient is not None:
        signed = sign * coefficient if isinstance(coefficient, float) else coefficient
        if isinstance(signed, Term) and sign < 0:
            signed = negative(signed)
        species.reactions.setdefault(reaction.name, []).append(signed)
    return True


def _coefficient(reference: Any, place: str, reading: Reading) -> float | Term | None:
    symbol = reading.by_id.get(reference.getId()) if reference.getLevel() > 2 else None
    if symbol is not None and (symbol.rule or symbol.assigned_at_start or symbol.event):
        return Term(symbol.name)
    if reference.getLevel() == 2 and reference.isSetStoichiometryMath():
        term = reading.term(reference.getStoichiometryMath().getMath(), place)
        return None if term is None else numeric(term)
    if reference.getLevel() > 2 and not reference.isSetStoichiometry():
        reading.error(place, f"the stoichiometry of '{reference.getSpecies()}' is not given")
        return None
    value = float(reference.getStoichiometry())
    if reference.getLevel() == 1 and reference.getDenominator():
        value /= reference.getDenominator()
    if not -1e300 < value < 1e300:
        reading.error(place, f"the stoichiometry of '{reference.getSpecies()}' is {value}")
        return None
    return value


def read_algebraic_rules(reading: Reading) -> None:
    """Read algebraic rules, and determine the variable of each."""
    rules = [rule for rule in reading.model.getListOfRules() if rule.isAlgebraic()]
    if not rules:
        return
    free = {
        symbol.name: symbol
        for symbol in reading.by_id.values()
        if symbol.kind != "reaction"
        and not (symbol.constant or symbol.rule or symbol.reactions or symbol.event)
    }
    terms: list[tuple[Term, list[str], str]] = []
    for count, rule in enumerate(rules, 1):
        place = place_of(rule, "algebraic rule", str(count))
        term = reading.term(rule.getMath(), place)
        if term is None:
            return
        try:
            written = replaced_in(numeric(term), expanded(reading.definitions))
        except ExpressionError as error:
            reading.error(place, str(error))
            return
        terms.append((numeric(term), [n for n in names_in(written.text) if n in free], place))
    owner: dict[str, int] = {}
    for index, (_, _, place) in enumerate(terms):
        if not _matched(index, [names for _, names, _ in terms], owner, set()):
            reading.error(
                place,
                "nothing is left for it to determine: other rules, reactions and events "
                "determine its variables (an index of more than 1), and odefit needs index 1",
            )
    for name in owner:
        free[name].rule = "algebraic"
    solve({name: terms[index][0] for name, index in owner.items()}, reading)


def solve(conditions: dict[str, Term], reading: Reading) -> None:
    """Solve conditions for the variables that they determine, if they are linear in these.

    Each condition is an expression equal to zero. Nonlinear ones stay conditions.
    """
    for name, term in conditions.items():
        try:
            whole = replaced_in(term, expanded(reading.definitions))
            linear = linear_in(Part(parse(whole.text).program), name)
        except ExpressionError as error:
            reading.error(f"equation that determines '{name}'", str(error))
            continue
        if linear is None or linear.slope.number == 0.0:
            reading.conditions[name] = term
        else:
            reading.definitions[name] = as_term(linear.zero().expression().text)


def _matched(rule: int, candidates: list[list[str]], owner: dict[str, int], seen: set[str]) -> bool:
    """Assign a variable to a rule, moving others if necessary (augmenting paths)."""
    for name in candidates[rule]:
        if name in seen:
            continue
        seen.add(name)
        if name not in owner or _matched(owner[name], candidates, owner, seen):
            owner[name] = rule
            return True
    return False


def varies(compartment: Symbol) -> bool:
    """True if the size of a compartment changes in time."""
    return bool(compartment.rule or compartment.event)


def keep_amounts(reading: Reading) -> None:
    """Convert species to amounts in compartments whose size follows from a rule."""
    for species in reading.of("species"):
        compartment = reading.by_id.get(species.compartment)
        if species.amount or species.rule or compartment is None:
            continue
        if compartment.rule in {"assignment", "algebraic"}:
            name = reading.new_name(f"{species.name}_amount")
            reading.amounts[species.name] = name
            reading.definitions[species.name] = quotient(Term(name), Term(compartment.name))


def changing_species(reading: Reading) -> Iterable[Symbol]:
    """Return the species that reactions, events or their compartment change, but not rules."""
    for species in reading.of("species"):
        compartment = reading.by_id.get(species.compartment)
        diluted = not species.amount and compartment is not None and varies(compartment)
        moved = any(net_of(parts) != ZERO for parts in species.reactions.values())
        if not species.rule and (moved or species.event or diluted):
            yield species


def net_of(parts: list[float | Term]) -> Term:
    """Return the sum of stoichiometric coefficients."""
    plain = sum(part for part in parts if isinstance(part, float))
    terms = [part for part in parts if not isinstance(part, float)]
    return total([*([number(plain)] if plain or not terms else []), *terms])


def right_hand_side(species: Symbol, reading: Reading, written: dict[str, Term]) -> Term:
    """Return the rate of change of a species without a rule; rates not in `written` stay names."""
    amount = species.amount or species.name in reading.amounts
    volume = Term("" if amount else reading.by_id[species.compartment].name)
    undivided, divided = [], []
    for reaction, parts in species.reactions.items():
        net = net_of(parts)
        rate = written.get(reaction, Term(reaction))
        reduced = None if amount else without_factor(rate, volume.text)
        if net == ZERO or rate == ZERO:
            continue
        if amount or reduced is not None:
            undivided.append(scaled(net, rate if reduced is None else reduced))
        else:
            divided.append(scaled(net, rate))
    if divided:
        undivided.append(quotient(total(divided), volume))
    result = total(undivided)
    if result != ZERO:
        result = converted(result, species, reading)
    growth = None if amount else reading.rate_rules.get(volume.text)
    if growth is not None:  # dilution in a growing compartment
        loss = quotient(product([Term(species.name), growth]), volume)
        result = negative(loss) if result == ZERO else difference(result, loss)
    return result


def converted(extent: Term, species: Symbol, reading: Reading) -> Term:
    """Return the amount of a species for an extent of reactions."""
    level3 = reading.model.getLevel() > 2
    factor = species.element.getConversionFactor() if level3 else ""
    factor = factor or (reading.model.getConversionFactor() if level3 else "")
    symbol = reading.by_id.get(factor)
    if factor and (symbol is None or symbol.kind != "parameter"):
        reading.error(species.place, f"its conversion factor {shown(factor)} is unknown")
    return extent if symbol is None else product([Term(symbol.name), extent])


def scaled(coefficient: Term, rate: Term) -> Term:
    """Return a rate times a coefficient."""
    if coefficient.text == "1":
        return rate
    if coefficient.text == "-1":
        return negative(rate)
    return product([coefficient, rate])


def define_rates_of_change(reading: Reading) -> None:
    """Define the rate of change of each name in rateOf."""
    changing = {species.name: species for species in changing_species(reading)}
    for symbol in reading.by_id.values():
        name = symbol.name
        if name not in reading.rates_asked:
            continue
        if symbol.rule in {"assignment", "algebraic"} or name in reading.amounts:
            reading.error(
                symbol.place,
                "rateOf asks for the rate of change of a variable that follows from others",
            )
        elif symbol.kind == "reaction":
            reading.error(symbol.place, "rateOf is not defined for a reaction")
        rate = reading.rate_rules.get(name, ZERO)
        if name in changing and not symbol.rule:
            rate = right_hand_side(symbol, reading, {})
        reading.definitions[f"{RATE_PREFIX}{name}"] = rate
