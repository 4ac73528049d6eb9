"""Audits of any small cluster: the definitions hold as they stand, nothing fails, and mends mend."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from fairopt.audit import Cause, EntitlementStatus, audit, explain
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.page import page
from fairopt.audit.violations import mends
from fairopt.problem import Entitlements, Gangs, Good, Market
from fairopt.program import INFINITY


@st.composite
def markets(draw: st.DrawFn) -> Market:
    users, types = [f"u{i}" for i in range(draw(st.integers(1, 4)))], ["S", "T"]
    nodes, goods = [*users, "g", "h"], {Good("cpu", "any"): 20} if draw(st.booleans()) else {}
    count = draw(st.integers(0, 8))
    on = [draw(st.sampled_from([None, "S", "T"])) for _ in range(count)]
    gpus = [draw(st.integers(0, 5)) for _ in range(count)]
    gangs = Gangs.of(
        [draw(st.sampled_from(users)) for _ in range(count)],
        gpus,
        users=users,
        types=types,
        on=on,
        allowed=[[each] if each else draw(st.sampled_from([None, ["S"], ["T"]])) for each in on],
        tier=[draw(st.integers(0, 2)) for _ in range(count)],
        preemptible=[draw(st.booleans()) for _ in range(count)],
        other={"cpu": [draw(st.integers(0, 4)) for _ in range(count)]} if goods else None,
    )
    amounts = st.sampled_from([0, 1, 2, 4, 6, Fraction(5, 2), None])

    def some(no: Any) -> dict[str, list[Any]]:
        return {
            name: [draw(amounts.filter(lambda each: each is not no)) for _ in types]
            for name in nodes
            if draw(st.booleans())
        }

    owed = Entitlements.of(
        users,
        types,
        groups=["g", "h"],
        group={name: draw(st.sampled_from(["g", "h"])) for name in users if draw(st.booleans())} | {"h": "g"},
        goods=goods,
        guarantee=some(False),
        cap=some(False),
        borrow_weight={name: draw(st.integers(0, 3)) for name in nodes},
        usage={name: draw(st.integers(0, 3)) for name in nodes},
        gangs=gangs,
    )
    held = owed.held[:, :2].sum(axis=0)
    capacity = [max(1, int(each) + draw(st.integers(-1, 4))) for each in held]
    return Market.of([[1, 1]] * len(users), capacity, users=users, types=types, entitlements=owed)


@given(markets())
def test_what_is_said_is_so(market: Market) -> None:
    found = audit(market, policies=[], properties=[])
    accounts, said = found.accounts, found.accounts.said
    gangs = accounts.gangs
    json.dumps(found.to_json(exact=True), allow_nan=False)
    assert "<script>alert" not in page(found)
    for node, row in enumerate(found.rows):
        assert found.standing[node] is row.status
        assert found.row(row.name) == row
        held, owed = accounts.held[node, :2], accounts.owed[node, :2]
        waits = [
            g for g in range(len(gangs)) if gangs.on[g] < 0 and gangs.gpus[g] and node in said.path(int(gangs.user[g]))
        ]
        fits = any(
            gangs.allowed[g, j]
            and gangs.gpus[g] <= min(market.capacity[j], owed[j] - held[j])
            and all(
                accounts.held[each, j] + gangs.gpus[g] <= said.cap[each, j]
                for each in said.path(int(gangs.user[g]))
                if each == node or node in accounts.above(each)
            )
            for g in waits
            for j in range(2)
        )
        if not said.goods:
            assert (row.status is EntitlementStatus.STARVED) == fits
        if not fits:
            assert (row.status is EntitlementStatus.BORROWING) == bool((held > owed).any())
    for name, reason in found.reasons.items():
        for stop in reason.stops:
            if stop.cause is Cause.OPEN:
                j, user = market.types.index(stop.type), said.node(name)
                assert accounts.free[j] >= reason.gpus
                assert all(accounts.held[each, j] + reason.gpus <= said.cap[each, j] for each in said.path(user))
    assert found.violated == bool(found.guarantees or (accounts.held > said.cap).any())


@given(markets())
def test_mends_mend(market: Market) -> None:
    """Stop the gangs and start those that are helped: enough GPUs are free, and only what is said is short."""
    accounts = EntitlementAccounts(market)
    gangs, said = accounts.gangs, accounts.said
    for mend in mends(accounts):
        if mend.reclaim.stops is None or not mend.gangs:
            continue
        j, on = market.types.index(mend.type), gangs.on.copy()
        for each in mend.reclaim.stops:
            gang = gangs.names.index(each.gang)
            assert gangs.preemptible[gang]
            assert gangs.on[gang] == j
            on[gang] = -1
        for name in mend.gangs:
            on[gangs.names.index(name)] = j
        now = EntitlementAccounts(replace(market, entitlements=said.running(gangs.placed(on))))
        assert now.said.held[:, j].sum() <= max(market.capacity[j], said.held[:, j].sum())
        due = np.minimum(
            accounts.held[:, j], np.where(accounts.owed[:, j] == INFINITY, accounts.held[:, j], accounts.owed[:, j])
        )
        missing = {said.nodes[node] for node in np.flatnonzero(now.held[:, j] < due)}
        assert missing <= set(mend.reclaim.below)


@given(markets(), st.integers(0, 3))
def test_loans_are_enough(market: Market, number: int) -> None:
    user = market.users[number % len(market.users)]
    found = explain(market, user, policies=[])
    json.dumps(found.to_json(), allow_nan=False)
    accounts = found.found.accounts
    for loan in found.loans:
        gang, j = accounts.gangs.names.index(loan.gang), market.types.index(loan.type)
        free = sum(int(word.split()[3]) for word in loan.steps if word.startswith("free or add"))
        assert accounts.gangs.gpus[gang] <= accounts.free[j] + free
        for node in accounts.said.path(int(accounts.gangs.user[gang])):
            fits = accounts.held[node, j] + accounts.gangs.gpus[gang] <= accounts.said.cap[node, j]
            raised = any(f"the cap of {accounts.said.nodes[node]}" in word for word in loan.steps)
            if node == accounts.pools.of(int(accounts.gangs.user[gang]), j) and not raised:  # others inside set it free
                assert accounts.gangs.gpus[gang] <= accounts.pools.left_in(node, j) + free
            else:
                assert fits or raised
