"""Where the pods of Kueue's workloads go in a topology of racks, blocks and nodes (topology-aware scheduling).

Source: kubernetes-sigs/kueue ff69552e, pkg/cache/scheduler/tas_flavor_snapshot.go (findTopologyAssignment,
findLevelWithFitDomains, fillInCounts, updateCountsToMinimumGeneric, sortedDomains), tas_topology_tree.go; KEP-2724.
Groups of pod sets with a leader, replacement of nodes and balanced placement are not modelled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

from fairopt.errors import BadInput
from fairopt.models.kueue.work import PodPlacement, QueuedWork, Spots


@dataclass(eq=False, slots=True)
class _Domain:
    """A rack, block or node, and what is found of it while pods are placed: how many pods and slices fit."""

    values: tuple[str, ...]
    children: list[_Domain] = field(default_factory=list)
    pods: int = 0
    slices: int = 0


class _Tree:
    """The domains of a flavor, by level from the top; the leaves are in the lowest."""

    def __init__(self, levels: Sequence[str], leaves: Iterable[Sequence[str]], by_node: bool) -> None:
        self.levels, self.by_node = list(levels), by_node
        at: list[dict[tuple[str, ...], _Domain]] = [{} for _ in levels]
        for values in sorted(map(tuple, leaves)):
            below: _Domain | None = None
            for depth in range(len(levels), 0, -1):
                known = values[:depth] in at[depth - 1]
                domain = at[depth - 1].setdefault(values[:depth], _Domain(values[:depth]))
                if below is not None:
                    domain.children.append(below)
                if known:
                    break
                below = domain
        self.at = [list(each.values()) for each in at]

    def name(self, leaf: _Domain) -> str:
        """Return what a leaf is called: the node, or all its values."""
        return leaf.values[-1] if self.by_node else "/".join(leaf.values)

    def find(self, asked: PodPlacement, count: int, fits: Mapping[str, int]) -> dict[str, int] | None:
        """Return how many pods go to which leaf, None where they do not fit; ``fits``: how many each leaf has room for.

        Where all fit into one domain they go to the fullest such, else to the fewest domains; where nothing is asked
        for, to the fullest ones.
        """
        lowest = len(self.levels) - 1
        slices = list(asked.slices)
        level = self._level(asked.level) if asked.level else 0 if slices else lowest
        sliced, size = (self._level(slices[0][0]), slices[0][1]) if slices else (lowest, 1)
        if level is None or sliced is None or level > sliced or size <= 0:
            return None
        inner: dict[int, int] = {}  # by level, how many pods at once go to one domain there
        above, most = sliced, size
        for name, fewer in slices[1:]:
            at = self._level(name)
            if at is None or at <= above or fewer <= 0 or most % fewer:
                return None
            inner |= dict.fromkeys(range(above + 1, at + 1), fewer)
            above, most = at, fewer
        unconstrained = asked.unconstrained or (bool(slices) and not asked.level)
        self._count(fits, sliced, size, inner)
        found = self._level_that_fits(level, count // size, required=asked.required, unconstrained=unconstrained)
        if found is None:
            return None
        level, chosen = found
        chosen = _fill(chosen, count, size, unconstrained)
        while level < min(lowest, sliced):
            below = _sorted([child for each in chosen for child in each.children], unconstrained)
            chosen = _fill(below, count, size, unconstrained)
            level += 1
        while level < lowest:
            together = inner.get(level + 1, 1)
            following: list[_Domain] = []
            for each in chosen:
                below = _sorted(each.children, unconstrained)
                for child in below:
                    child.slices = child.pods // together
                following += _fill(below, each.pods, together, unconstrained)
            chosen, level = following, level + 1
        return {self.name(leaf): leaf.pods for leaf in sorted(chosen, key=lambda leaf: leaf.values) if leaf.pods}

    def _level(self, name: str) -> int | None:
        return self.levels.index(name) if name in self.levels else None

    def _count(self, fits: Mapping[str, int], sliced: int, size: int, inner: Mapping[int, int]) -> None:
        """Say of each domain how many pods and slices fit: fillInCountsHelper."""
        for level in range(len(self.at) - 1, -1, -1):
            together = inner.get(level + 1, 1)
            for domain in self.at[level]:
                if level == len(self.at) - 1:
                    domain.pods = fits.get(self.name(domain), 0)
                    domain.slices = domain.pods // size if level == sliced else 0
                    continue
                domain.pods = sum(child.pods // together * together for child in domain.children)
                domain.slices = (
                    domain.pods // size if level == sliced else sum(child.slices for child in domain.children)
                )

    def _level_that_fits(
        self, level: int, wanted: int, *, required: bool, unconstrained: bool
    ) -> tuple[int, list[_Domain]] | None:
        """Return the lowest level where one domain has room for all slices, at or above one; else several domains."""
        domains = _sorted(self.at[level], unconstrained)
        if unconstrained:  # TASProfileMixed: the least free capacity first
            single = next((each for each in domains if each.slices >= wanted), None)
        else:
            single = _best(domains, wanted) if domains and domains[0].slices >= wanted else None
        if single is not None:
            return level, [single]
        if required:
            return None
        if level > 0 and not unconstrained:
            return self._level_that_fits(level - 1, wanted, required=False, unconstrained=False)
        found: list[_Domain] = []
        for at, domain in enumerate(domains):
            if wanted <= 0:
                break
            each = _best(domains[at:], wanted) if not unconstrained and domain.slices >= wanted else domain
            found.append(each)
            wanted -= each.slices
        return (level, found) if wanted <= 0 else None


def _sorted(domains: Iterable[_Domain], unconstrained: bool) -> list[_Domain]:
    """Return domains with the most room for slices first, unconstrained the least: sortedDomains."""
    sign = 1 if unconstrained else -1
    return sorted(domains, key=lambda each: (sign * each.slices, each.pods, each.values))


def _best(domains: Sequence[_Domain], wanted: int) -> _Domain:
    """Return the first with the least room that is enough, else the first: findBestFitDomain."""
    enough = [each for each in domains if each.slices >= wanted]
    return min(enough, key=lambda each: each.slices) if enough else domains[0]


def _fill(domains: Sequence[_Domain], count: int, size: int, unconstrained: bool) -> list[_Domain]:
    """Return the domains that get pods, in slices of a size, with how many each gets: updateCountsToMinimumGeneric."""
    left, found = count // size, list[_Domain]()
    for at, domain in enumerate(domains):
        if not unconstrained and domain.slices >= left:
            domain = _best(domains[at:], left)
        found.append(domain)
        domain.slices = min(domain.slices, left)
        domain.pods = domain.slices * size
        left -= domain.slices
        if left <= 0:
            break
    return found


class Topologies:
    """The topologies of flavors and what is free in their leaves beside ``works``; flavors share leaves that are nodes.

    ``text`` is JSON: by flavor the names of its levels from the top, and of each leaf its values and what it has:
    ``{"h100": {"levels": ["rack", "kubernetes.io/hostname"], "leaves": [[["r1", "n1"], {"nvidia.com/gpu": "8"}]]}}``.
    Errors: `BadInput`.
    """

    def __init__(self, text: str, types: Sequence[str], works: Sequence[QueuedWork]) -> None:
        try:
            said = json.loads(text) if text else {}
            self._types = list(types)
            self._trees = {
                types.index(kind): _Tree(each["levels"], (values for values, _ in each["leaves"]), _by_node(each))
                for kind, each in said.items()
                if kind in types
            }
            has = {
                self._key(at, tree.name(_Domain(tuple(values)))): {
                    name: Fraction(amount) for name, amount in room.items()
                }
                for at, tree in self._trees.items()
                for values, room in said[types[at]]["leaves"]
            }
        except (ValueError, TypeError, LookupError, AttributeError, ZeroDivisionError) as error:
            remedy = 'Give {FLAVOR: {"levels": [...], "leaves": [[[...], {...}]]}}, as `fairopt import kueue` writes it'
            raise BadInput(f"got {text[:200]!r}", place="topologies", remedy=remedy) from error
        asked = [each.takes for work in works for each in work.topology]
        names = sorted({name for each in asked for name in each})
        # amounts are integers in a unit of each resource
        unit = {name: lcm(*(each[name].denominator for each in (*has.values(), *asked) if name in each))
                for name in names}  # fmt: skip
        self._units = [(name, unit[name]) for name in names]
        #: What is free in each leaf, and what would be if nothing of a workload were there.
        self._free = {leaf: self._whole(room) for leaf, room in has.items()}
        self._empty = {leaf: list(room) for leaf, room in self._free.items()}
        self._takes: dict[int, list[int]] = {}
        for work in works:
            self.move(work, work.flavor, work.spots, -1)

    def __bool__(self) -> bool:
        """Whether any flavor has a topology."""
        return bool(self._trees)

    def covers(self, work: QueuedWork, flavor: int) -> bool:
        """Return whether the pods of a workload on a flavor are placed in its topology."""
        return bool(work.topology) and flavor in self._trees

    def place(
        self, work: QueuedWork, flavor: int, gone: Iterable[QueuedWork] = (), *, empty: bool = False
    ) -> Spots | None:
        """Return where the pods of a workload go, None where they do not all fit; ``gone`` leave their places.

        ``empty``: as if no workload ran. A workload that is on a flavor without a topology needs no place.
        """
        found, lacking = self._find(work, flavor, gone, empty=empty)
        return found if lacking is None else None

    def _find(
        self, work: QueuedWork, flavor: int, gone: Iterable[QueuedWork], *, empty: bool
    ) -> tuple[Spots, PodPlacement | None]:
        """Return where the pods of a workload go, up to the first pod set that does not fit, and that one."""
        found: dict[str, dict[str, int]] = {}
        if not self.covers(work, flavor):
            return found, None
        room = self._empty if empty else self._free
        tree, more = self._trees[flavor], dict[Any, list[int]]()
        for each in gone:
            self._change(more, each.flavor, each.topology, each.spots, 1)
        for asked in work.topology:
            count = _pods(work, asked)
            takes, allowed = self._amounts(asked), asked.leaves.get(self._types[flavor])
            fits = dict[str, int]()
            for leaf in tree.at[-1]:
                name = tree.name(leaf)
                if allowed is None or name in allowed:
                    key = self._key(flavor, name)
                    fits[name] = _times(takes, room[key], more.get(key))
            spots = tree.find(asked, count, fits) if count else {}
            if spots is None:
                return found, asked
            found[asked.name] = spots
            self._change(more, flavor, [asked], found, -1)
        return found, None

    def lack(self, work: QueuedWork, flavor: int) -> str:
        """Return why the pods of a workload find no places, in words; "" where they do."""
        never = ", even if no other workload ran"
        found, asked = self._find(work, flavor, (), empty=True)
        if asked is None:
            never, (found, asked) = "", self._find(work, flavor, (), empty=False)
        if asked is None:
            return ""
        if not self._trees[flavor].at[-1]:
            return "no ready node has the labels of this flavor and of all levels of its topology"
        count = _pods(work, asked)
        beside = " and ".join(f"{sum(spots.values())} of {name!r}" for name, spots in found.items())
        where = f"no {asked.level!r} has" if asked.required else "its nodes do not have"
        pods = f"{count} {'pod' if count == 1 else 'pods'} of {asked.name!r}"
        slices = "".join(f", {size} at a time in one {level!r}" for level, size in asked.slices if size > 1)
        allowed = ", on the nodes where they may run" if self._types[flavor] in asked.leaves else ""
        return f"{where} room for {pods}{' beside ' * bool(beside)}{beside}{slices}{allowed}{never}"

    def fits(self, work: QueuedWork, flavor: int, spots: Spots, gone: Iterable[QueuedWork]) -> bool:
        """Return whether spots are still free, where some are ``gone``."""
        more, wanted = dict[Any, list[int]](), dict[Any, list[int]]()
        for each in gone:
            self._change(more, each.flavor, each.topology, each.spots, 1)
        self._change(wanted, flavor, work.topology, spots, 1)
        none = [0] * len(self._units)
        return all(
            amount <= left + change
            for leaf, amounts in wanted.items()
            for amount, left, change in zip(amounts, self._free[leaf], more.get(leaf, none), strict=True)
            if amount
        )

    def move(self, work: QueuedWork, flavor: int | None, spots: Spots, sign: int) -> None:
        """Take the places of a workload (sign -1), or give them back (1)."""
        if not spots:
            return
        changes = dict[Any, list[int]]()
        self._change(changes, flavor, work.topology, spots, sign)
        for leaf, amounts in changes.items():
            self._free[leaf] = [left + change for left, change in zip(self._free[leaf], amounts, strict=True)]

    def _change(
        self, changes: dict[Any, list[int]], flavor: int | None, asked: Iterable[PodPlacement], spots: Spots, sign: int
    ) -> None:
        """Add what pods take in their leaves to changes; a leaf that is not there any more has none."""
        if flavor not in self._trees:
            return
        assert flavor is not None
        for each in asked:
            for name, count in spots.get(each.name, {}).items():
                leaf = self._key(flavor, name)
                if leaf in self._free:
                    own = changes.setdefault(leaf, [0] * len(self._units))
                    for at, amount in enumerate(self._amounts(each)):
                        own[at] += sign * count * amount

    def _amounts(self, asked: PodPlacement) -> list[int]:
        known = self._takes.get(id(asked))
        if known is None:
            known = self._takes[id(asked)] = self._whole(asked.takes)
        return known

    def _whole(self, amounts: Mapping[str, Fraction]) -> list[int]:
        return [int(amounts.get(name, 0) * unit) for name, unit in self._units]

    def _key(self, flavor: int, name: str) -> Any:
        return name if self._trees[flavor].by_node else (flavor, name)


def _by_node(said: Mapping[str, Any]) -> bool:
    """Return whether the leaves of a topology are nodes: IsLowestLevelHostname."""
    return bool(said["levels"][-1] == "kubernetes.io/hostname")


def _pods(work: QueuedWork, asked: PodPlacement) -> int:
    return asked.pods(work.step, work.fewer[0] if work.fewer else 0)


def _times(takes: Sequence[int], free: Sequence[int], more: Sequence[int] | None) -> int:
    """Return how many pods have room, each taking so much: CountIn."""
    if more is not None:
        free = [left + change for left, change in zip(free, more, strict=True)]
    return max(0, min((left // amount for left, amount in zip(free, takes, strict=True) if amount), default=0))
