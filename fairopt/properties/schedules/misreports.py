"""Strategy-proofness of policies of schedules: what a tenant gains by telling of jobs that are not its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

from fairopt.errors import BadInput
from fairopt.policy import Plan, Policy, decide
from fairopt.problem.batch import Batch, JobSchedule, slots_for
from fairopt.problem.utilities import CompletionUtility
from fairopt.program import Number
from fairopt.properties.verdict import Answer, Verdict

#: What of a job is its demand; the rest of what can be told is its utility.
DEMANDS = ("arrival", "epochs", "chunks", "minibatches")


@dataclass(frozen=True)
class Lie:
    """What a tenant says of its jobs: by row, the columns that it changes (`DEMANDS`, ``utility``) and to what.

    >>> print(Lie({0: {"chunks": 3, "epochs": 1}}))
    job 0: chunks 3, epochs 1
    """

    told: Mapping[int, Mapping[str, int | CompletionUtility]]

    def __str__(self) -> str:
        return self.about({job: f"job {job}" for job in self.told})

    def about(self, names: Mapping[int, str] | Sequence[str]) -> str:
        """Return the lie in words, with the jobs' names."""
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
        jobs, changed = batch.jobs, {}
        for key in DEMANDS:
            column = getattr(jobs, key).copy()
            for job, what in self.told.items():
                column[job] = what.get(key, column[job])
            changed[key] = column
        utility = list(jobs.utility)
        for job, what in self.told.items():
            told = what.get("utility", utility[job])
            if not isinstance(told, CompletionUtility):
                raise BadInput(f"got {told!r}", place=f"lie, job {job}", remedy="Give a CompletionUtility")
            utility[job] = told
        return replace(batch, jobs=replace(jobs, utility=tuple(utility), **changed))


def _shown(value: int | CompletionUtility) -> str:
    if isinstance(value, int):
        return str(value)
    parts = (getattr(value, each.name) for each in fields(value))  # type: ignore[arg-type]
    return f"{type(value).__name__}({', '.join(map(str, parts))})"


@dataclass(frozen=True)
class Misreport:
    """A lie that pays: what its tenant gains by the truth and by the lie, its true utilities counted in both.

    ``told``: the lie in words, with the jobs' names.
    """

    tenant: str
    lie: Lie
    honest: Number
    lying: Number
    told: str

    @property
    def gain(self) -> Number:
        """What the lie adds."""
        return self.lying - self.honest

    def __str__(self) -> str:
        return f"{self.tenant} gains {self.gain} ({self.honest} in truth, {self.lying} by the lie) with {self.told}"


@dataclass(frozen=True)
class StrategyProofness:
    """Nobody gains by misreporting; decided over the lies that are given.

    What a misreported demand yields: the true job runs on what was granted, from the first slot on, each worker on one
    chunk at a time, so that more workers than the true chunks are of no use (3e); it needs as many slots as its true
    work takes there. If that is within what was granted, it is worth its true utility, counted from its true arrival,
    else nothing: there is no second try and no preemption. It pays what was asked, for all that was granted, and a job
    that starts before its true arrival does nothing until then.

    * ``early``: a job that is done before its last slot is done then; False (default): when its schedule ends, as
      (3m) has it, so that nobody gains by what an operator would only have to look away from.

    Source: Astraea (posted prices) Theorem 4; Sec. 1 "no tenant can get more benefits by lying about its demands".
    """

    name: ClassVar[str] = "schedule_strategy_proofness"
    policy: Policy
    early: bool = False

    def check(self, batch: Batch, lies: Iterable[Lie]) -> Verdict:
        """Decide over ``lies``; the margin is minus the most that one gains, the witness that one."""
        honest, tried, best = self.gains(batch, self._plan(batch)), 0, None
        for lie in lies:
            tried, found = tried + 1, self.misreport(batch, lie, honest)
            best = found if best is None or found.gain > best.gain else best
        pays = best is not None and best.gain > 0
        return Verdict(
            property=self.name,
            answer=Answer.FAILS if pays else Answer.NOT_REFUTED,
            margin=None if best is None else -best.gain,
            unit="revenue",
            exact=best is not None and not isinstance(best.gain, float),
            effort=f"{tried} lies",
            witness=best if pays else None,
        )

    def misreport(self, batch: Batch, lie: Lie, honest: tuple[Number, ...] | None = None) -> Misreport:
        """Return what a lie does for its tenant."""
        truth = self.gains(batch, self._plan(batch)) if honest is None else honest
        tenant = lie.tenant(batch)
        lying = self.gains(batch, self._plan(lie.of(batch)))
        return Misreport(batch.tenants[tenant], lie, truth[tenant], lying[tenant], lie.about(batch.jobs.names))

    def gains(self, truth: Batch, plan: Plan) -> tuple[Number, ...]:
        """Return what a plan, made from whatever was told, is worth to each tenant (U,) in truth."""
        total: list[Number] = [Fraction(0)] * len(truth.tenants)
        for each in plan.schedules:
            total[truth.jobs.tenant[each.job]] += self._worth(truth, each)
        for payment in plan.payments:
            total[truth.jobs.tenant[payment.job]] -= payment.workers + payment.ps
            for tenant, income in enumerate(payment.incomes):
                total[tenant] += income
        return tuple(total)

    def _worth(self, truth: Batch, one: JobSchedule) -> Number:
        jobs, job = truth.jobs, one.job
        time = truth.slots_per_minibatch(job, one.together, one.worker_type, one.ps_type)
        of_use = min(one.count()[0], int(jobs.chunks[job]))
        first = max(one.first, int(jobs.arrival[job]))
        done = first + slots_for(truth.minibatches(job), time, of_use) - 1
        if done > one.last:
            return Fraction(0)
        return jobs.utility[job].value(Fraction((done if self.early else one.last) - int(jobs.arrival[job])))

    def _plan(self, batch: Batch) -> Plan:
        return decide(self.policy, batch)


@dataclass(frozen=True)
class SmallLies:
    """Lies about single jobs, and about two jobs of a tenant at once: all demands up to a size, given utilities.

    ``most``: the largest epochs and chunks that are told. ``keep_work``: only demands that tell the true number of
    mini-batches. ``utilities``: what is told of utilities, nothing by default. ``together``: two jobs at once besides.
    """

    most: int = 4
    keep_work: bool = False
    utilities: tuple[CompletionUtility, ...] = field(default=())
    together: bool = False

    def of(self, batch: Batch) -> Iterable[Lie]:
        """Yield the lies, those about single jobs first."""
        single = {job: list(self._about(batch, job)) for job in range(len(batch.jobs))}
        for job, told in single.items():
            yield from (Lie({job: what}) for what in told)
        if self.together:
            for job, told in single.items():
                for other in range(job + 1, len(batch.jobs)):
                    if batch.jobs.tenant[job] == batch.jobs.tenant[other]:
                        yield from (Lie({job: a, other: b}) for a in told for b in single[other])

    def _about(self, batch: Batch, job: int) -> Iterable[dict[str, Any]]:
        jobs = batch.jobs
        truth = (int(jobs.epochs[job]), int(jobs.chunks[job]))
        for epochs in range(1, self.most + 1):
            for chunks in range(1, self.most + 1):
                if (epochs, chunks) != truth and (not self.keep_work or epochs * chunks == truth[0] * truth[1]):
                    yield {"epochs": epochs, "chunks": chunks}
        for utility in self.utilities:
            if utility != jobs.utility[job]:
                yield {"utility": utility}
