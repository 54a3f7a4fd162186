"""
Twelve subjects: how much do they differ?
=========================================

Twelve people swallowed theophylline, a drug against asthma, and had their blood taken for a
day. The next dose of a patient depends on the clearance, the volume of blood that is freed of
the drug in an hour. Is one clearance good enough for all, or do people differ by more than
the measurements scatter?
"""

# %%
# The table is one that NONMEM or Monolix would read: a row for each dose (``EVID`` is 1,
# ``AMT`` its amount in mg for each kilogram of body weight) and one for each measurement
# (``DV``, mg/L). It is R. A. Upton's study as printed by Boeckmann, Sheiner and Beal (*NONMEM
# Users Guide, Part V*, 1994), and is in the repository of odefit,
# ``tests/data/theophylline.csv``.

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import odefit

data = pd.read_csv(
    "../../tests/data/theophylline.csv", comment="#", na_values="."
)
data.head(5)

# %%
# The drug goes from the gut into the blood with the rate ``ka``, and leaves it with the
# clearance ``CL``. ``V`` is the volume in which it is diluted. ``by="ID"`` makes an experiment
# of each subject, and ``doses`` says where the doses go. The standard deviation of the
# measurements is unknown, and the same in all.

model = odefit.Model(
    ode={"gut": "-ka*gut", "blood": "ka*gut - CL/V*blood"},
    observables={"c": "blood/V"},
)
BOUNDS = {
    "ka": odefit.Parameter(lower=0.1, upper=20.0, scale="log10", unit="1/h"),
    "CL": odefit.Parameter(
        lower=0.001, upper=1.0, scale="log10", unit="L/h/kg"
    ),
    "V": odefit.Parameter(lower=0.1, upper=10.0, scale="log10", unit="L/kg"),
}


def study(rows: pd.DataFrame, own: str) -> odefit.Problem:
    """Return the problem in which each subject has its own value of the parameters in `own`."""
    return odefit.Problem(
        model,
        rows,
        parameters={
            name: replace(parameter, per_experiment=name in own.split())
            for name, parameter in BOUNDS.items()
        },
        initial={"gut": 0.0, "blood": 0.0},
        noise={"c": {"sd": "estimate"}},
        by="ID",
        time="TIME",
        doses={"into": "gut"},
        time_unit="h",
        name="theophylline",
    )


# %%
# Before the fit
# --------------
# What could perfect data of one subject tell?

structure = odefit.identifiability(study(data[data.ID == 1], own=""))
print(structure)

# %%
# Two answers fit equally: absorption and elimination may change places, as in :doc:`the study
# of one subject </worked-studies/2_theophylline>`, and ``V`` then changes with them. The
# clearance, however, is the same in both: what we ask for has one answer. The lower bound of
# ``V``, 0.1 L/kg, leaves the answer with the faster absorption, as a body holds more water than
# that.

assert structure.solutions == 2
assert structure["CL"].status == "globally"

# %%
# Three hypotheses
# ----------------
# All subjects are alike; they share the volume alone; or each has values of its own.
# (``jobs=1``: for fits of seconds, starting processes costs more than it saves.)

alike = odefit.fit(study(data, own=""), seed=1, jobs=1)
share_volume = odefit.fit(study(data, own="ka CL"), seed=1, jobs=1)
own_values = odefit.fit(study(data, own="ka CL V"), seed=1, jobs=1)
comparison = odefit.compare(
    alike,
    share_volume,
    own_values,
    names=["all alike", "one volume", "own values"],
)
comparison.table[["parameters", "-2 log L", "AICc", "BIC"]].map(
    "{:.4g}".format
)

# %%
# One set of values for all is out of the question. Of the other two, AICc prefers own values,
# and BIC, which charges more for a parameter, one volume: the data do not settle whether
# volumes differ. We go on with own values, and look below whether the clearances depend on that
# choice.

assert comparison.table["AICc"].idxmin() == "own values"
assert comparison.table["BIC"].idxmin() == "one volume"
assert alike.aic > own_values.aic + 100

# %%
# Does the model fit each of them?

own_values.plot_fit(width=6.5)

# %%
# By and large it does. odefit names the values that it does not describe.

print(own_values.goodness.sentence)
assert "outliers" in own_values.goodness.sentence
far = own_values.residuals.query("abs(weighted) > 2")
assert (far["t"] < 1.2).mean() > 0.5

# %%
# Most of these belong to the first hour, when a tablet dissolves and the drug does not enter
# the blood by a simple rate. The clearance is determined by the whole day, the rate ``ka`` by
# that hour.
#
# The clearances
# --------------
# Intervals by profile likelihood: for each value of a clearance, all the other 36 unknowns are
# fitted again.

keys = [f"CL[ID {number}]" for number in range(1, 13)]
profiles = own_values.profile(keys, jobs=1)
limits = pd.DataFrame(
    {
        "CL": [profiles[key].estimate for key in keys],
        "lower": [profiles[key].lower for key in keys],
        "upper": [profiles[key].upper for key in keys],
    },
    index=[f"subject {number}" for number in range(1, 13)],
).sort_values("CL")

figure, axes = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
axes.hlines(limits.index, 1000 * limits.lower, 1000 * limits.upper)
axes.plot(1000 * limits.CL, limits.index, "o")
axes.axvline(
    1000 * alike.best.parameters["CL"], linestyle="--", label="all alike"
)
axes.set(xlabel="clearance (mL/h/kg), 95 % interval")
axes.legend(frameon=False, loc="lower right")
figure

# %%
# The slowest and the fastest differ by more than their intervals.

slowest, fastest = limits.iloc[0], limits.iloc[-1]
for row in (slowest, fastest):
    ends = f"{1000 * row.lower:.0f} to {1000 * row.upper:.0f}"
    print(f"{row.name}: {ends} mL/h/kg")
assert slowest.upper < fastest.lower
assert 1.8 < fastest.CL / slowest.CL < 3

# %%
# What if all of them had one volume? Every clearance would have stayed within its
# interval.

for key in keys:
    assert (
        profiles[key].lower
        < share_volume.best.parameters[key]
        < profiles[key].upper
    )

# %%
# A tablet every twelve hours
# ---------------------------
# What does that mean for treatment? The same model with ten doses of 4 mg/kg, for the subjects with
# the slowest and the fastest clearance. Concentrations of 5 to 15 mg/L are aimed at.

times = np.linspace(0.0, 120.0, 1201)
tablets = odefit.Event(tuple(np.arange(0.0, 120.0, 12.0)), {"gut": "gut + 4"})
regimen = odefit.Problem(
    model,
    experiments=[
        odefit.Experiment(
            "days", {"t": [0.0, 120.0], "c": [0.0, 0.0]}, events=[tablets]
        )
    ],
    parameters=BOUNDS,
    initial={"gut": 0.0, "blood": 0.0},
)
last_day = {}
figure, axes = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
for subject in (limits.index[0], limits.index[-1]):
    number = subject.split()[1]
    values = {
        name: own_values.best.parameters[f"{name}[ID {number}]"]
        for name in BOUNDS
    }
    found = odefit.simulate(regimen, regimen.vector(values), times)
    last_day[subject] = found.observables["c"][times > 108.0]
    axes.plot(times, found.observables["c"], label=subject)
axes.axhspan(5.0, 15.0, color="0.92", zorder=0)
axes.set(xlabel="time (h)", ylabel="concentration (mg/L)")
axes.legend(frameon=False, loc="upper left")
figure

# %%
# On the same tablets, the slow one rises far above the range that is aimed at, and the fast one
# falls below it before each next tablet.

for subject, values in last_day.items():
    print(
        f"{subject}: {values.min():.1f} to {values.max():.1f} mg/L on day 5"
    )
slow, fast = last_day.values()
assert slow.max() > 20.0
assert 5.0 < fast.max() < 15.0
assert fast.min() < 5.0

# %%
# **What may be said.** Clearances of these twelve differ by a factor of more than two, far
# beyond the error of measurement, so a dose that is right for one is too much for another.
# These separate fits say nothing about people who were not measured: the
# spread of twelve estimates is wider than that of the true values, since each estimate has an
# error. How clearances are distributed in a population needs a model with random effects, which
# odefit does not have.
