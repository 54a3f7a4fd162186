"""Which engine integrates: the switch that recognises stiffness.

A Taylor method is many times faster than an implicit multistep method until the problem is
stiff; then its steps shrink without end. So it gets as many steps as are as much work as a usual
integration by the implicit engine. When these are spent, the implicit engine computes the same
segment, and the one whose work for it is less is tried first from then on. Work is counted, in
steps times what a step is predicted to cost (:mod:`odefit.simulation.engines.step_costs`). What is
known of it is a value, :class:`EngineChoice`, which every integration takes and returns: it depends
on its arguments alone, never on time, so that results are the same on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from odefit.problem.vector_field import SensitivityPattern, StoppedField, VectorField
from odefit.simulation.engines.cut_off import REASON, cut_off
from odefit.simulation.engines.engine import (
    ABSOLUTE_OVER_RELATIVE,
    LOST_DIGITS,
    LOST_DIGITS_OF_SEARCHES,
    UNSEEN,
    Adjoint,
    BatchIntegrator,
    Engine,
    EngineFailure,
    InitialState,
    SegmentSolution,
    smallest_share,
)
from odefit.simulation.engines.engine_choice import (
    UNDECIDED,
    EngineChoice,
    after_taylor,
    import_problem,
    missing_engines,
    missing_package,
    require_engine,
)
from odefit.simulation.engines.making_engines import (
    ABSOLUTE_OVER_NOISE,
    LL_ORDER,
    SMALLEST_ABSOLUTE,
    Accuracy,
    EngineName,
    made_engine,
)
from odefit.simulation.engines.segments import Segment
from odefit.simulation.engines.step_costs import StepCosts
from odefit.simulation.engines.step_limits import (
    CVODES_STEPS,
    CVODES_STEPS_PER_OUTPUT,
    IMPLICIT_STEPS,
    LATER_TRIALS,
    MAX_TAYLOR_STEPS,
    OPERATIONS_ALONE,
    OUTPUTS_ALONE,
    STEP_ORDER,
    STEPS_FOR_OUTPUT,
    TAYLOR_MARGIN,
    TAYLOR_TRIAL,
    USUAL_IMPLICIT_STEPS,
    usual_steps,
)
from odefit.simulation.engines.unit_choices import stiff_everywhere

TAYLOR_TOLERANCE = 1e-12
"""Tolerance of the Taylor method, relative and absolute on the largest component.

The method pays little for accuracy, so this is well below what fits need: between 1e-9 and 1e-12
a step grows by a quarter."""

IMPLICIT_TOLERANCE = 1e-9
"""Relative tolerance of the implicit engines."""

LL_TOLERANCE = 1e-6
"""Relative tolerance of the Local Linearization method.

Each further digit takes twice the steps. At 1e-6 states have six to seven correct digits, and
sensitivities four, on the library's problems (at order 2 four to five, and one)."""

PACKAGES = {"heyoka": "heyoka", "bdf": "numba", "casadi": "casadi", "lsoda": "casadi"}
"""Packages that engines need; "bdf" and "casadi" both need CasADi to differentiate a model."""

if TYPE_CHECKING:
    from odefit.simulation.engines.narrow_features import NarrowFeatures

Integrated = tuple[SegmentSolution | EngineFailure, EngineChoice]
"""The outcome of an integration, and the choice of an engine for the next one."""


class Engines:
    """All engines of one problem, each compiled when it is first needed.

    `setting`: ``"auto"``, or the name of the only engine to use; `tolerance`: relative tolerance of
    the implicit engines and of Local Linearization; None for their defaults. The Taylor method
    always has its own, as accuracy costs it next to nothing; `steps`: steps that odefit's implicit
    engine gets for a segment, beside those that many outputs need; None for :data:`IMPLICIT_STEPS`;
    `controlled`: whether odefit's implicit engine holds the errors of sensitivities to the
    tolerance, too; `finest`: the smallest noise of a measurement, relative to the largest value of
    its series, see :func:`odefit.simulation.engines.needed_accuracy.finest_noise`; `measured`: the
    largest measured value of states that are measured as they are, by name. Raises InputError: the
    package of the engine that is asked for cannot be imported.
    """

    def __init__(
        self,
        setting: EngineName = "auto",
        tolerance: float | None = None,
        steps: int | None = None,
        controlled: bool = True,
        finest: float = math.inf,
        measured: Mapping[str, float] | None = None,
    ) -> None:
        if setting in PACKAGES:
            require_engine(PACKAGES[setting], f"engine='{setting}' cannot be used")
        self.setting = setting
        self.tolerance = tolerance
        self.steps = steps
        self.controlled = controlled
        self.finest = finest
        self.measured = measured or {}
        self.taylor_tolerance = TAYLOR_TOLERANCE
        self.implicit_tolerance = tolerance or IMPLICIT_TOLERANCE
        self.local_tolerance = tolerance or LL_TOLERANCE
        self._accuracy = tolerance, controlled  # of all engines but the Taylor method
        self._engines: dict[tuple[EngineName, SensitivityPattern, object], Engine] = {}
        self._step_costs: dict[int, StepCosts] = {}
        self._batch_integrators: dict[SensitivityPattern, BatchIntegrator] = {}
        self._watched: dict[VectorField, NarrowFeatures | None] = {}
        self._stopped: dict[float, tuple[StoppedField, Engines]] = {}

    def with_accuracy(self, tolerance: float, controlled: bool) -> Engines:
        """Return engines with another accuracy of the implicit ones; what is compiled is shared."""
        other = Engines(self.setting, tolerance, self.steps, controlled, self.finest, self.measured)
        other._engines, other._step_costs = self._engines, self._step_costs
        other._watched = self._watched
        return other

    def preferred(self, choice: EngineChoice = UNDECIDED) -> EngineName:
        """Return the name of the engine that is tried first."""
        if self.setting != "auto":
            return self.setting
        if not choice.stiff and not import_problem("heyoka"):
            return "heyoka"
        return "casadi" if import_problem("numba") else "bdf"

    def implicit_name(self, field: VectorField) -> EngineName:
        """Return the name of the implicit engine for `field`."""
        if self.setting == "casadi" or field.algebraic:
            return "casadi"
        return "casadi" if self.setting != "bdf" and import_problem("numba") else "bdf"

    def implicit(self, field: VectorField, choice: EngineChoice = UNDECIDED) -> bool:
        """Return whether an implicit engine is tried first."""
        name = self.preferred(choice)
        if name in ("local-linearization", "lsoda"):
            return False
        return name != "heyoka" or self._needs_implicit(field)

    def states_alone(
        self, field: VectorField, directions: int, outputs: int, choice: EngineChoice = UNDECIDED
    ) -> bool:
        """Return whether it pays to integrate the states alone where no derivatives are needed.

        `directions`: number of directions of sensitivities; `outputs`: number of times at which
        values are wanted.
        """
        if self.preferred(choice) != "heyoka" or self.implicit(field, choice):
            return True
        if outputs >= OUTPUTS_ALONE:
            return True
        return self._costs(field, directions).operations >= OPERATIONS_ALONE

    def warnings(self, field: VectorField) -> tuple[str, ...]:
        """Return sentences about engines that `field` would use and whose packages are missing."""
        if self.setting != "auto":
            return ()
        return missing_engines(not self._needs_implicit(field), not field.algebraic)

    def integrate(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate a segment by the engine that suits; if that fails, by the other.

        Raises InputError: the engine that was asked for cannot integrate such equations, or no
        engine that could is installed.
        """
        if cut_off().reached:
            return EngineFailure(segment.start, REASON), choice
        features = self._features(field)
        if features is not None:
            closed = self.setting == "lsoda" or self.implicit_name(field) == "casadi"
            segment = features.with_stops(segment, initial.scalars, centres=closed)
        problem = segment, initial
        if self.setting in ("local-linearization", "lsoda"):
            engine = self._engine(self.setting, field, pattern)
            return engine.integrate(*problem, self.steps or MAX_TAYLOR_STEPS), choice
        if self.setting in ("bdf", "casadi") or self._needs_implicit(field):
            return self._implicit(field, pattern, *problem), choice
        if self.setting == "heyoka":
            taylor = self._engine("heyoka", field, pattern)
            return taylor.integrate(*problem, MAX_TAYLOR_STEPS), choice
        if import_problem("heyoka") or self._costs(field, pattern.directions).too_large_for_taylor:
            return self._implicit(field, pattern, *problem), EngineChoice(stiff=True)
        flat = features is not None and features.acts(initial.scalars)
        unseen = smallest_share(initial.states, 0.0) < UNSEEN
        fine = ABSOLUTE_OVER_NOISE * self.finest < self.taylor_tolerance
        if fine or (self._searching and (flat or unseen)):  # which need not be as accurate
            return self._watched_first(field, pattern, *problem, choice)
        first = self._implicit_first if choice.stiff else self._taylor_first
        return first(field, pattern, *problem, choice)

    def _watched_first(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate what heyoka's own error control does not suffice for.

        The implicit engine looks at its defects in compiled code; the Taylor method is held to
        the same step by step, which takes several times as long.
        """
        found = self._implicit(field, pattern, segment, initial)
        if isinstance(found, SegmentSolution) or self._suffices(found):
            return found, choice if choice.stiff else EngineChoice(stiff=True)
        taylor = self._engine("heyoka", field, pattern)
        allowed = choice.taylor_steps or MAX_TAYLOR_STEPS // 10
        return _either(taylor.integrate(segment, initial, allowed), found), choice

    def _implicit_first(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate what was stiff so far; the Taylor method is tried where it may be no longer."""
        found = self._implicit(field, pattern, segment, initial)
        if isinstance(found, SegmentSolution) and choice.since + 1 < TAYLOR_TRIAL:
            return found, EngineChoice(True, choice.taylor_steps, choice.since + 1)
        if isinstance(found, EngineFailure) and self._suffices(found):
            return found, choice
        costs = self._costs(field, pattern.directions)
        taylor = self._engine("heyoka", field, pattern)
        if isinstance(found, EngineFailure):
            allowed = choice.taylor_steps or costs.taylor_steps(usual_steps(segment))
            return _either(taylor.integrate(segment, initial, allowed), found), choice
        trial = taylor.integrate(segment, initial, costs.taylor_steps(found.steps))
        if isinstance(trial, SegmentSolution):
            return found, EngineChoice()
        return found, EngineChoice(stiff=True, since=TAYLOR_TRIAL - LATER_TRIALS)

    def _taylor_first(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate what is not known to be stiff; the implicit engine is asked where it may be."""
        costs = self._costs(field, pattern.directions)
        taylor = self._engine("heyoka", field, pattern)
        allowed = choice.taylor_steps or costs.taylor_steps(usual_steps(segment))
        first = taylor.integrate(segment, initial, allowed)
        if isinstance(first, SegmentSolution):
            cheap = costs.taylor_steps(usual_steps(segment, self._usual_steps))
            return first, after_taylor(choice, first.steps <= max(cheap, choice.taylor_steps or 0))
        if not first.out_of_steps and first.steps > 0:
            return first, choice  # a blow-up: the other engine would only take longer to find it
        if import_problem("casadi"):
            last = taylor.integrate(segment, initial, MAX_TAYLOR_STEPS)
            if isinstance(last, EngineFailure) and last.out_of_steps:
                reason = f"{last.reason}, and without an implicit integrator stiff equations cannot"
                reason += f" be integrated: {missing_package('casadi')}"
                last = replace(last, reason=reason)
            return last, choice
        second = self._implicit(field, pattern, segment, initial)
        if not first.out_of_steps:
            # A singular start that only series mind: x^n at x = 0.
            return _either(second, first), choice
        needed = first.steps + first.steps_ahead
        if isinstance(second, SegmentSolution) and costs.taylor_steps(second.steps) < needed:
            return second, EngineChoice(stiff=True)
        if allowed >= MAX_TAYLOR_STEPS or first.steps_ahead > MAX_TAYLOR_STEPS:
            return _either(second, first), choice
        if isinstance(second, EngineFailure) and self._suffices(second):
            return second, EngineChoice(stiff=True)
        # The segment is long rather than stiff.
        steps = int(min(MAX_TAYLOR_STEPS, TAYLOR_MARGIN * needed))
        found = _either(taylor.integrate(segment, initial, steps), second)
        return found, EngineChoice(taylor_steps=steps)

    @property
    def _searching(self) -> bool:
        """Return whether these engines integrate with the accuracy of a search."""
        return self.implicit_tolerance > IMPLICIT_TOLERANCE

    @property
    def absolute(self) -> float:
        """Absolute tolerance over the relative one, in units of the largest value of each state.

        It is less than usual where values are measured so accurately that are so much smaller.
        """
        needed = ABSOLUTE_OVER_NOISE * self.finest / self.implicit_tolerance
        return min(ABSOLUTE_OVER_RELATIVE, max(needed, SMALLEST_ABSOLUTE))

    @property
    def _usual_steps(self) -> int:
        """Steps of a usual integration by the implicit engine, at its tolerance."""
        ratio = IMPLICIT_TOLERANCE / self.implicit_tolerance
        shorter: float = ratio ** (1 / STEP_ORDER)
        return round(USUAL_IMPLICIT_STEPS * min(shorter, 1.0))

    def _suffices(self, failure: EngineFailure) -> bool:
        """Return whether a failure of the implicit engine is not looked at by the Taylor method.

        A solution that grows without bound is none to either. No search waits for that.
        """
        return self.steps is not None and not failure.out_of_steps

    def implicit_solution(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
        max_steps: int,
    ) -> SegmentSolution | EngineFailure:
        """Integrate a segment by the implicit engine, in a number of steps at most."""
        engine = self._engine(self.implicit_name(field), field, pattern)
        return engine.integrate(segment, initial, max_steps)

    def has_adjoint(self, field: VectorField, choice: EngineChoice) -> bool:
        """Return whether the engine that is tried first has an adjoint, in all conditions."""
        if self.implicit_name(field) != "bdf" or self.setting in ("heyoka", "local-linearization"):
            return False
        sure = self.setting == "bdf" or self._needs_implicit(field)
        return sure or bool(import_problem("heyoka")) or stiff_everywhere(choice)

    def recorded(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
    ) -> tuple[SegmentSolution, Adjoint] | EngineFailure:
        """Integrate a segment by odefit's implicit engine, which has an adjoint."""
        from odefit.simulation.engines.bdf.engine import BdfEngine

        engine = self._engine("bdf", field, pattern)
        assert isinstance(engine, BdfEngine)
        return engine.recorded(segment, initial, IMPLICIT_STEPS)

    def stopped(self, field: VectorField, time: float) -> tuple[StoppedField, Engines]:
        """Return `field` with the time stopped at `time`, and the engines for that."""
        if time not in self._stopped:
            engines = Engines(
                self.setting,
                self.tolerance,
                self.steps,
                self.controlled,
                self.finest,
                self.measured,
            )
            self._stopped[time] = StoppedField.at(field, time), engines
        return self._stopped[time]

    def batch_integrator(
        self, field: VectorField, pattern: SensitivityPattern, choice: EngineChoice
    ) -> BatchIntegrator | None:
        """Return what integrates batches; None where problems are integrated one by one."""
        local = self.setting == "local-linearization"
        implicit = self.preferred(choice) in ("bdf", "casadi")
        if field.algebraic or not (field.smooth or local) or implicit:
            return None
        if self._features(field) is not None:
            return None  # a batch has no stops, and nothing is watched along its steps
        if pattern not in self._batch_integrators:
            made: BatchIntegrator
            if local:
                from odefit.simulation.engines.linearized.local_linearization import (
                    LocalLinearizationBatchIntegrator,
                )

                tolerances = self.local_tolerance, ABSOLUTE_OVER_RELATIVE * self.local_tolerance
                made = LocalLinearizationBatchIntegrator(
                    field, pattern, *tolerances, order=LL_ORDER
                )
            else:
                from odefit.simulation.engines.heyoka.heyoka_batches import HeyokaBatchIntegrator

                made = HeyokaBatchIntegrator(field, pattern, self.taylor_tolerance)
            self._batch_integrators[pattern] = made
        return self._batch_integrators[pattern]

    def _features(self, field: VectorField) -> NarrowFeatures | None:
        """Return what has to be watched of a field."""
        if field not in self._watched:
            self._watched[field] = None
            if not import_problem("casadi"):
                from odefit.simulation.engines.narrow_features import NarrowFeatures

                self._watched[field] = NarrowFeatures.of(field)
        return self._watched[field]

    def _implicit(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: InitialState,
    ) -> SegmentSolution | EngineFailure:
        name = self.implicit_name(field)
        steps = IMPLICIT_STEPS
        if self.steps is not None:
            steps = min(steps, self.steps + STEPS_FOR_OUTPUT * len(segment.times))
        if name == "casadi":
            steps = max(CVODES_STEPS // len(segment.times), CVODES_STEPS_PER_OUTPUT)
        return self._engine(name, field, pattern).integrate(segment, initial, steps)

    @staticmethod
    def _needs_implicit(field: VectorField) -> bool:
        """Return whether the Taylor method cannot integrate the equations."""
        return bool(field.algebraic) or not field.smooth

    def step_time(self, field: VectorField, directions: int, choice: EngineChoice) -> float:
        """Return the predicted time of a step, in ns, where that engine is tried first."""
        costs = self._costs(field, directions)
        return costs.taylor if self.preferred(choice) == "heyoka" else costs.implicit

    def _costs(self, field: VectorField, directions: int) -> StepCosts:
        if directions not in self._step_costs:
            self._step_costs[directions] = StepCosts.of(field, directions)
        return self._step_costs[directions]

    def _engine(self, name: EngineName, field: VectorField, pattern: SensitivityPattern) -> Engine:
        key = (name, pattern, self._searching if name == "heyoka" else self._accuracy)
        if key not in self._engines:
            if name in ("bdf", "casadi"):
                require_engine("casadi", "this model needs an implicit integrator")
            accuracy = Accuracy(
                self.taylor_tolerance,
                self.implicit_tolerance,
                self.local_tolerance,
                self.absolute,
                self.controlled,
                tuple(self.measured.get(name, 0.0) for name in field.states),
                LOST_DIGITS_OF_SEARCHES if self._searching else LOST_DIGITS,
            )
            self._engines[key] = made_engine(name, field, pattern, accuracy, self._features(field))
        return self._engines[key]


def _either(
    second: SegmentSolution | EngineFailure, first: SegmentSolution | EngineFailure
) -> SegmentSolution | EngineFailure:
    """Return the second attempt if it succeeded, else the failure that says more."""
    if isinstance(second, SegmentSolution) or isinstance(first, SegmentSolution):
        return second if isinstance(second, SegmentSolution) else first
    return second if first.out_of_steps else first
