"""Gandiva_fair: its data, its examples, and what it claims of trading at the second price (Sec. 2, 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from random import Random
from statistics import median

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.datasets import gandiva_market, gandiva_table1, gandiva_table3
from fairopt.models import EqualSplit, SecondPriceTrading, WaterFilling
from fairopt.models.gandiva_fair.second_price_trading import Trade
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import Stored, counterexample, theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, holds
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency
from fairopt.proofs.ledger.wording import both, listed, percent, prints_as, rows, speedups
from fairopt.properties import SharingIncentive

TRADING, BEST = SecondPriceTrading(), SharingIncentiveEfficiency()
#: Table 1 as printed: milliseconds per mini-batch on a K80, then percent of the K80's speed on P40, P100 and V100.
PRINTED = {
    "VAE": "11.5 117 119 125",
    "SuperResolution": "207.5 143 173 187",
    "DCGAN": "183.4 434 431 642",
    "GRU": "48.4 300 358 481",
    "LSTM": "48.9 310 358 481",
    "ResNet-50": "134 317 334 514",
    "ResNext-50": "2005.7 370 412 633",
}
NEWER = ("P40", "P100", "V100")
#: Table 3 as printed: speedups of A, B, C; what fair shares are worth; holdings and worth after trading.
TABLE_3_FAIR, TABLE_3_TRADED, TABLE_3_WORTH = "25 40 45", "40 0; 20 4; 0 8", "40 40 50"


def measured_speedups() -> Finding:
    """Table 1: the data set holds the printed numbers."""
    table, wrong = {row.model: row.over("K80") for row in gandiva_table1()}, []
    for row in gandiva_table1():
        found = [1000 / (row.steps_per_s["K80"] or 1), *(100 * table[row.model][name] for name in NEWER)]
        if found != [Fraction(number) for number in PRINTED[row.model].split()]:
            wrong.append(row.model)
    slower = [
        f"{model} ({percent(row[a], 0)} on {a}, {percent(row[b], 0)} on {b})"
        for model, row in table.items()
        for a, b in zip(("K80", *NEWER), NEWER, strict=False)
        if row[b] <= row[a]
    ]
    least, most = (pick(table, key=lambda model: table[model]["V100"]) for pick in (min, max))
    agree = not wrong and table.keys() == PRINTED.keys()
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"fairopt.datasets.gandiva_table1() holds the {4 * len(table)} printed numbers (milliseconds per mini-batch "
        f"on a K80; speedups over it, {percent(table[least]['V100'], 0)} for {least} to "
        f"{percent(table[most]['V100'], 0)} for {most} on a V100); the measurements themselves need the GPUs. "
        f"That all models gain from newer GPUs is not quite so in the table: {listed(slower)}. Table 3's example says "
        f"5 and 6.25 where Table 1 has {table['DCGAN']['V100']} and {table['ResNext-50']['V100']}.",
    )


@dataclass(frozen=True)
class Slice:
    """A job of a user on a server for a part of the time; the job takes ``gpus`` while it runs."""

    user: str
    job: int
    server: int
    part: Fraction
    gpus: int = 2


def five_options() -> Finding:
    """Fig. 1: what A, B and C get from five ways to schedule five jobs of 2 GPUs on two servers of 4."""
    market = Market.of([[1], [1], [1]], [8], demand=[4, 4, 2], users=["A", "B", "C"])
    fair = [Fraction(value) for value in EqualSplit().compute(market, None)[0][:, 0]]
    again = allocate(WaterFilling(), market, Exact()).shares[:, 0].tolist()
    one, half, third = Fraction(1), Fraction(1, 2), Fraction(2, 3)
    often = ((1, half / 2), (2, half))
    others = [Slice("A", 2, 2, one), Slice("B", 2, 2, one)]
    options = {
        "(a) C waits": [Slice("A", 1, 1, one), Slice("B", 1, 1, one), *others],
        "(b) a job of B waits": [Slice("A", 1, 1, one), Slice("C", 1, 1, one), *others],
        "(c) one node is sliced": [Slice(user, 1, 1, third) for user in "ABC"] + others,
        "(d) A and B share": [Slice("C", 1, 1, one), Slice("A", 1, 1, half), Slice("B", 1, 1, half), *others],
        "(e) jobs migrate": [
            Slice("C", 1, 1, one),
            *(Slice(user, job, server, part) for user in "AB" for job in (1, 2) for server, part in often),
        ],
    }
    shares = {name: _shares(slices) for name, slices in options.items()}
    reach = [name for name, got in shares.items() if got == fair]
    by_job = {name: _equal_among_jobs(options[name]) for name in reach}
    sliced = shares["(c) one node is sliced"]
    agree = fair == again == [3, 3, 2] and sliced[2] == Fraction(4, 3) and len(reach) == 2
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"Max-min with demands 4, 4 and 2 gives {listed(map(str, fair))} (equal split with demands and water filling, "
        f"both exact); without demands it would be {both(Fraction(8, 3))} each, printed 2.66. "
        + "; ".join(f"{name}: {', '.join(map(str, got))}" for name, got in shares.items())
        + f". Fair among users are {listed(name[:3] for name in reach)}; among the jobs of a user too is "
        f"{listed(name[:3] for name, equal in by_job.items() if equal)}. In (c), A and B have a job on each node.",
    )


def _shares(slices: Sequence[Slice]) -> list[Fraction]:
    """Return GPUs in the mean over time for A, B and C; no server gives more than it has, no job runs twice at once."""
    for server in (1, 2):
        used = sum(each.part * each.gpus for each in slices if each.server == server)
        require(used <= 4, f"server {server} gives no more than its GPUs")
    jobs = {(each.user, each.job) for each in slices}
    once = all(sum(each.part for each in slices if (each.user, each.job) == job) <= 1 for job in jobs)
    require(once, "no job runs twice at once")
    return [sum((each.part * each.gpus for each in slices if each.user == user), Fraction(0)) for user in "ABC"]


def _equal_among_jobs(slices: Sequence[Slice]) -> bool:
    of_job: dict[tuple[str, int], Fraction] = {}
    for each in slices:
        of_job[each.user, each.job] = of_job.get((each.user, each.job), Fraction(0)) + each.part * each.gpus
    return all(len({got for (user, _), got in of_job.items() if user == name}) == 1 for name in "ABC")


def trading_example() -> Finding:
    """Table 3: 60 K80 and 12 V100."""
    market = gandiva_table3()
    fair, decision = market.fair_utility(), decide(TRADING, market)
    (trade,) = decision.evidence
    wanted = [[Fraction(value) for value in row.split()] for row in TABLE_3_TRADED.split(";")]
    agree = (
        all(map(prints_as, fair, TABLE_3_FAIR.split()))
        and decision.shares.tolist() == wanted
        and all(map(prints_as, decision.utilities, TABLE_3_WORTH.split()))
        and trade.price == 5
    )
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"Fair shares are worth {listed(map(str, fair))}. One trade follows (the text makes it four, of a V100 each): "
        f"{trade.buyer} buys {trade.fast_amount} V100 of {trade.seller} at {trade.price} K80 each, the bid of B. A, B "
        f"and C end with {rows(decision.shares)}, worth {listed(map(str, decision.utilities))}. The table calls B's "
        "model DCGAN, the text ResNet.",
    )


def sharing_incentive() -> Finding:
    """Sec. 3.4: nobody ends below its fair share."""
    proof = theorem("Trading", "trading_sharing_incentive")
    between = theorem("Trading", "second_price_acceptable"), theorem("Trading", "middle_price_acceptable")
    trading = theorem("Trading", "second_price_trading_sharing_incentive")
    trades = 0
    markets = list(_markets(80, zeros=True))
    for market in markets:
        decision = decide(TRADING, market)
        trades += len(decision.evidence)
        if not all(_acceptable(market, trade) for trade in decision.evidence):
            return Finding(Ruling.OPEN, f"A trade on {speedups(market)} is not one that the theorem speaks of.")
        if not holds(SharingIncentive(), market, decision.shares):
            return Finding(Ruling.REFUTED, f"Somebody ends below its fair share on {speedups(market)}.")
    return Finding(
        Ruling.PROVED,
        "A trade at a price between the seller's and the buyer's ratio of speedups hurts neither side nor anybody "
        "else, so that any number of them from the fair shares on leaves nobody below its own, for all sizes, "
        f"weights and zeros ({proof}). The second price, or the middle where nobody else bids, lies there "
        f"({'; '.join(between)}), so that it is true of Gandiva_fair's own trades ({trading}). Computed as well: all "
        f"{trades} prices on {len(markets)} random markets lie there, and each outcome is certified. Markets with "
        "demands are not meant.",
    )


def _acceptable(market: Market, trade: Trade) -> bool:
    """Whether the price is between the two ratios, written without dividing."""
    fast, slow = market.types.index(trade.fast), market.types.index(trade.slow)
    buyer, seller = (market.speedup[market.index(name)] for name in (trade.buyer, trade.seller))
    return bool(
        trade.buyer != trade.seller
        and trade.fast_amount >= 0
        and seller[fast] <= trade.price * seller[slow]
        and trade.price * buyer[slow] <= buyer[fast]
    )


def incentive_compatibility() -> Finding:
    """Sec. 3.4: nobody gains by speeding its jobs up or slowing them down."""
    larger, smaller, winner = (counterexample(f"gandiva-sp-{which}") for which in ("larger", "smaller", "winner"))
    for stored in (larger, smaller, winner):
        if stored.policy != TRADING.name or _gain(stored) != stored.number("gain"):
            return Finding(Ruling.OPEN, f"The certificate {stored.name} and the policy disagree.")
    honest, misreported = _decisions(winner)
    user = winner.data["user"]
    ratio = winner.market.speedup[:, 1] / winner.market.speedup[:, 0]
    top = winner.market.index(user)
    first = honest.evidence[0]
    others = [ratio[i] for i in range(len(ratio)) if i not in (top, winner.market.index(first.seller))]
    narrow = ratio[top] == max(ratio) and first.buyer == user and first.price in others
    if not narrow:
        return Finding(Ruling.OPEN, f"In {winner.name} the liar's price is not another's bid.")
    own = [trade for trade in misreported.evidence if trade.buyer == user]
    second = [winner.market.users[i] for i in range(len(ratio)) if ratio[i] == first.price]
    before_own = [trade.buyer for trade in misreported.evidence[: misreported.evidence.index(own[0])]] if own else []
    require(len(second) == 1 and before_own == second, f"{second} alone bids {first.price} and then buys before {user}")
    bought = _after(winner.market, misreported, len(before_own))
    spent = bought[winner.market.index(second[0]), 0] == 0
    seller, buyer = (winner.market.index(name) for name in (own[0].seller, user))
    told_ratio = winner.table("report")[1] / winner.table("report")[0]
    middle = own[0].price == (ratio[seller] + told_ratio) / 2 and buyer == top
    require(spent and middle, f"{second[0]} has spent all, and {user} pays the middle")
    below = [1, others[0] - Fraction(1, 10)]  # no tie with the other bid
    told = decide(TRADING, winner.market.misreport(user, below))
    gain = (winner.market.speedup[top] * (told.shares[top] - honest.shares[top])).sum()
    if gain <= 0:
        return Finding(Ruling.OPEN, f"The lie of {winner.name} gains by a tie only.")
    return Finding(
        Ruling.REFUTED,
        f"Both ways of lying pay. A seller speeds up: {_told(larger)} (gandiva-sp-larger). A buyer slows down: "
        f"{_told(smaller)} (gandiva-sp-smaller). The narrow form, that at least the winning bidder cannot gain where "
        f"another's bid is its price, falls as well: {_told(winner)} (gandiva-sp-winner). In truth {user} buys first, "
        f"at {first.price}, the bid of {second[0]}; after the lie {before_own[0]} buys first and, when it has nothing "
        f"left to bid with, {user} pays the middle, {own[0].price}. No tie is needed: {rows([below])} gains {gain}. In "
        "a single trade the winner's own bid does not enter the price: the sequence of trades is what rewards the lie.",
    )


def _after(market: Market, decision: Allocation, trades: int) -> Array:
    """Return what users hold (n, k) after so many of the trades that a decision made, from the equal split on."""
    held = market.equal_split()
    for trade in decision.evidence[:trades]:
        fast, slow = market.types.index(trade.fast), market.types.index(trade.slow)
        buyer, seller = market.index(trade.buyer), market.index(trade.seller)
        held[[buyer, seller], fast] += np.array([1, -1]) * trade.fast_amount
        held[[buyer, seller], slow] += np.array([-1, 1]) * trade.fast_amount * trade.price
    return held


def _decisions(stored: Stored) -> tuple[Allocation, Allocation]:
    report = stored.table("report").tolist()
    return decide(TRADING, stored.market), decide(TRADING, stored.market.misreport(stored.data["user"], report))


def _gain(stored: Stored) -> Fraction:
    honest, misreported = _decisions(stored)
    user = stored.market.index(stored.data["user"])
    return Fraction((stored.market.speedup[user] * (misreported.shares[user] - honest.shares[user])).sum())


def _told(stored: Stored) -> str:
    return (
        f"on {speedups(stored.market)}, {stored.data['user']} gains {stored.number('gain')} by reporting "
        f"{rows([stored.table('report')])}"
    )


def largest_total() -> Finding:
    """Sec. 3.4: trading makes the cluster as efficient as fairness allows."""
    stored, better = counterexample("gandiva-max-trading"), counterexample("gandiva-max-better")
    market, shares = stored.market, better.table("allocation")
    judged = (better.data["property"], better.data["answer"]) == (SharingIncentive.name, "HOLDS")
    require(judged and better.market == market, f"{better.name} is sharing-incentive on the market of {stored.name}")
    totals = [market.utility(table).sum() for table in (stored.table("allocation"), shares)]
    table_3 = _part(gandiva_table3())
    models = [row.model for row in gandiva_table1()]
    real = [_part(gandiva_market({"K80": 60, "P100": 24, "V100": 12}, chosen)) for chosen in combinations(models, 3)]
    random = [_part(each) for each in _markets(150)]
    if totals[1] <= totals[0]:
        return Finding(Ruling.OPEN, "The better allocation has no larger total than trading's.")
    return Finding(
        Ruling.REFUTED,
        f"On {speedups(market)}, trading ends at a total of {both(totals[0])}; {rows(shares)} leaves nobody below its "
        f"fair share and has {both(totals[1])} (gandiva-max-trading, gandiva-max-better). On Table 3's own example "
        f"trading reaches {percent(table_3)} of the largest total that leaves everybody its fair share. Of that it "
        f"reaches {_spread(real)} on the {len(real)} choices of three models of Table 1 with 60 K80, 24 P100 and 12 "
        f"V100, and {_spread(random)} on {len(random)} random markets; it is the largest on "
        f"{sum(part == 1 for part in random)} of these. All totals are exact, in units of the slowest type.",
    )


def _part(market: Market) -> Fraction:
    """Return trading's total over the largest total that leaves everybody its fair share."""
    best = allocate(BEST, market, Exact())
    return Fraction(allocate(TRADING, market).utilities.sum() / best.utilities.sum())


def _spread(parts: Sequence[Fraction]) -> str:
    return f"{percent(min(parts))} to {percent(max(parts))}, median {percent(median(parts))},"


def _markets(count: int, *, zeros: bool = False) -> Iterator[Market]:
    """Yield random markets of 2 to 6 users and 2 to 4 types: speedups rise from 1, or are anything with ``zeros``."""
    dice = Random(0)
    for _ in range(count):
        n, k = dice.randint(2, 6), dice.randint(2, 4)
        capacity = [dice.randint(1, 9) for _ in range(k)]
        if not zeros:
            rising = [[1, *sorted(Fraction(dice.randint(5, 32), 4) for _ in range(k - 1))] for _ in range(n)]
            yield Market.of(rising, capacity)
            continue
        anything = [[dice.choice([0, 1, 1, 2, 3, 5]) for _ in range(k)] for _ in range(n)]
        for row in anything:
            row[dice.randrange(k)] += 1
        yield Market.of(anything, capacity, weight=[dice.randint(1, 3) for _ in range(n)])
