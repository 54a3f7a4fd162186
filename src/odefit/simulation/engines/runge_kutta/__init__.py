"""The explicit engine: a Runge-Kutta method of order 8 on states and sensitivities.

Like the stiff engine it reads a model from arrays, so that no model is compiled. The stages of the
states do not depend on sensitivities. They are computed first, and then the derivatives at all
stages at once, with each instruction working on a row of stages.
"""
