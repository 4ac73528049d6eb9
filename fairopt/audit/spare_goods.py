"""`SpareGoods`: whether gangs that start find CPU, memory and other goods, once what is stopped has set its own free.

Goods are counted as quotas count them: for the cluster, and for each user and group with a cap; not node by node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.numbers import whole_as_int
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Number, number_text
from fairopt.report import ResultForm, Statement

#: Whose limit (`TOP`: the cluster's), and the column of the good.
Limit = tuple[int, int]


def _lack(it: Statement) -> str:
    whose = f" below the cap of {it.who}" if it.who else ""
    most = f"at most {number_text(max(it.most, 0))} can be free for it{whose}"
    return f"{it.gang} waits still: it takes {number_text(it.amount)} {it.good}, and {most}"


#: Why a ``gang`` waits still, whatever is stopped: it takes ``amount`` of a ``good``, and at most ``most`` can be left.
#: ``who``: whose cap leaves no more, "" for the whole cluster.
LACK = ResultForm("Why a gang waits still.", in_full=True, sentence=_lack)


def goods_of(accounts: EntitlementAccounts, gangs: Iterable[int], gpu_type: int) -> dict[Limit, Number]:
    """Return what gangs on a type take together, of each limit that they count for: there is one where a cap is."""
    total: dict[Limit, Number] = {}
    for gang in gangs:
        for limit, amount in accounts.pools.goods_of(gang, gpu_type):
            total[limit] = total[limit] + amount if limit in total else amount
    return total


class SpareGoods:
    """What is left of goods, as gangs are started and stopped one after another.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> from fairopt.problem.entitled_rows import Good
    >>> gangs = Gangs.of(["A", "B"], [1, 1], users=["A", "B"], types=["T"], on=[None, "T"], other={"cpu": [6, 4]})
    >>> owed = Entitlements.of(["A", "B"], ["T"], goods={Good("cpu", "all"): 8}, gangs=gangs)
    >>> accounts = EntitlementAccounts(Market.of([[1], [1]], [2], users=["A", "B"], types=["T"], entitlements=owed))
    >>> spare, freed = SpareGoods(accounts), goods_of(accounts, [1], 0)
    >>> spare.missing(goods_of(accounts, [0], 0)), spare.lack(0, 0, {}).most, spare.lack(0, 0, freed)
    ({(-1, 1): Fraction(2, 1)}, Fraction(4, 1), None)
    """

    def __init__(self, accounts: EntitlementAccounts) -> None:
        self.accounts = accounts
        self._left: dict[Limit, Number] = {}

    def room(self, limit: Limit) -> Number:
        """Return what a limit leaves now, infinity where there is none; negative where more is held."""
        left = self._left.get(limit)
        if left is None:
            node, column = limit
            if node == TOP:
                left = self.accounts.goods_left[column - self.accounts.k]
            else:
                cap = self.accounts.said.cap[node, column]
                left = cap if cap == INFINITY else cap - self.accounts.held[node, column]
            self._left[limit] = left = whole_as_int(left)
        return left

    def missing(self, taken: Mapping[Limit, Number]) -> dict[Limit, Number]:
        """Return by how much each limit is too small for what gangs take; none where all of it fits."""
        short = {limit: amount - self.room(limit) for limit, amount in taken.items()}
        return {limit: Fraction(amount) for limit, amount in short.items() if amount > 0}

    def lack(self, gang: int, gpu_type: int, freed: Mapping[Limit, Number]) -> Statement | None:
        """Return what a gang does not find though so much is set free; None where it finds all."""
        for limit, amount in self.accounts.pools.goods_of(gang, gpu_type):
            most = self.room(limit) + freed.get(limit, 0)
            if amount > most:
                node, column = limit
                said = self.accounts.said
                who = "" if node == TOP else said.nodes[node]
                name, good = self.accounts.gangs.names[gang], said.columns[column]
                return LACK.of(gang=name, good=good, amount=Fraction(amount), most=Fraction(most), who=who)
        return None

    def start(self, taken: Mapping[Limit, Number]) -> None:
        """Take so much from now on."""
        for limit, amount in taken.items():
            left = self.room(limit)
            self._left[limit] = left - amount if left != INFINITY else left

    def stop(self, freed: Mapping[Limit, Number]) -> None:
        """Give so much back."""
        self.start({limit: -amount for limit, amount in freed.items()})

    def resources(self, gangs: Iterable[int], gpu_type: int) -> tuple[str, ...]:
        """Return which resources gangs take that are counted, such as cpu."""
        columns = {column for _, column in goods_of(self.accounts, gangs, gpu_type)}
        return tuple(
            dict.fromkeys(self.accounts.said.goods[each - self.accounts.k].resource for each in sorted(columns))
        )


def freed_by(accounts: EntitlementAccounts, gpu_type: int, users: Collection[int]) -> dict[Limit, Number]:
    """Return what all preemptible gangs of users on a type would set free."""
    runs = (gang for user in users for gang in accounts.running.get((user, gpu_type), []))
    return goods_of(accounts, [gang for gang in runs if accounts.gangs.preemptible[gang]], gpu_type)


def beside_served(accounts: EntitlementAccounts) -> tuple[SpareGoods, dict[int, dict[Limit, Number]]]:
    """Return what is left where the starving gangs run that free GPUs serve, and what each of those takes.

    Those that find too little of a good do not run.
    """
    spare, taken = SpareGoods(accounts), {}
    for gang in sorted(accounts.served, key=accounts.place.__getitem__):
        goods = goods_of(accounts, [gang], accounts.owed_at[gang][1])
        if not spare.missing(goods):
            spare.start(goods)
            taken[gang] = goods
    return spare, taken


def unlooked(accounts: EntitlementAccounts) -> Iterator[str]:
    """Yield the resources that nobody can look at: the file has no stock of them, on some types or all, or no needs."""
    types, needs = accounts.market.types, accounts.gangs.resources
    for each in dict.fromkeys((*(good.resource for good in accounts.said.goods), *needs)):
        blank = [kind for j, kind in enumerate(types) if accounts.said.good(each, j) is None]
        if each not in needs or len(blank) == len(types):
            yield each
        elif blank:
            yield f"{each} on {' and '.join(blank)}"
