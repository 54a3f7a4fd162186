"""Expressions: their grammar, their parser, and their values over any algebra."""
