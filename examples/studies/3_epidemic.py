"""
An epidemic: counts and how much they scatter
=============================================

In January 1978 an influenza went through a boarding school with 763 boys (British Medical Journal,
4 March 1978). The numbers of those in bed are counts, not measurements with a normal error. How
many others did one boy infect, and how sure may we be?
"""

# %%
# Susceptible boys ``S`` become infectious ``I`` and then recover. One boy was ill on day 0.

import numpy as np

import odefit

data = {
    "t": list(range(1, 15)),
    "in_bed": [3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4],
}
model = odefit.Model(
    ode={"S": "-beta*S*I/763", "I": "beta*S*I/763 - gamma*I"},
    observables={"in_bed": "I"},
)


def school(noise: odefit.Noise) -> odefit.Problem:
    """Return the problem with this noise of the counts."""
    return odefit.Problem(
        model,
        data=data,
        parameters={
            "beta": {
                "lower": 0.1,
                "upper": 10.0,
                "scale": "log10",
                "unit": "1/d",
            },
            "gamma": {
                "lower": 0.05,
                "upper": 5.0,
                "scale": "log10",
                "unit": "1/d",
            },
        },
        initial={"S": 762.0, "I": 1.0},
        t0=0.0,
        noise={"in_bed": noise},
        time_unit="d",
        name="influenza",
    )


# %%
# Before the fit: would perfect counts determine both rates?

poisson_problem = school(odefit.Noise(distribution="poisson"))
structure = odefit.identifiability(poisson_problem)
print(structure.sentence)
assert structure.solutions == 1

# %%
# They would. Poisson's distribution is the first thought for counts: the variance is the mean.

poisson = odefit.fit(poisson_problem, seed=1)
print(poisson.goodness.sentence)

# %%
# The data lie further from the curve than Poisson's distribution allows. The negative binomial
# distribution has one more parameter for that, the dispersion ``a``: the variance is m + a m²
# for the mean m.

negative_binomial = odefit.fit(
    school(
        odefit.Noise(distribution="negative-binomial", dispersion="estimate")
    ),
    seed=1,
)
comparison = odefit.compare(
    poisson, negative_binomial, names=["Poisson", "negative binomial"]
)
comparison.table[["parameters", "-2 log L", "AICc", "BIC"]].map(
    "{:.4g}".format
)

# %%
# Akaike's criterion leaves no doubt. But a wider distribution only admits the distance between
# model and data, it does not explain it: the residuals still run in a pattern.

assert negative_binomial.aic < poisson.aic - 10
print(negative_binomial.goodness.sentence)
negative_binomial.plot_fit(band="linear", width=5)

# %%
# The number of others that one infects
# -------------------------------------
# The basic reproduction number is ``beta/gamma``. Its interval by profile likelihood does not
# rely on linearisation.

profiles = negative_binomial.profile(
    ["beta", "gamma"], expressions=["R0 = beta/gamma"]
)
profiles.plot()

# %%
# The same profile under Poisson's distribution is far narrower, and that is its fault.

narrow = poisson.profile([], expressions=["R0 = beta/gamma"])["R0"]
wide = profiles["R0"]
print(f"Poisson:           {narrow.lower:.2f} to {narrow.upper:.2f}")
print(f"negative binomial: {wide.lower:.2f} to {wide.upper:.2f}")
assert wide.upper - wide.lower > 2.5 * (narrow.upper - narrow.lower)
assert np.isfinite([wide.lower, wide.upper]).all()

# %%
# **What may be said.** At the start of the epidemic one boy infected about three others; the
# interval is printed above. An analysis with Poisson's noise would have claimed three times the
# precision. Boys in bed need not be those who infect others: a model with another stage would
# be the next to try.
