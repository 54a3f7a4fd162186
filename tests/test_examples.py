"""The worked studies and the gallery run, and what they state is true.

The documentation runs them as well when it is built; here each is a test of its own, beside the
other slow ones.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(
    str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.py") if path.is_file()
)


def test_there_are_six_studies_with_statements_that_are_checked() -> None:
    studies = sorted((EXAMPLES / "studies").glob("*.py"))
    assert len(studies) == 6
    for path in studies:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""\n'), path.name  # the title
        assert len(re.findall(r"^ *assert ", text, re.MULTILINE)) >= 2, path.name
        assert ".profile(" in text, path.name
        assert "**What may be said.**" in text, path.name


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs_and_its_statements_hold(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib.pyplot as plt

    path = EXAMPLES / script
    monkeypatch.chdir(path.parent)  # as sphinx-gallery does
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns of a table that are not used
        exec(code, {"__name__": "__main__"})
    plt.close("all")
