"""Equations typeset as text, MathML and LaTeX."""
