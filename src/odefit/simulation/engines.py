"""Which engine integrates: the switch that recognises stiffness.

A Taylor method is many times faster than an implicit multistep method until the problem is
stiff; then its steps shrink without end. So it gets a budget of steps. When that is spent, the
stiff engine computes the same leg, and the one that needs fewer steps for it is kept from then
on. Decisions depend on the legs asked for since :meth:`EngineSwitch.reset`, never on time, so
that results are the same on any machine.
"""

from __future__ import annotations

from typing import Literal

from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.engine import Engine, Lanes, Leg, Path, Seed, Stop

EngineName = Literal["auto", "heyoka", "casadi", "local-linearization"]

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

LL_TOLERANCE = 1e-6
"""Relative, of the Local Linearization method.

Each further digit takes twice the steps. At 1e-6 states have six to seven correct digits, and
sensitivities four, on the library's problems (at order 2 four to five, and one)."""

LL_ORDER: Literal[2, 3] = 3
"""2 as published, 3 with states and sensitivities corrected by the defect of each step: at equal
error of the states the latter takes a tenth of the steps, and its sensitivities are usable for
standard errors."""

LL_ABSOLUTE = 1e-3
"""Its absolute tolerance over the relative one, in units of each state's size, as CVODES has it:
a state that passes through zero does not stop the others."""


class EngineSwitch:
    """All engines of one field.

    Parameters
    ----------
    engine
        ``"auto"``, or the name of the only engine to use.
    tolerance
        Relative, of the stiff engine and of Local Linearization; None for their defaults. The
        Taylor method is always at its own, as it costs next to nothing.
    """

    def __init__(self, engine: EngineName = "auto", tolerance: float | None = None) -> None:
        self.choice = engine
        self.tolerance = tolerance
        self.taylor_tolerance = TAYLOR_TOLERANCE
        self.stiff_tolerance = tolerance or STIFF_TOLERANCE
        self.local_tolerance = tolerance or LL_TOLERANCE
        self._engines: dict[tuple[str, Structure], Engine] = {}
        self._lanes: dict[tuple[str, Structure], Lanes] = {}
        self._is_stiff = False
        self._budget = BUDGET

    def reset(self) -> None:
        """Forget what was learnt of stiffness."""
        self._is_stiff = False
        self._budget = BUDGET

    @property
    def preferred(self) -> str:
        """Name of the engine that is tried first now."""
        if self.choice != "auto":
            return self.choice
        return "casadi" if self._is_stiff else "heyoka"

    def integrate(
        self, field: VectorField, structure: Structure, leg: Leg, seed: Seed
    ) -> Path | Stop:
        """The leg by the engine that suits; if that fails, by the other.

        Raises
        ------
        InputError
            The engine that was asked for cannot integrate such equations.
        """
        if self.choice == "local-linearization":
            return self._local_engine(field, structure).integrate(leg, seed, GENEROUS)
        if self.choice == "casadi" or field.algebraic or not field.smooth:
            return self._stiff(field, structure, leg, seed)
        taylor = self._taylor_engine(field, structure)
        if self.choice == "heyoka":
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

    def lanes(self, field: VectorField, structure: Structure) -> Lanes | None:
        """What integrates many stretches at once now; None where that is done one by one."""
        local = self.choice == "local-linearization"
        if field.algebraic or not (field.smooth or local) or self.preferred == "casadi":
            return None
        key = ("lanes", structure)
        if key not in self._lanes:
            if local:
                from odefit.simulation.local_linearization import LocalLinearizationLanes

                tolerance = self.local_tolerance
                self._lanes[key] = LocalLinearizationLanes(
                    field, structure, tolerance, LL_ABSOLUTE * tolerance, order=LL_ORDER
                )
            else:
                from odefit.simulation.heyoka_lanes import HeyokaLanes

                self._lanes[key] = HeyokaLanes(field, structure, self.taylor_tolerance)
        return self._lanes[key]

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

    def _local_engine(self, field: VectorField, structure: Structure) -> Engine:
        key = ("local-linearization", structure)
        if key not in self._engines:
            from odefit.simulation.local_linearization import LocalLinearizationEngine

            tolerance = self.local_tolerance
            self._engines[key] = LocalLinearizationEngine(
                field, structure, tolerance, LL_ABSOLUTE * tolerance, order=LL_ORDER
            )
        return self._engines[key]


def _either(second: Path | Stop, first: Path | Stop) -> Path | Stop:
    """The second try if it succeeded, else the first with its reason."""
    return second if isinstance(second, Path) else first
