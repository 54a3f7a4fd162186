"""Solvers made of trouble, which the tests run in real processes."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from odefit.common.errors import InputError
from odefit.discretisation.instance import Instance
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Progress, make_answer


@dataclass(frozen=True)
class Trouble:
    """Reports two points, makes a file if it is told to, then does what `kind` says."""

    kind: str
    reports: bool = True
    file: Path | None = None
    name: str = "trouble"
    scope: Literal["local", "global"] = "global"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        d = instance.discretisation
        if progress is not None and self.reports:
            for level, bound in ((1.0, None), (0.5, 0.25)):
                point = np.full((d.points, len(d.variables)), level)
                progress(point, np.full(len(d.problem.unknowns), level), bound)
            progress(None, None, 0.375)
        if self.file is not None:
            self.file.touch()
        if self.kind == "hang":
            time.sleep(60)
        if self.kind == "abort":
            os.write(2, b"terminate called\n")
            os.abort()
        if self.kind == "segfault":
            ctypes.string_at(0)
        if self.kind == "exit":
            os._exit(3)
        if self.kind == "raise":
            raise RuntimeError("out of ideas")
        if self.kind == "refuse":
            raise InputError(["no", "and no"])
        values = np.full((d.points, len(d.variables)), 0.25)
        return make_answer(
            instance, Outcome.SOLVED, values, np.full(1, 0.25), 0.125, 0.0, d.described(), 7
        )


@dataclass(frozen=True)
class Shy:
    """Solves in peace, and dies when it is watched."""

    name: str = "shy"
    scope: Literal["global"] = "global"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        d = instance.discretisation
        point = np.ones((d.points, len(d.variables)))
        unknowns = np.ones(len(d.problem.unknowns))
        return make_answer(instance, Outcome.SOLVED, point, unknowns, 0.25, 0.0, "in peace")

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        os.abort()


@dataclass(frozen=True)
class Patient:
    """IPOPT, which begins when it is asked to stop."""

    name: str = "patient"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        assert limits.stop is not None
        while not limits.stop():
            time.sleep(0.001)
        return Ipopt().follow(instance, limits, progress)


@dataclass(frozen=True)
class Fragile:
    """IPOPT, whose first solve of all takes its process with it."""

    crashed: Path
    name: str = "Fragile"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        if not self.crashed.exists():
            self.crashed.touch()
            os.kill(os.getpid(), signal.SIGSEGV)
        return Ipopt().follow(instance, limits, progress)
