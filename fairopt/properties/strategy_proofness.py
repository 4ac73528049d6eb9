"""Strategy-proofness: nobody gains by misreporting its speedups. A search, whose witness is a lie that pays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, zip_longest
from time import monotonic
from typing import ClassVar

import numpy as np

from fairopt.backends import Highs, Options, Solver
from fairopt.errors import BadInput, FairoptError, NotSolved
from fairopt.policy import Decision, Policy, Solve
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.properties.misreports import Anything, Larger, Misreports, Moves, Smaller
from fairopt.properties.verdict import TOLERANCE, Answer, Verdict

#: Larger, smaller and any misreports share the effort alike.
KINDS = 3


@dataclass(frozen=True)
class Effort:
    """How hard to search one policy: at most ``evaluations`` misreports and ``seconds``, from ``seed``.

    The same evaluations and seed make the same search; a limit of seconds depends on the machine.
    """

    evaluations: int = 600
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.evaluations < 1 or (self.seconds is not None and not self.seconds > 0):
            raise BadInput(f"got {self}", place="effort", remedy="Allow at least one evaluation and some time")


@dataclass(frozen=True, eq=False)
class Misreport:
    """A lie that pays: what the user has, what it says, what that gains it by its true speedups, both allocations.

    ``gain`` and the utilities are in the user's own units.
    """

    user: str
    truth: Array
    report: Array
    truthful_utility: Number
    utility: Number
    gain: Number
    truthful_allocation: Array
    allocation: Array

    def __str__(self) -> str:
        said = ", ".join(number_text(value) for value in self.report)
        true = ", ".join(number_text(value) for value in self.truth)
        got, gets = number_text(self.truthful_utility), number_text(self.utility)
        return f"{self.user} has speedups {true}, reports {said}, and gets {gets} instead of {got}"


class MechanismProperty(ABC):
    """A property of a policy on a market: of what it would decide on others' reports too."""

    name: ClassVar[str]
    short: ClassVar[str] = ""
    source: ClassVar[str]
    definition: ClassVar[str]

    @abstractmethod
    def search(
        self, policy: Policy, problem: Market, *, effort: Effort | None = None, backend: Solver | None = None
    ) -> Verdict:
        """Look for a counterexample within ``effort``."""


class StrategyProofness(MechanismProperty):
    """No user gains by its true speedups when it reports others.

    Papers differ in which reports they mean; ``by_misreport`` answers for larger, smaller and any, and the verdict
    itself is the one for any. With ``normalised`` the report on the slowest type is kept, as where speedups are
    measured relative to that type (OEF Sec. 2.3). Where a policy's optimum is not unique, the choice that
    the solver makes is part of the policy.

    Source: OEF Sec. 2.3.1 (1).
    """

    name = "strategy_proofness"
    short = "SP"
    source = "OEF Sec. 2.3.1 (1)"
    definition = "E_l(x_l(truth)) >= E_l(x_l(report)) for every user l and every report of the stated kind"

    def __init__(self, *, normalised: bool = False, tolerance: float = TOLERANCE) -> None:
        self.normalised, self.tolerance = normalised, tolerance

    def search(
        self, policy: Policy, problem: Market, *, effort: Effort | None = None, backend: Solver | None = None
    ) -> Verdict:
        """Search user by user and kind by kind; a gain found in floats is then sought in small exact numbers."""
        search = _Search(policy, problem, effort or Effort(), backend, normalised=self.normalised)
        part = max(1, search.effort.evaluations // KINDS)
        found = {kind.name: search.best(kind, part, structured=True) for kind in (Larger(), Smaller())}
        # each of those is a report of any kind too: the search for any goes on from the better one, with mixed moves
        found[Anything.name] = search.best(Anything(), part, structured=False, start=search.better(*found.values()))
        verdicts = {
            kind.name: self._verdict(found[kind.name], search, kind) for kind in (Larger(), Smaller(), Anything())
        }
        overall = verdicts[Anything.name]
        tried = f"{sum(search.tried.values())} misreports in all; {overall.effort}"
        return replace(overall, by_misreport=verdicts, effort=tried)

    def _verdict(self, best: _Found | None, search: _Search, kind: Misreports) -> Verdict:
        where = "the slowest type's speedup kept" if self.normalised else "all speedups"
        stopped = ", stopped by the time limit" if kind.name in search.stopped else ""
        effort = f"{search.tried[kind.name]} {kind.name} misreports ({where}), seed {search.effort.seed}{stopped}"
        if best is None:  # nothing may be misreported: one type, whose speedup is kept
            return Verdict(self.name, Answer.NOT_REFUTED, None, "", False, effort)
        unit = f"throughput of {search.market.users[best.user]}"
        if best.gain <= self.tolerance * search.fair[best.user]:
            return Verdict(self.name, Answer.NOT_REFUTED, -best.gain + 0, unit, False, effort)
        exact = search.confirm(best, kind)
        witness = exact or search.witness(best)
        if exact is None:
            effort += "; the gain is that of float decisions: where optima tie, of the solver's choice among them"
        return Verdict(self.name, Answer.FAILS, -witness.gain, unit, exact is not None, effort, witness)


@dataclass(frozen=True, eq=False)
class _Found:
    user: int
    report: Array
    gain: float
    decision: Decision


class _Search:
    """One search: counts what it tries, remembers the best report for each kind."""

    def __init__(
        self, policy: Policy, problem: Market, effort: Effort, backend: Solver | None, *, normalised: bool
    ) -> None:
        self.policy, self.problem, self.effort, self.backend = policy, problem, effort, backend
        self.market = problem.as_(float)
        chosen = Highs() if backend is None and not policy.own_algorithm else backend
        self._solver = chosen
        self._random = np.random.default_rng(effort.seed)
        self._fixed = problem.type_order()[0] if normalised else None
        self._ends = INFINITY
        self.tried: dict[str, int] = {}
        self.stopped: set[str] = set()
        self.truth = self._decide(self.market)
        self._own = self.market.utility(self.truth.shares.astype(float))
        self.fair = self.market.fair_utility()

    def _decide(self, market: Market) -> Decision:
        # a solver of its own each time, as `allocate` has: where optima tie, a warm start would choose among them
        solve = None if self._solver is None else Solve(self._solver, Options())
        return self.policy.decide(market, self.policy.start(market), solve)

    def best(self, kind: Misreports, budget: int, *, structured: bool, start: _Found | None = None) -> _Found | None:
        """Return the misreport of this kind that gains most within ``budget`` evaluations, ``start`` included.

        ``structured`` begins with coordinate and boundary moves; random ones follow.
        """
        self.tried[kind.name] = 0
        if self.effort.seconds is not None:
            self._ends = monotonic() + self.effort.seconds / KINDS
        best = start
        moves = [Moves(self.market, user, self._fixed) for user in range(len(self.market.users))]
        streams = [self._reports(each, kind, structured) for each in moves if each.free]
        # most of the effort looks everywhere, user by user in turn; the rest improves the best that was found
        for user, report in islice(_in_turn(streams), budget - budget // 4):
            best = self._try(best, user, report, kind)
            if self._over():
                self.stopped.add(kind.name)
                return best
        return None if best is None else self._improved(best, moves[best.user], kind, budget)

    def _improved(self, best: _Found, moves: Moves, kind: Misreports, budget: int) -> _Found:
        """Return the best report near ``best``: a pattern search whose steps shrink."""
        step = 0.3
        while self.tried[kind.name] < budget and step > 1e-4 and not self._over():
            before = best
            for report in islice(moves.around(best.report, step), budget - self.tried[kind.name]):
                best = self._try(best, moves.user, report, kind) or best
            step = step if best is not before else step / 3
        return best

    def _reports(self, moves: Moves, kind: Misreports, structured: bool) -> Iterator[tuple[int, Array]]:
        """Yield (user, report) without end: structured moves first, mixed, then random ones."""
        if structured:
            for pair in zip_longest(moves.boundary(), moves.coordinate()):
                for report in pair:
                    if report is not None and kind.allows(moves.truth, report):
                        yield moves.user, report
        while True:
            yield moves.user, kind.into(moves.truth, moves.random(self._random))

    def better(self, one: _Found | None, other: _Found | None) -> _Found | None:
        """Return the one that gains more, each relative to the user's own-partition throughput."""
        if one is None or other is None:
            return one or other
        return other if other.gain / self.fair[other.user] > one.gain / self.fair[one.user] else one

    def _try(self, best: _Found | None, user: int, report: Array, kind: Misreports) -> _Found | None:
        truth = self.market.speedup[user]
        if not kind.allows(truth, report) or np.array_equal(report, truth):
            return best
        self.tried[kind.name] += 1
        try:
            decision = self._decide(self.market.misreport(user, report))
        except NotSolved:
            return best  # a report that the policy cannot answer gains nothing; it is counted as tried
        reached = self.market.utility(decision.shares.astype(float))[user]
        return self.better(best, _Found(user, report, float(reached - self._own[user]), decision))

    def _over(self) -> bool:
        return monotonic() > self._ends

    def witness(self, found: _Found) -> Misreport:
        """Return the lie in floats."""
        i = found.user
        return Misreport(
            user=self.market.users[i],
            truth=self.problem.speedup[i],
            report=found.report,
            truthful_utility=float(self._own[i]),
            utility=float(self._own[i]) + found.gain,
            gain=found.gain,
            truthful_allocation=self.truth.shares,
            allocation=found.decision.shares,
        )

    #: Beyond this many shares two exact optima take longer than the whole search.
    exact_up_to: ClassVar[int] = 100

    def confirm(self, found: _Found, kind: Misreports) -> Misreport | None:
        """Return the lie in the smallest numbers that pay half as much when both decisions are made exactly.

        Where none does, the one that pays most; None where no exact decision can be had.
        """
        if not self.problem.exact or self.problem.speedup.size > self.exact_up_to or self.backend is not None:
            return None
        i, truth = found.user, self.problem.speedup[found.user]
        before = self._exactly(self.problem)
        if before is None:
            return None
        best: Misreport | None = None
        for denominator in (1, 2, 5, 20, 1000, 10**6):
            report = np.array([Fraction(float(v)).limit_denominator(denominator) for v in found.report], dtype=object)
            unchanged = found.report == truth.astype(float)
            report = np.where(unchanged, truth, report)
            if not kind.allows(truth, report) or (report[truth > 0] <= 0).any() or (report == truth).all():
                continue
            after = self._exactly(self.problem.misreport(i, report))
            if after is None:
                break
            own, reached = self.problem.utility(before.shares)[i], self.problem.utility(after.shares)[i]
            if reached > own and (best is None or reached > best.utility):
                best = Misreport(
                    self.problem.users[i], truth, report, own, reached, reached - own, before.shares, after.shares
                )
            if best is not None and best.gain * 2 >= found.gain:
                break
        return best

    def _exactly(self, market: Market) -> Decision | None:
        """Return the exact decision, None where the policy has none on this market."""
        from fairopt.backends.exact import Exact

        solve = None if self.policy.own_algorithm else Solve(Exact(), Options())
        try:
            decision = self.policy.decide(market, self.policy.start(market), solve)
        except FairoptError:
            return None  # the float witness stands, and says that it is not exact
        return decision if decision.exact else None


def _in_turn(streams: list[Iterator[tuple[int, Array]]]) -> Iterator[tuple[int, Array]]:
    """Yield one item of each stream in turn until all have ended."""
    while streams:
        alive = []
        for stream in streams:
            item = next(stream, None)
            if item is not None:
                alive.append(stream)
                yield item
        streams = alive
