"""The install commands of README and docs are found, and each has what shows that it works."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci/install_commands.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install_commands", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["install_commands"] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(script: ModuleType) -> dict[str, Any]:
    texts = ((p.name, p.read_text(encoding="utf-8")) for p in script.pages())
    return dict(script.commands(texts))


def extras() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def test_commands_of_blocks_and_of_sentences_are_found(script: ModuleType) -> None:
    page = """
With `pip install "odefit[units]"` units are checked, and `odefit[petab]` reads SBML.

```console
python -m pip install .             # from a copy
$ pip install -e '.[bench]' && python run.py
```

```sh
pip install --no-deps .
pip install numpy odefit-else
```

`pip install --no-compile` saves room. Nothing is said of `pip list`.
"""
    found = script.commands([("page.md", page)])
    lines = {name: command.lines for name, command in found.items()}
    assert lines == {
        "plain": ("python -m pip install .",),
        "bench": ("pip install -e '.[bench]'",),
        "plain no-deps": ("pip install --no-deps .", "pip install numpy odefit-else"),
        "units": ('pip install ".[units]"',),
        "plain no-compile": ("pip install --no-compile .",),
        "petab": ('pip install ".[petab]"',),
    }
    assert found["bench"].then == ["python run.py"]


def test_every_page_is_searched_and_every_extra_is_installed_by_some_command(
    script: ModuleType, found: dict[str, Any]
) -> None:
    count = sum(path.read_text(encoding="utf-8").count("pip install") for path in script.pages())
    texts = ((p.name, p.read_text(encoding="utf-8")) for p in script.pages())
    lines = [line for page, text in texts for line in script.shown(text)]
    assert sum(line.count("pip install") for line in lines) >= count
    assert {e for command in found.values() for e in command.extras} == extras()


def test_every_extra_has_a_proof(script: ModuleType, found: dict[str, Any]) -> None:
    assert set(script.PROOFS) == {"plain", *extras()}
    for command in found.values():
        compile(command.proof, command.name, "exec")


def test_the_documentation_is_built_after_its_own_command_alone(found: dict[str, Any]) -> None:
    assert found["docs"].lines == ('python -m pip install ".[docs]"',)
    assert found["docs"].then == ["python -m sphinx docs site"]
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "python .ci/install_commands.py run docs\n" in run
    assert "sphinx" not in run


def test_all_install_commands_are_run_every_week() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "schedule:" in text
    assert "run: python .ci/install_commands.py run\n" in text


@pytest.mark.slow
def test_a_command_that_fails_is_reported(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = script.Command("none", ("echo there is nothing to install >&2; exit 3",))
    assert not script.run(command, tmp_path)
    printed = capsys.readouterr().out
    assert "there is nothing to install" in printed
    assert "FAILED with status 3" in printed
