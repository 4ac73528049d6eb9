"""A misreport that pays, shrunk until a person can check it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from fairopt.errors import BadInput
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties.effort import Effort
from fairopt.properties.misreports.allowed import EVERY_KIND, Misreports
from fairopt.properties.misreports.exact_reports import ExactReports, Misreport
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.shrinking import Shrunk, burden, last, shrinks
from fairopt.properties.misreports.strategy_proofness import StrategyProofness
from fairopt.properties.verdict import TOLERANCE

#: Factors on a true speedup to report: the simplest numbers on both sides of 1.
SIMPLE = tuple(Fraction(text) for text in ("1", "2", "3", "4", "5", "6", "1/2", "3/2", "1/3", "2/3", "5/2"))
#: The most reports that pay in floats to decide exactly before a market is given up.
DECIDED = 4
#: Reports tried on a market whose numbers are not simple yet.
WIDE = Effort(evaluations=120)


def shrink(
    policy: Policy,
    market: Market,
    misreport: Misreport,
    *,
    kind: Misreports | None = None,
    effort: Effort | None = None,
) -> Shrunk[Misreport]:
    """Return the smallest market found on which a misreport of the same kind pays, and that one; gains are exact.

    Smallest means fewest users, then fewest types, then the smallest numbers, those of the report included. ``kind`` is
    by default the narrowest one of ``misreport``. If ``misreport`` gains with every optimum, so does the result. At
    most ``effort.evaluations`` markets are tried, 1,000 by default. Errors: `BadInput` where ``misreport`` does not pay
    in exact decisions.
    """
    best = last(shrinking_misreports(policy, market, misreport, kind=kind, effort=effort))
    if best is None:
        problem = f"{misreport} pays nothing in exact decisions"
        raise BadInput(problem, place="shrink", remedy="Give an exact witness of a search")
    return best


def shrinking_misreports(
    policy: Policy,
    market: Market,
    misreport: Misreport,
    *,
    kind: Misreports | None = None,
    effort: Effort | None = None,
) -> Iterator[Shrunk[Misreport]]:
    """Yield the smaller and smaller markets that `shrink` finds, each with a misreport that pays."""
    truth = market.speedup[market.index(misreport.user)]
    told = np.array([Fraction(value) for value in misreport.report.tolist()], dtype=object)
    if kind is None:
        kind = next(each for each in EVERY_KIND if each.allows(truth, told))
    misreports = _Misreports(policy, kind, every_optimum=misreport.every_optimum)
    given = misreports.decided(ExactReports(policy, market), market.index(misreport.user), told)

    def attempt(each: Market) -> Misreport | None:
        return given if each is market else misreports.on(each)

    yield from shrinks(market, attempt, effort, numbers=lambda witness: witness.report)


class _Misreports:
    """Looks for the simplest misreport that pays on a market, in exact decisions."""

    def __init__(self, policy: Policy, kind: Misreports, *, every_optimum: bool) -> None:
        self.policy, self.kind, self.every_optimum = policy, kind, every_optimum

    def on(self, market: Market) -> Misreport | None:
        """Return the misreport in the simplest numbers that pays; None where none was found."""
        if len(market.users) == 1:
            return None  # nobody to gain from
        small = max(value.numerator + value.denominator for value in market.speedup.ravel()) <= 2 * len(SIMPLE)
        return self._simple(market) if small else self._searched(market)

    def decided(self, exactly: ExactReports, user: int, report: Array) -> Misreport | None:
        """Return a report's exact result; None where it does not pay, with every optimum if that is required."""
        found = exactly.misreport(user, report)
        if found is None or not found.gain > 0:
            return None
        found = exactly.for_every_optimum(found)
        return found if found.every_optimum or not self.every_optimum else None

    def _searched(self, market: Market) -> Misreport | None:
        verdict = StrategyProofness().search(self.policy, market, effort=WIDE).by_misreport[self.kind.name]
        witness: Misreport | None = verdict.witness if verdict.exact else None
        return witness if witness and (witness.every_optimum or not self.every_optimum) else None

    def _simple(self, market: Market) -> Misreport | None:
        asked = Reports(self.policy, market)
        truths = enumerate(market.speedup)
        reports = [(user, told) for user, truth in truths for told in self._reports(truth, every=asked.screened)]
        reports.sort(key=lambda pair: burden(pair[1]))
        users = np.array([user for user, _ in reports])
        gains = asked.gains(users, np.array([report for _, report in reports]).astype(float))
        pays = np.flatnonzero(gains > TOLERANCE * asked.fair[users])
        if not len(pays):
            return None
        exactly = ExactReports(self.policy, market)
        decided = (self.decided(exactly, *reports[place]) for place in pays[:DECIDED])
        return next(filter(None, decided), None)

    def _reports(self, truth: Array, *, every: bool) -> Iterator[Array]:
        """Yield the reports of a user in simple numbers: of ``every`` entry, else of one entry at a time."""
        runs = np.flatnonzero(truth > 0)
        choices = [sorted({*SIMPLE, value}) for value in truth[runs]]
        one_changed = (
            (*truth[runs[:place]], value, *truth[runs[place + 1 :]])
            for place in range(len(runs))
            for value in choices[place]
        )
        for entries in itertools.product(*choices) if every and len(runs) <= 2 else one_changed:
            report = truth.copy()
            report[runs] = entries
            if (report != truth).any() and self.kind.allows(truth, report):
                yield report
