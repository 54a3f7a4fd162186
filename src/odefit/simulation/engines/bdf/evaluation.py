"""Compiled evaluation of straight-line programs."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.programs import OPERATIONS, Program

_CODES = list(OPERATIONS.values())

ADD, SUB, MUL, DIV, POW, LT, LE, EQ, NE, AND, OR, IF_ELSE_ZERO, FMIN, FMAX = _CODES[:14]
NEG, EXP, LOG, SQRT, SQ, TWICE, INV, ASSIGN, SIN, COS, TAN, ASIN, ACOS, ATAN = _CODES[14:28]
NOT, FABS, SIGN, SINH, COSH, TANH = _CODES[28:]


@compiled
def result_of(operation: int, x: float, y: float) -> float:
    """Return the result of an operation that is not simple arithmetic."""
    result: float = np.nan
    if operation == POW:
        result = x**y
    elif operation == EXP:
        result = np.exp(x)
    elif operation == LOG:
        result = np.log(x)
    elif operation == SQRT:
        result = np.sqrt(x)
    elif operation == FMIN:
        result = min(x, y)
    elif operation == FMAX:
        result = max(x, y)
    elif operation == LT:
        result = 1.0 if x < y else 0.0
    elif operation == LE:
        result = 1.0 if x <= y else 0.0
    elif operation == EQ:
        result = 1.0 if x == y else 0.0
    elif operation == NE:
        result = 1.0 if x != y else 0.0
    elif operation == AND:
        result = 1.0 if x != 0.0 and y != 0.0 else 0.0
    elif operation == OR:
        result = 1.0 if x != 0.0 or y != 0.0 else 0.0
    elif operation == NOT:
        result = 1.0 if x == 0.0 else 0.0
    elif operation == IF_ELSE_ZERO:
        result = y if x != 0.0 else 0.0
    elif operation == ASSIGN:
        result = x
    elif operation == FABS:
        result = abs(x)
    elif operation == SIGN:
        result = np.sign(x)
    elif operation == SIN:
        result = np.sin(x)
    elif operation == COS:
        result = np.cos(x)
    elif operation == TAN:
        result = np.tan(x)
    elif operation == ASIN:
        result = np.arcsin(x)
    elif operation == ACOS:
        result = np.arccos(x)
    elif operation == ATAN:
        result = np.arctan(x)
    elif operation == SINH:
        result = np.sinh(x)
    elif operation == COSH:
        result = np.cosh(x)
    elif operation == TANH:
        result = np.tanh(x)
    return result


@compiled
def run(program: Program, w: Array) -> None:
    """Execute the instructions of a program on its registers `w`."""
    code = program.instructions
    k = 0
    for block in range(program.blocks.shape[0]):
        operation = program.blocks[block, 0]
        end = k + program.blocks[block, 1]
        if operation == MUL:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] * w[code[k, 2]]
                k += 1
        elif operation == ADD:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] + w[code[k, 2]]
                k += 1
        elif operation == SUB:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] - w[code[k, 2]]
                k += 1
        elif operation == DIV:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] / w[code[k, 2]]
                k += 1
        elif operation == NEG:
            while k < end:
                w[code[k, 0]] = -w[code[k, 1]]
                k += 1
        elif operation == SQ:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] * w[code[k, 1]]
                k += 1
        elif operation == TWICE:
            while k < end:
                w[code[k, 0]] = 2.0 * w[code[k, 1]]
                k += 1
        elif operation == INV:
            while k < end:
                w[code[k, 0]] = 1.0 / w[code[k, 1]]
                k += 1
        else:
            while k < end:
                w[code[k, 0]] = result_of(operation, w[code[k, 1]], w[code[k, 2]])
                k += 1


@compiled
def registers(program: Program) -> Array:
    """Return registers that hold a program's constants."""
    w = np.empty(program.registers)
    for k in range(program.constants.shape[0]):
        w[program.variables + k] = program.constants[k]
    return w


@compiled
def evaluate(program: Program, x: Array, w: Array, out: Array) -> None:
    """Write a program's values at `x` to `out`, using its registers `w`."""
    for k in range(program.variables):
        w[k] = x[k]
    run(program, w)
    for k in range(out.shape[0]):
        out[k] = w[program.outputs[k]]
