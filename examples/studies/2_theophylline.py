"""
Theophylline: two answers that fit equally well
===============================================

A drug is swallowed, absorbed from the gut with the rate ``ka`` and eliminated from the blood with
the rate ``ke``. From concentrations in the blood alone nobody can tell which of the two is the
faster: pharmacologists call the second answer *flip-flop kinetics*. A fit that shows one of the two
with small standard errors is wrong by silence.
"""

# %%
# The data are the first subject of a classical teaching set (Upton; ``Theoph`` in R): a dose of
# 4.02 mg/kg and ten concentrations of one day.

import matplotlib.pyplot as plt
import numpy as np

import odefit

model = odefit.Model(
    ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"},
    observables={"c": "blood/V"},
)
data = {
    "t": [0.25, 0.57, 1.12, 2.02, 3.82, 5.10, 7.03, 9.05, 12.12, 24.37],
    "c": [2.84, 6.57, 10.50, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28],
}
rate = odefit.Parameter(lower=0.001, upper=10.0, scale="log10", unit="1/h")
volume = odefit.Parameter(lower=0.001, upper=10.0, scale="log10", unit="L/kg")
problem = odefit.Problem(
    model,
    data=data,
    parameters={"ka": rate, "ke": rate, "V": volume},
    initial={"gut": 4.02, "blood": 0.0},
    t0=0.0,
    time_unit="h",
    name="theophylline",
)

# %%
# Before any fit, the equations tell how many answers there are.

print(odefit.identifiability(problem))

# %%
# The fit finds one of them from its starting points, and then the other, since it knows that
# there must be one.

result = odefit.fit(problem, seed=1)
for number, solution in enumerate(result.solutions, start=1):
    values = ", ".join(
        f"{name} = {value:.4g}" for name, value in solution.parameters.items()
    )
    print(f"{number}: objective {solution.objective:.4f}, {values}")

# %%
# Both have the same objective to the last digit, the two rates have changed places, and the
# volumes differ by the ratio of the rates.

first, second = result.solutions[:2]
assert abs(first.objective - second.objective) < 1e-6
assert np.isclose(first.parameters["ka"], second.parameters["ke"], rtol=1e-4)
ratio = first.parameters["ke"] / first.parameters["ka"]
assert np.isclose(
    second.parameters["V"], first.parameters["V"] * ratio, rtol=1e-4
)

# %%
# What is measured is the same. What is not measured, the drug in the gut, is not.

times = np.linspace(0.0, 24.0, 241)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(7.2, 2.8), layout="constrained"
)
result.plot_fit(ax=left)
for solution, line in ((first, "-"), (second, "--")):
    found = odefit.simulate(problem, solution.vector, times)
    right.plot(
        times,
        found.states["gut"],
        line,
        label=f"V = {solution.parameters['V']:.2g} L/kg",
    )
right.set(xlabel="time (h)", ylabel="drug in the gut (mg/kg)")
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)
figure

# %%
# What decides
# ------------
# Only knowledge from outside. A volume of 11 mL for each kilogram is less than the blood of a
# body that weighs as much, about 70 mL. Told so, the problem has one answer.

told = problem.with_unknowns(bounds={"V": (0.07, 10.0)})
result = odefit.fit(told, seed=1)
assert result.best.parameters["ka"] > result.best.parameters["ke"]
table = result.parameters.loc[
    "ka":"V", ["estimate", "rse", "ci_low", "ci_high"]
]
table.map("{:.3g}".format)

# %%
# A physician needs the half-life, log(2)/``ke``. Its profile likelihood gives an
# interval that is not symmetric, since long half-lives are hard to exclude in a day.

profiles = result.profile(expressions=["half_life = log(2)/ke"])
profiles.plot()

# %%

half_life = profiles["half_life"]
print(
    f"{half_life.estimate:.1f} h, from {half_life.lower:.1f} to {half_life.upper:.1f} h"
)
assert 12 < half_life.estimate < 14
assert (
    half_life.upper - half_life.estimate
    > half_life.estimate - half_life.lower
)

# %%
# **What may be said.** The half-life of theophylline in this subject is 13 hours, if, and only
# if, absorption is faster than elimination. The measurements do not show that; the volume of a
# human body does.
