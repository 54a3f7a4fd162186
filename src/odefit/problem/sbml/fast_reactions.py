"""Fast reactions, which are always at equilibrium.

The amount of a species is a state, changed by slow reactions, rules and events, plus the
contribution of the extents of fast reactions. At these extents the kinetic laws of the fast
reactions are zero. They are expressions if the laws are linear in them, and otherwise algebraic
variables.
"""

from __future__ import annotations

from odefit.problem.sbml.equations import converted, net_of, scaled, solve
from odefit.problem.sbml.symbols import Reading, Symbol
from odefit.problem.sbml.terms import ZERO, Term, names_in, product, quotient, total


def hold_equilibria(reading: Reading) -> None:
    """Define the species that fast reactions change, and these reactions' extents."""
    if not reading.fast:
        return
    extents = {name: reading.new_name(f"{name}_extent") for name in reading.fast}
    for species in reading.of("species"):
        parts = {n: net_of(species.reactions.pop(n)) for n in extents if n in species.reactions}
        if all(net == ZERO for net in parts.values()):
            continue
        for net in parts.values():
            _check_coefficient(net, species, reading)
        state = reading.amounts.get(species.name) or reading.new_name(f"{species.name}_amount")
        reading.amounts[species.name] = state
        reading.mixed.append(species)
        added = [
            converted(scaled(net, Term(extents[n])), species, reading) for n, net in parts.items()
        ]
        amount = total([Term(state), *added])
        definition = amount if species.amount else quotient(amount, reading.volume(species))
        reading.definitions[species.name] = definition
    laws = {e: reading.definitions[n] for n, e in extents.items() if n in reading.definitions}
    switched = {s.name for s in reading.of("parameter") if s.event}
    for name, law in zip(extents, laws.values(), strict=False):
        for changed in sorted(switched & set(names_in(law.text))):
            reading.error(
                reading.by_id[name].place if name in reading.by_id else name,
                f"it is fast, and an event changes '{changed}' in its kinetic law, which may stop "
                "it; give it a kinetic law of finite speed",
            )
    solve(laws, reading)
    for name in laws.keys() & reading.conditions.keys():
        reading.guesses[name] = ZERO


def _check_coefficient(net: Term, species: Symbol, reading: Reading) -> None:
    """Refuse a continuously changing stoichiometry of a fast reaction."""
    for symbol in reading.of("stoichiometry"):
        if symbol.rule and symbol.name in names_in(net.text):
            reading.error(
                species.place,
                f"its stoichiometry in a fast reaction, '{symbol.id}', has a rule; give the "
                "reaction "
                "a kinetic law of finite speed",
            )


def mixed_again(terms: dict[str, Term], reading: Reading, written: dict[str, Term]) -> set[str]:
    """Add the amounts of species to an event's assignments before the extents restart.

    Return the names of extents that the event needs but no expression gives.
    """
    changed = terms.keys() | {s.name for s in reading.of("stoichiometry") if s.name in terms}
    names = {reading.amounts[s.name] for s in reading.mixed}
    stoichiometries = {s.name for s in reading.of("stoichiometry")}
    if not changed & (names | stoichiometries):
        return set()
    needed: set[str] = set()
    for species in reading.mixed:
        state = reading.amounts[species.name]
        if state not in terms:
            now = written.get(species.name, Term(species.name))
            terms[state] = now if species.amount else product([now, reading.volume(species)])
            needed |= set(names_in(terms[state].text)) & reading.conditions.keys()
    return needed
