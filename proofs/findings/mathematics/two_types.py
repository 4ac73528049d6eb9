"""Cooperative OEF on two types where every speedup on the first is 1: its closed form, and what follows.

A user is its ratio r_i and its weight w_i; r_1 <= ... <= r_n, and W_i = w_{i+1} + ... + w_n. For each unit of weight
user i has a_i slow and b_i fast GPUs. That nobody envies anybody then says that b rises with the ratio, and that from
user i to i + 1 slow GPUs fall by between r_i and r_{i+1} for each fast one that is gained. The total is the slow GPUs
and sum r_i w_i b_i, so that it is best to pay as little slow as possible for each step: r_i. With d_i = b_{i+1} - b_i
and b_1 = d_0, an optimum of Eq. (10) is one of

    maximise sum_i d_i sum_{l > i} w_l r_l   where   sum_i W_i d_i = fast,  sum_i (W - W_i) r_i d_i <= slow,  d >= 0.

For each fast GPU, step i costs (W - W_i) r_i / W_i slow ones and is worth the mean ratio of the users above it. So the
optimum is where the upper hull of these n points is at slow / fast; beyond the last point slow GPUs are left, which all
have alike. At most two steps are not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random

import numpy as np

from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.checking import NoLongerFollows, require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, holds
from fairopt.proofs.ledger.wording import rows
from fairopt.properties import EnvyFreeness, ParetoEfficiency

POLICY = CooperativeOEF()
#: What a fast GPU costs, in slow ones, and is worth.
Point = tuple[Fraction, Fraction]
#: So many random markets are decided in both ways.
MARKETS = 150


@dataclass(frozen=True)
class Users:
    """Users on two types, speedup 1 on the first: ratios that rise, and weights, both (n,), exact."""

    ratio: tuple[Fraction, ...]
    weight: tuple[Fraction, ...]

    @classmethod
    def of(cls, ratio: Sequence[object], weight: Sequence[object] | None = None) -> Users:
        """Return users sorted by their ratios."""
        weights = weight or [1] * len(ratio)
        pairs = sorted((Fraction(str(r)), Fraction(str(w))) for r, w in zip(ratio, weights, strict=True))
        return cls(tuple(r for r, _ in pairs), tuple(w for _, w in pairs))

    def market(self, slow: Fraction | int, fast: Fraction | int) -> Market:
        """Return the market with so many GPUs of the two types."""
        return Market.of([[1, r] for r in self.ratio], [slow, fast], weight=list(self.weight))

    def points(self) -> list[Point]:
        """Return for each step what a fast GPU given by it costs, in slow ones, and is worth; n of them."""
        made = []
        for step in range(len(self.ratio)):
            above = sum(self.weight[step:], Fraction(0))
            worth = sum((w * r for w, r in zip(self.weight[step:], self.ratio[step:], strict=True)), Fraction(0))
            paid = sum(self.weight[:step], Fraction(0)) * (self.ratio[step - 1] if step else 0)
            made.append((Fraction(paid / above), Fraction(worth / above)))
        return made

    def hull(self) -> list[int]:
        """Return the steps on the upper hull, from the cheapest to that of the largest worth."""
        points, kept = self.points(), list[int]()
        for step, (cost, worth) in enumerate(points):
            if kept and worth <= points[kept[-1]][1]:
                continue  # dearer, and worth no more
            while len(kept) > 1 and _below(points[kept[-2]], points[kept[-1]], (cost, worth)):
                kept.pop()
            if kept and points[kept[-1]][0] == cost:
                kept.pop()
            kept.append(step)
        return kept

    def optimum(self, slow: Fraction | int, fast: Fraction | int) -> Array:
        """Return an optimum of cooperative OEF in closed form, (n, 2)."""
        points, hull, paid = self.points(), self.hull(), Fraction(slow) / Fraction(fast)
        upper = next((at for at, step in enumerate(hull) if points[step][0] > paid), len(hull))
        ends = [hull[upper - 1], hull[min(upper, len(hull) - 1)]]
        low, high = (points[end][0] for end in ends)
        part = Fraction(0) if high == low else (paid - low) / (high - low)
        bundles = np.full((len(self.ratio), 2), Fraction(0), dtype=object)
        for end, share in zip(ends, (1 - part, part), strict=True):
            gained = share * fast / sum(self.weight[end:], Fraction(0))
            bundles[end:, 1] += gained
            if end:
                bundles[:end, 0] += self.ratio[end - 1] * gained
        weight = np.array(self.weight, dtype=object)
        bundles[:, 0] += (slow - (weight * bundles[:, 0]).sum()) / weight.sum()
        return np.asarray(weight[:, None] * bundles, dtype=object)


def _below(
    first: tuple[Fraction, Fraction], middle: tuple[Fraction, Fraction], last: tuple[Fraction, Fraction]
) -> bool:
    return (middle[1] - first[1]) * (last[0] - first[0]) <= (last[1] - first[1]) * (middle[0] - first[0])


def some_users(count: int, most: int, seed: int) -> Iterator[tuple[Users, Fraction, Fraction]]:
    """Yield users, 2 to ``most`` of them, with slow and fast GPUs: ratios of many sizes, some alike, and weights."""
    random = Random(seed)
    for _ in range(count):
        n = random.randint(2, most)
        ratios = [Fraction(random.randint(1, 12) ** random.randint(1, 3), random.randint(1, 6)) for _ in range(n)]
        weights = [Fraction(random.randint(1, 3)) for _ in range(n)]
        yield Users.of(ratios, weights), Fraction(random.randint(1, 60)), Fraction(random.randint(1, 8))


def closed_form() -> Finding:
    """The closed form, which is envy-free, against exact optima whose certificates `proofs/verify.py` has accepted."""
    for users, slow, fast in some_users(MARKETS, 6, seed=1):
        market, shares = users.market(slow, fast), users.optimum(slow, fast)
        require(holds(EnvyFreeness(), market, shares), f"nobody envies anybody on {rows(market.speedup)}")
        total, best = ((market.speedup * each).sum() for each in (shares, decide(POLICY, market).shares))
        require(total == best, f"the closed form is optimal on {rows(market.speedup)}")
    users = Users.of([1, 6, 7, 23])
    return Finding(
        Ruling.QUALIFIED,
        "Order users by their ratios r_1 <= ... <= r_n, with weights w_i, W in all, and W_i of those after i. Step i "
        "gives all users after i one fast GPU for each unit of weight more than those up to i have, who get r_i slow "
        "ones for it. For each fast GPU it costs (W - W_i) r_i / W_i slow ones and is worth the mean ratio of those "
        "after i. The optimum is where the upper hull of these n points is at slow / fast: at most two steps, after "
        "one sort. It has two bundles for each unit of weight, or three.\nProof in words (two_types.py), checked on "
        f"{MARKETS} random markets, up to 6 users, weights 1 to 3: the closed form is envy-free, and its total is that "
        "of the exact linear program, certified.\nOn (1, 1), (1, 6), (1, 7), (1, 23), 22, 4 GPUs of the types: "
        f"{rows(users.optimum(22, 4))}.",
    )


def least_and_largest() -> Finding:
    """Lemma 3.1 by ratios on two types, and its mirror image."""
    cited = [theorem("TwoTypes", f"normalised_two_types_{which}_ratio") for which in ("least", "largest")]
    for users, slow, fast in some_users(MARKETS, 6, seed=2):
        market = users.market(slow, fast)
        held, ratio = decide(POLICY, market).shares, np.array(users.ratio, dtype=object)
        for one, other in ((ratio == min(ratio), (1, 0)), (ratio == max(ratio), (0, 1))):
            fine = not held[one, other[0]].any() or not held[~one, other[1]].any()
            require(fine, f"so on {rows(market.speedup)}")
    return Finding(
        Ruling.PROVED,
        f"For all n, weights, capacities and positive speedups, at every optimum ({'; '.join(cited)}). So OEF's Lemma "
        "3.1, read by ratios, is true on two types with speedup 1 on the first, in every number of users; on three "
        f"types it is false (oef-lemma3.1). So too at the exact optima of {MARKETS} random markets.",
    )


def pareto() -> Finding:
    """Pareto efficiency on two types: three ratios are fine, four need not be."""
    cited = theorem("TwoTypes", "normalised_two_types_pareto_efficient")
    three = theorem("TwoTypes", "normalised_two_types_three_users")
    four = theorem("Counterexamples", "cooperative_oef_two_types_not_pareto_efficient")
    some = [(users, gpus) for users, *gpus in some_users(MARKETS, 5, seed=3) if len({*users.ratio}) <= 3]
    for users, gpus in some:
        market = users.market(*gpus)
        fine = holds(ParetoEfficiency(), market, decide(POLICY, market).shares)
        require(fine, f"it is Pareto-efficient on {rows(market.speedup)}")
    least = smallest()
    return Finding(
        Ruling.PROVED,
        f"With at most three different ratios, for any number of users, weights and capacities, positive speedups, and "
        f"at every optimum ({cited}); so for three users of any weights ({three}). Four ratios are too many ({four}): "
        f"the first by the largest ratio, of whole numbers, is {rows(least.speedup)}, {least.capacity[0]}, "
        f"{least.capacity[1]} GPUs of the types.\n"
        f"So says the exact check as well, at the exact optima of {len(some)} random markets of up to three ratios, up "
        "to 5 users and weights 1 to 3.",
    )


def smallest() -> Market:
    """Return the first market of four users, by its largest ratio, whose hull leaves a step out, so that two share."""
    for most in range(4, 40):
        for ratios in combinations(range(1, most + 1), 4):
            users = Users.of(ratios)
            if ratios[-1] < most or len(users.hull()) == len(ratios):
                continue
            for slow, fast in product(range(1, most + 1), repeat=2):
                if not holds(ParetoEfficiency(), users.market(slow, fast), users.optimum(slow, fast)):
                    return users.market(slow, fast)
    raise NoLongerFollows("four users are enough")
