"""
Profile likelihoods
===================

The deviance along each unknown, all others fitted again. The dashed line is the limit, vertical
lines are the ends of the interval, and the dotted parabola is what linearisation expects.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
result.profile().plot()
