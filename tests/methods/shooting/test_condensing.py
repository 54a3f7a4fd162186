"""Condensing changes nothing but the work: the dense problem has the same solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space

from odefit.methods.shooting.condensing import Chains, CondensedProblem
from odefit.methods.shooting.linear_problem import GeneralisedInverse
from tests.simulation.numerics import Array


@dataclass
class System:
    """min |J x - z| over nodes and unknowns, with G s_i + P q - s_(i+1) = e in every interval."""

    lengths: tuple[int, ...]
    kept: tuple[int, ...]
    row_nodes: np.ndarray[tuple[int], np.dtype[np.intp]]
    by_node: Array
    by_unknown: Array
    rows_by_node: Array
    rows_by_unknown: Array
    e: Array
    z: Array

    @property
    def chains(self) -> Chains:
        size, n = self.by_node.shape[1], self.by_unknown.shape[2]
        return Chains(self.lengths, size, n, self.row_nodes, self.kept)

    def dense(self) -> tuple[Array, Array]:
        """All equations and all rows, columns node by node and then the unknowns."""
        chains = self.chains
        size, n = chains.size, chains.unknowns
        nodes, intervals = sum(self.lengths), len(self.by_node)
        width = nodes * size + n
        equations, rows = np.zeros((intervals, size, width)), np.zeros((len(self.z), width))
        for i, left in enumerate(chains.left):
            at = size * int(left)
            equations[i, :, at : at + size] = self.by_node[i]
            equations[i, :, at + size : at + 2 * size] = -np.eye(size)
            equations[i, :, nodes * size :] = self.by_unknown[i]
        for r, node in enumerate(self.row_nodes):
            rows[r, size * node : size * (node + 1)] = self.rows_by_node[r]
        rows[:, nodes * size :] = self.rows_by_unknown
        return equations.reshape(-1, width), rows

    def direct(self) -> Array:
        """The solution by the null space of the equations."""
        equations, rows = self.dense()
        particular = np.linalg.lstsq(equations, self.e.ravel(), rcond=None)[0]
        free = null_space(equations) if len(equations) else np.eye(rows.shape[1])
        rest = np.linalg.lstsq(rows @ free, self.z - rows @ particular, rcond=1e-12)[0]
        return np.asarray(particular + free @ rest)

    def condensed(self) -> Array:
        """The same by condensing, with further right-hand sides, and expansion."""
        chains = self.chains
        size, n, nodes = chains.size, chains.unknowns, chains.nodes
        found = CondensedProblem(
            chains, self.by_node, self.by_unknown, self.rows_by_node, self.rows_by_unknown
        )
        sides = found.reduce(self.e, self.z)
        place = {int(k): i for i, k in enumerate(chains.retained)}
        width = size * len(place) + n

        def wide(matrix: Array, ends: Sequence[int]) -> Array:
            out = np.zeros((len(matrix), width))
            out[:, width - n :] = matrix[:, matrix.shape[1] - n :]
            for i, node in enumerate(ends):
                at = size * place[int(node)]
                out[:, at : at + size] += matrix[:, i * size : (i + 1) * size]
            return out

        conditions = [wide(m, r) for m, r in zip(found.conditions, chains.kept_pairs, strict=True)]
        rows = [wide(m, r) for m, r in zip(found.rows, chains.kept_pairs, strict=True)]
        rows += [wide(m, [k]) for m, k in zip(found.last_rows, chains.lasts, strict=True)]
        inverse = GeneralisedInverse(
            np.concatenate([np.zeros((0, width)), *conditions]), np.concatenate(rows)
        )
        right = np.concatenate([sides.rows.ravel(), sides.last_rows.ravel()])
        y = inverse.solve(sides.conditions.ravel(), right)
        values = np.zeros((nodes, size))
        values[chains.retained] = y[: width - n].reshape(-1, size)
        found.expand(values, y[width - n :], sides)
        return np.concatenate([values.ravel(), y[width - n :]])


def random_system(
    lengths: Sequence[int],
    size: int,
    n: int,
    counts: Sequence[int],
    kept: Sequence[int] = (),
    seed: int = 0,
    growth: float = 1.0,
) -> System:
    """`counts` are the residuals of each node."""
    random = np.random.default_rng(seed)
    intervals = sum(lengths) - len(lengths)
    row_nodes = np.repeat(np.arange(sum(lengths)), counts)
    random.shuffle(row_nodes)
    r = len(row_nodes)
    return System(
        tuple(lengths),
        tuple(kept),
        row_nodes.astype(np.intp),
        growth * random.normal(size=(intervals, size, size)),
        random.normal(size=(intervals, size, n)),
        random.normal(size=(r, size)),
        random.normal(size=(r, n)),
        random.normal(size=(intervals, size)),
        random.normal(size=r),
    )


SHAPES = [
    ((1,), (), 7),
    ((2,), (), 3),
    ((2,), (), 9),
    ((3,), (), 2),
    ((3,), (1,), 2),
    ((9,), (), 1),
    ((9,), (3, 4, 7), 2),
    ((8,), (1, 2, 3, 4, 5, 6), 2),
    ((1, 1, 1), (), 4),
    ((5, 1, 3), (), 3),
    ((4, 6), (0, 2, 9), 3),
    ((33,), (), 2),
]
"""Lengths of chains, kept nodes, residuals of each node."""


@pytest.mark.parametrize(("lengths", "kept", "count"), SHAPES)
def test_the_step_equals_that_of_the_dense_problem(
    lengths: tuple[int, ...], kept: tuple[int, ...], count: int
) -> None:
    system = random_system(lengths, 2, 3, [count] * sum(lengths), kept, seed=5)
    assert system.condensed() == pytest.approx(system.direct(), rel=1e-8, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_structure_gives_the_dense_solution(data: st.DataObject) -> None:
    """Chains of any lengths, any nodes kept, residuals anywhere, whatever is determined."""
    lengths = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    size, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    total = sum(lengths)
    counts = data.draw(st.lists(st.integers(0, 5), min_size=total, max_size=total))
    kept = data.draw(st.lists(st.integers(0, total - 1), max_size=4))
    system = random_system(lengths, size, n, counts, kept, data.draw(st.integers(0, 10**6)))
    found, wanted = system.condensed(), system.direct()
    equations, rows = system.dense()
    assert equations @ found == pytest.approx(system.e.ravel(), abs=1e-7)
    # Where several solutions are as good, the residuals are the same all the same.
    assert rows @ found == pytest.approx(rows @ wanted, abs=1e-6)


def test_undetermined_unknowns_keep_their_values() -> None:
    """An unknown without effect does not move, a combination of two moves as little as can be."""
    system = random_system((6,), 2, 4, [3] * 6)
    system.by_unknown[:, :, 3] = 0
    system.rows_by_unknown[:, 3] = 0
    system.by_unknown[:, :, 2] = 2 * system.by_unknown[:, :, 1]
    system.rows_by_unknown[:, 2] = 2 * system.rows_by_unknown[:, 1]
    found, wanted = system.condensed(), system.direct()
    assert found[-1] == pytest.approx(0.0, abs=1e-12)
    assert found[-2] == pytest.approx(2 * found[-3])
    rows = system.dense()[1]
    assert rows @ found == pytest.approx(rows @ wanted)


def exact(system: System, digits: int = 120) -> Array:
    """The dense optimality conditions in many digits."""
    equations, rows = system.dense()
    with mpmath.workdps(digits):
        a, r = mpmath.matrix(equations.tolist()), mpmath.matrix(rows.tolist())
        m, w = len(equations), rows.shape[1]
        kkt = mpmath.zeros(w + m)
        kkt[:w, :w] = r.T * r
        kkt[:w, w:] = a.T
        kkt[w:, :w] = a
        right = mpmath.matrix(w + m, 1)
        right[:w] = r.T * mpmath.matrix(system.z.tolist())
        right[w:] = mpmath.matrix(system.e.ravel().tolist())
        solution = mpmath.lu_solve(kkt, right)
        return np.array([float(solution[i]) for i in range(w)])


def saddle(intervals: int, factor: float, seed: int = 1) -> System:
    """Every interval grows along one direction and shrinks along another by `factor`."""
    system = random_system((intervals + 1,), 2, 2, [2] * (intervals + 1), seed=seed)
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    system.by_node[:] = turn @ np.diag([factor, 1 / factor]) @ turn.T
    return system


@pytest.mark.parametrize(
    ("intervals", "factor"),
    [
        (8, 1e5),
        (5, 1e8),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in ((11, 5e3), (13, 1e3))),
    ],
)
def test_growth_by_forty_powers_of_ten_costs_no_digits(intervals: int, factor: float) -> None:
    """The product of the Wronskians has nothing of the decaying direction left."""
    system = saddle(intervals, factor)
    wanted = exact(system)
    assert system.condensed() == pytest.approx(wanted, rel=1e-8, abs=1e-8 * np.abs(wanted).max())


def test_the_backward_recursion_of_the_paper_loses_all_digits_there() -> None:
    """Why condensing is not done by (12): the product alone forgets the decaying direction."""
    system = saddle(11, 5e3)
    product = np.eye(2)
    for matrix in system.by_node:
        product = matrix @ product
    decayed = product @ np.array([-0.6, 0.8])  # truly 1 / 5000^11 of it
    assert np.linalg.norm(decayed) > 1e20


def test_overflowing_growth_is_allowed() -> None:
    """200 intervals, each a factor of a thousand: 1e600."""
    system = saddle(200, 1e3)
    found = system.condensed()
    assert np.isfinite(found).all()
    equations, rows = system.dense()
    assert equations @ found == pytest.approx(system.e.ravel(), abs=1e-9 * 1e3)
    # Nothing lowers the cost along the solutions of the equations.
    best = float(np.sum((rows @ found - system.z) ** 2))
    inverse = GeneralisedInverse(equations, rows)
    other = inverse.solve(system.e.ravel(), system.z)
    assert best <= float(np.sum((rows @ other - system.z) ** 2)) * (1 + 1e-9)


def test_work_grows_in_proportion_to_the_nodes() -> None:
    """K nodes take about log2 K levels, and joins of K pairs altogether."""
    for count in (2, 3, 64, 65, 1000):
        chains = random_system((count,), 1, 1, [1] * count).chains
        assert len(chains.levels) <= int(np.ceil(np.log2(count)))
        assert sum(len(level.middle) for level in chains.levels) == count - 2
        assert chains.kept_pairs == [(0, count - 1)]
