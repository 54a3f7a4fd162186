"""The report as a PDF of A4 pages, typeset by Typst, with figures as vectors."""

from __future__ import annotations

import io
import json
import math
import re
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from odefit.problem.errors import InputError
from odefit.reporting import equations, sentences
from odefit.reporting.estimate_tables import number_in_words
from odefit.reporting.figures import bounds, correlation, fit, parameters, residuals, starts
from odefit.reporting.figures.profiles import plot_profiles
from odefit.reporting.figures.style import save_outlines
from odefit.reporting.html import has_correlation, printable, report_curves
from odefit.reporting.math_markup import typst_equations
from odefit.reporting.numbers import duration, significant
from odefit.reporting.parameters import Row, interval_level, parameter_rows
from odefit.reporting.problem_tables import (
    Table,
    data_table,
    equation_groups,
    known_lines,
    special_lines,
    unknowns_table,
)
from odefit.reporting.profiles import cost_sentence, profile_rows
from odefit.result_data import ResultData

FULL_WIDTH = 6.7
"""The width of the text, in inches; a wider figure is as wide as that."""

_POWER = re.compile(r"[-+]?\d[\d.]*e[-+]\d+")

KINDS = {"parameter": "Parameters", "initial": "Initial values", "noise": "Noise"}


def report_pdf(result: ResultData, date: str = "") -> bytes:
    """Return the report as a PDF.

    Parameters
    ----------
    result
        The result to report.
    date
        The date in the footer; without it the pages depend on the result alone.

    Raises
    ------
    InputError
        The pages cannot be typeset.
    """
    import typst

    template = files("odefit.reporting") / "templates" / "report.typ"
    with tempfile.TemporaryDirectory(prefix="odefit-") as name:
        folder = Path(name)
        (folder / "report.typ").write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
        values = _printable(_values(result, date, folder))
        (folder / "data.json").write_text(json.dumps(values), encoding="utf-8")
        try:
            # The fonts that come with Typst alone: the same pages everywhere.
            made = typst.compile(
                str(folder / "report.typ"), root=str(folder), ignore_system_fonts=True, timestamp=0
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"the report cannot be typeset: {error}; write it as .html instead"
            ) from error
    assert isinstance(made, bytes), "one document is one PDF"
    return made


def _values(result: ResultData, date: str, folder: Path) -> dict[str, Any]:
    """Return what the template shows, its figures written to `folder`."""
    problem = result.problem
    verdict = sentences.verdict(result)
    weighted = sentences.weighted(problem)
    version = result.versions.get("odefit", "")
    curves = report_curves(result)
    profiles = result.profiles
    return {
        "title": problem.name,
        "description": problem.description,
        "footer": " ".join(part for part in ("Written by odefit", version, date) if part),
        "verdict": {
            "tone": verdict.tone,
            "headline": verdict.headline,
            "sentences": list(verdict.sentences),
        },
        "notes": [w for w in result.warnings if w != sentences.lack_of_fit(result)],
        "facts": list(_facts(result)),
        "groups": list(_groups(result)),
        "errors": _words_of_errors(result),
        "fit": [
            {
                "file": _written(fit.panel_figure(curve), folder, f"fit{i}"),
                "alt": f"{curve.observable} in experiment {curve.experiment}: data and model",
            }
            for i, curve in enumerate(curves)
        ],
        "bands": ", with confidence and prediction bands" if _has_bands(result) else "",
        "cut": any(c.band is not None and c.band.cut for c in curves),
        "residuals": list(_residuals(result, folder, weighted)),
        "residual_words": "Measured minus modelled, in standard deviations; the grey band holds "
        "about 95 % of them if model and noise are right."
        if weighted
        else "Measured minus modelled.",
        "findings": [{"title": f.title, "sentence": f.sentence} for f in sentences.findings(result)]
        if result.solutions
        else [],
        "figures": list(_figures(result, folder)),
        "profiles": []
        if profiles is None
        else [list(map(_shown, r)) for r in profile_rows(profiles)],
        "starts": f"{sentences.starts_sentence(result.starts)} "
        f"{sentences.sentence(result.message)}",
        "route_columns": ["Route", "Starts", "At the best", result.measure, "Time"],
        "routes": [
            [
                r.name,
                str(r.starts),
                str(r.hits),
                number_in_words(significant(result.value_of(r), 6)),
                duration(r.seconds),
            ]
            for r in sentences.taken_routes(result)
        ],
        "written": list(equations.written_lines(problem)),
        "equations": [
            {"title": g.title, "formulas": typst_equations(g.formulas), "words": g.words}
            for g in equation_groups(problem)
        ],
        "known": known_lines(problem),
        "data": _table(data_table(problem)) | {"words": sentences.data_sentence(problem)},
        "special": special_lines(problem),
        "unknowns": _table(unknowns_table(problem)),
        "settings": list(_settings(result, date)),
    }


def _facts(result: ResultData) -> Iterator[tuple[str, str]]:
    """Yield a few numbers for below the verdict."""
    if result.solutions:
        value = number_in_words(significant(result.value_of(result.best), 7))
        yield f"{result.measure[0].upper()}{result.measure[1:]}", value
        goodness = result.goodness
        if goodness is not None and math.isfinite(goodness.reduced_chi_square):
            yield "Reduced chi-square", significant(goodness.reduced_chi_square, 4)
    yield "Measured values", str(result.problem.size)
    yield "Unknowns", str(len(result.problem.unknowns))
    yield "Method", result.method
    yield "Wall time", duration(result.seconds)


def _groups(result: ResultData) -> Iterator[dict[str, Any]]:
    """Yield the table of estimates of each kind."""
    rows = parameter_rows(result)
    level = interval_level(result)
    kinds = [k for k in KINDS if any(row.kind == k for row in rows)]
    for kind in kinds:
        of_kind = [row for row in rows if row.kind == kind]
        units = ["Unit"] if any(row.unit for row in of_kind) else []
        yield {
            "title": KINDS[kind] if len(kinds) > 1 else "",
            "columns": [
                "Name", "Estimate", "Std. error", "RSE %", f"{level} interval", *units, "Remark",
            ],
            "rows": [_cells(row, bool(units)) for row in of_kind],
        }  # fmt: skip


def _cells(row: Row, units: bool) -> list[str]:
    estimate, error, low, high = map(number_in_words, row.shown)
    interval = f"[{low}, {high}]" if low and high else ""
    unit = [row.unit] if units else []
    return [row.key, estimate, error, row.rse_shown, interval, *unit, row.note or row.flag]


def _words_of_errors(result: ResultData) -> str:
    if result.uncertainty is None:
        return ""
    freedom = result.uncertainty.degrees_of_freedom
    by = (
        "the normal distribution"
        if math.isinf(freedom)
        else f"the t distribution with {significant(freedom)} degrees of freedom"
    )
    return (
        f"Standard errors and intervals are from the linearisation at the estimate and {by}; far "
        "from it, or near a bound, they are approximate."
    )


def _has_bands(result: ResultData) -> bool:
    return bool(result.solutions) and result.uncertainty is not None and result.best.nodes is None


def _residuals(result: ResultData, folder: Path, in_sds: bool) -> Iterator[dict[str, str]]:
    unit = result.problem.time_unit
    groups = residuals.by_observable(residuals.residuals_of(result))
    for i, (name, entries) in enumerate(groups.items()):
        figure = residuals.panel_figure(name, entries, unit, in_sds)
        yield {
            "file": _written(figure, folder, f"residuals{i}"),
            "alt": f"Residuals of {name} against time",
        }


def _figures(result: ResultData, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the figures of the whole result, each with its width in per cent of the text."""
    drawn: list[tuple[str, Figure, str]] = []  # its name, which tells the section, and a caption
    certificate = result.assessment.bounds
    if result.solutions and result.problem.unknowns:
        words = "Confidence intervals in per cent of the estimates, which stand at the right."
        drawn.append(("intervals", parameters.plot_parameters(result), words))
    if certificate is not None and certificate.history:
        words = f"Lower and upper bound of the objective against time; scope: {certificate.scope}."
        drawn.append(("bounds", bounds.plot_bounds(result), words))
    if has_correlation(result):
        words = "Correlation of the estimates; near 1 or −1, two are determined only together."
        drawn.append(("correlation", correlation.plot_correlation(result), words))
    if result.profiles is not None:
        words = f"Profile likelihoods. {cost_sentence(result.profiles)}"
        drawn.append(("profiles", plot_profiles(result.profiles), words))
    if len(result.starts) > 1:
        words = f"{result.measure[0].upper()}{result.measure[1:]} at the end of each start, sorted."
        drawn.append(("starts", starts.plot_starts(result), words))
    for name, figure, words in drawn:
        width = 100 * min(figure.get_size_inches()[0] / FULL_WIDTH, 1.0)
        file = _written(figure, folder, name)
        section = name if name in ("profiles", "starts") else "trust"
        yield {"file": file, "caption": words, "width": float(width), "section": section}


def _table(table: Table) -> dict[str, Any]:
    return {
        "caption": table.caption,
        "columns": table.columns,
        "rows": table.rows,
        "numeric": list(table.numeric),
    }


def _settings(result: ResultData, date: str) -> Iterator[tuple[str, str]]:
    yield "Method", result.method
    yield "Ended", result.status.value
    yield "Seed", str(result.seed)
    yield "Wall time", duration(result.seconds)
    if result.versions:
        yield (
            "Versions",
            ", ".join(f"{name} {version}" for name, version in result.versions.items()),
        )
    if date:
        yield "Date of this report", date


def _written(figure: Figure, folder: Path, name: str) -> str:
    """Write a figure as SVG with texts as outlines, and return the name of its file."""
    buffer = io.BytesIO()
    save_outlines(figure, buffer)
    (folder / f"{name}.svg").write_bytes(buffer.getvalue())
    return f"{name}.svg"


def _shown(text: str) -> str:
    """Return a text whose numbers have their powers of ten raised."""
    return _POWER.sub(lambda match: number_in_words(match[0]), text)


def _printable(value: Any) -> Any:
    """Return values without control characters in any of their texts."""
    if isinstance(value, dict):
        return {k: _printable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(v) for v in value]
    return printable(value)
