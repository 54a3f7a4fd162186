"""Tables of the attacks on the command line, each attack with its commits and machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evidence import commits
from evidence.running.campaign import Record
from evidence.running.output import listed

if TYPE_CHECKING:
    import pandas as pd

Place = tuple[str, str]  # attack and kind


@dataclass
class Count:
    """Runs and faults, and by which commits and on which machines they were made."""

    runs: int = 0
    faults: int = 0
    # keys without values, which keep the order of the records
    made: dict[str, None] = field(default_factory=dict)
    machines: dict[str, None] = field(default_factory=dict)

    def cells(self) -> Sequence[str]:
        """Return the cells of a row."""
        return [str(self.runs), str(self.faults), ", ".join(self.made), "; ".join(self.machines)]


def counted(order: Sequence[Place], records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return counts by kind and by attack, and the faults."""
    faults = []
    for record in records:
        found = record.result or {"faults": [f"{record.task['first']}: stopped"]}
        faults += [[record.task["attack"], record.task["kind"], f] for f in found["faults"]]
    kinds = _grouped(records, lambda place: place)
    attacks = _grouped(records, lambda place: place[:1])
    ordered = [(*place, *kinds[place].cells()[:2]) for place in order if place in kinds]
    sums = [(*name, *count.cells()) for name, count in attacks.items()]
    counts = ("runs", "faults")
    return {
        "hostile": listed(
            ("attack", *counts, "commit", "machine"),
            sorted(sums, key=lambda r: _first(r[0], order)),
        ),
        "kinds": listed(("attack", "kind", *counts), ordered),
        "faults": listed(("attack", "kind", "fault"), faults),
    }


def _first(attack: str, order: Sequence[Place]) -> int:
    return next(i for i, place in enumerate(order) if place[0] == attack)


def _grouped(
    records: Sequence[Record], group: Callable[[Place], tuple[str, ...]]
) -> dict[tuple[str, ...], Count]:
    counts: dict[tuple[str, ...], Count] = {}
    for record in records:
        count = counts.setdefault(group((record.task["attack"], record.task["kind"])), Count())
        found = record.result
        count.faults += len(found["faults"]) if found else 1
        if found:
            count.runs += found["runs"]
            count.made[found.get("commit", commits.UNKNOWN).split(" (")[0]] = None
            count.machines[found.get("machine", commits.UNKNOWN)] = None
    return counts
