"""Gragg-Bulirsch-Stoer extrapolation in 30-digit arithmetic.

A double-precision solver does not suffice: the data files hold 12 significant digits and must be
equal byte for byte on every machine. Double precision leaves errors around 1e-13, which
occasionally change a last digit between platforms; with local errors below 1e-20 in mpmath's
arithmetic (pure integers, the same everywhere) the rounded digits are the true ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mpmath import mp, mpf

mp.dps = 30

Vector = list[mpf]
RightHandSide = Callable[[mpf, Vector], Vector]

TOLERANCE = mpf("1e-20")
MAX_COLUMNS = 14  # extrapolation columns, of substep counts 2, 4, ..., 28


def _midpoint(f: RightHandSide, t: mpf, x: Vector, step: mpf, substeps: int) -> Vector:
    """Gragg's modified midpoint rule: one big step in an even number of substeps."""
    h = step / substeps
    before = x
    now = [a + h * d for a, d in zip(x, f(t, x), strict=True)]
    for i in range(1, substeps):
        slope = f(t + i * h, now)
        before, now = now, [a + 2 * h * d for a, d in zip(before, slope, strict=True)]
    slope = f(t + step, now)
    return [(a + b + h * d) / 2 for a, b, d in zip(now, before, slope, strict=True)]


def _extrapolated_step(f: RightHandSide, t: mpf, x: Vector, step: mpf) -> tuple[Vector, int] | None:
    """Return one step to `TOLERANCE` with its number of columns; None if the step is too long."""
    table: list[Vector] = []
    for k in range(MAX_COLUMNS):
        row = [_midpoint(f, t, x, step, 2 * (k + 1))]
        for j in range(k):
            # Aitken-Neville in h^2; the substep counts are 2 (k + 1) and 2 (k - j)
            ratio = mpf(k + 1) ** 2 / mpf(k - j) ** 2 - 1
            row.append([b + (b - a) / ratio for a, b in zip(table[j], row[j], strict=True)])
        table, previous = row, table
        if k >= 3:
            size = [max(abs(a), abs(b), mpf("1e-6")) for a, b in zip(x, row[-1], strict=True)]
            errors = zip(row[-1], previous[-1], size, strict=True)
            if max(abs(a - b) / s for a, b, s in errors) < TOLERANCE:
                return row[-1], k
    return None


def trajectory(
    f: RightHandSide, start: mpf, initial: Sequence[mpf], times: Sequence[mpf]
) -> list[Vector]:
    """States at increasing `times` (the first may be `start`), correct to about 18 digits."""
    t, x = start, list(initial)
    step = mpf("0.1")
    states = []
    for target in times:
        while t < target:
            proposed = min(step, target - t)
            result = _extrapolated_step(f, t, x, proposed)
            if result is None:
                step = proposed / 2
                continue
            x, columns = result
            t = target if proposed == target - t else t + proposed
            # few columns mean that the step was easy; near the last one it was nearly too long
            if columns < MAX_COLUMNS - 4 and proposed == step:
                step *= mpf("1.5")
            elif columns > MAX_COLUMNS - 2:
                step *= mpf("0.8")
        states.append(list(x))
    return states
