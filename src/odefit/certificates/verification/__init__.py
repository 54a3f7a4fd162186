"""The verification of certificates in the ball arithmetic of FLINT, separate from the search.

Nothing here imports the enclosures, the solvers or the expressions of the search.
"""
