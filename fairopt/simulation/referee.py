"""`Referee`: a run, played by `run` with its plain loop over all jobs present in each round, as a `Play` of changes."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from fairopt.backends import Method, Solver
from fairopt.policy import Policy
from fairopt.problem import Cluster, Trace
from fairopt.simulation.changes import BEAT, Changes
from fairopt.simulation.differences import Differences
from fairopt.simulation.mechanics import Mechanics, length_of
from fairopt.simulation.record import Snapshot
from fairopt.simulation.run import begin, run


class Referee:
    """A `fairopt.simulation.changes.Play`: what any other way to play a run must agree with.

    The arguments are those of `fairopt.simulation.run.run`, and so are the errors.
    """

    def __init__(
        self,
        policy: Policy,
        trace: Trace,
        cluster: Cluster,
        *,
        length: object,
        mechanics: Mechanics | None = None,
        backend: Solver | Method | None = None,
        exact: bool = False,
        rounds: int | None = None,
        after: Snapshot | None = None,
    ) -> None:
        self._rounds = run(
            policy,
            trace,
            cluster,
            length=length,
            mechanics=mechanics,
            backend=backend,
            exact=exact,
            rounds=rounds,
            after=after,
        )
        number = trace.jobs.arithmetic.number
        self._differences = Differences(trace, cluster, after, number(length_of(length)))
        self._after = begin(cluster, number) if after is None else after
        self._stopped = False

    @property
    def index(self) -> int:
        """The round that comes next."""
        return self._after.index

    def __iter__(self) -> Iterator[Changes]:
        """Yield what changes; also a round without a change where the last one was long ago, and the last of all."""
        last: Changes | None = None
        seconds, said = 0.0, perf_counter()
        for record in self._rounds:
            self._after = record.after
            seconds += record.seconds
            last = self._differences.of(record, seconds)
            if last.anything or self._stopped or perf_counter() - said > BEAT:
                yield last
                last, seconds, said = None, 0.0, perf_counter()
            if self._stopped:
                break
        if last is not None:
            yield last

    def snapshot(self) -> Snapshot:
        """Return how to go on after the last round."""
        return self._after

    def stop(self) -> None:
        """Let the run end after the round that it is in."""
        self._stopped = True
