"""Second-price trading, carried out anew: after each trade it is looked for who trades next.

Source: Gandiva_fair, EuroSys 2020, Sec. 3.4 and 3.5; what the paper leaves open is as `SecondPriceTrading` says.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from plain_market import NOTHING, Given

Ratio = Fraction | float


def traded(market: Given) -> list[list[Fraction]]:
    """Return the shares after all trades; users are named in the order of their numbers."""
    from plainly import split

    held = split(market)
    order = slowest_first(market)
    for fast in reversed(order):
        for slow in order:
            if slow == fast:
                break
            _trade(market, held, fast, slow)
    return held


def slowest_first(market: Given) -> list[int]:
    """Return the types by the mean, over weights, of the part that a GPU is of what a user has from all."""
    whole = [sum(v * m for v, m in zip(row, market.capacity, strict=True)) for row in market.speedup]
    mean = [sum(market.weight[i] * market.speedup[i][j] / whole[i] for i in market.users) for j in market.types]
    return sorted(market.types, key=lambda j: (mean[j], j))


def _trade(market: Given, held: list[list[Fraction]], fast: int, slow: int) -> None:
    gain = [_ratio(row[fast], row[slow]) for row in market.speedup]
    buys, sells = set(market.users), set(market.users)
    while True:
        buyers = sorted((i for i in buys if held[i][slow] > 0), key=lambda i: (-gain[i], i))
        sellers = sorted((i for i in sells if held[i][fast] > 0), key=lambda i: (gain[i], i))
        if not buyers or not sellers or gain[buyers[0]] <= gain[sellers[0]]:
            return
        buyer, seller = buyers[0], sellers[0]
        offered, wanted = held[seller][fast], held[buyer][slow]
        bids = [gain[i] for i in buyers[1:] if gain[seller] < gain[i] < inf]
        price = max(bids) if bids else _between(gain[seller], gain[buyer], wanted / offered)
        amount = min(offered, wanted / price)
        for user, more, role in ((seller, price - 1, sells), (buyer, 1 - price, buys)):
            limit = market.limit[user]
            if (
                limit is not None
                and more > 0
                and max(NOTHING, limit - sum(held[user])) / more < min(offered, wanted / price)
            ):
                amount = min(amount, max(NOTHING, limit - sum(held[user])) / more)
                role.discard(user)
        for user, sign in ((buyer, 1), (seller, -1)):
            held[user][fast] += sign * amount
            held[user][slow] -= sign * amount * price


def _ratio(on_fast: Fraction, on_slow: Fraction) -> Ratio:
    if on_slow:
        return on_fast / on_slow
    return inf if on_fast else NOTHING


def _between(low: Ratio, high: Ratio, all_for_all: Fraction) -> Fraction:
    if high < inf:
        return (Fraction(low) + Fraction(high)) / 2
    return 2 * Fraction(low) if low else all_for_all
