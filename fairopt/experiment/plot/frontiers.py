"""A picture of trade-offs: the curves, what nothing is above, what is efficient as well, and where policies are.

>>> from fairopt import frontier, plot
>>> from fairopt.datasets import oef_example
>>> figure = plot.frontier(frontier(oef_example(), "total_efficiency", "envy_freeness", policies=["max-min"]))
>>> figure.axes[0].get_ylabel()
'total efficiency'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.plot.figures import COLOURS, MARKS, figure_of, short_name
from fairopt.frontier import Curve, Frontier
from fairopt.program import Number
from fairopt.report import Statement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: By how much a panel is wider than what is drawn in it; how many places a curve is drawn at between its breakpoints.
MARGIN, PLACES = 1.12, 200


def frontier(found: Frontier) -> Figure:
    """Draw trade-offs: a panel for each curve, a row for each goal; epsilon across, the goal up.

    Errors: `NotInstalled`; `BadInput` where there is no curve.

    >>> from fairopt import Market
    >>> from fairopt.frontier import frontier as followed
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> found = followed(market, "total_efficiency", "envy_freeness", policies=["equal-split"])
    >>> len(frontier(found).axes)
    1
    """
    goals = list(dict.fromkeys(curve.goal for curve in found.curves))
    against = list(dict.fromkeys(curve.against for curve in found.curves))
    if not goals:
        raise BadInput("there is no curve", place="frontier", remedy="Draw one that has some")
    figure = figure_of(1.8 + 3.0 * len(against), 1.4 + 2.4 * len(goals))
    panels = figure.subplots(len(goals), len(against), squeeze=False, sharex="col", sharey="row")
    there = {(curve.goal, curve.against): curve for curve in found.curves}
    for row, goal in enumerate(goals):
        for column, name in enumerate(against):
            ax = panels[row, column]
            if (curve := there.get((goal, name))) is None:
                ax.set_visible(False)
                continue
            _panel(ax, curve, found)
            ax.set_title(name.replace("_", " ") if row == 0 else "", loc="left")
            ax.set_ylabel(goal.replace("_", " ") if column == 0 else "")
            ax.set_xlabel("epsilon" if row == len(goals) - 1 else "")
    handles = {
        label: each for ax in panels.ravel() for each, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize="small")
    return figure


def _panel(ax: Axes, curve: Curve, found: Frontier) -> None:
    placed = [each for each in found.policies if curve.goal in each.values and curve.against in each.epsilons]
    last = max([curve.points[-1].epsilon, *(each.epsilons[curve.against] for each in placed)])
    ends = [float(point.epsilon) for point in curve.points]
    places = np.unique([*np.linspace(0, MARGIN * (float(last) or 1), PLACES), *ends])
    top = [float(curve.below(place)) for place in places]
    ax.plot(places, [float(curve.at(place)) for place in places], color="0.1", linewidth=1.8, label="largest possible")
    if not curve.exact:
        ax.plot(places, top, color="0.1", linewidth=0.8, linestyle=":", label="proved upper bound")
    ax.plot(ends, [float(point.value) for point in curve.points], "|", color="0.1", markersize=7)
    efficient = [_or_nan(curve.efficient_at(place)) for place in places]
    ax.plot(places, efficient, color=COLOURS[2], linewidth=4, alpha=0.35, label="reached Pareto-efficiently")
    for number, (each, *alike) in enumerate(_together(found.policies)):
        if each in placed:
            at, value = float(each.epsilons[curve.against]), float(each.values[curve.goal])
            look: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "markersize": 6,
                "markeredgecolor": "white",
            }
            label = short_name(each.policy) + (f" and {len(alike)} alike" if alike else "")
            ax.plot([at], [value], MARKS[number % len(MARKS)], label=label, linestyle="", **look)
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0.04, y=0.08)


def _together(policies: Sequence[Statement]) -> list[list[Statement]]:
    """Return policies that are at the same points together."""
    alike: dict[object, list[Statement]] = {}
    for each in policies:
        alike.setdefault((*each.values.items(), *each.epsilons.items()), []).append(each)
    return list(alike.values())


def _or_nan(value: Number | None) -> float:
    return float("nan") if value is None else float(value)
