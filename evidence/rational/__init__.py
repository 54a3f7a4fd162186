"""The benchmark of Bassik et al. of the algebraic method."""
