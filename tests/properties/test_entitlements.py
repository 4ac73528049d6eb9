"""Properties of entitlements: in the words of operators, against brute force, on the decisions of schedulers' rules."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from one_type import now, one_type

from fairopt import compare, verify
from fairopt.certificates import Certificate
from fairopt.discovery import IMPORTERS, load, property_
from fairopt.evidence import evidence
from fairopt.policy import Allocation, Computed, Trait
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitled, Entitlements, Gangs, Good, Market
from fairopt.program import INFINITY
from fairopt.proofs.verify import verify as proved
from fairopt.properties import AllocationProperty, Answer, Feasibility
from fairopt.properties.entitlements.cap_kept import CapKept
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.envy_within_peers import EnvyWithinPeers
from fairopt.properties.entitlements.group_fairness import GroupFairness
from fairopt.properties.entitlements.guarantee_kept import GuaranteeKept
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed, asks, most_served
from fairopt.properties.entitlements.nobody_starves_while_lent import NobodyStarvesWhileLent
from fairopt.properties.entitlements.whole_gpu_conservation import WholeGpuConservation
from fairopt.properties.property import SlackCase
from fairopt.testing.samples import entitled_markets

NAMES = (
    "guarantee_kept",
    "cap_kept",
    "guarantee_incentive",
    "nobody_starves_while_lent",
    "whole_gpu_conservation",
    "group_fairness",
    "envy_within_peers",
)


# -- in the words of operators -----------------------------------------------------------------------------------------
def test_a_witness_is_an_action() -> None:
    assert {name: str(verdict.witness) for name, verdict in verify(TEAMS, NOW, NAMES).items() if not verdict.holds} == {
        "guarantee_kept": "reclaim 6 H100 from batch for team-a, which holds 2 H100 and is owed 8",
        "guarantee_incentive": "give team-a 6 H100 of its guarantee: it gets 4, and its guarantee is worth 16",
        "nobody_starves_while_lent": (
            "start a gang of 6 of team-a on H100 within its guarantee: reclaim 6 H100 from batch for team-a"
        ),
        "group_fairness": (
            "move 1 H100 from batch, which borrows 8 at weight 1, to ml, which borrows 0 at weight 1 and wants more"
        ),
    }
    idle = one_type(10, {"a": 2, "b": 4}, {"a": 6}, guarantee={"a": [8], "b": [2]})
    assert str(GuaranteeKept().check(idle, now(idle)).witness) == (
        "give a 4 idle H100 and reclaim 2 H100 from b for a, which holds 2 H100 and is owed 8"
    )


@cache
def asked_of_nobody() -> set[str]:
    """The properties of which something is said where there are no entitlements."""
    plain = TEAMS.plain()
    (row,) = compare(plain, "equal-split")
    return {*row.verdicts, *verify(plain, NOW)}


@pytest.mark.parametrize("name", NAMES)
def test_what_the_market_does_not_say_is_not_asked(name: str) -> None:
    plain = TEAMS.plain()
    assert name not in asked_of_nobody()
    verdict = verify(plain, NOW, name)[name]
    assert (verdict.answer, verdict.margin) == (Answer.UNDECIDED, None)
    assert verdict.reason.startswith("the market says no ")
    assert name in verify(TEAMS, NOW)


def test_who_asks_for_nothing_is_owed_nothing() -> None:
    market = one_type(10, {"a": 2, "b": 8}, {}, guarantee={"a": [8], "b": [2]})
    assert GuaranteeKept().check(market, now(market)).holds
    waits = one_type(10, {"a": 2, "b": 8}, {"a": 1}, guarantee={"a": [8], "b": [2]})
    verdict = GuaranteeKept().check(waits, now(waits))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -1)


def test_a_gang_for_two_types_is_owed_once() -> None:
    gangs = Gangs.of(["a"], [4], users=["a"], types=["A100", "H100"])
    owed = Entitlements.of(["a"], ["A100", "H100"], guarantee={"a": [4, 4]}, gangs=gangs)
    market = Market.of([[1, 2]], [4, 4], users=["a"], types=["A100", "H100"], entitlements=owed)
    assert [GuaranteeKept().check(market, [row]).margin for row in ([4, 0], [0, 4], [2, 2], [1, 0])] == [0, 0, 0, -3]


def test_what_a_group_holds_within_its_guarantee_is_not_lent_to_others() -> None:
    """b holds 4 beyond its own guarantee, but its group lent nothing: c is owed 2, and nobody has them."""
    more: dict[str, Any] = {"group": {"a": "g", "b": "g"}, "guarantee": {"a": [4], "b": [2], "c": [2]}}
    market = one_type(6, {"a": 0, "b": 6, "c": 0}, {"c": 2}, **more)
    assert NobodyStarvesWhileLent().check(market, now(market)).holds
    verdict = GuaranteeKept().check(market, now(market))
    assert str(verdict.witness) == "c holds 0 H100 and is owed 2; nobody has any that can be taken back"
    within = one_type(6, {"a": 0, "b": 6, "c": 0}, {"a": 2, "c": 2}, **more)
    assert "from b" in str(NobodyStarvesWhileLent().check(within, now(within)).witness)


def test_of_those_who_starve_alike_the_first_is_named() -> None:
    market = one_type(10, {"a": 0, "b": 0, "c": 8}, {"a": 2, "b": 2}, guarantee={"a": [2], "b": [2], "c": [2]})
    assert str(NobodyStarvesWhileLent().check(market, now(market)).witness).startswith("start a gang of 2 of a on H100")


def test_what_cannot_be_taken_back_starves_nobody() -> None:
    users = ["a", "b"]
    gangs = Gangs.of(["b", "a"], [8, 4], users=users, types=["H100"], on=["H100", None], preemptible=[False, True])
    owed = Entitlements.of(users, ["H100"], guarantee={"a": [4], "b": [4]}, gangs=gangs)
    market = Market.of([[1]] * 2, [8], users=users, types=["H100"], entitlements=owed)
    assert NobodyStarvesWhileLent().check(market, now(market)).holds
    assert not GuaranteeKept().check(market, now(market)).holds


@pytest.mark.parametrize(
    ("weights", "held", "holds"),
    [
        ({"a": 3, "b": 1}, (6, 2), True),
        ({"a": 3, "b": 1}, (5, 3), False),  # with one less b borrows 2 at weight 1, and a 5 at weight 3
        ({"a": 1, "b": 1}, (5, 4), True),  # up to one GPU
        ({"a": 1, "b": 1}, (6, 3), False),
        ({"a": 3, "b": 1}, (4, 4), False),
        ({"a": 3, "b": 1}, (8, 0), False),
        ({"a": 1, "b": 0}, (6, 2), False),  # a weight of 0 has no claim
        ({"a": 0, "b": 1}, (0, 8), True),
    ],
)
def test_siblings_borrow_by_their_weights(weights: dict[str, int], held: tuple[int, int], holds: bool) -> None:
    users = {"a": held[0], "b": held[1]}
    market = one_type(9, users, {"a": 9, "b": 9}, borrow_weight=weights)
    assert GroupFairness().check(market, now(market)).holds == holds
    apart = one_type(9, users, {"a": 9, "b": 9}, borrow_weight=weights, tier={"a": 1})
    assert GroupFairness().check(apart, now(apart)).holds


def test_a_peer_of_twice_the_weight_may_hold_twice_as_much() -> None:
    named: dict[str, Any] = {"users": ["u1", "u2"], "types": ["H100"]}
    market = Market.of([[1], [1]], [6], weight=[1, 2], **named, entitlements=Entitlements.of(**named))
    assert EnvyWithinPeers().check(market, [[2], [4]]).holds
    for shares, user, right in (([[1], [4]], "u1", 2), ([[2], [3]], "u2", 4)):
        verdict = EnvyWithinPeers().check(market, shares)
        assert (verdict.witness.user, verdict.witness.with_others_shares) == (user, right)
        assert verdict.witness.refutes(market, np.array(shares, dtype=object))


def test_a_level_below_the_top_is_fair_too() -> None:
    group = {"a": "g", "b": "g", "c": "h"}
    market = one_type(8, {"a": 4, "b": 0, "c": 4}, {"a": 1, "b": 1, "c": 1}, group=group)
    assert "from a, which borrows 4 at weight 1, to b" in str(GroupFairness().check(market, now(market)).witness)
    fair = one_type(8, {"a": 2, "b": 2, "c": 4}, {"a": 1, "b": 1, "c": 1}, group=group)
    assert GroupFairness().check(fair, now(fair)).holds


def test_a_gang_fits_whole_gpus_only_within_every_cap_and_the_goods_that_are_left() -> None:
    def check(**more: Any) -> bool | None:
        market = one_type(10, {"a": 2, "b": 2}, {"a": 5}, **more)
        return WholeGpuConservation().check(market, now(market)).holds

    assert check() is False
    assert check(cap={"a": [6]})
    assert check(group={"a": "g", "b": "g"}, cap={"g": [8]})
    gangs = Gangs.of(["a"], [5], users=["a"], types=["H100"], other={"cpu": [9]})
    owed = Entitlements.of(["a"], ["H100"], goods={Good("cpu", "all"): 8}, gangs=gangs)
    market = Market.of([[1]], ["9/2"], users=["a"], types=["H100"], entitlements=owed)
    assert WholeGpuConservation().check(market, [[0]]).holds
    enough = replace(market, capacity=market.capacity * 2)
    assert WholeGpuConservation().check(enough, [[0]]).holds  # 9 CPUs for 8
    plenty = replace(enough, entitlements=replace(owed, stock=owed.stock * 2))
    assert not WholeGpuConservation().check(plenty, [[0]]).holds


def test_goods_have_caps_and_guarantees_too() -> None:
    gangs = Gangs.of(["a", "a"], [1, 1], users=["a"], types=["H100"], on=["H100", None], other={"cpu": [6, 2]})
    owed = Entitlements.of(
        ["a"], ["H100"], goods={Good("cpu", "H100"): 8}, guarantee={"a": {"cpu:H100": 7}}, gangs=gangs
    )
    market = Market.of([[1]], [2], users=["a"], types=["H100"], entitlements=owed)
    verdict = GuaranteeKept().check(market, [[1]])
    assert (verdict.margin, verdict.unit) == (-1, "cpu:H100")
    capped = Entitlements.of(["a"], ["H100"], goods={Good("cpu", "H100"): 8}, cap={"a": {"cpu:H100": 5}}, gangs=gangs)
    over = CapKept().check(replace(market, entitlements=capped), [[1]])
    assert str(over.witness) == "take 1 cpu:H100 from a, which holds 6 and may hold 5"


def over_cap(node: str, kind: str, held: int, cap: int) -> SlackCase:
    return CapKept().case(cap - held, 1, node=node, type=kind, held=held, cap=cap)


def unfair_loan(high: str, low: str, kind: str, borrowed: tuple[int, int], weights: tuple[int, int]) -> SlackCase:
    both = {"borrowed": borrowed, "weights": weights}
    return GroupFairness().case(-1, 1, borrower=high, sibling=low, type=kind, **both)


def test_what_is_met_exactly_is_kept() -> None:
    assert not over_cap("batch", "H100", 8, 8).refutes(TEAMS, NOW)
    assert over_cap("batch", "H100", 9, 8).refutes(TEAMS, [[0, 1], [4, 0], [0, 9]] * np.array(Fraction(1)))
    even = one_type(9, {"a": 3, "b": 2}, {"b": 1})
    assert not unfair_loan("a", "b", "H100", (3, 2), (1, 1)).refutes(even, now(even))
    assert GroupFairness().check(even, now(even)).holds
    odd = one_type(9, {"a": 4, "b": 2}, {"b": 1})
    assert unfair_loan("a", "b", "H100", (4, 2), (1, 1)).refutes(odd, now(odd))
    assert not unfair_loan("b", "a", "H100", (2, 4), (1, 1)).refutes(odd, now(odd))
    for apart in ({"tier": {"a": 1}}, {"tier": {"b": 1}}, {"group": {"a": "g"}}, {"group": {"b": "g"}}):
        far = one_type(9, {"a": 4, "b": 2}, {"b": 1}, **apart)
        assert not unfair_loan("a", "b", "H100", (4, 2), (1, 1)).refutes(far, now(far)), apart


def test_one_gpu_that_can_be_taken_back_is_enough() -> None:
    """a holds three, of which two run what cannot be stopped; b wants one and has none."""
    users = ["a", "b"]
    gangs = Gangs.of(
        [*"aab"], [2, 1, 1], users=users, types=["H100"], on=["H100", "H100", None], preemptible=[False, True, True]
    )
    market = Market.of(
        [[1]] * 2, [3], users=users, types=["H100"], entitlements=Entitlements.of(users, ["H100"], gangs=gangs)
    )
    verdict = GroupFairness().check(market, now(market))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -2)
    assert verdict.witness.refutes(market, now(market))


# -- against brute force -----------------------------------------------------------------------------------------------
def test_what_is_served_is_the_least_cut() -> None:
    """No more is served than fits some types, and what needs others than these; one such bound is reached."""
    random = np.random.default_rng(0)
    for _ in range(400):
        k = int(random.integers(2, 5))
        sets = [tuple(np.flatnonzero(random.random(k) < 0.6).tolist()) or (0,) for _ in range(5)]
        asked = {types: int(random.integers(1, 6)) for types in sets}
        room = random.integers(-1, 6, k).tolist()
        cuts = [
            sum(max(room[j], 0) for j in full) + sum(most for types, most in asked.items() if not {*types} <= {*full})
            for count in range(k + 1)
            for full in combinations(range(k), count)
        ]
        assert most_served(asked, room) == min(cuts)


def test_who_could_run_elsewhere_makes_room() -> None:
    """The first takes the first type, and moves to the second: the other runs on the first only; then twice over."""
    assert most_served({(0, 1): 2, (0, 2): 2}, [2, 2, 0]) == 4
    assert most_served({(0, 1): 2, (1, 2): 2, (0, 3): 2}, [2, 2, 2, 0]) == 6
    assert most_served({(1, 2): 1, (0, 1): 2}, [0, 2, 1]) == most_served({(0, 1, 2): 3}, [0, 2, 1]) == 3
    assert most_served({(0, 2): 1, (0, 3): 2}, [1, 0, 2, 0]) == 2  # what is moved away once is not moved again
    # the first is moved twice: from the first type to the second, and on to the fourth
    assert most_served({(0, 1, 3): 1, (0, 2, 4): 1, (1, 2, 4): 1}, [1, 1, 0, 1, 0]) == 3
    # the first is moved from 0 to 1 for the second, and for the third on to 2: no more of it than there is
    assert most_served({(0, 1, 2): 1, (0, 3, 4): 1, (1, 3, 4): 5}, [1, 1, 5, 0, 0]) == 3


def test_what_can_be_had_at_once_is_the_sum_of_what_comes_from_each() -> None:
    for market in entitled_markets(60, seed=4):
        stands = HeldAndOwed.of(market, now(market))
        for node, column in np.ndindex(stands.held.shape):
            if node < len(market.users) and stands.free[column] >= 0:
                sources = stands.sources(node, column, INFINITY)
                assert stands.reach[node, column] == sum(most for _, most in sources)
                assert sum(most for _, most in stands.sources(node, column, Fraction(1, 2))) in (0, Fraction(1, 2))
        for i, asked in enumerate(asks(market)):
            assert most_served(asked, now(market)[i].tolist()) <= sum(now(market)[i])


@pytest.mark.parametrize("system", ["kai", "kueue", "volcano"])
def test_what_is_said_of_the_sample_of_a_cluster_is_proved(system: str) -> None:
    folder = files("fairopt.datasets").joinpath("clusters", system)
    for path in sorted(str(each) for each in folder.iterdir()):
        market = load(IMPORTERS, system)(path).problem
        verdicts = verify(market, now(market))
        assert "guarantee_kept" in verdicts or "whole_gpu_conservation" in verdicts
        for name, verdict in verdicts.items():
            if verdict.answer is Answer.UNDECIDED:
                assert name == "pareto_efficiency"
                continue
            asked = property_(name)
            assert isinstance(asked, AllocationProperty)
            assert proved(asked.certify(market, now(market), verdict).to_json())


# -- decisions of schedulers' rules ------------------------------------------------------------------------------------
class Reclaims(Computed):
    """Runs what the teams are owed, as a scheduler's rule would."""

    name = "reclaims"
    source = "made by hand"
    problem = Market
    traits = frozenset({Trait.EXACT, Trait.ENTITLED})
    supports = frozenset(Entitled)

    def compute(self, problem: Market, state: Any) -> tuple[Any, Any]:
        assert problem.entitlements is not None
        gangs = problem.entitlements.gangs.placed(np.array([1, 1, 0, -1, 1]))
        return np.array(OWED, dtype=object) * Fraction(1), DecisionReason(gangs, "nothing")


def test_a_rule_is_judged_by_the_gangs_that_it_leaves_running() -> None:
    (row,) = compare(TEAMS, Reclaims())
    assert {row.verdicts[name].answer for name in NAMES} >= {Answer.HOLDS}
    assert all(row.verdicts[name].holds for name in NAMES)
    assert isinstance(row.outcome, Allocation)
    items = {
        item.name: item.certificate for item in evidence(row, [property_(name) for name in (*NAMES, "feasibility")])
    }
    for name in (*NAMES, Feasibility.name):
        certificate = items[name]
        assert isinstance(certificate, Certificate)
        assert "entitlements of 4 users and groups, 1 gangs wait" in proved(certificate.to_json())
