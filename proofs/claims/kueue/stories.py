"""Kueue's worked examples and user stories: the rule plays them, from an empty cluster."""

from __future__ import annotations

from collections.abc import Mapping

from fairopt import allocate
from fairopt.models.kueue.kueue import Kueue
from fairopt.models.kueue.state import Preempts, Strategy
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

FAIR = Kueue(fair_sharing=True, reclaim_within_cohort=Preempts.ANY, within_cluster_queue=Preempts.LOWER_PRIORITY)


def cluster(
    quota: Mapping[str, int],
    wants: Mapping[str, int],
    group: Mapping[str, str],
    *,
    weight: Mapping[str, object] | None = None,
    cap: Mapping[str, int] | None = None,
    reserve: Mapping[str, int] | None = None,
    own: Mapping[str, int] | None = None,
    running: Mapping[str, int] | None = None,
    size: int = 1,
) -> Market:
    """Return a market of one type; users want and run gangs of ``size``; ``own`` is a Cohort's own quota."""
    users = list(quota)
    groups = list(dict.fromkeys(group.values()))
    guarantee = {name: [amount] for name, amount in quota.items()}
    for cohort in groups:
        inside, level = [cohort], [cohort]
        while level:
            level = [name for name, over in group.items() if over in level]
            inside += level
        guarantee[cohort] = [sum(quota.get(name, 0) + (own or {}).get(name, 0) for name in inside)]
    asked = [(user, True) for user, gpus in (running or {}).items() for _ in range(gpus // size)]
    turns = max(wants.values(), default=0) // size
    asked += [(user, False) for turn in range(turns) for user, gpus in wants.items() if turn < gpus // size]
    gangs = Gangs.of(
        [user for user, _ in asked],
        [size] * len(asked),
        users=users,
        types=["GPU"],
        on=["GPU" if runs else None for _, runs in asked],
    )
    owed = Entitlements.of(
        users,
        ["GPU"],
        group=group,
        guarantee=guarantee,
        cap={name: [limit] for name, limit in (cap or {}).items()},
        reserve={name: [kept] for name, kept in (reserve or {}).items()},
        borrow_weight=weight,
        gangs=gangs,
    )
    total = sum(quota.values()) + sum((own or {}).values())
    return Market.of([[1]] * len(users), [total], users=users, types=["GPU"], entitlements=owed)


def play(policy: Kueue, market: Market) -> tuple[dict[str, int], DecisionReason]:
    """Return the GPUs that each user holds afterwards, and the grounds."""
    decision = allocate(policy, market)
    grounds = decision.evidence
    assert isinstance(grounds, DecisionReason)
    return dict(zip(market.users, (int(row[0]) for row in decision.shares), strict=True)), grounds


def _said(held: Mapping[str, int], *users: str) -> str:
    return ", ".join(f"{user} {held[user]}" for user in users or held)


def story_1() -> Finding:
    """TeamE runs on everything; TeamW comes to work."""
    group = dict.fromkeys(("TeamE", "TeamW"), "company")
    market = cluster({"TeamE": 4, "TeamW": 2}, {"TeamW": 12}, group, own={"company": 8}, running={"TeamE": 14})
    held, grounds = play(FAIR, market)
    require(held == {"TeamE": 8, "TeamW": 6}, "equal extra space")
    alone, _ = play(Kueue(fair_sharing=True), market)
    return Finding(
        Ruling.REPRODUCED,
        f"Quotas of 4 and 2, a pool of 8, jobs of one GPU; TeamE runs on all 14. When TeamW asks for 12, "
        f"{len(grounds.stopped)} jobs of TeamE are preempted: {_said(held)}, which is 4 each beyond their quotas. That "
        f"needs reclaimWithinCohort: Any; with Kueue's default, Never, it stays {_said(alone)}.",
    )


def story_2() -> Finding:
    """Free quota goes to the own department first, then to others alike."""
    teams = [f"{department}{team}" for department in "12" for team in "ABC"]
    group = {team: f"D{team[0]}" for team in teams} | {"D1": "top", "D2": "top"}
    quota = dict.fromkeys(teams, 3)
    greedy = {team: 9 for team in teams if team != "1A"}
    first, _ = play(FAIR, cluster(quota, greedy, group))
    require([first[team] for team in ("1A", "1B", "1C")] in ([0, 5, 4], [0, 4, 5]), "1A's quota stays in D1")
    require([first[team] for team in ("2A", "2B", "2C")] == [3, 3, 3], "D2 gets none of it")
    modest = {team: (3 if team[0] == "1" else 9) for team in teams if team != "1A"}
    second, _ = play(FAIR, cluster(quota, modest, group))
    require([second[team] for team in ("2A", "2B", "2C")] == [4, 4, 4], "what D1 does not need is split in D2")
    return Finding(
        Ruling.REPRODUCED,
        "Quotas of 3 for each of six teams, and 1A asks for nothing. Where all others ask for 9: "
        f"{_said(first)}; the 3 "
        f"of 1A stay in D1. Where 1B and 1C ask for their 3 only: {_said(second)}; the 3 of 1A go to D2 "
        "in equal parts. "
        "Jobs of one GPU, reclaimWithinCohort: Any.",
    )


def story_3() -> Finding:
    """300 GPUs: 150 and 150, then 30, 30 and 90."""
    quota = {"S": 300, "1A": 0, "1B": 0, "1C": 0, "2A": 0}
    group = {"S": "CS", "1A": "C1", "1B": "C1", "1C": "C1", "2A": "C2"} | dict.fromkeys(("CS", "C1", "C2"), "top")
    market = cluster(quota, dict.fromkeys(("1A", "1B", "1C", "2A"), 300), group, weight={"1C": 3}, size=5)
    held, grounds = play(FAIR, market)
    require(held == {"S": 0, "1A": 30, "1B": 30, "1C": 90, "2A": 150}, "the story's numbers")
    shares = {name: str(grounds.share[name]) for name in ("1A", "1B", "1C", "C1", "C2")}
    require(set(shares.values()) == {"100", "500"}, "equal shares among siblings")
    alone, _ = play(Kueue(fair_sharing=True), market)
    require(alone == {"S": 0, "1A": 75, "1B": 75, "1C": 75, "2A": 75}, "one job of each queue in each cycle")
    each = [play(Kueue(fair_sharing=True, reclaim_within_cohort=Preempts.ANY, strategies=(rule,)), market)[0]
            for rule in Strategy]  # fmt: skip
    require(each == [held, held], "by either rule alone")
    return Finding(
        Ruling.REPRODUCED,
        f"With reclaimWithinCohort: Any and a backlog of jobs of 5 GPUs the rule ends at {_said(held)}, with shares of "
        "500 for C1 and C2 and of 100 for 1A, 1B and 1C; so it does with either rule for preemption alone. It is "
        f"preemption that makes these numbers: with Kueue's default, Never, and all queues asking at once it ends at "
        f"{_said(alone)}, since each cycle admits one workload of every ClusterQueue while there is room, in the order "
        "of shares, but whatever they are.",
    )


def quotas_of_two_teams() -> Finding:
    """docs/concepts/cluster_queue: 12+9 = 21; borrowing limit 1; lending limit 1."""
    quota, group = {"team-a-cq": 9, "team-b-cq": 12}, dict.fromkeys(("team-a-cq", "team-b-cq"), "team-ab")
    found = {}
    for what, limits, who in (
        ("with no limit", {}, "team-a-cq"),
        ("with borrowingLimit 1", {"cap": {"team-a-cq": 10}}, "team-a-cq"),
        ("where team-b-cq has lendingLimit 1", {"reserve": {"team-b-cq": 11}}, "team-a-cq"),
        ("the other way round, with that limit", {"reserve": {"team-b-cq": 11}}, "team-b-cq"),
    ):
        market = cluster(quota, {who: 30}, group, **limits)  # type: ignore[arg-type]
        found[what] = {play(policy, market)[0][who] for policy in (Kueue(), FAIR)}
    require(list(found.values()) == [{21}, {10}, {10}, {21}], "the documents' numbers")
    said = ", ".join(f"{min(held)} {what}" for what, held in found.items())
    return Finding(
        Ruling.REPRODUCED,
        f"Quotas of 9 and 12, jobs of one CPU: a team alone gets {said}. Classic and fair sharing agree.",
    )


def weights_of_two_organisations() -> Finding:
    """docs/concepts/cohort: weights 0.75 and 0.25 of a root's common resources."""
    group = {"a": "important-org", "b": "regular-org"} | dict.fromkeys(("important-org", "regular-org"), "root-cohort")
    weight = {"important-org": "0.75", "regular-org": "0.25"}
    ends = {}
    for gpus in (12, 100, 99):
        market = cluster({"a": 0, "b": 0}, {"a": gpus, "b": gpus}, group, own={"root-cohort": gpus}, weight=weight)
        ends[gpus] = play(FAIR, market)[0]
    require((ends[12], ends[100]) == ({"a": 9, "b": 3}, {"a": 75, "b": 25}), "75% and 25%")
    market = cluster({"a": 0, "b": 0}, {"a": 100}, group, own={"root-cohort": 100}, weight=weight, running={"b": 100})
    late, _ = play(FAIR, market)
    require(late == {"a": 75, "b": 25}, "also when the other was first")
    return Finding(
        Ruling.REPRODUCED,
        f"Of 100 common GPUs, with jobs of one, the important one ends at {ends[100]['a']} and the regular one at "
        f"{ends[100]['b']}, also where the regular one held all of them; of 12 at {ends[12]['a']} and {ends[12]['b']}; "
        f"of 99 at {ends[99]['a']} and {ends[99]['b']}.",
    )


def smallest_first() -> Finding:
    """KEP-1714's order of candidates has the size of a workload as its last key; the code has when it was admitted."""
    users, group = ["x", "y"], dict.fromkeys(("x", "y"), "all")
    held = {}
    for turned in (False, True):
        sizes = [3, 2] if turned else [2, 3]
        gangs = Gangs.of(
            ["y", "y", "x"],
            [*sizes, 2],
            users=users,
            types=["GPU"],
            names=[f"y{sizes[0]}", f"y{sizes[1]}", "x2"],
            on=["GPU", "GPU", None],
        )
        owed = Entitlements.of(users, ["GPU"], group=group, guarantee={"x": [3], "y": [2]}, gangs=gangs)
        market = Market.of([[1], [1]], [5], users=users, types=["GPU"], entitlements=owed)
        held[turned] = list(play(FAIR, market)[1].stopped)
    require(held == {False: ["y3"], True: ["y2"]}, "the last admitted goes, whatever its size")
    return Finding(
        Ruling.INCONSISTENT,
        "y has a quota of 2 and runs workloads of 2 and 3 GPUs of one priority, x comes for 2 of its 3. Where the "
        f"larger was asked for last, the code preempts {held[False][0]}, where the smaller was, {held[True][0]}: its "
        "order (common/ordering.go, CandidatesOrdering) has priority and then time of admission, and no size. By the "
        "document's C3 it would be the workload of 2 GPUs in both. Either one is enough.",
    )
