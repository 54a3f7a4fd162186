"""Listings of what users and their programs rely on, as plain values kept in tests/golden.

``problems`` lists the meaning of problem files, ``command_line`` the options, ``python_names`` the
signatures of public names, ``result_schema`` the content of result files. ``stored_results`` makes
the result files that later versions have to read; ``differences`` compares two listings.
"""
