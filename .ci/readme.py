"""Print the README's commands for .ci/run, and check or renew the output shown in docs.

readme.py command NAME   prints the command block marked <!-- ci: NAME -->
readme.py check FILE     fails if the output in docs/reading-a-result.md differs from FILE's in
                         more than numbers' last digits and durations
readme.py paste FILE     puts FILE into that page in place of the output shown there
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SHOWN = ROOT / "docs" / "reading-a-result.md"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
DURATION = re.compile(r"\d[\d.]*\s*(?:ms|s|seconds?|min)\b")
RULE = re.compile("─+")
TOLERANCE = 1e-2


def block(marker: str, text: str) -> re.Match[str]:
    """Return the only fenced block that follows `marker` in `text`."""
    pattern = re.compile(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", re.DOTALL)
    found = list(pattern.finditer(text))
    if len(found) != 1:
        raise SystemExit(f"expected one block marked '{marker}', found {len(found)}")
    return found[0]


def differences(shown: str, real: str) -> list[str]:
    """Return the lines of `shown` that `real` lacks, apart from durations, widths and rounding."""
    pairs = [
        [line.split() for line in RULE.sub("─", text).splitlines() if line.strip()]
        for text in (DURATION.sub("DURATION", shown), DURATION.sub("DURATION", real))
    ]
    if len(pairs[0]) != len(pairs[1]):
        return [f"{len(pairs[0])} lines are shown, there are {len(pairs[1])}"]
    return [
        f"shown: {' '.join(old)}\nnow:   {' '.join(new)}"
        for old, new in zip(*pairs, strict=True)
        if len(old) != len(new) or not all(map(same, old, new))
    ]


def same(old: str, new: str) -> bool:
    """Return whether two words agree, numbers in them to within `TOLERANCE`."""
    numbers = [[float(n) for n in NUMBER.findall(word)] for word in (old, new)]
    return NUMBER.sub("#", old) == NUMBER.sub("#", new) and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12) for a, b in zip(*numbers, strict=True)
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("command", "check", "paste"))
    parser.add_argument("what", help="name of a command block, or a file with the real output")
    arguments = parser.parse_args()
    if arguments.verb == "command":
        text = README.read_text(encoding="utf-8")
        print(block(f"ci: {arguments.what}", text)[1].strip())
        return 0
    text = SHOWN.read_text(encoding="utf-8")
    shown = block("output: alpha-pinene", text)
    real = "".join(
        f"{line.rstrip()}\n"
        for line in Path(arguments.what).read_text(encoding="utf-8").strip("\n").splitlines()
    )
    if arguments.verb == "paste":
        SHOWN.write_text(text[: shown.start(1)] + real + text[shown.end(1) :], encoding="utf-8")
        return 0
    stale = differences(shown[1], real)
    print(*stale, sep="\n", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
