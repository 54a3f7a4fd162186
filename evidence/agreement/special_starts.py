"""Structural identifiability from special initial values against ranks at late times.

The random models of `special_models.py` start from rest, from equilibria and from symmetric states.
Independent code checks the verdict of `odefit.identifiability` on them:

- *Ranks*: SymPy differentiates the equations, SciPy integrates the sensitivities of the outputs,
  or mpmath integrates them with 50 digits where double precision is not conclusive. The rank of the
  sensitivities over a grid of late times says which unknowns the outputs determine, and which
  change no output.
- *Counts*: code searches for other values with the same outputs at the late times, among
permutations, signs and roots of unity of the unknowns, and by Newton's method from random complex
values. Their number must not exceed the count, and must reach the number reported to exist.

A finding is false if it contradicts these results. Undecided verdicts are counted, too.
"""

from __future__ import annotations

import cmath
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pandas as pd
import sympy  # type: ignore[import-untyped]
from scipy.integrate import solve_ivp

import odefit
from evidence.agreement.precise import DIGITS, extrapolated, rank_of
from evidence.agreement.special_models import SpecialModel, special_model
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed

TIMES = np.linspace(0.0, 4.0, 25)  # the times of the outputs; the first half is not used
LATE = slice(8, None)  # the late times among them

# Scaled singular values above which one counts, and below which it does not
CLEAR, NOTHING = 1e-5, 1e-8

# Size of an output, relative to the largest, below which its relative error is too large
MIN_OUTPUT = 1e-4
SAME_OUTPUTS = 1e-7  # relative difference up to which outputs are the same
SAME_VALUE = 1e-5  # relative difference up to which values are the same
RANDOM_STARTS = 4  # number of random complex values from which Newton's method begins
MAX_CANDIDATES = 150  # largest number of permutations, signs and roots of unity that are tried
Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Ranks:
    """The ranks of the sensitivities at late times."""

    # determined, effective: for each unknown, whether the outputs determine it, and whether it
    # changes any of them
    determined: tuple[bool, ...]
    effective: tuple[bool, ...]
    digits: int  # the decimal digits of the computation


class Judge:
    """A model written a second time, with its sensitivities."""

    def __init__(self, model: SpecialModel, seed: int) -> None:
        self.model = model
        self.rng = np.random.default_rng([seed, 34])
        self.names = list(model.unknowns)
        self.truth = self.rng.uniform(0.6, 1.4, len(self.names))
        states = list(model.ode)
        symbols = {n: sympy.Symbol(n) for n in [*states, *self.names]}

        def formula(text: object) -> sympy.Expr:
            expression = str(text).replace("^", "**")
            return sympy.nsimplify(sympy.sympify(expression, locals=symbols), rational=True)

        self.rhs = [formula(model.ode[s]) for s in states]
        self.outputs = [formula(e) for e in model.outputs.values()]
        self.start = [formula(model.initial[s]) for s in states]
        self.states = [symbols[s] for s in states]
        self.unknowns = [symbols[n] for n in self.names]

    @cached_property
    def _parts(self) -> tuple[sympy.Matrix, ...]:
        """The equations and their derivatives by states and unknowns."""
        f, g, x0 = (sympy.Matrix(part) for part in (self.rhs, self.outputs, self.start))
        x, p = sympy.Matrix(self.states), sympy.Matrix(self.unknowns)
        own = (f, f.jacobian(x), f.jacobian(p), g, g.jacobian(x), g.jacobian(p))
        return (*own, x0, x0.jacobian(p))

    def _functions(self, module: str) -> list[Any]:
        arguments = [*self.states, *self.unknowns]
        return [sympy.lambdify(arguments, part, module) for part in self._parts]

    @cached_property
    def _numpy(self) -> list[Any]:
        return self._functions("numpy")

    # Outputs and sensitivities in double precision --------------------------------------------

    def outputs_at(
        self, values: Values, sensitivities: bool = True
    ) -> tuple[Values, Values] | None:
        """Return outputs and their derivatives at late times, shapes (r,) and (r, n).

        The result is None where the trajectory ends earlier. Without `sensitivities` there are no
        columns.
        """
        m, n = len(self.states), len(self.names) if sensitivities else 0
        f, fx, fp, g, gx, gp, x0, x0p = self._numpy
        nothing = [0.0] * m
        start = np.concatenate(
            [
                np.ravel(x0(*nothing, *values)),
                np.ravel(np.asarray(x0p(*nothing, *values)).reshape(m, -1)[:, :n]),
            ]
        ).astype(values.dtype)

        def rate(_: float, z: Values) -> Values:
            x, s = z[:m], z[m:].reshape(m, n)
            at = (*x, *values)
            if not n:
                return np.ravel(f(*at))
            change = np.asarray(fx(*at)).reshape(m, m) @ s + np.asarray(fp(*at)).reshape(m, n)
            return np.concatenate([np.ravel(f(*at)), change.ravel()])

        span = (0.0, TIMES[-1])
        with np.errstate(all="ignore"):
            found = solve_ivp(rate, span, start, "DOP853", TIMES[LATE], rtol=1e-9, atol=1e-12)
            if found.success:
                # The digits of tiny outputs, such as late stages of a cascade, count as well.
                small = 1e-13 * np.abs(found.y).max(axis=1) + 1e-100
                found = solve_ivp(rate, span, start, "DOP853", TIMES[LATE], rtol=1e-12, atol=small)
        if not found.success or not np.isfinite(found.y).all():
            return None
        values_at, derivatives = [], []
        for z in found.y.T:
            at = (*z[:m], *values)
            values_at.append(np.ravel(g(*at)))
            q = len(values_at[-1])
            by_states = np.asarray(gx(*at)).reshape(q, m) @ z[m:].reshape(m, n)
            derivatives.append(by_states + np.asarray(gp(*at)).reshape(q, -1)[:, :n])
        return np.concatenate(values_at), np.concatenate(derivatives)

    # Ranks ------------------------------------------------------------------------------------

    def ranks(self) -> Ranks:
        """Return the unknowns that the outputs at late times determine, to first order."""
        found = self.outputs_at(self.truth)
        assert found is not None, "the model has no solution at the true values"
        values, derivatives = found
        ranks = self._in_doubles(values, derivatives)
        return self._in_digits() if ranks is None else ranks

    def _in_doubles(self, values: Values, derivatives: Values) -> Ranks | None:
        """Return the ranks in double precision; None if they are not conclusive."""
        size = np.abs(values)
        if not (size > MIN_OUTPUT * size.max()).all():
            return None
        scaled = derivatives * self.truth / size[:, None]
        norms = np.linalg.norm(scaled, axis=0)
        if ((norms > NOTHING) & (norms < CLEAR)).any():
            return None
        effective = norms >= CLEAR
        active = scaled[:, effective] / norms[effective]
        determined = np.zeros(len(self.names), dtype=bool)
        if active.size:
            _, s, vt = np.linalg.svd(active)
            if ((s > NOTHING) & (s < CLEAR)).any():
                return None
            null = vt[int((s >= CLEAR).sum()) :]
            moved = np.abs(null).max(axis=0, initial=0.0)
            if ((moved > 1e-6) & (moved < 1e-3)).any():
                return None
            determined[effective] = moved <= 1e-6
        return Ranks(tuple(determined.tolist()), tuple(effective.tolist()), 16)

    def _in_digits(self) -> Ranks:
        with mpmath.workdps(DIGITS):
            rows = self._precise_sensitivities()
            n = len(self.names)
            sizes = [max(abs(row[i]) for row in rows) for i in range(n)]
            largest = max(sizes, default=mpmath.mpf(0))
            tiny = largest * mpmath.mpf(10) ** (-DIGITS // 2)
            effective = [size > tiny for size in sizes]
            columns = [i for i in range(n) if effective[i]]
            scaled = [[row[i] / sizes[i] for i in columns] for row in rows]
            rank = rank_of(scaled)
            determined = [False] * n
            for place, i in enumerate(columns):
                without = [[v for k, v in enumerate(row) if k != place] for row in scaled]
                determined[i] = rank_of(without) == rank - 1
        return Ranks(tuple(determined), tuple(effective), DIGITS)

    def _precise_sensitivities(self) -> list[list[Any]]:
        """Return the relative sensitivities at late times, by extrapolation with many digits."""
        m, n = len(self.states), len(self.names)
        f, fx, fp, g, gx, gp, x0, x0p = self._functions("mpmath")
        p = [mpmath.mpf(float(v)) for v in self.truth]
        zero = [mpmath.mpf(0)] * m

        def shaped(z: list[Any]) -> Any:
            return mpmath.matrix([z[m + i * n : m + (i + 1) * n] for i in range(m)])

        def rate(z: list[Any]) -> list[Any]:
            at = (*z[:m], *p)
            s = shaped(z)
            change = fx(*at) * s + fp(*at)
            return [*f(*at), *(change[i, k] for i in range(m) for k in range(n))]

        z = [*x0(*zero, *p), *x0p(*zero, *p)]
        rows, now = [], 0.0
        for t in TIMES[1:]:
            z = extrapolated(rate, z, mpmath.mpf(float(t)) - mpmath.mpf(now))
            now = float(t)
            if t < TIMES[LATE][0]:
                continue
            at = (*z[:m], *p)
            s = shaped(z)
            y, total = g(*at), gx(*at) * s + gp(*at)
            for row in range(len(self.outputs)):
                size = abs(y[row]) or mpmath.mpf(1)
                rows.append([total[row, k] * p[k] / size for k in range(n)])
        return rows

    # Other values with the same outputs -------------------------------------------------------

    def others(self, free: Sequence[str]) -> list[Values]:
        """Return values of the unknowns with the same outputs, the true ones first."""
        truth = self.truth.astype(complex)
        own = [self.names.index(n) for n in free]
        found: list[Values] = [truth]
        reference = self.outputs_at(truth)
        if reference is None or not own:
            return found
        for candidate in self._candidates(truth, own):
            self._keep(candidate, reference[0], found)
        # Apply symmetries in sequence.
        for one, pair in product(found[1:5], permutations(own, 2)):
            candidate = one.copy()
            candidate[list(pair)] = candidate[list(pair[::-1])]
            self._keep(candidate, reference[0], found)
        for one, two in product(found[1:5], found[1:5]):
            self._keep(one * two / truth, reference[0], found)
        for _ in range(RANDOM_STARTS):
            start = truth.copy()
            angles = self.rng.uniform(-np.pi, np.pi, len(own))
            start[own] = self.rng.uniform(0.4, 1.8, len(own)) * np.exp(1j * angles)
            if self.rng.random() < 0.5:
                start[own] = self.rng.choice([-1, 1], len(own)) * np.abs(start[own])
            end = self._newton(start, own, reference[0])
            if end is not None:
                self._keep(end, reference[0], found)
        return found

    def _candidates(self, truth: Values, own: Sequence[int]) -> list[Values]:
        """Return permutations, other signs, and roots of unity times single values."""
        found = []
        signs = list(product((1, -1), repeat=len(own))) if len(own) <= 5 else []
        for sign in signs[1:]:
            candidate = truth.copy()
            candidate[own] *= np.array(sign)
            found.append(candidate)
        for order in permutations(own) if len(own) <= 4 else ():
            candidate = truth.copy()
            candidate[own] = truth[list(order)]
            found.append(candidate)
        turns = sorted({k / degree for degree in range(3, 9) for k in range(1, degree)})
        for i, turn in product(own, turns):
            candidate = truth.copy()
            candidate[i] *= cmath.exp(2j * cmath.pi * turn)
            found.append(candidate)
        for pair in permutations(own, 2):
            candidate = truth.copy()
            candidate[list(pair)] = candidate[list(pair[::-1])]
            found.append(candidate)
        if len(found) > MAX_CANDIDATES:
            chosen = self.rng.choice(len(found), MAX_CANDIDATES, replace=False)
            found = [found[i] for i in chosen]
        return found

    def _keep(self, candidate: Values, reference: Values, found: list[Values]) -> None:
        """Add a candidate with the outputs of the true values, unless it is known."""
        size = np.abs(candidate) + 1e-3
        if any(np.all(np.abs(candidate - f) <= SAME_VALUE * size) for f in found):
            return
        made = self.outputs_at(candidate, sensitivities=False)
        if made is None:
            return
        if np.abs(made[0] - reference).max() <= SAME_OUTPUTS * np.abs(reference).max():
            far = np.abs(made[0] - reference) / (np.abs(reference) + 1e-300)
            if far.max() <= 100 * SAME_OUTPUTS:
                found.append(candidate)

    def _newton(self, values: Values, own: Sequence[int], reference: Values) -> Values | None:
        """Return the limit of Gauss-Newton steps, if they converge."""
        for _ in range(15):
            made = self.outputs_at(values)
            if made is None:
                return None
            rest = (made[0] - reference) / (np.abs(reference) + 1e-300)
            matrix = made[1][:, own] / (np.abs(reference)[:, None] + 1e-300)
            if not (np.isfinite(rest).all() and np.isfinite(matrix).all()):
                return None
            step = np.linalg.lstsq(matrix, -rest, rcond=None)[0]
            step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
            values = values.copy()
            values[own] += step
            if np.abs(values).max() > 20.0:
                return None
            if np.abs(step).max() < 1e-10:
                return values
        return None


def problem_of(model: SpecialModel) -> odefit.Problem:
    """Return the model as a problem; its data do not matter."""
    data = {"t": TIMES, **{y: np.cos(TIMES) for y in model.outputs}}
    return odefit.Problem(
        odefit.Model(ode=dict(model.ode), observables=dict(model.outputs)),
        data,
        {name: {} for name in model.unknowns},
        dict(model.initial),
    )


def verdict(seed: int, seconds: float = 20.0, search: bool = True) -> dict[str, Any]:
    """Return the verdict on the model of a seed, and whether it is right."""
    model = special_model(seed)
    began = time.perf_counter()
    said = odefit.identifiability(problem_of(model), time_limit=seconds)
    spent = time.perf_counter() - began
    judge = Judge(model, seed)
    ranks = judge.ranks()
    false: list[str] = []
    for key, determined, effective in zip(
        judge.names, ranks.determined, ranks.effective, strict=True
    ):
        unknown = said[key]
        if unknown.identifiable is not None and unknown.identifiable != determined:
            false.append(f"{key} is said to be {unknown.status}")
        if unknown.status == "no effect" and effective:
            false.append(f"{key} is said to change no output")
    found = 1
    if search and said.solutions is not None:
        acting = dict(zip(judge.names, ranks.effective, strict=True))
        known = [n for n in judge.names if acting[n] and n not in said.given]
        others = judge.others(known)
        found = len(others)
        for key in known:
            column = np.array([o[judge.names.index(key)] for o in others])
            values = 1 + sum(
                all(abs(v - w) > SAME_VALUE * (abs(v) + 1e-3) for w in column[:i])
                for i, v in enumerate(column)
                if i
            )
            most = said[key].values
            if said[key].identifiable and most is not None and values > most:
                false.append(f"{key} is said to have {most} values, and has {values}")
        if said.solutions is not None and found > said.solutions:
            false.append(f"{said.solutions} solutions are counted, and there are {found}")
    unconfirmed = search and said.solutions is not None and found < said.solutions
    return {
        "seed": seed,
        "family": model.family,
        "ode": dict(model.ode),
        "statuses": {u.key: u.status for u in said.unknowns},
        "solutions": said.solutions,
        "found": found,
        "unconfirmed": unconfirmed,
        "undecided": list(said.named("undecided")),
        "reached": said.reached,
        "digits": ranks.digits,
        "false": false,
        "seconds": round(spent, 2),
    }


OPTIONS = (
    Option("count", 150, "number of models", least=1),
    Option("first", 0, "the first seed", least=0),
    Option("seconds", 20.0, "time limit of the analysis of a model", above=0),
    Option("search", True, "whether other values are searched for, or ranks alone: yes or no"),
)


def tasks(count: int, first: int, **options: Any) -> list[Task]:
    return tasks_of("seed", range(first, first + count), **options)


def run(task: Task) -> dict[str, Any]:
    """Return the verdict on a model, and whether it is right."""
    return verdict(task["seed"], task["seconds"], task["search"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    found = [r.result for r in records if r.result is not None]
    named = ("solutions", "found", "digits", "seconds")
    rows = [
        [str(one["seed"]), one["family"], "; ".join(one["false"]) or "right"]
        + [str(one[name]) for name in named]
        for one in found
    ]
    counts = {
        "models": len(found),
        "false": sum(bool(one["false"]) for one in found),
        "with unknowns that are not decided": sum(bool(one["undecided"]) for one in found),
        "counted": sum(one["solutions"] is not None for one in found),
        "with more solutions counted than found": sum(one["unconfirmed"] for one in found),
    }
    note = ", ".join(f"{name}: {n}" for name, n in counts.items())
    head = ("seed", "family", "findings", "solutions counted", "found", "digits", "seconds")
    return {"models": listed(head, rows, note)}
