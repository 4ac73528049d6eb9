"""The offline optimum of a batch: problem (3) as a time-indexed mixed-integer program, constraint by constraint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from fairopt.backends import Capability, Options, Session
from fairopt.backends.solution import Status
from fairopt.methods.columns.columns import Times
from fairopt.policy import Claim, Plan, Policy, Seconds, Trait
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Affine, Array, Comparison, Formulation, Program

SOURCE = "Astraea (posted prices)"


@dataclass(frozen=True)
class OfflineOptimum(Policy):
    """The schedules of largest total utility, with all jobs known from the beginning: (3) with (3a)-(3o) and (4a).

    * ``slots``: T; None for as many as the optimum can need (`Times.of`).
    * ``in_slot_of_arrival``: let a job run in the slot that it arrives in, as (3l) is printed; see `Times`.

    A job need not run (o_j of (4a)), and utilities count from the arrival. A backend solves the program, by default
    HiGHS with no gap. ``Plan.solution`` says how solving ended and what was proved.

    Source: Astraea (Wang et al.), IEEE TC 2022, Eq. (3), (3a)-(3o), (4a); several types Sec. 6.
    """

    problem = Batch
    name = "offline-optimum"
    traits = frozenset({Trait.PROGRAM, Trait.NAMELESS})
    claims = (Claim("schedule_pareto_efficiency", "(3): what dominated it would have a larger total"),)
    needs = frozenset({Capability.INTEGERS})
    source = "Astraea, IEEE TC 2022, Eq. (3)"
    methods = ()
    slots: int | None = None
    in_slot_of_arrival: bool = False

    @property
    def solver_options(self) -> Options:
        """Options for the default backend: integer optima without a gap."""
        return Options(gap=0.0)

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Formulate (3) and solve it; see `Policy.decide`. Errors: `NotSolved` where no point was found."""
        begun = perf_counter()
        program = self.formulate(problem)
        built = perf_counter() - begun
        solution = solve(program)
        if solution.status is not Status.LIMIT:
            solution.require_optimal()
        schedules = read_schedules(problem, program, solution.point)
        bound = "no bound" if solution.bound is None else f"bound {float(solution.bound):.9g}"  # without its noise
        return Plan(
            policy=self.name,
            batch=problem,
            schedules=schedules,
            program=program,
            solution=solution,
            proven=f"{solve.backend.name}: {solution.status.value}; {bound}",
            seconds=Seconds(build=built, solve=solution.seconds),
        )

    def formulate(self, problem: Batch) -> Program:
        """Return the program (3); its blocks of rows are named by the letters of the constraints."""
        return time_indexed(problem, Times.of(problem, self.slots, self.in_slot_of_arrival))


class _Variables(NamedTuple):
    """Affine arrays, for J jobs, S servers, W and P types, T slots.

    ``begins``, ``ends``, ``runs`` (J, T): whether t- = t, whether t+ = t, whether t lies between. ``mode``
    (J, W, P, 2): which types, and zeta_j. ``y`` (J, S, W, T) and ``z`` (J, S, P, T). ``uses`` (J, S): whether the job
    has anything on the server; ``serves`` (J, S): whether it has PS there.
    """

    begins: Affine
    ends: Affine
    runs: Affine
    mode: Affine
    y: Affine
    z: Affine
    uses: Affine
    serves: Affine


def time_indexed(batch: Batch, times: Times) -> Program:
    """Return problem (3) for ``times``; its non-linear parts are linearised exactly, as follows.

    * t- and t+ are binaries that say in which slot a job begins and ends; any utility is linear in them. A job runs in
      slot t where it has begun and not ended before (3l), with workers in each such slot (3m), (3n).
    * (3f), (3h): workers and PS may change only from a slot in which the job ends, or to one in which it begins.
    * (3i) holds for servers on which the job has PS: b_w times workers elsewhere is at most b_p times PS there. (As
      printed, for all servers, it would forbid placements on one server.)
    * (3j): zeta_j = 1 may be chosen only where the job uses one server; 0 may always be chosen, and is slower.
    * (3k): the speed n_j of Eq. (1) depends on the types and zeta_j. For the chosen mode, the workers in all slots
      times n_j must do the work. A job may run longer than it must.
    * (3a), (3b): after rearranging, all say that the tenants' total use is at most their total quota. Quotas add up to
      the servers' capacity, so this follows from (3c), (3d).

    Source: Astraea (posted prices) Eq. (3), (3a)-(3o), (4a).
    """
    jobs, slots = batch.jobs, times.slots
    names = (jobs.names, batch.servers)
    n, hosts, kinds_w, kinds_p = len(jobs), len(batch.servers), batch.workers.shape[1], batch.ps.shape[1]
    p = Formulation("offline optimum")

    def binary(name: str, *shape: int) -> Affine:
        return p.variable(name, shape, lower=0, upper=1, integer=True, labels=names)

    most_y = np.minimum(batch.workers[None], jobs.chunks[:, None, None])  # (J, S, W)
    most_z = np.broadcast_to(batch.ps[None], (n, hosts, kinds_p))
    at = range(1, slots + 1)
    labels = (jobs.names, [str(t) for t in at])
    v = _Variables(
        begins=p.variable("begins", (n, slots), lower=0, upper=1, integer=True, labels=labels),
        ends=p.variable("ends", (n, slots), lower=0, upper=1, integer=True, labels=labels),
        runs=p.variable("runs", (n, slots), lower=0, upper=1, labels=labels),
        mode=binary("mode", n, kinds_w, kinds_p, 2),
        y=p.variable("workers", (n, hosts, kinds_w, slots), lower=0, upper=most_y[..., None], integer=True),
        z=p.variable("ps", (n, hosts, kinds_p, slots), lower=0, upper=most_z[..., None], integer=True),
        uses=binary("uses", n, hosts),
        serves=binary("serves", n, hosts),
    )
    worth = [value for row in times.worth for value in row]
    exact = not any(isinstance(value, float) for value in worth)
    value = np.array(worth, dtype=object if exact else float).reshape(n, slots)
    p.maximize((value * v.ends).sum(), equation="sum_j f_j(t+_j - r_j)", source=f"{SOURCE} Eq. (3)")
    _sharing_and_capacity(p, batch, v)
    _one_job(p, batch, times, v, most_y, most_z)
    _bandwidth_and_work(p, batch, v, most_y, most_z)
    return p.program()


def _say(p: Formulation, labels: Any, name: str, comparison: Comparison, equation: str, letters: str) -> None:
    """Write constraints whose first indices have these labels."""
    p.constrain(name, comparison, equation=equation, source=f"{SOURCE} Eq. {letters}", labels=labels)


def _sharing_and_capacity(p: Formulation, batch: Batch, v: _Variables) -> None:
    """Write (3a)-(3d)."""
    tenant = np.asarray(batch.jobs.tenant)
    for letter, what, use, quota in (
        ("3a", "workers", v.y.sum(axis=1), batch.worker_quota),
        ("3b", "ps", v.z.sum(axis=1), batch.ps_quota),
    ):
        of = (tenant == np.arange(len(batch.tenants))[:, None]).astype(np.int64)  # (U, J)
        own, others = _by_tenant(of, use), _by_tenant(1 - of, use)
        owned = np.asarray(quota)[..., None]
        share, equation = owned + ((owned.sum(axis=0) - owned) - others), "sum_sj y <= q^u + sum_u' (q^u' - sum y)"
        _say(p, (batch.tenants,), f"{letter}_{what}_shared", own <= share, equation, f"({letter})")
    for letter, what, use, there in (
        ("3c", "workers", v.y.sum(axis=0), batch.workers),
        ("3d", "ps", v.z.sum(axis=0), batch.ps),
    ):
        fits = use <= np.asarray(there)[..., None]
        _say(p, (batch.servers,), f"{letter}_{what}_capacity", fits, "sum_j y_js(t) <= C_s", f"({letter})")


def _by_tenant(of: Array, use: Affine) -> Affine:
    """Return (U, types, T): the sum of the use (J, types, T) over the jobs that ``of`` (U, J) counts."""
    return (use[None] * of[:, :, None, None]).sum(axis=1)


def _one_job(p: Formulation, batch: Batch, times: Times, v: _Variables, most_y: Array, most_z: Array) -> None:
    """Write (4a), (3e)-(3h) and (3l)-(3n): when one job runs, and that what it takes does not change meanwhile."""
    jobs, slots = batch.jobs, np.arange(1, times.slots + 1)
    total = v.y.sum(axis=1).sum(axis=1)  # (J, T)
    say = partial(_say, p, (jobs.names, [str(t) for t in slots]))
    say("4a_once", v.begins.sum(axis=1) <= 1, "o_j <= 1", "(4a)")
    say("3e_chunks", total <= v.runs * jobs.chunks[:, None], "sum_s y <= D", "(3e)")
    for letter, what, use, most in (("3f", "workers", v.y, most_y), ("3h", "ps", v.z, most_z)):
        here, then = use[..., :-1], use[..., 1:]
        begins, ends = (each[:, None, None, :] for each in (v.begins[:, 1:], v.ends[:, :-1]))
        say(f"{letter}_{what}_more", then - here <= begins * most[..., None], "y(t+1) - y(t) <= C [t+1 = t-]", letter)
        say(f"{letter}_{what}_fewer", here - then <= ends * most[..., None], "y(t) - y(t+1) <= C [t = t+]", letter)
    say("3g_ps", v.z.sum(axis=1).sum(axis=1) >= v.runs, "sum_s z >= 1", "(3g)")
    early = slots < np.array(times.first)[:, None]
    say("3l_arrival", (v.begins * early).sum(axis=1) == 0, "t- >= r", "(3l)")
    running = v.runs[:, None, None, :]
    say("3l_workers", v.y <= running * most_y[..., None], "y(t) = 0 outside [t-, t+]", "(3l)")
    say("3l_ps", v.z <= running * most_z[..., None], "z(t) = 0 outside [t-, t+]", "(3l)")
    before = v.runs[:, :-1] - v.ends[:, :-1]
    say("3mn_first_slot", v.runs[:, 0] == v.begins[:, 0], "[1 in [t-, t+]] = [1 = t-]", "(3m), (3n)")
    say("3mn_next_slot", v.runs[:, 1:] == before + v.begins[:, 1:], "t in [t-, t+]", "(3m), (3n)")
    say("3m_within", v.ends <= v.runs, "t+ >= t-", "(3m)")
    say("3m_end", v.runs[:, -1] == v.ends[:, -1], "t+ <= T", "(3m)")
    say("3mn_workers", total >= v.runs, "sum_s y(t) > 0 for t in [t-, t+]", "(3m), (3n)")


def _bandwidth_and_work(p: Formulation, batch: Batch, v: _Variables, most_y: Array, most_z: Array) -> None:
    """Write (3i)-(3k): where workers and PS may be, and that they do the work."""
    jobs = batch.jobs
    hosts, scheduled = len(batch.servers), v.begins.sum(axis=1)  # o_j
    say = partial(_say, p, (jobs.names,))
    sent = (v.y * batch.worker_bandwidth[:, None]).sum(axis=2)  # (J, S, T)
    served = (v.z * batch.ps_bandwidth[:, None]).sum(axis=2)
    largest = batch.worker_bandwidth.max() * np.minimum(batch.workers.sum(), jobs.chunks)
    elsewhere = sent.sum(axis=1)[:, None, :] - sent
    idle = (1 - v.serves)[..., None]
    say("3i_bandwidth", elsewhere - served <= idle * largest[:, None, None], "sum_s' y b_w <= z b_p, or z = 0", "(3i)")
    say("3i_ps_hosts", v.z <= v.serves[:, :, None, None] * most_z[..., None], "z > 0 only on hosts of PS", "(3i)")
    say("3j_mode", v.mode.sum(axis=3).sum(axis=2).sum(axis=1) == scheduled, "one mode", "(3j)")
    say("3j_workers", v.y <= v.uses[:, :, None, None] * most_y[..., None], "y > 0 only on hosts", "(3j)")
    say("3j_ps", v.z <= v.uses[:, :, None, None] * most_z[..., None], "z > 0 only on hosts", "(3j)")
    together = v.mode[..., 1].sum(axis=2).sum(axis=1)  # zeta_j
    say("3j_together", v.uses.sum(axis=1) <= hosts - (hosts - 1) * together, "one host if zeta = 1", "(3j)")
    # only the types of the chosen mode are used (Sec. 6)
    of_worker, of_ps = v.mode.sum(axis=3).sum(axis=2), v.mode.sum(axis=3).sum(axis=1)
    say("6_worker_type", v.y <= of_worker[:, None, :, None] * most_y[..., None], "workers of one type", "Sec. 6")
    say("6_ps_type", v.z <= of_ps[:, None, :, None] * most_z[..., None], "PS of one type", "Sec. 6")
    work = v.y.sum(axis=3).sum(axis=1)  # (J, W): workers times slots
    slower = 2 * jobs.gradient[:, None, None] / batch.worker_bandwidth[:, None]
    time = jobs.minibatch_time[:, :, None] + jobs.update_time[:, None, :]
    times = np.stack([time + slower, time], axis=-1)  # 1 / n_j by mode (J, W, P, 2)
    batches = np.array([batch.minibatches(job) for job in range(len(jobs))], dtype=object)
    needed = v.mode * (times * batches[:, None, None, None])
    say("3k_work", work[:, :, None, None] >= needed, "sum_st y n >= E D M", "(3k), Eq. (1)")


def read_schedules(batch: Batch, program: Program, point: Array) -> tuple[JobSchedule, ...]:
    """Return the schedules of the jobs that run at a point of `time_indexed`; numbers are rounded to whole ones."""
    begins, ends, y, z = (
        np.rint(program.variable(name, point).astype(float)).astype(np.int64)
        for name in ("begins", "ends", "workers", "ps")
    )
    found = []
    for job in np.flatnonzero(begins.any(axis=1)).tolist():
        first, last = int(begins[job].argmax()), int(ends[job].argmax())
        spots, types = [], []
        for use in (y[job, :, :, first], z[job, :, :, first]):
            types.append(int(use.any(axis=0).argmax()))
            spots.append(tuple((int(s), int(use[s, types[-1]])) for s in np.flatnonzero(use[:, types[-1]])))
        found.append(JobSchedule(job, first + 1, last + 1, spots[0], spots[1], types[0], types[1]))
    return tuple(found)
