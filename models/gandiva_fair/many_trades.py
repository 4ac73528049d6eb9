"""Second-price trading under many misreports at once: all markets are in one array, one trade of each at a time."""

from __future__ import annotations

import numpy as np

from fairopt.deadline import left
from fairopt.policy.many_programs import reported
from fairopt.problem import Market
from fairopt.problem.market import NEAR
from fairopt.program import INFINITY, ROUNDING, Array

#: In floats, two amounts that differ by this part of them or less are taken for the same.
CRUMB = 16 * ROUNDING


def bundles_after_trades(market: Market, equal: Array, users: Array, reports: Array) -> Array:
    """Return the bundles (cases, k), NaN where rounding may decide which type is faster; see `ManyBundles`.

    They are found by the same operations in the same order as `SecondPriceTrading.compute` in floats, but ratios that
    are equal as floats count as equal. ``equal`` (n, k): the equal split.
    """
    speedup = reported(market, users, reports)
    order, told = _type_order(market, speedup)
    held = np.repeat(equal[None], len(users), axis=0)
    k = speedup.shape[2]
    for place in range(k - 1, 0, -1):
        for slow in range(place):
            _trade(market, speedup, held, order[:, place], order[:, slow])
    bundles: Array = held[np.arange(len(users)), users]
    return np.where(told[:, None], bundles, np.nan)


def _type_order(market: Market, speedup: Array) -> tuple[Array, Array]:
    """Return the types from slowest to fastest (cases, k), and where no two of them are nearly alike."""
    whole = (speedup * market.capacity).sum(axis=2)
    mean = (speedup * (market.weight / whole)[:, :, None]).sum(axis=1)
    order = np.argsort(mean, axis=1, kind="stable")
    ranked = np.take_along_axis(mean, order, axis=1)
    told: Array = np.all(np.diff(ranked, axis=1) > NEAR * ranked[:, 1:], axis=1)
    return order, told


def _trade(market: Market, speedup: Array, held: Array, fast: Array, slow: Array) -> None:
    """Carry out all trades in a pair of types of each case, (cases,)."""
    count, n, _ = speedup.shape
    case = np.arange(count)
    on_fast, on_slow = speedup[case, :, fast], speedup[case, :, slow]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(on_fast > 0, np.where(on_slow > 0, on_fast / on_slow, INFINITY), on_fast)
    # equal ratios are ordered by the users' names
    by_name = np.argsort(sorted(range(n), key=lambda user: market.users[user]))
    names = np.broadcast_to(by_name, ratio.shape)
    turns = np.lexsort((names, -ratio)), np.lexsort((names, ratio))
    sides = _Side(turns[0], held, slow), _Side(turns[1], held, fast)
    bids, open_ = np.take_along_axis(ratio, turns[0], axis=1), case
    for _ in range(2 * n + 1):
        left()
        open_ = _one_trade(market, open_, held, ratio, bids, fast, slow, sides)
        if not len(open_):
            return


class _Side:
    """Who may buy, or sell, next: ``turn`` (cases, n) are users in their order, ``ready`` (cases, n) whether one can.

    One is ready that has GPUs of the type (cases,) to give, unless it has no room for more trades.
    """

    def __init__(self, turn: Array, held: Array, type_: Array) -> None:
        self.turn, self.type, self.place = turn, type_, np.empty_like(turn)
        case = np.arange(len(turn))[:, None]
        self.place[case, turn] = np.arange(turn.shape[1])
        self.may = np.ones(turn.shape, dtype=bool)
        self.ready = held[case, turn, type_[:, None]] > 0

    def look(self, case: Array, user: Array, held: Array) -> None:
        """See whether users, one of each case, are ready still."""
        place = self.place[case, user]
        self.ready[case, place] = self.may[case, place] & (held[case, user, self.type[case]] > 0)

    def leave(self, case: Array, user: Array) -> None:
        """Let users, one of each case, trade no more on this side."""
        place = self.place[case, user]
        self.may[case, place] = self.ready[case, place] = False


def _one_trade(
    market: Market, case: Array, held: Array, ratio: Array, bids: Array, fast: Array, slow: Array,
    sides: tuple[_Side, _Side],
) -> Array:  # fmt: skip
    """Carry out the next trade of each case; return the cases in which there was one."""
    line, (buying, selling) = np.arange(len(case)), sides
    j, s = fast[case], slow[case]
    has_slow, has_fast = buying.ready[case], selling.ready[case]
    first, last = has_slow.argmax(axis=1), has_fast.argmax(axis=1)
    buyer, seller = buying.turn[case, first], selling.turn[case, last]
    high, low = ratio[case, buyer], ratio[case, seller]
    goes = has_slow[line, first] & has_fast[line, last] & (high > low)
    # bidders: those after the buyer with slow GPUs and a finite ratio
    after = has_slow & (np.arange(bids.shape[1]) > first[:, None]) & (bids[case] < INFINITY)
    second = np.where(after.any(axis=1), bids[case, after.argmax(axis=1)], low)
    offered, wanted = held[case, seller, j], held[case, buyer, s]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.where(high < INFINITY, (low + high) / 2, np.where(low > 0, 2 * low, wanted / offered))
        price = np.where(second > low, second, between)
        for_all = wanted / price
        for_all = np.where(np.abs(for_all - offered) <= CRUMB * offered, offered, for_all)
        most = np.minimum(offered, for_all)
        limit = market.limit
        rooms = []
        for who, each in ((seller, price - 1), (buyer, 1 - price)):
            total = held[case, who].sum(axis=1)
            spare, crumb = limit[who] - total, CRUMB * total
            fits = (each <= 0) | (spare >= most * each - crumb)
            rooms.append(np.where(fits, most, np.where(spare > crumb, spare / each, 0)))
        amount = np.minimum(rooms[0], rooms[1])
        given = np.where(amount == for_all, wanted, amount * price)
    for who, room, side in ((seller, rooms[0], selling), (buyer, rooms[1], buying)):
        full = goes & (room < most)
        side.leave(case[full], who[full])
    trades = goes & (amount > 0)
    at, b, v, j, s = case[trades], buyer[trades], seller[trades], j[trades], s[trades]
    amount, given = amount[trades], given[trades]
    held[at, b, j] += amount
    held[at, v, j] -= amount
    held[at, b, s] -= given
    held[at, v, s] += given
    for side in sides:
        for user in (b, v):
            side.look(at, user, held)
    return np.asarray(case[goes])
