"""Pareto efficiency: no user can gain unless another loses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.highs import Highs
from fairopt.backends.solution import Solution
from fairopt.certificates import DOMINANCE, PARETO, PROPERTY, Certificate
from fairopt.deadline import left
from fairopt.errors import NotCapable, NotSolved
from fairopt.policy import Optima
from fairopt.policy.optima import Terms, extended
from fairopt.problem import Market, worth
from fairopt.problem.ranges import in_use, nothing_known, shrunk, unknown_speedups
from fairopt.program import INFINITY, ROUNDING, Array, Formulation, Number, Program, cast, fractions, number_text
from fairopt.properties.long_fractions import above, are_long
from fairopt.properties.over_optima import by_support
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.shares.cited import EQUATION_2, EQUATION_3, OEF_EXAMPLE
from fairopt.properties.shares.feasibility import Feasibility, sizes
from fairopt.properties.shares.pareto_within_bounds import gain_at_all, reached, worst_cycle
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import Boundary
from fairopt.report import Statement

#: A sum of floats may be off by this part of it; a `GRAIN` is less than what is told of shares in floats.
UNSEEN, GRAIN = 8 * ROUNDING, 1e-9
#: The logarithm of the largest price that is told apart from larger ones.
LARGEST = 500.0
#: Up to so many speedups, what floats cannot tell is decided in rationals.
MOST_EXACT = 1_000


@dataclass(frozen=True, eq=False)
class ParetoWeights:
    """Positive weights (n,) for which the allocation maximises the weighted sum of throughputs, with the proof.

    It is an optimal dual solution: ``prices`` (k,) of GPUs, and ``demand_prices`` (n,), the duals of users' demands.

    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> weights = ParetoEfficiency().check(market, [[1, 0], [0, 1]], tolerance=0).evidence.weights
    >>> bool((weights > 0).all())
    True
    """

    weights: Array
    prices: Array
    demand_prices: Array

    def worth(self, market: Market) -> Number:
        """Return what no allocation is above, by weighted throughputs; the efficient ones of these weights reach it."""
        rooms = np.where(market.limit < INFINITY, market.limit, 0 * self.weights)  # no float among Fractions
        bound: Number = (self.prices * market.capacity).sum() + (self.demand_prices * rooms).sum()
        return bound

    def violations(self, market: Market, shares: Array, tolerance: Number = 0) -> list[str]:
        """Return the conditions of the proof that fail; empty for a valid proof. Nothing is solved."""
        value, bound = (self.weights * market.utility(shares)).sum(), self.worth(market)
        worth, paid = self.weights[:, None] * market.speedup, self.prices + self.demand_prices[:, None]
        broken = {
            "a weight is not positive": ~(self.weights > 0),
            "a price is negative": np.append(self.prices, self.demand_prices) < -tolerance,
            "a price is put on a demand that there is not": (market.limit == INFINITY) & (self.demand_prices != 0),
            "a GPU is worth more to a user than its prices": ~(worth <= paid + tolerance),
            "the weighted throughput is below the dual bound": value < bound - tolerance,
        }
        return [condition for condition, where in broken.items() if np.any(where)]


class ParetoEfficiency(AllocationProperty):
    """No feasible allocation gives everybody as much and somebody more.

    A linear program decides: the largest sum of gains, each in units of the user's throughput on its equal share, where
    nobody loses. A positive optimum gives a dominating allocation; at 0, the duals give `ParetoWeights`.

    A failure shows an allocation (n, k) that gives every user at least as much, and its gains (n,) in the users' units;
    of an allocation that is not feasible, the type that is overbooked most, or has a negative share.

    Source: OEF Sec. 2.3.1 (4); weights: Kuhn-Tucker, or Varian, Microeconomic Analysis, Sec. 17.

    Errors: `NotSolved`.

    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> print(ParetoEfficiency().check(market, market.equal_split(), tolerance=0).answer)
    Answer.FAILS
    """

    name = "pareto_efficiency"
    head = "nothing wasted"
    broken = "{who} could get more and nobody less"
    source = "OEF Sec. 2.3.1 (4)"
    definition = "no feasible x' with E_l(x'_l) >= E_l(x_l) for every user l and > for one"
    instances = (
        CitedInstance("OEF Eq. (2)", OEF_EXAMPLE, EQUATION_2, Answer.HOLDS),
        CitedInstance("OEF Eq. (3): u1 and u2 can trade", OEF_EXAMPLE, EQUATION_3, Answer.FAILS),
    )

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        if verdict.answer is Answer.DEPENDS:
            raise NotCapable("on what it depends is certified at the two ends")
        if dominates(verdict):
            return Certificate(DOMINANCE, replace(market, entitlements=None), shares, verdict.witness.allocation)
        if verdict.answer is Answer.HOLDS and not market.known.all():
            return Certificate(PROPERTY, market, shares, self.name, verdict.answer.value)
        if verdict.answer is Answer.FAILS:
            return Certificate(PROPERTY, market, shares, Feasibility.name, verdict.answer.value)
        proof: ParetoWeights = verdict.evidence
        demand_duals = None if market.demand is None else proof.demand_prices
        return Certificate(PARETO, market, shares, proof.weights, proof.prices, demand_duals)

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        fitted = _fit(market, shares, tolerance)
        if fitted is None:
            worst = np.minimum(market.capacity - shares.sum(axis=0), shares.min(axis=0))
            j = int(np.argmin(worst))
            effort = "none: the allocation is not feasible, and only feasible ones are efficient"
            negative = shares[:, j].min() < market.capacity[j] - shares[:, j].sum()
            case = Feasibility().at(market, shares, j, int(np.argmin(shares[:, j])) if negative else None)
            return Verdict(self.name, Answer.FAILS, worst[j], "GPUs", market.exact, effort, case)
        own = market.utility(fitted)
        fair = market.fair_utility()
        # of long fractions what is a little more comes first, in few digits: who gains then gains more
        for least in ([above(own)] if market.exact and are_long(own) else []) + [own]:
            program = largest_gain(market, least, fair)
            try:
                solution = Exact().optimum(program) if market.exact else Highs().optimum(program)
            except NotSolved:
                if least is not own:
                    continue
                if market.exact or market.speedup.size > MOST_EXACT:
                    raise
                return self._in_fractions(market, shares, tolerance)
            better = _within(market, program.variable("share", cast(solution.point, market.arithmetic)))
            gains, gain = market.utility(better) - own, ((market.utility(better) - least) / fair).sum()
            # the tolerance is for each user's gain, so that the sum of many rounding errors does not count as a gain
            if (relative := min(gain, (gains / fair).max())) > tolerance:
                break
        if not market.exact:
            lost = np.maximum(-gains, UNSEEN * own)
            owed = (lost / fair).sum() + _owed(market, fitted, better, lost, int(np.argmax(gains / fair)))
            if owed > max(tolerance, GRAIN, relative / 2):
                return self._in_fractions(market, shares, tolerance)
        slack, size = -gain if gain > 0 else 0 * gain, gain / relative if relative > 0 else 1
        unit = "sum of gains, each over what the equal share is worth"
        effort = f"all feasible allocations (a linear program solved by {solution.backend})"
        case = self.case(slack, size, allocation=better, gains=gains, users=market.users)
        verdict = self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)
        untouched = bool((fitted == shares).all())
        verdict = replace(verdict, exact=verdict.exact and untouched)
        if verdict.answer is Answer.FAILS:
            return verdict
        return replace(verdict, evidence=_weights(program, solution, fair))

    def says(self, case: SlackCase) -> str:
        """Return who could get more in the other allocation, in a sentence."""
        return f"{case.who} could get {number_text(max(case.gains))} more and nobody less"

    def fails_so(self, verdict: Verdict) -> str:
        """Return who could get more, or that the allocation is not feasible, and so not efficient."""
        feasible = verdict.witness is None or "gains" in verdict.witness.parts
        return super().fails_so(verdict) if feasible else "an infeasible allocation is not efficient"

    def about(self, case: SlackCase) -> str:
        """Return the user that gains most, in its own units."""
        return str(case.users[int(np.argmax(case.gains))])

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the other allocation is feasible, hurts nobody and gives somebody more."""
        fits = all(sum(column) <= m for column, m in zip(case.allocation.T.tolist(), market.capacity, strict=True))
        positive = all(share >= 0 for share in case.allocation.ravel())
        rows = enumerate(zip(shares, case.allocation, strict=True))
        gains = [worth(market, i, after) - worth(market, i, before) for i, (before, after) in rows]
        return fits and positive and min(gains) >= 0 and max(gains) > 0

    def _in_fractions(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Return the verdict on floats that lose what some gain, or what others would lose by it."""
        if market.speedup.size > MOST_EXACT:
            reason = "numbers are so far apart that floats lose what some gain, or others lose: ask in rationals"
            return Verdict.undecided(self.name, reason)
        verdict = self._check(market.as_(Fraction), fractions(shares), Fraction(tolerance))
        witness, proof = verdict.witness, verdict.evidence
        if dominates(verdict):
            shown = {name: cast(getattr(witness, name), float) for name in ("allocation", "gains")}
            witness = self.case(witness.slack, witness.size, **shown, users=market.users)
            if (witness.gains <= GRAIN * (market.speedup * market.capacity).sum(axis=1)).all():
                return Verdict.undecided(self.name, "what could be gained is as little as floats round shares")
        if proof is not None:
            try:
                proof = ParetoWeights(*(cast(getattr(proof, each.name), float) for each in fields(proof)))
            except OverflowError:  # weights that no float can hold prove nothing in floats
                proof = None
        return replace(verdict, exact=False, margin=float(verdict.margin or 0), witness=witness, evidence=proof)

    def _within_bounds(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stated = self._check(market, shares, tolerance)
        told, slack = market.as_(Fraction), Fraction(tolerance)
        fitted = _fit(told, fractions(shares), slack)
        if fitted is None:
            return stated
        bundles = [in_use(told, i, row) for i, row in enumerate(fitted)]
        if unsure := [told.users[i] for i, each in enumerate(bundles) if each is None]:
            reason = f"which GPUs {', '.join(unsure[:5])} would use depends on the speedups"
            return Verdict.undecided(self.name, reason, effort=stated.effort)
        whole = np.array(bundles)
        used = np.where(whole > slack * sizes(told), whole, 0 * whole)
        if stated.answer is Answer.FAILS:
            found = self._failing(stated, told, used, slack)
        else:
            found = self._holding(stated, told, used, slack)
        if found.answer is Answer.DEPENDS and nothing_known(market).any():
            return Verdict.undecided(self.name, unknown_speedups(market), effort=found.effort)
        untouched = bool((used == whole).all() and (fitted == fractions(shares)).all())
        return replace(found, exact=found.exact and market.exact and untouched)

    def _failing(self, stated: Verdict, market: Market, used: Array, tolerance: Fraction) -> Verdict:
        """Return the verdict where it fails at the speedups that are stated."""
        effort = "all speedups within the bounds (a linear program solved by exact)"
        gain, better, speedups = gain_at_all(market, used)
        if gain > tolerance:
            gains = market.utility(better) - market.utility(used)
            witness = self.case(-gain, 1, allocation=better, gains=gains, users=market.users)
            return replace(stated, witness=witness, effort=effort)
        known = replace(market, least=None, most=None)
        holds = replace(known, speedup=speedups)
        if self.check(holds, used, tolerance=tolerance).answer is not Answer.HOLDS:
            return Verdict.undecided(self.name, "a gain at all speedups is within the tolerance", effort=effort)
        boundary = Boundary.of(market, None, {"holds": holds, "fails": known})
        return replace(stated, answer=Answer.DEPENDS, boundary=boundary, evidence=None, witness=None, effort=effort)

    def _holding(self, stated: Verdict, market: Market, used: Array, tolerance: Fraction) -> Verdict:
        """Return the verdict where it holds at the speedups that are stated."""
        (least, most), held = market.ends, used > 0
        effort, unit = "all cycles of trades, at all speedups within the bounds", "worth given for received, less 1"
        known = replace(market, least=None, most=None)
        limited = bool((used.sum(axis=1) >= market.limit).any())
        if limited:
            corner = np.where(held, np.where(least, least, market.speedup), np.where(most < INFINITY, most, least))
            fails = replace(known, speedup=np.where(corner, corner, market.speedup))
            if self.check(fails, used, tolerance=tolerance).answer is Answer.FAILS:
                boundary = Boundary.of(market, Fraction(0), {"holds": known, "fails": fails})
                return replace(stated, answer=Answer.DEPENDS, boundary=boundary, effort=effort)
        worst = worst_cycle(least, most, held)
        rate, cycle = (None, ()) if worst is None else worst
        idle = used.sum(axis=0) < market.capacity * (1 - tolerance)
        if limited and ((rate is not None and rate < 1) or (idle & (most > 0).any(axis=0)).any()):
            return Verdict.undecided(self.name, "trades within demands are not decided for all speedups", effort=effort)
        if rate is None:  # nobody can trade
            return replace(stated, effort=effort, evidence=None)
        found = replace(stated, margin=rate - 1, unit=unit, effort=effort, evidence=None)
        if rate >= 1 - tolerance:
            return replace(found, exact=stated.exact and rate >= 1)
        part, failing, inner = reached(market, held, cycle)
        ends = {"holds": shrunk(market, part) if part else known, "fails": replace(known, speedup=failing)}
        turns = zip(inner, (*inner[1:], inner[0]), strict=True)
        names = market.users, market.types
        trades = tuple((names[0][user], names[1][gives], names[0][to]) for (user, gives), (to, _) in turns)
        swaps = ", ".join(f"{giver} gives {name} to {taker}" for giver, name, taker in trades)
        what = f"beyond, trades may make all better off: {swaps}"
        boundary = Boundary.of(market, part, ends, what, trades=trades)
        return replace(found, answer=Answer.DEPENDS, boundary=boundary)

    def over(self, optima: Optima) -> Statement:
        """Decide over all optima; see `fairopt.properties.over_optima`."""
        lacking, balances, first = _dominated(optima), _balances(optima), len(optima.choices.cost)
        slacks = range(first, first + len(balances))
        rows = [(terms, total, total) for terms, total in balances]
        program = extended(optima.choices, [(0, INFINITY)] * len(slacks), rows)
        places = {column for i in range(len(optima.fair)) for column in optima.worth(i, i)} | set(slacks)

        def ways_out(positive: set[int]) -> list[set[int]] | None:
            given_up = _improving(optima, balances, sorted(places), positive)
            return [{column} for column in given_up] or None

        every = "all pairs of an optimum and an allocation that gives nobody less (a linear program)"
        return by_support(self, optima, lacking, every, program, places, ways_out)


def dominates(verdict: Verdict) -> bool:
    """Whether the witness of a verdict on efficiency is an allocation that is better for somebody, worse for nobody."""
    return isinstance(verdict.witness, SlackCase) and "allocation" in verdict.witness.parts


def largest_gain(market: Market, own: Array, fair: Array) -> Program:
    """Return the program that maximises the total gain among allocations in which nobody loses."""
    p = Formulation("largest gain without a loser")
    share = p.variable("share", market.shape, lower=0, labels=(market.users, market.types))
    # in units of the throughput on the equal share, so that the precision of a row does not depend on the user's units
    reached = (market.speedup / fair[:, None] * share).sum(axis=1)
    p.maximize((reached - own / fair).sum(), equation="sum_l (E_l(x') - E_l(x)) / E_l(equal)")
    p.constrain("capacity", share.sum(axis=0) <= market.capacity, equation="sum_l x'_lj <= m_j")
    p.constrain("nobody_loses", reached >= own / fair, equation="E_l(x') >= E_l(x)")
    limited = market.limit < INFINITY
    p.constrain("demand", (share.sum(axis=1) <= market.limit).where(limited), equation="sum_j x'_lj <= d_l")
    return p.program()


def _weights(program: Program, solution: Solution, fair: Array) -> ParetoWeights | None:
    dual = solution.dual
    if dual is None:
        return None
    demand_prices = 0 * fair
    block = program.row_block("demand")
    demand_prices[block.kept] = dual[block.span]
    # moving "nobody loses" into the objective adds minus its dual (which is <= 0) to each user's weight
    weights = (1 - dual[program.row_block("nobody_loses").span]) / fair
    return ParetoWeights(weights, dual[program.row_block("capacity").span].copy(), demand_prices)


def _owed(market: Market, before: Array, after: Array, lost: Array, payer: int) -> Number:
    """Return what it would cost one user, the payer, to give others back what they may have ``lost`` (n,) by a trade.

    Who lost something gets GPUs of types that it held ``before`` (n, k) from who holds such ``after`` the trade, who
    gets others in turn, until the payer gives some; what cannot come from the payer did not go there. It is in parts of
    what the payer's equal share is worth, and rather too much: each type that a user held counts as all that it lost.
    """
    useful, fair = market.speedup > 0, market.fair_utility()
    speedup = np.where(useful, market.speedup, 1)
    rates = np.log(speedup)  # no float holds some products of these
    costs = np.where(np.arange(len(fair)) == payer, -np.log(fair), INFINITY)  # of a unit of each user's throughput
    for _ in market.users:
        left()
        prices = np.where(useful & (after > 0), costs[:, None] + rates, INFINITY).min(axis=0)
        lower = np.minimum(costs, np.where(useful, prices - rates, INFINITY).min(axis=1))
        if not (lower < costs - 1).any():
            break
        costs = lower
    given = np.where(useful, np.minimum(lost[:, None] / speedup, before), 0)
    owed: Number = (given * np.exp(np.where(prices < INFINITY, np.minimum(prices, LARGEST), -INFINITY))).sum()
    return owed


def _fit(market: Market, shares: Array, tolerance: Number) -> Array | None:
    """Return the shares scaled down into the capacities; None if they exceed these by more than the tolerance."""
    size = sizes(market)
    given = shares.sum(axis=0)
    if (given - market.capacity > tolerance * size).any() or (shares < -tolerance * size).any():
        return None
    return _within(market, shares)


def _within(market: Market, shares: Array) -> Array:
    """Return the shares without those below 0, scaled down into the capacities."""
    shares = np.maximum(shares, 0)
    given = shares.sum(axis=0)
    over = given > market.capacity
    return np.asarray(shares * np.where(over, market.capacity / np.where(over, given, 1), 1))


def _dominated(optima: Optima) -> Array | None:
    """Return the optimum from which the gain without a loser is largest; None if every optimum is efficient."""
    market, (n, k) = optima.market, optima.market.shape
    first = len(optima.choices.cost)
    better = [[first + i * k + j for j in range(k)] for i in range(n)]
    objective: Terms = {}
    rows = [({better[i][j]: 1 for i in range(n)}, -INFINITY, market.capacity[j]) for j in range(k)]
    rows += [(dict.fromkeys(better[i], 1), -INFINITY, market.limit[i]) for i in optima.limited()]
    for i in range(n):
        gain = {better[i][j]: speed / optima.fair[i] for j, speed in enumerate(market.speedup[i]) if speed}
        gain |= optima.worth(i, i, -1 / optima.fair[i])
        rows.append((gain, 0, INFINITY))
        objective |= gain
    found = optima.most(objective, extended(optima.choices, [(0, INFINITY)] * (n * k), rows))
    assert found is not None
    return optima.allocation(found[1]) if found[0] > 0 else None


def _balances(optima: Optima) -> list[tuple[Terms, Number]]:
    """Return for each type and each demand its shares with its slack, an extra variable, and what they add up to."""
    (n, k), first = optima.market.shape, len(optima.choices.cost)
    given = [([(i, j) for i in range(n)], optima.market.capacity[j]) for j in range(k)]
    given += [([(i, j) for j in range(k)], optima.market.limit[i]) for i in optima.limited()]
    return [({optima.column(*at): 1 for at in held} | {first + place: 1}, t) for place, (held, t) in enumerate(given)]


def _improving(optima: Optima, balances: list[tuple[Terms, Number]], order: list[int], positive: set[int]) -> list[int]:
    """Return the variables that decrease in some trade that hurts nobody and helps somebody; empty if there is none.

    A trade lowers only positive variables, so that any allocation in which these are positive can follow it a little.
    """
    at = {column: number for number, column in enumerate(order)}
    rows: list[tuple[Terms, Any, Any]] = [
        ({at[column]: 1 for column in terms if column in at}, 0, 0) for terms, _ in balances
    ]
    objective: Terms = {}
    for i in range(len(optima.market.users)):
        gain = {at[column]: rate for column, rate in optima.worth(i, i, 1 / optima.fair[i]).items()}
        rows.append((gain, 0, INFINITY))
        objective |= gain
    bounds = [(-1 if column in positive else 0, INFINITY) for column in order]
    nothing = Formulation("trades that hurt nobody").program().as_(Fraction)
    found = optima.most(objective, extended(nothing, bounds, rows))
    assert found is not None
    changes = zip(order, found[1], strict=True) if found[0] > 0 else ()
    return [column for column, change in changes if change < 0]
