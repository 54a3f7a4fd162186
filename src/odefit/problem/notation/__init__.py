"""Notations that make models short to write: arrays, functions of the user, reactions.

All of it is written out as plain equations while a problem is made, so that no method knows of it.
"""
