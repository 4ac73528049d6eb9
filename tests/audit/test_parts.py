"""A rule that decides only a part of a market says of it what it says where it decides all of it."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.audit import WhatIf, audit, explain, whatif
from fairopt.audit.accounts import OF_GANGS, EntitlementAccounts
from fairopt.audit.alternatives import Alternative, alternative, changed
from fairopt.audit.parts import changed_part, part_of
from fairopt.audit.pools import BOUNDLESS
from fairopt.audit.settings import read_setting, with_settings
from fairopt.importing.imported import Imported
from fairopt.models import Kueue, MaxMin
from fairopt.models.kai.kai import Kai
from fairopt.models.kueue.state import Preempts, Queueing
from fairopt.policy import Policy
from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.problem.entitled_rows import TOP

TYPES = ["a100", "h100", "l40s"]
PREEMPTS = {"reclaim_within_cohort": Preempts.ANY, "within_cluster_queue": Preempts.LOWER_OR_NEWER}
RULES: list[Policy] = [Kai(), Kueue(**PREEMPTS), Kueue(fair_sharing=True, **PREEMPTS)]  # type: ignore[arg-type]


def pools(seed: int) -> Market:
    """Return queues in groups; most groups are in one node pool, and gangs are of one type or two."""
    draw = Random(seed)
    users = [f"q{i}" for i in range(draw.randint(4, 12))]
    groups = {user: f"g{draw.randrange(5)}" for user in users}
    groups |= {f"g{i}": "top" for i in range(5) if f"g{i}" in groups.values() and draw.random() < 0.2}
    kind = {user: TYPES[int(groups[user][1:]) % 3] if draw.random() < 0.95 else draw.choice(TYPES) for user in users}
    owner = [draw.choice(users) for _ in range(draw.randint(3, 40))]
    allowed = [[kind[user]] if draw.random() < 0.95 else draw.sample(TYPES, 2) for user in owner]
    gangs = Gangs.of(
        owner,
        [draw.choice([1, 1, 2, 4]) for _ in owner],
        users=users,
        types=TYPES,
        allowed=allowed,
        on=[each[0] if draw.random() < 0.5 else None for each in allowed],
        tier=[draw.randrange(3) for _ in owner],
        preemptible=[draw.random() < 0.8 for _ in owner],
        other={"cpu": [draw.choice([2, 4, 8]) for _ in owner]},
    )
    goods = {Good("cpu", each): 400 for each in TYPES}
    guarantee = {user: {kind[user]: draw.randint(0, 5)} for user in users}
    weight = {user: draw.choice([1, 1, 2]) for user in users}
    owed = Entitlements.of(
        users, TYPES, group=groups, guarantee=guarantee, goods=goods, borrow_weight=weight, gangs=gangs
    )
    capacity = [int(each) + draw.randint(0, 6) for each in owed.held[:, :3].sum(axis=0)]
    return Market.of([[1] * 3] * len(users), capacity, users=users, types=TYPES, entitlements=owed)


def told(found: Alternative) -> dict[str, Any]:
    assert found.shares is not None
    assert found.grounds is not None
    assert found.grounds.owed is not None
    return {
        "shares": found.shares.tolist(),
        "gains": found.gains,
        "on": found.grounds.gangs.on.tolist(),
        "owed": found.grounds.owed.tolist(),
        "share": dict(found.grounds.share),
        "stated": found.grounds.stated,
        "waits": dict(found.grounds.waits),
        "stopped": dict(found.grounds.stopped),
        "order": sorted(found.grounds.order),
    }


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("drawn", counts(45, 150))
def test_what_changed_is_decided_alone_as_it_is_with_all_others(drawn: int, rule: Policy) -> None:
    parted = 0
    for seed in range(drawn):
        market, draw = pools(seed), Random(seed)
        user = draw.choice(market.users)
        setting = draw.choice([f"{user}.weight=3", f"{user}.{draw.choice(TYPES)}.quota=9", "top.weight=2"])
        if setting.startswith("top") and "top" not in market.entitlements.groups:  # type: ignore[union-attr]
            continue
        after = with_settings(market, [read_setting(setting, market)])
        known = alternative(market, rule)
        assert told(changed(after, rule, (market, {rule.name: known}))) == told(alternative(after, rule)), (
            seed,
            setting,
        )
        parted += changed_part(rule, market, after) is not None
    assert parted > drawn / 3


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("drawn", counts(25, 100))
def test_what_one_user_has_is_decided_with_those_on_whom_it_depends(drawn: int, rule: Policy) -> None:
    parted = 0
    for seed in range(drawn):
        market = pools(seed)
        whole = alternative(market, rule)
        assert whole.shares is not None
        assert whole.grounds is not None
        for user, name in enumerate(market.users):
            part = part_of(rule, market, [user])
            found = alternative(part, rule)
            assert found.shares is not None
            assert found.grounds is not None
            assert found.shares[part.users.index(name)].tolist() == whole.shares[user].tolist()
            assert found.grounds.waits.items() <= whole.grounds.waits.items()
            parted += len(part.users) < len(market.users)
    assert parted > drawn


@pytest.mark.parametrize("rule", ["kai", "kueue"])
@pytest.mark.parametrize("drawn", counts(6, 20))
def test_explanations_and_changes_are_those_of_whole_decisions(drawn: int, rule: str) -> None:
    for seed in range(drawn):
        market = pools(seed)
        name = market.users[0]
        whole = explain(market, name, importer=rule, policies=[rule], sensitivities=True)
        part = explain(market, name, importer=rule, policies=[rule], sensitivities=False)
        assert part.to_json() | {"sensitivities": []} == whole.to_json() | {"sensitivities": []}
        setting = f"{name}.weight=5"
        after = with_settings(market, [read_setting(setting, market)])
        found = whatif(market, [setting], importer=rule, policies=[rule]).after
        assert found.to_json() == audit(after, importer=rule, policies=[rule]).to_json()


@pytest.mark.parametrize("named", [["kai"], ["kueue"], ["kueue", "drf", "kai"]])
@pytest.mark.parametrize("drawn", counts(10, 150))
def test_changes_of_a_part_are_those_between_two_whole_audits(drawn: int, named: list[str]) -> None:
    """What changes is found where both sides are decided in the part on which the change bears alone."""
    parted, changes, source = 0, 0, named[0]
    for seed in range(drawn):
        market, draw = pools(seed), Random(seed)
        user, kind = draw.choice(market.users), draw.choice(TYPES)
        setting = draw.choice([f"{user}.{kind}.quota={draw.choice([0, 9])}", f"{user}.weight=9", f"{kind}.capacity+=5"])
        found = whatif(market, [setting], importer=source, policies=named)
        after = found.after.market
        sides = (audit(Imported(each), importer=source, policies=named) for each in (market, after))
        whole = WhatIf(*sides)
        for each in ("given", "reasons", "stops", "undecided", "mended", "broken", "status_changes"):
            assert getattr(found, each) == getattr(whole, each), (seed, setting, each)
        decided = [each.market for pair in found.decisions for each in pair if each.market is not None]
        parted += any(len(each.users) < len(market.users) for each in decided)
        changes += bool(found.reasons)
    assert min(parted, changes) > drawn / 5


def test_what_a_rule_says_of_somebody_elsewhere_is_asked_of_its_part() -> None:
    """A quota of one cohort leaves no free GPUs for a gang of another, which its own strict queue held back before."""
    gangs = Gangs.of(
        ["a", "b", "b", "b"],
        [4, 8, 4, 6],
        users=["a", "b"],
        types=["T"],
        names=["first", "long", "short", "runs"],
        on=[None, None, None, "T"],
        tier=[1, 0, 0, 0],
    )
    quotas = {"b": [10], "gb": [10]}
    owed = Entitlements.of(["a", "b"], ["T"], group={"a": "ga", "b": "gb"}, guarantee=quotas, gangs=gangs)
    market = Market.of([[1], [1]], [10], users=["a", "b"], types=["T"], entitlements=owed)
    found = whatif(market, ["a.T.quota=4"], importer="kueue", policies=[Kueue(queueing=Queueing.STRICT)])
    assert [each.market.users for pair in found.decisions for each in pair if each.market] == [("a",), ("a",)]
    before, after = found.reasons["b"]
    assert "was tried before others left" in before
    assert "others are before it" in after


@pytest.mark.parametrize("drawn", counts(12, 60))
def test_a_changed_audit_is_what_an_audit_of_the_changed_market_is(drawn: int) -> None:
    """The second audit takes over what it may of the first, with all that was asked of that before."""
    for seed in range(drawn):
        market = pools(seed)
        name, kind = market.users[seed % len(market.users)], TYPES[seed % 3]
        own = f"{name}.{kind}"
        changes = (f"{own}.quota=9", f"{own}.cap=99", f"{name}.weight=5", f"{name}.tier=2", f"{kind}.capacity+=3")
        change = changes[seed % len(changes)]
        found = whatif(market, [change], policies=[])
        alone = audit(with_settings(market, [read_setting(change, market)]), policies=[])
        assert found.after.to_json() == alone.to_json()
        for each in OF_GANGS:
            one, other = getattr(found.after.accounts, each), getattr(alone.accounts, each)
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, each


def test_a_market_that_is_refused_has_no_parts() -> None:
    """One queue's cap is below its guarantee, which no ClusterQueue says: the change is in another cohort."""
    market = Market.of(
        [[1], [1]],
        [20],
        users=["a", "b"],
        types=["T"],
        entitlements=Entitlements.of(
            ["a", "b"], ["T"], group={"a": "ga", "b": "gb"}, guarantee={"a": [4], "b": [4]}, cap={"b": [1]}
        ),
    )
    found = whatif(market, ["a.T.quota=8"], importer="kueue", policies=["kueue"])
    assert found.given == ()
    assert all("Kueue has no such quota" in each.error for pair in found.decisions for each in pair)


def test_two_files_of_different_users() -> None:
    """The rule of the first file's scheduler decides that alone, and somebody waits in the second who is not in it."""
    market, other = (
        pools(3),
        Market.of(
            [[1]],
            [4],
            users=["new"],
            types=["T"],
            entitlements=Entitlements.of(["new"], ["T"], gangs=Gangs.of(["new"], [4], users=["new"], types=["T"])),
        ),
    )
    found = whatif(Imported(market), after=other, importer="kai", policies=["kai"])
    assert found.reasons["new"][0] == ""
    assert "4 T are free" in found.reasons["new"][1]


def test_a_policy_that_knows_no_parts_decides_all() -> None:
    market = pools(1)
    assert part_of(MaxMin(), market, [0]) is market
    after = with_settings(market, [read_setting(f"{market.users[0]}.weight=2", market)])
    assert changed_part(MaxMin(), market, after) is None
    assert changed_part(Kai(), market, pools(2)) is None  # other gangs: it may be anybody


def seen_by_walking(owed: Entitlements, borrowed: list[Any], path: list[int]) -> list[tuple[int, Any]]:
    """Return what `Pools.seen_beside` does, node by node."""
    members = [*(owed.children[each] for each in path), owed.tops]
    levels = [(node, BOUNDLESS) for nodes in members for node in nodes if node not in path]
    found = []
    while levels:
        node, most = levels.pop()
        gpus = min(most, borrowed[node])
        if gpus > 0:
            levels += [(child, gpus) for child in owed.children[node]]
            found += [(node, gpus)] * (node < len(owed.users))
    return sorted(found, key=lambda each: (-each[1], each[0]))


@pytest.mark.parametrize("drawn", counts(10, 30))
def test_who_borrows_as_seen_from_a_group(drawn: int) -> None:
    for seed in range(drawn):
        accounts, draw = EntitlementAccounts(pools(seed)), Random(seed)
        borrowed = np.array([draw.randint(-2, 5) for _ in accounts.said.nodes])
        for group in (TOP, *range(len(accounts.said.users), len(accounts.said.nodes))):
            path = [] if group == TOP else list(accounts.said.path(group))
            seen = list(accounts.pools.seen_beside(borrowed, group).items())
            assert seen == seen_by_walking(accounts.said, borrowed.tolist(), path)
