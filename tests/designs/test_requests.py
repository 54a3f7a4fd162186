"""Requests: what may be asked for, and what is refused in a sentence."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import odefit
from odefit import InputError
from tests.designs.problems import RATES, SCALED, box_lucas, scaled


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observables": ["z"]}, "there is no observable or state of this name"),
        ({"observables": ["y = 2*b"]}, "there is an observable 'y' already"),
        ({"observables": ["a"]}, "it is not given, while"),
        ({"times": (5, 1)}, "before it begins"),
        ({"times": (-1, 5)}, "before t0 = 0"),
        ({"times": "soon"}, "expected a window"),
        ({"times": {"x": (0, 1)}}, "not among the observables"),
        ({"count": 0}, "at least 1"),
        ({"count": 2, "budget": 3.0}, "not both"),
        ({"budget": 0.5}, "does not pay for a single measurement"),
        ({"costs": {"y": 2.0}}, "they need a budget"),
        ({"criterion": "G"}, "not known"),
        ({"criterion": "c"}, "name them with --of"),
        ({"of": ["k9"]}, "unknown name 'k9'"),
        ({"vary": {"q": (0, 1)}}, "no state, constant or input 'q'"),
        ({"vary": {"a": (1, 0)}}, "not below the upper"),
        ({"vary": {"a": 3}}, "expected a pair of limits"),
        ({"over": "profile"}, "fit the problem first"),
        ({"over": [[1.0]]}, "vectors of 2 finite unknowns"),
        ({"experiments": ["none"]}, "unknown name"),
        ({"noise": {"y": -1.0}}, "positive standard deviation"),
        (
            {"noise": {"y": {"sd": 0.1, "correlation": "ou", "correlation_time": 1.0}}},
            "independent",
        ),
        ({"values": {"k1": 0.7}}, "no value for k2"),
        ({"replicates": 0}, "at least 1"),
    ],
)
def test_wrong_use_is_refused_in_a_sentence(arguments: dict[str, Any], message: str) -> None:
    given = {"values": RATES, "times": (0, 20)} | arguments
    with pytest.raises(InputError, match=message) as error:
        odefit.design(box_lucas(), **given)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.slow
def test_undetermined_unknowns_are_named_with_their_remedies() -> None:
    found = odefit.design(scaled(), SCALED, times=(0, 20))
    assert not found.found
    assert set(found.lost) == {"s", "A"}
    assert {r.name for r in found.remedies} == {"a", "b"}
    assert found.sentence == (
        "s and A are not determined, however often these observables are measured: they tell s*A "
        "alone. If a (or b) is measured as well, all of them can be determined."
    )
    remedied = odefit.design(
        scaled(), SCALED, times=(0, 20), observables=["y", "a"], noise={"a": 0.1}
    )
    assert remedied.found


@pytest.mark.slow
def test_chosen_quantities_that_are_determined_need_no_remedy() -> None:
    found = odefit.design(scaled(), SCALED, times=(0, 20), of=["k1", "dose = s*A"], count=4)
    assert found.found
    assert [i.key for i in found.intervals] == ["k1", "dose"]


def test_measurements_that_exist_count() -> None:
    problem = box_lucas().with_data({"data": {"t": [0.0, 1.2295], "y": [0.0, 0.49]}})
    found = odefit.design(problem, RATES, times=(0, 20), count=1, existing=True)
    assert found.existing == 2
    assert found.times == pytest.approx([6.858], abs=2e-3)


@pytest.mark.slow
def test_designs_keep_their_limits() -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), count=6, replicates=1, spacing=0.5)
    times = found.times
    assert isinstance(times, list)
    assert len(set(times)) == 6
    assert min(b - a for a, b in pairwise(times)) >= 0.5 - 1e-9
    listed = odefit.design(box_lucas(), RATES, times=[1, 3, 7, 9], count=2)
    assert listed.times == [1.0, 7.0]


@pytest.mark.slow
def test_a_design_keeps_to_its_budget_and_pays_for_runs() -> None:
    found = odefit.design(
        box_lucas(), RATES, times=(0, 20), budget=10.0, costs={"y": 2.0, "run": 3.0},
        vary={"a": (0.5, 2.0)},
    )  # fmt: skip
    assert found.cost <= 10.0
    assert sum(m.count for m in found.measurements) == 3
    assert [run.settings for run in found.runs] == [{"a": 2.0}]


@pytest.mark.slow
def test_a_design_over_a_region_is_better_there_on_average() -> None:
    vectors = [[0.4, 0.1], [0.7, 0.2], [1.4, 0.4]]
    robust = odefit.design(box_lucas(), RATES, times=(0, 20), count=4, over=vectors)
    assert robust.samples == 3
    assert robust.continuous is not None
    assert robust.continuous.excess < 1e-3
    assert len(set(robust.times)) > 2


@pytest.mark.slow
def test_the_same_seed_gives_the_same_design() -> None:
    one = odefit.design(box_lucas(), RATES, times=(0, 20), count=3, seed=4)
    two = odefit.design(box_lucas(), RATES, times=(0, 20), count=3, seed=4)
    assert one.times == two.times


@pytest.mark.slow
def test_figures_show_curves_and_intervals() -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), count=2)
    figure = found.plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["y", "intervals / value"]
    # Intervals that are not determined yet end in arrows.
    assert [line.get_marker() for line in figure.axes[1].lines].count("<") == 2
    assert [line.get_marker() for line in figure.axes[1].lines].count(">") == 2
    lost = odefit.design(scaled(), SCALED, times=(0, 20))
    assert len(lost.plot().axes) == 1


def test_the_information_never_exceeds_its_mean_over_the_design() -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), count=2)
    (curve,) = found.curves
    assert max(curve.values) == pytest.approx(1.0, abs=1e-4)
    (first, _) = found.measurements
    near = abs(curve.times - first.time).argmin()
    assert curve.values[near] == pytest.approx(1.0, abs=1e-3)


def test_unmeasured_states_are_not_candidates_by_default() -> None:
    def problem(observables: dict[str, str] | None, noise: dict[str, Any]) -> odefit.Problem:
        return odefit.Problem(
            odefit.Model(ode={"a": "-k*a", "b": "k*a"}, observables=observables),
            data={"t": [0.0, 9.0], "b" if observables is None else "y": [0.0, 1.0]},
            parameters={"k": {}},
            initial={"a": 1.0, "b": 0.0},
            noise=noise,
        )

    found = odefit.design(problem(None, {"b": {"sd": 0.1}}), {"k": 0.5}, times=(0, 9))
    assert found.times == pytest.approx([2.0], abs=1e-3)  # 1/k
    both = {"a": {"sd": 0.1}, "b": {"sd": 0.2}}
    found = odefit.design(problem(None, both), {"k": 0.5}, times=(0, 9))
    assert {name for m in found.measurements for name in m.observables} == {"a"}
    listed = problem({"u": "2*a", "y": "b"}, {"y": {"sd": 0.1}})
    with pytest.raises(InputError, match="noise u: it is not given"):
        odefit.design(listed, {"k": 0.5}, times=(0, 9))
