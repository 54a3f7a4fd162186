"""Straight-line programs: equations as arrays of instructions, for kernels and whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import groupby
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array

UNARY = (
    "NEG EXP LOG SQRT SQ TWICE INV ASSIGN SIN COS TAN ASIN ACOS ATAN NOT FABS SIGN SINH COSH TANH"
).split()
"""CasADi's operations with one argument that programs can hold."""

BINARY = "ADD SUB MUL DIV POW LT LE EQ NE AND OR IF_ELSE_ZERO FMIN FMAX".split()
"""CasADi's operations with two arguments that programs can hold."""

OPERATIONS = {name: code for code, name in enumerate([*BINARY, *UNARY])}
"""Numbers of the operations in the kernels."""

SYNONYMS = {"CONSTPOW": "POW"}  # CasADi's names of operations that are equal to another one

NAMES = {
    getattr(ca, name): SYNONYMS.get(name[3:], name[3:]) for name in dir(ca) if name[:3] == "OP_"
}
"""Names of CasADi's operations by CasADi's numbers."""

Indices = npt.NDArray[np.uint32]
"""Positions in arrays, unsigned so that compiled code needs no check for negative values."""


class Program(NamedTuple):
    """A function of many variables, instruction by instruction.

    Registers hold the variables first, then constants, then results of instructions. A register is
    reused as soon as its value is no longer needed, so that programs stay in the cache.
    """

    # Operation, and number of consecutive instructions with it, shape (b, 2).
    blocks: Indices
    # Register of the result, and registers of the two arguments, shape (k, 3).
    instructions: Indices
    constants: Array  # Values of the registers after the variables, shape (c,)
    # Registers of the function's values when all instructions have been carried out.
    outputs: Indices
    # Number of variables, and total number of registers.
    variables: int
    registers: int


def program(variables: Any, values: Any) -> Program:
    """Return the program that computes CasADi expressions.

    Raises KeyError if CasADi uses an operation that is not among :data:`OPERATIONS`.
    """
    function = ca.Function("f", [variables], ca.cse([values]))
    count = variables.numel()
    constants: dict[float, int] = {}
    value_of: dict[int, int] = {}
    operations: list[tuple[int, int, int, int]] = []
    outputs = np.zeros(values.numel(), dtype=np.int64)
    # Values are numbered: variables, then instructions; constants have negative numbers.
    for k in range(function.n_instructions()):
        name = NAMES[function.instruction_id(k)]
        arguments = function.instruction_input(k)
        if name == "OUTPUT":
            outputs[function.instruction_output(k)[1]] = value_of[arguments[0]]
            continue
        target = function.instruction_output(k)[0]
        if name == "INPUT":
            value_of[target] = arguments[1]
        elif name == "CONST":
            constant = function.instruction_constant(k)
            value_of[target] = -1 - constants.setdefault(constant, len(constants))
        else:
            inputs = [value_of[a] for a in arguments]
            number = count + len(operations)
            operations.append((OPERATIONS[name], number, inputs[0], inputs[-1]))
            value_of[target] = number
    return _with_registers(_scheduled(operations, count), outputs, list(constants), count)


def _scheduled(
    operations: list[tuple[int, int, int, int]], count: int
) -> list[tuple[int, int, int, int]]:
    """Return the operations in an order that groups those of one kind.

    The kind with the most ready operations comes next; all of these are executed, and those that
    become ready in the meantime.
    """
    waiting = []
    users: list[list[int]] = [[] for _ in operations]
    ready: dict[int, list[int]] = {}
    for k, (operation, _, *operands) in enumerate(operations):
        needed = {g - count for g in operands if g >= count}
        waiting.append(len(needed))
        for g in needed:
            users[g].append(k)
        if not needed:
            ready.setdefault(operation, []).append(k)
    order: list[int] = []
    while ready:
        chosen = max(ready, key=lambda operation: len(ready[operation]))
        block = ready[chosen]
        for k in block:  # grows during the loop
            order.append(k)
            for user in users[k]:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.setdefault(operations[user][0], []).append(user)
        del ready[chosen]
    return [operations[k] for k in order]


def _with_registers(
    operations: list[tuple[int, int, int, int]],
    outputs: npt.NDArray[np.int64],
    constants: list[float],
    count: int,
) -> Program:
    """Return the program of numbered operations, with registers for their results.

    Operations are given by kind, number of the result, and numbers of the two arguments. Constants
    have the numbers -1, -2 and so on, the variables 0 to `count` - 1.
    """
    first = count + len(constants)
    last_use = {number: k for k, (_, _, *operands) in enumerate(operations) for number in operands}
    last_use |= dict.fromkeys(outputs.tolist(), len(operations))
    register = {number: number for number in range(count)}
    register |= {-1 - k: count + k for k in range(len(constants))}
    free: list[int] = []
    used = first
    instructions = []
    for k, (_, number, *operands) in enumerate(operations):
        read = [register[g] for g in operands]
        for g in set(operands):
            if g >= count and last_use[g] == k:
                heappush(free, register[g])
        if free:
            register[number] = heappop(free)
        else:
            register[number] = used
            used += 1
        instructions.append((register[number], *read))
    blocks = [
        (operation, len(list(block))) for operation, block in groupby(o[0] for o in operations)
    ]
    return Program(
        blocks=np.array(blocks, dtype=np.uint32).reshape(-1, 2),
        instructions=np.array(instructions, dtype=np.uint32).reshape(-1, 3),
        constants=np.array(constants, dtype=float),
        outputs=np.array([register[number] for number in outputs.tolist()], dtype=np.uint32),
        variables=count,
        registers=used,
    )


ARRAY_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
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
"""The action of the operations of programs on arrays."""

_NAMES = {code: name for name, code in OPERATIONS.items()}
_BINARY = frozenset(name for name, code in OPERATIONS.items() if code <= OPERATIONS["FMAX"])


class ArrayFunction:
    """Expressions in CasADi's symbols as a function of whole arrays."""

    def __init__(self, variables: Any, values: Any) -> None:
        made = program(variables, values)
        self._count, self._outputs = made.variables, made.outputs.tolist()
        self._constants, self._registers = made.constants.tolist(), made.registers
        names = [_NAMES[int(code)] for code, count in made.blocks for _ in range(int(count))]
        self._steps: list[tuple[Callable[..., Any], int, int, int, bool]] = [
            (ARRAY_FUNCTIONS[name], int(row[0]), int(row[1]), int(row[2]), name in _BINARY)
            for name, row in zip(names, made.instructions, strict=True)
        ]

    def __call__(self, values: list[Any], points: int) -> Array:
        """Return the expressions, shape (k, points).

        Undefined values are NaN or infinite; callers wrap the call in ``numpy.errstate``.

        `values` has one entry for each variable: a number, or an array of the shape (points,).
        """
        w: list[Any] = [*values, *map(np.float64, self._constants)]
        w.extend([np.float64(0.0)] * (self._registers - len(w)))
        for function, result, first, second, binary in self._steps:
            w[result] = function(w[first], w[second]) if binary else function(w[first])
        out = np.empty((len(self._outputs), points))
        for row, register in enumerate(self._outputs):
            out[row] = w[register]
        return out
