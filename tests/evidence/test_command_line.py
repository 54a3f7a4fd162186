"""The command line of the evidence: a list, and refusals with a remedy."""

from __future__ import annotations

import pytest

from evidence.command_line import main


def test_campaigns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("alpha-pinene ") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run nothing", "there is no evidence 'nothing'"),
        ("run library --limit 0", "--limit: expected a positive number"),
        ("run recovery --set noise", "--set: expected NAME=VALUE"),
    ],
)
def test_a_mistake_is_status_two_with_a_remedy(
    capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err


def test_an_action_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "ACTION" in capsys.readouterr().err
