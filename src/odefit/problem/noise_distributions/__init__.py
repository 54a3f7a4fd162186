"""The distributions of measurement noise: a module each, and the registry of their names."""
