"""
In a column of a journal
========================

``width="single"`` is a column of most journals (89 mm), ``"double"`` their page (183 mm); a text
such as ``"8.5 cm"`` or a number of inches is any other width. Panels move below each other where
there is no room beside, and letters have 6 to 8 points: print the figure at its own size, and
scale nothing.

``figure.savefig("fit.pdf")`` and ``"fit.svg"`` write vectors, PDF with embedded fonts (TrueType),
SVG with letters that an editor can change. Where a journal asks for pixels, ``"fit.tif"`` or
``"fit.png"`` have 300 to an inch; ``dpi=600`` gives more. The colours are those of Okabe and Ito,
which the colour-blind tell apart; where lines are compared in print without colours, model and
measurements still differ, as a line and points.
"""

import odefit

problem = odefit.library.load("alpha-pinene")
result = odefit.fit(problem, seed=1)
figure = result.plot_fit(width="single")
figure
