"""Homotopy continuation: paths of solutions, and all solutions by monodromy."""
