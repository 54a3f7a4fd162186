"""Observables and their derivatives along a trajectory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME
from odefit.expressions.gradients import Gradient
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.residuals.observed_rows import keeping_zero
from odefit.simulation.trajectories.trajectory import Trajectory


def observe(
    field: VectorField,
    condition: Condition,
    vector: Array,
    trajectory: Trajectory,
    also: Iterable[str] = (),
    only: Collection[str] | None = None,
) -> dict[str, Dual]:
    """Return the observables at the trajectory's times, with derivatives by unknown.

    Parameters
    ----------
    only
        Names of the requested observables; all by default.
    also
        Names of other requested quantities: states, algebraic variables, inputs or time. Parameters
        and constants among them are omitted, except those that events assign.

    Returns
    -------
    For each observable by name, a dual number of arrays of shape (times,); then the others.
    """
    gradients = field.observable_gradients
    if only is not None:
        gradients = {name: gradients[name] for name in gradients if name in only}
    needed = {n for g in gradients.values() for n in g.names} | set(also)
    values = _values(field, condition, vector, trajectory, needed)
    sensitivities = _sensitivities(field, trajectory)
    shape = np.zeros(len(trajectory.times))
    observed = {}
    for name, gradient in gradients.items():
        value = _chained(gradient, values, sensitivities, trajectory.unknowns)
        observed[name] = Dual(shape + value.value, value.partials)
    changing = (values.keys() - condition.scalars.keys()) | trajectory.switched.keys()
    for name in sorted(changing & set(also) - observed.keys()):
        observed[name] = Dual(shape + values[name].value, values[name].partials)
    return observed


def algebraic_variables(
    field: VectorField, condition: Condition, vector: Array, trajectory: Trajectory
) -> dict[str, Array]:
    """Return all algebraic variables at the trajectory's times, including the eliminated ones."""
    needed = set(field.model.algebraic)
    values = _values(field, condition, vector, trajectory, needed) if needed else {}
    count = len(trajectory.times)
    return {n: np.array(np.broadcast_to(values[n].value, count)) for n in field.model.algebraic}


def _chained(
    gradient: Gradient,
    values: Mapping[str, Dual],
    sensitivities: Mapping[str, Array],
    unknowns: tuple[int, ...],
) -> Dual:
    """Return an expression with its derivatives by unknown.

    It multiplies the derivatives with respect to the names by the derivatives of these with respect
    to all unknowns at once. With a hundred unknowns this is a hundred times cheaper than carrying
    each through every operation of the expression.
    """
    value, partials = gradient({name: values[name].value for name in gradient.names})
    total: Array | None = None
    others: dict[int, Array] = {}
    for name, partial in partials.items():
        if name in sensitivities:
            term = keeping_zero(np.reshape(partial, (-1, 1)), sensitivities[name])
            total = term if total is None else total + term
        else:
            for k, derivative in values[name].partials.items():
                term = keeping_zero(np.asarray(partial), np.asarray(derivative))
                others[k] = others[k] + term if k in others else term
    if total is None:
        return Dual(value, others)
    by_unknown = {u: total[:, k] for k, u in enumerate(unknowns)}
    for k, term in others.items():
        by_unknown[k] = by_unknown[k] + term if k in by_unknown else term
    return Dual(value, by_unknown)


def _sensitivities(field: VectorField, trajectory: Trajectory) -> dict[str, Array]:
    """Return the sensitivities of all integrated variables, shape (times, unknowns) each."""
    sensitivities = {name: trajectory.sensitivities[:, i] for i, name in enumerate(field.states)}
    for i, name in enumerate(field.algebraic):
        sensitivities[name] = trajectory.algebraic_sensitivities[:, i]
    return sensitivities | {name: of for name, (_, of) in trajectory.switched.items()}


def _values(
    field: VectorField,
    condition: Condition,
    vector: Array,
    trajectory: Trajectory,
    names: set[str],
) -> dict[str, Dual]:
    """Return the values of the names in `names`, and of some others."""
    values: dict[str, Dual] = {}
    for i, name in enumerate(field.states):
        values[name] = _dual(trajectory.states, trajectory.sensitivities, i, trajectory.unknowns)
    for i, name in enumerate(field.algebraic):
        values[name] = _dual(
            trajectory.algebraic, trajectory.algebraic_sensitivities, i, trajectory.unknowns
        )
    for name in (names | _names_of_constraints(field)) & condition.scalars.keys():
        values[name] = scalar_value(name, condition.scalars, vector)
    for name, (switched, sensitivities) in trajectory.switched.items():
        by_unknown = {u: sensitivities[:, k] for k, u in enumerate(trajectory.unknowns)}
        values[name] = Dual(switched, by_unknown)
    for name, signal in condition.inputs.items():
        values[name] = Dual(signal(trajectory.times))
    values[TIME] = Dual(trajectory.times)
    if names & set(field.model.algebraic) and field.elimination is not None:
        values = field.complete(values, DUAL)
    return values


def _names_of_constraints(field: VectorField) -> set[str]:
    """Return the names on which the algebraic variables depend."""
    return {n for e in field.model.algebraic.values() for n in e.names}


def _dual(values: Array, sensitivities: Array, i: int, unknowns: tuple[int, ...]) -> Dual:
    return Dual(values[:, i], {u: sensitivities[:, i, k] for k, u in enumerate(unknowns)})
