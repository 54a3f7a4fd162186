"""The engines of one problem, and the switch between them by stiffness.

An explicit method of high order is faster than an implicit multistep method until the problem is
stiff; then its steps shrink without end. It is odefit's Runge-Kutta method, or heyoka's Taylor
method where heyoka is installed and the equations are not linear ones of few states. When it has
taken as long as a usual implicit integration, the implicit engine computes the same segment. Some
integrations are repeated by the other engine, and the one that is expected to be faster goes first
from then on. Times are predicted (:mod:`odefit.simulation.engines.comparison`). Every integration
takes and returns the knowledge of the stiffness, as a value: :class:`EngineChoice`. It depends on
its arguments alone, never on the clock, so that results are the same on any machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from odefit.problem.vector_field import SensitivityPattern, StoppedField, VectorField
from odefit.simulation.engines.comparison import MARGIN, MARGIN_OF_TAYLOR, Comparison
from odefit.simulation.engines.cut_off import NANOSECONDS, REASON, count_work, cut_off
from odefit.simulation.engines.engine import (
    LOST_DIGITS,
    LOST_DIGITS_OF_SEARCHES,
    UNSEEN,
    Adjoint,
    AdjointEngine,
    BatchIntegrator,
    Engine,
    EngineFailure,
    Integration,
    SegmentSolution,
    Solved,
    Values,
    either,
    smallest_share,
)
from odefit.simulation.engines.engine_choice import (
    UNDECIDED,
    EngineChoice,
    Integrated,
)
from odefit.simulation.engines.linear.closed_form import ClosedForm
from odefit.simulation.engines.linear.forms import LinearForms
from odefit.simulation.engines.making import EngineTask
from odefit.simulation.engines.needed_accuracy import NeededAccuracy
from odefit.simulation.engines.passages import Passing, PassingEngine
from odefit.simulation.engines.registry import (
    ENGINES,
    EXPLICIT,
    TAYLOR,
    EngineName,
    EngineRow,
    explicit_engine,
    import_problem,
    missing_engines,
    require_engine,
    stiff_engine,
)
from odefit.simulation.engines.segments import Segment
from odefit.simulation.engines.steps import (
    EXPLICIT_SHARE,
    IMPLICIT_TOLERANCE,
    MAX_TAYLOR_STEPS,
    OPERATIONS_ALONE,
    OUTPUTS_ALONE,
    StepCosts,
)
from odefit.simulation.engines.switch import Switch

if TYPE_CHECKING:
    from odefit.simulation.engines.narrow_features import NarrowFeatures


MOST_COMPARED = 200
"""Number of states above which equations with many sensitivities are always integrated by the
implicit engine: to prepare another one would take as long as many integrations."""

Way = tuple[EngineName | None, Switch | None]
"""The only engine for an integration, or the switch between two."""


class Engines:
    """All engines of one problem, each compiled when it is first needed.

    `setting` is ``"auto"`` or the only engine to use. `tolerance` is relative, None for each
    engine's own; "auto" gives it only to engines for stiff equations, as accuracy costs the others
    little. `steps` is the limit of the implicit engine for a segment, besides the steps that many
    outputs need; None for IMPLICIT_STEPS. With `controlled`, odefit's own engines hold the errors
    of sensitivities to the tolerance, too. Raises InputError if a package of the requested engine
    cannot be imported.
    """

    def __init__(
        self,
        setting: EngineName = "auto",
        tolerance: float | None = None,
        steps: int | None = None,
        controlled: bool = True,
        needed: NeededAccuracy | None = None,
    ) -> None:
        if setting != "auto":
            require_engine(setting, f"engine='{setting}' cannot be used")
        self.setting = setting
        self.tolerance = tolerance
        self.steps = steps
        self.controlled = controlled
        self.needed = needed or NeededAccuracy()
        self.tolerances: dict[EngineName, float] = {
            name: tolerance if tolerance and row.adjustable_in(setting) else row.tolerance
            for name, row in ENGINES.items()
        }
        self.implicit_tolerance = tolerance or IMPLICIT_TOLERANCE
        self._finest = setting == "auto" and self.implicit_tolerance < IMPLICIT_TOLERANCE
        if self._finest:
            self.tolerances[EXPLICIT.name] = EXPLICIT.finest
        elif setting == "auto" and self._searching:
            searched = max(EXPLICIT_SHARE * self.implicit_tolerance, EXPLICIT.tolerance)
            self.tolerances[EXPLICIT.name] = searched
        self._engines: dict[tuple[EngineName, SensitivityPattern, object], Engine] = {}
        self._step_costs: dict[int, StepCosts] = {}
        self._ways: dict[
            tuple[SensitivityPattern, int], tuple[EngineName | None, Switch | None]
        ] = {}
        self._batch_integrators: dict[SensitivityPattern, BatchIntegrator] = {}
        self._watched: dict[VectorField, NarrowFeatures | None] = {}
        self._linear = LinearForms(allowed=setting == "auto")
        self._stopped: dict[float, tuple[StoppedField, Engines]] = {}
        self._of_modes: dict[VectorField, Engines] = {}

    def with_accuracy(self, tolerance: float, controlled: bool) -> Engines:
        """Return engines with another accuracy of the implicit ones; compiled code is shared."""
        other = Engines(self.setting, tolerance, self.steps, controlled, self.needed)
        other._engines, other._step_costs = self._engines, self._step_costs
        other._watched, other._linear = self._watched, self._linear
        return other

    def for_another_field(self, needed: NeededAccuracy) -> Engines:
        """Return engines with the same settings, for another field."""
        return Engines(self.setting, self.tolerance, self.steps, self.controlled, needed)

    def of_mode(self, field: VectorField) -> Engines:
        """Return engines with the same settings for a field with the same states, made once."""
        if field not in self._of_modes:
            self._of_modes[field] = self.for_another_field(self.needed)
        return self._of_modes[field]

    def explicit(self, field: VectorField) -> EngineRow | None:
        """Return the explicit engine for the equations, if any."""
        return EXPLICIT if self._linear.need_no_taylor(field) else explicit_engine()

    def preferred(self, choice: EngineChoice = UNDECIDED) -> EngineName:
        """Return the name of the engine that is tried first, whatever the equations."""
        if self.setting != "auto":
            return self.setting
        explicit = None if choice.stiff else explicit_engine()
        return (explicit or stiff_engine()).name

    def first(self, field: VectorField, choice: EngineChoice = UNDECIDED) -> EngineName:
        """Return the name of the engine that is tried first for the equations."""
        if only := self._only(field):
            return only
        explicit = None if choice.stiff else self.explicit(field)
        return (explicit or stiff_engine()).name

    def implicit_name(self, field: VectorField) -> EngineName:
        """Return the name of the engine for stiff equations."""
        row = ENGINES.get(self.setting)
        if row is not None and row.automatic and row.stiff and row.can_integrate(field):
            return row.name
        return stiff_engine(field).name

    def _only(self, field: VectorField) -> EngineName | None:
        """Return the one engine that integrates the equations; None if stiffness decides.

        A requested engine that cannot integrate them is replaced if it serves in fits; an engine
        for other purposes refuses them.
        """
        if self.setting == "auto":
            return None if TAYLOR.can_integrate(field) else self.implicit_name(field)
        row = ENGINES[self.setting]
        if row.can_integrate(field) or not row.automatic:
            return row.name
        return self.implicit_name(field)

    def states_alone(
        self, field: VectorField, directions: int, outputs: int, choice: EngineChoice = UNDECIDED
    ) -> bool:
        """Return whether to integrate the states alone if no derivatives are needed.

        `outputs` is the number of output times.
        """
        if outputs >= OUTPUTS_ALONE or (choice.stiff and self.setting == "auto"):
            return True
        if self.first(field, choice) != TAYLOR.name:
            return True
        return self._costs(field, directions).operations >= OPERATIONS_ALONE

    def warnings(self, field: VectorField) -> tuple[str, ...]:
        """Return sentences about missing packages of engines that `field` would use."""
        return missing_engines(field) if self.setting == "auto" else ()

    def has_adjoint(
        self, field: VectorField, directions: int, outputs: int, choice: EngineChoice
    ) -> bool:
        """Return whether the adjoint is the best way to the gradient in so many directions."""
        name = self.implicit_name(field)
        if not ENGINES[name].adjoint or self.setting not in ("auto", name):
            return False
        costs, alone = self._costs(field, directions), self._costs(field, 0)
        if costs.too_large_for_taylor or costs.adjoint_pays(alone, outputs) or TAYLOR.problem:
            return True
        return self._only(field) == name or choice.stiff  # of most conditions

    def integrate(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: Values,
        choice: EngineChoice,
        *,
        repeated: bool = False,
    ) -> Integrated:
        """Integrate a segment by the suitable engine; if that fails, by the other one.

        `repeated` says that many segments have their coefficients in common. Raises InputError if
        the requested engine cannot integrate such equations, or if none that can is installed.
        """
        if cut_off().reached:
            return EngineFailure(segment.start, REASON), choice
        problem = Integration(field, pattern, segment, initial)
        only, switch = self._way(problem)
        if (stepped := self._linear.step_by_step(problem)) is not None:
            return stepped, choice
        at_once = repeated or self._finest or self._linear.pay(problem)
        if at_once and (closed := self._linear.solution(problem)) is not None:
            return closed, choice
        features = self._features(field)
        if features is not None:
            row = ENGINES[only or self.implicit_name(field)]
            segment = features.with_stops(segment, initial.scalars, centres=row.stops_at_centres)
            problem = Integration(field, pattern, segment, initial)
        if only is not None:
            return self._by(only, problem), choice
        if switch is None:
            return self._implicit(problem), EngineChoice(stiff=True)
        if switch.explicit != TAYLOR.name:
            return switch.integrate(problem, choice)
        flat = features is not None and features.acts(initial.scalars)
        unseen = smallest_share(initial.states, 0.0) < UNSEEN
        fine = self.needed.digits < self.tolerances[TAYLOR.name]
        if fine or (self._searching and (flat or unseen)):  # which need less accuracy
            return self._watched_first(problem, choice)
        return switch.integrate(problem, choice)

    def _watched_first(self, problem: Integration, choice: EngineChoice) -> Integrated:
        """Integrate a problem whose defects need checks, which the implicit engine has compiled."""
        implicit = self._implicit(problem)
        if isinstance(implicit, SegmentSolution) or self._suffices(implicit):
            return implicit, choice if choice.stiff else EngineChoice(stiff=True)
        taylor = self._by(TAYLOR.name, problem, choice.taylor_steps or MAX_TAYLOR_STEPS // 10)
        return either(taylor, implicit), choice

    def _way(self, problem: Integration) -> Way:
        """Return the only engine for a problem, or the switch between two.

        Both are None if the implicit engine integrates it: others would take long to compile.
        """
        field, pattern, outputs = problem.field, problem.pattern, len(problem.segment.times)
        key = pattern, outputs
        if key not in self._ways:
            only, costs = self._only(field), self._costs(field, pattern.directions)
            explicit = None if only else self.explicit(field)
            large, switch = costs.too_large_for_taylor, None
            if large and (explicit is TAYLOR or len(field.states) > MOST_COMPARED):
                explicit = None
            if explicit is not None:
                comparison = Comparison.of(
                    costs,
                    explicit.name,
                    outputs,
                    explicit_share=explicit.tolerance / self.tolerances[explicit.name],
                    implicit_share=IMPLICIT_TOLERANCE / self.implicit_tolerance,
                    margin=MARGIN_OF_TAYLOR if explicit is TAYLOR else MARGIN,
                    closed=self._linear.time(problem),
                )
                switch = Switch(
                    explicit=explicit.name,
                    implicit=partial(self.implicit_name, field),
                    comparison=comparison,
                    by=self._by,
                    closed=self._linear.solution,
                    suffices=self._suffices,
                    large=large,
                )
            self._ways[key] = only, switch
        return self._ways[key]

    def _by(self, name: EngineName, problem: Integration, steps: int | None = None) -> Solved:
        """Integrate by one engine, in a number of steps; None for its usual limit."""
        field, pattern, segment, initial = problem
        most = ENGINES[name].most_steps(segment, self.steps) if steps is None else steps
        solved = self._engine(name, field, pattern).integrate(segment, initial, most)
        step = self._costs(field, pattern.directions).work_of_step(name)
        count_work(solved.steps * step / NANOSECONDS)
        return solved

    def _implicit(self, problem: Integration) -> Solved:
        """Integrate equations that may be stiff, in closed form if they are linear."""
        closed = self._linear.solution(problem)
        return closed or self._by(self.implicit_name(problem.field), problem)

    def closed_form(self, field: VectorField, pattern: SensitivityPattern) -> ClosedForm | None:
        """Return the closed form of linear equations; None if engines integrate them."""
        return self._linear.closed(field, pattern)

    def implicit_solution(self, problem: Integration, max_steps: int) -> Solved:
        """Integrate a segment by the implicit engine, in at most a number of steps."""
        return self._by(self.implicit_name(problem.field), problem, max_steps)

    def recorded(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        segment: Segment,
        initial: Values,
    ) -> tuple[SegmentSolution, Adjoint] | EngineFailure:
        """Integrate a segment by the implicit engine, which has an adjoint."""
        name = self.implicit_name(field)
        engine = cast("AdjointEngine", self._engine(name, field, pattern))
        return engine.recorded(segment, initial, ENGINES[name].most_steps(segment, None))

    def stopped(self, field: VectorField, time: float) -> tuple[StoppedField, Engines]:
        """Return `field` with the time stopped at `time`, and the engines for that."""
        if time not in self._stopped:
            engines = self.for_another_field(self.needed)
            self._stopped[time] = StoppedField.at(field, time), engines
        return self._stopped[time]

    def batch_integrator(
        self, field: VectorField, pattern: SensitivityPattern, choice: EngineChoice
    ) -> BatchIntegrator | None:
        """Return the integrator of batches; None if problems are integrated one by one."""
        row = ENGINES[self.preferred(choice)]
        if row.make_batch is None or not row.can_integrate(field):
            return None
        if self._features(field) is not None:
            return None  # a batch has no stops, and its steps are not watched
        if pattern not in self._batch_integrators:
            made = row.make_batch(field, pattern, self.tolerances[row.name])
            self._batch_integrators[pattern] = made
        return self._batch_integrators[pattern]

    @property
    def _searching(self) -> bool:
        """Return whether these engines integrate with the accuracy of a search."""
        return self.implicit_tolerance > IMPLICIT_TOLERANCE

    def _suffices(self, failure: EngineFailure) -> bool:
        """Return whether a failure of the implicit engine is final: a search tries no other."""
        return self.steps is not None and not failure.out_of_steps

    def _features(self, field: VectorField) -> NarrowFeatures | None:
        if field not in self._watched:
            self._watched[field] = None
            if not import_problem("casadi"):
                from odefit.simulation.engines.narrow_features import NarrowFeatures

                self._watched[field] = NarrowFeatures.of(field)
        return self._watched[field]

    def _costs(self, field: VectorField, directions: int) -> StepCosts:
        if directions not in self._step_costs:
            self._step_costs[directions] = StepCosts.of(field, directions)
        return self._step_costs[directions]

    def substitute(self, field: VectorField, pattern: SensitivityPattern) -> Engine | None:
        """Return the explicit engine in place of the Taylor method, unless that was requested."""
        usable = self.setting == "auto" and not EXPLICIT.problem
        return self._engine(EXPLICIT.name, field, pattern) if usable else None

    def passing(self, field: VectorField, pattern: SensitivityPattern) -> Passing | None:
        """Return the passage through many events in one call, if any engine has it."""
        usable = self._only(field) is None and self._features(field) is None
        engine = self.substitute(field, pattern) if usable else None
        if engine is None:
            return None
        return Passing(cast("PassingEngine", engine), self._searching, TAYLOR.problem)

    def _engine(self, name: EngineName, field: VectorField, pattern: SensitivityPattern) -> Engine:
        row = ENGINES[name]
        accuracy = (self.tolerance, self.controlled) if row.adjustable else self._searching
        key = (name, pattern, accuracy)
        if key not in self._engines:
            if row.automatic and row.stiff:
                require_engine(name, "this model needs an implicit integrator")
            relative = self.tolerances[name]
            if row is EXPLICIT and not self._searching and self._linear.need_no_taylor(field):
                relative = min(relative, EXPLICIT.finest)  # to be as accurate as heyoka
            task = EngineTask(
                field=field,
                pattern=pattern,
                features=self._features(field),
                relative=relative,
                absolute=self.needed.absolute(relative),
                controlled=self.controlled,
                measured=tuple(self.needed.measured.get(name, 0.0) for name in field.states),
                lost=LOST_DIGITS_OF_SEARCHES if self._searching else LOST_DIGITS,
                substitute=lambda: self.substitute(field, pattern),
            )
            self._engines[key] = row.make(task)
        return self._engines[key]
