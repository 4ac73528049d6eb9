"""Armada's five properties: what holds for divisible jobs, and the smallest whole ones that break it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, product

from fairopt.models.armada.fair_shares import fair_shares
from fairopt.proofs.claims.armada.cycle import Amounts, Job, State, cycle, evictable, preempted, small, waiting
from fairopt.proofs.claims.drf import divisible, real
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

SAYS = (
    "The documents: 'The Armada scheduler also satisfies (with some exceptions as noted throughout the documentation) "
    "the following properties'."
)
READ = (
    "Read at 207cc9e0; a model of the documented cycle on nodes, with one priority class and no limits; no live "
    "cluster was run."
)
#: Where whole jobs are searched, in words; the sizes are `SMALL`.
EVERY = "on all instances of one node with 2, 3, 4 and 6 units of one resource or 2 of two, and two queues"
#: Random problems for divisible jobs.
SAMPLE = 150
#: Nodes, resources and queues of the search for whole jobs; each queue has as many jobs as the node has units.
SMALL = ((2, 1, 2), (3, 1, 2), (4, 1, 2), (6, 1, 2), (2, 2, 2))


def _divisible(name: str) -> str:
    broken = getattr(divisible, name)
    words = real.decided(name)
    for tasks in divisible.at_random(SAMPLE, 8, zeros=True):
        require(broken(divisible.drf, tasks) is None, f"{name} on {tasks}")
    return (
        f"Divisible jobs, where balancing c_i/w_i is Dominant Resource Fairness: it holds ({words}; nothing against "
        f"it on {SAMPLE} random problems with zeros)."
    )


def sharing_incentive() -> Finding:
    """Each user should be better off sharing than with its own partition."""
    for state in _small():
        own = cycle(state).counts()
        for queue, kind in enumerate(_kinds(state)):
            part = tuple(there // len(own) for there in state.total)
            require(own[queue] >= min(_jobs(state), _runs(kind, part)), f"sharing incentive on {state}")
    results = []
    for first, second in ((0, 1), (1, 0)):
        jobs = (Job(first, (1,), 0), Job(first, (1,), 1), Job(second, (2,)))
        state = State(jobs, ((2,), (2,)), (1, 1))
        results.append([cycle(state, documented=documented).counts()[second] for documented in (False, True)])
    require(results == [[0, 0], [0, 1]], "who holds half of both nodes keeps it")
    return Finding(
        Ruling.QUALIFIED,
        f"'sharing incentive: Each user should be better off sharing the cluster than exclusively using their own "
        f"partition of the cluster.' {SAYS} {_divisible('sharing_incentive')} Whole jobs on one node, two queues of "
        f"jobs that are all alike: it holds {EVERY}. On two nodes of 2 CPUs it does not: one queue runs a job of 1 CPU "
        "on each (others of its jobs have ended), which is its fair share of 1/2, so that the code protects it from "
        "eviction (a fraction of at most 1 by default); another queue's job of 2 CPUs waits as long as they run, and "
        "its own node would run it. Where all are evicted, as the documents have it, that depends on the queues' "
        "names, by which ties are broken: the "
        f"job runs if its queue comes first. {READ}",
    )


def strategy_proofness() -> Finding:
    """Users should not benefit from lying about their resource requirements."""
    one, two = (
        next(why for size in count(1) for state in small(size, resources, 2, size) if (why := _lie(state)))
        for resources in (1, 2)
    )
    return Finding(
        Ruling.QUALIFIED,
        f"'strategy-proofness: Users should not benefit from lying about their resource requirements.' {SAYS} "
        f"{_divisible_lies()} Whole jobs: it does not hold, since a larger request moves a queue's next job to "
        f"another place in the order. On the smallest node of one resource, jobs of a queue alike: {one}. On that of "
        f"two: {two}. The documents say of the order that it is max-min fair 'under certain conditions, e.g., when the "
        f"increments are sufficiently small'. {READ}",
    )


def _divisible_lies() -> str:
    words = real.decided("strategy_proofness")
    for tasks in divisible.at_random(SAMPLE // 15, 8, zeros=True):
        require(divisible.strategy_proofness(divisible.drf, tasks, divisible.lies) is None, f"truth on {tasks}")
    return f"Divisible jobs, where balancing c_i/w_i is Dominant Resource Fairness: it holds ({words})."


def _lie(state: State) -> str | None:
    """Return how a queue runs more of its jobs, which are all alike, by asking for more for each, in words."""
    own, kinds, largest = cycle(state).counts(), _kinds(state), state.total
    for queue, kind in enumerate(kinds):
        for told in product(*(range(need, most + 1) for need, most in zip(kind, largest, strict=True))):
            asks = [[told if each == queue else other] * _jobs(state) for each, other in enumerate(kinds)]
            got = cycle(waiting(asks, state.nodes)).counts()[queue]
            if got > own[queue]:
                return (
                    f"a node of {_words(largest)}, jobs of {_words(kinds[0])} and {_words(kinds[1])}: queue "
                    f"{queue + 1} runs {own[queue]}, and {got} if it asks for {_words(told)}"
                )
    return None


def envy_freeness() -> Finding:
    """A user should not prefer the allocation of another."""
    most = 0
    for state in _small():
        own, kinds = cycle(state).counts(), _kinds(state)
        for queue, other in product(range(len(own)), repeat=2):
            bundle = tuple(need * own[other] for need in kinds[other])
            most = max(most, min(_jobs(state), _runs(kinds[queue], bundle)) - own[queue])
    require(cycle(waiting([[(1,)], [(1,)]], [(1,)])).counts() == (1, 0), "one CPU for two")
    return Finding(
        Ruling.QUALIFIED,
        f"'envy-freeness: A user should not prefer the allocation of another. This property embodies the notion of "
        f"fairness.' {SAYS} {_divisible('envy_freeness')} Whole jobs: not for one CPU and two queues with a job of 1 "
        f"each (the queue whose name comes first runs). Jobs of a queue alike, a queue would run at most {most} job "
        f"more with the "
        f"other's resources {EVERY}. {READ}",
    )


def pareto_efficiency() -> Finding:
    """It should not be possible to increase one user's allocation without decreasing another's."""
    for state in _small():
        own, kinds = cycle(state).counts(), _kinds(state)
        left = [
            there - sum(kind[j] * n for kind, n in zip(kinds, own, strict=True)) for j, there in enumerate(state.total)
        ]
        for queue, kind in enumerate(kinds):
            require(own[queue] == _jobs(state) or not _runs(kind, left), f"Pareto efficiency on {state}")
    packed = cycle(waiting([[(1,)], [(2,), (2,)]], [(3,), (2,)]))
    require([job.node for job in packed.jobs] == [1, 0, None], "the first job goes to the smaller node")
    _, lost, _ = fair_shares([1, 1], [Fraction("0.495"), 10])
    return Finding(
        Ruling.QUALIFIED,
        "'pareto efficiency: It should not be possible to increase the allocation of a user without decreasing the "
        f"allocation of another.' {SAYS} {_divisible('pareto_efficiency')} Whole jobs that are alike within a queue: "
        f"it holds {EVERY}, since queues go on with what fits. On nodes of 3 and 2 CPUs it does not: a job of 1 goes "
        f"to 'a node with the smallest amount of resources possible', the one of 2, and of another queue's two jobs of "
        "2 CPUs one waits, where both would run beside it. Fair shares themselves leave up to 1% of the pool to "
        f"nobody: with demands of 49.5% and more than all, equal weights, they are {float(lost[0]):.1%} and "
        f"{float(lost[1]):.1%}. {READ}",
    )


def preemption_stability() -> Finding:
    """A preempted job that is submitted again triggers no further preemptions."""
    words = []
    for documented in (False, True):
        before = cycle(waiting([[], [(1,), (2,), (1,)]], [(4,)]), documented=documented)
        arrived = replace(before, jobs=(*before.jobs, Job(0, (3,))))
        after = cycle(arrived, documented=documented)
        gone = preempted(arrived, after)
        rest = tuple(job for at, job in enumerate(after.jobs) if at not in gone)
        calm = replace(after, jobs=rest)
        again = replace(after, jobs=(*rest, Job(1, (1,))))
        last = cycle(again, documented=documented)
        lost = preempted(again, last)
        require([arrived.jobs[at].needs for at in gone] == [(2,), (1,)], "two jobs are preempted")
        require(not preempted(calm, cycle(calm, documented=documented)), "nobody is preempted unless one comes back")
        require([again.jobs[at].needs for at in lost] == [(3,)], "the new job is preempted in turn")
        require(last.jobs[-1].node is not None, "the job that came back runs")
        words.append("documents" if documented else "code")
    return Finding(
        Ruling.REFUTED,
        "'preemption stability: Whenever a job is preempted and subsequently re-submitted before any other jobs have "
        f"completed, the re-submitted job should not trigger further preemptions.' {SAYS} One node of 4 CPUs; queue B "
        f"runs jobs of 1, 2 and 1 CPUs, and queue A submits one of 3. B's first job stays; then A would have 3/4 and "
        f"B, with its job of 2, 3/4, a tie that goes to A's name; B's jobs of 2 and of 1 no longer fit and are "
        f"preempted. The job of 1 is submitted again, the other is not: B would have 2/4 and A 3/4, so that B's job "
        f"runs, A's no longer fits and is preempted. Without it nobody is. So by the eviction of the "
        f"{' and by that of the '.join(words)}. What the job of 1 "
        f"waited behind in its own queue is gone. No exception is noted for this property. {READ}",
    )


def eviction() -> Finding:
    """Who is evicted: all preemptible jobs, those of queues above their share, or nobody by default."""
    full = State((Job(1, (1,), 0), Job(1, (1,), 0), Job(0, (1,))), ((2,),), (1, 1))
    half = State((Job(1, (1,), 0), Job(0, (1,), 0)), ((2,),), (1, 1))
    require(evictable(full, 1, Fraction(1)), "at 1.0 a queue with twice its share is evicted")
    require(not evictable(half, 1, Fraction(1)), "and one with its share is not")
    require(cycle(full).counts() == (1, 1), "one of its jobs is preempted")
    return Finding(
        Ruling.INCONSISTENT,
        "The documents: 'It consists of, at the start of each cycle, moving all currently running preemptible jobs "
        "from the nodes to which they are assigned back to their respective queues.' The code "
        "(preempting_queue_scheduler.go, Schedule) leaves those of a queue whose share, over the larger of FairShare "
        "and DemandCappedAdjustedFairShare, is at most ProtectedFractionOfFairShare. The comment on that option "
        "(configuration.go): '1.0 = Fair-share preemption disabled (default)', and then '0.5 = Queues over 50% of "
        "fair share can have jobs preempted'. By the code 1.0 protects queues up to their whole fair share, and no "
        "more: with two CPUs, queue B running two jobs of 1 and queue A submitting one, B has twice its share of 1/2, "
        "is evicted at 1.0, and one of its jobs is preempted. "
        f"Three texts, three rules; the code's is the one that the model has. {READ}",
    )


def rounds() -> Finding:
    """How often what is left of fair shares is shared again: 5 times by the comment, 10 by the code."""
    weight = [4**i for i in reversed(range(13))]
    demand = [Fraction(each, 10000) for each in (0, 1876, 1876, 1524, 1172, 887, 667, 501, 376, 282, 213, 161)]
    demand.append(Fraction(10))
    by_code, by_comment = fair_shares(weight, demand)[1], fair_shares(weight, demand, rounds=5)[1]
    whole = fair_shares(weight, demand, rounds=100, rest=0)[1]
    require(sum(whole) == 1, "all of the pool is wanted")
    return Finding(
        Ruling.INCONSISTENT,
        "scheduling.go, updateFairShares: 'We will reshare unused capacity until we've reshared 99% of all capacity "
        "or we've completed 5 iteration', and 'const maxIterations = 10'. Where each round meets one queue's demand it "
        "matters: 13 queues of weights 4^12, ..., 4, 1, whose demands are a little above what earlier rounds give "
        f"them, and the last one's endless: the parts of the pool sum to {float(sum(by_code)):.1%} after 10 rounds "
        f"and to {float(sum(by_comment)):.1%} after 5, and the last queue has {float(by_code[-1]):.2%}, where sharing "
        f"to the end gives it "
        f"{float(whole[-1]):.2%}. {READ}",
    )


def _small() -> Iterator[State]:
    for capacity, resources, queues in SMALL:
        yield from small(capacity, resources, queues, capacity)


def _kinds(state: State) -> list[Amounts]:
    return [state.of(queue, running=False)[0].needs for queue in range(len(state.weight))]


def _jobs(state: State) -> int:
    return len(state.of(0, running=False))


def _runs(needs: Amounts, bundle: Sequence[int]) -> int:
    return min(has // need for has, need in zip(bundle, needs, strict=True) if need)


def _words(needs: Sequence[int]) -> str:
    return f"<{', '.join(map(str, needs))}>"
