"""What users are told of a second opinion on an integration."""

from __future__ import annotations

from odefit.simulation.second_opinion import SecondOpinion

ENGINES = {
    "auto": "the usual engines",
    "heyoka": "the Taylor method",
    "bdf": "odefit's implicit engine",
    "casadi": "CVODES",
    "lsoda": "LSODA",
}
"""Names of the engines in sentences."""


def told(opinion: SecondOpinion | None, used: str = "the usual engines") -> str:
    """Return in a sentence what users should know of a second opinion; empty if nothing."""
    if opinion is None or opinion.agrees or opinion.difference is None:
        return ""
    difference = opinion.difference
    where = f"{difference.name} at t = {difference.time:g}"
    if difference.experiment:
        where += f" in experiment {difference.experiment}"
    values = f"{difference.first:.6g} and {difference.second:.6g}"
    if opinion.better is None:
        return (
            f"No two integrators agree on this trajectory: {where}, two of them come to {values}. "
            "Small errors grow along it, or it has changes that are too narrow to be seen"
        )
    name = ENGINES[opinion.better[0]]
    return (
        f"The trajectory was integrated by {name}, with which another integrator agrees: {used} "
        f"came to another value of {where}, {difference.first:.6g} instead of "
        f"{difference.second:.6g}"
    )
