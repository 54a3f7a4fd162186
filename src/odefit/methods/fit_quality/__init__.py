"""The quality of a fit: the tests of residuals against noise."""
