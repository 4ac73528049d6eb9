"""Who stands how, and why: what the issue says in its own words, on small clusters."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import GANGS, cluster

from fairopt.audit import Cause, EntitlementStatus, audit
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.reasons import reason_of
from fairopt.errors import BadInput
from fairopt.problem import Good, Market


def why(market: Market, gang: str) -> tuple[list[Cause], str]:
    accounts = EntitlementAccounts(market)
    reason = reason_of(accounts, accounts.gangs.names.index(gang))
    return [stop.cause for stop in reason.stops], str(reason)


def test_who_is_starved_borrows_is_within_and_idle() -> None:
    found = audit(cluster(), policies=[])
    footings = {row.name: row.status for row in found.rows}
    assert footings == {
        "train": EntitlementStatus.STARVED,  # holds 4 of 8 H100, and a gang of 4 waits
        "search": EntitlementStatus.WITHIN,  # asks for 16 A100, and is owed 8
        "batch": EntitlementStatus.BORROWING,  # holds 10 of 4
        "physics": EntitlementStatus.BORROWING,
        "ml": EntitlementStatus.STARVED,  # the 16 that search asks for fit into what ml is owed
        "science": EntitlementStatus.BORROWING,
    }
    own = found.row("batch").on("H100")
    assert own is not None
    assert (own.holds, own.owed, own.borrows) == (10, 4, 6)
    idle = audit(cluster([each for each in GANGS if each[1] != "search"]), policies=[])
    assert idle.row("search").status is EntitlementStatus.IDLE


def test_a_gang_that_is_larger_than_what_is_left_of_the_guarantee_is_not_starved() -> None:
    gangs = [*GANGS[:1], ("train-2", "train", 6, None, ["H100"]), *GANGS[2:]]
    found = audit(cluster(gangs), policies=[])
    assert found.row("train").status is EntitlementStatus.WITHIN
    assert not [each for each in found.guarantees if each.type == "H100"]


def test_who_holds_what_it_is_owed() -> None:
    causes, words = why(cluster(tier_of={"batch-1": 5, "batch-2": 5, "batch-3": 5}), "train-2")
    assert causes == [Cause.HELD]
    assert words == (
        "train-2 (4 GPUs) waits: train is owed 4 more H100, 2 are free, and batch holds 2 more than its group is owed "
        "(2 of them at a higher priority). It may not run on A100, of which 8 are free"
    )
    assert "(8 not preemptible)" in why(cluster(), "search-1")[1]


def test_which_limit_stops_it() -> None:
    assert why(cluster(cap={"train": {"H100": 6}}), "train-2")[1].startswith(
        "train-2 (4 GPUs) waits: train holds 4 H100 and may hold 6"
    )
    causes, words = why(cluster(cap={"ml": {"H100": 4}}), "train-2")
    assert causes == [Cause.CAP]
    assert "the group ml holds 4 H100 and may hold 4" in words


def test_a_gang_needs_its_gpus_together() -> None:
    causes, words = why(cluster(guarantee={}), "search-1")  # its part by weight is 8 of 32
    assert causes == [Cause.HELD]  # the group is owed 16
    gangs = [*GANGS, ("batch-4", "batch", 12, None, ["A100"])]
    causes, words = why(cluster(gangs), "batch-4")
    assert causes == [Cause.GANG]
    assert "it needs 12 A100 together, and 8 are free" in words
    assert why(cluster([*GANGS, ("huge", "batch", 40, None, ["A100"])]), "huge")[0] == [Cause.TOO_LARGE]


def test_what_others_keep_is_not_borrowed() -> None:
    gangs = [*GANGS[:-2], ("physics-1", "physics", 16, "A100", None), ("batch-4", "batch", 12, None, ["A100"])]
    causes, words = why(cluster(gangs, reserve={"train": {"A100": 8}}), "batch-4")
    assert causes == [Cause.RESERVED]
    assert "16 A100 are free, and others keep theirs: ml 8" in words
    assert why(cluster(gangs, reserve={"train": {"A100": 4}}), "batch-4")[0] == [Cause.OPEN]


def test_a_good_that_is_short_stops_it() -> None:
    from dataclasses import replace

    from fairopt.problem import Entitlements, Gangs

    gangs = Gangs.of(["A"], [2], users=["A"], types=["T"], names=["a"], other={"cpu": [64]})
    owed = Entitlements.of(["A"], ["T"], goods={Good("cpu", "T"): 32}, guarantee={"A": {"T": 4}}, gangs=gangs)
    market = Market.of([[1]], [4], users=["A"], types=["T"], entitlements=owed)
    assert why(market, "a") == ([Cause.GOOD], "a (2 GPUs) waits: it takes 64 cpu:T, and 32 are free")
    with_quota = replace(owed, guarantee=np.add(owed.guarantee, [[0, 48]]))
    assert audit(replace(market, entitlements=with_quota), policies=[]).row("A").status is EntitlementStatus.WITHIN


def test_guarantees_that_exceed_the_gpus_are_broken_by_nobody() -> None:
    gangs = [("train-1", "train", 4, "H100", None), GANGS[1], ("batch-1", "batch", 12, "H100", None)]
    found = audit(cluster(gangs, guarantee={"train": [8, 0], "batch": [12, 0]}), policies=[])
    assert found.row("train").status is EntitlementStatus.STARVED
    assert found.reasons["train"].stops[0].cause is Cause.PROMISED
    assert not found.violated


def test_free_gpus_serve_those_who_asked_first_and_the_next_is_short() -> None:
    gangs = [
        ("b", "batch", 8, "H100", None),
        ("t1", "train", 4, None, ["H100"]),
        ("t2", "train", 4, None, ["H100"]),
        ("p", "physics", 4, None, ["H100"]),
    ]
    found = audit(cluster(gangs), policies=[])
    assert [(each.name, each.short) for each in found.guarantees] == [("physics", 4)]
    assert "8 are free and others are before it" in str(found.reasons["physics"])
    assert (
        str(found.mends[0]) == "reclaim 8 H100: stop b of batch. Gangs are whole, so this takes 4 of what batch is "
        "owed; no choice takes less. Then t1, t2, p run"
    )


def test_a_broken_cap_is_mended_inside() -> None:
    found = audit(cluster(cap={"science": {"H100": 9}}), policies=[])
    [cap] = found.caps
    assert str(cap) == "science holds 10 H100 and may hold 9"
    assert str(cap.mend) == "reclaim 2 H100: stop batch-3 of batch"
    assert found.violated


def test_nobody_is_promised_a_part_by_weight() -> None:
    found = audit(cluster(guarantee={}), policies=[])
    assert found.accounts.by_weight
    assert found.row("train").status is EntitlementStatus.WITHIN  # a quarter of 16 is 4
    assert found.row("ml").status is EntitlementStatus.STARVED
    assert not found.violated


def test_a_market_without_entitlements_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing of entitlements"):
        audit(cluster().plain(), policies=[])


def test_what_a_group_holds_too_much_counts_outside_it_only() -> None:
    """Batch holds 6 H100 beyond its due; of these 4 are those of physics, in its own group."""
    market = cluster()
    accounts = EntitlementAccounts(market)
    seen = {name: accounts.borrowers(accounts.said.node(name), 0) for name in ("train", "physics", "science")}
    assert {name: list(rows.values()) for name, rows in seen.items()} == {
        "train": [2],
        "physics": [6],
        "science": [],
    }
