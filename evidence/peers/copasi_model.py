"""A problem as COPASI's model, with its parameter estimation task.

States become global quantities of type "ode", observables assignments on the scale of their
transform. Unknowns are fit items: their quantities, or separate quantities where several have their
value. Each experiment of the problem is one of COPASI's, of type time course; it sets one
independent quantity, its number. Everything that differs between experiments (constants, initial
values, times and assignments of events, inputs) is an expression in this number. Known inputs are
piecewise polynomials; events happen just after their times, because a measurement there has the
values before.

COPASI has one weight for a column. A series with several standard deviations has a column of the
same observable for each of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evidence.peers.stated import ABSOLUTE, RELATIVE, written_out
from odefit import InputError, Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.condition import Condition
from odefit.problem.experiment import Input

Deviations = Sequence[dict[str, Array]]

# Delay of an event after its time, relative to the time of the last measurement
AFTER = 1e-9
AFTER_OF_GAP = 1e-6  # largest delay, relative to the time until the next measurement or event
NEVER = 1e300  # the time of an event that is not in an experiment
NUMBER = "experiment_number"  # the number of the experiment: 1, 2, and so on


class CopasiModel:
    """The problem as COPASI's current model, with its parameter estimation task."""

    def __init__(
        self,
        problem: Problem,
        deviations: Deviations,
        folder: str,
        tolerances: tuple[float, float] | None = (RELATIVE, ABSOLUTE),
    ) -> None:
        import basico

        self._problem = problem
        self._conditions = problem.conditions
        self._items: dict[int, str] = {}
        self._middle = _middle(problem)
        basico.new_model(name="model", notes="")
        if len(self._conditions) > 1:
            basico.add_parameter(NUMBER, type="fixed", initial_value=1.0)
        self._shift = self._differing("shift", [_number(-c.t0) for c in self._conditions])
        # COPASI accepts an expression only after all quantities that it names exist
        for name in (*self._conditions[0].scalars, *problem.model.ode):
            kind = "ode" if name in problem.model.ode else "fixed"
            basico.add_parameter(_safe(name), type=kind, initial_value=1.0)
        self._claim()
        for of in ("scalars", "initial"):
            for name in getattr(self._conditions[0], of):
                self._set_initial(name, [getattr(c, of)[name] for c in self._conditions])
        for name, rhs in problem.model.ode.items():
            basico.set_parameters(_safe(name), exact=True, expression=self._text(rhs))
        self._add_events()
        self._observe(deviations, folder)
        self._set_items()
        if tolerances is not None:
            names = ("Relative Tolerance", "Absolute Tolerance")
            settings = {"method": dict(zip(names, tolerances, strict=True))}
            basico.set_task_settings(basico.T.TIME_COURSE, settings)

    @property
    def unknowns(self) -> list[int]:
        """The unknowns that COPASI fits; others occur in weights alone."""
        return sorted(self._items)

    # Quantities -----------------------------------------------------------------------------------

    def _claim(self) -> None:
        """Find the fit item's quantity of each unknown that acts on an observable."""
        import basico

        acting = _acting(self._problem)
        used: set[int] = set()
        for of in ("scalars", "initial"):
            for name in getattr(self._conditions[0], of):
                bounds = [getattr(c, of)[name] for c in self._conditions]
                whole = {b for b in bounds if isinstance(b, int)} & acting
                used |= whole
                (only,) = whole if len(whole) == 1 else (None,)
                if only is not None and only not in self._items and bounds == [only] * len(bounds):
                    self._items[only] = _safe(name)
        for unknown in sorted(used - self._items.keys()):
            self._items[unknown] = f"unknown_{unknown}"
            basico.add_parameter(self._items[unknown], type="fixed", initial_value=1.0)

    def _set_initial(self, name: str, bounds: Sequence[Any]) -> None:
        """Set the initial value of a quantity in each experiment, except that of a fit item."""
        import basico

        first = bounds[0]
        if isinstance(first, int) and self._items.get(first) == _safe(name):
            return
        if all(isinstance(b, float) and b == first for b in bounds):
            settings: dict[str, Any] = {"initial_value": first}
        else:
            text = self._by_experiment([self._bound(b) for b in bounds], initial=True)
            settings = {"initial_expression": text}
        basico.set_parameters(_safe(name), exact=True, **settings)

    def _bound(self, bound: Any) -> str:
        """Return the initial value of a quantity in an experiment as a text."""
        if isinstance(bound, Expression):
            return self._text(bound, initial=True)
        if isinstance(bound, float):
            return _number(bound)
        item = self._items.get(bound)  # an unknown of the noise alone has no quantity
        return "1.0" if item is None else f"{{Values[{item}].InitialValue}}"

    def _differing(self, name: str, texts: Sequence[str]) -> str:
        """Return the numbers of the experiments as a text: a quantity where they differ."""
        import basico

        if len(set(texts)) == 1:
            return texts[0]
        text = self._by_experiment(texts, initial=True)
        basico.add_parameter(name, type="fixed", initial_expression=text)
        return f"{{Values[{name}]}}"

    @staticmethod
    def _by_experiment(texts: Sequence[str], *, initial: bool = False) -> str:
        """Return an expression with the value of each experiment's expression."""
        if len(set(texts)) == 1:
            return texts[0]
        number = f"{{Values[{NUMBER}]{'.InitialValue' if initial else ''}}}"

        def between(first: int, last: int) -> str:
            if len(set(texts[first : last + 1])) == 1:
                return texts[first]
            middle = (first + last) // 2
            lower, upper = between(first, middle), between(middle + 1, last)
            return f"if({number} < {middle + 1.5!r}, {lower}, {upper})"

        return between(0, len(texts) - 1)

    def _text(self, expression: Expression, *, initial: bool = False) -> str:
        """Return an expression in COPASI's notation."""
        problem = self._problem
        quantities = {*problem.model.ode, *self._conditions[0].scalars}
        ending = ".InitialValue" if initial else ""
        time_ = f"({{Time}} - ({self._shift}))"

        def replaced(match: re.Match[str]) -> str:
            name = match[0]
            if name in quantities:
                return f"{{Values[{_safe(name)}]{ending}}}"
            if name in problem.model.inputs:
                given = [_pieces(c.inputs[name], time_) for c in self._conditions]
                return f"({self._by_experiment(given)})"
            return time_ if name == TIME else name

        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", replaced, str(expression))

    # Events ---------------------------------------------------------------------------------------

    def _add_events(self) -> None:
        """Add events: the first of all experiments together, then the second, and so on."""
        import basico

        given = [_events(c) for c in self._conditions]
        for number in range(max(len(events) for events in given)):
            here = [events[number] if number < len(events) else (NEVER, {}) for events in given]
            at = self._differing(f"time_of_event_{number}", [_number(time) for time, _ in here])
            names = dict.fromkeys(name for _, assigned in here for name in assigned)
            assignments = []
            for name in names:
                kept = f"{{Values[{_safe(name)}]}}"
                texts = [self._text(a[name]) if name in a else kept for _, a in here]
                assignments.append((f"Values[{_safe(name)}]", _bare(self._by_experiment(texts))))
            basico.add_event(
                f"event {number}", trigger=f"Time > {_bare(at)}", assignments=assignments
            )

    # Data -----------------------------------------------------------------------------------------

    def _observe(self, deviations: Deviations, folder: str) -> None:
        """Add observables and data, with their weights."""
        import basico

        problem = self._problem
        for name in dict.fromkeys(n for c in self._conditions for n in c.series):
            text = self._text(problem.model.observables[name])
            noise = problem.noise.get(name)
            if noise is not None and noise.transform is not None:
                text = f"{noise.transform}({text})"
            basico.add_parameter(f"obs_{name}", type="assignment", expression=text)
        least = min(float(s.min()) for of in deviations for s in of.values())
        model = basico.get_current_model()
        container = model.getModel().getMathContainer()
        experiments = model.getTask("Parameter Estimation").getProblem().getExperimentSet()
        for number, (condition, sds) in enumerate(
            zip(self._conditions, deviations, strict=True), start=1
        ):
            columns: list[tuple[str, Any]] = [("Time", condition.times - condition.t0)]
            if len(self._conditions) > 1:
                same = np.full(len(condition.times), float(number))
                columns.append((f"Values[{NUMBER}].InitialValue", same))
            weights: list[float] = []
            first = len(columns)
            for name in condition.series:
                for sd, values in _columns(problem, condition, name, sds[name]):
                    columns.append((f"Values[obs_{name}]", values))
                    weights.append((least / sd) ** 2)
            table = pd.DataFrame(dict(enumerate(v for _, v in columns)))
            table.columns = pd.Index([n for n, _ in columns])
            name = f"run {number}"
            basico.add_experiment(name, table, data_dir=folder)
            experiment = basico.get_experiment(name)
            experiment.setNormalizeWeightsPerExperiment(False)
            # A weight equal to COPASI's own is not stored, so COPASI computes its own first.
            experiment.calculateWeights()
            experiments.compile(container)
            for column, weight in enumerate(weights, start=first):
                experiment.getObjectMap().setScale(column, weight)
        experiments.compile(container)
        self._scale = least**-2

    def _set_items(self) -> None:
        import basico

        problem = self._problem
        own = self.unknowns
        if not (np.isfinite(problem.lower[own]).all() and np.isfinite(problem.upper[own]).all()):
            raise InputError("COPASI's scatter search needs finite bounds")
        basico.set_fit_parameters(
            [
                {
                    "name": f"Values[{self._items[i]}].InitialValue",
                    "lower": float(problem.lower[i]),
                    "upper": float(problem.upper[i]),
                    "start": float(self._middle[i]),
                }
                for i in own
            ]
        )

    # What it does ---------------------------------------------------------------------------------

    def estimated(
        self, method: str, seed: int, seconds: float, *, randomise: bool, update: bool = True
    ) -> Array | None:
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
            update_model=update,
            settings={"method": settings},
        )
        solution = task.getProblem().getSolutionVariables(False)
        values = np.array([float(solution.get(i)) for i in range(solution.size())])
        return values if len(values) == len(self._items) and np.isfinite(values).all() else None

    def objective(self, vector: Array) -> float:
        """Return the weighted sum of squares at all unknowns of the problem, by COPASI."""
        import basico

        task = basico.get_current_model().getTask("Parameter Estimation")
        problem = task.getProblem()
        for item, unknown in enumerate(self.unknowns):
            problem.getOptItem(item).setStartValue(float(vector[unknown]))
        basico.run_parameter_estimation(
            method="Current Solution Statistics",
            randomize_start_values=False,
            calculate_statistics=False,
            update_model=False,
        )
        return float(problem.getSolutionValue()) * self._scale

    @staticmethod
    def close() -> None:
        """Forget the model and the time limit."""
        import basico
        from basico.callbacks import reset_default_handler

        reset_default_handler()
        basico.remove_datamodel(basico.get_current_model())


def _acting(problem: Problem) -> set[int]:
    """Return the unknowns on which a measured quantity may depend, without those of the noise."""
    found: set[int] = set()
    for condition in problem.conditions:
        expressions = [
            *problem.model.ode.values(),
            *(problem.model.observables[name] for name in condition.series),
            *(what for _, assigned in condition.events for what in assigned.values()),
        ]
        found |= {b for b in condition.initial.values() if isinstance(b, int)}
        expressions += [b for b in condition.initial.values() if isinstance(b, Expression)]
        for expression in expressions:
            bounds = (condition.scalars.get(n) for n in written_out(expression, problem, condition))
            found |= {b for b in bounds if isinstance(b, int)}
    return found


def _middle(problem: Problem) -> Array:
    """Return the middles of the bounds, shape (n,); 1 without bounds."""
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (problem.lower + problem.upper)
    return np.where(np.isfinite(middle), middle, 1.0)


def _columns(
    problem: Problem, condition: Condition, name: str, sds: Array
) -> list[tuple[float, Array]]:
    """Return a column for each standard deviation of a series.

    Values at the same time are replicates, and are in different columns too.
    """
    series = condition.series[name]
    noise = problem.noise.get(name)
    values = series.values
    if noise is not None and noise.transform is not None:
        values = NUMPY.call(noise.transform, [values])
    found: list[tuple[float, Array]] = []
    for row, value, sd in zip(series.rows, values, sds, strict=True):
        for other, column in found:
            if other == sd and math.isnan(column[row]):
                column[row] = value
                break
        else:
            column = np.full(len(condition.times), math.nan)
            column[row] = value
            found.append((float(sd), column))
    return found


def _events(condition: Condition) -> list[tuple[float, dict[str, Expression]]]:
    """Return the events before the last measurement, with distinct times for COPASI."""
    found: list[tuple[float, dict[str, Expression]]] = []
    span = condition.times[-1] - condition.t0
    for at, assigned in condition.events:
        if at >= condition.times[-1]:
            continue
        if found and found[-1][0] == at:
            before = found[-1][1]
            if any(what.names & before.keys() for what in assigned.values()):
                raise InputError("COPASI orders no events at the same time that need each other")
            before.update(assigned)
        else:
            found.append((at, dict(assigned)))
    stops = np.array([at for at, _ in found])
    times = []
    for at, _ in found:
        later = np.concatenate([condition.times[condition.times > at], stops[stops > at]])
        gap = float(later.min() - at)
        times.append(float(at - condition.t0 + min(AFTER * span, AFTER_OF_GAP * gap)))
    return [(time, assigned) for time, (_, assigned) in zip(times, found, strict=True)]


def _safe(name: str) -> str:
    """Return a name that is no function, constant or keyword of COPASI."""
    return f"q_{name}"


def _number(value: float) -> str:
    """Return a number as a text, in parentheses where it is negative."""
    return repr(float(value)) if value >= 0 else f"({float(value)!r})"


def _bare(text: str) -> str:
    """Return an expression in the form for events, without braces."""
    return text.replace("{", "").replace("}", "")


def _pieces(given: Input, time_: str) -> str:
    """Return an input as polynomials between its knots, in a tree of conditions."""
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
