"""What a property of runs is: one of a `History`, decided case by case; and runs that are played as they are told."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Spots, Trace
from fairopt.program import Number
from fairopt.properties.property import CitedInstance, Property, SlackCase
from fairopt.properties.verdict import Verdict
from fairopt.simulation import History, Mechanics, Round, Setting, advance, begin, next_queue

#: How many names of jobs a reason shows.
SHOWN = 5
#: The GPUs of the instances: two of one type on one host.
TWO_GPUS = Cluster.uniform({"T": (1, 2)})
#: Where single jobs run there.
ONE: Spots = ((0, 1),)
BOTH: Spots = ((0, 2),)


class RunProperty(Property):
    """A property of a run: anybody's, however its rounds were decided.

    It fails where a case fails: no failure is undone by what comes later. Where none has failed and not all jobs are
    done, it is UNDECIDED. `fails` of a case and a history decides by the bare definition. ``instances``: at least one
    holds and one fails. ``looked_at`` says what the cases are; their sizes are positive.
    """

    problem = Setting
    of = "run"
    unit: ClassVar[str]
    looked_at: ClassVar[str] = "cases"
    instances: ClassVar[tuple[CitedInstance, ...]]

    def check(self, history: History, *, tolerance: Number | None = None) -> Verdict:
        """Decide of a run, exactly if it is exact, unless a ``tolerance`` is given: a part of each case's size."""
        cases = list(self.cases(history))
        worst = min(cases, key=lambda case: case.slack / case.size, default=None)
        exact, effort = history.trace.jobs.exact, f"{len(cases)} {self.looked_at}"
        why = why_not_over(history)
        return self._by_tightest(worst, tolerance, exact=exact, unit=self.unit, effort=effort, reason=why)

    @abstractmethod
    def cases(self, history: History) -> Iterable[SlackCase]:
        """Yield the cases; those that cannot be the tightest may be left out."""


def why_not_over(history: History) -> str:
    """Return why a run may go on: who is not done, and how many have not arrived; "" where all are done."""
    left = [name for name, done in history.completion.items() if done is None and name not in history.unschedulable]
    coming = len(history.trace.jobs) - len(history.ran)
    parts = []
    if left:
        more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        parts.append(f"{', '.join(left[:SHOWN])}{more} not done")
    if coming:
        parts.append(f"{counted(coming, 'job')} not arrived")
    return f"the run ends at {float(history.until):g} with {', '.join(parts)}" if parts else ""


def jobs(gpus: Sequence[int], work: Sequence[object], arrival: Sequence[object] | None = None) -> Trace:
    """Return jobs a, b, c, ... for `TWO_GPUS`, which do a unit of work in a unit of time."""
    names = [chr(ord("a") + row) for row in range(len(gpus))]
    return Trace(Jobs.of(gpus=gpus, work=work, types=TWO_GPUS.types, arrival=arrival, names=names))


def scripted(
    trace: Trace,
    *plan: Mapping[str, Spots],
    cluster: Cluster = TWO_GPUS,
    length: int = 10,
    leases: Mapping[tuple[int, str], int] | None = None,
    mechanics: Mechanics | None = None,
) -> History:
    """Return the run in which jobs lie where ``plan`` says, round by round; ``leases``: by (round, job), until when.

    Errors: `BadInput` where rounds are told in which nobody is left; `WrongReturn`.
    """
    number = trace.jobs.arithmetic.number
    snapshot, rounds = begin(cluster.as_(number), number), list[Round]()
    for told in plan:
        coming = next_queue(snapshot, trace, cluster.as_(number), number(length))
        if coming is None:
            raise BadInput(
                f"{counted(len(plan), 'round')} are told, and {len(rounds)} are played", place="plan", remedy="Cut it"
            )
        moved, queue = coming
        rows = {name: row for row, name in enumerate(queue.jobs.names)}
        until = {rows[job]: number(end) for (index, job), end in (leases or {}).items() if index == len(rounds)}
        placements = {rows[name]: spots for name, spots in told.items()}
        record = advance(moved, trace, Schedule("scripted", queue, placements, until), mechanics or Mechanics())
        rounds.append(record)
        snapshot = record.after
    return History.of(trace, cluster, rounds)
