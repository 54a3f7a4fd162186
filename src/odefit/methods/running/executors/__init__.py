"""Independent work over executors: batches, what workers keep, workers that die, clusters."""
