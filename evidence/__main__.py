"""``python -m evidence``: list the campaigns, and run one of them."""

import sys

from evidence.command_line import main

if __name__ == "__main__":
    sys.exit(main())
