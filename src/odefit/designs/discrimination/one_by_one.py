"""Measurements one after the other, as Buzzi-Ferraris and his coworkers choose them.

G. Buzzi-Ferraris, P. Forzatti, G. Emig and H. Hofmann, Sequential experimental design for model
discrimination in the case of multiple responses, Chemical Engineering Science 39, 1984, 81-85. The
difference d of two predictions is compared with its covariance S = 2 V + W1 + W2. V is the
covariance of the noise, W1 and W2 are those of the predictions:

    T = d' S^-1 d + trace(2 V S^-1).

If no T exceeds the number of observables, no measurement is expected to be more informative
than noise; the first term alone then ranks the measurements. Each chosen measurement updates both
models before the next choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.designs.candidates import Pool
from odefit.designs.discrimination.rivals import Field
from odefit.designs.exact import Exchange, Limits
from odefit.designs.information import RunInformation

RIDGE = 1e-12
"""Information, relative to the largest, that keeps matrices from being singular."""


def chosen(pool: Pool, field: Field, limits: Limits) -> tuple[list[int], list[float]]:
    """Return the chosen measurements in order, and the criterion of each.

    Raises InputError if the existing measurements of a model do not determine its predictions.
    """
    rivals = field.rivals
    exchange = Exchange(pool, (), limits)
    models = rivals.right, rivals.other
    predictions = [m.predictions(list(field.runs), field.times, m.vector) for m in models]
    information = []
    for model in models:
        rows = model.data_residuals(model.vector)[1]
        information.append(rows.T @ rows)
        if not len(rows) or np.linalg.matrix_rank(_scaled(information[-1])) < len(model.vector):
            raise InputError(
                f'criterion Buzzi-Ferraris: the measurements that "{model.name}" has do not '
                "determine it; fit it to more, fix unknowns, or take the criterion T"
            )
    design: list[int] = []
    values: list[float] = []
    while True:
        allowed = exchange.allowed(design)
        if not allowed.any():
            return design, values
        covariances = [np.asarray(np.linalg.inv(_regular(i)), dtype=float) for i in information]
        scores = np.full((pool.count, 2), -np.inf)
        for i in np.flatnonzero(allowed):
            in_run, columns = [t[pool.run[i]] for t in predictions], field.columns[pool.group[i]]
            scores[i] = _score(in_run, field.rows[i], columns, covariances)
        counts = np.array([len(field.columns[g]) for g in pool.group])
        telling = bool((scores[:, 0] > counts * (1 + 1e-9)).any())
        best = int(np.argmax(scores[:, 0 if telling else 1]))
        design.append(best)
        values.append(float(scores[best, 0]))
        observed = field.columns[pool.group[best]]
        for k in range(2):
            in_run = predictions[k][pool.run[best]]
            rows = in_run.rows[field.rows[best], observed].reshape(-1, len(information[k]))
            information[k] = information[k] + rows.T @ rows


def _score(
    predictions: Sequence[RunInformation],
    row: int,
    observed: Sequence[int],
    covariances: Sequence[Array],
) -> tuple[float, float]:
    """Return the criterion of a candidate, and its first term."""
    difference = predictions[0].values[row, observed] - predictions[1].values[row, observed]
    variances = (
        np.maximum(predictions[0].sds[row, observed], predictions[1].sds[row, observed]) ** 2
    )
    spread = np.diag(2.0 * variances)
    for one, covariance in zip(predictions, covariances, strict=True):
        slopes = one.gradients[row, observed]
        spread = spread + slopes @ covariance @ slopes.T
    solved = np.linalg.solve(spread, np.column_stack([difference, np.diag(2.0 * variances)]))
    first = float(difference @ solved[:, 0])
    return first + float(np.trace(solved[:, 1:])), first


def _scaled(matrix: Array) -> Array:
    """Return a matrix with ones on its diagonal, as far as that is not zero."""
    sizes = np.sqrt(np.diag(matrix))
    units = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(matrix / np.outer(units, units))


def _regular(matrix: Array) -> Array:
    return np.asarray(matrix + RIDGE * np.diag(np.diag(matrix)))
