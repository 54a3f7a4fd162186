"""
Alpha-pinene: rate constants with a certificate
===============================================

In 1945 Fuguitt and Hawkins heated alpha-pinene and measured, eight times in 25 days, how much of it
had turned into four other compounds. Five rate constants explain the five curves. Two questions
remain after any fit: could quite other constants explain the data better, and does the model
explain them at all?
"""

# %%
# The problem ships with odefit: the equations, the measurements and what is known of the
# unknowns.

import odefit

problem = odefit.library.load("alpha-pinene")
print(
    "\n".join(
        f"{name}' = {right}" for name, right in problem.model.ode.items()
    )
)

# %%
# Before the fit
# --------------
# All five substances are measured. Would perfect measurements determine the five constants, and
# in one way alone?

structure = odefit.identifiability(problem)
print(structure.sentence)
assert structure.solutions == 1

# %%
# They would. So if there are several answers, noise and missing times are the reason, not the
# equations.
#
# The fit
# -------

result = odefit.fit(problem, seed=1)
table = result.parameters.loc[
    "p1":"p5", ["estimate", "rse", "ci_low", "ci_high"]
]
table.map("{:.3g}".format)

# %%
# The sum of squares is the 19.87 of the literature. The curves go through the points of ``y1``,
# ``y2`` and ``y5``, and not quite through those of ``y3`` and ``y4``.

assert abs(result.objective - 19.872) < 1e-3
result.plot_fit(width=6.5)

# %%
# Is there a better fit elsewhere?
# --------------------------------
# That all starts agree proves nothing: they may all have missed another valley. Branch and
# bound divides the box of all rate constants between 1e-6 and 1e-3 per minute into smaller
# ones, encloses all trajectories of each, and discards those that cannot hold a better fit.

rates = dict.fromkeys(problem.model.parameters, (1e-06, 0.001))
proof = odefit.fit(problem, odefit.BranchAndBound(bounds=rates), seed=1)
print(proof.assessment.bounds.sentence)

# %%
# The lower bound rises until it meets the objective of the fit: the answer is certified. No
# five constants in the box fit better by more than about a thousandth of the objective.

assert proof.assessment.bounds.closed
assert proof.assessment.bounds.lower > 0.998 * proof.objective
proof.plot_bounds()

# %%
# Intervals
# ---------
# Profile likelihoods: one constant is held at one value after the other, the four others are
# fitted again. Where the curve leaves the dotted parabola, linearised intervals mislead.

profiles = result.profile()
profiles.plot()

# %%

table = profiles.table[["estimate", "ci_low", "ci_high", "verdict"]]
table.map(lambda value: value if isinstance(value, str) else f"{value:.3g}")

# %%
# The constants ``p1`` and ``p2`` of the first step are known within a few per cent, ``p5``, the
# return of the dimer, with a factor of two and a half between the ends of its interval.

width = table["ci_high"] / table["ci_low"]
assert width["p1"] < 1.05
assert width["p2"] < 1.1
assert 2 < width["p5"] < 3

# %%
# The best fit of a model that is not quite right
# -----------------------------------------------
# The certificate speaks of the optimum, not of the model. Residuals of ``y3`` and ``y4`` run in
# a pattern: first on one side of zero, then on the other.

result.plot_residuals(width=6.5)

# %%
# odefit says so by itself, with the probability of such a pattern in pure noise.

print(result.goodness.sentence)
assert "pattern" in result.goodness.sentence

# %%
# **What may be said.** These five constants are the best there are within the box, and that is
# proved. The scheme of reactions misses something of ``y3`` and ``y4``, so the intervals above,
# which assume a right model, are narrower than our knowledge.
