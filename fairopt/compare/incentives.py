"""How much misreports pay: the search for the one of a kind that multiplies what its liars get by most.

Gains are sought in floats. Where policy and market are exact, the best is rounded to simple fractions and decided
again: its factor is then that of two exact decisions. What a search does not find may still be there; `at_most` bounds
it.

The bound on one market: what a policy is proved to give users that tell the truth (freedom from envy, a fair share)
holds for the others whatever the liar reports. So the liar has at most what it has in the best allocation for it in
which the others have that: a linear program, whose dual bounds it. So it is for a user that enters as several, or
claims another weight: the rows of others who envy none of its parts add up to those of one user with the weight of all
parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.exact.bound import exact_bound
from fairopt.backends.solution import Interval
from fairopt.discovery import AnyPolicy, policy_of, several
from fairopt.errors import BadInput, NotSolved
from fairopt.numbers import FLOATS, RATIONALS
from fairopt.policy import Allocation, Policy, decide
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program, objects, short_text
from fairopt.properties.misreports.exact_reports import exact_or_none, simplest
from fairopt.properties.misreports.kinds import ANYTHING, Liars, MisreportKind, every_kind, kind_of, reached
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import MisreportSearch
from fairopt.properties.property import Effort
from fairopt.report import Grid, Key, ResultForm, Statement, Tabular, few

#: Larger markets (in users times types) are decided in floats only.
EXACT_UP_TO = 250
#: Programs larger than this (in shares) are solved in floats, and their bound is made exact.
EXACT_BOUND_UP_TO = 40
#: Factors below 1 plus this are no gain in floats.
LITTLE = 1e-7
#: Of the most promising choices of liars so many are improved, by steps from the first to the last.
CLIMBERS, FIRST_STEP, LAST_STEP = 3, 0.3, 1e-4
#: Relative widths in which simple fractions are sought.
WIDTHS = (0.1, 0.01, 1e-4, 1e-7)
#: An exact misreport is good enough with this part of the best gain in floats.
GOOD = 0.95


#: A misreport of a ``kind`` and what it gives: ``factors`` by liar, true throughput after it over that of the truth.
#: ``told`` is the market that the policy decides, ``rows`` are those of each liar in it. Each of the liars gains at
#: least ``factor``. ``exact`` says whether both decisions are.
PAID = ResultForm(
    "A misreport that pays.",
    sentence=lambda it: f"{it.kind.name}, {short_text(it.factor)} times, {'exact' if it.exact else 'in floats'}",
)


@dataclass(frozen=True, eq=False, repr=False)
class Incentives(Tabular):
    """What misreports pay under a policy on a market: the best found of each kind, None where none was found to pay.

    ``bounds`` has for the kinds by one user between what the largest factor is proved to lie; not about demands, nor,
    with demands, about weights.

    >>> incentives("equal-split", Market.of([[1, 2], [1, 5]], [1, 1]), ["copies", "any"], Effort(evaluations=10))
    <Incentives: equal-split; copies pays 4/3 times; none found: any>
    """

    policy: Policy
    misreports: Mapping[MisreportKind, Statement | None]
    bounds: Mapping[MisreportKind, Interval]

    form = ResultForm(
        "What misreports pay under a policy.",
        Key("policy", str, "Its name.", lambda found: found.policy.name),
        Key("factors", dict[str, Number | None], "By kind, that of the best misreport found; null for none."),
    )

    @property
    def factors(self) -> dict[str, Number | None]:
        """By kind, how many times as much the best misreport found gives its liars at least; None for none."""
        return {kind.name: each.factor if each else None for kind, each in self.misreports.items()}

    def _table(self) -> Grid:
        bounds = [self.bounds[kind].upper if kind in self.bounds else None for kind in self.misreports]
        return Grid("kind", [*self.factors], {"best found": [*self.factors.values()], "at most": bounds})

    def __repr__(self) -> str:
        found = filter(None, self.misreports.values())
        paid = [f"{each.kind.name} pays {short_text(each.factor)} times" for each in found]
        rest = [kind.name for kind, each in self.misreports.items() if each is None]
        said = [", ".join(paid), f"none found: {few(rest)}" if rest else ""]
        return f"<Incentives: {'; '.join((self.policy.name, *filter(None, said)))}>"


def incentives(
    policy: AnyPolicy,
    market: Market,
    kinds: str | MisreportKind | Iterable[str | MisreportKind] | None = None,
    effort: Effort | None = None,
) -> Incentives:
    """Return the best misreports of each kind (all by default) and the proved bounds; ``effort`` is for each kind.

    ``policy`` may be a name, a class or an object; ``kinds`` are one or several of `every_kind`, also by name.

    Errors: `BadInput` for unknown names, and for a market with entitlements or with speedups that are not known; those
    of `fairopt.decide`. Source: ours.

    >>> market = Market.of([[1, 1], [1, 5]], capacity=[1, 1])
    >>> found = incentives("oef-noncooperative", market, ["larger", "smaller"], Effort(evaluations=60))
    >>> [kind.name for kind, each in found.misreports.items() if each is None]
    ['larger']
    """
    policy, every = policy_of(policy, Market), every_kind(market)
    kinds = every if kinds is None else list(dict.fromkeys(kind_of(each, market) for each in several(kinds)))
    truth = _truthful(policy, market)
    best = {kind: best_misreport(policy, market, kind, effort, truth=truth) for kind in kinds}
    if ANYTHING in best:  # the narrow kinds are of this kind too
        found = [each for kind, each in best.items() if kind.is_report and each is not None]
        most = max(found, key=lambda each: each.factor, default=None)
        best[ANYTHING] = None if most is None else most.but(kind=ANYTHING)
    bounds = {kind: at_most(policy, market, truth, kind) for kind in kinds if kind.weight_told(market) is not None}
    return Incentives(policy, best, bounds)


def _truthful(policy: Policy, market: Market) -> Allocation:
    """Return the decision on the truth, exact where it can be and the market is small."""
    exact = exact_or_none(policy, market) if market.exact and market.speedup.size <= EXACT_UP_TO else None
    return exact or decide(policy, market.as_(float))


def best_misreport(
    policy: AnyPolicy,
    market: Market,
    kind: str | MisreportKind,
    effort: Effort | None = None,
    *,
    truth: Allocation | None = None,
) -> Statement | None:
    """Return the misreport of a kind that pays most of those found; None where none pays.

    ``policy`` and ``kind`` may be names. Among several liars none may lose; the factor is that of the one who gains
    least. Errors: as `incentives`.

    >>> found = best_misreport("equal-split", Market.of([[1, 2], [1, 5]], [1, 1]), "copies", Effort(evaluations=10))
    >>> str(found.factor)
    '4/3'
    """
    policy, kind = policy_of(policy, Market), kind_of(kind, market)
    effort, truth = effort or Effort(), truth or _truthful(policy, market)
    trial = _Trial(policy, market.as_(float), kind, truth.utilities.astype(float))
    own = trial.reports(effort) if kind.is_report else trial.searched(effort)
    best = next(iter(sorted(own, key=lambda each: -each[0])), None)
    if best is None:
        return None
    value, liars, factors = best
    if truth.exact and market.exact:
        exact = _Trial(policy, market, kind, truth.utilities, exact=True)
        found = exact.rounded(liars, factors, value)
        return found if found is not None and found.factor > 1 else None
    return trial.paid(liars, factors) if value > 1 + LITTLE else None


Valued = tuple[float, Liars, Array]


class _Trial:
    """Tries misreports of one kind under one policy; ``own`` (n,) is what users have at the truth."""

    def __init__(self, policy: Policy, market: Market, kind: MisreportKind, own: Array, *, exact: bool = False) -> None:
        self.policy, self.market, self.kind, self.own, self.exact = policy, market, kind, own, exact

    def paid(self, liars: Liars, factors: Array) -> Statement | None:
        """Return what one misreport gives; None where it is none of the kind, or the policy has no answer."""
        try:
            reported = self.kind.reported(self.market, liars, factors)
        except BadInput:  # numbers that no market takes can be told by nobody
            return None
        if reported is None:
            return None
        told, rows = reported
        if self.exact:
            decision = exact_or_none(self.policy, told)
            if decision is None or not decision.exact:
                return None
        else:
            try:
                decision = decide(self.policy, told)
            except NotSolved:  # a misreport that the policy cannot answer gains nothing
                return None
        kind = RATIONALS if self.exact else FLOATS
        got = reached(self.market, rows, decision.shares.astype(kind.dtype))
        factors_of = {user: _ratio(kind(value), self.own[user]) for user, value in got.items()}
        least = min(factors_of.values())
        return PAID.of(kind=self.kind, told=told, rows=rows, factors=factors_of, factor=least, exact=self.exact)

    def value(self, liars: Liars, factors: Array) -> float:
        """Return the least factor of the liars; 0 where there is none."""
        found = self.paid(liars, factors)
        return 0.0 if found is None else float(found.factor)

    def reports(self, effort: Effort) -> Iterator[Valued]:
        """Yield the best report of each user, by the search that decides many at once."""
        asked = Reports(self.policy, self.market)
        search = MisreportSearch(asked, effort, fixed=None)
        for found in search.best(self.kind, effort.evaluations, structured=True):
            truth = self.market.speedup[found.user]
            factors = np.divide(found.report, truth, out=np.ones_like(truth), where=truth > 0)
            yield self.value((found.user,), factors), (found.user,), factors

    def searched(self, effort: Effort) -> Iterator[Valued]:
        """Yield the best misreports of the best liars: samples for all in turn, then a pattern search for some."""
        random = np.random.default_rng(effort.seed)
        liars, shape = self.kind.liars(self.market), self.kind.shape(self.market)
        best: dict[Liars, tuple[float, Array]] = {}
        wide = effort.evaluations // 2
        for number in range(max(wide, 1)):
            who = liars[number % len(liars)]
            turn = number // len(liars)
            factors = self._sample(random, shape, turn)
            value = self.value(who, factors)
            if who not in best or value > best[who][0]:
                best[who] = value, factors
        ranked = sorted(best.items(), key=lambda item: -item[1][0])[:CLIMBERS]
        for who, start in ranked:
            yield self._climbed(who, start, max(1, (effort.evaluations - wide) // len(ranked)))

    def _sample(self, random: np.random.Generator, shape: tuple[int, ...], turn: int) -> Array:
        if turn == 0:
            return np.ones(shape)  # as several users the truth alone may pay
        spread = random.choice([0.1, 0.4, 1.0, 2.0])
        return np.asarray(np.exp(random.normal(0, spread, shape) * (random.random(shape) < 0.7)))

    def _climbed(self, liars: Liars, start: tuple[float, Array], budget: int) -> Valued:
        """Improve factors one by one, by smaller and smaller steps."""
        value, factors = start
        step = FIRST_STEP
        while budget > 0 and step > LAST_STEP:
            before = value
            for place in np.ndindex(factors.shape):
                for by in (1 + step, 1 / (1 + step)):
                    other = factors.copy()
                    other[place] *= by
                    budget -= 1
                    gained = self.value(liars, other)
                    if gained > value:
                        value, factors = gained, other
            step = step if value > before else step / 3
        return value, liars, factors

    def rounded(self, liars: Liars, factors: Array, value: float) -> Statement | None:
        """Return the first exact misreport in simple numbers that pays almost as much; else the one that pays most."""
        best: Statement | None = None
        for each in self._simple(factors):
            found = self.paid(liars, each)
            if found is not None and (best is None or found.factor > best.factor):
                best = found
                if best.factor - 1 >= GOOD * (value - 1):
                    break
        return best

    def _simple(self, factors: Array) -> Iterator[Array]:
        for width in WIDTHS:
            yield _each(factors, lambda value: _near(value, width))  # noqa: B023
        yield _each(factors, Fraction)


def _near(value: float, width: float) -> Fraction:
    low, high = Fraction(value * (1 - width)), Fraction(value * (1 + width))
    return Fraction(1) if low <= 1 <= high else simplest(low, high)


def _each(factors: Array, change: Callable[[float], Fraction]) -> Array:
    return objects(change(float(each)) for each in factors.flat).reshape(factors.shape)


def _ratio(after: Number, own: Number) -> Number:
    if own > 0:
        return after / own
    return float("inf") if after > 0 else 1


def at_most(policy: AnyPolicy, market: Market, truth: Allocation, kind: str | MisreportKind = "any") -> Interval:
    """Return a bound for all lies of one kind by any one user, from what the policy is proved to do.

    ``policy`` and ``kind`` may be names. ``market`` has no entitlements, ``truth`` is the policy's decision on it. In
    floats the bound is that of the floats as they are; the decision's own error is not counted.

    Errors: `BadInput` for lies of several users or about demands, and with demands also about weights: of these nothing
    is proved.

    >>> from fairopt import allocate
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> print(at_most("oef-cooperative", market, allocate("oef-cooperative", market, exact=True)).upper)
    6/5
    """
    policy, kind = policy_of(policy, Market), kind_of(kind, market)
    times = kind.weight_told(market)
    if times is None:
        problem = f"nothing is proved of all lies of the kind {kind.name!r}"
        raise BadInput(problem, place="kind", remedy="Ask for reports of one user, or leave demands out")
    proved = {claim.property for claim in policy.claims if claim.known(market, kind.name if kind.is_report else "any")}
    if kind.is_report and "strategy_proofness" in proved:
        return Interval(1, 1, f"{policy.name} is proved to be truthful for such reports")
    envy, fair = "envy_freeness" in proved, "sharing_incentive" in proved
    kept = [words for words, so in (("are free of envy", envy), ("have their fair shares", fair)) if so]
    others = " and ".join(kept) or "may have nothing"
    bounds = [Interval(1, 1, "nobody has less than at the truth")]
    for user, own in enumerate(truth.utilities):
        most = _most(_stating(market, user, times), user, envy=envy, fair=fair)
        factor = most / own if own > 0 else float("inf") if most > 0 else 1
        theorem = _theorem(policy, market, user, kind)
        if theorem is not None and theorem < factor:
            bounds.append(
                Interval(1, theorem, f"a theorem on {policy.name}, by {market.users[user]}'s part of all weight")
            )
        else:
            bounds.append(Interval(1, factor, f"the most that {market.users[user]} can have where the others {others}"))
    return max(bounds, key=lambda each: each.upper)


def _theorem(policy: Policy, market: Market, user: int, kind: MisreportKind) -> Number | None:
    """Return what is proved of all markets: of weights, or of speedups, which parts of a weight may tell, too."""
    if market.demand is not None:
        return None
    part = market.weight[user] / market.weight.sum()
    if kind.about == "weight":
        return policy.weight_ratio(part, kind.most) if (market.speedup > 0).all() else None
    return policy.incentive_ratio(part) if kind.weight_told(market) == 1 else None


def _stating(market: Market, user: int, times: int) -> Market:
    """Return the market in which a user states so many times its weight."""
    weight = market.weight.copy()
    weight[user] *= times
    return market if times == 1 else replace(market, weight=weight)


def _most(market: Market, user: int, *, envy: bool, fair: bool) -> Any:
    """Return the most that ``user`` can have where the others, by their speedups, have what they are promised."""
    program = _program(market, user, envy=envy, fair=fair)
    if market.exact and market.speedup.size <= EXACT_BOUND_UP_TO:
        return Exact().solve(program).require_optimal().objective
    best = Highs().solve(program).require_optimal()
    proved = exact_bound(program, best.dual)
    whole = (market.speedup[user] * market.capacity).sum()
    return whole if proved is None else min(proved[0], whole)


def _program(market: Market, user: int, *, envy: bool, fair: bool) -> Program:
    """Return the program of the liar's best allocation; its demand bounds what it holds, as it does what it uses."""
    p = Formulation("the most by any report")
    share = shares_of(p, market)
    own = (market.speedup * share).sum(axis=1)
    p.maximize(own[user])
    others = _others(market, user)
    if fair:
        p.constrain("fair_share", own[others] >= market.fair_utility()[others])
    if envy:
        ratio = market.weight[:, None] / market.weight[None, :]
        wanted = np.zeros((len(market.users),) * 2, dtype=bool)
        wanted[others] = True
        np.fill_diagonal(wanted, val=False)
        p.constrain("envy_free", (own[:, None] >= market.speedup @ share.T * ratio).where(wanted))
    return p.program()


def _others(market: Market, user: int) -> list[int]:
    return [other for other in range(len(market.users)) if other != user]
