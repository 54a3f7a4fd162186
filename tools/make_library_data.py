"""Write the synthetic data of the problem library, or check the existing files.

    python tools/make_library_data.py            # writes every synthetic CSV file
    python tools/make_library_data.py --check    # compares instead; exit status 1 on a difference
    python tools/make_library_data.py --check bbg hiv-f

The files are noiseless trajectories at the true values, correctly rounded to 12 significant digits,
and are equal byte for byte on every machine. Three families of data were given and are not
regenerated; `--check` holds them against the hand-written models instead:

- alpha-pinene: Fuguitt and Hawkins' measurements (sum of squares at the reference optimum);
- rational-*: the data sets of the algebraic paper (to 1e-9 of the simulated truth);
- hiv-proteinase: a noisy synthetic replicate (sum of squares at the generating values).

Needs mpmath, numpy and scipy; reads the library's `reference.toml` files for true values, and
never its `problem.toml` files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from library_data.given import check_given
from library_data.series import all_series

PROBLEMS = Path(__file__).resolve().parents[1] / "src" / "odefit" / "library" / "problems"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="problems (all without any)")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    wanted = set(options.names)
    unknown = (
        wanted - {path.name for path in PROBLEMS.iterdir()} - {s.problem for s in all_series()}
    )
    if unknown:
        parser.error(f"no such problem: {', '.join(sorted(unknown))}")

    complaints: list[str] = []
    done = 0
    for series in all_series():
        if wanted and series.problem not in wanted:
            continue
        path = PROBLEMS / series.problem / series.file
        text = series.text()
        done += 1
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists():
            complaints.append(f"{series.problem}/{series.file}: missing")
        elif path.read_bytes() != text.encode("utf-8"):
            complaints.append(f"{series.problem}/{series.file}: differs from the simulation")
    if options.check:
        checked, found = check_given(PROBLEMS, wanted)
        done += checked
        complaints += found

    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{done} files {'checked' if options.check else 'written'}, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
