"""Rates of reactions: mass action, and laws by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from odefit.common.errors import shown
from odefit.expressions.expressions import ExpressionError
from odefit.problem.notation.arrays import split_arguments
from odefit.problem.notation.reactions import FORM, Reaction


class Law(NamedTuple):
    """A rate law."""

    arguments: tuple[str, ...]  # what is given behind its name
    # the rate, in the arguments, the substrate ``S`` and, in laws both ways, the product ``P``
    rate: str
    reversible: bool = False  # whether it is one of both ways


LAWS: Mapping[str, Law] = {
    "michaelis_menten": Law(("vmax", "km"), "vmax*S/(km + S)"),
    "hill": Law(("vmax", "k", "n"), "vmax*S^n/(k^n + S^n)"),
    "competitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/(km*(1 + inhibitor/ki) + S)"
    ),
    "noncompetitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/((km + S)*(1 + inhibitor/ki))"
    ),
    "uncompetitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/(km + S*(1 + inhibitor/ki))"
    ),
    "substrate_inhibition": Law(("vmax", "km", "ki"), "vmax*S/(km + S + S^2/ki)"),
    "constant": Law(("v",), "v"),
    "reversible_michaelis_menten": Law(
        ("vf", "ks", "vr", "kp"), "(vf*S/ks - vr*P/kp)/(1 + S/ks + P/kp)", reversible=True
    ),
}
"""The laws by name; ``mass_action(k)`` is what a rate without a name is."""

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*\Z", re.DOTALL)


class Rates(NamedTuple):
    """The texts of a rate forward and, unless it is None, backward, in plain names."""

    forward: str
    backward: str | None = None


def rates_of(reaction: Reaction, own: Mapping[str, object]) -> Rates:
    """Return the rates of a reaction; functions of the user come before laws of the same name."""
    if reaction.rate is not None:
        return Rates(f"({reaction.rate})")
    call = _CALL.match(reaction.law[0]) if len(reaction.law) == 1 else None
    if call and call[1] in LAWS and call[1] not in own:
        return Rates(_by_name(reaction, call[1], list(split_arguments(call[2]))))
    constants = reaction.law
    if call and call[1] == "mass_action" and call[1] not in own:
        constants = tuple(split_arguments(call[2]))
    wanted = 2 if reaction.reversible else 1
    if len(constants) != wanted:
        arrow, needs = ("<->", "two constants") if reaction.reversible else ("->", "one constant")
        raise ExpressionError(
            f"mass action with {arrow} has {needs}, got {len(constants)} "
            f"({', '.join(c.strip() for c in constants)}); {FORM}"
        )
    forward = _mass_action(constants[0], reaction.reactants)
    return Rates(
        forward, _mass_action(constants[1], reaction.products) if reaction.reversible else None
    )


def _mass_action(constant: str, side: Mapping[str, object]) -> str:
    for species in side:
        if re.search(rf"(?<!\w){species}(?!\w|\s*[\[(])", constant):
            raise ExpressionError(
                f"the constant {shown(constant.strip())} of mass action contains the reactant "
                f"'{species}', by which it is multiplied; give the constant alone, or the whole "
                'rate as { equation = "...", rate = "..." }'
            )
    factors = [f"({constant})"]
    for species, number in side.items():
        order = str(number)
        if "/" in order:
            raise ExpressionError(
                f"{order} {species} has no rate by mass action; give the whole rate as "
                '{ equation = "...", rate = "..." }'
            )
        factors.append(species if order == "1" else f"{species}^{order}")
    return "*".join(factors)


def _by_name(reaction: Reaction, name: str, given: list[str]) -> str:
    law = LAWS[name]
    if len(given) != len(law.arguments) or not all(g.strip() for g in given):
        raise ExpressionError(
            f"{name}({', '.join(law.arguments)}) takes {len(law.arguments)} values, got "
            f"{sum(bool(g.strip()) for g in given)}"
        )
    if law.reversible != reaction.reversible:
        needed = "<->" if law.reversible else "->"
        raise ExpressionError(f"{name} is a law of reactions with {needed}")
    values = {a: f"({g})" for a, g in zip(law.arguments, given, strict=True)}
    for letter, sign, what in (("S", -1, "uses up"), ("P", 1, "makes")):
        if not re.search(rf"\b{letter}\b", law.rate):
            continue
        found = [s for s, change in reaction.changes.items() if change * sign > 0]
        if len(found) != 1:
            count = "none" if not found else ", ".join(found)
            raise ExpressionError(
                f"{name} is a law of reactions that {what.replace('uses', 'use')} one species, "
                f"this one {what}: {count}; give the whole rate as "
                '{ equation = "...", rate = "..." }'.replace("make:", "makes:")
            )
        values[letter] = found[0]
    return re.sub(r"[A-Za-z_]\w*", lambda m: values[m[0]], law.rate)
