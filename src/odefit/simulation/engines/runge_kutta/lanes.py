"""Evaluation of straight-line programs at all stages of a step at once.

A register holds a row of values, one for each stage, so that an instruction is read once for all.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.evaluation import (
    ADD,
    DIV,
    INV,
    MUL,
    NEG,
    SQ,
    SUB,
    TWICE,
    result_of,
)
from odefit.simulation.engines.programs import Program

LANES = np.uint64(16)
"""Number of values of a register: one for each stage, padded to the processor's vectors."""


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
