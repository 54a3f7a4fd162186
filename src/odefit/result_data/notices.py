"""Facts that a result states beside its numbers, put into words by `odefit.reporting.notices`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class NoticeKind(StrEnum):
    """The kind of a fact; files hold its value."""

    PROBLEM = "problem"
    """A remark on the problem, in ``text``."""
    START = "start"
    """A remark on the start values of a fit that continues another, in ``text``."""
    INTEGRATION = "integration"
    """A remark on the engines or the states, in ``text``."""
    RUN = "run"
    """A remark on processes, checkpoints or memory, in ``text``."""
    IMPROVEMENT = "improvement"
    """A remark on the last improvement of the answer, in ``text``."""
    NOT_INTEGRATED = "not integrated"
    """No end of the search can be integrated at full accuracy."""
    ENGINES_DISAGREE = "engines disagree"
    """No two engines agree on the trajectory: ``time``, ``first``, ``second``."""
    OTHER_ENGINE = "other engine"
    """Another engine integrates the answer, as a third one agrees with it."""
    DOES_NOT_FIT = "does not fit"
    """The answer does not describe the data: ``ratio`` to the noise, ``share`` of the squares."""
    MISFIT = "misfit"
    """The residuals are more than noise: ``ratio``, ``share``; names are those of outliers."""
    CURVE_ASTRAY = "curve astray"
    """The curve of an observable (name, and the experiment if there are several) does not come near
    its data. There are ``low``, ``high`` and ``passes`` through the middle of both, those of the
    curve with ``curve_``. ``angle`` is 1 where the data may be degrees, and sines take radians.
    """
    NOT_NOISE = "not noise"
    """The residuals do not look like noise: ``p``."""
    TRY_ROBUST_NOISE = "try robust noise"
    """Single values lie far out; names are the observables."""
    OUTLIERS = "outliers"
    """Values that count little in a robust fit: ``count``; names are these."""
    SMOOTHNESS = "smoothness"
    """The smoothness of a function that was chosen: ``sd`` of its ``differences``, of which the
    data determine ``effective``, after ``steps`` fits, ``settled`` or not. Names are the function
    and the criterion.
    """
    NO_CERTIFICATE = "no certificate"
    """The reason why nothing is proved, in ``text``."""
    NOT_ASSESSED = "not assessed"
    """The fit was ended before its answer was assessed."""
    EQUAL_SOLUTIONS = "equal solutions"
    """Several solutions fit equally well: ``count``; names are the unknowns that differ."""
    NEAR_SOLUTIONS = "near solutions"
    """Several solutions fit within the noise: ``count``, ``equal`` of them equally well."""
    SOLUTIONS_CUT = "solutions cut"
    """A limit or an interruption ended the search for other solutions that fit (not if ``cut`` is
    0); ``unsure`` of those listed may be no optima of their own."""
    SETTLED_BY = "settled by"
    """The measurement that would distinguish solutions that fit: ``time``, ``sd`` of the
    measurement, predictions as ``solution 1`` and so on, their least ``distance`` in standard
    deviations. ``assumed`` is 1 for an assumed noise. Names are the observable, the experiment and
    the unit of time.
    """
    SEARCHED_ELSEWHERE = "searched elsewhere"
    """The answer misses the data and leaves unknowns (names) undetermined. ``starts`` from wider
    ranges found nothing better; ``p`` is that of the residuals."""
    STARTS_FAILED = "starts failed"
    """Some starts failed: ``failed`` of ``starts``; the first reason is in ``text``."""
    STAGE_FAILED = "stage failed"
    """A stage failed because of a mistake in odefit; names are the stage and the error."""
    ENDED_EARLY = "ended early"
    """A limit or an interruption has ended the fit; the name is its cause."""
    OTHER = "other"
    """A sentence from a file older than the facts."""


@dataclass(frozen=True)
class Notice:
    """A fact with its numbers and names, see :class:`NoticeKind`.

    Attributes
    ----------
    kind
        The kind of the fact.
    numbers, names
        Its numbers and names.
    text
        A sentence from the part of the program that found the fact, for kinds that have one.
    groups
        The number of solutions of each group of experiments with unknowns of its own, by the
        names of its experiments; ``count`` is their product.
    """

    kind: NoticeKind
    numbers: Mapping[str, float] = field(default_factory=dict, metadata={"optional": True})
    names: tuple[str, ...] = field(default=(), metadata={"optional": True})
    text: str = field(default="", metadata={"optional": True})
    groups: Mapping[str, float] = field(default_factory=dict, metadata={"optional": True})
