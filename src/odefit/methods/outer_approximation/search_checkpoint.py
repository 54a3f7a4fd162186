"""The state of outer approximation in a checkpoint: points, cuts, bounds and pieces so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.methods.outer_approximation.algorithm import MasterSlaveSearch
from odefit.methods.outer_approximation.master_problem import Partition
from odefit.methods.outer_approximation.relaxation import StrengtheningCut
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.start_checkpoint import natural, numbers, step_from_json, step_to_json
from odefit.methods.solvers.answer_checkpoint import answer_from_json, answer_to_json

STATE = "state"
"""The key of the only record."""


def save_search(checkpoint: Checkpoint, search: MasterSlaveSearch) -> None:
    """Keep all that a search needs to go on from the end of its last step."""
    if not checkpoint.due:
        return
    tightening, partition = search.tightening, search.partition
    state = {
        "low": search.low.tolist(),
        "high": search.high.tolist(),
        "lower": search.lower,
        "incumbent": None if search.incumbent is None else answer_to_json(search.incumbent),
        "planes": tightening.planes.added,
        "turn": tightening.turn,
        "probes": [[k, upper, part] for (k, upper), part in tightening.probes.items()],
        "cuts": [[list(cut.residuals), cut.least] for cut in tightening.cuts],
        "partition": None if partition is None else {str(k): e for k, e in partition.items()},
        "rounds": search.rounds,
        "contracted": search.contracted,
        "masters": search.masters,
        "history": [step_to_json(step) for step in search.history],
        "seconds": search.seconds,
    }
    checkpoint.save({STATE: state})


def resume_search(checkpoint: Checkpoint, search: MasterSlaveSearch, d: Discretisation) -> None:
    """Let a search go on from a checkpoint, if that holds a state; refuse a damaged one."""
    state = checkpoint.records.get(STATE)
    if state is None:
        return
    try:
        _resume(state, search, d)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InputError(
            f"{checkpoint.path}: is damaged ({error}); remove it to begin anew"
        ) from error


def _resume(state: Mapping[str, Any], search: MasterSlaveSearch, d: Discretisation) -> None:
    n, unknowns = len(search.low), len(d.problem.unknowns)
    shape = d.points, len(d.variables)
    low, high = numbers(state["low"], n), numbers(state["high"], n)
    planes = [numbers(own).tolist() for own in state["planes"]]
    if len(planes) != len(search.form.residuals) or not np.isfinite([*low, *high]).all():
        raise ValueError("it belongs to another problem")
    incumbent = state["incumbent"]
    cuts = tuple(
        StrengtheningCut(tuple(natural(r) for r in own), float(least))
        for own, least in state["cuts"]
    )
    probes = {(natural(k), bool(upper)): float(part) for k, upper, part in state["probes"]}
    partition: Partition | None = None
    if state["partition"] is not None:
        partition = {int(k): tuple(numbers(e).tolist()) for k, e in state["partition"].items()}
    tightening = search.tightening
    if incumbent is not None:
        search.incumbent = answer_from_json(incumbent, shape, unknowns)
    search.low, search.high, search.lower = low, high, float(state["lower"])
    search.partition, search.rounds = partition, natural(state["rounds"])
    search.contracted, search.masters = bool(state["contracted"]), natural(state["masters"])
    search.history = [step_from_json(step) for step in state["history"]]
    search.before = float(state["seconds"])
    tightening.planes.added = planes
    tightening.turn, tightening.probes = natural(state["turn"]), probes
    tightening.cuts = cuts
