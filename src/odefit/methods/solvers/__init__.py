"""Local and global solvers of discretised problems, behind one interface."""
