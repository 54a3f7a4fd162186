"""Equations as tapes, and the power series of their solutions over several fields."""
