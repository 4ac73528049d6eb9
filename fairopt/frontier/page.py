"""The page of a frontier: HTML that needs no other file and no network, made from the frontier alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from os import PathLike
from typing import Any

from fairopt import plot
from fairopt.bench.report.page import UNWRITABLE, templates
from fairopt.frontier.frontiers import Frontier
from fairopt.frontier.goals import GOALS
from fairopt.frontier.relaxed import RELAXED
from fairopt.frontier.words import below, decimal, sentence
from fairopt.plot.inline import svg
from fairopt.problem.files.storage import naming, write_text
from fairopt.program import number_text

#: The most lines of each table.
LINES = 500
WHAT = "a frontier's page"


def write_page(found: Frontier, path: str | PathLike[str], title: str = "Frontier") -> None:
    """Write the page of a frontier. Errors: `NotInstalled` without Jinja2 or matplotlib; `BadInput` for the place."""
    with naming(path):
        write_text(path, page(found, title))


def page(found: Frontier, title: str = "Frontier") -> str:
    """Return the page; the rest as `write_page`."""
    goals = dict.fromkeys([*(curve.goal for curve in found.curves), *(goal for goal, _ in found.failed)])
    text: str = (
        _templates()
        .get_template("frontier_page.html")
        .render(
            title=title,
            found=found,
            goals=list(goals),
            properties=[each for each in RELAXED if any(curve.against == each.name for curve in found.curves)],
            curves=lambda goal: [curve for curve in found.curves if curve.goal == goal],
            said={each.name: sentence(each) for each in GOALS},
            picture=partial(_picture, found),
            most=LINES,
        )
    )
    return UNWRITABLE.sub("\ufffd", text)


@cache
def _templates() -> Any:
    made = templates(__package__, WHAT)
    made.filters |= {"exactly": number_text, "decimal": decimal, "sentence": sentence}
    made.globals |= {"below": below}
    return made


def _picture(found: Frontier, goal: str) -> str:
    """Return the picture of a goal: a panel for each property."""
    some = replace(found, curves=tuple(curve for curve in found.curves if curve.goal == goal))
    return svg(lambda: plot.frontier(some), f"{goal} against epsilon, a panel for each property", WHAT)
