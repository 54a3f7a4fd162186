"""The campaign `small-samples`: the coverage of intervals from few values.

Data come from SciPy and from closed forms. Each task fits some data sets of one of the problems in
`small_sample_problems`, profiles all unknowns whose truth is known, and records which intervals are
right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evidence.intervals.coverage import examined, tables_of
from evidence.intervals.small_sample_problems import SAMPLES
from evidence.running.batches import batch_options, batches
from evidence.running.campaign import Record, Task

DATA_SETS = 400  # number of data sets of each problem

OPTIONS = batch_options(DATA_SETS, tuple(SAMPLES), "fold,methods")

tasks = batches


def run(task: Task) -> Mapping[str, Any]:
    """Fit and profile each data set of a batch."""
    sample = SAMPLES[task["problem"]]
    numbers = range(task["first"], task["last"] + 1)
    keys = tuple(sample.truth)
    return {"data sets": [examined(sample.data_set(n), n, sample.truth, keys) for n in numbers]}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    return tables_of(records)
