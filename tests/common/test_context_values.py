"""Values that hold for the work of one thread within a block."""

from __future__ import annotations

from contextvars import ContextVar

import pytest

from odefit.common.context_values import holding


def test_a_value_holds_within_its_block_even_if_the_block_fails() -> None:
    variable: ContextVar[int] = ContextVar("number", default=1)

    def fail() -> None:
        with holding(variable, 2), holding(variable, 3):
            assert variable.get() == 3
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert variable.get() == 1
    with holding(variable, 2):
        assert variable.get() == 2
