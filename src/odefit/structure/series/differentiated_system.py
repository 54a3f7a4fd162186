"""The differentiated model: equations between unknowns and Taylor coefficients of the outputs.

This is step 2 of the method of Bassik et al., section 3, with Taylor coefficients in place of
derivatives. Several expansions, of several experiments or around several times of one, share
the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.common.errors import InputError
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.features import integrated_features
from odefit.structure.series.deadline import NEVER, Deadline
from odefit.structure.series.expansion import Expansion, ExpansionPoint, expand, random_complex
from odefit.structure.series.number_fields import COMPLEX, MODULAR, Residues
from odefit.structure.series.series import TaylorCoefficients
from odefit.structure.series.tape import NotRationalError

MAX_PROJECTION_STEPS = 50
"""Largest number of Newton steps that move a random point onto the algebraic constraints."""


NO_SERIES_AT_START = (
    "the given initial values lead to a division by zero, so the outputs have no Taylor "
    "series there"
)
"""The reason if equations cannot be evaluated at the initial values."""


class NoTaylorSeriesError(InputError):
    """The outputs of a problem have no Taylor series, so that its structure cannot be examined."""

    def __init__(self, problem: str, reason: str) -> None:
        self.problem = problem
        self.reason = reason
        super().__init__(f"{problem!r} has no power series: {reason}; take another method")

    def __reduce__(self) -> tuple[type[NoTaylorSeriesError], tuple[str, str]]:  # type: ignore[override]
        return NoTaylorSeriesError, (self.problem, self.reason)


class DifferentiatedSystem:
    """All expansions of a problem, and the unknowns that they share.

    With `free_states` the states of the expansions are separate unknowns, with `times` expansions
    of each experiment around separate times; otherwise the problem's initial values at t0 are used.
    Unless `replicates`, an experiment whose equations, initial values and outputs repeat an earlier
    one is omitted. `opened` adds a variable to every given initial value (see
    :func:`~odefit.structure.series.expansion.expand`).

    `names` are the algebraic unknowns: those of the problem by their keys, states of expansions,
    initial values of auxiliary states, opened ones. `columns` are each expansion's places among
    them. Raises NoTaylorSeriesError for abs, min, max and features that only integration handles,
    and UnfinishedError at the deadline, also in :meth:`run` and :meth:`run_modular`.
    """

    def __init__(
        self,
        problem: Problem,
        free_states: bool,
        times: int = 1,
        deadline: Deadline = NEVER,
        replicates: bool = True,
        conditions: Sequence[Condition] | None = None,
        opened: bool = False,
    ) -> None:
        unknown_to_series = integrated_features(problem, noise=False)
        if unknown_to_series:
            raise NoTaylorSeriesError(problem.name, ", and ".join(unknown_to_series))
        self.problem = problem
        self.free_states = free_states
        # A separate limit, so that only the work of this system is counted.
        deadline = Deadline() if deadline is NEVER else deadline
        self.deadline = deadline
        self.expansions: list[Expansion] = []
        seen: set[tuple[object, ...] | None] = set()
        for condition in problem.conditions if conditions is None else conditions:
            for number in range(times):
                label = condition.name if len(problem.conditions) > 1 else ""
                label += f"#{number + 1}" if times > 1 else ""
                try:
                    expansion = expand(problem, condition, free_states, label, deadline, opened)
                except NotRationalError as error:
                    raise NoTaylorSeriesError(problem.name, str(error)) from None
                if not replicates:
                    key = expansion.repeats
                    if key is not None and key in seen:
                        continue
                    seen.add(key)
                self.expansions.append(expansion)
        used = {name: None for expansion in self.expansions for name in expansion.unknowns}
        added = [name for e in self.expansions for name in e.opened.values()]
        names = [*(k for k in problem.keys if k in used), *used]
        self.names = [*dict.fromkeys(n for n in names if n not in added), *added]
        place = {name: i for i, name in enumerate(self.names)}
        self.columns = [
            np.array([place[n] for n in expansion.unknowns], dtype=np.intp)
            for expansion in self.expansions
        ]

    @property
    def sufficient_order(self) -> int:
        """Number of orders of derivative after which no new equations are expected.

        Around generic states this number suffices. Around given ones, such as zero, the rank may
        stagnate and rise again: then this number of orders without a rise is required.
        """
        states = max((len(e.lifting.states) for e in self.expansions), default=0)
        return len(self.names) + 1 + (0 if self.free_states else states)

    def generic_point(
        self, rng: np.random.Generator, order: int
    ) -> tuple[ComplexArray, list[ExpansionPoint[np.complex128]]]:
        """Return random unknowns that satisfy all constraints, and each expansion's point."""
        values = random_complex(rng, len(self.names))
        points = [e.generic_expansion_point(order, rng) for e in self.expansions]
        for k, expansion in enumerate(self.expansions):
            states = expansion.lifting.model.states
            movable = {name for state, name in expansion.states.items() if state not in states}
            columns = [i for i, name in enumerate(expansion.unknowns) if name in movable]
            if expansion.constraints and columns:
                self._project(k, values, points[k], columns)
        return values, points

    def _project(
        self,
        k: int,
        values: ComplexArray,
        point: ExpansionPoint[np.complex128],
        columns: list[int],
    ) -> None:
        """Move the unknowns in `columns` by Newton's method until the constraints hold."""
        self.deadline.check()
        expansion = self.expansions[k]
        rows = slice(len(expansion.observables), expansion.outputs)
        known, functions = point.known[None], point.functions[None, :, :1]
        for _ in range(MAX_PROJECTION_STEPS):
            taylor = self.run(k, values[None], 0, known, functions)
            assert taylor.derivatives is not None
            matrix = taylor.derivatives[0, 0, rows][:, columns]
            step = np.linalg.lstsq(matrix, -taylor.outputs[0, 0, rows], rcond=None)[0]
            values[self.columns[k][columns]] += step
            if np.abs(step).max(initial=0.0) < 1e-14:
                break

    def run(
        self,
        k: int,
        values: ComplexArray,
        order: int,
        known: ComplexArray,
        functions: ComplexArray,
        derivatives: bool = True,
        leading: int | None = None,
    ) -> TaylorCoefficients[np.complex128]:
        """Return the Taylor coefficients of expansion `k` over the complex numbers.

        `values` are all algebraic unknowns, shape (batch, unknowns); for the other arguments see
        :meth:`~odefit.structure.series.series.SeriesProgram.run`.
        """
        program = self.expansions[k].program
        unknowns = values[:, self.columns[k]]
        return program.run(COMPLEX, unknowns, order, known, functions, derivatives, leading)

    def run_modular(
        self,
        k: int,
        values: Residues,
        order: int,
        point: ExpansionPoint[np.int64],
        derivatives: bool = True,
    ) -> TaylorCoefficients[np.int64]:
        """Return the Taylor coefficients of expansion `k` modulo the prime."""
        known = np.repeat(point.known[None], len(values), axis=0)
        functions = np.repeat(point.functions[None, :, : order + 1], len(values), axis=0)
        unknowns = values[:, self.columns[k]]
        return self.expansions[k].program.run(
            MODULAR, unknowns, order, known, functions, derivatives
        )
