"""Build the wheel and the source archive, check them, and use each like a user.

    python tools/release.py [--date 2026-11-30] [--out dist]

The version has to be the same in pyproject.toml, CITATION.cff and the changelog, with one date.
With ``--date`` the latter two are written first: what the changelog has under "Unreleased" becomes
part of the section of this version.

Both files are built and checked by `build` and `twine`, in a separate environment. Then each is
installed in a fresh environment, outside the checkout, where the first command of the README has to
fit alpha-pinene. The installed package gives the path of the problem.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import venv
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
CITATION, CHANGELOG = ROOT / "CITATION.cff", ROOT / "CHANGELOG.md"
OBJECTIVE = 19.872167
"""The least sum of squares of alpha-pinene (docs/benchmarks/global.md)."""

PROBLEM = "src/odefit/library/problems/alpha-pinene/problem.toml"


def version() -> str:
    """Return the version of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def disagreements(wanted: str, citation: str, changelog: str) -> list[str]:
    """Return a sentence for each disagreement of citation file and changelog with a version."""
    found = []
    dated = re.search(rf"^## \[{re.escape(wanted)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.M)
    if dated is None:
        found.append(f"CHANGELOG.md: write a section '## [{wanted}] - YYYY-MM-DD'")
    day = dated[1] if dated else "YYYY-MM-DD"
    lines = (f"version: {wanted}", f"date-released: {day}")
    found += [f"CITATION.cff: write '{n}'" for n in lines if n not in citation.splitlines()]
    return found


def released(changelog: str, wanted: str, day: str) -> str:
    """Return the changelog in which the section of a version has all that is unreleased."""
    before, mark, rest = changelog.partition("## [Unreleased]\n")
    fresh, *sections = re.split(r"^(?=## )", rest, flags=re.M)
    if not sections or not sections[0].startswith(f"## [{wanted}]"):
        sections.insert(0, f"## [{wanted}]\n\n")
    _, _, body = sections[0].partition("\n")
    for part in re.split(r"^(?=### )", fresh, flags=re.M)[1:]:
        title, _, entries = part.partition("\n")
        if f"{title}\n\n" not in body:
            body = f"{body.rstrip()}\n\n{title}\n\n"
        above, _, below = body.partition(f"{title}\n\n")
        gap = "" if below.startswith("- ") else "\n"
        body = f"{above}{title}\n\n{entries.strip()}\n{gap}{below}"
    sections[0] = f"## [{wanted}] - {day}\n\n{body.strip()}\n\n"
    return f"{before}{mark}\n{''.join(sections).rstrip()}\n"


def cited(citation: str, wanted: str, day: str) -> str:
    """Return the citation file with that version and date."""
    citation = re.sub(r"^version: .*$", f"version: {wanted}", citation, flags=re.M)
    return re.sub(r"^date-released: .*$", f"date-released: {day}", citation, flags=re.M)


def environment(folder: Path) -> Path:
    """Make an environment, and return its Python."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the checkout's environment, and return its output."""
    left_out = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environ = {k: v for k, v in os.environ.items() if k not in left_out}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environ, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"status {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def used(file: Path, command: str, work: Path) -> None:
    """Install a file in a fresh environment, and run the README's command there."""
    place = work / file.name.replace(".", "-")
    place.mkdir()
    python = environment(place / "env")
    run(python, "-m", "pip", "install", "--quiet", file, cwd=place)
    told = "import odefit; print(odefit.library.path('alpha-pinene'))"
    path = run(python, "-c", told, cwd=place).strip()
    assert str(place) in path, path
    words = shlex.split(command.split("&&")[-1].replace(PROBLEM, path))
    run(python.parent / words[0], *words[1:], cwd=place)
    found = json.loads((place / "result.json").read_text(encoding="utf-8"))
    assert abs(found["objective"] - OBJECTIVE) < 1e-5, found["objective"]
    assert (place / "report.html").stat().st_size > 10_000
    print(f"{file.name}: installed, and '{' '.join(words)}' is right", flush=True)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--date", type=date.fromisoformat, metavar="DATE", help="release then")
    given = parser.parse_args()
    out = given.out.resolve()
    if given.date:
        for path, dated in ((CITATION, cited), (CHANGELOG, released)):
            text = path.read_text(encoding="utf-8")
            path.write_text(dated(text, version(), given.date.isoformat()), encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in (CITATION, CHANGELOG)]
    if wrong := disagreements(version(), *texts):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    command = subprocess.run(
        [sys.executable, ROOT / ".ci" / "readme.py", "command", "fit"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        python = environment(work / "tools")
        run(python, "-m", "pip", "install", "--quiet", "build", "twine", cwd=work)
        run(python, "-m", "build", "--outdir", out, ROOT, cwd=work)
        files = sorted(out.glob(f"odefit-{version()}*"))
        print(run(python, "-m", "twine", "check", "--strict", *files, cwd=work), end="")
        for file in files:
            print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB", flush=True)
            used(file, command, work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
