"""Notations that keep models short: arrays, functions of the user, reactions.

They are expanded into plain equations while a problem is made, so that methods never see them.
"""
