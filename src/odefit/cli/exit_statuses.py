"""The exit statuses of the command line."""

DONE, UNUSABLE, NO_FIT, TIME_LIMIT, INTERRUPTED, TERMINATED = 0, 2, 3, 4, 130, 143
