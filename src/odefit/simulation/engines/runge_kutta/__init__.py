"""The explicit engine: a Runge-Kutta method of order 8 on states and sensitivities.

It reads a model as the stiff engine does, from arrays, so that nothing is compiled for a model.
The stages of the states do not depend on sensitivities: they are computed first, and then the
derivatives at all stages at once, where each instruction works on a row of stages.
"""
