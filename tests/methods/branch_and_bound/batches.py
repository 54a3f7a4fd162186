"""Searches that end after a number of batches: what is tested depends on no clock."""

from __future__ import annotations

from odefit.methods.running.control import Control, Progress


def stopped_after(batches: int, seed: int = 1) -> Control:
    """Return the control of a search that is interrupted after so many batches of nodes."""
    seen: list[str] = []

    def report(progress: Progress) -> None:
        if "boxes" in progress.message and not progress.message.startswith("0 boxes"):
            seen.append(progress.message)
        if len(seen) >= batches:
            control.interrupted.set()

    control = Control(seed, report=report)
    return control
