"""
Fit with bands
==============

The confidence band of the curve (dark), and the band in which new measurements are to be
expected (light), here by linearisation.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.plot_fit(observables=["y3", "y4", "y5"], band="linear")
