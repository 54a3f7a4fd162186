"""States and sensitivities through the segments of one condition."""
