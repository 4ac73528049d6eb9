"""Whole GPUs and gangs out of anybody's shares: largest remainders in each group, then gangs all or nothing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from fairopt.problem import Entitlements, Market
from fairopt.problem.gangs import PENDING
from fairopt.program import INFINITY, Array, Number, objects

#: Shares in floats that are as near to a whole number are taken for it.
NEAR = 1e-6


def whole(market: Market, shares: Any) -> tuple[Market, Array]:
    """Return the market with the gangs that run, and ``shares`` (n, k) rounded to whole GPUs and gangs.

    `fairopt.verify(*whole(market, shares))` says which properties are left. The same input gives the same.

    Of each type as many GPUs are given out as the shares have, rounded down. Groups and users get theirs rounded down,
    and those with the largest remainders one more, in each group on its own: so nobody gets less than its share rounded
    down, nor does a group, and what kept a guarantee keeps that guarantee rounded down. Nobody gets more than its cap
    or demand. Ties go to the larger share, then to the first.

    Where the market has gangs, these are what runs: gangs that cannot be stopped stay. The others run within their
    user's whole GPUs, by tier and time, all or nothing; those that run go before those that wait, in one tier. GPUs for
    which a user has no gang go to whoever's fits, by tier and time, within all caps. What a user holds without a gang
    is kept within its share. Further goods, such as CPU, are not looked at. Errors: `BadInput` for a wrong shape.

    Source: largest remainders as KAI's division of over-quota GPUs.

    >>> market = Market.of([[1], [1], [1]], capacity=[4])
    >>> whole(market, market.equal_split())[1].ravel().tolist()
    [Fraction(2, 1), Fraction(1, 1), Fraction(1, 1)]
    """
    told = market.as_(Fraction)
    owed = told.entitlements or Entitlements.of(told.users, told.types)
    given = _cleaned(told.shares(market.shares(shares)))
    limit = [most if most == INFINITY else floor(most) for most in told.limit]
    left = [most - sum(map(floor, row)) for most, row in zip(limit, given, strict=True)]
    out = np.zeros(told.shape, dtype=object)
    for j, capacity in enumerate(told.capacity):
        rounded = _rounded(owed, owed.total(given)[:, j], owed.cap[:, j], floor(capacity), left)
        left = [free - own + floor(share) for free, own, share in zip(left, rounded, given[:, j], strict=True)]
        out[:, j] = [Fraction(own) for own in rounded]
    if not len(owed.gangs):
        return told, out
    k = len(told.types)
    rest = np.minimum(owed.held[:, :k] - owed.running_gangs[0][:, :k], out) // 1
    gangs = owed.gangs.placed(_placed(owed, out - rest, told.capacity // 1 - rest.sum(axis=0), rest))
    after = owed.running(gangs)
    now = rest + gangs.held(len(told.users))
    return replace(told, entitlements=replace(after, held=np.hstack([now, after.held[:, k:]]))), now


def _cleaned(shares: Array) -> Array:
    """Return shares as Fractions, none below 0; floats next to a whole number as that number."""
    flat = []
    for each in shares.ravel().tolist():
        near = round(each) if isinstance(each, float) and abs(each - round(each)) <= NEAR else each
        flat.append(max(Fraction(0), Fraction(near)))
    return objects(flat).reshape(shares.shape)


def _rounded(owed: Entitlements, share: Array, cap: Array, capacity: int, left: list[Number]) -> list[int]:
    """Return whole GPUs of one type for each user; ``share`` (N,), ``cap`` (N,), ``left``: what demands leave each."""
    n = len(owed.users)
    most: list[Number] = [
        min(
            ceil(share[node]),
            cap[node] if cap[node] == INFINITY else floor(cap[node]),
            floor(share[node]) + left[node] if node < n else INFINITY,
        )
        for node in range(len(share))
    ]
    for node in owed.upwards:
        if owed.children[node]:
            most[node] = min(most[node], sum(most[child] for child in owed.children[node]))
    got = [0] * len(share)
    total = min(capacity, floor(sum((share[node] for node in owed.tops), Fraction(0)) + Fraction(NEAR)))

    def share_out(family: tuple[int, ...], there: int) -> None:
        for node in family:
            got[node] = int(min(floor(share[node]), most[node]))
        over = sum(got[node] for node in family) - there
        for node in sorted(family, key=lambda node: (share[node] - floor(share[node]), share[node])):
            less = min(max(over, 0), got[node])  # shares that are not feasible
            got[node], over = got[node] - less, over - less
        for node in sorted(family, key=lambda node: (floor(share[node]) - share[node], -share[node])):
            if over < 0 and got[node] < most[node]:
                got[node], over = got[node] + 1, over + 1

    share_out(owed.tops, total)
    for node in reversed(owed.upwards):
        if owed.children[node]:
            share_out(owed.children[node], got[node])
    return got[:n]


def _placed(owed: Entitlements, own: Array, free: Array, rest: Array) -> Array:
    """Return on which type each gang runs, -1 for those that wait.

    ``own`` (n, k): the whole GPUs of each user, ``free`` (k,): those of all, ``rest`` (n, k): what no gang holds.
    """
    gangs, k = owed.gangs, len(free)
    on = np.full(len(gangs), PENDING, dtype=np.int64)
    room = owed.cap[:, :k] - owed.total(rest)

    def start(gang: int, j: int) -> None:
        on[gang], gpus, user = j, gangs.size(gang), int(gangs.user[gang])
        free[j] -= gpus
        own[user, j] -= gpus
        for node in owed.path(user):
            room[node, j] -= gpus

    def fits(gang: int, j: int) -> bool:
        return bool(gangs.gpus[gang] <= min(free[j], *(room[node, j] for node in owed.path(int(gangs.user[gang])))))

    for gang in np.flatnonzero(~gangs.pending & ~gangs.preemptible).tolist():
        start(gang, int(gangs.on[gang]))
    order = sorted(range(len(gangs)), key=lambda g: (-gangs.tier[g], bool(gangs.pending[g]), gangs.since[g], g))
    for within in (True, False):
        for gang in order:
            where = [int(gangs.on[gang])] if not gangs.pending[gang] else np.flatnonzero(gangs.allowed[gang]).tolist()
            for j in where if on[gang] == PENDING else ():
                if fits(gang, j) and (not within or gangs.gpus[gang] <= own[gangs.user[gang], j]):
                    start(gang, j)
                    break
    return on
