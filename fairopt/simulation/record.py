"""What is kept of a run: its `Changes`, whole `Round`s, and the `Snapshot` from which it goes on.

`Changes` are the short form, from which records are written and measures are taken: their length follows what happened,
not who was present. On a trace of 100,000 jobs they are a hundredth of what a `Round` for each round holds.

A snapshot is written as a line of JSON and read back without loss: ``{"schema": 2, "snapshot": {...}}``, with the
fields of `Snapshot` as `fairopt.codec` writes them; ``state`` is null or ``{"NameOfItsClass": {...}}``.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.codec import decode, encode
from fairopt.errors import BadInput
from fairopt.problem.cluster import Cluster
from fairopt.problem.profile import Course
from fairopt.problem.queue import Spots
from fairopt.program import Number, short_text


class Change(enum.Enum):
    """How a job comes to its GPUs in a round.

    >>> Change.MIGRATE.value
    'migrate'
    """

    STAY = "stay"  # it ran on these GPUs in the round before
    START = "start"  # it never ran before
    RESUME = "resume"  # it goes on, after a pause, on hosts that it ran on last
    MIGRATE = "migrate"  # some host is new to it


#: How a job comes to GPUs that are not those of the round before.
PLACED = (Change.START, Change.RESUME, Change.MIGRATE)


class Placed(NamedTuple):
    """A job that comes to GPUs on which it did not run in the round before.

    ``row`` is its row in the trace, ``how`` is START, RESUME or MIGRATE. ``setup`` is the time that it loads before it
    makes progress, ``speed`` its work per unit of time after that, or the first of its ``course``, the speeds by the
    work done, where they change. STAY is for a job that goes on where it is, but at
    another speed, or loading again, as only a model of a cluster of one's own has it; and in the first round that goes
    on from a snapshot, which does not hold speeds.
    """

    row: int
    spots: Spots
    how: Change
    setup: Number
    speed: Number
    course: Course = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in one round; jobs are rows of the trace, hosts are their numbers in the cluster.

    * ``index``, ``begin``, ``end``: the round's number and times. ``arrived``: the rows that came for it.
    * ``failed``, ``back``: hosts that are down since the round before, and those that work again.
    * ``unschedulable``: rows that just came and can run on no type, with the reason.
    * ``stopped``: rows that held GPUs to the end of the round before and hold none now.
    * ``placed``: rows that come to other GPUs. All other rows that ran go on where they are.
    * ``leases``: until when, for rows whose lease is neither the one they have nor the end of the round.
    * ``completed``, ``lost``: when a row was done, or its host failed and took the round's work along.
    * ``costs``, ``notes`` (row: text), ``backend``: what the policy says, None where it is as in the round before.
    * ``seconds``: what deciding took since the last changes. It alone differs between two runs.
    """

    index: int
    begin: Number
    end: Number
    arrived: range
    failed: tuple[int, ...] = ()
    back: tuple[int, ...] = ()
    unschedulable: Mapping[int, str] = field(default_factory=dict)
    stopped: tuple[int, ...] = ()
    placed: tuple[Placed, ...] = ()
    leases: Mapping[int, Number] = field(default_factory=dict)
    completed: Mapping[int, Number] = field(default_factory=dict)
    lost: Mapping[int, Number] = field(default_factory=dict)
    costs: Mapping[str, Number] | None = None
    notes: Mapping[int, str] | None = None
    backend: str | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def anything(self) -> bool:
        """Whether anything changed."""
        if self.arrived or self.placed or self.completed:  # most often, and asked in each round
            return True
        happened = (self.failed, self.back, self.stopped, self.leases, self.lost)
        return any(happened) or (self.costs, self.notes, self.backend) != (None, None, None)


@dataclass(frozen=True)
class JobRun:
    """What one job did in a round.

    * ``spots``: (host, GPUs), by name; ``types``: the types they are of. ``before``: the types that it ran on last.
    * ``begin``, ``end``: how long it held its GPUs: to the end of the round, its completion or a failure.
    * ``setup``: the time of that spent on loading. ``speed``: work per unit of time after it. ``progress``: work done.
    * ``remaining``: work left afterwards. ``lease``: until when the GPUs are its own.
    * ``completed``: whether it is done, at ``end``. ``lost``: whether a host failed at ``end``, and the round's work
      with it: a job saves its state at the boundaries of rounds only.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.simulation import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> record.ran[0].job, record.ran[0].spots
    ('ph010133', (('P100-1', 1),))
    """

    job: str
    spots: tuple[tuple[str, int], ...]
    types: tuple[str, ...]
    before: tuple[str, ...]
    change: Change
    begin: Number
    end: Number
    setup: Number
    speed: Number
    progress: Number
    remaining: Number
    lease: Number
    completed: bool = False
    lost: bool = False

    @property
    def gpus(self) -> int:
        """GPUs that it held."""
        return sum(gpus for _, gpus in self.spots)


@dataclass(frozen=True, slots=True)
class JobState:
    """Where a job stands between two rounds; the columns of `Queue`, for one job.

    >>> JobState(remaining=5, attained=0, setup=0, last=(), running=False, lease=0, started=None).remaining
    5
    """

    remaining: Number
    attained: Number
    setup: Number
    last: Spots
    running: bool
    lease: Number
    started: Number | None


@dataclass(frozen=True)
class Snapshot:
    """All that a run needs to go on: the next round's number and time, who is present and how they stand.

    ``present`` is keyed by the job's row in the trace, ``arrived`` counts the rows that came so far, ``state`` is the
    policy's own, ``idle`` counts the rounds since anything ran, anybody came, or a host failed or came back.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.simulation import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> record.after.index, record.after.arrived
    (1, 1)
    """

    index: int
    now: Number
    arrived: int
    present: Mapping[int, JobState]
    held: tuple[frozenset[str], ...]
    state: Any = None
    started: bool = False  # whether the policy's state has been made
    idle: int = 0


def begin(cluster: Cluster, number: type = Fraction) -> Snapshot:
    """Return the snapshot before anything happened.

    >>> from fairopt.datasets import philly_cluster
    >>> begin(philly_cluster()).index
    0
    """
    return Snapshot(0, number(0), 0, {}, (frozenset(),) * len(cluster.hosts))


@dataclass(frozen=True, repr=False)
class Round:
    """The record of one round, complete: what came, who ran where with what result, who waited, what it cost.

    ``usable`` is GPUs on working hosts; ``unschedulable`` maps jobs that can run on no type of the cluster to the
    reason; ``costs`` are the policy's terms. ``seconds`` is what deciding took, and the only thing that differs between
    two runs. ``after`` is where the next round starts, ``changes`` are the same round in short.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.simulation import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> record.index, len(record.ran), record.waiting
    (0, 1, ())
    """

    index: int
    begin: Number
    end: Number
    arrived: tuple[str, ...]
    ran: tuple[JobRun, ...]
    waiting: tuple[str, ...]
    unschedulable: Mapping[str, str]
    down: tuple[str, ...]
    usable: int
    costs: Mapping[str, Number]
    notes: Mapping[str, str]
    policy: str
    backend: str
    after: Snapshot
    changes: Changes = field(compare=False)
    seconds: float = field(default=0.0, compare=False)

    def __repr__(self) -> str:
        jobs = f"{len(self.ran)} ran, {len(self.waiting)} waited, {len(self.completed)} completed"
        return f"<Round: {self.index} of {self.policy}, {short_text(self.begin)} to {short_text(self.end)}: {jobs}>"

    @property
    def completed(self) -> tuple[str, ...]:
        """The jobs that were completed in this round."""
        return tuple(ran.job for ran in self.ran if ran.completed)

    @property
    def migrations(self) -> tuple[JobRun, ...]:
        """The jobs that moved to a host that is new to them."""
        return tuple(ran for ran in self.ran if ran.change is Change.MIGRATE)


# -- snapshots as JSON ---------------------------------------------------------------------------------------------
SNAPSHOT_SCHEMA = 2


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as one line of JSON. Errors: `TypeError` for a state that could not be read back.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.simulation import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> snapshot_text(record.after)[:38]
    '{"schema": 2, "snapshot": {"index": 1,'
    """
    return json.dumps({"schema": SNAPSHOT_SCHEMA, "snapshot": snapshot_to_json(snapshot)})


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot in the types of JSON; errors as `snapshot_text`."""
    state = None if snapshot.state is None else {type(snapshot.state).__name__: snapshot.state}
    return dict(encode(replace(snapshot, state=state)))


def snapshot_from(text: str, states: Sequence[type]) -> Snapshot:
    """Return the snapshot of a text; ``states`` are classes of the policy's state. Errors: `BadInput` for any other.

    >>> from fairopt.models import FirstInFirstOut
    >>> from fairopt.simulation import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> [record] = run(FirstInFirstOut(), trace, cluster, length=300, rounds=1)
    >>> snapshot_from(snapshot_text(record.after), states=[]) == record.after
    True
    """
    try:
        data = json.loads(text)
        schema, body = data["schema"], data["snapshot"]
    except (ValueError, TypeError, KeyError) as error:
        remedy = "Give what `snapshot_text` returned"
        raise BadInput(f"not a snapshot: {error!r}", place="snapshot", remedy=remedy) from error
    if schema != SNAPSHOT_SCHEMA:
        raise BadInput(
            f"it has schema {schema!r}, and this fairopt reads schema {SNAPSHOT_SCHEMA}",
            place="snapshot",
            remedy="Begin the run anew, or go on with the fairopt that wrote it",
        )
    return snapshot_from_json(body, states)


def snapshot_from_json(data: Any, states: Sequence[type]) -> Snapshot:
    """Return the snapshot that `snapshot_to_json` wrote; errors as `snapshot_from`."""
    snapshot: Snapshot = decode(Snapshot, data, "snapshot")
    known = {each.__name__: each for each in states}
    if snapshot.state is None:
        return snapshot
    if not isinstance(snapshot.state, dict) or len(snapshot.state) != 1 or not known.keys() >= snapshot.state.keys():
        held = next(iter(snapshot.state), None) if isinstance(snapshot.state, dict) else snapshot.state
        raise BadInput(
            f"it holds a {held!r}, which is no state of this policy",
            place="snapshot, key 'state'",
            remedy="Go on with the policy that the run was begun with",
        )
    [(name, fields)] = snapshot.state.items()
    return replace(snapshot, state=decode(known[name], fields, f"snapshot, key 'state', key {name!r}"))
