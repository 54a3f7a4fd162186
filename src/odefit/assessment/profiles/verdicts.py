"""The interval, the verdict and the sentence from the two sides of a profile."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odefit.assessment.parts import Direction
from odefit.assessment.profiles.parts import OPEN, Profile, Side, Verdict
from odefit.common.arrays import Array
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.problem import Problem

FLAT = 0.01
"""Largest deviance, relative to the limit, of a profile that is flat throughout."""

DISAGREEMENT = 0.2
"""Distance between an end of the linear interval and that of the profile, relative to the width of
the latter, above which the two disagree."""


def assembled(
    key: str,
    text: str,
    logarithmic: bool,
    estimate: float,
    vector: Array,
    sides: Sequence[Side],
    limit: float,
    linear: tuple[float, float],
    directions: Sequence[Direction],
    problem: Problem,
    apart: Sequence[tuple[float, float]] = (),
) -> Profile:
    """Return the profile from its lower and upper side; see :class:`Profile`.

    `linear` are the limits of the linear interval, `directions` the undetermined directions at the
    optimum in which the quantity takes part, `apart` the coordinates of separate intervals.
    """
    low, high = sides

    def natural(at: Array) -> Array:
        return np.asarray(10.0**at if logarithmic else at)

    values = np.concatenate([natural(low.at[::-1]), [estimate], natural(high.at)])
    deviances = np.concatenate([low.deviances[::-1], [0.0], high.deviances])
    slopes = np.concatenate([low.slopes[::-1], [0.0], high.slopes])
    vectors = np.concatenate([low.vectors[::-1], vector[None, :], high.vectors])
    lower, upper = _end(low, -math.inf, logarithmic), _end(high, math.inf, logarithmic)
    verdict = _verdict(sides, deviances, limit, directions)
    if apart and verdict is Verdict.IDENTIFIABLE:
        verdict = Verdict.SEVERAL_INTERVALS
    profile = Profile(
        key,
        text,
        logarithmic,
        estimate,
        values,
        deviances,
        slopes,
        vectors,
        lower,
        upper,
        (low.end, high.end),
        (low.reason, high.reason),
        linear,
        verdict,
        "",
        low.evaluations + high.evaluations,
        low.minimisations + high.minimisations,
        (low.unchecked, high.unchecked),
        tuple((float(natural(np.array(a))), float(natural(np.array(b)))) for a, b in apart),
    )
    return _with_sentence(profile, directions, _held(sides, key, problem))


def _with_sentence(
    profile: Profile, directions: Sequence[Direction], held: Sequence[str]
) -> Profile:
    from dataclasses import replace

    sentences = [f"{interval_words(profile)}: {_verdict_words(profile)}."]
    sentences += [d.sentence for d in directions if profile.verdict is Verdict.STRUCTURALLY_NOT]
    sentences += [
        f"The {side} end was not found: {reason}."
        for side, reason, end in zip(("lower", "upper"), profile.reasons, profile.ends, strict=True)
        if reason and end not in ("limit", *OPEN)
    ]
    names = [n for n, is_so in zip(("lower", "upper"), profile.unchecked, strict=True) if is_so]
    if names:
        were = "limits were" if len(names) > 1 else "limit was"
        which = " and ".join(names)
        sentences.append(
            f"The {which} {were} not compared with other optima, as time ended before."
        )
    sentences += held
    if disagrees(profile):
        low, high = profile.linear
        sentences.append(f"The linear interval [{low:.4g}, {high:.4g}] cannot be trusted.")
    return replace(profile, sentence=" ".join(sentences))


def _held(sides: Sequence[Side], key: str, problem: Problem) -> list[str]:
    """Return sentences on bounds of other unknowns on which an interval depends."""
    ends: dict[str, list[str]] = {}
    for name, side in zip(("lower", "upper"), sides, strict=True):
        if side.end != "limit":
            continue
        nearest = int(np.argmin(np.abs(side.at - side.limit)))
        touched = bounds_touched(problem, side.vectors[nearest])
        others = [k for k, at in zip(problem.keys, touched, strict=True) if at and k != key]
        if others:
            ends.setdefault(", ".join(others), []).append(name)
    return [
        f"The {' and '.join(names)} limit hold{'s' * (len(names) == 1)} within the bounds of "
        f"{others}, at which the refits end there."
        for others, names in ends.items()
    ]


def disagrees(profile: Profile) -> bool:
    """Return whether the interval by linearisation differs from that of the profile."""
    if not all(math.isfinite(v) for v in profile.linear):
        return False
    if math.isinf(profile.lower) or math.isinf(profile.upper):
        return True
    if not profile.closed:
        return False
    ends = np.array([profile.lower, profile.upper])
    linear = np.array(profile.linear)
    if profile.logarithmic and (linear > 0).all():
        ends, linear = np.log10(ends), np.log10(linear)
    return bool(np.max(np.abs(ends - linear)) > DISAGREEMENT * (ends[1] - ends[0]))


def interval_words(profile: Profile) -> str:
    """Return the interval in words, e.g. ``"k1 > 15.4; no upper limit within the bounds"``."""
    key, low, high = profile.key, profile.lower, profile.upper
    if profile.closed and profile.intervals:
        return " or ".join(f"{low:.4g} < {key} < {high:.4g}" for low, high in profile.intervals)
    if profile.closed:
        return f"{low:.4g} < {key} < {high:.4g}"
    open_low, open_high = math.isinf(low), math.isinf(high)
    parts = []
    if math.isfinite(low):
        parts.append(f"{key} > {low:.4g}")
    if math.isfinite(high):
        parts.append(f"{key} < {high:.4g}")
    without = [s for s, is_open in (("lower", open_low), ("upper", open_high)) if is_open]
    if without:
        bounded = all(
            end == "bound"
            for end, is_open in zip(profile.ends, (open_low, open_high), strict=True)
            if is_open
        )
        where = " within the bounds" if bounded else ""
        parts.append(f"no {' and no '.join(without)} limit{where}")
    unknown = [s for s, v in (("lower", low), ("upper", high)) if math.isnan(v)]
    if unknown:
        parts.append(f"{' and '.join(unknown)} limit not found")
    text = "; ".join(parts)
    return text if key in text else f"{key}: {text}"


def _verdict_words(profile: Profile) -> str:
    if profile.verdict is not Verdict.PRACTICALLY_NOT:
        return profile.verdict.value
    open_low, open_high = math.isinf(profile.lower), math.isinf(profile.upper)
    if open_low and open_high:
        return "practically not identifiable"
    return f"practically not identifiable {'downwards' if open_low else 'upwards'}"


def _end(side: Side, none: float, logarithmic: bool) -> float:
    if side.end == "limit":
        return 10.0**side.limit if logarithmic else side.limit
    return none if side.end in OPEN else math.nan


def _verdict(
    sides: Sequence[Side], deviances: Array, limit: float, directions: Sequence[Direction]
) -> Verdict:
    ends = [side.end for side in sides]
    if all(end == "limit" for end in ends):
        return Verdict.IDENTIFIABLE
    if all(end in OPEN for end in ends):
        if directions and float(np.max(np.abs(deviances))) <= FLAT * limit:
            return Verdict.STRUCTURALLY_NOT
        return Verdict.PRACTICALLY_NOT
    if any(end in OPEN for end in ends):
        return Verdict.PRACTICALLY_NOT
    return Verdict.NOT_RESOLVED
