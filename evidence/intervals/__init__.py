"""Coverage of intervals, and profiles beside those of other programs."""
