"""Bad states of runs: what `fairopt run --resume` reads is changed; the run goes on to its own end, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from inputs import DATA, Reader, attempt, folder, prepared
from trials import Ending, Fault, Kind

from fairopt import discovery
from fairopt.problem import Cluster, Queue, Trace
from fairopt.problem.files.cluster import read_cluster
from fairopt.problem.files.trace import read_trace
from fairopt.simulation import Mechanics, Snapshot
from fairopt.simulation.engine import Engine
from fairopt.simulation.record import snapshot_text
from fairopt.simulation.recording import Recorder, header
from fairopt.simulation.replay import read_journal
from fairopt.simulation.whole_rounds import WholeRounds

#: Policies that remember much; rounds before the state was written, and in all.
POLICIES = ("ltgf", "gandiva-fair", "srtf")
BEFORE, ROUNDS, LENGTH = 3, 5, 300


@cache
def problem() -> tuple[Trace, Cluster]:
    """Return the first jobs of a trace, and its cluster."""
    jobs, cluster = folder() / "head3.csv", read_cluster(DATA / "philly_cluster.toml")
    jobs.write_text("".join((DATA / "philly_1000.csv").read_text().splitlines(keepends=True)[:6]))
    return read_trace(jobs, cluster.types), cluster


def played(name: str, rounds: int, after: Snapshot | None = None) -> Engine:
    """Return the run under a policy, to be played; ``rounds`` of them."""
    return Engine(discovery.policy(name, Queue), *problem(), length=LENGTH, rounds=rounds, after=after)


def begun(name: str) -> dict[str, Any]:
    """Return the first line of a run's file."""
    return header(name, *problem(), length=LENGTH, mechanics=Mechanics())


def states() -> Mapping[str, bytes]:
    """Return a file of each policy's run, stopped before its end."""
    found = {}
    for name in POLICIES:
        path, play = folder() / f"{name}-state.jsonl", played(name, BEFORE)
        with Recorder(path, begun(name), *problem(), state_of=play) as journal:
            journal.keep()
            for changes in play:
                journal.add(changes)
            journal.end(play.snapshot())
        found[f"{name}.jsonl"] = path.read_bytes()
    return found


@cache
def whole(name: str) -> str:
    """Return how jobs and the policy stand where the run was never stopped."""
    return ended(played(name, ROUNDS))


def ended(play: Engine) -> str:
    """Play to the end, and return how jobs and the policy stand there."""
    for _ in play:
        pass
    return snapshot_text(play.snapshot())


def go_on(path: Path) -> None:
    """Go on from a file named after its policy; `Fault` where it comes to another end than without a stop."""
    name = path.stem
    states = discovery.policy(name, Queue).states
    snapshot, before = read_journal(path, begun(name), *problem(), Mechanics(), states)
    rounds = WholeRounds(name, *problem())
    for changes in before:
        rounds.add(changes)
    if ended(played(name, ROUNDS - snapshot.index, snapshot)) != whole(name):
        raise Fault(Ending.WRONG, f"{name} goes on from a state that was changed, to another end")


#: The most seconds of a trial: lines that are nested deep and doubled again and again are files of 60 MB.
LIMIT = 30
STATES = Reader(go_on, states, cost=6)
KINDS = [Kind("a", "read run state", partial(attempt, STATES), LIMIT, STATES.cost, partial(prepared, STATES))]
