"""The stiff engine: numerical differentiation formulas (NDF) with staggered sensitivities.

Each model becomes arrays (straight-line programs for its values, a fixed pattern of elimination)
that compiled kernels read. So nothing is compiled for a model, and a step for many directions
costs one factorisation and one solve of a matrix of right-hand sides.
"""
