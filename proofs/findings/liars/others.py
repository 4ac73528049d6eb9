"""Other lies than one user's report: two users together, one user as two, and claims of demands.

What is stored was found by `searched`, which goes on for as long as one likes. Here it is decided again, exactly, with
every decision certified, and once more in floats by each policy's own method.

Non-cooperative OEF, claims of demands: let t be the level at the truth, t' after the claim, and u what the liar can use
of its bundle then. If it claims more, u > t is impossible, since the same parts of that bundle and the others' bundles,
worth t' >= u, would give all of them more than t at the truth. If it claims less, what all have then was possible at
the truth. So no claim pays.

Nash welfare: if a claim left prices as they are, what the liar buys, cut to its demand, is something that it could have
bought at the truth. So it gains by what its claim does to prices, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fairopt import allocate
from fairopt.compare.incentives import best_misreport
from fairopt.models import (
    CooperativeOEF,
    EqualSplit,
    MaxEfficiency,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly
from fairopt.proofs.ledger.wording import both, listed, rows
from fairopt.properties import Effort
from fairopt.properties.misreports.kinds import MisreportKind, reached
from fairopt.report import Statement

#: How far decisions in floats may be from the exact ones, relative.
LITTLE = 1e-6
HALF = Fraction(1, 2)
NEWLINE = "\n"


@dataclass(frozen=True)
class Stored:
    """A lie: true speedups (n, k), what each row says instead, and which rows are whose; the first n are the users."""

    policy: Policy
    capacity: Sequence[object]
    truth: Sequence[Sequence[object]]
    told: Sequence[Sequence[object]]
    liars: dict[int, tuple[int, ...]]
    weight: Sequence[object] | None = None
    demand: Sequence[object] | None = None
    claimed: Sequence[object] | None = None

    def factor(self) -> Fraction:
        """Return what the liar who gains least gains: its true throughput over that of the truth, exactly."""
        truth = Market.of(self.truth, self.capacity, demand=self.demand)
        told = Market.of(self.told, self.capacity, weight=self.weight, demand=self.claimed)
        before, after = decide(self.policy, truth), decide(self.policy, told)
        factors = [value / before.utilities[user] for user, value in reached(truth, self.liars, after.shares).items()]
        nearly = allocate(self.policy, told.as_(float)).shares.astype(float)
        floats = reached(truth.as_(float), self.liars, nearly)
        own = allocate(self.policy, truth.as_(float)).utilities.astype(float)
        again = min(value / own[user] for user, value in floats.items())
        require(abs(again - min(factors)) <= LITTLE * again, f"{self.policy.name}: the same in floats")
        return Fraction(min(factors))

    def __str__(self) -> str:
        gpus = ", ".join(map(str, self.capacity))
        return f"{self.policy.name} {both(self.factor())} on {rows(self.truth)}, {gpus} GPUs, told {rows(self.told)}"


TOGETHER = (
    Stored(PartialAllocation(), (1, 1), ((1, 1), (1, 1)), ((1, "1/1000"), ("1/1000", 1)), {0: (0,), 1: (1,)}),
    Stored(
        SecondPriceTrading(),
        (1, 6),
        ((1, 10), (30, 1), (1, 10)),
        ((1, 10), ("45/2", "5/3"), ("2/3", 5)),
        {1: (1,), 2: (2,)},
    ),
    Stored(
        NonCooperativeOEF(),
        (2, 2),
        ((1, 1), (1, 30), (1, 30)),
        ((1, 1), ("1/5", "30/7"), (1, "30/7")),
        {1: (1,), 2: (2,)},
    ),
    Stored(
        CooperativeOEF(),
        (1, 1),
        ((2, 1), (3, 30), (10, 1)),
        (("1/6", 1), (3, 30), ("50/21", "11/10")),
        {0: (0,), 2: (2,)},
    ),
    Stored(
        MaxMin(), (1, 2), ((2, 10), (10, 2), (2, 30)), ((2, 10), ("65/3", "82/5"), ("17/2", "20/3")), {1: (1,), 2: (2,)}
    ),
    Stored(NashWelfare(), (1, 2), ((5, 3), (1, 1), (1, 3)), ((5, 3), ("6/5", "5/6"), (1, "51/8")), {1: (1,), 2: (2,)}),
)
SPLIT = (
    Stored(
        PartialAllocation(),
        (3, 1),
        ((30, 1), (1, 2)),
        ((30, 1), ("2/5", 26), (19, "6/5")),
        {1: (1, 2)},
        weight=(1, HALF, HALF),
    ),
    Stored(
        SecondPriceTrading(),
        (3, 1),
        ((1, 1), (1, 30), (1, 1)),
        ((1, 1), ("3/5", "5/7"), (1, 1), (1, 30)),
        {1: (1, 3)},
        weight=(1, HALF, 1, HALF),
    ),
    Stored(
        CooperativeOEF(),
        (1, 6),
        ((10, 1), (2, 1), (5, 10)),
        (("40/19", 1), (2, 1), (5, 10), (54, "5/17")),
        {0: (0, 3)},
        weight=(HALF, 1, 1, HALF),
    ),
)
DEMANDS = (
    Stored(EqualSplit(), (1, 6), ((5, 30), (30, 3)), ((5, 30), (30, 3)), {1: (1,)}, demand=(1, 1), claimed=(1, 60)),
    Stored(
        MaxMin(),
        (6, 1),
        ((3, 10), (2, 30), (5, 5)),
        ((3, 10), (2, 30), (5, 5)),
        {1: (1,)},
        demand=(3, 1, 1),
        claimed=(3, 3, 1),
    ),
    Stored(
        WaterFilling(),
        (1, 3),
        ((1, 3), (1, 10), (3, 1)),
        ((1, 3), (1, 10), (3, 1)),
        {2: (2,)},
        demand=(2, 2, 1),
        claimed=(2, 2, 2),
    ),
    Stored(
        SecondPriceTrading(),
        (6, 2),
        ((10, 5), (1, 5), (1, 10)),
        ((10, 5), (1, 5), (1, 10)),
        {2: (2,)},
        demand=(3, 3, 1),
        claimed=(3, 3, 3),
    ),
    Stored(
        CooperativeOEF(), (2, 1), ((2, 30), (1, 30)), ((2, 30), (1, 30)), {1: (1,)}, demand=(1, 1), claimed=(1, "11/21")
    ),
    Stored(
        MaxEfficiency(),
        (1, 1),
        ((1, 100), (0, "199/2")),
        ((1, 100), (0, "199/2")),
        {0: (0,)},
        demand=(1, 2),
        claimed=(2, 2),
    ),
)
#: Random markets on which each of so many claims is decided exactly under non-cooperative OEF.
ASKED, CLAIMS = 8, ("1/2", "3/2", 3, 40)


def searched(policy: Policy, kind: MisreportKind, markets: int, seed: int = 0) -> Statement | None:
    """Return the lie that pays most on random markets of two or three users and two types; the same for the same seed.

    Speedups are of 1, 2, 3, 5, 10 and 30, with demands of 1 to 3 GPUs where lies are about demands.
    """
    random, best = np.random.default_rng(seed), None
    for number in range(markets):
        n = int(random.integers(2, 4))
        speedup, capacity = random.choice([1, 1, 2, 3, 5, 10, 30], (n, 2)), random.choice([1, 1, 2, 3, 6], 2)
        market = Market.of(speedup.tolist(), capacity.tolist())
        if not kind.asked_of(market):
            market = Market.of(speedup.tolist(), capacity.tolist(), demand=random.integers(1, 4, n).tolist())
        found = best_misreport(policy, market, kind, Effort(evaluations=60, seed=number))
        best = max(filter(None, (best, found)), key=lambda each: each.factor, default=None)
    return best


def together() -> Finding:
    """Two users report other speedups, and both gain."""
    first, *others = TOGETHER
    require(first.factor() == Fraction(2000, 1001), "the formula 2 / (1 + e)")
    return Finding(
        Ruling.QUALIFIED,
        "Two users gain together also where one alone cannot, under partial allocation nearly twice: as if they wanted "
        "different types, nothing is withheld from them. Where two users are all there are, no Pareto-efficient rule "
        "lets both gain. What is proved: own-lies-coalitions.\n"
        f"Two alike: {first}, 2 / (1 + e) for reports of e, by hand. With n users alike, on n types, all together gain "
        "(n / (n - 1))^(n - 1), which tends to e.\n"
        "The largest found on small markets, each of the two gaining at least so much: "
        f"{listed(map(str, others))}. Every decision is certified.",
    )


def sybils() -> Finding:
    """A user enters as two."""
    copied = []
    for n in (2, 3, 10):
        truth = Market.of([[1, 2]] * n, [1, 1])
        shares = decide(EqualSplit(), Market.of([[1, 2]] * (n + 1), [1, 1])).shares
        ratio = reached(truth, {0: (0, n)}, shares)[0] / truth.fair_utility()[0]
        require(ratio == Fraction(2 * n, n + 1), "2 n / (n + 1)")
        copied.append(f"{both(ratio)} for n = {n}")
    rules = ("envy_free", "cooperative_oef", "noncooperative_oef", "gavel", "nash_welfare")
    proofs = [theorem("Sybils", f"{each}_sybils_ratio") for each in rules]
    return Finding(
        Ruling.QUALIFIED,
        "Where each has all of the user's weight, it gains under every rule that uses weights. Where the weight is "
        "divided between them, the bounds on one report stand, and partial allocation is truthful no more.\n"
        f"All of the weight each: 2 n / (n + 1) times the throughput even under equal-split, for n users "
        f"({listed(copied)}); what is proved of it: own-lies-weights, with f = 2.\n"
        "Divided: the bounds of rules without envy, of Nash welfare, of max-min and of equal throughput speak "
        f"of what the parts hold together ({listed(proofs)}), and that of trading of what the others keep (proof in "
        "words: proofs/findings/liars/bounds.py).\n"
        "Partial allocation: at most (2 - 1/n) (n / (n - 1))^(n - 1) for one of n users of equal weight, below 2 e "
        "(proof in words: coalitions.py).\n"
        f"Found: {listed(map(str, SPLIT))}. Every decision is certified.",
    )


def demands() -> Finding:
    """A user claims another demand."""
    found = [f"{each.policy.name} {both(each.factor())}, {_claim(each)}" for each in DEMANDS]
    _require_none_pays()
    return Finding(
        Ruling.QUALIFIED,
        "Under most rules a false demand can pay; without a bound under rules that give all types in the same "
        "proportions (own-lies-unread) and under the largest total. Under non-cooperative OEF none pays.\n"
        "Claiming more than one can use pays under max-min and water filling, whose fair shares count demands, under "
        "second-price trading, the equal split and the largest total; claiming less under cooperative OEF, a little.\n"
        f"{NEWLINE.join(f'{each}.' for each in found)}\n"
        "The largest total, without a bound: on (1, M), (0, M - 1/2), one GPU of each type, where user 1 can use one, "
        "it has 1, and M by claiming 2.\n"
        "Non-cooperative OEF: no claim pays (proof in words: others.py; checked on "
        f"{ASKED * len(CLAIMS)} random claims, exactly).\n"
        f"Partial allocation: claiming more pays, {_partial_demand():.3f} times on (3, 30), (5, 10), (2, 10), "
        "6, 1 GPUs, demands (2, 2, 1), where user 3 claims 3/2 (in floats, as shares are irrational).\n"
        "Nash welfare: a claim can pay only by what it does to prices (proof in words: others.py); none was found that "
        "does, on 20 markets with 60 claims each, which proves nothing. Every decision is certified.",
    )


def _partial_demand() -> float:
    """Return what a larger demand gives under partial allocation, in floats."""
    truth, told = (
        Market.of([[3, 30], [5, 10], [2, 10]], [6, 1], demand=[2, 2, demand]).as_(float) for demand in (1, "3/2")
    )
    after = reached(truth, {2: (2,)}, allocate(PartialAllocation(), told).shares.astype(float))
    return float(after[2] / allocate(PartialAllocation(), truth).utilities[2])


def _require_none_pays() -> None:
    """Under non-cooperative OEF no claim of a demand pays."""
    random = np.random.default_rng(5)
    for _ in range(ASKED):
        n = int(random.integers(2, 4))
        speedup, demand = random.choice([1, 2, 3, 5], (n, 3)), random.integers(1, 3, n).tolist()
        truth = Market.of(speedup.tolist(), random.integers(1, 3, 3).tolist(), demand=demand)
        own = exactly(NonCooperativeOEF(), truth).utilities[0]
        for claim in CLAIMS:
            told = replace(truth, demand=Market.of([[1]] * n, [1], demand=[claim, *demand[1:]]).demand)
            after = reached(truth, {0: (0,)}, exactly(NonCooperativeOEF(), told).shares)[0]
            require(after <= own, "non-cooperative OEF: no claim of a demand pays")


def _claim(each: Stored) -> str:
    (user,) = each.liars
    true, claimed = np.array(each.demand)[user], np.array(each.claimed, dtype=object)[user]
    gpus = ", ".join(map(str, each.capacity))
    return (
        f"{rows(each.truth)}, {gpus} GPUs, demands {rows([each.demand])}: user {user + 1} claims {claimed}, not {true}"
    )
