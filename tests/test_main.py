"""The program is ready for Ctrl-C before it imports anything of weight."""

from __future__ import annotations

import signal
import subprocess
import sys
import types

import pytest

import odefit.__main__


def test_signals_alone_are_imported_before_the_system_handles_an_interruption() -> None:
    """An interrupted import would print a traceback."""
    code = (
        "import sys\nbefore = set(sys.modules)\nimport odefit.__main__\n"
        "print(*sorted(set(sys.modules) - before - {'_signal'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["__future__", "odefit", "odefit.__main__"]


@pytest.mark.parametrize(
    ("before", "within"),
    [
        (signal.default_int_handler, signal.SIG_DFL),
        (signal.SIG_IGN, signal.SIG_IGN),  # as in a background job of a shell
    ],
)
def test_the_system_handles_an_interruption_until_the_command_line_is_loaded(
    before: signal.Handlers, within: signal.Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def main() -> int:
        seen.append(signal.getsignal(signal.SIGINT))
        return 3

    command_line = types.ModuleType("odefit.cli")
    command_line.main = main  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "odefit.cli", command_line)
    own = signal.signal(signal.SIGINT, before)
    try:
        assert odefit.__main__.program() == 3
    finally:
        signal.signal(signal.SIGINT, own)
    assert seen == [within]
