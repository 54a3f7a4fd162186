"""No relaxation cuts off a feasible point: a hundred thousand and more of every kind of term.

Boxes are drawn from zero, with a change of sign, thin, and over decades; a fifth of the coordinates
of the points lie on their edges, where the rows are tight. A point may miss a row by what the sums
in it are rounded by, and, on whole problems, by its own residual of the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pytest
from scipy.sparse import csr_array

import odefit
from odefit import Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.instance import guess_states
from odefit.enclosure.arithmetic.intervals import Interval, real_product, relational_quotient
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.methods.bounded_problem import with_bounds
from odefit.methods.outer_approximation.algorithm import strengthening_cuts
from odefit.methods.outer_approximation.bound_tightening import FBBT, BoundTightening
from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.master_problem import (
    Partition,
    master_problem,
    uniform_partition,
    variables_to_partition,
)
from odefit.methods.outer_approximation.mixed_integer import Highs, SolverProcess
from odefit.methods.outer_approximation.reformulation import UnivariateTerm
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    linear_relaxation,
    mccormick,
    univariate_rows,
)
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm, standard_form
from odefit.methods.outer_approximation.state_bounds import StateBounds
from odefit.methods.outer_approximation.univariate import Univariate
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.transcription import Collocation, Discretisation, UniformMesh
from odefit.simulation import ForwardMap
from tests.methods.outer_approximation.problems import in_pieces, lifted
from tests.methods.outer_approximation.test_univariate import CASES, label

BOXES, EACH = 100, 1000
"""Terms, and points of each: 100,000."""

FEWER = 25
"""Terms of which every piece has lines of its own; with more points each."""


# Terms on their own -----------------------------------------------------------------------------


def boxes(
    random: np.random.Generator, count: int, least: float = -np.inf, most: float = np.inf
) -> Bounds:
    """Of all kinds, within a domain; shape (count,)."""
    a, b = random.normal(size=(2, count)) * 3.0
    size = 10.0 ** random.uniform(-3, 3, count)
    low, high = np.minimum(a, b), np.maximum(a, b)
    kind = np.arange(count) % 5
    low = np.where(kind == 1, 0.0, low)
    high = np.where(kind == 1, size, high)  # from zero
    low, high = np.where(kind == 2, -size, low), np.where(kind == 2, 2.0 * size, high)
    high = np.where(kind == 3, low + 1e-4 * np.abs(low), high)  # thin
    decades = 10.0 ** random.uniform(0.5, 6.0, count)
    low = np.where(kind == 4, size / 1e3, low)
    high = np.where(kind == 4, size / 1e3 * decades, high)
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    # What was clipped to nothing begins at the edge of the domain instead.
    empty = ~(low < high)
    low = np.where(empty, least if np.isfinite(least) else most - 1.0, low)
    high = np.where(empty, np.minimum(low + size, most), high)
    return low, high


def drawn(random: np.random.Generator, box: Bounds, count: int = EACH) -> Array:
    """Points in boxes, many of them on the edges, shape (count, boxes)."""
    low, high = box
    shape = (count, len(low))
    u = random.random(shape)
    inner = low + (high - low) * u
    with np.errstate(all="ignore"):  # in boxes over decades, small values too
        ratio = np.where(low > 0, high / np.where(low > 0, low, 1.0), 1.0)
        inner = np.where((ratio > 10) & (random.random(shape) < 0.5), low * ratio**u, inner)
    edge = random.random(shape)
    inner = np.where(edge < 0.1, low, np.where(edge > 0.9, high, inner))
    return np.clip(inner, low, high)


def form_of(
    size: int, bilinear: Array | None = None, univariate: tuple[UnivariateTerm, ...] = ()
) -> StandardForm:
    """Terms without equations; the residuals are their results."""
    terms = np.zeros((0, 3), dtype=np.intp) if bilinear is None else bilinear.astype(np.intp)
    results = np.array([*terms[:, 0].tolist(), *(t.result for t in univariate)], dtype=np.intp)
    return StandardForm(
        tuple(f"w{k}" for k in range(size)),
        np.full(size, -np.inf),
        np.full(size, np.inf),
        csr_array((0, size)),
        np.zeros(0),
        terms,
        univariate,
        results,
        np.zeros(size),
        0.0,
        size,
        np.zeros(0, dtype=np.intp),
        np.zeros((size, 2), dtype=np.intp),
        {},
    )


def excess(
    matrix: csr_array, lower: Array, upper: Array, points: Array, own: Array | float = 0.0
) -> float:
    """Largest violation of the rows by points, shape (points, columns), over what it may be.

    Parameters
    ----------
    own
        Residuals of the rows at the points, which are no fault of the rows.
    """
    rows = points @ matrix.T
    sides = np.where(np.isfinite(lower), np.abs(lower), 0.0)
    sides = np.maximum(sides, np.where(np.isfinite(upper), np.abs(upper), 0.0))
    terms = np.diff(matrix.indptr) + 8
    allowed = UNIT_ROUNDOFF * terms * (np.abs(points) @ abs(matrix).T + sides) + own + 1e-300
    return float(np.max(np.maximum(rows - upper, lower - rows) / allowed, initial=0.0))


def excess_of(p: Polyhedron, points: Array, own: Array | float = 0.0) -> float:
    """The same of all rows, and of the bounds of the columns."""
    slack = 16 * UNIT_ROUNDOFF * np.abs(points) + 1e-300
    outside = np.maximum(p.lower - points, points - p.upper) / slack
    rows = excess(p.matrix, p.row_lower, p.row_upper, points, own)
    return max(rows, float(np.max(outside, initial=0.0)))


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms in boxes, and points at which they hold, shape (EACH, size)."""

    form: StandardForm
    low: Array
    high: Array
    points: Array


def products(seed: int) -> Terms:
    """``w_k = w_i w_j`` (22)."""
    random = np.random.default_rng(seed)
    x, y = boxes(random, BOXES), boxes(random, BOXES)
    y = np.roll(y[0], seed + 1), np.roll(y[1], seed + 1)
    inside = drawn(random, x), drawn(random, y)
    z = real_product(Interval(*x), Interval(*y))
    k = np.arange(BOXES)
    form = form_of(3 * BOXES, np.column_stack([k + 2 * BOXES, k, k + BOXES]))
    low, high = np.concatenate([x[0], y[0], z.low]), np.concatenate([x[1], y[1], z.high])
    return Terms(form, low, high, np.hstack([*inside, inside[0] * inside[1]]))


def fractions(seed: int) -> Terms:
    """``w_k = w_i / w_j`` (23), kept as ``w_i = w_k w_j``."""
    random = np.random.default_rng(seed)
    x, y = boxes(random, BOXES), boxes(random, BOXES, least=1e-3)
    y = np.roll(y[0], seed + 1), np.roll(y[1], seed + 1)
    inside = drawn(random, x), drawn(random, y)
    z = relational_quotient(Interval(*x), Interval(*y))
    k = np.arange(BOXES)
    form = form_of(3 * BOXES, np.column_stack([k, k + 2 * BOXES, k + BOXES]))
    low, high = np.concatenate([x[0], y[0], z.low]), np.concatenate([x[1], y[1], z.high])
    return Terms(form, low, high, np.hstack([*inside, inside[0] / inside[1]]))


NUMPY_FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "abs": np.abs,
}  # fmt: skip
"""As NumPy has them, which need not be as the relaxation computes them."""


def univariate(f: Univariate, seed: int = 0, terms: int = BOXES) -> Terms:
    """``w_k = f(w_i)`` (24), (25)."""
    random = np.random.default_rng(seed)
    least, most = f.domain
    if f.name in ("exp", "sinh", "cosh"):
        least, most = -30.0, 30.0
    if f.name == "log" or (f.name == "power" and f.exponent < 0):
        least = max(least, 1e-4)  # no value at zero
    if f.name in ("sin", "cos"):
        least, most = -20.0, 20.0
    if f.name == "tan":
        least, most = -1.5, 1.5
    x = boxes(random, terms, least, most)
    inside = drawn(random, x, BOXES * EACH // terms)
    with np.errstate(all="ignore"):
        found = inside**f.exponent if f.name == "power" else NUMPY_FUNCTIONS[f.name](inside)
    assert np.isfinite(found).all()
    k = range(terms)
    form = form_of(2 * terms, univariate=tuple(UnivariateTerm(terms + i, i, f) for i in k))
    margin = 16 * UNIT_ROUNDOFF * np.abs(found)
    low = np.concatenate([x[0], (found - margin).min(axis=0)])
    high = np.concatenate([x[1], (found + margin).max(axis=0)])
    return Terms(form, low, high, np.hstack([inside, found]))


@pytest.mark.parametrize("made", [products, fractions])
@pytest.mark.parametrize("seed", [0, 1])
def test_mccormick_rows_hold_at_all_points(made: Callable[[int], Terms], seed: int) -> None:
    """(27)-(30)."""
    t = made(seed)
    rows = mccormick(t.form, t.low, t.high)
    assert rows.matrix.shape[0] == 4 * BOXES
    assert excess(rows.matrix, rows.lower, rows.upper, t.points) <= 1.0


@pytest.mark.parametrize("made", [products, fractions])
@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_piecewise_mccormick_rows_hold_at_all_points(
    made: Callable[[int], Terms], count: int
) -> None:
    """(31)-(37), either factor divided."""
    t = made(count)
    first = t.form.bilinear[:, 1 + count % 2]
    partition = uniform_partition(t.low, t.high, first.tolist(), count)
    assert whole(t, partition) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("f", CASES, ids=label)
def test_secants_and_tangents_bound_the_function(f: Univariate) -> None:
    t = univariate(f)
    rows = univariate_rows(t.form, t.low, t.high)
    assert rows.matrix.shape[0] >= BOXES
    assert excess(rows.matrix, rows.lower, rows.upper, t.points) <= 1.0


@pytest.mark.parametrize(
    "f",
    [pytest.param(f, marks=pytest.mark.slow if i % 6 else ()) for i, f in enumerate(CASES)],
    ids=label,
)
def test_piecewise_secants_and_tangents_bound_the_function(f: Univariate) -> None:
    t = univariate(f, seed=1, terms=FEWER)
    partition = uniform_partition(t.low, t.high, range(FEWER), 3)
    assert whole(t, partition) <= 1.0


def whole(t: Terms, partition: Partition, cut: float = np.inf) -> float:
    """Excess of a master problem: terms, pieces, hyper-planes, bounds."""
    planes = HyperPlanes.uniform(len(t.form.residuals), 4)
    program = master_problem(t.form, t.low, t.high, planes, partition, cut)
    inside = np.hstack([t.points, t.points[:, t.form.residuals] ** 2])
    points = in_pieces(t.form, t.low, t.high, inside, program, partition)
    return excess_of(program.polyhedron, points)


def test_hyper_planes_and_the_cutoff() -> None:
    """(39), (40) and (47): the point of the largest objective is on the cut."""
    random = np.random.default_rng(0)
    t = products(3)
    scale = np.abs(t.points).max(axis=0)  # else one residual would be the whole objective
    low, high, points = t.low / scale, t.high / scale, t.points / scale
    planes = HyperPlanes.uniform(BOXES, 6)
    r = t.form.residuals
    for n in range(3):
        planes.add(points[n, r], low[r], high[r])
    linear = random.normal(size=t.form.size)
    form = replace(t.form, bilinear=np.zeros((0, 3), dtype=np.intp), linear=linear, constant=-7.0)
    objectives = np.array([form.objective(w) for w in points])
    p = linear_relaxation(form, low, high, planes, float(objectives.max()))
    assert excess_of(p, np.hstack([points, points[:, r] ** 2])) <= 1.0
    p = linear_relaxation(form, low, high, planes, float(np.median(objectives)))
    assert excess_of(p, np.hstack([points, points[:, r] ** 2])) > 1e6


# Whole problems ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cloud:
    """Solutions of the discretised equations at random unknowns within a box.

    Attributes
    ----------
    d, form
        The problem.
    low, high
        Bounds of all variables: those of the box, propagated under the cutoff.
    cutoff
        The largest objective among the points.
    points
        All variables of the standard form, shape (count, n).
    """

    d: Discretisation
    form: StandardForm
    low: Array
    high: Array
    cutoff: float
    points: Array

    @property
    def lifted(self) -> Array:
        """With the squares of the residuals behind."""
        return np.hstack([self.points, self.points[:, self.form.residuals] ** 2])

    def own(self, p: Polyhedron) -> Array:
        """What the points miss the equations by: the first rows, shape (count, rows)."""
        found = np.zeros((len(self.points), p.matrix.shape[0]))
        missed = np.abs(self.points @ self.form.matrix.T - self.form.target)
        assert missed.max() < 1e-8 * np.abs(self.points).max()
        found[:, : missed.shape[1]] = missed
        return found


def cloud(name: str, seed: int, count: int = 100, width: float = 1.0) -> Cloud:
    """Points of a problem, in a random box of its unknowns, the narrower the smaller `width`."""
    problem, elements, points, fixed = PROBLEMS[name]()
    random = np.random.default_rng(seed)
    low, high = problem.lower, problem.upper
    u, v = np.sort(random.random((2, len(low))), axis=0)
    v = u + width * (v - u)
    if seed == 0:  # all of it, from zero where it begins there
        u, v = np.zeros(len(low)), np.ones(len(low))
    box = np.column_stack([low + u * (high - low), low + v * (high - low)])
    d = Discretisation(problem, Collocation(points, "legendre"), UniformMesh(elements))
    forward = ForwardMap(problem)
    reduced = ReducedSpace(forward, d)
    found = []
    for unknowns in drawn(random, (box[:, 0], box[:, 1]), count):
        solved = reduced.solve(unknowns, guess_states(d, forward, unknowns))
        if solved is not None:
            found.append((solved.values, unknowns))
    states = np.array([v for v, _ in found])
    StateBounds.of(d, box, fixed, 1e9).apply(d)
    form = standard_form(d)
    inside = ((states >= d.lower) & (states <= d.upper)).all(axis=(1, 2))
    own = [lifted(form, *found[k]) for k in np.flatnonzero(inside)]
    objectives = np.array([form.objective(w) for w in own])
    cut = float(np.quantile(objectives, 0.8))
    kept = np.array(own)[objectives <= cut]
    lower, upper = form.lower.copy(), form.upper.copy()
    lower[form.parameters], upper[form.parameters] = box.T
    lower, upper = FBBT(form).tighten(lower, upper, cut)
    return Cloud(d, form, lower, upper, cut, kept)


Given = tuple[Problem, int, int, dict[str, tuple[float, float]]]
"""A problem, elements and points, bounds of the states."""


def alpha_pinene() -> Given:
    problem = odefit.library.load("alpha-pinene")
    narrow = np.tile([0.0, 5e-4], (len(problem.keys), 1))
    return with_bounds(problem, narrow), 5, 3, dict.fromkeys(problem.model.states, (-300.0, 400.0))


def nonlinear() -> Given:
    """Fractions, functions and powers."""
    model = Model(
        ode={"s": "-v*s/(k + s) + 0.1*exp(-h*s)", "p": "v*s/(k + s) - d*p^1.5 - 0.1*sqrt(p)"}
    )
    times = np.linspace(0.0, 2.0, 6)
    parameters = {
        "v": {"lower": 0.1, "upper": 2.0},
        "k": {"lower": 0.2, "upper": 2.0},
        "h": {"lower": 0.0, "upper": 2.0},
        "d": {"lower": 0.0, "upper": 0.5},
    }
    data = {"t": times, "s": np.exp(-times), "p": 0.4 + 0.3 * times}
    problem = Problem(model, data, parameters, {"s": 1.0, "p": 0.5})
    return problem, 3, 2, {"s": (0.01, 2.0), "p": (0.01, 3.0)}


PROBLEMS = {"alpha-pinene": alpha_pinene, "nonlinear": nonlinear}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_a_complete_master_problem_hold_at_feasible_points(name: str, seed: int) -> None:
    """Rows, terms, pieces, hyper-planes and cutoff, in bounds tightened by FBBT."""
    c = cloud(name, seed)
    assert len(c.points) > 50
    planes = HyperPlanes.uniform(len(c.form.residuals), 4)
    partition = uniform_partition(c.low, c.high, variables_to_partition(c.form, c.low, c.high), 3)
    program = master_problem(c.form, c.low, c.high, planes, partition, c.cutoff)
    points = in_pieces(c.form, c.low, c.high, c.lifted, program, partition)
    assert excess_of(program.polyhedron, points, c.own(program.polyhedron)) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_bound_tightening_keeps_what_is_below_the_cutoff(name: str) -> None:
    c = cloud(name, seed=1, count=40)
    planes = HyperPlanes.uniform(len(c.form.residuals), 4)
    asked = count()
    first = len(c.form.parameters) + 8  # all parameters, some states
    tightening = BoundTightening(c.form, FBBT(c.form), planes, lambda: next(asked) > first)
    low, high = tightening.obbt(c.low, c.high, c.cutoff)
    tightening.stop = lambda: False
    if name == "nonlinear":
        low, high = tightening.probe(low, high, c.cutoff)
    assert (high - low).sum() < (c.high - c.low).sum()
    missed = np.abs(c.points @ c.form.matrix.T - c.form.target).max()
    slack = missed + 1e-12 * np.abs(c.points)
    assert (c.points >= low - slack).all()
    assert (c.points <= high + slack).all()
    bound, _ = tightening.relaxation_bound(low, high, c.cutoff)
    assert bound <= min(c.form.objective(w) for w in c.points)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_groups_of_elements_cost_what_their_cuts_say(name: str) -> None:
    """The strengthening cuts: sums of squares over a group are above its least."""
    c = cloud(name, seed=2, count=40, width=0.1)
    groups = (0, 1), (1, 2)
    planes = HyperPlanes.uniform(len(c.form.residuals), 4)
    partition = uniform_partition(c.low, c.high, variables_to_partition(c.form, c.low, c.high), 2)
    program = c.form, (c.low, c.high), planes, partition, groups, c.cutoff
    with SolverProcess(Highs()) as process:
        cuts = strengthening_cuts(*program, process, 0.2, 300.0, lambda: False)
    assert cuts
    squares = c.points[:, c.form.residuals] ** 2
    for cut in cuts:
        assert cut.least <= squares[:, list(cut.residuals)].sum(axis=1).min() * (1 + 1e-9)
    p = linear_relaxation(c.form, c.low, c.high, planes, c.cutoff, cuts)
    assert excess_of(p, c.lifted, c.own(p)) <= 1.0
