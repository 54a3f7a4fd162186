"""The runs of the campaign `automatic`: its parts, methods and options."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from evidence.front_door.dense_data import DRAWS, LEVELS, SYSTEMS
from evidence.running.campaign import Option, Task
from odefit import InputError, library

# The parts of the campaign, in the order of the tables
PARTS = ("dense", "library", "published", "cascade", "interrupts")
DEFAULT = "automatic"  # the method of a fit without a named method

# The single methods of the package, by their names on the command line
OWN = (
    "multi-start",
    "multiple-shooting",
    "integral-matching",
    "algebraic",
    "transcription",
)

PEERS = ("copasi", "scipy")  # other programs: COPASI by basico, and a script with SciPy
METHODS = (DEFAULT, *OWN, *PEERS)  # the compared methods, in the order of the tables

# Published problems, and the time limit of each in seconds
PUBLISHED: Mapping[str, float] = {
    "Boehm_JProteomeRes2014": 60.0,
    "Crauste_CellSystems2017": 60.0,
    "Elowitz_Nature2000": 60.0,
    "Fujita_SciSignal2010": 60.0,
    "Brannmark_JBC2010": 60.0,
    "Raia_CancerResearch2011": 120.0,
    "Fiedler_BMCSystBiol2016": 120.0,
    "Perelson_Science1996": 60.0,
    "Giordano_Nature2020": 120.0,
}

# Problems of the library with a time limit of their own, in seconds
SLOW_LIBRARY: Mapping[str, float] = {"hiv-proteinase": 120.0}

# Problems of the library whose fits are not interrupted: two hundred of them would take hours
LONG = (
    *("hiv-proteinase", "henon-heiles", "rikitake"),
    *("rational-biohydrogenation", "rational-crauste", "rational-hiv"),
)

INTERRUPTIONS = ("time limit", "ctrl-c", "kill")  # the ways to interrupt a fit
LIBRARY_SEEDS = 5
PUBLISHED_SEEDS = 3
INTERRUPTS = 200


def _draws(text: str) -> tuple[int, ...]:
    first, dash, last = text.partition("-")
    return tuple(range(int(first), int(last) + 1) if dash else range(int(first)))


def _problems() -> Collection[str]:
    return (*library.names(), *PUBLISHED)


OPTIONS = (
    Option("parts", PARTS, f"which parts, of {','.join(PARTS)}", PARTS),
    Option("methods", METHODS, f"which methods, of {','.join(METHODS)}", METHODS),
    Option("compared", 1, "how many draws and seeds have all methods; others the default alone"),
    Option("systems", tuple(SYSTEMS), "which dense systems, e.g. pendulum,goodwin", SYSTEMS),
    Option("noise", LEVELS, "levels of the noise of dense series, e.g. 0,1e-2", least=0),
    Option("draws", tuple(range(DRAWS)), "how many draws, or which, e.g. 2 or 3-5", whole=_draws),
    Option("seeds", LIBRARY_SEEDS, "how many seeds of parts other than dense series, at most"),
    Option("problems", (), "library and published problems, e.g. sir", _problems),
    Option("folder", "", "folder of the published problems, NAME.json each; without it none"),
    Option("limit", 60.0, "time limit of a fit in seconds, where a problem has none", above=0),
    Option("interrupts", INTERRUPTS, "how many fits are broken off"),
)


def tasks(**options: Any) -> list[Task]:
    """Return all tasks: the default method of every part first, then the comparisons."""
    return list(_Setting(**options).tasks())


@dataclass(frozen=True)
class _Setting:
    """The options chosen for a run of the campaign, see :data:`OPTIONS`."""

    parts: Sequence[str]
    methods: Sequence[str]
    compared: int
    systems: Sequence[str]
    noise: Sequence[float]
    draws: Sequence[int]
    seeds: int
    problems: Sequence[str]
    folder: str
    limit: float
    interrupts: int

    def __post_init__(self) -> None:
        missing = [n for n in self._published() if not (Path(self.folder) / f"{n}.json").is_file()]
        if self.folder and missing:
            raise InputError(f"folder: {self.folder} has no {missing[0]}.json")

    def tasks(self) -> Iterator[Task]:
        makers = {
            "dense": self._dense,
            "library": self._library,
            "published": self._published_fits,
            "cascade": self._cascade,
        }
        for method in self.methods:
            for part in self.parts:
                if part in makers:
                    yield from makers[part](method)
        if "interrupts" in self.parts:
            yield from self._interrupts()

    def _dense(self, method: str) -> Iterator[Task]:
        draws = self.draws if method == DEFAULT else self.draws[: self.compared]
        for draw in draws:
            for noise in self.noise:
                for system in self.systems:
                    task = self._fit("dense", system, method, draw, self.limit)
                    task["key"] = f"dense, {system}, noise {noise:g}, draw {draw}, {method}"
                    yield task | {"noise": noise}

    def _library(self, method: str) -> Iterator[Task]:
        for seed in self._seeds(LIBRARY_SEEDS, method):
            for name in library.names():
                if self._wanted(name, library.names()):
                    limit = SLOW_LIBRARY.get(name, self.limit)
                    yield self._fit("library", name, method, seed, limit)

    def _published_fits(self, method: str) -> Iterator[Task]:
        if not self.folder:
            return
        for seed in self._seeds(PUBLISHED_SEEDS, method):
            for name in self._published():
                task = self._fit("published", name, method, seed, PUBLISHED[name])
                yield task | {"folder": self.folder}

    def _cascade(self, method: str) -> Iterator[Task]:
        for seed in self._seeds(PUBLISHED_SEEDS, method):
            yield self._fit("cascade", "cascade", method, seed, self.limit)

    def _interrupts(self) -> Iterator[Task]:
        random = np.random.default_rng(crc32(b"interrupts"))
        short = [*SYSTEMS, *(n for n in library.names() if n not in LONG)]
        for number in range(self.interrupts):
            kind = INTERRUPTIONS[number % len(INTERRUPTIONS)]
            yield {
                "key": f"interrupts, {number}, {kind}",
                "part": "interrupts",
                "problem": str(random.choice(short)),
                "method": DEFAULT,
                "kind": kind,
                "moment": float(random.uniform()),
                "seed": number,
                "limit": self.limit,
            }

    def _seeds(self, most: int, method: str) -> range:
        seeds = range(min(most, self.seeds))
        return seeds if method == DEFAULT else seeds[: self.compared]

    def _published(self) -> list[str]:
        return [n for n in PUBLISHED if self._wanted(n, PUBLISHED)]

    def _wanted(self, name: str, of: Any) -> bool:
        """Return whether `name` is chosen; a part without a named entry is chosen as a whole."""
        named = [p for p in self.problems if p in of]
        return name in named if self.problems else True

    @staticmethod
    def _fit(part: str, name: str, method: str, seed: int, limit: float) -> dict[str, Any]:
        return {
            "key": f"{part}, {name}, seed {seed}, {method}",
            "part": part,
            "problem": name,
            "method": method,
            "seed": seed,
            "limit": limit,
        }
