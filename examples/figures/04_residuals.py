"""
Residuals
=========

Measured minus modelled. Points that run in a pattern tell what the model misses.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.plot_residuals()
