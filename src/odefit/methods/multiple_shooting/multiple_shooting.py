"""Multiple shooting: the trajectory on short intervals, joined by the iteration that fits it.

F. Carbonell, Y. Iturria-Medina and J. C. Jimenez, Multiple shooting-Local Linearization method for
the identification of dynamical systems; H. G. Bock, Recent advances in parameter identification
techniques for O.D.E., 1983. The algorithm itself is in :mod:`odefit.methods.shooting`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.common.option_checks import number, whole
from odefit.common.packages import require
from odefit.methods.estimate import Estimate
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.shooting.constraints import Constraint
from odefit.methods.shooting.gauss_newton import Iteration
from odefit.methods.shooting.node_placing import check
from odefit.methods.shooting.search import ShootingSearch, States, is_sparse
from odefit.methods.shooting.shooting_problem import ShootingProblem
from odefit.methods.starts import check_start, chosen, guess, sample
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.simulation import Failure, ForwardMap, Simulation, simulated
from odefit.simulation.engines.registry import EngineName, fit_engines
from odefit.simulation.nodes import Nodes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class History:
    """The Gauss-Newton iterations of one start.

    Attributes
    ----------
    problem
        The problem that was fitted.
    iterations
        The iterations in order; the last one is the end.
    converged
        Whether the last step was negligible.
    message
        The reason for the end of the iteration, in words.
    vector
        Unknowns at the end, shape (n,).
    objective
        Objective at the end.
    shooting
        The problem on nodes.
    """

    problem: Problem
    iterations: tuple[Iteration, ...]
    converged: bool
    message: str
    vector: Array
    objective: float
    shooting: ShootingProblem

    def table(self) -> pd.DataFrame:
        """Return a table with a row for each iteration.

        Columns are ``objective`` of the discontinuous trajectory and ``gap``, its largest
        discontinuity relative to the sizes of the states. ``level`` is the natural level function
        (length of the full step), ``damping`` the fraction of it that was taken, and
        ``undetermined`` the number of undetermined directions. The unknowns follow.
        """
        require("pandas")
        import pandas as pd

        rows = []
        for iteration in self.iterations:
            values = self.shooting.scaling.natural(iteration.point.coordinates)
            row = {
                "objective": iteration.objective,
                "gap": iteration.gap,
                "level": iteration.level,
                "damping": iteration.damping,
                "undetermined": iteration.undetermined,
            }
            rows.append(row | dict(zip(self.problem.keys, values, strict=True)))
        return pd.DataFrame(rows).rename_axis("iteration")

    def nodes(self, iteration: int = -1) -> Nodes:
        """Return the shooting nodes of an iteration."""
        point = self.iterations[iteration].point
        return self.shooting.nodes_of(point)

    def trajectory(
        self, iteration: int = -1, experiment: str | None = None, points: int = 20
    ) -> Simulation:
        """Return the discontinuous trajectory of an iteration (Figure 1 of the paper).

        Each interval has `points` points; the default `experiment` is the first. Each node is
        preceded by the values at the end of the previous interval, with NaN between both. Raises
        RuntimeError if the trajectory cannot be integrated.
        """
        condition = self.problem.condition(experiment)
        number = self.problem.conditions.index(condition)
        node_times = self.shooting.node_times[number]
        ends = np.append(node_times[1:], condition.times[-1])
        # Just before a node the trajectory still belongs to the previous interval.
        grids = [
            np.append(np.linspace(a, b, points, endpoint=False), np.nextafter(b, a))
            for a, b in zip(node_times, ends, strict=True)
            if b > a
        ]
        times = np.unique(np.concatenate(grids))
        point = self.iterations[iteration].point
        forward = ForwardMap(self.problem, nodes=self.shooting.nodes_of(point))
        vector = self.shooting.scaling.natural(point.coordinates)
        simulation = simulated(self.problem, vector, times, condition.name, forward=forward)
        if isinstance(simulation, Failure):
            raise RuntimeError(f"the trajectory cannot be integrated: {simulation}")  # noqa: TRY004
        breaks = np.searchsorted(simulation.times, node_times[1:])
        return Simulation(
            np.insert(simulation.times, breaks, node_times[1:]),
            {k: np.insert(v, breaks, np.nan) for k, v in simulation.states.items()},
            {k: np.insert(v, breaks, np.nan) for k, v in simulation.observables.items()},
        )


SCREENED_POINTS = 64  # number of points of which each start is the best, if data are sparse


@dataclass(frozen=True)
class MultipleShooting(Method):
    """Run a damped generalised Gauss-Newton method with the states at shooting nodes as unknowns.

    Attributes
    ----------
    nodes
        Number of shooting nodes of each experiment, including the one at its t0, spread evenly over
        its data times. Or the times of the nodes (by name of the experiment, if there are several).
        None for as many as the data support. 1 is the initial value approach.
    integrator
        Engine that integrates the intervals: ``"auto"`` recognises stiffness,
        ``"local-linearization"`` is the paper's.
    states
        Start values of the nodes. They are on a trajectory ``"relaxed"`` from the data towards the
        equations, or on a ``"simulation"`` from the unknowns' start values. With ``"data"`` they
        are the data, and unmeasured states have their initial values.
    start
        Values of unknowns by name to start from, such as those of another method's result.
    constraints
        Constraints on parameters and states: :class:`Constraint`, or their text.
    tolerance
        Largest component of a Gauss-Newton step, relative to the sizes of unknowns and states, that
        counts as zero.
    iterations
        Largest number of Gauss-Newton steps.
    starts
        Number of starts; None lets the evidence decide, see :class:`MultiStart`.

    Raises
    ------
    InputError
        An option has an unusable value; from :meth:`solve`, nodes or constraints do not fit the
        problem.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("rikitake")
    >>> odefit.fit(problem, odefit.MultipleShooting(starts=1)).status.value
    'converged'
    """

    start_option: ClassVar[str] = "start"
    nodes: int | Sequence[float] | Mapping[str, Sequence[float]] | None = None
    integrator: EngineName = "auto"
    states: States = "relaxed"
    start: Mapping[str, float] | None = None
    constraints: Sequence[Constraint | str] = field(default=())
    tolerance: float = 1e-7
    iterations: int = 100
    starts: int | None = None

    def __post_init__(self) -> None:
        check(self.nodes)
        if isinstance(self.nodes, Integral):
            object.__setattr__(self, "nodes", int(self.nodes))
        if isinstance(self.nodes, Mapping):
            object.__setattr__(self, "nodes", dict(self.nodes))
        engines = fit_engines()
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
        check_start(self.start, "MultipleShooting")
        if self.start is not None:
            object.__setattr__(self, "start", dict(self.start))  # views cannot be pickled
        if isinstance(self.constraints, str | Constraint):
            object.__setattr__(self, "constraints", (self.constraints,))
        constraints = self.constraints
        if not (
            isinstance(constraints, Sequence)
            and all(isinstance(c, str | Constraint) for c in constraints)
        ):
            raise InputError(
                "MultipleShooting, constraints: expected a list of texts such as "
                f'"k1 + k2 = 1", or of Constraint, got {constraints!r}'
            )
        number(self.tolerance, "MultipleShooting, tolerance", least=math.ulp(0.0))
        whole(self.iterations, "MultipleShooting, iterations")
        if self.starts is not None:
            whole(self.starts, "MultipleShooting, starts")

    @property
    def name(self) -> str:
        """The method's name in results."""
        return self._search.name

    @property
    def _search(self) -> ShootingSearch:
        """One start of this method."""
        return ShootingSearch(
            nodes=self.nodes,
            integrator=self.integrator,
            states=self.states,
            constraints=self.constraints,
            tolerance=self.tolerance,
            iterations=self.iterations,
        )

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns; results depend on the seed, never on the number of workers."""
        if self.starts == 1:
            # A single start has nothing to distribute but its intervals.
            control = replace(control, executor=None, jobs=1, within=control.executor)
        return self.search(problem).solve(problem, control)

    def search(self, problem: Problem) -> MultiStart:
        """Return the search from many starts by which this method solves a problem."""
        refuse_integrated_features(problem, "multiple shooting", on_nodes=True)
        first = None if self.start is None else tuple(self._start_vector(problem).tolist())
        forward = ForwardMap(problem, self.integrator)
        _, times = self._search.constraints_and_times(forward)
        sparse = is_sparse(forward, sum(len(t) for t in times))
        screening = SCREENED_POINTS if sparse else 1
        return MultiStart(self._search, starts=self.starts, screening=screening, first=first)

    def follow(self, problem: Problem, *, seed: int = 0) -> History:
        """Run one start from the guess, and return all its iterations.

        Raises InputError if nodes or constraints do not fit the problem, RuntimeError if the start
        cannot be integrated.
        """
        refuse_integrated_features(problem, "multiple shooting", on_nodes=True)
        forward = ForwardMap(problem, self.integrator)
        first = self._start_vector(problem) if self.start is not None else guess(problem)
        vector = sample(problem, 0, 1, seed)[0] if first is None else first
        shooting, end = self._search.iterated(forward, vector, Control(seed))
        if end.at is None:
            raise RuntimeError(f"the start cannot be integrated: {end.message}")
        return History(
            problem=problem,
            iterations=tuple(end.iterations),
            converged=end.converged,
            message=end.message,
            vector=shooting.scaling.natural(end.at.point.coordinates),
            objective=end.at.evaluation.objective,
            shooting=shooting,
        )

    def _start_vector(self, problem: Problem) -> Array:
        """Return the given start values, shape (n,)."""
        # Fixed values are allowed: results contain them too.
        known = {*problem.keys, *problem.parameters, *problem.model.states}
        for key in self.start or {}:
            if key not in known and key.partition("[")[0] not in known:
                raise InputError(
                    f"MultipleShooting, start: there is no {key!r}{did_you_mean(key, problem.keys)}"
                )
        return chosen(problem, self.start)
