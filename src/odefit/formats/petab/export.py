"""A problem in terms of PEtab, version 2: rows of its tables and equations of its model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import TIME, Expression
from odefit.formats.petab.sbml_writing import (
    FORMULAS,
    Formula,
    SbmlEquations,
    WrittenEvent,
    identifier,
)
from odefit.problem.binding import bound_value
from odefit.problem.building.resolution import resolve
from odefit.problem.condition import Condition, Series
from odefit.problem.experiment import Input
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise import Noise
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem, definition_of
from odefit.problem.vector_field import VectorField

DELAY = 1e-12
"""The part of the time span by which an event is delayed if a measurement at its time precedes it:
periods of PEtab begin before a measurement at their time."""

EXPERIMENT = "experiment_number"
"""The parameter that distinguishes experiments in inputs that differ between them."""


class Export:
    """The translation of a problem; `issues` lists everything that PEtab cannot express."""

    def __init__(self, problem: Problem) -> None:
        self.issues = Issues()
        self.problem = problem
        self.model = problem.given
        _, self._resolved = resolve(definition_of(problem), Issues())  # before switches are made
        self._taken = {identifier(n) for n in self._names()}
        self._ids = self._experiment_ids()
        self.unknowns = [self._unknown_id(k) for k in range(len(problem.unknowns))]
        parameters = [u.parameter for u in problem.unknowns]
        self.nominal: dict[str, float] = {
            name: _inside(p) if p.guess is None else p.guess
            for name, p in zip(self.unknowns, parameters, strict=True)
        }
        self._unknown_formulas = [Formula(name) for name in self.unknowns]
        self.observables: list[list[Any]] = []
        self.conditions: list[list[Any]] = []
        self.experiments: list[list[Any]] = []
        self.measurements: list[list[Any]] = []
        self._values: dict[str, Formula] = {
            n: Formula(identifier(n)) for n in self._names() if n not in self.model.observables
        }
        self._values |= {n: Formula(identifier(n)) for n in self.model.ode}
        self._values[TIME] = Formula("time")
        self._moving = {*self.model.ode, *self.model.algebraic}
        self._changing = self._changing_scalars()
        self._indexed = any(not self._same_input(name) for name in self.model.inputs)
        for number, condition in enumerate(self._resolved):
            self._experiment(number, condition)
        for name in self.model.observables:
            self._observable(name)
        self._check_located()
        self.equations = self._equations()

    def _names(self) -> set[str]:
        model = self.model
        names = {*model.ode, *model.algebraic, *model.inputs, *model.observables}
        return names | {n for c in self._resolved for n in c.scalars}

    def _free(self, name: str) -> str:
        """Return an unused id similar to the requested one."""
        unused = identifier(plain_id(name))
        while unused in self._taken:
            unused += "_"
        self._taken.add(unused)
        return unused

    def _experiment_ids(self) -> dict[str, str]:
        ids: dict[str, str] = {}
        for condition in self._resolved:
            free_id = plain_id(condition.name)
            while free_id in ids.values():
                free_id += "_"
            ids[condition.name] = free_id
        return ids

    def _unknown_id(self, number: int) -> str:
        unknown = self.problem.unknowns[number]
        if unknown.kind == "parameter" and unknown.experiment is None:
            return identifier(unknown.name)
        suffix = "" if unknown.experiment is None else f"_{self._ids[unknown.experiment]}"
        if unknown.kind == "noise":
            return self._free(unknown.name)
        start = "_0" if unknown.kind == "initial" else ""
        return self._free(f"{unknown.name}{start}{suffix}")

    def _text(self, expression: Expression) -> str:
        return str(expression.evaluate(self._values, FORMULAS).text)

    def _bound(self, bound: int | float | Expression, condition: Condition) -> str:
        """Return a value as a formula in unknowns and numbers."""
        formula: Formula = bound_value(bound, condition.scalars, self._unknown_formulas, FORMULAS)
        return formula.text

    def _changing_scalars(self) -> dict[str, list[str]]:
        """Return the scalars that are not rows of the parameter table, by experiment."""
        by_name = {}
        for name in self._resolved[0].scalars:
            texts = [self._bound(c.scalars[name], c) for c in self._resolved]
            switched = any(name in assign for c in self._resolved for assign in c.assignments)
            if texts[0] == identifier(name) and len(set(texts)) == 1:
                if switched:
                    self.issues.error(
                        f"[parameters] {name}", "an event assigns it, which PEtab 2 cannot express"
                    )
            else:
                parameter = self.problem.parameters.get(name)
                fixed = parameter is not None and parameter.fixed is not None
                if not fixed or len(set(texts)) > 1 or switched:
                    by_name[name] = texts
        return by_name

    def _equations(self) -> SbmlEquations:
        model = self.model
        switched = {n for c in self._resolved for assign in c.assignments for n in assign}
        constants: dict[str, float | None] = {}
        variables: dict[str, float | None] = {}
        for name in self._resolved[0].scalars:
            texts = self._changing.get(name)
            if texts is None:
                fixed = self.problem.parameters[name].fixed
                known = self.nominal.get(identifier(name))
                constants[identifier(name)] = known if fixed is None else fixed
                continue
            first = self._resolved[0].scalars[name]
            value = first if isinstance(first, float) else None
            if len(set(texts)) == 1 and value is not None and name not in switched:
                constants[identifier(name)] = value
            else:
                variables[identifier(name)] = 0.0 if value is None else value
        for unknown, name in zip(self.problem.unknowns, self.unknowns, strict=True):
            if unknown.kind == "initial":
                constants.setdefault(name, self.nominal[name])
        if self._indexed:
            variables[EXPERIMENT] = 0.0
        assigned = {identifier(name): self._input(name) for name in model.inputs}
        field = VectorField.of(model, self._resolved)
        algebraic: list[str] = []
        if field.elimination is None:
            algebraic = [self._text(e) for e in model.algebraic.values()]
        else:
            assigned |= self._eliminated(field.elimination)
        guesses = self._resolved[0].algebraic_guess
        return SbmlEquations(
            constants=constants,
            variables=variables,
            rates={identifier(n): self._text(e) for n, e in model.ode.items()},
            initial={identifier(n): self._start(n) for n in model.ode},
            assigned=assigned,
            algebraic=algebraic,
            unknown_variables={identifier(n): guesses[n] for n in model.algebraic if algebraic},
            events=self._located(self._resolved[0]),
        )

    def _located(self, condition: Condition) -> list[WrittenEvent]:
        """Return events that happen when a condition becomes true, or at times of unknowns."""
        located = []
        for event in condition.located:
            if event.when is not None:
                trigger = self._text(event.when)
                if not event.measured_after and not event.when.names & self._moving:
                    self.issues.error(
                        f'[[experiment]] "{condition.name}"',
                        f"the event of '{event.when}' comes before measurements at its time in "
                        'PEtab 2; write measured = "after", or give a time',
                    )
            else:
                assert event.time is not None
                if isinstance(event.time, Expression):
                    time = self._text(event.time)
                else:
                    time = self._bound(event.time, condition)
                trigger = f"(time >= {time})"
            assign = {identifier(n): self._text(e) for n, e in event.assign.items()}
            delay, rank = (None if e is None else self._text(e) for e in event.waiting)
            flags = event.persistent, event.early
            located.append(WrittenEvent(trigger, assign, event.initially, delay, rank, flags))
        return located

    def _check_located(self) -> None:
        first = self._located(self._resolved[0])
        for condition in self._resolved[1:]:
            if self._located(condition) != first:
                self.issues.error(
                    f'[[experiment]] "{condition.name}"',
                    "its events with triggers, or at times that depend on unknowns, are not those "
                    "of the first experiment: in PEtab they belong to the model",
                )

    def _eliminated(self, elimination: Array) -> dict[str, str]:
        """Return algebraic variables that are sums of the constraints at zero."""
        zeros = {**self._values, **dict.fromkeys(self.model.algebraic, FORMULAS.number("0.0"))}
        sums = {}
        for name, row in zip(self.model.algebraic, elimination, strict=True):
            terms = [
                (FORMULAS.number(repr(float(f))) * e.evaluate(zeros, FORMULAS)).text
                for f, e in zip(row, self.model.algebraic.values(), strict=True)
                if f != 0
            ]
            sums[identifier(name)] = " + ".join(terms) or "0.0"
        return sums

    def _start(self, state: str) -> str:
        """Return the initial value in the model; experiments may override it."""
        texts = {self._bound(c.initial[state], c) for c in self._resolved}
        return texts.pop() if len(texts) == 1 else "0.0"

    def _same_input(self, name: str) -> bool:
        first, *others = [c.inputs[name] for c in self._resolved]
        return all(
            np.array_equal(first.times, o.times) and np.array_equal(first.values, o.values)
            for o in others
        )

    def _input(self, name: str) -> str:
        inputs = [condition.inputs[name] for condition in self._resolved]
        if self._same_input(name):
            return _pieces(inputs[0])
        parts = [
            f"{_pieces(signal)}, ({EXPERIMENT} == {float(i)!r})" for i, signal in enumerate(inputs)
        ]
        return f"piecewise({', '.join(parts)}, 0.0)"

    def _experiment(self, number: int, condition: Condition) -> None:
        name = self._ids[condition.name]
        if condition.repeated is not None:
            self.issues.error(
                f'[[experiment]] "{condition.name}" steady_state',
                "repeated events before the experiment: PEtab has steady states without them",
            )
        begin = {n: texts[number] for n, texts in self._changing.items() if not self._shared(n)}
        begin |= {
            state: text
            for state, bound in condition.initial.items()
            if (text := self._bound(bound, condition)) != self._start(state)
        }
        if self._indexed:
            begin[EXPERIMENT] = repr(float(number))
        periods = [(-math.inf if condition.steady_start else condition.t0, begin)]
        for time, assign in self._events(condition):
            if time == periods[-1][0]:
                self._at_start(periods[-1][1], assign, condition)
            else:
                periods.append((time, assign))
        if condition.steady_start and all(time != condition.t0 for time, _ in periods):
            periods.insert(1, (condition.t0, {}))
        for i, (time, assign) in enumerate(periods):
            identity = f"{name}_{i}" if assign else ""
            self.experiments.append([name, float(time), identity, condition.name])
            for target, text in assign.items():
                self.conditions.append([identity, identifier(target), text])
        for observable, series in condition.series.items():
            self._measure(name, condition, observable, series)

    def _shared(self, name: str) -> bool:
        """True if the model itself gives the value of a scalar."""
        texts = self._changing[name]
        return len(set(texts)) == 1 and isinstance(self._resolved[0].scalars[name], float)

    def _events(self, condition: Condition) -> list[tuple[float, dict[str, str]]]:
        """Return times of events with their joint assignments."""
        span = float(np.max(condition.times[np.isfinite(condition.times)], initial=condition.t0))
        later = DELAY * max(span - condition.t0, abs(span))
        by_time: dict[float, dict[str, Formula]] = {}
        for time, assign in condition.events:
            formulas_then = by_time.setdefault(time, {})
            values = {**self._values, **formulas_then}
            formulas_then.update({n: e.evaluate(values, FORMULAS) for n, e in assign.items()})
        shifted = []
        for time, formulas in by_time.items():
            unseen = time in condition.times and not condition.sees_events(time)
            unseen &= not (condition.steady_start and time == condition.t0)
            at = time + later if unseen else time
            shifted.append((float(at), {n: f.text for n, f in formulas.items()}))
        return shifted

    def _at_start(
        self, begin: dict[str, str], assign: Mapping[str, str], condition: Condition
    ) -> None:
        """Make the first period assign the initial values as changed by events at its time."""
        scalars = {n: self._bound(b, condition) for n, b in condition.scalars.items()}
        initial = {n: self._bound(b, condition) for n, b in condition.initial.items()}
        before = {identifier(n): t for n, t in {**scalars, **initial}.items()}
        before["time"] = repr(condition.t0)
        begin.update({n: _with(text, before) for n, text in assign.items()})

    def _observable(self, name: str) -> None:
        noise = self.problem.noise.get(name, Noise())
        place = f"[noise] {name}"
        series = [c.series[name] for c in self._resolved if name in c.series]
        distribution = noise.law.petab if noise.correlation is None else ""
        others: str = noise.loss or noise.distribution or "correlated noise"
        wrong = None if distribution else others
        if wrong is None and any(s.censored is not None for s in series):
            wrong = "censored values"
        if wrong is not None:
            self.issues.error(place, f"PEtab 2 cannot express {wrong}")
            return
        factor = math.log(10.0) if noise.transform == "log10" else 1.0
        if noise.transform is not None:
            distribution = f"log-{distribution}"
        factor /= noise.law.petab_sd
        column = any(s.sds is not None for s in series) or noise.relative is not None
        placeholder = f"noiseParameter1_{identifier(name)}" if column else ""
        sd = placeholder or self._sd(name, noise)
        formula = sd if factor == 1.0 else f"({factor!r} * {sd})"
        predicted = self._text(self.model.observables[name])
        row = [self._observable_id(name), predicted, formula, distribution, placeholder, name]
        self.observables.append(row)

    def _observable_id(self, name: str) -> str:
        """Return the id, which must differ from the names of states."""
        model = self.model
        clash = name in {*model.ode, *model.algebraic, *model.inputs, *self._resolved[0].scalars}
        return f"observable_{name}" if clash else identifier(name)

    def _sd(self, name: str, noise: Noise) -> str:
        if isinstance(noise.sd, Expression):
            switched = {n for c in self._resolved for a in c.assignments for n in a}
            if noise.sd.names & switched & self._resolved[0].scalars.keys():
                self.issues.error(
                    f"[noise] {name}.sd",
                    "an event assigns a constant in it, whose value at t0 counts in odefit and the "
                    "present one in PEtab",
                )
            seen = {
                n: self.model.observables[n].evaluate(self._values, FORMULAS)
                for n in noise.sd.names & self.model.observables.keys()
            }
            return str(noise.sd.evaluate({**self._values, **seen}, FORMULAS).text)
        if noise.sd == "estimate":
            noise_name = noise.unknown(name)
            for unknown, parameter_id in zip(self.problem.unknowns, self.unknowns, strict=True):
                if unknown.kind == "noise" and unknown.name == noise_name:
                    return parameter_id
        return repr(float(noise.sd)) if isinstance(noise.sd, float) else "1.0"

    def _measure(self, name: str, condition: Condition, observable: str, series: Series) -> None:
        noise = self.problem.noise.get(observable, Noise())
        every = [c.series[observable] for c in self._resolved if observable in c.series]
        column = any(s.sds is not None for s in every) or noise.relative is not None
        for i, (row, value) in enumerate(zip(series.rows, series.values, strict=True)):
            sd = ""
            if series.sds is not None and not math.isnan(series.sds[i]):
                sd = repr(float(series.sds[i]))
            elif column and noise.relative is not None:
                sd = repr(float(noise.relative * abs(value)))
            elif column:
                sd = self._sd(observable, noise)
                if isinstance(noise.sd, Expression) and noise.sd.constant is None:
                    self.issues.error(
                        f"[noise] {observable}",
                        "some experiments have a column of standard deviations and others an "
                        "expression: PEtab 2 has one formula for both",
                    )
            time = float(condition.times[row])
            self.measurements.append(
                [self._observable_id(observable), name, time, float(value), sd]
            )


def plain_id(name: str) -> str:
    """Return a name as an id of PEtab."""
    plain = re.sub(r"\W", "_", name) or "_"
    return f"_{plain}" if plain[0].isdigit() else plain


def _with(text: str, values: Mapping[str, str]) -> str:
    """Return a formula with values in place of names."""
    pattern = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
    return pattern.sub(lambda m: f"({values[m[0]]})" if m[0] in values else m[0], text)


def _inside(parameter: Parameter) -> float:
    """Return a number between the bounds, as an arbitrary nominal value."""
    low, high = parameter.lower, parameter.upper
    if low > 0 and math.isfinite(high):
        return math.sqrt(low * high)
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high)
    if math.isfinite(low):
        return low + 1.0
    return high - 1.0 if math.isfinite(high) else 1.0


def _pieces(signal: Input) -> str:
    """Return an input as a formula in the time, piece by piece."""
    rows = signal.polynomials()
    knots = signal.times.tolist()
    texts = []
    for i, row in enumerate(rows):
        left = repr(knots[max(i - 1, 0)])
        tau = f"(time - ({left}))"
        text = repr(float(row[0]))
        for power, factor in enumerate(row[1:], 1):
            if factor != 0:
                text += f" + ({float(factor)!r}) * {tau}" + (f"^{power}" if power > 1 else "")
        texts.append(f"({text})")
    pieces = [f"{text}, (time < {knot!r})" for text, knot in zip(texts, knots, strict=False)]
    return f"piecewise({', '.join(pieces)}, {texts[-1]})"
