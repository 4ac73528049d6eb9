"""Pictures as SVG inside the page: performance profiles, and time over size.

Drawn here and not by a plotting library: text stays text, colours follow the page (light, dark, paper), each line is
named at its end, and the same input gives the same bytes. A contender keeps its colour, dash and mark in the whole
page: seven colours that colour-blind people tell apart, then the same again, dashed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairopt.bench.growth import Growth
from fairopt.bench.profiles import Profile
from fairopt.bench.report_html import Html, element, joined
from fairopt.bench.report_words import factor_text, part_text, seconds_text

#: Numbers of a picture's own units: its width, the room left of and right of the axes, above and below.
WIDTH, LEFT, RIGHT, TOP, BELOW = 960.0, 62.0, 300.0, 26.0, 50.0
#: The least height of the axes, and the distance of two names.
LEAST_HEIGHT, GAP = 330.0, 18.0
COLOURS = 7
DASHES = (None, "9 4", "2 4", "12 4 2 4")
#: Longer names lose their middle.
LONGEST = 36

Point = tuple[float, float]


@dataclass(frozen=True)
class Style:
    """How a contender is drawn everywhere: the number of its colour, its dash, and its mark."""

    number: int

    @property
    def colour(self) -> str:
        """The variable of the page's colours."""
        return f"var(--c{self.number % COLOURS})"

    @property
    def dash(self) -> str | None:
        """The pattern of its lines, None for a full line."""
        return DASHES[self.number // COLOURS % len(DASHES)]

    def line(self, points: Sequence[Point], class_: str = "line") -> Html:
        """Return a line through the points."""
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        return element("path", d=path, class_=class_, style=f"stroke:{self.colour}", stroke_dasharray=self.dash)

    def mark(self, x: float, y: float, title: str) -> Html:
        """Return the mark at a point, with its numbers as a title; filled where lines are full."""
        path = _MARKS[self.number % len(_MARKS)](x, y)
        fill = "var(--ground)" if self.dash else self.colour
        style = f"stroke:{self.colour};fill:{fill}"
        return element("path", element("title", title), d=path, class_="mark", style=style)


@dataclass(frozen=True)
class Points:
    """A contender's times: ``solved`` are (size, seconds), ``failed`` the sizes with instances not solved."""

    name: str
    solved: tuple[Point, ...]
    failed: tuple[float, ...]
    growth: Growth | None = None


@dataclass(frozen=True)
class _Axis:
    """A logarithmic or plain scale from values to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = True

    def at(self, value: float) -> float:
        scale = math.log if self.log else float
        part = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + part * (self.end - self.start)


def profile_picture(named: Mapping[str, Profile], styles: Mapping[str, Style], id_: str, what: str) -> Html:
    """Return performance profiles: across, the factor of the best time; up, the part of instances solved within it."""
    height = max(LEAST_HEIGHT, GAP * len(named))
    most = max([2.0, *(float(each.factors[-1]) for each in named.values())]) * 1.08
    across, up = _Axis(1, most, LEFT, WIDTH - RIGHT), _Axis(0, 1, TOP + height, TOP, log=False)
    lines, ends, said = [], [], []
    for name, each in named.items():
        points = [(across.at(1), up.at(0)), (across.at(1), up.at(float(each.parts[0])))]
        for factor, before, part in zip(each.factors[1:], each.parts[:-1], each.parts[1:], strict=True):
            points += [(across.at(float(factor)), up.at(float(before))), (across.at(float(factor)), up.at(float(part)))]
        last = up.at(float(each.parts[-1]))
        points.append((across.at(most), last))
        lines.append(styles[name].line(points))
        first = f"{part_text(each.within(1))} first, {part_text(float(each.parts[-1]))} solved"
        ends.append((name, first, (across.at(most), last)))
        said.append(f"{name}: fastest on {first}")
    frame = [
        _across(across, _ticks(1, most), lambda value: _tick(factor_text(value)), up, "time as a multiple of the best"),
        _up(up, (0, 0.25, 0.5, 0.75, 1), part_text, across, "instances solved"),
    ]
    return _svg(id_, what, "; ".join(said), height, *frame, *lines, *_names(ends, styles, up))


def growth_picture(
    series: Sequence[Points], styles: Mapping[str, Style], limit: float | None, id_: str, what: str
) -> Html:
    """Return seconds over size, both logarithmic, with the fitted lines over the sizes they were fitted to."""
    height = max(LEAST_HEIGHT, GAP * len(series))
    sizes = sorted({size for each in series for size in (*(x for x, _ in each.solved), *each.failed)})
    times = [time for each in series for _, time in each.solved] or [1.0]
    over = [limit] if limit is not None and any(each.failed for each in series) else []
    across = _Axis(sizes[0] / 1.15, sizes[-1] * 1.15, LEFT, WIDTH - RIGHT)
    up = _Axis(_above_zero(min(times)) / 1.5, max(*map(_above_zero, times), *over, 0) * 2, TOP + height, TOP)
    drawn: list[Html] = []
    ends, said = [], []
    if over:
        y = up.at(over[0])
        drawn.append(element("path", d=f"M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}", class_="limit"))
        label = f"time limit {_tick(seconds_text(over[0]))}; ✕ not solved"
        right = f"{WIDTH - RIGHT - 4:.1f}"
        drawn.append(element("text", label, x=right, y=f"{y - 8:.1f}", text_anchor="end", class_="tick"))
    for place, each in enumerate(series):
        style = styles[each.name]
        shift = 5 * (place - (len(series) - 1) / 2)  # so that those who failed at one size are seen side by side
        for size in each.failed if over else ():
            title = f"{each.name}, size {size:g}: not solved"
            drawn.append(_cross(across.at(size) + shift, up.at(over[0]), style, title))
        if not each.solved:
            continue
        places = [(across.at(size), up.at(_above_zero(time))) for size, time in each.solved]
        grown = each.growth
        ends_at = places[-1]
        if grown is None:
            drawn.append(style.line(places, "line thin"))
        else:
            ends_at = (across.at(grown.largest), up.at(_above_zero(grown.at(grown.largest))))
            first = across.at(grown.smallest), up.at(_above_zero(grown.at(grown.smallest)))
            drawn.append(style.line((first, ends_at)))
        for (x, y), (size, time) in zip(places, each.solved, strict=True):
            drawn.append(style.mark(x, y, f"{each.name}, size {size:g}: {seconds_text(time)}"))
        power = "" if grown is None else f"size^{grown.exponent:.2f} ± {grown.high - grown.exponent:.2f}"
        ends.append((each.name, power, ends_at))
        largest = f"{seconds_text(each.solved[-1][1])} at size {each.solved[-1][0]:g}"
        said.append(f"{each.name}: {largest}{', grows with ' + power if power else ''}")
    frame = [
        _across(
            across, sizes if len(sizes) <= 9 else _ticks(sizes[0], sizes[-1]), lambda value: f"{value:,g}", up, "size"
        ),
        _up(up, _ticks(up.low, up.high), lambda value: _tick(seconds_text(value)), across, "build and solve, wall"),
    ]
    return _svg(
        id_,
        what,
        "; ".join(said) or "nothing was solved",
        height,
        *frame,
        *drawn,
        *_names(ends, styles, up, marked=True),
    )


def spread(places: Sequence[float], gap: float, least: float, most: float) -> list[float]:
    """Return places moved as little as can be (in squares) so that neighbours, in the order given, are ``gap`` apart.

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


def _names(
    ends: Sequence[tuple[str, str, Point]], styles: Mapping[str, Style], up: _Axis, marked: bool = False
) -> list[Html]:
    """Return the names right of the axes, as near to their lines' ends as there is room, each led to its end."""
    ordered = sorted(ends, key=lambda end: end[2][1])
    heights = spread([end[2][1] for end in ordered], GAP, up.end + 4, up.start - 2)
    drawn = []
    x = WIDTH - RIGHT + 22
    for (name, more, (from_x, from_y)), y in zip(ordered, heights, strict=True):
        style = styles[name]
        lead = f"M{from_x + 4:.1f} {from_y:.1f}L{WIDTH - RIGHT + 6:.1f} {y:.1f}H{x - 4:.1f}"
        label = element(
            "text",
            element("title", name),
            shortened(name),
            element("tspan", f"  {more}", class_="tick") if more else None,
            x=f"{x + 34:.1f}",
            y=f"{y + 4.5:.1f}",
        )
        drawn += [
            element("path", d=lead, class_="leader"),
            style.line(((x, y), (x + 28, y))),
            style.mark(x + 14, y, name) if marked else Html(""),
            label,
        ]
    return drawn


def _across(axis: _Axis, ticks: Sequence[float], words: Callable[[float], str], up: _Axis, label: str) -> Html:
    drawn, free = [], -math.inf
    for value in ticks:
        x, said = axis.at(value), words(value)
        drawn.append(element("path", d=f"M{x:.1f} {up.end:.1f}V{up.start:.1f}", class_="grid"))
        if x - 3.6 * len(said) > free:  # a label that would touch the one before is left out
            attributes = {"x": f"{x:.1f}", "y": f"{up.start + 18:.1f}", "text_anchor": "middle", "class_": "tick"}
            drawn.append(element("text", said, **attributes))
            free = x + 3.6 * len(said) + 4
    drawn.append(element("path", d=f"M{axis.start:.1f} {up.start:.1f}H{axis.end:.1f}", class_="axis"))
    middle = (axis.start + axis.end) / 2
    drawn.append(element("text", label, x=f"{middle:.1f}", y=f"{up.start + 40:.1f}", text_anchor="middle"))
    return joined(*drawn)


def _up(axis: _Axis, ticks: Sequence[float], words: Callable[[float], str], across: _Axis, label: str) -> Html:
    drawn = []
    for value in ticks:
        y = axis.at(value)
        drawn.append(element("path", d=f"M{across.start:.1f} {y:.1f}H{across.end:.1f}", class_="grid"))
        attributes = {"x": f"{across.start - 7:.1f}", "y": f"{y + 4:.1f}", "text_anchor": "end", "class_": "tick"}
        drawn.append(element("text", words(value), **attributes))
    drawn.append(element("path", d=f"M{across.start:.1f} {axis.start:.1f}V{axis.end:.1f}", class_="axis"))
    drawn.append(element("text", label, x=f"{across.start + 6:.1f}", y=f"{axis.end - 11:.1f}", class_="tick"))
    return joined(*drawn)


def _svg(id_: str, title: str, description: str, height: float, *drawn: Html) -> Html:
    return element(
        "svg",
        element("title", title, id=f"{id_}-t"),
        element("desc", description, id=f"{id_}-d"),
        *drawn,
        viewBox=f"0 0 {WIDTH:g} {TOP + height + BELOW:g}",
        role="img",
        aria_labelledby=f"{id_}-t {id_}-d",
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of ten within the range, or 1, 2, 5, 10, ... where those would be few; the ends for a short one."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 2, 5)):
        found = [step * 10.0**power for power in decades for step in steps if low <= step * 10.0**power <= high]
        if len(found) >= 4:
            break
    return found or [low, high]


def _tick(words: str) -> str:
    """Return a number's text without zeros behind the point."""
    return re.sub(r"\.0+(?=\D|$)", "", words)


def _above_zero(seconds: float) -> float:
    return max(seconds, 1e-9)


def _cross(x: float, y: float, style: Style, title: str) -> Html:
    path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    return element("path", element("title", title), d=path, class_="mark", style=f"stroke:{style.colour};fill:none")


#: Marks of about the same area: circle, square, triangle, diamond, triangle downwards.
_MARKS: tuple[Callable[[float, float], str], ...] = (
    lambda x, y: f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    lambda x, y: f"M{x - 3.6:.1f} {y - 3.6:.1f}h7.2v7.2h-7.2z",
    lambda x, y: f"M{x:.1f} {y - 4.8:.1f}l4.6 8.2h-9.2z",
    lambda x, y: f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",
    lambda x, y: f"M{x:.1f} {y + 4.8:.1f}l4.6 -8.2h-9.2z",
)
