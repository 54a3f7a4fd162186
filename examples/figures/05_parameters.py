"""
Estimates and their intervals
=============================

Confidence intervals in per cent of the estimates, so that parameters of any size share an axis.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.plot_parameters()
