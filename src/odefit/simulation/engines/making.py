"""The construction of each engine, which imports its package."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import ABSOLUTE_OVER_RELATIVE, BatchIntegrator, Engine

if TYPE_CHECKING:
    from odefit.simulation.engines.narrow_features import NarrowFeatures

LL_ORDER: Literal[2, 3] = 3
"""Order of the Local Linearization method: 2 as published, 3 with states and sensitivities
corrected by the defect of each step. At equal error of the states, order 3 takes a tenth of the
steps, and its sensitivities are usable for standard errors."""

LONGEST_LL_STEP = 0.01
"""Longest step of that method if functions may be flat, relative to the segment."""


@dataclass(frozen=True)
class EngineTask:
    """The purpose of an engine, and its required accuracy."""

    field: VectorField
    pattern: SensitivityPattern
    # Features that an integration could miss; None if no function can be flat.
    features: NarrowFeatures | None
    relative: float
    # Ratio of the absolute to the relative tolerance, in units of each state's size.
    absolute: float
    # Whether sensitivities are under error control, too, if that can be chosen.
    controlled: bool
    # The largest measured value of each state, zero if it is not measured directly.
    measured: tuple[float, ...]
    # Factor up to which an engine with one tolerance for all states may lose digits of a state.
    lost: float
    # Returns the engine for problems that this one's error control does not see; None if it
    # integrates them itself.
    substitute: Callable[[], Engine | None]


def heyoka(task: EngineTask) -> Engine:
    """Return the Taylor method."""
    from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine

    return HeyokaEngine(
        task.field,
        task.pattern,
        task.relative,
        task.features,
        task.measured,
        task.lost,
        task.substitute,
    )


def heyoka_batch(field: VectorField, pattern: SensitivityPattern, tol: float) -> BatchIntegrator:
    """Return the Taylor method for batches."""
    from odefit.simulation.engines.heyoka.heyoka_batches import HeyokaBatchIntegrator

    return HeyokaBatchIntegrator(field, pattern, tol)


def runge_kutta(task: EngineTask) -> Engine:
    """Return the explicit engine."""
    from odefit.simulation.engines.runge_kutta.engine import RungeKuttaEngine

    return RungeKuttaEngine(
        task.field, task.pattern, task.relative, task.controlled, task.absolute, task.features
    )


def bdf(task: EngineTask) -> Engine:
    """Return the stiff engine."""
    from odefit.simulation.engines.bdf.engine import BdfEngine

    return BdfEngine(
        task.field, task.pattern, task.relative, task.controlled, task.absolute, task.features
    )


def lsoda(task: EngineTask) -> Engine:
    """Return LSODA."""
    from odefit.simulation.engines.lsoda_engine import LsodaEngine

    return LsodaEngine(task.field, task.pattern, task.relative, task.absolute, task.features)


def casadi(task: EngineTask) -> Engine:
    """Return CVODES, or IDAS."""
    from odefit.simulation.engines.casadi_engine import CasadiEngine

    return CasadiEngine(task.field, task.pattern, task.relative, task.features)


def linearized(task: EngineTask) -> Engine:
    """Return Local Linearization."""
    from odefit.simulation.engines.linearized.local_linearization import LocalLinearizationEngine

    return LocalLinearizationEngine(
        task.field,
        task.pattern,
        task.relative,
        ABSOLUTE_OVER_RELATIVE * task.relative,
        order=LL_ORDER,
        longest=math.inf if task.features is None else LONGEST_LL_STEP,
    )


def linearized_batch(
    field: VectorField, pattern: SensitivityPattern, tol: float
) -> BatchIntegrator:
    """Return Local Linearization for batches."""
    from odefit.simulation.engines.linearized import local_linearization as module

    return module.LocalLinearizationBatchIntegrator(
        field, pattern, tol, ABSOLUTE_OVER_RELATIVE * tol, order=LL_ORDER
    )
