"""
Waterfall of the starts
=======================

The objectives at which the starts ended, the best first: steps are local optima.
"""

import odefit

problem = odefit.library.load("fitzhugh-nagumo")
result = odefit.fit(problem, odefit.MultiStart(starts=15), seed=1)
result.plot_starts()
