"""How much a user gains that claims another weight: f times its own, p being its true part of all weight.

q = f p / (1 + (f - 1) p) is the part that it claims, U its throughput after the claim, W that of the whole cluster, R
such that no user's largest speedup is more than R times its least.

`whole`: at the truth the liar has at least p W under a rule with fair shares, and never more than W: 1/p.

`equal_split`: q / p, by definition. So it is under Nash welfare, at most: count money such that the liar has w at the
truth and all have S together, p_j and q_j being prices before and after, r_j = q_j / p_j, x and y the liar's bundles.
Who buys type j after the claim bought at the truth only types with r at least r_j (as in
`fairopt.proofs.findings.liars.bounds`),
so that sum_j q_j y_lj r_j <= q.x_l for every other user l. Added up: sum_j q_j r_j - q.y r <= S' - q.x, S' = S + (f -
1) w. By Cauchy's inequality the first sum is at least S'^2 / S. What the liar buys after the claim is worth U q_j = f w
v_j <= f u p_j to it, u its throughput at the truth; so r_j <= f u / U there, and q.x >= f w u / U, since nothing is
worth more to it than U / (f w) for a unit of money. With all of this S' (S' - S) / S <= (u / U) f (S' - S), and U <= f
(S / S') u.

`no_envy`, also with other speedups told: nobody envies who has the part q, so that U <= q W R^2 / (q R^2 + 1 - q) as in
`fairopt.proofs.findings.liars.bounds`, and at the truth it has p W: q / p times R^2 / (q R^2 + 1 - q).

`level`, max-min and water filling with positive speedups: where everybody has the same multiple of its fair share, a
user of larger weight only lowers the multiple, for each unit of weight: at most f; and 1/p.

`equal_throughput`, speedups from 1 to R: let t be the level after the claim. The liar holds at least f w t / R GPUs.
Let it keep the part z of its bundle and hand the rest to the others by weight, each GPU being worth at least 1 to them:
the levels of all meet where z f = (1 + c f) / (1 + c), c = p / (R (1 - p)), which the truth has at least. The ratio is
at most f / (z f) = f (1 + c) / (1 + c f), and below 1 + R (1 - p) / p.

`partial_allocation`: the liar has no more than W, and at the truth the part (1 - p)^((1 - p) / p) of what Nash welfare
gives it (`coalitions`), at least p W.

A smaller claim gives no more: by `level` and `equal_throughput` the other way round; under Nash welfare since the
weighted sum of logarithms is maximised, by adding up that each of two optima is best for its own weights; under partial
allocation since the logarithm of what the liar has is (V(w) - V(0)) / w, V(w) being that largest sum, which is convex
in w. Under second-price trading and cooperative OEF it can give more: `LESS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt import allocate
from fairopt.models import (
    CooperativeOEF,
    EfficientOEF,
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
from fairopt.proofs.findings.liars.bounds import spread
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly, extent
from fairopt.proofs.ledger.wording import both, listed, speedups

ONE = Fraction(1)
#: Random markets on which each bound is asked, and by how much weights are multiplied there.
ASKED, TIMES = 8, (Fraction(1, 2), Fraction(3))


def claimed(part: Any, times: Any) -> Any:
    """Return the part of all weight that a user claims who claims ``times`` its weight.

    >>> claimed(Fraction(1, 2), 3)
    Fraction(3, 4)
    """
    return times * part / (1 + (times - 1) * part)


def no_envy(part: Any, times: Any, spread: Any) -> Any:
    """Return the largest ratio under a rule without envy, whatever speedups are told with the weight.

    >>> no_envy(Fraction(1, 2), 1, 10), no_envy(Fraction(1, 3), 2, 10)
    (Fraction(200, 101), Fraction(300, 101))
    """
    told = claimed(part, times)
    return told / part * spread**2 / (told * spread**2 + 1 - told)


def equal_throughput(part: Any, times: Any, spread: Any) -> Any:
    """Return the largest ratio where all have the same throughput, speedups being from 1 to ``spread``.

    >>> equal_throughput(Fraction(1, 2), 3, 5)
    Fraction(9, 4)
    """
    each = part / (spread * (1 - part))
    return times * (1 + each) / (1 + times * each)


@dataclass(frozen=True)
class Claim:
    """Markets of n users (the first is the liar, the others alike), a claim, and the ratio that it gives, by hand."""

    policy: Policy
    rows: Callable[[Fraction], tuple[list[Fraction], list[Fraction]]]
    capacity: Callable[[int, Fraction, Fraction], list[Fraction]]
    ratio: Callable[[int, Fraction, Fraction], Fraction]
    told: int = 1

    def checked(self, n: int, times: int, spread: int) -> Fraction:
        """Return the ratio by exact decisions, whatever optima are chosen, certified; it is that of the formula."""
        f, size = Fraction(times), Fraction(spread)
        liar, other = self.rows(size)
        truth = Market.of([liar, *[other] * (n - 1)], self.capacity(n, f, size))
        lie = _claims(truth.misreport(0, [self.told * each for each in liar]), f)
        weights = np.full(truth.shape, Fraction(0), dtype=object)
        weights[0] = truth.speedup[0]
        after, before = (extent(self.policy, decide(self.policy, each), weights) for each in (lie, truth))
        ratio = after[0] / before[1]
        require(ratio == self.ratio(n, f, size), f"{self.policy.name}, n = {n}, f = {f}, R = {spread}: the formula")
        return ratio


def _claims(market: Market, times: Any) -> Market:
    weight = market.weight.copy()
    weight[0] *= times
    return replace(market, weight=weight)


def _alike(n: int, times: Fraction, spread: Fraction) -> Fraction:
    return n * times / (n - 1 + times)


#: All like both types alike: every policy that uses weights divides by them.
ALIKE = tuple(
    Claim(policy, lambda R: ([ONE, R], [ONE, R]), lambda n, f, R: [ONE, ONE], _alike)
    for policy in (
        *(EqualSplit(), NashWelfare(), MaxMin(), WaterFilling(), CooperativeOEF(), EfficientOEF()),
        *(NonCooperativeOEF(), SecondPriceTrading()),
    )
)
#: The liar alone likes type 1, of which it leaves the others the most.
LEVEL = Claim(
    MaxMin(),
    rows=lambda R: ([R, ONE], [ONE, R]),
    capacity=lambda n, f, R: [ONE, ONE],
    ratio=lambda n, f, R: f * (R * (n - 1) + 1) / (R * (n - 1) + f),
)
#: The liar is R times as fast as the others on all GPUs, and so holds few of them.
THROUGHPUT = Claim(
    NonCooperativeOEF(),
    rows=lambda R: ([R, R], [ONE, ONE]),
    capacity=lambda n, f, R: [ONE, ONE],
    ratio=lambda n, f, R: equal_throughput(Fraction(1, n), f, R),
)
#: As in `families.COOPERATIVE_OVER`, with fewer GPUs of type 2; the liar reports twice its speedups as well.
NO_ENVY = Claim(
    CooperativeOEF(),
    rows=lambda R: ([R, ONE], [R + 1, R * (R + 1)]),
    capacity=lambda n, f, R: [ONE, (n - 1) / (R * f)],
    ratio=lambda n, f, R: no_envy(Fraction(1, n), f, R),
    told=2,
)
MEMBERS = ((3, 2, 10), (4, 3, 10), (4, 3, 1000))
#: One GPU of each type, or a few, on which a smaller claim gives more, and what part of the weight is claimed.
LESS = (
    (CooperativeOEF(), Market.of([[4, 1], [11, 8], [12, 7]], [1, 1]), Fraction(9, 10)),
    (SecondPriceTrading(), Market.of([[2, 10, 1], [30, 10, 3]], [3, 2, 3]), Fraction(1, 2)),
)


def weights() -> Finding:
    """A user claims another weight: bounds, markets that reach them, and where less gives more."""
    proofs = {
        name: theorem("Weights", f"{each}_weight_claim")
        for name, each in (
            *(("nash", "nash_welfare"), ("coop", "cooperative_oef")),
            *(("equal", "noncooperative_oef"), ("least", "gavel")),
        )
    }
    for claim in ALIKE:
        for n, times in ((2, 2), (3, 10)):
            claim.checked(n, times, 2)
    level, throughput, no_envy_ = (_members(each) for each in (LEVEL, THROUGHPUT, NO_ENVY))
    _require_unread()
    less = listed(
        f"{policy.name} {both(smaller(policy, market, times))} on {speedups(market)}, with {times} of the weight"
        for policy, market, times in LESS
    )
    partial = _partial()
    largest = listed(f"{name} {float(ratio):.3f}" for name, ratio in _asked().items())
    return Finding(
        Ruling.QUALIFIED,
        "p is the liar's true part of all weight, f by how many times it multiplies its weight. Under a rule with "
        "fair shares nobody gains more than 1/p times, and where all users are alike that is what a claim without "
        "end tends to: f / (1 + (f - 1) p). Nash welfare never gives more than that, whatever the market; rules "
        "that give everybody the same level can give f times.\n"
        f"Nash welfare, as the equal split: at most f / (1 + (f - 1) p) ({proofs['nash']}), reached where users are "
        "alike.\n"
        f"Max-min and water filling, positive speedups: at most f ({proofs['least']}) and 1/p; f is the limit, for f "
        f"up to n - 1, of (R, 1), n - 1 times (1, R), one GPU of each type: {level}.\n"
        f"Non-cooperative OEF: at most f ({proofs['equal']}); with speedups from 1 to R at most f (1 + c) / (1 + c "
        "f), c = p / (R (1 - p)), and so less than 1 + R (1 - p) / p, more than the 1/p of fair rules; reached on "
        f"(R, R), n - 1 times (1, 1): {throughput}.\n"
        "Cooperative OEF, oef-efficient, any rule without envy, also where other speedups are told with the weight: "
        f"at most (q/p) R^2 / (q R^2 + 1 - q), q = f p / (1 + (f - 1) p) ({proofs['coop']}, for a weight alone), and "
        "so less than 1/p; reached on (R, 1), n - 1 times (R + 1) (1, R), one GPU of type 1 and (n - 1) / (R f) of "
        f"type 2, user 1 reporting (2 R, 2): {no_envy_}.\n"
        "Who enters as two, each with all of its weight, is bounded there as by f = 2.\n"
        "Second-price trading: less than 1/p, to which it tends where users are alike.\n"
        f"A smaller claim can pay, too, under rules that are not monotone in weights: {less}. It never does where "
        "everybody is given the same level, under Nash welfare, the equal split and partial allocation.\n"
        "Partial allocation: at most n (n / (n - 1))^(n - 1) with equal weights, below e n, to which a claim "
        f"without end tends where users are alike ({partial}, in floats).\n"
        "The largest total reads no weight: 1.\n"
        "Proofs that are not Coq's in words (weights.py). Members of families are certified, for every optimum, and "
        f"equal to the formula worked out by hand; bounds were asked of {ASKED} random markets with f = 1/2 and 3, "
        f"exactly, the largest ratio being {largest}.",
    )


def smaller(policy: Policy, market: Market, times: Fraction) -> Fraction:
    """Return what a smaller claim gives at least, whatever optima are chosen, over what the truth gives at most."""
    weights = np.full(market.shape, Fraction(0), dtype=object)
    weights[0] = market.speedup[0]
    after, before = (extent(policy, decide(policy, each), weights) for each in (_claims(market, times), market))
    require(times < 1 < after[0] / before[1], f"less gives more under {policy.name}")
    return after[0] / before[1]


def _members(claim: Claim) -> str:
    said = (f"{both(claim.checked(*each))} with n = {each[0]}, f = {each[1]}, R = {each[2]}" for each in MEMBERS)
    return listed(said)


def _ratio(policy: Policy, market: Market, times: Fraction) -> Fraction:
    before, after = exactly(policy, market), exactly(policy, _claims(market, times))
    return Fraction((market.speedup[0] * after.shares[0]).sum() / before.utilities[0])


def _partial() -> str:
    """Return what partial allocation gives users alike who claim 1000 times their weight, near the limit."""
    said = []
    for n in (2, 3):
        market = Market.of([[1, 2]] * n, [1, 1]).as_(float)
        shares = [allocate(PartialAllocation(), each).shares for each in (market, _claims(market, 1000.0))]
        ratio = float(shares[1][0] @ market.speedup[0] / (shares[0][0] @ market.speedup[0]))
        limit = n * (n / (n - 1)) ** (n - 1)
        require(0.98 * limit < ratio < limit, f"the limit of partial allocation, n = {n}")
        said.append(f"{ratio:.2f} of {limit:.2f} with f = 1000, n = {n}")
    return listed(said)


def _require_unread() -> None:
    """The largest total is the same for all weights."""
    market = Market.of([[1, 5, 2], [3, 1, 2]], [1, 2, 1])
    shares = [decide(MaxEfficiency(), each).shares for each in (market, _claims(market, Fraction(10)))]
    require((shares[0] == shares[1]).all(), "no weight is read")


def _asked() -> dict[str, Fraction]:
    """Return the largest ratio of random claims, by policy; errors where one is above its bound."""
    bounds: list[tuple[Policy, Callable[[Fraction, Fraction, Market], Any]]] = [
        (NashWelfare(), lambda p, f, market: max(ONE, claimed(p, f) / p)),
        (MaxMin(), lambda p, f, market: max(ONE, min(f, 1 / p))),
        (WaterFilling(), lambda p, f, market: max(ONE, min(f, 1 / p))),
        (CooperativeOEF(), lambda p, f, market: no_envy(p, f, Fraction(spread(market)))),
        (EfficientOEF(), lambda p, f, market: no_envy(p, f, Fraction(spread(market)))),
        (NonCooperativeOEF(), lambda p, f, market: max(ONE, equal_throughput(p, f, market.speedup.max()))),
        (SecondPriceTrading(), lambda p, f, market: 1 / p),
    ]
    largest = {policy.name: Fraction(0) for policy, _ in bounds}
    random = np.random.default_rng(15)
    for _ in range(ASKED):
        n, k = random.integers(2, 5), random.integers(2, 4)
        speedup, capacity = random.choice([1, 2, 3, 5, 8], (n, k)), random.integers(1, 4, k)
        market = Market.of(speedup.tolist(), capacity.tolist(), weight=random.integers(1, 3, n).tolist())
        part = Fraction(market.weight[0] / market.weight.sum())
        for policy, bound in bounds:
            for times in TIMES:
                ratio = _ratio(policy, market, times)
                require(ratio <= bound(part, times, market) * (1 + policy.rounding), f"{policy.name}: its bound")
                largest[policy.name] = max(largest[policy.name], ratio)
    return largest
