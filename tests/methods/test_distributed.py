"""Starts run on a Dask cluster of worker processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_cluster_gives_the_same_result_as_this_process(dask_cluster: Any) -> None:
    """The executor of a Dask client serves like any other, and the answer does not depend on it."""
    problem = odefit.library.load("harmonic")
    alone = odefit.fit(problem, seed=3, jobs=1)
    with dask_cluster.get_client() as client:
        shared = odefit.fit(problem, seed=3, executor=client.get_executor())
    assert np.array_equal(shared.best.vector, alone.best.vector)
    assert len(shared.starts) == len(alone.starts)
