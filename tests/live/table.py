"""The table of a run: for the terminal, and as the section "Asked live" of the page of Slurm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from asking import Outcome

#: The section that a run writes.
HEADING = "## Asked live"
HEAD = (
    *("rule", "trees", "values of sshare", "values of sprio", "jobs started", "jobs stopped", "reasons", "ties"),
    "trees that differ",
)


def rows_of(outcomes: Iterable[Outcome]) -> list[tuple[str, ...]]:
    """Return the head, a row for each rule with and without backfill, and one for all."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(kind_of(outcome), []).append(outcome)
    everything = [each for group in groups.values() for each in group]
    return [HEAD, *(_row(name, groups[name]) for name in sorted(groups)), _row("all", everything)]


def kind_of(outcome: Outcome) -> str:
    """Return the rule under which a tree was asked."""
    settings = outcome.case.settings
    return ("Fair Tree" if settings.fair_tree else "classic") + (", backfill" if settings.backfill else "")


def _row(name: str, group: list[Outcome]) -> tuple[str, ...]:
    values = Counter[str]()
    for outcome in group:
        values.update(outcome.values)
    started, stopped = (sum(len(getattr(outcome, name)) for outcome in group) for name in ("started", "stopped"))
    ties, wrong = sum(outcome.ties for outcome in group), sum(bool(outcome.wrong) for outcome in group)
    counts = (len(group), values["sshare"], values["sprio"], started, stopped, values["reasons"], ties, wrong)
    return (name, *map(str, counts))


def plain(rows: list[tuple[str, ...]]) -> str:
    """Return rows in columns."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(wide) for cell, wide in zip(row, width, strict=True)) for row in rows)


def written(page: str, version: str, outcomes: list[Outcome]) -> str:
    """Return the page with the section of this run in the place of the last one. Errors: `ValueError` without one."""
    head, *rows = rows_of(outcomes)
    table = [
        f"| {' | '.join(head)} |",
        "|---|" + "---:|" * (len(head) - 1),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    reasons = Counter(re.split(r",| \(", reason)[0] for outcome in outcomes for reason in outcome.reasons)
    seen = ", ".join(f"{name} {count}" for name, count in sorted(reasons.items()))
    late = sum(bool(outcome.case.later) for outcome in outcomes)
    lines = [
        HEADING,
        "",
        f"`make live-slurm` asked Slurm {version}: a tree for each of {len(outcomes)} seeds, {late} of them changed",
        "while slurmctld ran. Compared are each number of `sshare -l`, each job's priority and fair-share factor of",
        "`sprio`, which jobs started, in which order (but where some were stopped), which were stopped for them,",
        "and why the others wait.",
        "",
        *table,
        "",
        f"Reasons of jobs that waited, those with a limit on jobs or no partition left aside: {seen}.",
        "",
    ]
    found, count = re.subn(rf"(?ms)^{HEADING}$.*?(?=^## )", lambda _: "\n".join(lines) + "\n", page)
    if count != 1:
        raise ValueError(f"the page needs one section {HEADING!r}")
    return found
