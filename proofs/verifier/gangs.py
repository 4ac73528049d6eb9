"""Gangs of GPUs, as in a round of FFT: each job runs on one type or waits, and no choice costs less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from .programs import MOST_STEPS, at_most
from .reading import ZERO, Entry, Number, Rejected, digest, exactly, shown, summed, within
from .statements import Proved, require_bound

Kind = tuple[int, int]  #: a size of gangs, and a type by position
Limits = dict[Kind, tuple[Number, Number]]  #: how many gangs of a kind run: from, to
FREE, WAITS = (0, inf), -1  #: no limits, and the type of a job that waits, which costs nothing


@dataclass
class Round:
    """How many jobs have a gang and costs by type; GPUs; how many must be busy; what is ``spent`` anyway."""

    jobs: Counter[tuple[int, tuple[tuple[int, Fraction], ...]]]
    capacity: list[int]
    least: int
    spent: Fraction = ZERO

    def bound(self, entry: Entry, limits: Limits) -> tuple[Fraction, dict[Kind, Fraction]]:
        """Return a bound on the cost within limits, and what a gang of each kind pays in it.

        That is a toll, and for each GPU a price less a reward. An assignment costs no less than its jobs with
        that, less all GPUs' prices, plus the reward of the least, less the most that tolls can add up to.
        """
        entry.budget.spend(1 + sum(len(row) for _, row in self.jobs), MOST_STEPS, "cases", "types of jobs")
        prices = [each.amount() for each in entry["prices"].items(len(self.capacity))]
        reward, tolls = entry["reward"].amount(), dict[Kind, Fraction]()
        for gang, i, toll in (each.items(3) for each in entry["tolls"].or_none()):
            tolls[gang.integer(), i.integer()] = toll.number()
        pays = {(size, j): ZERO for size, row in self.jobs for j, _ in row}
        for size, j in [kind for kind in pays if kind[1] != WAITS]:
            pays[size, j] = size * (prices[j] - reward) + tolls.get((size, j), ZERO)
        least = summed(n * min(c + pays[size, j] for j, c in row) for (size, row), n in self.jobs.items())
        least -= summed(price * room for price, room in zip(prices, self.capacity, strict=True))
        least -= summed(at_most(toll, *limits.get(kind, FREE)) for kind, toll in tolls.items())
        return least + self.spent + reward * self.least, pays

    def narrowed(self, pays: dict[Kind, Fraction], may_be: Callable[[Fraction], bool]) -> Round:
        """Return the round with a type left to a job where it ``may_be`` so much dearer than the best."""
        left = replace(self, jobs=Counter())
        for (size, costs), n in self.jobs.items():
            best = min(cost + pays[size, j] for j, cost in costs)
            some = [(j, cost) for j, cost in costs if may_be(cost + pays[size, j] - best)]
            left.jobs[size, tuple((j, cost - some[0][1]) for j, cost in some)] += n
            left.spent = summed((left.spent, n * some[0][1]))
        return left


def gangs(data: Entry) -> Proved:
    """An assignment costs ``value``, and none costs less than ``bound``; if they meet, it is optimal.

    In one of less cost no type is dearer for its job, at the prices of ``root``, than the bound leaves room
    for. What is left is split into ``cases``. Where costs are multiples of a ``grain``, so are their sums.
    """
    certificate = data.fields("gangs capacity least cost types value bound gap root cases", "grain")
    sizes, least = [each.integer(1) for each in certificate["gangs"].items()], certificate["least"].integer()
    capacity = [each.integer() for each in certificate["capacity"].items()]
    rows = [enumerate(row.items(len(capacity))) for row in certificate["cost"].items(len(sizes))]
    costs = [{WAITS: ZERO} | {i: each.number() for i, each in row if each.value is not None} for row in rows]
    busy, spent = Counter[int](), list[Fraction]()
    for row, size, each in zip(costs, sizes, certificate["types"].items(len(sizes)), strict=True):
        if (i := each.integer(WAITS)) not in row:
            raise Rejected(f"{each.place}: the job may not run there")
        busy[i] += size if i != WAITS else 0
        spent.append(row[i])
    if any(busy[i] > room for i, room in enumerate(capacity)) or busy.total() < least:
        raise Rejected("more GPUs of a type are in use than there are, or too few are busy")
    value, bound = summed(spent), certificate["bound"].number()
    require_bound(value, bound, certificate)
    grain = ZERO if certificate["grain"].value is None else certificate["grain"].amount(positive=True)
    if grain and any((each / grain).denominator > 1 for row in ({0: bound}, *costs) for each in row.values()):
        raise Rejected("the bound or a cost is no multiple of the grain")
    less = (bound - grain).__ge__ if grain else bound.__gt__
    jobs = Counter((size, tuple(row.items())) for size, row in zip(sizes, costs, strict=True))
    whole = Round(jobs, capacity, least)
    root, pays = whole.bound(certificate["root"].fields("prices reward", "tolls"), {})
    if less(root):
        _require_bounded(whole.narrowed(pays, lambda more: less(root + more)), certificate["cases"], less)
    said = f"an assignment of jobs to types costs {shown(value)}, none costs less than {shown(bound)}"
    rates = [[[i, exactly(c)] for i, c in row.items()] for row in costs]
    named = digest(["round", sizes, rates, capacity, least])
    about = f"round {named}: {len(sizes)} jobs, {len(capacity)} types, at least {least} GPUs in use"
    return Proved(f"{said}: optimal" if value == bound else said, about)


def _require_bounded(left: Round, entry: Entry, less: Callable[[Fraction], bool]) -> None:
    """Follow the cases. Each is bounded, or split: at most so many gangs of a kind, and then more of them."""
    cases, waiting = entry.items()[::-1], list[Limits]([{}])
    while cases and waiting:
        each, limits = cases.pop(), waiting.pop()
        case = each.fields("", "split prices reward tolls")
        if case["split"].value is not None:
            size, i, most = (part.integer() for part in case["split"].items(3))
            low, high = limits.get((size, i), FREE)
            waiting += [limits | {(size, i): (most + 1, high)}, limits | {(size, i): (low, most)}]
            within(len(waiting) + len(limits), 1000, each.place, "cases in each other")
        elif less(left.bound(case, limits)[0]):
            raise Rejected(f"{each.place} is not bounded by its prices")
    if cases or waiting:
        raise Rejected("a case is missing, or one too many is there")
