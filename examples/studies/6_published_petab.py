"""
A published model: STAT5 in PEtab, and what its data leave open
===============================================================

Boehm and others (Journal of Proteome Research, 2014) measured how STAT5A and STAT5B form dimers in
the nucleus. The problem is one of the benchmark collection of PEtab: a model in SBML, tables of
measurements and parameters, and published best values. Are they right, and do the data determine
them?
"""

# %%
# The files are in the repository of odefit (``tests/data/petab``). ``nominal=True`` takes the
# published values as start.

import pandas as pd

import odefit

path = "../../tests/data/petab/Boehm_JProteomeRes2014/Boehm_JProteomeRes2014.yaml"
problem = odefit.load(path, nominal=True)
print(problem)

# %%
# Before the fit: would perfect data of these observables determine the rates?

structure = odefit.identifiability(problem)
print(structure.sentence)
assert structure.solutions == 1

# %%
# They would, each of them, in one way. Keep that in mind for what the real data say below.
#
# The published optimum
# ---------------------
# The collection states a negative log-likelihood of 138.22 at these values. One local search
# from there says whether they are an optimum.

result = odefit.fit(problem, odefit.SingleShooting(), seed=1)
print(f"negative log-likelihood: {-result.log_likelihood:.3f}")
assert abs(-result.log_likelihood - 138.222) < 0.001

# %%
# They are: the search finds nothing better, and the digits agree. What of the model?

result.plot_fit(width=6.5)

# %%

print(result.goodness.sentence)
assert "like noise" in result.goodness.sentence

# %%
# What each number is worth
# -------------------------
# The table names the trouble of each parameter beside its value.

pd.set_option("display.max_colwidth", None)
estimates = result.parameters.query("kind != 'initial'")[
    ["estimate", "ci_low", "ci_high", "note"]
]
for column in ("estimate", "ci_low", "ci_high"):
    estimates[column] = estimates[column].map("{:.3g}".format)
estimates

# %%
# Profile likelihoods ask again, without linearisation: all other parameters are fitted again
# along each curve. A curve that stays below the dashed line on one side has no end there.

profiles = result.profile(["k_phos", "k_exp_hetero", "k_imp_homo"])
profiles.plot()

# %%

print(profiles)
verdicts = profiles.table["verdict"]
assert verdicts["k_phos"] == "identifiable"
assert verdicts["k_exp_hetero"] == "practically not identifiable"
assert verdicts["k_imp_homo"] == "practically not identifiable"

# %%
# **What may be said.** The published optimum is one, and its likelihood is reproduced to the last
# published digit. The rate of phosphorylation is determined. The rate at which homodimers enter the
# nucleus has a lower limit and no upper one: any fast import fits, and the published value, close
# to the upper bound of the search, is no measurement. Export of heterodimers cannot be told from
# none. The equations would allow both to be measured; these observables at these times do not.
