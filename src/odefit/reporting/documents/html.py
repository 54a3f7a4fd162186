"""The report: one self-contained HTML file.

It has no script, needs no network and brings no fonts. It works on phones, in print, with screen
readers, and on light and dark screens. Apart from the date, the same result gives the same bytes.
Its appearance is defined in ``templates/``, one file for each section; this module supplies their
values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from odefit.common.errors import InputError, some
from odefit.methods.estimate import Status
from odefit.methods.fit_quality.goodness_verdict import degrees_in_words
from odefit.problem.parameters import Unknown
from odefit.reporting import sentences
from odefit.reporting.curves import DENSE, Curve, fit_curves
from odefit.reporting.documents.fit_panels import driving_panels, fit_panels, overlay
from odefit.reporting.documents.svg import Drawing, drawing
from odefit.reporting.estimates.row import Row
from odefit.reporting.figures import (
    bounds,
    correlation,
    diagnostics,
    fit,
    parameters,
    starts,
)
from odefit.reporting.figures.canvas import MOST_ENTRIES
from odefit.reporting.figures.function_curves import with_functions
from odefit.reporting.figures.profiles import plot_profiles
from odefit.reporting.figures.residual_data import (
    Residuals,
    by_observable,
    few_together,
    residuals_of,
)
from odefit.reporting.figures.residuals import Setting
from odefit.reporting.figures.style import plain_style
from odefit.reporting.formulas import equations
from odefit.reporting.formulas.mathml import Symbols
from odefit.reporting.numbers import duration, level_words, significant
from odefit.reporting.parameters import interval_level, parameter_rows
from odefit.reporting.predictions import band_source
from odefit.reporting.profiles import (
    REGION_TITLES,
    cost_sentence,
    profile_rows,
    region_rows,
    region_title,
)
from odefit.result_data import ResultData
from odefit.simulation import ForwardMap
from odefit.simulation.other_integrations import able_to_integrate

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
form-action 'none'"
"""The page's content security policy: browsers show it and load nothing else."""

SECTIONS = {
    "estimates": "Estimates",
    "fit": "Fit",
    "residuals": "Residuals",
    "trust": "How far it can be trusted",
    "profiles": "Profile likelihood",
    "starts": "Starts",
    "model": "Model",
    "data": "Data",
    "bounds": "Unknowns and bounds",
    "settings": "Settings",
}
"""The titles of the sections, by the names of their templates."""

MAX_ROWS = 60
"""Largest number of experiments in a table."""

MAX_SOLUTIONS = 20
"""Largest number of solutions in a table."""

MAX_OBSERVABLES = 12
"""Largest number of observables whose residuals are drawn; the table has all of them."""

MAX_ENDINGS = 12
"""Largest number of kinds of endings of starts in a table."""

NO_NUMBER = Markup('<span class="none">none</span>')
"""The text in place of a missing number; the remark in the same row says why."""

PLOTS = {
    "parameters": parameters.plot_parameters,
    "bounds": bounds.plot_bounds,
    "correlation": correlation.plot_correlation,
    "starts": starts.plot_starts,
    "parallel": starts.plot_parallel,
}
"""Figures of the whole result, by name."""

# Control characters make a page unreadable for some parsers and are never intended.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def report_html(result: ResultData, date: str = "") -> str:
    """Return the whole page; apart from its date it depends only on the result."""
    with plain_style():
        return environment().get_template("report.html").render(report_values(result), date=date)


def summary_html(result: ResultData) -> str:
    """Return verdict and estimates, for a notebook cell."""
    symbols = equations.symbols_of(result.problem)
    return environment().get_template("summary.html").render(_values(result, symbols), plots={})


@cache
def environment() -> Environment:
    """Return the environment of the templates, which escapes everything that is not markup."""
    made = Environment(
        loader=PackageLoader("odefit.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=printable,
    )
    made.filters |= {
        "degrees": degrees_in_words,
        "duration": duration,
        "isinf": math.isinf,
        "number": number,
        "significant": significant,
        "typeset": typeset,
    }
    made.tests["lacks_band"] = fit.lacks_band
    made.globals |= {
        "data_sentence": sentences.data_sentence,
        "drawing": drawing,
        "findings": sentences.findings,
        "fit_curves": report_curves,
        "fit_panels": fit_panels,
        "driving_panels": driving_panels,
        "overlay": overlay,
        "most_rows": MAX_ROWS,
        "no_number": NO_NUMBER,
        "policy": POLICY,
        "residual_groups": _residual_groups,
        "sentence": sentences.sentence,
        "some": some,
        "starts_sentence": sentences.starts_sentence,
        "typeset": equations,
    }
    return made


def printable(value: Any) -> Any:
    """Return a text without control characters, anything else as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)
    return value


def typeset(text: str) -> Markup:
    """Return a number from :func:`significant` with a true minus sign and raised powers of ten."""
    mantissa, mark, exponent = text.replace("-", "−").partition("e")
    if not text:
        return Markup("")
    shown = Markup('<span class="number">{}{}</span>')
    if not mark or not exponent.lstrip("+−").isdigit():
        return shown.format(f"{mantissa}{mark}{exponent}", "")
    power = exponent[0].strip("+") + exponent[1:].lstrip("0")
    return shown.format(f"{mantissa}\u202f×\u202f10", Markup("<sup>{}</sup>").format(power))


def number(value: float, digits: int = 5) -> Markup:
    """Return a typeset number, the sign of infinity, or a word for a missing number."""
    if math.isnan(value):
        return NO_NUMBER
    if math.isinf(value):
        return Markup("∞" if value > 0 else "−∞")
    return typeset(significant(value, digits))


# Values for the templates ----------------------------------------------------------------------


def _values(result: ResultData, symbols: Symbols) -> dict[str, Any]:
    """Return the values that the report and the summary share."""
    rows = parameter_rows(result)
    kinds = {"parameter": "Parameters", "initial": "Initial values", "noise": "Noise"}

    def name(of: Row | Unknown) -> Markup:
        noise = of.kind == "noise"
        observable, _, quantity = of.name.rpartition("_") if noise else (of.name, "", "")
        shown = equations.inline(symbols, observable)
        shown = Markup("{} of {}").format(quantity, shown) if noise else shown
        return Markup("{} [{}]").format(shown, of.experiment) if of.experiment else shown

    return {
        "result": result,
        "problem": result.problem,
        "symbols": symbols,
        "verdict": sentences.verdict(result),
        "notes": sentences.remarks(result),
        "weighted": sentences.weighted(result.problem),
        "groups": [(title, [r for r in rows if r.kind == k]) for k, title in kinds.items()],
        "level": interval_level(result),
        "display_name": name,
    }


def report_values(result: ResultData) -> dict[str, Any]:
    """Return the values that the sections of the report show."""
    problem = result.problem
    symbols = equations.symbols_of(problem)
    write = equations.typeset_writer(symbols)
    measured = {name for c in problem.conditions for name in c.series}
    observables = problem.model.observables
    shown = {"trust": bool(result.solutions), "profiles": result.profiles is not None}
    special = [
        (e.name, equations.special_words(problem, e, write)) for e in problem.experiments[:MAX_ROWS]
    ]
    return _values(result, symbols) | {
        "forward": answer_map(result),
        "sections": [(k, v) for k, v in SECTIONS.items() if shown.get(k, True)],
        "profile_rows": [] if result.profiles is None else profile_rows(result.profiles),
        "plot_profiles": plot_profiles,
        "region_titles": REGION_TITLES,
        "region_title": region_title,
        "region_rows": region_rows,
        "profiles_finished": result.profiles is not None
        and result.profiles.status is Status.CONVERGED,
        "profile_level": "" if result.profiles is None else level_words(result.profiles.level),
        "profile_cost": "" if result.profiles is None else cost_sentence(result.profiles),
        "facts": _facts(result),
        "plots": PLOTS,
        "has_correlation": has_correlation(result),
        "ending_rows": _ending_rows(sentences.endings(result.starts)),
        "solutions": _solutions(result, symbols),
        "route_rows": _route_rows(result),
        "measure": _title(result.measure),
        "unchanged": [name for name, e in observables.items() if e.name == name],
        "noise": [
            (write.name(n), equations.noise_words(problem, n, write, "standard deviation"))
            for n in observables
            if n in measured
        ],
        "special": [(name, pieces) for name, pieces in special if pieces],
    }


def _facts(result: ResultData) -> list[tuple[str, str]]:
    """Return the few numbers shown below the verdict."""
    problem, facts = result.problem, []
    if result.solutions:
        best = result.best
        facts.append((_title(result.measure), number(result.value_of(best), 7)))
        if best.log_likelihood is not None:
            if sentences.squares_say_nothing(problem):
                facts.append(("Log-likelihood", number(best.log_likelihood, 7)))
            else:
                facts.append(("Weighted sum of squares", number(best.objective, 7)))
        goodness = result.goodness
        if goodness is not None and math.isfinite(goodness.reduced_chi_square):
            facts.append(("Reduced chi-square", number(goodness.reduced_chi_square, 4)))
    return [
        *facts,
        ("Measured values", str(problem.size)),
        ("Unknowns", str(len(problem.unknowns))),
        ("Method", result.method),
        ("Wall time", duration(result.seconds)),
    ]


def _title(measure: str) -> str:
    return f"{measure[0].upper()}{measure[1:]}"


def _finite(value: float) -> Markup:
    return number(value, 7) if math.isfinite(value) else NO_NUMBER


def answer_map(result: ResultData) -> ForwardMap | None:
    """Return the map that integrates the best solution; None without one."""
    if not result.solutions:
        return None
    return able_to_integrate(result.problem, result.best.vector, result.best.nodes)


def report_curves(result: ResultData, forward: ForwardMap | None) -> tuple[list[Curve], list[str]]:
    """Return the curves of the fit with their linear bands, if any, and notes on these."""
    bands, level, refusal = None, 0.95, []
    if result.solutions and result.uncertainty is not None:
        level = result.uncertainty.level
        try:
            bands = band_source(result, "linear", forward)
        except InputError as error:  # an answer on shooting nodes, for example, has no bands
            refusal = [f"no bands: {message}" for message in error.messages]
    curves = list(fit_curves(result, bands=bands, level=level, forward=forward))
    curves = with_functions(curves, result, None, bands, level, forward=forward)
    return curves, [*refusal, *fit.curve_notes(result, curves)]


def _residual_groups(result: ResultData, forward: ForwardMap | None) -> dict[str, Any]:
    """Return the values of the section on residuals: figures by kind, and a table by observable."""
    residuals = residuals_of(result, forward)
    groups = by_observable(residuals)
    together = few_together(groups)
    setting = Setting.of(result.problem, residuals)
    rows = []
    for name, entries in groups.items():
        values = np.concatenate([e.values for e in entries])
        finite = values[np.isfinite(values)]
        sizes = (math.nan,) * 3
        if len(finite):
            sizes = np.sqrt(np.mean(finite**2)), np.max(np.abs(finite)), np.mean(finite)
        rows.append((name, len(values), *(number(float(size), 3) for size in sizes)))
    return {
        "kinds": [
            {
                "title": one.title,
                "reading": one.reading,
                "drawings": _drawn(kind, groups if one.by_run else together, setting),
            }
            for kind, one in diagnostics.DIAGNOSTICS.items()
            if residuals and (kind != "residuals-experiment" or len(setting.marks) > 1)
        ],
        "runs": [(name, colour) for name, (colour, _) in setting.marks.items()][:MOST_ENTRIES],
        "more_runs": max(len(setting.marks) - MOST_ENTRIES, 0),
        "observables": min(len(groups), MAX_OBSERVABLES),
        "rows": rows,
        "dense": any(sum(len(e.values) for e in entries) > DENSE for entries in groups.values()),
    }


def _drawn(kind: str, groups: Mapping[str, Sequence[Residuals]], setting: Setting) -> list[Drawing]:
    """Return the panels of one kind of diagnostic."""
    title = diagnostics.DIAGNOSTICS[kind].title
    return [
        drawing(
            diagnostics.panel_figure(kind, name, entries, setting),
            f"{kind}{index}",
            f"{name}: {title}",
        )
        for index, (name, entries) in enumerate(list(groups.items())[:MAX_OBSERVABLES])
    ]


def has_correlation(result: ResultData) -> bool:
    """Return whether at least two estimates have a standard error, so that a correlation exists."""
    if result.uncertainty is None:
        return False
    return int(np.isfinite(np.diagonal(result.uncertainty.correlation)).sum()) > 1


def _ending_rows(endings: Sequence[sentences.Ending]) -> list[tuple[str, int, str]]:
    rows = [(e.status, e.count, e.message) for e in endings[:MAX_ENDINGS]]
    rest = sum(e.count for e in endings[MAX_ENDINGS:])
    return [*rows, ("other", rest, "")] if rest else rows


def _route_rows(result: ResultData) -> list[tuple[str, int, int, int, Markup, str, str]]:
    """Return the table of the routes of a combined method; empty for a single method."""
    return [
        (
            route.name,
            route.starts,
            route.failed,
            route.hits,
            _finite(result.value_of(route)),
            duration(route.seconds),
            route.message,
        )
        for route in result.routes
        if len(result.routes) > 1
    ]


def _solutions(result: ResultData, symbols: Symbols) -> Mapping[str, Any]:
    """Return the table of distinct solutions."""
    names = [
        equations.inline(symbols, u.name) if u.kind != "noise" and u.experiment is None else u.key
        for u in result.problem.unknowns
    ]
    count = len(result.solutions)
    return {
        "caption": "Distinct solutions, the best first"
        + (f" ({MAX_SOLUTIONS} of {count})" if count > MAX_SOLUTIONS else ""),
        "columns": ["No.", _title(result.measure), "Found by", *names],
        "numeric": (1, *range(3, 3 + len(names))),
        "rows": [
            (
                place,
                number(result.value_of(solution), 7),
                f"{solution.hits} start{'s' * (solution.hits != 1)}"
                if solution.hits
                else "the equations",
                *(number(float(v), 4) for v in solution.vector),
            )
            for place, solution in enumerate(result.solutions[:MAX_SOLUTIONS], 1)
        ],
    }
