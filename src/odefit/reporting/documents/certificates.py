"""The verdict on a certificate, in words."""

from __future__ import annotations

from collections.abc import Mapping

from odefit.certificates.document import Document
from odefit.certificates.verification.verification import Finding, Verdict
from odefit.common.errors import counted


def verdict_text(verdict: Verdict, document: Document, *, compared: bool) -> str:
    """Return the result of the verification of a certificate, if `compared` with a problem."""
    if verdict.holds:
        box = {u["name"]: (u["lower"], u["upper"]) for u in document.statement["unknowns"]}
        about = "the given problem" if compared else "the problem that it states"
        return (
            f"The certificate holds, for {about}: no values of the unknowns within "
            f"{_box(box)} have an objective below {verdict.lower:.6g}, and "
            f"{verdict.upper:.6g} is reached. All {counted(verdict.leaves, 'leaf', 'leaves')} were "
            f"proved, over {counted(verdict.boxes, 'box', 'boxes')}."
        )
    return f"The certificate does not hold: {_reason(verdict)}."


def _reason(verdict: Verdict) -> str:
    """Return the reason why a certificate does not hold, with the place."""
    place = "" if verdict.place is None else _box(verdict.place)
    leaf = f"leaf {verdict.leaf}"
    match verdict.finding:
        case Finding.CHANGED:
            return "the file has been changed (its digest differs)"
        case Finding.OTHER_STATEMENT:
            return "its fingerprint is not that of the problem that it states"
        case Finding.OTHER_PROBLEM:
            return "it belongs to another problem than the given one"
        case Finding.INCUMBENT:
            return (
                f"the objective at {place} is not proved to be at most its upper bound, "
                f"{verdict.upper:.6g}"
            )
        case Finding.UNCOVERED:
            return f"no leaf covers {place}"
        case Finding.BELOW:
            return f"{leaf}, {place}, has a bound below the lower bound, {verdict.lower:.6g}"
        case Finding.REFUTED:
            return f"{leaf} has a smaller objective than its bound, at {place}"
    return f"the bound of {leaf} could not be proved over {place}"


def _box(box: Mapping[str, tuple[float, float]]) -> str:
    """Return a box in words: each unknown with its value or its interval."""
    return ", ".join(
        f"{name} = {low:.6g}" if low == high else f"{name} from {low:.6g} to {high:.6g}"
        for name, (low, high) in box.items()
    )
