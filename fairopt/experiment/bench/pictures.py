"""Pictures of the page, computed as paths and texts of SVG: performance profiles, and time over size.

Drawn here and not by a plotting library: text stays text, colours follow the page (light, dark, paper), each line has
its name at its end, and the same input gives the same bytes. A contender has one colour, dash and mark in the whole
page: seven colours that colour-blind people can tell apart, then the same again, dashed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from fairopt.errors import BadInput
from fairopt.experiment.statistics import Growth, Profile
from fairopt.experiment.words import factor_text, part_text, power_text, seconds_text

#: In units of the picture: its width, the room left and right of the axes, and above and below them.
WIDTH, LEFT, RIGHT, TOP, BELOW = 960.0, 62.0, 300.0, 26.0, 50.0
#: The least height of the axes, and the least distance of two names.
LEAST_HEIGHT, GAP = 330.0, 18.0
COLOURS = 7
DASHES = (None, "9 4", "2 4", "12 4 2 4")
#: Longer names lose their middle.
LONGEST = 36

Point = tuple[float, float]


@dataclass(frozen=True)
class Path:
    """A path of SVG; ``title`` is what a browser shows when it is pointed at."""

    path: str
    class_: str
    style: str = ""
    dash: str | None = None
    title: str = ""


@dataclass(frozen=True)
class Text:
    """Words at a point; ``more`` follows them in smaller letters."""

    words: str
    x: float
    y: float
    anchor: str = ""
    class_: str = ""
    title: str = ""
    more: str = ""


Shape = Path | Text


@dataclass(frozen=True)
class Picture:
    """Shapes in the order in which they are drawn, with a title and a description for those who cannot see them."""

    id: str
    title: str
    description: str
    height: str
    shapes: Sequence[Shape]
    width: str = f"{WIDTH:g}"


@dataclass(frozen=True)
class Style:
    """How a contender is drawn everywhere: ``number`` decides its colour, dash and mark."""

    number: int

    @property
    def colour(self) -> str:
        """The variable of the page's colours."""
        return f"var(--c{self.number % COLOURS})"

    @property
    def dash(self) -> str | None:
        """The pattern of its lines, None for a full line."""
        return DASHES[self.number // COLOURS % len(DASHES)]

    def line(self, points: Sequence[Point], class_: str = "line") -> Path:
        """Return a line through the points."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        return Path(path, class_, f"stroke:{self.colour}", self.dash)

    def mark(self, x: float, y: float, title: str) -> Path:
        """Return the mark at a point, with its numbers as a title; filled where lines are full."""
        fill = "var(--ground)" if self.dash else self.colour
        return Path(_MARKS[self.number % len(_MARKS)](x, y), "mark", f"stroke:{self.colour};fill:{fill}", title=title)

    def cross(self, x: float, y: float, title: str) -> Path:
        """Return the mark of what was not solved."""
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        return Path(path, "mark", f"stroke:{self.colour};fill:none", title=title)


class Points(NamedTuple):
    """A contender's times: ``solved`` are (size, seconds), ``failed`` the sizes with instances not solved."""

    name: str
    solved: tuple[Point, ...]
    failed: tuple[float, ...]


class _End(NamedTuple):
    """The right end of a contender's line, and what stands behind its name there."""

    name: str
    more: str
    at: Point


@dataclass(frozen=True)
class _Axis:
    """A logarithmic or plain scale from values to places; ``words`` writes a value at a tick."""

    low: float
    high: float
    start: float
    end: float
    words: Callable[[float], str]
    log: bool = True

    def at(self, value: float) -> float:
        scale = math.log if self.log else float
        part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + part * (self.end - self.start)


def profile_picture(named: Mapping[str, Profile], styles: Mapping[str, Style], id_: str, title: str) -> Picture:
    """Return performance profiles: across, the factor of the best time; up, the part of instances solved within it."""
    height = max(LEAST_HEIGHT, GAP * len(named))
    most = max([2.0, *(float(each.factors[-1]) for each in named.values())]) * 1.08
    across = _Axis(1, most, LEFT, WIDTH - RIGHT, lambda value: _short(factor_text(value)))
    up = _Axis(0, 1, TOP + height, TOP, part_text, log=False)
    shapes = [
        *_across(across, _ticks(1, most), up, "time as a multiple of the best"),
        *_up(up, (0, 0.25, 0.5, 0.75, 1), across, "instances solved"),
    ]
    ends, described = [], []
    for name, each in named.items():
        steps = [(across.at(factor), up.at(part)) for factor, part in zip(each.factors, each.parts, strict=True)]
        points = [(across.at(1), up.at(0)), steps[0]]
        for before, after in pairwise(steps):
            points += [(after[0], before[1]), after]
        points.append((across.at(most), steps[-1][1]))
        shapes.append(styles[name].line(points))
        parts = f"{part_text(each.within(1))} first, {part_text(float(each.parts[-1]))} solved"
        ends.append(_End(name, parts, points[-1]))
        described.append(f"{name}: fastest on {parts}")
    return Picture(id_, title, "; ".join(described), f"{TOP + height + BELOW:g}", [*shapes, *_names(ends, styles, up)])


def growth_picture(
    series: Sequence[Points],
    fitted: Mapping[str, Growth | BadInput],
    styles: Mapping[str, Style],
    limit: float | None,
    id_: str,
    title: str,
) -> Picture:
    """Return seconds over size, both logarithmic, with the fitted lines over the sizes they were fitted to."""
    height = max(LEAST_HEIGHT, GAP * len(series))
    sizes = sorted({size for each in series for size in (*(x for x, _ in each.solved), *each.failed)})
    times = [_above_zero(time) for each in series for _, time in each.solved] or [1.0]
    shown = limit if any(each.failed for each in series) else None
    across = _Axis(sizes[0] / 1.15, sizes[-1] * 1.15, LEFT, WIDTH - RIGHT, lambda value: f"{value:,g}")
    most = max(*times, shown or 0.0, 0.0)
    up = _Axis(min(times) / 1.5, most * 2, TOP + height, TOP, lambda value: _short(seconds_text(value)))
    shapes: list[Shape] = [
        *_across(across, sizes if len(sizes) <= 9 else _ticks(sizes[0], sizes[-1]), up, "size"),
        *_up(up, _ticks(up.low, up.high), across, "build and solve, wall"),
    ]
    ends, described = [], []
    for each in (each for each in series if each.solved):
        places = [(across.at(size), up.at(_above_zero(time))) for size, time in each.solved]
        style, grown, end, power = styles[each.name], fitted[each.name], places[-1], ""
        if isinstance(grown, Growth):
            first, end = ((across.at(x), up.at(_above_zero(grown.at(x)))) for x in (grown.smallest, grown.largest))
            power = f"size^{power_text(grown.exponent)} ± {power_text(grown.high - grown.exponent)}"
            shapes.append(style.line((first, end)))
        else:
            shapes.append(style.line(places, "line thin"))
        for (x, y), (size, time) in zip(places, each.solved, strict=True):
            shapes.append(style.mark(x, y, f"{each.name}, size {size:g}: {seconds_text(time)}"))
        ends.append(_End(each.name, power, end))
        largest = f"{seconds_text(each.solved[-1][1])} at size {each.solved[-1][0]:g}"
        described.append(f"{each.name}: {largest}{', grows with ' + power if power else ''}")
    if shown is not None:
        shapes += _failures(series, styles, across, up, shown)
    description = "; ".join(described) or "nothing was solved"
    shapes += _names(ends, styles, up, marked=True)
    return Picture(id_, title, description, f"{TOP + height + BELOW:g}", shapes)


def spread(places: Sequence[float], gap: float, least: float, most: float) -> list[float]:
    """Return places moved as little as possible (in squares) so that neighbours, in the order given, are ``gap`` apart.

    They stay between ``least`` and ``most`` where there is room. Source: pool adjacent violators, on what is left of
    each place when the gaps before it are taken away.
    """
    pools: list[tuple[float, int]] = []  # means that ascend, and how many places each stands for
    for number, place in enumerate(places):
        mean, size = place - number * gap, 1
        while pools and pools[-1][0] > mean:
            other, many = pools.pop()
            mean, size = (mean * size + other * many) / (size + many), size + many
        pools.append((mean, size))
    room = max(most - (len(places) - 1) * gap, least)
    flat = [min(max(mean, least), room) for mean, size in pools for _ in range(size)]
    return [place + number * gap for number, place in enumerate(flat)]


def shortened(name: str) -> str:
    """Return a name of at most `LONGEST` letters: a longer one without its middle."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[: half - 1]}…{name[-half:]}"


def _failures(
    series: Sequence[Points], styles: Mapping[str, Style], across: _Axis, up: _Axis, limit: float
) -> Iterator[Shape]:
    """Yield the time limit as a line, with a cross on it for each size that a contender did not solve."""
    y = up.at(limit)
    yield Path(f"M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}", "limit")
    yield Text(f"time limit {up.words(limit)}; ✕ not solved", WIDTH - RIGHT - 4, y - 8, "end", "tick")
    for place, each in enumerate(series):
        shift = 5 * (place - (len(series) - 1) / 2)  # contenders that failed at one size stand side by side
        for size in each.failed:
            yield styles[each.name].cross(across.at(size) + shift, y, f"{each.name}, size {size:g}: not solved")


def _names(ends: Sequence[_End], styles: Mapping[str, Style], up: _Axis, marked: bool = False) -> Iterator[Shape]:
    """Yield the names right of the axes, as near to the ends of their lines as there is room, each led to its end."""
    ordered = sorted(ends, key=lambda end: end.at[1])
    heights = spread([end.at[1] for end in ordered], GAP, up.end + 4, up.start - 2)
    x = WIDTH - RIGHT + 22
    for end, y in zip(ordered, heights, strict=True):
        style, (from_x, from_y) = styles[end.name], end.at
        lead = f"M{from_x + 4:.1f} {from_y:.1f}L{WIDTH - RIGHT + 6:.1f} {y:.1f}H{x - 4:.1f}"
        yield Path(lead, "leader")
        yield style.line(((x, y), (x + 28, y)))
        if marked:
            yield style.mark(x + 14, y, end.name)
        yield Text(shortened(end.name), x + 34, y + 4.5, title=end.name, more=end.more)


def _across(axis: _Axis, ticks: Sequence[float], up: _Axis, label: str) -> Iterator[Shape]:
    free = -math.inf
    for value in ticks:
        x, words = axis.at(value), axis.words(value)
        yield Path(f"M{x:.1f} {up.end:.1f}V{up.start:.1f}", "grid")
        if x - 3.6 * len(words) > free:  # a label that would touch the one before is left out
            yield Text(words, x, up.start + 18, "middle", "tick")
            free = x + 3.6 * len(words) + 4
    yield Path(f"M{axis.start:.1f} {up.start:.1f}H{axis.end:.1f}", "axis")
    yield Text(label, (axis.start + axis.end) / 2, up.start + 40, "middle")


def _up(axis: _Axis, ticks: Sequence[float], across: _Axis, label: str) -> Iterator[Shape]:
    for value in ticks:
        y = axis.at(value)
        yield Path(f"M{across.start:.1f} {y:.1f}H{across.end:.1f}", "grid")
        yield Text(axis.words(value), across.start - 7, y + 4, "end", "tick")
    yield Path(f"M{across.start:.1f} {axis.start:.1f}V{axis.end:.1f}", "axis")
    yield Text(label, across.start + 6, axis.end - 11, class_="tick")


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten within the range, or 1, 2, 5, 10, ... where those would be few; the ends for a short one."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    powers, found = (
        [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]
        for steps in ((1,), (1, 2, 5))
    )
    return powers if len(powers) >= 4 else found or [low, high]


def _short(words: str) -> str:
    """Return a number's text without zeros behind the point."""
    return re.sub(r"\.0+(?=\D|$)", "", words)


def _above_zero(seconds: float) -> float:
    return max(seconds, 1e-9)


#: Marks of about the same area: circle, square, triangle, diamond, triangle downwards.
_MARKS: tuple[Callable[[float, float], str], ...] = (
    lambda x, y: f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    lambda x, y: f"M{x - 3.6:.1f} {y - 3.6:.1f}h7.2v7.2h-7.2z",
    lambda x, y: f"M{x:.1f} {y - 4.8:.1f}l4.6 8.2h-9.2z",
    lambda x, y: f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
    lambda x, y: f"M{x:.1f} {y + 4.8:.1f}l4.6 -8.2h-9.2z",
)
