"""Rows of Kueue's own test tables as the rule's quotas and workloads.

The JSON files beside this one hold the numbers of the tables, each row with its name and line in the source.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from fairopt.models.kueue.quotas import CohortQuotas
from fairopt.models.kueue.state import FlavorPreference, Preempts, Queueing, Rules, Search, State, Strategy
from fairopt.models.kueue.work import QueuedWork

FOLDER = Path(__file__).parent
#: Amounts are in thousandths, as CPU is in the source.
UNIT = 1000
#: A creation time that a row does not say.
NEVER = -(10**15)


def rows(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())["cases"]
    return cases


def amount(text: object) -> int:
    return int(Fraction(str(text)) * UNIT)


class Built:
    """The nodes, columns and state of a row."""

    def __init__(self, row: dict[str, Any], *, fair: bool) -> None:
        owners = [*row["queues"], *row["cohorts"]]
        self.queue = {each["name"]: at for at, each in enumerate(row["queues"])}
        cohorts = [each["name"] for each in row["cohorts"]]
        parents = [each["parent"] for each in owners if "parent" in each]
        names = list(dict.fromkeys([*cohorts, *parents]))
        self.cohort = {name: len(self.queue) + at for at, name in enumerate(names)}
        self.names = [*self.queue, *self.cohort]
        self.columns = list(
            dict.fromkeys((flavor, each) for own in owners for flavor, row in own["quotas"].items() for each in row)
        )
        nodes = range(len(self.names))
        own = [{}] * len(self.names)
        parent, weight = [-1] * len(self.names), [Fraction(1)] * len(self.names)
        self.spec = owners
        for each in owners:
            node = self.queue[each["name"]] if each in row["queues"] else self.cohort[each["name"]]
            own[node] = each["quotas"]
            parent[node] = self.cohort[each["parent"]] if "parent" in each else -1
            weight[node] = Fraction(each.get("weight", "1"))

        def table(key: str, blank: int | None) -> list[list[Any]]:
            found = [[own[node].get(f, {}).get(r, {}).get(key) for f, r in self.columns] for node in nodes]
            return [[blank if each is None else amount(each) for each in line] for line in found]

        resources = [resource for _, resource in self.columns]
        self.quotas = CohortQuotas(
            parent, resources, table("nominal", 0), table("borrowing", None), table("lending", None), weight
        )
        rules = [rules_of(each) for each in row["queues"]]
        strategies = tuple(Strategy(each) for each in row.get("strategies", ())) or tuple(Strategy)
        self.state = State(self.quotas, lambda queue: rules[queue], fair, strategies)

    def needs(self, usage: dict[str, str], flavors: dict[str, str]) -> list[tuple[int, int]]:
        found = (
            (self.columns.index((flavors[each], each)), amount(own)) for each, own in usage.items() if each in flavors
        )
        return [(column, own) for column, own in found if own]

    def admit(self, works: list[dict[str, Any]]) -> None:
        numbers = {name: at for at, name in enumerate(sorted(work["name"] for work in works))}
        for work in works:
            usage = work.get("usage", work.get("requests"))
            flavors = work.get("flavors") or dict.fromkeys(usage, work.get("flavor"))
            self.state.add(
                QueuedWork(
                    work["name"],
                    self.queue[work["queue"]],
                    work.get("priority", 0),
                    work.get("created", NEVER),
                    numbers[work["name"]],
                    {0: (self.needs(usage, flavors), ())},
                    admitted=work.get("admitted", 0),
                    flavor=0,
                )
            )


def rules_of(owner: dict[str, Any]) -> Rules:
    """Return a ClusterQueue's rules; the builders of the tests leave out what the API would default."""
    return Rules(
        Preempts(owner.get("reclaim", "Never")),
        Preempts(owner.get("within", "Never")),
        Preempts(owner.get("borrow_within", "Never")),
        owner.get("threshold"),
        Search(owner.get("can_borrow", "MayStopSearch")),
        Search(owner.get("can_preempt", "TryNextFlavor")),
        FlavorPreference(owner.get("preference", "BorrowingOverPreemption")),
        Queueing(owner.get("queueing", "BestEffortFIFO")),
    )
