"""The numbers of existing and found solutions, in words."""

from __future__ import annotations

from dataclasses import replace

from odefit.common.errors import counted
from odefit.methods.estimate import Completeness

NEGLIGIBLE_DOUBT = 1e-9
"""Largest probability of a wrong count of solutions that is not mentioned."""

LISTED_OUTSIDE = 5
"""Largest number of solutions outside the bounds whose values are in the sentence."""


def assess_completeness(c: Completeness | None, inside: int | None) -> Completeness | None:
    """Return a method's knowledge of the number of solutions, with its sentence.

    `inside` is the number of equally good solutions within the bounds; None without bounds.
    """
    if c is None:
        return None
    possible = max(c.possible, c.found)
    others = "one solution" if possible == 1 else f"{possible} solutions"
    if not c.known:
        sentence = f"With these outputs, {others} {'was' if possible == 1 else 'were'} found"
        sentence += "; their total number is not known"
    elif possible == 1:
        sentence = "The equations admit no second solution with the same outputs"
    else:
        sentence = f"The equations admit {others} with the same outputs, of which {c.found} "
        sentence += f"{'was' if c.found == 1 else 'were'} found, {c.real} of them real"
        sentence += " and different" if c.coincide and c.found >= possible else ""
        if inside is not None and inside < c.real:
            sentence += f" and {inside} within the bounds"
    if c.coincide and c.found < possible:
        sentence += "; the equations are singular at this answer: solutions coincide there"
    elif c.lost and c.found < possible:
        sentence += f"; {counted(c.lost, 'path')} of the search did not reach a solution"
    elif c.known and c.doubt > NEGLIGIBLE_DOUBT:
        sentence += f" (probability of an error of the count: about {c.doubt:.0e})"
    sentence += "."
    for values in c.outside[:LISTED_OUTSIDE]:
        listed = ", ".join(f"{key} = {value:.6g}" for key, value in values.items())
        sentence += f" Outside the bounds: {listed}."
    further = len(c.outside) - LISTED_OUTSIDE
    if further > 0:
        sentence += f" {counted(further, 'more solution')} {'lies' if further == 1 else 'lie'}"
        sentence += " outside the bounds."
    return replace(c, possible=possible, sentence=sentence)
