"""Published estimates with their data."""
