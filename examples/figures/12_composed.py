"""
Beside figures of your own
==========================

Every figure draws into a part of yours: ``figure=`` takes a ``Figure`` or ``SubFigure`` of
matplotlib, ``ax=`` takes axes where there is one panel.
"""

import matplotlib.pyplot as plt

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
figure = plt.figure(figsize=(7.2, 2.6), layout="constrained")
left, right = figure.subfigures(1, 2)
result.plot_fit(observables=["y3"], ax=left.subplots())
result.plot_parameters(figure=right)
figure
