"""The page of a comparison, or of one outcome: HTML that needs no other file and no network.

A share is a bar, a witness unfolds, and a run has pictures of who ran where and of its queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fairopt.compare import Row
from fairopt.compare.answer import answer, together
from fairopt.compare.words import held_by_all, key, mark, numbers, title, unit
from fairopt.errors import NotInstalled
from fairopt.experiment import plot
from fairopt.experiment.graph_pictures import graph_pictures
from fairopt.experiment.page import rendered, svg
from fairopt.experiment.studies.playing import Observed, observe
from fairopt.policy import Allocation
from fairopt.program import Number, number_text
from fairopt.properties import Answer, Property
from fairopt.simulation.history import History

#: What is drawn over time of a run.
LINES = (("queue", "Jobs that wait"), ("utilisation", "Part of the GPUs in use"))
#: The most users whose bars are drawn; the others are counted.
USERS = 40


def page(problem: Any, rows: Sequence[Row[Any]], properties: Sequence[Property], name: str) -> str:
    """Return the page of a comparison; ``name`` is that of what was compared on. Without properties, of one outcome.

    Errors: `NotInstalled` without Jinja2.
    """
    groups = together(problem, rows)
    held = held_by_all(groups, properties)
    some = [each for each in properties if each not in held]
    heads, of = numbers(problem)
    words = {
        "mark": mark,
        "bars": bars,
        "throughputs": throughputs,
        "pictures": pictures,
        "numbers": of,
        "text": number_text,
    }
    return rendered(
        "comparison_page.html",
        __package__,
        "a comparison's page",
        words | {"unit": lambda each: unit(groups, each)},
        asks={each.name: each.asks() for each in properties},
        name=name,
        about=title(problem),
        title=f"{'Comparison' if properties or len(rows) != 1 else rows[0].policy.name} on {name}",
        sentences=answer(problem, rows, properties) if properties else [],
        groups=groups,
        properties=some,
        held=held,
        heads=heads,
        key=key(groups, some),
        users=USERS,
        fails=Answer.FAILS,
        holds=Answer.HOLDS,
    )


def bars(decided: object) -> list[tuple[str, Number, float, dict[int, Number]]]:
    """Return the bar of each GPU type of an allocation; none of another outcome.

    It is the type, how many GPUs there are, how many the whole bar stands for, and how many each user has, by its row.
    """
    if not isinstance(decided, Allocation):
        return []
    market = decided.market
    return [
        (name, there, float(max(there, held.sum())) or 1.0, {user: held[user] for user in held.nonzero()[0].tolist()})
        for name, there, held in zip(market.types, market.capacity, decided.shares.T, strict=True)
    ]


def throughputs(decided: object) -> list[tuple[str, str, str, float]]:
    """Return for each user of an allocation its throughput, also in parts of its equal share's, and a bar's width."""
    if not isinstance(decided, Allocation):
        return []
    fair = decided.market.fair_utility()
    parts = [float(got / own) if own > 0 else 0.0 for got, own in zip(decided.utilities, fair, strict=True)]
    widest = max(*parts, 1.0)
    return [
        (name, number_text(got), f"{part:.2f}", part / widest)
        for name, got, part in zip(decided.market.users, decided.utilities, parts, strict=True)
    ]


def pictures(row: Row[Any]) -> list[tuple[str, str]]:
    """Return pictures of an outcome, each with its caption; none where matplotlib or networkx are not installed.

    Of an `Allocation` they show who envies whom and a cycle of trades; of a run, a `History` or an `Observed`, who ran
    where and what waited.
    """
    outcome = observe(row.outcome) if isinstance(row.outcome, History) else row.outcome
    if isinstance(outcome, Allocation):
        return graph_pictures(outcome.market, outcome.shares, row.policy.name)
    if not isinstance(outcome, Observed):
        return []
    lines = outcome.over_time
    drawn = [(f"{what} over time", partial(plot.over_time, {what: lines[key]}, what)) for key, what in LINES]
    if outcome.bars:
        until = max(bar.end for bar in outcome.bars) / 3600
        caption = f"Who ran where, a colour for each tenant, in the first {until:.3g} hours"
        drawn.append((caption, partial(plot.gantt, outcome.bars, outcome.hosts)))
    with suppress(NotInstalled):  # the page says the rest without matplotlib
        return [(caption, svg(draw, f"{row.policy.name}: {caption}", "a run's page")) for caption, draw in drawn]
    return []
