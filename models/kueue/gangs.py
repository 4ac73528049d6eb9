"""Gangs as Kueue's workloads, also those that may start with fewer pods.

Source: kubernetes-sigs/kueue ff69552e, pkg/scheduler/flavorassigner/podset_reducer.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.models.kueue.quotas import Needs
from fairopt.models.kueue.work import TOPOLOGY, FewerPods, PodPlacement, QueuedWork, placements, with_spots
from fairopt.problem import Entitlements, Gangs
from fairopt.problem.entitled_rows import Good
from fairopt.problem.numbers import exact
from fairopt.program import INFINITY, Array, Number, objects

#: What the GPUs of all types are called, as the resource that they are.
GPU = "gpu"
#: The setting of a gang that says how many pods it may start without, and what one of them takes, by pod set:
#: "30: gpu 1, cpu 8; 5: gpu 2".
FEWER = "fewer_pods"
#: The setting of a gang that names the LocalQueue whose past use ("local_used") orders it; its admission adds to that
#: ("local_adds").
LOCAL = "local_queue"
#: What gangs of a kind ask for: as `QueuedWork` has it, by flavor, with fewer pods, of the topology, and where alone.
_Asked = tuple[Mapping[int, tuple[Needs, Needs]], FewerPods | None, tuple[PodPlacement, ...], tuple[int, Needs] | None]


def fewer_pods(text: str, place: str) -> list[tuple[int, dict[str, Fraction]]]:
    """Return by pod set how many pods a gang may start without, and what one of them takes.

    Errors: `BadInput` with the place for a text that says something else.

    >>> fewer_pods("30: gpu 1, cpu 1/2", "settings")
    [(30, {'gpu': Fraction(1, 1), 'cpu': Fraction(1, 2)})]
    """
    try:
        found = []
        for part in filter(None, text.split(";")):
            count, _, takes = part.partition(":")
            pairs = [each.rsplit(maxsplit=1) for each in filter(None, takes.split(","))]
            found.append((int(count), {name.strip(): Fraction(amount) for name, amount in pairs}))
    except (ValueError, ZeroDivisionError) as error:
        remedy = 'Give "30: gpu 1, cpu 8; 5: gpu 2": by pod set how many pods less, and what each takes'
        raise BadInput(f"got {text!r}", place=place, remedy=remedy) from error
    return found


def _fewer(sets: Sequence[tuple[int, Mapping[str, Fraction]]], needs: Any) -> FewerPods | None:
    """Return how many steps there are to the least pods, and what is needed after so many of them."""
    steps = sum(count for count, _ in sets)
    if not steps:
        return None

    @cache
    def after(step: int) -> Mapping[int, tuple[Needs, Needs]]:
        less: dict[str, Fraction] = {}
        for count, takes in sets:
            for name, amount in takes.items():
                less[name] = less.get(name, Fraction(0)) + amount * (count * step // steps)
        found: Mapping[int, tuple[Needs, Needs]] = needs(less)
        return found

    return steps, after


def placed(gangs: Gangs, works: Sequence[QueuedWork]) -> Gangs:
    """Return the gangs where their workloads run, those that start with fewer pods with what these take."""
    found = gangs.placed(np.array([-1 if work.flavor is None else work.flavor for work in works], int))
    if any(work.topology for work in works):
        settings = [
            own | {TOPOLOGY: with_spots(own[TOPOLOGY], work.spots)} if work.topology else own
            for own, work in zip(map(dict, gangs.settings), works, strict=True)
        ]
        found = replace(found, settings=tuple(settings))
    gpus, other = found.gpus.copy(), found.other.copy()
    for at, work in enumerate(works):
        if work.step and work.flavor is not None:
            sets = fewer_pods(gangs.settings[at][FEWER], f"settings of {work.name!r}, {FEWER}")
            steps = sum(count for count, _ in sets)
            for count, takes in sets:
                less = count * work.step // steps
                gpus[at] -= int(less * takes.get(GPU, 0))
                other[at] -= objects([less * takes.get(name, Fraction(0)) for name in gangs.resources])
    return replace(found, gpus=gpus, other=other)


def past_use(gangs: Gangs) -> dict[str, Number]:
    """Return the past use of LocalQueues, over their weights, by name; errors as `_number`."""
    own = [each for each in gangs.settings if LOCAL in each]
    return {each[LOCAL]: _number(each, "local_used") for each in own}


def _number(settings: Mapping[str, str], key: str) -> Number:
    """Return a number of a gang's settings, infinity among them, 0 where it is not there. Errors: `BadInput`."""
    text = settings.get(key, "0")
    return INFINITY if text == "inf" else exact(text, f"settings of a gang, {key}")


def works_of(owed: Entitlements, units: Array) -> list[QueuedWork]:
    """Return the gangs as workloads, in their order."""
    gangs = owed.gangs
    at = {good: len(owed.types) + column for column, good in enumerate(owed.goods)}
    # of each resource and type: the column, and whether it is of another flavor
    column_of = [
        [(owed.good(resource, kind), at.get(Good(resource, name)) is None) for kind, name in enumerate(owed.types)]
        for resource in gangs.resources
    ]
    sizes = gangs.gpus.tolist()

    def ask(number: int, text: str, placing: str) -> _Asked:
        gpus, other = sizes[number], gangs.other[number].tolist()
        allowed = np.flatnonzero(gangs.allowed[number]).tolist()

        def needs(less: Mapping[str, Any]) -> Mapping[int, tuple[Needs, Needs]]:
            left = [amount - less.get(name, 0) for name, amount in zip(gangs.resources, other, strict=True)]
            return {kind: _needs(kind, gpus - int(less.get(GPU, 0)), left, column_of, units) for kind in allowed}

        place = f"settings of {gangs.names[number]!r},"
        topology = placements(placing, f"{place} {TOPOLOGY}") if placing else ()
        fewer, takes = _fewer(fewer_pods(text, f"{place} {FEWER}"), needs), needs({})
        if len(takes) != 1 or topology or fewer is not None:
            return takes, fewer, topology, None
        return takes, fewer, topology, next((kind, (*own, *apart)) for kind, (own, apart) in takes.items())

    asked: dict[tuple[object, ...], _Asked] = {}
    kinds: dict[tuple[object, ...], int] = {}
    works = []
    order = np.argsort(gangs.user, kind="stable")  # so that those of a ClusterQueue lie together in memory
    columns = (gangs.user, gangs.kinds, gangs.on, gangs.tier, gangs.preemptible, gangs.moments)
    rows = zip(order.tolist(), *(column[order].tolist() for column in columns), strict=True)
    nothing: Mapping[str, str] = {}
    for number, user, takes, on, tier, preemptible, since in rows:
        said = gangs.settings[number] if gangs.settings else nothing
        text, placing = said.get(FEWER, ""), said.get(TOPOLOGY, "")
        same = takes, text, placing
        if same not in asked:
            asked[same] = ask(number, text, placing)
        needs, fewer, topology, alone = asked[same]
        works.append(
            QueuedWork(
                gangs.names[number],
                user,
                tier,
                since,
                number,
                needs,
                kind=kinds.setdefault((user, tier, *same), len(kinds)),
                preemptible=preemptible,
                admitted=since,
                flavor=on if on >= 0 else None,
                fewer=fewer,
                local=said.get(LOCAL, ""),
                adds=_number(said, "local_adds") if said else 0,
                topology=topology,
                spots={each.name: each.at for each in topology} if on >= 0 else {},
                alone=alone,
            )
        )
    return sorted(works, key=lambda work: work.number)


def _needs(
    kind: int, gpus: int, other: Sequence[Any], column_of: list[list[tuple[int | None, bool]]], units: Array
) -> tuple[Needs, Needs]:
    """Return what a gang takes on a type: of the flavor, and elsewhere."""
    own: list[tuple[int, int]] = [(kind, gpus * units[kind])] if gpus else []
    apart: list[tuple[int, int]] = []
    for place, amount in enumerate(other):
        column, elsewhere = column_of[place][kind]
        if column is not None and amount:
            (apart if elsewhere else own).append((column, int(amount * units[column])))
    return tuple(own), tuple(apart)
