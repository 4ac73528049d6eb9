"""Parts of a market that have nothing to do with each other: a rule decides one of them as if there were no others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from fairopt.errors import FairoptError
from fairopt.policy import DecisionReason, Policy
from fairopt.policy.decide import unsupported
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import tops_of
from fairopt.program import Array

#: What entitlements say by node (N, ...), by user (n, ...), and in all.
BY_NODE = ("parent", "guarantee", "cap", "reserve", "borrow_weight", "tier", "usage")
BY_USER = ("held", "fixed")
IN_ALL = ("users", "groups", "types", "goods", "stock", "half_life", "rate", "gangs", "settings")


def part_of(policy: Policy, market: Market, users: Collection[int]) -> Market:
    """Return the market of all users on whom depends what a policy gives some of them; all where nobody knows.

    >>> from fairopt.models import Kai
    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["A", "B", "C"], ["T", "U"], held={"A": [1, 0], "B": [0, 1], "C": [2, 0]})
    >>> market = Market.of([[1, 1]] * 3, [8, 8], users=["A", "B", "C"], types=["T", "U"], entitlements=owed)
    >>> part_of(Kai(), market, [2]).users
    ('A', 'C')
    """
    wanted = set(users)
    rows = sorted(user for part in _parts(policy, market) if wanted & set(part) for user in part)
    return market if len(rows) == len(market.users) else market.select(rows)


def changed_part(policy: Policy, before: Market, after: Market) -> list[int] | None:
    """Return the users to whom a policy may give something else after a change; None where that may be anybody."""
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or not _alike(before, after, [each.name for each in fields(Market)[:-1]]):
        return None
    if not _alike(old, new, IN_ALL):
        return None
    parts = _parts(policy, after)
    if len(parts) < 2 or parts != _parts(policy, before):
        return None
    of = tops_of(new.parent, new.upwards)
    tops = {of[node] for node in _changed(old, new)}
    rows = sorted(user for part in parts if not tops.isdisjoint(of[user] for user in part) for user in part)
    if len(rows) == len(new.users):
        return None
    return rows if tops <= {of[user] for user in rows} else None  # a group without users may matter to anybody


def joined(grounds: DecisionReason, part: DecisionReason, owed: Entitlements, rows: Sequence[int]) -> DecisionReason:
    """Return why a decision is what it is, where ``part`` is why that on a part is; ``rows``: the users of the part."""
    gangs = np.flatnonzero(np.isin(owed.gangs.user, rows))
    on = grounds.gangs.on.copy()
    on[gangs] = part.gangs.on
    names, inside = owed.gangs.names, {owed.gangs.names[gang] for gang in gangs.tolist()}
    of = tops_of(owed.parent, owed.upwards)
    tops = {of[user] for user in rows}
    at = [node for node, top in enumerate(of) if top in tops]
    nodes = {owed.nodes[node] for node in at}
    rules = grounds.owed
    if rules is not None and part.owed is not None:  # of a part all groups have a row, after its own users
        n, before = len(owed.users), len(rows) - len(owed.users)
        here = [bisect_left(rows, node) if node < n else node + before for node in at]
        rules = rules.copy()
        rules[at] = part.owed[here]

    anew = inside.union(part.order)

    def told(old: Any, new: Any) -> dict[str, str]:
        both = {name: words for name, words in old.items() if name not in inside} | new
        return {name: both[name] for name in names if name in both}

    def valued(old: Any, new: Any) -> dict[str, Any]:
        return {name: new[name] if name in nodes and name in new else value for name, value in old.items()}

    return replace(
        grounds,
        gangs=replace(grounds.gangs, on=on),
        share=valued(grounds.share, part.share),
        stated={what: valued(own, part.stated.get(what, {})) for what, own in grounds.stated.items()},
        owed=rules,
        order=(*(name for name in grounds.order if name not in anew), *part.order),
        waits=told(grounds.waits, part.waits),
        stopped=told(grounds.stopped, part.stopped),
    )


def _parts(policy: Policy, market: Market) -> list[list[int]]:
    """Return a policy's parts of a market; one where it refuses the market, so that it says so of all."""
    whole = [list(range(len(market.users)))]
    if unsupported(policy, market):
        return whole
    try:
        return policy.parts(market)
    except FairoptError:
        return whole


def _alike(one: Any, other: Any, names: Collection[str]) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in names]
    return all(a is b or _same(a, b) for a, b in pairs)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(type(one) is type(other) and one == other)


def _changed(old: Entitlements, new: Entitlements) -> Iterator[int]:
    """Yield the nodes of which two entitlements do not say the same."""
    for name in (*BY_NODE, *BY_USER):
        one, other = getattr(old, name), getattr(new, name)
        if one is not other:
            differs: Array = np.asarray(one != other)
            yield from np.flatnonzero(differs.reshape(len(differs), -1).any(axis=1)).tolist()
