"""
A chaotic circuit: when the start says nothing about the end
============================================================

Chua's circuit, two capacitors, an inductor and a diode, is the simplest electronic circuit that
behaves chaotically. From noisy voltages we want the values of its parts. Ordinary fitting fails
here, for a reason worth seeing; multiple shooting does not.
"""

# %%
# In dimensionless form, with a cubic diode, the circuit has the parameters ``alpha`` and
# ``beta`` and the curve of the diode, ``x³ + c x``. The data are synthetic, so that we know the
# truth: 101 measurements of all three states in 20 units of time, with a noise of 0.01.

import numpy as np

import odefit

TRUTH = {"alpha": 10.0, "beta": 16.0, "c": -0.143}
START = {"x": 0.2, "y": 0.1, "z": -0.1}
model = odefit.Model(
    ode={"x": "alpha*(y - x^3 - c*x)", "y": "x - y + z", "z": "-beta*y"}
)
bounds = {
    "alpha": {"lower": 5.0, "upper": 20.0, "guess": 7.0},
    "beta": {"lower": 8.0, "upper": 30.0, "guess": 12.0},
    "c": {"lower": -1.0, "upper": 1.0, "guess": 0.2},
}
states = {name: {"lower": -5.0, "upper": 5.0} for name in "xyz"}


def circuit(data: dict[str, np.ndarray]) -> odefit.Problem:
    """Return the problem with these measurements."""
    return odefit.Problem(
        model, data, parameters=bounds, initial=states, name="Chua's circuit"
    )


times = np.linspace(0.0, 20.0, 101)
empty = circuit(
    {"t": times, **{name: np.zeros(len(times)) for name in "xyz"}}
)
exact = odefit.simulate(empty, empty.vector({**TRUTH, **START}), times)
random = np.random.default_rng(7)
problem = circuit(
    {
        "t": times,
        **{
            name: exact.states[name] + 0.01 * random.standard_normal(101)
            for name in "xyz"
        },
    }
)

# %%
# Before the fit
# --------------
# Perfect data would determine everything, in one way alone:

structure = odefit.identifiability(problem)
print(structure.sentence)
assert structure.solutions == 1

# %%
# But how fast does a small error grow? A second trajectory begins a millionth beside the first.
# The slope of the logarithm of their distance estimates the largest Lyapunov exponent.

OFFSET = 1e-6
beside = {**TRUTH, **START, "x": START["x"] + OFFSET}
near = odefit.simulate(empty, empty.vector(beside), times)
apart = [near.states[name] - exact.states[name] for name in "xyz"]
distance = np.linalg.norm(apart, axis=0)
growth = distance[-1] / OFFSET
exponent = np.polyfit(times, np.log(distance), 1)[0]
print(f"growth of the error in 20 units of time: {growth:.0f}-fold")
print(f"largest exponent, about: {exponent:.1f}")
assert growth > 100

# %%
# One trajectory is not enough
# ----------------------------
# A trajectory from a start that is slightly off soon has nothing to do with the data. The sum
# of squares has countless valleys, and a local search ends in one of them.

single = odefit.fit(problem, odefit.SingleShooting(evaluations=200), seed=1)
print(f"Sum of squares: {single.objective:.1f}")
single.plot_fit(observables=["x"], width=6.5)

# %%
# odefit does not sell that as an answer:

print(single.message)
assert "does not describe the data" in single.message

# %%
# Many short trajectories
# -----------------------
# Multiple shooting begins a trajectory of its own at each of 20 nodes, here at the measured
# values. They need not fit together at first:

from odefit.reporting.figures.shooting import plot_shooting

method = odefit.MultipleShooting(nodes=20, states="data", starts=1)
plot_shooting(method.follow(problem), iteration=0, width=6.5)

# %%
# The iteration closes the gaps while it finds the parameters, from the same guesses.

result = odefit.fit(problem, method, seed=1)
result.plot_fit(width=6.5)

# %%
# The sum of squares is that of the noise: 303 values with a standard deviation of 0.01 give
# about 0.03, less a little for the six unknowns.

print(f"Sum of squares: {result.objective:.3f}")
assert 0.023 < result.objective < 0.035
assert single.objective > 100 * result.objective

# %%
# How well are the parts known?
# -----------------------------
# The pieces have become one trajectory, so that profile likelihoods can be asked for. They are
# parabolas: here linearised intervals would do.

profiles = result.profile(["alpha", "beta", "c"])
profiles.plot()

# %%
# Each true value lies in its interval.

for name, value in TRUTH.items():
    found = profiles[name]
    print(
        f"{name}: {found.lower:.4g} to {found.upper:.4g} (truth: {value:g})"
    )
    assert found.lower < value < found.upper
    assert found.upper - found.lower < 0.02 * abs(value)

# %%
# **What may be said.** Three parts follow from twenty units of time, within one per cent, since
# chaos amplifies the influence of every one of them; that is also why the search was hard. The
# same sensitivity forbids forecasts: a few times the reciprocal of the exponent after the last
# measurement, nothing can be said. The data were simulated with the model that was fitted. A
# real circuit has a diode that is no cubic, and a fit of it should begin with a look at the
# residuals.
