"""Kueue's Workloads as gangs: what each pod set takes, on which flavor it runs, and which flavors it tolerates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from fairopt.errors import BadInput
from fairopt.importing.documents import SECONDS
from fairopt.importing.imported import ImportedGang, ImportedQueue
from fairopt.importing.kubernetes import MOST_ALIKE, Objects, add, joined
from fairopt.importing.kueue_configuration import partly, uncounted
from fairopt.importing.kueue_pods import (
    PLACING,
    Amounts,
    PodSet,
    beyond_limits,
    conditions_of,
    fewer_pods_of,
    fits_flavor,
    pod_sets_of,
    text_of,
)
from fairopt.importing.kueue_quotas import FlavorColumns
from fairopt.importing.kueue_topology import LEVELS, Topology, placed_late
from fairopt.importing.unplaced import Places
from fairopt.numbers import in_full, whole_as_int
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import MOST_GPUS, shown
from fairopt.program import Number

#: Which workloads count: those with quota, and of them those that were let run.
_RESERVING, _ADMITTED = (("reservingWorkloads", "flavorsReservation"), ("admittedWorkloads", "flavorsUsage"))
#: A gang: what is added to its Workload's name; its GPUs, types, where it runs, and other goods; its settings.
_Made = tuple[str, tuple[Number, Sequence[str], str | None, Mapping[str, Number]], Mapping[str, str]]


@dataclass(eq=False, slots=True)
class _Alike:
    """Workloads that differ in their names and queues alone: their pod sets, and the gangs they are on some flavors.

    ``spec`` and ``status`` are those of the first. With the gangs goes what there is to note.
    """

    spec: ObjectPart
    status: ObjectPart
    admitted: bool
    pod_sets: tuple[PodSet, ...] | None = None
    takes: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    gangs: dict[_Flavors, tuple[list[_Made], list[tuple[str, str, str]]]] = field(default_factory=dict)


class _Read(NamedTuple):
    """What is kept of a Workload: why it is not taken over, "" where it is, and what it says.

    ``admitted``: the ClusterQueue that let it have quota. ``asked``: its LocalQueue, ``local``: the same with the
    namespace. ``let_run``: whether its admission is complete.
    """

    left_out: str
    admitted: str = ""
    asked: str = ""
    local: str = ""
    tier: int = 0
    since: int = 0
    let_run: bool = True
    like: _Alike | None = None


def work_reader() -> Callable[[ObjectPart], _Read]:
    """Return what returns all that is kept of a Workload, for `gangs_in`; its errors are `BadInput` with the place."""
    as_written, alike = dict[str | bytes, _Alike](), dict[str | bytes, _Alike]()

    def like(spec: ObjectPart, status: ObjectPart, admitted: str) -> _Alike:
        written = text_of(spec, status, admitted, in_full=True)
        if written not in as_written:
            for known in (as_written, alike):
                if len(known) >= MOST_ALIKE:
                    known.clear()
            key = text_of(spec, status, admitted)
            as_written[written] = alike.setdefault(key, _Alike(spec, status, bool(admitted)))
        return as_written[written]

    def read(part: ObjectPart) -> _Read:
        spec, status, metadata = part.part("spec"), part.part("status"), part.part("metadata")
        conditions, admitted = conditions_of(status), status.part("admission").text("clusterQueue")
        if conditions.get("Finished") == "True":
            return _Read("it is finished")
        if not admitted and not spec.flag("active", True):
            return _Read("it is deactivated, and not queued")
        asked, let_run = spec.text("queueName"), conditions.get("Admitted", "True") == "True"
        tier, since = spec.whole("priority", 0, least=-(2**31)), metadata.read("creationTimestamp", SECONDS, 0)
        local = joined(metadata.text("namespace"), asked)
        return _Read("", admitted, asked, local, tier, since, let_run, like(spec, status, admitted))

    return read


def gangs_in(
    found: Objects, queues: Mapping[str, ImportedQueue], local: Mapping[str, tuple[str, str]],
    columns: FlavorColumns, topology: Topology, places: Places,
) -> tuple[list[ImportedGang], dict[str, dict[str, Number]]]:  # fmt: skip
    """Return the gangs of Workloads that run or wait, and what their ClusterQueues count of them; others are noted.

    ``local``: the ClusterQueue and the stop policy of each LocalQueue. Counted is by ClusterQueue how many workloads
    wait, have quota and were let run, and what those take by flavor; nothing where the files have no Workloads.
    Errors: `BadInput` that names the place. Source: kubernetes-sigs/kueue ff69552e,
    pkg/cache/scheduler/clusterqueue.go, getUsage: without a Cohort nothing is borrowed.
    """
    gangs: list[ImportedGang] = []
    counted: dict[str, dict[str, Number]] = {
        name: dict.fromkeys(owner.declared.keys() - {"weightedShare"}, 0) for name, owner in queues.items()
    }
    listed = {name: tuple(owner.guarantee or ()) for name, owner in queues.items()}
    late = {name for name, part in found["ClusterQueue"].items()
            if placed_late(part.part("spec"), found["AdmissionCheck"])}  # fmt: skip
    flavors = {
        (goods, after): _Flavors(
            goods, found["ResourceFlavor"], found["Topology"], columns, None if after else topology
        )
        for goods, after in dict.fromkeys((goods, name in late) for name, goods in listed.items())
    }
    flavors_of = {name: flavors[goods, name in late] for name, goods in listed.items()}
    tally: Counter[tuple[str, bool, _Alike]] = Counter()
    lacks = {name: _lacking(owner, found["ResourceFlavor"]) for name, owner in queues.items()}
    stops = {name: part.part("spec").text("stopPolicy", "None") for name, part in found["ClusterQueue"].items()}
    from fairopt.importing.kueue_usage import past_use  # here, since files of other schedulers have none

    partial, (by_use, past) = partly(found["Configuration"]), past_use(found, places)
    for name, work in found["Workload"].items():
        if work.left_out:
            places.note("Workload", name, "not taken over", work.left_out)
            continue
        _, admitted, asked, own, tier, since, let_run, same = work
        if same.pod_sets is None:  # the first of its like
            same.pod_sets = tuple(pod_sets_of(same.spec, same.status, same.admitted, partial))
            same.takes = _taken(same.pod_sets)
        waits_for, stopped = local.get(own, ("", ""))
        queue = admitted or waits_for
        if queue in counted:
            tally[queue, let_run, same] += 1
        about = () if admitted else (("workload", name), ("local", own))
        if not queue:
            places.note("Workload, spec.queueName", name, asked, "its LocalQueue is not in the file")
        elif queue not in queues:
            places.note("Workload", name, queue, "its ClusterQueue is not in the file")
        elif not admitted and (why := stopped if stops[queue] == "None" else stops[queue]) != "None":
            places.note("Workload, stopPolicy", name, why, "its queue is stopped: it does not wait")
        elif not admitted and (lacking := lacks[queue]):
            why = "there is no such ResourceFlavor, so that Kueue holds the ClusterQueue inactive: it does not wait"
            places.note("Workload, flavors", name, lacking, why)
        else:
            own_flavors = flavors_of[queue]
            if own_flavors not in same.gangs:
                noted = list[tuple[str, str, str]]()
                parts = list(_of_work(name, same.pod_sets, own_flavors, found, columns, noted, runs=bool(admitted)))
                same.gangs[own_flavors] = parts, noted
            made, notes = same.gangs[own_flavors]
            for where, value, why in notes:
                places.note(where, name, value, why)
            made_of = [
                ImportedGang._make((name + called, queue, *what, tier, True, since, settings, about))
                for called, what, settings in made
            ]
            gangs += made_of if queue not in by_use else _ordered(made_of, past, own, same.pod_sets)
    for (name, let_run, same), times in tally.items():
        _count(counted[name], same, times, let_run=let_run)
    for name, owner in queues.items() if found["Workload"] else ():
        for (good, nominal), (_, usage) in product((owner.guarantee or {}).items(), (_RESERVING, _ADMITTED)):
            total = counted[name].get(f"{usage} {good} total", 0)
            beyond = max(0, total - whole_as_int(nominal)) if owner.parent else 0
            counted[name][f"{usage} {good} borrowed"] = beyond
    return gangs, counted if found["Workload"] else {}


def _ordered(
    gangs: list[ImportedGang], past: Callable[..., dict[str, str]], local: str, pod_sets: Iterable[PodSet]
) -> list[ImportedGang]:
    """Return the gangs of a Workload with the past use of its LocalQueue; the first adds what all take."""
    takes: Amounts = {}
    for pods in pod_sets:
        add(takes, {each: amount for each, amount in pods.amounts.items() if each != "pods"})
    return [
        gang._replace(settings={**gang.settings, **past(gang.user, local, {} if number else takes)})
        for number, gang in enumerate(gangs)
    ]


def _lacking(queue: ImportedQueue, flavors: Mapping[str, ObjectPart]) -> str:
    """Return a flavor of a ClusterQueue that is not among those in the files, "" where they hold none at all.

    Source: pkg/cache/scheduler/clusterqueue.go, inactiveReason.
    """
    named = (good.flavor for good in queue.guarantee or ())
    return next((each for each in named if flavors and each not in flavors), "")


def _taken(pod_sets: Iterable[PodSet]) -> Mapping[str, Mapping[str, Number]]:
    """Return what pod sets take of each resource on the flavor that they were given, as each kind of usage calls it.

    Whole amounts are ints.
    """
    total: dict[str, Number] = {}
    for pods in pod_sets:
        for resource, flavor in pods.flavors.items():
            key = f"{Good(resource, flavor)} total"
            total[key] = total.get(key, 0) + whole_as_int(pods.amounts.get(resource, 0))
    return {usage: {f"{usage} {key}": amount for key, amount in total.items()} for _, usage in (_RESERVING, _ADMITTED)}


def _count(row: dict[str, Number], alike: _Alike, times: int, *, let_run: bool) -> None:
    """Count so many Workloads in what their ClusterQueue says of them."""
    counts = (_RESERVING, _ADMITTED)[: 1 + let_run] if alike.admitted else (("pendingWorkloads", ""),)
    for count, usage in counts:
        row[count] = row.get(count, 0) + times
        for good, amount in alike.takes[usage].items() if usage else ():
            row[good] = row.get(good, 0) + amount * times


# -- gangs ---------------------------------------------------------------------------------------------------------
def _of_work(
    workload: str,
    pod_sets: tuple[PodSet, ...],
    flavors: _Flavors,
    found: Objects,
    columns: FlavorColumns,
    notes: list[tuple[str, str, str]],
    *,
    runs: bool,
) -> Iterator[_Made]:
    """Yield the gangs of a Workload, as `_Alike` has them: one where a single type holds all, else one a pod set.

    ``flavors`` are those of its ClusterQueue. ``notes`` get what has no place.
    """
    fits = None if runs else flavors
    covered, free = flavors.covered, uncounted(found["Configuration"])
    for pods in pod_sets if not runs else ():
        if beyond := beyond_limits(pods.pod):
            why = "a container asks for more than its limit, so that Kueue does not admit it"
            notes.append(("Workload, limits", beyond, why))
            return
    parts: list[tuple[str, Number, tuple[str, ...], Amounts]] = []
    settings: Mapping[str, str] = {}
    for pods in pod_sets:
        strange = [each for each, amount in pods.amounts.items() if amount and each not in covered and each != "pods"]
        if free is not None:
            strange = [each for each in strange if not each.startswith(free)]
        if strange and not runs:
            why = "its ClusterQueue has no quota of this resource, so that Kueue does not admit it"
            unless = (
                "" if free is not None else " unless its Configuration, which is not given, leaves the resource out"
            )
            notes.append((f"Workload, {strange[0]}", in_full(pods.amounts[strange[0]]), why + unless))
            if free is not None:
                return
        asked = [each for each in columns.resources if pods.amounts.get(each)]
        other = {each: amount for each, amount in pods.amounts.items() if amount and each not in columns.resources}
        for each in other:
            if each not in columns.counted and each != "pods":
                notes.append((f"Workload, {each}", in_full(other[each]), "no quota counts this resource"))
        if not asked:
            parts.append((pods.name, 0, _types_for(pods, fits, None, columns), other))
        for number, each in enumerate(asked):
            gpus = _gpus(pods.amounts[each], f"Workload {workload}, pod set {pods.name}, {each}")
            allowed = _types_for(pods, fits, each, columns)
            parts.append((pods.name, gpus, allowed, {} if number else other))
        notes += _counted_elsewhere(pods, columns)
    common = set(columns.types).intersection(*(allowed for _, _, allowed, _ in parts))
    if parts and common:
        total: Amounts = {}
        for _, _, _, other in parts:
            add(total, other)
        gpus = sum(gpus for _, gpus, _, _ in parts)
        if sum(bool(each[1]) for each in parts) > 1 and len(common) > 1 and not runs:
            why = "pod sets share one flavor here, and Kueue finds one for each"
            notes.append(("Workload, spec.podSets", "several", why))
        parts = [("", gpus, tuple(each for each in columns.types if each in common), total)]
        settings = fewer_pods_of(pod_sets, columns.resources, notes)
    elif len(parts) > 1 and not runs:
        why = "pod sets on several flavors start apart here, not together"
        notes.append(("Workload, spec.podSets", "apart", why))
        if any(pods.spare for pods in pod_sets):
            why = "partial admission is not modelled where pod sets start apart"
            notes.append(("Workload, spec.podSets[].minCount", "fewer pods", why))
    for number, (name, gpus, allowed, other) in enumerate(parts):
        if not allowed:
            where = "flavors of its ClusterQueue" if not runs else "an unknown flavor"
            notes.append(("Workload, flavors", where, "no flavor with quotas fits its pods, so it is left out"))
            continue
        again = "" if name not in [each[0] for each in parts[:number]] else f"/{number + 1}"
        what = gpus, allowed, allowed[0] if runs else None, other
        own_sets = [pods for pods in pod_sets if not again and name in ("", pods.name)]
        places = flavors.asked(own_sets, allowed, notes)
        yield f"/{name}{again}" if name else "", what, {**settings, **places}


class _Flavors:
    """The flavors of types of which a ClusterQueue has quotas, as far as they are given, and their topologies' levels.

    ``implied``: whether all flavors of the ClusterQueue have a topology, so that its workloads need not ask for one.
    """

    def __init__(
        self,
        listed: Iterable[Good],
        flavors: Mapping[str, ObjectPart],
        topologies: Mapping[str, ObjectPart],
        columns: FlavorColumns,
        places: Topology | None,
    ) -> None:
        goods, self._places = list(listed), places
        self.topologies, self.covered = topologies, {good.resource for good in goods}
        self.found: dict[tuple[str, str], bool] = {}
        self.of = {good: flavors.get(good.flavor) for good in goods if good in columns.type_of}
        named = [flavors.get(good.flavor) for good in goods]
        self.implied = all(each is not None and _topology(each) for each in named)

    def fits(self, pods: PodSet, flavor: ObjectPart) -> bool:
        """Return whether pods may run on a flavor; pods that ask for the same are decided once.

        Source: tas_flavorassigner.go, checkPodSetAndFlavorMatchForTAS; workload.go, IsExplicitlyRequestingTAS.
        """
        key = flavor.place, repr([pods.topology.value, *map(pods.pod.value.get, PLACING)])
        if key not in self.found:
            self.found[key] = self._fits(pods, flavor)
        return self.found[key]

    def asked(
        self, pod_sets: Iterable[PodSet], types: Iterable[str], notes: list[tuple[str, str, str]]
    ) -> dict[str, str]:
        """Return what pod sets ask of the topologies, as the rule's setting; ``notes`` get what has no place."""
        if self._places is None:
            return {}
        text = self._places.asked(pod_sets, types, implied=self.implied)
        if text and not self._places.known(types):
            why = "where pods lie inside a flavor: the files hold no nodes, or no such Topology"
            notes.append(("Workload, spec.podSets[].topologyRequest", "not placed", why))
            return {}
        return {"topology": text} if text else {}

    def _fits(self, pods: PodSet, flavor: ObjectPart) -> bool:
        asked = {key: value for key, value in pods.topology.value.items() if key in LEVELS and value is not None}
        levels = self.topologies.get(_topology(flavor))
        there = None if levels is None else {each.text("nodeLabel") for each in levels.part("spec").parts("levels")}
        named = {each for key, each in asked.items() if key in LEVELS[:3] and isinstance(each, str)}
        lacks = bool(asked) != bool(_topology(flavor)) or (there is not None and not named <= there)
        if lacks and (asked or not self.implied):
            return False
        return fits_flavor(pods.pod, flavor)


def _topology(flavor: ObjectPart) -> str:
    return flavor.part("spec").text("topologyName")


def _types_for(pods: PodSet, listed: _Flavors | None, resource: str | None, columns: FlavorColumns) -> tuple[str, ...]:
    """Return the types where a pod set may run; all of them where it takes none of what is shared.

    ``listed`` is None where it runs already.
    """
    if listed is None:
        if resource is not None:
            own = columns.type_of.get(Good(resource, pods.flavors.get(resource, "")))
            return () if own is None else (own,)
        used = set(pods.flavors.values())
        return tuple(kind for good, kind in columns.type_of.items() if good.flavor in used) or columns.types
    asked = {good: flavor for good, flavor in listed.of.items() if resource in (None, good.resource)}
    own_types = {columns.type_of[good] for good, flavor in asked.items() if flavor is None or listed.fits(pods, flavor)}
    allowed = tuple(each for each in columns.types if each in own_types)
    return allowed or (columns.types if resource is None else ())


def _counted_elsewhere(pods: PodSet, columns: FlavorColumns) -> Iterator[tuple[str, str, str]]:
    """Yield what there is to note of a resource that is of another flavor than the GPUs."""
    types = {columns.type_of.get(Good(each, pods.flavors.get(each, ""))) for each in columns.resources} - {None}
    for resource, flavor in pods.flavors.items():
        good = columns.good_of.get(Good(resource, flavor))
        beside = any(Good(resource, kind or "") in columns.goods for kind in types)
        if good is not None and good.flavor not in types and beside:
            yield f"Workload, flavor of {resource}", flavor, "here it is counted where the GPUs are"


def _gpus(amount: Fraction, place: str) -> Number:
    """Return a number of GPUs, an integer where it is whole. Errors: `BadInput` for absurdly many."""
    if amount > MOST_GPUS:
        remedy = f"A gang takes at most {MOST_GPUS} units; resource= names another resource to share"
        raise BadInput(f"got {shown(amount)}", place=place, remedy=remedy)
    return whole_as_int(amount)
