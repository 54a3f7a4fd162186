"""The report: one HTML file that needs nothing else.

No script, no network, no fonts of its own. It can be read on a phone, printed, and by a screen
reader, on light and dark screens. The same result gives the same bytes, but for the date.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from odefit.reporting import html_problem, html_result
from odefit.reporting.equations import symbols_of
from odefit.reporting.markup import Markup, element, join
from odefit.reporting.sentences import verdict
from odefit.reporting.tables import paragraph, section

if TYPE_CHECKING:
    from odefit.result_data import ResultData

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
form-action 'none'"
"""What a browser may do with the page: show it, and nothing else."""


def report_html(result: ResultData, date: str = "") -> str:
    """The whole page.

    Parameters
    ----------
    result
        To report.
    date
        Shown at the end; without it the page depends on the result alone.
    """
    problem = result.problem
    symbols = symbols_of(problem)
    sections = [
        (
            "estimates",
            "Estimates",
            join(
                html_result.estimates(result, symbols),
                html_result.intervals_figure(result),
            ),
        ),
        ("fit", "Fit", html_result.fits(result)),
        ("residuals", "Residuals", html_result.residual_section(result)),
        ("trust", "How far it can be trusted", html_result.trust(result)),
        ("starts", "Starts", html_result.start_section(result, symbols)),
        ("model", "Model", html_problem.model_section(problem, symbols)),
        ("data", "Data", html_problem.data_section(problem, symbols)),
        ("bounds", "Unknowns and bounds", html_problem.bounds_section(problem, symbols)),
        ("settings", "Settings", html_problem.settings_section(result, date)),
    ]
    links = [
        element("li", element("a", title, href=f"#{identifier}"))
        for identifier, title, content in sections
        if content
    ]
    header = element(
        "header",
        paragraph("Parameter estimation report", class_="kicker"),
        element("h1", problem.name),
        paragraph(problem.description, class_="description") if problem.description else "",
        html_result.verdict_box(verdict(result)),
        html_result.warnings_box(result),
        html_result.key_facts(result),
        element("nav", element("ul", *links), aria_label="Contents"),
    )
    version = result.versions.get("odefit", "")
    footer = element("footer", paragraph(f"Written by odefit {version}".strip() + "."))
    main = element("main", *(section(*parts) for parts in sections))
    return _page(f"{problem.name}: odefit report", join(header, main, footer))


def _page(title: str, body: Markup) -> str:
    style = resources.files("odefit.reporting").joinpath("report.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="odefit"),
        element("title", title),
        element("style", Markup(style)),
    )
    page = element("html", head, element("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def summary_html(result: ResultData) -> str:
    """Verdict and estimates, for a notebook cell."""
    symbols = symbols_of(result.problem)
    found = verdict(result)
    return element(
        "div",
        paragraph(element("strong", f"{result.problem.name}: {found.headline}")),
        paragraph(" ".join(found.sentences)) if found.sentences else "",
        html_result.estimates(result, symbols),
        html_result.warnings_box(result),
    )
