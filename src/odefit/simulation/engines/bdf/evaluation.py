"""Compiled evaluation of straight-line programs."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.compiling import compiled
from odefit.simulation.engines.programs import OPERATIONS, Program

_CODES = list(OPERATIONS.values())

ADD, SUB, MUL, DIV, POW, LT, LE, EQ, NE, AND, OR, IF_ELSE_ZERO, FMIN, FMAX = _CODES[:14]
NEG, EXP, LOG, SQRT, SQ, TWICE, INV, ASSIGN, SIN, COS, TAN, ASIN, ACOS, ATAN = _CODES[14:28]
NOT, FABS, SIGN, SINH, COSH, TANH = _CODES[28:]


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
        elif operation == POW:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] ** w[code[k, 2]]
                k += 1
        elif operation == EXP:
            while k < end:
                w[code[k, 0]] = np.exp(w[code[k, 1]])
                k += 1
        elif operation == LOG:
            while k < end:
                w[code[k, 0]] = np.log(w[code[k, 1]])
                k += 1
        elif operation == SQRT:
            while k < end:
                w[code[k, 0]] = np.sqrt(w[code[k, 1]])
                k += 1
        elif operation == FMIN:
            while k < end:
                w[code[k, 0]] = min(w[code[k, 1]], w[code[k, 2]])
                k += 1
        elif operation == FMAX:
            while k < end:
                w[code[k, 0]] = max(w[code[k, 1]], w[code[k, 2]])
                k += 1
        elif operation == LT:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] < w[code[k, 2]]
                k += 1
        elif operation == LE:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] <= w[code[k, 2]]
                k += 1
        elif operation == EQ:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] == w[code[k, 2]]
                k += 1
        elif operation == NE:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] != w[code[k, 2]]
                k += 1
        elif operation == AND:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] != 0.0 and w[code[k, 2]] != 0.0
                k += 1
        elif operation == OR:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] != 0.0 or w[code[k, 2]] != 0.0
                k += 1
        elif operation == NOT:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]] == 0.0
                k += 1
        elif operation == IF_ELSE_ZERO:
            while k < end:
                w[code[k, 0]] = w[code[k, 2]] if w[code[k, 1]] != 0.0 else 0.0
                k += 1
        elif operation == ASSIGN:
            while k < end:
                w[code[k, 0]] = w[code[k, 1]]
                k += 1
        elif operation == FABS:
            while k < end:
                w[code[k, 0]] = abs(w[code[k, 1]])
                k += 1
        elif operation == SIGN:
            while k < end:
                w[code[k, 0]] = np.sign(w[code[k, 1]])
                k += 1
        elif operation == SIN:
            while k < end:
                w[code[k, 0]] = np.sin(w[code[k, 1]])
                k += 1
        elif operation == COS:
            while k < end:
                w[code[k, 0]] = np.cos(w[code[k, 1]])
                k += 1
        elif operation == TAN:
            while k < end:
                w[code[k, 0]] = np.tan(w[code[k, 1]])
                k += 1
        elif operation == ASIN:
            while k < end:
                w[code[k, 0]] = np.arcsin(w[code[k, 1]])
                k += 1
        elif operation == ACOS:
            while k < end:
                w[code[k, 0]] = np.arccos(w[code[k, 1]])
                k += 1
        elif operation == ATAN:
            while k < end:
                w[code[k, 0]] = np.arctan(w[code[k, 1]])
                k += 1
        elif operation == SINH:
            while k < end:
                w[code[k, 0]] = np.sinh(w[code[k, 1]])
                k += 1
        elif operation == COSH:
            while k < end:
                w[code[k, 0]] = np.cosh(w[code[k, 1]])
                k += 1
        elif operation == TANH:
            while k < end:
                w[code[k, 0]] = np.tanh(w[code[k, 1]])
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
