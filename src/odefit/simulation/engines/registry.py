"""The engines: one row each, from which all choices among engines follow.

A row holds the packages that an engine needs, its constructor, the equations that it can integrate,
its accuracy, and its roles. A new engine is a module and a row here.
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
    IMPLICIT_TOLERANCE,
    MAX_TAYLOR_STEPS,
    cvodes_steps,
    implicit_steps,
)

EngineName = Literal[
    "auto", "heyoka", "runge-kutta", "bdf", "lsoda", "casadi", "local-linearization"
]
"""Names of all engines; "auto" chooses by stiffness between those that serve in fits."""

Request = tuple[EngineName, float | None]
"""An engine and its relative tolerance; None for the engine's own."""

EXPLICIT_TOLERANCE = 1e-12
"""Tolerance of the explicit engines, relative and absolute on the largest component.

Accuracy costs them little, so this is well below the needs of fits. Between 1e-9 and 1e-12 a step
of the Taylor method grows by a quarter, and the Runge-Kutta method takes twice the steps. Poorly
determined unknowns need it, since they keep fewer digits of data without noise.
"""

FINEST_EXPLICIT = 2e-14
"""Tolerance of the Runge-Kutta method for data that are reproduced to rounding. At 1e-12 its error
exceeds that of the Taylor method ten times; NIST's Lanczos1 data need this one."""

LL_TOLERANCE = 1e-6
"""Relative tolerance of the Local Linearization method.

Each further digit doubles the number of steps. At 1e-6 states have six to seven correct digits, and
sensitivities four, on the library's problems (at order 2 four to five, and one).
"""

LARGEST_DENSE_MODEL = 60  # largest number of states for LSODA, which has no sparse Jacobian
TIGHT = 1e-11  # relative tolerance of the engines that decide between two that disagree


@dataclass(frozen=True, kw_only=True)
class EngineRow:
    """The properties of an engine that are known without importing its package."""

    name: EngineName
    label: str  # in sentences
    method: str  # abbreviation in the literature
    packages: tuple[str, ...]  # the first one is specific to it, others serve several engines
    make: Callable[[EngineTask], Engine]

    # The equations that it can integrate.
    stiff: bool
    algebraic: bool = False  # equations with algebraic variables that need solving
    kinks: bool = True  # right-hand sides that are not smooth
    sensitivities: bool = True
    adjoint: bool = False  # whether it has `recorded`, see :class:`AdjointEngine`
    most_states: float = math.inf
    make_batch: Callable[[VectorField, SensitivityPattern, float], BatchIntegrator] | None = None
    # Whether it must stop at the centres of narrow features, as its steps have no accessible
    # interior.
    stops_at_centres: bool = False

    # Its accuracy, and its limits.
    tolerance: float  # its own relative tolerance
    adjustable: bool = True  # whether a user may choose another tolerance
    finest: float  # the smallest relative tolerance that it accepts
    # Returns the steps that it gets for a segment, given the user's limit.
    most_steps: Callable[[Segment, int | None], int]

    # Its roles.
    automatic: bool = False  # "auto" chooses it
    # Gives the second opinion on an engine that is not for stiff equations, and on one that is.
    opinion_on_explicit: bool = False
    opinion_on_stiff: bool = False
    rescues: bool = False  # is tried if the usual engines fail
    rescue_tolerances: tuple[float, ...] = ()  # larger tolerances that are tried then
    rescue_steps: int | None = None  # steps that it may take then; such engines are tried last

    # The message if its package is missing.
    absence: str = ""
    install_elsewhere: str = ""  # how to install it on other systems than Linux

    def can_integrate(self, field: VectorField) -> bool:
        """Return whether it can integrate the equations, whatever their stiffness."""
        fits = len(field.states) <= self.most_states
        return fits and (self.algebraic or not field.algebraic) and (self.kinks or field.smooth)

    def at(self, tolerance: float) -> Request:
        """Return the request for a tolerance, or for the engine's own if it accepts no other."""
        reached = self.adjustable and self.finest <= tolerance
        return self.name, tolerance if reached else None

    def adjustable_in(self, setting: EngineName) -> bool:
        """Return whether it accepts the tolerance that is given to a choice among engines."""
        return self.adjustable and (self.stiff or setting == self.name)

    @cached_property
    def problem(self) -> str:
        """The problem of a package that prevents its use; empty if it can be used."""
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
        automatic=True,
        rescues=True,
        install_elsewhere="pip has it only for Linux, conda for other systems: 'conda install -c "
        "conda-forge heyoka.py' in an environment of conda",
    ),
    EngineRow(
        name="runge-kutta",
        label="odefit's explicit engine",
        method="DOP853",
        packages=("llvmlite", "casadi"),
        make=making.runge_kutta,
        stiff=False,
        tolerance=EXPLICIT_TOLERANCE,
        finest=FINEST_EXPLICIT,
        most_steps=lambda segment, limit: MAX_TAYLOR_STEPS,
        automatic=True,
    ),
    EngineRow(
        name="bdf",
        label="odefit's implicit engine",
        method="NDF",
        packages=("llvmlite", "casadi"),
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
        # SciPy takes a tenth of a second to load, and small fits do not need it otherwise.
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
"""All engines by name, in the order of preference among equals."""

TAYLOR, EXPLICIT, *STIFF = (row for row in _ROWS if row.automatic)
"""The engines of "auto": the fastest one for equations that are not stiff, its substitute, and
those for all other equations, the better ones first."""


def explicit_engine() -> EngineRow | None:
    """Return the engine that is tried first unless equations are known to be stiff, if any."""
    if not TAYLOR.problem:
        return TAYLOR  # asked at every evaluation
    return None if EXPLICIT.problem else EXPLICIT


def stiff_engine(field: VectorField | None = None) -> EngineRow:
    """Return the engine for stiff equations: the first that can integrate them and is installed."""
    able = [row for row in STIFF if field is None or row.can_integrate(field)]
    return next((row for row in able if not row.problem), able[-1])


def fit_engines() -> tuple[EngineName, ...]:
    """Return the names of engines with sensitivities, which users may choose for a fit."""
    return ("auto", *(row.name for row in _ROWS if row.sensitivities))


def rescue_engines() -> Iterator[tuple[Request, int | None]]:
    """Yield the engines tried if the usual engines fail, each with a limit of steps.

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
    """Return the engines with sensitivities that integrate a doubtful answer again.

    Engines for stiff equations come first, as they can integrate more than the others.
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
    """Return the engines that decide if a second opinion differs from an engine.

    The engine in question comes last, at a tighter tolerance than before. The Taylor method, which
    has no tighter tolerance, judges no engine for non-stiff equations either.
    """
    able = [
        row
        for row in _ROWS
        if row.finest <= TIGHT and row.can_integrate(field) and (row.stiff or on.stiff)
    ]
    able.sort(key=lambda row: row.name == on.name)
    # The explicit engine usually integrates more accurately than that.
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
    """Return whether a package cannot be imported, as far as is known without an import.

    An installed package counts as missing once its import has failed. Fits without stiffness do
    not need LLVM, whose import takes time.
    """
    if package in _failed:
        return True
    return sys.modules.get(package) is None and find_spec(package) is None


def missing_package(package: str) -> str:
    """Return a sentence that a package is missing, with the reason and the installation command."""
    elsewhere = [row.install_elsewhere for row in _ROWS if package in row.packages]
    if any(elsewhere) and sys.platform != "linux":
        return f"the package {package} cannot be imported; {max(elsewhere)}"
    return (
        f"the package {package} cannot be imported ({import_problem(package)}); install it with "
        f"'pip install {package}', on a version of Python that it is published for"
    )


def missing_engines(field: VectorField) -> tuple[str, ...]:
    """Return sentences about missing packages of engines that would serve."""
    sentences = []
    for row in STIFF:
        package = row.packages[0]
        if row.absence and row.can_integrate(field) and is_missing(package):
            sentences.append(f"{row.absence}: {missing_package(package)}")
    return tuple(sentences)


def require_engine(name: EngineName, consequence: str) -> None:
    """Refuse to continue if a package of an engine cannot be imported."""
    for package in ENGINES[name].packages:
        if import_problem(package):
            raise InputError(f"{consequence}: {missing_package(package)}")
