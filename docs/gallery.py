"""Figures of odefit in the pages that sphinx-gallery makes of the scripts in ``examples/``."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any
from weakref import WeakSet

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

LAST_EXPRESSION = "___"
"""The name under which sphinx-gallery stores the value of a block's last line, also for later
blocks without a value."""

_shown: WeakSet[Figure] = WeakSet()


def figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return the figure at the end of a block, or those of pyplot.

    Arguments and return value are those of a scraper of sphinx-gallery.
    """
    variables = block_vars["example_globals"]
    source = Path(block_vars["src_file"]).read_text(encoding="utf-8")
    page = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    last = variables.get(LAST_EXPRESSION)
    if not isinstance(last, Figure) or hasattr(last, "number"):  # numbered figures are pyplot's
        texts = [in_words(plt.figure(k), page) for k in plt.get_fignums()]
        return with_texts(str(matplotlib_scraper(block, block_vars, gallery_conf)), texts)
    if last in _shown:
        return ""
    _shown.add(last)
    path = next(block_vars["image_path_iterator"])
    last.savefig(path, format="png", dpi=150)
    return with_texts(str(figure_rst([path], gallery_conf["src_dir"])), [in_words(last, page)])


def in_words(figure: Figure, page: str) -> str:
    """Return a description of a figure for readers who do not see it: what its axes show."""
    panels = [axes for axes in figure.axes if axes.axison]
    titles = [axes.get_title("left") or axes.get_title() or axes.get_ylabel() for axes in panels]
    drawn = ", ".join(dict.fromkeys(" ".join(title.split()) for title in titles if title))
    below = ", ".join(dict.fromkeys(axes.get_xlabel() for axes in panels if axes.get_xlabel()))
    return ": ".join(filter(None, (page, " against ".join(filter(None, (drawn, below))))))


def with_texts(page: str, texts: list[str]) -> str:
    """Return a part of a page whose pictures have these texts instead of sphinx-gallery's."""
    left = iter(texts)
    return re.sub(r"(?m)^( *:alt:).*$", lambda line: f"{line[1]} {next(left, '')}".rstrip(), page)
