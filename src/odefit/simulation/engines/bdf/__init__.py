"""The stiff engine: numerical differentiation formulas (NDF) with staggered sensitivities.

Each model becomes arrays (straight-line programs for its values, a fixed pattern of elimination)
that compiled kernels read. So no compilation per model is needed, and a step for many directions
needs one factorisation and one solve of a matrix of right-hand sides.
"""
