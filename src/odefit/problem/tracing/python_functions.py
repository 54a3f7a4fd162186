"""Right-hand sides given as Python functions, converted to expressions by calling them."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.errors import InputError, did_you_mean, shown
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.expressions.formulas import name as part_of_name
from odefit.expressions.postfix import TIME
from odefit.problem.tracing.traced import OWN_FILES, Traced, TracingError, as_part, traced_array

TIMES = ("t", "time")
"""Names that identify the argument for time."""

POINTS = 6
"""Number of random points at which expressions and function are compared."""

TOLERANCE = 1e-9
"""Largest relative difference between their values."""


class Parameters:
    """Parameters in the form that a function takes: by position, by name, or as attributes."""

    def __init__(self, values: Mapping[str, Any], array: Any) -> None:
        self._values = known = dict(values)
        self._array = array
        # like a dict, so that ``**p`` works
        self.keys, self.values, self.items, self.get = (
            known.keys, known.values, known.items, known.get
        )  # fmt: skip

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self._array[key]
        if key not in self._values:
            raise InputError(
                f"the function asks for the parameter {key!r}{did_you_mean(key, self._values)}; "
                f"parameters are: {', '.join(self._values)}"
            )
        return self._values[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._values:
            return self._values[name]
        return getattr(self._array, name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array)

    def __len__(self) -> int:
        return len(self._values)


class _Call:
    """The call of a function: the order of its arguments, and the form of its parameters."""

    def __init__(
        self,
        function: Callable[..., Any],
        states: Sequence[str],
        parameters: Sequence[str],
        time_first: bool | None,
    ) -> None:
        self.function = function
        self.states, self.parameters = tuple(states), tuple(parameters)
        if not callable(function):
            raise InputError(f"from_function: expected a Python function, got {shown(function)}")
        self.name = getattr(function, "__name__", type(function).__name__)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            signature = inspect.signature(lambda t, x, *p: None)
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [p for p in signature.parameters.values() if p.kind in kinds]
        if len(positional) < 2:
            raise InputError(
                f"from_function: {self.name} takes {len(positional)} arguments; expected the time "
                f"and the states, as in {self.name}(t, x, p)"
            )
        names = [p.name.casefold() for p in positional]
        swapped = names[0] not in TIMES and names[1] in TIMES
        self.time_first = not swapped if time_first is None else time_first
        more = [p for p in positional[2:] if p.default is inspect.Parameter.empty]
        self._spread = spread = any(
            p.kind is inspect.Parameter.VAR_POSITIONAL for p in signature.parameters.values()
        )
        count = len(self.parameters)
        if spread or len(positional) - 2 == count or len(more) == count:
            self.whole = False
        elif (len(more) == 1 and count) or len(positional) - 2 == 1:
            self.whole = True
        else:
            raise InputError(
                f"from_function: {self.name} takes {len(positional) - 2} arguments after the time "
                f"and the states, but there are {count} parameters ({', '.join(self.parameters)}); "
                "give parameters=[...] in the order of the arguments"
            )

    def __call__(self, time: Any, states: Any, values: Sequence[Any], array: Any) -> list[Any]:
        """Return the right-hand sides, one a state."""
        first = (time, states) if self.time_first else (states, time)
        extra: tuple[Any, ...] = tuple(values)
        if self.whole:
            extra = (Parameters(dict(zip(self.parameters, values, strict=True)), array),)
        rates = self._run(*first, *extra)
        if isinstance(rates, Mapping):
            missing = [s for s in self.states if s not in rates]
            if missing or len(rates) != len(self.states):
                raise InputError(
                    f"from_function: {self.name} returns {', '.join(map(str, rates))}; expected "
                    f"the states {', '.join(self.states)}"
                )
            return [rates[s] for s in self.states]
        if isinstance(rates, np.ndarray):
            rates = rates.reshape(-1)
        if isinstance(rates, Traced):
            rates = [rates]
        if not isinstance(rates, (list, tuple, np.ndarray)):
            raise InputError(
                f"from_function: {self.name} returns {shown(rates)}; expected a list with one "
                "right-hand side for each state"
            )
        if len(rates) != len(self.states):
            raise InputError(
                f"from_function: {self.name} returns {len(rates)} right-hand sides for "
                f"{len(self.states)} states ({', '.join(self.states)})"
            )
        return list(rates)

    def take_whole(self) -> bool:
        """Pass the parameters as one argument, if that is possible and not yet tried."""
        possible = not self.whole and not self._spread
        self.whole |= possible
        return possible

    def _run(self, *arguments: Any) -> Any:
        """Call the function; any error becomes an InputError with its line."""
        try:
            return self.function(*arguments)
        except InputError:
            raise
        except Exception as error:
            steps = traceback.extract_tb(error.__traceback__)
            user_steps = [s for s in steps if not s.filename.startswith(OWN_FILES)] or steps
            step = user_steps[-1]
            raise InputError(
                f"{Path(step.filename).name}, line {step.lineno} ({step.line}): "
                f"{type(error).__name__}: {error}; the function is called with expressions in "
                "place of numbers"
            ) from error


def traced_equations(
    function: Callable[..., Any],
    states: Sequence[str],
    parameters: Sequence[str],
    time_first: bool | None = None,
) -> dict[str, Expression]:
    """Return the right-hand sides that a Python function computes, as expressions.

    See :meth:`odefit.Model.from_function` for the function. It is called once with expressions, and
    then with numbers.
    """
    call = _Call(function, states, parameters, time_first)
    symbols = {n: Traced(part_of_name(n)) for n in (*states, *parameters, TIME)}
    symbols_given = [symbols[n] for n in parameters]
    arguments = (
        symbols[TIME],
        traced_array([symbols[n] for n in states]),
        symbols_given,
        traced_array(symbols_given),
    )
    try:
        result = call(*arguments)
    except InputError as error:
        if len(parameters) != 1 or not call.take_whole():
            raise
        try:
            result = call(*arguments)
        except InputError:
            raise error from None
    equations = {}
    for state, value in zip(states, result, strict=True):
        part = as_part(value)
        if part is None:
            raise InputError(
                f"from_function: {call.name} returns {shown(value)} for '{state}'; expected a "
                "number or an expression"
            )
        equations[state] = part.expression()
    _compare(call, equations)
    return equations


def _compare(call: _Call, equations: Mapping[str, Expression]) -> None:
    """Raise an error if function and equations give different values for numbers."""
    random = np.random.default_rng(20)
    for _ in range(POINTS):
        time = np.float64(random.uniform(0.1, 2.0))
        x = random.uniform(0.2, 2.0, len(call.states))
        p = random.uniform(0.2, 2.0, len(call.parameters))
        names = dict(zip((*call.states, *call.parameters), (*x, *p), strict=True)) | {TIME: time}
        with np.errstate(all="ignore"):
            try:
                called = np.array(call(time, x.copy(), list(p), p), dtype=float)
            except TracingError:
                raise
            except (InputError, TypeError, ValueError):
                continue  # undefined at this point
            evaluated = np.array([float(e.evaluate(names, NUMPY)) for e in equations.values()])
        scale = np.abs(called) + np.abs(evaluated)
        wrong = np.isfinite(scale) & (np.abs(called - evaluated) > TOLERANCE * (scale + 1e-3))
        if wrong.any():
            k = int(np.argmax(wrong))
            text = shown(list(equations.values())[k].text)
            raise InputError(
                f"from_function: {call.name} computes {called[k]:g} for '{call.states[k]}' from "
                f"numbers, and {evaluated[k]:g} by the expression {text} that was read from it; "
                "does it keep values between calls, draw random numbers, or change its arguments?"
            )
