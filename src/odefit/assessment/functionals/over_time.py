"""Quantities that contain functionals of curves over time, such as ``AUC = integral(C)``.

In addition to expressions, a quantity may contain these functionals of an expression ``x`` in
states, observables, inputs, parameters, constants and the time ``t``:

- ``max(x)``, ``min(x)``, ``argmax(x)``, ``argmin(x)``: extrema, and their times;
- ``integral(x)``, ``mean(x)``;
- ``first(x > c)``: the first time at which a comparison holds, also written
  ``first(t where x > c)`` or ``first_time(x > c)``;
- ``time_above(x, c)``, ``time_below(x, c)``: how long;
- ``x@5``: the value of a state or an observable at a time; ``x@inf`` in the steady state.

They hold over the window of the run, or over one that is written last: ``max(x, 0:24)``. With one
argument, ``max`` and ``min`` are functionals; with several, functions as in any expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.assessment.functionals.pieces import Pieces, pieces_of
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME, Expression, ExpressionError, number_in, parse
from odefit.problem.binding import bound_value, scalar_value, unknowns_of
from odefit.problem.condition import Condition
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.residuals.observation import observe

FUNCTIONALS: Mapping[str, int] = {
    "max": 1, "min": 1, "argmax": 1, "argmin": 1, "integral": 1, "mean": 1, "first": 1,
    "first_time": 1, "time_above": 2, "time_below": 2,
}  # fmt: skip
"""The functionals, with the number of arguments of each before the window."""

LEAST_TOLERANCE = 1e-10
"""Tolerance of the polynomials of a curve, unless that of the integration is coarser."""

_LABEL = re.compile(r"\s*(?P<label>[A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(?P<rest>.*)", re.DOTALL)
_CALL = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\(")
_AT = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*@\s*(?P<time>-?(?:inf|[0-9.]+(?:[eE][-+]?[0-9]+)?))"
)
_COMPARISON = re.compile(r"<=|>=|<|>")


@dataclass(frozen=True)
class Functional:
    """A functional of an expression over a window; ``kind`` is its name, or "@" for a value.

    For comparisons, ``time_above`` and ``time_below``, the expression is positive where they hold.
    """

    kind: str
    expression: Expression
    window: tuple[float, float]


@dataclass(frozen=True)
class OverTime:
    """A function of the unknowns that contains functionals of the curves of an experiment.

    `key` is its name, `text` the user's text. `parts` are its functionals, by their names in the
    `expression`.
    """

    key: str
    text: str
    experiment: str
    expression: Expression
    parts: tuple[tuple[str, Functional], ...]

    def unknowns(self, problem: Problem) -> set[int]:
        """Return the unknowns on which it may depend: all unknowns of the experiment."""
        return set(range(len(problem.unknowns)))

    def at(
        self, forward: ForwardMap, vector: Array, choice: EngineChoice = UNDECIDED
    ) -> tuple[float, Array]:
        """Return its value and its derivatives by the unknowns, shape (n,); NaN where undefined."""
        n = len(vector)
        condition = forward.problem.condition(self.experiment)
        values: dict[str, Dual] = {}
        curves: dict[tuple[str, tuple[float, float]], Pieces | None] = {}
        for name, part in self.parts:
            value, gradient = _functional(part, forward, condition, vector, choice, curves)
            values[name] = Dual(np.float64(value), dict(enumerate(gradient)))
        bounds = {**condition.initial, **condition.scalars}
        known = self.expression.names & bounds.keys()
        indices = {k for name in known for k in unknowns_of(bounds[name], condition.scalars)}
        unknowns = {k: Dual(np.float64(vector[k]), {k: 1.0}) for k in indices}
        for name in known:
            values[name] = bound_value(bounds[name], condition.scalars, unknowns, DUAL)
        with np.errstate(all="ignore"):
            dual: Dual = self.expression.evaluate(values, DUAL)
        return float(np.asarray(dual.value)), dual.gradient(n)


def over_time(
    problem: Problem, text: str, experiment: str, window: tuple[float, float] | None = None
) -> OverTime:
    """Return the quantity given by a text in an experiment, over a window of time.

    The default window runs from the initial time to the last measurement. A mistake in the text
    raises an InputError with a remedy.
    """
    condition = problem.condition(experiment)
    span = (condition.t0, condition.end) if window is None else window
    reading = _Reading(problem, condition, text, span)
    match = _LABEL.fullmatch(text)
    rest = match["rest"] if match else text.strip()
    outer = reading.without_functionals(rest, inside=False)
    expression = reading.parsed(outer, {*condition.scalars, *condition.initial, *reading.parts})
    label = match["label"] if match else rest.strip()
    return OverTime(label, text, experiment, expression, tuple(reading.parts.items()))


def contains_functionals(text: str) -> bool:
    """Tell whether a text contains a functional over time, other than values at a time."""
    for match in _CALL.finditer(text):
        close = _closing(text, match.end() - 1)
        if match["name"] in FUNCTIONALS and close is not None:
            arguments = _split(text[match.end() : close])
            plain = [a for a in arguments if not _has_colon(a)]
            if match["name"] not in ("max", "min") or len(plain) == 1:
                return True
    return False


class _Reading:
    """The functionals of a text, while it is read."""

    def __init__(
        self, problem: Problem, condition: Condition, text: str, span: tuple[float, float]
    ) -> None:
        self._problem, self._condition, self._text, self._span = problem, condition, text, span
        model = problem.model
        self._curves = {*model.ode, *model.algebraic, *model.observables, *model.inputs, TIME}
        self.parts: dict[str, Functional] = {}

    def error(self, message: str) -> InputError:
        return InputError(f"quantity '{self._text}': {message}")

    def parsed(self, text: str, known: set[str]) -> Expression:
        """Return an expression in known names."""
        issues = Issues()
        plain = self._problem.given.notation.text(text, f"quantity '{self._text}'", issues)
        issues.raise_errors()
        try:
            expression = parse(str(plain))
        except ExpressionError as error:
            raise self.error(str(error)) from error
        for name in sorted(expression.names - known):
            if name in self._curves:
                raise self.error(
                    f"'{name}' changes in time; write a functional of it, such as max({name}), "
                    f"integral({name}) or {name}@5"
                )
            have = sorted(n for n in known if not n.startswith("__"))
            raise self.error(f"unknown name '{name}'{one_of(name, have)}")
        return expression

    def without_functionals(self, text: str, *, inside: bool) -> str:
        """Return a text with functionals replaced by names, and record them."""
        done, position = "", 0
        while match := _CALL.search(text, position):
            close = _closing(text, match.end() - 1)
            if close is None:
                break  # the parser reports the mistake
            arguments = _split(text[match.end() : close])
            name = match["name"]
            window = arguments[-1] if len(arguments) > 1 and _has_colon(arguments[-1]) else None
            plain = arguments if window is None else arguments[:-1]
            known = name in FUNCTIONALS and (name not in ("max", "min") or len(plain) == 1)
            if known and inside:
                raise self.error(
                    f"{name}(...) stands within another functional; write it as a quantity of its "
                    "own"
                )
            done += text[position : match.start()]
            if known:
                done += self._noted(name, plain, window)
            else:
                inner = self.without_functionals(text[match.end() : close], inside=inside)
                done += f"{text[match.start() : match.end()]}{inner})"
            position = close + 1
        rest = done + text[position:]
        return rest if inside else _AT.sub(self._value_at, rest)

    def _value_at(self, match: re.Match[str]) -> str:
        name, time = match["name"], float(match["time"])
        curves = {*self._problem.model.states, *self._problem.model.observables}
        curves |= {*self._problem.model.algebraic}
        if name not in curves:
            raise self.error(f"unknown name '{name}' before '@'{one_of(name, sorted(curves))}")
        if time < self._condition.t0:
            raise self.error(f"the time {time:g} is before t0 = {self._condition.t0:g}")
        return self._part(Functional("@", parse(name), (time, time)))

    def _noted(self, kind: str, arguments: list[str], window: str | None) -> str:
        """Record a functional, and return its name in the expression."""
        count = FUNCTIONALS[kind]
        if len(arguments) != count:
            example = {"time_above": "time_above(x, 2)", "time_below": "time_below(x, 2)"}
            raise self.error(
                f"{kind} takes {count} argument{'s' if count > 1 else ''} and a window such as "
                f"0:24, got {len(arguments)}; write, for example, {example.get(kind, f'{kind}(x)')}"
            )
        known = {*self._curves, *self._condition.scalars}
        texts = [self.without_functionals(a, inside=True).strip() for a in arguments]
        if kind in ("first", "first_time"):
            kind, text = "first", self._difference(re.sub(r"^t\s+where\s+", "", texts[0]))
        elif kind == "time_above":
            text = f"({texts[0]}) - ({texts[1]})"
        elif kind == "time_below":
            text = f"({texts[1]}) - ({texts[0]})"
        else:
            text = texts[0]
        return self._part(Functional(kind, self.parsed(text, known), self._window(window)))

    def _part(self, functional: Functional) -> str:
        name = f"functional_{len(self.parts) + 1}"
        taken = {*self._curves, *self._condition.scalars, *self._condition.initial}
        while name in taken:
            name += "_"
        self.parts[name] = functional
        return name

    def _difference(self, text: str) -> str:
        """Return the text of an expression that is positive where a comparison holds."""
        depth, signs = 0, []
        for place, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            match = _COMPARISON.match(text, place)
            if depth == 0 and match and (place == 0 or text[place - 1] not in "<>"):
                signs.append(match)
        if len(signs) != 1 or "&" in text or "|" in text:
            raise self.error(
                f"expected one comparison, such as first(x > 2), got {text!r}; "
                "give each condition a quantity of its own"
            )
        left, right = text[: signs[0].start()], text[signs[0].end() :]
        return f"({left}) - ({right})" if ">" in signs[0][0] else f"({right}) - ({left})"

    def _window(self, text: str | None) -> tuple[float, float]:
        """Return the window given by a text such as 0:24."""
        start, end = self._span
        if text is not None:
            parts = [part.strip() for part in text.split(":")]
            ends = [number_in(part) for part in parts]
            if len(parts) != 2 or any(e is None and p for e, p in zip(ends, parts, strict=True)):
                raise self.error(f"the window {text.strip()!r} is not FROM:TO, such as 0:24")
            start = start if ends[0] is None else ends[0]
            end = end if ends[1] is None else ends[1]
        if not (np.isfinite([start, end]).all() and self._condition.t0 <= start < end):
            raise self.error(
                f"the window from {start:g} to {end:g} is empty, infinite or begins before "
                f"t0 = {self._condition.t0:g}; write FROM:TO, such as max(x, 0:24)"
            )
        return start, end


def _closing(text: str, start: int) -> int | None:
    """Return the position of the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return None


def _split(text: str) -> list[str]:
    """Return the arguments of a call."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _has_colon(text: str) -> bool:
    """Tell whether an argument is a window, and not the index of an array."""
    return ":" in re.sub(r"\[[^\]]*\]", "", text)


def _functional(
    part: Functional,
    forward: ForwardMap,
    condition: Condition,
    vector: Array,
    choice: EngineChoice,
    curves: dict[tuple[str, tuple[float, float]], Pieces | None],
) -> tuple[float, Array]:
    """Return the value of a functional, and its derivatives by the unknowns."""
    lost = np.nan, np.zeros(len(vector))
    curve = _Curve(part.expression, forward, condition, vector, choice)
    if part.kind == "@":
        value_at = curve(np.array([part.window[0]]))
        return lost if value_at is None else (float(value_at[0][0]), value_at[1][0])
    key = part.expression.text, part.window
    if key not in curves:
        tolerance = max(10.0 * forward.accuracy(choice), LEAST_TOLERANCE)
        curves[key] = pieces_of(curve, part.window, _breaks(condition), tolerance)
    pieces = curves[key]
    return lost if pieces is None else _of_pieces(part, pieces)


def _of_pieces(part: Functional, pieces: Pieces) -> tuple[float, Array]:
    start, end = part.window
    if part.kind in ("integral", "mean"):
        value, gradient = pieces.integral()
        over = 1.0 if part.kind == "integral" else end - start
        return value / over, gradient / over
    if part.kind in ("max", "argmax"):
        value, gradient, time, moved = pieces.maximum()
        return (value, gradient) if part.kind == "max" else (time, moved)
    if part.kind in ("min", "argmin"):
        mirrored = Pieces(pieces.edges, -pieces.values, -pieces.gradients, pieces.jumps)
        value, gradient, time, moved = mirrored.maximum()
        return (-value, -gradient) if part.kind == "min" else (time, moved)
    positive, crossings = pieces.crossings()
    none = np.zeros(pieces.gradients.shape[2])
    if part.kind == "first":
        if positive:
            return start, none
        return crossings[0] if crossings else (np.nan, none)
    total, gradient, since = 0.0, none, (start, none)
    for moment in [*crossings, (end, none)]:
        if positive:
            total += moment[0] - since[0]
            gradient = gradient + moment[1] - since[1]
        positive, since = not positive, moment
    return total, gradient


def _breaks(condition: Condition) -> Array:
    """Return the times at which a curve may have corners or jumps."""
    events = [time for time, _ in condition.events]
    corners = [signal.corners for signal in condition.inputs.values()]
    return np.unique(np.concatenate([np.asarray(events, dtype=float), *corners]))


class _Curve:
    """An expression along the trajectory of a condition, with derivatives by the unknowns."""

    def __init__(
        self,
        expression: Expression,
        forward: ForwardMap,
        condition: Condition,
        vector: Array,
        choice: EngineChoice,
    ) -> None:
        self._expression, self._forward, self._condition = expression, forward, condition
        self._vector, self._choice = vector, choice

    def __call__(self, times: Array) -> tuple[Array, Array] | None:
        condition, vector, forward = self._condition, self._vector, self._forward
        trajectory = forward.trajectory(vector, condition.name, times, choice=self._choice)
        if isinstance(trajectory, Failure):
            return None
        self._choice = trajectory.choice
        names = self._expression.names
        with np.errstate(all="ignore"):
            values = observe(forward.field, condition, vector, trajectory, names)
            for name in names & condition.scalars.keys() - values.keys():
                values[name] = scalar_value(name, condition.scalars, vector)
            dual: Dual = self._expression.evaluate(values, DUAL)
        count = len(times)
        return dual.array(count), dual.gradient(len(vector), count)
