"""All notations together: what they mean in a file, and that mistakes are input errors."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given

from odefit.problem import InputError, load, problem_from_mapping
from tests.problem.test_mutations import COUNT, checks, mutated, mutated_tree, readable, usable

SOME, MANY = checks(min(30, COUNT // 2)), checks(COUNT // 2)

TEXT = """\
format = 1
name = "notation"
time_unit = "h"

[constants]
n = 3
km = 0.5
"w[1:3]" = [1.0, 2.0, 3.0]

[functions]
"mm(s, vmax, km)" = "vmax*s/(km + s)"
"sq(a)" = "a^2"

[definitions]
total = "sum(x) + A"
"half[1:3]" = "x[i]/2"

[ode]
A = "-mm(A, v, km)*pulse(t, 0.1, 5)"
"x[1]" = "-k[1]*x[1] + half[2]"

[reactions]
"step[1:2]" = "x[i] -> x[i+1], k[i]"
back = "2 x[3] <-> B, kf, kr"
saturated = "A -> B, michaelis_menten(v, km)"
whole = { equation = "B ->", rate = "mm(B, v, km)" }

[compartments]
inner = { size = "vol", species = ["B"] }
outer = { size = 2.0, species = ["A", "x[1:3]"] }

[observables]
"y[1:2]" = "x[i]"
amount = "inner*B + mean(w*x) + if(total > 1, sq(total), 0)"

[parameters]
"k[1:2]" = { lower = 0.0, upper = 2.0, unit = "1/h" }
v = {}
kf = {}
kr = {}
vol = { fixed = 1.5, unit = "l" }

[initial]
A = "sq(km)"
B = 0.0
"x[1:3]" = [1.0, "mm(1, v, km)", { lower = 0.0 }]

[noise]
"y[1:2]" = { sd = "0.1 + sq(km)*y_1" }
amount = { sd = "estimate" }

[units]
A = "mmol/l"
"x[1:n]" = "mmol/l"

[[experiment]]
name = "a"
data = { t = [0, 1, 2], y_1 = [1.0, 0.5, 0.2], y_2 = [0.0, 0.1, 0.2], amount = [1.0, 2.0, 3.0] }
constants = { "w[1:2]" = 0.5 }

[[experiment.event]]
times = [1.0, "sq(km) + 1"]
assign = { "x[1:3]" = "x[i] + sq(w[i])" }
"""


def test_all_notations_together_are_plain_equations() -> None:
    problem = problem_from_mapping(tomllib.loads(TEXT))
    texts = {name: e.text for name, e in problem.given.ode.items()}
    # Rates count per volume of the reactants; B is in another compartment than A and x.
    assert texts == {
        "A": "-(v*A/(km + A))*piecewise(1, (t >= 0.1) && (t < 0.1 + 5), 0) - v*A/(km + A)",
        "x_1": "-k_1*x_1 + x_2/2 - k_1*x_1",
        "x_2": "k_1*x_1 - k_2*x_2",
        "x_3": "k_2*x_2 - 2*kf*x_3^2 + 2*kr*B*(vol/2.0)",
        "B": "kf*x_3^2*(2.0/vol) - kr*B + v*A/(km + A)*(2.0/vol) - v*B/(km + B)",
    }
    assert problem.keys == ("k_1", "k_2", "v", "kf", "kr", "x_3", "amount_sd")
    usable(problem)


@SOME
@given(mutated(TEXT))
def test_a_mutated_file_with_notations_is_a_problem_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    _loaded_or_refused(tmp_path_factory.getbasetemp(), text)


@pytest.mark.slow
@MANY
@given(mutated(TEXT))
def test_many_mutated_files_with_notations_load_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    _loaded_or_refused(tmp_path_factory.getbasetemp(), text)


def _loaded_or_refused(place: Path, text: str) -> None:
    (place / "notation.toml").write_text(text, encoding="utf-8", errors="replace", newline="")
    _accepted_or_refused(place / "notation.toml")


@pytest.mark.slow
@SOME
@given(mutated_tree(tomllib.loads(TEXT)))
def test_a_mutated_structure_with_notations_is_a_problem_or_an_input_error(tree: Any) -> None:
    _accepted_or_refused(tree)


@pytest.mark.slow
@MANY
@given(mutated_tree(tomllib.loads(TEXT)))
def test_many_mutated_structures_with_notations_load_or_are_refused(tree: Any) -> None:
    _accepted_or_refused(tree)


def _accepted_or_refused(given_as: Path | Any) -> None:
    try:
        whole = load(given_as) if isinstance(given_as, Path) else problem_from_mapping(given_as)
    except InputError as error:
        event("input error")
        readable(error)
    else:
        event("problem")
        usable(whole)
