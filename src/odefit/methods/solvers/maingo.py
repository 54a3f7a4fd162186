"""MAiNGO, a global solver by McCormick relaxations (Bongartz et al., 2018).

It branches on all its variables and needs bounds for them. With an explicit scheme every point
follows from earlier ones, and only the unknowns remain as variables (reduced space).
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Literal

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.errors import InputError
from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance, data_variation
from odefit.expressions.algebras import NUMPY
from odefit.methods.solvers.solver import Answer, BoundingAlgebra, Limits, Outcome, make_answer

OUTCOMES = {
    "GLOBALLY_OPTIMAL": Outcome.SOLVED,
    "FEASIBLE_POINT": Outcome.LIMIT,
    "NO_FEASIBLE_POINT_FOUND": Outcome.LIMIT,
    "BOUND_TARGETS": Outcome.LIMIT,
    "INFEASIBLE": Outcome.INFEASIBLE,
}
"""Outcomes by MAiNGO's return code; all others are failures."""

SMOOTH_FUNCTIONS = frozenset("exp log sqrt sin cos tan asin acos atan sinh cosh tanh".split())
"""Functions that MAiNGO can bound."""


class MaingoAlgebra(BoundingAlgebra):
    """MAiNGO's variables, and floats where values are known."""

    solver = "MAiNGO"

    def constant_power(self, base: Any, exponent: float) -> Any:
        import maingopy

        return maingopy.pow(base, int(exponent) if exponent == int(exponent) else exponent)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        import maingopy

        x = arguments[0]
        if function == "log10":
            return self.call("log", [x]) / math.log(10.0)
        if function not in SMOOTH_FUNCTIONS:
            self.refuse(function)
        if isinstance(x, float):
            return float(NUMPY.call(function, [x]))
        return getattr(maingopy, function)(x)


@dataclass(frozen=True)
class Maingo:
    """MAiNGO, which proves a bound for its answer.

    Attributes
    ----------
    resolution
        Differences of the objective below this fraction of its scale, the data's sum of squares
        about their means, count as zero.
    options
        MAiNGO's settings by name, such as ``{"BAB_probing": 1}``.
    """

    resolution: float = 1e-6
    options: dict[str, float] = field(default_factory=dict)
    name: str = "MAiNGO"
    scope: Literal["global"] = "global"

    def missing(self) -> str | None:
        """Return the name of the package to install, if maingopy is missing."""
        if importlib.util.find_spec("maingopy") is None:
            return 'MAiNGO is not installed: pip install "odefit[maingo]"'
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the global optimum within the bounds.

        Raises InputError if MAiNGO is not installed or does not know an option, if a variable has
        no bounds, or if the model uses a function that it cannot bound.
        """
        if (reason := self.missing()) is not None:
            raise InputError(reason)
        import maingopy

        a = assemble(instance.discretisation, instance.formulation)
        order = None
        if isinstance(instance.formulation, Baseline):
            order = explicit_order(instance.discretisation)
        if order is None:
            space: _ReducedSpace | _FullSpace = _FullSpace(a, instance)
        else:
            space = _ReducedSpace(a, order, instance)
        scale = data_variation(instance.discretisation)
        model = _model(maingopy, space, scale)  # MAiNGO does not keep it alive
        run = maingopy.MAiNGO(model)
        settings: dict[str, Any] = {
            "epsilonR": limits.gap,
            "epsilonA": max(limits.absolute_gap / scale, self.resolution),
            "loggingDestination": maingopy.LOGGING_NONE,
            "writeResultFile": False,
        }
        settings |= dict.fromkeys(
            ("LBP_verbosity", "UBP_verbosity", "BAB_verbosity"), maingopy.VERB_NONE
        )
        if limits.seconds is not None:
            settings["maxTime"] = max(limits.seconds, 0.01)
        for option, value in {**settings, **self.options}.items():
            if not run.set_option(option, value):
                raise InputError(f"MAiNGO: option {option} = {value!r} is not accepted")
        began = time.perf_counter()
        try:
            status = run.solve().name
        except maingopy.MAiNGOException as error:
            if isinstance(space.refusal, InputError):
                raise space.refusal from error
            if space.refusal is not None:
                raise InputError(
                    f"MAiNGO: the model is not defined at its known values ({space.refusal})"
                ) from error
            seconds = time.perf_counter() - began
            words = " ".join(str(error).split())
            return make_answer(instance, Outcome.FAILED, None, None, None, seconds, words)
        seconds = time.perf_counter() - began
        values = unknowns = None
        if status in {"GLOBALLY_OPTIMAL", "FEASIBLE_POINT", "BOUND_TARGETS"}:
            values, unknowns = space.point(np.array(run.get_solution_point()))
        bound = None
        if status != "INFEASIBLE":
            bound = _bound(float(run.get_final_LBD()), self.resolution, scale, space.likelihood)
        words = status.lower().replace("_", " ")
        outcome = OUTCOMES.get(status, Outcome.FAILED)
        iterations = int(run.get_iterations())
        return make_answer(instance, outcome, values, unknowns, bound, seconds, words, iterations)


def _bound(bound: float, resolution: float, scale: float, likelihood: bool) -> float | None:
    """Return a lower bound of the objective, minus the differences that MAiNGO neglects."""
    proved = math.isfinite(bound) and abs(bound) < 1e50
    bound = (bound - resolution) * scale if proved else -math.inf
    if not likelihood:
        return max(bound, 0.0)  # of a sum of squares
    return bound if proved else None


def _model(maingopy: Any, space: _ReducedSpace | _FullSpace, scale: float) -> Any:
    class Model(maingopy.MAiNGOmodel):  # type: ignore[misc]
        def get_variables(self) -> list[Any]:
            continuous = maingopy.VT_CONTINUOUS
            return [
                maingopy.OptimizationVariable(maingopy.Bounds(low, high), continuous, name)
                for low, high, name in space.variables()
            ]

        def get_initial_point(self) -> list[float]:
            return space.start()

        def evaluate(self, variables: Sequence[Any]) -> Any:
            try:
                objective, equal, below = space.evaluate(list(variables))
            except (InputError, ArithmeticError, ValueError) as error:
                space.refusal = error  # MAiNGO passes on only its text
                raise
            result = maingopy.EvaluationContainer()
            result.objective = objective * (1.0 / scale)
            result.eq = equal
            result.ineq = below
            return result

    return Model()


class _Space:
    """The `variables` of the assembly as MAiNGO's variables.

    `refusal` is the exception of the last evaluation; a `likelihood` may be negative.
    """

    def __init__(self, a: Assembly, variables: IntArray, instance: Instance) -> None:
        self._a = a
        self._variables: list[int] = variables.tolist()
        self._start = a.start(instance)
        self.refusal: Exception | None = None
        self.likelihood = a.likelihood
        open_ends = [
            k for k in self._variables if not (np.isfinite(a.lower[k]) and np.isfinite(a.upper[k]))
        ]
        points = [k for k in open_ends if k < a.at_points]
        if points or any(
            k >= a.at_points + len(a.discretisation.problem.unknowns) for k in open_ends
        ):
            raise InputError(
                f"MAiNGO needs bounds for every variable, and {a.name(open_ends[0])} has none; "
                "take an explicit scheme (euler, runge-kutta) with the Baseline formulation, "
                "which leaves the unknowns alone as variables, or the solver scip"
            )
        if open_ends:
            names = ", ".join(a.name(k) for k in open_ends)
            raise InputError(
                f"MAiNGO needs a lower and an upper bound of every unknown; give them for {names}"
            )

    def variables(self) -> list[tuple[float, float, str]]:
        a = self._a
        return [(float(a.lower[k]), float(a.upper[k]), f"v{k}") for k in self._variables]

    def start(self) -> list[float]:
        return [float(self._start[k]) for k in self._variables]

    def objective(self, w: Sequence[Any]) -> Any:
        return reduce(add, self._a.objective_terms(w, MaingoAlgebra()))


class _FullSpace(_Space):
    """The full space: every variable of unknown value is a variable of MAiNGO."""

    def __init__(self, a: Assembly, instance: Instance) -> None:
        super().__init__(a, np.flatnonzero(a.lower != a.upper), instance)

    def evaluate(self, variables: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        a = self._a
        w: list[Any] = a.lower.tolist()
        for k, variable in zip(self._variables, variables, strict=True):
            w[k] = variable
        outputs = [w] + [
            [o for instance in a.evaluated(b, w, MaingoAlgebra()) for o in instance]
            for b in a.discretisation.blocks
        ]
        equal, below = [], []
        for low, high, parts in a.rows():
            terms = [
                float(weight) * output_row[number]
                for output_row, (numbers, weights) in zip(outputs, parts, strict=True)
                for number, weight in zip(numbers, weights, strict=True)
            ]
            row = reduce(add, terms)
            if isinstance(row, float):
                continue  # everything is known
            if low == high:
                equal.append(row - low)
                continue
            if math.isfinite(high):
                below.append(row - high)
            if math.isfinite(low):
                below.append(low - row)
        return self.objective(w), equal, below

    def point(self, x: Array) -> tuple[Array, Array]:
        w = self._a.lower.copy()
        w[self._variables] = x
        return self._a.unpack(w)


class _ReducedSpace(_Space):
    """The reduced space: only unknowns are MAiNGO's; rows in `order` give values at points."""

    def __init__(self, a: Assembly, order: list[tuple[int, int]], instance: Instance) -> None:
        super().__init__(a, np.arange(a.at_points, a.size), instance)
        self._order = order
        self._rows = list(a.rows())

    def evaluate(self, variables: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        w = self._filled(variables, MaingoAlgebra())
        return self.objective(w), [], []

    def point(self, x: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            w = self._filled([np.float64(v) for v in x], NUMPY)
        return self._a.unpack(np.array([float(v) for v in w]))

    def _filled(self, unknowns: list[Any], algebra: Any) -> list[Any]:
        a = self._a
        w: list[Any] = [*a.lower.tolist()[: a.at_points], *unknowns]
        outputs: dict[tuple[int, int], list[Any]] = {}  # outputs of blocks, by instance
        blocks = a.discretisation.blocks
        for row, target in self._order:
            _, _, parts = self._rows[row]
            factor, terms = 1.0, []
            for number, weight in zip(*parts[0], strict=True):
                if number == target:
                    factor = float(weight)
                else:
                    terms.append(float(weight) * w[number])
            for k, (numbers, weights) in enumerate(parts[1:]):
                for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
                    instance, output = divmod(number, blocks[k].outputs)
                    if (k, instance) not in outputs:
                        outputs[k, instance] = a.evaluated_at(blocks[k], instance, w, algebra)
                    terms.append(weight * outputs[k, instance][output])
            total = reduce(add, terms)
            w[target] = total * (-1.0 / factor)
        return w


def explicit_order(d: Discretisation) -> list[tuple[int, int]] | None:
    """Return rows and the variables at points that they give, in an order of evaluation, if any."""
    count = d.points * len(d.variables)
    size = len(d.variables)
    fixed = (d.lower == d.upper).ravel()
    waiting: list[set[int]] = []
    by_variable: dict[int, list[int]] = {}
    for row in range(d.rows.values.shape[0]):
        needed = set(_columns(d.rows.values, row))
        inside = set()
        for block, weights in zip(d.blocks, d.rows.outputs, strict=True):
            for number in _columns(weights, row):
                if block.points is not None:
                    first = int(block.points[number // block.outputs]) * size
                    inside |= set(range(first, first + size))
        # A variable inside an expression can be used but not solved for.
        waiting.append({k for k in needed | inside if not fixed[k]})
        waiting[-1] |= {-1 - k for k in needed & inside if not fixed[k]}
        for k in waiting[-1]:
            by_variable.setdefault(k if k >= 0 else -1 - k, []).append(row)
    order: list[tuple[int, int]] = []
    ready = [row for row, needed in enumerate(waiting) if _single(needed)]
    while ready:
        row = ready.pop()
        if not _single(waiting[row]):
            if not waiting[row]:
                return None  # one equation too many for the remaining variables
            continue
        (target,) = waiting[row]
        order.append((row, target))
        for other in dict.fromkeys(by_variable[target]):
            waiting[other] -= {target, -1 - target}
            if other != row and _single(waiting[other]):
                ready.append(other)
    complete = len(order) == count - int(fixed.sum()) == len(waiting)
    return order if complete else None


def _single(needed: set[int]) -> bool:
    return len(needed) == 1 and next(iter(needed)) >= 0


def _columns(matrix: Any, row: int) -> list[int]:
    columns: list[int] = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].tolist()
    return columns
