"""The runs of the campaign `automatic`: its parts, methods and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from evidence.front_door.dense_data import DRAWS, LEVELS
from evidence.front_door.dense_systems import SYSTEMS
from evidence.running.campaign import Task
from evidence.running.options import check_known, read_options
from odefit.common.errors import InputError

# The parts of the campaign, in the order of the tables
PARTS = ("dense", "library", "published", "cascade", "interrupts")
DEFAULT = "automatic"  # what a fit does for which no method is named

# The single methods of the package, by their names on the command line
OWN = (
    "multi-start",
    "multiple-shooting",
    "integral-matching",
    "algebraic",
    "transcription",
)

PEERS = ("copasi", "scipy")  # other programs: COPASI by basico, and a script with SciPy
METHODS = (DEFAULT, *OWN, *PEERS)  # what is compared, in the order of the tables

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

# Problems of the library whose fits are not broken off: two hundred of them would take hours
LONG = (
    *("hiv-proteinase", "henon-heiles", "rikitake"),
    *("rational-biohydrogenation", "rational-crauste", "rational-hiv"),
)

INTERRUPTIONS = ("time limit", "ctrl-c", "kill")  # the ways in which a fit is broken off
LIBRARY_SEEDS = 5
PUBLISHED_SEEDS = 3
INTERRUPTS = 200

# The options of the campaign: name and meaning
OPTIONS = (
    ("parts", f"which parts, of {','.join(PARTS)}"),
    ("methods", f"which methods, of {','.join(METHODS)}"),
    ("compared", "how many draws and seeds have all methods, the others the default alone"),
    ("systems", "which dense systems, e.g. pendulum,goodwin"),
    ("noise", "levels of the noise of dense series, e.g. 0,1e-2"),
    ("draws", "how many draws of the dense series, or which, e.g. 2 or 3-5"),
    ("seeds", "how many seeds of the library, the published problems and the cascade, at most"),
    ("problems", "which library and published problems, e.g. sir,Boehm_JProteomeRes2014"),
    ("folder", "folder of the published problems, NAME.json each; without it there are none"),
    ("limit", "time limit of a fit in seconds, where a problem has none of its own"),
    ("interrupts", "how many fits are broken off"),
)


@dataclass(frozen=True)
class Setting:
    """The options chosen for a run of the campaign, see :data:`OPTIONS`."""

    parts: tuple[str, ...] = PARTS
    methods: tuple[str, ...] = METHODS
    compared: int = 1
    systems: tuple[str, ...] = tuple(SYSTEMS)
    noise: tuple[float, ...] = LEVELS
    draws: tuple[int, ...] = tuple(range(DRAWS))
    seeds: int = LIBRARY_SEEDS
    problems: tuple[str, ...] = ()
    folder: str = ""
    limit: float = 60.0
    interrupts: int = INTERRUPTS

    def __post_init__(self) -> None:
        from odefit import library

        check_known("parts", self.parts, PARTS)
        check_known("methods", self.methods, METHODS)
        check_known("systems", self.systems, SYSTEMS)
        check_known("problems", self.problems, (*library.names(), *PUBLISHED))
        if not all(0 <= level < np.inf for level in self.noise):
            raise InputError(f"noise: expected numbers of 0 or more, got {list(self.noise)}")
        if not 0 < self.limit < np.inf:
            raise InputError(f"limit: expected a positive number of seconds, got {self.limit}")
        missing = [n for n in self._published() if not (Path(self.folder) / f"{n}.json").is_file()]
        if self.folder and missing:
            raise InputError(f"folder: {self.folder} has no {missing[0]}.json")

    def with_options(self, chosen: Mapping[str, str]) -> Setting:
        """Return the setting with some options replaced, given as text."""
        return replace(self, **read_options(chosen, dict(OPTIONS), _read))

    def tasks(self) -> Iterator[Task]:
        """Return all tasks: the default method of every part first, then the comparisons."""
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
        from odefit import library

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
        from odefit import library

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
        """Whether `name` is chosen; all of a part are where none of it is named."""
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


def _read(name: str, text: str) -> Any:
    """Return the value of an option, read from text."""
    if name == "folder":
        return text
    if name == "limit":
        return float(text)
    if name == "draws":
        first, dash, last = text.partition("-")
        return tuple(range(int(first), int(last) + 1) if dash else range(int(first)))
    parts = [part.strip() for part in text.split(",")]
    if name == "noise":
        return tuple(float(p) for p in parts)
    kinds = {f.name: f.type for f in fields(Setting)}
    if kinds[name] == "int":
        return int(text)
    return tuple(parts)
