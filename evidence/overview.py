"""The first table of the evidence: odefit beside others, a row for each kind of claim.

Every figure is read from the results files of the pages, so that the table agrees with them. A
separate column lists shortcomings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence import overview_rows as rows
from evidence.overview_rows import Table
from evidence.page import RESULTS, ROOT, read_results
from odefit.common.errors import InputError

PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
BEGINS, ENDS = "<!-- overview -->\n", "<!-- /overview -->"
HEAD = ("question", "odefit", "beside it", "what falls short")


@dataclass(frozen=True)
class Line:
    """A row of the table: cells derived from the tables of a page."""

    question: str
    page: str  # a page of docs/benchmarks/, with an anchor or without
    tables: Sequence[str]
    cells: Callable[..., tuple[str, str, str]]  # odefit, others, shortcomings
    front: bool = False  # in the README, too

    def text(self, folder: str = "benchmarks") -> str:
        """Return the row in Markdown, with a link to its page in that folder.

        Raises InputError if the tables, perhaps of a part of a campaign, lack what the row shows.
        """
        try:
            cells = self.cells(*(read(RESULTS / f"{name}.csv") for name in self.tables))
        except (LookupError, ValueError, ArithmeticError) as error:
            raise InputError(
                f"{self.question}: {' and '.join(self.tables)} lack what the first table of the "
                f"evidence shows ({type(error).__name__}: {error}); make all of the campaign"
            ) from error
        return f"| [{self.question}]({folder}/{self.page}) | {' | '.join(cells)} |"


def read(path: Path) -> Table:
    """Return the rows of a results file, each cell by its title; an empty title is ``""``.

    The second of equal titles ends with ``" 2"``.
    """
    found = read_results(path)
    names: list[str] = []
    for title in found.head:
        names.append(f"{title} 2" if title in names else title)
    return [dict(zip(names, row, strict=True)) for row in found.rows]


def renewed() -> dict[Path, str]:
    """Return the texts of the page and the README with the current table."""
    head = f"\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}\n"
    front = [line.text("docs/benchmarks") for line in LINES if line.front]
    rows_of = {PAGE: [line.text() for line in LINES], README: front}
    found = {}
    for path, lines in rows_of.items():
        table = head + "".join(f"{line}\n" for line in lines) + "\n"
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGINS)
        found[path] = f"{before}{BEGINS}{table}{ENDS}{rest.partition(ENDS)[2]}"
    return found


def stale() -> list[str]:
    """Return the faults of the page and the README, a sentence each."""
    return [
        f"{path.name} is not what its results files say; run 'page'"
        for path, text in renewed().items()
        if text != path.read_text(encoding="utf-8")
    ]


def write() -> None:
    """Write the table into these."""
    for path, text in renewed().items():
        path.write_text(text, encoding="utf-8")


LINES = (
    Line("Small fits, whole", "speed.md#a-whole-fit", ["speed/whole-fit"], rows.whole_fits, True),
    Line("Dense series", "front-door.md", ["front-door/methods"], rows.dense, True),
    Line("Problems of users", "world.md", ["world/zoo"], rows.zoo, True),
    Line(
        "Published estimates",
        "world.md",
        ["world/published", "world/published-failures"],
        rows.published,
        True,
    ),
    Line("Several optima", "world.md", ["world/hills"], rows.hills),
    Line("Other guises", "world.md", ["world/metamorphic"], rows.guises),
    Line("Published models, fits", "petab.md", ["petab/fits"], rows.petab_fits, True),
    Line("Published models, gradients", "petab.md", ["petab/likelihoods"], rows.likelihoods),
    Line("Trajectories", "speed.md", ["speed/trajectory"], rows.trajectories, True),
    Line(
        "Local searches",
        "speed.md#the-local-search",
        ["speed/local-search-all"],
        rows.local_searches,
    ),
    Line(
        "Stiff and larger models", "speed.md#stiff-and-larger-models", ["speed/stiff"], rows.stiff
    ),
    Line("Intervals", "intervals.md", ["intervals/coverage"], rows.coverage, True),
    Line("Profiles", "intervals.md", ["intervals/beside-pypesto"], rows.profiles),
    Line("Designs", "after-the-fit.md", ["after-the-fit/published-designs"], rows.designs),
    Line("Proofs", "global.md", ["global/textbook", "global/alpha-pinene"], rows.proofs, True),
    Line("Direct transcription", "transcription.md", ["transcription/ipopt"], rows.transcription),
    Line("Discretised problems", "transcription.md", ["transcription/beside-pyomo"], rows.pyomo),
    Line("The algebraic method", "algebraic.md", ["algebraic/without-noise"], rows.algebraic),
    Line(
        "Multiple shooting",
        "multiple-shooting.md",
        ["multiple-shooting/beside-ipopt"],
        rows.shooting,
    ),
    Line(
        "Separable least squares",
        "separable.md",
        ["separable/seconds", "separable/linear"],
        rows.separable,
    ),
    Line("SBML", "sbml.md", ["sbml/verdicts"], rows.sbml),
    Line("Attacks", "hostile.md", ["hostile/attacks"], rows.attacks),
    Line("Time limits", "petab.md", ["petab/lateness"], rows.lateness),
)
