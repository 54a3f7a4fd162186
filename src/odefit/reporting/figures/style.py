"""How figures look, and how they are made without pyplot."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import IO, Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

from odefit.reporting.figures.ticks import set_ticks

# The report gives each of these colours another value on dark screens (svg.py, report.css).
INK = "#1f2937"
MUTED = "#64748b"
GRID = "#e2e8f0"
# Blue, vermillion and purple are M. Okabe and K. Ito's, which the colour-blind tell apart (Color
# Universal Design, 2002).
MODEL = "#0072b2"
DATA = "#d55e00"
BAD = "#a8326e"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2937")
"""Colours of several lines in one figure, in this order."""

SMALL_FONT = 8.0
"""Size of tick labels, in points."""

SAVED_DPI = 300
"""Pixels to an inch of figures that are written as pictures, as journals ask."""

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same figure everywhere
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.5,
    "axes.formatter.useoffset": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 5),
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL_FONT,
    "ytick.labelsize": SMALL_FONT,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",  # texts stay texts, which an editor of figures can change
    "pdf.fonttype": 42,  # fonts embedded as TrueType, as journals ask
    "ps.fonttype": 42,
    "svg.hashsalt": "odefit",  # ids that do not change from run to run
    "path.simplify": True,
}


class Plot(Figure):
    """A figure that notebooks show although pyplot does not know it."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file, with fonts embedded and texts as text.

        The ending of the name tells the format (``.pdf``, ``.svg``, ``.png``); options are those of
        matplotlib.
        """
        with plain_style():
            super().savefig(fname, **{"dpi": SAVED_DPI, **options})

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=144)
        return buffer.getvalue()


def save_outlines(figure: Figure, stream: IO[bytes], **options: Any) -> None:
    """Write a figure as SVG with texts as outlines: nothing shifts where fonts differ."""
    with plain_style(), matplotlib.rc_context({"svg.fonttype": "path"}):
        Figure.savefig(figure, stream, format="svg", **options)


@contextmanager
def plain_style() -> Iterator[None]:
    """Draw figures inside this context the same, whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Plot:
    """Return an empty figure, its size in inches."""
    return Plot(figsize=(width, height), layout="constrained", facecolor="white")


def panel_axes(width: float, height: float, left: float = 0.58) -> tuple[Plot, Axes]:
    """Return a small figure with one pair of axes, always at the same place: panels align.

    ``left`` is the space for the labels; sizes are in inches.
    """
    figure = Plot(figsize=(width, height), facecolor="white")
    bottom, right, top = 0.47, 0.1, 0.26
    axes = figure.add_axes(
        (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    )
    return figure, axes


def dress(axes: Axes, *, log_x: bool = False, log_y: bool = False) -> None:
    """Set grid and ticks; to be called after the data are drawn."""
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, logarithmic in ((axes.xaxis, log_x), (axes.yaxis, log_y)):
        set_ticks(axis, logarithmic=logarithmic)
        axis.get_offset_text().set_fontsize(SMALL_FONT)
    axes.yaxis.set_offset_position("right")  # at the left it would push the title out
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL_FONT, width=0.7, which="major")
    axes.tick_params(colors=MUTED, width=0.5, which="minor")


def label_outside(rows: Sequence[Sequence[Axes]]) -> None:
    """Leave labels of axes to the first panel of a row and the last of a column.

    Panels of a figure that have no other below them keep their label of time.
    """
    panels = [axes for row in rows for axes in row]
    for row in rows:
        for axes in row[1:]:
            axes.set_ylabel("")
    for axes in panels[: -len(rows[0])]:
        axes.set_xlabel("")


def mark_infinity(axes: Axes, place: float) -> None:
    """Mark the place on the axis of time where the values at t = inf, the steady state, stand."""
    axes.axvline(place, color=MUTED, linewidth=0.7, alpha=0.5, zorder=1)
    axes.annotate(
        "t = ∞",
        (place, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.0,
        color=MUTED,
    )


def say(axes: Axes, message: str) -> None:
    """Write a sentence in the middle of empty axes."""
    axes.text(
        0.5,
        0.5,
        plain(message),
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=MUTED,
        fontsize=9.0,
        wrap=True,
        parse_math=False,
    )


@lru_cache(maxsize=1)
def _font() -> Any:
    return get_font(findfont("DejaVu Sans"))


def plain(text: str) -> str:
    """Return `text` with a box for every character that the font of the figures does not have.

    Draw it with ``parse_math=False``: a ``$`` in a name is no formula.
    """
    font = _font()
    kept = "".join(" " if c in "\n\r\t" else c for c in text)
    return "".join(c if font.get_char_index(ord(c)) else "\N{WHITE SQUARE}" for c in kept)


def shorten(text: str, length: int = 28) -> str:
    """Return `text` for a label, its end cut off if it is longer than `length`."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def time_label(unit: str) -> str:
    """Return the label of a time axis."""
    return plain(f"time ({shorten(unit)})" if unit else "time t")
