"""Posted-price packing: jobs admitted batch by batch, at prices that rise with use, own shares first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor, log
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.models.astraea.fast_search import Fast
from fairopt.models.astraea.reference import Reference
from fairopt.models.astraea.round_state import RoundState
from fairopt.policy import Admission, Claim, Payment, Plan, Policy, Seconds, Trait
from fairopt.problem.batch import MOST_SLOTS, Batch
from fairopt.problem.numbers import exact, within
from fairopt.problem.utilities import Linear
from fairopt.program import Array
from fairopt.schedules import Bases


def admissible_bases(batch: Batch, jobs: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return the least theta that is admissible for each worker type and each type of PS, above 1, for the given jobs.

    At these bases a full cluster admits nobody: theta - 1 is the largest utility per resource and slot. For each job
    over every number of workers that is f of the duration over workers times slots, and over slots with one PS; at
    least 1.

    Source: Astraea (posted prices) Sec. 4.4, after Eq. (8); Sec. 5.2, "Setting of Maximum Price".
    """
    workers = [Fraction(1)] * len(batch.worker_types)
    ps = [Fraction(1)] * len(batch.ps_types)
    for job in jobs:
        for w, p in batch.pairs:
            by_worker, by_slot = batch.densities(job, w, p)
            workers[w], ps[p] = max(workers[w], by_worker), max(ps[p], by_slot)
    return [float(each + 1) for each in workers], [float(each + 1) for each in ps]


def read_theta(text: str, place: str) -> tuple[float, float] | None:
    """Return the bases that a text names: "admissible" (None), one, or two for workers and PS, such as "16, 8"."""
    if text.strip().lower() == "admissible":
        return None
    numbers = [exact(part, place) for part in text.split(",")]
    if len(numbers) > 2 or min(numbers) <= 1:
        raise BadInput(f"got {text!r}", place=place, remedy="Give admissible, or one or two numbers above 1")
    return float(numbers[0]), float(numbers[-1])


def rounds(total: float, least: float, theta_workers: float, theta_ps: float) -> int:
    """Return lambda of Lemma 1, from the total utility of all jobs and the least of one.

    sigma is 2 (log theta_w + log theta_p), with natural logarithms; it is above 1 for bases from e on.

    Source: Astraea (posted prices) Lemmas 1 and 3.
    """
    sigma = 2 * (log(theta_workers) + log(theta_ps))
    return floor((log(total) - log(least)) / (log(sigma) - log(sigma - 1))) + 1


def _alike(tenants: list[str], utility: Linear, **more: Any) -> Batch:
    """Return a batch in which each tenant has a server with a worker and a PS, and a job of one mini-batch."""
    each = ("workers", "ps", "epochs", "chunks", "minibatches", "minibatch_time")
    quota, jobs = dict.fromkeys(tenants, 1), len(tenants)
    ones: dict[str, Any] = dict.fromkeys(each, [1] * jobs)
    return Batch.of(**ones, worker_quota=quota, ps_quota=quota, tenant=tenants, utility=[utility] * jobs, **more)


#: Two jobs of one slot each, worth 20 - t: the round of posted prices has two slots.
TWO_TENANTS = _alike(["u1", "u2"], Linear(Fraction(-1), Fraction(20)), update_time=[0, 0], gradient=[0, 0])
#: One job, which posted prices run so late that it costs its tenant 8; told to have three chunks, it is not run.
RUN_TOO_LATE = _alike(["u1"], Linear(Fraction(-4), Fraction(20)), arrival=[3], update_time=["1/2"], gradient=["1/4"])


@dataclass(frozen=True)
class PostedPricePacking(Policy):
    """Collect jobs over geometrically growing intervals; admit those that gain at posted prices, own shares first.

    Jobs that arrive in [tau_(l-1), tau_l), and those left over, are decided on at tau_l and run in (lambda tau_l,
    lambda tau_(l+1)], in ``rounds`` (lambda) rounds of tau_l slots. In each round every job is first tried within its
    tenant's own share. The jobs left are then tried within all unused resources; these jobs pay.

    * ``rounds``: lambda; 2 in the example of Sec. 4.2; `fairopt.models.astraea.posted_prices.rounds` is Lemma 1's
      formula.
    * ``theta``: the base of the prices of all types of workers, and of PS, from history or from an example (16 and 16
      in Sec. 4.4); None for the least that admit nobody to a full cluster (`admissible_bases`).
    * ``search``: how a job's best schedule is found; all searches find the same.
    * ``intervals``: L, None for as many as the longest job needs; see `last_interval`.

    Intervals: tau_l = 2^l, as in the example (the text prints tau_0 = 1, tau_1 = 2 and tau_l = 2^(l-1)). A job that
    arrives before slot 1 counts in the first interval. Jobs are tried in the order of the batch.

    Source: Astraea (Wang et al.), IEEE TC 2022, Algorithms 1-5.

    >>> from fairopt import decide
    >>> from fairopt.datasets import astraea_example
    >>> decide(PostedPricePacking(), astraea_example())
    <Plan: posted-prices on <Batch: 4 jobs of 2 tenants on 4 servers>: 3 of 4 jobs run>
    """

    problem = Batch
    name = "posted-prices"
    source = "Astraea, IEEE TC 2022, Algorithms 1-5"
    traits = frozenset({Trait.NAMELESS})
    claims = (
        Claim("budget_balance", "Sec. 3.2, Eq. (2)"),
        Claim("gain_as_you_contribute", "Eq. (2), (11)"),
        Claim("schedule_strategy_proofness", "Theorem 4", refuted_by=RUN_TOO_LATE),
        Claim("schedule_pareto_efficiency", "Theorem 5", refuted_by=TWO_TENANTS),
        Claim("batch_sharing_incentive", "Sec. 4.1", refuted_by=TWO_TENANTS),
    )
    rounds: int = within(2, least=1)
    theta: tuple[float, float] | None = field(default=None, metadata={"read": read_theta})
    search: Reference = field(default_factory=Fast)
    intervals: int | None = within(None, least=1)

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Run Algorithm 1; see `Policy.decide`."""
        begun = perf_counter()
        admissions: list[Admission] = []
        bases: list[Bases] = []
        waiting: list[int] = []
        last = self.intervals or last_interval(problem)
        self._check_slots(last)
        for interval in range(1, last + 1):
            waiting += arrivals(problem, interval)
            workers, ps = self._bases(problem, waiting)
            bases.append(Bases(interval, self.rounds, 2**interval, tuple(workers), tuple(ps)))
            made = self.batch(problem, waiting, bases[-1])
            admissions += made
            admitted = {each.job for each in made if each.admitted}
            waiting = [job for job in waiting if job not in admitted]
        paid = tuple(payments(problem, admissions))
        seconds = Seconds(solve=perf_counter() - begun)
        return Plan.of_admissions(self.name, problem, admissions, payments=paid, evidence=tuple(bases), seconds=seconds)

    def _bases(self, batch: Batch, jobs: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return theta for each worker type and for each type of PS, for the given jobs."""
        if self.theta is None:
            return admissible_bases(batch, jobs)
        workers, ps = self.theta
        return [workers] * len(batch.worker_types), [ps] * len(batch.ps_types)

    def _check_slots(self, last: int) -> None:
        # tables have a column for each slot of a round; exponents are compared first, because 2 ** last may fill the
        # memory
        if last > MOST_SLOTS.bit_length() or 2 * self.rounds * 2**last > MOST_SLOTS:
            raise BadInput(
                f"{last} intervals of {self.rounds} rounds end after slot {MOST_SLOTS}",
                place=f"{self.name}, intervals",
                remedy="Give longer slots, shorter jobs, or fewer intervals and rounds",
            )

    def batch(self, problem: Batch, jobs: list[int], bases: Bases) -> list[Admission]:
        """Return the decisions on one batch, in order. Source: Algorithm 2."""
        length = bases.slots  # tau_l
        decisions: list[Admission] = []
        left = list(jobs)
        for number in range(1, self.rounds + 1):
            origin = (self.rounds + number - 1) * length
            state = RoundState.fresh(problem, origin, length, np.asarray(bases.workers), np.asarray(bases.ps))
            for own in (True, False):
                if not own:
                    state.share()
                made = [self.offer(state, job, bases.interval, number, own) for job in left]
                decisions += made
                admitted = {each.job for each in made if each.admitted}
                left = [job for job in left if job not in admitted]
        return decisions

    def offer(self, state: RoundState, job: int, interval: int, number: int, own: bool) -> Admission:
        """Find a job's best schedule at the current prices; admit it if it gains. Source: Algorithm 3, Eq. (7)."""
        best = self.search.best(state, job)
        if best.schedule is not None and best.gain > 0:
            state.admit(best.schedule)
        return replace(best, interval=interval, round=number, own=own, admitted=best.gain > 0)


def arrivals(problem: Batch, interval: int) -> list[int]:
    """Return the jobs that arrive in [tau_(l-1), tau_l), in the first interval also earlier ones. Source: Alg. 1."""
    low, high = (2 ** (interval - 1) if interval > 1 else 0), 2**interval
    return [job for job, slot in enumerate(problem.jobs.arrival) if low <= slot < high]


def last_interval(problem: Batch) -> int:
    """Return the first interval whose rounds are as long as the longest job takes on all the workers it can have alone.

    Bandwidth may allow a job fewer workers, and prices may keep it out; such jobs stay unscheduled.
    """
    jobs = problem.jobs
    needed = 1
    for job in range(len(jobs)):
        shortest = min(
            problem.duration(job, max(1, min(int(jobs.chunks[job]), int(most))), together, worker, ps)
            for worker, there in enumerate(problem.workers.T)
            for together, most in ((True, there.max()), (False, there.sum()))
            for ps in range(len(problem.ps_types))
        )
        needed = max(needed, int(jobs.arrival[job]).bit_length(), (shortest - 1).bit_length())
    return needed


def payments(batch: Batch, admissions: Sequence[Admission]) -> Iterator[Payment]:
    """Yield the payments of jobs that run beyond their tenant's own share, slot by slot, with their receivers.

    A job's cost is spread evenly over its slots. Each slot's part is divided among all tenants, the payer included, in
    proportion to what they leave unused in that slot, separately for workers and PS. Unused means q^u minus the use of
    the jobs within u's own share; jobs that borrow do not count. Float costs are taken at their exact values, so that
    incomes sum to costs exactly.

    Source: Astraea (posted prices) Eq. (2), several types Eq. (11).
    """
    used = own_use(batch, admissions)
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or each.own or schedule is None:
            continue
        workers = Fraction(each.worker_cost) / schedule.duration
        ps = Fraction(each.ps_cost) / schedule.duration
        divided: dict[tuple[tuple[int, ...], ...], tuple[Fraction, ...]] = {}  # most slots are like the one before
        for slot in range(schedule.first, schedule.last + 1):
            used_workers, used_ps = used[slot]
            left = np.maximum(batch.worker_quota - used_workers, 0)[:, schedule.worker_type].tolist()
            left_ps = np.maximum(batch.ps_quota - used_ps, 0)[:, schedule.ps_type].tolist()
            key = tuple(left), tuple(left_ps)
            if key not in divided:
                both = zip(_divide(workers, left), _divide(ps, left_ps), strict=True)
                divided[key] = tuple(a + b for a, b in both)
            yield Payment(each.job, slot, workers, ps, divided[key])


def own_use(batch: Batch, admissions: Sequence[Admission]) -> Mapping[int, tuple[Array, Array]]:
    """Return the use of tenants' own shares, by slot: workers (U, W) and PS (U, P); 0 in others."""
    used = defaultdict[int, tuple[Array, Array]](
        lambda: (np.zeros_like(batch.worker_quota), np.zeros_like(batch.ps_quota))
    )
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or not each.own or schedule is None:
            continue
        tenant = batch.jobs.tenant[each.job]
        workers, ps = schedule.count()
        for slot in range(schedule.first, schedule.last + 1):
            used[slot][0][tenant, schedule.worker_type] += workers
            used[slot][1][tenant, schedule.ps_type] += ps
    return used


def _divide(amount: Fraction, parts: Sequence[int]) -> list[Fraction]:
    total = sum(parts)
    return [amount * part / total if total else Fraction(0) for part in parts]
