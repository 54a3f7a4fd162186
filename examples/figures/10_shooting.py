"""
Iterations of multiple shooting
===============================

The first iteration of multiple shooting: every interval begins at the data, rings are the nodes.
"""

import odefit
from odefit.reporting.figures.shooting import plot_shooting

problem = odefit.library.load("henon-heiles")
history = odefit.MultipleShooting(states="data").follow(problem)
plot_shooting(history, iteration=0)
