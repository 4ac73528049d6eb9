"""Strategy-proofness: no user gains by misreporting its speedups. A search; its witness is a misreport that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.numbers import arithmetic
from fairopt.policy import Allocation, Policy
from fairopt.policy.policy import require_policy
from fairopt.problem import Market
from fairopt.problem.ranges import in_use, nothing_known, unknown_speedups
from fairopt.program import INFINITY, Array, Formulation, Number, number_text
from fairopt.properties.misreports.exact_reports import ExactReports, exact_or_none, most_paid
from fairopt.properties.misreports.kinds import ANYTHING, LARGER, SMALLER, MisreportKind
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import Found, MisreportSearch
from fairopt.properties.property import Effort, MechanismProperty, SlackCase
from fairopt.properties.verdict import TOLERANCE, Answer, Verdict
from fairopt.properties.within_bounds import Boundary, lowest

#: Of a policy that is proved to be truthful one in so many of the misreports is tried.
CHECKED = 10


class StrategyProofness(MechanismProperty):
    """No user gains by its true speedups when it reports others.

    Papers differ in which reports they allow: ``by_misreport`` has a verdict each for larger, smaller and any reports;
    the verdict itself is the one for any. With ``normalised`` the report on the slowest type is kept, for speedups that
    are measured relative to that type (OEF Sec. 2.3). Where optima tie, the solver's choice counts as the policy's; a
    witness says whether its gain holds for every choice (``every_optimum``).

    A failure shows a ``user``, its speedups by ``truth`` and by ``report`` (k,), its ``truthful_utility``, its
    ``utility`` after the report and the ``gain``, all by its true speedups and in its own units, and both allocations
    (n, k). ``least_gain`` is the user's worst throughput over all optima on the report, minus its best over those on
    the truth (None where that was not decided); ``every_optimum`` says whether even this is positive.

    An ``exact`` FAILS is a proof: the gain is that of two exact decisions. An ``exact`` NOT_REFUTED is none: its margin
    is the exact loss of the misreport that came nearest to a gain.

    Source: OEF Sec. 2.3.1 (1).

    Errors: those of `fairopt.decide` on the truth.

    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.properties import Effort
    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> StrategyProofness().search(MaxEfficiency(), market, effort=Effort(evaluations=60)).answer
    <Answer.FAILS: 'FAILS'>
    """

    problem = Market
    name = "strategy_proofness"
    head = "lying never pays"
    broken = "lying pays for {who}"
    source = "OEF Sec. 2.3.1 (1)"
    definition = "E_l(x_l(truth)) >= E_l(x_l(report)) for every user l and every report of the stated kind"

    def __init__(self, *, normalised: bool = False, tolerance: float = TOLERANCE) -> None:
        self.normalised, self.tolerance = normalised, tolerance

    def judge(self, policy: Policy, problem: Market, outcome: Allocation, *, effort: Effort | None = None) -> Verdict:
        """Return HOLDS where the policy is proved to be truthful; else what a `search` finds.

        A part of the effort tries, in floats, whether what was decided is what the proof is about.
        """
        effort = effort or Effort()
        holds = _proved(policy, problem, self.name, "any") if problem.known.all() else None
        if holds is not None and not nothing_known(problem).any():
            search = self._search(Reports(policy, problem, outcome), effort)
            budget = max(1, effort.evaluations // CHECKED)
            best = search.best(ANYTHING, budget, structured=True)
            if not best or best[0].share <= self.tolerance:
                number = search.tried[ANYTHING.name]
                tried = f"{holds.effort}; {number} of them {'was' if number == 1 else 'were'} tried, none pays"
                exact = problem.exact and outcome.exact
                holds = replace(holds, exact=exact, effort=f"{tried}, seed {effort.seed}")
                return replace(holds, by_misreport=dict.fromkeys((LARGER.name, SMALLER.name, ANYTHING.name), holds))
        return self.search(policy, problem, effort=effort, truth=outcome)

    def search(
        self, policy: Policy, problem: Market, *, effort: Effort | None = None, truth: Allocation | None = None
    ) -> Verdict:
        """Search kind by kind in floats; the best are then decided like the truth, exactly as rational reports."""
        require_policy(policy)
        if nothing_known(problem).any():
            return Verdict.undecided(self.name, unknown_speedups(problem), effort="nothing")
        if not problem.known.all():
            if policy.asked_of(problem) and not policy.asked_of(problem.plain()):
                reason = f"{policy.name} decides by the ranges; what users would report of these is not modelled"
                unknown = Verdict.undecided(self.name, reason, effort="nothing")
                kinds = {each.name: unknown for each in (LARGER, SMALLER, ANYTHING)}
                return replace(unknown, by_misreport=kinds)

            def at(known: Market) -> Verdict:
                stated = truth is not None and (known.speedup == problem.speedup).all()
                same = replace(truth, market=known) if truth is not None and stated else None
                return self.search(policy, known, effort=effort, truth=same)

            return in_range(policy, problem, at, self.name)
        effort = effort or Effort()
        if truth is not None and truth.error:  # gains between decisions that are irrational are decided in floats
            problem, truth = problem.as_(float), None
        if truth is None and problem.exact:
            truth = exact_or_none(policy, problem)
        usable = truth is not None and truth.exact and problem.exact
        exactly = ExactReports(self, policy, problem, truth) if usable else None
        asked = Reports(policy, problem, None if exactly else truth)
        search = self._search(asked, effort)
        best = search.side_by_side({LARGER: effort.part(0), SMALLER: effort.part(1)}, structured=True)
        found = {one: search.confirmed(each) for one, each in best.items()}
        # a larger or smaller report is also one of any kind: the search for any starts from the better one
        start = max(filter(None, found.values()), key=lambda each: each.level, default=None)
        best[ANYTHING] = search.best(ANYTHING, effort.part(2), structured=False, start=start)
        found[ANYTHING] = search.confirmed(best[ANYTHING])
        if exactly:
            exactly.foresee(asked, {kind: each for kind, each in found.items() if each}, self.tolerance)
        witnesses = self._witnesses(asked, exactly, found, best)
        verdicts = {kind.name: self._verdict(search, kind, witness) for kind, witness in witnesses.items()}
        overall = verdicts[ANYTHING.name]
        tried = f"{sum(search.tried.values())} misreports in all; {overall.effort}"
        return replace(overall, by_misreport=verdicts, effort=tried)

    def _search(self, asked: Reports, effort: Effort) -> MisreportSearch:
        return MisreportSearch(asked, effort, fixed=asked.market.type_order()[0] if self.normalised else None)

    def told(self, market: Market, user: int, report: Array, truth: Allocation, after: Allocation) -> SlackCase:
        """Return what ``report`` (k,) does for ``user``, by the true ``market``, in its numbers, whether it pays."""
        kind = object if market.exact else float
        own, reached = (market.utility(each.shares.astype(kind)).tolist()[user] for each in (truth, after))
        return self.case(
            own - reached,
            own,
            user=market.users[user],
            truth=market.speedup[user],
            report=report,
            truthful_utility=own,
            utility=reached,
            gain=reached - own,
            truthful_allocation=truth.shares,
            allocation=after.shares,
            every_optimum=False,
            least_gain=None,
        )

    def says(self, case: SlackCase) -> str:
        """Return what a user reports, and what it gets by it, in a sentence."""
        true, said = (", ".join(map(number_text, row)) for row in (case.truth, case.report))
        got, gets = number_text(case.truthful_utility), number_text(case.utility)
        gets = f"{gets} instead of" if gets != got else f"{number_text(case.gain)} more than"
        return f"{case.user} has speedups {true}, reports {said}, and gets {gets} {got}"

    def _witnesses(
        self,
        asked: Reports,
        exactly: ExactReports | None,
        found: dict[MisreportKind, Found | None],
        best: dict[MisreportKind, list[Found]],
    ) -> dict[MisreportKind, SlackCase | None]:
        """Return the misreport to show for each kind, which may gain nothing: exact where possible, else in floats.

        On a large market only the one that pays most is decided exactly, and others with the same report.
        """
        shown: dict[MisreportKind, SlackCase | None] = dict.fromkeys(found)
        paid: SlackCase | None = None
        for kind, each in sorted(found.items(), key=lambda item: 0.0 if item[1] is None else -item[1].gain):
            if each is None:
                continue
            one = None
            if exactly and (paid is None or exactly.is_soon or exactly.knows(each, kind)):
                one = exactly.best(asked, each, best[kind], kind, self.tolerance)
                paid = one if one is not None and one.gain > 0 else paid
            if one is None:  # the truthful decision is the verdict's own, exact or not
                truth = (exactly and exactly.truth) or asked.truth
                one = self.told(asked.market, each.user, each.report, truth, asked.misreported(each.user, each.report))
            shown[kind] = one
        shown[ANYTHING] = paid if paid and exactly and not exactly.is_soon else most_paid(*shown.values())
        return shown

    def _verdict(self, search: MisreportSearch, kind: MisreportKind, witness: SlackCase | None) -> Verdict:
        where = "the slowest type's speedup kept" if self.normalised else "all speedups"
        stopped = ", stopped by the time limit" if kind.name in search.stopped else ""
        unanswered = search.unanswered[kind.name]
        without = f", {unanswered} of them without an answer" if unanswered else ""
        tried = f"{search.tried[kind.name]} misreports ({kind.name}; {where}){without}"
        effort = f"{tried}, seed {search.effort.seed}{stopped}"
        if witness is None and stopped:
            return Verdict.undecided(self.name, "time ended before a misreport was decided", effort=effort)
        if witness is None:  # nothing was misreported: one type, whose speedup is kept, say
            return Verdict(self.name, Answer.NOT_REFUTED, None, "", False, effort)
        unit = f"throughput of {witness.user}"
        exact = arithmetic(witness.report).exact
        fair = search.asked.fair[search.asked.market.index(witness.user)]
        allowed = search.asked.policy.rounding * witness.utility if exact else self.tolerance * fair
        if witness.gain <= allowed:
            return Verdict(self.name, Answer.NOT_REFUTED, -witness.gain + 0, unit, exact, effort)
        if not exact:
            effort += "; the gain is that of float decisions: where optima tie, of the solver's choice among them"
        return Verdict(self.name, Answer.FAILS, -witness.gain, unit, exact, effort, witness)


def in_range(policy: Policy, market: Market, search: Callable[[Market], Verdict], name: str) -> Verdict:
    """Return what follows for all true speedups in the range of ``market`` under ``policy``: FAILS, HOLDS or DEPENDS.

    ``search`` returns the verdict on a market whose speedups are known. The verdict is of the property of that
    ``name``, with one for each kind of misreport.

    Everybody is thought to report the speedups that are stated, and what a lie gains over that by the true ones is
    linear in these: where its least is positive, the lie pays at all of them, and the property fails for all. It holds
    for all under a policy that is proved to be truthful. Else it depends, where a lie pays on one market of the range,
    with others who report the truth, and by what follows none does on another.

    Where all users speed up alike, by v up to a factor of their own, and each is promised its fair share, nobody gains
    by any report: the others, who tell the truth, have (pi_l / pi) v.m at least, pi being all weight, and all have v.m
    at most. So the liar has at most its fair share, which it has at the truth.
    """
    if (holds := _proved(policy, market, name, "any")) is not None:
        return replace(holds, by_misreport=dict.fromkeys(("larger", "smaller", "any"), holds))
    promised = any(each.property == "sharing_incentive" and each.known(market) for each in policy.claims)
    fair = promised and market.demand is None  # whatever one of them reports
    found, alike = search(replace(market, least=None, most=None)), alike_in_range(market)
    nobody = alike if fair else None
    others = {kind: _follows(policy, market, each, kind, nobody) for kind, each in found.by_misreport.items()}
    verdict = replace(_follows(policy, market, found, "any", nobody), by_misreport=others)
    for each in others.values():  # the lie that gains most may not be one that pays at all
        if each.answer is Answer.FAILS and verdict.answer is not Answer.FAILS:
            verdict = replace(each, by_misreport={**others, "any": each})
    if found.answer is Answer.FAILS or nobody is None:
        return verdict
    for corner in _corners(market):  # a lie may pay at one of two corners of the range
        found = search(corner)
        if found.answer is Answer.FAILS:
            kinds = {
                kind: verdict.by_misreport[kind]
                if each.answer is not Answer.FAILS or verdict.by_misreport[kind].holds
                else _depends(each, nobody, corner, stated=False)
                for kind, each in found.by_misreport.items()
            }
            return replace(_depends(found, nobody, corner, stated=False), by_misreport=kinds)
    return verdict


def _follows(policy: Policy, market: Market, found: Verdict, kind: str, nobody: Market | None) -> Verdict:
    """Return what follows from a verdict at the speedups that are stated, of one kind of misreport.

    ``nobody``: a market in the range on which no report pays; None where none is known.
    """
    effort = f"{found.effort}, at the speedups that are stated; lies that pay, for all true ones in the range"
    if (holds := _proved(policy, market, found.property, kind)) is not None:
        return holds
    least = None if found.answer is not Answer.FAILS else _least(market, found.witness)
    if least is not None and least > 0:
        return replace(found, by_misreport={}, effort=effort, margin=-least)
    if found.answer is Answer.FAILS and nobody is not None:
        return _depends(found, nobody, replace(market, least=None, most=None), stated=True)
    said = str(found.witness) if found.answer is Answer.FAILS else "no misreport was found that pays"
    reason = f"at the speedups that are stated, {said}; at others in the range this was not decided"
    return Verdict.undecided(found.property, reason, effort=effort)


def _least(market: Market, lie: Any) -> Number | None:
    """Return the least that a lie gains by any true speedups in the range; None where use depends on these."""
    i = market.index(lie.user)
    after, before = (in_use(market, i, each[i]) for each in (lie.allocation, lie.truthful_allocation))
    if after is None or before is None:
        return None
    return lowest(after - before, market.ends[0][i], market.ends[1][i])


def _proved(policy: Policy, market: Market, name: str, kind: str) -> Verdict | None:
    """Return that it holds for all, where the policy is proved to be truthful for such reports."""
    claim = next((each for each in policy.claims if each.property == name and each.known(market, kind)), None)
    if claim is None:
        return None
    where = "" if market.known.all() else "all speedups in the range: "
    proof = f"{policy.name} is proved to be truthful for such reports ({claim.source})"
    return Verdict(name, Answer.HOLDS, None, "", True, f"{where}{proof}", evidence=claim.source)


def _depends(found: Verdict, alike: Market, fails: Market, *, stated: bool) -> Verdict:
    """Return that it depends: at ``fails`` a lie pays, and where all speed up ``alike`` none does."""
    speeds = tuple(zip(alike.types, alike.speedup[0].tolist(), strict=True))
    lie, at = str(found.witness), " and ".join(f"{number_text(speed)} on {name}" for name, speed in speeds)
    told = "at the speedups that are stated" if stated else "at others in the range"
    words = f"{told}, {lie}; where all speed up alike, by {at}, no report pays"
    ends, shown = {"holds": alike, "fails": fails}, {"lie": lie, "alike": speeds, "stated": stated}
    where = told if stated else "at a corner of the range"
    return replace(
        found,
        by_misreport={},
        answer=Answer.DEPENDS,
        boundary=Boundary(words, ends=ends, shown=shown),
        effort=f"{found.effort}, {where}; where all speed up alike, by proof",
        evidence=found.witness,
        witness=None,
    )


def alike_in_range(market: Market) -> Market | None:
    """Return a market in the range on which all users speed up alike, each by a factor of its own; None for none.

    >>> from fairopt.problem.ranges import with_error
    >>> print(alike_in_range(with_error(Market.of([[1, 2], [1, 3]], [1, 1]), "10%")))
    None
    >>> found = alike_in_range(with_error(Market.of([[1, 2], [1, 3]], [1, 1]), "20%"))
    >>> bool(found.speedup[0, 1] / found.speedup[0, 0] == found.speedup[1, 1] / found.speedup[1, 0])
    True
    """
    told = market.as_(Fraction)
    least, most = told.ends
    runs = (most > 0).all(axis=0)
    if ((most > 0).any(axis=0) != runs).any() or (least[:, runs] == 0).any():
        return None
    p = Formulation("speedups that are alike")
    common = p.variable("common", (len(told.types),), lower=np.where(runs, 1, 0), upper=np.where(runs, INFINITY, 0))
    # common / factor is a user's row: between its ends where this is so
    factor = p.variable("factor", (len(told.users), 1), lower=0)
    p.minimize(common.sum())
    p.constrain("at least", common.reshape(1, -1).broadcast_to(told.shape) - factor * least >= 0)
    bounded = most < INFINITY
    ends = np.where(bounded, most, least)
    p.constrain("at most", (factor * ends - common.reshape(1, -1).broadcast_to(told.shape) >= 0).where(bounded))
    program = p.program()
    solution = Exact().solve(program)
    if solution.status is not Status.OPTIMAL:
        return None
    row, factors = program.variable("common", solution.point), program.variable("factor", solution.point)
    if (factors == 0).any():  # of a user of whom nothing is known
        return None
    return replace(told, speedup=row / factors, least=None, most=None)


def _corners(market: Market) -> Iterator[Market]:
    """Yield two corners, where neighbours differ most: the fast types at the most of one, at the least of the next."""
    least, most = market.ends
    ends = least, np.where(most < INFINITY, most, market.speedup)
    rank = market.speedup.argsort(axis=1).argsort(axis=1) * 2 >= len(market.types)
    even: Array = np.arange(len(market.users))[:, None] % 2 == 0
    for first in (even, ~even):
        corner = np.where(rank == first, ends[1], ends[0])
        if ((corner > 0) == (market.speedup > 0)).all():
            yield replace(market, speedup=corner, least=None, most=None)
