"""Multiple shooting: the trajectory in short pieces, joined by the iteration that fits it.

F. Carbonell, Y. Iturria-Medina and J. C. Jimenez, Multiple shooting-Local Linearization method for
the identification of dynamical systems; H. G. Bock, Recent advances in parameter identification
techniques for O.D.E., 1983.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Literal

import numpy as np

from odefit.methods.control import Control, Progress
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Estimate, NodeEvaluator, Start, Status
from odefit.methods.multi_start import MultiStart
from odefit.methods.multiple_shooting import node_placing as placing
from odefit.methods.multiple_shooting.constraints import Constraint, Parsed, node_times, parsed
from odefit.methods.multiple_shooting.gauss_newton import End, Iteration, iterate
from odefit.methods.multiple_shooting.history import History
from odefit.methods.multiple_shooting.linear_problem import LinearProblem
from odefit.methods.multiple_shooting.node_evaluation import (
    determined,
    evaluate_nodes,
    linearisers,
    on_times,
    units,
)
from odefit.methods.multiple_shooting.relaxation import relaxed
from odefit.methods.multiple_shooting.shooting import Linearised, Point, Shooting
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import chosen, guess, sample
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError, did_you_mean
from odefit.problem.option_checks import number, whole
from odefit.problem.problem import Problem
from odefit.problem.state_guesses import states_from_data
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines import EngineName
from odefit.simulation.nodes import Nodes, node_names

States = Literal["relaxed", "data", "simulation"]

FOLLOWED = 0.1
"""Relative difference of costs up to which a single integration follows the answer.

What is left of it goes when the answer is polished."""

CONTINUOUS = 1e-6
"""Discontinuity, relative to the sizes of the states, of an answer that has not converged."""

RESOLVED = 1e-8
"""Singular values of a single integration's scaled Jacobian that count, relative to the largest:
sensitivities are good to about 1e-9."""

SCREENING = 64
"""Where data are sparse, each start is the best of so many points."""

SEARCH = SingleShooting(evaluations=300, tolerance=1e-8, step=1e-7, patience=30)
"""How a start that has not converged goes on."""


@dataclass(frozen=True)
class MultipleShooting:
    """Condensed generalised Gauss-Newton on shooting nodes, damped by natural level functions.

    Attributes
    ----------
    nodes
        How many shooting nodes each experiment has, the one at its t0 among them, spread evenly
        over its data times; or their times (by name of the experiment, if there are several).
        None for as many as the data carry. 1 is the initial value approach.
    integrator
        Of the intervals: ``"auto"`` recognises stiffness, ``"local-linearization"`` is the
        paper's.
    states
        Where nodes begin: on a trajectory that is ``"relaxed"`` from the data towards the
        equations; at the ``"data"``, states that are not measured at their initial value; on a
        ``"simulation"`` from the unknowns' own start.
    start
        Values of unknowns by name to start from, such as those of another method's result.
    constraints
        Conditions on parameters and states: :class:`Constraint`, or their text.
    tolerance
        Largest component of a Gauss-Newton step, relative to the sizes of unknowns and states,
        that counts as none.
    iterations
        Gauss-Newton steps, at most.
    starts
        How many starts; None for as many as the evidence asks for, see :class:`MultiStart`.

    Raises
    ------
    InputError
        An option makes no sense; from :meth:`solve`, nodes or constraints do not fit the
        problem.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("rikitake")
    >>> odefit.fit(problem, odefit.MultipleShooting(starts=1)).status.value
    'converged'
    """

    nodes: int | Sequence[float] | Mapping[str, Sequence[float]] | None = None
    integrator: EngineName = "auto"
    states: States = "relaxed"
    start: Mapping[str, float] | None = None
    constraints: Sequence[Constraint | str] = field(default=())
    tolerance: float = 1e-7
    iterations: int = 100
    starts: int | None = None

    def __post_init__(self) -> None:
        placing.check(self.nodes)
        if isinstance(self.nodes, Integral):
            object.__setattr__(self, "nodes", int(self.nodes))
        if isinstance(self.nodes, Mapping):
            object.__setattr__(self, "nodes", dict(self.nodes))
        engines = ("auto", "heyoka", "casadi", "local-linearization")
        if self.integrator not in engines:
            raise InputError(
                f"MultipleShooting, integrator: expected one of {', '.join(engines)}, "
                f"got {self.integrator!r}"
            )
        if self.states not in ("relaxed", "data", "simulation"):
            raise InputError(
                'MultipleShooting, states: expected "relaxed", "data" or "simulation", '
                f"got {self.states!r}"
            )
        if self.start is not None and not isinstance(self.start, Mapping):
            raise InputError(
                f"MultipleShooting, start: expected values by name of unknown, got {self.start!r}"
            )
        if self.start is not None:
            for key, value in self.start.items():
                number(value, f"MultipleShooting, start, {key}")
            object.__setattr__(self, "start", dict(self.start))  # views cannot be pickled
        if isinstance(self.constraints, str | Constraint):
            object.__setattr__(self, "constraints", (self.constraints,))
        given = self.constraints
        if not (
            isinstance(given, Sequence) and all(isinstance(c, str | Constraint) for c in given)
        ):
            raise InputError(
                "MultipleShooting, constraints: expected a list of texts such as "
                f'"k1 + k2 = 1", or of Constraint, got {given!r}'
            )
        number(self.tolerance, "MultipleShooting, tolerance", least=math.ulp(0.0))
        whole(self.iterations, "MultipleShooting, iterations")
        if self.starts is not None:
            whole(self.starts, "MultipleShooting, starts")

    @property
    def name(self) -> str:
        """For results."""
        kind = "" if self.integrator == "auto" else f"({self.integrator})"
        return f"MultipleShooting{kind}"

    @property
    def engine(self) -> EngineName:
        """Of the forward map."""
        return self.integrator

    @property
    def evaluate_nodes(self) -> NodeEvaluator:
        """What evaluates an end on nodes, see :class:`Estimate`."""
        return evaluate_nodes

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate; results depend on the seed, never on the number of workers."""
        if self.starts == 1:
            # A single start has nothing to share out but its intervals.
            control = replace(control, executor=None, jobs=1, within=control.executor)
        return self.search(problem).solve(problem, control)

    def search(self, problem: Problem) -> MultiStart:
        """Many starts of this method."""
        first = None if self.start is None else tuple(self._given(problem).tolist())
        forward = ForwardMap(problem, self.integrator)
        _, times = self._parts(forward)
        # Its number of starts is no part of the method of one: checkpoints compare that.
        one = replace(self, starts=None)
        screening = SCREENING if _sparse(forward, sum(len(t) for t in times)) else 1
        return MultiStart(one, starts=self.starts, screening=screening, first=first)

    def follow(self, problem: Problem, *, seed: int = 0) -> History:
        """One start from the guess, with all its iterations.

        Raises
        ------
        InputError
            Nodes or constraints do not fit the problem.
        RuntimeError
            The start cannot be integrated.
        """
        control = Control(seed)
        forward = ForwardMap(problem, self.integrator)
        first = self._given(problem) if self.start is not None else guess(problem)
        vector = sample(problem, 0, 1, seed)[0] if first is None else first
        shooting, end = self._iterated(forward, vector, control)
        if end.at is None:
            raise RuntimeError(f"the start cannot be integrated: {end.message}")
        return History(
            problem,
            tuple(end.iterations),
            end.converged,
            end.message,
            shooting.scaling.natural(end.at.point.coordinates),
            end.at.evaluation.objective,
            shooting,
        )

    def on_data(self, forward: ForwardMap, vector: Array) -> tuple[Shooting, Array]:
        """The problem on this method's nodes, and where these begin, shape (nodes, N)."""
        constraints, times = self._parts(forward)
        shooting = on_times(forward, times, constraints, vector)
        return shooting, self._nodes(shooting, vector)

    # One start --------------------------------------------------------------------------------

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """One start; never raises for an integration that fails.

        Parameters
        ----------
        forward
            The problem's forward map.
        index
            Its number.
        start
            Unknowns in natural units, shape (n,).
        """
        began = time.perf_counter()
        start = np.clip(start, forward.problem.lower, forward.problem.upper)
        shooting, end = self._iterated(forward, start, control, index)
        found = self._on_nodes(shooting, end, index, start, control)
        if not self.constraints:
            found = self._followed(forward, shooting, found, end, control)
        return replace(
            found,
            start=start,
            evaluations=found.evaluations + shooting.evaluations,
            seconds=time.perf_counter() - began,
        )

    def _on_nodes(
        self, shooting: Shooting, end: End, index: int, start: Array, control: Control
    ) -> Start:
        """The end of the iteration, its trajectories on nodes."""
        at, tolerance = end.at, CostTolerance.of(shooting.forward)
        steps = max(len(end.iterations) - 1, 0)
        begun = "relaxed, then " if self.states == "relaxed" and shooting.nodes > 1 else ""
        taken = f"{_count(steps, 'Gauss-Newton step')} on {_count(shooting.nodes, 'node')}"
        message = f"{begun}{taken}: {end.message}"
        if at is None:
            lost = (math.inf, Status.FAILED, message, 0, 0.0, math.inf)
            return Start(index, start, start, *lost)
        vector = shooting.scaling.natural(at.point.coordinates)
        continuous = end.iterations[-1].gap < CONTINUOUS
        if not end.converged and (end.impossible or not continuous):
            # What a broken trajectory fits is no answer, nor what breaks a condition.
            stopped = control.should_stop() and not end.impossible
            status = _stopped(control) if stopped else Status.FAILED
            return Start(index, start, vector, math.inf, status, message, 0, 0.0, math.inf)
        status = Status.CONVERGED if end.converged else _stopped(control)
        evaluation = at.evaluation
        exact = evaluation.cost <= tolerance.zero(shooting.forward.accuracy(evaluation.choice))
        objective, cost = evaluation.objective, evaluation.cost
        nodes = self._kept(shooting, at)
        return Start(
            index, start, vector, objective, status, message, 0, 0.0, cost, {}, exact, nodes
        )

    def _followed(
        self, forward: ForwardMap, shooting: Shooting, found: Start, end: End, control: Control
    ) -> Start:
        """The same by a single integration, where that can follow it; else on accurate nodes."""
        tolerance = CostTolerance.of(forward)
        if found.status is Status.CONVERGED:
            assert end.at is not None
            whole = forward.evaluate(found.vector, end.at.choice)
            zero = tolerance.zero(forward.accuracy(whole.choice))
            most = found.cost + max(FOLLOWED * abs(found.cost), zero, tolerance.absolute)
            assert end.problem is not None
            if (
                isinstance(whole, Evaluation)
                and whole.cost <= most
                and _resolves(whole, end.problem)
            ):
                best = replace(found, objective=whole.objective, cost=whole.cost, nodes=None)
            else:
                best = self._sharpened(forward.problem, found, control)
            if best.exact or not _sparse(forward, shooting.nodes):
                return best
            origin = found.start
        else:
            best, origin = found, found.vector
            if end.iterations:
                # Where nothing determines a direction, the iteration may run away along it.
                begun = shooting.scaling.natural(end.iterations[0].point.coordinates)
                origin = min((origin, begun), key=forward.cost)
        if control.should_stop():
            return best
        again = SEARCH.run(forward, found.index, origin, control)
        if again.status is Status.FAILED or again.cost >= best.cost:
            return best
        return replace(again, message=f"{found.message}; then single shooting: {again.message}")

    def _sharpened(self, problem: Problem, found: Start, control: Control) -> Start:
        """An answer on nodes, its intervals integrated as well as can be."""
        assert found.nodes is not None
        forward = ForwardMap(problem)
        shooting = on_times(forward, found.nodes.times, [], found.vector, control.within)
        point = Point(
            shooting.scaling.coordinates(found.vector), np.concatenate(list(found.nodes.values))
        )
        end = self._iterate(shooting, [], point, control, found.index)
        if end.at is None or not end.converged:
            return found
        evaluation = end.at.evaluation
        return replace(
            found,
            vector=shooting.scaling.natural(end.at.point.coordinates),
            objective=evaluation.objective,
            cost=evaluation.cost,
            nodes=self._kept(shooting, end.at),
        )

    # Parts ------------------------------------------------------------------------------------

    def _parts(self, forward: ForwardMap) -> tuple[list[Parsed], list[Array]]:
        """Constraints and the times of nodes."""
        problem = forward.problem
        constraints = parsed(problem, self.constraints)
        size = len(node_names(forward.field, problem.conditions))
        times = []
        for i, condition in enumerate(problem.conditions):
            cuts = placing.place_nodes(problem, condition, self.nodes, size)
            times.append(np.unique(np.concatenate([cuts, node_times(constraints, i)])))
        return constraints, times

    def _kept(self, shooting: Shooting, at: Linearised) -> Nodes:
        """The nodes of the answer, with the constraints that hold on it."""
        given = [Constraint(c) if isinstance(c, str) else c for c in self.constraints]
        first = shooting.problem.conditions[0].name
        return replace(
            shooting.nodes_of(at.point),
            constraints=tuple(c.text for c in given),
            experiments=tuple(c.experiment or first for c in given),
        )

    def _iterated(
        self, forward: ForwardMap, vector: Array, control: Control, index: int = 0
    ) -> tuple[Shooting, End]:
        constraints, times = self._parts(forward)
        shooting = on_times(forward, times, constraints, vector, control.within)
        start = Point(shooting.scaling.coordinates(vector), self._nodes(shooting, vector))
        if self.states == "relaxed" and shooting.nodes > len(times):
            held = np.array([u.kind == "parameter" for u in forward.problem.unknowns], dtype=bool)
            sizes = units(shooting, start.coordinates, start.coordinates, 0.1)
            found = relaxed(shooting, start, sizes, held, control.should_stop)
            if isinstance(found, Failure):
                return shooting, End(None, None, False, str(found))
            start = found
        return shooting, self._iterate(shooting, constraints, start, control, index)

    def _iterate(
        self,
        shooting: Shooting,
        constraints: Sequence[Parsed],
        start: Point,
        control: Control,
        index: int,
    ) -> End:
        equations, inequalities = linearisers(shooting, constraints)
        first = start.coordinates

        def report(iteration: Iteration, number: int) -> None:
            if control.report is not None:
                text = (
                    f"start {index + 1}, iteration {number}: level {iteration.level:.2g}, "
                    f"damping {iteration.damping:.2g}, gap {iteration.gap:.1e}"
                )
                control.report(Progress(index, 0, math.inf, 0, text))

        return iterate(
            shooting,
            start,
            lambda z: units(shooting, z, first, 0.01),
            equations,
            inequalities,
            tolerance=self.tolerance,
            most=self.iterations,
            stop=control.should_stop,
            report=report,
        )

    def _nodes(self, shooting: Shooting, vector: Array) -> Array:
        """Where the nodes begin, shape (nodes, N)."""
        problem = shooting.problem
        parts = []
        for condition, times in zip(problem.conditions, shooting.node_times, strict=True):
            values = states_from_data(problem, condition, shooting.names, vector, times)
            if self.states == "simulation":
                path = shooting.forward.trajectory(
                    vector, condition.name, times, sensitivities=False
                )
                if not isinstance(path, Failure) and np.isfinite(path.states).all():
                    values[:, : path.states.shape[1]] = path.states
            parts.append(values)
        return np.concatenate(parts)

    def _given(self, problem: Problem) -> Array:
        # Fixed values are no harm: results have them too.
        known = {*problem.keys, *problem.parameters, *problem.model.states}
        for key in self.start or {}:
            if key not in known and key.partition("[")[0] not in known:
                raise InputError(
                    f"MultipleShooting, start: there is no {key!r}{did_you_mean(key, problem.keys)}"
                )
        return chosen(problem, self.start)


def _resolves(whole: Evaluation, problem: LinearProblem) -> bool:
    """Whether a single integration tells apart what nodes do.

    Where all sensitivities grow along one direction, they soon differ by rounding alone: what
    they say of the optimum and of standard errors is then wrong, though the trajectory is not.
    """
    norms = np.linalg.norm(whole.jacobian, axis=0)
    scaled = whole.jacobian / np.where(norms > 0, norms, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False)
    told = int(np.sum(values > RESOLVED * values.max(initial=0.0)))
    return told >= determined(problem, whole.jacobian.shape[1])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _sparse(forward: ForwardMap, nodes: int) -> bool:
    """Fewer data than values of nodes: these may lead astray, and single shooting is tried too."""
    size = len(node_names(forward.field, forward.problem.conditions))
    return nodes * size > forward.problem.size


def _stopped(control: Control) -> Status:
    if control.interrupted.is_set():
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if control.out_of_time else Status.NOT_CONVERGED
