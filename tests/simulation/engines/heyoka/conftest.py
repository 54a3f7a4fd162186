"""Tests of the Taylor method, which are collected where heyoka is installed."""

from odefit.simulation.engines.registry import import_problem

collect_ignore_glob = ["test_*.py"] if import_problem("heyoka") else []
