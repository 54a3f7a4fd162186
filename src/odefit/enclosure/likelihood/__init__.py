"""Terms of a likelihood as squares over boxes: deviance residuals, spreads, and priors."""
