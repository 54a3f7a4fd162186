"""Arrays: keys, indices and sums are written out as the elements that they stand for."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odefit
from odefit.expressions.algebras import NUMPY
from odefit.problem import (
    InputError,
    Model,
    Problem,
    problem_from_mapping,
    problem_to_mapping,
)
from odefit.simulation.simulations import Simulation


def texts(table: Any) -> dict[str, str]:
    return {name: expression.text for name, expression in table.items()}


def test_a_chain_equals_its_written_equations() -> None:
    model = Model(
        ode={"x[1]": "-k*x[1]", "x[2:n]": "k*(x[i-1] - x[i])"},
        constants={"n": 4},
        observables={"end": "x[n]", "total": "sum(x)"},
    )
    assert texts(model.ode) == {
        "x_1": "-k*x_1",
        "x_2": "k*(x_1 - x_2)",
        "x_3": "k*(x_2 - x_3)",
        "x_4": "k*(x_3 - x_4)",
    }
    assert texts(model.observables) == {"end": "x_4", "total": "(x_1 + x_2 + x_3 + x_4)"}


def test_two_indices_span_a_grid() -> None:
    model = Model(ode={"u[0:1, 1:2]": "w*(u[1 - i, j] - u[i, 3 - j])"})
    assert texts(model.ode) == {
        f"u_{i}_{j}": f"w*(u_{1 - i}_{j} - u_{i}_{3 - j})"
        for i, j in itertools.product((0, 1), (1, 2))
    }


SIZE = 5
ATOMS = ("x[{}]", "c[{}]", "x[{}]*c[{}]", "sin(x[{}]) - c[{}]", "3", "k")


@st.composite
def reductions(draw: st.DrawFn) -> tuple[str, Any]:
    """Return an expression of slices with a function of x, c and k that gives its value."""
    first = draw(st.integers(1, SIZE))
    last = draw(st.integers(first, SIZE))
    shift = draw(st.integers(1 - first, SIZE - last))
    made: tuple[str, Any] = draw(
        st.sampled_from(
            [
                ("x[{a}:{b}]*c[{c}:{d}] - k", lambda x, c, k: x * c - k),
                ("x[{a}:{b}] + 2*c[{c}:{d}]", lambda x, c, k: x + 2 * c),
                ("exp(-x[{a}:{b}])/(c[{c}:{d}] + 5)", lambda x, c, k: np.exp(-x) / (c + 5)),
                ("(x[{a}:{b}] - c[{c}:{d}])^2", lambda x, c, k: (x - c) ** 2),
            ]
        )
    )
    ours, numpy_ours = made
    reduction: tuple[str, Any] = draw(
        st.sampled_from(
            [
                ("sum", np.sum),
                ("prod", np.prod),
                ("mean", np.mean),
                ("max", np.max),
                ("min", np.min),
            ]
        )
    )
    name, reduce = reduction
    inside = ours.format(a=first, b=last, c=first + shift, d=last + shift)

    def expected(x: Any, c: Any, k: float) -> float:
        found = numpy_ours(x[first - 1 : last], c[first - 1 + shift : last + shift], k)
        return float(reduce(found))

    return f"{name}({inside})", expected


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("+-*"), reductions()), min_size=1, max_size=3),
    st.lists(st.floats(-2, 2), min_size=2 * SIZE + 1, max_size=2 * SIZE + 1),
)
@settings(max_examples=60, deadline=None)
def test_reductions_have_the_values_of_numpy(
    parts: list[tuple[str, tuple[str, Any]]], numbers: list[float]
) -> None:
    x, c, k = np.array(numbers[:SIZE]), np.array(numbers[SIZE:-1]), numbers[-1]
    text = "k" + "".join(f" {sign} {ours}" for sign, (ours, _) in parts)
    python = "k" + "".join(f" {sign} v[{n}]" for n, (sign, _) in enumerate(parts))
    expected = eval(python, {"k": k, "v": [f(x, c, k) for _, (_, f) in parts]})
    model = Model(ode={f"x[1:{SIZE}]": "0"}, observables={"y": text}, arrays=[f"c[1:{SIZE}]"])
    values = {f"x_{n + 1}": v for n, v in enumerate(x)} | {f"c_{n + 1}": v for n, v in enumerate(c)}
    found = model.observe({**values, "k": np.float64(k)}, NUMPY)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 6), st.integers(-2, 2), st.integers(1, 3), st.integers(-3, 3))
def test_indices_are_whole_numbers_of_i(length: int, shift: int, factor: int, low: int) -> None:
    used = [factor * i + shift for i in range(low, low + length)]
    model = Model(
        ode={f"x[{low}:{low + length - 1}]": f"y[{factor}*i + {shift}]*i"},
        observables={"z": f"x[{low}]"},
        arrays=[f"y[{min(used)}:{max(used)}]"],
    )

    def name(array: str, index: int) -> str:
        return f"{array}_{index}".replace("-", "m")

    expected = {
        name("x", i): f"{name('y', k)}*{i}"
        for i, k in zip(range(low, low + length), used, strict=True)
    }
    assert texts(model.ode) == expected


MAPPING: dict[str, Any] = {
    "format": 1,
    "constants": {"n": 3, "w[1:3]": [1.0, 2.0, 3.0]},
    "ode": {"x[1]": "-k[1]*x[1]", "x[2:n]": "k[i-1]*x[i-1] - k[i]*x[i]"},
    "observables": {"y[1:2]": "x[i + 1]", "all": "sum(w*x)"},
    "parameters": {"k[1:3]": {"lower": 0.1, "upper": 5.0}, "s": {}},
    "initial": {"x[1:3]": [1.0, "s", {"guess": 0.5}]},
    "noise": {"y[1:2]": {"sd": "0.1 + s*y_1"}, "all": {"sd": "sum(w)/10"}},
    "experiment": [
        {
            "data": {"t": [0.0, 1.0], "y_1": [0.0, 0.1], "y_2": [0.0, 0.2], "all": [1.0, 1.2]},
            "constants": {"w[1:2]": 4.0},
            "event": [{"time": "s/10", "assign": {"x[1:3]": "x[i] + i"}}],
        }
    ],
}


def test_every_section_of_a_file_takes_arrays() -> None:
    problem = problem_from_mapping(MAPPING)
    assert problem.keys == ("k_1", "k_2", "k_3", "s", "x_3")
    assert str(problem.initial["x_2"]) == "s"
    assert texts(problem.given.observables)["all"] == "(w_1*x_1 + w_2*x_2 + w_3*x_3)"
    constants = problem.experiments[0].constants
    assert {k: str(v) for k, v in constants.items()} == {"w_1": "4.0", "w_2": "4.0"}
    assert str(problem.experiments[0].events[0].assign["x_3"]) == "x_3 + 3"
    assert str(problem.noise["all"].sd) == "(w_1 + w_2 + w_3)/10"


def test_a_written_problem_is_plain_and_means_the_same() -> None:
    problem = problem_from_mapping(MAPPING)
    mapping = problem_to_mapping(problem)
    texts = (*mapping["ode"], *mapping["ode"].values(), *mapping["parameters"])
    assert not any("[" in text for text in texts)
    again = problem_from_mapping(mapping)
    assert again.given == problem.given
    assert again.keys == problem.keys


def test_a_chain_of_thirty_is_fitted_like_any_other() -> None:
    model = Model(
        ode={"x[1]": "-k*x[1]", "x[2:30]": "k*(x[i-1] - x[i])"}, observables={"y": "sum(x)"}
    )
    problem = Problem(
        model,
        data={"t": [0.0, 1.0, 8.0], "y": [1.0, 1.0, 1.0]},
        parameters={"k": {"guess": 4.0}},
        initial={"x[1]": 1.0, "x[2:30]": 0.0},
    )
    simulated = odefit.simulate(problem, problem.vector({"k": 4.0}))
    assert isinstance(simulated, Simulation)
    # A Poisson process with rate 4: the chance of fewer than 30 arrivals by t = 8.
    terms = np.cumprod([1.0, *[32.0 / n for n in range(1, 30)]])
    assert simulated.observables["y"][2] == pytest.approx(np.exp(-32.0) * terms.sum(), rel=1e-7)


@pytest.mark.parametrize(
    ("ode", "message"),
    [
        (
            {"x[1:3]": "x[i-1]"},
            (
                "[ode] x[1:3]: there is no x[0], to which 'x[i-1]' refers: the indices of "
                "'x' are 1 to "
                "3; write the equations of the ends apart"
            ),
        ),
        (
            {"x[1:3]": "-x"},
            (
                "[ode] x[1:3]: 'x' is an array of 3 elements where one value is expected; "
                "write x[i], "
                "or sum(x)"
            ),
        ),
        (
            {"x[1:3]": "x[1:2]"},
            (
                "[ode] x[1:3]: 'x[1:2]' stands for 2 values where one is expected; write "
                "x[i] in an "
                "equation of an array, or sum(x[1:2])"
            ),
        ),
        (
            {"x[1:3]": "-x[i]", "x[2]": "1"},
            "[ode] x[2]: 'x_2' is given twice, by 'x[1:3]' and by 'x[2]'",
        ),
        (
            {"x[1:m]": "-x[i]"},
            (
                "[ode] x[1:m]: the index 'm' in 'x[1:m]' is not known; indices have numbers, "
                "i, j, and "
                "numbers of [constants]"
            ),
        ),
        (
            {"x[3:1]": "-x[i]"},
            "[ode] x[3:1]: 'x[3:1]' has no elements, as 1 is less than 3; write first:last",
        ),
        (
            {"x[1:2.5]": "0"},
            "[ode] x[1:2.5]: the index '2.5' in 'x[1:2.5]' is 2.5, which is not a whole number",
        ),
        (
            {"x[10^9 + 1]": "0"},
            (
                "[ode] x[10^9 + 1]: the index '10^9 + 1' in 'x[10^9 + 1]' is 1000000001; indices "
                "are from -1000000000 to 1000000000"
            ),
        ),
        (
            {"x[1:3]": "x[j]"},
            (
                "[ode] x[1:3]: 'j' in 'x[j]' is the index of an array's equation, whose key has a "
                'range, as in "x[1:8]"; here it has no value'
            ),
        ),
        (
            {"x[1:3]": "sum(x[1:2]*x[1:3])"},
            (
                "[ode] x[1:3]: arrays of different lengths (2, 3) in 'x[1:2]*x[1:3]'; they are "
                "combined element by element"
            ),
        ),
        ({"x": "sum(y)"}, "[ode] x: sum(y) has no array; write, for example, sum(x[1:8])"),
        ({"x[1:3]": "x[i"}, "[ode] x[1:3]: '[' at position 2 of 'x[i' is never closed"),
        (
            {"x[1:2]": "x[x[1]]"},
            "[ode] x[1:2]: an index within an index in 'x[x[1]]' cannot be used",
        ),
        (
            {"x[1:20000]": "1"},
            "[ode] x[1:20000]: 'x[1:20000]' has more than 10000 elements",
        ),
        ({"x[1,2,3]": "1"}, "[ode] x[1,2,3]: 'x[1,2,3]' has more than 2 indices"),
    ],
)
def test_a_mistake_in_an_array_is_named_with_its_remedy(ode: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Model(ode=ode)
    assert caught.value.messages == (message,)


def test_the_largest_index_is_one_thousand_million() -> None:
    assert Model(ode={"x[10^9]": "-k*x[10^9]"}).ode["x_1000000000"].text == "-k*x_1000000000"


def test_an_index_beyond_an_array_of_parameters_is_named() -> None:
    mapping = {**MAPPING, "ode": {"x[1:3]": "-k[i + 1]*x[i]"}}
    with pytest.raises(InputError) as caught:
        problem_from_mapping(mapping)
    assert (
        "[ode] x[1:3]: there is no k[4], to which 'k[i + 1]' refers: the indices of 'k' are 1 to 3"
        in caught.value.messages[0]
    )


def test_values_for_an_array_are_as_many_as_its_elements() -> None:
    mapping = {**MAPPING, "initial": {"x[1:3]": [1.0, 2.0]}}
    with pytest.raises(InputError) as caught:
        problem_from_mapping(mapping)
    assert caught.value.messages == (
        "[initial] x[1:3]: 2 values for 3 elements; give as many, or one for all",
    )


@pytest.mark.parametrize("value", [[1, [0, 1]], [[0, 1], 1], ["a", 2], [1, 2, 3]])
def test_bounds_of_an_array_are_one_pair_of_numbers_or_a_list_of_pairs(value: list[object]) -> None:
    mapping = {**MAPPING, "parameters": {**MAPPING["parameters"], "k[1:3]": value}}
    with pytest.raises(InputError, match=r"^\[parameters\] k\[1:3\]: expected a table, got a list"):
        problem_from_mapping(mapping)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        ([0, 1], [(0.0, 1.0)] * 3),
        ([[0, 1], [0, 2], [1, 3]], [(0.0, 1.0), (0.0, 2.0), (1.0, 3.0)]),
    ],
)
def test_a_pair_of_numbers_bounds_all_elements_of_an_array(
    value: list[object], bounds: list[tuple[float, float]]
) -> None:
    mapping = {**MAPPING, "parameters": {**MAPPING["parameters"], "k[1:3]": value}}
    found = problem_from_mapping(mapping).parameters
    assert [(found[f"k_{i}"].lower, found[f"k_{i}"].upper) for i in (1, 2, 3)] == bounds


def test_a_pair_bounds_an_array_of_two_in_a_file_and_of_others_in_python() -> None:
    two = {
        "format": 1,
        "ode": {"x": "-(k[1] + k[2])*x"},
        "parameters": {"k[1:2]": [0.0, 5.0]},
        "initial": {"x": 1.0},
        "experiment": [{"data": {"t": [0, 1, 2], "x": [1.0, 0.5, 0.2]}}],
    }
    assert [p.upper for p in problem_from_mapping(two).parameters.values()] == [5.0, 5.0]
    problem = Problem(
        Model(ode={"x": "-(k[1] + k[2] + k[3])*x"}),
        {"t": [0, 1, 2], "x": [1.0, 0.5, 0.2]},
        {"k[1:3]": (0.0, 5.0)},
        {"x": 1.0},
    )
    assert [p.upper for p in problem.parameters.values()] == [5.0] * 3


KEYS = st.text("xyk[]:,123ij-+n ", max_size=12) | st.sampled_from(["x[1:3]", "x", "y[1:2,1:2]"])
TEXTS = st.text("xyk[]:,()123ij-+*n sumeanmaxf.\x00", max_size=24)


@pytest.mark.slow
@given(st.dictionaries(KEYS, TEXTS, max_size=4), st.dictionaries(KEYS, TEXTS, max_size=2))
@settings(max_examples=300, deadline=None)
def test_any_keys_and_texts_give_a_model_or_an_input_error(
    ode: dict[str, str], definitions: dict[str, str]
) -> None:
    try:
        model = Model(ode=ode, definitions=definitions, constants={"n": 3})
    except InputError:
        return
    assert not any("[" in name for name in (*model.ode, *model.parameters))


@pytest.mark.parametrize(
    ("line", "key"),
    [('x[1:3] = "-x[i]"', "x[1:3]"), ('mm(s, k) = "s/(k + s)"', "mm(s, k)")],
)
def test_a_key_without_its_quotes_gets_the_remedy(tmp_path: Path, line: str, key: str) -> None:
    (tmp_path / "bad.toml").write_text(f"format = 1\n[ode]\n{line}\n")
    with pytest.raises(InputError, match="at line 3, column") as caught:
        odefit.load(tmp_path / "bad.toml")
    assert str(caught.value).endswith(f'; a key with brackets needs quotes: "{key}" = ...')
