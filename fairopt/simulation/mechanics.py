"""A `Setting`: all that a run needs beside a policy; and its `Mechanics`, what running, moving and loading cost."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace, exact
from fairopt.problem.jobs import Pattern
from fairopt.problem.numbers import check_within, within
from fairopt.problem.profile import Course
from fairopt.problem.queue import Queue, Spots
from fairopt.program import INFINITY, Array, Number
from fairopt.report import short_repr


@dataclass(frozen=True, repr=False)
class Mechanics:
    """A job's speed on given hosts, and its loading time before it makes progress.

    * ``restart``: time to stop a job, save its state and start it again, on any host.
    * ``launch``: time to start a job for the first time. A job's profile may have a time in place of both.
    * ``spread``: factor on the speed of a job that is parallel within operators (`Pattern.INTRA`) and runs on more than
      one host; 1 means that the network costs nothing.
    * ``local_data``: whether a dataset must be copied to each host that does not hold it; else it is read from a shared
      store in advance.
    * ``label``: what tables of a study call it.

    Times are in the trace's unit. Subclass and override `speed` or `setup` for another model of a cluster.
    Errors: `BadInput` for a negative time, and for a factor that is not above 0 and at most 1.

    Source: FFT Sec. 2.2 (state and operation overhead), 4.4.2 (datasets); OEF Sec. 4.4 (the slowest type limits the
    others).

    >>> print(Mechanics(restart=60).restart)
    60
    """

    restart: Fraction = within(Fraction(0), least=0)
    launch: Fraction = within(Fraction(0), least=0)
    spread: Fraction = within(Fraction(1), above=0, most=1)
    local_data: bool = False
    label: str = field(default="", repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_within(self, "mechanics, {}".format)
        for name in ("restart", "launch", "spread"):
            object.__setattr__(self, name, exact(getattr(self, name), f"mechanics, {name}"))

    def speed(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the work per unit of time of a job on ``spots``: that of the slowest host among them.

        It is the throughput on the host's type, times the host's own factor (`Cluster.speed`). A job with a profile has
        that of its GPUs and hosts, after what it has done; ``spread`` counts where its profile knows of one host only.
        """
        jobs = queue.jobs
        speeds, factor, apart = jobs.throughput[row], queue.cluster.speed, len(spots) > 1
        if (profile := jobs.profile(row)) is not None:
            gpus, done = sum(each for _, each in spots), jobs.work[row] - queue.remaining[row]
            speeds = profile.speed(profile.phase(done), gpus, len(spots))
            apart = apart and profile.measured(gpus, len(spots)) == 1
        slowest: Number
        if factor is not None:
            slowest = min(speeds[queue.cluster.gpu_type[host]] * factor[host] for host, _ in spots)
        else:
            slowest = min(speeds[gpu_type] for gpu_type in queue.gpu_types(spots))
        return slowest * _in(queue, self.spread) if apart and jobs.pattern[row] is Pattern.INTRA else slowest

    def course(self, queue: Queue, row: int, spots: Spots) -> Course:
        """Return the speeds of a job on ``spots`` by the work done from which each holds; () where it has only one."""
        profile, work = queue.jobs.profile(row), queue.jobs.work[row]
        if profile is None or len(profile.marks) == 1:
            return ()
        asked, found = replace(queue, remaining=queue.remaining.copy()), []
        asked.remaining.setflags(write=True)  # it is nobody else's
        for mark in profile.marks[: bisect_left(profile.marks, work)]:
            left = work - mark
            while work - left < mark:  # in floats, where the speed would be that before the mark
                left = np.nextafter(left, 0.0)
            asked.remaining[row] = left
            found.append((mark, self.speed(asked, row, spots)))
        return tuple(found)

    def setup(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the time that a job loads on ``spots`` in this round before it makes progress.

        It is what is left of its loading, if it ran there in the round before. Else it is the restart (or launch),
        plus the transfer of its state if a host is new to it, and that of its dataset. A job that was stopped while it
        loaded, and continues in the same place, loads for the remaining time if that is more than the restart.
        """
        last, rest = queue.last[row], queue.setup[row]
        if queue.running[row] and spots == last:
            left: Number = rest
            return left
        profile = queue.jobs.profile(row)
        own = None if profile is None else profile.restart
        begin = _in(queue, self.restart if last else self.launch) if own is None else own
        if {host for host, _ in spots} <= {host for host, _ in last}:
            begin = max(begin, rest)
        return begin + self.transfer(queue, row, spots) + self.fetch(queue, row, spots)

    def alike(self, queue: Queue) -> Array:
        """Return the kind (H,) of each host, a number from 0.

        Of the hosts of one kind, a job's `setup` is the same on each that held it last, and the same on each of the
        others; only those that hold its dataset may differ. Where a subclass has a setup of its own, each host is a
        kind of its own, unless it says otherwise.
        """
        kind = type(self)
        if not all(getattr(kind, name) is getattr(Mechanics, name) for name in ("setup", "transfer", "fetch")):
            return np.arange(len(queue.cluster.hosts))
        return np.asarray(np.unique(queue.cluster.bandwidth.astype(float), return_inverse=True)[1])

    def transfer(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the time to move a job's state from where it ran last; 0 if it is there already, or does not exist."""
        old = {host for host, _ in queue.last[row]}
        new = {host for host, _ in spots} if old else old
        if new <= old:
            return queue.now * 0
        return _time(queue, queue.jobs.state_size[row], old | new)

    def fetch(self, queue: Queue, row: int, spots: Spots) -> Number:
        """Return the time to copy a job's dataset to the hosts that lack it; 0 unless data must be local."""
        dataset = queue.jobs.dataset[row] if self.local_data else ""
        without = {host for host, _ in spots if dataset not in queue.held[host]} if dataset else ()
        if not without:
            return queue.now * 0
        return _time(queue, queue.jobs.dataset_size[row], without)


def _time(queue: Queue, size: Number, hosts: Collection[int]) -> Number:
    link = queue.cluster.link(sorted(hosts))
    return queue.now * 0 if link == INFINITY else size / link


def _in(queue: Queue, value: Fraction) -> Number:
    """Return a number of this model in the number type of the queue."""
    return value if queue.exact else float(value)


#: Seconds of a round, where nothing is said.
LENGTH = Fraction(300)


def length_of(length: object) -> Fraction:
    """Return the length of a round as an exact number; `BadInput` where it is not positive."""
    number = exact(length, "length")
    if number <= 0:
        raise BadInput(f"got {number}", place="length", remedy="Give the length of a round, positive")
    return number


@dataclass(frozen=True, eq=False, repr=False)
class Setting:
    """What policies of rounds are compared on; ``length`` is that of a round, in the trace's unit of time.

    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> print(Setting(philly_cluster(), philly_trace(), length=600).length)
    600
    """

    cluster: Cluster
    trace: Trace
    mechanics: Mechanics = field(default_factory=Mechanics)
    length: Fraction = LENGTH

    __repr__ = short_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", length_of(self.length))

    def as_(self, number: type) -> Setting:
        """Return the same setting in ``float`` or in ``Fraction``."""
        return replace(self, cluster=self.cluster.as_(number), trace=self.trace.as_(number))
