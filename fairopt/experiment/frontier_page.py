"""The page of a frontier: HTML that needs no other file and no network, made from the frontier alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairopt.experiment import plot
from fairopt.experiment.page import rendered, svg
from fairopt.frontier.frontiers import Frontier, decimal
from fairopt.frontier.goals import GOALS
from fairopt.frontier.relaxed import RELAXED
from fairopt.program import number_text

#: The most lines of each table.
LINES = 500
WHAT = "a frontier's page"


def page(found: Frontier, title: str = "Frontier") -> str:
    """Return the page of a frontier. Errors: `NotInstalled` without Jinja2 or matplotlib."""
    goals = dict.fromkeys([*(curve.goal for curve in found.curves), *(goal for goal, _ in found.failed)])
    return rendered(
        "frontier_page.html",
        __package__,
        WHAT,
        {"exactly": number_text, "decimal": decimal},
        title=title,
        found=found,
        goals=list(goals),
        properties=[each for each in RELAXED if any(curve.against == each.name for curve in found.curves)],
        curves=lambda goal: [curve for curve in found.curves if curve.goal == goal],
        said={each.name: each.says for each in GOALS},
        picture=partial(_picture, found),
        most=LINES,
    )


def _picture(found: Frontier, goal: str) -> str:
    """Return the picture of a goal: a panel for each property."""
    some = replace(found, curves=tuple(curve for curve in found.curves if curve.goal == goal))
    return svg(lambda: plot.frontier(some), f"{goal} against epsilon, a panel for each property", WHAT)
