"""The version is the same wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import release

ROOT = Path(__file__).parents[2]
CITATION = "title: x\nversion: 1.2.3\ndate-released: 2026-01-31\n"
CHANGELOG = "## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n"


def test_version_and_date_are_those_of_citation_and_changelog() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")]
    assert release.disagreements(release.version(), *texts) == []


@pytest.mark.parametrize(
    ("version", "citation", "changelog", "told"),
    [
        ("1.2.3", CITATION, CHANGELOG, []),
        ("1.2.4", CITATION, CHANGELOG, ["CHANGELOG", "version", "date"]),
        ("1.2.3", "version: 1.2.3\n", CHANGELOG, ["date-released: 2026-01-31"]),
        ("1.2.3", CITATION, "## [1.2.3] - unreleased\n", ["a section", "date"]),
    ],
)
def test_disagreeing_versions_are_reported(
    version: str, citation: str, changelog: str, told: list[str]
) -> None:
    found = release.disagreements(version, citation, changelog)
    assert len(found) == len(told)
    assert all(word in text for word, text in zip(told, found, strict=True))


def test_the_first_command_of_the_readme_names_the_problem_that_is_replaced() -> None:
    assert release.PROBLEM in (ROOT / "README.md").read_text(encoding="utf-8")
