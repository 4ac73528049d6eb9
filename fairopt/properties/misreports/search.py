"""The search for a misreport of speedups that pays: samples everywhere, then a local search."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat, zip_longest
from time import monotonic
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from fairopt.deadline import remaining
from fairopt.errors import NotSolved, OutOfTime
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.properties.misreports.kinds import MisreportKind
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.property import KINDS, Effort

#: So many of the best misreports, of different users, are improved side by side.
CLIMBERS = 4
#: The steps of the improvement, relative to an entry: from the first to the last, each a third of the one before.
FIRST_STEP, LAST_STEP = 0.3, 1e-4
#: Gains of one level, in parts of the equal share's throughput, are equal: they differ by rounding only. It is
#: irrational, so that simple fractions lie on no border between two levels.
LEVEL = 2**0.5 * 1e-9
#: What is farther from the truth than another report, beyond rounding; what a speedup of zero counts as.
FARTHER, NOTHING = 1e-6, 1e-9

Entry = TypeVar("Entry")


def in_turn(*streams: Iterable[Entry]) -> Iterator[Entry]:
    """Yield an entry of each stream in turn, as long as any has one."""
    return (entry for turn in zip_longest(*streams) for entry in turn if entry is not None)


@dataclass(frozen=True)
class CandidateReports:
    """The reports to try: coordinate moves, boundary moves and random ones, for one user of one market (in floats).

    ``fixed`` is the column that must keep its value, where speedups are normalised to the slowest type; else None.
    """

    market: Market
    user: int
    fixed: int | None

    #: Factors from slight to gross; a rule that depends on an order of users reacts to those that change the order.
    factors: ClassVar[tuple[float, ...]] = (1.05, 1 / 1.05, 1.4, 1 / 1.4, 2.0, 0.5, 5.0, 0.2)
    #: The relative distance of boundary moves from the boundary, on either side.
    nudge: ClassVar[float] = 1e-3

    @property
    def truth(self) -> Array:
        """The true row (k,)."""
        return np.asarray(self.market.speedup[self.user])

    @property
    def free(self) -> list[int]:
        """The columns that may be misreported by a factor: where the user can run, the fixed one left out."""
        return [j for j in range(len(self.truth)) if j != self.fixed and self.truth[j] > 0]

    def coordinate(self) -> Iterator[Array]:
        """Yield reports of running where the user cannot run, then those that change one entry, or all free ones."""
        for j in np.flatnonzero(self.truth == 0).tolist():
            if j != self.fixed:
                yield self._with(j, self.truth.max())
                yield self._with(j, self.truth[self.truth > 0].min() / 10)
        for factor in self.factors:
            for j in self.free:
                yield self._with(j, self.truth[j] * factor)
            if len(self.free) > 1:
                yield self._with(self.free, self.truth[self.free] * factor)

    def boundary(self) -> Iterator[Array]:
        """Yield reports just past another user's ratio of two types, where the order of users by it changes."""
        for other, theirs in enumerate(self.market.speedup):
            for j in self.free if other != self.user else ():
                for base in np.flatnonzero((self.truth > 0) & (theirs > 0)):
                    if base != j and theirs[j] > 0:
                        same = self.truth[base] * theirs[j] / theirs[base]
                        yield self._with(j, same * (1 - self.nudge))
                        yield self._with(j, same * (1 + self.nudge))

    def structured(self, kind: MisreportKind) -> Iterator[Array]:
        """Yield boundary and coordinate moves of a kind, one of each in turn."""
        moves = in_turn(self.boundary(), self.coordinate())
        return (report for report in moves if kind.allows(self.truth, report))

    def random(self, generator: np.random.Generator, count: int) -> Array:
        """Return random reports (count, k): the free entries scaled, most of them by little."""
        free = len(self.free)
        spread = generator.choice([0.1, 0.4, 1.0], (count, 1))
        chosen = generator.random((count, free)) < 0.7
        chosen |= ~chosen.any(axis=1, keepdims=True)  # where no entry was drawn, all entries change
        reports = np.tile(self.truth, (count, 1))
        reports[:, self.free] *= np.exp(generator.normal(0, 1, (count, free)) * spread * chosen)
        return reports

    def around(self, report: Array, step: float) -> Array:
        """Return the neighbours of a report (2 * free, k): each free entry one step up and down."""
        near = np.tile(report, (2 * len(self.free), 1))
        for place, j in enumerate(self.free):
            near[2 * place, j] *= 1 + step
            near[2 * place + 1, j] /= 1 + step
        return near

    def _with(self, columns: Any, value: Any) -> Array:
        report = self.truth.copy()
        report[columns] = value
        return report


@dataclass(frozen=True, eq=False)
class Found:
    """A misreport (k,) and its gain in the user's units; ``share`` is the gain over the equal share's throughput.

    ``first`` is the report by which a climb first gained as much, None where that is ``report``.
    """

    user: int
    report: Array
    gain: float
    share: float
    first: Array | None = None

    @property
    def level(self) -> float:
        """The gain to be compared, without last digits, as those depend on the processor."""
        return round(self.share / LEVEL, 0)

    def leads_on_from(self, other: Found, truth: Array) -> bool:
        """Whether a climb goes on here: where the gain is larger, or as large and farther from the truth (k,).

        So it crosses a plateau by the reports themselves, and not by the last digits of gains.
        """
        if self.level != other.level:
            return self.level > other.level
        return _distance(self.report, truth) > _distance(other.report, truth) + FARTHER


_Search: TypeAlias = Generator[tuple[Array, Array], list[Found], list[Found]]


class MisreportSearch:
    """One search: counts the misreports of each kind that it tries, and those without an answer; returns the best."""

    def __init__(self, asked: Reports, effort: Effort, *, fixed: int | None) -> None:
        self.asked, self.effort = asked, effort
        moves = [CandidateReports(asked.market, user, fixed) for user in range(len(asked.market.users))]
        self._moves = {each.user: each for each in moves if each.free}
        self._random = np.random.default_rng(effort.seed)
        self.tried: dict[str, int] = {}
        self.unanswered: dict[str, int] = {}
        self.stopped: set[str] = set()

    def best(self, kind: MisreportKind, budget: int, *, structured: bool, start: Found | None = None) -> list[Found]:
        """Return the misreports of this kind that gain most within ``budget`` evaluations, one a user, best first.

        ``structured`` begins with coordinate and boundary moves; random ones follow. ``start`` is also improved.
        """
        return self.side_by_side({kind: budget}, structured=structured, start=start)[kind]

    def side_by_side(
        self, budgets: Mapping[MisreportKind, int], *, structured: bool, start: Found | None = None
    ) -> dict[MisreportKind, list[Found]]:
        """Return what `best` does of several kinds, whose misreports are decided together where many can be."""
        together = sum(budgets.values()) <= self.asked.chunk
        best: dict[MisreportKind, list[Found]] = {}
        for some in [list(budgets)] if together else [[kind] for kind in budgets]:
            self._ends = self.effort.ends(KINDS / len(some))
            searches = {kind: self._searched(kind, budgets[kind], structured, start) for kind in some}
            answers: dict[MisreportKind, list[Found]] = {}
            while searches:
                tasks = {}
                for kind, each in list(searches.items()):
                    try:
                        tasks[kind] = each.send(answers[kind]) if kind in answers else next(each)
                    except StopIteration as ended:
                        best[kind] = ended.value
                        del searches[kind]
                answers = self._try(tasks) if tasks else {}
        return best

    def _searched(self, kind: MisreportKind, budget: int, structured: bool, start: Found | None) -> _Search:
        """Yield users (cases,) and reports (cases, k) to try, for their gains; return the best, one a user."""
        self.tried[kind.name] = self.unanswered[kind.name] = 0
        best = {} if start is None else {start.user: start}
        # most of the effort samples everywhere, user by user in turn; the rest improves the best samples
        wide = budget - budget // 4
        for tried in self._chunks(self._everywhere(kind, wide, structured), wide):
            for found in (yield tried):
                _take(best, found)
            if self._over(kind):
                return _ranked(best)
        yield from self._climb(best, kind, budget)
        return _ranked(best)

    def confirmed(self, candidates: list[Found]) -> Found | None:
        """Return the best of ``candidates`` (best first), decided like the truth: gains may be of other optima."""
        if not self.asked.screened:
            return next(iter(candidates), None)
        best: Found | None = None
        for each in candidates:
            if best is not None and best.level >= each.level:
                break
            try:
                gain = self.asked.gain(each.user, each.report)
            except NotSolved:  # a report that the policy cannot answer gains nothing
                continue
            true = replace(each, gain=gain, share=gain / float(self.asked.fair[each.user]))
            best = true if best is None or true.level > best.level else best
        return best

    def _everywhere(self, kind: MisreportKind, budget: int, structured: bool) -> Iterator[tuple[int, Array]]:
        """Yield (user, report) without end, users in turn: structured moves first, then random ones."""
        if structured:
            yield from in_turn(*(zip(repeat(user), each.structured(kind)) for user, each in self._moves.items()))
        each = max(1, min(self.asked.chunk, budget) // max(1, len(self._moves)))
        while self._moves:
            drawn = []
            for user, moves in self._moves.items():
                reports = kind.into(moves.truth, moves.random(self._random, each))
                lies = (reports != moves.truth).any(axis=1) & kind.allows(moves.truth, reports)
                drawn.append(zip(repeat(user), reports[lies]))
            yield from in_turn(*drawn)

    def _chunks(self, stream: Iterator[tuple[int, Array]], budget: int) -> Iterator[tuple[Array, Array]]:
        """Yield at most ``budget`` reports in chunks as users (cases,) and reports (cases, k)."""
        stream = islice(stream, min(budget, sys.maxsize))  # islice takes no larger number
        while chunk := list(islice(stream, self.asked.chunk)):
            yield np.array([user for user, _ in chunk]), np.array([report for _, report in chunk])

    def _try(self, tasks: Mapping[MisreportKind, tuple[Array, Array]]) -> dict[MisreportKind, list[Found]]:
        """Return what those gain that are answered; what is cut off at the end of time was not tried."""
        users, reports = (np.concatenate(parts) for parts in zip(*tasks.values(), strict=True))
        try:
            gains = self.asked.gains(users, reports, lambda: self._over(*tasks), self._ends)
        except OutOfTime:
            if remaining() <= 0:  # of all that is asked, not of the search alone
                raise
            self.stopped |= {kind.name for kind in tasks}
            gains = np.zeros(0)
        shares = gains / self.asked.fair[users[: len(gains)]]
        answers, first = {}, 0
        for kind, (mine, _) in tasks.items():
            told = range(first, min(first + len(mine), len(gains)))
            self.tried[kind.name] += len(told)
            answered = [at for at in told if not np.isnan(gains[at])]
            self.unanswered[kind.name] += len(told) - len(answered)
            answers[kind] = [Found(int(users[at]), reports[at], float(gains[at]), float(shares[at])) for at in answered]
            first += len(mine)
        return answers

    def _climb(self, best: dict[int, Found], kind: MisreportKind, budget: int) -> _Search:
        """Improve the best reports side by side by pattern search; a finished one makes room for the next."""
        waiting = iter([each.user for each in _ranked(best)])
        step = dict.fromkeys(islice(waiting, CLIMBERS), FIRST_STEP)
        while step and (left := budget - self.tried[kind.name]) > 0 and not self._over(kind):
            # where nobody gains yet, all come to a step, however few are left, in their last types first: the fast ones
            none_gains = all(best[user].level <= 0 for user in step)
            streams = []
            for user in step:
                near = self._moves[user].around(best[user].report, step[user])
                truth = self._moves[user].truth
                near = near[kind.allows(truth, near) & (near != truth).any(axis=1)]
                streams.append(zip(repeat(user), near[::-1] if none_gains else near))
            tried = list(islice(in_turn(*streams) if none_gains else chain(*streams), left))
            before = dict(best)
            if tried:
                users, reports = (np.array(each) for each in zip(*tried, strict=True))
                for found in (yield users, reports):
                    last = best[found.user]
                    if found.leads_on_from(last, self._moves[found.user].truth):
                        first = last.report if last.first is None else last.first
                        best[found.user] = found if found.level > last.level else replace(found, first=first)
            for user in list(step):
                if best[user] is before[user]:
                    step[user] /= 3
                    if step[user] <= LAST_STEP:
                        del step[user]
                        step |= dict.fromkeys(islice(waiting, 1), FIRST_STEP)

        return _ranked(best)

    def _over(self, *kinds: MisreportKind) -> bool:
        over = monotonic() > self._ends
        if over:
            self.stopped |= {kind.name for kind in kinds}
        return over


def _take(best: dict[int, Found], found: Found) -> None:
    if found.user not in best or found.level > best[found.user].level:
        best[found.user] = found


def _distance(report: Array, truth: Array) -> float:
    """Return the sum of how many times each entry is changed, in logarithms."""
    return math.fsum(np.abs(np.log(np.maximum(report, NOTHING) / np.maximum(truth, NOTHING))))


def _ranked(best: dict[int, Found]) -> list[Found]:
    return sorted(best.values(), key=lambda found: (-found.level, found.user))
