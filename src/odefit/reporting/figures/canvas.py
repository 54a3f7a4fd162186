"""The target and width of a figure: a journal's column, or the user's axes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from odefit.common.errors import InputError
from odefit.reporting.figures import style

Width: TypeAlias = Literal["single", "double"] | str | float
"""A width in inches, or text with a unit ("8.5 cm", "89 mm", "3.5 in"). "single" (89 mm) and
"double" (183 mm) are one and two columns of a journal.
"""

COLUMNS = {"single": "89 mm", "double": "183 mm"}
"""Widths of one and two columns in most journals (Nature's; Elsevier's have 90 and 190 mm)."""

UNITS = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0}
"""Units of a width, in inches."""

SMALLEST, LARGEST = 1.5, 30.0
"""The smallest and the largest width of a figure, in inches."""

TEXT_SCALE = 0.85
"""Sizes of texts and marks at a given width, relative to a screen: texts have 6 to 8 points."""

LEGEND_KEY, LEGEND_LETTER = 0.55, 0.066
"""Room for a legend entry's key, and for one letter of its text, in inches."""

MOST_ENTRIES = 14
"""Largest number of runs that a legend names."""

NARROWEST_PANEL = 1.6
"""The smallest width of a panel in a figure of a given width, in inches."""


def inches(width: Width) -> float:
    """Return a width in inches; anything else raises an :class:`InputError`."""
    expected = 'expected "single", "double", inches as a number, or a text such as "8.5 cm"'
    value = math.nan
    if isinstance(width, str):
        match = re.fullmatch(r"\s*([\d.]+)\s*(mm|cm|in)\s*", COLUMNS.get(width, width))
        if match is not None and re.fullmatch(r"\d+\.?\d*|\.\d+", match[1]):
            value = float(match[1]) * UNITS[match[2]]
    elif isinstance(width, int | float) and not isinstance(width, bool):
        value = float(width)
    if not math.isfinite(value):
        raise InputError(f"width: {expected}, got {width!r}")
    if not SMALLEST <= value <= LARGEST:
        raise InputError(
            f"width: expected {SMALLEST:g} to {LARGEST:g} inches, got {value:.3g} inches"
        )
    return value


@dataclass(frozen=True)
class Canvas:
    """The target of a drawing: the user's figure or axes, or a new figure of some width.

    Without a width the figure suits a screen. The user's axes hold figures of one panel.
    """

    width: Width | None = None
    figure: Figure | SubFigure | None = None
    ax: Axes | None = None

    def __post_init__(self) -> None:
        settings = [k for k in ("width", "figure", "ax") if getattr(self, k) is not None]
        if len(settings) > 1:
            raise InputError(
                f"{settings[0]}, {settings[1]}: give one of them, the other follows from it"
            )
        if self.width is not None:
            inches(self.width)
        if self.figure is not None and not isinstance(self.figure, Figure | SubFigure):
            raise InputError(
                "figure: expected a matplotlib Figure or SubFigure, "
                f"got {type(self.figure).__name__}"
            )
        if self.ax is not None and not isinstance(self.ax, Axes):
            raise InputError(f"ax: expected matplotlib Axes, got {type(self.ax).__name__}")

    def sheet(self, width: float, height: float, *, by_width: float = 0.6) -> Figure | SubFigure:
        """Return the user's figure, or a new one of this size on a screen, in inches.

        The height is proportional to the width to the power ``by_width``; with 0 it is constant.
        """
        if self.figure is not None:
            return self.figure
        if self.width is None:
            return style.new_figure(width, height)
        chosen_width = inches(self.width)
        return style.new_figure(chosen_width, height * (chosen_width / width) ** by_width)

    def axes(self, width: float, height: float, *, by_width: float = 0.6) -> Axes:
        """Return axes to draw on; the arguments are those of :meth:`sheet`."""
        if self.ax is not None:
            return self.ax
        return self.sheet(width, height, by_width=by_width).add_subplot()

    def panels(
        self, count: int, columns: int, size: tuple[float, float], more: float = 0.0
    ) -> list[list[Axes]]:
        """Return axes for `count` panels, row by row, each of `size` on a screen, in inches.

        ``more`` is the height of anything above or below all panels. Several panels for the user's
        one ``ax`` raise an :class:`InputError`.
        """
        if self.ax is not None:
            if count > 1:
                raise InputError(
                    f"ax: there are {count} panels, and axes hold one; choose one of them, or give "
                    "figure= in place of ax="
                )
            return [[self.ax]]
        width, height = size
        if self.width is not None:
            chosen_width = inches(self.width)
            columns = min(columns, max(int(chosen_width / NARROWEST_PANEL), 1))
            height = max(height * (chosen_width / columns / width) ** 0.8, 1.25)
            width = chosen_width / columns
        rows = math.ceil(count / columns)
        sheet = self.figure or style.new_figure(width * columns, height * rows + more)
        panels = [sheet.add_subplot(rows, columns, k + 1) for k in range(count)]
        return [panels[k : k + columns] for k in range(0, count, columns)]

    def legend(self, panels: Sequence[Axes], handles: Sequence[Artist]) -> None:
        """Explain marks and lines in a legend below all panels, or within the user's axes."""
        if not handles:
            return
        options: dict[str, Any] = {"frameon": False, "fontsize": style.SMALL_FONT}
        sheet = panels[0].figure
        if self.ax is not None or not isinstance(
            sheet.figure.get_layout_engine(), ConstrainedLayoutEngine
        ):
            legend = panels[0].legend(handles=handles, **options)
        else:
            width = sheet.bbox.width / sheet.figure.dpi
            longest = max(len(str(handle.get_label())) for handle in handles)
            columns = max(int(width / (LEGEND_KEY + LEGEND_LETTER * longest)), 1)
            legend = sheet.legend(
                handles=handles,
                loc="outside lower center",
                ncols=min(columns, len(handles)),
                **options,
            )
        for text in legend.get_texts():
            text.set_parse_math(False)

    def finish(self, sheet: Figure | SubFigure | Axes) -> Figure:
        """Return the finished figure, with texts that suit its width."""
        root = (sheet.figure if isinstance(sheet, Axes) else sheet).figure
        if self.width is not None:
            for text in root.findobj(Text):
                text.set_fontsize(float(text.get_fontsize()) * TEXT_SCALE)
            for line in (line for axes in root.axes for line in axes.lines):
                line.set_markersize(line.get_markersize() * TEXT_SCALE)
            for axis in (axis for axes in root.axes for axis in (axes.xaxis, axes.yaxis)):
                size = float(axis.get_tick_params().get("labelsize", style.SMALL_FONT))
                axis.set_tick_params(labelsize=size * TEXT_SCALE)
                axis.get_offset_text().set_fontsize(style.SMALL_FONT * TEXT_SCALE)
        return root

    def empty(self, message: str) -> Figure:
        """Return an empty figure with the reason why there is nothing to draw."""
        with style.plain_style():
            axes = self.axes(4.6, 1.6)
            axes.set_axis_off()
            style.say(axes, message)
            return self.finish(axes)


SCREEN = Canvas()
"""A new figure of a size that suits a screen."""
