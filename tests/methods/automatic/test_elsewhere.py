"""Tests of starts elsewhere, and of the doubts that call for them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Control, Experiment, ForwardMap, Model, Problem, Start, Status
from odefit.methods.automatic.doubt import (
    MISSING_HITS,
    STARTS,
    Doubts,
    doubt_of,
    lost_unknowns,
)
from odefit.methods.automatic.elsewhere import (
    DECADES,
    HeldSearch,
    can_widen,
    in_logarithms,
    wide_points,
)
from odefit.methods.automatic.families import Families
from odefit.methods.automatic.neighbours import NeighbourSearch
from odefit.methods.automatic.route_table import ELSEWHERE, search_routes
from odefit.methods.automatic.routes import Seen
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.multi_start import MultiStart
from odefit.problem.variants.exchanges import exchanged
from odefit.result_data.notices import NoticeKind
from odefit.simulation import Evaluation, Trajectory

CASES = Path(__file__).parents[2] / "cases"


def growth(**parameters: Any) -> Problem:
    """Return a rising curve that a decay cannot follow."""
    times = np.linspace(0.0, 4.0, 12)
    return Problem(
        Model(ode={"x": "-k*x/(m + x)"}),
        {"t": times, "x": 1.0 + 0.4 * times},
        {"k": {"lower": 0.0}, "m": {"lower": 0.0}, **parameters},
        {"x": {"lower": 0.0}},
    )


def test_points_span_more_decades_than_the_usual_ranges_and_keep_to_the_bounds() -> None:
    problem = growth(m={"lower": 0.0, "upper": 50.0})
    usual = odefit.methods.starts.sample(problem, 0, 64, 1)
    for index in range(2 * len(DECADES)):
        points = wide_points(problem, index, 1)
        assert (points >= problem.lower).all()
        assert (points <= problem.upper).all()
        decades = np.log10(points[:, 0].max() / points[:, 0].min())
        assert decades > np.log10(usual[:, 0].max() / usual[:, 0].min()) + DECADES[0]


def test_only_quantities_without_their_own_scale_are_searched_elsewhere() -> None:
    narrow = {"lower": 0.1, "upper": 1.0}
    wide = {"lower": 1e-6, "upper": 1e6, "scale": "log10"}
    assert can_widen(growth())
    fixed = growth(k=narrow, m=wide).with_parameters(x={"lower": 0.5, "upper": 2.0})
    assert not can_widen(fixed)
    scales = [u.parameter.scale for u in in_logarithms(growth(k={"lower": -1.0})).unknowns]
    assert scales == [None, "log10", "log10"]


def test_an_unknown_at_a_bound_and_one_without_effect_are_lost() -> None:
    forward = ForwardMap(growth())
    at = np.array([0.0, 1.0, 1.8])
    evaluation = forward.evaluate(at)
    assert isinstance(evaluation, Evaluation)
    assert lost_unknowns(forward, at, evaluation).tolist() == [True, True, False]


def test_a_right_answer_is_not_in_doubt() -> None:
    times = np.linspace(0.0, 4.0, 12)
    values = np.exp(-0.5 * times) + 0.01 * np.random.default_rng(1).standard_normal(12)
    decay = Problem(
        Model(ode={"x": "-k*x"}), {"t": times, "x": values}, {"k": {"lower": 0.0}}, {"x": 1.0}
    )
    vector = odefit.fit(decay, jobs=1).best.vector
    cost = ForwardMap(decay).cost(vector)
    end = Start(0, vector, vector, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost)
    assert doubt_of(ForwardMap(decay), end, explained=False) is None


@pytest.mark.parametrize(
    ("rate", "lost"), [("min(x/M, 1)", ("M",)), ("if(x < M, x/M, 1)", ("M",)), ("x/(M + x)", None)]
)
def test_an_unknown_that_acts_beyond_a_kink_alone_is_doubted_whatever_the_residuals_are(
    rate: str, lost: tuple[str, ...] | None
) -> None:
    times = np.linspace(0.0, 4.0, 12)
    saturated = Problem(
        Model(ode={"x": f"-k*{rate}"}),
        {"t": times, "x": 10.0 - 2.0 * times},
        {"k": {"lower": 0.0}, "M": {"lower": 0.0}},
        {"x": 10.0},
    )
    forward, vector = ForwardMap(saturated), np.array([2.01, 0.5])
    cost = forward.cost(vector)
    end = Start(0, vector, vector, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost)
    doubt = doubt_of(forward, end, explained=True)
    assert (None if doubt is None else doubt.lost) == lost


def actuator() -> Problem:
    """Return nine values of a controller that saturates at first; all bounds are narrow."""
    data = {
        "t": [0.315, 0.4883, 0.7569, 1.173, 1.819, 2.819, 4.37, 6.774, 10.5],
        "x": [0.2185, 0.3366, 0.4993, 0.7411, 1.094, 1.477, 1.947, 2.494, 2.772],
    }
    box = {"lower": 0.001, "upper": 1000.0, "scale": "log10"}
    return Problem(
        Model(ode={"x": "min(max(g*(3.87 - x), 0), um) - a*x"}),
        data,
        dict.fromkeys(("g", "um", "a"), box),
        {"x": 0.0},
        noise={"x": {"relative": 0.0107}},
        t0=0.0,
    )


def test_a_start_that_holds_a_lost_unknown_where_it_acts_finds_the_better_optimum() -> None:
    """Where g is large the actuator is always saturated, and x' = um - a x, as it fits best."""
    forward = ForwardMap(actuator())
    plateau = np.array([184.0, 0.72545, 0.23785])
    assert forward.cost(plateau) == pytest.approx(5.931, abs=1e-3)
    held = HeldSearch(FINAL, plateau, (0,)).run(forward, 0, Control())
    assert held.cost == pytest.approx(4.9977, abs=1e-3)
    free = FINAL.run(forward, 0, plateau, Control())
    assert free.cost == pytest.approx(5.931, abs=1e-3)


def test_starts_from_one_end_look_once_for_the_values_at_which_an_unknown_acts() -> None:
    forward = ForwardMap(actuator())
    plateau = np.array([184.0, 0.72545, 0.23785])
    search = HeldSearch(FINAL, plateau, (0,))
    first = search.run(forward, 0, Control())
    assert list(search.known) == [0]
    values = search.known[0]
    search.run(forward, 1, Control())
    assert search.known[0] is values
    again = HeldSearch(FINAL, plateau, (0,)).run(forward, 0, Control())
    assert first.vector.tolist() == again.vector.tolist()


def test_values_are_not_kept_of_a_search_that_has_to_stop() -> None:
    control = Control()
    control.interrupted.set()
    search = HeldSearch(FINAL, np.array([184.0, 0.72545, 0.23785]), (0,))
    search.run(ForwardMap(actuator()), 0, control)
    assert not search.known


def test_a_lost_unknown_of_one_experiment_is_first_searched_for_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other one takes part only when the search goes on with all unknowns."""
    times, rates = np.linspace(0.2, 3.0, 8), {"A": 0.6, "B": 1.7}
    experiments = [
        Experiment(
            name, {"t": times, "x": 3 * np.exp(-k * times) + 0.01 * np.cos(9 * times)}, t0=0.0
        )
        for name, k in rates.items()
    ]
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=experiments,
        parameters={"k": {"lower": 1e-6, "upper": 1e6, "scale": "log10", "per_experiment": True}},
        initial={"x": {"lower": 0.1, "upper": 100.0}},
    )
    forward = ForwardMap(problem)
    ran: list[int] = []
    run = type(FINAL).run

    def counted(self: object, forward: ForwardMap, *rest: object) -> object:
        ran.append(len(forward.problem.conditions))
        return run(self, forward, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(FINAL), "run", counted)
    lost = forward.problem.keys.index("k[A]")
    end = np.array([3.0 if key == "x" else 1e5 if key == "k[A]" else 1.7 for key in problem.keys])
    found = HeldSearch(FINAL, end, (lost,)).run(forward, 0, Control())
    assert ran == [1, 1, 2]
    assert dict(zip(problem.keys, found.vector, strict=True)) == pytest.approx(
        {"k[A]": 0.6, "k[B]": 1.7, "x": 3.0}, rel=0.02
    )
    assert found.start[lost] != end[lost]


@pytest.mark.slow
def test_a_saturated_actuator_with_narrow_bounds_is_not_taken_for_a_linear_one() -> None:
    """Its limit um and its gain g are lost at two worse optima (SciPy)."""
    result = odefit.fit(actuator(), jobs=1, seed=128)
    assert result.status is Status.CONVERGED
    assert result.params["um"].value == pytest.approx(0.72307, rel=1e-3)
    assert result.params["g"].value == pytest.approx(0.60591, rel=1e-3)


@pytest.mark.slow
def test_three_starts_at_a_bound_are_not_evidence_with_few_values() -> None:
    """Half of all starts end at R1 = 100, at its bound, the others at a better optimum (SciPy)."""
    columns = {
        "t": "0 37.94 54.81 57.339286 114.678571 117.4 142.8 152.3 172.017857 196.3 203 225.7 "
        "229.357143 241.6 250.5 286.696429 344.035714 372.3 401.375 406.4 418.6 458.714286 513.2 "
        "516.053571 567.5 573.392857 608.7 609.9 630.732143 676.4 688.071429 745.410714 802.75 "
        "818.7 819.6",
        "V": "nan 3.894 3.951 nan nan 3.945 3.74 3.806 nan 4.054 4.137 3.963 nan 3.945 3.685 nan "
        "nan 3.791 nan 3.823 3.921 nan 3.854 nan 3.694 nan 3.521 3.644 nan 3.543 nan nan nan 3.605 "
        "3.642",
        "I": "0.776 nan nan 2.552 4.507 nan nan nan 0 nan nan nan 2.893 nan nan 4.987 0 nan 0 nan "
        "nan 2.903 nan 0 nan 2.903 nan nan 3.88 nan 3.237 0.738 3.92 nan nan",
    }
    bounds = {"R0": (1e-5, 10.0), "R1": (1e-4, 100.0), "C": (1.0, 1e6)}
    battery = Problem(
        Model(
            ode={"z": "-I/5240", "v": "I/C - v/(R1*C)"},
            observables={"V": "3.2 + 0.9*z - R0*I - v"},
            inputs={"I": "constant"},
        ),
        {name: [float(word) for word in text.split()] for name, text in columns.items()},
        {k: {"lower": a, "upper": b, "scale": "log10"} for k, (a, b) in bounds.items()},
        {"z": 0.917, "v": 0.0},
        noise={"V": {"transform": "log", "sd": 0.0435}},
    )
    result = odefit.fit(battery, jobs=1, seed=236)
    assert result.status is Status.CONVERGED
    assert result.params["C"].value == pytest.approx(192.05, rel=1e-2)


def motor() -> Problem:
    """Return the speed of a motor with dry friction of which small values are below a limit."""
    changes = [1.045, 2.09, 3.135, 4.18, 5.225, 6.27, 7.315]
    torques = [0.0, -0.221, 0.637, -0.325, 0.0, 0.0, -0.195]
    speeds = {3.3: 2.049, 3.63: 5.056, 3.96: 6.737, 4.29: 4.292, 8.25: 0.1555}
    times = [0.33 * k for k in range(38)]
    rows = [(t, speeds.get(round(t, 2), 0.151), math.nan) for t in times]
    rows += [(t, math.nan, u) for t, u in zip([0.0, *changes], [0.0, *torques], strict=True)]
    rows.sort(key=lambda row: row[0])
    t, w, u = (list(column) for column in zip(*rows, strict=True))
    model = Model(ode={"w": "(u - b*w - F*sign(w))/J"}, inputs={"u": "constant"})
    bounds = {"J": (1e-5, 10.0), "b": (1e-4, 100.0), "F": (1e-3, 1000.0)}
    unknowns = {k: {"lower": a, "upper": c, "scale": "log10"} for k, (a, c) in bounds.items()}
    noise = {"w": {"sd": 0.0753, "lower_limit": 0.151}}
    return Problem(model, {"t": t, "w": w, "u": u}, unknowns, {"w": 0.0}, noise=noise, t0=0.0)


@pytest.mark.slow
def test_friction_that_lets_a_motor_creep_is_found_beside_friction_that_holds_it() -> None:
    """All starts end at F = 0.238; the motor first creeps at 0.221, and F = 0.195 fits better."""
    forward = ForwardMap(motor())
    held = FINAL.run(forward, 0, np.array([0.0276, 0.0423, 0.238]), Control())
    assert held.vector[2] == pytest.approx(0.238, abs=1e-3)
    found = NeighbourSearch(FINAL, held).run(forward, 0, Control())
    assert found.cost < held.cost - 0.5
    assert found.vector[2] == pytest.approx(0.195, abs=1e-4)


@pytest.mark.slow
def test_a_level_below_which_less_evaporates_is_found() -> None:
    """Most starts end where M lies below the whole course of S, and has no effect (SciPy)."""
    columns = {
        "t": "0 .942 1.555 2.565 4.234 4.261429 6.987 8.522857 11.53 12.784286 17.045714 19.03 "
        "21.307143 25.568571 29.83 31.4",
        "Q": "nan .2473 .3392 .3298 .4097 nan .834 nan 1.135 nan nan 1.259 nan nan nan 1.922",
        "P": "8.096 nan nan nan nan 18.117 nan 8.166 nan 9.369 0 nan .62 14.883 18.045 nan",
    }
    data = {name: [float(word) for word in text.split()] for name, text in columns.items()}
    bucket = Problem(
        Model(
            ode={"S": "P - 2.97*min(S/M, 1) - k*S^n"},
            observables={"Q": "k*S^n"},
            inputs={"P": "constant"},
        ),
        data,
        {
            "M": {"lower": 3.09, "upper": 2780.0},
            "k": {"lower": 7.1e-05, "upper": 0.0639},
            "n": {"lower": 0.043, "upper": 38.7},
        },
        {"S": 31.3},
        noise={"Q": {"sd": "estimate"}},
    )
    result = odefit.fit(bucket, jobs=1, seed=167)
    assert result.status is Status.CONVERGED
    assert result.params["M"].value == pytest.approx(49.67, rel=1e-3)
    assert result.params["n"].value == pytest.approx(1.22266, rel=1e-4)


@pytest.mark.slow
def test_a_bounded_search_elsewhere_is_reported_where_it_finds_nothing_better() -> None:
    """The best that a decay can do for a rising curve is to stand still."""
    result = odefit.fit(growth(), jobs=1, seed=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(np.sum((0.4 * (np.linspace(0, 4, 12) - 2.0)) ** 2))
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.SEARCHED_ELSEWHERE]
    assert notice.names == ("k", "m")
    assert notice.numbers["starts"] >= STARTS
    assert any("16 starts from wider ranges" in w for w in result.warnings)


SUGAR = (65.45, 56.95, 49.45, 40.7, 33.7, 26.95, 20.2, 15.45, 10.7, 7.7, 2.7, -0.8)
"""The rotation of a sugar that inverts, as in Wilhelmy's experiment, which ends below zero."""

SUGAR_TIMES = (0, 45, 90, 150, 210, 270, 330, 390, 450, 510, 570, 630)

# NIST StRD Misra1a: volume against pressure
PRESSURES = (77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8)
VOLUMES = (10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01)
PRESSURES_ABOVE, VOLUMES_ABOVE = (593.1, 689.1, 760.0), (66.40, 75.47, 81.78)


@pytest.mark.parametrize(
    ("rate", "start", "times", "values", "objective"),
    [
        ("-b*x", {"lower": 0.0}, SUGAR_TIMES, SUGAR, 111.2506),
        (
            "b*(a - x)",
            0.0,
            PRESSURES + PRESSURES_ABOVE,
            VOLUMES + VOLUMES_ABOVE,
            0.12455138894,
        ),
    ],
    ids=["sugar", "Misra1a"],
)
def test_the_optimum_of_a_model_that_misses_its_data_has_converged(
    rate: str, start: object, times: tuple[float, ...], values: tuple[float, ...], objective: float
) -> None:
    names = [name for name in ("a", "b") if name in rate]
    model = Model(ode={"x": rate})
    unknowns = {name: {"lower": 0.0} for name in names}
    data = {"t": np.array(times, dtype=float), "x": np.array(values)}
    result = odefit.fit(Problem(model, data, unknowns, {"x": start}, t0=0.0), jobs=1)  # type: ignore[dict-item]
    assert result.objective == pytest.approx(objective, rel=1e-6)
    assert result.status is Status.CONVERGED
    assert result.goodness is not None
    assert result.goodness.bad


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4])
def test_richards_curve_of_rat43_is_found_without_bounds_of_its_exponent(seed: int) -> None:
    """NIST StRD, certified values; there is a plateau where the curve is the mean of the data."""
    result = odefit.fit(odefit.load(CASES / "rat43-richards" / "p.toml"), seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(8786.404908, rel=1e-6)
    certified = {"b1": 699.64151270, "b2": 5.2771253025, "b3": 0.75962938329, "b4": 1.2792483859}
    assert result.best.parameters == pytest.approx(certified, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3, 4, 6])
def test_glucose_is_explained_by_insulin_though_its_effect_is_far_below_the_bounds(
    seed: int,
) -> None:
    """The minimal model on the classical data; without the effect of insulin 1790 are left."""
    problem = odefit.load(CASES / "glucose-minimal-model" / "pb.toml")
    result = odefit.fit(problem, seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(262.1223, rel=1e-5)
    assert result.best.parameters["p3"] == pytest.approx(1.73e-5, rel=0.01)


def test_an_answer_with_a_pattern_needs_many_starts_where_none_can_go_elsewhere() -> None:
    times = np.linspace(0.0, 5.0, 30)
    bounded = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(-times) + 0.1 * np.sin(3 * times)},
        {"k": {"lower": 0.1, "upper": 10.0}},
        {"x": {"lower": 0.0, "upper": 2.0}},
    )
    forward = ForwardMap(bounded)
    doubts = Doubts(forward, search_routes(forward), CostTolerance.of(forward), Families())
    end = MultiStart().run(forward, 0, Control(seed=0))
    alike = [replace(end, index=k) for k in range(MISSING_HITS)]
    undecided = NoiseFit(None)
    doubt, open_ = doubts.of(alike[:-1], undecided)
    assert doubt is not None
    assert not doubt.lost
    assert open_
    assert doubts.of(alike, undecided) == (doubt, False)


def in_sequence(rates: tuple[float, float], noise: float) -> Problem:
    """Return the product of two steps in sequence, of which the first begins with leaving some."""
    times = np.linspace(0.0, 12.0, 40)
    first, second = rates
    a = 2.0 * np.exp(-first * times)
    b = 2.0 * first / (second - first) * (np.exp(-first * times) - np.exp(-second * times))
    rate = {"lower": 0.01, "upper": 10.0}
    return Problem(
        Model(ode={"a": "-k*a", "b": "k*a - l*b"}, observables={"y": "b + 0.3*a"}),
        {"t": times, "y": b + 0.3 * a + noise * np.sin(2.0 * times)},
        {"k": rate, "l": rate},
        {"a": {"lower": 0.0, "upper": 20.0}, "b": 0.0},
    )


def test_unknowns_with_like_roles_are_exchanged_within_their_bounds() -> None:
    problem = in_sequence((1.5, 0.4), 0.0)
    assert exchanged(problem, np.array([1.5, 0.4, 2.0]), 6).tolist() == [[0.4, 1.5, 2.0]]
    assert exchanged(problem, np.array([1.5, 1.4, 2.0]), 6).shape == (0, 3)  # hardly different
    narrow = problem.with_unknowns(bounds={"l": (0.01, 1.0)})
    assert exchanged(narrow, np.array([1.5, 0.4, 2.0]), 6).shape == (0, 3)


def test_an_exchange_leads_from_the_worse_of_two_optima_to_the_better() -> None:
    """Incubation and recovery are exchanged in a seasonal epidemic; most starts end there."""
    contact = "4*b*(1 + 0.5*a*cos(0.5*t))*s*i"
    model = Model(
        ode={"s": f"0.1*m*(1 - s) - {contact}", "e": f"{contact} - n*e", "i": "n*e - g*i"}
    )
    truth = {"a": 0.6045, "b": 0.1219, "m": 0.1895, "n": 0.349, "g": 0.6998}
    begin = {"s": 0.5991, "e": 0.5401, "i": 0.1761}
    times = np.linspace(0.0, 100.0, 101)
    rate = {"lower": 1e-5, "upper": 10.0}
    exact = Problem(model, {"t": times, "i": times}, truth, begin)
    trajectory = ForwardMap(exact).trajectory(np.zeros(0))
    assert isinstance(trajectory, Trajectory)
    data = {"t": times, "i": trajectory.states[:, 2]}
    problem = Problem(model, data, dict.fromkeys(truth, rate), dict.fromkeys(begin, rate))
    forward = MultiStart().forward(problem)
    there = np.array([0.6423, 0.1219, 0.0646, 0.7017, 0.3402, 0.2789, 0.1783, 0.1761])
    worse = FINAL.run(forward, 0, there, Control())
    assert worse.cost > 1e-10
    found = NeighbourSearch(FINAL, worse, exchange=True).run(forward, 0, Control())
    assert found.cost < 1e-6 * worse.cost
    assert found.vector == pytest.approx([*truth.values(), *begin.values()], rel=1e-4)


def test_an_answer_that_misses_the_data_waits_for_exchanges() -> None:
    forward = ForwardMap(in_sequence((1.5, 0.4), 0.1))
    routes = search_routes(forward)
    doubts = Doubts(forward, routes, CostTolerance.of(forward), Families())
    end = FINAL.run(forward, 0, np.array([1.5, 0.4, 2.0]), Control())
    alike = [replace(end, index=k) for k in range(MISSING_HITS)]
    assert doubts.of(alike, NoiseFit(False))[1]
    (elsewhere,) = (r for r in routes if r.row is ELSEWHERE)
    planned = elsewhere.plan(Seen(alike, alike, CostTolerance.of(forward)))
    assert isinstance(planned.search, NeighbourSearch)
    assert planned.search.exchange
    elsewhere.add(replace(end, index=MISSING_HITS), planned)
    assert not doubts.of(alike, NoiseFit(False))[1]
