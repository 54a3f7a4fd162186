"""Discretisation schemes: from a differential equation to algebraic equations on a mesh.

Every scheme is a set of linear relations between values x and right-hand sides f(t, x, p) at the
points of a mesh, ``A x = B f``. There are one-step and multistep methods (section 2.1 of Fernandez
de Dios et al.), explicit Runge-Kutta with stages as points, and orthogonal collocation. So any
evaluation of f (CasADi, SCIP, Pyomo, floats) serves all schemes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Literal, Protocol

import numpy as np
from scipy.sparse import coo_array, csr_array

from odefit.common.arrays import Array, IntArray
from odefit.common.errors import InputError, counted, one_of
from odefit.common.option_checks import whole

Weights = tuple[csr_array, csr_array]
"""Coefficients of values and of right-hand sides at the points, one row for each result."""

Stencil = tuple[IntArray, int, tuple[int, ...]]
"""Numbers of steps with the same formula, the point from which each starts, and the points whose
right-hand sides it uses, both counted from the left end of the step."""

StartUp = Literal["trapezoid", "block"]
"""Ways in which a multistep method takes steps that lack earlier points."""


@dataclass(frozen=True, eq=False)
class Relations:
    """A scheme on the mesh of one segment: ``states @ x == rhs @ f``.

    The P `times` are those of mesh points, and of stages or collocation points between. The mesh
    points t_0 < ... < t_N are those with numbers `boundary`, shape (N + 1,). The matrices have
    shape (P - 1, P); step sizes are in `rhs`.
    """

    times: Array
    boundary: IntArray
    states: csr_array
    rhs: csr_array


class Scheme(Protocol):
    """A way to discretise a differential equation."""

    @property
    def name(self) -> str:
        """The name shown in results."""

    @property
    def order(self) -> int:
        """Order of the error at the mesh points, for a smooth solution."""

    @property
    def local_order(self) -> int:
        """Order of the error of its polynomial within one step."""

    @property
    def least_steps(self) -> int:
        """Number of steps below which another scheme is used."""

    def relations(self, mesh: Array) -> Relations:
        """Return the equations on the mesh points `mesh`, shape (N + 1,), increasing."""

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """Return the scheme's own polynomial (or its derivative) at `times` within the mesh."""


Terms = Sequence[tuple[IntArray, Array]]  # points and coefficients, each with an entry a row


def _matrices(shape: tuple[int, int], *groups: tuple[IntArray, Terms, Terms]) -> Weights:
    """Return A and B from groups of rows: their numbers, terms in x and terms in f."""
    matrices = []
    for side in (1, 2):
        entries = [
            (group[0], points, np.broadcast_to(values, points.shape))
            for group in groups
            for points, values in group[side]
        ]
        none = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
        rows, columns, data = (np.concatenate(e) for e in zip(none, *entries, strict=True))
        matrix = csr_array(coo_array((data, (rows, columns)), shape=shape))
        matrix.eliminate_zeros()
        matrices.append(matrix)
    return matrices[0], matrices[1]


def quadrature(nodes: Array, start: Array, end: Array) -> Array:
    """Return weights of quadrature from `start` to `end`, of order k, shape (count, k)."""
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
    """Return the Lagrange polynomials of `nodes`, shape (count, k), at `at`, shape (count,)."""
    k = nodes.shape[1]
    values = np.ones(nodes.shape)
    for j, i in permutations(range(k), 2):
        values[:, j] *= (at - nodes[:, i]) / (nodes[:, j] - nodes[:, i])
    return values


def _step_of(mesh: Array, times: Array) -> tuple[IntArray, Array, Array]:
    """Return the number and length of each time's step, and its position there in [0, 1]."""
    step = np.clip(np.searchsorted(mesh, times, side="right") - 1, 0, len(mesh) - 2)
    h = mesh[step + 1] - mesh[step]
    return step, h, (times - mesh[step]) / h


class _Multistep:
    """x(target) = x(base) + the integral of the polynomial through f at nearby points."""

    name: str
    start: StartUp = "trapezoid"

    def __post_init__(self) -> None:
        if self.start not in ("trapezoid", "block"):
            raise InputError(f'{self.name}: start is "trapezoid" or "block", got {self.start!r}')

    @property
    def order(self) -> int:
        """Order 3 with the paper's start-up, otherwise 4."""
        return 3 if self.start == "trapezoid" else 4

    def stencils(self, steps: int) -> list[Stencil]:
        """Return the formulas of the steps, with every step in exactly one stencil."""
        raise NotImplementedError

    def relations(self, mesh: Array) -> Relations:
        """Return the equations on `mesh`, one for each step."""
        points = len(mesh)
        groups = []
        for steps, base, nodes in self.stencils(points - 1):
            left = [(steps + 1, ONE), (steps + base, -ONE)]
            weights = self._weights(mesh, steps, base, nodes, mesh[steps + 1])
            groups.append((steps, left, _terms(steps, nodes, weights)))
        return Relations(mesh, np.arange(points), *_matrices((points - 1, points), *groups))

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """Return the polynomial whose integral is the step, at `times`."""
        step, _, _ = _step_of(mesh, times)
        groups: list[tuple[IntArray, Terms, Terms]] = []
        for steps, base, nodes in self.stencils(len(mesh) - 1):
            here = np.flatnonzero(np.isin(step, steps))
            s, t = step[here], times[here]
            if derivative:
                at = np.stack([mesh[s + n] for n in nodes], axis=1)
                groups.append((here, [], _terms(s, nodes, lagrange(at, t))))
            else:
                weights = self._weights(mesh, s, base, nodes, t)
                groups.append((here, [(s + base, ONE)], _terms(s, nodes, weights)))
        return _matrices((len(times), len(mesh)), *groups)

    @staticmethod
    def _weights(
        mesh: Array, steps: IntArray, base: int, nodes: tuple[int, ...], end: Array
    ) -> Array:
        if not len(steps):
            return np.zeros((0, len(nodes)))
        return quadrature(
            np.stack([mesh[steps + n] for n in nodes], axis=1), mesh[steps + base], end
        )


def _terms(steps: IntArray, nodes: tuple[int, ...], weights: Array) -> Terms:
    return [(steps + n, weights[:, i]) for i, n in enumerate(nodes)]


ONE = np.array(1.0)  # coefficient of a term that is added unchanged


@dataclass(frozen=True)
class Euler(_Multistep):
    """Explicit Euler, equation (3)."""

    name: str = "Euler"
    order: int = 1
    local_order: int = 2
    least_steps: int = 1

    def stencils(self, steps: int) -> list[Stencil]:
        """Return the right-hand side at the left end of each step."""
        return [(np.arange(steps), 0, (0,))]


@dataclass(frozen=True)
class Trapezoid(_Multistep):
    """The trapezoid rule, equation (4)."""

    name: str = "trapezoid"
    order: int = 2
    local_order: int = 3
    least_steps: int = 1

    def stencils(self, steps: int) -> list[Stencil]:
        """Return the right-hand sides at both ends of each step."""
        return [(np.arange(steps), 0, (0, 1))]


@dataclass(frozen=True)
class AdamsMoulton(_Multistep):
    """Adams-Moulton with three steps, equation (5).

    The first two steps follow the rule of `start`. The paper's rule is ``"trapezoid"``, whose local
    error of third order stays in the solution (measured order 3). With ``"block"`` they use the
    same four right-hand sides as the third step (order 4). Raises InputError for any other.
    """

    start: StartUp = "trapezoid"
    name: str = "Adams-Moulton"
    local_order: int = 5
    least_steps: int = 3

    def stencils(self, steps: int) -> list[Stencil]:
        """Return four right-hand sides for a step: at its ends and at the two points before."""
        rest = (np.arange(2, steps), 0, (-2, -1, 0, 1))
        if self.start == "block" and steps > 2:
            first = [(np.array([k]), 0, tuple(range(-k, 4 - k))) for k in (0, 1)]
            return [*first, rest]
        return [(np.arange(min(2, steps)), 0, (0, 1)), rest]


def _hermite(
    self: object, mesh: Array, relations: Relations, times: Array, derivative: bool = False
) -> Weights:
    """Return the cubic Hermite polynomial of values and right-hand sides at both ends."""
    step, h, s = _step_of(mesh, times)
    left, right = relations.boundary[step], relations.boundary[step + 1]
    if derivative:
        value = 6 * s * (1 - s) / h
        states = [(left, -value), (right, value)]
        rhs = [(left, (1 - s) * (1 - 3 * s)), (right, s * (3 * s - 2))]
    else:
        value = s * s * (3 - 2 * s)
        states = [(left, 1 - value), (right, value)]
        rhs = [(left, h * s * (1 - s) ** 2), (right, h * s * s * (s - 1))]
    return _matrices((len(times), len(relations.times)), (np.arange(len(times)), states, rhs))


@dataclass(frozen=True)
class Simpson(_Multistep):
    """Simpson's rule over two steps, equation (6).

    The first step is that of `start`: ``"trapezoid"`` as in the paper (measured order 3), or
    ``"block"``, from the right-hand sides at the first three points (order 4). Raises InputError
    for any other. Values between mesh points are those of the cubic Hermite polynomial of a step.
    On a mesh whose steps change abruptly the two steps are not symmetric, and the measured order is
    3 with either start.
    """

    start: StartUp = "trapezoid"
    name: str = "Simpson"
    local_order: int = 4
    least_steps: int = 2

    def stencils(self, steps: int) -> list[Stencil]:
        """Return three right-hand sides for two steps together, from the point before the last."""
        block = self.start == "block" and steps > 1
        first = (np.arange(min(1, steps)), 0, (0, 1, 2) if block else (0, 1))
        return [first, (np.arange(1, steps), -1, (-1, 0, 1))]

    interpolation = _hermite


@dataclass(frozen=True)
class RungeKutta:
    """The classical Runge-Kutta method, equation (7), with its stages as separate unknowns."""

    name: str = "Runge-Kutta"
    order: int = 4
    local_order: int = 4
    least_steps: int = 1

    def relations(self, mesh: Array) -> Relations:
        """Return four equations for each step: three stages and the new value."""
        h = np.diff(mesh)
        steps = len(h)
        start = 4 * np.arange(steps)
        times = np.empty(4 * steps + 1)
        times[start], times[-1] = mesh[:-1], mesh[-1]
        times[start + 1] = times[start + 2] = mesh[:-1] + h / 2
        times[start + 3] = mesh[1:]
        stages = [
            (start + k - 1, [(start + k, ONE), (start, -ONE)], [(start + k - 1, weight)])
            for k, weight in ((1, h / 2), (2, h / 2), (3, h))
        ]
        weights = [(start + k, h * w / 6) for k, w in enumerate((1.0, 2.0, 2.0, 1.0))]
        value = (start + 3, [(start + 4, ONE), (start, -ONE)], weights)
        matrices = _matrices((4 * steps, len(times)), *stages, value)
        return Relations(times, np.append(start, 4 * steps), *matrices)

    interpolation = _hermite


@dataclass(frozen=True)
class Collocation:
    """Orthogonal collocation on finite elements.

    In each element the solution is a polynomial of degree `points`, K, that satisfies the
    differential equation at as many collocation points (equations (8)-(12) of Miro et al.). They
    are of the `kind` ``"radau"`` (the last one is the end of the element; order 2 K - 1, for stiff
    systems) or ``"legendre"`` (order 2 K). Raises InputError for any other value.
    """

    points: int = 3
    kind: Literal["radau", "legendre"] = "radau"

    def __post_init__(self) -> None:
        if self.kind not in ("radau", "legendre"):
            raise InputError(f'Collocation: kind is "radau" or "legendre", got {self.kind!r}')
        whole(self.points, "Collocation, points")

    @property
    def name(self) -> str:
        """The name shown in results."""
        return f"{self.kind.capitalize()} collocation ({counted(self.points, 'point')})"

    @property
    def order(self) -> int:
        """Order of the error at the ends of elements."""
        return 2 * self.points - (self.kind == "radau")

    @property
    def local_order(self) -> int:
        """Order of the error between the points, one above the degree of the polynomial."""
        return self.points + 1

    least_steps = 1

    @cached_property
    def nodes(self) -> Array:
        """Points in [0, 1], shape (K,): roots of a polynomial, and for Radau the right end."""
        from scipy.special import roots_jacobi

        if self.kind == "legendre":
            return np.asarray((np.polynomial.legendre.leggauss(self.points)[0] + 1) / 2)
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
        """Return the derivatives at the points; for Legendre, also the value at the end."""
        h = np.diff(mesh)
        size = self.points + (self.kind == "legendre")  # new points of an element
        start = size * np.arange(len(h))
        times = np.empty(size * len(h) + 1)
        times[start], times[-1] = mesh[:-1], mesh[-1]
        for j, c in enumerate(self.nodes[: size - 1], start=1):
            times[start + j] = mesh[:-1] + c * h
        groups: list[tuple[IntArray, Terms, Terms]] = []
        for j, c in enumerate(self.nodes):
            derivative = [(start + k, np.array(b.deriv()(c))) for k, b in enumerate(self._basis)]
            groups.append((start + j, derivative, [(start + j + 1, h)]))
        if self.kind == "legendre":
            end = [(start + k, np.array(-b(1.0))) for k, b in enumerate(self._basis)]
            groups.append((start + size - 1, [(start + size, ONE), *end], []))
        matrices = _matrices((size * len(h), len(times)), *groups)
        return Relations(times, np.append(start, size * len(h)), *matrices)

    def interpolation(
        self, mesh: Array, relations: Relations, times: Array, derivative: bool = False
    ) -> Weights:
        """Return the polynomial of an element."""
        step, h, s = _step_of(mesh, times)
        start = relations.boundary[step]
        values = [b.deriv()(s) / h if derivative else b(s) for b in self._basis]
        terms = [(start + k, v) for k, v in enumerate(values)]
        return _matrices((len(times), len(relations.times)), (np.arange(len(times)), terms, []))


SCHEMES: dict[str, Scheme] = {
    "euler": Euler(),
    "trapezoid": Trapezoid(),
    "adams-moulton": AdamsMoulton(),
    "simpson": Simpson(),
    "runge-kutta": RungeKutta(),
    "radau": Collocation(3, "radau"),
    "legendre": Collocation(3, "legendre"),
}
"""Schemes by their names in options."""


def as_scheme(value: Scheme | str, owner: str) -> Scheme:
    """Return a scheme, which may be given by its name; refuse anything else."""
    if isinstance(value, str):
        if value not in SCHEMES:
            raise InputError(f"unknown scheme {value!r}{one_of(value, SCHEMES)}")
        return SCHEMES[value]
    if not hasattr(value, "relations"):
        raise InputError(f"{owner}, scheme: expected one of {', '.join(SCHEMES)}, got {value!r}")
    return value
