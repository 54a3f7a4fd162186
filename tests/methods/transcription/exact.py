"""Trajectories at the points of a discretisation: the forward map's, and its own."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import spsolve

from odefit import ForwardMap, Problem, library
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation, PlacedSegment
from odefit.discretisation.formulations import Baseline
from odefit.expressions.algebras import NUMPY
from odefit.methods.solvers.nonlinear_program import nonlinear_program
from odefit.problem.binding import Binding
from odefit.simulation import Trajectory


def reference_of(name: str) -> tuple[Problem, Array]:
    """A library problem and the unknowns of its reference."""
    problem, reference = library.load(name), library.reference(name)
    return problem, problem.vector({**reference.parameters, **reference.initial})


def exact_values(d: Discretisation, forward: ForwardMap, vector: Array) -> Array:
    """All variables at all points, shape (P, v)."""
    values = np.full((d.points, len(d.variables)), np.nan)
    for number, condition in enumerate(d.problem.conditions):
        own = d.condition_of == number
        times = d.times[own].copy()
        first = int(np.flatnonzero(own)[0])
        between = []
        for k, place in enumerate(p for p in d.segments if p.segment.condition == number):
            if k and place.count == 1:
                between.append(place)
            elif k:  # what an event leaves behind
                times[place.first - first] = np.nextafter(times[place.first - first], np.inf)
        wanted, position = np.unique(times, return_inverse=True)
        found = forward.trajectory(vector, condition.name, wanted, sensitivities=False)
        assert isinstance(found, Trajectory), found
        for k, name in enumerate(d.variables):
            if name in d.field.states:
                column = found.states[:, d.field.states.index(name)]
            elif name in d.field.algebraic:
                column = found.algebraic[:, d.field.algebraic.index(name)]
            elif name in found.switched:
                column = found.switched[name][0]
            else:
                known = Binding([condition.scalars[name]], condition.scalars)(vector)
                column = np.broadcast_to(known, len(wanted))
            values[own, k] = column[position]
        for place in between:
            _between_events(d, place, values, vector)
    return values


def _between_events(d: Discretisation, place: PlacedSegment, values: Array, vector: Array) -> None:
    """Several events at one time: what the first of them leave, from the point before."""
    condition = d.problem.conditions[place.segment.condition]
    known = {n: Binding([b], condition.scalars)(vector)[0] for n, b in condition.scalars.items()}
    known |= {n: values[place.first - 1, k] for k, n in enumerate(d.variables)}
    known["t"] = np.float64(d.times[place.first])
    values[place.first] = values[place.first - 1]
    for name, expression in place.segment.assign.items():
        values[place.first, d.variables.index(name)] = expression.evaluate(known, NUMPY)


def discrete_solution(d: Discretisation, vector: Array, start: Array) -> Array:
    """What the discretised equations make of the unknowns, by Newton's method from `start`."""
    nlp = nonlinear_program(d, Baseline(), scaled=False)
    values = np.clip(start, d.lower, d.upper)
    free = np.flatnonzero((d.lower < d.upper).ravel())
    for _ in range(30):
        w = nlp.pack(values, vector)
        found = nlp.jacobian(w, [])
        jacobian = csc_array(found[1].sparse())[:, free]
        step = spsolve(jacobian, -np.asarray(found[0]).ravel())
        w[free] += step
        values, _ = nlp.unpack(w)
        if np.abs(step).max(initial=0.0) <= 1e-12 * np.abs(values).max():
            return values
    raise AssertionError("Newton's method does not converge")
