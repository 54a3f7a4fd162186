"""The oldest version of every dependency: the lower bounds of pyproject.toml, for pip.

oldest.py write   renews oldest.txt
oldest.py check   fails if oldest.txt disagrees with pyproject.toml

With `python -m pip install --constraint .ci/oldest.txt ".[test]"` an environment has exactly these;
otherwise pip takes the newest versions. So both ends of every range are tested.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
FILE = HERE / "oldest.txt"
PYPROJECT = HERE.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=(?P<version>[0-9.]+)")
TOOLS = ("dev", "docs", "bench")
"""Extras that neither users nor tests need: checkers, the documentation, other programs."""

INDIRECT = {
    "pyparsing<3.3": "Later ones warn of what matplotlib 3.9 calls, and warnings fail tests.",
}
"""Indirect dependencies whose newest versions the oldest versions do not support, with the
reason."""

HEAD = """\
# The oldest versions with which odefit is tested: the lower bounds of all that it or its tests
# need. `python .ci/oldest.py write` copies them from pyproject.toml.
"""


def bounds(pyproject: str) -> dict[str, str]:
    """Return the lower bounds in the text of a pyproject.toml, by package.

    Raises
    ------
    SystemExit
        A requirement has no lower bound, or a package has two different ones.
    """
    project = tomllib.loads(pyproject)["project"]
    requirements = list(project["dependencies"])
    for name, extra in project["optional-dependencies"].items():
        requirements += () if name in TOOLS else extra
    found: dict[str, str] = {}
    for requirement in requirements:
        if requirement.startswith(f"{project['name']}["):
            continue  # an extra of odefit itself
        match = REQUIREMENT.match(requirement)
        if match is None:
            raise SystemExit(f"pyproject.toml: '{requirement}' has no lower bound; write NAME>=1.2")
        name, version = match["name"].lower(), match["version"]
        if found.setdefault(name, version) != version:
            raise SystemExit(f"pyproject.toml: {name} has two bounds, {found[name]} and {version}")
    return found


def constraints(pyproject: str) -> str:
    """Return the text of oldest.txt."""
    lines = [f"{name}=={version}\n" for name, version in sorted(bounds(pyproject).items())]
    lines += [f"# {reason}\n{wanted}\n" for wanted, reason in INDIRECT.items()]
    return HEAD + "".join(lines)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("write", "check"))
    verb = parser.parse_args().verb
    wanted = constraints(PYPROJECT.read_text(encoding="utf-8"))
    if verb == "write":
        FILE.write_text(wanted, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") != wanted:
        print(
            "oldest.txt is not what pyproject.toml says: python .ci/oldest.py write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
