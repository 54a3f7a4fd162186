"""Events at known times, and those that a condition on the states triggers."""
