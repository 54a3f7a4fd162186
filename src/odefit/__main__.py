"""``python -m odefit``."""

from odefit.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
