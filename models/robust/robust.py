"""Robust policies: what they promise holds at all speedups in the ranges that a market states."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.oef.above_guarantees import AboveGuarantees
from fairopt.numbers import in_pieces
from fairopt.policy import Claim, Example, Formulated, Trait
from fairopt.problem import Market
from fairopt.problem.floors import CAPS_ONLY, FLOORS_AND_CAPS
from fairopt.problem.ranges import in_use, with_error
from fairopt.problem.share_variables import shares_of
from fairopt.program import INFINITY, Affine, Array, Formulation, Program

#: Two users whose speedups were measured within 10%.
MEASURED = with_error(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), "10%")
PRIMAL = "Ben-Tal and Nemirovski 1999, Sec. 2 (box uncertainty)"


class _InRanges(Formulated):
    """A program whose rows hold for all speedups in the ranges; without ranges it is the ordinary policy's."""

    def asked_of(self, problem: Any) -> bool:
        """Whether it is compared where nobody names it: where there are ranges."""
        return not (isinstance(problem, Market) and problem.known.all())


class RobustCooperativeOEF(_InRanges):
    """Maximise the total throughput at the worst, among allocations without envy at any speedups in the ranges.

    A row of Eq. (10c) is linear in the envious user's own speedups, so that its worst over a range is a linear program:
    ``least (x_l - x_i) - (most - least) s_li >= 0`` with ``s_li >= x_i - x_l`` and ``s_li >= 0``. The equal split is
    always allowed. The worst total is at the least speedups. On a market without ranges it is cooperative OEF. The
    program has n^2 k rows.

    Source: OEF Eq. (10), at the worst of a range as in Ben-Tal and Nemirovski 1999.

    >>> from fairopt import allocate
    >>> print(*allocate("oef-cooperative-robust", MEASURED, exact=True).shares[0])
    1 13/44
    """

    name = "oef-cooperative-robust"
    source = "OEF, Middleware 2024, Eq. (10), at the worst of a range"
    supports = CAPS_ONLY
    traits = frozenset({Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (
        Claim("envy_freeness", "the rows of Eq. (10c) hold for all speedups in the ranges"),
        Claim("sharing_incentive", "nobody envies the average of all shares", assumes="no demands"),
    )
    examples = (Example("cooperative OEF within 10%", MEASURED, shares=[[1, "13/44"], [0, "31/44"]]),)

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return Eq. (10) with every row at its worst."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        least, most = problem.ends
        p.maximize((least * share).sum(), equation="sum_lj w_lj x_lj at the least w", source="OEF Eq. (10a)")
        pairs = np.argwhere(~np.eye(len(problem.users), dtype=bool))
        if not len(pairs):
            return p.program()
        envious, envied = pairs.T
        scale = in_pieces(np.divide, problem.weight[envious], problem.weight[envied])
        more = AboveGuarantees.of(problem).worth > 0
        better = (share[envious] - share[envied] * scale[:, None]) * more[envious]
        p.constrain(
            "envy_free",
            at_worst(p, better, least[envious], most[envious]) >= 0,
            equation="sum_j w_lj (x_lj - pi_l/pi_i x_ij) >= 0 for all w",
            source=f"OEF Eq. (10c), Sec. 4.2.3; {PRIMAL}",
            labels=(tuple(f"{problem.users[l]} of {problem.users[i]}" for l, i in pairs.tolist()),),  # noqa: E741
        )
        return p.program()


class RobustMaxMin(_InRanges):
    """Maximise the least ratio of a user's throughput to that of its equal share, at any speedups in the ranges.

    The ratio is at least t where ``w_l (x_l - t e_l) >= 0`` for all w_l in the range, e_l being the equal share: linear
    in x and t. It is at least 1, since the equal split is allowed. On a market without ranges it is max-min. What a
    user within a demand would use of its equal share must not depend on its speedups; `NotCapable` where it does.

    Source: Gavel, OSDI 2020, Sec. 4.1, at the worst of a range as in Ben-Tal and Nemirovski 1999.

    >>> from fairopt import allocate
    >>> print(allocate("max-min-robust", MEASURED, exact=True).objective)
    2790/2627
    """

    name = "max-min-robust"
    source = "Gavel, OSDI 2020, Sec. 4.1, at the worst of a range"
    supports = FLOORS_AND_CAPS
    traits = frozenset({Trait.UNIT_FREE, Trait.COPIES, Trait.PROGRAM, Trait.EXACT})
    claims = (Claim("sharing_incentive", "the equal split has ratio 1 at all speedups"),)

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the max-min program with every ratio at its worst."""
        p = Formulation(self.name)
        share = shares_of(p, problem)
        ratio = p.variable("least_ratio")
        p.maximize(ratio, equation="min_lw E_l / E_l(equal)", source="Gavel Sec. 4.1")
        bundles = [in_use(problem, i, row) for i, row in enumerate(problem.equal_split())]
        if unsure := [name for name, each in zip(problem.users, bundles, strict=True) if each is None]:
            raise NotCapable(f"which GPUs {unsure[0]} would use of its equal share depends on its speedups")
        more = share - ratio.reshape(1, 1).broadcast_to(problem.shape) * np.array(bundles)
        p.constrain(
            "least_ratio",
            at_worst(p, more, *problem.ends) >= 0,
            equation="sum_j w_lj (x_lj - t e_lj) >= 0 for all w",
            source=f"Gavel Sec. 4.1; {PRIMAL}",
            labels=(problem.users,),
        )
        return p.program()


def at_worst(p: Formulation, bundle: Affine, least: Array, most: Array) -> Affine:
    """Return a lower bound (m,) on the worth of ``bundle`` (m, k) at all speedups from ``least`` to ``most`` (m, k).

    The largest that ``p`` allows is the least worth: what is negative in the bundle counts at the most. Adds a variable
    ``short`` for each range, and its row.
    """
    where = np.argwhere(least < most)
    worth = (bundle * least).sum(axis=1)
    if not len(where):
        return worth
    row, column = where.T
    unlimited = most[row, column] == INFINITY
    short = p.variable("short", (len(where),), lower=0, upper=np.where(unlimited, 0, INFINITY))
    p.constrain("short", short + bundle[row, column] >= 0, equation="s >= - bundle", source=PRIMAL)
    width = np.where(unlimited, least[row, column], most[row, column]) - least[row, column]
    # a row of the bundle has one term for each type, 0 where the speedup is known
    place = np.zeros(least.shape, dtype=np.int64)
    place[row, column] = np.arange(len(where))
    ranged = least < most
    factor = np.where(ranged, width[place], 0)
    return worth - (short[place] * factor).sum(axis=1)
