"""Limits of the files that may be read, since a file may be untrusted.

A file that names others, as a problem file names its tables, may name those in its own folder. The
user has to name files elsewhere.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odefit.common.errors import InputError, did_you_mean, shown
from odefit.problem.inputs.issues import Issues

MAX_PROBLEM_SIZE = 10_000_000
"""Largest problem file in bytes: a model with thousands of equations has one tenth."""

MAX_TABLE_SIZE = 100_000_000
"""Largest table or SBML file in bytes: a million rows of ten numbers."""

MAX_ROWS, MAX_COLUMNS, MAX_CELLS = 1_000_000, 10_000, 10_000_000
"""Largest numbers of rows, of columns, and of cells in all rows of a table."""

DELIMITERS = ",;\t"
"""Possible separators of columns; the one most frequent in the header counts."""

MAX_EXPERIMENTS = 10_000
"""Largest number of experiments of a problem in files; each takes about a millisecond to read."""

ADDRESS = "://"
"""The mark of an address, which names of local files do not contain."""


@dataclass(frozen=True)
class NamedFiles:
    """The files that another file may name."""

    folder: Path  # the folder of that file, to which names are relative
    # the folder in which the user allows files; by default `folder`
    within: Path | None = None
    # True if files directly in the parent folder are allowed too, for formats whose published
    # collections share files there
    above: bool = False
    read: list[int] = field(default_factory=list)  # the bytes of each named file

    def path(self, name: str, place: str, issues: Issues) -> Path | None:
        """Return the path of a file named at `place`, or None with the reason noted.

        Symbolic links are resolved. Nothing is opened.
        """
        if ADDRESS in name:
            issues.error(
                place,
                f"{shown(name)} is an address; odefit reads only local files, so download it",
            )
            return None
        allowed = Path(os.path.realpath(self.folder if self.within is None else self.within))
        path = self.folder / name
        try:
            real = Path(os.path.realpath(path))
        except ValueError:  # a null character; reading reports it
            return path
        near = self.above and real.parent == Path(os.path.realpath(self.folder)).parent
        if real.is_relative_to(allowed) or near:
            self.read.append(_size(real))
            if sum(self.read) <= MAX_TABLE_SIZE:
                return path
            issues.error(
                place,
                f"the files up to {shown(name)} have more than {MAX_TABLE_SIZE / 1e6:g} MB in "
                "total, and no more is read; leave out unneeded files",
            )
            return None
        whose = "of this file" if self.within is None else f"{shown(str(self.within))}"
        issues.error(
            place,
            f"{shown(name)} leads out of the folder {whose}; move it there, or allow the folder in "
            "which it is by --within FOLDER (in Python within=)",
        )
        return None


def _size(path: Path) -> int:
    """Return the bytes of a file, or zero if no file has that name."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def checked_within(within: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder in which the user allows files, if it exists."""
    if within is None:
        return None
    folder = Path(os.fspath(within))
    if not folder.is_dir():
        raise InputError(f"within: {shown(str(folder))} is not a folder; name one that exists")
    return folder


def read_text(path: Path, label: str, issues: Issues, most: int = MAX_TABLE_SIZE) -> str | None:
    """Return the text of a UTF-8 file of at most `most` bytes, or None with the reason noted."""
    content = read_content(path, label, issues, most)
    if content is None:
        return None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        issues.error(label, "is in UTF-16; save it as UTF-8")
    elif content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        reason = "is a workbook or an archive; save it as .xlsx, or export the sheet as CSV (UTF-8)"
        issues.error(label, reason)
    elif b"\x00" in content:
        issues.error(label, "is a binary file; expected text in UTF-8")
    else:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            issues.error(label, f"line {line} is not in UTF-8; save the file as UTF-8")
    return None


def is_small(text: str, label: str, issues: Issues, most_rows: int = MAX_ROWS) -> bool:
    """Return whether a table has few enough rows and cells; if not, the reason is noted."""
    rows = max(map(text.count, "\n\r"))
    for entries, count, most in (
        ("rows", rows, most_rows),
        ("cells", rows + max(map(text.count, DELIMITERS)), MAX_CELLS),
    ):
        if count > most:
            issues.error(label, too_many(entries, count, most))
            return False
    return True


def too_many(entries: str, count: int, most: int) -> str:
    """Return the reason for refusing a table with so many rows, columns or cells."""
    return (
        f"has {count} {entries}, and {most} are read at most; leave out unneeded ones, or "
        "split it into several"
    )


def too_many_experiments() -> str:
    """Return the reason for refusing so many experiments."""
    return f"there are more experiments than {MAX_EXPERIMENTS}; fit parts of the data"


def text_or_file(
    text_or_path: str | os.PathLike[str], is_text: Callable[[str], object], label: str
) -> tuple[str, str]:
    """Return a text, given directly or as the path of its file, and its name in messages."""
    source = os.fspath(text_or_path)
    if is_text(source):
        return source, label
    issues = Issues()
    text = read_text(Path(source), source, issues)
    issues.raise_errors()
    return text or "", source


def read_content(path: Path, label: str, issues: Issues, most: int) -> bytes | None:
    """Return the bytes of a file, or None with the reason noted, as :func:`read_text` does."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            issues.error(label, "is a folder, not a file")
            return None
        if not stat.S_ISREG(status.st_mode):
            issues.error(label, "is a device or a pipe, not a file")
            return None
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (FileNotFoundError, NotADirectoryError):
        issues.error(label, f"there is no such file in {path.parent.absolute()}{_similar(path)}")
        return None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        issues.error(label, f"cannot be read: {reason}")
        return None
    if len(content) > most:
        issues.error(
            label,
            f"has {status.st_size / 1e6:.3g} MB, and {most / 1e6:g} MB are read at most; leave out "
            "unneeded rows and columns, or split it into several",
        )
        return None
    return content


def _similar(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, names)


CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\r(?!\n)"
)
"""Control characters other than tabs and line ends, and characters that change the direction of
text. They move the cursor, colour and overwrite a screen, and hide the content of a file. Halves of
characters, as JSON and YAML may hold them, cannot be written to any file."""


def has_controls(text: str) -> bool:
    """True if a text has a character that controls a terminal."""
    return CONTROL.search(text) is not None


def refuse_controls(tree: Any, issues: Issues) -> None:
    """Report every text with control characters among keys and values of a TOML or JSON tree."""
    pending: list[tuple[str, Any]] = [("", tree)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, str):
            _check(place, value, issues)
        elif isinstance(value, Mapping):
            for key, part in value.items():
                inside = f"{place}.{key}" if place else str(key)
                _check(inside, str(key), issues)
                if isinstance(part, (str, Mapping, list, tuple)):
                    pending.append((inside, part))
        else:
            pending += [
                (f"{place}[{i}]", part)
                for i, part in enumerate(value)
                if isinstance(part, (str, Mapping, list, tuple))
            ]


def _check(place: str, text: str, issues: Issues) -> None:
    match = CONTROL.search(text)
    if match is not None and "\ud800" <= match[0] <= "\udfff":
        issues.error(
            place or "text", f"{shown(text)} has half a character, {match[0]!r}; remove it"
        )
    elif match is not None:
        issues.error(
            place or "text",
            f"{shown(text)} has the control character {match[0]!r}, which can change what a "
            "terminal shows; remove it",
        )
