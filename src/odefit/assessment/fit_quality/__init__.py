"""The quality of a fit: whether noise explains the residuals, and what speaks against that."""
