"""Several models of the same data compared: criteria, weights, and tests of nested ones."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.assessment.intervals.likelihood_ratios import f_test, ratio_test
from odefit.common.arrays import Array
from odefit.common.errors import InputError, shown
from odefit.common.packages import require
from odefit.methods.local.cost_tolerance import NEGLIGIBLE_RESIDUAL
from odefit.problem.problem import Problem
from odefit.reporting.numbers import significant
from odefit.result_data import ResultData
from odefit.result_data.result_file import read_result

if TYPE_CHECKING:
    import pandas as pd


SIGNIFICANT = 0.05
"""Probability below which a larger model counts as a better fit."""

ALIKE = 2.0
"""Models whose criterion differs by less than this have about the same support (Burnham and
Anderson, Model Selection and Multimodel Inference, 2002, section 2.6)."""


@dataclass(frozen=True)
class NestedTest:
    """A test of a model against a larger one of which it is a special case.

    ``kind`` is "F" where one standard deviation is estimated or the noise is not given, and
    "likelihood ratio" where it is given. It is "simulated likelihood ratio" where several standard
    deviations are estimated or the noise is not normal. ``statistic`` is F or the difference of -2
    log L. ``degrees`` is the number of additional parameters of the larger model, ``p`` the
    probability of a statistic at least as large if the smaller model is right.
    """

    smaller: str
    larger: str
    kind: str
    statistic: float
    degrees: int
    p: float

    @property
    def sentence(self) -> str:
        """The test in words."""
        if self.statistic < 0:
            return (
                f"{self.larger} fits worse than {self.smaller}, although it is the more general "
                "model: its best values were not found."
            )
        shown = f"{significant(self.statistic, 4)} for {self.degrees} parameter"
        shown += "s" if self.degrees > 1 else ""
        p = "p < 0.001" if self.p < 0.001 else f"p = {significant(self.p, 2)}"
        better = "fits better than" if self.p < SIGNIFICANT else "fits no better than"
        return f"{self.larger} {better} {self.smaller} ({self.kind} test: {shown}, {p})."


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several models of the same data.

    Attributes
    ----------
    names
        Their names.
    results
        The results, in the given order.
    criterion
        "AICc", or "AIC" where a model has too many parameters for AICc.
    differences, weights
        Differences of the criterion from its lowest value, and Akaike weights, each of shape (m,).
    tests
        Tests of nested models.
    remarks
        Sentences on models that the data, or the tests, cannot distinguish.
    """

    names: tuple[str, ...]
    results: tuple[ResultData, ...]
    criterion: str
    differences: Array
    weights: Array
    tests: tuple[NestedTest, ...]
    remarks: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """One row for each model, the best first."""
        require("pandas")
        import pandas as pd

        criteria = [r.criteria for r in self.results]
        table = pd.DataFrame(
            {
                "-2 log L": [c.deviance for c in criteria],
                "parameters": [c.parameters for c in criteria],
                "AIC": [c.aic for c in criteria],
                "AICc": [c.aicc for c in criteria],
                "BIC": [c.bic for c in criteria],
                "difference": self.differences,
                "weight": self.weights,
            },
            index=pd.Index(self.names, name="model"),
        )
        return table.iloc[np.argsort(self.differences, kind="stable")]

    def __str__(self) -> str:
        table = self.table
        rows = [["model", *map(str, table.columns)]]
        rows += [
            [str(name), *(significant(float(v), 5) for v in row)]
            for name, row in zip(table.index, table.to_numpy(), strict=True)
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        lines.append(f"Differences and weights are of {self.criterion}.")
        return "\n".join([*lines, *(t.sentence for t in self.tests), *self.remarks])


def _loaded(result: Any, number: int) -> ResultData:
    """Return a result, read if it is the name of a file."""
    if isinstance(result, (str, os.PathLike)):
        return read_result(os.fspath(result))
    if not isinstance(result, ResultData):
        raise InputError(
            f"compare: expected a result or the name of its file, got {shown(result)} in place "
            f"{number}"
        )
    return result


def compare(
    *results: ResultData | str | os.PathLike[str],
    names: Sequence[str] | None = None,
    nested: bool | None = None,
) -> Comparison:
    """Compare models of the same data by information criteria, and nested ones by a test.

    Parameters
    ----------
    results
        Two results or more, or the names of their files.
    names
        Their names; by default the names of their problems.
    nested
        Whether each model is a special case of those with more parameters. By default a model is
        nested in another with the same equations whose unknowns include its own.

    Returns
    -------
    The comparison. It prints as a table, which is also its attribute ``table``.

    Raises
    ------
    InputError
        There are fewer than two results, one has no solution, or their data differ.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("alpha-pinene")
    >>> result = odefit.fit(problem, "multi-start", seed=1)
    >>> odefit.compare(result, result).weights.tolist()
    [0.5, 0.5]
    """
    if len(results) < 2:
        raise InputError(f"compare: expected two results or more, got {len(results)}")
    fits = tuple(_loaded(result, i) for i, result in enumerate(results, 1))
    labels = list(names) if names is not None else [r.problem.name for r in fits]
    if len(labels) != len(fits):
        raise InputError(f"compare: expected {len(fits)} names, got {len(labels)}")
    called = [
        name if labels.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(labels, 1)
    ]
    for name, result in zip(called, fits, strict=True):
        if not result.solutions:
            raise InputError(f"compare: {name} has no solution: {result.message}")
        if not _same_data(fits[0].problem, result.problem):
            raise InputError(
                f"compare: {called[0]} and {name} were fitted to different data, so their "
                "likelihoods cannot be compared; fit both to the same measurements"
            )
    criteria = [r.criteria for r in fits]
    small = all(math.isfinite(c.aicc) for c in criteria)
    values = np.array([c.aicc if small else c.aic for c in criteria])
    reproduced = [_reproduces(r) for r in fits]
    values[reproduced] = -math.inf  # their likelihoods differ only by rounding errors
    differences = np.zeros(len(values))
    worse = values > values.min()
    differences[worse] = values[worse] - values.min()
    weights = np.exp(-0.5 * differences)
    order = sorted(range(len(fits)), key=lambda i: criteria[i].parameters)
    tests, remarks = [], []
    for i, j in itertools.combinations(order, 2):
        if criteria[i].parameters < criteria[j].parameters:
            if _are_nested(fits[i], fits[j], nested) and reproduced[i]:
                remarks.append(
                    f"{called[i]} reproduces the data to rounding, so no test can show that "
                    f"{called[j]} is better."
                )
            elif _are_nested(fits[i], fits[j], nested):
                tests.append(_test(called[i], called[j], fits[i], fits[j]))
            continue
        few, many = sorted((i, j), key=lambda k: len(fits[k].problem.unknowns))
        fewer, more = len(fits[few].problem.unknowns), len(fits[many].problem.unknowns)
        if fewer < more and _are_nested(fits[few], fits[many], nested):
            remarks.append(
                f"{called[many]} is not tested against {called[few]}: of its "
                f"{more} unknowns the data determine as many as of the {fewer} of "
                f"{called[few]}; the others are at bounds or undetermined."
            )
    best = int(np.argmin(differences))
    alike = [
        called[i]
        for i in np.flatnonzero(differences < ALIKE)
        if i != best
        and not _are_nested(fits[i], fits[best], nested)
        and not _are_nested(fits[best], fits[i], nested)
    ]
    if alike:
        remarks.append(
            f"The data do not distinguish {called[best]} from {' and '.join(alike)}: their "
            f"{'AICc' if small else 'AIC'} differ by less than {ALIKE:g}."
        )
    return Comparison(
        tuple(called),
        tuple(fits),
        "AICc" if small else "AIC",
        differences,
        weights / weights.sum(),
        tuple(tests),
        tuple(remarks),
    )


def _reproduces(result: ResultData) -> bool:
    """True if plain least squares leave only rounding errors as residuals."""
    if result.log_likelihood is not None:
        return False
    series = [s for c in result.problem.conditions for s in c.series.values()]
    squares = sum(float(np.sum(s.values**2)) for s in series)
    return result.objective <= NEGLIGIBLE_RESIDUAL**2 * squares


def _are_nested(smaller: ResultData, larger: ResultData, nested: bool | None) -> bool:
    return _nested(smaller.problem, larger.problem) if nested is None else nested


def _same_data(one: Problem, other: Problem) -> bool:
    if len(one.conditions) != len(other.conditions):
        return False
    for a, b in zip(one.conditions, other.conditions, strict=True):
        if {*a.series} != {*b.series}:
            return False
        for name, series in a.series.items():
            twin = b.series[name]
            same = np.array_equal(a.times[series.rows], b.times[twin.rows])
            if not (same and np.array_equal(series.values, twin.values)):
                return False
    return True


def _nested(smaller: Problem, larger: Problem) -> bool:
    """Tell whether the equations agree and one model fixes more values than the other."""
    return (
        smaller.model == larger.model
        and {*smaller.keys} < {*larger.keys}
        and smaller.noise == larger.noise
    )


def _test(small: str, large: str, smaller: ResultData, larger: ResultData) -> NestedTest:
    a, b = smaller.criteria, larger.criteria
    more = b.parameters - a.parameters
    statistic = a.deviance - b.deviance
    left = b.measurements - b.parameters + 1
    if smaller.log_likelihood is None and larger.log_likelihood is None:
        outcome = f_test(statistic, b.measurements, left, more)
        if outcome is None:
            return NestedTest(small, large, "F", math.nan, more, math.nan)
    else:
        keys = larger.problem.keys
        held = tuple(keys.index(key) for key in keys if key not in smaller.problem.keys)
        outcome = ratio_test(larger.problem, larger.best.vector, held, more, statistic)
    return NestedTest(small, large, outcome.kind.value, outcome.statistic, more, outcome.p)
