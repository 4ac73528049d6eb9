"""FFT's model: what holds in every round, its cost, its compensation, and placement (Sec. 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from random import Random

import numpy as np

from fairopt.backends import Highs, Options
from fairopt.backends.pyomo import Pyomo
from fairopt.errors import NotSolved
from fairopt.methods.gang_assignment import usable_gpus
from fairopt.models.fft.fft import FFT
from fairopt.models.fft.placement import HierarchicalPlacement
from fairopt.models.fft.program import choices, smaller_total
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.program import Array, Number
from fairopt.proofs.claims.fft.instances import LENGTH, Scene, present, queues, scenes
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed
from fairopt.simulation import Change, Request, Round, run


# -- Eq. (1) and Sec. 4.4.1: what holds in every round ---------------------------------------------------------------
def one_type_and_capacity() -> Finding:
    """Eq. (1): counted from the records, by names, without FFT's own code."""
    rounds = placed = broken = full = 0
    for scene in scenes(12):
        gpu_type = dict(zip(scene.cluster.hosts, scene.cluster.gpu_type.tolist(), strict=True))
        size = dict(zip(scene.cluster.hosts, scene.cluster.gpus.tolist(), strict=True))
        for record in scene.play(FFT()):
            rounds += 1
            used: Counter[int] = Counter()
            there: Counter[int] = Counter()
            for host, gpus in size.items():
                there[gpu_type[host]] += 0 if host in record.down else gpus
            for ran in record.ran:
                placed += 1
                broken += len({gpu_type[host] for host, _ in ran.spots}) != 1
                used.update({gpu_type[host]: gpus for host, gpus in ran.spots if len(ran.spots) == 1})
                if len(ran.spots) > 1:
                    used[gpu_type[ran.spots[0][0]]] += ran.gpus
            broken += len({ran.job for ran in record.ran}) != len(record.ran)
            broken += sum(used[i] > there[i] for i in used)
            full += sum(used.values()) == record.usable
    return Finding(
        Ruling.REFUTED if broken else Ruling.REPRODUCED,
        f"In {rounds} rounds of 12 generated traces (gangs, memory, outages, states that take time to move), FFT ran a "
        f"job {placed} times: {broken} times on two types at once or beyond what a type has, counted from the records "
        f"without FFT's own code. In {full} rounds every GPU that worked was in use.",
    )


def memory_is_enough() -> Finding:
    """Sec. 4.4.1: no job on a type whose memory is too small, counted from the records."""
    ran_there = tempted = broken = reported = unfit = 0
    for scene in scenes(12, seed=1):
        jobs, cluster = scene.trace.jobs, scene.cluster
        need = dict(zip(jobs.names, jobs.memory.tolist(), strict=True))
        speeds = dict(zip(jobs.names, jobs.throughput.tolist(), strict=True))
        has = dict(zip(cluster.types, cluster.memory.tolist(), strict=True))
        records = scene.play(FFT())
        for record in records:
            for ran in record.ran:
                ran_there += 1
                broken += any(need[ran.job] > has[name] for name in ran.types)
                small = [s for s, name in zip(speeds[ran.job], cluster.types, strict=True) if has[name] < need[ran.job]]
                tempted += any(speed > ran.speed for speed in small)
        whole = cluster.capacity.tolist()
        never = {
            name
            for name, gpus in zip(jobs.names, jobs.gpus.tolist(), strict=True)
            if not any(
                speed > 0 and need[name] <= has[gpu_type] and gpus <= total
                for speed, gpu_type, total in zip(speeds[name], cluster.types, whole, strict=True)
            )
        }
        unfit += len(never)
        reported += len(never & records[-1].unschedulable.keys())
        completed = {job for record in records for job in record.completed}
        broken += completed | never != set(jobs.names)
    agree = not broken and reported == unfit and tempted > 0
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"Of {ran_there} times that a job ran in 12 generated traces none was on a type with too little memory; "
        f"{tempted} times such a type would have been faster. All {unfit} jobs that fit no type stand in the records "
        f"with the reason ({reported}), and all others were completed.",
    )


# -- Eq. (3), (4): what a round costs --------------------------------------------------------------------------------
def objective_terms() -> Finding:
    """Eq. (3)-(4): the terms computed again from records; what they prefer."""
    rounds = differ = 0
    for scene in scenes(8, seed=2):
        owed: Mapping[str, Number] = {}
        for record in scene.play(FFT()):
            rounds += 1
            wanted = _terms_of(scene, record, owed)
            differ += any(record.costs[name] != value for name, value in wanted.items())
            owed = record.after.state.compensation
    require(not differ, "the terms of the records are those of Eq. (4)")
    twins = Trace(Jobs.of(names=["older", "younger"], types=["T"], gpus=[1, 1], work=[9, 9], arrival=[0, 1]))
    first = [
        ran.job
        for record in run(FFT(), twins, Cluster.uniform({"T": (1, 1)}), length=1, rounds=2)
        for ran in record.ran
    ]
    sample = list(scenes(6, seed=3, jobs=12))
    changed = [sum(_in_other_units(scene, policy) for scene in sample) for policy in (FFT(), FFT(in_rounds=True))]
    return Finding(
        Ruling.REPRODUCED,
        f"Age, volume and compensation of the {rounds} rounds of 8 generated traces, computed again from the records "
        "in Fractions, are those that FFT reports. Two things follow from the formula. The term for age is a cost, so "
        "that of two equal jobs the younger one is preferred until compensation grows: of two jobs of 9 rounds on one "
        f"GPU that come at 0 and 1, the {first[1]} one runs in the second round. And compensation counts squares of "
        "the job's unit of work, the other terms none: counting the work of every job in units of a hundredth, which "
        f"changes nothing but the unit, changes who runs when on {changed[0]} of {len(sample)} traces (on {changed[1]} "
        "with our option that counts compensation in rounds).",
    )


def _terms_of(scene: Scene, record: Round, owed: Mapping[str, Number]) -> dict[str, Fraction]:
    """Return the terms of Eq. (4) for what a round ran, job by job as the paper writes them."""
    jobs = scene.trace.jobs
    total = {name: Fraction(0) for name in ("age", "volume", "compensation")}
    for ran in record.ran:
        row = jobs.names.index(ran.job)
        theta = jobs.throughput[row, jobs.types.index(ran.types[0])] * LENGTH
        total["age"] += (record.begin - jobs.arrival[row]) / LENGTH * theta / jobs.work[row]
        total["volume"] += ran.gpus * jobs.work[row] / theta
        total["compensation"] -= Fraction(owed.get(ran.job, 0)) * theta
    return total


def _in_other_units(scene: Scene, policy: FFT) -> bool:
    """Whether who runs when changes with the unit of work."""
    jobs = scene.trace.jobs
    finer = replace(jobs, work=jobs.work * 100, throughput=jobs.throughput * 100)
    other = replace(scene, trace=Trace(finer, scene.trace.outages))
    return _who(scene.play(policy)) != _who(other.play(policy))


def _who(records: Sequence[Round]) -> list[set[tuple[str, tuple[str, ...]]]]:
    return [{(ran.job, ran.types) for ran in record.ran} for record in records]


# -- Eq. (5): compensation --------------------------------------------------------------------------------------
def recursion() -> Finding:
    """Eq. (5): rho, mu and tau computed again from records; how much the open readings matter."""
    rounds = numbers = positive = 0
    for scene in scenes(8, seed=4, jobs=14):
        again: dict[str, Fraction] = {}
        for record in scene.play(FFT()):
            rounds += 1
            again = _compensated(scene, record, again)
            state = record.after.state.compensation
            require(state == again, f"the compensation of round {record.index} is that of Eq. (5)")
            numbers += len(again)
            positive += sum(value > 0 for value in again.values())
    others = {
        "whole GPUs instead of parts of GPUs": FFT(whole_gpus=True),
        "tau from now on, for what remains": FFT(from_now=True),
        "work without what loading takes": FFT(served=Scene(Trace(_one_job()), _one_gpu()).mechanics),
    }
    sample = list(scenes(8, seed=4, jobs=14))
    base = [_who(scene.play(FFT())) for scene in sample]
    changed = [
        f"{what} on {sum(_who(scene.play(policy)) != who for scene, who in zip(sample, base, strict=True))}"
        for what, policy in others.items()
    ]
    return Finding(
        Ruling.QUALIFIED,
        f"The recursion, computed again from the records of {rounds} rounds of 8 generated traces in Fractions, gives "
        f"all {numbers} values of rho that FFT carries ({positive} of them positive). The paper leaves open what a "
        "gang gets out of 1/|A(t)| of each type. Our reading: of its GPUs Y_i/|A(t)|, of its speed the part that they "
        "are of the gang, on the type where that is fastest, since the job came; |A(t)| counts the jobs that fit some "
        "type. Then W/(tau - a) is what the part does in a round, and tau changes with the number of jobs only. Other "
        f"readings change who runs when, of {len(sample)} traces: {'; '.join(changed)}.",
    )


def _one_job() -> Jobs:
    return Jobs.of(types=["T"], gpus=[1], work=[1])


def _one_gpu() -> Cluster:
    return Cluster.uniform({"T": (1, 1)})


def _compensated(scene: Scene, record: Round, before: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return rho of the next round, job by job as the paper writes Eq. (5)."""
    jobs, total = scene.trace.jobs, scene.cluster.capacity.tolist()
    here = present(record)
    on = {ran.job: ran.types[0] for ran in record.ran}
    after = {}
    for name in here:
        row = jobs.names.index(name)
        gang = int(jobs.gpus[row])
        ends = [
            jobs.arrival[row] + jobs.work[row] / (speed * min(Fraction(1), Fraction(most, len(here) * gang)))
            for speed, most, memory in zip(jobs.throughput[row], total, scene.cluster.memory, strict=True)
            if speed > 0 and gang <= most and jobs.memory[row] <= memory
        ]
        tau, arrived = min(ends) / LENGTH, jobs.arrival[row] / LENGTH  # in rounds
        mu = (record.begin / LENGTH - arrived) / (tau - arrived)
        got = jobs.throughput[row, jobs.types.index(on[name])] * LENGTH if name in on else Fraction(0)
        owed = before.get(name, Fraction(0)) + mu * (jobs.work[row] / (tau - arrived) - got)
        after[name] = max(Fraction(0), owed)
    return after


# -- Eq. (6), (7): the program of a round -----------------------------------------------------------------------------
def program() -> Finding:
    """Eq. (6)-(7): our algorithm, two solvers and all schedules agree; K is the most that can be busy."""
    count, worst, more, infeasible = 0, Fraction(0), 0, 0
    solvers = [Highs(), Pyomo()]
    for queue, state in queues(40, seed=5):
        count += 1
        policy = FFT(restart=Fraction(1, 4))
        best, most = _by_trying_all(queue, policy.one_round(queue, state).cost)
        allowed = choices(queue)
        require(usable_gpus(queue.jobs.gpus, allowed, queue.room) == most, "K(t) is the most that can be busy")
        without_gap = [decide(policy, queue, each, state=state, options=Options(gap=0)) for each in solvers]
        for schedule in (decide(policy, queue, state=state), *without_gap):
            worst = max(worst, abs(Fraction(sum(schedule.costs.values())) - best))
        plain = smaller_total(queue.jobs.gpus, allowed, queue.room)
        more += plain > most
        infeasible += _refused(FFT(usable=smaller_total), queue)
    switches = _switching_again()
    require(infeasible == more, "the program has no solution where K(t) is more than can be busy")
    return Finding(
        Ruling.REPRODUCED if worst == 0 else Ruling.REFUTED,
        f"On {count} generated rounds of 6 jobs the exact cost of what our algorithm, HiGHS and Pyomo choose is the "
        f"least among all schedules that keep K(t) GPUs busy (largest difference: {worst}), and K(t) is the most that "
        "any schedule keeps busy, by trying all. The words for K(t) need their last clause: the smaller one of GPUs "
        f"and demand, without regard to gangs and types, is more than can be busy on {more} of them, and the program "
        f"has no solution there. The switching term, computed again from the records of {switches[0]} rounds, is the "
        f"one reported; it was paid {switches[1]} times. A paused job that comes back to its last type pays nothing in "
        "our default; the letter of Sec. 4.2.3, that its type at t - 1 is none, is an option.",
    )


def _refused(policy: FFT, queue: Queue) -> bool:
    try:
        decide(policy, queue)
    except NotSolved:
        return True
    return False


def _by_trying_all(queue: Queue, cost: Array) -> tuple[Fraction, int]:
    """Return the least cost among the schedules that keep the most GPUs busy, and how many GPUs that is."""
    gangs, capacity = queue.jobs.gpus.tolist(), queue.capacity.tolist()
    fitting = []
    for choice in product(range(-1, len(capacity)), repeat=len(gangs)):
        used = [
            sum(g for g, gpu_type in zip(gangs, choice, strict=True) if gpu_type == i) for i in range(len(capacity))
        ]
        pairs = [(row, gpu_type) for row, gpu_type in enumerate(choice) if gpu_type >= 0]
        if all(map(int.__le__, used, capacity)) and all(queue.suits[pair] for pair in pairs):
            fitting.append((sum(used), pairs))
    most = max(used for used, _ in fitting)
    return min(sum((cost[pair] for pair in pairs), Fraction(0)) for used, pairs in fitting if used == most), most


def _switching_again() -> tuple[int, int]:
    """Return the rounds in which the switching term is the transfer at 2 GB a unit of time, and the moves that paid."""
    rounds = paid = 0
    for scene in scenes(8, seed=6):
        size = dict(zip(scene.trace.jobs.names, scene.trace.jobs.state_size.tolist(), strict=True))
        for record in scene.play(FFT()):
            rounds += 1
            moved = [ran for ran in record.ran if ran.before not in ((), ran.types)]
            paid += len(moved)
            total = sum((Fraction(size[ran.job]) / 2 / LENGTH for ran in moved), Fraction(0))
            require(record.costs["switching"] == total, "the switching term is that of Sec. 4.2.3")
            require(all(ran.change is Change.MIGRATE for ran in moved), "who changes type moves to another host")
    return rounds, paid


# -- Sec. 4.3: placement -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Packing:
    """Gangs that are parallel within operators, on hosts of one type that are empty."""

    hosts: tuple[int, ...]
    gangs: tuple[int, ...]

    def queue(self, **columns: Sequence[object]) -> Queue:
        """Return it as a queue."""
        jobs = Jobs.of(types=["T"], gpus=self.gangs, work=[1] * len(self.gangs), **columns)  # type: ignore[arg-type]
        cluster = Cluster.of(["T"] * len(self.hosts), self.hosts, bandwidth=[1] * len(self.hosts))
        return Queue.fresh(jobs, cluster, length=1)

    def by_fft(self) -> int:
        """Return on how many hosts the gangs lie, summed over gangs, where FFT puts them."""
        queue = self.queue()
        requests = [Request(row, (0,)) for row in range(len(self.gangs))]
        return sum(map(len, HierarchicalPlacement().place(queue, requests, queue.free()).values()))

    def least(self, row: int = 0, left: tuple[int, ...] | None = None) -> int:
        """Return the same for the best of all placements."""
        left = self.hosts if left is None else left
        if row == len(self.gangs):
            return 0
        best = len(self.hosts) * len(self.gangs) + 1
        for amounts in product(*(range(min(free, self.gangs[row]) + 1) for free in left)):
            if sum(amounts) == self.gangs[row]:
                rest = tuple(free - amount for free, amount in zip(left, amounts, strict=True))
                best = min(best, sum(amount > 0 for amount in amounts) + self.least(row + 1, rest))
        return best


def placement() -> Finding:
    """Sec. 4.3: a gang in its turn gets the fewest hosts; all together not always."""
    dice, jobs, packings = Random(7), 0, []
    for _ in range(200):
        free = [dice.randint(0, 4) for _ in range(5)]
        gang = dice.randint(1, max(1, sum(free)))
        if gang > sum(free):
            continue
        jobs += 1
        queue = Packing((4,) * 5, (gang,)).queue()
        spots = HierarchicalPlacement().fewest(queue, 0, (0,), np.array(free))
        fewest = min(n for n in range(1, 6) if any(sum(chosen) >= gang for chosen in combinations(free, n)))
        require(len(spots) == fewest, f"a gang of {gang} on hosts with {free} free gets the fewest")
    for size in (2, 3, 4):
        for hosts in combinations_with_replacement(range(2, 8), 2):
            for gangs in combinations_with_replacement(range(2, 5), size):
                if sum(gangs) <= sum(hosts):
                    packings.append(Packing(hosts, gangs))
    more = [(each, each.by_fft(), each.least()) for each in packings]
    worse = [entry for entry in more if entry[1] > entry[2]]
    at_t1, at_t2 = _figure_6()
    require(at_t1 == [1, 2, 1] and at_t2 == [1, 1], "J2 is the one that lies apart, and comes together")
    example = f": hosts of {listed(map(str, worse[0][0].hosts))} GPUs and gangs of " if worse else ""
    if worse:
        example += f"{listed(map(str, worse[0][0].gangs))} lie on {worse[0][1]} instead of {worse[0][2]}"
    return Finding(
        Ruling.QUALIFIED if worse else Ruling.REPRODUCED,
        f"A gang in its turn gets the fewest hosts ({jobs} of {jobs} random ones, against all choices of hosts). Over "
        f"all gangs together the order of turns does not always: on {len(worse)} of {len(packings)} packings of 2 to 4 "
        f"gangs on two hosts fewer would do{example}. Fig. 6's events, with numbers of ours as it has none (two "
        "hosts of 4; J1 and J3 of 3 GPUs parallel within operators, J2 a pipeline of 2): J1 and J3 lie on one host "
        "each and J2 on two; when J1 is done, J2 comes together on one and J3 stays. Repacking each round is the same "
        "as at churn events only: where nothing came or went, nobody is left who fits on a host.",
    )


def _figure_6() -> tuple[list[int], list[int]]:
    """Return on how many hosts J1, J2, J3 lie at T1, and J2, J3 at T2."""
    queue = Packing((4, 4), (3, 2, 3)).queue(pattern=["intra", "inter", "intra"])
    first = HierarchicalPlacement().place(queue, [Request(row, (0,)) for row in range(3)], queue.free())
    later = Packing((4, 4), (2, 3)).queue(pattern=["inter", "intra"])
    later = replace(later, last=(first[1], first[2]), running=np.array([True, True]))
    second = HierarchicalPlacement().place(later, [Request(row, (0,)) for row in range(2)], later.free())
    require(second[1] == first[2], "J3 stays")
    return [len(first[row]) for row in range(3)], [len(second[row]) for row in range(2)]
