"""Steady states: exact values, sensitivities, what is conserved, and why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Failure, ForwardMap, Model, Problem
from odefit.simulation.propagation import propagation
from odefit.simulation.steady import steady_state
from odefit.simulation.steady.steady_equations import SteadyEquations
from tests.simulation.numerics import Array, differences, evaluated

INF = np.inf


def problem(
    ode: Mapping[str, str],
    parameters: Sequence[str],
    initial: Mapping[str, Any],
    *experiments: Experiment,
    times: Sequence[float] = (INF,),
    **model: Any,
) -> Problem:
    """All states are measured, as zero, so that residuals are the states."""
    observables = model.pop("observables", {s: s for s in ode})
    data = {"t": list(times), **{o: np.zeros(len(times)) for o in observables}}
    return Problem(
        Model(ode=ode, observables=observables, **model),
        parameters={p: {} for p in parameters},
        initial=initial,
        experiments=experiments or [Experiment("run", data)],
    )


def at(times: Sequence[float], *observables: str, name: str = "run", **more: Any) -> Experiment:
    return Experiment(
        name, {"t": list(times), **{o: [0.0] * len(times) for o in observables}}, **more
    )


CONVERSION = {"A": "k2*B - k1*A", "B": "k1*A - k2*B"}


def conversion(v: Array) -> Array:
    """The steady state of A <-> B with the total of the start."""
    k1, k2, a, b = v
    return np.asarray(np.array([k2, k1]) * (a + b) / (k1 + k2))


def test_a_measurement_at_infinity_sees_the_steady_state_with_the_total_of_the_start() -> None:
    p = problem(CONVERSION, ["k1", "k2"], {"A": {}, "B": {}})
    vector = np.array([0.3, 0.7, 2.0, 0.5])
    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(conversion(vector), rel=1e-10)
    assert found.jacobian == pytest.approx(differences(conversion, vector, 1e-3), rel=1e-7)


def test_finite_times_and_infinity_are_allowed_together() -> None:
    p = problem(CONVERSION, ["k1", "k2"], {"A": {}, "B": {}}, times=(0.0, 0.5, 1.5, INF))
    vector = np.array([0.3, 0.7, 2.0, 0.5])

    def exact(v: Array) -> Array:
        rest, start = conversion(v), v[2:]
        decay = np.exp(-(v[0] + v[1]) * np.array([0.0, 0.5, 1.5, INF]))
        return np.asarray(rest[:, None] + (start - rest)[:, None] * decay).ravel()

    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-8)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-6, abs=1e-9)


def test_an_experiment_begins_at_the_steady_state_and_events_act_on_it() -> None:
    """k1 is three times as large from t0 on, and a dose of A comes at t0."""
    event = Event((0.0,), {"k1": "3*k1", "A": "A + d"})
    experiment = at([0.0, 1.0, INF], "A", "B", steady_state=True, events=[event])
    p = problem(CONVERSION, ["k1", "k2", "d"], {"A": {}, "B": 0.5}, experiment)
    vector = np.array([0.3, 0.7, 0.4, 2.0])

    def exact(v: Array) -> Array:
        k1, k2, d, a = v
        before = conversion(np.array([k1, k2, a, 0.5]))
        start = before + np.array([d, 0.0])
        rest = conversion(np.array([3 * k1, k2, *start]))
        after = rest + (start - rest) * np.exp(-(3 * k1 + k2))
        return np.stack([before, after, rest], axis=1).ravel()

    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-8)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-6, abs=1e-9)


def test_an_irreversible_chain_ends_in_its_last_state() -> None:
    ode = {"A": "-k*A", "B": "k*A - m*B", "C": "m*B"}
    p = problem(ode, ["k", "m"], {"A": {}, "B": 0.25, "C": 0.0})
    found = evaluated(ForwardMap(p), np.array([3.0, 1e-3, 2.0]))
    assert found.residuals == pytest.approx([0.0, 0.0, 2.25], abs=1e-9)
    expected = [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert found.jacobian == pytest.approx(np.array(expected), abs=1e-8)


MICHAELIS = {
    "S": "km*C - k1*S*E + kr*P",
    "E": "(km + kc)*C - k1*S*E",
    "C": "k1*S*E - (km + kc)*C",
    "P": "kc*C - kr*P",
}


@pytest.mark.parametrize("kr", [0.02, 0.0])
def test_an_enzyme_keeps_both_totals(kr: float) -> None:
    p = problem(MICHAELIS, ["k1", "km", "kc"], {"S": {}, "E": {}, "C": 0.0, "P": 0.0},
                constants={"kr": kr})  # fmt: skip
    vector = np.array([2.0, 0.5, 1.0, 5.0, 0.2])

    def exact(v: Array) -> Array:
        """C solves a quadratic equation: S = K C/E, P = kc C/kr, E = E0 - C."""
        k1, km, kc, s0, e0 = v
        if kr == 0.0:
            return np.array([0.0, e0, 0.0, s0])
        big, ratio = (km + kc) / k1, 1 + kc / kr
        coefficients = [-ratio, ratio * e0 + s0 + big, -s0 * e0]
        c = min(np.roots(coefficients).real)
        return np.array([big * c / (e0 - c), e0 - c, c, kc * c / kr])

    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-8, abs=1e-9)
    expected = differences(exact, vector, 1e-3)
    assert found.jacobian == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_a_long_run_ends_at_the_same_values_and_derivatives() -> None:
    """A feedback loop without conserved quantities, stiff by three orders of magnitude."""
    ode = {"m": "a/(1 + p^4) - d*m", "p": "1000*(m - p)", "q": "p - 0.01*q"}
    names = ["a", "d"]
    initial = {"m": {}, "p": 0.1, "q": 0.0}
    vector = np.array([5.0, 0.7, 1.0])
    rest = evaluated(ForwardMap(problem(ode, names, initial)), vector)
    long = evaluated(ForwardMap(problem(ode, names, initial, times=(0.0, 1e5))), vector)
    assert rest.residuals == pytest.approx(long.residuals[1::2], rel=1e-7)
    assert rest.jacobian == pytest.approx(long.jacobian[1::2], rel=1e-5, abs=1e-7)


def test_volumes_that_are_estimated_weigh_what_is_conserved() -> None:
    """V x + W y is conserved, and x = y in the end."""
    ode = {"x": "k*(y - x)/V", "y": "k*(x - y)/W"}
    p = problem(ode, ["k", "V"], {"x": {}, "y": 0.5}, constants={"W": 3.0})
    vector = np.array([0.4, 2.0, 1.5])

    def exact(v: Array) -> Array:
        return np.full(2, (v[1] * v[2] + 3.0 * 0.5) / (v[1] + 3.0))

    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-8)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-6, abs=1e-8)


def test_steady_states_that_are_not_isolated_have_the_derivatives_of_the_trajectory() -> None:
    """An epidemic ends with as many susceptible as log(S/S0) = b/g (S + R0 - N) says."""
    ode = {"S": "-b*S*I", "I": "b*S*I - g*I", "R": "g*I"}
    p = problem(ode, ["b", "g"], {"S": {}, "I": 0.01, "R": 0.0})

    def exact(v: Array) -> Array:
        b, g, s0 = v
        s, total = 1e-2, s0 + 0.01
        for _ in range(200):
            s = s0 * np.exp(b / g * (s - total))
        return np.array([s, 0.0, total - s])

    vector = np.array([1.0, 0.3, 1.0])
    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-6, abs=1e-8)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-5, abs=1e-6)
    rough = evaluated(ForwardMap(p, tolerance=1e-6), vector)
    assert rough.jacobian == pytest.approx(found.jacobian, rel=1e-3, abs=1e-4)


def test_states_that_are_always_zero_do_no_harm() -> None:
    """An inhibitor that is not there, in a cascade whose rates differ by twelve orders."""
    ode = {
        "A": "k2*B - k1*A - 1e6*A*I + 1e-6*AI",
        "B": "k1*A - k2*B",
        "I": "1e-6*AI - 1e6*A*I",
        "AI": "1e6*A*I - 1e-6*AI",
    }
    p = problem(ode, ["k1", "k2"], {"A": {}, "B": 0.5, "I": 0.0, "AI": 0.0})
    vector = np.array([0.3, 0.7, 2.0])

    def exact(v: Array) -> Array:
        return np.concatenate([conversion(np.array([*v, 0.5])), [0.0, 0.0]])

    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-9, abs=1e-12)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    ("number", "initial", "at_t0", "simulated"),
    [
        ("0009", {"A": 1.0, "B": 0.0}, {}, [0.48728499141466824, 0.42857162655445696]),
        ("0010", {"A": 1.0, "B": 0.0}, {"B": 1}, [0.7025430017170664, 0.7142856746891086]),
        ("0017", {"A": 0.0, "B": 2.0}, {"A": 1}, [0.7847419896976019, 0.7142859518653484]),
    ],
)
def test_the_conformity_suite_of_petab_has_these_simulations(
    number: str, initial: dict[str, float], at_t0: dict[str, float], simulated: list[float]
) -> None:
    """Pre-equilibration at k1 = 0.3, then k1 = 0.8 and states that restart."""
    event = Event((0.0,), {"k1": 0.8, **at_t0}, measured="after")
    run = at([1.0, 10.0], "A", t0=0.0, steady_state=True, events=[event])
    p = problem(CONVERSION, ["k2"], initial, run, observables={"A": "A"}, constants={"k1": 0.3})
    found = evaluated(ForwardMap(p), np.array([0.6]))
    assert found.residuals == pytest.approx(simulated, rel=1e-6)


def test_the_trajectory_decides_between_two_steady_states() -> None:
    """x' = x (1 - x) (x - h): below h it dies out, above it ends at 1."""
    for start, end in ((0.29, 0.0), (0.31, 1.0), (0.2999, 0.0), (0.3001, 1.0)):
        p = problem({"x": "k*x*(1 - x)*(x - 0.3)"}, ["k"], {"x": start})
        found = evaluated(ForwardMap(p), np.array([2.0]))
        assert found.residuals == pytest.approx([end], abs=1e-8)


def test_a_start_at_which_nothing_moves_stays() -> None:
    """Without virus there is no infection, although that steady state is unstable."""
    ode = {"T": "s - d*T - b*T*V", "V": "b*T*V - c*V"}
    p = problem(ode, ["s", "b"], {"T": "s/0.1", "V": 0.0}, constants={"d": 0.1, "c": 1.0})
    found = evaluated(ForwardMap(p), np.array([1.0, 0.5]))
    assert found.residuals == pytest.approx([10.0, 0.0])
    assert found.jacobian == pytest.approx(np.array([[10.0, 0.0], [0.0, 0.0]]))


def test_algebraic_variables_come_to_rest_as_well() -> None:
    """x' = k z - m x with z^3 + z = w - x: z = m/k x at rest."""
    p = problem(
        {"x": "k*z - m*x"},
        ["k", "m", "w"],
        {"x": 0.1, "z": 0.5},
        algebraic={"z": "z^3 + z + x - w"},
        observables={"x": "x", "z": "z"},
    )

    def exact(v: Array) -> Array:
        k, m, w = v
        roots = np.roots([(m / k) ** 3, 0.0, m / k + 1, -w])
        x = float(roots[np.abs(roots.imag) < 1e-9].real[0])
        return np.array([x, m / k * x])

    vector = np.array([0.8, 0.5, 2.0])
    found = evaluated(ForwardMap(p), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-8)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-6)


def test_time_and_inputs_stand_still_before_the_experiment() -> None:
    """x' = u + t - k x is at rest at (u + t0)/k with u before its jump at t0."""
    experiment = Experiment(
        "run",
        {"t": [1.0, 2.0, 3.0], "u": [4.0, 6.0, 6.0], "x": [np.nan, 0.0, np.nan]},
        t0=2.0,
        steady_state=True,
    )
    p = Problem(
        Model(ode={"x": "u + t - k*x"}, inputs={"u": "constant"}),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=[experiment],
    )
    found = evaluated(ForwardMap(p), np.array([0.5]))
    assert found.residuals == pytest.approx([12.0], rel=1e-9)
    assert found.jacobian == pytest.approx(np.array([[-24.0]]), rel=1e-9)


def test_inputs_keep_their_last_value_until_infinity() -> None:
    experiment = Experiment(
        "run",
        {"t": [0.0, 5.0, INF], "u": [1.0, 3.0, np.nan], "x": [np.nan, np.nan, 0.0]},
    )
    p = Problem(
        Model(ode={"x": "u - k*x"}, inputs={"u": "linear"}),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=[experiment],
    )
    assert evaluated(ForwardMap(p), np.array([0.5])).residuals == pytest.approx([6.0], rel=1e-9)


def test_a_fading_drive_leaves_a_steady_state() -> None:
    p = problem({"x": "w*exp(-t) + 1 - 2*x"}, ["w"], {"x": 1.0})
    found = evaluated(ForwardMap(p), np.array([1.0]))
    assert found.residuals == pytest.approx([0.5], rel=1e-7)


@pytest.mark.parametrize(
    ("ode", "initial", "reason"),
    [
        ({"x": "k*y", "y": "-k*x"}, {"x": 1.0, "y": 0.0}, "may oscillate or grow"),
        ({"x": "k*(x - x^3/3 - y + 0.5)", "y": "0.08*(x + 0.7 - 0.8*y)"}, {"x": 1.0, "y": 0.0},
         "may oscillate or grow"),
        ({"x": "k"}, {"x": 1.0}, "x still changes"),
        ({"x": "k*x"}, {"x": 1.0}, "grow without bound"),
        ({"x": "k*x^2"}, {"x": 1.0}, "grow"),
        ({"x": "k*cos(t) - x"}, {"x": 1.0}, "the equations contain the time"),
        ({"x": "-k*x", "y": "x - 0.1*k"}, {"x": 1.0, "y": 1.0}, "y still changes"),
    ],
)  # fmt: skip
def test_a_missing_steady_state_is_reported(
    ode: dict[str, str], initial: dict[str, float], reason: str
) -> None:
    found = ForwardMap(problem(ode, ["k"], initial)).evaluate(np.array([1.0]))
    assert isinstance(found, Failure)
    assert found.reason.startswith("no steady state is approached: ")
    assert reason in found.reason


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of directions of each steady state that is computed."""
    found: list[int] = []
    search = steady_state.SteadyStateSearch

    def counted(*arguments: Any) -> Any:
        found.append(arguments[1].directions)
        return search(*arguments)

    monkeypatch.setattr(propagation, "SteadyStateSearch", counted)
    return found


def test_experiments_that_begin_alike_share_one_steady_state(rests: list[int]) -> None:
    def run(name: str, dose: str, **constants: Any) -> Experiment:
        event = Event((0.0,), {"A": f"A + {dose}"})
        return at(
            [0.0, 1.0], "B", name=name, steady_state=True, events=[event], constants=constants
        )

    experiments = [run("a", "0.1"), run("b", "d"), run("c", "2*d"), run("d", "d", k2=1.5)]
    p = problem(CONVERSION, ["k1", "k2", "d"], {"A": {}, "B": 0.5}, *experiments,
                observables={"B": "B"})  # fmt: skip
    vector = np.array([0.3, 0.7, 0.4, 2.0])
    forward = ForwardMap(p)
    found = evaluated(forward, vector)
    assert rests == [3, 3]  # by k1, k2 and A; the last experiment has another k2, which is known
    for condition in p.conditions:
        alone = forward.trajectory(vector, condition.name)
        assert not isinstance(alone, Failure)
    numeric = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-3)
    assert found.jacobian == pytest.approx(numeric, rel=1e-6, abs=1e-8)


def test_a_start_at_rest_differs_from_one_that_is_not(rests: list[int]) -> None:
    p = problem(
        CONVERSION, ["k1", "k2"], {"A": {}, "B": 0.5},
        at([0.0], "A", name="rest", steady_state=True), at([0.0], "A", name="start"),
        observables={"A": "A"},
    )  # fmt: skip
    found = evaluated(ForwardMap(p), np.array([0.3, 0.7, 2.0]))
    assert found.residuals == pytest.approx([0.7 * 2.5, 2.0])
    assert len(rests) == 1


def test_conserved_quantities_are_found_whatever_the_rates() -> None:
    p = problem(MICHAELIS, ["k1", "km", "kc", "kr"], {s: {} for s in MICHAELIS})
    forward = ForwardMap(p)
    equations = SteadyEquations(forward.field)
    names = forward.field.scalars
    rates = {"k1": 1e6, "km": 1e-7, "kc": 1e3, "kr": 0.0}
    scalars = np.array([rates[n] for n in names])
    fixed = np.zeros(len(names), dtype=bool)
    found = equations.conserved(0.0, scalars, fixed, np.zeros(0))
    assert not found.moving.any()
    totals = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]])  # S + C + P and E + C
    assert np.linalg.matrix_rank(found.weights) == 2
    assert np.linalg.matrix_rank(np.concatenate([found.weights, totals]), tol=1e-9) == 2


def test_states_that_stay_zero_are_zero_and_not_roundoff() -> None:
    """Digits of 1e-35 would be kept by the integration that follows, in ever smaller steps."""
    ode = {"A": "s - d*A - b*A*C + c*E", "C": "c*E - b*A*C", "E": "b*A*C - c*E"}
    p = problem(ode, ["s", "d", "b", "c"], {"A": 0.5, "C": 0.0, "E": 0.0})
    trajectory = ForwardMap(p).trajectory(np.array([0.9, 0.3, 17.1, 0.013]))
    assert not isinstance(trajectory, Failure)
    assert trajectory.states[0] == pytest.approx([3.0, 0.0, 0.0], rel=1e-10)
    assert not trajectory.states[0, 1:].any()
    assert not trajectory.sensitivities[0, 1:].any()
