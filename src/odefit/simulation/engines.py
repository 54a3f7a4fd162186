"""Which engine integrates: the switch that recognises stiffness.

A Taylor method is many times faster than an implicit multistep method until the problem is
stiff; then its steps shrink without end. So it gets a budget of steps. When that is spent, the
stiff engine computes the same leg, and the one that needs fewer steps for it is kept from then
on. Decisions depend on the legs asked for since :meth:`EngineSwitch.reset`, never on time, so
that results are the same on any machine.
"""

from __future__ import annotations

from typing import Literal

from odefit.simulation.engine import Engine, Leg, Path, Seed, Stop
from odefit.simulation.field import Structure, VectorField

EngineName = Literal["auto", "heyoka", "casadi"]

TAYLOR_TOLERANCE = 1e-12
"""Of the Taylor method, relative and absolute on the largest component.

It pays little for accuracy, so this is well below what fits need: between 1e-9 and 1e-12 a step
grows by a quarter."""

STIFF_TOLERANCE = 1e-9
"""Relative, of the stiff engine."""

BUDGET = 2_000
"""Steps that the Taylor method gets for a leg before the stiff engine is asked."""

GENEROUS = 100_000
"""Steps for a leg that is long rather than stiff."""

STIFF_STEPS = 20_000
"""Steps of the stiff engine for a leg, at least :data:`STIFF_STEPS_EACH` between two outputs."""

STIFF_STEPS_EACH = 1_000


class EngineSwitch:
    """All engines of one field.

    Parameters
    ----------
    engine
        ``"auto"``, or the name of the only engine to use.
    tolerance
        Relative, of the stiff engine; None for its default. The Taylor method is always at
        its own, as it costs next to nothing.
    """

    def __init__(self, engine: EngineName = "auto", tolerance: float | None = None) -> None:
        self._choice = engine
        self.taylor_tolerance = TAYLOR_TOLERANCE
        self.stiff_tolerance = tolerance or STIFF_TOLERANCE
        self._engines: dict[tuple[str, Structure], Engine] = {}
        self._is_stiff = False
        self._budget = BUDGET

    def reset(self) -> None:
        """Forget what was learnt of stiffness."""
        self._is_stiff = False
        self._budget = BUDGET

    @property
    def preferred(self) -> str:
        """Name of the engine that is tried first now."""
        if self._choice != "auto":
            return self._choice
        return "casadi" if self._is_stiff else "heyoka"

    def integrate(
        self, field: VectorField, structure: Structure, leg: Leg, seed: Seed
    ) -> Path | Stop:
        """The leg by the engine that suits; if that fails, by the other."""
        if self._choice == "casadi" or field.algebraic or not field.smooth:
            return self._stiff(field, structure, leg, seed)
        taylor = self._taylor_engine(field, structure)
        if self._choice == "heyoka":
            return taylor.integrate(leg, seed, GENEROUS)
        if self._is_stiff:
            path = self._stiff(field, structure, leg, seed)
            return (
                path
                if isinstance(path, Path)
                else _either(taylor.integrate(leg, seed, self._budget), path)
            )
        first = taylor.integrate(leg, seed, self._budget)
        if isinstance(first, Path):
            return first
        if not first.out_of_steps and first.steps > 0:
            return first  # a blow-up: the stiff engine would only take longer to find it
        second = self._stiff(field, structure, leg, seed)
        if not first.out_of_steps:
            return _either(second, first)  # a singular start that only series mind: x^n at x = 0
        if isinstance(second, Path) and second.steps < first.steps + first.ahead:
            self._is_stiff = True
            return second
        if self._budget >= GENEROUS or first.ahead > GENEROUS:
            return _either(second, first)
        # Long rather than stiff.
        self._budget = GENEROUS
        return _either(taylor.integrate(leg, seed, GENEROUS), second)

    def _stiff(self, field: VectorField, structure: Structure, leg: Leg, seed: Seed) -> Path | Stop:
        steps = max(STIFF_STEPS // len(leg.times), STIFF_STEPS_EACH)
        return self._stiff_engine(field, structure).integrate(leg, seed, steps)

    def _taylor_engine(self, field: VectorField, structure: Structure) -> Engine:
        key = ("heyoka", structure)
        if key not in self._engines:
            from odefit.simulation.heyoka_engine import HeyokaEngine

            self._engines[key] = HeyokaEngine(field, structure, self.taylor_tolerance)
        return self._engines[key]

    def _stiff_engine(self, field: VectorField, structure: Structure) -> Engine:
        key = ("casadi", structure)
        if key not in self._engines:
            from odefit.simulation.casadi_engine import CasadiEngine

            self._engines[key] = CasadiEngine(field, structure, self.stiff_tolerance)
        return self._engines[key]


def _either(second: Path | Stop, first: Path | Stop) -> Path | Stop:
    """The second try if it succeeded, else the first with its reason."""
    return second if isinstance(second, Path) else first
