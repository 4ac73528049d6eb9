"""Whether an engine says the same of a run as the referee."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from fairopt.policy import Policy
from fairopt.simulation import Setting, Snapshot, run
from fairopt.simulation.changes import Changes
from fairopt.simulation.engine import Engine
from fairopt.simulation.referee import Referee

#: A sampled setting needs fewer rounds.
MOST_ROUNDS = 300


def check_engine(
    policy: Policy, setting: Setting, after: Snapshot | None = None, *, cut: int | None = None, ask: bool = False
) -> None:
    """Fail unless the engine's changes, and all that it leaves, are those of the referee, from ``after`` on.

    ``cut``: a second engine goes on from the snapshot of the first one after so many changes. ``ask`` as `Engine` has.
    """
    trace, cluster = setting.trace, setting.cluster
    how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
    referee = Referee(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, **how)
    wanted = list(referee)
    engine = Engine(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, ask=ask, **how)
    said: list[Changes] = []
    for changes in engine:
        said.append(changes)
        if len(said) == cut:
            # rounds in which nobody is there do not count
            rounds = run(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, **how)
            left = sum(record.index >= engine.index for record in rounds)
            engine = Engine(policy, trace, cluster, rounds=left, after=engine.snapshot(), ask=ask, **how)
            said += engine
            break
    # what the policy said before is not in a snapshot, and is said again
    again = {said[cut].index} if cut is not None and cut < len(said) else set()
    one, other = ([_comparable(each, again) for each in changes] for changes in (wanted, said))
    pairs = zip_longest(*([each for each in changes if each.anything] for changes in (one, other)))
    for right, found in pairs:
        assert right == found, f"{trace!r}: the referee says {right}, the engine {found}"
    assert engine.snapshot() == referee.snapshot(), "the engine leaves another state"


def _comparable(each: Changes, again: set[int]) -> Changes:
    ends = {**each.completed, **each.lost}
    # the referee's records hold only the part of a loading time that was spent
    placed = tuple(one._replace(setup=min(one.setup, ends.get(one.row, each.end) - each.begin)) for one in each.placed)
    bare: dict[str, Any] = {"costs": None, "notes": None, "backend": None} if each.index in again else {}
    return replace(each, placed=placed, **bare)
