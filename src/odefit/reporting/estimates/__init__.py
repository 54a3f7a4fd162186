"""The rows of the table of estimates, and their words."""
