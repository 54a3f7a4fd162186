"""The file of a certificate: its claim, and the leaves that prove it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odefit.certificates.statement import fingerprint_of
from odefit.common.arrays import Array
from odefit.common.errors import InputError, shown
from odefit.common.packages import installed_version
from odefit.common.partial_files import write_atomically
from odefit.problem.inputs.file_access import read_content, refuse_controls
from odefit.problem.inputs.issues import Issues

FORMAT, VERSIONS = "odefit certificate", (1, 2)
"""The format, and its versions: the second has laws of measurements, and terms of unknowns."""

REASONS = ("bounded", "contracted", "open")
"""Reasons for a leaf: its bound, a contraction around it, the end of the search."""

LARGEST_FILE = 2**30
"""Number of bytes above which a file is not read."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Boxes that cover the bounds of the unknowns, with corners of shape (N, n).

    `bounds`, shape (N,), has a lower bound of the objective for each, `reasons` one of
    :data:`REASONS`.
    """

    lower: Array
    upper: Array
    bounds: Array
    reasons: Sequence[str]


@dataclass(frozen=True, eq=False)
class Document:
    """A certificate: no values within the bounds have an objective below `lower`.

    At `incumbent`, shape (n,), the objective is at most `upper`. `statement` holds the problem
    written out, and `fingerprint` is its SHA-256; `intact` is true if the file is unchanged.
    """

    statement: Mapping[str, Any]
    fingerprint: str
    lower: float
    upper: float
    incumbent: Array
    leaves: Leaves
    intact: bool = True

    @property
    def box(self) -> tuple[Array, Array]:
        """The bounds of the unknowns, shapes (n,)."""
        unknowns = self.statement["unknowns"]
        return (
            np.array([float(u["lower"]) for u in unknowns]),
            np.array([float(u["upper"]) for u in unknowns]),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as a JSON value."""
        leaves = [
            {"box": np.stack([low, high], axis=1).tolist(), "reason": reason, "bound": bound}
            for low, high, reason, bound in zip(
                self.leaves.lower,
                self.leaves.upper,
                self.leaves.reasons,
                self.leaves.bounds.tolist(),
                strict=True,
            )
        ]
        body = {
            "format": FORMAT,
            "version": _version(self.statement),
            "odefit": installed_version("odefit"),
            "scope": "continuous time",
            "statement": self.statement,
            "fingerprint": self.fingerprint,
            "lower": self.lower,
            "upper": self.upper,
            "incumbent": self.incumbent.tolist(),
            "leaves": leaves,
        }
        return body | {"digest": fingerprint_of(body)}

    def write(self, path: Path) -> None:
        """Write the file completely or not at all."""
        text = json.dumps(self.to_json(), allow_nan=False, separators=(",", ":"))
        # One leaf per line, so that a person can find the one named in a message.
        write_atomically(path, text.replace('{"box"', '\n{"box"') + "\n")


def read_document(path: Path) -> Document:
    """Read a certificate; raises InputError for mistakes of the file, not of the proof."""
    issues = Issues()
    content = read_content(path, str(path), issues, LARGEST_FILE)
    issues.raise_errors()
    try:
        content_read = json.loads((content or b"").decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not a JSON file: {error}") from None
    if not isinstance(content_read, dict) or content_read.get("format") != FORMAT:
        raise InputError(
            f"{path}: is not a certificate; 'odefit fit PROBLEM --certificate FILE' writes one"
        )
    if content_read.get("version") not in VERSIONS:
        raise InputError(
            f"{path}: has version {shown(str(content_read.get('version')))} of the format, and "
            f"this odefit reads versions up to {VERSIONS[-1]}; install a newer one"
        )
    statement = content_read.get("statement")
    refuse_controls(statement if isinstance(statement, dict) else {}, issues)
    issues.raise_errors()
    try:
        return _document(content_read)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: is damaged ({type(error).__name__}: {error}); write it again"
        ) from None


def _version(statement: Mapping[str, Any]) -> int:
    """Return the first version that can express a statement."""
    data = (entry for condition in statement["conditions"] for entry in condition["data"])
    return 2 if "terms" in statement or any("law" in entry for entry in data) else 1


def _document(content: Mapping[str, Any]) -> Document:
    """Return the document in a JSON value; raises errors of Python if it is damaged."""
    statement, n = content["statement"], len(content["statement"]["unknowns"])
    rows = content["leaves"]
    boxes = np.array([leaf["box"] for leaf in rows], dtype=float).reshape(len(rows), n, 2)
    bounds = np.array([float(leaf["bound"]) for leaf in rows])
    reasons = [str(leaf["reason"]) for leaf in rows]
    if set(reasons) - set(REASONS):
        raise ValueError(f"a leaf has the reason {sorted(set(reasons) - set(REASONS))[0]!r}")
    incumbent = np.array(content["incumbent"], dtype=float)
    numbers = [
        boxes,
        bounds,
        incumbent,
        np.array([content["lower"], content["upper"]], dtype=float),
    ]
    if not all(np.isfinite(a).all() for a in numbers) or incumbent.shape != (n,):
        raise ValueError("numbers are missing, or infinite")
    for unknown in statement["unknowns"]:
        if not -math.inf < unknown["lower"] <= unknown["upper"] < math.inf:
            raise ValueError(f"the bounds of {unknown['name']} are not finite")
        if not all(isinstance(unknown[key], str) for key in ("name", "symbol")):
            raise TypeError("the name of an unknown is not a text")
    body = {key: value for key, value in content.items() if key != "digest"}
    return Document(
        statement,
        str(content["fingerprint"]),
        float(content["lower"]),
        float(content["upper"]),
        incumbent,
        Leaves(boxes[:, :, 0], boxes[:, :, 1], bounds, reasons),
        fingerprint_of(body) == content.get("digest"),
    )
