"""What all pictures have in common: colours, lines, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.page import UNWRITABLE
from fairopt.later import library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which colour-blind people tell apart, in an order whose neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: Where the colours repeat, hatches distinguish the parts, and line styles the lines.
HATCHES = ("", "///", "...", "xxx")
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (2, 1)), (0, (3, 1, 1, 1, 1, 1)))
#: Marks of points, which differ where colours repeat.
MARKS = ("o", "s", "^", "D", "v", "P")
#: What goes over so many powers of ten is drawn on a logarithmic axis.
DECADES = 1.5
#: A longer name loses its middle: bars keep their room, and names that differ at the end stay different.
LONGEST_NAME = 28


def short_name(name: str) -> str:
    """Return a name of at most `LONGEST_NAME` letters."""
    half = LONGEST_NAME // 2
    name = UNWRITABLE.sub("\ufffd", f" {name}" if name.startswith("_") else name)  # a legend leaves out names with _
    return name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def with_legend(ax: Axes) -> Figure:
    """Put the legend beside the axes and return their figure. Errors: `BadInput` where they belong to none."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, borderaxespad=0)
    figure = ax.get_figure(root=True)
    if figure is None:
        raise BadInput("these axes belong to no figure", place="ax", remedy="Give axes that were not removed")
    return figure


def figure_of(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches. Errors: `NotInstalled` without matplotlib."""
    made: Figure = library("matplotlib.figure", "a picture", "plot").Figure(
        figsize=(width, height), layout="constrained"
    )
    return made


def line_of(number: int) -> dict[str, Any]:
    """Return the colour and style of the line of that number."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number // len(COLOURS) % len(LINES)]}


def axes_of(ax: Axes | None, width: float = 7.5, height: float = 4.0) -> Axes:
    """Return the axes that are given, or those of a new figure of a size in inches."""
    made: Axes = figure_of(width, height).subplots() if ax is None else ax
    return made


def named(ax: Axes, title: str, across: str, up: str) -> Figure:
    """Name a picture and its axes, and return its figure, with the legend."""
    ax.set_title(title, loc="left")
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    ax.spines[["top", "right"]].set_visible(False)
    return with_legend(ax)


def logarithmic_where_wide(ax: Axes, side: str, values: np.ndarray[Any, Any]) -> None:
    """Make the axis of a side, "x" or "y", logarithmic where values (m,) could not be told apart otherwise."""
    if len(values) and values.min() > 0 and np.log10(values.max() / values.min()) > DECADES:
        ax.set(**{f"{side}scale": "log"})
        # matplotlib's own labels are formulas between dollar signs, which pages show as they stand
        axis = {"x": ax.xaxis, "y": ax.yaxis}[side]
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
        axis.set_minor_formatter("")
