"""
Correlation
===========

Which estimates the data determine only together: dark cells off the diagonal.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.plot_correlation()
