"""How many shares of an extreme point of Eq. (10), cooperative OEF, are not zero: of any, and of an optimal one.

For two types and an optimal extreme point at most 2 n - 1 (equal weights, positive speedups, n > 1). Suppose that all
2 n are positive. Let r_i = s_i2 / s_i1.

* All r_i are the same. Then envy-freeness says that all bundles are worth the same in the same measure: n - 1
  equations, with 2 of the capacities; so no more than n + 1 < 2 n tight rows are independent.
* They are not, and all bundles are the same. Let q lie strictly between two of them and be none, A be the users with
  r_i < q and B the others. Each of B takes a little e of the second type from A for q e of the first. Nobody comes to
  envy anybody, and everybody gains: the total was not the largest.
* They are not, and bundles differ. Each bundle is the best for some positive ratio, so that the bundles, by how much
  they have of the second type, lie on a concave frontier. Take two neighbours on it and let q be what of the first
  type is lost for a GPU of the second. A are the users at and before the one, B at and after the other, so that
  r_i <= q in A and r_i >= q in B. The same exchange makes nobody envious, harms nobody, and somebody with r_i != q
  gains.

For any number of types, where the optimum x is the only one: at most k + n (n - 1) / 2 (equal weights). Say that i
looks at j where s_i.x_i = s_i.x_j.

* Where users look at each other in a circle, each may take the bundle of the one it looks at: the bundles and all
  utilities are the same, so that this is an optimum, and all bundles in the circle are the same. So users fall into
  classes with the same bundle, and between classes all looks go from a later to an earlier one in some order.
* Take a class of r users, whose bundle has the types Q, and L, who look at it from outside. Let t_i be what is left of
  s_i on Q when it is projected on the d with s_l.d = 0 for all l in L, and u_i its direction, t_i / |t_i|, or 0. Add
  e (u_i - mean of u) to the bundle of each member: nobody outside sees a difference, t_i.u_i = |t_i| >= t_i.u_j, so
  that nobody comes to envy, and the total rises by e times the sum over i and j of (|t_i| - t_i.u_j) / r. That is 0
  at an optimum: where one t_i is not 0, all u_j are the same u.
* x is an extreme point, so that it has no more non-zeros than its tight rows have rank in their columns. Within a
  class the row of i and j is s_i.(x_i - x_j), a sum of parts of s_l.(x_i - x_j), which are differences of the rows of
  L, and of u.(x_i - x_j), which have rank r - 1. So the rank is at most k, and r - 1 for each class, and one for each
  pair of users in different classes; and r - 1 <= r (r - 1) / 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.evidence import extreme
from fairopt.models import CooperativeOEF
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Sense
from fairopt.proofs.ledger.checking import found, require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import exactly, only_optimum
from fairopt.proofs.ledger.wording import listed, rows

COOPERATIVE = CooperativeOEF()
#: Speedups with an optimal extreme point of `largest` shares; one GPU of each type.
MANY = (
    [[2, 2], [2, 1], [2, 2]],
    [[2, 2, 2], [1, 2, 2], [2, 2, 2]],
    [[1, 1, 1, 2], [2, 1, 1, 2], [2, 1, 1, 2]],
    [[1, 2], [2, 2], [3, 3], [2, 2]],
    [[3, 3, 3], [2, 2, 1], [1, 2, 1], [3, 3, 3]],
    [[3, 1, 3, 3], [3, 3, 3, 1], [4, 4, 1, 4], [1, 3, 4, 4]],
    [[8, 3, 8, 1, 5], [2, 5, 6, 2, 3], [3, 5, 3, 4, 4], [8, 3, 8, 1, 5]],
    [[5, 3, 6], [3, 2, 4], [4, 1, 5], [5, 3, 6], [5, 3, 6]],
)
#: Speedups with one optimum only, which has k + n (n - 1) / 2 shares; one GPU of each type.
SOLE = (
    [[6, 6], [1, 5], [6, 6]],
    [[4, 1, 7], [1, 1, 5], [4, 1, 7]],
    [[5, 4, 1, 3], [4, 4, 4, 7], [3, 1, 2, 4]],
    [[3, 3, 3], [2, 2, 1], [1, 2, 1], [3, 3, 3]],
    [[5, 5, 3, 5], [5, 5, 3, 5], [1, 1, 5, 4], [4, 3, 5, 2]],
)
#: Random small markets on which an optimal extreme point with more is looked for, and in how many directions.
MARKETS, TRIES = 60, 3


def largest(n: int, k: int) -> int:
    """Return the most non-zeros of an optimal extreme point, as far as we know: k + sum over i < n of min(i, k)."""
    return k + sum(min(i, k) for i in range(1, n))


def vertices() -> Finding:
    """How many non-zeros extreme points of Eq. (10) have."""
    bound, two = (theorem("Vertices", f"{each}_vertex_nonzeros") for each in ("envy_free", "two_users"))
    for n, k in ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4), (4, 3)):
        shares = _all_tight(n, k)
        require((shares > 0).sum() == min(n * k, k + n * (n - 1)), f"{n} users on {k} types: as many as rows allow")
    for table in MANY:
        n, k = len(table), len(table[0])
        require(_most(table, 60) == largest(n, k), f"{rows(table)} has an optimum with {largest(n, k)} shares")
    family = [(n, _most([[1, 1], *[[2, 3]] * (n - 1)], 1)) for n in range(3, 7)]
    require(all(most == 2 * n - 1 for n, most in family), "2 n - 1 on two types for 3 to 6 users")
    dice, above = Random(4), 0
    for _ in range(MARKETS):
        n, k, top = dice.randint(2, 4), dice.randint(2, 4), dice.randint(2, 6)
        kinds = [[dice.randint(1, top) for _ in range(k)] for _ in range(dice.randint(1, n))]
        above += _most([dice.choice(kinds) for _ in range(n)], TRIES) > largest(n, k)
    require(above == 0, "no optimal extreme point has more")
    for table in SOLE:
        require(_sole(table) == largest(len(table), len(table[0])), f"{rows(table)} has one optimum, with as many")
    sole = [_sole(table) for table in _different(20)]
    reached = listed(f"{len(table)}x{len(table[0])}: {largest(len(table), len(table[0]))}" for table in SOLE)
    sizes = listed(f"{len(table)}x{len(table[0])}: {largest(len(table), len(table[0]))}" for table in MANY)
    return Finding(
        Ruling.QUALIFIED,
        f"Any extreme point: at most k + n (n - 1) ({bound}), and n k anyway; the smaller of both is reached (2x2 to "
        "4x3: exact extreme points where every envy is tight).\nAn optimal one: two users n + k - 1, for all k "
        f"({two}); two types 2 n - 1 (proof in words: vertices.py), reached on (1, 1) and n - 1 times (2, 3), one GPU "
        "of each type, computed for 3 to 6 users.\nIn general k + the sum over i from 1 to n - 1 of min(i, k) is "
        f"reached ({sizes}; on {rows(MANY[4])}, for instance).\nWhere there is one optimum only, at most k + n (n - 1) "
        "/ 2 (proof in words: vertices.py), which is the same where n is at most k + 1, and reached "
        f"({reached}); so it is on {sum(map(bool, sole))} of {len(sole)} random markets with different users, which "
        "have one optimum.\nWhere there are several, that it is not exceeded is a conjecture: it was not on "
        f"{MARKETS} random markets of up to 4 users and types, in {TRIES} directions each.\nThe gap to what is proved: "
        "3x3 6 and 9, 4x4 10 and 16.",
    )


def _most(table: list[list[int]], tries: int) -> int:
    """Return the most non-zeros of the extreme points of the optima in so many random directions."""
    market, dice, most = Market.of(table, [1] * len(table[0])), Random(0), 0
    decision, program = exactly(COOPERATIVE, market), COOPERATIVE.formulate(market, None)
    for _ in range(tries):
        point = extreme(COOPERATIVE, decision, _direction(dice, *market.shape), Sense.MAXIMIZE).allocation
        count = int((point > 0).sum())
        if count > most and is_extreme(program, point.ravel()):
            most = count
        if most >= largest(*market.shape):
            break
    return most


def _sole(table: list[list[int]]) -> int:
    """Return how many shares the only optimum has, no more than is proved; 0 where there are several optima."""
    decision = exactly(COOPERATIVE, Market.of(table, [1] * len(table[0])))
    if not only_optimum(COOPERATIVE, decision):
        return 0
    n, k = decision.shares.shape
    count = int((decision.shares > 0).sum())
    require(count <= k + n * (n - 1) // 2, f"{rows(table)}: the only optimum has no more than is proved")
    return count


def _different(count: int) -> Iterator[list[list[int]]]:
    """Yield random speedups of two to four users on as many types."""
    dice = Random(9)
    for _ in range(count):
        n, k = dice.randint(2, 4), dice.randint(2, 4)
        yield [[dice.randint(1, 9) for _ in range(k)] for _ in range(n)]


def _all_tight(n: int, k: int) -> Array:
    """Return an extreme point of Eq. (10) at which nobody prefers any bundle to another, on random speedups."""
    dice = Random(7)
    market = Market.of([[dice.randint(1, 99) for _ in range(k)] for _ in range(n)], [1] * k)
    p = Formulation("every envy tight")
    share = shares_of(p, market)
    p.maximize((_direction(dice, n, k) * share).sum())
    for i in range(n):
        own = (market.speedup[i] * share[i]).sum()
        for other in range(n):
            if other != i:
                p.constrain(f"tight_{i}_{other}", own == (market.speedup[i] * share[other]).sum())
    p.constrain("full", share.sum(axis=0) == market.capacity)
    x = found(Exact().solve(p.program()).require_optimal().x, "such a point")
    require(is_extreme(COOPERATIVE.formulate(market, None), x), "it is an extreme point of Eq. (10)")
    return x.reshape(n, k)


def _direction(dice: Random, n: int, k: int) -> Array:
    return np.array([[Fraction(dice.randint(-99, 99)) for _ in range(k)] for _ in range(n)], dtype=object)
