"""Unknown functions expanded: their unknowns, and the function as an expression of these.

The coefficients of a function are linear in *features*, each an unknown or its logarithm. With a
penalty on roughness, these are a straight line and second differences (for steps: a level and
jumps). The penalty is a normal prior on the differences: a mixed model as in Wood (2017,
Generalized Additive Models, section 5.8). The prior's standard deviation determines the smoothness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.parameters import Parameter, Scale
from odefit.problem.priors import Prior
from odefit.problem.unknown_functions.bases import Basis, basis, bends
from odefit.problem.unknown_functions.specification import UnknownFunction

LN10 = "2.302585092994046"
START_SD = 0.1
"""Initial standard deviation of differences in the search for it, relative to 1."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """A function in the terms of a problem.

    Attributes
    ----------
    function
        Its specification.
    text
        The function as an expression.
    constants
        Constants that it uses, as expressions in the unknowns.
    features
        The unknowns by name, each with its kind: ``"value"``, ``"step"``, ``"slope"``, ``"bend"``
        (of which the penalised ones are) or ``"time"``.
    penalised
        Names of the unknowns with a penalty.
    """

    function: UnknownFunction
    text: str
    constants: Mapping[str, str]
    features: Mapping[str, str]
    penalised: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """Names of the constants for the ends of the range."""
        return f"{self.function.name}_from", f"{self.function.name}_to"

    @property
    def along(self) -> Array:
        """Places of the penalised unknowns along the function, from -1 to 1."""
        sites = basis(self.function.kind, self.function.places).sites
        inner = (sites[1:] + sites[:-1]) / 2 if self.function.kind == "constant" else sites[1:-1]
        return np.asarray(2.0 * inner - 1.0)[: len(self.penalised)]

    def parameters(self, limits: tuple[float, float]) -> dict[str, Parameter]:
        """Return the unknowns for a range."""
        f = self.function
        parameters_found = {}
        for i, (name, kind) in enumerate(self.features.items()):
            if kind == "value":
                scale: Scale | None = "log10" if f.log else None
                made = Parameter(f.lower, f.upper, f.guess, scale, None, f.per_experiment)
                made = replace(made, unit=f.unit or None)
            elif kind == "time":
                share = (i + 1) / (f.changes + 1)
                low, high = limits
                made = Parameter(low, high, low + share * (high - low))
            elif name in self.penalised:
                prior = Prior(0.0, f.sd or START_SD * _size(f))
                made = Parameter(
                    guess=0.0, scale="linear", per_experiment=f.per_experiment, prior=prior
                )
            elif kind == "slope":
                made = Parameter(guess=0.0, scale="linear", per_experiment=f.per_experiment)
            else:
                guess = 0.1 * _size(f)
                made = Parameter(0.0, guess=guess, scale="linear", per_experiment=f.per_experiment)
            parameters_found[name] = made
        return parameters_found


def _size(f: UnknownFunction) -> float:
    """Return the size of the coefficients, as far as the table gives it."""
    return 1.0 if f.log or not f.guess else abs(f.guess)


def expanded(function: UnknownFunction) -> Expansion:
    """Return a function in the terms of a problem."""
    n = function.name
    if function.changes:
        values = {f"{n}_{i}": "value" for i in range(1, function.changes + 2)}
        times = [f"{n}_time_{i}" for i in range(1, function.changes + 1)]
        parts = [p for v, t in zip(values, times, strict=False) for p in (v, f"t < {t}")]
        text = f"piecewise({', '.join([*parts, list(values)[-1]])})"
        return Expansion(function, text, {}, {**dict.fromkeys(times, "time"), **values}, ())
    made = basis(function.kind, function.places)
    features, matrix = _features(function, made)
    terms = [f"log10({k})" if v == "value" and function.log else k for k, v in features.items()]
    penalised = tuple(k for k, v in features.items() if v == "bend" and function.smooth)
    plain = matrix.shape[0] == matrix.shape[1] and (matrix == np.eye(len(matrix))).all()
    if function.of is not None:
        text, constants = _of_state(function, made, matrix, terms)
    elif plain and (not function.log or function.kind == "constant"):
        # Steps need no logarithm: between knots, the value is a coefficient.
        text, constants = _of_time(function, made, list(features), False), {}
    else:
        names = [f"{n}_c{i}" for i in range(1, len(matrix) + 1)]
        constants = {c: _combined(row, terms) for c, row in zip(names, matrix, strict=True)}
        text = _of_time(function, made, names, function.log)
    return Expansion(function, text, constants, features, penalised)


def _features(f: UnknownFunction, made: Basis) -> tuple[dict[str, str], Array]:
    """Return the unknowns of a function with their kinds, and the coefficients linear in them."""
    n, sites, count = f.name, made.sites, len(made.sites)
    if f.smooth is not None and f.kind == "constant":
        differences = np.diff(np.eye(count), axis=0)
        names = [f"{n}_jump_{i}" for i in range(1, count)]
        matrix = np.column_stack([np.ones(count), np.linalg.pinv(differences)])
        return {f"{n}_level": "value", **dict.fromkeys(names, "bend")}, matrix
    if f.smooth is not None and count > 2:
        names = [f"{n}_bend_{i}" for i in range(1, count - 1)]
        # Second differences of coefficients that are orthogonal to all straight lines.
        matrix = np.column_stack([1 - sites, sites, np.linalg.pinv(bends(sites))])
        ends = {f"{n}_start": "value", f"{n}_end": "value"}
        return {**ends, **dict.fromkeys(names, "bend")}, matrix
    if f.shape in ("increasing", "decreasing"):
        sign = 1.0 if f.shape == "increasing" else -1.0
        steps = sign * np.tri(count, count - 1, -1)
        names = [f"{n}_step_{i}" for i in range(1, count)]
        matrix = np.column_stack([np.ones(count), steps])
        return {f"{n}_first": "value", **dict.fromkeys(names, "step")}, matrix
    if f.shape is not None:
        sign = 1.0 if f.shape == "convex" else -1.0
        inner = sites[1:-1]
        ramps = sign * np.maximum(sites[:, None] - inner, 0.0) / np.diff(sites).mean()
        names = [f"{n}_bend_{i}" for i in range(1, count - 1)]
        matrix = np.column_stack([np.ones(count), sites - sites[0], ramps])
        slopes = {f"{n}_first": "value", f"{n}_slope": "slope"}
        return {**slopes, **dict.fromkeys(names, "bend")}, matrix
    return {f"{n}_{i}": "value" for i in range(1, count + 1)}, np.eye(count)


def _combined(weights: Array, terms: Sequence[str]) -> str:
    """Return a sum of terms with weights."""
    size = float(np.abs(weights).max())
    summands = [
        term if w == 1.0 else f"{float(w)!r}*{term}"
        for w, term in zip(weights, terms, strict=True)
        if abs(w) > 1e-14 * size
    ]
    return " + ".join(summands).replace("+ -", "- ") if summands else "0.0"


def _on_scale(text: str, log: bool) -> str:
    return f"exp({LN10}*({text}))" if log else f"({text})"


def _of_time(f: UnknownFunction, made: Basis, names: Sequence[str], log: bool) -> str:
    """Return a function of time: its pieces between the knots, constant beyond the ends."""
    start, end = f"{f.name}_from", f"{f.name}_to"
    span = f"({end} - {start})"

    def place(u: float) -> str:
        return start if u == 0.0 else end if u == 1.0 else f"{start} + {u!r}*{span}"

    parts = []
    for m, piece in enumerate(made.pieces):
        sums = [_combined(piece[:, p], names) for p in range(piece.shape[1])]
        if m == 0 and len(sums) > 1:
            parts += [sums[0], f"t < {start}"]
        local = f"(t - ({place(float(made.knots[m]))}))/{span}"
        text = sums[-1]
        for s in reversed(sums[:-1]):
            text = f"{s} + {local}*({text})"
        parts += [text, f"t < {place(float(made.knots[m + 1]))}"]
    # The last step continues, and so does the last value of a continuous function.
    parts = parts[:-1] if len(made.pieces[0][0]) == 1 else [*parts, _combined(made.at_end(), names)]
    return _on_scale(f"piecewise({', '.join(parts)})" if len(parts) > 1 else parts[0], log)


def _of_state(
    f: UnknownFunction, made: Basis, matrix: Array, terms: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Return a function of a state, linear beyond its ends, and its constants."""
    line, added = made.jumps()
    n = f.name
    assert f.of is not None
    u = f"(({f.of.text}) - {n}_from)/({n}_to - {n}_from)"
    constants = {f"{n}_c{p}": _combined(line[p] @ matrix, terms) for p in range(2)}
    text = f"{n}_c0 + {n}_c1*{u}"
    for m, knot in enumerate(made.knots):
        beyond = u if knot == 0.0 else f"{u} - {float(knot)!r}"
        for p in range(added.shape[2]):
            if added[m, :, p].any():
                name = f"{n}_c{p}_{m + 1}"
                constants[name] = _combined(added[m, :, p] @ matrix, terms)
                power = f"^{p}" if p > 1 else ""
                text += f" + {name}*max({beyond}, 0){power}"
    return _on_scale(text, f.log), constants
