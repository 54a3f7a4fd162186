"""The methods by name: class, command-line options, and page of documentation.

It is the only list of methods: ``odefit.METHOD``, ``--method NAME`` and the command line's options
come from it. No large package is imported before a method is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from odefit.common.errors import InputError, did_you_mean, shown

if TYPE_CHECKING:
    from odefit.methods.method import Method


@dataclass(frozen=True)
class MethodEntry:
    """The row of a method, available before its import."""

    name: str  # on the command line; the names of module and class follow from it
    options: tuple[str, ...]  # the fields in OPTIONS that the command line can set
    without_starts: str = ""  # reason why the number of starts cannot be set
    explained_in: str = ""  # page of docs/, if that has another name

    @property
    def class_name(self) -> str:
        """The name of the class, such as ``MultiStart``."""
        return self.name.title().replace("-", "")

    @property
    def module(self) -> str:
        """The module or package with the class, such as ``odefit.methods.multi_start``."""
        return f"odefit.methods.{self.name.replace('-', '_')}"

    @property
    def page(self) -> str:
        """The page of ``docs/`` that explains the method."""
        return self.explained_in or f"{self.name}.md"


@dataclass(frozen=True)
class Option:
    """An option of the command line that only some methods have, with its help."""

    meaning: str
    metavar: str = "NAME"
    kind: type = str
    choices: tuple[str, ...] | None = None


OPTIONS: Mapping[str, Option] = {
    "starts": Option("number of starts (default: as many as the evidence requires)", "N", int),
    "scheme": Option("discretisation scheme: trapezoid, radau, runge-kutta, ..."),
    "mesh": Option("number of equal steps of the mesh", "M", int),
    "solver": Option("solver of the discretised problem: ipopt, scip (with bounds), ..."),
    "nodes": Option(
        "number of shooting nodes in each experiment (default: as many as the data support)",
        "N",
        int,
    ),
    "integrator": Option(
        "integrator of the intervals: auto, heyoka, runge-kutta, bdf, casadi, local-linearization"
    ),
    "elements": Option("number of finite elements in each experiment", "N", int),
    "bounds": Option(
        "use bounds that the data suggest for unknowns without bounds", choices=("propose",)
    ),
}
"""Options of the command line that belong to methods, by the field that each sets."""

METHODS: Mapping[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        MethodEntry("automatic", ("starts",), explained_in="how-to-choose.md"),
        MethodEntry("multi-start", ("starts",), explained_in="how-to-choose.md"),
        MethodEntry(
            "single-shooting",
            (),
            without_starts="single-shooting has one start; use --method multi-start",
            explained_in="how-to-choose.md",
        ),
        MethodEntry("multiple-shooting", ("starts", "nodes", "integrator")),
        MethodEntry("integral-matching", ("starts",)),
        MethodEntry("transcription", ("starts", "scheme", "mesh", "solver")),
        MethodEntry(
            "algebraic",
            (),
            without_starts="the algebraic method needs no starts: it finds all solutions",
        ),
        MethodEntry("outer-approximation", ("starts", "elements", "bounds")),
        MethodEntry("branch-and-bound", ("starts", "scheme", "mesh", "bounds")),
    )
}
"""All methods by their names on the command line."""

DEFAULT_METHOD = "automatic"  # the method of a fit without a named method


def as_method(method: Method | type | str | None) -> Method:
    """Return the method given by an object, a class, a name or None (the default).

    A name is that of the command line or of the class, in any spelling: ``"multi-start"``,
    ``"MultiStart"``, ``"multi_start"``. Raises InputError for anything else.
    """
    if isinstance(method, str):
        name = next((n for n, e in METHODS.items() if _bare(method) in _spellings(e)), method)
        return make_method(name, place="method")
    if method is None:
        return make_method()
    if not callable(getattr(method, "solve", None)):
        raise InputError(
            f"method: expected a method such as odefit.MultiStart(starts=20) or the name of one, "
            f"got {shown(method)}. Methods are: {', '.join(METHODS)}"
        )
    from odefit.methods.method import as_whole

    return as_whole(method() if isinstance(method, type) else method)


def _spellings(entry: MethodEntry) -> tuple[str, ...]:
    return _bare(entry.name), _bare(entry.class_name)


def _bare(name: str) -> str:
    return name.strip().casefold().replace("-", "").replace("_", "").replace(" ", "")


def make_method(
    name: str | None = None, options: Mapping[str, Any] | None = None, *, place: str = "--method"
) -> Method:
    """Make a method from its name, or the default, and from options of the command line.

    Options that are None keep their defaults. `place` names the source of the name in messages.
    Raises InputError if there is no such method, if it has no such option, or if a value is
    unusable.
    """
    if name is not None and name not in METHODS:
        raise InputError(
            f"{place}: unknown method {name!r}{did_you_mean(name, METHODS) or '.'} "
            f"Methods are: {', '.join(METHODS)}"
        )
    entry = METHODS[name or DEFAULT_METHOD]
    chosen = {key: value for key, value in (options or {}).items() if value is not None}
    for option in chosen:
        if option in entry.options:
            continue
        if option == "starts":
            raise InputError(f"--starts: {entry.without_starts}")
        owners = [e.name for e in METHODS.values() if option in e.options]
        raise InputError(f"--{option}: is an option of --method {' or '.join(owners)}")
    method: Method = getattr(import_module(entry.module), entry.class_name)(**chosen)
    return method
