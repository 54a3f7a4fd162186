"""The fit of a problem: its checks, its search, and the stages after it."""
