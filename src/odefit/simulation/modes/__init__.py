"""Modes: which field of a switching right-hand side is in force, and until when."""
