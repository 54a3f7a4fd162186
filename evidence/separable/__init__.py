"""The study of Dattner et al. of separable least squares."""
