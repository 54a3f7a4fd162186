"""The making of a problem from its parts, and the checks on the way."""
