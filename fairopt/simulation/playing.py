"""`run` and `run_continuous`: the whole records of a trace on a cluster under a policy, round after round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairopt.backends import Backend, Method
from fairopt.errors import NotCapable
from fairopt.policy import Policy, Trait
from fairopt.policy.policy import require_policy
from fairopt.problem import Cluster, Trace
from fairopt.simulation.engine import Engine
from fairopt.simulation.mechanics import Mechanics, length_of
from fairopt.simulation.record import Round, Snapshot


def run(
    policy: Policy,
    trace: Trace,
    cluster: Cluster,
    *,
    length: object,
    mechanics: Mechanics | None = None,
    backend: Backend | Method | None = None,
    exact: bool = False,
    rounds: int | None = None,
    after: Snapshot | None = None,
) -> Iterator[Round]:
    """Yield the record of each round until all jobs that can run are completed, or ``rounds`` of them are done.

    ``length`` is that of a round, in the trace's unit of time. ``backend`` None means the policy's best way; ``exact``
    asks for one in rational numbers. ``after`` continues from a snapshot of the same trace, cluster and policy: the
    rounds are those that the first run would have yielded. Rounds in which no job could run are skipped, but counted.
    Jobs that fit no type are in every record's ``unschedulable`` from their arrival; a run ends when only they are
    left.

    Numbers are those of ``trace``: Fractions, or floats after ``trace.as_(float)``.
    Errors: `BadInput` where trace and cluster name different types or hosts; `WrongReturn`; `NotSolved`.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> len(record.ran), record.waiting
    (1, ())
    """
    require_policy(policy)
    how: dict[str, Any] = {"length": length_of(length), "mechanics": mechanics, "rounds": rounds, "after": after}
    yield from Engine(policy, trace, cluster, **how, backend=backend, exact=exact, ask=True).rounds()


def run_continuous(
    policy: Policy,
    trace: Trace,
    cluster: Cluster,
    *,
    mechanics: Mechanics | None = None,
    after: Snapshot | None = None,
) -> Iterator[Round]:
    """Yield the record of each span between two events, until all jobs that can run are completed.

    Events are: a job comes, a job is done, a host fails or comes back, and the end of a schedule that stands for a
    limited time. At each of them the policy decides anew, and GPUs that a job leaves are given out at once. A host that
    fails takes no work along, because state is saved at events; its jobs load again.

    This is what `run` tends to as rounds get shorter. So the policy must declare `Trait.EVENTS`, and each of its
    schedules must stand (`Schedule.stands`); SRTF's do where every job is on the type that it asks for first.
    With several types FIFO may choose another one where two events fall into one round; shorter rounds part them.

    The ``length`` of the queue is the time until a job comes, or a host fails or comes back: infinity where nothing is
    known to come. ``index`` counts the spans. ``after`` continues from a snapshot, one of `run` included. Where nobody
    is present who could run, there is no record; one of no length names unschedulable jobs that come last.

    Numbers, and the errors, are those of `run`; also `NotCapable` for a policy or a schedule that needs rounds.

    >>> from fairopt.models import ShortestRemainingTimeFirst
    >>> from fairopt.problem import Jobs
    >>> trace = Trace(Jobs.of(types=["T"], gpus=[1, 1], work=[10, 2], arrival=[0, "7/2"]))
    >>> spans = run_continuous(ShortestRemainingTimeFirst(), trace, Cluster.uniform({"T": (1, 1)}))
    >>> [(str(span.begin), str(span.end), span.ran[0].job) for span in spans]
    [('0', '7/2', 'j1'), ('7/2', '11/2', 'j2'), ('11/2', '12', 'j1')]
    """
    if Trait.EVENTS not in policy.traits:
        raise NotCapable(f"{policy.name} needs rounds: play it with fairopt.simulation.run and a length")
    if trace.jobs.varying:  # between two events a policy would not hear that it has changed
        raise NotCapable("jobs whose speed changes need rounds: play them with fairopt.simulation.run and a length")
    yield from Engine(policy, trace, cluster, length=None, mechanics=mechanics, after=after).rounds()
