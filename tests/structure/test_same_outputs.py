"""Other values with the same outputs: counted, found, and left out where nothing is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem, library
from odefit.common.arrays import Array
from odefit.simulation import Evaluation
from odefit.structure import same_outputs as same_outputs_module
from odefit.structure.exact.count import exact_count
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.same_outputs import SameOutputs, same_outputs

AMPLE = 3e9
"""Operations that always suffice."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODEFIT_CACHE", str(tmp_path))


def problem(
    model: Model, parameters: str, initial: dict[str, Any], times: Array, **more: Any
) -> Problem:
    names = list(model.observables or model.states)
    data = {"t": times, **{name: np.ones(len(times)) for name in names}}
    return Problem(model, data, {k: {} for k in parameters.split()}, initial, **more)


TWO = Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x + z"})
TIMES = np.linspace(0.0, 4.0, 9)


def found(of: Problem, vector: list[float], work: float = AMPLE) -> SameOutputs:
    result = same_outputs(of, np.array(vector), work)
    assert result is not None
    return result


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e4])
def test_rates_that_can_be_exchanged(unit: float) -> None:
    """exp(-a t) + exp(-b t), in several units of time."""
    both = problem(TWO, "a b", {"x": 1.0, "z": 1.0}, TIMES / unit)
    result = found(both, [0.3 * unit, 0.8 * unit])
    assert (result.possible, result.found) == (2, 2)
    assert result.real == pytest.approx(np.array([[0.8 * unit, 0.3 * unit]]), rel=1e-9)


def test_absorption_and_elimination_can_be_exchanged() -> None:
    """Flip-flop: the rates change places, and the volume makes up for it by their ratio."""
    model = Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}
    )
    of = problem(model, "ka ke V", {"gut": 4.0, "blood": 0.0}, TIMES)
    result = found(of, [1.5, 0.1, 0.5])
    assert result.possible == 2
    assert result.real == pytest.approx(np.array([[0.1, 1.5, 0.5 * 0.1 / 1.5]]), rel=1e-9)


def test_complex_solutions_are_counted_and_not_returned() -> None:
    """y = exp(-k^3 t) has one real k and two complex ones."""
    cube = problem(Model(ode={"x": "-k^3*x"}), "k", {"x": 1.0}, TIMES)
    result = found(cube, [0.7])
    assert (result.possible, result.found, len(result.real)) == (3, 3, 0)


@pytest.mark.slow
def test_the_second_solution_of_the_library_has_the_same_outputs() -> None:
    of = library.load("rational-seir")
    reference = library.reference("rational-seir")
    vector = of.vector({**reference.parameters, **reference.initial})
    (other,) = found(of, vector.tolist()).real
    evaluation = ForwardMap(of).evaluate(other)
    assert isinstance(evaluation, Evaluation)
    assert evaluation.objective < 1e-24
    assert np.abs(other / vector - 1).max() > 0.01


def test_a_determined_problem_has_one_solution_without_further_search() -> None:
    one = problem(Model(ode={"x": "-k*x"}), "k", {"x": 1.0}, TIMES)
    assert (found(one, [0.7]).possible, len(found(one, [0.7]).real)) == (1, 0)


def test_the_solutions_of_the_equations_are_kept_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = problem(TWO, "a b", {"x": 1.0, "z": 1.0}, TIMES)
    found(both, [0.3, 0.8])
    assert len(list(tmp_path.glob("*.json"))) == 1

    def search(*_: Any) -> None:
        raise AssertionError("nothing to search for")

    monkeypatch.setattr("odefit.structure.solutions.storage.find_indistinguishable", search)
    assert found(both, [0.2, 0.5]).real == pytest.approx(np.array([[0.5, 0.2]]))


@pytest.mark.parametrize(
    ("model", "parameters", "initial"),
    [
        (Model(ode={"x": "-p*q*x"}), "p q", {"x": 1.0}),  # infinitely many
        (Model(ode={"x": "-p*abs(x)"}), "p", {"x": 1.0}),  # no Taylor series
        (Model(ode={"x": "-exp(p^2)*x"}), "p", {"x": 1.0}),  # two, in p alone or in exp as well
    ],
)
def test_without_findings_there_is_no_remark(
    model: Model, parameters: str, initial: dict[str, Any]
) -> None:
    of = problem(model, parameters, initial, TIMES)
    assert same_outputs(of, np.full(len(of.keys), 0.5), AMPLE) is None


def test_an_input_may_vary_too_little_to_determine_unknowns() -> None:
    """x' = -(k + m u) x tells k from m unless u is constant."""
    model = Model(ode={"x": "-(k + m*u)*x"}, inputs={"u": "linear"})
    data = {"t": TIMES, "x": np.ones(9), "u": np.ones(9)}
    driven = Problem(model, data, {"k": {}, "m": {}}, {"x": 1.0})
    assert same_outputs(driven, np.array([0.3, 0.2]), AMPLE) is None


def test_unknowns_that_act_later_are_not_examined() -> None:
    model = Model(ode={"x": "-k*x"})
    data = {"t": TIMES, "x": np.ones(9)}
    dose = Experiment("dose", data, events=[Event((2.0,), {"x": "x + d^2"})])
    late = Problem(model, None, {"k": {}, "d": {}}, {"x": 1.0}, experiments=[dose])
    assert same_outputs(late, np.array([0.5, 1.0]), AMPLE) is None


def test_without_work_the_structure_stays_unknown() -> None:
    both = problem(TWO, "a b", {"x": 1.0, "z": 1.0}, TIMES)
    assert same_outputs(both, np.array([0.3, 0.8]), 0.0) is None
    stopped = same_outputs(both, np.array([0.3, 0.8]), AMPLE, stop=lambda: True)
    assert stopped is None


@pytest.mark.parametrize("rate", ["a*sqrt(x)", "a*x^b", "b*x^(1/3) + a", "a*log(x)*b", "a*x^0.7*b"])
def test_a_root_of_a_state_from_zero_leaves_the_structure_unknown(rate: str) -> None:
    model = Model(ode={"x": "k - 0.1*x", "r": f"{rate} - 0.3*r"}, observables={"y": "r"})
    names = " ".join(n for n in ("k", "a", "b") if n == "k" or f"{n}" in rate)
    of = problem(model, names, {"x": 0.0, "r": 0.0}, TIMES)
    assert same_outputs(of, np.ones(len(of.unknowns)), AMPLE) is None


@pytest.mark.parametrize(("power", "others"), [(3, 0), (2, 1)])
def test_a_sign_that_shows_late_is_not_another_solution(power: int, others: int) -> None:
    ode = {"x": "-a^2*x + z", "z": f"w^{power}", "w": "v^3", "v": "a"}
    start = {"x": 1.0, "z": 0.0, "w": 0.0, "v": 0.0}
    of = problem(Model(ode=ode, observables={"y": "x"}), "a", start, TIMES)
    same = found(of, [0.7])
    assert (same.possible, same.found) == (1 + others, 1 + others)
    np.testing.assert_allclose(same.real, np.full((others, 1), -0.7), rtol=1e-9)


def test_experiments_with_separate_unknowns_are_counted_separately() -> None:
    """Each may exchange its two rates, whatever the others do: 2 x 2 x 2."""
    data = {"t": TIMES, "y": np.ones(len(TIMES))}
    runs = [Experiment(name, data) for name in ("A", "B", "C")]
    rates: dict[str, Any] = {"a": {"per_experiment": True}, "b": {"per_experiment": True}}
    of = Problem(TWO, None, rates, {"x": 1.0, "z": 1.0}, experiments=runs)
    vector = np.array([0.3, 0.4, 0.5, 0.8, 0.9, 1.1])
    result = found(of, vector.tolist())
    assert (result.possible, result.found) == (8, 8)
    assert [(g.names, g.possible, g.real) for g in result.groups] == [
        (("A",), 2, 1), (("B",), 2, 1), (("C",), 2, 1)
    ]  # fmt: skip
    for k, other in enumerate(result.real):
        expected = vector.copy()
        expected[[k, k + 3]] = vector[[k + 3, k]]
        np.testing.assert_allclose(other, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_path_near_a_singular_point_is_given_up_for_another_way() -> None:
    # On the first two ways to this answer the steps become ever smaller, and take all the work.
    oral = Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - CL/V*blood"}, observables={"c": "blood/V"}
    )
    one = problem(oral, "ka CL V", {"gut": 300.0, "blood": 0.0}, TIMES)
    result = same_outputs(one, np.array([1.2, 2.8, 32.0]), 2.5e7, 5e7, seed=1)
    assert result is not None
    assert (result.possible, result.found) == (2, 2)
    other = [2.8 / 32.0, 2.8, 2.8 / 1.2]  # flip-flop
    assert result.real == pytest.approx(np.array([other]), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("doses", [(300.0, 300.0, 300.0), (300.0, 200.0, 100.0)])
def test_each_subject_has_the_other_rate_of_absorption(doses: tuple[float, ...]) -> None:
    # Absorption and elimination exchange their rates (flip-flop), if the volume follows.
    own: dict[str, Any] = {name: {"per_experiment": True} for name in ("ka", "ke", "V")}
    subjects = [
        Experiment(name, {"t": TIMES, "c": np.ones(9)}, initial={"gut": dose})
        for name, dose in zip("ABC", doses, strict=True)
    ]
    oral = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"})
    none = {"gut": 0.0, "blood": 0.0}
    several = Problem(oral, experiments=subjects, parameters=own, initial=none)
    place = {key: i for i, key in enumerate(several.keys)}
    vector = np.zeros(9)
    for name, (ka, ke, volume) in {
        "A": (1.0, 0.1, 30),
        "B": (2, 0.2, 40),
        "C": (3, 0.1, 9),
    }.items():
        for key, value in (("ka", ka), ("ke", ke), ("V", volume)):
            vector[place[f"{key}[{name}]"]] = value
    result = found(several, vector.tolist())
    assert [(g.names, g.possible, g.found, g.real) for g in result.groups] == [
        (("A",), 2, 2, 1),
        (("B",), 2, 2, 1),
        (("C",), 2, 2, 1),
    ]
    for row, name in zip(result.real, "ABC", strict=True):
        other = vector.copy()
        ka, ke, volume = (place[f"{key}[{name}]"] for key in ("ka", "ke", "V"))
        other[[ka, ke]] = other[[ke, ka]]
        other[volume] *= vector[ke] / vector[ka]
        assert row == pytest.approx(other, rel=1e-6)


def oral_subjects(count: int) -> Problem:
    """Return subjects with a common volume and rates of their own, after unlike doses."""
    own: dict[str, Any] = {"ka": {"per_experiment": True}, "ke": {"per_experiment": True}, "V": {}}
    subjects = [
        Experiment(f"{k}", {"t": TIMES, "c": np.ones(len(TIMES))}, initial={"gut": 100.0 + k})
        for k in range(count)
    ]
    oral = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"})
    none = {"gut": 0.0, "blood": 0.0}
    return Problem(oral, experiments=subjects, parameters=own, initial=none)


def test_two_subjects_tell_the_common_volume_and_then_each_its_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No count for all twelve together is needed; one subject alone has two solutions."""
    sizes = []
    count = exact_count

    def counted(square: SquareSystem, **options: Any) -> Any:
        sizes.append(square.size)
        return count(square, **options)

    monkeypatch.setattr(same_outputs_module, "exact_count", counted)
    several = oral_subjects(12)
    values = np.random.default_rng(0).uniform(0.5, 2.0, len(several.keys))
    result = found(several, values.tolist())
    assert (result.possible, result.found, len(result.real)) == (1, 1, 0)
    assert sizes == [5, 2]


NOISES = [
    {"sd": "estimate"},
    {"sd": "estimate", "transform": "log"},
    {"sd": "estimate", "lower_limit": 0.2},
    {"sd": "estimate", "correlation": "ou"},
    {"distribution": "laplace", "sd": "estimate"},
    {"sd": "s"},
    {"sd": "s + 0.1*c"},
]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_an_estimated_noise_does_not_keep_solutions_of_subjects_from_being_counted(
    noise: dict[str, Any],
) -> None:
    """Of a part for which the unknown of the noise has no effect, it keeps a positive value."""
    times = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 12.0])
    subjects = [
        Experiment(f"s{k}", {"t": times, "c": 5 * np.exp(-0.1 * (k + 2) * times)}, t0=0.0)
        for k in range(3)
    ]
    own = {"lower": 0.01, "upper": 10.0, "per_experiment": True}
    unknown: dict[str, Any] = {"ka": (0.01, 10.0), "k": own}
    if "s" in str(noise["sd"]).split():
        unknown["s"] = {"lower": 0.0}
    given = Problem(
        Model(ode={"g": "-ka*g", "x": "ka*g - k*x"}, observables={"c": "x"}),
        parameters=unknown,
        initial={"g": 10.0, "x": 0.0},
        noise={"c": noise},
        experiments=subjects,
    )
    values = {"ka": 1.0, "k[s0]": 0.2, "k[s1]": 0.3, "k[s2]": 0.4}
    assert found(given, [values.get(key, 0.5) for key in given.keys]).possible == 1


def test_shared_unknowns_with_two_solutions_are_counted_for_all_experiments() -> None:
    """The common rates may be exchanged, although each experiment has a size of its own."""
    data = {"t": TIMES, "y": np.ones(len(TIMES))}
    runs = [Experiment(name, data) for name in ("A", "B", "C")]
    model = Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "s*(x + z)"})
    unknowns: dict[str, Any] = {"a": {}, "b": {}, "s": {"per_experiment": True}}
    of = Problem(model, None, unknowns, {"x": 1.0, "z": 1.0}, experiments=runs)
    place = {key: i for i, key in enumerate(of.keys)}
    vector = np.array([1.1, 1.2, 1.3, 1.4, 1.5])
    vector[[place["a"], place["b"]]] = 0.3, 0.9
    result = found(of, vector.tolist())
    assert (result.possible, result.found) == (2, 2)
    expected = vector.copy()
    expected[[place["a"], place["b"]]] = 0.9, 0.3
    np.testing.assert_allclose(result.real, [expected], rtol=1e-8)
