"""Independent generator of the problem library's synthetic data.

The right-hand sides in `systems` are written by hand from the papers, independently of the
library's `problem.toml` files, so that an error in either place shows as a disagreement.
"""
