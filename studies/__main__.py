"""``python -m studies``: list the campaigns, and run one of them."""

import sys

from studies.command_line import main

if __name__ == "__main__":
    sys.exit(main())
