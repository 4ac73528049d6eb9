"""Volcano's queues, pod groups, jobs and nodes, as `kubectl get -o json` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.errors import BadInput
from fairopt.importing.documents import found_in
from fairopt.importing.fields import OBJECT, ObjectPart, Places, in_files
from fairopt.importing.imported import Imported
from fairopt.importing.volcano_fields import FIELDS, KINDS
from fairopt.importing.volcano_jobs import Columns, called, gangs, phases
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.labels import nearest
from fairopt.problem.numbers import exact, shown

#: The flavor of what is not counted by GPU type: CPU and memory of the whole cluster.
CLUSTER = "cluster"
#: The queue above all others, which Volcano makes itself.
ROOT = "root"
_HIERARCHY, _WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
_VENDORS = (
    *("nvidia.com", "amd.com", "gpu.intel.com", "habana.ai", "huawei.com", "cambricon.com", "iluvatar.ai"),
    *("aws.amazon.com", "google.com"),
)
_PARTS = ("memory", "mem", "cores", "core", "percentage")
_NONE = Fraction(0)
_COUNTS = ("pending", "inqueue", "running", "unknown", "completed")


def read(*paths: AnyPath, resource: str | None = None) -> Imported:
    """Read Volcano's queues with their pod groups, jobs and nodes, from files that kubectl wrote.

    GPU types are the names of GPU resources, since Volcano counts by these. A leaf queue is a user; its ``deserved``
    is the guarantee, ``capability`` the cap, ``guarantee`` the reserve, ``priority`` the tier. CPU, memory and what
    else a queue names are goods. ``resource`` is taken as the only type where a cluster has no GPUs ("cpu"). Speedups
    are unknown. Errors: `BadInput` with file, object, field, value and remedy.

    Source: volcano-sh/volcano at ed72c7c8: staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go (Queue,
    PodGroup) and batch/v1alpha1/job.go (Job); pkg/scheduler/framework/session.go, the total is what all nodes have.
    """
    with in_files(paths):
        return _read(paths, resource)


def _read(paths: Sequence[AnyPath], resource: str | None) -> Imported:
    places = Places()
    found = _objects(paths, places)
    queues = {part.part("metadata").text("name"): part for part in found["Queue"]}
    if not queues:
        remedy = "Give what kubectl get queues.scheduling.volcano.sh,podgroups,nodes -A -o json prints"
        raise BadInput("no Queue of scheduling.volcano.sh", place="the files", remedy=remedy)
    columns = _columns(found, resource, places)
    above, weights = _tree(queues)
    groups = tuple(dict.fromkeys(above.values()))
    users = tuple(name for name in queues if name not in groups and name != ROOT)
    if not users:
        raise BadInput(f"no queue but {ROOT!r}", place="the files", remedy="Give its leaf queues too")
    taken = gangs(found, queues, users, columns, places)
    rows = {name: _row(part, columns, places) for name, part in queues.items() if name in users or name in groups}
    if ROOT in rows:
        inside = [row for name, row in rows.items() if above.get(name) == ROOT]
        owed, reserve = _total([row.owed for row in inside]), _total([row.reserve for row in inside])
        rows[ROOT] = rows[ROOT]._replace(owed=owed, reserve=reserve)  # whatever it says: checkHierarchicalQueue
    weights |= {name: Fraction(row.weight) for name, row in rows.items() if name not in weights}
    goods: dict[Good, object] = {Good(name, CLUSTER): columns.stock[name] for name in columns.others}
    running = Entitlements.of(users, columns.types, goods=goods, gangs=taken)
    entitlements = Entitlements.of(
        users,
        columns.types,
        group=above,
        groups=groups,
        goods=goods,
        guarantee={name: row.owed for name, row in rows.items()},
        cap={name: row.cap for name, row in rows.items()},
        reserve={name: row.reserve for name, row in rows.items()},
        borrow_weight=weights,
        tier={name: row.tier for name, row in rows.items()},
        held={
            name: _held(name, rows[name], dict(zip(running.columns, running.held[at], strict=True)), places)
            for at, name in enumerate(users)
        },
        gangs=taken,
    )
    width = len(columns.types)
    market = Market.of(
        [[1] * width for _ in users],
        [columns.stock[name] for name in columns.types],
        weight=[weights[name] for name in users],
        users=users,
        types=columns.types,
        least=[[0] * width for _ in users],
        most=[[None] * width for _ in users],
        entitlements=entitlements,
    )
    declared = {name: row.declared for name, row in rows.items()}
    return Imported(market, places.unplaced, declared, _counted(phases(found), declared))


class _Row(NamedTuple):
    """What a queue says of itself, by the names of columns."""

    owed: dict[str, Fraction]
    cap: dict[str, Fraction]
    reserve: dict[str, Fraction]
    held: dict[str, Fraction]
    weight: int
    tier: int
    declared: dict[str, Any]


def _row(part: ObjectPart, columns: Columns, places: Places) -> _Row:
    spec, status = part.part("spec"), part.part("status")
    reserve, deserved = spec.part("guarantee").amounts("resource"), spec.amounts("deserved")
    cap, held = spec.amounts("capability"), status.amounts("allocated")
    for each in {**deserved, **reserve, **cap}:
        if not columns.has(each):
            places.note(f"Queue, quota of {each}", called(part), each, "no node has it")
    owed = {each: max(deserved.get(each, _NONE), reserve.get(each, _NONE)) for each in {**deserved, **reserve}}
    counts = {each: status.whole(each, 0) for each in _COUNTS}  # a status leaves numbers of 0 out
    counts = counts if any(counts.values()) else {}
    allocated = _named(held, columns)
    return _Row(
        _named(owed, columns),
        _named(cap, columns),
        _named(reserve, columns),
        allocated,
        spec.whole("weight", 1) or 1,
        spec.whole("priority", 0),
        counts | ({f"status.allocated {each}": amount for each, amount in allocated.items()}),
    )


def _counted(
    phases: Sequence[tuple[str, str]], declared: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Fraction]]:
    """Return how many pod groups each queue has in each phase; nothing where the files have none.

    Completed ones are deleted with their jobs, so that a file need not have all that were counted. Source: Volcano
    ed72c7c8, pkg/controllers/queue/queue_controller_action.go, syncQueue.
    """
    found = {name: dict.fromkeys(_COUNTS[:-1], Fraction(0)) for name in declared if phases}
    for queue, phase in phases:
        if phase.lower() in found.get(queue, ()):
            found[queue][phase.lower()] += 1
    return found


def _total(each: Sequence[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    """Return amounts added up by column."""
    return {column: sum((row.get(column, _NONE) for row in each), _NONE) for row in each for column in row}


def _named(amounts: Mapping[str, Fraction], columns: Columns) -> dict[str, Fraction]:
    """Return amounts by the names of columns; what is no column is left out."""
    goods = {each: str(Good(each, CLUSTER)) for each in columns.others}
    return {goods.get(each, each): amount for each, amount in amounts.items() if columns.has(each)}


def _held(name: str, row: _Row, running: Mapping[str, Fraction], places: Places) -> dict[str, Fraction]:
    """Return what a queue holds: what its status says, and at least what its running gangs take."""
    for column, runs in running.items():
        said = row.held.get(column, _NONE)
        if runs > said and f"status.allocated {column}" in row.declared:
            got = f"{said} {column}, and its running pod groups take {runs}"
            places.note("Queue, status.allocated", name, got, "less than what runs; what runs is taken")
    return {column: max(runs, row.held.get(column, _NONE)) for column, runs in running.items()}


def _objects(paths: Sequence[AnyPath], places: Places) -> dict[str, list[ObjectPart]]:
    """Return the objects of the kinds that are read; others are noted."""
    found: dict[str, list[ObjectPart]] = {kind: [] for _, kind in KINDS}
    seen = set()
    for path in paths:
        for place, value in found_in(path):
            with naming(path, place):
                part = ObjectPart(place, value)
                kind, api, name = part.text("kind"), part.text("apiVersion"), called(part)
                if (api.rpartition("/")[0], kind) not in KINDS:
                    places.note(f"{kind or 'an object without a kind'} ({api})", name, name, "not a kind that is read")
                    continue
                if not name or (kind, name) in seen:
                    got = f"{kind} {name!r} stands twice" if name else "an object without a name"
                    raise BadInput(got, place=place, remedy="Give each object once, as kubectl prints it")
                seen.add((kind, name))
                places.of(kind, name, value, {**OBJECT, **FIELDS[kind]})
                found[kind].append(ObjectPart(f"{path}: {kind} {name!r}", value))
    return found


def is_gpu(resource: str) -> bool:
    """Say whether an extended resource counts GPUs or the like, and not their memory or cores."""
    domain, _, name = resource.rpartition("/")
    return bool(domain) and (domain in _VENDORS or "gpu" in resource) and not name.endswith(_PARTS)


def _columns(found: Mapping[str, Sequence[ObjectPart]], resource: str | None, places: Places) -> Columns:
    stock: dict[str, Fraction] = {}
    for node in found["Node"]:
        name = called(node)
        for each, amount in node.part("status").amounts("allocatable").items():
            stock[each] = stock.get(each, _NONE) + amount
        if node.part("spec").flag("unschedulable", False):
            places.note("Node, spec.unschedulable", name, "true", "Volcano counts such a node in the total too")
        if product := node.part("metadata").part("labels").text("nvidia.com/gpu.product"):
            why = "Volcano counts by resource name, which does not tell products apart"
            places.note("Node, label nvidia.com/gpu.product", name, product, why)
    types = tuple(each for each in stock if (each == resource if resource else is_gpu(each)) and stock[each] > 0)
    if not types:
        if not stock:
            got, remedy = "no nodes", "Give what kubectl get nodes -o json prints, too"
        elif resource:
            got, remedy = f"no node has {resource!r}", nearest(resource, stock, "resource")
        else:
            got, remedy = "no node has GPUs", "Say which resource is shared: resource='cpu'"
        raise BadInput(got, place="Node, status.allocatable", remedy=remedy)
    quotas = [part.part("spec").part(key).value for part in found["Queue"] for key in ("deserved", "capability")]
    named = dict.fromkeys(["cpu", "memory", *(each for quota in quotas for each in quota)])
    others = tuple(each for each in named if each in stock and each not in types)
    columns = Columns(types, others, stock)
    if uncounted := [each for each in stock if not columns.has(each)]:
        places.note("Node, status.allocatable", called(found["Node"][0]), ", ".join(uncounted), "no queue has a quota")
    return columns


def _tree(queues: Mapping[str, ObjectPart]) -> tuple[dict[str, str], dict[str, Fraction]]:
    """Return the group above each queue, and the weights that the annotations of hierarchical DRF give."""
    above: dict[str, str] = {}
    weights: dict[str, Fraction] = {}
    for name, part in queues.items():
        notes, over = part.part("metadata").part("annotations"), part.part("spec").text("parent")
        path = notes.text(_HIERARCHY).split("/")
        place = f"{part.place}, annotation {_HIERARCHY}"
        if len(path) > 1:
            given = notes.text(_WEIGHTS).split("/")
            if len(given) != len(path):
                remedy = "Give one weight for each level"
                raise BadInput(f"{len(path)} levels, {len(given)} weights", place=place, remedy=remedy)
            nodes = [*("/".join(path[:level]) for level in range(1, len(path))), name]
            for inner, outer, weight in zip(nodes[1:], nodes, given[1:], strict=False):
                if inner in above and above[inner] != outer:
                    raise BadInput(f"{inner!r} is in two groups", place=place, remedy="Give it one path")
                above[inner] = outer
                weights.setdefault(inner, _weight(weight, place))
        elif over and over != ROOT:
            if over not in queues:
                remedy = nearest(over, queues, "queue")
                raise BadInput(f"there is no queue {over!r}", place=f"{part.place}, spec, parent", remedy=remedy)
            above[name] = over
    root = queues[ROOT].part("spec").value if ROOT in queues else {}
    if any(root.get(key) for key in ("capability", "deserved", "guarantee")):
        above |= {name: ROOT for name in queues if name != ROOT and name not in above}
    return above, weights


def _weight(text: str, place: str) -> Fraction:
    """Return a weight of the hierarchy; one below 1 counts as 1. Source: drf.go, buildHierarchy."""
    try:
        return max(exact(text, place), Fraction(1))
    except BadInput as error:
        raise BadInput(f"got {shown(text)}", place=place, remedy="Give weights such as 1/2/8") from error
