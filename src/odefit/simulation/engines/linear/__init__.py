"""Linear equations: eigenvectors where coefficients are constant, series where inputs act."""
