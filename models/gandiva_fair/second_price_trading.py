"""Second-price trading: from the equal split, users swap slow GPUs for fast ones at the second highest bid."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from fairopt.backends.exact import MOST_EXACT
from fairopt.backends.solution import Solution, Status
from fairopt.certificates import TRADES, Certificate
from fairopt.deadline import left
from fairopt.errors import BadInput, NotSolved, OutOfTime
from fairopt.models.baselines.equal_split import EqualSplit
from fairopt.models.gandiva_fair.many_trades import CRUMB, bundles_after_trades
from fairopt.numbers import is_rational
from fairopt.policy import Allocation, Claim, Computed, Example, Trait
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.program import INFINITY, ROUNDING, Array, Number

#: OEF Eq. (1): the first user gains by reporting 2.8 instead of 2 (2.5 becomes 2.9 in the second trade).
OEF_EQUATION_1 = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])
#: With three types a later pair opens a trade in an earlier one: u1 ends with (11/4, 0, 2/7) and u2 with (1/4, 1, 5/7),
#: and both would gain by swapping u2's T1 for u1's T3 again. With two types and no zeros this cannot happen.
THREE_TYPES = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[3, 1, 1])


#: A price so near to 1 says in floats with few digits how many more GPUs a user holds after a trade.
ALIKE = 1e-6


@dataclass(frozen=True)
class Trade:
    """One trade: ``buyer`` gave ``slow_amount`` GPUs of type ``slow`` for ``fast_amount`` of ``fast`` to ``seller``.

    ``price`` is slow GPUs per fast GPU. Users and types are called by name; numbers are the market's.
    """

    buyer: str
    seller: str
    fast: str
    slow: str
    price: Number
    fast_amount: Number
    slow_amount: Number

    def to_json(self) -> dict[str, str | float]:
        """Return the trade with a Fraction as the string "p/q" (or "p"), a float as it is."""
        return {key: str(value) if is_rational(value) else value for key, value in asdict(self).items()}


class SecondPriceTrading(Computed):
    """From the equal split, the user that gains most from fast GPUs buys them from the user that gains least.

    Pairs of types (fast, slow) are taken once each, in the order of `Market.type_order`: the fastest type with the
    slowest, with the second slowest, and so on, then the second fastest type. In a pair a user's *ratio* is its
    speedup on the fast type over that on the slow one; it is infinite where the user can run on the fast type only,
    and 0 where it cannot run on the fast type. Until nobody can gain from a trade:

    * the buyer is the user of the largest ratio that still has slow GPUs, the seller the one of the least ratio that
      still has fast GPUs; equal ratios go by the user's name. They trade only if the buyer's ratio is the larger;
    * bidders are the other users with slow GPUs and a ratio above the seller's; the price, in slow GPUs for one fast
      GPU, is the highest finite ratio among the bidders;
    * where nobody else bids, the price is the mean of the buyer's and the seller's ratio. If the buyer's ratio is
      infinite, it is the harmonic mean, which is twice the seller's ratio. If the seller's ratio is 0 as well, both
      hold GPUs that are useless to them and exchange all of them;
    * they trade until one of them has nothing left to give, or until the number of GPUs of one of them would exceed its
      demand. A user that its demand stops does not trade again in that role in that pair.

    Every price lies between the two ratios, so no trade hurts anybody. The largest ratio among owners of slow GPUs
    never rises and the least ratio among owners of fast GPUs never falls. So a user that has given all of its slow
    (fast) GPUs never gets any again in the pair, and there are at most 2n trades in each pair.

    The paper calls the user of the largest ratio the seller in one place and the buyer in another; here it is the buyer
    of fast GPUs. Equal users are not treated equally: the second of them has one bidder less against it, and so may pay
    less. Hence a user of weight w is not the same as w copies.

    Where time is over, the error has the shares after the trades by then, of which nobody ends with less.

    Source: Gandiva_fair Sec. 3.4 (Table 3) and 3.5 (Trading); OEF Sec. 2.4, Eq. (1).

    >>> for row in SecondPriceTrading().compute(OEF_EQUATION_1, None)[0]:
    ...     print(*row)
    1 4/45
    0 7/15
    0 4/9
    """

    name = "second-price-trading"
    source = "Gandiva_fair, EuroSys 2020, Sec. 3.4"
    traits = frozenset({Trait.UNIT_FREE, Trait.EXACT, Trait.DETERMINED})
    claims = (
        Claim("sharing_incentive", "Gandiva_fair Sec. 3.4; OEF Table 1", assumes="no demands"),
        Claim("pareto_efficiency", "OEF Table 1", refuted_by=THREE_TYPES),
        Claim("strategy_proofness", "Gandiva_fair Sec. 3.4", refuted_by=OEF_EQUATION_1),
    )
    examples = (
        Example(
            "OEF Eq. (1)",
            OEF_EQUATION_1,
            shares=[[1, "4/45"], [0, "7/15"], [0, "4/9"]],
            utilities=["53/45", "7/5", "16/9"],
            printed="1.18, 1.41, 1.76: products of the rounded shares; right are 1.18, 1.40, 1.78",
        ),
        Example(
            "OEF Sec. 2.4: user 1 reports 2.8",
            OEF_EQUATION_1.misreport("u1", [1, "2.8"]),
            shares=[[1, "28/261"], [0, "13/29"], [0, "4/9"]],
        ),
        Example(
            "Gandiva_fair Table 3",
            Market.of([[1, "1.25"], [1, 5], [1, "6.25"]], capacity=[60, 12], types=["K80", "V100"]),
            shares=[[40, 0], [20, 4], [0, 8]],
            utilities=[40, 40, 50],
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, tuple[Trade, ...]]:
        """Return the shares (n, k) and the trades that led to them from the equal split.

        Where floats cannot say who has room enough for a trade, a small market is traded in rationals.
        """
        try:
            return self._traded(problem, exact_fallback=not problem.exact and problem.speedup.size <= MOST_EXACT)
        except NotSolved:  # in floats
            return self._traded(problem.as_(Fraction), exact_fallback=False)

    def _traded(self, problem: Market, *, exact_fallback: bool) -> tuple[Array, tuple[Trade, ...]]:
        held = np.array(EqualSplit().compute(problem, None)[0])
        trades: list[Trade] = []
        for fast, slow in type_pairs(problem):
            for trade in _trades_of_pair(problem, held, fast, slow, exact_fallback):
                try:
                    left()
                except OutOfTime as over:
                    over.solution = _until(problem, held, len(trades))
                    raise
                _carry_out(problem, held, trade)
                trades.append(trade)
        return held, tuple(trades)

    def many_bundles(self, problem: Market, before: Any) -> ManyBundles:
        """Return who trades on many misreports at once."""
        equal, _ = EqualSplit().compute(problem, None)
        return partial(bundles_after_trades, problem, equal)

    def certify(self, decision: Allocation) -> Certificate:
        """Return the certificate of the trades."""
        self._require_exact(decision)
        return Certificate(TRADES, decision.market, decision.shares, [trade.to_json() for trade in decision.evidence])


def type_pairs(market: Market) -> Iterator[tuple[int, int]]:
    """Yield the pairs (fast, slow) of types in the order of trading: the fastest with the slowest first."""
    order = market.type_order()
    for place in range(len(order) - 1, 0, -1):
        for slow in order[:place]:
            yield order[place], slow


def replay(market: Market, trades: Sequence[Trade]) -> Array:
    """Return the shares (n, k) after carrying out ``trades`` in order, from the equal split of ``market``.

    Errors: `BadInput` where a trade names an unknown user or type, or gives away more than its giver has (in floats, by
    more than rounding).
    """
    held = np.array(EqualSplit().compute(market, None)[0])
    for number, trade in enumerate(trades, start=1):
        _carry_out(market, held, trade)
        least = 0 if market.exact else -1e-9 * market.capacity.max()
        if (held < least).any():
            i, j = (int(place) for place in np.argwhere(held < least)[0])
            raise BadInput(
                f"user {market.users[i]!r} would be left with {held[i, j]} of {market.types[j]!r}",
                place=f"trade {number}",
                remedy="Give the trades of this market, in order",
            )
    return held


def _trades_of_pair(market: Market, held: Array, fast: int, slow: int, exact_fallback: bool) -> Iterator[Trade]:
    """Yield the trades in one pair of types; the caller carries out each on ``held`` before asking for the next.

    ``exact_fallback``: raise `NotSolved` where rounding may decide who has room enough.
    """
    users, limit = range(len(market.users)), market.demand
    ratio = list(map(_ratio, market.speedup[:, fast].tolist(), market.speedup[:, slow].tolist()))
    slack = market.arithmetic.tolerance(CRUMB)
    rank = _ranks(market, ratio, fast, slow)
    # both begin with the user who trades next; who has nothing left to give gets nothing again
    may_buy = deque(sorted(users, key=lambda i: (-rank[i], market.users[i])))
    may_sell = deque(sorted(users, key=lambda i: (rank[i], market.users[i])))
    for _ in range(2 * len(market.users) + 1):
        for waiting, given_away in ((may_buy, slow), (may_sell, fast)):
            while waiting and not held[waiting[0], given_away] > 0:
                waiting.popleft()
        if not may_buy or not may_sell or not rank[may_buy[0]] > rank[may_sell[0]]:
            return
        buyer, seller = may_buy[0], may_sell[0]
        owners_of_slow = (i for i in islice(may_buy, 1, None) if held[i, slow] > 0)
        next_ = next((i for i in owners_of_slow if ratio[i] < INFINITY), seller)
        second, bid = ratio[next_], rank[next_] > rank[seller]
        offered, wanted = held[seller, fast], held[buyer, slow]
        price = second if bid else _middle(ratio[seller], ratio[buyer], wanted / offered)
        for_all = wanted / price
        if abs(for_all - offered) <= slack * offered:  # both give all: a crumb that is left would trade again
            for_all = offered
        most = min(offered, for_all)
        seller_room = buyer_room = most
        if limit is not None:
            # one fast GPU changes the number of the seller's GPUs by price - 1, and that of the buyer's by 1 - price
            unsure = exact_fallback and 0 < abs(price - 1) <= ALIKE
            seller_room = _room(most, limit[seller], held[seller].sum(), slack, price - 1, unsure)
            buyer_room = _room(most, limit[buyer], held[buyer].sum(), slack, 1 - price, unsure)
        if seller_room < most:
            may_sell.popleft()
        if buyer_room < most:
            may_buy.popleft()
        amount = min(seller_room, buyer_room)
        if amount > 0:
            # a user that gives everything gives exactly that: in floats price * (wanted / price) may differ from wanted
            given = wanted if amount == for_all else amount * price
            names = market.users[buyer], market.users[seller], market.types[fast], market.types[slow]
            yield Trade(*names, price, amount, given)
    raise AssertionError("more than 2n trades in one pair of types: the ratios are not ordered")


def _until(market: Market, held: Array, trades: int) -> Solution:
    """Return what is known when time is over: no trade hurts anybody, so that nobody ends with less than it has."""
    total, most = market.utility(held).sum(), (market.speedup.max(axis=0) * market.capacity).sum()
    n, k = market.shape
    rounded = 0 if market.exact else 8 * ROUNDING * n * k * k * most  # of all trades that there may be
    word = f"time was over after {trades} trades; nobody ends with less"
    values, lower, upper = {"share": held}, total - rounded, most + rounded
    return Solution(Status.LIMIT, word, SecondPriceTrading.name, total, upper, lower=lower, upper=upper, values=values)


def _carry_out(market: Market, held: Array, trade: Trade) -> None:
    buyer, seller = market.index(trade.buyer), market.index(trade.seller)
    if missing := {trade.fast, trade.slow} - set(market.types):
        raise BadInput(f"there is no type {min(missing)!r}", remedy=f"The types are {', '.join(market.types)}")
    fast, slow = market.types.index(trade.fast), market.types.index(trade.slow)
    held[buyer, fast] += trade.fast_amount
    held[seller, fast] -= trade.fast_amount
    held[buyer, slow] -= trade.slow_amount
    held[seller, slow] += trade.slow_amount


def _ranks(market: Market, ratio: list[Any], fast: int, slow: int) -> list[int]:
    """Return the places of the ratios in their order, alike for equal ones, as if nothing had been rounded.

    Floats decide nearly all comparisons, and faster than Fractions: a quotient that is rounded correctly keeps the
    order, so that only ratios that are equal as floats are compared as the fractions that they are.
    """
    near, exact = list(map(float, ratio)), ratio
    seen = Counter(near)
    if not market.exact:
        speeds = zip(market.speedup[:, fast].tolist(), market.speedup[:, slow].tolist(), near, strict=True)
        exact = [_ratio(Fraction(a), Fraction(b)) if seen[own] > 1 and own < INFINITY else own for a, b, own in speeds]
    keys = list(zip(near, exact, strict=True))
    place = {key: at for at, key in enumerate(sorted(set(keys)))}
    return [place[key] for key in keys]


def _ratio(on_fast: Any, on_slow: Any) -> Any:
    if not on_fast > 0:
        return on_fast  # 0: the user never buys, and sells at any price
    return on_fast / on_slow if on_slow > 0 else INFINITY


def _middle(low: Any, high: Any, all_for_all: Any) -> Any:
    if high < INFINITY:
        return (low + high) / 2
    return 2 * low if low > 0 else all_for_all


def _room(most: Any, limit: Any, total: Any, slack: Any, each: Any, unsure: bool) -> Any:
    """Return how many of ``most`` fast GPUs can change hands until a user's ``total`` reaches its ``limit``, a demand.

    Each adds ``each`` GPUs to the total. Of that the part ``slack`` is rounding: neither room, nor a lack of it.
    Errors: `NotSolved` where ``each`` is ``unsure`` and may matter.
    """
    spare, crumb = limit - total, slack * total
    if unsure and each > 0 and spare <= most * each + crumb:
        raise NotSolved("floats do not tell whether a user has room enough for a trade")
    if not each > 0 or spare >= most * each - crumb:
        return most
    return spare / each if spare > crumb else 0
