"""The result of an analysis of structural identifiability, as values, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from odefit.common.packages import require

if TYPE_CHECKING:
    import pandas as pd

IdentifiabilityStatus = Literal[
    "globally", "locally", "in combination", "no effect", "outside", "undecided"
]
"""The identifiability of an unknown; see :class:`UnknownIdentifiability`."""

STATUS_WORDS: Mapping[IdentifiabilityStatus, str] = {
    "globally": "globally",
    "locally": "locally",
    "in combination": "no, only in combination",
    "no effect": "no: changes no output",
    "outside": "not examined",
    "undecided": "not decided",
}


@dataclass(frozen=True)
class UnknownIdentifiability:
    """The structural identifiability of one unknown.

    Attributes
    ----------
    key
        The unknown's name.
    status
        ``"globally"`` or ``"locally"`` identifiable (one value, or several), only ``"in
        combination"`` with others, or with ``"no effect"`` on any output. ``"outside"`` the
        analysis is an unknown that acts on the noise alone, or only after the first event.
        ``"undecided"`` means that the time limit ended the analysis before, or that the examined
        derivatives do not determine it and higher ones may.
    values
        The number of values that agree with all outputs; None if they are not counted, or
        infinitely many.
    remark
        A remark on the status; it may be empty.
    """

    key: str
    status: IdentifiabilityStatus
    values: int | None = None
    remark: str = ""

    @property
    def identifiable(self) -> bool | None:
        """True if the unknown is locally identifiable; None if that was not examined or decided."""
        if self.status in ("outside", "undecided"):
            return None
        return self.status in ("globally", "locally")

    def __str__(self) -> str:
        if self.status == "outside":
            return f"not examined: {self.remark}"
        text = STATUS_WORDS[self.status]
        if self.status == "undecided":
            return f"{text}: {self.remark}" if self.remark else f"{text} within the limit"
        if self.status == "locally":
            text += f", {self.values} values" if self.values else ", number not counted"
        return f"{text} ({self.remark})" if self.remark else text


@dataclass(frozen=True)
class StructuralIdentifiability:
    """The structural identifiability of the unknowns, from perfect data of the measured outputs.

    Attributes
    ----------
    problem
        The problem's name.
    unknowns
        The identifiability of each unknown, in the problem's order.
    solutions
        Number of solutions that agree with all outputs, including complex ones; if some unknowns
        are not identifiable, the number with the values of `given` fixed. None if they were not
        counted.
    given
        Unknowns that must be fixed so that there are finitely many solutions.
    combinations
        Functions of the non-identifiable unknowns that are identifiable, at least locally.
    missing
        Number of further such functions, which are neither monomials nor linear forms.
    orders
        For each experiment, the highest required derivative of each measured output; -1 if the
        output itself is not needed.
    error
        Upper bound of the probability that an identifiable unknown was found not to be
        identifiable.
    doubt
        Probability that there are more solutions than counted.
    remarks
        Sentences on the limits of these findings.
    reason
        The reason why no analysis was possible; empty if it was.
    seconds
        Seconds that the analysis took.
    exact
        Whether the solutions were counted exactly, modulo a prime, and not numerically.
    unfinished
        Whether the limit ended the analysis early.
    reached
        The highest examined order of derivative, if higher ones may determine more unknowns: around
        given initial values such as zeros. None if they cannot.
    """

    problem: str
    unknowns: tuple[UnknownIdentifiability, ...]
    solutions: int | None = None
    given: tuple[str, ...] = ()
    combinations: tuple[str, ...] = ()
    missing: int = 0
    orders: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    error: float = 0.0
    doubt: float = 0.0
    remarks: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0
    exact: bool = False
    unfinished: bool = False
    reached: int | None = None

    def __getitem__(self, key: str) -> UnknownIdentifiability:
        """Return the identifiability of the unknown with a name."""
        for unknown in self.unknowns:
            if unknown.key == key:
                return unknown
        raise KeyError(key)

    def named(self, *statuses: IdentifiabilityStatus) -> tuple[str, ...]:
        """Return the names of the unknowns with one of these statuses."""
        return tuple(u.key for u in self.unknowns if u.status in statuses)

    @property
    def sentence(self) -> str:
        """The findings in one or two sentences."""
        decided = len(self.named("undecided")) == 0 and any(
            u.status != "outside" for u in self.unknowns
        )
        return f"{self.finding} {self._solutions if decided else ''}".strip()

    @property
    def finding(self) -> str:
        """A sentence on the unknowns, without the number of solutions."""
        if self.reason:
            return f"No structural analysis: {self.reason}."
        inside = [u for u in self.unknowns if u.status != "outside"]
        if not inside:
            return "The outputs depend on no unknown."
        count = len(inside)
        groups = {
            "identifiable globally": self.named("globally"),
            "identifiable locally": self.named("locally"),
            "not identifiable": self.named("in combination", "no effect"),
            "not decided": self.named("undecided"),
        }
        parts = [
            f"{len(keys)} {'is' if len(keys) == 1 else 'are'} {words}"
            for words, keys in groups.items()
            if keys
        ]
        undecided = groups["not decided"]
        if len(undecided) == count:
            limit = "by" if self.reached is not None else "within"
            return f"Nothing was decided {limit} {self._limit}."
        if len(parts) == 1:
            words = next(w for w, keys in groups.items() if keys)
            who = "The one unknown is" if count == 1 else f"All {count} unknowns are"
            sentence = f"{who} {words}"
            if count > 1 and words.startswith("not"):
                sentence = f"None of the {count} unknowns is identifiable"
        else:
            sentence = f"Of {count} unknowns, {_listed(parts)}"
            if undecided:
                if self.reached is None:
                    return (
                        f"{sentence} within {self._limit}: higher derivatives may determine them."
                    )
                return f"{sentence} by {self._limit}: higher ones may determine them."
        return f"{sentence}."

    @property
    def _limit(self) -> str:
        """The reason why the analysis of some unknowns remained undecided."""
        if self.reached is None:
            return "the limit"
        return f"the derivatives up to order {self.reached}"

    @property
    def _solutions(self) -> str:
        """A sentence on the number of solutions; empty if that adds nothing."""
        one = len(self.given) == 1
        values = "the value of" if one else "values of"
        are = "is" if one else "are"
        condition = f", once {values} {_listed(self.given)} {are} given" if self.given else ""
        if self.solutions is None:
            if self.unfinished:
                return (
                    "Whether other values give the same outputs was not decided within the limit."
                )
            return "The number of solutions was not counted."
        if self.solutions == 1 and not self.named("globally", "locally"):
            return ""
        if self.solutions == 1:
            return f"No other values give the same outputs{condition}."
        return f"{self.solutions} solutions give the same outputs{condition}."

    @property
    def sureness(self) -> str:
        """Sentences on the reliability of the findings."""
        if self.reason or not self.unknowns:
            return ""
        parts = []
        if self.named("undecided"):
            if self.named("locally"):
                parts.append(
                    "Local identifiability of those called identifiable is proved (ranks modulo a "
                    "prime)."
                )
        elif self.error:
            parts.append(
                "Ranks are exact, modulo a prime: a verdict on identifiability is wrong "
                f"with a probability below {_bound(self.error)}."
            )
        elif not self.named("in combination", "no effect"):
            parts.append(
                "Local identifiability of all unknowns is proved (full rank modulo a prime)."
            )
        else:
            parts.append("Those that are not identifiable are in no equation of the outputs.")
            if self.named("globally", "locally"):
                parts.append(
                    "Local identifiability of the others is proved (full rank modulo a prime)."
                )
        if self.solutions == 1 and not self.named("globally", "locally"):
            return " ".join(parts)
        if self.solutions is not None and self.exact:
            parts.append(
                "The count is exact, by a Groebner basis at a random point modulo a prime: it is "
                "the number for almost all values."
            )
        elif self.solutions is not None:
            parts.append(
                "The count is numerical, by homotopy continuation; the probability that a "
                f"solution is missing is about {_bound(self.doubt)} or less."
            )
        return " ".join(parts)

    @property
    def table(self) -> pd.DataFrame:
        """The findings as a table indexed by key.

        Columns are ``status``, ``identifiable``, ``values`` and ``remark``. ``identifiable`` is
        True, False, or missing if the structure does not decide or the time did not suffice.
        ``values`` is their number, missing if not counted or infinite.
        """
        require("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "status": [u.status for u in self.unknowns],
                "identifiable": pd.array([u.identifiable for u in self.unknowns], dtype="boolean"),
                "values": pd.array([u.values for u in self.unknowns], dtype="Int64"),
                "remark": [u.remark for u in self.unknowns],
            },
            index=pd.Index([u.key for u in self.unknowns], name="unknown"),
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines below the table, one or two sentences each."""
        yield self.sentence
        if self.reason:
            return
        if self.combinations:
            more = f" and {self.missing} more, which have no simple form" if self.missing else ""
            which = "combination" if len(self.combinations) == 1 else "combinations"
            yield f"Identifiable {which}: {', '.join(self.combinations)}{more}."
        elif self.missing and self.named("in combination"):
            names = _listed(self.named("in combination"))
            which = "combination is" if self.missing == 1 else "combinations are"
            yield f"Of {names} only {self.missing} {which} identifiable."
        yield from self._order_lines()
        yield from self.remarks
        if self.sureness:
            yield self.sureness

    def _order_lines(self) -> Iterator[str]:
        """Yield lines on the required derivatives."""
        groups: dict[str, list[str]] = {}
        for experiment, orders in self.orders.items():
            words = ", ".join(f"{name} {n}" for name, n in orders.items() if n >= 0)
            groups.setdefault(words, []).append(experiment)
        for words, experiments in groups.items():
            if words:
                where = f" in {_listed(experiments)}" if len(groups) > 1 else ""
                yield f"Derivatives needed{where}, up to order: {words}."

    def __str__(self) -> str:
        width = max((len(u.key) for u in self.unknowns), default=0)
        rows = [f"  {u.key:<{width}}  {u}" for u in self.unknowns]
        title = f"Structural identifiability of {self.problem}"
        return "\n".join([title, *(rows if not self.reason else []), *self.lines()])


def _listed(words: tuple[str, ...] | list[str]) -> str:
    """Return words joined by commas and "and"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _bound(probability: float) -> str:
    """Return the next power of ten above a probability, as text."""
    exponent = 0
    while exponent > -30 and probability <= 10.0 ** (exponent - 1):
        exponent -= 1
    return f"1e{exponent}"
