"""Doses and subjects: what records of doses make of experiments."""
