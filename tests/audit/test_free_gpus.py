"""A guarantee is broken where no free GPUs serve a gang, and a mend lets run what the caps allow together."""

from __future__ import annotations

from typing import Any

import pytest

from fairopt.audit import explain
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.mending import smallest
from fairopt.audit.reasons import reason_of
from fairopt.audit.violations import broken_guarantees, mends
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good


def cluster(there: list[int], gangs: dict[str, tuple[str, int, str | None]], **owed: Any) -> EntitlementAccounts:
    """Return the accounts of a gang for each name: its user, its GPUs, and the type on which it runs, None for none."""
    users, gpus, on = zip(*gangs.values(), strict=True)
    names, types = [*dict.fromkeys(users)], ["H100", "A100"][: len(there)]
    made = Gangs.of(users, gpus, users=names, types=types, on=on, names=list(gangs))
    said = Entitlements.of(names, types, gangs=made, **owed)
    return EntitlementAccounts(
        Market.of([[1] * len(types)] * len(names), there, users=names, types=types, entitlements=said)
    )


def test_a_gang_that_is_owed_two_types_is_served_by_the_one_that_has_enough_free() -> None:
    accounts = cluster([8, 4], {"a": ("A", 4, None), "b": ("B", 7, "H100")}, guarantee={"A": [4, 4]})
    assert accounts.free.tolist() == [1, 4]
    assert accounts.owed_at == {0: (0, 1)}
    assert (list(broken_guarantees(accounts)), list(mends(accounts))) == ([], [])


def test_two_gangs_that_are_owed_two_types_are_served_by_one_each() -> None:
    gangs = {"a": ("A", 4, None), "c": ("C", 4, None), "b": ("B", 4, "H100")}
    accounts = cluster([8, 4], gangs, guarantee={"A": [4, 4], "C": [4, 4]})
    assert accounts.free.tolist() == [4, 4]
    assert accounts.served == {0, 1}
    assert list(broken_guarantees(accounts)) == []


def test_a_gang_that_a_cap_stops_takes_no_free_gpus_from_the_next() -> None:
    """The group of A may hold nothing; C, which asked later, is served by what is free, though B borrows."""
    gangs = {"a": ("A", 4, None), "c": ("C", 4, None), "b": ("B", 4, "H100")}
    accounts = cluster([8], gangs, guarantee={"A": [4], "C": [4]}, group={"A": "g"}, cap={"g": [0]})
    assert accounts.served == {1}
    assert list(broken_guarantees(accounts)) == []


def test_a_mend_lets_run_no_more_than_the_caps_of_groups_allow_together() -> None:
    """A and C wait for 4 each, and their group may hold 4."""
    gangs = {"a": ("A", 4, None), "c": ("C", 4, None), "b": ("B", 4, "H100"), "b2": ("B", 4, "H100")}
    accounts = cluster([8], gangs, guarantee={"A": [4], "C": [4]}, group={"A": "g", "C": "g"}, cap={"g": [4]})
    [mend] = mends(accounts)
    assert str(mend) == "reclaim 4 H100: stop b2 of B. Then a runs (1 of 2 that starve)"


def test_a_group_that_loses_more_than_its_users_is_told_beside_them() -> None:
    accounts = cluster([3], {"a": ("A", 3, "H100")}, guarantee={"A": [1], "g": [3]}, group={"A": "g"})
    found = smallest(accounts, 0, 3, [0], {})
    assert str(found).endswith("this takes 1 of what A is owed and 3 of what g is owed; no choice takes less in all")


@pytest.mark.parametrize(
    ("there", "mend", "loan"),
    [
        (8, "reclaim 4 H100: stop b2 of B. Then a runs", "free or add 4 H100"),
        (6, "reclaim 8 H100: stop b, b2 of B. Then a runs", "free or add 6 H100"),
        (4, "reclaim 8 H100: stop b, b2 of B. Then a runs", "free or add 8 H100"),
    ],
)
def test_where_more_is_held_than_there_is_that_must_go_too_before_a_gang_runs(there: int, mend: str, loan: str) -> None:
    """Guards against a mend after which the type is still overbooked: B holds 8, and nodes were lost."""
    gangs = {"a": ("A", 4, None), "b": ("B", 4, "H100"), "b2": ("B", 4, "H100")}
    accounts = cluster([there], gangs, guarantee={"A": [4]})
    [found] = mends(accounts)
    [own] = explain(accounts.market, "A", policies=[]).mends
    assert (str(found), str(own)) == (mend, mend)
    assert [each.steps for each in explain(accounts.market, "A", policies=[]).loans] == [(loan,)]


def test_of_a_good_of_which_more_is_held_than_there_is_none_is_free() -> None:
    """Guards against "and -3 are free"."""
    made = Gangs.of(["A", "B"], [1, 1], users=["A", "B"], types=["T"], on=[None, "T"], other={"cpu": [2, 8]})
    said = Entitlements.of(["A", "B"], ["T"], goods={Good("cpu", "all"): 5}, gangs=made)
    accounts = EntitlementAccounts(Market.of([[1], [1]], [2], users=["A", "B"], types=["T"], entitlements=said))
    assert str(reason_of(accounts, 0)).endswith("it takes 2 cpu:all, and 0 is free")
