"""Exact numbers of solutions: polynomial equations, Groebner bases modulo a prime, counts."""
