"""Designs in words, as tables and as JSON: which measurements to make, and their value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odefit.common.errors import counted, some
from odefit.designs.parts import (
    Criterion,
    DesignData,
    Excluded,
    Exclusion,
    Measurement,
    PlannedInterval,
    Region,
    Run,
)
from odefit.reporting.designs.discrimination import (
    joined,
    plain,
    rivalry_lines,
    rivalry_mapping,
    rivalry_sentence,
)
from odefit.reporting.numbers import level_words, percent, significant

if TYPE_CHECKING:
    import pandas as pd

CRITERIA = {
    Criterion.D: "D (the volume of the confidence region)",
    Criterion.DS: "Ds (the volume of the confidence region of chosen quantities)",
    Criterion.A: "A (the mean of the variances)",
    Criterion.C: "c (the variance of chosen quantities)",
    Criterion.T: "T (the smallest sum of squares with which the other model fits the first)",
    Criterion.BUZZI_FERRARIS: "Buzzi-Ferraris (differences beside the noise and the uncertainty of "
    "both models, one measurement after the other)",
    Criterion.E: "E (the longest axis of the confidence region)",
    Criterion.MODIFIED_E: "modified E (the ratio of the longest and the shortest axis)",
}
"""The criteria in words."""

REGIONS = {
    Region.PROFILE: "values within the profiles",
    Region.BOOTSTRAP: "estimates of the bootstrap",
    Region.POSTERIOR: "draws of the posterior",
    Region.GIVEN: "vectors of unknowns that were given",
}
"""The regions of robust designs, in words."""

REASONS = {
    Excluded.NO_SPREAD: "its noise would have no standard deviation",
    Excluded.NOT_POSITIVE: "it is not positive, which its noise needs",
    Excluded.NOT_FINITE: "its prediction or a derivative of it is not finite",
    Excluded.FAILED: "the model could not be integrated",
}
"""Reasons why candidates were left out, in words."""

TIMES_IN_WORDS = {1: "", 2: " twice", 3: " three times", 4: " four times"}

MAX_NAMED = 6
"""Number of intervals that the first sentence mentions."""


def design_sentence(design: DesignData) -> str:
    """Return the main sentence on a design: what to measure, and what that determines."""
    if not design.found:
        return lost_sentence(design)
    measurements = _measuring(design)
    if design.rivalry is not None:
        return rivalry_sentence(design.rivalry, measurements)
    known = [i for i in design.intervals if not any(math.isnan(v) for v in i.after)]
    if not known:
        return f"Measuring {measurements} is best; the widths of intervals depend on the noise."
    shown = known[:MAX_NAMED]
    narrowed = [i for i in shown if _has_interval_before(i)]
    parts = []
    if narrowed:
        first, *rest = (f"{i.key} from {_ends(i.before)} to {_ends(i.after)}" for i in narrowed)
        parts.append(joined([f"narrows the interval of {first}", *(f"that of {r}" for r in rest)]))
    if new := [i for i in shown if not _has_interval_before(i)]:
        parts.append(f"determines {joined([f'{i.key} within {_ends(i.after)}' for i in new])}")
    more = f" ({len(known) - MAX_NAMED} more below)" if len(known) > MAX_NAMED else ""
    sentence = f"Measuring {measurements} {', and '.join(parts)}{more}"
    without = [d.sentence.rstrip(".") for d in design.directions]
    if without:
        lowered = [w[0].lower() + w[1:] for w in without[:2]]
        sentence += f"; without it {' and '.join(lowered)}"
    return f"{sentence}."


def lost_sentence(design: DesignData) -> str:
    """Return the sentence on unknowns that the candidates cannot determine, with remedies."""
    lost = list(design.lost)
    are = "is" if len(lost) == 1 else "are"
    names = joined(lost) if len(lost) < 4 else some(lost)
    sentence = f"{names} {are} not determined, however often these observables are measured"
    known = [c for c in design.combinations if any(key in c for key in lost)]
    if known:
        sentence += f": they tell {joined([f'{c}' for c in known])} alone"
    sentence += ". "
    if not design.remedies:
        return (
            f"{sentence}No further state would change that: fix one of these unknowns, or name the "
            "quantities of interest with --of (of=[...])."
        )
    first = design.remedies[0]
    equal = [r for r in design.remedies if len(r.remaining) == len(first.remaining)]
    also = [r.name for r in equal[1:]]
    choice = f"{first.name} (or {' or '.join(also[:3])})" if also else first.name
    all_known = "all of them" if len(first.determined) > 1 else first.determined[0]
    unknowns = all_known if not first.remaining else joined(list(first.determined))
    return f"{sentence}If {choice} is measured as well, {unknowns} can be determined."


def design_lines(design: DesignData) -> Iterator[str]:
    """Yield sentences on the quality of a design and its limits."""
    yield f"Criterion: {CRITERIA[design.criterion]}."
    if design.region is not Region.ESTIMATE:
        yield (f"The design is the best on average over {design.samples} {REGIONS[design.region]}.")
    best = design.continuous
    if best is not None:
        yield (
            f"Best division of the effort: {_points(design)}. No candidate exceeds the mean "
            f"derivative by more than {max(best.excess, 0.0):.1e} of the criterion "
            f"({best.checked} candidates; the equivalence theorem)."
        )
        if math.isfinite(design.efficiency):
            yield (
                f"The design of whole measurements has {percent(min(design.efficiency, 1.0))} of "
                "the information of that division."
            )
    if design.rivalry is not None:
        yield from rivalry_lines(design, design.rivalry)
    if best is None and design.found and design.criterion is Criterion.MODIFIED_E:
        yield (
            "This criterion is not convex: the design is the best that exchanges find, without a "
            "proof that there is no better one."
        )
    if design.existing:
        verb = "counts" if design.existing == 1 else "count"
        yield f"{counted(design.existing, 'existing measurement')} {verb}, too."
    if design.found and not design.noise_known:
        yield (
            "The problem does not give the size of the noise: state it in [noise], or with "
            "--sd NAME=VALUE, to plan the widths of intervals."
        )
    if any(math.isnan(i.after[0]) for i in design.intervals) and design.noise_known:
        yield (
            "No degree of freedom is left to estimate the noise, so intervals cannot be "
            "predicted: measure more, or give the standard deviation in [noise]."
        )
    for exclusion in design.excluded:
        yield _exclusion_sentence(exclusion)


def design_text(design: DesignData) -> str:
    """Return a design as plain text, as ``odefit design`` prints it."""
    parts = [design_sentence(design), ""]
    if design.found:
        parts += _aligned(("observable", "time", "replicates", "run"), _rows(design))
        parts.append("")
        if design.intervals:
            level = level_words(design.level)
            titles = ("", "value", f"{level} interval before", "after")
            parts += _aligned(titles, [_interval_row(i) for i in design.intervals])
            parts.append("")
    parts += [f"- {line}" for line in design_lines(design)]
    return "\n".join(parts)


def measurement_table(design: DesignData) -> pd.DataFrame:
    """Return one row for each measurement: run, experiment, settings, observable, time, count."""
    import pandas as pd

    rows = [
        {
            "run": m.run + 1,
            "experiment": design.runs[m.run].experiment,
            **design.runs[m.run].settings,
            "observable": name,
            "t": m.time,
            "date": m.date,
            "count": m.count,
        }
        for m in design.measurements
        for name in m.observables
    ]
    columns = ["run", "experiment", *(design.runs[0].settings if design.runs else ())]
    date = ["date"] if any(m.date for m in design.measurements) else []
    return pd.DataFrame(rows, columns=[*columns, "observable", "t", *date, "count"])


def interval_table(design: DesignData) -> pd.DataFrame:
    """Return the intervals without and with the measurements, one row for each quantity."""
    import pandas as pd

    rows = [
        {
            "quantity": i.key,
            "value": i.value,
            "before_low": i.before[0],
            "before_high": i.before[1],
            "after_low": i.after[0],
            "after_high": i.after[1],
            "error_before": i.error_before,
            "error_after": i.error_after,
        }
        for i in design.intervals
    ]
    columns = [
        *("quantity", "value", "before_low", "before_high", "after_low", "after_high"),
        *("error_before", "error_after"),
    ]
    table = pd.DataFrame(rows, columns=columns).set_index("quantity")
    table.attrs["level"] = design.level
    return table


def design_mapping(design: DesignData) -> dict[str, Any]:
    """Return a design for a JSON file; infinite and undefined numbers are None there."""
    best = design.continuous
    return {
        "format": 1,
        "kind": "design",
        "problem": design.problem,
        "time_unit": design.time_unit,
        "criterion": design.criterion.value,
        "quantities": list(design.quantities),
        "region": design.region.value,
        "samples": design.samples,
        "existing_measurements": design.existing,
        "sentence": design_sentence(design),
        "times": design.times if design.found else [],
        "runs": [{"experiment": r.experiment, "settings": dict(r.settings)} for r in design.runs],
        "measurements": [_measurement(m) for m in design.measurements],
        "value": plain(design.value),
        "efficiency": plain(design.efficiency),
        "cost": design.cost,
        "continuous": None
        if best is None
        else {
            "points": [
                {**_measurement(p.measurement), "weight": p.weight, "count": None}
                for p in best.points
            ],
            "runs": [{"experiment": r.experiment, "settings": dict(r.settings)} for r in best.runs],
            "value": plain(best.value),
            "excess": best.excess,
            "checked": best.checked,
        },
        "level": design.level,
        "intervals": {
            i.key: {
                "value": i.value,
                "before": [plain(v) for v in i.before],
                "after": [plain(v) for v in i.after],
            }
            for i in design.intervals
        },
        "discrimination": None if design.rivalry is None else rivalry_mapping(design.rivalry),
        "not_determined": list(design.lost),
        "remedies": [
            {"observable": r.name, "determines": list(r.determined)} for r in design.remedies
        ],
        "notes": list(design_lines(design)),
        "seed": design.seed,
    }


def _measurement(m: Measurement) -> dict[str, Any]:
    date = {"date": m.date} if m.date else {}
    return {"run": m.run, "observables": list(m.observables), "t": m.time, **date, "count": m.count}


# Parts of sentences -----------------------------------------------------------------------------


def _measuring(design: DesignData) -> str:
    """Return the measurements in words: observables and times, run by run."""
    dated = any(m.date for m in design.measurements)
    unit = f" {design.time_unit}" if design.time_unit and not dated else ""
    before = "" if design.time_unit or dated else "t = "
    parts = []
    for k, run in enumerate(design.runs):
        by_observables: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for m in design.measurements:
            if m.run == k:
                often = TIMES_IN_WORDS.get(m.count, f" {m.count} times")
                time = m.date or significant(m.time, 3)
                by_observables.setdefault(m.observables, []).append((time, often))
        texts = []
        for names, times in by_observables.items():
            repeated = any(often for _, often in times)
            # A unit stands before "twice", and after the last of several times.
            listed = joined([f"{t}{unit if repeated else ''}{often}" for t, often in times])
            texts.append(f"{joined(list(names))} at {before}{listed}{'' if repeated else unit}")
        parts.append(joined(texts) + _where(run, design.runs))
    return "; ".join(parts) if len(parts) > 1 else parts[0]


def _where(run: Run, runs: Sequence[Run]) -> str:
    """Return the name of the run in which something is measured, if there are several."""
    settings = ", ".join(f"{k} = {significant(v, 4)}" for k, v in run.settings.items())
    several = len({r.experiment for r in runs}) > 1
    parts = ([f'"{run.experiment}"'] if several else []) + ([settings] if settings else [])
    return (
        f" in a run with {' and '.join(parts)}" if settings else "".join(f" in {p}" for p in parts)
    )


def _has_interval_before(interval: PlannedInterval) -> bool:
    """Return whether there is an interval without the measurements, perhaps one-sided."""
    return any(math.isfinite(v) for v in interval.before)


def _ends(interval: tuple[float, float]) -> str:
    return f"[{', '.join(_end(v) for v in interval)}]"


def _end(value: float) -> str:
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    return significant(value, 3)


def _points(design: DesignData) -> str:
    assert design.continuous is not None
    unit = f" {design.time_unit}" if design.time_unit else ""
    points = design.continuous.points
    texts = []
    for p in points[:8]:
        run = design.continuous.runs[p.measurement.run]
        names = ", ".join(p.measurement.observables)
        where = _where(run, design.continuous.runs)
        texts.append(
            f"{percent(p.weight)} {names} at {significant(p.measurement.time, 4)}{unit}{where}"
        )
    more = f" and {len(points) - 8} more" if len(points) > 8 else ""
    return "; ".join(texts) + more


def _exclusion_sentence(exclusion: Exclusion) -> str:
    detail = f" ({exclusion.detail})" if exclusion.detail else ""
    count = counted(exclusion.count, "candidate")
    return f"{count} of {exclusion.name} left out: {REASONS[exclusion.reason]}{detail}."


def _rows(design: DesignData) -> list[tuple[str, ...]]:
    unit = f" {design.time_unit}" if design.time_unit else ""
    rows: list[tuple[str, ...]] = []
    for m in design.measurements:
        run = design.runs[m.run]
        settings = ", ".join(f"{k} = {significant(v, 4)}" for k, v in run.settings.items())
        where = f"{run.experiment}: {settings}" if settings else run.experiment
        names = ", ".join(m.observables)
        time = m.date or f"{significant(m.time, 5)}{unit}"
        rows.append((names, time, str(m.count), where))
    return rows


def _interval_row(i: PlannedInterval) -> tuple[str, ...]:
    before = "not determined" if all(map(math.isinf, i.before)) else _ends(i.before)
    return i.key, significant(i.value, 4), before, _ends(i.after)


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as aligned lines."""
    every = [tuple(titles), *map(tuple, rows)]
    widths = [max(len(row[k]) for row in every) for k in range(len(titles))]
    lines = [
        "   ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in every
    ]
    return [lines[0], "-" * max(len(line) for line in lines), *lines[1:]]
