"""The runs of the campaign `global`: problems with bounds, as discretised or in continuous time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evidence.running.campaign import Option, Task
from evidence.transcription.plan import FINAL, STEPS
from odefit import Collocation, Problem, library
from odefit.discretisation.mesh import Mesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES, Scheme
from odefit.methods.bounded_problem import finite_bounds, with_bounds

BRANCH, OUTER, SCIP = "branch-and-bound", "outer-approximation", "scip"
METHODS = (BRANCH, OUTER, SCIP)
PARTS = ("alpha-pinene", "hiv-proteinase", "noisy", "noise-free")

# Names of the three kinds of problems: in continuous time, or discretised by a scheme
SPACES = ("continuous", "legendre", "trapezoid")

# Noise of the noisy problems: standard deviation over that of each observable, and its seed
NOISE, SEED = 0.05, 1
NOISY = ("harmonic", "lotka-volterra-f", "lotka-volterra-p", "fitzhugh-nagumo")
FACTOR = 2.0  # ratio of their bounds to the reference values

# Problems of local-and-global-solvers whose optimum is zero
NOISE_FREE = tuple(name for name in STEPS if name != "alpha-pinene")

# Elements and points of their Legendre collocation, which all three methods take
ELEMENTS, POINTS = 10, 3
WIDE, NARROW = (0.0, 1.0), (1e-6, 1e-3)  # the bounds of alpha-pinene's five rate constants


@dataclass(frozen=True)
class Case:
    """A problem with bounds, and the settings of each method."""

    part: str  # one of :data:`PARTS`
    problem: str  # in the library
    space: str  # one of :data:`SPACES`
    steps: int = 0  # elements or steps; 0 in continuous time
    points: int = 0  # collocation points in each element
    # Bounds of unknowns that replace those of the library
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # Factor between bounds and reference values, within the library's bounds; 0 for these bounds
    factor: float = 0.0
    noise: float = 0.0  # level of noise added to the data
    # Time limit by method; a method that is not named does not take part
    seconds: Mapping[str, float] = field(default_factory=dict)
    gap: float = 1e-3  # relative, at which branch and bound and SCIP stop
    # Of :class:`odefit.OuterApproximation`
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""  # added to the name

    @property
    def where(self) -> str:
        """How time is treated, in words."""
        if self.space == "continuous":
            return "continuous time"
        size = f"{self.steps} x {self.points}" if self.space == "legendre" else f"{self.steps}"
        return f"{self.space} {size}"

    @property
    def name(self) -> str:
        """The unique name of the case."""
        noise = f", noise {self.noise:g}" if self.noise else ""
        note = f", {self.note}" if self.note else ""
        return f"{self.problem}{noise}, {self.where}{note}"

    def load(self) -> Problem:
        problem = library.load(self.problem, noise=self.noise, seed=SEED)
        given = dict(self.bounds)
        if self.factor:
            reference = library.reference(self.problem)
            true = {**reference.parameters, **reference.initial}
            for key in problem.keys:
                ends = (true[key] / self.factor, true[key] * self.factor)
                given[key] = (min(ends), max(ends))
        return with_bounds(problem, finite_bounds(problem, given))

    def discretisation(self) -> tuple[Scheme, Mesh] | None:
        """Return scheme and mesh; None in continuous time."""
        if self.space == "continuous":
            return None
        if self.space == "legendre":
            return Collocation(self.points, "legendre"), UniformMesh(self.steps)
        final = FINAL.get(self.problem) if self.steps in STEPS.get(self.problem, ()) else None
        return SCHEMES[self.space], UniformMesh(self.steps, final)


def _alpha_pinene() -> Iterator[Case]:
    name = "alpha-pinene"
    for ends in (WIDE, NARROW):
        note = f"p in [{ends[0]:g}, {ends[1]:g}]"
        bounds = {f"p{i}": ends for i in range(1, 6)}
        yield Case(
            name,
            name,
            "legendre",
            5,
            3,
            bounds,
            seconds={BRANCH: 60.0, OUTER: 600.0, SCIP: 240.0},
            options={"pieces": 4, "hyperplanes": 6, "cut": 20.0, "tolerance": 0.0306},
            note=note,
        )
        yield Case(name, name, "continuous", bounds=bounds, seconds={BRANCH: 120.0}, note=note)
        yield Case(
            name,
            name,
            "trapezoid",
            STEPS[name][0],
            bounds=bounds,
            seconds={BRANCH: 600.0, SCIP: 600.0},
            gap=1e-2,
            note=note,
        )


def _hiv_proteinase() -> Iterator[Case]:
    groups = ((0, 1, 2, 3), (1, 2, 3, 4))
    yield Case(
        "hiv-proteinase",
        "hiv-proteinase",
        "legendre",
        5,
        5,
        seconds=dict.fromkeys(METHODS, 1800.0),
        gap=0.05,
        options={
            "pieces": 3,
            "hyperplanes": 6,
            "cuts": groups,
            "tolerance": 0.186,
        },
    )


def _noisy() -> Iterator[Case]:
    for name in NOISY:
        yield Case(
            "noisy",
            name,
            "continuous",
            factor=FACTOR,
            noise=NOISE,
            seconds={BRANCH: 120.0},
            gap=1e-2,
            note=f"within a factor {FACTOR:g}",
        )


def _noise_free() -> Iterator[Case]:
    for name in NOISE_FREE:
        yield Case("noise-free", name, "continuous", seconds={BRANCH: 60.0})
    for name in NOISE_FREE:
        limits = {BRANCH: 60.0, SCIP: 60.0}
        yield Case("noise-free", name, "trapezoid", STEPS[name][0], seconds=limits)
    for name in NOISE_FREE:
        limits = dict.fromkeys(METHODS, 60.0)
        options = {"tolerance": 1e-3}
        yield Case(
            "noise-free", name, "legendre", ELEMENTS, POINTS, seconds=limits, options=options
        )


# The cases by name
CASES: Mapping[str, Case] = {
    case.name: case
    for made in (_alpha_pinene, _hiv_proteinase, _noisy, _noise_free)
    for case in made()
}

PROBLEMS = tuple(dict.fromkeys(case.problem for case in CASES.values()))


OPTIONS = (
    Option("parts", PARTS, "parts of the campaign, e.g. alpha-pinene", PARTS),
    Option("problems", PROBLEMS, "names in the library, e.g. harmonic,bbg", PROBLEMS),
    Option("spaces", SPACES, "kinds of problems, e.g. continuous", SPACES),
    Option("methods", METHODS, "methods, e.g. scip", METHODS),
    Option("seconds", 1e9, "how long a run may take at most, e.g. 60", above=0),
)


def tasks(
    parts: Sequence[str],
    problems: Sequence[str],
    spaces: Sequence[str],
    methods: Sequence[str],
    seconds: float,
) -> list[Task]:
    return [
        task(case, method, min(limit, seconds))
        for case in CASES.values()
        if case.part in parts and case.problem in problems and case.space in spaces
        for method, limit in case.seconds.items()
        if method in methods
    ]


def task(case: Case, method: str, seconds: float) -> Task:
    return {
        "key": f"{case.name}, {method}, {seconds:g} s",
        "case": case.name,
        "part": case.part,
        "problem": case.problem,
        "space": case.space,
        "method": method,
        "seconds": seconds,
    }
