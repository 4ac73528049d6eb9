"""A `Batch`: jobs that want workers and parameter servers (PS) over time slots, and tenants who own both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem.checks import Frozen, amounts, checked_counts, checked_names
from fairopt.problem.utilities import CompletionUtility
from fairopt.program import Array

#: More slots, or more of anything else, is taken for a mistake.
MOST_SLOTS = 10_000_000
#: More PS than any server has.
NEVER = int(np.iinfo(np.int64).max)
#: The columns of jobs that are numbers of their own.
JOB_NUMBERS = ("arrival", "epochs", "chunks", "minibatches", "minibatch_time", "update_time", "gradient")


@dataclass(frozen=True, eq=False, repr=False)
class TrainingJobs(Frozen):
    """Jobs under the parameter-server architecture, in columns.

    Shapes, for n jobs: ``tenant`` (n,) index; ``arrival`` (n,) int slot r_j; ``epochs``, ``chunks``, ``minibatches``
    (n,) int: E_j, D_j, M_j (mini-batches in one chunk); ``minibatch_time`` (n, W) slots m_j on each worker type;
    ``update_time`` (n, P) slots G_j on each type of PS; ``gradient`` (n,) data units epsilon_j; ``utility`` (n).
    Times of mini-batches are positive.
    """

    names: tuple[str, ...]
    tenant: Array
    arrival: Array
    epochs: Array
    chunks: Array
    minibatches: Array
    minibatch_time: Array
    update_time: Array
    gradient: Array
    utility: tuple[CompletionUtility, ...]

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Sequence[int]) -> TrainingJobs:
        """Return the jobs of the given rows, in that order."""
        at = np.asarray(rows, dtype=np.int64)
        return TrainingJobs(
            names=tuple(self.names[row] for row in at),
            utility=tuple(self.utility[row] for row in at),
            **{name: getattr(self, name)[at] for name in ("tenant", *JOB_NUMBERS)},
        )


@dataclass(frozen=True, eq=False, repr=False)
class Batch(Frozen):
    """Tenants, their quotas, the servers and the jobs; validated and frozen. Make one with `Batch.of` or a reader.

    Shapes, for U tenants, S servers, W worker types and P types of PS:

    * ``tenants`` (U,): names. ``worker_quota`` (U, W) and ``ps_quota`` (U, P) int, q_w^u and q_p^u: what each tenant
      bought, together exactly what the servers hold.
    * ``servers`` (S,), ``worker_types`` (W,), ``ps_types`` (P,): names. ``workers`` (S, W) and ``ps`` (S, P) int, C_sw
      and C_sp. ``worker_bandwidth`` (W,) and ``ps_bandwidth`` (P,), b_w and b_p, in data units per slot, positive.

    Slots are counted from 1; slot t is the interval (t - 1, t].
    Source: Astraea (posted prices) Sec. 3.1, Table 1; several types Sec. 6.
    """

    tenants: tuple[str, ...]
    worker_quota: Array
    ps_quota: Array
    servers: tuple[str, ...]
    worker_types: tuple[str, ...]
    ps_types: tuple[str, ...]
    workers: Array
    ps: Array
    worker_bandwidth: Array
    ps_bandwidth: Array
    jobs: TrainingJobs

    @classmethod
    def of(
        cls,
        *,
        workers: Sequence[object],
        ps: Sequence[object],
        worker_quota: Mapping[str, object],
        ps_quota: Mapping[str, object],
        tenant: Sequence[str],
        epochs: Sequence[object],
        chunks: Sequence[object],
        minibatches: Sequence[object],
        minibatch_time: Sequence[object],
        update_time: Sequence[object],
        gradient: Sequence[object],
        utility: Sequence[CompletionUtility],
        arrival: Sequence[object] | None = None,
        worker_bandwidth: object = 1,
        ps_bandwidth: object = 1,
        worker_types: Sequence[str] = ("worker",),
        ps_types: Sequence[str] = ("ps",),
        names: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
    ) -> Batch:
        """Validate and return a batch.

        With one type, an entry is a number; with several it is a list with one number for each type. Times are in
        slots. Errors: `BadInput` that names the server, tenant or job, the column, the value and the remedy; quotas
        that do not add up to what the servers hold are refused (``sum_u q^u = sum_s C_s``).
        """
        w_names = checked_names(worker_types, len(list(worker_types)), "type", "W")
        p_names = checked_names(ps_types, len(list(ps_types)), "type", "P")
        host_names = checked_names(servers, len(list(workers)), "host", "s")
        owners = checked_names(list(worker_quota), len(worker_quota), "tenant", "u")
        job_names = checked_names(names, len(list(tenant)), "job", "j")
        jobs = [f"job {name!r}" for name in job_names]
        hosts = [f"server {name!r}" for name in host_names]
        if set(ps_quota) != set(owners):
            raise BadInput(
                f"tenants {sorted(set(ps_quota) ^ set(owners))} have one quota only",
                place="quotas",
                remedy="Give every tenant a quota of workers and one of PS",
            )
        strange = [name for name in tenant if name not in owners]
        if strange:
            raise BadInput(f"got {strange[0]!r}", place="job, tenant", remedy=f"The tenants are {', '.join(owners)}")
        if len(utility) != len(job_names) or not all(isinstance(each, CompletionUtility) for each in utility):
            remedy = "Give one CompletionUtility for each job"
            raise BadInput(f"{len(utility)} utilities", place="utility", remedy=remedy)
        people = [f"tenant {name!r}" for name in owners]
        batch = cls(
            tenants=owners,
            worker_quota=_counts([worker_quota[name] for name in owners], people, "workers", w_names),
            ps_quota=_counts([ps_quota[name] for name in owners], people, "ps", p_names),
            servers=host_names,
            worker_types=w_names,
            ps_types=p_names,
            workers=_counts(workers, hosts, "workers", w_names),
            ps=_counts(ps, hosts, "ps", p_names),
            worker_bandwidth=_table([worker_bandwidth], ["bandwidth"], "worker", w_names, above=True)[0],
            ps_bandwidth=_table([ps_bandwidth], ["bandwidth"], "ps", p_names, above=True)[0],
            jobs=TrainingJobs(
                names=job_names,
                tenant=np.array([owners.index(name) for name in tenant], dtype=np.int64),
                arrival=checked_counts(arrival, jobs, "arrival", "job", least=0, blank=0),
                epochs=checked_counts(epochs, jobs, "epochs", "job"),
                chunks=checked_counts(chunks, jobs, "chunks", "job"),
                minibatches=checked_counts(minibatches, jobs, "minibatches", "job"),
                minibatch_time=_table(minibatch_time, jobs, "minibatch_time", w_names, above=True),
                update_time=_table(update_time, jobs, "update_time", p_names),
                gradient=amounts(gradient, jobs, "gradient"),
                utility=tuple(utility),
            ),
        )
        _check_quotas(batch)
        return batch

    def __repr__(self) -> str:
        return f"<Batch: {len(self.jobs)} jobs of {len(self.tenants)} tenants on {len(self.servers)} servers>"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of a worker type and a type of PS, by index."""
        return list(product(range(len(self.worker_types)), range(len(self.ps_types))))

    @cached_property
    def ps_needed(self) -> dict[tuple[int, int], Array]:
        """The PS that the bandwidth of 0, 1, ... workers on other servers requires, by `pairs`: ceil(n b_w / b_p)."""
        needed = {}
        for worker, ps in self.pairs:
            ratio: Fraction = self.worker_bandwidth[worker] / self.ps_bandwidth[ps]
            counts = range(int(self.workers[:, worker].sum()) + 1)
            every = (min(-(-count * ratio.numerator // ratio.denominator), NEVER) for count in counts)
            needed[worker, ps] = np.array(list(every), dtype=np.int64)
        return needed

    def speed(self, job: int, together: bool, worker: int = 0, ps: int = 0) -> Fraction:
        """Return n_j = 1 / `slots_per_minibatch`: mini-batches per worker and slot."""
        return 1 / self.slots_per_minibatch(job, together, worker, ps)

    def slots_per_minibatch(self, job: int, together: bool, worker: int = 0, ps: int = 0) -> Fraction:
        """Return 1 / n_j: the slots that a worker takes for a mini-batch, for worker and PS types by index.

        m_j + G_j where all lies ``together`` on one server (zeta_j = 1), else m_j + G_j + 2 epsilon_j / b_w.
        Source: Astraea (posted prices) Eq. (1).
        """
        jobs = self.jobs
        time: Fraction = jobs.minibatch_time[job, worker] + jobs.update_time[job, ps]
        return time if together else time + 2 * jobs.gradient[job] / self.worker_bandwidth[worker]

    def duration(self, job: int, workers: int, together: bool, worker: int = 0, ps: int = 0) -> int:
        """Return d_j, the slots that it takes: ceil(E D M / (n_j workers)). Source: Astraea Algorithm 4, line 3."""
        return slots_for(self.minibatches(job), self.slots_per_minibatch(job, together, worker, ps), workers)

    def durations(self, job: int, together: bool, worker: int = 0, ps: int = 0) -> Array:
        """Return d_j on 1, ..., D_j workers (D_j,), at most `MOST_SLOTS` + 1; kept once asked for."""
        key = job, together, worker, ps
        if key not in self._durations:
            minibatches, time = self.minibatches(job), self.slots_per_minibatch(*key)
            every = (slots_for(minibatches, time, count) for count in range(1, int(self.jobs.chunks[job]) + 1))
            self._durations[key] = np.array([min(each, MOST_SLOTS + 1) for each in every], dtype=np.int64)
        return self._durations[key]

    def densities(self, job: int, worker: int = 0, ps: int = 0) -> tuple[Fraction, Fraction]:
        """Return the most that a job is worth by worker and slot, and by slot, on 1, ..., D_j workers; kept once asked.

        f of the duration is divided; the job lies on one server, where it takes no more slots than elsewhere.
        """
        key = job, worker, ps
        if key not in self._densities:
            time, utility = self.slots_per_minibatch(job, True, worker, ps), self.jobs.utility[job]
            by_worker, by_slot, before = [Fraction(0)], [Fraction(0)], 0
            for count in range(1, int(self.jobs.chunks[job]) + 1):
                slots = slots_for(self.minibatches(job), time, count)
                if slots != before:  # more workers in as many slots are worth less each
                    by_slot.append(Fraction(utility.value(Fraction(slots))) / slots)
                    by_worker.append(by_slot[-1] / count)
                    before = slots
            self._densities[key] = max(by_worker), max(by_slot)
        return self._densities[key]

    @cached_property
    def _durations(self) -> dict[tuple[int, bool, int, int], Array]:
        return {}

    @cached_property
    def _densities(self) -> dict[tuple[int, int, int], tuple[Fraction, Fraction]]:
        return {}

    def minibatches(self, job: int) -> int:
        """Return how many mini-batches a job is: E_j D_j M_j."""
        jobs = self.jobs
        return int(jobs.epochs[job]) * int(jobs.chunks[job]) * int(jobs.minibatches[job])

    def select(self, rows: Sequence[int]) -> Batch:
        """Return the batch with the given jobs only."""
        return replace(self, jobs=self.jobs.take(rows))


def slots_for(minibatches: int, time: Fraction, workers: int) -> int:
    """Return the whole slots that ``workers`` workers take, each ``time`` slots for a mini-batch."""
    return -(-minibatches * time.numerator // (time.denominator * workers))


@dataclass(frozen=True)
class JobSchedule:
    """Where and when one job runs: the same GPUs from its first slot to its last, without preemption.

    ``workers`` and ``ps``: pairs (server, how many), servers rising; of one worker type and one type of PS. ``first``
    and ``last``: slots, both inclusive; the job completes at ``last`` (t+).
    """

    job: int
    first: int
    last: int
    workers: tuple[tuple[int, int], ...]
    ps: tuple[tuple[int, int], ...]
    worker_type: int = 0
    ps_type: int = 0

    @property
    def together(self) -> bool:
        """Whether all lies on one server (zeta_j = 1)."""
        return len({server for server, _ in (*self.workers, *self.ps)}) == 1

    @property
    def duration(self) -> int:
        """Slots from the first to the last."""
        return self.last - self.first + 1

    def count(self) -> tuple[int, int]:
        """Return (workers, PS) in all."""
        return sum(n for _, n in self.workers), sum(n for _, n in self.ps)


def _table(values: object, places: Sequence[str], what: str, types: tuple[str, ...], *, above: bool = False) -> Array:
    """Return (rows, types): an entry is one number where there is one type, else a list with one for each."""
    rows = list(values) if isinstance(values, Sequence | np.ndarray) else [values]
    if len(rows) != len(places):
        raise BadInput(f"{len(rows)} values for {len(places)} rows", place=what, remedy="Give one for each")
    out = []
    for place, row in zip(places, rows, strict=True):
        entries = list(row) if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) else [row]
        if len(entries) == 1 and len(types) > 1:
            entries = entries * len(types)
        called = [f"{place}, type {name!r}" if len(types) > 1 else place for name in types]
        if len(entries) != len(types):
            remedy = "Give one for each type"
            raise BadInput(f"{len(entries)} values for {len(types)} types", place=f"{place}, {what}", remedy=remedy)
        out.append(amounts(entries, called, what, "type", above=above))
    return np.array(out, dtype=object).reshape(len(places), len(types))


def _counts(values: object, places: Sequence[str], what: str, types: tuple[str, ...]) -> Array:
    table = _table(values, places, what, types)
    flat = [f"{place}, {name}" for place in places for name in types]
    return checked_counts(table.ravel().tolist(), flat, what, "entry", least=0).reshape(table.shape)


def _check_quotas(batch: Batch) -> None:
    for what, quota, there, names in (
        ("workers", batch.worker_quota, batch.workers, batch.worker_types),
        ("PS", batch.ps_quota, batch.ps, batch.ps_types),
    ):
        for owned, held, name in zip(quota.sum(axis=0), there.sum(axis=0), names, strict=True):
            if owned != held:
                raise BadInput(
                    f"the tenants own {owned} {what} of type {name!r}, and the servers hold {held}",
                    place="quotas",
                    remedy="Give quotas that add up to the servers' total",
                )
