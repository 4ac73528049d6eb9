"""The rules against the table-driven tests of Volcano's own plugins."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fairopt import decide
from fairopt.models.volcano.capacity import VolcanoCapacity
from fairopt.models.volcano.proportion import VolcanoProportion
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good

CASES = tomllib.loads((Path(__file__).parent / "sessions.toml").read_text())["case"]
#: The case whose outcome differs: the test switches the plugin's limits off, and the rule has no such option.
#: `test_numbers.test_queues_go_by_priority_where_nothing_limits_them` does the same.
NO_LIMITS = (
    "TestAllocate",
    "case0: Pods are assigned according to the order of Queue Priority in which PGs are placed",
)


def market_of(case: dict[str, Any]) -> Market:
    """Return the cluster of a case; its GPUs, or else its CPUs, are the type."""
    total = {name: Fraction(amount) for name, amount in case["total"].items()}
    types = [name for name in total if name.startswith("nvidia")] or ["cpu"]
    goods = {Good(name, "cluster"): amount for name, amount in total.items() if name not in types}
    called = {name: name for name in types} | {good.resource: str(good) for good in goods}

    def row(amounts: dict[str, Any]) -> dict[str, Fraction]:
        return {called[name]: Fraction(amount) for name, amount in amounts.items() if name in called}

    queues = {queue["name"]: queue for queue in case["queues"]}
    above = {name: queue["parent"] for name, queue in queues.items() if queue.get("parent") in queues}
    groups = tuple(dict.fromkeys(above.values()))
    users = tuple(name for name in queues if name not in groups)
    pods = [pod for pod in case["pods"] if pod["queue"] in users and "state" not in queues[pod["queue"]]]
    kept = {name: row(queue.get("guarantee", {})) for name, queue in queues.items()}
    deserved = {name: row(queue.get("deserved", {})) for name, queue in queues.items()}
    gangs = Gangs.of(
        [pod["queue"] for pod in pods],
        [int(pod["takes"].get(types[0], 0)) for pod in pods],
        users=users,
        types=types,
        names=[pod["name"] for pod in pods],
        on=[types[0] if pod["runs"] else None for pod in pods],
        tier=[pod.get("priority", 0) for pod in pods],
        preemptible=[pod.get("preemptable", True) for pod in pods],
        other={good.resource: [pod["takes"].get(good.resource, 0) for pod in pods] for good in goods},
    )
    owed = Entitlements.of(
        users,
        types,
        group=above,
        groups=groups,
        goods=goods,
        guarantee={
            n: {c: max(deserved[n].get(c, 0), kept[n].get(c, 0)) for c in {**deserved[n], **kept[n]}} for n in queues
        },
        cap={name: row(queue.get("capability", {})) for name, queue in queues.items()},
        reserve=kept,
        borrow_weight={name: queue.get("weight", 1) for name, queue in queues.items()},
        tier={name: queue.get("priority", 0) for name, queue in queues.items()},
        gangs=gangs,
    )
    ones = [[1] * len(types)] * len(users)
    return Market.of(ones, [total[name] for name in types], users=users, types=types, entitlements=owed)


def outcome(case: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the pods that start, and those that are stopped."""
    rules = {
        "capacity": VolcanoCapacity(reclaim=True, ancestor_reclaim_level=case.get("level", 0)),
        "proportion": VolcanoProportion(),
    }
    decision = decide(rules[case["plugin"]], market_of(case))
    grounds = decision.evidence
    assert isinstance(grounds, DecisionReason)
    return sorted(grounds.order), sorted(grounds.stopped)


def expected(case: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the pods that are bound or wait for what is reclaimed, and those that are evicted."""
    groups = {pod["group"]: pod["name"] for pod in case["pods"] if not pod["runs"]}
    return sorted({*case["started"], *(groups[name] for name in case["pipelined"])}), case["evicted"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['test']}-{case['case'].split(':')[0]}")
def test_the_outcome_of_volcanos_own_tests(case: dict[str, Any]) -> None:
    differs = (case["test"], case["case"]) == NO_LIMITS
    assert (outcome(case) == expected(case)) != differs


def test_how_many_cases_agree() -> None:
    """What docs/schedulers/volcano.md says."""
    assert (len(CASES), sum(outcome(case) == expected(case) for case in CASES)) == (45, 44)
    assert sum(bool(case["pods"]) for case in CASES) == 42  # the others ask for no crash, or about enqueueing
