"""Finite bounds of the states to begin with.

A relaxation needs both ends of every variable. Those of states follow from signs, from conserved
totals and from the data, or are given. They belong to what is proved: the certificate names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.methods.bounded_problem import MIN_POSITIVE_SHARE, PROPOSAL_FACTOR, GivenBounds
from odefit.methods.domains import Domains
from odefit.methods.outer_approximation.nonnegative_states import EquationBounds
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.variants.start_ranges import data_size

WIDENING = 0.2
"""Part of a discretised state's range by which bounds that it contradicts are moved beyond it."""

CONTRADICTION = 1e-6
"""Part of a discretised state's range by which it may leave its bounds without contradiction."""


@dataclass(frozen=True, eq=False)
class StateBounds:
    """Bounds of the variables at the points of a discretised problem.

    Attributes
    ----------
    values
        Lower and upper bounds by condition and variable, shape (conditions, variables, 2);
        infinite where nothing is known.
    """

    values: Array

    @classmethod
    def of(
        cls, d: Discretisation, unknowns: Array, given: GivenBounds, cutoff: float
    ) -> StateBounds:
        """Return what equations, data and the user say of the states.

        Parameters
        ----------
        unknowns
            Bounds of the unknowns, shape (n, 2).
        given
            Bounds by name, or ``"propose"`` to accept what the data suggest.
        cutoff
            Objectives above this are of no interest: data are missed by its root at most.
        """
        equations = EquationBounds(d, unknowns)
        domains = Domains.of(d.problem)
        found = np.tile([-np.inf, np.inf], (len(d.problem.conditions), len(d.variables), 1))
        found[:, equations.nonnegative, 0] = 0.0
        for number, (own, condition) in enumerate(zip(found, d.problem.conditions, strict=True)):
            own[:, 1] = equations.totals(number)
            if np.isfinite(cutoff):
                _bound_by_data(d, condition, own, cutoff)
            for k, name in enumerate(d.variables):
                if isinstance(given, Mapping) and name in given:
                    own[k] = given[name]
                elif given == "propose":
                    size = PROPOSAL_FACTOR * data_size(condition)
                    own[k] = max(own[k, 0], -size), min(own[k, 1], size)
                    if name in domains.positive or (name in domains.nonzero and own[k, 0] >= 0):
                        first = equations.initial(number)[k, 0]
                        own[k, 0] = max(own[k, 0], _positive_bound(d, condition, name, first))
        return cls(found)

    def apply(self, d: Discretisation) -> None:
        """Put the bounds into `d`, where they are not known better."""
        own = self.values[d.condition_of]
        free = d.lower < d.upper
        d.lower = np.where(free, np.maximum(d.lower, own[:, :, 0]), d.lower)
        d.upper = np.where(free, np.minimum(d.upper, own[:, :, 1]), d.upper)
        d.programs.clear()  # they were compiled with the bounds from before

    def containing(self, d: Discretisation, values: Array) -> StateBounds:
        """Return the bounds, widened where a local answer, shape (P, variables), lies outside.

        Polynomials through few points swing: a discretised state may be negative, or exceed a
        total, where the true one does not.
        """
        found = self.values.copy()
        for number, own in enumerate(found):
            at_points = values[d.condition_of == number]
            low, high = at_points.min(axis=0), at_points.max(axis=0)
            lower, upper = self.values[number].T
            swing, slack = WIDENING * (high - low), CONTRADICTION * (high - low)
            # What is positive stays so: there may be a logarithm of it.
            least = np.where((lower > 0) & (low > 0), low / PROPOSAL_FACTOR, -np.inf)
            own[:, 0] = np.where(low < lower - slack, np.maximum(low - swing, least), lower)
            own[:, 1] = np.where(high > upper + slack, high + swing, upper)
        return StateBounds(found)

    def description(self, d: Discretisation) -> str:
        """Return the bounds in words, for the scope of a certificate."""
        low, high = self.values[:, :, 0].min(axis=0), self.values[:, :, 1].max(axis=0)
        ends = list(zip(low.tolist(), high.tolist(), strict=True))
        if len(set(ends)) == 1:
            return _in_words(ends[0], "states") or "states free"
        parts = [_in_words(e, n) for n, e in zip(d.variables, ends, strict=True)]
        return ", ".join(p for p in parts if p) or "states free"


def _in_words(ends: tuple[float, float], name: str) -> str:
    """Return bounds in words; nothing if both are infinite."""
    low, high = ends
    if math.isfinite(low) and math.isfinite(high):
        return f"{name} in [{low:.4g}, {high:.4g}]"
    if math.isfinite(high):
        return f"{name} <= {high:.4g}"
    return f"{name} >= {low:.4g}" if math.isfinite(low) else ""


def _bound_by_data(d: Discretisation, condition: Condition, own: Array, cutoff: float) -> None:
    """Keep measured states within twice the range of their data and what the cutoff leaves."""
    for name, series in condition.series.items():
        state = d.problem.model.observables[name].name
        if state not in d.variables or not len(series.values):
            continue
        k = d.variables.index(state)
        if np.isfinite(own[k]).all():
            continue
        sd = _largest_sd(d.problem.noise.get(name), series)
        low, high = float(series.values.min()), float(series.values.max())
        margin = high - low
        margin += margin if sd is None else sd * math.sqrt(max(cutoff, 0.0))
        own[k] = max(own[k, 0], low - margin), min(own[k, 1], high + margin)


def _positive_bound(d: Discretisation, condition: Condition, name: str, first: float) -> float:
    """Return a positive lower bound of a state that must not be zero, far below its known values.

    Parameters
    ----------
    first
        The least initial value, minus infinity if it is not known.
    """
    known = [first]
    known += [
        float(series.values.min())
        for observable, series in condition.series.items()
        if d.problem.model.observables[observable].name == name and len(series.values)
    ]
    size = MIN_POSITIVE_SHARE * data_size(condition)
    # Noise may make a measurement negative; an initial value of zero is then zero.
    return max(min([v for v in known if v > size], default=size), size) / PROPOSAL_FACTOR


def _largest_sd(noise: Noise | None, series: Series) -> float | None:
    """Return a series' largest standard deviation, None if it is unknown or on another scale."""
    if noise is not None and noise.transform is not None:
        return None
    if series.sds is not None:
        return float(series.sds.max())
    if noise is None:
        return 1.0
    if noise.relative is not None:
        return noise.relative * float(np.abs(series.values).max())
    return noise.sd if isinstance(noise.sd, float) else None


def require_finite(d: Discretisation, form: StandardForm, bounds: Bounds) -> None:
    """Refuse a problem of which a variable has no finite bounds.

    Raises
    ------
    InputError
        The message names states, or terms, with a proposal.
    """
    low, high = bounds
    free = ~(np.isfinite(low) & np.isfinite(high))
    if not free.any():
        return
    points, width = d.points * len(d.variables), len(d.variables)
    size = PROPOSAL_FACTOR * max(data_size(c) for c in d.problem.conditions)
    proposals = []
    for k in np.flatnonzero(free[:points].reshape(-1, width).any(axis=0)).tolist():
        least = 0.0 if low[k:points:width].min() >= 0 else -size
        proposals.append(f'"{d.variables[k]}": ({least:.3g}, {size:.3g})')
    if proposals:
        raise InputError(
            "outer approximation: these states are not measured, and nothing bounds them. If you "
            f"know that they stay within these bounds, give bounds={{{', '.join(proposals)}}}; or "
            'accept them with bounds="propose" (on the command line, --bounds propose)'
        )
    worst = [form.names[k] for k in np.flatnonzero(free) if k >= form.originals][:3]
    raise InputError(
        "outer approximation: within the bounds of the unknowns and states, these terms have no "
        f"finite bounds: {', '.join(worst)}. Give narrower bounds, within which nothing is divided "
        "by zero and no logarithm of zero is taken"
    )
