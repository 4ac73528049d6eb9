"""Rounds from outside: every measure again, by summing over ticks of time; and a run goes on after every round."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from drawn_seeds import seeds

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.baselines.themis import Themis
from fairopt.models.baselines.tiresias import LeastAttainedService
from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Outage, Trace
from fairopt.simulation import Change, History, Mechanics, run, snapshot_from, snapshot_text
from fairopt.simulation.gpu_time import Window, finish_time_fairness, job_fairness, tenant_fairness
from fairopt.simulation.measures import measure

SRTF = ShortestRemainingTimeFirst()
POLICIES: tuple[Policy, ...] = (
    SRTF,
    LongTermGpuTimeFairness(),
    LeastAttainedService(thresholds=(20,)),
    Themis(lease=25),
)
#: All that happens in a sampled run happens at a multiple of this.
TICK = F(1, 8)


# -- measures, tick by tick ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Seen:
    """A history as tables by tick: who is active, who holds how many GPUs, how many GPUs there are."""

    history: History
    ticks: int
    active: dict[str, set[int]]
    held: dict[str, dict[int, int]]
    working: list[int]

    @classmethod
    def of(cls, history: History) -> Seen:
        ticks = at(history.until)
        jobs, cluster = history.trace.jobs, history.cluster
        done = {ran.job: ran.end for each in history.rounds for ran in each.ran if ran.completed}
        active = {}
        for row, name in enumerate(jobs.names):
            fits = any(
                jobs.throughput[row, gpu_type] > 0
                and jobs.memory[row] <= cluster.memory[gpu_type]
                and jobs.gpus[row] <= sum(cluster.gpus[cluster.of_type(gpu_type)])
                for gpu_type in range(len(cluster.types))
            )
            end = at(done.get(name, history.until)) if fits else 0
            active[name] = set(range(at(jobs.arrival[row]), end))
        held: dict[str, dict[int, int]] = {name: {} for name in jobs.names}
        for each in history.rounds:
            for ran in each.ran:
                for tick in range(at(ran.begin), at(ran.end)):
                    assert tick not in held[ran.job]
                    held[ran.job][tick] = sum(gpus for _, gpus in ran.spots)
        working = []
        for tick in range(ticks):
            down = {each.host for each in history.trace.outages if each.begin <= tick * TICK < each.end}
            working.append(sum(int(g) for host, g in zip(cluster.hosts, cluster.gpus, strict=True) if host not in down))
        return cls(history, ticks, active, held, working)

    def fairness(
        self, ticks: range, *, tenants: bool, cap: bool, working: bool
    ) -> tuple[dict[str, F | None], dict[str, F | None]]:
        """Return rho of jobs and of tenants over ``ticks``. Source: ASTRAEA Eq. (1)-(16), one tick at a time."""
        jobs = self.history.trace.jobs
        own = {name: jobs.tenants[tenant] for name, tenant in zip(jobs.names, jobs.tenant, strict=True)}
        size = dict(zip(jobs.names, jobs.gpus.tolist(), strict=True))
        weight = dict(zip(jobs.names, jobs.weight.tolist(), strict=True))
        got: dict[tuple[str, str], F] = {}
        due: dict[tuple[str, str], F] = {}
        for tick in ticks:
            gpus = self.working[tick] if working else int(self.history.cluster.gpus.sum())
            here = [name for name in jobs.names if tick in self.active[name]]
            share = {}
            for tenant, part in zip(jobs.tenants, jobs.tenant_weight, strict=True):
                quota = gpus * part / sum(jobs.tenant_weight)
                asked = sum(size[name] for name in here if own[name] == tenant)
                share[tenant] = min(F(asked), quota) if cap else quota
                key = ("tenant", tenant)
                due[key] = due.get(key, F(0)) + share[tenant]
                alloc = sum(self.held[name].get(tick, 0) for name in jobs.names if own[name] == tenant)
                got[key] = got.get(key, F(0)) + alloc
            for name in here:
                among = [other for other in here if not tenants or own[other] == own[name]]
                fair = (share[own[name]] if tenants else gpus) * weight[name] / sum(weight[each] for each in among)
                key = ("job", name)
                due[key] = due.get(key, F(0)) + min(F(size[name]), fair)
                got[key] = got.get(key, F(0)) + self.held[name].get(tick, 0)

        def rho(kind: str, name: str) -> F | None:
            return got[kind, name] / due[kind, name] if due.get((kind, name)) else None

        return {name: rho("job", name) for name in jobs.names}, {name: rho("tenant", name) for name in jobs.tenants}


def at(time: Any) -> int:
    """Return the tick at a time, which must be one."""
    assert F(time) % TICK == 0, time
    return int(F(time) / TICK)


@cache
def sampled(seed: int) -> History:
    """Return the history of a sampled run."""
    policy, trace, cluster, mechanics, rounds = setting(seed)
    return History.of(trace, cluster, run(policy, trace, cluster, length=10, mechanics=mechanics, rounds=rounds))


def setting(seed: int) -> tuple[Policy, Trace, Cluster, Mechanics, int]:
    """Return what a sampled run is of: arrivals and failures within rounds, two types, jobs that fit none; in ticks."""
    rng = random.Random(seed)
    cluster = Cluster.of(
        ["old", "old", "new"], [2, rng.choice([1, 2]), rng.choice([1, 2, 4])], memory={"new": 16}, bandwidth=[2, 4, 2]
    )
    count = rng.randint(2, 7)
    tenants = [rng.choice("ABC") for _ in range(count)]
    jobs = Jobs.of(
        gpus=[rng.choice([1, 1, 2, 3, 4, 9]) for _ in range(count)],
        work=[rng.randint(2, 60) for _ in range(count)],
        types=cluster.types,
        throughput=[[rng.choice([0, 1, 1]), rng.choice([1, 2])] for _ in range(count)],
        arrival=[F(rng.randint(0, 90), 2) for _ in range(count)],
        tenant=tenants,
        tenant_weight={name: rng.randint(1, 3) for name in dict.fromkeys(tenants)},
        memory=[rng.choice([0, 20]) for _ in range(count)],
        state_size=[rng.choice([0, 4]) for _ in range(count)],
        weight=[rng.choice([1, 2]) for _ in range(count)],
    )
    outages = []
    for host in cluster.hosts:
        begin = F(rng.randint(0, 160), 2)
        outages += [Outage(host, begin, begin + rng.randint(1, 30))] * (rng.random() < 0.7)
        outages += [Outage(host, begin + 1, begin + 9)] * (rng.random() < 0.3)  # overlaps
    mechanics = Mechanics(restart=F(rng.choice([0, 3, 12])), launch=F(1), spread=F(1, 2))
    return POLICIES[seed % len(POLICIES)], Trace(jobs, tuple(outages)), cluster, mechanics, rng.choice([5, 60])


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_long_term_fairness_tick_by_tick(seed: int) -> None:
    history = sampled(seed)
    seen = Seen.of(history)
    first = at(history.trace.jobs.arrival[0])
    half = range(min(first + 40, seen.ticks), max(seen.ticks - 16, first + 40))
    for cap, working in ((True, False), (False, False), (True, True)):
        of_jobs, of_tenants = seen.fairness(range(first, seen.ticks), tenants=True, cap=cap, working=working)
        present = {name: of_jobs[name] for name in history.ran}
        assert job_fairness(history, demand_cap=cap, working=working) == present
        assert tenant_fairness(history, demand_cap=cap, working=working) == of_tenants
    of_jobs, _ = seen.fairness(range(first, seen.ticks), tenants=False, cap=True, working=False)
    assert job_fairness(history, tenants=False) == {name: of_jobs[name] for name in history.ran}
    if len(half) and half.stop <= seen.ticks:
        window = Window(half.start * TICK, half.stop * TICK)
        of_jobs, of_tenants = seen.fairness(half, tenants=True, cap=True, working=False)
        assert tenant_fairness(history, window=window) == of_tenants
        assert job_fairness(history, window=window) == {name: of_jobs[name] for name in history.ran}


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_measures_tick_by_tick(seed: int) -> None:
    history = sampled(seed)
    seen, found, jobs = Seen.of(history), measure(history), history.trace.jobs
    arrival = dict(zip(jobs.names, jobs.arrival, strict=True))
    gpu_types = {"useful": 0, "loading": 0, "lost": 0}
    for ran in (ran for each in history.rounds for ran in each.ran):
        for tick in range(at(ran.begin), at(ran.end)):
            gpu_type = "lost" if ran.lost else "loading" if tick < at(ran.begin + ran.setup) else "useful"
            gpu_types[gpu_type] += sum(gpus for _, gpus in ran.spots)
    assert {gpu_type: value * TICK for gpu_type, value in gpu_types.items()} == {
        gpu_type: getattr(found.gpu, gpu_type) for gpu_type in gpu_types
    }
    assert found.gpu.held == TICK * sum(gpu_types.values())
    done = [name for name in jobs.names if any(ran.job == name for each in history.rounds for ran in each.ran)]
    done = [name for name in done if history.completion[name] is not None]
    jct = {name: TICK * len(seen.active[name]) for name in done}
    assert found.jct.mean == (sum(jct.values()) / len(jct) if jct else None)
    slow = [jct[name] / (TICK * len(seen.held[name])) for name in done]
    assert found.slowdown.most == max(slow, default=None)
    waits = []
    for name in history.ran:
        if seen.active[name]:
            waits.append(min(seen.held[name], default=seen.ticks) * TICK - arrival[name])
    assert found.first_wait.mean == (sum(waits) / len(waits) if waits else None)
    others = {
        tick: sum(tick in own for name, own in seen.active.items() if name in history.ran) for tick in range(seen.ticks)
    }

    rho = finish_time_fairness(history, lambda queue, row, jobs: F(jobs))
    for name in done:
        mean = F(sum(others[tick] for tick in seen.active[name]), len(seen.active[name]))
        assert rho[name] == jct[name] / mean


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_fragments_by_their_words(seed: int) -> None:
    history = sampled(seed)
    jobs, cluster = history.trace.jobs, history.cluster
    fragmented = scattered = 0
    for each in history.rounds:
        free = {host: int(gpus) for host, gpus in zip(cluster.hosts, cluster.gpus, strict=True)}
        free |= dict.fromkeys(each.down, 0)
        for ran in each.ran:
            for host, gpus in ran.spots:
                free[host] -= gpus
        assert min(free.values()) >= 0
        for gpu_type in range(len(cluster.types)):
            there = [free[cluster.hosts[host]] for host in cluster.of_type(gpu_type)]
            gangs = [
                int(jobs.gpus[row])
                for row, name in enumerate(jobs.names)
                if name in each.waiting
                and name not in each.unschedulable
                and jobs.throughput[row, gpu_type] > 0
                and jobs.memory[row] <= cluster.memory[gpu_type]
            ]
            if gangs and all(gang > sum(there) for gang in gangs):
                fragmented += sum(there) * 10
            elif gangs and all(gang > max(there) for gang in gangs):
                scattered += sum(there) * 10
    assert (fragmented, scattered) == (measure(history).gpu.fragmented, measure(history).gpu.scattered)


def test_the_samples_hold_what_they_should() -> None:
    histories = [sampled(seed) for seed in range(16)]
    ran = [each for history in histories for record in history.rounds for each in record.ran]
    assert {each.change for each in ran} == set(Change)
    assert any(each.lost for each in ran)
    assert any(each.setup == 10 for each in ran)
    assert any(len(set(each.types)) == 1 and len(each.spots) > 1 for each in ran)
    assert any(history.unschedulable for history in histories)


@pytest.mark.parametrize("seed", range(8))
def test_goes_on_after_every_round(seed: int) -> None:
    policy, trace, cluster, mechanics, _ = setting(seed)
    rounds = sampled(seed).rounds
    for record, following in pairwise(rounds):
        snapshot = snapshot_from(snapshot_text(record.after), policy.states)
        assert snapshot == record.after
        later = run(policy, trace, cluster, length=10, mechanics=mechanics, rounds=1, after=snapshot)
        assert next(later) == following
