"""`Holdings`: what the nodes of a tree of entitlements hold, and what is free, while gangs start and stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairopt.models.common.amounts import light
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import Number

#: Amounts by column; a column that is left out is 0.
Amounts = Mapping[int, Number]


def entitlements_of(market: Market) -> Entitlements:
    """Return the entitlements of a market, which `fairopt.policy.decide` demands of it."""
    assert market.entitlements is not None
    return market.entitlements


@dataclass
class Holdings:
    """What each node holds of each column, with those below it, and what is free; columns are types and goods.

    ``parent`` (N,): the node above each, `TOP` for none. ``held`` (N, W) and ``free`` (W,) change with `add`; whole
    numbers in them are ints, since Fractions take ten times as long.
    """

    names: Sequence[str]
    columns: Sequence[str]
    parent: Sequence[int]
    free: list[Any]
    held: list[list[Any]]

    @staticmethod
    def at_first(market: Market) -> Holdings:
        """Return what a market with entitlements says."""
        owed = entitlements_of(market)
        held = [light(row) for row in owed.total(owed.held).tolist()]
        there = light([*market.capacity.tolist(), *owed.stock.tolist()])
        free = [all_ - sum(held[top][column] for top in owed.tops) for column, all_ in enumerate(there)]
        return Holdings(owed.nodes, owed.columns, owed.parent.tolist(), free, held)

    def above(self, node: int) -> Iterable[int]:
        """Yield a node, the one above it, and so on."""
        while node != TOP:
            yield node
            node = self.parent[node]

    def lacks(self, takes: Amounts) -> list[int]:
        """Return the columns of which less is free than somebody takes."""
        return [column for column, amount in takes.items() if amount > self.free[column]]

    def beyond(self, node: int, takes: Amounts, most: Sequence[Any]) -> int | None:
        """Return the first column of which a node would hold more than ``most`` (W,) with ``takes``; None for none."""
        held = self.held[node]
        for column, amount in takes.items():
            if held[column] + amount > most[column]:
                return column
        return None

    def add(self, node: int, takes: Amounts, sign: int = 1) -> None:
        """Let a node, and those above it, hold so much more, or with ``sign`` -1 less."""
        for column, amount in takes.items():
            self.free[column] -= sign * amount
            for at in self.above(node):
                self.held[at][column] += sign * amount

    def said(self, amounts: Mapping[int, object]) -> str:
        """Return amounts in words."""
        return ", ".join(f"{_short(amount)} {self.columns[column]}" for column, amount in amounts.items())


def takes_of(owed: Entitlements, gang: int, gpu_type: int) -> dict[int, Number]:
    """Return what a gang takes on a type: its GPUs, and what is counted of the other resources."""
    gangs = owed.gangs
    takes: dict[int, Any] = {gpu_type: int(gangs.gpus[gang])} if gangs.gpus[gang] else {}
    return takes | {column: light([amount])[0] for column, amount in owed.goods_of(gang, gpu_type)}


def _short(amount: Any) -> str:
    return str(amount) if amount == int(amount) else f"{float(amount):.4g}"
