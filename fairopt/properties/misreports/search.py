"""The search for a misreport that pays: samples everywhere, then a local search from the best samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat
from time import monotonic

import numpy as np

from fairopt.errors import NotSolved
from fairopt.program import Array
from fairopt.properties.effort import KINDS, Effort
from fairopt.properties.misreports.allowed import CandidateReports, Misreports, in_turn
from fairopt.properties.misreports.reports import Reports

#: So many of the best misreports, of different users, are improved side by side.
CLIMBERS = 4
#: The steps of the improvement, relative to an entry: from the first to the last, each a third of the one before.
FIRST_STEP, LAST_STEP = 0.3, 1e-4


@dataclass(frozen=True, eq=False)
class Found:
    """A misreport (k,) and its gain in the user's units; ``share`` is the gain over the equal share's throughput."""

    user: int
    report: Array
    gain: float
    share: float


class MisreportSearch:
    """One search: counts the misreports that it tries of each kind, and returns the best of each."""

    def __init__(self, asked: Reports, effort: Effort, *, fixed: int | None) -> None:
        self.asked, self.effort = asked, effort
        moves = [CandidateReports(asked.market, user, fixed) for user in range(len(asked.market.users))]
        self._moves = {each.user: each for each in moves if each.free}
        self._random = np.random.default_rng(effort.seed)
        self.tried: dict[str, int] = {}
        self.stopped: set[str] = set()

    def best(self, kind: Misreports, budget: int, *, structured: bool, start: Found | None = None) -> list[Found]:
        """Return the misreports of this kind that gain most within ``budget`` evaluations, one a user, best first.

        ``structured`` begins with coordinate and boundary moves; random ones follow. ``start`` is also improved.
        """
        self.tried[kind.name] = 0
        self._ends = self.effort.ends(KINDS)
        best = {} if start is None else {start.user: start}
        # most of the effort samples everywhere, user by user in turn; the rest improves the best samples
        wide = budget - budget // 4
        for users, reports in self._chunks(self._everywhere(kind, wide, structured), wide):
            for found in self._try(users, reports, kind):
                _take(best, found)
            if self._over(kind):
                return _ranked(best)
        self._climb(best, kind, budget)
        return _ranked(best)

    def confirmed(self, candidates: list[Found]) -> Found | None:
        """Return the best of ``candidates`` (best first), decided again by the solver of the truth.

        A candidate's gain may come from another optimum than the one that the solver returns.
        """
        if not self.asked.screened:
            return next(iter(candidates), None)
        best: Found | None = None
        for each in candidates:
            if best is not None and best.share >= each.share:
                break
            try:
                gain = self.asked.gain(each.user, each.report)
            except NotSolved:  # a report that the policy cannot answer gains nothing
                continue
            true = replace(each, gain=gain, share=gain / float(self.asked.fair[each.user]))
            best = true if best is None or true.share > best.share else best
        return best

    def _everywhere(self, kind: Misreports, budget: int, structured: bool) -> Iterator[tuple[int, Array]]:
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
        """Yield ``budget`` reports in chunks as users (cases,) and reports (cases, k)."""
        stream = islice(stream, budget)
        while chunk := list(islice(stream, self.asked.chunk)):
            yield np.array([user for user, _ in chunk]), np.array([report for _, report in chunk])

    def _try(self, users: Array, reports: Array, kind: Misreports) -> list[Found]:
        gains = self.asked.gains(users, reports, lambda: self._over(kind))
        self.tried[kind.name] += len(gains)
        shares = gains / self.asked.fair[users[: len(gains)]]
        answered = np.flatnonzero(~np.isnan(gains))
        return [Found(int(users[p]), reports[p], float(gains[p]), float(shares[p])) for p in answered]

    def _climb(self, best: dict[int, Found], kind: Misreports, budget: int) -> None:
        """Improve the best reports side by side by pattern search; a finished one makes room for the next."""
        waiting = iter([each.user for each in _ranked(best)])
        step = dict.fromkeys(islice(waiting, CLIMBERS), FIRST_STEP)
        while step and (left := budget - self.tried[kind.name]) > 0 and not self._over(kind):
            users: list[int] = []
            reports: list[Array] = []
            for user in step:
                near = self._moves[user].around(best[user].report, step[user])
                truth = self._moves[user].truth
                near = near[kind.allows(truth, near) & (near != truth).any(axis=1)]
                users += [user] * len(near)
                reports += list(near)
            before = dict(best)
            if users:
                for found in self._try(np.array(users[:left]), np.array(reports[:left]), kind):
                    _take(best, found)
            for user in list(step):
                if best[user] is before[user]:
                    step[user] /= 3
                    if step[user] <= LAST_STEP:
                        del step[user]
                        step |= dict.fromkeys(islice(waiting, 1), FIRST_STEP)

    def _over(self, kind: Misreports) -> bool:
        over = monotonic() > self._ends
        if over:
            self.stopped.add(kind.name)
        return over


def _take(best: dict[int, Found], found: Found) -> None:
    if found.user not in best or found.share > best[found.user].share:
        best[found.user] = found


def _ranked(best: dict[int, Found]) -> list[Found]:
    return sorted(best.values(), key=lambda found: (-found.share, found.user))
