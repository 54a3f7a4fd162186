"""What the engine asks of heyoka as a whole; what it integrates is compared in test_engines.py."""

from __future__ import annotations

import pytest

hy = pytest.importorskip("heyoka")


def test_compiled_models_do_not_pile_up_in_memory() -> None:
    """Thousands of models in one process would fill the 2 GB that heyoka allows by itself."""
    import odefit.simulation.heyoka_engine  # noqa: F401

    assert 0 < hy.llvm_state.get_memcache_limit() <= 32 * 2**20
    assert hy.llvm_state.get_memcache_size() <= hy.llvm_state.get_memcache_limit()
