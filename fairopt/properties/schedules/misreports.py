"""Strategy-proofness of policies of schedules: what a tenant gains by telling of jobs that are not its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import combinations, islice, product
from time import monotonic
from typing import Any

from fairopt.errors import BadInput
from fairopt.policy import Plan, Policy, decide
from fairopt.problem.batch import Batch, JobSchedule, slots_for
from fairopt.problem.utilities import CompletionUtility
from fairopt.program import INFINITY, Number
from fairopt.properties.property import Effort, MechanismProperty, SlackCase
from fairopt.properties.schedules.plan_property import SOURCE
from fairopt.properties.verdict import Answer, Verdict

#: What of a job is its demand; the rest of what can be told is its utility.
DEMANDS = ("arrival", "epochs", "chunks", "minibatches")


@dataclass(frozen=True)
class BatchMisreport:
    """What a tenant says of its jobs: by row, the columns that it changes (`DEMANDS`, ``utility``) and to what.

    >>> print(BatchMisreport({0: {"chunks": 3, "epochs": 1}}))
    job 0: chunks 3, epochs 1
    """

    told: Mapping[int, Mapping[str, int | CompletionUtility]]

    def __str__(self) -> str:
        return self.about({job: f"job {job}" for job in self.told})

    def about(self, names: Mapping[int, str] | Sequence[str]) -> str:
        """Return the misreport in words, with the jobs' names."""
        return "; ".join(
            f"{names[job]}: " + ", ".join(f"{key} {_shown(value)}" for key, value in what.items())
            for job, what in self.told.items()
        )

    def tenant(self, batch: Batch) -> int:
        """Return whose lie it is. Errors: `BadInput` where it is about the jobs of several tenants, or of none."""
        tenants = {int(batch.jobs.tenant[job]) for job in self.told}
        if len(tenants) != 1:
            raise BadInput(f"{len(tenants)} tenants", place="lie", remedy="Change jobs of one tenant")
        return tenants.pop()

    def of(self, batch: Batch) -> Batch:
        """Return the batch as it is told."""
        jobs = batch.jobs
        changed = {key: getattr(jobs, key).copy() for key in DEMANDS} | {"utility": list(jobs.utility)}
        for job, what in self.told.items():
            for key, column in changed.items():
                column[job] = what.get(key, column[job])
            if not isinstance(changed["utility"][job], CompletionUtility):
                told = changed["utility"][job]
                raise BadInput(f"got {told!r}", place=f"lie, job {job}", remedy="Give a CompletionUtility")
        return replace(batch, jobs=replace(jobs, **{**changed, "utility": tuple(changed["utility"])}))


def _shown(value: int | CompletionUtility) -> str:
    if isinstance(value, int):
        return str(value)
    parts = (getattr(value, each.name) for each in fields(value))  # type: ignore[arg-type]
    return f"{type(value).__name__}({', '.join(map(str, parts))})"


def small_misreports(
    batch: Batch,
    *,
    most: int = 4,
    keep_work: bool = False,
    utilities: tuple[CompletionUtility, ...] = (),
    together: bool = False,
) -> Iterator[BatchMisreport]:
    """Yield misreports of single jobs, and of two jobs of a tenant at once: all demands up to a size, given utilities.

    ``most``: the largest epochs and chunks that are told. ``keep_work``: only demands that tell the true number of
    mini-batches. ``utilities``: what is told of utilities, nothing by default. ``together``: two jobs at once besides.
    """
    jobs = batch.jobs

    def about(job: int) -> Iterator[dict[str, Any]]:
        truth = (int(jobs.epochs[job]), int(jobs.chunks[job]))
        for epochs, chunks in product(range(1, most + 1), repeat=2):
            if (epochs, chunks) != truth and (not keep_work or epochs * chunks == truth[0] * truth[1]):
                yield {"epochs": epochs, "chunks": chunks}
        yield from ({"utility": utility} for utility in utilities if utility != jobs.utility[job])

    single = {job: list(about(job)) for job in range(len(jobs))}
    for job, told in single.items():
        yield from (BatchMisreport({job: what}) for what in told)
    for job, other in combinations(single, 2) if together else ():
        if jobs.tenant[job] == jobs.tenant[other]:
            yield from (BatchMisreport({job: a, other: b}) for a, b in product(single[job], single[other]))


@dataclass(frozen=True)
class ScheduleStrategyProofness(MechanismProperty):
    """Nobody gains by misreporting; decided over the lies that are given.

    A failure shows a tenant, its lie, what it gains by the truth (``honest``) and by the lie (``misreported``), by true
    utilities in both, the difference (``gain``), and ``told``, the lie in words.

    What a misreported demand yields: the true job runs on what was granted, not before its true arrival, each worker on
    one chunk at a time, so that more workers than the true chunks are of no use (3e). If its true work is done within
    what was granted, it is worth its true utility, counted from its true arrival, else nothing: there is no second try
    and no preemption. It pays what was asked, for all that was granted.

    * ``misreports``: which ones a search tries, in their order, as far as its effort goes.
    * ``early``: a job that is done before its last slot is done then; False (default): when its schedule ends, as
      (3m) has it, so that nobody gains by what an operator would only have to look away from.

    Source: Astraea (posted prices) Theorem 4; Sec. 1 "no tenant can get more benefits by lying about its demands".
    """

    problem = Batch
    name = "schedule_strategy_proofness"
    head = "lying never pays"
    broken = "lying pays for {who}"
    source = f"{SOURCE} Theorem 4"
    definition = "g_u(truth) >= g_u(told) for each tenant u and everything that it may tell of its jobs"
    misreports: Callable[[Batch], Iterable[BatchMisreport]] = small_misreports
    early: bool = False

    def search(
        self, policy: Policy, problem: Batch, *, effort: Effort | None = None, truth: Plan | None = None
    ) -> Verdict:
        """Try the lies within ``effort``; the verdict speaks of ``truth``, the policy's plan for the batch."""
        return self.check(policy, problem, self.misreports(problem), effort=effort, truth=truth)

    def check(
        self,
        policy: Policy,
        batch: Batch,
        misreports: Iterable[BatchMisreport],
        *,
        effort: Effort | None = None,
        truth: Plan | None = None,
    ) -> Verdict:
        """Decide over ``misreports`` (all, without ``effort``); the margin is minus the most that one gains."""
        honest, tried, best = self.gains(batch, truth or decide(policy, batch)), 0, None
        ends = INFINITY if effort is None else effort.ends()
        for misreport in misreports if effort is None else islice(misreports, effort.evaluations):
            tried, found = tried + 1, self.misreport(policy, batch, misreport, honest)
            best = found if best is None or found.gain > best.gain else best
            if monotonic() > ends:
                break
        # what is in floats is compared as floats are
        exact = best is not None and not isinstance(best.slack, float)
        verdict = self._by_tightest(best, None, exact=exact, unit="revenue", effort=f"{tried} lies")
        return verdict if verdict.holds is False else replace(verdict, answer=Answer.NOT_REFUTED)

    def says(self, case: SlackCase) -> str:
        """Return what a lie adds for whom, in a sentence."""
        both = f"{case.honest} in truth, {case.misreported} by the lie"
        return f"{case.tenant} gains {case.gain} ({both}) with {case.told}"

    def told(self, tenant: str, misreport: BatchMisreport, honest: Number, misreported: Number, told: str) -> SlackCase:
        """Return the case of a lie, in words ``told``, and of what its tenant gains without it and by it."""
        both = {"honest": honest, "misreported": misreported, "gain": misreported - honest}
        size = max(honest, -honest)
        return self.case(honest - misreported, size, tenant=tenant, misreport=misreport, **both, told=told)

    def misreport(
        self, policy: Policy, batch: Batch, misreport: BatchMisreport, honest: tuple[Number, ...] | None = None
    ) -> SlackCase:
        """Return what a lie does for its tenant under a policy."""
        truth = self.gains(batch, decide(policy, batch)) if honest is None else honest
        tenant = misreport.tenant(batch)
        misreported = self.gains(batch, decide(policy, misreport.of(batch)))
        return self.told(
            batch.tenants[tenant], misreport, truth[tenant], misreported[tenant], misreport.about(batch.jobs.names)
        )

    def gains(self, truth: Batch, plan: Plan) -> tuple[Number, ...]:
        """Return what a plan, made from whatever was told, is worth to each tenant (U,) in truth."""
        return plan.gains_by({each.job: self._worth(truth, each) for each in plan.schedules})

    def _worth(self, truth: Batch, one: JobSchedule) -> Number:
        jobs, job = truth.jobs, one.job
        time = truth.slots_per_minibatch(job, one.together, one.worker_type, one.ps_type)
        of_use = min(one.count()[0], int(jobs.chunks[job]))
        first = max(one.first, int(jobs.arrival[job]))
        done = first + slots_for(truth.minibatches(job), time, of_use) - 1
        if done > one.last:
            return Fraction(0)
        return jobs.utility[job].value(Fraction((done if self.early else one.last) - int(jobs.arrival[job])))
