"""The engines by name: how each is made, with the accuracy that it is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import ABSOLUTE_OVER_RELATIVE, LOST_DIGITS, Engine

if TYPE_CHECKING:
    from odefit.simulation.engines.narrow_features import NarrowFeatures

EngineName = Literal["auto", "heyoka", "bdf", "casadi", "local-linearization", "lsoda"]

LL_ORDER: Literal[2, 3] = 3
"""Order of the Local Linearization method: 2 as published, 3 with states and sensitivities
corrected by the defect of each step. At equal error of the states the latter takes a tenth of
the steps, and its sensitivities are usable for standard errors."""

LONGEST_LL_STEP = 0.01
"""Longest step of that method where functions may be flat, relative to the segment."""


ABSOLUTE_OVER_NOISE = 0.01
"""Absolute tolerance over the standard deviation of the noise, at most."""

SMALLEST_ABSOLUTE = 1e-40
"""Absolute tolerance over the relative one, at least: no measurement counts below that."""


@dataclass(frozen=True)
class Accuracy:
    """What the engines of a problem are asked for."""

    # Relative tolerances of the Taylor method, of implicit engines, and of Local Linearization.
    taylor: float
    implicit: float
    local: float
    absolute: float  # Absolute tolerance over the relative one, in units of each state's size
    # Whether odefit's implicit engine holds the errors of sensitivities to the tolerance, too.
    controlled: bool
    # The largest measured value of each state, zero where it is not measured as it is.
    measured: tuple[float, ...] = ()
    lost: float = LOST_DIGITS  # Factor up to which the Taylor method may lose digits of a state


def made_engine(
    name: EngineName,
    field: VectorField,
    pattern: SensitivityPattern,
    accuracy: Accuracy,
    features: NarrowFeatures | None,
) -> Engine:
    """Return an engine; `features` are what it could step across, None if there is nothing."""
    if name == "heyoka":
        from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine

        return HeyokaEngine(
            field, pattern, accuracy.taylor, features, accuracy.measured, accuracy.lost
        )
    if name == "bdf":
        from odefit.simulation.engines.bdf.engine import BdfEngine

        tolerances = accuracy.implicit, accuracy.controlled, accuracy.absolute
        return BdfEngine(field, pattern, *tolerances, features)
    if name == "casadi":
        from odefit.simulation.engines.casadi_engine import CasadiEngine

        return CasadiEngine(field, pattern, accuracy.implicit, features)
    if name == "lsoda":
        from odefit.simulation.engines.lsoda_engine import LsodaEngine

        return LsodaEngine(field, pattern, accuracy.implicit, accuracy.absolute, features)
    from odefit.simulation.engines.linearized.local_linearization import LocalLinearizationEngine

    return LocalLinearizationEngine(
        field,
        pattern,
        accuracy.local,
        ABSOLUTE_OVER_RELATIVE * accuracy.local,
        order=LL_ORDER,
        longest=math.inf if features is None else LONGEST_LL_STEP,
    )
