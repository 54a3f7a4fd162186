"""Local optimisation of sums of squares and likelihoods."""
