"""Fits of the library by the default method."""
