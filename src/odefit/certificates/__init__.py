"""Certificates in files: the leaves of a search over boxes, for independent checks."""
