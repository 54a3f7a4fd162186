"""Evaluation of straight-line programs at all stages of a step at once.

A register holds a row of values, one for each stage, so that an instruction is read once for all.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.compiling import compiled
from odefit.simulation.engines.bdf.evaluation import (
    ACOS,
    ADD,
    AND,
    ASIN,
    ASSIGN,
    ATAN,
    COS,
    COSH,
    DIV,
    EQ,
    EXP,
    FABS,
    FMAX,
    FMIN,
    IF_ELSE_ZERO,
    INV,
    LE,
    LOG,
    LT,
    MUL,
    NE,
    NEG,
    NOT,
    OR,
    POW,
    SIGN,
    SIN,
    SINH,
    SQ,
    SQRT,
    SUB,
    TAN,
    TANH,
    TWICE,
)
from odefit.simulation.engines.programs import Program

LANES = np.uint64(16)
"""Number of values of a register: one for each stage, padded to the processor's vectors."""


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
def run_in_lanes(program: Program, w: Array) -> None:
    """Execute the instructions of a program on its registers `w`, shape (registers * LANES,)."""
    code = program.instructions
    k = 0
    for block in range(program.blocks.shape[0]):
        operation = program.blocks[block, 0]
        end = k + program.blocks[block, 1]
        if operation == MUL:
            while k < end:
                a, i, j = code[k, 0] * LANES, code[k, 1] * LANES, code[k, 2] * LANES
                for q in range(LANES):
                    w[a + q] = w[i + q] * w[j + q]
                k += 1
        elif operation == ADD:
            while k < end:
                a, i, j = code[k, 0] * LANES, code[k, 1] * LANES, code[k, 2] * LANES
                for q in range(LANES):
                    w[a + q] = w[i + q] + w[j + q]
                k += 1
        elif operation == SUB:
            while k < end:
                a, i, j = code[k, 0] * LANES, code[k, 1] * LANES, code[k, 2] * LANES
                for q in range(LANES):
                    w[a + q] = w[i + q] - w[j + q]
                k += 1
        elif operation == DIV:
            while k < end:
                a, i, j = code[k, 0] * LANES, code[k, 1] * LANES, code[k, 2] * LANES
                for q in range(LANES):
                    w[a + q] = w[i + q] / w[j + q]
                k += 1
        elif operation == NEG:
            while k < end:
                a, i = code[k, 0] * LANES, code[k, 1] * LANES
                for q in range(LANES):
                    w[a + q] = -w[i + q]
                k += 1
        elif operation == SQ:
            while k < end:
                a, i = code[k, 0] * LANES, code[k, 1] * LANES
                for q in range(LANES):
                    w[a + q] = w[i + q] * w[i + q]
                k += 1
        elif operation == TWICE:
            while k < end:
                a, i = code[k, 0] * LANES, code[k, 1] * LANES
                for q in range(LANES):
                    w[a + q] = 2.0 * w[i + q]
                k += 1
        elif operation == INV:
            while k < end:
                a, i = code[k, 0] * LANES, code[k, 1] * LANES
                for q in range(LANES):
                    w[a + q] = 1.0 / w[i + q]
                k += 1
        else:
            while k < end:
                a, i, j = code[k, 0] * LANES, code[k, 1] * LANES, code[k, 2] * LANES
                for q in range(LANES):
                    w[a + q] = result_of(operation, w[i + q], w[j + q])
                k += 1
