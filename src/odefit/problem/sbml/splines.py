"""Splines in SBML models: cubic Hermite splines by the annotation of assignment rules of AMICI.

The annotation gives values at nodes, and perhaps derivatives there. AMICI also writes the formula
of the spline into the rule, but reads only the annotation, and so does this module. Missing
derivatives are finite differences: the mean of the slopes on both sides. At an end they are the
slope of its interval, zero (``zeroderivative``), or the slope of zero curvature (``natural``). A
spline of logarithms interpolates the logarithms of the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from odefit.common.errors import one_of, shown
from odefit.problem.sbml.symbols import Reading
from odefit.problem.sbml.terms import (
    ZERO,
    Term,
    call,
    compared,
    difference,
    number,
    number_in,
    numeric,
    piecewise,
    product,
    quotient,
    total,
)

NAMESPACE = "https://github.com/AMICI-dev/AMICI"
MATHML = "http://www.w3.org/1998/Math/MathML"

BOUNDARIES = ("no_bc", "zeroderivative", "natural")
EXTRAPOLATIONS = ("no_extrapolation", "polynomial", "constant", "linear")
"""The known words. For periodic splines the formula of the rule is used."""

MOST_NODES = 1000
"""Largest number of nodes of a uniform grid."""


@dataclass(frozen=True)
class Spline:
    """A cubic Hermite spline, as its annotation specifies.

    `slopes` are the derivatives at the nodes, in the natural scale.
    """

    at: Term
    nodes: tuple[Term, ...]
    values: tuple[Term, ...]
    slopes: tuple[Term, ...]
    before: str
    after: str
    log: bool


def spline_of(rule: Any, reading: Reading, place: str) -> Term | None:
    """Return the spline that the annotation of an assignment rule describes; None without one.

    A mistake is noted. Periodic splines give None, as the formula of the rule is used for them.
    """
    node = _annotation(rule)
    if node is None:
        return None
    bc = _pair(_attribute(node, "spline_bc"), "no_bc")
    ends = _pair(_attribute(node, "spline_extrapolate"), "no_extrapolation")
    if "periodic" in (*bc, *ends) and rule.isSetMath():
        return None
    method = _attribute(node, "spline_method")
    for name, words, known in (
        ("spline_method", (method,), ("cubic_hermite",)),
        ("spline_bc", bc, BOUNDARIES),
        ("spline_extrapolate", ends, EXTRAPOLATIONS),
    ):
        for word in words:
            if word not in known:
                reading.error(
                    place,
                    f"the annotation of its spline has {name} = {shown(word)}, which is not "
                    f"read{one_of(word, known)}; write the model with AMICI's add_to_sbml_model, "
                    "which puts the formula into the rule, and remove the annotation",
                )
                return None
    parts = {name: _terms(node, name, reading, place) for name in PARTS}
    nodes = parts["spline_grid"] or _uniform(parts["spline_uniform_grid"])
    values, at = parts["spline_values"], parts["spline_evaluation_point"]
    slopes = parts["spline_derivatives"]
    log = _attribute(node, "spline_logarithmic_parametrization") == "true"
    least = 3 if "natural" in bc and not slopes else 2
    if len(at) != 1 or len(nodes) < least or len(values) != len(nodes):
        reading.error(
            place,
            "the annotation of its spline needs a spline_evaluation_point, a grid of at least "
            f"{least} nodes and as many spline_values, got {len(nodes)} nodes and {len(values)} "
            "values",
        )
        return None
    if slopes and len(slopes) != len(nodes):
        reading.error(
            place, f"its spline has {len(nodes)} nodes, but {len(slopes)} spline_derivatives"
        )
        return None
    slopes = slopes or _differences(nodes, values, bc)
    made = Spline(at[0], tuple(nodes), tuple(values), tuple(slopes), *ends, log)
    return numeric(written(made))


PARTS = (
    "spline_evaluation_point", "spline_grid", "spline_uniform_grid", "spline_values",
    "spline_derivatives",
)  # fmt: skip
"""The elements within an annotation."""


def written(spline: Spline) -> Term:
    """Return a spline as a term."""
    values, slopes = list(spline.values), list(spline.slopes)
    if spline.log:
        slopes = [quotient(d, y) for d, y in zip(slopes, values, strict=True)]
        values = [call("log", [y]) for y in values]
    x, nodes = spline.at, spline.nodes
    parts: list[Term] = []
    for end, place, first in ((spline.before, 0, True), (spline.after, len(nodes) - 1, False)):
        if end in ("constant", "linear"):
            beyond = values[place]
            if end == "linear":
                reach = difference(x, nodes[place])
                beyond = total([beyond, product([slopes[place], reach])])
            inside = compared("<", x, nodes[0]) if first else compared(">=", x, nodes[-1])
            parts += [beyond, inside]
    for k in range(len(nodes) - 1):
        parts.append(_piece(x, nodes[k : k + 2], values[k : k + 2], slopes[k : k + 2]))
        if k < len(nodes) - 2:
            parts.append(compared("<", x, nodes[k + 1]))
    term = piecewise(parts) if len(parts) > 1 else parts[0]
    return call("exp", [term]) if spline.log else term


def _piece(x: Term, nodes: Sequence[Term], values: Sequence[Term], slopes: Sequence[Term]) -> Term:
    """Return the cubic between two nodes, as powers of the relative place u (Horner's scheme)."""
    width = difference(nodes[1], nodes[0])
    u = quotient(difference(x, nodes[0]), width)
    step = difference(values[1], values[0])
    first, last = (product([width, slope]) for slope in slopes)
    square = difference(product([number(3.0), step]), total([first, first, last]))
    cube = difference(total([first, last]), product([number(2.0), step]))
    inner = total([square, product([u, cube])])
    return total([values[0], product([u, total([first, product([u, inner])])])])


def _differences(nodes: Sequence[Term], values: Sequence[Term], bc: tuple[str, str]) -> list[Term]:
    """Return the derivatives at the nodes by finite differences."""
    gaps = [difference(b, a) for a, b in pairwise(nodes)]
    steps = [
        quotient(difference(b, a), gap) for (a, b), gap in zip(pairwise(values), gaps, strict=True)
    ]
    half = number(0.5)
    inner = [product([half, total([a, b])]) for a, b in pairwise(steps)]

    def end(kind: str, slope: Term, next_slope: Term | None) -> Term:
        if kind == "zeroderivative":
            return ZERO
        if kind == "natural" and next_slope is not None:
            # The second derivative of the cubic is zero at its end.
            return product([half, difference(product([number(3.0), slope]), next_slope)])
        return slope

    first = end(bc[0], steps[0], inner[0] if inner else None)
    last = end(bc[1], steps[-1], inner[-1] if inner else None)
    return [first, *inner, last]


def _uniform(terms: Sequence[Term]) -> list[Term]:
    """Return the nodes from a start to a stop by a step; no nodes for unusable numbers."""
    numbers = [number_in(term) for term in terms]
    if len(numbers) not in (2, 3) or any(v is None for v in numbers):
        return []
    start, stop, step = (*(v for v in numbers if v is not None), 1.0)[:3]
    if not step > 0 or not stop > start or (stop - start) / step > MOST_NODES:
        return []
    count = round((stop - start) / step)
    return [number(start + k * step) for k in range(count + 1)]


def _annotation(rule: Any) -> Any:
    """Return the element of an annotation that describes a spline; None without one."""
    if not rule.isSetAnnotation():
        return None
    whole = rule.getAnnotation()
    for k in range(whole.getNumChildren()):
        child = whole.getChild(k)
        if child.getName() == "spline" and child.getURI() == NAMESPACE:
            return child
    return None


def is_spline(rule: Any) -> bool:
    """Return whether an element is an assignment rule with the annotation of a spline."""
    return bool(getattr(rule, "isAssignment", lambda: False)()) and _annotation(rule) is not None


def _attribute(node: Any, name: str) -> str:
    return str(node.getAttrValue(name, NAMESPACE) or node.getAttrValue(name))


def _pair(text: str, default: str) -> tuple[str, str]:
    """Return the words for both ends: one word, or two in parentheses."""
    words = [word.strip() or default for word in text.strip("() ").split(",")]
    return words[0], words[-1]


def _terms(node: Any, name: str, reading: Reading, place: str) -> list[Term]:
    """Return the terms in an element of an annotation."""
    return [
        numeric(term)
        for tree in _trees(node, name)
        if (term := reading.term(tree, place)) is not None
    ]


def _trees(node: Any, name: str) -> Iterator[Any]:
    import libsbml

    for k in range(node.getNumChildren()):
        child = node.getChild(k)
        if child.getName() != name:
            continue
        for m in range(child.getNumChildren()):
            text = child.getChild(m).toXMLString()
            if "xmlns" not in text:
                text = text.replace("<math", f'<math xmlns="{MATHML}"', 1)
            yield libsbml.readMathMLFromString(text)
