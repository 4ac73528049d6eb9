"""Partial allocation: each user keeps a part of its Nash-welfare bundle, by what its presence costs the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from math import exp, prod
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.backends.solution import Solution, Status
from fairopt.certificates import PARTIAL_ALLOCATION, Certificate
from fairopt.deadline import left
from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.eisenberg_gale.bounds import nash_bound
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium
from fairopt.methods.eisenberg_gale.solve import many_maximal_nash_welfare
from fairopt.methods.result import ends_of
from fairopt.methods.roots import (
    GRAIN,
    beyond_floats,
    integers_in_proportion,
    root,
    rounded_root,
    sum_of_logarithms,
)
from fairopt.models.nash.nash_welfare import NashWelfare, reported_equilibria
from fairopt.numbers import FLOATS, RATIONALS, arithmetic, is_rational
from fairopt.policy import Allocation, Claim, Example, Policy, Seconds, Trait
from fairopt.policy.allocation import same_utilities
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array, Number, Program, cast
from fairopt.report import Key, ResultForm

#: Nobody keeps less than this part of its bundle: 1/e, less what rounding may take of a part.
LEAST_KEPT = exp(-1) * (1 - 1e-9)
#: So many speedups are looked at together: a step on them takes a quarter of a second, and memory for twenty of them.
MOST_AT_ONCE = 1_000_000
#: Parts of more binary digits are rounded down as irrational ones are: exact arithmetic on them takes minutes.
LONG = 20_000
#: Bundles of maximal Nash welfare: in floats where they are irrational, since parts are not certified there.
FLOATS_OR_EXACT = NashWelfare(digits=0)


#: What follows from the Nash-welfare decisions ``together``, with all users, and ``apart[i]``, without user i; with one
#: user ``apart`` is empty.
KEPT = ResultForm(
    "The parts of bundles that users keep.",
    Key("kept", list[Number], "Of each user."),
    Key("equilibrium", object, "That the bundles come from.", lambda it: it.together.evidence),
)


class PartialAllocation(Policy):
    """Give user i the fraction f_i of its bundle in the allocation x* of maximal Nash welfare, and waste the rest.

    With x*_-i the optimum among the others, who share the whole cluster,

        f_i = (prod_{l != i} u_l(x*)^{w_l} / prod_{l != i} u_l(x*_-i)^{w_l})^{1 / w_i},

    which lies in (0, 1] and is at least 1/e: as x* is optimal, sum_l w_l u_l(x) / u_l(x*) <= W = sum_l w_l for every x,
    so that the mean of u_l(x*_-i) / u_l(x*) over the others is at most W / (W - w_i), and its power (W - w_i) / w_i at
    most e. This is a Vickrey-Clarke-Groves payment on a logarithmic scale, paid in GPUs, so no user gains by
    misreporting. Utilities do not depend on which of several optima x* is taken. A single user keeps everything.

    Parts are rational where the w_l / w_i are integers (as for equal weights). Else they are roots, which are rounded
    down to a multiple of `GRAIN`, as rational ones of more than `LONG` digits are; the error, which is told, is below
    any tolerance. Everything is in floats where Nash welfare has no
    exact optimum, or where weights scaled to integers exceed `LARGEST_EXPONENT`. Demands are as in `NashWelfare`. With
    demands, utilities are not homogeneous, and truthfulness is not claimed.

    Where a time limit stops it, the error tells shares that nobody ends with less than (in utility), and bounds.

    Source: Cole, Gkatzelis and Goel, Mechanism Design for Fair Division: Allocating Divisible Items without Payments,
    EC 2013, Sec. 3.

    >>> from fairopt import allocate
    >>> print(*allocate(PartialAllocation(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    15/16 15/8
    """

    name = "partial-allocation"
    source = "Cole, Gkatzelis and Goel, EC 2013, Sec. 3"
    methods, needs = NashWelfare.methods, NashWelfare.needs
    rounding = 3 * GRAIN  # nobody keeps less than 1/e, which is more than 1/3
    traits = frozenset({Trait.UNIT_FREE, Trait.PROGRAM, Trait.EXACT, Trait.DETERMINED})
    claims = (Claim("strategy_proofness", "Cole, Gkatzelis and Goel 2013, Sec. 3", assumes="no demands"),)
    examples = (
        Example(
            "worked by hand: alone, each of the two would have 3 and 6; together they have 3/2 and 15/4",
            Market.of([[1, 2], [1, 5]], capacity=[1, 1]),
            shares=[["5/8", "5/32"], [0, "3/8"]],
            utilities=["15/16", "15/8"],
        ),
    )

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Maximise Nash welfare with all users, then without each; the evidence is `KEPT`.

        A backend, where one is named, solves these n + 1 programs. Errors: those of `NashWelfare.decide`.
        """
        together: Allocation | None = None
        try:
            together = FLOATS_OR_EXACT.decide(problem, None, solve)
            # a single user costs no others anything
            apart = self._apart(problem, solve) if len(problem.users) > 1 else []
            kept, off = kept_fractions(problem, together, apart)
        except OutOfTime as over:
            # without a user, it is a solution of another market
            over.solution = _by_draft(problem, over.solution) if together is None else _by_optimum(problem, together)
            raise
        exact = arithmetic(kept).exact
        shares = kept[:, None] * (together.shares if exact else together.shares.astype(float))
        utility = (problem.speedup * together.shares).sum(axis=1).astype(float) * kept.astype(float)
        parts = [asdict(decision.seconds) for decision in (together, *apart)]
        seconds = {stage: sum(part[stage] for part in parts) for stage in parts[0]}
        return Allocation(
            self.name,
            problem,
            shares=shares,
            objective=float(problem.weight.astype(float) @ np.log(utility)),
            evidence=KEPT.of(kept=kept, together=together, apart=apart),
            seconds=Seconds(**seconds),
            error=off if exact else 0,
        )

    def _apart(self, problem: Market, solve: Session) -> list[Allocation]:
        """Return the decisions without each user: from one run of the method for all, where that answers."""
        nash, n = FLOATS_OR_EXACT, len(problem.users)
        shares = np.full((n, n - 1, len(problem.types)), np.nan)
        begun = perf_counter()
        if problem.demand is None and solve.method is not None:
            shares = equilibria_without_each(problem.as_(float))
        took = Seconds(solve=(perf_counter() - begun) / n)
        apart = []
        for user, draft in enumerate(shares):
            left()
            market, known, evidence = problem.without(user), not np.isnan(draft).any(), None
            found = exact_equilibrium(market, draft) if known and problem.exact else None
            if not known or (problem.exact and found is None):
                apart.append(nash.decide(market, None, solve))
                continue
            floats = market.as_(float)
            reached = float(floats.weight @ np.log((floats.speedup * draft).sum(axis=1)))
            if found is not None:
                evidence, draft = found
            apart.append(
                Allocation(nash.name, market, shares=draft, objective=reached, evidence=evidence, seconds=took)
            )
        return apart

    def bundle(self, user: int, problem: Market, before: Allocation, solve: Session) -> Array:
        """Return what ``user`` gets (k,), by one equilibrium: that of the others without it is in ``before``."""
        together = FLOATS_OR_EXACT.decide(problem, None, solve)
        apart = before.evidence.apart
        powers = integers_in_proportion(problem.weight)
        kept = kept_fraction(problem, user, together.utilities, apart[user], powers)[0] if apart else 1
        bundle: Array = kept * together.shares[user]
        return bundle

    def many_bundles(self, problem: Market, before: Allocation) -> ManyBundles:
        """Return who decides on many misreports at once, by an equilibrium each."""
        return partial(bundles_that_are_kept, problem, before.evidence.apart)

    def optimal_face(self, decision: Allocation) -> Program:
        """Return the program of the kept fractions of all bundles of maximal Nash welfare."""
        return same_utilities(decision, f"choices of {self.name}", decision.evidence.kept)

    def choices(self, decision: Allocation) -> None:
        """Return None: utilities are the same in all choices, so a certificate of one is enough."""

    def certify(self, decision: Allocation) -> Certificate:
        """Return the equilibria of all users, and without each user in turn, from which the parts follow."""
        self._require_exact(
            decision, "where a demand binds, shares are irrational, and powers of large weights are not taken"
        )
        market, evidence = decision.market, decision.evidence
        together = _equilibrium(evidence.together)
        apart = [_equilibrium(each) for each in evidence.apart] or [{}]
        return Certificate(PARTIAL_ALLOCATION, market, decision.shares, decision.evidence.kept, together, apart)


def _by_draft(problem: Market, draft: Solution | None) -> Solution | None:
    """Return what a ``draft`` of maximal Nash welfare proves of the parts; None where it has no bounds.

    For utilities u of a draft whose gap is g, t_i = u_i / u_i(x*) has sum_i w_i t_i <= sum_i w_i, as all x have, and
    sum_i w_i log t_i >= -g. So no w_i (t_i - 1 - log t_i), which is never negative, is above g. Then t_i is at most
    1 + sqrt(2 g / w_i) + g / w_i: Chatzigeorgiou, Bounds on the Lambert function, 2013, Theorem 1.
    """
    if draft is None or draft.lower is None or draft.upper is None:
        return None
    gap = max(0.0, float(draft.upper - draft.lower)) / problem.weight.astype(float)
    return _at_least(problem, draft.values["share"], 1 + np.sqrt(2 * gap) + gap, float(draft.lower), float(draft.upper))


def _by_optimum(problem: Market, together: Allocation) -> Solution | None:
    """Return what the bundles of which everybody keeps a part prove of the parts; None where floats cannot say."""
    market, found = problem.as_(float), together.evidence
    shares, prices = cast(together.shares, float), cast(found.prices, float)
    demand_duals = None if found.demand_duals is None else cast(found.demand_duals, float)
    bound = nash_bound(market.speedup, market.capacity, market.weight, market.limit, shares, prices, demand_duals)
    if bound.lower is None:
        return None
    return _at_least(problem, shares, np.ones(len(market.users)), *ends_of(bound))


def _at_least(problem: Market, shares: Array, above: Array, lower: float, upper: float) -> Solution:
    """Return shares that nobody ends with less than, and bounds on the objective, from those of Nash welfare.

    ``above`` (n,): how many times what a user has of x* its ``shares`` (n, k) may be worth.
    """
    part = LEAST_KEPT / above
    least = float(lower + problem.weight.astype(float) @ np.log(part))
    return Solution(
        Status.LIMIT,
        "time was over: shares that nobody ends with less than, and the largest Nash welfare as a bound",
        "auto",
        objective=least,
        bound=upper,
        lower=least,
        upper=upper,
        values={"share": part[:, None] * shares},
    )


def _equilibrium(decision: Allocation) -> dict[str, Array]:
    return {"allocation": decision.shares, "prices": decision.evidence.prices}


def kept_fractions(market: Market, together: Allocation, apart: Sequence[Allocation]) -> tuple[Array, Number]:
    """Return f (n,), in Fractions where the decisions are exact and exponents are not too large, else in floats.

    Also returns the part of itself by which a Fraction may be too small: 0 unless a root is irrational.

    ``apart[i]`` is the decision of maximal Nash welfare without user i; a single user has none, and keeps everything.
    """
    powers, reached = integers_in_proportion(market.weight), together.utilities
    found = [kept_fraction(market, i, reached, without, powers) for i, without in enumerate(apart)]
    kept = [part for part, _ in found] or [together.arithmetic(1)]
    off = max((each for _, each in found), default=0)
    return (RATIONALS if all(map(is_rational, kept)) else FLOATS).array(kept), off


def kept_fraction(
    market: Market, user: int, together: Array, without: Allocation, powers: list[int] | None
) -> tuple[Number, Number]:
    """Return the part of its bundle that one user keeps; ``without`` is the decision among the others.

    Also returns the part of itself by which it may be too small: 0 but for an irrational root, and in floats.
    ``together``: the utilities (n,) with all users. ``powers``: weights as `integers_in_proportion`, None where they
    are too large. Errors: `NotSolved` where floats are too coarse for these powers.
    """
    left()
    others = [other for other in range(len(market.users)) if other != user]
    own, alone = together[others], without.utilities
    if powers is not None and arithmetic(own).exact and arithmetic(alone).exact:
        # multiplied as integers, and reduced once: Fractions would be reduced at every factor
        pairs = [(a, b, powers[o]) for a, b, o in zip(own, alone, others, strict=True)]
        top = prod((a.numerator * b.denominator) ** power for a, b, power in pairs)
        bottom = prod((a.denominator * b.numerator) ** power for a, b, power in pairs)
        if bottom.bit_length() > LONG:
            return rounded_root(top, bottom, powers[user]), PartialAllocation.rounding
        power = Fraction(top, bottom)
        part = root(power, powers[user])
        return part, 0 if part ** powers[user] == power else PartialAllocation.rounding
    times = market.weight[others] / market.weight[user]
    if all(arithmetic(each).exact for each in (own, alone, market.weight)):
        logs = sum_of_logarithms(own / alone, times)
    elif beyond_floats(float(times.sum())):
        why = f"what {market.users[user]} keeps is a product of powers up to {float(times.max()):g}"
        raise NotSolved(f"numerically out of range for floats: {why}; decide exactly")
    else:
        logs = float(np.log((own / alone).astype(float)) @ times.astype(float))
    return exp(min(0.0, logs)), 0  # above 1 only by rounding: the others are best off without this user


def equilibria_without_each(market: Market) -> Array:
    """Return the shares (n, n - 1, k) of maximal Nash welfare on a market without demands, without each user in turn.

    NaN where a type is of no use then, and where accuracy was not reached.
    """
    n = len(market.users)
    at_once, limit, found = max(1, MOST_AT_ONCE // market.speedup.size), np.full(n - 1, INFINITY), []
    for first in range(0, n, at_once):
        left()
        others = np.array([np.delete(np.arange(n), user) for user in range(first, min(first + at_once, n))])
        speedups, weight = market.speedup[others], market.weight[others]
        found.append(many_maximal_nash_welfare(speedups, market.capacity, weight, limit))
    return np.concatenate(found)


def bundles_that_are_kept(market: Market, apart: Sequence[Allocation], users: Array, reports: Array) -> Array:
    """Return the bundles (cases, k) of partial allocation; see `ManyBundles`.

    ``apart`` are the decisions without each user, whose misreports change nothing.
    """
    n, case = len(market.users), np.arange(len(users))
    without = np.ones((n, n))
    for user, decision in enumerate(apart):
        without[user, np.arange(n) != user] = decision.utilities.astype(float)
    shares = reported_equilibria(market, users, reports)
    ratio = capped_value(market.speedup, shares, market.demand) / without[users]
    ratio[case, users] = 1.0
    logs = np.minimum(np.log(ratio) @ market.weight / market.weight[users], 0.0)
    unsure = beyond_floats(market.weight.sum() / market.weight[users])
    bundles: Array = np.where(unsure, np.nan, np.exp(logs))[:, None] * shares[case, users]
    return bundles
