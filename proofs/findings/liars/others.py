"""Other lies than one user's report: two users together, one user as two, and claims of demands.

What is stored was found by `searched`, which goes on for as long as one likes. Here it is decided again, exactly, with
every decision certified, and once more in floats by each policy's own method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt import allocate
from fairopt.incentives import Lie, LieKind, PaidLie, best_lie
from fairopt.ledger import Finding, Ruling
from fairopt.models import (
    CooperativeOEF,
    EqualSplit,
    MaxMin,
    NashWelfare,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
)
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.measuring import decide
from fairopt.proofs.ledger.wording import both, listed, rows
from fairopt.properties import Effort

#: How far decisions in floats may be from the exact ones, relative.
LITTLE = 1e-6
HALF = Fraction(1, 2)


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
        lie = Lie(Market.of(self.told, self.capacity, weight=self.weight, demand=self.claimed), self.liars)
        before, after = decide(self.policy, truth), decide(self.policy, lie.told)
        factors = [value / before.utilities[user] for user, value in lie.reached(truth, after.shares).items()]
        floats = lie.reached(truth.as_(float), allocate(self.policy, lie.told.as_(float)).shares.astype(float))
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
        CooperativeOEF(), (2, 1), ((2, 30), (1, 30)), ((2, 30), (1, 30)), {1: (1,)}, demand=(1, 1), claimed=(1, "11/21")
    ),
)


def searched(policy: Policy, kind: LieKind, markets: int, seed: int = 0) -> PaidLie | None:
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
        found = best_lie(policy, market, kind, Effort(evaluations=60, seed=number))
        best = max(filter(None, (best, found)), key=lambda each: each.factor, default=None)
    return best


def together() -> Finding:
    """Two users report other speedups, and both gain."""
    first, *others = TOGETHER
    require(first.factor() == Fraction(2000, 1001), "the formula 2 / (1 + e)")
    return Finding(
        Ruling.QUALIFIED,
        f"Two users gain together also where one alone cannot: under partial allocation two alike, {first}, 2 / (1 + "
        "e) for reports of e, by hand: as if they wanted different types, nothing is withheld from them. With n "
        "users alike, on n types, all together gain (n / (n - 1))^(n - 1), which tends to e. Where two users are "
        "all there are, no Pareto-efficient rule lets both gain. The largest found on small markets, each of the "
        f"two gaining at least so much: {listed(map(str, others))}. Every decision is certified; what is proved above: "
        "own-lies-coalitions.",
    )


def sybils() -> Finding:
    """A user enters as two."""
    copied = []
    for n in (2, 3, 10):
        truth = Market.of([[1, 2]] * n, [1, 1])
        lie = Lie(Market.of([[1, 2]] * (n + 1), [1, 1]), {0: (0, n)})
        ratio = lie.reached(truth, decide(EqualSplit(), lie.told).shares)[0] / truth.fair_utility()[0]
        require(ratio == Fraction(2 * n, n + 1), "2 n / (n + 1)")
        copied.append(f"{both(ratio)} for n = {n}")
    rules = ("envy_free", "cooperative_oef", "noncooperative_oef", "gavel", "nash_welfare")
    proofs = [theorem("Sybils", f"{each}_sybils_ratio") for each in rules]
    return Finding(
        Ruling.QUALIFIED,
        "Each with all of the user's weight, so that nobody checks who is who: 2 n / (n + 1) times the throughput "
        f"even under equal-split, for n users ({listed(copied)}). With the weight divided among them, the bounds on "
        "one report stand: those of rules without envy, of Nash welfare, of max-min and of equal throughput speak "
        f"of what the parts hold together ({listed(proofs)}), and that of trading of what the others keep (proof in "
        "words: fairopt/incentives/bounds.py). Partial allocation, truthful for one report, is not so for parts. "
        f"Found: {listed(map(str, SPLIT))}. Every decision is certified. Under partial allocation a user of n of equal "
        "weight has at most (2 - 1/n) (n / (n - 1))^(n - 1) times its throughput, below 2 e (proof in words: "
        "coalitions.py).",
    )


def demands() -> Finding:
    """A user claims another demand."""
    found = [f"{each.policy.name} {both(each.factor())}, {_claim(each)}" for each in DEMANDS]
    return Finding(
        Ruling.QUALIFIED,
        "A claim of more GPUs than a user can use pays under rules that give all types in the same proportions, "
        "without a bound (own-lies-unread), and under max-min, whose fair shares count demands; a claim of fewer "
        f"under cooperative OEF, a little. Found on small markets: {'; '.join(found)}. Every decision is certified. "
        "None was found that pays under water filling, Nash welfare and non-cooperative OEF (4 to 10 markets, 60 "
        "claims each), which proves nothing.",
    )


def _claim(each: Stored) -> str:
    (user,) = each.liars
    true, claimed = np.array(each.demand)[user], np.array(each.claimed, dtype=object)[user]
    gpus = ", ".join(map(str, each.capacity))
    return (
        f"{rows(each.truth)}, {gpus} GPUs, demands {rows([each.demand])}: user {user + 1} claims {claimed}, not {true}"
    )
