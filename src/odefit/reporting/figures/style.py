"""The look of all figures: colours, fonts, axes, and ticks whose labels do not overlap."""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import IO, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, ScalarFormatter

from odefit.common.arrays import Array
from odefit.common.context_values import holding
from odefit.problem.calendars import Calendar
from odefit.reporting.figures.date_axes import DateLabels, DateTicks

FEWEST_TICKS = 3
"""Smallest number of labels of an axis, if there is room for them."""

MOST_TICKS = 6
"""Largest number of labels of an axis."""

LABEL_WIDTH, LOG_LABEL_WIDTH, LABEL_HEIGHT = 3.4, 4.6, 2.2
"""Room for a label, in font sizes, along a horizontal, a horizontal logarithmic and a vertical
axis."""

STEPS_IN_A_DECADE = ((1, 2, 5), (1, 3), (1,))
"""Leading digits of labels on an axis of about one decade, from many labels to few."""

PLAIN_RANGE = (1e-3, 1e5)
"""Range in which a logarithmic axis writes values without powers of ten."""


class LogTicks(Locator):
    """Places of labels on a logarithmic axis.

    An axis of at least three decades has powers of ten. A shorter one adds 2 and 5 times these. One
    of much less than a decade has evenly spaced round numbers, since a single label gives no scale.
    """

    def __call__(self) -> Sequence[float]:
        """Return the ticks within the limits of the axis."""
        low, high = sorted(self._axis().get_view_interval())
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks from `vmin` to `vmax`, both positive."""
        return list(log_ticks(vmin, vmax, room(self._axis())))

    def _axis(self) -> Axis:
        axis = self.axis
        assert isinstance(axis, Axis)
        return axis


class LinearTicks(MaxNLocator):
    """Evenly spaced round numbers, as many as there is room for."""

    def __init__(self) -> None:
        super().__init__(nbins=5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks from `vmin` to `vmax`."""
        axis = self.axis
        if isinstance(axis, Axis):
            self.set_params(nbins=min(5, max(2, room(axis))))
        return super().tick_values(vmin, vmax)


class LinearLabels(ScalarFormatter):
    """Values on a linear axis, whose common power of ten stands at the end of the axis.

    Only the power is a formula: to typeset plain numbers as formulas takes half of the time of a
    figure.
    """

    def __init__(self) -> None:
        super().__init__(useOffset=False, useMathText=True)
        self.set_powerlimits((-3, 5))

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of the value `x`."""
        return super().__call__(x, pos).removeprefix(r"$\mathdefault{").removesuffix("}$")


class LogLabels(Formatter):
    """Values on a logarithmic axis in everyday notation: 0.02, 500, 2 × 10^7."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of the value `x`."""
        if not (math.isfinite(x) and x > 0):
            return ""
        if PLAIN_RANGE[0] <= x < PLAIN_RANGE[1]:
            return f"{x:.6g}"
        exponent = math.floor(math.log10(x) + 1e-9)
        digits = f"{x / 10.0**exponent:.6g}"
        power = f"10^{{{exponent}}}"
        return f"${power}$" if digits == "1" else rf"${digits}\times{power}$"


def log_ticks(low: float, high: float, most: int = MOST_TICKS) -> Array:
    """Return values for the labels of a logarithmic axis: two to `most`, increasing."""
    if not 0.0 < low < high:
        return np.zeros(0)
    first, last = math.log10(low) - 1e-9, math.log10(high) + 1e-9
    powers = np.arange(math.ceil(first), math.floor(last) + 1)
    if len(powers) >= FEWEST_TICKS:
        step = math.ceil(len(powers) / max(most, 2))
        chosen = powers[-1 - step * ((len(powers) - 1) // step) :: step]
        return np.asarray(10.0**chosen)
    decades = np.arange(math.floor(first), math.ceil(last) + 1)
    for digits in STEPS_IN_A_DECADE:
        values = np.outer(10.0**decades, digits).ravel()
        values = values[(np.log10(values) >= first) & (np.log10(values) <= last)]
        if min(FEWEST_TICKS, most) <= len(values) <= max(most, FEWEST_TICKS):
            return np.asarray(values)
    even = MaxNLocator(nbins=max(min(most - 1, 4), 2), min_n_ticks=2, steps=[1, 2, 2.5, 5, 10])
    values = np.asarray(even.tick_values(low, high))
    return values[(values >= low) & (values <= high)]


def room(axis: Axis) -> int:
    """Return the number of labels that fit on an axis."""
    figure = axis.get_figure()
    assert figure is not None
    box = axis.axes.get_window_extent()
    horizontal = axis is axis.axes.xaxis
    points = (box.width if horizontal else box.height) * 72.0 / figure.dpi
    size = float(axis.get_tick_params().get("labelsize", 8.0))
    wide = LOG_LABEL_WIDTH if axis.get_scale() == "log" else LABEL_WIDTH
    label = (wide if horizontal else LABEL_HEIGHT) * size
    return int(min(max(points / label, 2), MOST_TICKS))


def set_ticks(axis: Axis, *, logarithmic: bool) -> None:
    """Give an axis the ticks and labels of this module."""
    if logarithmic:
        axis.set_major_locator(LogTicks())
        axis.set_major_formatter(LogLabels())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(LinearTicks())
        axis.set_major_formatter(LinearLabels())


# On dark screens the report replaces each of these colours (svg.py, report.css).
INK = "#1f2937"
MUTED = "#64748b"
GRID = "#e2e8f0"
# Blue, vermillion and purple of M. Okabe and K. Ito, safe for colour-blind readers (Color Universal
# Design, 2002).
MODEL = "#0072b2"
DATA = "#d55e00"
BAD = "#a8326e"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2937")
"""Colours of the lines of a figure, in this order."""

MARKERS = ("o", "s", "^", "D", "v", "P")
"""Marks of runs; pairs of a colour and a mark distinguish the runs."""

SMALL_FONT = 8.0
"""Size of tick labels, in points."""

SAVED_DPI = 300
"""Resolution of figures written as bitmaps, in pixels per inch, as journals require."""

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib
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
    "svg.fonttype": "none",  # texts stay editable
    "pdf.fonttype": 42,  # embed TrueType fonts, as journals require
    "ps.fonttype": 42,
    "svg.hashsalt": "odefit",  # ids do not change from run to run
    "path.simplify": True,
}


_PLAIN: ContextVar[bool] = ContextVar("plain style", default=False)


class Plot(Figure):
    """A figure that notebooks display although pyplot does not know it."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file, with fonts embedded and texts as text.

        The suffix determines the format (``.pdf``, ``.svg``, ``.png``); the options are
        matplotlib's.
        """
        with _saving():
            super().savefig(fname, **{"dpi": SAVED_DPI, **options})

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=144)
        return buffer.getvalue()


def save_outlines(figure: Figure, stream: IO[bytes], **options: Any) -> None:
    """Write a figure as SVG with texts as outlines, so that missing fonts move nothing."""
    with _saving(), matplotlib.rc_context({"svg.fonttype": "path"}):
        Figure.savefig(figure, stream, format="svg", **options)


@contextmanager
def _saving() -> Iterator[None]:
    """Write figures in the plain style; labels that leave no room for axes are drawn over them."""
    with plain_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        yield


@contextmanager
def plain_style() -> Iterator[None]:
    """Draw figures in one style inside this context, independent of the user's settings.

    Within another such context it does nothing.
    """
    if _PLAIN.get():
        yield
        return
    with holding(_PLAIN, True), matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Plot:
    """Return an empty figure of a size in inches."""
    return Plot(figsize=(width, height), layout="constrained", facecolor="white")


def panel_axes(width: float, height: float, left: float = 0.58) -> tuple[Plot, Axes]:
    """Return a small figure whose one pair of axes is always at the same place.

    ``left`` is the space for the labels; sizes are in inches.
    """
    figure = Plot(figsize=(width, height), facecolor="white")
    bottom, right, top = 0.47, 0.1, 0.26
    axes = figure.add_axes(
        (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    )
    return figure, axes


def keep_title(axes: Axes) -> None:
    """Keep the titles of a drawn panel where they are, unless a power of ten needs their place.

    Matplotlib lays out all labels of a panel once more to find out whether titles have to move.
    """
    labels = axes.yaxis.get_major_formatter()
    labels.format_ticks([float(tick) for tick in axes.yaxis.get_majorticklocs()])
    if not labels.get_offset():
        title = axes.get_title("left")
        axes.set_title(title, loc="left", y=1.0, fontsize=9.5, color=INK, parse_math=False)


def dress(
    axes: Axes, *, log_x: bool = False, log_y: bool = False, calendar: Calendar | None = None
) -> None:
    """Set grid and ticks, after the data are drawn.

    With a calendar the horizontal axis shows dates.
    """
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, logarithmic in ((axes.xaxis, log_x), (axes.yaxis, log_y)):
        set_ticks(axis, logarithmic=logarithmic)
        axis.get_offset_text().set_fontsize(SMALL_FONT)
    if calendar is not None and not log_x:
        axes.xaxis.set_major_locator(DateTicks(calendar, room))
        axes.xaxis.set_major_formatter(DateLabels(calendar))
    axes.yaxis.set_offset_position("right")  # at the left it would displace the title
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL_FONT, width=0.7, which="major")
    axes.tick_params(colors=MUTED, width=0.5, which="minor")


def run_marks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and mark of each run; a single run has those of the measurements."""
    runs = list(dict.fromkeys(names))
    if len(runs) < 2:
        return dict.fromkeys(runs, (DATA, "o"))
    count = len(SERIES)
    return {
        name: (SERIES[k % count], MARKERS[k // count % len(MARKERS)]) for k, name in enumerate(runs)
    }


def label_outside(rows: Sequence[Sequence[Axes]]) -> None:
    """Omit axis labels that a panel shares with its neighbour to the left or below.

    Panels without another below keep their time label.
    """
    for row in rows:
        labels = [axes.get_ylabel() for axes in row]
        for k, axes in enumerate(row):
            if k and labels[k] == labels[k - 1]:
                axes.set_ylabel("")
    for row, below in itertools.pairwise(rows):
        for axes, other in zip(row, below, strict=False):
            if axes.get_xlabel() == other.get_xlabel():
                axes.set_xlabel("")


def mark_infinity(axes: Axes, place: float) -> None:
    """Mark the place of t = inf, the steady state, on the time axis."""
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
    """Return `text` with a box in place of every character that the font lacks.

    Draw it with ``parse_math=False``: a ``$`` in a name does not begin a formula.
    """
    font = _font()
    one_line = "".join(" " if c in "\n\r\t" else c for c in text)
    return "".join(c if font.get_char_index(ord(c)) else "\N{WHITE SQUARE}" for c in one_line)


def shorten(text: str, length: int = 28) -> str:
    """Return `text` as a label, cut off if it is longer than `length`."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def with_unit(name: str, unit: str | None) -> str:
    """Return a name as a label, with its unit if known."""
    return plain(f"{shorten(name)} ({shorten(unit, 16)})" if unit else shorten(name))


def time_label(unit: str, calendar: Calendar | None = None) -> str:
    """Return the label of a time axis; dates need no label."""
    if calendar is not None:
        return ""
    return plain(f"time ({shorten(unit)})" if unit else "time t")
