"""The claims of the OEF paper, each as the search for a market that refutes it.

"Every optimum": no optimum breaks the property. "Some optimum": each market has an optimum that keeps it. Where all
optima break it, so does one inside the set of optima, and that is the one of strict complementarity (Goldman and
Tucker): of each pair exactly one side is zero. So "some" holds if no strictly complementary optimum breaks the
property, and is refuted by a market whose optima all do. Assumptions on speedups, beside being positive:

* ``normalised``: all users have speedup 1 on the first type (OEF Sec. 2.3);
* ``rising``: each user's speedups rise strictly with the type;
* ``ordered``: from each type to the next every user gains by a larger factor than the user before it;
* ``tied``: by a factor that is no smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product

import numpy as np
import z3

from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF
from fairopt.policy import Formulated
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.bounded import policies
from fairopt.proofs.bounded.decisions import Negation, Refutation
from fairopt.proofs.bounded.exact import (
    ExactOptima,
    Place,
    float_shares,
    improving_cycle,
)
from fairopt.proofs.bounded.solver import Disjunction, Question
from fairopt.proofs.bounded.symbolic import SymbolicMarket, SymbolicOptimum
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency
from fairopt.properties import AdjacentTypes, EnvyFreeness, ParetoEfficiency
from fairopt.properties.property import AllocationProperty
from fairopt.properties.verdict import Answer

#: A symbolic policy and the policy of fairopt that confirms what is found with it.
Mode = tuple[Callable[..., SymbolicOptimum], Formulated]
COOPERATIVE: Mode = (policies.cooperative, CooperativeOEF())
NONCOOPERATIVE: Mode = (policies.noncooperative, NonCooperativeOEF())
MAX_MIN: Mode = (policies.max_min, MaxMin())
MAX_EFFICIENCY: Mode = (policies.max_efficiency, MaxEfficiency())
SHARING_INCENTIVE: Mode = (policies.sharing_incentive, SharingIncentiveEfficiency())


def market_of(n: int, k: int, assumptions: str) -> tuple[SymbolicMarket, list[z3.BoolRef]]:
    """Return a symbolic market and the constraints of its assumptions, named by words."""
    words = set(assumptions.split())
    assert words <= {"normalised", "rising", "ordered", "tied"}, assumptions
    market = SymbolicMarket(n, k, normalised="normalised" in words)
    domain = market.rising(strictly=True) if "rising" in words else []
    if words & {"ordered", "tied"}:
        domain += market.ordered_by_ratios(strictly="ordered" in words)
    return market, domain


def _words(assumptions: str) -> tuple[str, ...]:
    return tuple(assumptions.split())


def pareto_efficiency(mode: Mode, n: int, k: int, assumptions: str = "", *, every: bool = True) -> Negation:
    """OEF Theorem 5.3: an optimum on which nobody can gain without somebody losing, among all feasible allocations.

    Where everybody runs everywhere and everything is given out, an allocation fails exactly if there is a cycle of
    users, each of whom holds a type that the one before it wants, and gains multiply to more than 1 (a negative cycle
    among the logarithms of the prices that would support it). Users can be renamed, so that they are the first r.
    """
    market, domain = market_of(n, k, assumptions)
    optimum = mode[0](market)
    cycles = list(_cycles(n, k, assumptions))
    questions = []
    for cycle in cycles:
        kept = z3.Product([market.ratio[u][j] for u, j in cycle])
        passed = z3.Product([market.ratio[u][cycle[(i + 1) % len(cycle)][1]] for i, (u, _) in enumerate(cycle)])
        trade = (*optimum.positive(*cycle), passed > kept)
        inside = () if every else optimum.strict
        questions.append(Question((*domain, *optimum.constraints, *trade, *inside), tuple(optimum.cases)))

    def suspect(numbers: Market) -> bool:
        held = float_shares(mode[1], numbers) > 1e-6
        speed = np.log(numbers.speedup.astype(float))
        trades = ([(users[u], j) for u, j in cycle] for users in permutations(range(n)) for cycle in cycles)
        return any(
            all(held[place] for place in trade)
            and sum(speed[u, trade[i - 1][1]] - speed[u, j] for i, (u, j) in enumerate(trade)) > 1e-6
            for trade in trades
        )

    def confirm(numbers: Market) -> Refutation | None:
        optima = ExactOptima(mode[1], numbers)
        if not every and not optima.same_throughputs:
            return None
        for users in permutations(range(n)):
            for cycle in cycles:
                named = [(users[u], j) for u, j in cycle]
                if improving_cycle(numbers, named) and (shares := optima.having(named)) is not None:
                    return _failing(ParetoEfficiency(), numbers, shares)
        return None

    return Negation(
        (market,),
        tuple(domain),
        tuple(questions),
        confirm,
        _fails(ParetoEfficiency(), mode),
        tuple(assumptions.split()),
    )


def _cycles(n: int, k: int, assumptions: str) -> Iterator[tuple[Place, ...]]:
    """Yield a cycle of (user, type that it holds) for each that differs by more than names and where it starts.

    Without assumptions types can be renamed, and all but the first where speedups are normalised.
    """
    for r in range(2, min(n, k) + 1):
        if "rising" in assumptions:
            chosen = [types for types in permutations(range(k), r) if types[0] == min(types)]
        else:
            first = range(r), range(1, r + 1)
            chosen = [tuple(types) for types in first[: 2 if assumptions and k > r else 1]]
        yield from (tuple(enumerate(types)) for types in chosen)


def pareto_with_zeros(mode: Mode, n: int, k: int) -> Iterator[Negation]:
    """OEF Theorem 5.3 where users cannot run everywhere: a search for each pattern of zeros; dominance is direct."""

    def confirm(numbers: Market) -> Refutation | None:
        optima = ExactOptima(mode[1], numbers)
        return _failing(ParetoEfficiency(), numbers, optima.shares) if optima.same_throughputs else None

    places = list(product(range(n), range(k)))
    for count in range(1, n * k):
        for stopped in map(set, combinations(places, count)):
            users = [{(u, j) for j in range(k)} for u in range(n)]
            types = [{(u, j) for u in range(n)} for j in range(k)]
            if any(line <= stopped for line in (*users, *types)):
                continue  # a user that cannot run at all, or a type that nobody can use: a smaller market
            market = SymbolicMarket(n, k, stopped=frozenset(stopped))
            optimum = mode[0](market)
            question = Question((*optimum.constraints, *_dominated(market, optimum)), tuple(optimum.cases))
            yield Negation((market,), (), (question,), confirm, _fails(ParetoEfficiency(), mode))


def _dominated(market: SymbolicMarket, optimum: SymbolicOptimum) -> list[z3.BoolRef]:
    """Return that other shares fit and give everybody as much and somebody more."""
    n, k = market.n, market.k
    better = [[z3.Real(f"better_{u}{j}") for j in range(k)] for u in range(n)]
    fits = [share >= 0 for row in better for share in row]
    fits += [z3.Sum([row[j] for row in better]) <= 1 for j in range(k)]
    before = [policies.throughput(market, u, optimum.share[u]) for u in range(n)]
    after = [policies.throughput(market, u, better[u]) for u in range(n)]
    pairs = list(zip(before, after, strict=True))
    return [*fits, *(a >= b for b, a in pairs), z3.Or(*(a > b for b, a in pairs))]


def envy_freeness(mode: Mode, n: int, k: int) -> Negation:
    """An optimum in which user 0 (users can be renamed) would rather have user 1's shares."""
    market = SymbolicMarket(n, k)
    optimum = mode[0](market)
    own, others = (policies.throughput(market, 0, optimum.share[i]) for i in (0, 1))
    question = Question((*optimum.constraints, own < others), tuple(optimum.cases))

    def confirm(numbers: Market) -> Refutation | None:
        shares = ExactOptima(mode[1], numbers).shares
        return _failing(EnvyFreeness(), numbers, shares)

    return Negation((market,), (), (question,), confirm, _fails(EnvyFreeness(), mode))


def adjacent_types(mode: Mode, n: int, k: int, assumptions: str = "", *, every: bool = True) -> Negation:
    """OEF Theorem 5.2: no user holds types a and c of an optimum and nothing of a type b between them."""
    market, domain = market_of(n, k, assumptions)
    optimum = mode[0](market)
    alike = not {"ordered", "tied"} & set(assumptions.split())  # then users can be renamed
    gaps = [(u, *types) for u in range(1 if alike else n) for types in combinations(range(k), 3)]
    inside = () if every else optimum.strict
    questions = []
    for u, a, b, c in gaps:
        gap = (*optimum.positive((u, a), (u, c)), optimum.share[u][b] == 0)
        # follows, since everything is given out; said first, so that this is where a hard query is split
        holder = Disjunction(tuple(tuple(optimum.positive((other, b))) for other in range(n) if other != u))
        questions.append(Question((*domain, *optimum.constraints, *gap, *inside), (holder, *optimum.cases)))

    def confirm(numbers: Market) -> Refutation | None:
        optima = ExactOptima(mode[1], numbers)
        if not every and optima.without_gaps() is not None:
            return None
        for u, (a, b, c) in product(range(n), combinations(range(k), 3)):
            shares = optima.having([(u, a), (u, c)], [(u, b)])
            if shares is not None:
                return _failing(AdjacentTypes(), numbers, shares)
        return None

    return Negation(
        (market,), tuple(domain), tuple(questions), confirm, _fails(AdjacentTypes(), mode), tuple(assumptions.split())
    )


def strategy_proofness(
    mode: Mode, n: int, k: int, kind: str, *, normalised: bool, exact_fallback: bool = False
) -> Negation:
    """OEF Theorem 5.4, 3.2, 3.3: user 0 gains by a report that is "larger" or "smaller" in every entry, or "any".

    The claim refuted is that no optimum for the report gives more than an optimum for the truth; ``exact_fallback``
    asks for a market on which every optimum for the report gives more than any for the truth, whichever a mechanism
    takes.
    """
    market = SymbolicMarket(n, k, normalised=normalised)
    told = market.misreport(kind, normalised=normalised)
    truth, lie = mode[0](market), mode[0](told, "_lie")
    gain = policies.throughput(market, 0, lie.share[0]) > policies.throughput(market, 0, truth.share[0])
    question = Question((*truth.constraints, *lie.constraints, gain), (*truth.cases, *lie.cases))

    def confirm(numbers: Market, reported: Market) -> Refutation | None:
        before = ExactOptima(mode[1], numbers).throughput(0)
        after = ExactOptima(mode[1], reported).throughput(0, numbers.speedup[0])
        if not (after[0] > before[1] if exact_fallback else after[1] > before[0]):
            return None
        report = ", ".join(map(str, reported.speedup[0]))
        gets = f"{after[0] if exact_fallback else after[1]} instead of {before[1] if exact_fallback else before[0]}"
        return Refutation(numbers, f"{numbers.users[0]} reports ({report}) and gets {gets}")

    def suspect(numbers: Market, reported: Market) -> bool:
        shares = [float_shares(mode[1], each)[0] for each in (numbers, reported)]
        before, after = (float((row * numbers.speedup[0].astype(float)).sum()) for row in shares)
        return after > before + 1e-6

    return Negation((market, told), (), (question,), confirm, suspect, ("normalised",) if normalised else ())


def lemma_3_1(mode: Mode, n: int, k: int, order: str) -> Negation:
    """OEF Lemma 3.1: user 0 holds a type only if it holds all of every type to the left of it, in every optimum.

    Speedups are normalised and rise strictly, as the proof says. What makes user 0 "the user with the slowest speedup":
    "entries": it has the least speedup on every type, strictly after the first (the proof's reading);
    "ratios": from each type to the next it gains by the smallest factor, strictly.
    """
    market, domain = market_of(n, k, "normalised rising")
    s = market.ratio
    for u in range(1, n):
        if order == "entries":
            domain += [s[0][j] < s[u][j] for j in range(1, k)]
        else:
            domain += [s[0][j + 1] * s[u][j] < s[u][j + 1] * s[0][j] for j in range(k - 1)]
    optimum = mode[0](market)
    questions = tuple(
        Question(
            (*domain, *optimum.constraints, optimum.share[0][right] > 0, optimum.share[0][left] < 1),
            tuple(optimum.cases),
        )
        for left, right in combinations(range(k), 2)
    )

    def confirm(numbers: Market) -> Refutation | None:
        optima = ExactOptima(mode[1], numbers)
        for left, right in combinations(range(k), 2):
            for other in range(1, n):
                shares = optima.having([(0, right), (other, left)])
                if shares is not None:
                    return Refutation(numbers, f"{numbers.users[0]} holds {_row(shares[0])}; {_all(shares)}")
        return None

    def suspect(numbers: Market) -> bool:
        row = float_shares(mode[1], numbers)[0]
        return any(row[right] > 1e-6 and row[left] < 1 - 1e-6 for left, right in combinations(range(k), 2))

    return Negation((market,), tuple(domain), questions, confirm, suspect, ("normalised", "rising"))


def nonzeros(mode: Mode, n: int, k: int, assumptions: str = "") -> Negation:
    """OEF Sec. 4.4: an optimum that is an extreme point has at most n + k - 1 shares that are not zero.

    A set of places is the support of an extreme point of Eq. (10) exactly if as many envy rows are tight as capacities
    leave directions on it, and no direction keeps them all: their determinant is not zero.
    """
    market, domain = market_of(n, k, assumptions)
    optimum = mode[0](market)
    places = list(product(range(n), range(k)))
    pairs = list(permutations(range(n), 2))
    questions = []
    for size in range(n + k, n * k + 1):
        for support in combinations(places, size):
            if size - k > len(pairs) or len({j for _, j in support}) < k:
                continue
            ways = tuple(_independent(market, optimum, support, rows) for rows in combinations(pairs, size - k))
            zero = [optimum.share[u][j] == 0 for u, j in places if (u, j) not in support]
            questions.append(
                Question(
                    (*domain, *optimum.constraints, *optimum.positive(*support), *zero),
                    (Disjunction(ways), *optimum.cases),
                )
            )

    def confirm(numbers: Market) -> Refutation | None:
        optima = ExactOptima(mode[1], numbers)
        vertex = optima.shares
        for weight in (0, 1, -1):  # vertices of the set of optima are extreme points of all allocations
            at = optima.most(weight * numbers.speedup * (1 + (vertex > 0)))
            if (
                at is not None
                and (at > 0).sum() > n + k - 1
                and is_extreme(mode[1].formulate(numbers, None), at.ravel())
            ):
                return Refutation(numbers, f"{(at > 0).sum()} shares are not zero in {_all(at)}")
        return None

    def suspect(numbers: Market) -> bool:
        return bool((float_shares(mode[1], numbers) > 1e-6).sum() > n + k - 1)

    return Negation((market,), tuple(domain), tuple(questions), confirm, suspect, _words(assumptions))


def _independent(
    market: SymbolicMarket, optimum: SymbolicOptimum, support: tuple[Place, ...], rows: tuple[tuple[int, int], ...]
) -> tuple[z3.BoolRef, ...]:
    """Return that these envy rows are tight and that no change of the support within capacities keeps them all."""
    directions = []  # from the first holder of each type to another
    for j in range(market.k):
        holders = [u for u, held in support if held == j]
        directions += [(holders[0], u, j) for u in holders[1:]]
    matrix = []
    for u, i in rows:
        row = []
        for giver, taker, j in directions:
            sign = (taker == u) - (giver == u) - (taker == i) + (giver == i)
            row.append(sign * market.ratio[u][j])
        matrix.append(row)
    tight = [
        policies.throughput(market, u, optimum.share[u]) == policies.throughput(market, u, optimum.share[i])
        for u, i in rows
    ]
    return (*tight, _determinant(matrix) != 0)


def _fails(judge: AllocationProperty, mode: Mode) -> Callable[[Market], bool]:
    def suspect(numbers: Market) -> bool:
        return judge.check(numbers.as_(float), float_shares(mode[1], numbers)).answer is Answer.FAILS

    return suspect


def _failing(judge: AllocationProperty, numbers: Market, shares: Array) -> Refutation | None:
    """Return what fairopt finds wrong with the shares, by its exact check."""
    verdict = judge.check(numbers, shares)
    if verdict.answer is not Answer.FAILS or not verdict.exact:
        return None
    return Refutation(numbers, f"{verdict.witness}; {_all(shares)}")


def _row(shares: Array) -> str:
    return f"({', '.join(map(str, shares))})"


def _all(shares: Array) -> str:
    return f"x = {', '.join(map(_row, shares))}"


def _determinant(matrix: list[list[z3.ArithRef]]) -> z3.ArithRef:
    if not matrix:
        return z3.RealVal(1)
    rest = matrix[1:]
    parts = [
        (-1) ** j * entry * _determinant([row[:j] + row[j + 1 :] for row in rest])
        for j, entry in enumerate(matrix[0])
        if not z3.is_true(z3.simplify(entry == 0))
    ]
    return z3.Sum(parts) if parts else z3.RealVal(0)
