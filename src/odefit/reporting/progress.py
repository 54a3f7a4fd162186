"""A line on the terminal that shows the progress of a fit."""

from __future__ import annotations

import math
import time
from types import TracebackType

from odefit.common.errors import counted
from odefit.methods.running.control import Progress


class TerminalProgress:
    """A line on standard error that shows the progress of a fit from the first second."""

    def __init__(self, begin: str = "fitting ...") -> None:
        from rich.console import Console
        from rich.status import Status

        self._begin = begin
        self._began = time.perf_counter()
        self._status = Status("reading the problem ...", console=Console(stderr=True))

    def __call__(self, progress: Progress) -> None:
        """Show `progress`."""
        parts = [f"{counted(progress.done, progress.unit)}", progress.message]
        if progress.failed:
            parts.append(f"{progress.failed} failed")
        if math.isfinite(progress.best):
            parts.append(f"lowest {progress.measure} {progress.best:.6g}")
            if progress.hits:
                parts.append(f"reached {counted(progress.hits, 'time')}")
        parts.append(f"{time.perf_counter() - self._began:.0f} s")
        self._status.update(", ".join(parts))

    def __enter__(self) -> TerminalProgress:
        self._status.start()
        self._status.update(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._status.stop()
