"""The values of the unknowns with the same outputs: their number, and the values themselves."""
