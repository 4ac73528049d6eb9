"""Pictures of a benchmark's page: performance profiles, and time over size.

A contender has one colour, dash and mark in the whole page: that of its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from fairopt.errors import BadInput
from fairopt.experiment.bench.timing import CLOCK_STEP, Growth, profile, within
from fairopt.experiment.plot.figures import COLOURS, MARKS, axes_of, line_of, named, short_name
from fairopt.experiment.statistics import Floats
from fairopt.experiment.words import factor_text, part_text, power_text, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def profile_words(factors: Floats) -> str:
    """Return how much a contender solved, and how often it was the first."""
    return f"{part_text(within(factors, 1))} first, {part_text(within(factors, math.inf))} solved"


def profile_picture(factors: Mapping[str, Floats], numbers: Mapping[str, int]) -> Figure:
    """Draw performance profiles: across, the factor of the best time; up, the part of instances solved within it."""
    ax = axes_of(None, 9.6, max(4.2, 1 + 0.22 * len(factors)))
    steps = {name: profile(each) for name, each in factors.items()}
    most = max([2.0, *(float(reached[-1]) for reached, _ in steps.values())]) * 1.08
    for name, (reached, parts) in steps.items():
        label = f"{short_name(name)}: {profile_words(factors[name])}"
        ax.step([1, *reached, most], [0, *parts, parts[-1]], where="post", label=label, **line_of(numbers[name]))
    ax.set_xscale("log")
    ax.set_xlim(1, most)
    ax.set_ylim(0, 1.02)
    ax.xaxis.set_major_formatter(lambda value, _: factor_text(value))
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter(lambda value, _: part_text(value))
    return named(ax, "", "time as a multiple of the best", "instances solved")


def growth_words(of: Growth | BadInput) -> str:
    """Return the power of the size with which time grows; "" where nothing could be fitted."""
    if isinstance(of, BadInput):
        return ""
    return f"size^{power_text(of.exponent)} ± {power_text(of.high - of.exponent)}"


def growth_picture(
    solved: Mapping[str, Sequence[tuple[float, float]]],
    failed: Mapping[str, Sequence[float]],
    fitted: Mapping[str, Growth | BadInput],
    numbers: Mapping[str, int],
    limit: float | None,
) -> Figure:
    """Draw seconds over size, both logarithmic, with the fitted lines over the sizes that they were fitted to.

    ``solved`` are (size, seconds) by contender, ``failed`` the sizes with instances that were not solved; these are
    crosses at the time ``limit``.
    """
    ax = axes_of(None, 9.6, max(4.2, 1 + 0.22 * len(solved)))
    for name, points in solved.items():
        if not points:
            continue
        look: dict[str, Any] = line_of(numbers[name])
        grown, mark = fitted[name], MARKS[numbers[name] % len(MARKS)]
        sizes, seconds = [size for size, _ in points], [max(time, CLOCK_STEP) for _, time in points]
        ends = sizes if isinstance(grown, BadInput) else [grown.smallest, grown.largest]
        times = seconds if isinstance(grown, BadInput) else [max(grown.at(size), CLOCK_STEP) for size in ends]
        ax.plot(ends, times, **look, linewidth=0.8 if isinstance(grown, BadInput) else 2)
        power = growth_words(grown)
        label = f"{short_name(name)}: {power}" if power else short_name(name)
        ax.plot(sizes, seconds, mark, color=look["color"], label=label)
    if limit is not None and any(failed.values()):
        ax.axhline(
            limit, color="0.5", linewidth=1, linestyle=":", label=f"time limit {seconds_text(limit)}; x not solved"
        )
        for name, beyond in failed.items():
            ax.plot(beyond, [limit] * len(beyond), "x", color=COLOURS[numbers[name] % len(COLOURS)])
    ax.set_xscale("log")
    ax.set_yscale("log")
    every = sorted({size for points in solved.values() for size, _ in points} | {*chain(*failed.values())})
    if len(every) < 10:
        ax.set_xticks(every)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.yaxis.set_major_formatter(lambda value, _: seconds_text(value))
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_minor_formatter("")
    return named(ax, "", "size", "build and solve, wall")
