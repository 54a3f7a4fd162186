"""The distributions of measurement noise: one module each, and the registry of names."""
