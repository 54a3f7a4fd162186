"""Which engine integrates: the switch that recognises stiffness.

A Taylor method is many times faster than an implicit multistep method until the problem is
stiff; then its steps shrink without end. So it gets a limited number of steps. When these are
spent, the implicit engine computes the same segment, and the one that needs fewer steps for it
is tried first from then on. What is known of that is a value, :class:`EngineChoice`, which every
integration takes and returns: it depends on its arguments alone, never on time, so that results
are the same on any machine.
"""

from __future__ import annotations

from typing import Literal

from odefit.problem.errors import InputError
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engine import (
    BatchIntegrator,
    Engine,
    EngineFailure,
    InitialState,
    SegmentSolution,
)
from odefit.simulation.engine_choice import (
    UNDECIDED,
    EngineChoice,
    import_problem,
    missing_package,
)
from odefit.simulation.segments import Segment

EngineName = Literal["auto", "heyoka", "casadi", "local-linearization"]

TAYLOR_TOLERANCE = 1e-12
"""Tolerance of the Taylor method, relative and absolute on the largest component.

The method pays little for accuracy, so this is well below what fits need: between 1e-9 and 1e-12
a step grows by a quarter."""

IMPLICIT_TOLERANCE = 1e-9
"""Relative tolerance of the implicit engine."""

MAX_TAYLOR_STEPS = 100_000
"""Steps that the Taylor method gets for a segment that is long rather than stiff."""

IMPLICIT_STEPS = 20_000
"""Steps of the implicit engine for a segment, but at least :data:`IMPLICIT_STEPS_PER_OUTPUT`
between two outputs."""

IMPLICIT_STEPS_PER_OUTPUT = 1_000
"""Steps that the implicit engine always gets between two outputs."""

LL_TOLERANCE = 1e-6
"""Relative tolerance of the Local Linearization method.

Each further digit takes twice the steps. At 1e-6 states have six to seven correct digits, and
sensitivities four, on the library's problems (at order 2 four to five, and one)."""

LL_ORDER: Literal[2, 3] = 3
"""Order of the Local Linearization method: 2 as published, 3 with states and sensitivities
corrected by the defect of each step. At equal error of the states the latter takes a tenth of
the steps, and its sensitivities are usable for standard errors."""

LL_ABSOLUTE = 1e-3
"""Absolute tolerance of the Local Linearization method over its relative one, in units of each
state's size, as CVODES has it: a state that passes through zero does not stop the others."""

Integrated = tuple[SegmentSolution | EngineFailure, EngineChoice]
"""The outcome of an integration, and the choice of an engine for the next one."""


class Engines:
    """All engines of one problem, each compiled when it is first needed.

    Parameters
    ----------
    setting
        ``"auto"``, or the name of the only engine to use.
    tolerance
        Relative tolerance of the implicit engine and of Local Linearization; None for their
        defaults. The Taylor method always has its own, as accuracy costs it next to nothing.

    Raises
    ------
    InputError
        The package of the engine that is asked for cannot be imported.
    """

    def __init__(self, setting: EngineName = "auto", tolerance: float | None = None) -> None:
        if setting in ("heyoka", "casadi"):
            _require(setting, f"engine='{setting}' cannot be used")
        self.setting = setting
        self.tolerance = tolerance
        self.taylor_tolerance = TAYLOR_TOLERANCE
        self.implicit_tolerance = tolerance or IMPLICIT_TOLERANCE
        self.local_tolerance = tolerance or LL_TOLERANCE
        self._engines: dict[tuple[str, SensitivityPattern], Engine] = {}
        self._batch_integrators: dict[SensitivityPattern, BatchIntegrator] = {}

    def preferred(self, choice: EngineChoice = UNDECIDED) -> EngineName:
        """Return the name of the engine that is tried first."""
        if self.setting != "auto":
            return self.setting
        return "casadi" if choice.stiff or import_problem("heyoka") else "heyoka"

    def warnings(self, field: VectorField) -> tuple[str, ...]:
        """Return sentences about engines that `field` would use and whose packages are missing."""
        if self.setting != "auto" or field.algebraic or not field.smooth:
            return ()
        if not import_problem("heyoka"):
            return ()
        warning = (
            "CasADi's CVODES has integrated in place of heyoka's Taylor method, which is many "
            f"times faster on most problems: {missing_package('heyoka')}"
        )
        return (warning,)

    def integrate(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate a segment by the engine that suits; if that fails, by the other.

        Raises
        ------
        InputError
            The engine that was asked for cannot integrate such equations, or no engine that
            could is installed.
        """
        problem = segment, initial
        if self.setting == "local-linearization":
            engine = self._engine("local-linearization", field, pattern)
            return engine.integrate(*problem, MAX_TAYLOR_STEPS), choice
        if self.setting == "casadi" or field.algebraic or not field.smooth:
            return self._implicit(field, pattern, *problem), choice
        if self.setting == "auto" and import_problem("heyoka"):
            return self._implicit(field, pattern, *problem), choice
        taylor = self._engine("heyoka", field, pattern)
        if self.setting == "heyoka":
            return taylor.integrate(*problem, MAX_TAYLOR_STEPS), choice
        if choice.stiff:
            found = self._implicit(field, pattern, *problem)
            if isinstance(found, EngineFailure):
                found = _either(taylor.integrate(*problem, choice.taylor_steps), found)
            return found, choice
        first = taylor.integrate(*problem, choice.taylor_steps)
        if isinstance(first, SegmentSolution):
            return first, choice
        if not first.out_of_steps and first.steps > 0:
            return first, choice  # a blow-up: the other engine would only take longer to find it
        if import_problem("casadi"):
            return taylor.integrate(*problem, MAX_TAYLOR_STEPS), choice
        second = self._implicit(field, pattern, *problem)
        if not first.out_of_steps:
            # A singular start that only series mind: x^n at x = 0.
            return _either(second, first), choice
        if isinstance(second, SegmentSolution) and second.steps < first.steps + first.steps_ahead:
            return second, EngineChoice(True, choice.taylor_steps)
        if choice.taylor_steps >= MAX_TAYLOR_STEPS or first.steps_ahead > MAX_TAYLOR_STEPS:
            return _either(second, first), choice
        # The segment is long rather than stiff.
        found = _either(taylor.integrate(*problem, MAX_TAYLOR_STEPS), second)
        return found, EngineChoice(False, MAX_TAYLOR_STEPS)

    def batch_integrator(
        self, field: VectorField, pattern: SensitivityPattern, choice: EngineChoice
    ) -> BatchIntegrator | None:
        """Return what integrates batches; None where problems are integrated one by one."""
        local = self.setting == "local-linearization"
        if field.algebraic or not (field.smooth or local) or self.preferred(choice) == "casadi":
            return None
        if pattern not in self._batch_integrators:
            made: BatchIntegrator
            if local:
                from odefit.simulation.local_linearization import LocalLinearizationBatchIntegrator

                made = LocalLinearizationBatchIntegrator(
                    field, pattern, *self._local_tolerances, order=LL_ORDER
                )
            else:
                from odefit.simulation.heyoka_engine import HeyokaBatchIntegrator

                made = HeyokaBatchIntegrator(field, pattern, self.taylor_tolerance)
            self._batch_integrators[pattern] = made
        return self._batch_integrators[pattern]

    @property
    def _local_tolerances(self) -> tuple[float, float]:
        return self.local_tolerance, LL_ABSOLUTE * self.local_tolerance

    def _implicit(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
    ) -> SegmentSolution | EngineFailure:
        steps = max(IMPLICIT_STEPS // len(segment.times), IMPLICIT_STEPS_PER_OUTPUT)
        return self._engine("casadi", field, pattern).integrate(segment, initial, steps)

    def _engine(self, name: EngineName, field: VectorField, pattern: SensitivityPattern) -> Engine:
        key = (name, pattern)
        if key not in self._engines:
            made: Engine
            if name == "heyoka":
                from odefit.simulation.heyoka_engine import HeyokaEngine

                made = HeyokaEngine(field, pattern, self.taylor_tolerance)
            elif name == "casadi":
                _require("casadi", "this model needs an implicit integrator")
                from odefit.simulation.casadi_engine import CasadiEngine

                made = CasadiEngine(field, pattern, self.implicit_tolerance)
            else:
                from odefit.simulation.local_linearization import LocalLinearizationEngine

                made = LocalLinearizationEngine(
                    field, pattern, *self._local_tolerances, order=LL_ORDER
                )
            self._engines[key] = made
        return self._engines[key]


def _require(package: str, consequence: str) -> None:
    """Refuse to go on if the package of an engine cannot be imported."""
    if import_problem(package):
        raise InputError(f"{consequence}: {missing_package(package)}")


def _either(
    second: SegmentSolution | EngineFailure, first: SegmentSolution | EngineFailure
) -> SegmentSolution | EngineFailure:
    """Return the second attempt if it succeeded, else the first with its reason."""
    return second if isinstance(second, SegmentSolution) else first
