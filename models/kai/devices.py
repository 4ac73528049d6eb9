"""Which GPU of which node a pod of KAI Scheduler is on, where pods take parts of GPUs."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import count
from typing import NamedTuple

from fairopt.errors import require


class Spot(NamedTuple):
    """Where a pod is: the node, how much it takes of each GPU, of how many, and which it shares; none of whole ones."""

    node: int
    part: Fraction
    number: int
    shared: tuple[str, ...] = ()


class Devices:
    """The GPUs of a pool by node: how many nobody uses, and what is used of each that pods share.

    A part is on one GPU, which holds other parts as far as there is room and no whole GPU's pod. A pod goes to a node
    where it finds a GPU that is shared already, else to the one with the fewest free GPUs, as in the source with its
    default options; among equals the first. On a node it takes the GPU of which most is used. What a file does not say
    of running pods is filled in alike. ``nodes`` says "NAME=GPUS", with blanks between, and ":whole" after a node that
    takes no parts; ``pods`` says by gang of each pod "PART*GPUS", and "@NODE" and ":GPU,GPU" where it runs.

    Source: gpu_sharing/gpuSharing.go, api/node_info/gpu_sharing_node_info.go, plugins/gpusharingorder, gpupack and
    nodeplacement at d5bc503a.

    >>> devices = Devices("a=1 b=1", {0: "1/2*1@a", 1: "1*1", 2: "1/2*1", 3: "3/5*1"}, [0])
    >>> devices.start(2)
    >>> [devices.fits(gang) for gang in (1, 3)], devices.at[2][0].node
    ([True, True], 0)
    """

    def __init__(self, nodes: str, pods: Mapping[int, str], running: Iterable[int]) -> None:
        self._takes: dict[int, list[tuple[Fraction, int]]] = {}
        self._names: dict[str, int] = {}
        self._idle: list[int] = []
        self._whole: list[bool] = []
        #: by node, what is used of each GPU that is shared
        self._used: list[dict[str, Fraction]] = []
        for said in nodes.split():
            name, _, gpus = said.partition("=")
            self._names[name] = len(self._names)
            self._idle.append(_number(gpus.partition(":")[0], said))
            self._whole.append(gpus.endswith(":whole"))
            self._used.append({})
        #: nodes by how many of their GPUs nobody uses, and those with GPUs that are shared
        self._by_idle: dict[int, list[int]] = {}
        for node, idle in enumerate(self._idle):
            self._by_idle.setdefault(idle, []).append(node)
        self._sharing: set[int] = set()
        self._new = count(1)
        #: where the pods of each gang are that runs
        self.at: dict[int, list[Spot]] = {}
        #: what did not fit since something was last given back
        self._too_large: set[tuple[Fraction, int]] = set()
        where: dict[int, list[tuple[str, tuple[str, ...]]]] = {}
        for gang, text in pods.items():
            rows = [_read(said) for said in text.split()]
            self._takes[gang] = [row[0] for row in rows]
            where[gang] = [row[1] for row in rows]
        for gang in running:
            spots = []
            for (part, number), (name, shared) in zip(self._takes.get(gang, ()), where.get(gang, ()), strict=True):
                if name in self._names and number and part:
                    spots.append(self._put(self._spot_on(self._names[name], part, number, shared)))
            self.at[gang] = spots

    def pods_of(self, gang: int) -> tuple[tuple[Fraction, int], ...]:
        """Return how much each pod of a gang takes of each GPU, and of how many."""
        return tuple(self._takes.get(gang, ()))

    def fits(self, gang: int) -> bool:
        """Whether all pods of a gang find their GPUs as things are."""
        spots = self._found(gang)
        for spot in reversed(spots or ()):
            self._take(spot)
        return spots is not None

    def start(self, gang: int, at: list[Spot] | None = None) -> None:
        """Give a gang that fits its GPUs, or those that it had ``at``."""
        spots = self._found(gang) if at is None else [self._put(spot) for spot in at]
        assert spots is not None
        self.at[gang] = spots

    def stop(self, gang: int) -> None:
        """Take the GPUs of a gang back."""
        for spot in reversed(self.at.pop(gang)):
            self._take(spot)
        self._too_large.clear()

    # -- finding a place -------------------------------------------------------------------------------------------
    def _found(self, gang: int) -> list[Spot] | None:
        """Put the pods of a gang, one after the other; None, and nothing is changed, where one finds no place."""
        spots: list[Spot] = []
        for part, number in self._takes.get(gang, ()):
            if not number or not part:
                continue
            node = None if (part, number) in self._too_large else self._node_for(part, number)
            if node is None:
                if not spots:
                    self._too_large.add((part, number))
                for spot in reversed(spots):
                    self._take(spot)
                return None
            spots.append(self._put(self._spot_on(node, part, number)))
        return spots

    def _node_for(self, part: Fraction, number: int) -> int | None:
        """Return the best node for a pod; None where it fits nowhere."""
        if part < 1:
            sharing = []
            for node in self._sharing:
                there = sum(used + part <= 1 for used in self._used[node].values())
                if there and there + self._idle[node] >= number:
                    sharing.append((self._idle[node], node))
            if sharing:
                return min(sharing)[1]
        for idle in sorted(each for each in self._by_idle if each >= number):
            for node in self._by_idle[idle]:
                if part == 1 or not self._whole[node]:
                    return node
        return None

    def _spot_on(self, node: int, part: Fraction, number: int, named: tuple[str, ...] = ()) -> Spot:
        """Return the GPUs for a pod on a node: those ``named``, else those of which most is used, else unused ones."""
        if part == 1:
            return Spot(node, part, number)
        fit = sorted((each for each in self._used[node].items() if each[1] + part <= 1), key=lambda each: -each[1])
        shared = [*named, *(name for name, _ in fit if name not in named)][:number]
        shared += [f"new {next(self._new)}" for _ in range(number - len(shared))]
        return Spot(node, part, number, tuple(shared))

    # -- bookkeeping -----------------------------------------------------------------------------------------------
    def _put(self, spot: Spot) -> Spot:
        used = self._used[spot.node]
        self._set_idle(spot.node, -sum(name not in used for name in spot.shared) if spot.shared else -spot.number)
        for name in spot.shared:
            used[name] = used.get(name, Fraction(0)) + spot.part
        if used:
            self._sharing.add(spot.node)
        return spot

    def _take(self, spot: Spot) -> None:
        used = self._used[spot.node]
        for name in spot.shared:
            used[name] -= spot.part
        ended = [name for name in spot.shared if not used[name]]
        for name in ended:
            del used[name]
        self._set_idle(spot.node, len(ended) if spot.shared else spot.number)
        if not used:
            self._sharing.discard(spot.node)

    def _set_idle(self, node: int, change: int) -> None:
        if not change:
            return
        alike = self._by_idle[self._idle[node]]
        del alike[bisect_left(alike, node)]
        if not alike:
            del self._by_idle[self._idle[node]]
        self._idle[node] += change
        insort(self._by_idle.setdefault(self._idle[node], []), node)


def _read(said: str) -> tuple[tuple[Fraction, int], tuple[str, tuple[str, ...]]]:
    """Return what one pod takes, and its node and GPUs, "" and none where it waits."""
    takes, _, at = said.partition("@")
    part, _, number = takes.partition("*")
    node, _, shared = at.partition(":")
    return (_part(part, said), _number(number, said)), (node, tuple(filter(None, shared.split(","))))


def _number(text: str, said: str) -> int:
    require(text.isascii() and text.isdigit(), said, "settings, pods or nodes", "Give a number of GPUs")
    return int(text)


def _part(text: str, said: str) -> Fraction:
    top, _, bottom = text.partition("/")
    found = Fraction(_number(top, said), max(1, _number(bottom or "1", said)))
    require(found <= 1, said, "settings, pods", "Give at most 1 of a GPU")
    return found
