"""Expressions at many points: the same over NumPy and CasADi, and dependent on what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.blocks import Block
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Trapezoid
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, Symbol
from odefit.simulation.residuals.prior_residuals import PriorResiduals
from tests.methods.transcription.exact import exact_values
from tests.simulation.zoo import NOISE, ZOO, Case

CASES: dict[str, Callable[[], Case]] = ZOO | {f"noise: {k}": v for k, v in NOISE.items()}


def discretised(name: str) -> tuple[Discretisation, Array, Array]:
    problem, vector = CASES[name]()
    d = Discretisation(problem, Trapezoid(), UniformMesh(7))
    return d, exact_values(d, ForwardMap(problem), vector), vector


def symbolic(block: Block, d: Discretisation, values: Array, vector: Array) -> list[Array]:
    """The block's outputs by CasADi, which is told of no unknown but the block's own."""
    v = [ca.SX.sym(n) for n in block.variables]
    q = {int(k): ca.SX.sym(f"q{k}") for k in block.unknowns}
    data = [ca.SX.sym(n) for n in block.columns]
    unknowns = [Symbol(q[k]) if k in q else None for k in range(len(vector))]
    at, known = (
        dict(zip(block.variables, map(Symbol, v), strict=True)),
        dict(zip(block.columns, map(Symbol, data), strict=True)),
    )
    outputs: list[Any] = [o.sx for o in block.evaluate(at, unknowns, known, CasadiAlgebra())]
    assert len(outputs) == block.outputs
    function = ca.Function("f", [ca.vcat(v), ca.vcat(list(q.values())), ca.vcat(data)], outputs)
    found = []
    for i in range(block.instances):
        there = [] if block.points is None else values[block.points[i]]
        found.append(
            function.call([ca.DM(there), ca.DM(vector[block.unknowns]), ca.DM(block.data[i])])
        )
    return [np.array([float(row[k]) for row in found]) for k in range(block.outputs)]


@pytest.mark.parametrize("name", CASES)
def test_blocks_have_the_same_values_over_any_algebra_and_name_all_their_unknowns(
    name: str,
) -> None:
    d, values, vector = discretised(name)
    for block in (*d.blocks, *d.residuals):
        found = d.outputs(block, values, vector)
        assert [f.shape for f in found] == [(block.instances,)] * block.outputs
        expected = symbolic(block, d, values, vector)
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12, abs=1e-12)
        assert (np.diff(block.unknowns) > 0).all()


@pytest.mark.parametrize("name", CASES)
def test_residual_blocks_list_only_unknowns_with_an_effect(name: str) -> None:
    d, values, vector = discretised(name)
    for block in d.residuals:
        before = np.array(d.outputs(block, values, vector))
        for k in block.unknowns:
            moved = vector.copy()
            moved[k] = 1.1 * moved[k] + 0.1
            after = np.array(d.outputs(block, values, moved))
            assert (before != after).any(), d.problem.keys[k]


def test_priors_are_blocks_without_points() -> None:
    problem, vector = NOISE["a prior"]()
    (block,) = Block.priors(problem)
    assert block.points is None
    assert block.instances == 1
    d = Discretisation(problem, Trapezoid(), UniformMesh(3))
    k = vector[block.unknowns[0]]
    assert d.outputs(block, np.zeros((d.points, 1)), vector)[0] == pytest.approx([(k - 0.5) / 0.1])


@pytest.mark.parametrize("on", ["linear", "log", "log10"])
@pytest.mark.parametrize("distribution", ["normal", "log-normal"])
def test_residuals_of_priors_are_those_of_the_forward_map(distribution: str, on: str) -> None:
    problem, vector = NOISE["a prior"]()
    key = next(iter(problem.priors))
    given = {"distribution": distribution, "mean": 0.3, "sd": 0.2, "on": on}
    problem = problem.with_parameters(**{key: {"lower": 0.0, "prior": given}})
    vector[problem.keys.index(key)] = 1.7
    (block,) = Block.priors(problem)
    d = Discretisation(problem, Trapezoid(), UniformMesh(3))
    found = d.outputs(block, np.zeros((d.points, 1)), vector)[0]
    expected = PriorResiduals(problem).at(vector)
    assert not isinstance(expected, str)
    assert found == pytest.approx(expected.residuals)


def test_a_jump_sees_the_values_the_time_and_the_input_at_its_point() -> None:
    problem = Problem(
        Model(ode={"x": "0*k*u"}, inputs={"u": "linear"}),
        parameters={"k": {}},
        initial={"x": 2.0},
        experiments=[
            Experiment(
                "run",
                {"t": [0.0, 4.0], "x": [1.0, 1.0], "u": [10.0, 50.0]},
                events=[Event((3.0,), {"x": "x + 100*t + k*u"})],
            )
        ],
    )
    d = Discretisation(problem, Trapezoid(), UniformMesh(4))
    (jump,) = [b for b in d.blocks if b.columns == ("t", "u") and b.instances == 1]
    assert jump.points is not None
    assert d.times[jump.points].tolist() == [3.0]
    found = d.outputs(jump, np.full((d.points, 1), 2.0), np.array([0.5]))
    assert found[0] == pytest.approx([2 + 300 + 0.5 * 40])


@pytest.mark.parametrize(
    ("name", "outputs"),
    [("a number", 1), ("a column", 1), ("relative", 1), ("estimated", 2), ("log, unweighted", 1)],
)
def test_the_logarithm_of_a_standard_deviation_is_an_output_where_it_is_unknown(
    name: str, outputs: int
) -> None:
    d, values, vector = discretised(f"noise: {name}")
    block = d.residuals[0]
    assert block.outputs == outputs
    if outputs == 2:
        sd = vector[d.problem.keys.index("y_sd")]
        log_sd = d.outputs(block, values, vector)[1]
        assert log_sd == pytest.approx(np.full(block.instances, np.log(sd)))
