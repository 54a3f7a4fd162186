"""
Bounds of a proof
=================

A certificate closing: the lower bound of branch and bound rises to the objective of the answer.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
rates = dict.fromkeys(problem.model.parameters, (1e-06, 0.001))
result = odefit.fit(problem, odefit.BranchAndBound(bounds=rates, gap=0.05), seed=1)
result.plot_bounds()
