"""Designs that discriminate between models, and measurements that distinguish solutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from odefit.common.errors import some
from odefit.designs.parts import Criterion, DesignData, Rivalry
from odefit.designs.settling import Settlement
from odefit.reporting.numbers import significant

CLEARLY = 3.0
"""Distance of two predictions, in standard deviations, that one measurement surely resolves."""


def rivalry_sentence(rivalry: Rivalry, measurements: str) -> str:
    """Return the sentence on a design that discriminates; `measurements` names its measurements."""
    first, second = (f'"{name}"' for name in rivalry.models)
    least = min(d for d in (rivalry.distance, rivalry.reverse) if not math.isnan(d))
    verb = "distinguishes" if least >= CLEARLY else "is the best attempt to distinguish"
    reverse = ""
    if not math.isnan(rivalry.reverse):
        reverse = f", and if {second} is right, those of {first} by {_deviations(rivalry.reverse)}"
    return (
        f"Measuring {measurements} {verb} {first} and {second}: if {first} is right, "
        f"the closest curves of {second} miss it by {_deviations(rivalry.distance)}{reverse}."
    )


def _deviations(distance: float) -> str:
    return f"{significant(distance, 3)} standard deviations of the noise"


def rivalry_lines(design: DesignData, rivalry: Rivalry) -> Iterator[str]:
    """Yield the predictions of both models, and whether a measurement can distinguish them."""
    width = max((len(m.observables) for m in design.measurements), default=1)
    largest = math.exp(design.value)
    if design.criterion is Criterion.BUZZI_FERRARIS and largest <= width * (1 + 1e-9):
        yield (
            f"The criterion is {significant(largest, 3)}, not more than {width}: no single "
            "measurement is expected to show more than the noise and the uncertainty of both "
            "models."
        )
    pairs = [f"{significant(a, 3)} or {significant(b, 3)}" for a, b in rivalry.predictions[:6]]
    more = " ..." if len(rivalry.predictions) > 6 else ""
    first, second = (f'"{name}"' for name in rivalry.models)
    yield f"Predictions of {first} or {second}: {', '.join(pairs)}{more}."
    closest = [f"{k} = {significant(v, 3)}" for k, v in rivalry.closest.items()]
    yield f"{second} is closest at {some(closest)}."


def rivalry_mapping(rivalry: Rivalry) -> dict[str, Any]:
    """Return the comparison of two models for a JSON file."""
    return {
        "models": list(rivalry.models),
        "distance": plain(rivalry.distance),
        "reverse_distance": plain(rivalry.reverse),
        "predictions": [[plain(v) for v in pair] for pair in rivalry.predictions],
        "closest": {key: plain(value) for key, value in rivalry.closest.items()},
    }


def plain(value: float) -> float | None:
    """Return a number for a JSON file; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def settling_sentence(settlement: Settlement) -> str:
    """Return the sentence on a measurement that distinguishes several solutions."""
    unit = f" {settlement.time_unit}" if settlement.time_unit else ""
    values = joined([significant(v, 3) for v in settlement.predictions])
    verb = (
        "distinguishes" if settlement.distance >= CLEARLY else "is the best attempt to distinguish"
    )
    count = len(settlement.predictions)
    noise = ", which is assumed" if settlement.assumed else ""
    return (
        f'Measuring {settlement.observable} at {significant(settlement.time, 3)}{unit} in "'
        f'{settlement.experiment}" {verb} the {count} solutions: they predict {values}, '
        "and a "
        f"measurement scatters by {significant(settlement.sd, 2)}{noise}."
    )


def joined(parts: Sequence[str]) -> str:
    """Return a list in words: "a, b and c"."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
