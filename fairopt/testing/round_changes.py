"""Whether a run that asks its policy only where something can change is the one that asks it in every round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from fairopt.policy import Policy
from fairopt.simulation import Change, Setting, Snapshot, run
from fairopt.simulation.engine import Engine
from fairopt.simulation.record import Changes

#: A sampled setting needs fewer rounds.
MOST_ROUNDS = 300


def check_engine(
    policy: Policy,
    setting: Setting,
    after: Snapshot | None = None,
    *,
    cut: int | None = None,
    ask: bool = False,
    referee: Callable[..., Any] | None = None,
) -> None:
    """Fail unless the engine's changes, and all that it leaves, are those of the ``referee``, from ``after`` on.

    ``cut``: a second engine goes on from the snapshot of the first one after so many changes. ``ask`` as `Engine` has.
    The referee is made and used like an `Engine`: by default it is one that asks the policy in every round.
    """
    trace, cluster = setting.trace, setting.cluster
    how: dict[str, Any] = {"length": setting.length, "mechanics": setting.mechanics}
    other = (referee or partial(Engine, ask=True))(policy, trace, cluster, rounds=MOST_ROUNDS, after=after, **how)
    wanted = list(other)
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
    left_, right_ = ([_comparable(each, again) for each in changes] for changes in (wanted, said))
    pairs = zip_longest(*([each for each in changes if each.anything] for changes in (left_, right_)))
    for right, found in pairs:
        assert right == found, f"{trace!r}: the referee says {right}, the engine {found}"
    assert engine.snapshot() == other.snapshot(), "the engine leaves another state"


def _comparable(each: Changes, again: set[int]) -> Changes:
    ends = {**each.completed, **each.lost}
    # records of a referee may hold only the part of a loading time that was spent
    placed = tuple(one._replace(setup=min(one.setup, ends.get(one.row, each.end) - each.begin)) for one in each.placed)
    bare: dict[str, Any] = {}
    if each.index in again:
        bare = {"costs": None, "notes": None, "backend": None}
        placed = tuple(one for one in placed if one.how is not Change.STAY)
    return replace(each, placed=placed, **bare)
