"""What became of the GPUs in a run: time held, used, spent on loading, lost, and free but of no use to who waited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.problem.queue import Queue
from fairopt.problem.tables import Short
from fairopt.program import Array, Number
from fairopt.simulation.history import History
from fairopt.simulation.record import Change, JobRun, Round


@dataclass(frozen=True, repr=False)
class GpuUse(Short):
    """GPU-time in GPUs times the trace's unit of time, over the rounds in which somebody was present.

    ``usable``: of hosts that worked when a round began. ``held``: by jobs, until they were done or their host failed;
    it is the sum of ``useful`` (progress that stays), ``loading`` (setup) and ``lost`` (all that was held in a round
    whose work a failure destroyed). ``fragmented`` and ``scattered`` were free while jobs waited: see `fragments`.
    """

    usable: Number
    held: Number
    useful: Number
    loading: Number
    lost: Number
    fragmented: Number
    scattered: Number


def gpu_use(history: History) -> GpuUse:
    """Return how the GPU-time of a run was used."""
    usable = held = useful = loading = lost = history.until * 0
    for record in history.rounds:
        usable += record.usable * (record.end - record.begin)
        for ran in record.ran:
            time = ran.gpus * (ran.end - ran.begin)
            held += time
            if ran.lost:
                lost += time
            else:
                loading += ran.gpus * ran.setup
                useful += ran.gpus * (ran.progress / ran.speed)
    return GpuUse(usable, held, useful, loading, lost, *fragments(history))


def fragments(history: History) -> tuple[Number, Number]:
    """Return the free GPU-time that was too small for every waiting gang, and that was enough only across hosts.

    In a round, F_i is the number of free GPUs of type i on working hosts after all placements, and J_i is the set of
    waiting jobs that suit the type (throughput, memory). If every gang in J_i is larger than F_i, no waiting job could
    use the GPUs, and all of F_i is fragmented. If some gang is not, but each is larger than the free GPUs of any single
    host of the type, F_i is scattered: a job could use it only across hosts. Otherwise the policy chose to leave the
    GPUs idle, and they count as neither. The same holds if no job waits for the type. The results are sums over types
    and rounds, times the rounds' length.

    Source: ours, for gangs. The idea (free GPUs that the workload's tasks cannot use) is from Weng et al., "Beware of
    Fragmentation", USENIX ATC 2023.
    """
    jobs, cluster = history.trace.jobs, history.cluster
    suits = Queue.fresh(jobs, cluster, length=1).suits if len(jobs) else np.zeros((0, len(cluster.types)), dtype=bool)
    host_of = {name: host for host, name in enumerate(cluster.hosts)}
    fragmented = scattered = history.until * 0
    for record in history.rounds:
        waiting = np.array([history.row[name] for name in record.waiting if name not in record.misfits], dtype=np.int64)
        free = _free(record, cluster.gpus, host_of)
        length = record.end - record.begin
        for gpu_type in range(len(cluster.types)) if len(waiting) and free.any() else ():
            there = free[cluster.gpu_type == gpu_type]
            gangs = jobs.gpus[waiting[suits[waiting, gpu_type]]]
            if not len(gangs) or not there.any():
                continue
            if gangs.min() > there.sum():
                fragmented += int(there.sum()) * length
            elif gangs.min() > there.max():
                scattered += int(there.sum()) * length
    return fragmented, scattered


def _free(record: Round, gpus: Array, host_of: dict[str, int]) -> Array:
    """Return the GPUs of each host (H,) that worked and were free in a round."""
    free = gpus.copy()
    for name in record.down:
        free[host_of[name]] = 0
    for ran in record.ran:
        for host, count in ran.spots:
            free[host_of[host]] -= count
    return free


@dataclass(frozen=True)
class Moves:
    """The numbers of moves of jobs: counts of (job, round).

    ``migrations``: a host was new to the job. ``between_types``: migrations that changed the job's slowest type;
    ``to_faster``: those of them to a type that is faster for the job. ``resumed``: it continued, after a pause, on the
    hosts where it ran last.
    """

    migrations: int
    between_types: int
    to_faster: int
    resumed: int

    @property
    def restarts(self) -> int:
        """The number of restarts of jobs that had run before, on any host."""
        return self.migrations + self.resumed


def moves(history: History) -> Moves:
    """Return the numbers of moves of jobs. Source: FFT Sec. 6.2.3 (the share towards faster types)."""
    jobs = history.trace.jobs
    gpu_types = {name: gpu_type for gpu_type, name in enumerate(jobs.types)}

    def slowest(ran: JobRun, types: tuple[str, ...]) -> tuple[Number, str]:
        speeds = jobs.throughput[history.row[ran.job]]
        return min((speeds[gpu_types[name]], name) for name in types)

    moved = [ran for record in history.rounds for ran in record.migrations]
    pairs = [(slowest(ran, ran.before), slowest(ran, ran.types)) for ran in moved]
    return Moves(
        migrations=len(moved),
        between_types=sum(before[1] != now[1] for before, now in pairs),
        to_faster=sum(now[0] > before[0] for before, now in pairs),
        resumed=sum(ran.change is Change.RESUME for record in history.rounds for ran in record.ran),
    )
