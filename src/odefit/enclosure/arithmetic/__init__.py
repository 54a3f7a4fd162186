"""The arithmetic of intervals and of Taylor models."""
