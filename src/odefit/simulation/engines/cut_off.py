"""When integrations are cut off: a single trajectory must not hold up the end of a fit.

A search asks between two evaluations whether to stop. One trajectory may take longer than anybody
wants to wait, such as where steps become tiny; so the engines look at a flag while they integrate.
Whoever runs a search sets it, from another thread, some time after the search was told to stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

REASON = "the integration was ended from outside, as the search had to end"
"""The reason of a trajectory that was cut off."""


class CutOffError(Exception):
    """What is not essential was asked for after the cut-off; see :class:`CutOff`."""


@dataclass(frozen=True, eq=False)
class CutOff:
    """Whether integrations are to end now."""

    # One number, which compiled integrators look at: not zero if they are to end.
    flag: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, dtype=np.uint8))
    # Whether an evaluation after the cut-off raises :class:`CutOffError`. Otherwise it is a failure
    # with its reason, as the searches expect it.
    raising: bool = False

    @property
    def reached(self) -> bool:
        """Whether integrations are to end now."""
        return bool(self.flag[0])

    def now(self) -> None:
        """Let all integrations end."""
        self.flag[0] = 1

    def as_error(self) -> CutOff:
        """Return the same cut-off, which raises."""
        return CutOff(self.flag, True)


NEVER = CutOff()  # no cut-off

_current: ContextVar[CutOff] = ContextVar("cut_off", default=NEVER)


def cut_off() -> CutOff:
    """Return the cut-off that holds here."""
    return _current.get()


@contextmanager
def cutting_off(by: CutOff) -> Iterator[None]:
    """Let a cut-off hold for all integrations of this thread within the block."""
    token = _current.set(by)
    try:
        yield
    finally:
        _current.reset(token)
