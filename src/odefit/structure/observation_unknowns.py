"""Unknowns that act on the observation alone, in a way that makes their optimum explicit.

Scales and offsets enter observables linearly, or as factors under a logarithm; a standard deviation
is a factor of the noise of its measurements. This module derives it from the expressions
themselves, by an algebra of products, quotients and powers: nothing is decided at sample points,
and any other operation counts as general.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import bound_value, dynamic_unknowns
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.linearity import independent_set

Pair = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """The dependence of an expression on some unknowns.

    `degrees` maps each unknown to its degree of homogeneity: scaling the unknown by c > 0 scales
    the expression by c to that power; NaN without such a degree. `pairs` are the sorted pairs whose
    second derivative may be nonzero. `number` is the value of a constant expression, else NaN.
    """

    degrees: Mapping[int, float] = field(default_factory=dict)
    pairs: frozenset[Pair] = frozenset()
    number: float = math.nan

    def __add__(self, other: Form) -> Form:
        if self.number == 0.0:
            return other
        if other.number == 0.0:
            return self
        union = {*self.degrees, *other.degrees}
        degrees = {
            k: self.degrees[k]
            if k in self.degrees and self.degrees[k] == other.degrees.get(k)
            else math.nan
            for k in union
        }
        return Form(degrees, self.pairs | other.pairs, self.number + other.number)

    def __neg__(self) -> Form:
        return Form(self.degrees, self.pairs, -self.number)

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def __mul__(self, other: Form) -> Form:
        degrees = dict(self.degrees)
        for k, degree in other.degrees.items():
            degrees[k] = degrees.get(k, 0.0) + degree
        pairs = self.pairs | other.pairs | _pairs(self, other)
        return Form(degrees, pairs, self.number * other.number)

    def __truediv__(self, other: Form) -> Form:
        return self * FORM.power(other, Form(number=-1.0))


class FormAlgebra:
    """The algebra of :class:`Form`."""

    def number(self, text: str) -> Form:
        return Form(number=float(text))

    def power(self, base: Form, exponent: Form) -> Form:
        if exponent.number == 1.0:
            return base
        if math.isnan(exponent.number):
            return self.call("power", [base, exponent])
        degrees = {k: degree * exponent.number for k, degree in base.degrees.items()}
        with np.errstate(all="ignore"):
            number = float(np.power(base.number, exponent.number))
        return Form(degrees, _pairs(base, base), number)

    def call(self, function: str, arguments: Sequence[Form]) -> Form:
        if function == "sqrt":
            return self.power(arguments[0], Form(number=0.5))
        inside = Form({k: math.nan for argument in arguments for k in argument.degrees})
        return Form(inside.degrees, _pairs(inside, inside))


FORM = FormAlgebra()


def _pairs(a: Form, b: Form) -> frozenset[Pair]:
    return frozenset((min(i, j), max(i, j)) for i in a.degrees for j in b.degrees)


@dataclass(frozen=True)
class ObservationUnknowns:
    """Unknowns without an effect on trajectories, with an explicit optimum given the others.

    Residuals are jointly linear in `linear`, and in the logarithms of the positive `logarithmic`.
    `deviations` are factors of standard deviations, and `units` of observables and their standard
    deviations alike, each with its power. Every measurement has at most one of these two.
    """

    linear: tuple[int, ...] = ()
    logarithmic: tuple[int, ...] = ()
    deviations: Mapping[int, float] = field(default_factory=dict)
    units: Mapping[int, float] = field(default_factory=dict)

    @property
    def indices(self) -> tuple[int, ...]:
        """All these unknowns, in the order of the unknowns."""
        return tuple(sorted({*self.linear, *self.logarithmic, *self.deviations, *self.units}))


def observation_unknowns(problem: Problem) -> ObservationUnknowns:
    """Return the largest set of unknowns of a problem that can be eliminated."""
    scalars = VectorField.of(problem.model, problem.conditions).scalars
    dynamic = {k for c in problem.conditions for k in dynamic_unknowns(c, scalars)}
    candidates = [k for k in range(len(problem.unknowns)) if k not in dynamic]
    series = list(_series(problem, candidates)) if candidates else []
    # Only under normal densities do they have an explicit optimum.
    apart = {k for s in series if not s.gaussian for k in {**s.observable.degrees, **s.sd.degrees}}
    candidates = [k for k in candidates if k not in apart]
    linear = [k for k in candidates if _quadratic(k, problem) and _is_linear(k, series)]
    logarithmic = [k for k in candidates if _is_logarithmic(k, series, problem)]
    deviations = {k: p for k in candidates if (p := _power_as_deviation(k, series, problem))}
    units = {k: p for k in candidates if (p := _power_as_unit(k, series, problem))}
    together = np.zeros((len(problem.unknowns), len(problem.unknowns)), dtype=bool)
    for one in series:
        pairs = {(i, j) for i, j in one.observable.pairs if i in linear and j in linear}
        pairs.update(combinations(deviations.keys() & one.sd.degrees.keys(), 2))
        alone = units.keys() & one.sd.degrees.keys()
        pairs.update((i, j) for i in alone for j in one.observable.degrees if i != j)
        for i, j in pairs:
            together[i, j] = together[j, i] = True
    chosen = independent_set([*linear, *deviations, *units], together)
    return ObservationUnknowns(
        tuple(k for k in linear if k in chosen),
        tuple(logarithmic),
        {k: power for k, power in deviations.items() if k in chosen},
        {k: power for k, power in units.items() if k in chosen},
    )


@dataclass(frozen=True)
class _SeriesForm:
    """The dependence of a series' observable and standard deviation on the candidates."""

    observable: Form
    sd: Form
    transformed: bool
    gaussian: bool


def _series(problem: Problem, candidates: Sequence[int]) -> Iterator[_SeriesForm]:
    index = {u.name: k for k, u in enumerate(problem.unknowns) if u.kind == "noise"}
    candidate_names = set(candidates)
    unknowns = [
        Form({k: 1.0}) if k in candidate_names else Form() for k in range(len(problem.unknowns))
    ]
    model = problem.model
    known = [TIME, *model.states, *model.inputs, *model.algebraic]
    for condition in problem.conditions:
        values = dict.fromkeys(known, Form())

        values.update(
            (name, bound_value(bound, condition.scalars, unknowns, FORM))
            for name, bound in condition.scalars.items()
        )
        observables = {name: e.evaluate(values, FORM) for name, e in model.observables.items()}
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            sd = Form()
            if not series.sds_given and noise.relative is None:
                if noise.spread == "estimate":
                    sd = unknowns[index[noise.unknown(name)]]
                elif isinstance(noise.spread, Expression):
                    sd = noise.spread.evaluate({**values, **observables}, FORM)
            gaussian = noise.gaussian and series.censored is None
            yield _SeriesForm(observables[name], sd, noise.transform is not None, gaussian)


def _is_linear(k: int, series: Sequence[_SeriesForm]) -> bool:
    dependent = [one for one in series if k in one.observable.degrees]
    return (
        bool(dependent)
        and not any(k in one.sd.degrees for one in series)
        and not any(one.transformed or (k, k) in one.observable.pairs for one in dependent)
    )


def _is_logarithmic(k: int, series: Sequence[_SeriesForm], problem: Problem) -> bool:
    dependent = [one for one in series if k in one.observable.degrees]
    return (
        bool(dependent)
        and _positive(k, problem)
        and not any(k in one.sd.degrees for one in series)
        and all(one.transformed and abs(one.observable.degrees[k]) > 0 for one in dependent)
    )


def _power_as_deviation(k: int, series: Sequence[_SeriesForm], problem: Problem) -> float:
    """Return the power with which unknown k is a factor of standard deviations; 0 if it is not."""
    if any(k in one.observable.degrees for one in series):
        return 0.0
    return _common_power(k, [one.sd for one in series], problem)


def _power_as_unit(k: int, series: Sequence[_SeriesForm], problem: Problem) -> float:
    """Return the power with which unknown k is a factor of values and noise; 0 if it is not."""
    dependent = [one for one in series if k in {**one.observable.degrees, **one.sd.degrees}]
    if any(
        one.transformed or k not in one.observable.degrees or k not in one.sd.degrees
        for one in dependent
    ):
        return 0.0
    return _common_power(
        k, [form for one in dependent for form in (one.observable, one.sd)], problem
    )


def _common_power(k: int, forms: Sequence[Form], problem: Problem) -> float:
    """Return the degree of homogeneity of all forms that depend on k; 0 if they differ."""
    degrees = {form.degrees[k] for form in forms if k in form.degrees}
    if len(degrees) != 1 or not _positive(k, problem):
        return 0.0
    (degree,) = degrees
    return 0.0 if math.isnan(degree) else degree


def _positive(k: int, problem: Problem) -> bool:
    """Return whether unknown k cannot be negative, and has no prior, which would not fit in."""
    parameter = problem.unknowns[k].parameter
    return parameter.lower >= 0 and (parameter.prior is None or parameter.prior.flat)


def _quadratic(k: int, problem: Problem) -> bool:
    """Return whether the prior of unknown k, if there is one, adds a square of a linear term."""
    prior = problem.unknowns[k].parameter.prior
    return prior is None or prior.plain or prior.flat
