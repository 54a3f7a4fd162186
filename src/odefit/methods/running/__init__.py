"""The running of searches: their limits, processes, checkpoints and logs."""
