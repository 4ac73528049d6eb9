"""Cooperative OEF: the largest total throughput among envy-free allocations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from math import ceil, isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.backends import Method, Session
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Solution
from fairopt.errors import NotCapable
from fairopt.models.common.levels import by_prices
from fairopt.models.oef.above_guarantees import AboveGuarantees
from fairopt.numbers import in_pieces
from fairopt.policy import Allocation, Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.floors import FLOORS_AND_CAPS, is_entitled
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Array, Formulation, Number, Program, fractions

if TYPE_CHECKING:
    from fairopt.certificates import Certificate

#: The residual of the equilibrium from whose prices the method starts.
BEGIN = 1e-7
#: For at most so many users less precise ones, which are had sooner, lead to no more programs.
NEARLY = 200

#: Shares are still an optimum where prices, and bundles that are not to be envied, are right to this part.
STILL = 1e-9

#: The optimum is unique. A trade that hurts nobody is still possible, but its result would be envied.
NOT_PARETO_EFFICIENT = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
#: At the optimum user 1 holds all of the first type and half of the third, and nothing of the second.
NOT_ADJACENT = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class _EnvyFreeMethod(Method):
    """Envy-free shares (`fairopt.methods.envy_free`), and bounds on the optimum.

    Its values include "bundle" (n, k), each user's shares per weight. Bundles that should be equal are equal to the
    last bit.
    """

    name = "envy-free"
    number = float

    def solve(self, policy: Formulated, problem: Market, start: Any = None) -> Solution:
        """Return the solution in floats, from the rows and basis of ``start``.

        Errors: `NotSolved`; `NotCapable` where numbers are too far apart for floats.
        """
        from fairopt.methods.envy_free import envy_free_shares  # here, since backends decide without it

        market = problem.as_(float)
        speedup, capacity, weight, demand = market.speedup, market.capacity, market.weight, market.demand
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                answer = envy_free_shares(market.users, speedup, capacity, weight, demand, _equilibrium_prices, start)
        except ArithmeticError as error:
            raise NotCapable(
                f"numbers of this market are too far apart for floats ({error}); decide with the exact backend"
            ) from error
        return replace(answer, objective=float((speedup * answer.values["share"]).sum()))

    def certify(self, policy: Formulated, decision: Allocation) -> Certificate:
        """Return an exactly envy-free allocation near the decision's, a bound, and the gap."""
        return exact_bound(decision)


class CooperativeOEF(Formulated):
    """Maximise total throughput subject to envy-freeness, by weight, between all pairs of users.

    As printed, Eq. (10c) compares a user with itself. It is read as in the proof of Theorem 5.1, with the other user's
    shares on the right. Throughputs of different users are added up: give speedups in common units
    (`Market.normalised`). With demands, (10c) counts all GPUs of the other user, also those beyond the user's demand.
    That is stricter than envy-freeness, and GPUs may stay idle.

    Users and groups get at least their floors and at most their caps (`fairopt.problem.floors`). Guarantees are no
    reason for envy: (10c) then compares what users hold beyond theirs, and where a user's own cap or demand leaves it
    nothing beyond, only what it would swap for (`AboveGuarantees`). This implies `envy_within_peers`. A group may be
    guaranteed more than its members' caps let them divide without envy: `NotSolved` then names the rows that contradict
    each other.

    The program has n^2 rows. Its own method, "envy-free", needs few of them unless demands bind, and proves bounds on
    the optimum. Its shares are envy-free up to rounding.

    Source: OEF Eq. (10); weights Sec. 4.2.3 (weight w is w copies); job types Sec. 4.2.4.

    >>> from fairopt import allocate
    >>> print(*allocate(CooperativeOEF(), Market.of([[1, 2], [1, 5]], [1, 1]), exact=True).utilities)
    3/2 15/4
    """

    name = "oef-cooperative"
    source = "OEF, Middleware 2024, Eq. (10)"
    verifier_knows_program = True
    methods = (_EnvyFreeMethod(),)
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (
        Claim("envy_freeness", "OEF Theorem 5.1"),
        Claim("sharing_incentive", "OEF Theorem 5.1", assumes="no demands"),
        Claim("pareto_efficiency", "OEF Theorem 5.3", refuted_by=NOT_PARETO_EFFICIENT),
        Claim("adjacent_types", "OEF Theorem 5.2", refuted_by=NOT_ADJACENT),
    )
    examples = (
        Example(
            "OEF Eq. (2)",
            Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, 0], [0, "1/2"], [0, "1/2"]],
            utilities=[1, "3/2", 2],
        ),
        Example(
            "OEF Eq. (6), total 5.25",
            Market.of([[1, 2], [1, 5]], capacity=[1, 1]),
            shares=[[1, "1/4"], [0, "3/4"]],
            utilities=["3/2", "15/4"],
        ),
        Example(
            "OEF Sec. 3.1, user 1 reports 4",
            Market.of([[1, 4], [1, 5]], capacity=[1, 1]),
            shares=[[1, "3/8"], [0, "5/8"]],
        ),
        Example("OEF Fig. 2", Market.of([[1, 2], [1, 4]], capacity=[1, 1]), shares=[[1, "1/4"], [0, "3/4"]]),
        Example(
            "OEF Fig. 2, user 1 reports 3",
            Market.of([[1, 3], [1, 4]], capacity=[1, 1]),
            shares=[[1, "1/3"], [0, "2/3"]],
        ),
    )

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (10)."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        p.maximize((problem.speedup * share).sum(), equation="sum_lj w_lj x_lj", source="OEF Eq. (10a)")
        compared = AboveGuarantees.of(problem)
        above = share - compared.floor
        own = (compared.worth * above).sum(axis=1)
        of_others = compared.worth @ above.T  # entry (l, i): user l's throughput from i's shares
        p.constrain(
            "envy_free",
            (own[:, None] >= of_others * by_weight(problem)).where(compared.pairs),
            equation="sum_j w_lj x_lj >= pi_l/pi_i sum_j w_lj x_ij",
            source="OEF Eq. (10c), Sec. 4.2.3",
            labels=(problem.users, problem.users),
        )
        return p.program()

    def bundle(self, user: int, problem: Market, before: Any, solve: Session) -> Array:
        """Return what ``user`` gets (k,): what it had before where that is proved to be an optimum still."""
        if self._stays(user, problem, before):
            return np.asarray(before.shares[user])
        return super().bundle(user, problem, before, solve)

    def _stays(self, user: int, market: Market, before: Allocation) -> bool:
        """Whether shares and multipliers of ``before`` prove each other optimal on another report of ``user``, too.

        Of many reports, such as those of types that the user does not hold, this takes a hundredth of a decision.
        """
        found = before.solution
        if found is None or "envy_free" not in found.duals or market.demand is not None or is_entitled(market):
            return False
        (envious, envied), y = found.duals["envy_free"]
        prices, shares, weight = np.asarray(found.duals["capacity"]), before.shares.astype(float), market.weight
        own, taken = np.bincount(envious, y, minlength=len(weight)), np.zeros(market.shape)
        np.add.at(taken, envied, (y * weight[envious] / weight[envied])[:, None] * market.speedup[envious])
        short = prices - (market.speedup * (1 + own)[:, None] - taken)
        worth = (shares / weight[:, None]) @ market.speedup[user]
        against = envied[(envious == user) & (y > STILL)]
        return bool(
            (short >= -STILL * prices.max()).all()
            and (short[shares > STILL * market.capacity.max()] <= STILL * prices.max()).all()
            and (worth <= worth[user] * (1 + STILL)).all()
            and (worth[against] >= worth[user] * (1 - STILL)).all()
        )

    def least_in_range(self, problem: Market, user: int, truth: Array) -> Number | None:
        """Return it by a linear program.

        For reports r between l and u the allocation is free of envy, so that ``u_i x_i >= r_i x_i >= r_i x_j >= l_i
        x_j`` by weight, and its total ``u x >= r x`` is at least that of the robust allocation, which is free of envy
        for r.
        """
        from fairopt.models.robust.robust import RobustCooperativeOEF  # here, since few ask for it

        total = Exact().solve(RobustCooperativeOEF().formulate(problem, None)).require_optimal().objective
        least, most = problem.ends
        p = Formulation("least at any optimum of a range")
        share = shares_of(p, problem)
        own = (most * share).sum(axis=1)
        p.minimize((truth * share[user]).sum())
        of_others = least @ share.T
        p.constrain(
            "envy_free",
            (own[:, None] >= of_others * by_weight(problem)).where(~np.eye(len(problem.users), dtype=bool)),
        )
        p.constrain("total", own.sum() >= total)
        return Exact().solve(p.program()).require_optimal().objective


def by_weight(problem: Market) -> Any:
    """Return (n, n): the weight of user l over that of user i, pi_l / pi_i."""
    return in_pieces(np.divide, *np.broadcast_arrays(problem.weight[:, None], problem.weight[None, :]))


def _equilibrium_prices(speedup: Array, capacity: Array, weight: Array) -> Array:
    """Return the prices (k,) of nearly a competitive equilibrium whose incomes are the weights."""
    from fairopt.methods.eisenberg_gale.smoothed import smoothed_shares  # here and below: few markets need a start

    market = Market.of_arrays(speedup, capacity, weight=weight)
    found = [*smoothed_shares(market)] if len(weight) <= NEARLY else []
    if not found:
        from fairopt.methods.eisenberg_gale.solve import maximal_nash_welfare

        found = [each.values["share"] for each in maximal_nash_welfare(market, (BEGIN,))]
    utility = (speedup * found[-1]).sum(axis=1)
    return np.asarray((speedup * (weight / utility)[:, None]).max(axis=0))


#: The most users for whom envy between all pairs is compared in Fractions, which then takes a few seconds.
MOST_USERS = 100
#: Square roots are rounded, and mixing weights rounded up, to a multiple of 1 over this.
GRAIN = 2**200
NONE = Fraction(0)


def exact_bound(decision: Allocation) -> Certificate:
    """Return an exactly envy-free allocation near the decision's, and a bound from its multipliers.

    Bundles in floats have envy of the size of rounding errors. Users with proportional speedups are given bundles of
    the same value. The rest of the envy is removed by mixing in bundles that are strictly envy-free (see `envy_proof`),
    all in Fractions. Errors: `NotCapable` for more than `MOST_USERS` users, and where no mixture is free of envy.
    """
    from fairopt.certificates import MARKET_BOUND, Certificate  # here, since who decides need not certify

    market, solution = decision.market.as_(Fraction), decision.solution
    assert solution is not None
    if len(market.users) > MOST_USERS:
        raise NotCapable(
            f"envy between {len(market.users)} users is not compared in Fractions, which is done for {MOST_USERS}: "
            "the decision's solution holds the bounds in floats"
        )
    shares = _allocation(market, solution.values["bundle"]) * market.weight[:, None]
    reached = (market.speedup * shares).sum()
    bound, duals = _bound(market, solution)
    return Certificate(MARKET_BOUND, decision.market, decision.policy, shares, reached, bound, bound - reached, duals)


def _allocation(market: Market, floats: Array) -> Array:
    """Return envy-free, feasible bundles per weight (n, k) in Fractions."""
    # a type without GPUs counts as useless to all
    speedup = np.where(market.capacity > 0, market.speedup, np.array(NONE))
    bundle = np.where(speedup > 0, fractions(floats), np.array(NONE))
    top = speedup.max(axis=1)
    alike: dict[tuple[Fraction, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(speedup / top[:, None]):
        alike[tuple(row)].append(i)
    value = (speedup * bundle).sum(axis=1) / top
    for members in alike.values():
        least = min(value[members])
        for i in members:
            bundle[i] = bundle[i] * (least / value[i]) if value[i] else bundle[i]
    bundle, strict = _fit(market, bundle), _strict(market)
    envy, slack = (_envy(speedup, each) for each in (bundle, strict))
    envied = envy > 0
    if (slack[envied] >= 0).any():
        raise NotCapable("some users are too much alike: their envy, by a rounding error, is not mixed away exactly")
    mixed = max([NONE, *(e / (e - s) for e, s in zip(envy[envied], slack[envied], strict=True))])
    mixed = Fraction(ceil(mixed * GRAIN), GRAIN)
    held = bundle * (1 - mixed) + strict * mixed
    if (_envy(market.speedup, held) > 0).any():
        raise NotCapable("some users are too much alike: what rounding leaves of envy is not mixed away exactly")
    return np.asarray(held)


def _envy(speedup: Array, bundle: Array) -> Array:
    """Return (n, n): by how much user l prefers i's bundle per weight to its own."""
    worth = speedup @ bundle.T
    return np.asarray(worth - np.diagonal(worth)[:, None])


def _strict(market: Market) -> Array:
    """Return bundles per weight (n, k), in proportion to the worth of all GPUs of a type to the holder."""
    worth = market.speedup * market.capacity
    worth = worth / worth.max(axis=1)[:, None]
    length = np.array([Fraction(isqrt(int((row * row).sum() * GRAIN**2)), GRAIN) for row in worth])
    along = np.array([[Fraction(int(entry * GRAIN), GRAIN) for entry in row] for row in worth / length[:, None]])
    return _fit(market, along * market.capacity)


def _fit(market: Market, bundle: Array) -> Array:
    """Return the bundles per weight, scaled within capacities and demands: by a short number near the largest."""
    return np.asarray(bundle * Fraction(int(market.largest_multiple(bundle * market.weight[:, None]) * GRAIN), GRAIN))


def _bound(market: Market, solution: Solution) -> tuple[Fraction, list[list[object]]]:
    """Return the bound of the multipliers by weak duality, and the duals by rows of the program."""
    speedup, weight = market.speedup, market.weight
    (envious, envied), floats = solution.duals["envy_free"]
    against: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for l, i, y in zip(envious.tolist(), envied.tolist(), floats.tolist(), strict=True):  # noqa: E741
        if l != i and y > 0:
            against[l, i] += Fraction(y)
    pays = speedup.copy()
    for (l, i), y in against.items():  # noqa: E741
        pays[l] = pays[l] + speedup[l] * y
        pays[i] = pays[i] - speedup[l] * (y * weight[l] / weight[i])
    price = np.maximum(fractions(np.asarray(solution.duals["capacity"])), np.array(NONE))
    # a price of a type without GPUs adds nothing to the bound, but the dual of a demand does
    price = np.where(market.capacity > 0, price, np.maximum(pays.max(axis=0), np.array(NONE)))
    for i, limit in enumerate(market.limit):
        if limit == INFINITY:
            price = np.where(speedup[i] > 0, np.maximum(price, pays[i]), price)
    demand_dual = fractions(max([NONE, *(own - price)[runs]]) for own, runs in zip(pays, speedup > 0, strict=True))
    bound, entries = by_prices(market, price, demand_dual)
    entries += [["envy_free", l, i, -y] for (l, i), y in sorted(against.items())]  # noqa: E741
    return bound, entries
