"""Calls of kernels from Python."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import Kernel, compiled, type_of
from odefit.common.kernels.values import ArrayType, TupleType


class Some(NamedTuple):
    values: Array
    number: int


@compiled
def total(x: Array, factor: float) -> float:
    result = 0.0
    for k in range(x.shape[0]):
        result += factor * x[k]
    return result


@compiled
def nothing(x: Array) -> None:
    x[0] = 1.0


@compiled
def endless(flag: npt.NDArray[np.uint8], counts: Array) -> float:
    while flag[0] == 0:
        counts[0] += 1.0
    return float(counts[0])


@compiled
def huge(n: int) -> float:
    x = np.empty(n)
    x[0] = 1.0
    return float(x[0])


@compiled
def through(n: int) -> float:
    return huge(n) + 1.0


def test_types_of_arguments() -> None:
    assert type_of(Some(np.zeros((2, 3)), 4)) == TupleType(
        ("values", "number"), (ArrayType("f8", 2), "i")
    )
    assert [type_of(value) for value in (1.0, np.float64(1), True, 3, np.int64(3))] == list("ffbii")


def test_an_integer_serves_as_a_float() -> None:
    assert total(np.array([1.0, 2.0]), 2) == 6.0


def test_a_function_without_a_result_returns_none() -> None:
    x = np.zeros(2)
    assert nothing(x) is None
    assert x[0] == 1.0


def test_another_type_is_compiled_for_itself() -> None:
    kernel = Kernel(total.function)
    assert kernel(np.array([1.0]), 1.0) == 1.0
    assert kernel(np.array([1, 2]), 1.5) == 4.5
    assert kernel(np.array([True, False]), 1.5) == 1.5


@pytest.mark.parametrize(
    "x", [np.zeros(6)[::2], np.zeros(3, dtype=np.float32), np.zeros(3, dtype=complex)]
)
def test_arrays_that_kernels_do_not_have_are_refused(x: Array) -> None:
    total(np.zeros(3), 1.0)
    with pytest.raises(TypeError, match="kernels have no such array"):
        total(x, 1.0)


def test_lists_are_refused() -> None:
    total(np.zeros(3), 1.0)
    with pytest.raises(TypeError):
        total([1.0], 1.0)  # type: ignore[arg-type]  # what is refused


def test_arguments_have_no_names() -> None:
    with pytest.raises(TypeError, match="no arguments by name"):
        total(x=np.zeros(2), factor=1.0)


def test_other_threads_run_while_a_kernel_runs() -> None:
    flag = np.ones(1, dtype=np.uint8)
    assert endless(flag, np.zeros(1)) == 0.0  # compiled
    flag[0] = 0
    threading.Timer(0.05, lambda: flag.__setitem__(0, 1)).start()
    assert endless(flag, np.zeros(1)) > 0


def test_missing_memory_is_an_error() -> None:
    assert through(3) == 2.0
    with pytest.raises(MemoryError):
        through(1 << 55)


def test_kernels_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(total)) is total


def test_python_runs_kernels_where_llvm_is_missing() -> None:
    code = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import numpy as np\n"
        "from odefit.simulation.steady.newton import column_norm\n"
        "print(column_norm(np.array([[1.0, -3.0], [2.0, 4.0]])))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) == 7.0
