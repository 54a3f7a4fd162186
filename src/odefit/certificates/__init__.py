"""Certificates in files: the leaves of a search over boxes, which others can check."""
