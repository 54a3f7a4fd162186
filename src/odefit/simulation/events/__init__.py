"""Events at known times, and events triggered by a condition on the states."""
