"""Examples after Carbonell et al. of multiple shooting, and Lorenz over many Lyapunov times."""
