"""The command ``odefit verify``."""

from __future__ import annotations

import argparse
from pathlib import Path

from odefit.cli.exit_statuses import DONE, NO_FIT
from odefit.cli.shared import progress_line
from odefit.common.packages import require
from odefit.methods.running.control import Progress

DESCRIPTION = (
    "Prove a certificate of branch and bound again, leaf by leaf, in the ball arithmetic of FLINT "
    "and by code that is not that of the search. The exit status is 0 if it holds, and 3 if not."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit verify``."""
    parser.add_argument("certificate", metavar="CERTIFICATE.json", type=Path)
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        nargs="?",
        help="the problem that the certificate has to be about, in any format that fit reads",
    )


def run(options: argparse.Namespace) -> int:
    """Run ``odefit verify``: say whether a certificate holds, and where not."""
    require("flint")
    from odefit.certificates.document import read_document
    from odefit.certificates.statement import statement_of
    from odefit.certificates.verification.verification import verify_document
    from odefit.formats.files import load
    from odefit.reporting.certificates import verdict_text

    document = read_document(options.certificate)
    statement = None if options.problem is None else statement_of(load(options.problem))
    with progress_line("verifying ...") as report:

        def told(proved: int, leaves: int) -> None:
            if report is not None:
                report(Progress(proved, 0, float("inf"), 0, f"of {leaves}", unit="region"))

        verdict = verify_document(document, statement, told)
    print(verdict_text(verdict, document, compared=statement is not None))
    return DONE if verdict.holds else NO_FIT
