"""Second-price trading (Gandiva_fair, Sec. 3.4): the trades that are due, and no others."""

from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any

from .market import Market, dot, minus
from .reading import ZERO, Entry, Number, Rejected, Table, summed
from .statements import Decision, read_allocation

#: Users and types among which trades are looked for.
MOST_PAIRS = 2 * 10**8
TRADING = ("equal-split", "second-price-trading")
TRADE = "buyer seller fast slow price fast_amount slow_amount"


def trace(data: Entry) -> Decision:
    """Second-price trading: all trades that are due, and no others. Without trades: the equal split."""
    certificate = data.fields("market allocation", "trades")
    market, shares = read_allocation(certificate)
    held, traded = market.equal_split(), certificate["trades"].value is not None
    if traded:
        pairs = (len(market.users) * len(market.types)) ** 2
        data.budget.spend(pairs, MOST_PAIRS, "trades", "pairs of users and of types")
        _replay(certificate["trades"].items(), trades_due(market, held))
    if shares != held:
        raise Rejected("the trades that are told lead elsewhere")
    policy = TRADING[traded]
    return Decision(f"the allocation is that of {policy}", market, held, policy=policy, ties=False)


def _replay(entries: list[Entry], due: Iterator[list[Any]]) -> None:
    """Refuse trades that are not those that are due; `trades_due` carries each of them out."""
    at = 0
    for trade in due:
        if at == len(entries):
            raise Rejected(f"a trade that is due is missing: {' '.join(map(str, trade[:2]))}")
        entry = entries[at].fields(TRADE)
        *words, price, fast, slow = (entry[key] for key in TRADE.split())
        if [*(each.value for each in words), price.number(), fast.number(), slow.number()] != trade:
            raise Rejected(f"trade {at} is not the one that is due")
        at += 1
    if at < len(entries):
        raise Rejected("a trade is told that is not due")


def trades_due(market: Market, held: Table) -> Iterator[list[Any]]:
    """Yield each trade when it is due, and carry it out on ``held``: the fastest type for the slowest first.

    A trade is [buyer, seller, fast type, slow type, price, GPUs of the fast type, GPUs of the slow type];
    the price is in GPUs of the slow type for one of the fast.
    """
    order = by_speed(market)
    for high in reversed(range(len(order))):
        for low in range(high):
            yield from _pair(market, held, order[high], order[low])


def by_speed(market: Market) -> list[int]:
    """Return the types from the slowest to the fastest, by users' mean of speedups over all GPUs' worth."""
    worths = [dot(row, market.capacity) for row in market.speedup]
    scaled = [weight / worth for weight, worth in zip(market.weight, worths, strict=True)]
    means = [dot(scaled, list(column)) for column in zip(*market.speedup, strict=True)]
    return sorted(range(len(means)), key=means.__getitem__)  # of two alike the first


def _pair(market: Market, held: Table, fast: int, slow: int) -> Iterator[list[Any]]:
    """Yield the trades of two types: who gains most by a fast GPU buys of who gains least."""
    names = market.users
    gain = [_gain(row[fast], row[slow]) for row in market.speedup]
    buyers = sorted(range(len(names)), key=lambda i: (-gain[i], names[i]))
    sellers = sorted(range(len(names)), key=lambda i: (gain[i], names[i]))
    while True:
        bidders = [i for i in buyers if held[i][slow]]
        seller = next((i for i in sellers if held[i][fast]), None)
        if not bidders or seller is None or gain[bidders[0]] <= gain[seller]:
            return
        buyer = bidders[0]
        price = _price(gain, bidders, seller, held[buyer][slow] / held[seller][fast])
        most = min(held[seller][fast], held[buyer][slow] / price)
        # for each fast GPU that is traded, the seller holds price - 1 GPUs more, the buyer 1 - price
        seller_room = _room(market, held, seller, price - 1)
        buyer_room = _room(market, held, buyer, 1 - price)
        amount = Fraction(min(most, seller_room, buyer_room))
        if seller_room < most:
            sellers.remove(seller)
        if buyer_room < most:
            buyers.remove(buyer)
        if amount > 0:
            for user, sign in ((buyer, 1), (seller, -1)):
                held[user][fast] += sign * amount
                held[user][slow] -= sign * amount * price
            words = [names[buyer], names[seller], market.types[fast], market.types[slow]]
            yield [*words, price, amount, amount * price]


def _gain(fast: Fraction, slow: Fraction) -> Number:
    """Return how many slow GPUs one fast GPU is worth."""
    if not fast:
        return ZERO
    return fast / slow if slow else inf


def _price(gain: list[Number], bidders: list[int], seller: int, ratio: Fraction) -> Fraction:
    """Return the second highest bid above the seller's gain; without one, the middle of buyer and seller."""
    buyer, *others = bidders
    bid = next((gain[i] for i in others if gain[i] < inf), ZERO)  # others come by falling gain
    if bid > gain[seller]:
        return Fraction(bid)
    if gain[buyer] < inf:
        return Fraction(gain[buyer] + gain[seller]) / 2
    return 2 * Fraction(gain[seller]) or ratio


def _room(market: Market, held: Table, i: int, more: Fraction) -> Number:
    """Return how many fast GPUs a user can trade until its demand is met; each adds ``more`` GPUs."""
    left = minus(market.demand[i], summed(held[i]))
    return inf if more <= 0 or left == inf else max(left, ZERO) / more
