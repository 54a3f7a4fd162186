"""The campaign's comparison with COPASI: scatter search, then Levenberg and Marquardt's method.

States become global quantities of type "ode", observables assignments, unknown initial values fit
items like the parameters; known inputs are their polynomials piece by piece, events happen just
after their times, because a measurement there sees the values before. Weights are those of the
package. Settings of both methods are COPASI's own; the integration has the tolerances of all peers.
"""

from __future__ import annotations

import re
import tempfile
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.problem.errors import InputError
from odefit.problem.expressions import TIME, Expression
from studies.automatic_peers import ABSOLUTE, RELATIVE, Found, check_plain, weights

if TYPE_CHECKING:
    from odefit.problem.arrays import Array
    from odefit.problem.experiment import Input
    from odefit.problem.problem import Problem

METHODS = ("Scatter Search", "Levenberg - Marquardt")
"""What is run, one after the other, each from where the last one ended."""

AFTER = 1e-9
"""How long after its time an event happens, relative to the time of the last measurement."""


def copasi(problem: Problem, seed: int, limit: float) -> Found:
    """Fit by COPASI; what it has found at the time limit is the answer there.

    Raises
    ------
    InputError
        basico is missing, or the problem cannot be stated in this way.
    """
    try:
        import basico  # noqa: F401 - the message comes before anything is done
    except ImportError:
        raise InputError(
            "COPASI is missing, so it is not compared; `pip install copasi-basico` installs it"
        ) from None
    check_plain(problem)
    _check_one_condition(problem)
    deadline = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        model = _Model(problem, folder)
        vector = None
        late = False
        for number, method in enumerate(METHODS):
            left = deadline - time.monotonic()
            if left <= 0:
                late = True
                break
            vector = model.estimated(method, seed + 1, left, randomise=number == 0)
        late = late or time.monotonic() >= deadline
        model.close()
    return Found(vector, 1, late, ", then ".join(METHODS))


def _check_one_condition(problem: Problem) -> None:
    if len(problem.conditions) > 1:
        raise InputError("the comparison with COPASI is for problems of one experiment")
    if not (np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all()):
        raise InputError("COPASI's scatter search needs finite bounds")


class _Model:
    """The problem as COPASI's current model, with its parameter estimation task."""

    def __init__(self, problem: Problem, folder: str) -> None:
        import basico

        self._problem = problem
        (condition,) = problem.conditions
        self._condition = condition
        self._shift = float(condition.t0)
        basico.new_model(name="model", notes="")
        middle = 0.5 * (problem.lower + problem.upper)
        self._items: dict[int, str] = {}
        events = {name for _, assigned in condition.events for name in assigned}
        for name, bound in condition.scalars.items():
            changes = name in events
            self._quantity(name, bound, middle, "ode" if changes else "fixed")
        for name in problem.model.ode:
            self._quantity(name, condition.initial[name], middle, "ode")
        for name, rhs in problem.model.ode.items():
            basico.set_parameters(_safe(name), exact=True, expression=self._text(rhs))
        for name in events & set(condition.scalars):
            basico.set_parameters(_safe(name), exact=True, expression="0")
        for number, (at, assigned) in enumerate(condition.events):
            if at >= condition.times[-1]:
                continue
            late = float(at - self._shift + AFTER * (condition.times[-1] - self._shift))
            basico.add_event(
                f"event {number}",
                trigger=f"Time > {late!r}",
                assignments=[
                    (f"Values[{_safe(n)}]", _bare(self._text(what))) for n, what in assigned.items()
                ],
            )
        self._measure(folder)
        self._set_items()
        basico.set_task_settings(
            basico.T.TIME_COURSE,
            {"method": {"Relative Tolerance": RELATIVE, "Absolute Tolerance": ABSOLUTE}},
        )

    def _quantity(self, name: str, bound: Any, middle: Array, kind: str) -> None:
        """Add a parameter, constant or state with its initial value."""
        import basico

        settings: dict[str, Any] = {"type": kind}
        if isinstance(bound, Expression):
            settings |= {"initial_expression": self._text(bound, initial=True)}
        elif isinstance(bound, float):
            settings |= {"initial_value": bound}
        else:
            settings |= {"initial_value": float(middle[bound])}
            self._items[int(bound)] = f"Values[{_safe(name)}].InitialValue"
        basico.add_parameter(_safe(name), **settings)

    def _text(self, expression: Expression, *, initial: bool = False) -> str:
        """Return an expression in COPASI's notation."""
        problem = self._problem
        quantities = {*problem.model.ode, *self._condition.scalars}
        ending = ".InitialValue" if initial else ""

        def replaced(match: re.Match[str]) -> str:
            name = match[0]
            if name in quantities:
                return f"{{Values[{_safe(name)}]{ending}}}"
            if name in self._condition.inputs:
                return _pieces(self._condition.inputs[name], self._shift)
            return f"({{Time}} + {self._shift!r})" if name == TIME else name

        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", replaced, str(expression))

    def _measure(self, folder: str) -> None:
        """Add observables and data, with weights: columns that are scaled by them.

        COPASI has one weight for a column. A column that is multiplied by the square root of its
        weights, as its observable is, has them row by row; here all are equal, or it is refused.
        """
        import basico
        import pandas as pd

        condition = self._condition
        columns = {"Time": condition.times - self._shift}
        scales = []
        for name, series in condition.series.items():
            weight = weights(self._problem, condition, name)
            if np.ptp(weight) > 0:
                raise InputError("COPASI's weights are equal within a series")
            text = self._text(self._problem.model.observables[name])
            basico.add_parameter(f"obs_{name}", type="assignment", expression=text)
            values = np.full(len(condition.times), np.nan)
            values[series.rows] = series.values
            columns[f"Values[obs_{name}]"] = values
            scales.append(float(weight[0]))
        basico.add_experiment("run", pd.DataFrame(columns), data_dir=folder)
        model = basico.get_current_model()
        experiment = basico.get_experiment("run")
        experiment.setNormalizeWeightsPerExperiment(False)
        container = model.getModel().getMathContainer()
        experiments = model.getTask("Parameter Estimation").getProblem().getExperimentSet()
        # A weight equal to COPASI's own is not kept but follows it: its own must be settled first.
        experiment.calculateWeights()
        experiments.compile(container)
        largest = max(scales)
        for column, scale in enumerate(scales, start=1):
            experiment.getObjectMap().setScale(column, (scale / largest) ** 2)
        experiments.compile(container)
        self.scale = largest**2

    def _set_items(self) -> None:
        import basico

        problem = self._problem
        basico.set_fit_parameters(
            [
                {
                    "name": self._items[i],
                    "lower": float(problem.lower[i]),
                    "upper": float(problem.upper[i]),
                    "start": 0.5 * float(problem.lower[i] + problem.upper[i]),
                }
                for i in range(len(problem.unknowns))
            ]
        )

    def estimated(self, method: str, seed: int, seconds: float, *, randomise: bool) -> Array | None:
        """Run a method, from a random start or from the last solution; return the best point."""
        import basico
        import COPASI
        from basico.callbacks import set_default_handler

        model = basico.get_current_model()
        task = model.getTask("Parameter Estimation")
        # COPASI counts whole seconds.
        set_default_handler(COPASI.CProcessReport(max(int(np.ceil(seconds)), 1)))
        settings = {"Seed": seed, "Random Number Generator": 1} if randomise else {}
        basico.run_parameter_estimation(
            method=method,
            randomize_start_values=randomise,
            calculate_statistics=False,
            update_model=True,
            settings={"method": settings},
        )
        solution = task.getProblem().getSolutionVariables(False)
        values = np.array([float(solution.get(i)) for i in range(solution.size())])
        return values if len(values) == len(self._items) and np.isfinite(values).all() else None

    def objective(self, vector: Array) -> float:
        """Return COPASI's objective at given unknowns, in the package's units."""
        import basico

        task = basico.get_current_model().getTask("Parameter Estimation")
        problem = task.getProblem()
        for i, value in enumerate(vector):
            problem.getOptItem(i).setStartValue(float(value))
        basico.run_parameter_estimation(
            method="Current Solution Statistics",
            randomize_start_values=False,
            calculate_statistics=False,
            update_model=False,
        )
        return float(problem.getSolutionValue()) * self.scale

    @staticmethod
    def close() -> None:
        """Forget the model and the time limit."""
        import basico
        from basico.callbacks import reset_default_handler

        reset_default_handler()
        basico.remove_datamodel(basico.get_current_model())


def _safe(name: str) -> str:
    """Return a name that COPASI cannot take for a function, a constant or a keyword."""
    return f"q_{name}"


def _bare(text: str) -> str:
    """Return an expression as events take it, without braces."""
    return text.replace("{", "").replace("}", "")


def _pieces(given: Input, shift: float) -> str:
    """Return an input as polynomials between its knots, in a tree of conditions."""
    time_ = f"({{Time}} + {shift!r})"
    rows = given.polynomials()

    def piece(k: int) -> str:
        a, b, c, d = (float(v) for v in rows[k])
        tau = f"({time_} - {float(given.times[max(k - 1, 0)])!r})"
        return f"({a!r} + {tau}*({b!r} + {tau}*({c!r} + {tau}*({d!r}))))"

    def between(first: int, last: int) -> str:
        if first == last:
            return piece(first)
        middle = (first + last + 1) // 2
        knot = float(given.times[middle - 1])
        return f"if({time_} < {knot!r}, {between(first, middle - 1)}, {between(middle, last)})"

    return between(0, len(rows) - 1)
