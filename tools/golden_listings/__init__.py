"""Listings of what users and their programs rely on, as plain values kept in tests/golden.

``problems`` says what problem files mean, ``command_line`` which options there are,
``python_names`` how the public names are called, ``result_schema`` what a result file holds, and
``stored_results`` makes the result files that later versions have to read. ``differences`` tells
two listings apart.
"""
