"""Discretisation schemes: from a differential equation to algebraic equations on a mesh.

Every scheme here is a set of linear relations between values x and slopes f(t, x, p) at the
points of a mesh, ``A x = B f``: one-step and multistep methods of section 2.1 of Fernandez de
Dios et al., explicit Runge-Kutta with its stages as points of their own, and orthogonal
collocation. Whatever evaluates f (CasADi, SCIP, Pyomo, floats) therefore serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from scipy.sparse import coo_array, csr_array

from odefit.problem.arrays import Array, IntArray
from odefit.problem.errors import InputError
from odefit.problem.option_checks import whole

Weights = tuple[csr_array, csr_array]
"""Coefficients of values and of slopes at the points, one row a result."""

Stencil = tuple[IntArray, int, tuple[int, ...]]
"""Steps, the point from which each goes, and the points whose slopes it uses, both counted
from the left end of the step."""

StartUp = Literal["trapezoid", "block"]


@dataclass(frozen=True, eq=False)
class Relations:
    """A scheme on the mesh of one segment: ``states @ x == slopes @ f``.

    Attributes
    ----------
    times
        Of the points, shape (P,): mesh points, and stages or collocation points between them.
    boundary
        Which points are the mesh points t_0 < ... < t_N, shape (N + 1,).
    states, slopes
        A and B, shape (P - 1, P); the step sizes are in B.
    """

    times: Array
    boundary: IntArray
    states: csr_array
    rhs: csr_array


class Scheme(Protocol):
    """How a differential equation is discretised."""

    @property
    def name(self) -> str:
        """For results."""

    @property
    def order(self) -> int:
        """Of the error at the mesh points, for a smooth solution."""

    @property
    def local_order(self) -> int:
        """Power of the step size with which the error of its polynomial in one step falls."""

    @property
    def least_steps(self) -> int:
        """Steps without which the scheme is not itself."""

    def relations(self, mesh: Array) -> Relations:
        """The equations on the mesh points `mesh`, shape (N + 1,), increasing."""

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """The scheme's own polynomial (or its derivative) at `times` within the mesh."""


class _Builder:
    """Collects rows of A and B."""

    def __init__(self, points: int) -> None:
        self._points = points
        self._rows = 0
        self._parts: dict[str, list[tuple[IntArray, IntArray, Array]]] = {"x": [], "f": []}

    def add(
        self,
        rows: IntArray,
        states: list[tuple[IntArray, Array]],
        slopes: list[tuple[IntArray, Array]],
    ) -> None:
        """Coefficients by point, arrays over `rows`."""
        self._rows = max(self._rows, int(rows.max(initial=-1)) + 1)
        for kind, terms in (("x", states), ("f", slopes)):
            for columns, values in terms:
                self._parts[kind].append((rows, columns, np.broadcast_to(values, rows.shape)))

    def matrices(self, rows: int | None = None) -> Weights:
        shape = (self._rows if rows is None else rows, self._points)
        found = []
        for kind in ("x", "f"):
            parts = self._parts[kind]
            if parts:
                r, c, v = (np.concatenate(column) for column in zip(*parts, strict=True))
            else:
                r, c, v = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
            matrix = csr_array(coo_array((v, (r, c)), shape=shape))
            matrix.eliminate_zeros()
            found.append(matrix)
        return found[0], found[1]


def quadrature(nodes: Array, start: Array, end: Array) -> Array:
    """Weights of the interpolatory rule for the integral from `start` to `end`.

    Parameters
    ----------
    nodes
        Shape (count, k), distinct in each row.
    start, end
        Shape (count,).

    Returns
    -------
    ndarray
        Shape (count, k); exact for polynomials of degree k - 1.
    """
    count, k = nodes.shape
    scale = np.ptp(nodes, axis=1) if k > 1 else np.ones(count)
    centre = nodes[:, 0]
    s = (nodes - centre[:, None]) / scale[:, None]
    a, b = (start - centre) / scale, (end - centre) / scale
    powers = np.arange(k)
    vandermonde = s[:, None, :] ** powers[None, :, None]
    moments = (b[:, None] ** (powers + 1) - a[:, None] ** (powers + 1)) / (powers + 1)
    weights = np.linalg.solve(vandermonde, moments[:, :, None])[:, :, 0]
    return np.asarray(weights * scale[:, None])


def lagrange(nodes: Array, at: Array) -> Array:
    """Lagrange polynomials of `nodes`, shape (count, k), at `at`, shape (count,)."""
    k = nodes.shape[1]
    values = np.ones(nodes.shape)
    for j in range(k):
        for i in range(k):
            if i != j:
                values[:, j] *= (at - nodes[:, i]) / (nodes[:, j] - nodes[:, i])
    return values


def _step_of(mesh: Array, times: Array) -> IntArray:
    """Number of the step that each time is in."""
    return np.clip(np.searchsorted(mesh, times, side="right") - 1, 0, len(mesh) - 2)


class _Multistep:
    """x(target) = x(base) + the integral of the polynomial through slopes at nearby points."""

    def windows(self, steps: int) -> list[Stencil]:
        """How the steps are made, every step in exactly one window."""
        raise NotImplementedError

    def relations(self, mesh: Array) -> Relations:
        """The equations on `mesh`, one a step."""
        points = len(mesh)
        rows = _Builder(points)
        for steps, base, nodes in self.windows(points - 1):
            left = [(steps + 1, np.array(1.0)), (steps + base, np.array(-1.0))]
            weights = self._weights(mesh, steps, base, nodes, mesh[steps + 1])
            rows.add(steps, left, _columns(steps, nodes, weights))
        states, slopes = rows.matrices(points - 1)
        return Relations(mesh, np.arange(points), states, slopes)

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """The polynomial that a step is the integral of, at `times`."""
        step = _step_of(mesh, times)
        rows = _Builder(len(mesh))
        for steps, base, nodes in self.windows(len(mesh) - 1):
            here = np.flatnonzero(np.isin(step, steps))
            if not len(here):
                continue
            s = step[here]
            if derivative:
                places = np.stack([mesh[s + n] for n in nodes], axis=1)
                rows.add(here, [], _columns(s, nodes, lagrange(places, times[here])))
            else:
                weights = self._weights(mesh, s, base, nodes, times[here])
                rows.add(here, [(s + base, np.array(1.0))], _columns(s, nodes, weights))
        return rows.matrices(len(times))

    @staticmethod
    def _weights(
        mesh: Array, steps: IntArray, base: int, nodes: tuple[int, ...], end: Array
    ) -> Array:
        places = np.stack([mesh[steps + n] for n in nodes], axis=1)
        return quadrature(places, mesh[steps + base], end)


def _columns(
    steps: IntArray, nodes: tuple[int, ...], weights: Array
) -> list[tuple[IntArray, Array]]:
    return [(steps + n, weights[:, i]) for i, n in enumerate(nodes)]


def _check_start(owner: str, start: str) -> None:
    if start not in ("trapezoid", "block"):
        raise InputError(f'{owner}: start is "trapezoid" or "block", got {start!r}')


@dataclass(frozen=True)
class Euler(_Multistep):
    """Explicit Euler, equation (3)."""

    name: str = "Euler"
    order: int = 1
    local_order: int = 2
    least_steps: int = 1

    def windows(self, steps: int) -> list[Stencil]:
        """The slope at the left end of each step."""
        return [(np.arange(steps), 0, (0,))]


@dataclass(frozen=True)
class Trapezoid(_Multistep):
    """The trapezoid rule, equation (4)."""

    name: str = "trapezoid"
    order: int = 2
    local_order: int = 3
    least_steps: int = 1

    def windows(self, steps: int) -> list[Stencil]:
        """The slopes at both ends of each step."""
        return [(np.arange(steps), 0, (0, 1))]


@dataclass(frozen=True)
class AdamsMoulton(_Multistep):
    """Adams-Moulton with three steps, equation (5).

    Attributes
    ----------
    start
        How the first two steps are made: ``"trapezoid"`` as in the paper, whose local error
        of third order stays in the solution (measured order 3), or ``"block"``, from the same
        four slopes as the third (order 4).

    Raises
    ------
    InputError
        `start` is none of these.
    """

    start: StartUp = "trapezoid"
    name: str = "Adams-Moulton"
    local_order: int = 5
    least_steps: int = 3

    def __post_init__(self) -> None:
        _check_start(self.name, self.start)

    @property
    def order(self) -> int:
        """3 with the paper's start-up, else 4."""
        return 3 if self.start == "trapezoid" else 4

    def windows(self, steps: int) -> list[Stencil]:
        """Four slopes, those at the ends of the step and two before."""
        rest = (np.arange(2, steps), 0, (-2, -1, 0, 1))
        if self.start == "block" and steps > 2:
            first = [(np.array([k]), 0, tuple(range(-k, 4 - k))) for k in (0, 1)]
            return [*first, rest]
        return [(np.arange(min(2, steps)), 0, (0, 1)), rest]


@dataclass(frozen=True)
class Simpson(_Multistep):
    """Simpson's rule over two steps, equation (6).

    Values between mesh points are those of the cubic Hermite polynomial of a step. On a mesh
    whose steps change abruptly the two steps are not symmetric, and the measured order is 3
    with either start.

    Attributes
    ----------
    start
        How the first step is made: ``"trapezoid"`` as in the paper (measured order 3), or
        ``"block"``, from the slopes at the first three points (order 4).

    Raises
    ------
    InputError
        `start` is none of these.
    """

    start: StartUp = "trapezoid"
    name: str = "Simpson"
    local_order: int = 4
    least_steps: int = 2

    def __post_init__(self) -> None:
        _check_start(self.name, self.start)

    @property
    def order(self) -> int:
        """3 with the paper's start-up, else 4."""
        return 3 if self.start == "trapezoid" else 4

    def windows(self, steps: int) -> list[Stencil]:
        """Three slopes, the base one step before."""
        block = self.start == "block" and steps > 1
        first = (np.arange(min(1, steps)), 0, (0, 1, 2) if block else (0, 1))
        return [first, (np.arange(1, steps), -1, (-1, 0, 1))]

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """Cubic Hermite, which is continuous; the integrated parabola of two steps is not."""
        return _hermite(mesh, relations.boundary, len(mesh), times, derivative)


@dataclass(frozen=True)
class RungeKutta:
    """The classical Runge-Kutta method, equation (7), its stages as unknowns of their own."""

    name: str = "Runge-Kutta"
    order: int = 4
    local_order: int = 4
    least_steps: int = 1

    def relations(self, mesh: Array) -> Relations:
        """Four equations a step: three stages and the new value."""
        h = np.diff(mesh)
        steps = len(h)
        start = 4 * np.arange(steps)
        times = np.empty(4 * steps + 1)
        times[start], times[-1] = mesh[:-1], mesh[-1]
        times[start + 1] = times[start + 2] = mesh[:-1] + h / 2
        times[start + 3] = mesh[1:]
        rows = _Builder(len(times))
        one, minus = np.array(1.0), np.array(-1.0)
        for stage, weight in ((1, h / 2), (2, h / 2), (3, h)):
            rows.add(
                start + stage - 1,
                [(start + stage, one), (start, minus)],
                [(start + stage - 1, weight)],
            )
        weights = [(start + k, h * w / 6) for k, w in enumerate((1.0, 2.0, 2.0, 1.0))]
        rows.add(start + 3, [(start + 4, one), (start, minus)], weights)
        states, slopes = rows.matrices(4 * steps)
        return Relations(times, np.append(start, 4 * steps), states, slopes)

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """Cubic Hermite through values and slopes at the ends of a step."""
        return _hermite(mesh, relations.boundary, len(relations.times), times, derivative)


def _hermite(
    mesh: Array, boundary: IntArray, points: int, times: Array, derivative: bool
) -> Weights:
    step = _step_of(mesh, times)
    h = mesh[step + 1] - mesh[step]
    s = (times - mesh[step]) / h
    left, right = boundary[step], boundary[step + 1]
    if derivative:
        value = 6 * s * (1 - s) / h
        states = [(left, -value), (right, value)]
        slopes = [(left, (1 - s) * (1 - 3 * s)), (right, s * (3 * s - 2))]
    else:
        value = s * s * (3 - 2 * s)
        states = [(left, 1 - value), (right, value)]
        slopes = [(left, h * s * (1 - s) ** 2), (right, h * s * s * (s - 1))]
    rows = _Builder(points)
    rows.add(np.arange(len(times)), states, slopes)
    return rows.matrices(len(times))


@dataclass(frozen=True)
class Collocation:
    """Orthogonal collocation on finite elements.

    In each element the solution is a polynomial of degree `points` that satisfies the
    differential equation at the collocation points (equations (8)-(12) of Miro et al.).

    Attributes
    ----------
    points
        Collocation points in an element, K.
    kind
        ``"radau"`` (the last one is the end of the element; order 2 K - 1, for stiff systems)
        or ``"legendre"`` (order 2 K).

    Raises
    ------
    InputError
        `points` or `kind` is none of these.
    """

    points: int = 3
    kind: Literal["radau", "legendre"] = "radau"

    def __post_init__(self) -> None:
        if self.kind not in ("radau", "legendre"):
            raise InputError(f'Collocation: kind is "radau" or "legendre", got {self.kind!r}')
        whole(self.points, "Collocation, points")

    @property
    def name(self) -> str:
        """For results."""
        return f"{self.kind.capitalize()} collocation ({self.points} points)"

    @property
    def order(self) -> int:
        """At the ends of elements."""
        return 2 * self.points - (self.kind == "radau")

    @property
    def local_order(self) -> int:
        """Of the polynomial between the points, one above its degree."""
        return self.points + 1

    @property
    def least_steps(self) -> int:
        """One element."""
        return 1

    @cached_property
    def nodes(self) -> Array:
        """Collocation points in an element [0, 1], shape (K,), increasing."""
        from scipy.special import roots_jacobi

        if self.kind == "legendre":
            return np.asarray((np.polynomial.legendre.leggauss(self.points)[0] + 1) / 2)
        # roots of a Jacobi polynomial, and the right end
        inner = roots_jacobi(self.points - 1, 1.0, 0.0)[0] if self.points > 1 else np.zeros(0)
        return np.append((np.sort(inner) + 1) / 2, 1.0)

    @cached_property
    def _basis(self) -> list[np.polynomial.Polynomial]:
        """Lagrange polynomials of the element's start and the collocation points."""
        nodes = np.append(0.0, self.nodes)
        return [
            np.polynomial.Polynomial.fromroots(np.delete(nodes, k))
            / float(np.prod(nodes[k] - np.delete(nodes, k)))
            for k in range(len(nodes))
        ]

    def relations(self, mesh: Array) -> Relations:
        """The polynomial's derivative at the points; for Legendre, its value at the end."""
        h = np.diff(mesh)
        size = self.points + (self.kind == "legendre")  # new points of an element
        start = size * np.arange(len(h))
        times = np.empty(size * len(h) + 1)
        times[start], times[-1] = mesh[:-1], mesh[-1]
        for j, c in enumerate(self.nodes[: size - 1], start=1):
            times[start + j] = mesh[:-1] + c * h
        rows = _Builder(len(times))
        for j, c in enumerate(self.nodes):
            derivative = [(start + k, np.array(b.deriv()(c))) for k, b in enumerate(self._basis)]
            rows.add(start + j, derivative, [(start + j + 1, h)])
        if self.kind == "legendre":
            end = [(start + k, np.array(-b(1.0))) for k, b in enumerate(self._basis)]
            rows.add(start + size - 1, [(start + size, np.array(1.0)), *end], [])
        states, slopes = rows.matrices(size * len(h))
        return Relations(times, np.append(start, size * len(h)), states, slopes)

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """The element's polynomial."""
        step = _step_of(mesh, times)
        h = mesh[step + 1] - mesh[step]
        s = (times - mesh[step]) / h
        start = relations.boundary[step]
        rows = _Builder(len(relations.times))
        values = [b.deriv()(s) / h if derivative else b(s) for b in self._basis]
        rows.add(np.arange(len(times)), [(start + k, v) for k, v in enumerate(values)], [])
        return rows.matrices(len(times))


SCHEMES: dict[str, Scheme] = {
    "euler": Euler(),
    "trapezoid": Trapezoid(),
    "adams-moulton": AdamsMoulton(),
    "simpson": Simpson(),
    "runge-kutta": RungeKutta(),
    "radau": Collocation(3, "radau"),
    "legendre": Collocation(3, "legendre"),
}
"""Schemes by the names that options take."""
