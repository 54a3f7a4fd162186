"""Problems derived from a problem, and the sizes that follow from its data."""
