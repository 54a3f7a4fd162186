"""A density whose values are kept in a checkpoint, from which a killed chain is repeated.

The points of a sampler with a fixed seed follow from the values before them. A chain that begins
again and finds these stored is soon where it was, without an integration.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np

from odefit.assessment.sampling.log_posterior import LogPosterior
from odefit.common.arrays import Array
from odefit.methods.running.checkpoint import Checkpoint
from odefit.simulation.engines.cut_off import cut_off

BLOCK = 100
"""Number of values stored together: a kill costs fewer than these."""


class StoredDensity:
    """The logarithm of a density with its gradient, in the order in which a sampler asks for them.

    Complete blocks of values are added to `checkpoint`, if there is one, and found there by a later
    run. Each block begins with the engines of the estimate, so that values do not depend on where a
    run was interrupted. A block of other points, as by another version of the sampler, is replaced.
    """

    def __init__(self, density: LogPosterior, checkpoint: Checkpoint | None) -> None:
        self._density, self._checkpoint = density, checkpoint
        self._count = 0
        self._rows: list[Array] = []  # of the present block: digest of the point, value, gradient

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Return the logarithm and its gradient, shape (n,), at whitened coordinates."""
        block, row = divmod(self._count, BLOCK)
        self._count += 1
        if row == 0:
            self._rows = self._stored(str(block), len(point))
            self._density.forget_engines()
        digest = float(zlib.crc32(np.ascontiguousarray(point).tobytes()))
        if row < len(self._rows):
            known = self._rows[row]
            if known[0] == digest:
                return float(known[1]), known[2:].copy()
            del self._rows[row:]
        value, slope = self._density(point)
        if not cut_off().reached:  # else the integration may have been ended by a limit
            self._rows.append(np.array([digest, value, *slope]))
            if len(self._rows) == BLOCK and self._checkpoint is not None:
                text = base64.b64encode(np.array(self._rows).tobytes()).decode()
                self._checkpoint.put(str(block), text)
        return value, slope

    def _stored(self, key: str, n: int) -> list[Array]:
        """Return the values of a block of the checkpoint; none if it is missing or damaged."""
        if self._checkpoint is None:
            return []
        try:
            values = np.frombuffer(base64.b64decode(self._checkpoint.records[key], validate=True))
            return list(values.reshape(BLOCK, n + 2))
        except (KeyError, TypeError, ValueError, binascii.Error):
            return []
