"""Names of states and parameters derived from a Python function's arguments and lines."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.errors import InputError
from odefit.expressions.formulas import name as part_of_name
from odefit.problem.tracing.python_functions import TIMES
from odefit.problem.tracing.traced import Traced, TracingError, traced_array

MOST_STATES = 64
"""Longest argument tried for all states if the function does not show its length."""

Named = tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]
"""A function of time, states and parameters, and the names of both."""


def with_own_names(
    function: Callable[..., Any], states: Sequence[str] | None, parameters: Sequence[str]
) -> Named:
    """Return a function with the names of its states and parameters; given names stay.

    ``f(t, A, B, k1, k2)`` has as many states as it returns right-hand sides; all other arguments
    are parameters. ``f(t, y, k1, k2)`` names its states where it unpacks them, as in ``A, B = y``
    or ``A = y[0]``; otherwise they are y1, y2, ... Parameters of ``f(t, y, p)`` are named in the
    same ways, or by ``p["k1"]`` and ``p.k1``.

    Raises
    ------
    InputError
        The function does not show the names.
    """
    arguments = _arguments(function)
    rest = [a for a in arguments if a.casefold() not in TIMES]
    refusals: list[str] = []  # warnings of the function when called with expressions
    if len(arguments) - len(rest) == 1 and rest:
        call = _Call(function, refusals)
        named = _separate(call, arguments, rest, parameters) if states is None else None
        named = named or _packed(call, arguments, rest, states, parameters)
        if named is not None:
            return named
    if states is not None:
        return function, tuple(states), tuple(parameters)  # the reader reports the mistake
    if refusals:
        raise InputError(refusals[-1])
    name = getattr(function, "__name__", "the function")
    raise InputError(
        f"from_function: {name}{_signature(function) or ''} does not tell the names of its states "
        'and parameters; give states=["A", "B"] and parameters=["k1", "k2"], or write it as '
        "f(t, A, B, k1, k2)"
    )


@dataclass(frozen=True)
class _Call:
    """Calls a function with expressions; returns None if the function raises an error."""

    function: Callable[..., Any]
    refusals: list[str]

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except TracingError as error:
            self.refusals.append(str(error))
        except Exception:  # noqa: BLE001 - the call was a question; the reader reports the error
            return None
        return None


def _arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments; an empty tuple if some have no name."""
    signature = _signature(function)
    parameters = signature.parameters.values() if signature else ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters] if all(p.kind in kinds for p in parameters) else []


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _separate(
    call: _Call, arguments: Sequence[str], rest: Sequence[str], parameters: Sequence[str]
) -> Named | None:
    """Return the names if each state is a separate argument; None if that fails."""
    function = call.function
    result = call(*(Traced(part_of_name(a)) for a in arguments))
    if isinstance(result, Mapping):
        states = tuple(result)
    elif parameters:
        states = tuple(a for a in rest if a not in parameters)
    else:
        states = tuple(rest[: _count(result)])
    if _count(result) != len(states) or not states or not set(states) <= set(rest):
        return None

    def with_vector(t: Any, x: Any, *p: Any) -> Any:
        values = dict(zip(states, x, strict=True)) | dict(zip(own_parameters, p, strict=True))
        return function(*(values.get(a, t) for a in arguments))

    own_parameters = tuple(a for a in rest if a not in states)
    with_vector.__name__ = getattr(function, "__name__", "function")
    return with_vector, states, own_parameters


def _packed(
    call: _Call,
    arguments: Sequence[str],
    rest: Sequence[str],
    states: Sequence[str] | None,
    parameters: Sequence[str],
) -> Named | None:
    """Return the names if one argument holds all states; None if that fails."""
    vector, *others = rest
    lines = _Lines(call.function)
    for length in range(1, MOST_STATES + 1) if states is None else [len(states)]:
        names = states or lines.parts_of(vector, length)
        if len(names) != length:
            continue
        for parameter_name in [parameters] if parameters else _choices(others, lines):
            values: dict[str, Any] = {a: Traced(part_of_name(a)) for a in arguments}
            values[vector] = traced_array([Traced(part_of_name(n)) for n in names])
            if parameter_name != others and len(others) == 1:
                values[others[0]] = _Pack(
                    [Traced(part_of_name(n)) for n in parameter_name], parameter_name
                )
            if _count(call(*(values[a] for a in arguments))) == length:
                return call.function, tuple(names), tuple(parameter_name)
    return None


def _choices(others: Sequence[str], lines: _Lines) -> list[list[str]]:
    """Return possible meanings of the arguments after the states, likeliest first."""
    parts = lines.parts_of(others[0]) if len(others) == 1 else []
    return [*([parts] if parts else []), list(others)]


class _Pack(list[Any]):
    """Parameters by position, by name, or as attributes, for a trial call of a function."""

    def __init__(self, values: list[Any], names: Sequence[str]) -> None:
        super().__init__(values)
        self.__dict__.update(zip(names, values, strict=True))

    def __getitem__(self, key: Any) -> Any:
        return self.__dict__[key] if isinstance(key, str) else super().__getitem__(key)


def _count(returned: Any) -> int:
    """Return the number of right-hand sides that a function returns; 0 if it cannot be called."""
    if isinstance(returned, (Mapping, list, tuple)):
        return len(returned)
    if isinstance(returned, np.ndarray):
        return int(returned.size)
    return int(isinstance(returned, Traced))


class _Lines:
    """The lines of a function, if the source is available."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError):
            tree = ast.Module([], [])
        self.nodes = list(ast.walk(tree))

    def parts_of(self, argument: str, length: int | None = None) -> list[str]:
        """Return the names of an argument's parts in order, or `length` default names.

        Without a length, the number follows from the parts that occur; it is zero if the argument
        is used as a whole.
        """

        def is_argument(node: ast.AST) -> bool:
            return isinstance(node, ast.Name) and node.id == argument

        keys: dict[str, None] = {}
        by_place: dict[int, str] = {}
        for node in self.nodes:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and is_argument(node.value):
                names = [getattr(e, "id", None) for e in getattr(target, "elts", ())]
                if names and all(names):  # A, B = y
                    return [str(name) for name in names]
            if isinstance(node, ast.Attribute) and is_argument(node.value):
                keys.setdefault(node.attr)  # p.k
            place = _place(node, is_argument)
            if isinstance(place, str):
                keys.setdefault(place)  # p["k"]
            elif place is not None:
                by_place.setdefault(place, f"{argument}{place + 1}")
            number = _place(node.value, is_argument) if isinstance(node, ast.Assign) else None
            if isinstance(number, int) and isinstance(target, ast.Name):
                by_place[number] = target.id  # A = y[0]
        if length is None:
            if keys:
                return list(keys)
            length = 1 + max(by_place, default=-1)
        return [by_place.get(i, f"{argument}{i + 1}") for i in range(length)]


def _place(node: ast.AST, is_argument: Callable[[ast.AST], bool]) -> int | str | None:
    """Return the index of a part of an argument, as in ``y[0]`` or ``p["k"]``."""
    if not (isinstance(node, ast.Subscript) and is_argument(node.value)):
        return None
    index = node.slice
    value = index.value if isinstance(index, ast.Constant) else None
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None
