"""Gradients by the adjoint equations."""
