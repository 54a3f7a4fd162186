"""The line that shows how far a fit is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from odefit.methods.running.control import Progress
from odefit.reporting.progress import TerminalProgress


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(0, 0, float("inf"), 0, "preparing"), "0 starts, preparing, # s"),
        (
            Progress(7, 2, 1.25, 1, "multiple shooting"),
            "7 starts, multiple shooting, 2 failed, lowest objective 1.25, reached 1 time, # s",
        ),
        (
            Progress(5, 0, 0.5, 0, "improving the best answer"),
            "5 starts, improving the best answer, lowest objective 0.5, # s",
        ),
        (
            Progress(1, 0, 0.5, 3, "single shooting"),
            "1 start, single shooting, lowest objective 0.5, reached 3 times, # s",
        ),
    ],
)
def test_the_route_is_named(progress: Progress, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def update(_: Any, text: str) -> None:
        shown.append(text)

    monkeypatch.setattr("rich.status.Status.update", update)
    TerminalProgress()(progress)
    assert re.sub(r"\d+ s$", "# s", shown[-1]) == line
