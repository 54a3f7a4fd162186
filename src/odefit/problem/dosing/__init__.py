"""Doses and subjects: experiments made from dose records."""
