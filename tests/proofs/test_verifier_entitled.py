"""``proofs/verify.py`` on entitlements and bounds: it says no more than it checks, and small files take no time."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import pytest
from certificate_kinds.entitlements import NOW, OWED, of
from certificate_kinds.examples import certificate, market

from fairopt.proofs.verifier import bounds, certificates, entitled, standing
from fairopt.proofs.verifier.market import Market
from fairopt.proofs.verify import Rejected, verify


def many(users: int, types: int, property_: str, *, gangs: list[Any], shares: Any = None) -> Any:
    """Return a certificate of users who hold one GPU of each type; so is each guaranteed."""
    held = [[1] * types] * users
    owed = {
        "groups": [],
        "in": [None] * users,
        "goods": [],
        "stock": [],
        "guarantee": held,
        "cap": [[None] * types] * users,
        "borrow_weight": [1] * users,
        "tier": [0] * users,
        "held": held,
        "fixed": [[0] * types] * users,
        "pending": gangs,
    }
    told = market({f"u{i}": [*range(1, types + 1)] for i in range(users)}, [users] * types) | {"entitlements": owed}
    return certificate("property", market=told, allocation=shares or held, property=property_, answer="HOLDS")


@pytest.mark.parametrize("name", ["guarantee_kept", "guarantee_incentive"])
def test_what_many_users_hold_of_many_types_is_not_looked_at_in_all_sets_of_types(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(asked: Any) -> set[frozenset[int]]:
        sizes.append(len(found := unions(asked)))
        return found

    unions = entitled._unions
    monkeypatch.setattr(entitled, "_unions", counted)
    assert f"{name} holds" in verify(many(40, 12, name, gangs=[]))
    assert max(sizes) == 2  # a type and nothing, each by itself; together there are 2**12 sets of types


@pytest.mark.parametrize("name", ["guarantee_kept", "guarantee_incentive"])
def test_long_numbers_are_not_added_up_over_all_sets_of_types(name: str) -> None:
    types = 12
    gang = {"user": "u0", "gpus": 1, "types": [f"T{j}" for j in range(types)]}
    told = many(1, types, name, gangs=[gang], shares=[[f"1/{7**300 + 2 * j}" for j in range(types)]])
    with pytest.raises(Rejected, match="bits in sums over sets of types are too many"):
        verify(told)


def test_a_statement_says_whether_goods_are_counted() -> None:
    """B holds 2 of 8 cpu, beyond a cap of 1; shares other than those held say nothing of cpu."""
    cap = [[None, None, None], [5, None, 1], *OWED["cap"][2:]]
    assert "GPUs only" not in verify(of("cap_kept", NOW, "FAILS", cap=cap))
    assert "of GPUs only" in verify(of("cap_kept", [[0, 0], [5, 0], [0, 0]], "HOLDS", cap=cap))


def test_a_gang_that_no_cpu_is_free_for_waits_by_the_statement_too() -> None:
    """T0 has a GPU free that C waits for; of 8 cpu, 3 are held."""
    gang = {"user": "C", "gpus": 1, "types": ["T1"], "other": {"cpu": 6}}
    said = verify(of("whole_gpu_conservation", NOW, "HOLDS", pending=[gang]))
    assert "free goods" in said


def test_what_a_lender_s_group_is_owed_is_part_of_the_statement() -> None:
    """A holds 5 and is owed 2, but its group is owed all that it holds: nothing is lent, and C is short."""
    guarantee = [[0, 0, 0], [2, 0, 0], [1, 0, 0], [6, 0, 0]]
    said = verify(of("nobody_starves_while_lent", NOW, "HOLDS", guarantee=guarantee))
    assert "each group around that but not around the user" in said


def test_guarantees_beyond_what_there_is_are_cut_by_the_statement_too() -> None:
    held = [[6, 0, 0], [0, 0, 0], [0, 0, 0]]
    owed = {"guarantee": [[9, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]], "held": held, "fixed": [[0, 0, 0]] * 3}
    assert "at most all that there is" in verify(of("guarantee_kept", [[6, 0], [0, 0], [0, 0]], "HOLDS", **owed))


def decision(told: Any, best: int) -> Any:
    """Return the decision of a program that gives A the one GPU of type ``best`` and no other."""
    bounds = [{"cost": int(j == best), "lower": 0, "upper": int(j == best), "integer": False} for j in range(2)]
    program = {"sense": "maximize", "offset": 0, "variables": bounds, "rows": []}
    numbers = {"point": [int(j == best) for j in range(2)], "value": 1, "bound": 1, "gap": 0, "duals": []}
    return certificate("bound", program=program, **numbers, market=told, policy="somebody-s", shares=[[0, 1]])


def test_nobody_gains_by_speedups_that_are_not_known() -> None:
    """A gains if its second type is faster, and loses if not; both are within the bounds."""
    known, lie = market({"A": [1, 2]}, [1, 1]), market({"A": [1, 9]}, [1, 1])
    unknown = market({"A": [1, 2]}, [1, 1], A={"least": [0, 0], "most": [None, None]})
    truth, lies = decision(known, 0), decision(lie, 1)
    about = {"policy": "somebody-s", "user": "A", "report": [1, 9], "gain": 1, "lie": lies}
    assert "rewards 'A'" in verify(certificate("misreport", market=known, truth=truth, **about))
    with pytest.raises(Rejected, match="speedups are not known"):
        verify(certificate("misreport", market=unknown, truth=decision(unknown, 0), **about))


@pytest.mark.parametrize("name", ["guarantee_kept", "guarantee_incentive"])
def test_many_users_that_wait_for_gangs_of_many_sets_of_types_are_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """380 users with 4,096 unions each, 287 kB, took ten seconds."""
    users, types = 3, 9
    gangs = [{"user": f"u{i}", "gpus": 1, "types": ["T0", f"T{j}"]} for i in range(users) for j in range(1, types)]
    told = many(users, types, name, gangs=gangs)
    assert f"{name} holds" in verify(told)
    monkeypatch.setattr(entitled, "MOST_UNIONS", 2**9)
    monkeypatch.setattr(entitled, "MOST_USERS_OF_UNIONS", 2)
    with pytest.raises(Rejected, match="sets of types of all users are too many"):
        verify(told)


def test_comparisons_of_all_users_with_all_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,500 users of one group, 157 kB, took 47 s; 4,000 known within bounds, 55 s."""
    peers = many(5, 1, "envy_within_peers", gangs=[])
    within = market({f"u{i}": [1] for i in range(5)}, [5])
    within["user"] = [user | {"least": [0], "most": [None]} for user in within["user"]]
    fair = certificate("property", market=within, allocation=[[1]] * 5, property="envy_freeness", answer="HOLDS")
    demanding = market({f"u{i}": [1] for i in range(5)}, [5], **{f"u{i}": {"demand": 1} for i in range(5)})
    binding = fair | {"market": demanding, "allocation": [[1], [1], [1], [1], ["3/2"]]}
    for told in (peers, fair, binding):
        assert "holds" in verify(told)
    monkeypatch.setattr(standing, "MOST_COMPARED", 25 * 24)
    monkeypatch.setattr(bounds, "MOST_COMPARED", 25 * 24)
    for told in (peers, fair):
        assert "holds" in verify(told)
    monkeypatch.setattr(standing, "MOST_COMPARED", 25 * 24 - 1)
    monkeypatch.setattr(bounds, "MOST_COMPARED", 25 * 24 - 1)
    monkeypatch.setattr(certificates, "MOST_COMPARED", 47)
    for told in (peers, fair, binding):
        with pytest.raises(Rejected, match="steps of comparisons are too many"):
            verify(told)


def test_envy_is_what_its_definition_says_of_all_pairs() -> None:
    """It is compared in whole numbers; demands, weights, zeros and fractions are drawn."""
    random, found = Random(1), set()
    for _ in range(200):
        users, types = random.randint(1, 4), random.randint(1, 3)

        def row(zeros: int, types: int = types) -> list[Fraction]:
            return [
                Fraction(random.choice([*[0] * zeros, 1, 2, 3, 5]), random.choice([1, 2, 3, 7])) for _ in range(types)
            ]

        drawn = Market(
            users=[f"u{i}" for i in range(users)],
            types=[f"T{j}" for j in range(types)],
            speedup=[row(1) for _ in range(users)],
            capacity=row(0),
            weight=[Fraction(random.randint(1, 3), random.randint(1, 2)) for _ in range(users)],
            demand=[random.choice([inf, Fraction(random.randint(1, 4), 2)]) for _ in range(users)],
        )
        shares = [row(2) for _ in range(users)]
        own = drawn.worths(shares)
        free = all(own[i] >= drawn.out_of_shares(shares, i, other) for i in range(users) for other in range(users))
        assert certificates.envy_freeness(drawn, shares) is free
        found.add(free)
    assert found == {True, False}
