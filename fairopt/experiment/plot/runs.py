"""Pictures of runs and studies: distributions, lines over time, hosts, and policies beside each other.

A mapping has what is drawn by name; its order decides the colours. `fairopt.experiment.studies.observe` makes
of a `History` what these functions take.

>>> figure = cdf({"a": [1, 2, 4], "b": [2, 3, 3]}, "completion time (s)")
>>> [line.get_label() for line in figure.axes[0].get_lines()]
['a', 'b']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fairopt.errors import BadInput, type_of
from fairopt.experiment.plot.figures import (
    COLOURS,
    HATCHES,
    MARKS,
    axes_of,
    line_of,
    logarithmic_where_wide,
    named,
    short_name,
)
from fairopt.experiment.studies.playing import HostBar, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cdf(values: Mapping[str, ArrayLike], what: str, *, level: float | None = None, ax: Axes | None = None) -> Figure:
    """Draw cumulative distributions: for each value across, the part of the numbers that are at most that.

    ``values`` has numbers, or quantiles at even distances, by name; ``level`` is a value to be marked.

    >>> cdf({"fifo": [1, 2, 4], "srtf": [1, 1, 3]}, "hours").axes[0].get_xlabel()
    'hours'
    """
    if not isinstance(values, Mapping) or not values:
        raise BadInput(f"got {type_of(values)}", place="values", remedy="Give numbers by name, one name at least")
    ax = axes_of(ax)
    found = {name: np.sort(np.asarray(each, dtype=float)) for name, each in values.items()}
    for number, (name, each) in enumerate(found.items()):
        ax.step(each, np.linspace(0, 1, len(each)), where="post", label=short_name(name), **line_of(number))
    every = np.concatenate([*found.values(), np.zeros(0)])
    if level is not None:
        ax.axvline(level, color="0.5", linewidth=1, linestyle=":")
    logarithmic_where_wide(ax, "x", every)
    ax.set_ylim(0, 1)
    return named(ax, f"Distribution of {what}", what, "part of the jobs")


def over_time(lines: Mapping[str, Timeline], what: str, *, ax: Axes | None = None) -> Figure:
    """Draw something over time, as the means of equal parts of it, a line for each name; hours across.

    >>> from fairopt.experiment.studies import Timeline
    >>> figure = over_time({"srtf": Timeline(0, 7200, (3, 5)), "fft": Timeline(0, 7200, (2, 2))}, "jobs in the queue")
    >>> figure.axes[0].get_xlabel()
    'hours'
    """
    ax = axes_of(ax)
    for number, (name, each) in enumerate(lines.items()):
        ax.stairs(each.values, _hours(each), baseline=None, label=short_name(name), **line_of(number))
    ax.set_ylim(bottom=0)
    return named(ax, f"{what[:1].upper()}{what[1:]} over time", "hours", what)


def tenant_share(held: Timeline, entitled: Timeline, tenant: str, *, ax: Axes | None = None) -> Figure:
    """Draw the GPUs that a tenant holds over time, beside those that are its own.

    >>> from fairopt.experiment.studies import Timeline
    >>> figure = tenant_share(Timeline(0, 7200, (3, 5)), Timeline(0, 7200, (4, 4)), "vision")
    >>> figure.axes[0].get_title(loc="left")
    'GPUs of vision over time'
    """
    ax = axes_of(ax)
    edges = _hours(held)
    ax.stairs(held.values, edges, fill=True, color=COLOURS[0], alpha=0.35, linewidth=0, label="held")
    ax.stairs(entitled.values, _hours(entitled), baseline=None, color=COLOURS[5], linewidth=1.6, label="entitled to")
    ax.set_ylim(bottom=0)
    return named(ax, f"GPUs of {short_name(tenant)} over time", "hours", "GPUs")


def gantt(bars: Sequence[HostBar], hosts: Sequence[str], *, ax: Axes | None = None) -> Figure:
    """Draw what ran on which host: a row for each, as high as the GPUs that a job held, a colour for each tenant.

    Jobs that share a host lie above each other, in the order in which they come.

    >>> from fairopt.experiment.studies.playing import HostBar
    >>> figure = gantt([HostBar(0, 0, 3600, 2, "vision"), HostBar(1, 900, 1800, 1, "speech")], ["node-1", "node-2"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['node-1', 'node-2']
    """
    stacks = {host: _slotted([bar for bar in bars if bar.host == host]) for host in sorted({bar.host for bar in bars})}
    ax = axes_of(ax, height=1.4 + 0.42 * max(len(stacks), 3))
    tenants = {name: number for number, name in enumerate(sorted({bar.tenant for bar in bars}))}
    most = max((run.stop for stack in stacks.values() for _, runs in stack for run in runs), default=1)
    drawn: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in tenants}
    for row, stack in enumerate(stacks.values()):
        for bar, run in ((bar, run) for bar, runs in stack for run in runs):
            left, right = bar.begin / 3600, bar.end / 3600
            low, high = (row - 0.42 + 0.84 * each / most for each in (run.start, run.stop))
            drawn[bar.tenant].append([(left, low), (right, low), (right, high), (left, high)])
    from matplotlib.collections import PolyCollection

    for name, corners in drawn.items():
        colour, hatch = COLOURS[tenants[name] % len(COLOURS)], HATCHES[tenants[name] // len(COLOURS) % len(HATCHES)]
        look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
        ax.add_collection(PolyCollection(corners, label=short_name(name), **look))
    ax.autoscale_view()
    ax.set_yticks(range(len(stacks)), [short_name(hosts[host]) for host in stacks])
    ax.set_ylim(len(stacks) - 0.5, -0.5)
    return named(ax, "What ran on which host", "hours", "")


def tradeoff(points: Mapping[str, tuple[float, float]], across: str, up: str, *, ax: Axes | None = None) -> Figure:
    """Draw a point for each policy: one measure across, another up; such as efficiency against fairness.

    >>> tradeoff({"fifo": (3, 1), "srtf": (2, 2)}, "mean wait", "fairness").axes[0].get_ylabel()
    'fairness'
    """
    ax = axes_of(ax)
    for number, (name, (x, y)) in enumerate(points.items()):
        ax.plot([x], [y], MARKS[number % len(MARKS)], color=COLOURS[number % len(COLOURS)], label=short_name(name))
    for number, side in enumerate("xy"):
        logarithmic_where_wide(ax, side, np.array([point[number] for point in points.values()]))
    ax.margins(0.15)
    return named(ax, f"{up} against {across}", across, up)


def against_load(
    points: Mapping[str, Sequence[tuple[float, float, float, float]]], what: str, *, ax: Axes | None = None
) -> Figure:
    """Draw a measure over the load, with intervals: (load, value, low, high) by policy; NaN for no interval.

    >>> against_load({"fifo": [(0.5, 2, 1, 3), (0.8, 4, 3, 6)]}, "mean wait").axes[0].get_ylabel()
    'mean wait'
    """
    ax = axes_of(ax)
    for number, (name, each) in enumerate(points.items()):
        load, value, low, high = np.array(each, dtype=float).T
        errors = np.nan_to_num(np.array([value - low, high - value]), nan=0.0).clip(min=0)
        shift = 1 + 0.006 * (number - (len(points) - 1) / 2)  # intervals stand beside each other
        how: dict[str, Any] = {"marker": MARKS[number % len(MARKS)], "capsize": 3, **line_of(number)}
        ax.errorbar(load * shift, value, errors, label=short_name(name), **how)
    values = np.array([value for each in points.values() for _, value, _, _ in each])
    logarithmic_where_wide(ax, "y", values)
    if ax.get_yscale() == "linear":
        ax.set_ylim(bottom=0)
    return named(ax, f"{what} against load", "load", what)


def _slotted(bars: Sequence[HostBar]) -> list[tuple[HostBar, list[range]]]:
    """Return bars of a host with the GPUs on which each is drawn, the lowest that are free, as runs without a gap."""
    found: list[tuple[HostBar, list[range]]] = []
    going: list[tuple[float, list[int]]] = []
    for bar in sorted(bars, key=lambda bar: (bar.begin, -bar.gpus)):
        going = [(end, slots) for end, slots in going if end > bar.begin]
        taken = {slot for _, slots in going for slot in slots}
        slots = list(islice((slot for slot in count() if slot not in taken), bar.gpus))
        going.append((bar.end, slots))
        ends = [place for place in range(1, len(slots)) if slots[place] != slots[place - 1] + 1]
        found.append((bar, [range(slots[a], slots[b - 1] + 1) for a, b in pairwise([0, *ends, len(slots)])]))
    return found


def _hours(line: Timeline) -> np.ndarray[Any, Any]:
    return np.linspace(line.begin, line.end, len(line.values) + 1) / 3600
