"""A browser shows the report: on a phone without horizontal scrolling, on paper, in the dark."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from odefit.reporting.documents.html import report_html
from odefit.result.result import Result
from tests.reporting import examples

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here; Debian: apt-get install chromium"
)

RESULTS: dict[str, Callable[[], Result]] = {
    "alpha-pinene": examples.alpha_pinene,
    "troubled": examples.troubled,
    "failed": examples.failed,
    "twenty experiments": lambda: examples.many(20, 1),
}

MEASURE = """<!DOCTYPE html><html><body style="margin:0">
<iframe src="report.html" style="width:{width}px;height:800px;border:0"></iframe>
<script>
document.querySelector("iframe").onload = function () {{
  const page = this.contentDocument, root = page.documentElement;
  const clipped = [...page.querySelectorAll("p, li, h1, h2, h3, dd, figcaption")]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40));
  document.body.dataset.measured =
    [root.scrollWidth, root.clientWidth, page.querySelectorAll("svg").length, clipped].join("|");
}};
</script></body></html>"""


def chromium(profile: Path, *arguments: str) -> str:
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--allow-file-access-from-files", "--virtual-time-budget=10000",
        f"--user-data-dir={profile}", *arguments,
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return run.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("troubled", 320),  # the longest words on the narrowest screen
        *((name, 390) for name in RESULTS),
        ("troubled", 1200),
    ],
)
def test_the_page_does_not_scroll_sideways(name: str, width: int, tmp_path: Path) -> None:
    result = RESULTS[name]()
    (tmp_path / "report.html").write_text(report_html(result), encoding="utf-8")
    outer = tmp_path / "outer.html"
    outer.write_text(MEASURE.format(width=width), encoding="utf-8")
    page = chromium(tmp_path / "profile", "--dump-dom", outer.as_uri())
    found = re.search(r'data-measured="(\d+)\|(\d+)\|(\d+)\|([^"]*)"', page)
    assert found is not None
    wide, shown, drawings, clipped = found.groups()
    assert int(wide) <= int(shown) <= width
    assert int(drawings) > 0
    assert clipped == ""


@pytest.mark.slow
def test_the_report_prints(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text(report_html(examples.alpha_pinene()), encoding="utf-8")
    paper = tmp_path / "report.pdf"
    chromium(tmp_path / "profile", f"--print-to-pdf={paper}", report.as_uri())
    content = paper.read_bytes()
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 10
