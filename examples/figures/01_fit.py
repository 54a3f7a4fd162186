"""
Fit
===

One panel for each observable of each experiment: measurements and the model.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.plot_fit()
