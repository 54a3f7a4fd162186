"""Problems that are made of a problem, and the sizes that follow from its data."""
