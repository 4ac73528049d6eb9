"""Properties of entitlements against their definitions, written down again, at every node, type, gang and pair.

What an asker is served is the least cut, over all sets of types; nothing of the code that is tested is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn_seeds import counts
from scipy.optimize import linprog

from fairopt.problem import Entitlements, Market
from fairopt.program import INFINITY
from fairopt.properties import AllocationProperty, Answer
from fairopt.properties.entitlements.cap_kept import CapKept
from fairopt.properties.entitlements.envy_within_peers import EnvyWithinPeers
from fairopt.properties.entitlements.group_fairness import GroupFairness
from fairopt.properties.entitlements.guarantee_incentive import GuaranteeIncentive
from fairopt.properties.entitlements.guarantee_kept import GuaranteeKept
from fairopt.properties.entitlements.nobody_starves_while_lent import NobodyStarvesWhileLent
from fairopt.properties.entitlements.whole_gpu_conservation import WholeGpuConservation
from fairopt.properties.property import SlackCase
from fairopt.testing.samples import entitled_markets

F = Fraction


class Stand:
    """Who holds, may hold and asks for what, by name of node and column; read off the market alone."""

    def __init__(self, market: Market, shares: Any) -> None:
        assert market.entitlements is not None
        self.market, self.owed, self.shares = market, market.entitlements, shares
        n, k = market.shape
        now = (self.owed.held[:, :k] == shares).all()
        self.mine = self.owed.held if now else shares
        self.columns = range(self.mine.shape[1])
        self.there = [*market.capacity, *self.owed.stock]
        least = min(m for m in market.capacity if m > 0)
        self.sizes = [m if m > 0 else min(F(1), least) for m in market.capacity] + [m or F(1) for m in self.owed.stock]
        self.nodes, self.users = range(len(self.owed.nodes)), range(n)
        fixed = np.minimum(self.owed.fixed[:, : self.mine.shape[1]], self.mine)
        self.held, self.fixed = self.summed(self.mine), self.summed(fixed)
        self.free = [self.there[c] - sum(self.mine[:, c]) for c in self.columns]

    def above(self, node: int) -> list[int]:
        """The node, its group, the group of that, and so on."""
        found = [node]
        while self.owed.parent[found[-1]] >= 0:
            found.append(int(self.owed.parent[found[-1]]))
        return found

    def summed(self, of_users: Any) -> dict[tuple[int, int], Any]:
        return {
            (node, c): sum((of_users[i, c] for i in self.users if node in self.above(i)), F(0))
            for node in self.nodes
            for c in range(of_users.shape[1])
        }

    def guarantee(self, node: int, c: int) -> Any:
        return min(self.owed.guarantee[node, c], self.there[c])

    def asked(self, i: int) -> list[tuple[set[int], Any]]:
        """By the types that serve: what it holds, on its type, and what waits; its demand where nobody says."""
        k, gangs = self.market.shape[1], self.owed.gangs
        if not (self.owed.held[:, :k] > 0).any() and not (gangs.gpus > 0).any():
            return [({j for j in range(k) if self.market.speedup[i, j] > 0}, self.market.limit[i])]
        holds = [({j}, self.owed.held[i, j]) for j in range(k)]
        waits = [
            (set(np.flatnonzero(gangs.allowed[g]).tolist()), int(gangs.gpus[g]))
            for g in range(len(gangs.names))
            if gangs.on[g] < 0 and gangs.user[g] == i
        ]
        return holds + waits

    def served(self, i: int, room: list[Any]) -> Any:
        """The least cut: some types are full, and whoever needs another than these is served."""
        asked, room = self.asked(i), [max(F(0), each) for each in room]
        sets = itertools.chain.from_iterable(itertools.combinations(range(len(room)), m) for m in range(len(room) + 1))
        return min(
            sum(room[j] for j in full) + sum(amount for types, amount in asked if not types <= set(full))
            for full in sets
        )

    def unserved(self, i: int, c: int) -> Any:
        k, gangs = self.market.shape[1], self.owed.gangs
        if c >= k:  # further goods of the gangs that wait
            total = F(0)
            for g in np.flatnonzero((gangs.on < 0) & (gangs.user == i)):
                for at, resource in enumerate(gangs.resources):
                    types = np.flatnonzero(gangs.allowed[g]).tolist()
                    total += gangs.other[g, at] * (c in {self.owed.good(resource, j) for j in types})
            return total
        row = self.mine[i, :k].tolist()
        endless = [F(10**6) if j == c else each for j, each in enumerate(row)]
        return self.served(i, endless) - self.served(i, row)

    def more(self, node: int, c: int) -> Any:
        """What it, or its members, could use more, within all caps from there down."""
        members = [each for each in self.nodes if self.owed.parent[each] == node]
        wants = self.unserved(node, c) if node in self.users else sum((self.more(each, c) for each in members), F(0))
        return max(F(0), min(wants, self.owed.cap[node, c] - self.held[node, c]))

    def short(self, node: int, c: int) -> Any:
        return min(max(self.guarantee(node, c) - self.held[node, c], F(0)), self.more(node, c))

    def lent(self, node: int, other: int, c: int) -> Any:
        """What user ``other`` has beyond its guarantee, and its groups too up to those that ``node`` is in."""
        if node in self.above(other):
            return F(0)
        own = [each for each in self.above(other) if each not in self.above(node)]
        beyond = [self.held[each, c] - self.guarantee(each, c) for each in own]
        return max(F(0), min(*beyond, self.held[other, c] - self.fixed[other, c]))

    def needs(self, g: int, j: int) -> dict[int, Any]:
        """What a gang takes of each column on a type."""
        found = dict.fromkeys(self.columns, F(0)) | {j: F(int(self.owed.gangs.gpus[g]))}
        for at, resource in enumerate(self.owed.gangs.resources):
            column = self.owed.good(resource, j)
            if column in found:
                found[column] += self.owed.gangs.other[g, at]
        return found

    def had(self, node: int, c: int, idle: Any) -> Any:
        """The most of what is idle and lent that fits all bounds: what groups hold too much, and what caps leave.

        Bounds of which any two are apart, or one is in the other: whoever is taken from first, it comes to the most.
        """
        above = self.above(node)
        lenders = [each for each in self.users if node not in self.above(each)]
        most = {each: self.lent(node, each, c) for each in lenders} | {None: idle}
        inside = {group: [each for each in lenders if group in self.above(each)] for group in self.nodes}
        bounds: list[tuple[list[int | None], Any]] = [
            (
                [None, *(each for each in lenders if each not in inside[group])],
                self.owed.cap[group, c] - self.held[group, c],
            )
            for group in above[1:]
        ]
        apart = {*self.nodes} - {*above}
        bounds += [([*inside[group]], self.held[group, c] - self.guarantee(group, c)) for group in apart]
        taken: dict[int | None, Any] = {}
        for each in (None, *lenders):
            left = [max(room, 0) - sum(taken.get(other, 0) for other in of) for of, room in bounds if each in of]
            taken[each] = min(most[each], *left) if left else most[each]
        return sum(taken.values())

    def sure(self, i: int, c: int) -> Any:
        """What of its guarantee it could have more, and use."""
        reach = self.had(i, c, self.free[c])
        return max(F(0), min(self.guarantee(i, c) - self.held[i, c], self.more(i, c), reach))

    def can(self, i: int, c: int) -> Any:
        """What it could have more: of its guarantee, or of what is idle."""
        idle = min(self.owed.cap[node, c] - self.held[node, c] for node in self.above(i))
        return max(self.sure(i, c), min(self.free[c], idle))


def caps(stand: Stand) -> Iterator[SlackCase]:
    for node, c in itertools.product(stand.nodes, stand.columns):
        held, cap = stand.held[node, c], stand.owed.cap[node, c]
        names = {"node": stand.owed.nodes[node], "type": stand.owed.columns[c]}
        yield CapKept().case(cap - held, stand.sizes[c], **names, held=held, cap=cap)


def guarantees(stand: Stand) -> Iterator[SlackCase]:
    for node, c in itertools.product(stand.nodes, stand.columns):
        short, held = stand.short(node, c), stand.held[node, c]
        shown = {"node": stand.owed.nodes[node], "type": stand.owed.columns[c], "held": held, "owed": held + short}
        slack = -short if short else max(held - stand.guarantee(node, c), F(0))
        yield GuaranteeKept().case(slack, stand.sizes[c], **shown, sources=())


def starving(stand: Stand) -> Iterator[SlackCase]:
    """Of all choices of pending gangs and types, what fits the guarantee, what is idle, and what can be taken back."""
    owed, market, gangs = stand.owed, stand.market, stand.owed.gangs
    k = market.shape[1]
    whole = (owed.held[:, :k] > 0).any() or (gangs.gpus > 0).any()
    for i, c in itertools.product(stand.users, stand.columns):
        held, amount, sure = stand.held[i, c], F(0), stand.sure(i, c)
        if stand.had(i, c, F(0)) > 0 and sure > 0:
            first = min(owed.held[i, c], held + sure)
            bound = {at: stand.can(i, at) for at in stand.columns} | {c: held + sure - first}
            mine = np.flatnonzero((gangs.on < 0) & (gangs.user == i)).tolist() if whole else []
            ways = [[stand.needs(g, j) for j in np.flatnonzero(gangs.allowed[g])] for g in mine]
            for choice in itertools.product(*([{}, *(each for each in of if each[c])] for of in ways)):
                total = {at: sum((each.get(at, F(0)) for each in choice), F(0)) for at in stand.columns}
                if all(not each or each <= bound[at] for at, each in total.items()):
                    amount = max(amount, first - held + total[c])
            amount = amount if whole else sure
        shown = {"user": market.users[i], "type": owed.columns[c], "amount": amount, "gangs": ()}
        yield NobodyStarvesWhileLent().case(-amount, stand.sizes[c], **shown, sources=(), others=())


def starting(stand: Stand) -> Iterator[SlackCase]:
    """A pending gang could start where whole GPUs are free, caps leave room, and what it takes besides is free."""
    gangs, market = stand.owed.gangs, stand.market
    for g, j in itertools.product(range(len(gangs.names)), range(market.shape[1])):
        i, gpus = int(gangs.user[g]), int(gangs.gpus[g])
        if gpus:
            room = {c: min(stand.owed.cap[up, c] - stand.held[up, c] for up in stand.above(i)) for c in stand.columns}
            goods = [(stand.owed.good(resource, j), gangs.other[g, at]) for at, resource in enumerate(gangs.resources)]
            counted = [(c, amount) for c, amount in goods if c is not None and c in stand.columns and amount]
            fits = (
                gangs.on[g] < 0
                and gangs.allowed[g, j]
                and gpus <= stand.free[j] // 1
                and gpus <= room[j]
                and gpus <= stand.more(i, j)
            )
            fits &= all(amount <= min(stand.free[c], room[c]) for c, amount in counted)
            shown = {"gang": gangs.names[g], "user": market.users[i], "gpus": gpus, "type": market.types[j]}
            yield WholeGpuConservation().case(F(-gpus if fits else 0), stand.sizes[j], **shown)


def loans(stand: Stand) -> Iterator[SlackCase]:
    """One GPU moves from a sibling to another of its tier that wants one, if it would still borrow more, by weight."""
    owed, market = stand.owed, stand.market
    for high, low, j in itertools.product(stand.nodes, stand.nodes, range(market.shape[1])):
        alike = owed.parent[high] == owed.parent[low] and owed.tier[high] == owed.tier[low]
        borrowed = [max(stand.held[node, j] - stand.guarantee(node, j), F(0)) for node in (high, low)]
        weights = tuple(owed.borrow_weight[node] for node in (high, low))
        over = borrowed[0] - 1 - (weights[0] * borrowed[1] / weights[1] if weights[1] else borrowed[0])
        can = alike and stand.held[high, j] - stand.fixed[high, j] >= 1 and stand.more(low, j) >= 1
        shown = {"borrower": owed.nodes[high], "sibling": owed.nodes[low], "type": market.types[j]}
        both = {"borrowed": tuple(borrowed), "weights": weights}
        yield GroupFairness().case(min(-over, F(0)) if can else F(0), stand.sizes[j], **shown, **both)


def value(stand: Stand, i: int, bundle: list[Any]) -> float:
    """The most that a bundle is worth for what the user asks for, by a linear program."""
    asked, speed = stand.asked(i), stand.market.speedup[i]
    ways = [(at, j) for at, (types, _) in enumerate(asked) for j in sorted(types)]
    rows = [[float(way[0] == at) for way in ways] for at in range(len(asked))]
    rows += [[float(way[1] == j) for way in ways] for j in range(len(bundle))]
    most = [min(float(amount), 1e6) for _, amount in asked] + [float(max(F(0), each)) for each in bundle]
    return -float(linprog([-float(speed[j]) for _, j in ways], rows, most, method="highs").fun) if ways else 0.0


def incentives(stand: Stand) -> Iterator[SlackCase]:
    market = stand.market
    for i, user in enumerate(market.users):
        bundles = (stand.shares[i].tolist(), [stand.guarantee(i, j) for j in range(market.shape[1])])
        own, owed = (F(value(stand, i, each)).limit_denominator(1000) for each in bundles)
        fair = sum(v * m for v, m in zip(market.speedup[i], market.capacity, strict=True)) * market.weight[i]
        shown = {"user": user, "throughput": own, "guaranteed": owed, "missing": ()}
        yield GuaranteeIncentive().case(own - owed, fair / sum(market.weight), **shown)


def peers(stand: Stand) -> Iterator[SlackCase]:
    market, owed = stand.market, stand.owed
    for i, other in itertools.product(stand.users, stand.users):
        if i != other and owed.parent[i] == owed.parent[other] and owed.tier[i] == owed.tier[other]:
            # what the peer holds beyond its guarantee, in the place of what the user holds beyond its own
            theirs = []
            for j in range(len(market.types)):
                ends = [(owed.guarantee[u, j], owed.cap[u, j]) for u in (i, other)]
                sure = [0 if most == INFINITY else min(most, cap) for most, cap in ends]
                own, beyond = min(stand.shares[i][j], sure[0]), max(F(0), stand.shares[other][j] - sure[1])
                theirs.append(min(own + beyond * market.weight[i] / market.weight[other], owed.cap[i, j]))
            fair = sum(v * m for v, m in zip(market.speedup[i], market.capacity, strict=True)) * market.weight[i]
            slack = (market.speedup[i] * stand.shares[i]).sum() - (market.speedup[i] * theirs).sum()
            yield EnvyWithinPeers().case(slack, fair / sum(market.weight))


DEFINITIONS: list[tuple[AllocationProperty, Callable[[Stand], Iterator[SlackCase]]]] = [
    (CapKept(), caps),
    (GuaranteeKept(), guarantees),
    (NobodyStarvesWhileLent(), starving),
    (GroupFairness(), loans),
    (GuaranteeIncentive(), incentives),
    (EnvyWithinPeers(), peers),
]


def drawn(count: int, seed: int) -> Iterator[tuple[Market, Any]]:
    """Yield markets with entitlements, and what users hold now, the same among others, and shares in thirds of GPUs."""
    random = np.random.default_rng(seed)
    for market in entitled_markets(count, seed=seed):
        held = owed(market).held[:, : market.shape[1]]
        yield market, held
        yield market, random.permutation(held) * F(1)
        yield market, random.integers(0, 13, market.shape).astype(object) * F(1, 3)


def owed(market: Market) -> Entitlements:
    assert market.entitlements is not None
    return market.entitlements


@pytest.mark.parametrize("count", counts(12, 50))
@pytest.mark.parametrize(("asked", "definition"), DEFINITIONS, ids=[each.name for each, _ in DEFINITIONS])
def test_answer_and_margin_are_those_of_the_worst_case(
    asked: AllocationProperty, definition: Callable[[Stand], Iterator[SlackCase]], count: int
) -> None:
    answers = set()
    for market, shares in drawn(count, seed=11):
        if not asked.asked_of(market):
            continue
        cases = list(definition(Stand(market, shares)))
        worst = min((case.slack / case.size for case in cases), default=F(0))
        margins = {case.slack for case in cases if case.slack / case.size == worst} or {F(0)}
        verdict = asked.check(market, shares)
        answers.add(verdict.answer)
        assert (verdict.answer is Answer.FAILS) == (worst < 0), (market.entitlements, shares)
        assert verdict.margin in margins, (margins, verdict, market.entitlements, shares)
        assert verdict.exact
        if worst < 0:
            assert verdict.witness.refutes(market, shares)
            assert asked.check(market, shares, tolerance=-worst).answer is Answer.HOLDS
            assert asked.check(market, shares, tolerance=-worst * F(9, 10)).answer is Answer.FAILS
        if worst == 0 or abs(worst) > F(1, 10**4):
            rounded = asked.check(market, shares.astype(float))
            assert rounded.answer is verdict.answer
            assert min(abs(float(margin) - float(rounded.margin or 0)) for margin in margins) < 1e-9 or worst > 10**6
    assert answers == {Answer.HOLDS, Answer.FAILS}


@pytest.mark.parametrize("count", counts(6, 25))
@pytest.mark.parametrize(
    ("asked", "definition"),
    [*DEFINITIONS[:5], (WholeGpuConservation(), starting)],
    ids=[each.name for each, _ in [*DEFINITIONS[:5], (WholeGpuConservation(), starting)]],
)
def test_a_witness_refutes_where_its_case_fails_and_nowhere_else(
    asked: AllocationProperty, definition: Callable[[Stand], Iterator[SlackCase]], count: int
) -> None:
    said = set()
    for market, shares in drawn(count, seed=12):
        if asked.asked_of(market):
            for case in definition(Stand(market, shares)):
                said.add(case.slack < 0)
                assert case.refutes(market, shares) == (case.slack < 0), (case, market.entitlements, shares)
    assert said == {True, False}


def test_the_largest_gang_that_could_start_is_the_margin() -> None:
    asked, answers = WholeGpuConservation(), set()
    for market, shares in drawn(60, seed=13):
        if asked.asked_of(market):
            verdict = asked.check(market, shares)
            answers.add(verdict.answer)
            worst = min((case.slack for case in starting(Stand(market, shares))), default=F(0))
            assert (verdict.answer is Answer.FAILS) == (worst < 0), (market.entitlements, shares)
            assert worst == 0 or verdict.margin == worst
            assert verdict.holds is False or verdict.margin >= 0
            if worst < 0:
                assert verdict.witness.refutes(market, shares)
    assert answers == {Answer.HOLDS, Answer.FAILS}


def test_who_starves_no_longer_does_after_the_witness_is_played() -> None:
    """What is said to start can start: of lenders beyond their guarantees, within caps and the user's own guarantee."""
    played = 0
    for market, shares in drawn(80, seed=14):
        if (verdict := NobodyStarvesWhileLent().check(market, shares)).answer is Answer.FAILS:
            play(Stand(market, shares), verdict.witness)
            played += 1
    assert played > 30


def play(stand: Stand, said: SlackCase) -> None:
    """Start the gangs of a witness as it says, and look whether all bounds are kept."""
    owed, gangs, columns = stand.owed, stand.owed.gangs, list(stand.owed.columns)
    i, c = stand.market.index(said.user), columns.index(said.type)
    moves = {c: dict(said.sources)} | {columns.index(good): dict(sources) for good, sources in said.others}
    more = dict.fromkeys(stand.columns, F(0))
    assert len({name for name, _, _ in said.gangs}) == len(said.gangs)
    for name, gpus, on in said.gangs:
        g, j = gangs.names.index(name), stand.market.types.index(on)
        assert (gangs.on[g], gangs.user[g], gangs.gpus[g]) == (-1, i, gpus)
        assert gangs.allowed[g, j]
        more = {at: more[at] + each for at, each in stand.needs(g, j).items()}
    now = (stand.mine == owed.held[:, : len(stand.columns)]).all()
    assert more[c] == said.amount or not said.gangs or not now
    more[c] = said.amount
    after = stand.mine * F(1)
    for at, all_ in more.items():
        after[i, at] += all_
        lenders = {name: amount for name, amount in moves.get(at, {}).items() if name}
        for name, amount in lenders.items():
            assert amount > 0
            after[stand.market.index(name), at] -= amount
        lent = sum(lenders.values())
        assert not lent or after[i, at] <= stand.guarantee(i, at)
        assert not all_ or all_ - lent <= max(stand.free[at], 0)
        assert at != c or sum(moves[at].values()) == all_
    then = stand.summed(after)
    assert (after >= np.minimum(owed.fixed[:, : after.shape[1]], stand.mine)).all()
    for node, at in itertools.product(stand.nodes, stand.columns):
        before, now = stand.held[node, at], then[node, at]
        assert now >= before or (now >= stand.guarantee(node, at) and node not in stand.above(i))
        assert now <= max(before, owed.cap[node, at])
