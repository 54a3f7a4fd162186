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


UNRELEASED = "head\n\n## [Unreleased]\n\n### Added\n\n- b\n\n### Fixed\n\n- c\n"
OLD = "\n## [1.2.2] - 2025-01-01\n\n### Added\n\n- z\n"


def test_a_release_gives_unreleased_entries_to_the_section_of_its_version() -> None:
    text = f"{UNRELEASED}\n## [1.2.3] - 2026-01-01\n\nwords\n\n### Added\n\n- a\n{OLD}"
    assert release.released(text, "1.2.3", "2026-01-31") == (
        "head\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\nwords\n\n"
        f"### Added\n\n- b\n- a\n\n### Fixed\n\n- c\n{OLD}"
    )


def test_a_release_of_a_new_version_begins_its_section() -> None:
    text = release.released(f"{UNRELEASED}{OLD}", "1.2.3", "2026-01-31")
    assert text == (
        "head\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n"
        f"### Added\n\n- b\n\n### Fixed\n\n- c\n{OLD}"
    )
    citation = release.cited("version: 1.2.2\ndate-released: 2025-01-01\n", "1.2.3", "2026-01-31")
    assert release.disagreements("1.2.3", citation, text) == []


def test_no_entry_of_the_changelog_is_lost_by_a_release() -> None:
    text = release.CHANGELOG.read_text(encoding="utf-8")
    found = release.released(text, release.version(), "2099-01-31")
    assert sorted(e for e in found.splitlines() if e.startswith("- ")) == sorted(
        e for e in text.splitlines() if e.startswith("- ")
    )
    assert f"## [Unreleased]\n\n## [{release.version()}] - 2099-01-31\n" in found


def test_an_entry_of_the_changelog_is_one_line_of_at_most_250_characters() -> None:
    lines = release.CHANGELOG.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("  ")] == []
    assert [line for line in lines if line.startswith("- ") and len(line) > 250] == []


def test_the_first_command_of_the_readme_names_the_problem_that_is_replaced() -> None:
    assert release.PROBLEM in (ROOT / "README.md").read_text(encoding="utf-8")
