"""The recorded contract with users: renew it, or list the changes.

    python tools/golden.py check               # what differs from what is written down
    python tools/golden.py write               # writes down what was added, but no break
    python tools/golden.py write --breaking    # that too: see "Stability" in CONTRIBUTING.md
    python tools/golden.py store               # adds results of this version, for later ones

The listings are tests/golden/*.json and the schema of result files in docs/_static. Stored results
are never renewed, only added: they represent the files of users.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from golden_listings import command_line, problems, python_names, result_schema
from golden_listings.differences import Difference, differences

GOLDEN = Path(__file__).parents[1] / "tests/golden"

LISTINGS: Mapping[Path, Callable[[], dict[str, Any]]] = {
    GOLDEN / "problems.json": problems.listing,
    GOLDEN / "command_line.json": command_line.listing,
    GOLDEN / "python_names.json": python_names.listing,
    result_schema.FILE: result_schema.schema,
}
"""The listings, by their files."""

REMEDY = """\
What is added: python tools/golden.py write, and a line in CHANGELOG.md.
What breaks: see "Stability" in CONTRIBUTING.md before python tools/golden.py write --breaking."""


def written(path: Path) -> Any:
    """Return the recorded listing in a file; empty if there is no file yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def text(listing: Mapping[str, Any]) -> str:
    """Return a listing as text, with each short entry on one line, so that diffs are readable."""
    return _text(listing) + "\n"


def _text(value: Any, indent: str = "") -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 110 or not isinstance(value, dict | list) or not value:
        return line
    inner = f"{indent} "
    if isinstance(value, dict):
        parts = [
            f"{inner}{json.dumps(k, ensure_ascii=False)}: {_text(v, inner)}"
            for k, v in value.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_text(v, inner)}" for v in value) + f"\n{indent}]"


def changes(path: Path) -> list[Difference]:
    """Return the differences between the recorded and the present listing of a file.

    Descriptions in the schema are sentences of docstrings, which may be reworded at any time.
    """
    old, new = written(path), LISTINGS[path]()
    if path == result_schema.FILE:
        old, new = result_schema.without_words(old), result_schema.without_words(new)
    return list(differences(old, new))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("verb", choices=("check", "write", "store"))
    parser.add_argument("--breaking", action="store_true", help="write down what breaks, too")
    options = parser.parse_args()
    if options.verb == "store":
        from golden_listings import stored_results

        for path in stored_results.store():
            print(f"added: {path.name}")
        return 0
    found = {path: changes(path) for path in LISTINGS}
    for path, listed in found.items():
        for difference in listed:
            print(f"{path.name}  {difference}")
    breaks = any(d.breaking for listed in found.values() for d in listed)
    if options.verb == "check" or (breaks and not options.breaking):
        if any(found.values()):
            print(REMEDY, file=sys.stderr)
        return int(any(found.values()))
    for path, listing in LISTINGS.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(listing()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
