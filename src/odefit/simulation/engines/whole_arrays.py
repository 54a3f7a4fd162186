"""Straight-line programs over whole arrays, for expressions that are wanted at many points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.programs import OPERATIONS, program

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "POW": np.power,
    "LT": np.less,
    "LE": np.less_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "AND": lambda a, b: np.logical_and(a != 0, b != 0),
    "OR": lambda a, b: np.logical_or(a != 0, b != 0),
    "IF_ELSE_ZERO": lambda a, b: np.where(a != 0, b, 0.0),
    "FMIN": np.fmin,
    "FMAX": np.fmax,
    "NEG": np.negative,
    "EXP": np.exp,
    "LOG": np.log,
    "SQRT": np.sqrt,
    "SQ": np.square,
    "TWICE": lambda a: 2.0 * a,
    "INV": lambda a: 1.0 / a,
    "ASSIGN": lambda a: a,
    "SIN": np.sin,
    "COS": np.cos,
    "TAN": np.tan,
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "NOT": lambda a: np.equal(a, 0),
    "FABS": np.abs,
    "SIGN": np.sign,
    "SINH": np.sinh,
    "COSH": np.cosh,
    "TANH": np.tanh,
}
"""What the operations of programs do to arrays."""

_NAMES = {code: name for name, code in OPERATIONS.items()}
_BINARY = frozenset(name for name, code in OPERATIONS.items() if code <= OPERATIONS["FMAX"])


class ArrayFunction:
    """Expressions in CasADi's symbols as a function of whole arrays.

    `values`: a dense vector of expressions of these.
    """

    def __init__(self, variables: Any, values: Any) -> None:
        made = program(variables, values)
        self._count, self._outputs = made.variables, made.outputs.tolist()
        self._constants, self._registers = made.constants.tolist(), made.registers
        names = [_NAMES[int(code)] for code, count in made.blocks for _ in range(int(count))]
        self._steps: list[tuple[Callable[..., Any], int, int, int, bool]] = [
            (FUNCTIONS[name], int(row[0]), int(row[1]), int(row[2]), name in _BINARY)
            for name, row in zip(names, made.instructions, strict=True)
        ]

    def __call__(self, values: list[Any], points: int) -> Array:
        """Return the expressions, shape (k, points).

        What is not defined is NaN or infinite; callers wrap the call in ``numpy.errstate``.

        `values`: one entry a variable: a number, or an array of the shape (points,).
        """
        w: list[Any] = [*values, *map(np.float64, self._constants)]
        w.extend([np.float64(0.0)] * (self._registers - len(w)))
        for function, result, first, second, binary in self._steps:
            w[result] = function(w[first], w[second]) if binary else function(w[first])
        out = np.empty((len(self._outputs), points))
        for row, register in enumerate(self._outputs):
            out[row] = w[register]
        return out
