"""The site of the documentation shows the whole public interface."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import odefit

DOCS = Path(__file__).parents[1] / "docs"


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: odefit\.(\w+)$", pages, re.MULTILINE))
    missing = set(odefit.__all__) - {"library"} - documented
    assert not missing, f"write '.. autofunction:: odefit.NAME' in docs/api/: {sorted(missing)}"


def test_the_reference_describes_nothing_twice() -> None:
    pages = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))
    described = Counter(re.findall(r"^\.\. auto\w+:: (\S+)$", pages, re.MULTILINE))
    assert not [name for name, times in described.items() if times > 1]
