"""Building a problem from its parts, with all checks."""
