"""Designs of experiments: the measurements that would determine the unknowns."""
