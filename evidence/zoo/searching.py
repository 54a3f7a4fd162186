"""A problem of the zoo for SciPy alone: simulated, judged, and searched extensively.

Equations are those of the block, with its replacements where a state ends at an edge. Blocks with
modes (a thermostat, dry friction) are integrated mode by mode, between roots of their guards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from evidence.peers.by_scipy import Array, ByHand, Run, Values, compiled, value

WIDE = 1e4  # the search stays within the bounds and this factor around the truth
FAR = 30.0  # factor around the truth within which its starts lie
MODES = 500  # changes of modes after which a simulation ends
LARGEST = 1e6  # residual, in standard deviations; squares of diverging residuals would overflow


class ByBlock(ByHand):
    """A problem of a block; `size` is that of the smallest of its observables."""

    def __init__(self, mapping: Mapping[str, Any], entry: Mapping[str, Any], size: float) -> None:
        hand = entry.get("hand", {})
        seen = hand.get("seen", {})
        own = {
            **mapping,
            "ode": {**mapping["ode"], **hand.get("ode", {})},
            "observables": {k: seen.get(k, v) for k, v in mapping["observables"].items()},
            "experiment": [
                {k: v for k, v in e.items() if k != "event" or "modes" not in entry}
                for e in mapping["experiment"]
            ],
        }
        self._modes = entry.get("modes", ())
        if any("slope" in m for m in self._modes):
            own["ode"] = dict.fromkeys(own["ode"], "0")
        off = mapping.get("constants", {}).get("off")
        super().__init__(own, () if off is None else (off,), absolute=1e-10 * size)
        self._guards = [
            [(compiled(m[k][0]), m[k][1]) for k in ("until", "or") if k in m] for m in self._modes
        ]
        self._slope = [
            compiled(m.get("slope", next(iter(own["ode"].values())))) for m in self._modes
        ]
        self._mode = 0

    def predicted(self, run: Run, values: Values) -> dict[str, Array]:
        """Return all named quantities at the times of an experiment."""
        self._mode = 0
        return super().predicted(run, values)

    def _integrated(
        self, run: Run, names: Mapping[str, Any], x: Array, first: float, times: Sequence[float]
    ) -> Array:
        if not self._modes:
            return super()._integrated(run, names, x, first, times)
        inputs = {k: u(0.5 * (first + times[-1])) for k, u in run.inputs.items()}
        (name,) = self.states
        found: list[list[float]] = []
        now = first
        for _ in range(MODES):
            mode, guards = self._modes[self._mode], self._guards[self._mode]
            here = {**names, **inputs, **{k: mode[k] for k in ("on",) if k in mode}}
            entered = [to for code, to in guards if value(code, {**here, name: float(x[0])}) > 0]
            if entered:
                self._mode = entered[0]
                continue
            slope = self._slope[self._mode]

            def slopes(_: float, y: Array, here: Any = here, slope: Any = slope) -> list[float]:
                return [value(slope, {**here, name: float(y[0])})]

            left = sorted({t for t in times if t > now})
            piece = solve_ivp(
                slopes,
                (now, times[-1]),
                x,
                "DOP853",
                left,
                events=[_guard(code, here, name) for code, _ in guards],
                rtol=1e-9,
                atol=self.absolute,
            )
            if piece.status < 0:
                raise ArithmeticError(piece.message)
            found += piece.y.T.tolist() if len(piece.t) else []
            if piece.status == 0:
                return np.array(found)
            times_of, states_of = piece.t_events or [], piece.y_events or []
            which = next(i for i, at in enumerate(times_of) if len(at))
            now, x = float(times_of[which][0]), np.array(states_of[which][0])
            self._mode = guards[which][1]
            if "or" in self._modes[self._mode]:
                x = 0.0 * x  # the system is at rest
        raise ArithmeticError("too many modes")

    @property
    def count(self) -> int:
        """The number of measurements."""
        return sum(len(s.values) for run in self.runs for s in run.series.values())

    def measure(self, values: Values) -> float:
        """Return the measure for comparing optima: chi-square, or n log of the sum of squares."""
        squares = float(np.sum(self.residuals(values) ** 2))
        known = self.noise and all(f.get("sd") != "estimate" for f in self.noise.values())
        return squares if known else self.count * math.log(max(squares, 1e-300))


def _guard(code: Any, here: Mapping[str, Any], name: str) -> Any:
    def guard(_: float, y: Array) -> float:
        return value(code, {**here, name: float(y[0])})

    guard.terminal, guard.direction = True, 1.0  # type: ignore[attr-defined]
    return guard


def bounded_residuals(by_hand: ByBlock, values: Values, size: float = 1.0) -> Array:
    """Return residuals over `size` for a search, at most :data:`LARGEST`.

    All are that large where a trajectory cannot be integrated.
    """
    try:
        with np.errstate(all="ignore"):
            found = by_hand.residuals(values) / size
    except (ArithmeticError, ValueError):
        found = np.full(1, np.nan)
    if not np.isfinite(found).all():
        return np.full(by_hand.count, LARGEST)
    return np.clip(found, -LARGEST, LARGEST)


def searched(
    by_hand: ByBlock, truth: Values, starts: int, random: np.random.Generator
) -> dict[str, Any]:
    """Return the best optimum known: of searches from the truth and from many other points.

    ``from truth`` and ``best``: measures of the optima; ``values`` of the best.
    """
    keys = list(truth)
    middle = np.log([truth[k] for k in keys])
    lower, upper = middle - math.log(WIDE), middle + math.log(WIDE)
    for i, key in enumerate(keys):
        given = {**by_hand.mapping["initial"], **by_hand.mapping["parameters"]}[key]
        if given.get("lower", 0.0) > 0:
            lower[i] = max(lower[i], math.log(given["lower"]))
        if "upper" in given:
            upper[i] = min(upper[i], math.log(given["upper"]))

    def named(logs: Array) -> dict[str, float]:
        return dict(zip(keys, np.exp(logs).tolist(), strict=True))

    size = math.sqrt(float(np.sum(by_hand.residuals(truth) ** 2)) / by_hand.count)

    def residuals(logs: Array) -> Array:
        return bounded_residuals(by_hand, named(logs), size)

    def local(first: Array, evaluations: int, jacobian: Any) -> tuple[float, Array]:
        ended = least_squares(
            residuals,
            np.clip(first, lower + 1e-3, upper - 1e-3),
            jacobian,
            (lower, upper),
            max_nfev=evaluations,
            xtol=1e-10,
            ftol=1e-8,
            gtol=1e-10,
            diff_step=None if jacobian == "3-point" else np.full(len(keys), 1e-5),
        )
        return float(ended.cost), ended.x

    from_truth = local(middle, 60, "3-point")
    spread = math.log(FAR)
    ends = [
        local(middle + random.uniform(-spread, spread, len(keys)), 30, "2-point")
        for _ in range(starts)
    ]
    lowest = min([from_truth, *ends], key=lambda end: end[0])
    if lowest is not from_truth:
        lowest = local(lowest[1], 60, "3-point")
    measures = [by_hand.measure(named(end[1])) for end in (from_truth, lowest)]
    best = named((from_truth, lowest)[int(np.argmin(measures))][1])
    return {"from truth": measures[0], "best": min(measures), "values": best}
