"""The open nodes of a tree in a checkpoint: a search that was killed continues where it was."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.branch_and_bound.tree import Node, Tree
from odefit.methods.estimate import BoundStep
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.start_checkpoint import natural, numbers, step_from_json, step_to_json

STATE = "state"
"""The key of all that is no node."""


@dataclass(frozen=True, eq=False)
class SearchState:
    """The state of a search beside its tree: batches so far, bounds, their log, and the time."""

    batch: int
    incumbent: Array
    upper: float
    lower: float
    history: tuple[BoundStep, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON value."""
        steps = [step_to_json(step) for step in self.history]
        return asdict(self) | {"incumbent": self.incumbent.tolist(), "history": steps}

    @classmethod
    def from_json(cls, record: Any, unknowns: int) -> SearchState:
        """Return the state in a record; a damaged one raises KeyError, TypeError or ValueError."""
        return cls(
            natural(record["batch"]),
            numbers(record["incumbent"], unknowns),
            float(record["upper"]),
            float(record["lower"]),
            tuple(step_from_json(step) for step in record["history"]),
            float(record["seconds"]),
        )


class TreeCheckpoint:
    """The open nodes of one search, each a record of its own, with the state of the search."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def resume(self, tree: Tree) -> SearchState | None:
        """Let `tree` continue from the file; return the state of its search, None without one.

        InputError is raised for a damaged record: what is left of the nodes would prove too much.
        """
        records = self._checkpoint.records
        if not records:
            return None
        try:
            record = records[STATE]
            state = SearchState.from_json(record["search"], tree.dimension)
            nodes = {int(k): numbers(row) for k, row in records.items() if k != STATE}
            if len(nodes) != record["open"]:
                raise ValueError(f"{record['open']} open nodes were expected, found {len(nodes)}")
            tree.resume(record["tree"], nodes)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise InputError(
                f"{self._checkpoint.path}: is damaged ({error}); remove it to begin anew"
            ) from error
        return state

    @property
    def due(self) -> bool:
        """Whether saving now takes little beside the time since the last saving."""
        return self._checkpoint.due

    def save(self, tree: Tree, search: SearchState) -> None:
        """Save the open nodes of `tree` and the state of its search."""
        rows = {str(node.number): partial(_row, node) for node in tree.nodes}
        head = {"tree": tree.state(), "open": len(rows), "search": search.to_json()}
        self._checkpoint.save({STATE: head}, rows)

    def __enter__(self) -> TreeCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self._checkpoint.close()


def _row(node: Node) -> list[float]:
    return [node.norm, *node.lower.tolist(), *node.upper.tolist()]
