"""Kueue's workloads: what they take, and what their pods ask of a topology."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fairopt.errors import BadInput
from fairopt.models.kueue.quotas import Needs

Place = tuple[int, int, int]
FewerPods = tuple[int, Callable[[int], Mapping[int, tuple[Needs, Needs]]]]
#: How many pods of a pod set are in which leaf domain, by the name of the pod set: the pods of a workload.
Spots = Mapping[str, Mapping[str, int]]
#: The setting of a gang that says what its pod sets ask of the topology, and where they are.
TOPOLOGY = "topology"


@dataclass(frozen=True)
class PodPlacement:
    """What a pod set asks of the topology.

    ``count`` pods, of which ``spare`` need not be there, each taking ``takes``. ``required``: all of them are in one
    domain of the ``level``; else that is preferred, or nothing is where it is ``unconstrained``. ``slices``: so many
    pods at once are in one domain of a level, outermost first. ``leaves``: by flavor where its pods may run; all
    leaves where a flavor is not in it. ``at``: where pods are, while they run.
    """

    name: str
    count: int
    takes: Mapping[str, Fraction]
    level: str = ""
    required: bool = False
    unconstrained: bool = False
    spare: int = 0
    slices: Sequence[tuple[str, int]] = ()
    leaves: Mapping[str, frozenset[str]] = field(default_factory=dict)
    at: Mapping[str, int] = field(default_factory=dict)

    def pods(self, step: int, steps: int) -> int:
        """Return how many pods there are after so many steps of partial admission."""
        return self.count - (self.spare * step // steps if steps else 0)


def placements(text: str, place: str) -> tuple[PodPlacement, ...]:
    """Return what the pod sets of a gang ask for, as its setting says it in JSON. Errors: `BadInput` with the place.

    >>> placements('[{"name": "main", "count": 2, "takes": {"gpu": "1"}, "level": "rack"}]', "")[0].takes
    {'gpu': Fraction(1, 1)}
    """
    try:
        return tuple(
            PodPlacement(
                **each
                | {
                    "count": int(each["count"]),
                    "spare": int(each.get("spare", 0)),
                    "at": {leaf: int(pods) for leaf, pods in each.get("at", {}).items()},
                    "takes": {name: Fraction(amount) for name, amount in each["takes"].items()},
                    "slices": tuple((level, int(size)) for level, size in each.get("slices", ())),
                    "leaves": {kind: frozenset(names) for kind, names in each.get("leaves", {}).items()},
                }
            )
            for each in json.loads(text)
        )
    except (ValueError, TypeError, LookupError, AttributeError, ZeroDivisionError) as error:
        remedy = 'Give [{"name": ..., "count": ..., "takes": {...}, "level": ...}], as `fairopt import kueue` writes it'
        raise BadInput(f"got {text[:200]!r}", place=place, remedy=remedy) from error


def with_spots(text: str, spots: Spots) -> str:
    """Return the setting of a gang whose pods are at some spots."""
    return json.dumps([each | {"at": spots.get(each["name"], {})} for each in json.loads(text)])


@dataclass(eq=False, slots=True)
class QueuedWork:
    """A workload: its ClusterQueue (a node), priority, when it was asked for, and what it takes by flavor.

    ``needs`` has a flavor's own columns first and those of other flavors apart: (of the flavor, elsewhere). ``number``
    breaks ties; workloads of one ``kind`` ask for the same in one ClusterQueue at one priority. ``admitted`` is when it
    got its quota; ``flavor`` where it runs, None while it waits. ``fewer``: in how many steps it may start with fewer
    pods, and what it needs after each; ``step``: after which of them it runs. ``local``: its LocalQueue, "" where past
    use orders nothing; ``adds``: what its admission adds to the past use of that. ``topology``: what its pods ask of
    the topology; ``spots``: where they are while it runs. ``tried``: after which of its flavors the search goes on, -1
    for none. ``alone``: its flavor and all that it takes, where it has one flavor, cannot start with fewer pods, and
    asks nothing of a topology. ``hopeless``: as of which `State.stirred` in which column too little was free for it,
    what it takes of that, and what others of its own ClusterQueue cannot give of it.
    """

    name: str
    queue: int
    priority: int
    since: int
    number: int
    needs: Mapping[int, tuple[Needs, Needs]]
    kind: int = 0
    preemptible: bool = True
    admitted: int = 0
    flavor: int | None = None
    fewer: FewerPods | None = None
    step: int = 0
    local: str = ""
    adds: Any = 0
    topology: Sequence[PodPlacement] = ()
    spots: Spots = field(default_factory=dict)
    tried: int = -1
    hopeless: tuple[int, int, int, int] = (-1, 0, 0, 0)
    alone: tuple[int, Needs] | None = None

    @property
    def place(self) -> Place:
        """Its place among those that may be preempted: lowest priority, most recently admitted.

        Those of the preemptor's ClusterQueue come last. Source: common/ordering.go, CandidatesOrdering; without
        workloads that are being evicted, and LocalQueues.
        """
        return self.priority, -self.admitted, self.number

    @property
    def usage(self) -> Needs:
        """What it takes where it runs."""
        assert self.flavor is not None
        if self.alone is not None:
            return self.alone[1]
        own, apart = (
            self.needs[self.flavor] if not self.step or self.fewer is None else self.fewer[1](self.step)[self.flavor]
        )
        return (*own, *apart) if apart else own
