"""Cohorts that have nothing to do with each other: what is free in one is not free in the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairopt.audit import whatif
from fairopt.audit.explaining import Explanation, explain

GPU = "nvidia.com/gpu"


def queue(name: str, cohort: str, quota: int, **limits: int) -> dict[str, Any]:
    own = {"name": GPU, "nominalQuota": str(quota)} | {key: str(value) for key, value in limits.items()}
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "h100", "resources": [own]}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"cohort": cohort, "resourceGroups": groups},
    }


def work(name: str, of: str, gpus: int, *, runs: bool = False) -> list[dict[str, Any]]:
    pod = {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}]}
    there = [{"name": "main", "count": 1, "flavors": {GPU: "h100"}, "resourceUsage": {GPU: str(gpus)}}]
    admitted = {
        "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}],
        "admission": {"clusterQueue": of, "podSetAssignments": there},
    }
    return [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": f"to-{name}", "namespace": "n"},
            "spec": {"clusterQueue": of},
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": name, "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"queueName": f"to-{name}", "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
            "status": admitted if runs else {},
        },
    ]


def told(folder: Path, user: str, *items: dict[str, Any]) -> Explanation:
    path = folder / "kueue.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
    return explain(path, user, policies="kueue")


def test_what_another_cohort_has_is_not_free(tmp_path: Path) -> None:
    """It was said that 102 are free and nothing stops it, and below that it can have 2 at most."""
    found = told(tmp_path, "a", queue("a", "one", 2), queue("b", "two", 100), *work("w", "a", 3))
    assert str(found.waits[0]).endswith("waits: the group one holds 0 h100 and may hold 2")
    assert found.loans[0].steps == ("raise the cap of one, the sum of its quotas, from 2 to 3",)
    assert found.found.alternatives[0].shares[0, 0] == 0  # type: ignore[index]
    more = {str(each.change): each.gains for each in found.sensitivities}
    assert more["a.h100.quota+=1"] == {"h100": 3}


def test_a_queue_without_quota_has_what_is_free_in_its_cohort(tmp_path: Path) -> None:
    own = [queue("z", "one", 0), queue("a", "one", 2), queue("b", "two", 100), *work("r", "a", 1, runs=True)]
    found = told(tmp_path, "z", *own, *work("w", "z", 1))
    assert "1 h100 of one is free" in str(found.waits[0])
    found = told(tmp_path, "z", *own, *work("w", "z", 2))
    assert "the group one holds 1 h100 and may hold 2" in str(found.waits[0])


def test_who_borrows_in_the_cohort_holds_what_is_owed_there(tmp_path: Path) -> None:
    own = [queue("a", "one", 2), queue("b", "one", 2), queue("c", "two", 100)]
    found = told(tmp_path, "a", *own, *work("r", "b", 2, runs=True), *work("s", "b", 2, runs=True), *work("w", "a", 2))
    reason = str(found.waits[0])
    assert "a is owed 2 more h100, none is free in one, and b holds 2 more than it is owed" in reason
    assert found.loans[0].steps == ("free or add 2 h100",)
    (mend,) = found.found.mends
    assert (mend.reclaim.gpus, mend.gangs) == (2, ("n/w",))
    assert not found.found.undecided


def test_what_another_cohort_does_not_lend_takes_nothing(tmp_path: Path) -> None:
    own = [queue("a", "one", 2), queue("b", "one", 4, lendingLimit=1), queue("c", "two", 100, lendingLimit=0)]
    found = told(tmp_path, "a", *own, *work("w", "a", 4))
    assert "6 h100 of one are free, and others keep theirs: b 3" in str(found.waits[0])
    found = told(tmp_path, "a", *own, *work("w", "a", 3))
    assert "6 h100 of one are free" in str(found.waits[0])
    assert found.found.alternatives[0].shares[0, 0] == 3  # type: ignore[index]


def test_free_gpus_of_a_cohort_serve_no_more_gangs_than_there_are(tmp_path: Path) -> None:
    """The second was counted as served by what the other cohort has free."""
    own = [queue("a", "one", 4), queue("b", "one", 0), queue("c", "two", 100), *work("r", "b", 2, runs=True)]
    found = told(tmp_path, "a", *own, *work("v", "a", 2), *work("w", "a", 2))
    first, second = map(str, found.waits)
    assert "2 h100 of one are free and it is owed them" in first
    assert "a is owed 4 more h100, 2 are free in one and others are before it, and b holds 2 more" in second
    (mend,) = found.found.mends
    assert [(each.user, each.gang) for each in mend.reclaim.stops] == [("b", "n/r")]


def test_a_quota_that_takes_more_gpus_than_there_are_says_so(tmp_path: Path) -> None:
    """It was offered as a remedy without a word, and a change to it said that 16 more are owed to a gang of 8."""
    own = [queue("nlp", "all", 8), queue("research", "all", 16), *work("n", "nlp", 8, runs=True)]
    own += [*work("r", "research", 12, runs=True), *work("w", "nlp", 8)]
    found = told(tmp_path, "nlp", *own)
    (more,) = [each for each in found.sensitivities if str(each.change) == "nlp.h100.quota+=8"]
    assert more.gains == {"h100": 8}
    said = "kueue counts quotas, and would give 28 h100 where there are 24: add 4 h100, since nobody else borrows any"
    assert more.needs == (said,)
    assert said in str(more)
    after = whatif(tmp_path / "kueue.json", ["nlp.h100.quota+=8"], policies="kueue").after
    assert "nlp is owed 8 more h100, 4 are free" in str(after.reasons["nlp"])
    lent = [queue("nlp", "all", 8), queue("research", "all", 16), *work("n", "nlp", 8, runs=True)]
    lent += [queue("guest", "all", 0), *work("g", "guest", 12, runs=True), *work("w", "nlp", 8)]
    found = told(tmp_path, "nlp", *lent)
    (more,) = [each for each in found.sensitivities if str(each.change) == "nlp.h100.quota+=8"]
    assert "add 4 h100, or reclaim 12 h100: stop n/g of guest" in more.needs[0]


def test_gpus_that_a_change_adds_are_not_asked_for_again(tmp_path: Path) -> None:
    """`A.capacity+=1` was said to need one more A: "kai would give 10 A where there are 9: add 1 A"."""
    owed = {"u": 1, "v": 3, "x": 0}
    users = [{"name": name, "speedup": "unknown", "guarantee": {"A": gpus}} for name, gpus in owed.items()]
    held = (("x", 1), ("v", 1), ("v", 2), ("v", 2))
    runs = [{"name": f"r{i}", "user": user, "gpus": n, "on": "A"} for i, (user, n) in enumerate(held)]
    market = {"schema": 1, "types": ["A"], "capacity": [9], "user": users}
    (tmp_path / "m.json").write_text(json.dumps(market | {"gang": [*runs, {"name": "w", "user": "u", "gpus": 4}]}))
    found = explain(tmp_path / "m.json", "u", policies="kai")
    added = [each for each in found.sensitivities if str(each.change).startswith("A.capacity")]
    assert [each.gains for each in added] == [{"A": 4}]
    assert [each.needs for each in added] == [()]
