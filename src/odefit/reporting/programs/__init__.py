"""Stand-alone programs of a model with its estimates, in Python, C, Julia and MATLAB."""
