"""The offline optimum of a batch as compact-exponential packing, with bounds that prices prove."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from fairopt.backends import Capability, Options, Session
from fairopt.backends.solution import Interval, Solution
from fairopt.errors import BadInput
from fairopt.methods.columns.columns import Times, columns
from fairopt.methods.columns.integer_search import SLACK, answer, search
from fairopt.methods.columns.pricing import PackingEvidence, packing_program, relax
from fairopt.policy import Claim, Plan, Policy, Seconds, Trait, decide
from fairopt.problem.batch import Batch
from fairopt.problem.numbers import within
from fairopt.program import Program


@dataclass(frozen=True)
class CompactExponentialPacking(Policy):
    """The schedules of largest total utility, one column for each schedule of each job: problem (5).

    The linear relaxation is solved by column generation, with exact pricing over all schedules at prices that differ by
    server and slot. Its prices, rounded to rationals, prove a bound. Then the integer optimum is sought: over all
    columns if they are few, else by `fairopt.methods.columns.integer_search`.

    * ``slots``, ``in_slot_of_arrival``: as in `OfflineOptimum`.
    * ``most_columns``: up to this number of columns, all are generated.
    * ``most_cuts``: how long to search beyond that. The best plan found is returned; ``Plan.evidence`` has its bound.
    * ``time_limit``: seconds for each program, if no backend is named. The result of a search may then vary.

    ``Plan.evidence`` is a `PackingEvidence`. Source: Astraea (Wang et al.), IEEE TC 2022, Eq. (5)-(7); Sec. 6.
    """

    problem = Batch
    name = "packing"
    traits = frozenset({Trait.PROGRAM, Trait.NAMELESS})
    claims = (Claim("schedule_pareto_efficiency", "(5): what dominated it would have a larger total"),)
    needs = frozenset({Capability.INTEGERS, Capability.DUALS})
    source = "Astraea, IEEE TC 2022, Eq. (5)"
    methods = ()
    slots: int | None = None
    in_slot_of_arrival: bool = False
    most_columns: int = within(5_000, least=0)
    most_cuts: int = within(200, least=0)
    time_limit: float | None = None

    @property
    def solver_options(self) -> Options:
        """Options for the default backend: integer optima without a gap."""
        return Options(gap=0.0, time_limit=self.time_limit)

    def decide(self, problem: Batch, state: Any, solve: Session) -> Plan:
        """Solve (5); see `Policy.decide`. ``solve`` must give duals and integers. Errors: `NotSolved`."""
        begun = perf_counter()
        times = Times.of(problem, self.slots, self.in_slot_of_arrival)
        relaxed = relax(problem, times, solve)
        program: Program | None = None
        solution: Solution | None = None
        every = (column for job in range(len(problem.jobs)) for column in columns(problem, job, times))
        looked_at = list(islice(every, self.most_columns + 1))
        if len(looked_at) <= self.most_columns:
            program = packing_program(problem, times, looked_at)
            solution = answer(solve(program))
            taken = tuple(looked_at[at] for at in np.flatnonzero(solution.point > 1 / 2))
            revenue = sum((Fraction(times.worth[each.job][each.last - 1]) for each in taken), start=Fraction(0))
            limit = float(revenue) + SLACK * max(1.0, float(revenue))
            closed = solution.bound is not None and float(solution.bound) <= limit
            evidence = replace(relaxed, looked_at=tuple(looked_at), schedules=taken, revenue=revenue, searched=closed)
        else:
            evidence = search(problem, times, relaxed, solve, self.most_cuts)
        return Plan(
            policy=self.name,
            batch=problem,
            schedules=evidence.schedules,
            program=program,
            solution=solution,
            proven=f"no schedules within {times.slots} slots earn more than {evidence.bound}, by prices; "
            f"optimality is shown by {evidence.proof}",
            evidence=evidence,
            seconds=Seconds(build=perf_counter() - begun - solve.seconds, solve=solve.seconds),
        )


def most_earned(
    batch: Batch, plan: Plan, slots: int | None = None, packing: CompactExponentialPacking | None = None
) -> Interval:
    """Return between what the revenue of the offline optimum lies with which a plan of the batch is compared.

    The performance ratio is `revenue` over its upper end, which is the optimum itself where the lower one is the same.
    ``slots``: T; None for as many as the optimum can need, and the plan may then end later. ``packing``: how the
    optimum is computed, with its own readings. A bound is proved by prices, in rationals. Errors: `BadInput` where the
    plan has a job outside the slots that the optimum may use; `NotSolved`.

    Source: Astraea (posted prices) Sec. 5.1, "Performance Ratio".
    """
    how = packing or CompactExponentialPacking()
    how = how if slots is None else replace(how, slots=slots)
    times = Times.of(batch, how.slots, how.in_slot_of_arrival)
    for each in plan.schedules:
        if each.first < times.first[each.job] or (how.slots is not None and each.last > how.slots):
            raise BadInput(
                f"it runs from slot {each.first} to {each.last}, and may from {times.first[each.job]} to {how.slots}",
                place=f"job {batch.jobs.names[each.job]!r}",
                remedy="Give more slots, or in_slot_of_arrival=True",
            )
    best = decide(how, batch)
    evidence: PackingEvidence = best.evidence
    earned = revenue(best)
    return Interval(earned, earned if evidence.optimal else evidence.bound, evidence.proof)


def revenue(plan: Plan) -> Fraction:
    """Return the total utility; floats are added at their exact values."""
    return sum((Fraction(value) for value in plan.utilities.values()), start=Fraction(0))
