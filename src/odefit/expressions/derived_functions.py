"""Functions expressed by others: steps, pulses, ``if``, ``ln`` and so on.

The parser replaces a call of one of them by its definition, so that no other code handles them.
Their names are not reserved: a parameter may be called ``step``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odefit.expressions.grammar import CONDITIONS, FUNCTIONS, PIECEWISE, Instruction


class DerivedFunction(NamedTuple):
    """A function expressed by others.

    `arguments` are named as users read them: ``"t, start"``; `condition` is the number, from zero,
    of the argument that is a condition. `program` is the postfix form, with numbers of arguments
    instead of names.
    """

    arguments: tuple[str, ...]
    condition: int | None
    program: tuple[Instruction | int, ...]


def _derived(arguments: str, postfix: str, condition: int | None = None) -> DerivedFunction:
    names = tuple(arguments.split(", "))
    program: list[Instruction | int] = []
    for word in postfix.split():
        text, _, arity = word.partition("/")
        if word in names:
            program.append(names.index(word))
        elif word in ("+", "-", "*", "/", "^"):
            program.append(Instruction("binary", word, 2))
        elif word == "~":
            program.append(Instruction("negate", "-", 1))
        elif text == PIECEWISE or text in FUNCTIONS or text in CONDITIONS:
            program.append(Instruction("call", text, int(arity or 2)))
        else:
            program.append(Instruction("number", word))
    return DerivedFunction(names, condition, tuple(program))


_CHOICE = _derived("condition, a, b", "a condition b piecewise/3", condition=0)

DERIVED: Mapping[str, DerivedFunction] = {
    "ln": _derived("x", "x log/1"),
    "log2": _derived("x", "x log/1 2 log/1 /"),
    "pow": _derived("a, b", "a b ^"),
    "sign": _derived("x", "1 ~ x 0 < 1 x 0 > 0 piecewise/5"),
    "heaviside": _derived("x", "0 x 0 < 1 piecewise/3"),
    "step": _derived("t, start", "0 t start < 1 piecewise/3"),
    "pulse": _derived("t, start, duration", "1 t start >= t start duration + < && 0 piecewise/3"),
    "if": _CHOICE,
    "ifelse": _CHOICE,
    "where": _CHOICE,
}
"""The functions by name, in postfix notation:

- ``ln(x)`` is ``log(x)``, ``log2(x)`` is ``log(x)/log(2)``, ``pow(a, b)`` is ``a^b``;
- ``sign(x)`` is -1, 0 or 1, and ``heaviside(x)`` is 0 for ``x < 0``, else 1;
- ``step(t, start)`` is 0 before `start`, and 1 from it on;
- ``pulse(t, start, duration)`` is 1 from `start` on until `duration` later, else 0;
- ``if(condition, a, b)``, also ``ifelse`` and ``where``, is `a` where the condition is true, else
  `b`.
"""
