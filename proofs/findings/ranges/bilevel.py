"""What a user truly gets at worst under cooperative OEF, over all reports within an error: branch and bound, exact.

Speedups are measured by the slowest type, so that those of the other types err. A cell is a range of reports. No
optimum for any report in it gives the user less than the linear program of `at_least`: for reports r between l and u it
is free of envy, so that ``u_i x_i >= r_i x_i >= r_i x_j >= l_i x_j``, and its total ``u x >= r x`` is at least that of
the robust allocation of the cell, which is free of envy for r. The exact decision at the middle of a cell bounds the
worst from above. Cells are halved until the two bounds meet.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.datasets import oef_example
from fairopt.ledger import Finding, Ruling
from fairopt.models import CooperativeOEF
from fairopt.policy import Optima, exactly
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Sense
from fairopt.proofs.ledger.checking import require

#: The two bounds on the part of an equal share meet within this.
GAP = Fraction(1, 100)


class Bounds(NamedTuple):
    """What a user gets at worst is at least ``least`` and at most ``most``, after so many ``cells``."""

    least: Fraction
    most: Fraction
    cells: int


def worst(market: Market, user: int, error: Fraction, gap: Fraction = GAP) -> Bounds:
    """Bound the least that ``user`` truly gets, as a part of its equal share, over all reports within ``error``."""
    fair = Fraction(market.fair_utility()[user])
    off = market.speedup * error
    off[:, 0] = Fraction(0)
    order, best = count(), at_most(market, user, market.speedup)
    cells = [(at_least(market, user, market.speedup - off, market.speedup + off), 0, market.speedup - off, 2 * off)]
    while best - cells[0][0] > gap * fair:
        _, _, least, width = heapq.heappop(cells)
        relative = width / market.speedup
        at = np.unravel_index(int(np.argmax(relative)), width.shape)
        half = width.copy()
        half[at] = width[at] / 2
        upper = least.copy()
        upper[at] += half[at]
        for start in (least, upper):
            best = min(best, at_most(market, user, start + half / 2))
            heapq.heappush(cells, (at_least(market, user, start, start + half), next(order) + 1, start, half))
    return Bounds(cells[0][0] / fair, best / fair, next(order))


def at_least(market: Market, user: int, least: Array, most: Array) -> Fraction:
    """Return what ``user`` truly gets at least, at any optimum for any reports from ``least`` to ``most`` (n, k)."""
    told = replace(market, speedup=(least + most) / 2, least=least, most=most)
    total = allocate("oef-cooperative-robust", told, exact=True).objective
    p = Formulation("least at any optimum of a cell")
    share = shares_of(p, market)
    own = (most * share).sum(axis=1)
    p.minimize((market.speedup[user] * share[user]).sum())
    others = np.argwhere(~np.eye(len(market.users), dtype=bool))
    envious, envied = others.T
    p.constrain("envy_free", own[envious] >= (share[envied] * least[envious]).sum(axis=1))
    p.constrain("total", own.sum() >= total)
    return Fraction(p.program().value(Exact().solve(p.program()).require_optimal().point))


def at_most(market: Market, user: int, reports: Array) -> Fraction:
    """Return the least that ``user`` truly gets at any optimum for ``reports`` (n, k)."""
    decision = exactly(CooperativeOEF(), replace(market, speedup=reports))
    optima = Optima.of(CooperativeOEF(), decision)
    assert optima is not None
    weights = 0 * market.speedup
    weights[user] = market.speedup[user]
    return Fraction(optima.extreme(weights, Sense.MINIMIZE))


def cooperative() -> Finding:
    """Bound it on two users, where a closed form is known, and for the user of OEF's example who is slowed most."""
    error = Fraction(1, 20)
    for a, b in ((2, 5), (3, 7)):
        found = worst(Market.of([[1, a], [1, b]], capacity=[1, 1]), 0, error)
        known = (2 + a - 1 / (1 - error)) / (1 + a)
        require(found.least <= known <= found.most, "the closed form is between the bounds")
    market = oef_example()
    found = worst(market, 0, error)
    return Finding(
        Ruling.HOLDS_BOUNDED,
        "Cooperative OEF on OEF's example, all reports of all users on the faster type within 5%, any optimum: u1 "
        f"truly gets, at worst, between {float(found.least):.4f} and {float(found.most):.4f} of its equal share, by "
        f"branch and bound over ranges of reports, all linear programs exact ({found.cells} cells). On (1, 2), (1, 5) "
        "and (1, 3), (1, 7) the closed form (2 + a - 1/(1 - e))/(1 + a) is between the bounds.",
    )
