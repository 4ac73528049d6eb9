"""A comparison in words: what it is about, the heads and cells of its table, and what the marks mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from textwrap import fill
from typing import Any, TypeAlias

from fairopt.compare.rows import Row
from fairopt.numbers import counted, four_digits
from fairopt.problem import Market
from fairopt.problem.batch import Batch
from fairopt.problem.ranges import stand_ins
from fairopt.program import Number, number_text
from fairopt.properties import Answer, MechanismProperty, Property, Verdict
from fairopt.properties.verdict import MARKS
from fairopt.properties.within_bounds import Boundary, percent, range_of
from fairopt.simulation import Setting
from fairopt.simulation.measures import WORDS

#: Rows that are one line, and all lines.
Groups: TypeAlias = Sequence[Sequence[Row[Any]]]
#: The most characters of a line in the head of a column of numbers.
NARROW = 12
#: What the cells of a table show: only searches refute nothing.
CELLS: Mapping[Answer, str] = {**MARKS, Answer.NOT_REFUTED: "none found"}


@singledispatch
def title(problem: Any) -> str:
    """Return what is compared on: a `Market`, a `Setting` or a `Batch`."""
    raise TypeError(f"there is no table for a {type(problem).__name__}")


@title.register
def _(market: Market) -> str:
    gpus = ", ".join(f"{number_text(m)} {name}" for name, m in zip(market.types, market.capacity, strict=True))
    said = f"{len(market.users)} {'user shares' if len(market.users) == 1 else 'users share'} {gpus}."
    if unmeasured := stand_ins(market):
        said += f"\n{unmeasured}"
    if within := range_of(market):
        said += (
            "\nPolicies decide by the speedups that are stated, robust ones by the ranges. Verdicts are for all true "
            f"speedups {within}; `to 5%` says that it holds up to that error."
        )
    return said


@title.register
def _(setting: Setting) -> str:
    cluster = setting.cluster
    gpus = ", ".join(f"{count} {name}" for name, count in zip(cluster.types, cluster.capacity, strict=True))
    return f"{counted(len(setting.trace.jobs), 'job')} on {gpus}, rounds of {number_text(setting.length)}."


@title.register
def _(batch: Batch) -> str:
    jobs, tenants = counted(len(batch.jobs), "job"), counted(len(batch.tenants), "tenant")
    return f"{jobs} of {tenants} on {counted(len(batch.servers), 'server')}."


Numbers = tuple[Sequence[str], Callable[[Row[Any]], Sequence[str]]]


@singledispatch
def numbers(problem: Any) -> Numbers:
    """Return the heads of the numbers beside the verdicts, and what makes them of a row."""
    raise TypeError(f"there are no numbers for a {type(problem).__name__}")


@numbers.register
def _(market: Market) -> Numbers:
    def of(row: Row[Any]) -> Sequence[str]:
        if row.metrics is None:
            return ("-",) * 3
        price = f"{float(row.metrics.price_of_fairness):z.1%}"  # below 0 where more is given out than there is
        return number_text(float(row.metrics.total_efficiency)), price, f"{float(row.metrics.jain_index):.3f}"

    return ("total\nthroughput", "below\nmaximum", "Jain's\nindex"), of


@numbers.register
def _(setting: Setting) -> Numbers:
    shown = "completed", "jct_mean", "makespan", "finish_time_max", "utilisation", "migrations"
    return [fill(WORDS[name], NARROW) for name in shown], lambda row: [four_digits(row.numbers[name]) for name in shown]


@numbers.register
def _(batch: Batch) -> Numbers:
    def of(row: Row[Any]) -> Sequence[str]:
        if row.outcome is None:
            return ("-",) * 2
        return str(row.numbers["jobs_run"]), f"{float(row.outcome.revenue):.6g}"

    return ("jobs\nrun", "revenue"), of


def in_floats(verdict: Verdict) -> bool:
    """Whether a tolerance decided."""
    return not verdict.exact and verdict.answer in (Answer.HOLDS, Answer.FAILS)


def mark(verdict: Verdict, *, with_margin: bool = True) -> str:
    """Return what a table shows of a verdict: yes, NO and by how much, or which other answer it is."""
    margin = f" {_margin(verdict.margin)}" if with_margin and verdict.answer is Answer.FAILS else ""
    up_to = verdict.boundary.error if isinstance(verdict.boundary, Boundary) else None
    said = CELLS[verdict.answer] if up_to is None else f"to {percent(up_to)}"
    return f"{'~' * in_floats(verdict)}{said}{margin}{_kind(verdict)}"


def _kind(verdict: Verdict) -> str:
    """Return by which kind of misreport a policy fails most: the narrow one that pays as much as any."""
    same = [
        kind
        for kind, each in verdict.by_misreport.items()
        if each.answer is Answer.FAILS and each.margin == verdict.margin
    ]
    return f", {same[0] if len(same) > 1 else 'mixed'}" if same and verdict.answer is Answer.FAILS else ""


def _margin(margin: Number | None) -> str:
    return "" if margin is None else f"{-float(margin):.3g}"


def unit(groups: Groups, asked: Property) -> str:
    """Return the unit of the margins of a property's failures; "" where they have none, or several."""
    found = {verdict.unit for group in groups for verdict in verdicts(group, asked) if verdict.answer is Answer.FAILS}
    cut = "," if len(found) == 1 else " of "
    units = {each.partition(cut)[0] for each in found}
    return units.pop() if len(units) == 1 else ""


def verdicts(group: Sequence[Row[Any]], asked: Property) -> list[Verdict]:
    """Return the verdict on a group's policies; none where it was not decided."""
    return [row.verdicts[asked.name] for row in group[:1] if asked.name in row.verdicts]


def held_by_all(groups: Groups, properties: Sequence[Property]) -> list[Property]:
    """Return what holds, exactly, under every policy, where there is something else to show."""
    held = [
        each
        for each in properties
        if (found := [verdict for group in groups for verdict in verdicts(group, each)])
        and all(verdict.answer is Answer.HOLDS and verdict.exact for verdict in found)
    ]
    return held if len(held) < len(properties) else []


def key(groups: Groups, properties: Sequence[Property]) -> list[str]:
    """Return what the marks mean that are in the table."""
    said = ["yes: it holds. NO: it fails, by so much."]
    for asked in properties:
        found = [verdict for group in groups for verdict in verdicts(group, asked)]
        proofs = [
            f"{group[0].policy.name} ({each.evidence})"
            for group in groups
            for each in verdicts(group, asked)
            if each.answer is Answer.HOLDS and isinstance(each.evidence, str)
        ]
        if isinstance(asked, MechanismProperty) and proofs:
            said.append(f"yes, {asked.asks()}: by proof, {', '.join(proofs)}.")
        if isinstance(asked, MechanismProperty) and any(each.answer is Answer.NOT_REFUTED for each in found):
            efforts = {verdict.effort for verdict in found}
            tried = f" ({efforts.pop()})" if len(efforts) == 1 and all(efforts) else ""
            said.append(f"none found: of the lies that were tried none pays, which proves nothing{tried}.")
        if isinstance(asked, MechanismProperty) and any(map(_kind, found)):
            said.append("larger, smaller, mixed: what the lie that pays most says of speedups.")
    if any(in_floats(verdict) for group in groups for each in properties for verdict in verdicts(group, each)):
        said.append("~: decided in floats, within a tolerance; else exactly.")
    return said
