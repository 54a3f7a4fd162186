"""The quality of a fit: does noise explain the residuals? Search, status and report ask this."""
