"""The smallest reclaim where gangs must set free CPU, memory and other goods too: every choice, up the tree.

Of choices inside a user or group that take the same GPUs, one that sets no more free and costs no less is left out, and
so is one that is worse by now than a choice that is known to do. What is set free beyond what is missing does not tell
choices apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, lcm
from operator import add, ge, sub, truediv
from typing import Any, NamedTuple

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.spare_goods import Limit, goods_of
from fairopt.program import Number

#: The most pairs of choices that are put together or compared; beyond it the first choice that does is the answer.
MOST_PAIRS = 200_000


class Chosen(NamedTuple):
    """What is stopped of a user: a gang, or (None) GPUs that it holds beside its gangs."""

    user: int
    gang: int | None
    gpus: int


class _Choice(NamedTuple):
    """The cost of a choice, and what it is: one thing that is stopped, or two choices; None for nothing."""

    cost: int
    what: Any


#: GPUs below what is owed, GPUs in all, and the cost: the smaller, the better.
_Rank = tuple[int, int, int]
#: Of each limit, how much is set free, in whole parts.
_Freed = tuple[int, ...]
#: Choices by their GPUs and what they set free.
_Choices = dict[tuple[int, _Freed], _Choice]


class GoodsSearch:
    """A search for ``missing`` goods on a type; ``slack`` (by node): the GPUs whose loss costs a node nothing.

    ``below``: what each GPU beyond that costs; a gang costs 1.
    """

    def __init__(
        self,
        accounts: EntitlementAccounts,
        gpu_type: int,
        missing: Mapping[Limit, Number],
        slack: Mapping[int, int],
        below: int,
    ) -> None:
        self.accounts, self.gpu_type, self.slack, self.below = accounts, gpu_type, slack, below
        self.limits = list(missing)
        self.pairs = 0
        self._missing = missing
        self._most: _Freed = ()
        self._freed: dict[int | None, _Freed] = {}
        self._bound: _Rank = (0, 0, 0)
        self._needed = 0

    def best(
        self, parts: Mapping[int, Sequence[Chosen]], needed: int, first: Sequence[Chosen]
    ) -> tuple[list[Chosen], bool]:
        """Return the best choice of ``parts`` (by user) that frees so many GPUs and all that is missing, and True.

        ``first``: a choice that frees enough GPUs. All ``parts`` together free enough of everything. Where there are
        more than `MOST_PAIRS`, what `enough` returns is returned, and False.
        """
        enough = self.enough(parts, needed, first)
        self._bound, self._needed = self._rank_of(enough), needed
        whole = self._whole(parts)
        if whole is None:
            return enough, False
        does = [key for key in whole if key[0] >= needed and key[1] == self._most]
        return _listed(whole[min(does, key=lambda key: self._rank(key[0], whole[key].cost))].what), True

    def _sum(self, first: _Freed, second: _Freed) -> _Freed:
        return tuple(map(min, map(add, first, second), self._most))

    # -- a choice that does --------------------------------------------------------------------------------------
    def enough(self, parts: Mapping[int, Sequence[Chosen]], needed: int, first: Sequence[Chosen] = ()) -> list[Chosen]:
        """Return ``first`` with more, until it is enough, and without what is not needed then.

        What costs nobody what it is owed comes first, and of that what sets most free for a GPU.
        """
        stoppable = [each for own in parts.values() for each in own]
        self._count([each.gang for each in stoppable if each.gang is not None])
        chosen, taken = {(each.user, each.gang): each.gpus for each in first}, self._taken(first)
        gpus, freed = sum(each.gpus for each in first), self._freed[None]
        for each in first:
            freed = self._sum(freed, self._freed[each.gang])
        stoppable.sort(key=self._worth, reverse=True)
        for any_cost in (False, True):
            for each in stoppable:
                have = chosen.get((each.user, each.gang), 0)
                path = (each.user, *self.accounts.above(each.user))
                room = each.gpus if any_cost else min(self.slack[node] - taken[node] for node in path)
                more = each.gpus - have if each.gang is not None else min(each.gpus - have, needed - gpus, room)
                after = self._sum(freed, self._freed[each.gang])
                if 0 < more <= room and (after != freed or gpus < needed):
                    chosen[each.user, each.gang], gpus, freed = have + more, gpus + more, after
                    for node in path:
                        taken[node] += more
        return self._without_spare([Chosen(*what, count) for what, count in chosen.items()], needed)

    def _count(self, gangs: Sequence[int]) -> None:
        """Note what is missing, and what each gang sets free, in whole parts of each good."""
        freed = {gang: goods_of(self.accounts, [gang], self.gpu_type) for gang in gangs}
        scales = [lcm(*(Fraction(own.get(limit, 0)).denominator for own in freed.values())) for limit in self.limits]
        pairs = list(zip(self.limits, scales, strict=True))
        self._most = tuple(ceil(self._missing[limit] * scale) for limit, scale in pairs)
        self._freed = {
            gang: tuple(map(min, (int(own.get(limit, 0) * scale) for limit, scale in pairs), self._most))
            for gang, own in freed.items()
        }
        self._freed[None] = (0,) * len(self.limits)

    def _worth(self, part: Chosen) -> float:
        """Return which parts of what is missing a gang sets free, for each GPU; it decides an order only."""
        return float(sum(map(truediv, self._freed[part.gang], self._most)) / part.gpus)

    def _without_spare(self, chosen: list[Chosen], needed: int) -> list[Chosen]:
        """Return a choice without what it can do without, the largest tried first."""
        gpus = sum(each.gpus for each in chosen)
        freed = tuple(map(sum, zip(*(self._freed[each.gang] for each in chosen), strict=True)))
        kept = []
        for each in sorted(chosen, key=lambda each: -each.gpus):
            left = tuple(map(sub, freed, self._freed[each.gang]))
            spare = gpus - needed
            if each.gang is None:
                kept += [each._replace(gpus=each.gpus - spare)] * (spare < each.gpus)
                gpus -= min(each.gpus, max(0, spare))
            elif each.gpus <= spare and _covers(left, self._most):
                gpus, freed = gpus - each.gpus, left
            else:
                kept.append(each)
        return kept

    def _taken(self, chosen: Iterable[Chosen]) -> dict[int, int]:
        taken: dict[int, int] = defaultdict(int)
        for each in chosen:
            for node in (each.user, *self.accounts.above(each.user)):
                taken[node] += each.gpus
        return taken

    def _rank_of(self, chosen: Sequence[Chosen]) -> _Rank:
        below = sum(max(0, gpus - self.slack[node]) for node, gpus in self._taken(chosen).items())
        count = sum(1 if each.gang is not None else each.gpus for each in chosen)
        return self._rank(sum(each.gpus for each in chosen), self.below * below + count)

    def _rank(self, gpus: int, cost: int) -> _Rank:
        return cost // self.below, gpus, cost

    # -- all choices ---------------------------------------------------------------------------------------------
    def _whole(self, parts: Mapping[int, Sequence[Chosen]]) -> _Choices | None:
        """Return all choices that matter, None where there are too many."""
        tables: dict[int, _Choices] = {}
        for node in self.accounts.said.upwards:
            inside = [tables[child] for child in self.accounts.said.children[node] if child in tables]
            own = [self._of(each) for each in parts.get(node, ())]
            if own or inside:
                made = self._merged([*own, *inside])
                if made is None:
                    return None
                tables[node] = self._with_cost(node, made)
        return self._merged([tables[node] for node in self.accounts.said.tops if node in tables])

    def _of(self, part: Chosen) -> _Choices:
        nothing: _Choices = {(0, self._freed[None]): _Choice(0, None)}
        if part.gang is None:
            some = range(1, min(self._needed, part.gpus) + 1)
            return nothing | {(t, self._freed[None]): _Choice(t, part._replace(gpus=t)) for t in some}
        return nothing | {(part.gpus, self._freed[part.gang]): _Choice(1, part)}

    def _merged(self, tables: Sequence[_Choices]) -> _Choices | None:
        """Return the choices of all together; of equal ones that of what stands first stays. None: too many."""
        whole = tables[0]
        for table in tables[1:]:
            self.pairs += len(whole) * len(table)
            if self.pairs > MOST_PAIRS:
                return None
            found: _Choices = {}
            for (more, more_freed), second in table.items():
                for (gpus, freed), first in whole.items():
                    key, cost = (gpus + more, self._sum(freed, more_freed)), first.cost + second.cost
                    if key not in found or cost < found[key].cost:
                        found[key] = _Choice(cost, (first.what, second.what))
            whole = self._kept(found)
            if self.pairs > MOST_PAIRS:
                return None
        return whole

    def _kept(self, found: _Choices) -> _Choices:
        """Return the choices that may be a part of the best one."""
        kept: _Choices = {}
        beside: dict[int, list[_Freed]] = defaultdict(list)
        for (gpus, freed), choice in sorted(found.items(), key=lambda each: (each[1].cost, [-a for a in each[0][1]])):
            others = beside[gpus]
            self.pairs += len(others)
            if self.pairs > MOST_PAIRS:
                break
            if self._rank(gpus, choice.cost) <= self._bound and not any(_covers(each, freed) for each in others):
                others.append(freed)
                kept[gpus, freed] = choice
        return kept

    def _with_cost(self, node: int, made: _Choices) -> _Choices:
        slack = self.slack[node]
        costly = {
            key: each._replace(cost=each.cost + self.below * max(0, key[0] - slack)) for key, each in made.items()
        }
        return {key: each for key, each in costly.items() if self._rank(key[0], each.cost) <= self._bound}


def _covers(one: _Freed, other: _Freed) -> bool:
    return all(map(ge, one, other))


def _listed(what: Any) -> list[Chosen]:
    """Return all that a choice stops."""
    found, left = [], [what]
    while left:
        each = left.pop()
        if isinstance(each, Chosen):
            found.append(each)
        elif each is not None:
            left += each
    return found
