"""The server as a whole: on a real socket, from a notebook and from the command line."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import odefit
from odefit.cli import main
from odefit.explorer import Explorer, explore

DECAY = """format = 1
name = "decay"
[ode]
x = "-k*x"
[parameters]
k = { lower = 0.0, upper = 10.0, guess = 1.0 }
[initial]
x = 1.0
[[experiment]]
data = { t = [1, 2, 3], x = [0.5, 0.25, 0.12] }
"""


@pytest.fixture
def page() -> Explorer:
    return explore(odefit.library.load("harmonic"))


def test_the_server_answers_on_the_loopback_address_alone(page: Explorer) -> None:
    assert page.url.startswith("http://127.0.0.1:")
    port = int(page.url.split(":")[2].split("/")[0])
    with socket.socket() as other:
        # The same port of another address is free, so that the server does not listen there.
        other.bind(("127.0.0.2", port))
    page.stop()


def test_only_the_address_gives_access(page: Explorer) -> None:
    base, token = page.url.split("/?token=")
    with httpx.Client(base_url=base) as stranger:
        for path in ("/", "/?token=x", "/static/main.js", "/api/problem", "/favicon.ico"):
            assert stranger.get(path).status_code == 403
    with httpx.Client(base_url=base) as owner:
        assert owner.get(f"/?token={token}").status_code == 200
        assert owner.get("/api/problem").json()["name"] == "harmonic"
        values = owner.get("/api/problem").json()["values"]
        question = {"values": values, "experiments": []}
        answer = owner.post("/api/curves", json=question, headers={"origin": base})
        assert answer.json()["objective"] > 0
        wrong = owner.post("/api/curves", content=b"[1", headers={
            "origin": base, "content-type": "application/json",
        })  # fmt: skip
        assert wrong.status_code == 400
        odd = owner.post("/api/curves", json={"values": []}, headers={"origin": base})
        assert (odd.status_code, odd.json()) == (422, {"error": "values: expected a list of 4"})
    page.stop()


def test_a_notebook_shows_a_frame_until_the_end(page: Explorer) -> None:
    shown = page._repr_html_()
    found = re.search(r'src="([^"]+)"', shown)
    assert found is not None
    assert httpx.get(found[1]).status_code == 200
    assert page.values.keys() == set(odefit.library.load("harmonic").keys)
    assert page.fit is None
    page.stop()
    assert not page.running
    assert "no longer served" in page._repr_html_()
    with pytest.raises(httpx.ConnectError):
        httpx.get(found[1])


def test_the_button_of_the_page_ends_the_wait(page: Explorer) -> None:
    base, token = page.url.split("/?token=")
    with httpx.Client(base_url=base) as owner:
        owner.get(f"/?token={token}")
        assert not page.wait(0)
        owner.post("/api/quit", json={}, headers={"origin": base})
    assert page.wait(5)
    page.stop()


def test_a_port_in_use_is_refused(page: Explorer) -> None:
    port = int(page.url.split(":")[2].split("/")[0])
    with pytest.raises(odefit.InputError, match=f"port {port} cannot be used"):
        explore(odefit.library.load("harmonic"), port=port)
    with pytest.raises(odefit.InputError, match="from 0 to 65535"):
        explore(odefit.library.load("harmonic"), port=70000)
    page.stop()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_the_command_prints_the_address_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(DECAY, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "odefit", "explore", str(file), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with httpx.Client() as owner:
            assert owner.get(url).status_code == 200
            assert owner.get(f"{url.split('?')[0]}api/problem").json()["file"] == "decay.toml"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()  # no server is left behind where it has not ended
    assert process.returncode == 0
    assert out == ""
    assert errors == "This address is secret. Ctrl-C ends the page.\nended\n"


def test_the_browser_is_given_a_private_file_and_not_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(DECAY, encoding="utf-8")
    opened = []

    def browser(address: str) -> bool:
        path = Path(address.removeprefix("file://"))
        opened.append((address, path.read_text(encoding="utf-8"), path.parent.stat().st_mode))
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", browser)
    assert main(["explore", str(file)]) == 0
    url = capsys.readouterr().out.strip()
    [(address, text, mode)] = opened
    assert url.partition("token=")[2] not in address
    assert f"url={url}" in text
    assert mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "none.toml"),
        (["decay.toml", "--result", "none.json"], "none.json: there is no such file"),
        (["decay.toml", "--port", "99999"], "--port: expected a number from 0 to 65535"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "decay.toml").write_text(DECAY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["explore", *arguments, "--no-browser"]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_package_is_reported_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(odefit.InputError, match=r"pip install odefit\[explore\]"):
        odefit.explore(odefit.library.load("harmonic"))
