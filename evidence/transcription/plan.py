"""The runs of the study of Fernandez de Dios et al. (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evidence.running.campaign import Option, Task
from odefit import library
from odefit.common.arrays import Array
from odefit.discretisation import schemes
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance, guess_from_data
from odefit.discretisation.mesh import UniformMesh
from odefit.methods.solvers.registry import SOLVERS
from odefit.methods.solvers.solver import Solver

# Mesh sizes M by problem: Table 2 and footnote 9. The smallest is the coarse mesh
STEPS: dict[str, tuple[int, ...]] = {
    "alpha-pinene": (1230, 3690),
    "bbg": (120, 1200),
    "fitzhugh-nagumo": (200, 2000),
    "harmonic": (230, 2300),
    "lotka-volterra-f": (100, 1000),
    "lotka-volterra-p": (100, 1000, 10000),
    "mammillary-3-f": (100, 1000),
    "mammillary-3-p": (100, 1000),
    "hiv-f": (100, 1000),
    "hiv-p": (100, 1000),
    "crauste-f": (100, 1000),
    "crauste-p": (100, 1000),
}

FINAL = {"alpha-pinene": 36900.0}  # ends of meshes that extend beyond the last measurement
SCHEMES = ("Euler", "Trapezoid", "Adams-Moulton", "Simpson", "Runge-Kutta")
TOLERANCES: tuple[float, ...] = (1e-4, 1e-6)  # the values of eps in ExtraTol

# The values of eps by problem in footnote 8, which replace these
OTHER_TOLERANCES: dict[str, tuple[float, ...]] = {
    "lotka-volterra-p": (1e-5, 1e-6, 1e-8),
    "crauste-f": (1e-5, 1e-7, 1e-9),
    "crauste-p": (1e-5, 1e-7, 1e-9),
}

PENALTIES: tuple[float, ...] = (1e3, 1e5)  # the values of P in SoftCons

# Solvers that come with odefit; others have tasks where they are installed
LOCAL_SOLVERS = ("Ipopt", "Bonmin")

# odefit's own global methods, on coarse meshes: their states satisfy the equations (Baseline). One
# needs no mesh, the other has its own collocation, of so many elements and points
BRANCH, OUTER = "branch-and-bound", "outer-approximation"
OWN = (BRANCH, OUTER)
CONTINUOUS, LEGENDRE = "continuous time", "Legendre"
ELEMENTS, POINTS = 10, 3

# Solvers without tasks, which are too slow with thousands of points
LEFT_OUT = ("uno", "maingo")
StartKind = Literal["zero", "data"]

# The start of every solver: all variables zero, moved within their bounds (AMPL's default, and so
# the paper's), or observed states at their data
START: StartKind = "data"


OPTIONS = (
    Option("seconds", 600.0, "time limit of a solver; the paper's is 600", above=0),
    Option("fine", True, "whether global solvers have fine meshes too, yes or no"),
    Option("solver", (), "solvers, all if none is named, e.g. SCIP", lambda: (*solvers(), *OWN)),
)


def tasks(seconds: float, fine: bool, solver: Sequence[str]) -> list[Task]:
    """Return runs of the paper, local solvers first and coarse meshes first, and own methods'."""
    every = [
        *(
            c
            for name, one in solvers().items()
            for c in configurations(
                name, ("coarse", "fine") if fine or one.scope != "global" else ("coarse",)
            )
        ),
        *own_configurations(),
    ]
    return [c.task | {"seconds": seconds} for c in every if not solver or c.solver in solver]


@dataclass(frozen=True)
class Configuration:
    """The configuration of one run."""

    problem: str  # problem, scheme, solver: By name
    scheme: str
    # formulation, value: ``"Baseline"``, ``"ExtraTol"`` with eps or ``"SoftCons"`` with P; 0 for
    # none
    formulation: str
    value: float
    steps: int  # M
    solver: str

    @property
    def key(self) -> str:
        value = f" {self.value:g}" if self.value else ""
        form = f"{self.formulation}{value}"
        return f"{self.problem}, {self.scheme}, {form}, M = {self.steps}, {self.solver}"

    @staticmethod
    def of(key: str) -> Configuration:
        problem, scheme, form, steps, solver = key.split(", ")
        formulation, _, value = form.partition(" ")
        m = int(steps.removeprefix("M = "))
        return Configuration(problem, scheme, formulation, float(value or 0.0), m, solver)

    @property
    def mesh(self) -> str:
        """Whether the mesh is coarse, or none, or fine."""
        return "coarse" if self.steps <= STEPS[self.problem][0] else "fine"

    @property
    def setting(self) -> str:
        """The formulation, and the side of the middle on which its value is."""
        if self.formulation == "ExtraTol":
            first = self.value == tolerances(self.problem)[0]
            return "ExtraTol loose" if first else "ExtraTol tight"
        if self.formulation == "SoftCons":
            return "SoftCons light" if self.value == PENALTIES[0] else "SoftCons heavy"
        return self.formulation

    @property
    def task(self) -> dict[str, Any]:
        """Return the task: its key, and the factors over which a part of the campaign is spread.

        M and eps are in the key alone. As factors, rare values (M = 10000, eps = 1e-8) would put
        their few problems into every small part.
        """
        return {
            "key": self.key,
            "problem": self.problem,
            "scheme": self.scheme,
            "formulation": self.setting,
            "mesh": self.mesh,
            "solver": self.solver,
        }


def tolerances(problem: str) -> tuple[float, ...]:
    """Return the values of eps in ExtraTol for a problem."""
    return OTHER_TOLERANCES.get(problem, TOLERANCES)


def configurations(solver: str, meshes: tuple[str, ...]) -> Iterator[Configuration]:
    """Return all runs of a solver on coarse meshes, fine ones or both; coarse ones first."""
    for mesh in meshes:
        for problem, sizes in STEPS.items():
            forms = [("Baseline", 0.0)]
            forms += [("ExtraTol", eps) for eps in tolerances(problem)]
            forms += [("SoftCons", penalty) for penalty in PENALTIES]
            for steps in sizes[:1] if mesh == "coarse" else sizes[1:]:
                for scheme in SCHEMES:
                    for form, value in forms:
                        yield Configuration(problem, scheme, form, value, steps, solver)


def own_configurations() -> Iterator[Configuration]:
    """Return all runs of odefit's own global methods."""
    for problem, sizes in STEPS.items():
        for scheme in (CONTINUOUS, *SCHEMES):
            steps = 0 if scheme == CONTINUOUS else sizes[0]
            yield Configuration(problem, scheme, "Baseline", 0.0, steps, BRANCH)
    for problem in STEPS:
        yield Configuration(problem, LEGENDRE, "Baseline", 0.0, ELEMENTS, OUTER)


def solvers() -> Mapping[str, Solver]:
    """Return the solvers that can run here and all local solvers, local solvers first."""
    every = registry()
    local = {n: s for n, s in every.items() if n in LOCAL_SOLVERS}
    rest = {n: s for n, s in every.items() if n not in local and s.missing() is None}
    return local | dict(sorted(rest.items(), key=lambda item: item[1].scope == "global"))


def registry() -> dict[str, Solver]:
    """Return all solvers by name; a solver included in odefit is not run again over AMPL."""
    every = [make() for name, make in SOLVERS.items() if ":" not in name and name not in LEFT_OUT]
    return {s.name: s for s in every}


def instance_of(configuration: Configuration, start: StartKind = START) -> Instance:
    c = configuration
    mesh = UniformMesh(c.steps, FINAL.get(c.problem))
    d = Discretisation(library.load(c.problem), schemes.SCHEMES[c.scheme.lower()], mesh)
    values, unknowns = start_of(d, start)
    return Instance(d, _formulation(c), values, unknowns)


def start_of(
    discretisation: Discretisation, kind: StartKind = START
) -> tuple[Array | None, Array | None]:
    """Return start values at points and of unknowns; None for the solver's own zero.

    From data: observed states on straight lines between measurements, other states at their
    initial value; unknown initial values as measured (at the first measurement) or in the middle
    of their bounds; parameters zero, moved within their bounds.
    """
    if kind == "zero":
        return None, None

    problem = discretisation.problem
    parameters = set(problem.model.parameters)
    unknowns = np.clip(np.zeros(len(problem.keys)), problem.lower, problem.upper)
    shown = {e.name: name for name, e in problem.model.observables.items()}
    for i, key in enumerate(problem.keys):
        if key in parameters:
            continue
        unknowns[i] = (problem.lower[i] + problem.upper[i]) / 2
        for condition in problem.conditions:
            series = condition.series.get(shown.get(key, ""))
            if series is not None:
                unknowns[i] = np.clip(series.values[0], problem.lower[i], problem.upper[i])
    return guess_from_data(discretisation, unknowns), unknowns


def _formulation(c: Configuration) -> Formulation:
    if c.formulation == "Baseline":
        return Baseline()
    return ExtraTol(c.value) if c.formulation == "ExtraTol" else SoftCons(c.value)
