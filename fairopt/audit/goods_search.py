"""The smallest reclaim where gangs must set free CPU, memory and other goods too: every choice, up the tree.

Choices of the same GPUs and the same goods are one: the cheapest is kept. What is set free beyond what is missing does
not tell choices apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, lcm
from typing import Any, NamedTuple

from fairopt.audit.books import Books
from fairopt.audit.spare_goods import Limit, goods_of
from fairopt.program import Number

#: The most pairs of choices that are put together; beyond it no answer is given.
MOST_PAIRS = 300_000


class Chosen(NamedTuple):
    """What is stopped of a user: a gang, or (None) GPUs that it holds beside its gangs."""

    user: int
    gang: int | None
    gpus: int


class _Choice(NamedTuple):
    """The cost of a choice, and what it is: one thing that is stopped, or two choices; None for nothing."""

    cost: int
    what: Any


#: Choices by their GPUs and what they set free of each limit.
_Choices = dict[tuple[int, tuple[int, ...]], _Choice]


class GoodsSearch:
    """A search for ``missing`` goods on a type; ``slack`` (by node): the GPUs whose loss costs a node nothing.

    ``below``: what each GPU beyond that costs; a gang costs 1.
    """

    def __init__(
        self, books: Books, gpu_type: int, missing: Mapping[Limit, Number], slack: Mapping[int, int], below: int
    ) -> None:
        self.books, self.gpu_type, self.slack, self.below = books, gpu_type, slack, below
        self.limits = list(missing)
        self.pairs = 0
        self._missing = missing
        self._scales: list[int] = []

    def least(self, parts: Mapping[int, Sequence[Chosen]], needed: int) -> list[Chosen] | None:
        """Return the best choice of ``parts`` (by user) that frees so many GPUs, and what is missing of goods.

        None where it takes more than `MOST_PAIRS`, and where no choice does.
        """
        stoppable = [each for own in parts.values() for each in own]
        freed = {each: goods_of(self.books, [each.gang], self.gpu_type) for each in stoppable if each.gang is not None}
        amounts = [[Fraction(own.get(limit, 0)) for own in freed.values()] for limit in self.limits]
        self._scales = [lcm(*(each.denominator for each in row)) for row in amounts]
        self._most = tuple(
            ceil(self._missing[limit] * scale) for limit, scale in zip(self.limits, self._scales, strict=True)
        )
        tables: dict[int, _Choices] = {}
        for node in self.books.said.upwards:
            inside = [tables[child] for child in self.books.said.children[node] if child in tables]
            own = [self._of(each, freed.get(each, {})) for each in parts.get(node, ())]
            if own or inside:
                made = self._merged([*own, *inside])
                if made is None:
                    return None
                tables[node] = self._with_cost(node, made)
        whole = self._merged([tables[node] for node in self.books.said.tops if node in tables])
        enough = [key for key in whole or () if key[0] >= needed and key[1] == self._most]
        if whole is None or not enough:
            return None
        return _listed(whole[min(enough, key=lambda key: self._rank(key[0], whole[key].cost))].what)

    def _rank(self, gpus: int, cost: int) -> tuple[int, int, int]:
        return cost // self.below, gpus, cost

    def _of(self, part: Chosen, freed: Mapping[Limit, Number]) -> _Choices:
        nothing: _Choices = {(0, (0,) * len(self.limits)): _Choice(0, None)}
        if part.gang is None:
            zeros = (0,) * len(self.limits)
            return nothing | {(t, zeros): _Choice(t, part._replace(gpus=t)) for t in range(1, part.gpus + 1)}
        pairs = zip(self.limits, self._scales, self._most, strict=True)
        goods = tuple(min(most, int(freed.get(limit, 0) * scale)) for limit, scale, most in pairs)
        return nothing | {(part.gpus, goods): _Choice(1, part)}

    def _merged(self, tables: Sequence[_Choices]) -> _Choices | None:
        """Return the choices of all together; of equal ones that of what stands first stays. None: too many."""
        whole = tables[0]
        for table in tables[1:]:
            self.pairs += len(whole) * len(table)
            if self.pairs > MOST_PAIRS:
                return None
            found: _Choices = {}
            for (more, more_goods), second in table.items():
                for (gpus, goods), first in whole.items():
                    sums = zip(goods, more_goods, self._most, strict=True)
                    key = gpus + more, tuple(min(most, a + b) for a, b, most in sums)
                    cost = first.cost + second.cost
                    if key not in found or cost < found[key].cost:
                        found[key] = _Choice(cost, (first.what, second.what))
            whole = found
        return whole

    def _with_cost(self, node: int, made: _Choices) -> _Choices:
        slack = self.slack[node]
        return {key: each._replace(cost=each.cost + self.below * max(0, key[0] - slack)) for key, each in made.items()}


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
