"""The forward map of a problem: from unknowns to residuals and their Jacobian.

An evaluation has these steps: 1. `trajectories/conditions.py` divides all conditions into units; 2.
`trajectories/trajectory.py` traverses events and segments of one condition, `shared_map.py` those
of conditions with the same beginning; 3. `propagation/propagation.py` begins a condition, and moves
it through an event or a segment; 4. `engines/engines.py` chooses the engine for a segment; 5.
`residuals/residual_arrays.py` compares the trajectories with the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.expressions.algebras import Dual
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.adjoint_gradient import AdjointGradient, directions_and_outputs
from odefit.simulation.best_seen import best_seen
from odefit.simulation.engines.cut_off import CutOffError, cut_off
from odefit.simulation.engines.engine_choice import LAST_SERVED, UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.needed_accuracy import NeededAccuracy
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.evaluation import CostGradient, Evaluation
from odefit.simulation.nodes import Nodes
from odefit.simulation.propagation.steep import resting_warnings
from odefit.simulation.residuals.costs_at_points import noted_costs
from odefit.simulation.residuals.noise import names_in_noise
from odefit.simulation.residuals.observation import observe
from odefit.simulation.residuals.prior_residuals import PriorResiduals
from odefit.simulation.residuals.residual_arrays import ResidualArrays
from odefit.simulation.residuals.residual_groups import SeriesResiduals
from odefit.simulation.residuals.series_rows import ResidualSource, SeriesRows
from odefit.simulation.trajectories.conditions import ConditionsMap, Elsewhere
from odefit.simulation.trajectories.intervals import NodesMap
from odefit.simulation.trajectories.trajectory import Trajectory
from odefit.simulation.trajectories.unit_outcome import UnitOutcome


class ForwardMap:
    """Trajectories, residuals and their derivatives for one problem.

    Vectors of unknowns have the shape (n,), in natural units and in the order of ``problem.keys``.
    A search passes the choice of an engine from one evaluation to the next, see
    :class:`EngineChoice`. Without it, the engine used last begins. Models are compiled once.

    Parameters
    ----------
    problem
        The problem with its data.
    engine
        ``"auto"`` recognises stiffness; ``"heyoka"``, ``"runge-kutta"``, ``"bdf"``,
        ``"casadi"`` or ``"local-linearization"`` forces one engine.
    tolerance
        Relative tolerance of all engines but the Taylor method; None for their defaults, 1e-9, and
        1e-6 for Local Linearization.
    nodes
        Nodes at which trajectories restart; None for a single integration.
    steps
        Limit of steps of the implicit engine between two events, besides those for many outputs.
    controlled
        Whether odefit's own engines hold the errors of sensitivities to the tolerance, too. Without
        it, they take a half to two thirds of the steps, with ten times the errors of sensitivities.

    Raises
    ------
    InputError
        The package of the requested engine cannot be imported.

    Attributes
    ----------
    given_noise
        Whether the noise is given or estimated; plain least squares otherwise.
    likelihood
        Whether the noise depends on unknowns, so that the cost is a negative
        log-likelihood and not half a sum of squares.
    gaussian
        Whether all noise is normal, without censored values.
    correlated
        The series whose noise is correlated in time, by number of the condition and observable.
    """

    def __init__(
        self,
        problem: Problem,
        engine: EngineName = "auto",
        tolerance: float | None = None,
        nodes: Nodes | None = None,
        steps: int | None = None,
        controlled: bool = True,
    ) -> None:
        self.problem = problem
        self.nodes = nodes
        self.field = VectorField.of(problem.model, problem.conditions)
        needed = NeededAccuracy.of(problem)
        self.engines = Engines(engine, tolerance, steps, controlled, needed)
        self._residuals = ResidualArrays(problem, self.field)
        self._priors = PriorResiduals(problem)
        self._noise_names = names_in_noise(problem)
        self._of_other_accuracy: dict[tuple[float, bool], ForwardMap] = {}
        self._last_choice, self._seen = UNDECIDED, False  # of evaluations without a given choice
        measured = [pair for condition in problem.conditions for pair in condition.series.items()]
        self.likelihood = self._residuals.rows.likelihood
        self.given_noise = any(
            series.sds is not None or problem.noise.get(name, Noise()).known
            for name, series in measured
        )
        self.gaussian = self._residuals.rows.gaussian
        self.correlated = self._residuals.rows.correlated

    @property
    def arguments(self) -> tuple[Problem, EngineName, float | None, Nodes | None, int | None, bool]:
        """The arguments that make the same forward map in another process."""
        by = self.engines
        return self.problem, by.setting, by.tolerance, self.nodes, by.steps, by.controlled

    def with_accuracy(self, tolerance: float, controlled: bool = True) -> ForwardMap:
        """Return the forward map with another accuracy of the implicit engines, made once."""
        key = tolerance, controlled
        if key == (self.engines.tolerance, self.engines.controlled):
            return self
        if key not in self._of_other_accuracy:
            self._of_other_accuracy[key] = self._with(self.engines.with_accuracy(*key))
        return self._of_other_accuracy[key]

    def by(self, engine: EngineName, tolerance: float | None = None) -> ForwardMap:
        """Return the forward map of the same problem by another engine, see :class:`ForwardMap`."""
        return self._with(Engines(engine, tolerance, needed=self.engines.needed))

    def _with(self, engines: Engines) -> ForwardMap:
        other = copy(self)
        for name in ("_conditions", "_without_sensitivities", "_through_nodes", "_adjoint"):
            vars(other).pop(name, None)  # computed with the engines, and cached
        other.engines, other._of_other_accuracy = engines, {}
        return other

    def of(self, problem: Problem) -> ForwardMap:
        """Return the forward map of the same model with other data, which shares compiled code.

        Only the times and measurements of the conditions may differ.
        """
        other = ForwardMap(problem, *self.arguments[1:3])
        other.field, other.engines = self.field, self.engines
        return other

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about engines that are not installed, and about states that rest at zero."""
        resting = resting_warnings(self.field, self.problem.conditions)
        return *self.engines.warnings(self.field), *resting

    def trajectory(
        self,
        vector: Array,
        experiment: str | None = None,
        times: Array | None = None,
        *,
        sensitivities: bool = True,
        choice: EngineChoice = UNDECIDED,
    ) -> Trajectory | Failure:
        """Return the states (and sensitivities) of an experiment, the first unless one is named.

        They are those at the data times, or at other times. Raises InputError if times decrease or
        precede t0. The choice of an engine is one returned by an earlier trajectory or evaluation.
        """
        condition = self.problem.condition(experiment)
        position = self.problem.conditions.index(condition)
        if times is not None:
            times = np.asarray(times, dtype=float)
            increasing = np.isfinite(times[:-1]).all() and (np.diff(times) > 0).all()
            if len(times) and not (increasing and times[0] >= condition.t0):
                raise InputError(
                    f"times must increase, and not be before t0 = {condition.t0:g}; only the last "
                    "one may be infinite"
                )
        return self._maps(sensitivities).single(position)(vector, times, choice)

    @property
    def series_rows(self) -> Sequence[SeriesRows]:
        """The place of the residuals of each series of measurements in an :class:`Evaluation`."""
        return self._residuals.series_rows

    @property
    def units(self) -> int:
        """Number of parts of an evaluation that may be integrated in other processes."""
        return self._maps(True).units

    def integrate_elsewhere(self, elsewhere: Elsewhere | None) -> None:
        """Let `elsewhere` integrate the units of evaluations, with the same values."""
        self._conditions.elsewhere = elsewhere
        self._without_sensitivities.elsewhere = elsewhere

    def integrate_units(
        self,
        numbers: Sequence[int],
        vector: Array,
        choices: Sequence[EngineChoice],
        sensitivities: bool,
    ) -> dict[int, UnitOutcome]:
        """Return the outcomes of units by number, up to the first failure."""
        maps = self._conditions if sensitivities else self._without_sensitivities
        return maps.integrate(numbers, vector, choices)

    def _maps(self, sensitivities: bool) -> ConditionsMap | NodesMap:
        if self.nodes is not None:
            return self._through_nodes
        return self._conditions if sensitivities else self._without_sensitivities

    @cached_property
    def _conditions(self) -> ConditionsMap:
        return self._conditions_map(True)

    @cached_property
    def _without_sensitivities(self) -> ConditionsMap:
        return self._conditions_map(False)

    def _conditions_map(self, sensitivities: bool) -> ConditionsMap:
        problem, further = self.problem, names_in_noise(self.problem)
        return ConditionsMap(self.field, problem.conditions, self.engines, sensitivities, further)

    @cached_property
    def _through_nodes(self) -> NodesMap:
        assert self.nodes is not None
        conditions, unknowns = self.problem.conditions, len(self.problem.unknowns)
        return NodesMap(self.field, conditions, self.engines, self.nodes, unknowns)

    def accuracy(self, choice: EngineChoice = UNDECIDED) -> float:
        """Return the relative tolerance of the engine that is tried first."""
        return self.engines.tolerances[self.engines.first(self.field, choice)]

    def cost(self, vector: Array, choice: EngineChoice = LAST_SERVED) -> float:
        """Return the cost alone, as in :class:`Evaluation`; infinite if it is undefined."""
        evaluation = self.evaluate_cost(vector, choice)
        return math.inf if isinstance(evaluation, Failure) else evaluation.cost

    def evaluate_cost(
        self, vector: Array, choice: EngineChoice = LAST_SERVED
    ) -> Evaluation | Failure:
        """Return an evaluation whose Jacobian may be zero, see :meth:`trajectories`."""
        return self._evaluate(vector, choice, sensitivities=False)

    def evaluate(self, vector: Array, choice: EngineChoice = LAST_SERVED) -> Evaluation | Failure:
        """Return residuals and Jacobian at `vector`, shape (n,), or a failure.

        The choice of an engine comes from an earlier evaluation, by default the last one.
        """
        return self._evaluate(vector, choice, sensitivities=True)

    def _evaluate(
        self, vector: Array, choice: EngineChoice, *, sensitivities: bool
    ) -> Evaluation | Failure:
        begun = self._last_choice if choice is LAST_SERVED else choice
        along = self.trajectories(vector, begun, sensitivities=sensitivities)
        evaluation = (
            along
            if isinstance(along, Failure)
            else self.evaluate_along(vector, along, derivatives=sensitivities)
        )
        if choice is LAST_SERVED:
            self._last_choice, self._seen = evaluation.choice, True
        return evaluation

    def gradient(self, vector: Array, choice: EngineChoice = LAST_SERVED) -> CostGradient | Failure:
        """Return cost and gradient alone, which is cheaper than all sensitivities.

        Stiff or large problems with many unknowns use a backward pass, whose cost does not depend
        on their number. The gradient is then the exact derivative of the computed cost. That of
        sensitivities differs by about the tolerance, unless states are constant and they are not.
        """
        if self.nodes is None and self._adjoint.may_pay:
            begun = self._last_choice if choice is LAST_SERVED else choice
            if choice is LAST_SERVED and not self._seen and not self._adjoint.pays(begun):
                begun = self.evaluate_cost(vector).choice  # shows whether the problem is stiff
            if self._adjoint.pays(begun):
                cost_gradient = self._adjoint(vector, begun)
                if cost_gradient is not None:
                    return cost_gradient
                if isinstance(states := self.evaluate_cost(vector, choice), Failure):
                    return states  # sensitivities would only take longer to fail
        evaluation = self.evaluate(vector, choice)
        return evaluation if isinstance(evaluation, Failure) else CostGradient.of(evaluation)

    @cached_property
    def _adjoint(self) -> AdjointGradient:
        arguments = self.problem, self.field, self.engines, self.assemble
        return AdjointGradient(*arguments, not self.correlated)

    def trajectories(
        self, vector: Array, choice: EngineChoice = UNDECIDED, *, sensitivities: bool = True
    ) -> list[Trajectory] | Failure:
        """Return the trajectories of all conditions at their data times.

        Without sensitivities, integration is several times faster. The Taylor method would need an
        expensive second compilation: it returns sensitivities of small problems anyway.
        """
        if not sensitivities:
            at = self.field, *directions_and_outputs(self.problem), choice
            sensitivities = not self.engines.states_alone(*at) and not (
                self.nodes is None and self._without_sensitivities.passes_events
            )
        outcome = self._maps(sensitivities)(vector, choice)
        ended = self.nodes is None and cut_off().reached and cut_off().raising
        if isinstance(outcome, Failure) and ended:
            raise CutOffError(outcome.reason)
        return outcome

    def trajectories_at(self, points: Array) -> Sequence[list[Trajectory] | None]:
        """Return trajectories without sensitivities at many vectors, see :class:`PointsMap`."""
        maps = self._maps(False)
        return maps.at_points(points) if isinstance(maps, ConditionsMap) else [None] * len(points)

    def assemble(
        self, vector: Array, trajectories: Sequence[Trajectory]
    ) -> tuple[Evaluation, list[ResidualSource]] | Failure:
        """Return the evaluation along the trajectories, and the sources of its residuals.

        The vector may be longer than (n,): the Jacobian then has columns for the further
        sensitivities of the trajectories.
        """
        evaluation = self.evaluate_along(vector, trajectories)
        if isinstance(evaluation, Failure):
            return evaluation
        sources = list(self._residuals.sources)
        priors = len(evaluation.residuals) - self._residuals.count
        if priors:
            sources.append(ResidualSource(-1, np.zeros(priors, dtype=np.intp)))
        return evaluation, sources

    def evaluate_along(
        self, vector: Array, trajectories: Sequence[Trajectory], *, derivatives: bool = True
    ) -> Evaluation | Failure:
        """Return the evaluation at `vector` from the trajectories of all conditions.

        Unknowns that do not act on the trajectories may differ from those of the integration.
        """
        choice = trajectories[-1].choice
        assembled = self._residuals(vector, trajectories, derivatives)
        if assembled is None:
            return replace(self._residuals.fault(vector, trajectories, derivatives), choice=choice)
        residuals, jacobian, squares, log_sds, known_log_sds, information = assembled
        count = self._residuals.rows.measurements
        log_likelihood = self._residuals.rows.log_density_offset - 0.5 * squares
        log_likelihood -= log_sds + known_log_sds + 0.5 * count * math.log(2 * math.pi)
        if self._priors.size:
            prior = self._priors.at(vector)
            if isinstance(prior, str):
                first = self.problem.conditions[0]
                return Failure(first.name, first.t0, prior, choice)
            if information is None and derivatives and not self._priors.gaussian:
                information = jacobian
            residuals = np.concatenate([residuals, prior.residuals])
            jacobian = np.concatenate([jacobian, prior.jacobian])
            if information is not None:
                information = np.concatenate([information, prior.information])
            squares += prior.squares
        seen = best_seen()
        if seen is not None and self.nodes is None:
            seen.note(self.problem, vector, 0.5 * squares + log_sds, squares)
        return Evaluation(
            cost=0.5 * squares + log_sds,
            residuals=residuals,
            jacobian=jacobian,
            objective=squares,
            log_likelihood=log_likelihood if self.given_noise else None,
            choice=choice,
            expected=information,
        )

    def costs_along(self, points: Array, along: Sequence[list[Trajectory] | None]) -> Array | None:
        """Return the costs at many vectors, shape (k, n), or None if each is evaluated alone."""
        plain = self.nodes is None and not self._priors.size
        return noted_costs(self._residuals, self.problem, points, along) if plain else None

    def batch(
        self, vectors: Sequence[Array] | Array, executor: Executor | None = None
    ) -> list[Evaluation | Failure]:
        """Evaluate vectors, shape (count, n), each by the engine that served the previous one."""
        if executor is None:
            choice, evaluations = UNDECIDED, list[Evaluation | Failure]()
            for vector in vectors:
                evaluations.append(self.evaluate(vector, choice))
                choice = evaluations[-1].choice
            return evaluations
        chunks = [c for c in np.array_split(np.asarray(vectors), 16) if len(c)]
        futures = [executor.submit(_evaluate_chunk, self.problem, c) for c in chunks]
        return [e for f in futures for e in f.result()]

    def predictions(
        self, condition: Condition, vector: Array, trajectory: Trajectory, *, noise: bool = False
    ) -> dict[str, Dual]:
        """Return the observables at the trajectory's times.

        With `noise`, they include the other time-dependent quantities in expressions of standard
        deviations.
        """
        also = self._noise_names if noise else ()
        with np.errstate(all="ignore"):
            return observe(self.field, condition, vector, trajectory, also)

    def series_residuals(
        self, vector: Array, trajectories: Sequence[Trajectory]
    ) -> Iterator[SeriesResiduals | Failure]:
        """Yield residuals by observable, condition by condition, or a failure."""
        return self._residuals.by_series(vector, trajectories)


def _evaluate_chunk(problem: Problem, vectors: Array) -> list[Evaluation | Failure]:
    return ForwardMap(problem).batch(vectors)
