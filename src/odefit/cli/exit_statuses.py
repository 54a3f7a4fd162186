"""The exit statuses of the command line."""

DONE, UNUSABLE, NO_FIT, TIME_LIMIT = 0, 2, 3, 4
HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143  # 128 and the number of the signal
