"""Reference values of library problems, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reference:
    """Reference values of one library problem (and one of its data sets).

    Attributes
    ----------
    name
        The library problem.
    papers
        Short names of the papers that use it.
    source
        Where the values and the data come from, and what was chosen for this library.
    objective
        Sum of squared residuals at the reference values (0.0 for noiseless data).
    noise
        ``"none"``, ``"real"`` (measured data) or ``"gaussian"`` (synthetic noise is in the data).
    parameters, initial
        Reference values of the unknown parameters and of the unknown initial values, in the
        problem's units. With several experiments, per-experiment values are keyed
        ``"name[experiment]"``.
    dataset
        Which data set the values belong to; 0 where there is only one.
    datasets
        How many data sets there are.
    samples
        Sample sizes that `load` offers; empty where there is only one.
    default_noise
        The noise level that the source uses (see `noise_model`), or None.
    noise_model
        What a noise level means, or None.
    noise_sd
        Standard deviation of the noise that is in the data, or None.
    best_known
        Smallest sum of squares known, where the reference values are not the optimum; else None.
    not_identifiable
        Unknowns that the data cannot determine; their reference is where the simulation
        started.
    """

    name: str
    papers: tuple[str, ...]
    source: str
    objective: float
    noise: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    initial: Mapping[str, float] = field(default_factory=dict)
    dataset: int = 0
    datasets: int = 1
    samples: tuple[int, ...] = ()
    default_noise: float | None = None
    noise_model: str | None = None
    noise_sd: float | None = None
    best_known: float | None = None
    not_identifiable: tuple[str, ...] = ()


def read_reference(folder: Path, dataset: int) -> Reference:
    """The reference in a problem's folder.

    Parameters
    ----------
    folder
        The problem's folder, with its ``reference.toml``.
    dataset
        Number of the data set, from 0.

    Raises
    ------
    InputError
        There is no such data set.
    """
    import tomllib

    # imported here, not above: tools may read the references without NumPy being there
    from odefit.common.errors import InputError

    raw: dict[str, Any] = tomllib.loads((folder / "reference.toml").read_text(encoding="utf-8"))
    sets: dict[str, Any] = raw.get("datasets", {"0": raw})
    if str(dataset) not in sets:
        raise InputError(
            f"'{folder.name}' has no data set {dataset}. Expected: "
            + ("0" if len(sets) == 1 else f"0 to {len(sets) - 1}")
        )
    values = sets[str(dataset)]
    return Reference(
        name=folder.name,
        papers=tuple(raw["paper"]),
        source=raw["source"],
        objective=float(raw["objective"]),
        noise=raw["noise"],
        parameters={k: float(v) for k, v in values.get("parameters", {}).items()},
        initial={k: float(v) for k, v in values.get("initial", {}).items()},
        dataset=dataset,
        datasets=len(sets),
        samples=tuple(
            sorted(int(p.stem.removeprefix("data_n")) for p in folder.glob("data_n*.csv"))
        ),
        default_noise=raw.get("default_noise"),
        noise_model=raw.get("noise_model"),
        noise_sd=raw.get("noise_sd"),
        best_known=raw.get("best_known"),
        not_identifiable=tuple(raw.get("not_identifiable", ())),
    )
