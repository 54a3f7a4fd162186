"""The quality of a fit: does noise explain the residuals? Asked by search, status and report."""
