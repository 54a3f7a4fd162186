"""The file that leads a browser to the page goes with it, and with a program that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.explorer import doorway
from tests.common.temporary import LINUX, place

__all__ = ["place"]

URL = "http://127.0.0.1:4000/?token=secret"

KILLED = """
import sys, os, signal
from odefit.explorer.doorway import doorway
with doorway("http://127.0.0.1:4000/?token=secret") as door:
    print(door.folder, flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
    sys.stdin.read()
"""


def test_a_doorway_leads_to_the_address_and_no_other_user_can_read_it(place: Path) -> None:
    with doorway.doorway(URL) as door:
        assert URL in door.file.read_text(encoding="utf-8")
        if sys.platform != "win32":
            assert door.folder.stat().st_mode & 0o077 == 0
        door.remove()
        assert not list(place.iterdir())
    assert not list(place.iterdir())


@LINUX
def test_the_next_doorway_removes_the_folder_of_a_killed_process(place: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", KILLED, str(int(signal.SIGKILL))],
        capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(place)},
    )  # fmt: skip
    assert process.returncode == -signal.SIGKILL, process.stderr
    left = Path(process.stdout.strip())
    assert (left / "explore.html").exists()
    with doorway.doorway(URL) as door:
        assert list(place.iterdir()) == [door.folder]


@pytest.mark.slow
@LINUX
def test_a_page_without_a_browser_or_after_its_opening_leaves_nothing_when_it_is_killed(
    place: Path,
) -> None:
    import odefit

    problem = str(odefit.library.path("harmonic"))
    environment = {**os.environ, "TMPDIR": str(place), "BROWSER": "true"}
    for options in (["--no-browser"], []):
        process = subprocess.Popen(
            [sys.executable, "-m", "odefit", "explore", problem, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if options:
            assert not list(place.glob("odefit-*"))
        else:
            _visit(url)
            for _ in range(600):  # the command looks at it five times a second
                if not list(place.glob("odefit-*")):
                    break
                process.poll()
                _pause()
            assert not list(place.glob("odefit-*"))
        process.kill()
        process.communicate()
        assert not list(place.glob("odefit-*"))


def _visit(url: str) -> None:
    import httpx

    assert httpx.get(url).status_code == 200


def _pause() -> None:
    import threading

    threading.Event().wait(0.05)
