"""The search for the lie of a kind that pays most: by how many times it multiplies what its liars get.

Gains are sought in floats. Where policy and market are exact, the best is rounded to simple fractions and decided
again: its factor is then that of two exact decisions. What a search does not find may still be there; `at_most` bounds
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fairopt.discovery import AnyPolicy, policy_of, several
from fairopt.errors import BadInput, NotSolved
from fairopt.incentives.bounds import AtMost, at_most
from fairopt.incentives.lies import AnyLieKind, Liars, Lie, LieKind, SpeedupReport, every_kind, kind_of
from fairopt.numbers import FLOATS, RATIONALS
from fairopt.policy import Allocation, Policy, decide
from fairopt.problem import Market
from fairopt.problem.tables import few
from fairopt.program import Array, Number, short_text
from fairopt.properties import Effort
from fairopt.properties.misreports.exact_reports import exact_or_none, simplest
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import ANYTHING, MisreportSearch

#: Larger markets (in users times types) are decided in floats only.
EXACT_UP_TO = 250
#: Factors below 1 plus this are no gain in floats.
LITTLE = 1e-7
#: Of the most promising choices of liars so many are improved, by steps from the first to the last.
CLIMBERS, FIRST_STEP, LAST_STEP = 3, 0.3, 1e-4
#: Relative widths in which simple fractions are sought.
WIDTHS = (0.1, 0.01, 1e-4, 1e-7)
#: An exact lie is good enough with this part of the best gain in floats.
GOOD = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class PaidLie:
    """A lie and what it gives: ``factors`` by liar, true throughput after it over that of the truth.

    ``exact`` says whether both decisions are.
    """

    kind: LieKind
    lie: Lie
    factors: Mapping[int, Number]
    exact: bool

    @property
    def factor(self) -> Number:
        """The least of the factors: each of the liars gains at least this."""
        return min(self.factors.values())

    def __repr__(self) -> str:
        return f"<PaidLie: {self.kind.name}, {short_text(self.factor)} times, {'exact' if self.exact else 'in floats'}>"


@dataclass(frozen=True, eq=False, repr=False)
class Incentives:
    """What lies pay under one policy on one market: the best found of each kind, None where none was found to pay.

    ``bounds`` has for the kinds of lies by one user what is proved of all; not about demands, nor, with demands, about
    weights.

    >>> from fairopt.incentives import incentives
    >>> from fairopt.properties import Effort
    >>> incentives("equal-split", Market.of([[1, 2], [1, 5]], [1, 1]), ["copies", "any"], Effort(evaluations=10))
    <Incentives: equal-split; copies pays 4/3 times; none found: any>
    """

    policy: Policy
    lies: Mapping[LieKind, PaidLie | None]
    bounds: Mapping[LieKind, AtMost]

    def __repr__(self) -> str:
        paid = [f"{lie.kind.name} pays {short_text(lie.factor)} times" for lie in self.lies.values() if lie is not None]
        rest = [kind.name for kind, lie in self.lies.items() if lie is None]
        said = [", ".join(paid), f"none found: {few(rest)}" if rest else ""]
        return f"<Incentives: {'; '.join((self.policy.name, *filter(None, said)))}>"


def incentives(
    policy: AnyPolicy,
    market: Market,
    kinds: AnyLieKind | Iterable[AnyLieKind] | None = None,
    effort: Effort | None = None,
) -> Incentives:
    """Return the best lies of each kind (all by default) and the proved bounds; ``effort`` is for each kind.

    ``policy`` may be a name, a class or an object; so may ``kinds``, one or several of `every_kind`.

    Errors: `BadInput` for unknown names, and for a market with entitlements or with speedups that are not known; those
    of `fairopt.decide`. Source: ours.

    >>> market = Market.of([[1, 1], [1, 5]], capacity=[1, 1])
    >>> found = incentives("oef-noncooperative", market, ["larger", "smaller"], Effort(evaluations=60))
    >>> [kind.name for kind, lie in found.lies.items() if lie is None]
    ['larger']
    """
    policy, every = policy_of(policy, Market), every_kind(market)
    kinds = every if kinds is None else list(dict.fromkeys(kind_of(each, market) for each in several(kinds)))
    truth = truthful(policy, market)
    lies = {kind: best_lie(policy, market, kind, effort, truth=truth) for kind in kinds}
    reports = [kind for kind in kinds if isinstance(kind, SpeedupReport)]
    if (anything := SpeedupReport(ANYTHING)) in lies:  # the narrow kinds are of this kind too
        found = [lie for kind in reports if (lie := lies[kind]) is not None]
        best = max(found, key=lambda lie: lie.factor, default=None)
        lies[anything] = None if best is None else replace(best, kind=anything)
    told = [kind for kind in kinds if kind.weight_told(market) is not None]
    bounds: dict[LieKind, AtMost] = {kind: at_most(policy, market, truth, kind) for kind in told}
    return Incentives(policy, lies, bounds)


def truthful(policy: Policy, market: Market) -> Allocation:
    """Return the decision on the truth, exact where it can be and the market is small."""
    exact = exact_or_none(policy, market) if market.exact and market.speedup.size <= EXACT_UP_TO else None
    return exact or decide(policy, market.as_(float))


def best_lie(
    policy: AnyPolicy,
    market: Market,
    kind: AnyLieKind,
    effort: Effort | None = None,
    *,
    truth: Allocation | None = None,
) -> PaidLie | None:
    """Return the lie of a kind that pays most of those found; None where none pays.

    ``policy`` and ``kind`` may be names. Among several liars none may lose; the factor is that of the one who gains
    least. Errors: as `incentives`.

    >>> found = best_lie("equal-split", Market.of([[1, 2], [1, 5]], [1, 1]), "copies", Effort(evaluations=10))
    >>> str(found.factor)
    '4/3'
    """
    policy, kind = policy_of(policy, Market), kind_of(kind, market)
    effort, truth = effort or Effort(), truth or truthful(policy, market)
    trial = _Trial(policy, market.as_(float), kind, truth.utilities.astype(float))
    own = trial.reports(effort) if isinstance(kind, SpeedupReport) else trial.searched(effort)
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
    """Tries lies of one kind under one policy; ``own`` (n,) is what users have at the truth."""

    def __init__(self, policy: Policy, market: Market, kind: LieKind, own: Array, *, exact: bool = False) -> None:
        self.policy, self.market, self.kind, self.own, self.exact = policy, market, kind, own, exact

    def paid(self, liars: Liars, factors: Array) -> PaidLie | None:
        """Return what one lie gives; None where it is none of the kind, or the policy has no answer."""
        try:
            lie = self.kind.told(self.market, liars, factors)
        except BadInput:  # numbers that no market takes can be told by nobody
            return None
        if lie is None:
            return None
        if self.exact:
            decision = exact_or_none(self.policy, lie.told)
            if decision is None or not decision.exact:
                return None
        else:
            try:
                decision = decide(self.policy, lie.told)
            except NotSolved:  # a lie that the policy cannot answer gains nothing
                return None
        kind = RATIONALS if self.exact else FLOATS
        reached = lie.reached(self.market, decision.shares.astype(kind.dtype))
        factors_of = {user: _ratio(kind(value), self.own[user]) for user, value in reached.items()}
        return PaidLie(self.kind, lie, factors_of, self.exact)

    def value(self, liars: Liars, factors: Array) -> float:
        """Return the least factor of the liars; 0 where there is none."""
        found = self.paid(liars, factors)
        return 0.0 if found is None else float(found.factor)

    def reports(self, effort: Effort) -> Iterator[Valued]:
        """Yield the best report of each user, by the search that decides many at once."""
        assert isinstance(self.kind, SpeedupReport)
        asked = Reports(self.policy, self.market)
        search = MisreportSearch(asked, effort, fixed=None)
        for found in search.best(self.kind.misreports, effort.evaluations, structured=True):
            truth = self.market.speedup[found.user]
            factors = np.divide(found.report, truth, out=np.ones_like(truth), where=truth > 0)
            yield self.value((found.user,), factors), (found.user,), factors

    def searched(self, effort: Effort) -> Iterator[Valued]:
        """Yield the best lies of the best liars: samples for all in turn, then a pattern search for some."""
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
                    reached = self.value(liars, other)
                    if reached > value:
                        value, factors = reached, other
            step = step if value > before else step / 3
        return value, liars, factors

    def rounded(self, liars: Liars, factors: Array, value: float) -> PaidLie | None:
        """Return the first exact lie in simple numbers that pays almost as much; else the one that pays most."""
        best: PaidLie | None = None
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
    out = np.empty(factors.shape, dtype=object)
    for place in np.ndindex(factors.shape):
        out[place] = change(float(factors[place]))
    return out


def _ratio(reached: Number, own: Number) -> Number:
    if own > 0:
        return reached / own
    return float("inf") if reached > 0 else 1
