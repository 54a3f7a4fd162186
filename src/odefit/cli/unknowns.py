"""Options that change the unknowns: ``--fix``, ``--free`` and ``--bounds``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from odefit.cli.shared import add_values
from odefit.common.errors import InputError
from odefit.expressions.expressions import number_in

if TYPE_CHECKING:
    from odefit.problem.problem import Problem

PROPOSE = "propose"
"""The value of ``--bounds`` that accepts bounds suggested by the data."""


def add_unknowns(parser: argparse.ArgumentParser) -> None:
    """Add the options that fix, free and bound."""
    add_fix(parser)
    add_values(
        parser,
        "--free",
        "NAME",
        "estimate a fixed parameter or known initial value, starting from its value; may be "
        "repeated",
    )
    add_values(
        parser,
        "--bounds",
        "NAME=LOW:HIGH",
        "other bounds, e.g. k=0:1, or k=0: without an upper bound; may be repeated. "
        "'propose' lets a global method use bounds that the data suggest for unknowns without "
        "bounds",
    )


def add_fix(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--fix``."""
    meaning = "hold a parameter or initial value at this value; may be repeated"
    add_values(parser, "--fix", "NAME=VALUE", meaning)


def with_unknowns(problem: Problem, options: argparse.Namespace) -> Problem:
    """Return the problem changed as the options ask; an :class:`InputError` lists all mistakes."""
    errors: list[str] = []
    fix = _values(options.fix, errors)
    bounds = _bounds([b for b in getattr(options, "bounds", []) if b != PROPOSE], errors)
    if errors:
        raise InputError(errors)
    free = getattr(options, "free", [])
    if not (fix or bounds or free):
        return problem
    try:
        return problem.with_unknowns(fix=fix, free=free, bounds=bounds)
    except InputError as error:
        # The message begins with the argument's name in Python, which the option shares.
        known = ("fix", "free", "bounds")
        raise InputError(
            f"--{text}" if text.startswith(known) else text for text in error.messages
        ) from None


def changed(options: argparse.Namespace) -> str | None:
    """Return the first given option that changes the unknowns, or None."""
    for name in ("fix", "free", "bounds"):
        if getattr(options, name, None):
            return f"--{name}"
    return None


def _values(texts: Sequence[str], errors: list[str]) -> dict[str, float]:
    values = {}
    for text in texts:
        key, _, value = text.partition("=")
        number = number_in(value)
        if number is None:
            errors.append(f"--fix: expected NAME=VALUE such as k1=0.1 or k1=1/6, got {text!r}")
        else:
            values[key.strip()] = number
    return values


def _bounds(
    texts: Sequence[str], errors: list[str]
) -> dict[str, tuple[float | None, float | None]]:
    bounds = {}
    for text in texts:
        key, _, pair = text.partition("=")
        ends = pair.split(":")
        numbers = [number_in(end) if end.strip() else None for end in ends]
        unread = any(n is None and end.strip() for n, end in zip(numbers, ends, strict=True))
        if len(ends) != 2 or unread:
            errors.append(
                "--bounds: expected NAME=LOW:HIGH such as k1=0:1 or, without an upper bound, k1=0:"
                f", got {text!r}"
            )
        else:
            bounds[key.strip()] = (numbers[0], numbers[1])
    return bounds
