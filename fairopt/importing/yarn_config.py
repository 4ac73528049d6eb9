"""The queues of a capacity-scheduler.xml, with what each may have of every partition of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from fairopt.errors import BadInput, require
from fairopt.importing.documents import quantity
from fairopt.importing.unplaced import UNKNOWN, Places
from fairopt.importing.yarn_objects import PREFIX, PROPERTIES, ROOT, SCHEDULER
from fairopt.problem.entitled_rows import DEEPEST
from fairopt.problem.files.schema import ObjectPart
from fairopt.problem.numbers import exact, shown

_VECTOR = re.compile(r"\[([^\[\]]*)\]")
_HUNDRED, _NOTHING = Fraction(100), Fraction(0)
_ACCESS = "accessible-node-labels"


class _QueueShare(NamedTuple):
    """A capacity as it is configured: a number, and "%", "w" (a weight) or "" (an amount)."""

    number: Fraction
    unit: str


def queues(given: Mapping[str, str], file: str, places: Places) -> dict[str, ObjectPart]:
    """Return the queues by path, each before those below it, with their own properties by the rest of their names.

    Properties that are not read are noted.
    """
    own: dict[str, dict[str, str]] = {ROOT: {}}
    order: list[str] = []
    waiting = [ROOT]
    while waiting:
        path = waiting.pop()
        place = f"{file}: {PREFIX}{path}.queues"
        if path.count(".") > DEEPEST:
            raise BadInput(f"more than {DEEPEST} levels", place=place, remedy="Give fewer levels")
        names = [each.strip() for each in given.get(f"{PREFIX}{path}.queues", "").split(",") if each.strip()]
        if len(set(names)) < len(names) or any("." in each for each in names):
            raise BadInput(f"got {shown(','.join(names))}", place=place, remedy="Name each queue once, without dots")
        order.append(path)
        below = [f"{path}.{each}" for each in names]
        own |= {each: {} for each in below}
        waiting += reversed(below)
    for name, value in given.items():
        if not name.startswith(PREFIX):
            places.note(f"property, {name}", "the file", value, "no property of the capacity scheduler")
            continue
        rest = name.removeprefix(PREFIX)
        path = next((each for each in _paths(rest) if each in own), "")
        key = rest.removeprefix(f"{path}.")
        kind = re.sub(
            rf"^{_ACCESS}\.[^.]+\.", f"{_ACCESS}.<label>.", re.sub(r"^(user.*\.)[^.]+(\.[^.]+)$", r"\1<user>\2", key)
        )
        why = (PROPERTIES if path else SCHEDULER).get(kind, UNKNOWN)
        if path:
            own[path][key] = value
        if why:
            places.note(
                f"property, {kind}" if path else f"property, {PREFIX}{kind}", path or "the scheduler", value, why
            )
    return {path: ObjectPart(f"{file}: {PREFIX}{path}", own[path]) for path in order}


def children(found: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of the queues directly below each."""
    below: dict[str, list[str]] = {path: [] for path in found}
    for path in below:
        if path != ROOT:
            below[path.rpartition(".")[0]].append(path)
    return below


def _paths(rest: str) -> Iterator[str]:
    """Yield what may be the path of a queue at the start of a property's name, the longest first."""
    while "." in rest:
        rest = rest.rpartition(".")[0]
        yield rest


def effective(
    found: Mapping[str, ObjectPart], label: str, total: Mapping[str, Fraction]
) -> tuple[dict[str, dict[str, Fraction]], dict[str, dict[str, Fraction]]]:
    """Return the least and the most that each queue may have of one partition, by path and resource.

    Amounts that are given come first, scaled down where they are more than there is; then parts of what they leave in
    per cent; then weights of what is left. ``label`` "" is the default partition.

    Source: Hadoop's CapacityScheduler.md, Configuring Resource Allocation; ParentQueue.java, getEffectiveMinRatio.
    """
    least = {ROOT: dict(total)}
    most = {ROOT: dict(total)}
    reach = accessible(found)
    for path, below in children(found).items():
        open_ = [child for child in below if not label or label in (reach[child] or {label})]
        least |= {child: dict.fromkeys(total, _NOTHING) for child in below}
        most |= {child: dict.fromkeys(total, _NOTHING) for child in below}
        mine = {child: _vector(found[child], label, "capacity", total, "0" if label else "") for child in open_}
        cap = {child: _vector(found[child], label, "maximum-capacity", total, "100") for child in open_}
        for resource in total:
            shares = {child: mine[child][resource] for child in open_}
            _check_percent(shares, found[path].place, label, resource)
            for child, amount in _split(shares, least[path][resource]).items():
                least[child][resource] = amount
            for child in open_:
                number, unit = cap[child][resource]
                whole = most[path][resource]
                number = _HUNDRED if number < 0 else number  # -1: no limit of its own
                most[child][resource] = min(whole, number) if unit == "" else whole * number / _HUNDRED
    return least, most


def _split(shares: Mapping[str, _QueueShare], whole: Fraction) -> dict[str, Fraction]:
    given = sum((each.number for each in shares.values() if each.unit == ""), _NOTHING)
    scale = min(Fraction(1), whole / given) if given else Fraction(1)
    left = whole - given * scale
    percent = sum((each.number for each in shares.values() if each.unit == "%"), _NOTHING)
    rest = left * (1 - min(percent, _HUNDRED) / _HUNDRED)
    weights = sum((each.number for each in shares.values() if each.unit == "w"), _NOTHING)
    part = {"": scale, "%": left / _HUNDRED, "w": rest / weights if weights else _NOTHING}
    return {child: each.number * part[each.unit] for child, each in shares.items()}


def _check_percent(shares: Mapping[str, _QueueShare], place: str, label: str, resource: str) -> None:
    total = sum((each.number for each in shares.values() if each.unit == "%"), _NOTHING)
    pure = all(each.unit == "%" for each in shares.values())
    if total > _HUNDRED + 1 or (pure and total and abs(total - _HUNDRED) > 1):
        where = f"{place}, the queues below it, {resource}" + (f" of {label!r}" if label else "")
        got = f"{float(total):g} per cent together"
        raise BadInput(got, place=where, remedy="Give capacities of 100 together, as YARN demands")


def _vector(
    queue: ObjectPart, label: str, key: str, total: Mapping[str, Fraction], blank: str
) -> dict[str, _QueueShare]:
    """Return what a queue is given of each resource: "50", "2w", or "[memory=10240,vcores=50%,yarn.io/gpu=4]"."""
    name = f"{_ACCESS}.{label}.{key}" if label else key
    text = queue.value.get(name, blank)
    place = f"{queue.place}.{name}"
    if not text:
        raise BadInput(
            "it is missing", place=place, remedy="Give a capacity such as 50, 2w or [memory=10240,vcores=12]"
        )
    whole = _VECTOR.fullmatch(text)
    if whole is None:
        return dict.fromkeys(total, _share(text, place, "%"))
    out = dict.fromkeys(
        total, _QueueShare(_NOTHING if key == "capacity" else Fraction(-1), "" if key == "capacity" else "%")
    )
    for entry in whole[1].split(","):
        resource, equals, value = (each.strip() for each in entry.partition("="))
        if not equals:
            raise BadInput(f"got {shown(text)}", place=place, remedy="Give resource=amount, with commas between")
        resource = "memory-mb" if resource == "memory" else resource
        share = _share(value, f"{place}, {resource}", "", memory=resource == "memory-mb")
        if resource in out:
            out[resource] = share
    return out


def _share(text: str, place: str, unit: str, *, memory: bool = False) -> _QueueShare:
    """Return a number with its unit; memory without a unit is in MiB."""
    last = text[-1:]
    try:
        if last in ("%", "w"):
            number, unit = exact(text[:-1].strip(), place), last
        elif unit or not memory or text.replace(".", "").isdigit():
            number = quantity(text, place) if not unit else exact(text, place)
        else:
            number = quantity(text, place) / 2**20
    except BadInput as error:
        remedy = "Give a capacity such as 50, 2w or [memory=10240,vcores=12]"
        raise BadInput(f"got {shown(text)}", place=place, remedy=remedy) from error
    require(number >= 0 or (number == -1 and unit == "%"), shown(text), place, "Give a capacity that is not negative")
    return _QueueShare(number, unit)


def accessible(found: Mapping[str, ObjectPart]) -> dict[str, frozenset[str] | None]:
    """Return the labels that each queue may use by path, None for all; a queue that says none has those above it."""
    out: dict[str, frozenset[str] | None] = {}
    for path, queue in found.items():
        above = out.get(path.rpartition(".")[0])
        said = queue.value.get(_ACCESS)
        names = frozenset(each.strip() for each in (said or "").split(",")) - {""}
        out[path] = above if said is None else None if "*" in names else names or frozenset({""})
    return out
