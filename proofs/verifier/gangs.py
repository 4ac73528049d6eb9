"""Gangs of GPUs, as in a round of FFT: each job runs on one type or waits, and no choice costs less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from .market import ZERO
from .programs import MOST_TERMS, at_most
from .reading import Entry, Number, Rejected, digest, shown, summed, within
from .statements import Proved, require_bound

Limits = dict[tuple[int, int], tuple[Number, Number]]  #: by size and type, how many gangs run: from, to
FREE, WAITS = (0, inf), -1  #: no limits, and the type of a job that waits, which costs nothing


@dataclass
class Round:
    """Jobs that ask for ``gangs`` of GPUs of one type, and their costs by type; ``least`` must be busy."""

    gangs: list[int]
    costs: list[dict[int, Fraction]]
    capacity: list[int]
    least: int

    def __str__(self) -> str:
        """Name the round: its digest and its size."""
        costs = [[[i, str(cost)] for i, cost in row.items()] for row in self.costs]
        found = digest(["round", self.gangs, costs, self.capacity, self.least])
        return f"round {found}: {len(self.gangs)} jobs, {len(self.capacity)} types"

    def value(self, types: list[int]) -> Fraction:
        """Return the cost of an assignment. Errors: `Rejected` where it is none."""
        busy = Counter[int]()
        for job, i in enumerate(types):
            if i not in self.costs[job]:
                raise Rejected(f"job {job} may not run on type {i}")
            busy[i] += self.gangs[job] if i != WAITS else 0
        if any(busy[i] > room for i, room in enumerate(self.capacity)) or busy.total() < self.least:
            raise Rejected("more GPUs of a type are in use than there are, or too few are busy")
        return summed(row[i] for row, i in zip(self.costs, types, strict=True))

    def bound(self, told: Entry, limits: Limits) -> tuple[Fraction, list[dict[int, Fraction]]]:
        """Return a bound on the cost within limits, and how much dearer than its best a type is for each job.

        Gangs pay a toll by kind, and for each GPU a price less a reward. An assignment costs no less than its
        jobs with that, less all GPUs' prices, plus the reward of the least, less the most that tolls can be.
        """
        prices = [each.amount() for each in told["prices"].items(len(self.capacity))]
        reward, tolls = told["reward"].amount(), dict[tuple[int, int], Fraction]()
        for gang, i, toll in (each.items(3) for each in told["tolls"].or_none()):
            tolls[gang.integer(), i.integer()] = toll.number()
        pays = {(size, WAITS): ZERO for size in self.gangs}
        for size, j in [(size, j) for size, _ in pays for j in range(len(prices))]:
            pays[size, j] = size * (prices[j] - reward) + tolls.get((size, j), ZERO)
        full = [{j: c + pays[self.gangs[n], j] for j, c in row.items()} for n, row in enumerate(self.costs)]
        best = [min(row.values()) for row in full]
        least = reward * self.least - summed(p * room for p, room in zip(prices, self.capacity, strict=True))
        least += summed(best) - summed(at_most(toll, *limits.get(kind, FREE)) for kind, toll in tolls.items())
        return least, [{j: cost - of for j, cost in row.items()} for row, of in zip(full, best, strict=True)]


def gangs(data: Entry) -> Proved:
    """An assignment costs ``value``, and none costs less than ``bound``; if they meet, it is optimal.

    In one of less cost no type is dearer for its job, at the prices of ``root``, than the bound leaves room
    for. What is left is split into ``cases``. Where costs are multiples of a ``grain``, so are their sums.
    """
    told = data.fields("gangs capacity least cost types value bound gap root cases", "grain")
    sizes = [each.integer(1) for each in told["gangs"].items()]
    capacity = [each.integer() for each in told["capacity"].items()]
    rows = [enumerate(row.items(len(capacity))) for row in told["cost"].items(len(sizes))]
    costs = [{WAITS: ZERO} | {i: each.number() for i, each in row if each.value is not None} for row in rows]
    whole, bound = Round(sizes, costs, capacity, told["least"].integer()), told["bound"].number()
    value = whole.value([each.integer(WAITS) for each in told["types"].items(len(sizes))])
    require_bound(value, bound, told)
    grain = ZERO if told["grain"].value is None else told["grain"].amount(positive=True)
    if grain and any((each / grain).denominator > 1 for row in ({0: bound}, *costs) for each in row.values()):
        raise Rejected("the bound or a cost is no multiple of the grain")

    def less(cost: Fraction) -> bool:
        return cost <= bound - grain if grain else cost < bound

    root, dearer = whole.bound(told["root"].fields("prices reward", "tolls"), {})
    if less(root):
        pairs = zip(costs, dearer, strict=True)
        some = [{i: cost for i, cost in row.items() if less(root + more[i])} for row, more in pairs]
        _require_bounded(replace(whole, costs=some), told["cases"], less)
    said = f"an assignment of jobs to types costs {shown(value)}, none costs less than {shown(bound)}"
    return Proved(f"{said}: optimal" if value == bound else said, whole)


def _require_bounded(left: Round, told: Entry, less: Callable[[Fraction], bool]) -> None:
    """Follow the cases. Each is bounded, or split: at most so many gangs of a kind, and then more of them."""
    cases, waiting = told.items(), list[Limits]([{}])
    within(len(cases) * (1 + sum(map(len, left.costs))), MOST_TERMS, told.place, "terms")
    for each in cases:
        if not waiting:
            raise Rejected("there are more cases than splits make")
        limits, case = waiting.pop(), each.fields("", "split prices reward tolls")
        if case["split"].value is None:
            if less(left.bound(case, limits)[0]):
                raise Rejected(f"{each.place} is not bounded by its prices")
            continue
        size, i, most = (part.integer() for part in case["split"].items(3))
        low, high = limits.get((size, i), FREE)
        waiting += [limits | {(size, i): (most + 1, high)}, limits | {(size, i): (low, most)}]
        within(len(waiting) + len(limits), 1000, each.place, "cases in each other")
    if waiting:
        raise Rejected("a case is missing")
