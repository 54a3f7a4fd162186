"""The time of a fit's integrations, beside that of the best single engine in hindsight.

A fit runs as usual, while each integration is timed and then repeated by every engine that can
integrate such equations: the explicit one, the implicit one, and heyoka's Taylor method if that is
chosen. Engines are compiled before they are timed. Every one of the first integrations is
repeated, later ones at equal distances, and count for those between. The regret of a fit is the
time of its own choices over that of the best engine for the whole fit. It can be below one, as
linear equations have closed forms.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import hide_heyoka
from evidence.running.output import listed

if TYPE_CHECKING:
    import pandas as pd

    from odefit import Problem
    from odefit.problem.vector_field import VectorField
    from odefit.simulation.engines.engine import Engine, Values
    from odefit.simulation.engines.engine_choice import EngineChoice, Integrated
    from odefit.simulation.engines.engines import Engines
    from odefit.simulation.engines.registry import EngineRow
    from odefit.simulation.engines.segments import Segment

FIRST, EVERY = 600, 10  # integrations that are all repeated, and the distance of later ones
MOST_STEPS = 20_000  # steps of an explicit engine, which takes that many for stiff equations
HOPELESS = 10.0  # an engine that takes so many times as long as the fit's choices is left out
LEAST = 2.0  # but not before it has taken so many seconds
SHORT = 0.02  # a fit that integrates for less, in seconds, counts in the sum alone

SOURCES = ("library", "dense")
DRAWS = ((1e-2, 1), (1e-4, 2))  # noise and draw of the dense series


@dataclass
class Times:
    """Seconds of integrations: of the fit's own choices, and of each single engine."""

    chosen: float = 0.0
    count: int = 0
    single: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hopeless: set[str] = field(default_factory=set)


class Replayed:
    """Integrations of all fits while it is active, each repeated by every engine."""

    def __init__(self) -> None:
        self.times = Times()
        self._warm: dict[int, Engine] = {}  # which keeps them, so that numbers are not used again
        self._repeating = False

    def __enter__(self) -> Replayed:
        from odefit.simulation.engines.engines import Engines

        self._usual: Callable[..., Integrated] = Engines.integrate

        def integrate(engines: Engines, *arguments: Any, repeated: bool = False) -> Integrated:
            *problem, choice = arguments
            return self.integrated((engines, *problem), choice, repeated)

        Engines.integrate = integrate  # type: ignore[assignment]
        return self

    def __exit__(self, *error: object) -> None:
        from odefit.simulation.engines.engines import Engines

        Engines.integrate = self._usual  # type: ignore[method-assign]

    def integrated(self, arguments: Any, choice: EngineChoice, repeated: bool) -> Integrated:
        """Integrate as the fit does, and then by each engine alone."""
        engines, equations, pattern, segment, initial = arguments

        def usual() -> Integrated:
            return self._usual(*arguments, choice, repeated=repeated)

        if self._repeating or engines.setting != "auto" or equations.algebraic:
            return usual()
        times, number = self.times, self.times.count
        times.count += 1
        if number >= FIRST and number % EVERY:
            return usual()
        weight = 1 if number < FIRST else EVERY
        able = [
            (row, stopping(engines, row, equations, segment, initial)) for row in rows(equations)
        ]
        found = {row.name: engines._engine(row.name, equations, pattern) for row, _ in able}
        for row, stops in able:
            if id(found[row.name]) not in self._warm:
                self._warm[id(found[row.name])] = found[row.name]
                found[row.name].integrate(stops, initial, 100)
        self._repeating = True
        began = time.thread_time()
        outcome = usual()
        times.chosen += weight * (time.thread_time() - began)
        self._repeating = False
        for row, stops in able:
            if row.name in times.hopeless:
                continue
            most = row.most_steps(stops, None) if row.stiff else MOST_STEPS
            began = time.thread_time()
            found[row.name].integrate(stops, initial, most)
            times.single[row.name] += weight * (time.thread_time() - began)
            if times.single[row.name] > HOPELESS * times.chosen + LEAST:
                times.hopeless.add(row.name)
        return outcome


def stopping(
    engines: Engines, row: EngineRow, equations: VectorField, segment: Segment, at: Values
) -> Segment:
    """Return a segment with the stops that an engine needs for narrow features."""
    features = engines._features(equations)
    if features is None:
        return segment
    return features.with_stops(segment, at.scalars, centres=row.stops_at_centres)


def rows(field: VectorField) -> list[EngineRow]:
    """Return the engines that could integrate equations alone."""
    from odefit.simulation.engines.registry import EXPLICIT, STIFF, TAYLOR

    able = (TAYLOR, EXPLICIT, STIFF[0])
    return [row for row in able if not row.problem and row.can_integrate(field)]


def problem_of(source: str, name: str) -> Problem:
    """Return a library problem, or a dense series by its system, noise and draw."""
    import odefit

    if source == "library":
        return odefit.library.load(name)
    from evidence.front_door.dense_data import dense_problem

    system, noise, draw = name.split()
    return dense_problem(system, float(noise), int(draw))[0]


OPTIONS = (
    Option("sources", SOURCES, "kinds of problems", SOURCES),
    Option("problems", (), "names of problems"),
    Option("heyoka", "no", "no, as in an installation without extras, or yes", ("no", "yes")),
    Option("limit", 120.0, "seconds of a fit", above=0),
)


def tasks(sources: Sequence[str], problems: Sequence[str], heyoka: str, limit: float) -> list[Task]:
    import odefit
    from evidence.front_door.dense_data import SYSTEMS as DENSE

    names = {
        "library": list(odefit.library.names()),
        "dense": [f"{name} {noise:g} {draw}" for name in DENSE for noise, draw in DRAWS],
    }
    return [
        task
        for source in sources
        for task in tasks_of(
            "problem",
            [n for n in names[source] if not problems or n in problems],
            source=source,
            heyoka=heyoka,
            limit=limit,
        )
    ]


def run(task: Task) -> dict[str, Any]:
    """Fit a problem, and return the seconds of its integrations by each choice."""
    import odefit

    if task["heyoka"] == "no":
        hide_heyoka()

    problem = problem_of(task["source"], task["problem"])
    with Replayed() as replayed:
        odefit.fit(problem, jobs=1, time_limit=task["limit"])
    times = replayed.times
    return {
        "chosen": times.chosen,
        "count": times.count,
        "single": dict(times.single),
        "hopeless": sorted(times.hopeless),
    }


HEAD = ("problem", "integrations", "odefit, ms", "heyoka", "runge-kutta", "bdf", "regret")
SUMMARY = ("fits", "number", "odefit, s", "best engine, s", "regret", "mean", "most", "of")


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    lines = []
    by_source: dict[str, list[tuple[float, float, str]]] = {}
    for record in records:
        found = record.result
        if found is None:
            continue
        usable = {k: v for k, v in found["single"].items() if k not in found["hopeless"]}
        if not usable:
            continue
        name, chosen, least = record.task["problem"], found["chosen"], min(usable.values())
        for source in (record.task["source"], "all"):
            by_source.setdefault(source, []).append((chosen, least, name))
        cells = [f"{1e3 * usable[k]:.0f}" if k in usable else "" for k in HEAD[3:6]]
        ms, ratio = f"{1e3 * chosen:.0f}", f"{chosen / least:.2f}"
        lines.append([name, str(found["count"]), ms, *cells, ratio])
    rows = []
    for source, fits in sorted(by_source.items(), reverse=True):
        ratios = [(own / best, name) for own, best, name in fits if own >= SHORT]
        if not ratios:
            continue
        mean = math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios))
        most, name = max(ratios)
        sums = [sum(own for own, _, _ in fits), sum(best for _, best, _ in fits)]
        seconds = [f"{total:.2f}" for total in sums]
        means = [f"{value:.2f}" for value in (sums[0] / sums[1], mean, most)]
        rows.append([source, str(len(fits)), *seconds, *means, name])
    note = f"The mean (geometric) and the most are of fits that integrate for {1e3 * SHORT:g} ms."
    return {"regret": listed(SUMMARY, rows, note), "fits": listed(HEAD, lines)}
