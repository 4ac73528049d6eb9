"""Kueue's own test tables: shares, and whom preemption chooses. Every row that the rule can say agrees exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from kueue_tables import Built, amount, rows

from fairopt.models.kueue.preemption import targets_of
from fairopt.models.kueue.quotas import UNLIMITED, DominantShare
from fairopt.models.kueue.work import QueuedWork

SHARES = rows("fair_sharing_test.json")
PREEMPTIONS = [
    (fair, row)
    for name, fair in (
        ("preemption_fair_test.json", True),
        ("preemption_test.json", False),
        ("preemption_hierarchical_test.json", False),
    )
    for row in rows(name)
]
#: Rows that ask for what the rule does not have.
LEFT_OUT = {"prefer to preempt evicted workloads": "workloads that are being evicted already"}


def name_of(row: dict[str, Any]) -> str:
    return f"{row['line']}: {row['name']}"


@pytest.mark.parametrize("row", [row for row in SHARES if row["table"] == "shares"], ids=name_of)
def test_shares(row: dict[str, Any]) -> None:
    built = Built(row, fair=True)
    quotas = built.quotas
    # the table's CPU is in thousandths
    usage, more = (
        [
            (built.columns.index((flavor, each)), int(own) * (1 if each == "cpu" else 1000))
            for flavor, each, own in row[key]
        ]
        for key in ("usage", "more")
    )
    quotas.add(built.queue["cq"], usage)
    for want in row["want"]:
        node = (built.cohort if want["cohort"] else built.queue)[want["name"]]
        quotas_of_own = built.spec[node]["quotas"] if node < len(built.queue) else {}
        listed = [built.columns.index((flavor, each)) for flavor, own in quotas_of_own.items() for each in own]
        share = quotas.share(node, [each for each in more if want["cohort"] or each[0] in listed])
        if want["name"] == "lending-cq" and more:
            continue  # of its own usage, below
        assert (share.rounded, share.resource, share.borrowing) == (want["value"], want["resource"], want["borrowing"])


@pytest.mark.parametrize("row", [row for row in SHARES if row["table"] == "borrowing_on"], ids=name_of)
def test_borrowing_on_what_is_asked_for(row: dict[str, Any]) -> None:
    quota = {"cpu": {"nominal": "2"}, "example.com/gpu": {"nominal": "5"}}
    lent = {"cpu": {"nominal": "8"}, "example.com/gpu": {"nominal": "5"}}
    queues = [
        {"name": "cq", "parent": "cohort", "quotas": {"default": quota}},
        {"name": "lending-cq", "parent": "cohort", "quotas": {"default": lent}},
    ]
    built = Built({"queues": queues, "cohorts": []}, fair=True)

    def columns(key: str) -> list[tuple[int, int]]:
        return [(built.columns.index((f, r)), int(own) * (1 if r == "cpu" else 1000)) for f, r, own in row[key]]

    built.quotas.add(0, columns("usage"))
    assert built.quotas.share(0).borrowing == row["borrowing"]
    assert any(built.quotas.over(0, column) for column, _ in columns("requested")) == row["on"]


@pytest.mark.parametrize("row", [row for row in SHARES if row["table"] == "weighted"], ids=name_of)
def test_weights(row: dict[str, Any]) -> None:
    weight, ratio = Fraction(row["weight"]), Fraction(row["ratio"])
    queues = [{"name": "cq", "parent": "cohort", "weight": str(weight), "quotas": {"f": {"gpu": {"nominal": "0"}}}}]
    built = Built(
        {"queues": queues, "cohorts": [{"name": "cohort", "quotas": {"f": {"gpu": {"nominal": "1000"}}}}]}, fair=True
    )
    built.quotas.add(0, [(0, amount(ratio))])
    share = built.quotas.share(0)
    assert (share.infinite and "+Inf") or str(
        share.value if share.value.denominator == 1 else float(share.value)
    ) == row["want"]


@pytest.mark.parametrize(("fair", "row"), PREEMPTIONS, ids=[name_of(row) for _, row in PREEMPTIONS])
def test_preemption(fair: bool, row: dict[str, Any]) -> None:
    if row["name"] in LEFT_OUT:
        pytest.skip(LEFT_OUT[row["name"]])
    assert targets(row, fair=fair) == row["want"]


def targets(row: dict[str, Any], *, fair: bool) -> list[list[str]]:
    built = Built(row, fair=fair)
    built.admit(row["admitted"])
    own = row["incoming"]
    sets = own.get("pods") or [{"requests": own["requests"], "count": 1}]
    given = row.get("assignment", {"cpu": {"Name": row.get("flavor", "default"), "Mode": "Preempt"}})
    needs: Counter[int] = Counter()
    lacks = set()
    for pods, chosen in zip(sets, given if isinstance(given, list) else [given], strict=True):
        for resource, flavor in chosen.items():
            column = built.columns.index((flavor["Name"], resource))
            needs[column] += amount(pods["requests"].get(resource, "0")) * pods["count"]
            if flavor["Mode"] == "Preempt":
                lacks.add(column)
    work = QueuedWork(
        own["name"], built.queue[row["queue"]], own.get("priority", 0), own.get("created", -(10**15)), -1, {}
    )
    before = [list(each) for each in built.quotas.usage]
    found = targets_of(built.state, work, list(needs.items()), lacks)
    assert [list(each) for each in built.quotas.usage] == before, "the state is as before"
    return sorted([each.work.name, each.reason] for each in found)


def test_the_tables_are_whole() -> None:
    """Counted in docs/schedulers/kueue.md."""
    assert Counter(row["table"] for row in SHARES) == {"shares": 16, "borrowing_on": 5, "weighted": 4}
    assert Counter(fair for fair, _ in PREEMPTIONS) == {True: 35, False: 51}


def test_unlimited_quota_gives_the_smallest_share() -> None:
    """Quotas of 2^63 and more count as that, in the source and here."""
    assert DominantShare(False, Fraction(1000 * 1000, UNLIMITED)).rounded == 1
