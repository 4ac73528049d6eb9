"""Whether workloads preempt each other in turn, without end: Kueue's proof, its assumption, and trees of cohorts.

Z3 decides for all real numbers at fixed sizes; what it finds is played by the rule itself, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import z3

from fairopt.models.kueue.cycles import Cycles, run
from fairopt.models.kueue.preemption import targets_of
from fairopt.models.kueue.quotas import CohortQuotas, Needs
from fairopt.models.kueue.state import Preempts, Rules, State, Strategy
from fairopt.models.kueue.work import QueuedWork
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

#: How many ClusterQueues and how many preemptions in a row are decided where there are no cohorts in cohorts.
QUEUES, STEPS = 4, 6
GPU, CPU = 0, 1


class Shares(NamedTuple):
    """Dominant resource shares of a ClusterQueue without and with its workload."""

    pending: Any
    admitted: Any


def _lets(preemptor: Shares, target: Shares, *, strictly: bool = False) -> Any:
    """Rules S2-a and S2-b of strategy.go; ``strictly``: S2-a with < in place of <=."""
    final = preemptor.admitted < target.pending if strictly else preemptor.admitted <= target.pending
    return z3.Or(final, preemptor.admitted < target.admitted)


def _circle(length: int, *, rises: bool, strictly: bool = False) -> bool:
    """Return whether real shares let ``length`` workloads preempt each other in a circle.

    ``rises``: a workload raises its ClusterQueue's share, as Kueue's proof assumes; otherwise it does not lower it.
    """
    solver = z3.Solver()
    shares = [Shares(z3.Real(f"pending{each}"), z3.Real(f"admitted{each}")) for each in range(length)]
    for each in shares:
        solver.add(each.pending >= 0, each.pending < each.admitted if rises else each.pending <= each.admitted)
    for one, next_ in pairwise([*shares, shares[0]]):
        solver.add(_lets(one, next_, strictly=strictly))
    return _found(solver)


def _found(solver: z3.Solver) -> bool:
    answer = solver.check()
    require(answer in (z3.sat, z3.unsat), "Z3 decides")
    return bool(answer == z3.sat)


def _swaps(queues: int, steps: int, pair: bool) -> bool:
    """Return whether preemptions of one for one can come back to where they began, for all quotas and sizes.

    ``queues`` with one workload each, of any size, and one resource. With ``pair`` the first two are in a cohort of
    their own. A preemption needs that the workload does not fit, that the target's side borrows, and S2-a or S2-b.
    """
    solver = z3.Solver()
    each = range(queues)
    quota, size = ([z3.Real(f"{name}{i}") for i in each] for name in ("quota", "size"))
    cohort, root = z3.Reals("cohort root")
    solver.add(cohort >= 0, root >= 0, *(own >= 0 for own in quota), *(own > 0 for own in size))
    capacity = root + (cohort if pair else 0) + z3.Sum(quota)
    on = [[z3.Bool(f"on_{step}_{i}") for i in each] for step in range(steps)]
    on.append(on[0])
    for step in range(steps):
        used = [z3.If(on[step][i], size[i], 0) for i in each]

        def over(i: int, other: int, without: int | None = None, plus: int | None = None, used: Any = used) -> Any:
            """Return what i's side, below the lowest common ancestor with ``other``, borrows."""
            inside = [0, 1] if pair and i < 2 and other >= 2 else [i]
            total = z3.Sum([0 if k == without else size[k] if k == plus else used[k] for k in inside])
            return total - z3.Sum([quota[k] for k in inside]) - (cohort if len(inside) > 1 else 0)

        choices = []
        for p in each:
            for v in each:
                if p == v:
                    continue
                new, old, final = over(p, v, plus=p), over(v, p), over(v, p, without=v)
                share = [z3.If(one > 0, one, 0) for one in (new, final, old)]
                moves = [on[step + 1][i] == (i == p if i in (p, v) else on[step][i]) for i in each]
                full = z3.Sum(used) + size[p] > capacity
                room = z3.Sum(used) + size[p] - size[v] <= capacity
                borrows = z3.And(old > 0, used[v] > quota[v])
                rule = z3.Or(share[0] <= share[1], share[0] < share[2])
                choices.append(z3.And(z3.Not(on[step][p]), on[step][v], full, room, borrows, rule, *moves))
        solver.add(z3.Or(choices), z3.Sum(used) <= capacity)
    return _found(solver)


class Tree(NamedTuple):
    """A cluster for the rule itself: quotas, sizes of one workload for each of the first nodes, oldest first."""

    parent: Sequence[int]
    nominal: Sequence[Sequence[int]]
    resources: Sequence[str]
    needs: Sequence[Needs]
    base: Sequence[Needs] = ()

    def state(self) -> tuple[State, list[QueuedWork]]:
        """Return the state with what is held anyway, by workloads of higher priority, and those that wait."""
        none: list[list[int | None]] = [[None] * len(self.resources)] * len(self.parent)
        quotas = CohortQuotas(self.parent, self.resources, self.nominal, none, none, [Fraction(1)] * len(self.parent))
        state = State(quotas, lambda _: Rules(reclaim_within_cohort=Preempts.ANY), True, tuple(Strategy))
        works = [QueuedWork(f"w{i}", i, 0, i, i, {0: (own, ())}, kind=i) for i, own in enumerate(self.needs)]
        for i, own in enumerate(self.base):
            state.add(QueuedWork(f"base{i}", i, 100, -1, 10 + i, {0: (own, ())}, kind=10 + i, flavor=0))
        return state, works

    def preempts(self, order: Sequence[int]) -> bool:
        """Return whether each workload in ``order`` preempts exactly the one before it, the first one the last."""
        state, works = self.state()
        for place, number in enumerate(order):
            target, work = works[order[place - 1]], works[number]
            target.flavor = 0
            state.add(target)
            lacks = {column for column, need in work.needs[0][0] if need > state.quotas.available(number, column)}
            found = targets_of(state, work, work.needs[0][0], lacks) if lacks else []
            state.remove(target)
            if [each.work for each in found] != [target]:
                return False
        return True

    def played(self) -> Cycles:
        """Return what the scheduler's cycles do where all workloads wait."""
        state, works = self.state()
        return run(state, works)


#: Two queues: each holds 5 of 10 GPUs that are lent, and one CPU of its own; one more CPU is lent, and both want it.
CONTENDED = Tree(
    parent=[2, 2, -1],
    nominal=[[0, 1], [0, 1], [10, 1]],
    resources=["gpu", "cpu"],
    needs=[[(CPU, 1)], [(CPU, 1)]],
    base=[[(GPU, 5), (CPU, 1)], [(GPU, 5), (CPU, 1)]],
)
#: Cohort 3 holds queue 0, without quota, and queue 1, quota 3; queue 2 beside it has quota 2. All GPUs: 5.
HIERARCHY = Tree([3, 3, 4, 4, -1], [[0], [3], [2], [0], [0]], ["gpu"], [[(GPU, 3)], [(GPU, 5)], [(GPU, 3)]])


def two_workloads() -> Finding:
    """The proof that two workloads do not preempt each other, with its assumption and without."""
    chains = [length for length in range(2, STEPS + 1) if _circle(length, rises=True)]
    require(not chains, "with the assumption no circle of up to six")
    require(_circle(2, rises=False), "without it two workloads can")
    state, works = CONTENDED.state()
    shares = [str(state.quotas.share(0, more).value) for more in ((), works[0].needs[0][0])]
    require(shares == ["500", "500"], "the share is that of GPUs, with the workload and without")
    require(CONTENDED.preempts([0, 1]), "each preempts the other")
    outcome = CONTENDED.played()
    require({work.name for work in outcome.circle} == {"w1"}, "the younger one preempts the older, which comes first")
    return Finding(
        Ruling.QUALIFIED,
        "The document assumes that admission raises a ClusterQueue's share. With that no real shares let 2 to "
        f"{STEPS} workloads preempt each other in a circle (Z3: no solution); for two it is the document's proof. It "
        "says that the assumption fails where a workload does not use the dominant resource, but not that "
        "loops follow. "
        "They do: two ClusterQueues each hold 5 of 10 GPUs that a cohort lends and one CPU of their own; "
        "one more CPU is "
        "lent, and each has a workload that wants it. Their shares are 500 with the workload and without. "
        "By rule S2-a, "
        "500 <= 500, each workload preempts the other (the rule played; reclaimWithinCohort: Any, no other options). "
        "Played by cycles, the older workload is admitted again whenever the younger has preempted it. Not tried on a "
        "live cluster.",
    )


def final_share() -> Finding:
    """What the equality in rule S2-a does."""
    require(_circle(2, rises=False), "with <= two can preempt each other")
    strict = [length for length in range(2, STEPS + 1) if _circle(length, rises=False, strictly=True)]
    require(not strict, "with < they cannot")
    return Finding(
        Ruling.HOLDS_BOUNDED,
        "With <, as S2-b has it, no circle of 2 to "
        f"{STEPS} workloads in ClusterQueues of one cohort satisfies the rules, for all real shares that "
        "admission does "
        "not lower (Z3); with <= there is one of two where shares stay equal. So without the equality the document's "
        "proof needs no assumption but that. The price: two queues that borrow alike could no longer take turns at "
        "equal shares, as they may now. The rules are as strategy.go has them, shares as free numbers.",
    )


def hierarchy() -> Finding:
    """Cohorts in cohorts: a circle of three with one resource."""
    flat = [(queues, steps) for queues in range(2, QUEUES + 1) for steps in range(2, STEPS + 1)
            if _swaps(queues, steps, pair=False)]  # fmt: skip
    require(not flat, "no circle in one cohort")
    require(not _swaps(3, 2, pair=True), "no circle of two below a tree")
    require(_swaps(3, 3, pair=True), "a circle of three below a tree")
    require(HIERARCHY.preempts([0, 1, 2]), "the rule itself goes round")
    outcome = HIERARCHY.played()
    require([work.name for work in outcome.circle] == ["w0"], "cycles do not end: a preempts again and again")
    require([work.name for work in outcome.admitted[-3:]] == ["w2"] * 3, "c is admitted again each time")
    return Finding(
        Ruling.REFUTED,
        f"In one cohort none: up to {QUEUES} ClusterQueues with a workload each, one resource, preemptions of one for "
        f"one, up to {STEPS} in a row, all real quotas and sizes, equal weights (Z3: no solution). With a cohort in a "
        "cohort there is a circle of three. Cohort C has ClusterQueues a (no quota) and b (quota 3); c (quota 2) is "
        "beside it; 5 GPUs in all. Workloads of 3, 5 and 3 GPUs. a preempts c, since C stays in its quota, 0 <= 0; "
        "b preempts a, since b would borrow 2 and a borrows 3; c preempts b, since c would borrow 1 and C "
        "borrows 2. The "
        "rule's own function returns exactly these targets. Which of them are tried is up to the order of cycles: from "
        "an empty cluster with all three waiting, a preempts c again and again and never runs, since C nominates b "
        "when there is room, and c comes before b. Read with every weight 1, reclaimWithinCohort: Any, and feature "
        "gates as they are by default (PrioritizePreemptorWorkloads is off). Not tried on a live cluster.",
    )
