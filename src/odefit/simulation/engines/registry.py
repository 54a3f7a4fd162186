"""The engines: one row each, from which all that is chosen among engines follows.

A row says which packages an engine needs, how it is made, what it can integrate, how accurate it
is, and in which roles it serves. An engine is added by a module of its own and a row here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from odefit.common.errors import InputError
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines import making
from odefit.simulation.engines.engine import BatchIntegrator, Engine
from odefit.simulation.engines.making import EngineTask
from odefit.simulation.engines.segments import Segment
from odefit.simulation.engines.steps import (
    COSTLY_TAYLOR,
    MAX_TAYLOR_STEPS,
    cvodes_steps,
    implicit_steps,
)

EngineName = Literal[
    "auto", "heyoka", "runge-kutta", "bdf", "lsoda", "casadi", "local-linearization"
]
"""Names of all engines; "auto" chooses between those that serve in fits, by their stiffness."""

Request = tuple[EngineName, float | None]
"""An engine and its relative tolerance; None for the engine's own."""

EXPLICIT_TOLERANCE = 1e-12
"""Tolerance of the explicit engines, relative and absolute on the largest component.

They pay little for accuracy, so this is well below what fits need: between 1e-9 and 1e-12 a step of
the Taylor method grows by a quarter, and the Runge-Kutta method takes twice the steps. Unknowns
that are poorly determined need it: of data without noise they keep so much fewer digits."""

IMPLICIT_TOLERANCE = 1e-9  # relative tolerance of the implicit engines

LL_TOLERANCE = 1e-6
"""Relative tolerance of the Local Linearization method.

Each further digit takes twice the steps. At 1e-6 states have six to seven correct digits, and
sensitivities four, on the library's problems (at order 2 four to five, and one)."""

LARGEST_DENSE_MODEL = 60  # states up to which LSODA is asked; it has no sparse Jacobian
TIGHT = 1e-11  # relative tolerance of the engines that decide between two which do not agree


@dataclass(frozen=True, kw_only=True)
class EngineRow:
    """Everything that is known of an engine without importing its package."""

    name: EngineName
    label: str  # in sentences
    method: str  # as papers name it, in few letters
    packages: tuple[str, ...]  # the first one is its own, others serve several engines
    make: Callable[[EngineTask], Engine]

    # What it can integrate.
    stiff: bool
    algebraic: bool = False  # equations that have to be solved for algebraic variables
    kinks: bool = True  # right-hand sides that are not smooth
    sensitivities: bool = True
    adjoint: bool = False  # whether it has `recorded`, see :class:`AdjointEngine`
    most_states: float = math.inf
    make_batch: Callable[[VectorField, SensitivityPattern, float], BatchIntegrator] | None = None
    # Whether it has to stop at the centres of narrow features, as its steps cannot be looked into.
    stops_at_centres: bool = False

    # How accurate it is, and what it may take.
    tolerance: float  # its own relative tolerance
    adjustable: bool = True  # whether a user may choose another tolerance
    finest: float  # the smallest relative tolerance that it can be asked for
    # Returns the steps that it gets for a segment, given the user's limit.
    most_steps: Callable[[Segment, int | None], int]
    # Integrations in succession that may be more work than an implicit one, before that is tried.
    patience: int = 0

    # In which roles it serves.
    automatic: bool = False  # "auto" chooses it
    # Gives the second opinion on an engine that is not for stiff equations, and on one that is.
    opinion_on_explicit: bool = False
    opinion_on_stiff: bool = False
    rescues: bool = False  # is tried where the usual engines fail
    rescue_tolerances: tuple[float, ...] = ()  # larger ones that are tried then
    rescue_steps: int | None = None  # steps that it gets then; such engines are tried last

    # What is said if its package is missing.
    absence: str = ""
    install_elsewhere: str = ""  # how to install it on other systems than Linux

    def can_integrate(self, field: VectorField) -> bool:
        """Return whether it can integrate the equations, whatever their stiffness."""
        fits = len(field.states) <= self.most_states
        return fits and (self.algebraic or not field.algebraic) and (self.kinks or field.smooth)

    def at(self, tolerance: float) -> Request:
        """Return the request for a tolerance, or for the engine's own if it has no such one."""
        reached = self.adjustable and self.finest <= tolerance
        return self.name, tolerance if reached else None

    def adjustable_in(self, setting: EngineName) -> bool:
        """Return whether it takes the tolerance that is given to a choice among engines."""
        return self.adjustable and (self.stiff or setting == self.name)

    @cached_property
    def problem(self) -> str:
        """Why it cannot be used: the problem of a package; an empty text if there is none."""
        for package in self.packages:
            if problem := import_problem(package):
                return problem
        return ""


_ROWS = (
    EngineRow(
        name="heyoka",
        label="the Taylor method",
        method="Taylor",
        packages=("heyoka",),
        make=making.heyoka,
        make_batch=making.heyoka_batch,
        stiff=False,
        kinks=False,
        tolerance=EXPLICIT_TOLERANCE,
        adjustable=False,
        finest=EXPLICIT_TOLERANCE,
        most_steps=lambda segment, limit: MAX_TAYLOR_STEPS,
        patience=COSTLY_TAYLOR,
        automatic=True,
        rescues=True,
        absence="odefit's explicit engine has integrated in place of heyoka's Taylor method, which "
        "is faster on small problems with few measured times",
        install_elsewhere="pip has it only for Linux, conda for other systems: 'conda install -c "
        "conda-forge heyoka.py' in an environment of conda",
    ),
    EngineRow(
        name="runge-kutta",
        label="odefit's explicit engine",
        method="DOP853",
        packages=("numba", "casadi"),
        make=making.runge_kutta,
        stiff=False,
        tolerance=EXPLICIT_TOLERANCE,
        finest=EXPLICIT_TOLERANCE,
        most_steps=lambda segment, limit: MAX_TAYLOR_STEPS,
        patience=COSTLY_TAYLOR,
        automatic=True,
    ),
    EngineRow(
        name="bdf",
        label="odefit's implicit engine",
        method="NDF",
        packages=("numba", "casadi"),
        make=making.bdf,
        stiff=True,
        adjoint=True,
        tolerance=IMPLICIT_TOLERANCE,
        finest=TIGHT,
        most_steps=implicit_steps,
        automatic=True,
        rescues=True,
        rescue_tolerances=(1e-6, 1e-4),
        absence="CasADi's CVODES integrates stiff equations in place of odefit's own engine, which "
        "is many times faster",
    ),
    EngineRow(
        name="lsoda",
        label="LSODA",
        method="LSODA",
        packages=("casadi",),
        make=making.lsoda,
        stiff=True,
        sensitivities=False,
        most_states=LARGEST_DENSE_MODEL,
        stops_at_centres=True,
        tolerance=IMPLICIT_TOLERANCE,
        finest=TIGHT,
        most_steps=lambda segment, limit: limit or MAX_TAYLOR_STEPS,
        # SciPy takes a tenth of a second to be loaded, which small fits do not need otherwise.
        opinion_on_stiff=True,
    ),
    EngineRow(
        name="casadi",
        label="CVODES",
        method="CVODES",
        packages=("casadi",),
        make=making.casadi,
        stiff=True,
        algebraic=True,
        stops_at_centres=True,
        tolerance=IMPLICIT_TOLERANCE,
        finest=TIGHT,
        most_steps=cvodes_steps,
        automatic=True,
        opinion_on_explicit=True,
        opinion_on_stiff=True,
    ),
    EngineRow(
        name="local-linearization",
        label="Local Linearization",
        method="LL",
        packages=(),
        make=making.linearized,
        make_batch=making.linearized_batch,
        stiff=False,
        tolerance=LL_TOLERANCE,
        finest=LL_TOLERANCE,
        most_steps=lambda segment, limit: limit or MAX_TAYLOR_STEPS,
        rescues=True,
        rescue_steps=3000,  # each takes about a millisecond
    ),
)

ENGINES: Mapping[EngineName, EngineRow] = {row.name: row for row in _ROWS}
"""All engines by name, in the order in which they are preferred among equals."""

TAYLOR, EXPLICIT, *STIFF = (row for row in _ROWS if row.automatic)
"""The engines of "auto": the one that is fastest until equations are stiff, the one that stands in
for it, and those that integrate the others, the better ones first."""


def explicit_engine() -> EngineRow | None:
    """Return the engine that is tried first where nothing is known to be stiff, if there is one."""
    return next((row for row in (TAYLOR, EXPLICIT) if not row.problem), None)


def stiff_engine(field: VectorField | None = None) -> EngineRow:
    """Return the engine for stiff equations: the first that can integrate them and is installed."""
    able = [row for row in STIFF if field is None or row.can_integrate(field)]
    return next((row for row in able if not row.problem), able[-1])


def fit_engines() -> tuple[EngineName, ...]:
    """Return the names that users may give to a fit: of the engines with sensitivities."""
    return ("auto", *(row.name for row in _ROWS if row.sensitivities))


def rescue_engines() -> Iterator[tuple[Request, int | None]]:
    """Yield what is tried where the usual engines fail, each with a limit of steps.

    The fast ones come first: at their own tolerances, then at larger ones.
    """
    fast = [row for row in _ROWS if row.rescues and row.rescue_steps is None]
    slow = [row for row in _ROWS if row.rescues and row.rescue_steps is not None]
    for row in sorted(fast, key=lambda row: not row.stiff):
        yield (row.name, None), None
    yield ("auto", max(t for row in fast for t in row.rescue_tolerances[:1])), None
    for row in fast:
        yield from (((row.name, t), None) for t in row.rescue_tolerances)
    yield from (((row.name, None), row.rescue_steps) for row in slow)


def accurate_engines(tolerance: float) -> list[Request]:
    """Return the engines that integrate an answer anew, which is doubted, with sensitivities.

    Engines for stiff equations come first, as they integrate what the others can and more.
    """
    able = [row for row in _ROWS if row.sensitivities]
    others = sorted((row for row in able if not row.stiff), key=lambda row: row.automatic)
    return [row.at(tolerance) for row in (*(row for row in able if row.stiff), *others)]


def opinion_engine(field: VectorField, on: EngineRow) -> EngineRow:
    """Return the engine that gives a second opinion on another one."""
    able = [
        row
        for row in _ROWS
        if (row.opinion_on_stiff if on.stiff else row.opinion_on_explicit)
        and row.can_integrate(field)
    ]
    return able[0]


def judging_engines(field: VectorField, on: EngineRow) -> list[Request]:
    """Return the engines that decide where a second opinion differs from an engine.

    The engine in question comes last, at a tighter tolerance than before. The Taylor method, which
    has none, does not judge engines that are not for stiff equations either.
    """
    able = [
        row
        for row in _ROWS
        if row.finest <= TIGHT and row.can_integrate(field) and (row.stiff or on.stiff)
    ]
    able.sort(key=lambda row: row.name == on.name)
    # The explicit engine integrates more accurately than that as a rule.
    return [row.at(min(TIGHT, row.tolerance)) for row in able]


@cache
def import_problem(package: str) -> str:
    """Return why the package of an engine cannot be imported; an empty text if it can be."""
    try:
        import_module(package)
    except ImportError as error:
        _failed.add(package)
        return str(error)
    return ""


_failed: set[str] = set()  # packages whose import has failed in this process


def is_missing(package: str) -> bool:
    """Return whether a package cannot be imported, as far as is known without trying.

    A package that is installed counts as missing once its import has failed. To try takes more than
    a tenth of a second for numba, which fits in which nothing stiff has come up do not need.
    """
    if package in _failed:
        return True
    return sys.modules.get(package) is None and find_spec(package) is None


def missing_package(package: str) -> str:
    """Return in one sentence that a package is missing, why, and how to install it."""
    elsewhere = [row.install_elsewhere for row in _ROWS if package in row.packages]
    if any(elsewhere) and sys.platform != "linux":
        return f"the package {package} cannot be imported; {max(elsewhere)}"
    return (
        f"the package {package} cannot be imported ({import_problem(package)}); install it with "
        f"'pip install {package}', on a version of Python that it is published for"
    )


def missing_engines(field: VectorField) -> tuple[str, ...]:
    """Return sentences about engines that would serve and whose packages are missing."""
    sentences = []
    for row in (TAYLOR, *STIFF):
        package = row.packages[0]
        missing = is_missing(package) if row.stiff else bool(import_problem(package))
        if row.absence and row.can_integrate(field) and missing:
            sentences.append(f"{row.absence}: {missing_package(package)}")
    return tuple(sentences)


def require_engine(name: EngineName, consequence: str) -> None:
    """Refuse to go on if a package of an engine cannot be imported."""
    for package in ENGINES[name].packages:
        if import_problem(package):
            raise InputError(f"{consequence}: {missing_package(package)}")
