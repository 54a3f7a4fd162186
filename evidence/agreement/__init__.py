"""Independent routes to the same answer, on random and changed problems."""
