"""Integral matching as the first step of a start of single shooting."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from odefit.common.arrays import Array
from odefit.methods.estimate import Start
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.integral_matching import IntegralMatching
from odefit.methods.method import LocalMethod
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import EngineName


@dataclass(frozen=True)
class MatchedShooting(LocalMethod):
    """Integral matching, then single shooting from the match: a local method for many starts."""

    matching: IntegralMatching = field(default_factory=lambda: IntegralMatching(polish=False))
    final: SingleShooting = field(default=FINAL)

    @property
    def name(self) -> str:
        """The name shown in results."""
        return self.matching.name

    @property
    def engine(self) -> EngineName:
        """The engine of the forward map."""
        return self.final.engine

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Run one start; if the match fails, the search starts from the original values."""
        began = time.perf_counter()
        match = self.matching.prepared(forward).match(start, control.should_stop, forward)
        matched = math.isfinite(match.cost)
        end = self.final.run(forward, index, match.vector if matched else start, control)
        messages = match.message, end.message
        return replace(
            end,
            start=start,
            message="; then ".join(messages) if matched else "; ".join(reversed(messages)),
            evaluations=end.evaluations + match.evaluations,
            seconds=time.perf_counter() - began,
        )
