"""YARN's capacity scheduler: capacity-scheduler.xml, with what the ResourceManager says of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from fairopt.errors import BadInput, require
from fairopt.importing.documents import found_in, in_files
from fairopt.importing.imported import Imported, ImportedGang, ImportedQueue, entitlements_of, market_of
from fairopt.importing.unplaced import UNKNOWN, Places
from fairopt.importing.yarn_config import children, effective, queues
from fairopt.importing.yarn_objects import DEFAULT, GPU, HARMLESS, METRICS, PREFIX, QUEUE, ROOT, RULES, properties
from fairopt.problem.entitled_rows import Good
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.files.storage import AnyPath, naming
from fairopt.problem.numbers import exact, shown

#: More containers of one GPU than this are taken for a mistake.
MOST_CONTAINERS = 1_000_000
#: Stands for all partitions together, of which the metrics speak.
_ACROSS = "*"
_NOTHING = Fraction(0)
_ASKED = ("used", "pending")
_MODERN = {"memory": "memory-mb", "vCores": "vcores"}


def read(*paths: AnyPath, resource: str = GPU) -> Imported:
    """Read capacity-scheduler.xml, and the answers of ws/v1/cluster/scheduler and ws/v1/cluster/metrics as .json.

    Types are the cluster's partitions (node labels), in ``resource``; the partition without a label is "default". A
    leaf queue is a user, by its path. Its capacity is the guarantee, and its maximum capacity the cap, or less where
    ``user-limit-factor`` lets its present users have less together. Other resources are goods of each partition.
    Containers are gangs of one. Speedups are unknown. Errors: `BadInput` with file, queue, property, value and remedy.

    Source: Hadoop's CapacityScheduler.md, NodeLabel.md and ResourceManagerRest.md.
    """
    with in_files(paths):
        return _read(paths, resource)


def _read(paths: Sequence[AnyPath], resource: str) -> Imported:
    places = Places(HARMLESS)
    found: dict[str, ObjectPart] = {}
    said: dict[str, ObjectPart] = {}
    totals: dict[str, Mapping[str, Fraction]] = {}
    given: Mapping[str, str] = {}
    for path in paths:
        with naming(path):
            if Path(path).suffix.lower() != ".xml":
                _answer(path, said, totals, places)
                continue
            require(not found, "a second configuration", "the file", "Give one capacity-scheduler.xml")
            given = properties(path)
            found = queues(given, str(path), places)
    if len(found) < 2:
        remedy = "Give capacity-scheduler.xml, in which yarn.scheduler.capacity.root.queues names queues"
        raise BadInput("no queues", place="the files", remedy=remedy)
    used = {path: _by_partition(part, "used") for path, part in said.items()}
    across = totals.pop(_ACROSS, {})
    if across and not totals:
        labels = sorted({label for each in used.values() for label in each if label} | _configured(found))
        if labels:
            got = f"the metrics add up all partitions, and no file says how much of it {', '.join(labels)} has"
            remedy = "Give an answer of ws/v1/cluster/scheduler in which partitions have an effectiveMinResource"
            raise BadInput(got, place="the cluster", remedy=remedy)
        totals[""] = across
    stock = {label: each for label, each in totals.items() if each.get(resource)}
    if not stock:
        seen = ", ".join(dict.fromkeys(name for each in totals.values() for name in each))
        remedy = (
            f"Say what is shared, resource='vcores' say; it has {seen}"
            if seen
            else ("Give the answers of ws/v1/cluster/scheduler and ws/v1/cluster/metrics too, as .json files")
        )
        raise BadInput(f"no partition has any {resource}", place="the cluster", remedy=remedy)
    for label in totals:
        if label not in stock:
            places.note("partition", label or DEFAULT, label or DEFAULT, f"it has no {resource}")
    for path, there in used.items():
        for label in there:
            if label not in totals:
                places.note("partition", path, label, "how much it has is not given, so that it is left out")
    return _market(found, given, said, stock, resource, places)


def _configured(found: Mapping[str, ObjectPart]) -> set[str]:
    """Return the labels of which queues are given a part."""
    names = (name.split(".") for queue in found.values() for name in queue.value)
    return {part[1] for part in names if part[0] == "accessible-node-labels" and len(part) > 2}


def _market(
    found: Mapping[str, ObjectPart], given: Mapping[str, str], said: Mapping[str, ObjectPart],
    stock: Mapping[str, Mapping[str, Fraction]], resource: str, places: Places,
) -> Imported:  # fmt: skip
    below = children(found)
    users = tuple(path for path in found if not below[path])
    groups = tuple(path for path in found if below[path] and path != ROOT)
    types = tuple(label or DEFAULT for label in stock)
    amounts = {label: effective(found, label, total) for label, total in stock.items()}
    goods = {
        Good(name, label or DEFAULT): each
        for label, all_ in stock.items()
        for name, each in all_.items()
        if name != resource
    }
    used = {path: _by_partition(said[path], "used") for path in users if path in said}
    nodes: dict[str, ImportedQueue] = {}
    leaves = frozenset(users)
    for path in (*users, *groups):
        nodes[path] = ImportedQueue(
            parent=path.rpartition(".")[0] if path.count(".") > 1 else "",
            guarantee=_row({label: least[path] for label, (least, _) in amounts.items()}, resource),
            cap=_row({label: most[path] for label, (_, most) in amounts.items()}, resource),
            tier=_tier(found[path], said.get(path)),
        )
        if path in leaves:
            _limit(path, nodes[path], found, given, said.get(path), places)
        if path in used:
            nodes[path].held = _row({k: each for k, each in used[path].items() if k in stock}, resource)
    gangs = _containers(users, said, stock, resource, places)
    calculator = given.get(f"{PREFIX}resource-calculator", "")
    default = "Default" in calculator
    settings = {"calculator": "default"} if default else {}
    if default and resource != "memory-mb":
        places.note(
            "property, resource-calculator", "the cluster", calculator, f"it counts memory, and here {resource}"
        )
    entitlements = entitlements_of(nodes, users, types, gangs, goods=goods, settings=settings)
    for path in said:
        if path not in found:
            places.note("queue", path, path, "it is not in the configuration")
    market = market_of(entitlements, [total[resource] for total in stock.values()])
    declared = {path: _declared(part) for path, part in said.items() if path in found}
    counts = ("memory-mb",) if default else ()

    def owner(name: str) -> list[str]:
        return [name if name in found else ROOT]

    of: dict[str, tuple[str, Callable[[str], list[str]] | None]] = {
        **dict.fromkeys(("queue", *(f"{what} {resource}" for what in _ASKED)), ("queue", None)),
        "property": ("queue", owner),
    }
    unread = places.unread(gangs, of, {path: path.rpartition(".")[0] for path in found})
    counted = _counted(declared, used, stock, counts)
    return Imported(market, places.unplaced, declared, counted, rules=RULES, unread=unread)


def _counted(
    declared: Mapping[str, object],
    used: Mapping[str, Mapping[str, Mapping[str, Fraction]]],
    stock: Mapping[str, Mapping[str, Fraction]],
    resources: tuple[str, ...],
) -> dict[str, dict[str, Fraction]]:
    """Return by queue what its leaf queues use of each partition, in per cent: of the dominant resource.

    ``resources``: those that the scheduler counts, () for all. Source: YARN, CSQueueUtils.updateUsedCapacity;
    DefaultResourceCalculator counts memory, DominantResourceCalculator all.
    """
    found: dict[str, dict[str, Fraction]] = {}
    below: dict[str, list[Mapping[str, Mapping[str, Fraction]]]] = {}
    for leaf, row in used.items():
        for at in (*(at for at, sign in enumerate(leaf) if sign == "."), len(leaf)):
            below.setdefault(leaf[:at], []).append(row)
    for path in declared:
        inside = below.get(path, ())
        for label, there in stock.items():
            parts = [
                sum((row.get(label, {}).get(each, _NOTHING) for row in inside), _NOTHING) / amount
                for each, amount in there.items()
                if amount and (not resources or each in resources)
            ]
            name = f"absoluteUsedCapacity of {label or DEFAULT}"
            found.setdefault(path, {})[name] = 100 * max(parts, default=_NOTHING)
    return found


def _row(amounts: Mapping[str, Mapping[str, Fraction]], resource: str) -> dict[str, Fraction]:
    """Return amounts by partition and resource by the names of columns."""
    return {
        (label or DEFAULT) if name == resource else str(Good(name, label or DEFAULT)): amount
        for label, each in amounts.items()
        for name, amount in each.items()
    }


def _limit(
    path: str, node: ImportedQueue, found: Mapping[str, ObjectPart],
    given: Mapping[str, str], said: ObjectPart | None, places: Places,
) -> None:  # fmt: skip
    """Lower a queue's cap to what its present users may have together.

    Source: CapacityScheduler.md: the factor is "the multiple of the queue's capacity" for a single user, 1 by default.
    """
    name = "user-limit-factor"
    text = found[path].value.get(name, given.get(f"{PREFIX}{name}", "1"))
    told = said is not None and "userLimitFactor" in said.value
    factor = _number(said, "userLimitFactor") if said and told else exact(text, f"{found[path].place}.{name}")
    if factor < 0:
        return  # -1 switches it off
    present = len(_many(said.part("users"), "user")) if said else 0
    if not present:
        places.note(
            f"property, {name}", path, str(factor), "the users of the queue are not given, so that it limits nobody"
        )
        return
    owed, caps = node.guarantee or {}, node.cap or {}
    node.cap = {column: min(most, factor * present * owed[column]) for column, most in caps.items()}


def _tier(queue: ObjectPart, said: ObjectPart | None) -> int:
    text = queue.value.get("priority", "0")
    told = said.whole("queuePriority", 0, least=-(2**31)) if said else 0
    number = Fraction(told) if told else exact(text, f"{queue.place}.priority")
    require(number.denominator == 1, shown(text), f"{queue.place}.priority", "Give an integer")
    return int(number)


def _containers(
    users: Sequence[str], said: Mapping[str, ObjectPart], stock: Mapping[str, Any], resource: str, places: Places
) -> list[ImportedGang]:
    """Return a gang of one for each GPU that is used or pending: containers start and end one by one."""
    rows: list[ImportedGang] = []
    asked = {(path, what): _by_partition(said[path], what) for path in users if path in said for what in _ASKED}
    for path, label, what in ((path, *each) for path in users if path in said for each in product(stock, _ASKED)):
        name, amounts = label or DEFAULT, asked[path, what].get(label, {})
        count = int(amounts.get(resource, _NOTHING))
        if amounts.get(resource, _NOTHING) != count:
            places.note(f"{what} {resource}", path, amounts[resource], f"taken as {count}")
        if len(rows) + count > MOST_CONTAINERS:
            remedy = f"Share something of which there is less: resource={GPU!r}"
            raise BadInput(f"more than {MOST_CONTAINERS} containers of one", place=f"{path}, {what}", remedy=remedy)
        other = {each: amount / count for each, amount in amounts.items() if each != resource and count}
        on, kept = name if what == "used" else None, said[path].flag("preemptionDisabled", False)
        rows += [
            ImportedGang(f"{path} {name} {what} {at + 1}", path, 1, [name], on, other, 0, not kept, len(rows) + at)
            for at in range(count)
        ]
    return rows


def _answer(
    path: AnyPath, said: dict[str, ObjectPart], totals: dict[str, Mapping[str, Fraction]], places: Places
) -> None:
    """Take in an answer of the ResourceManager."""
    for part in found_in(path):
        value, whole = part.value, ObjectPart(f"{path}: {part.place}", part.value)
        for inner, known in (
            (value, ("clusterMetrics",) if "clusterMetrics" in value else ("scheduler",)),
            (value.get("scheduler"), ("schedulerInfo",)),
        ):
            beside = [each for each in inner if each not in known] if isinstance(inner, Mapping) else []
            if beside and ("clusterMetrics" in value or "scheduler" in value):
                places.note(f"the answer, {beside[0]}", str(path), ", ".join(beside), UNKNOWN)
        if "clusterMetrics" in value:
            metrics = whole.part("clusterMetrics")
            places.of("clusterMetrics", "the cluster", metrics.value, METRICS)
            across = _resources(metrics.part("totalClusterResourcesAcrossPartition"))
            named = {"memory-mb": _number(metrics, "totalMB"), "vcores": _number(metrics, "totalVirtualCores")}
            totals[_ACROSS] = across or {name: amount for name, amount in named.items() if amount}
        elif "scheduler" in value:
            root = whole.part("scheduler").part("schedulerInfo")
            require(
                root.text("type") in ("capacityScheduler", ""),
                root.text("type"),
                root.place,
                "Give a capacity scheduler's",
            )
            for partition in _many(root.part("capacities"), "queueCapacitiesByPartition"):
                if there := _resources(partition.part("effectiveMinResource")):
                    totals[partition.text("partitionName")] = there
            for called, queue in _walk(root, ROOT):
                places.of("queue", called, {k: v for k, v in queue.value.items() if k != "queues"}, QUEUE)
                for other in (name for name in queue.part("queues").value if name != "queue"):
                    places.note(f"queue, queues.{other}", called, other, UNKNOWN)
                said[called] = queue
        else:
            places.note(
                "an answer that is not read", str(path), ", ".join(value), "give ws/v1/cluster/scheduler and metrics"
            )


def _walk(queue: ObjectPart, path: str) -> Iterator[tuple[str, ObjectPart]]:
    stack = [(path, queue)]
    while stack:
        path, queue = stack.pop()
        yield path, queue
        below = _many(queue.part("queues"), "queue")
        stack += [(f"{path}.{each.text('queueName')}", each) for each in reversed(below)]


def _by_partition(queue: ObjectPart, what: str) -> dict[str, dict[str, Fraction]]:
    """Return what a queue has "used", or "pending", by partition and resource."""
    usages = _many(queue.part("resources"), "resourceUsagesByPartition")
    return {each.text("partitionName"): _resources(each.part(what)) for each in usages}


def _declared(queue: ObjectPart) -> dict[str, Any]:
    """Return what the ResourceManager computes of a queue."""
    declared: dict[str, Any] = {}
    for partition in _many(queue.part("capacities"), "queueCapacitiesByPartition"):
        label = partition.text("partitionName") or DEFAULT
        for key in ("absoluteCapacity", "absoluteMaxCapacity", "absoluteUsedCapacity"):
            declared[f"{key} of {label}"] = _number(partition, key)
        for key in ("effectiveMinResource", "effectiveMaxResource"):
            declared[f"{key} of {label}"] = _resources(partition.part(key))
    return declared


def _many(part: ObjectPart, key: str) -> list[ObjectPart]:
    """Return the objects there; older servers write a list of one as an object."""
    return [part.part(key)] if isinstance(part.value.get(key), Mapping) else part.parts(key)


def _resources(part: ObjectPart) -> dict[str, Fraction]:
    """Return the amounts of a ResourceInfo by resource, those of 0 too."""
    modern = _many(part.part("resourceInformations"), "resourceInformation")
    if modern:
        return {each.text("name"): _number(each, "value") for each in modern}
    return {new: _number(part, old) for old, new in _MODERN.items() if old in part.value}


def _number(part: ObjectPart, key: str) -> Fraction:
    found = part.value.get(key)
    place = f"{part.place}, {key}"
    number = _NOTHING if found is None else exact(found, place)
    require(number >= 0 or key == "userLimitFactor", shown(found), place, "Give a number that is not negative")
    return number
