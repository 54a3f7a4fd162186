"""How many solutions there are, and how many of them were found."""

from __future__ import annotations

from odefit.assessment.parts import Complete
from odefit.methods.estimate import Counted


def assess_complete(counted: Counted | None, inside: int | None) -> Complete | None:
    """What is known of the number of solutions.

    Parameters
    ----------
    counted
        By a method that finds all.
    inside
        Solutions, equally good, that are within the bounds; None where there are none.
    """
    if counted is None:
        return None
    c = counted
    possible = c.found if c.possible is None else max(c.possible, c.found)
    others = "one solution" if possible == 1 else f"{possible} solutions"
    if c.possible is None:
        said = f"With these outputs, {others} {'was' if possible == 1 else 'were'} found"
        said += "; how many there can be is not known"
    elif possible == 1:
        said = "The equations admit no second solution with the same outputs"
    else:
        said = f"The equations admit {others} with the same outputs"
        said += (
            f", of which {c.found} {'was' if c.found == 1 else 'were'} found, {c.real} of them real"
        )
        if inside is not None and inside < c.real:
            said += f" and {inside} within the bounds"
    if c.coincide and c.found < possible:
        said += "; the equations are singular at this answer: solutions coincide there"
    elif c.lost and c.found < possible:
        said += f"; {c.lost} paths of the search did not arrive"
    elif c.possible is not None and c.doubt > 1e-9:
        said += f" (probability of an error of the count: about {c.doubt:.0e})"
    return Complete(possible, c.found, said + ".")
