"""The values of the unknowns that have the same outputs: their number, and which they are."""
