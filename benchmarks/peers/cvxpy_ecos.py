"""CVXPY with ECOS: as the OEF paper describes its implementation, and with whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fairopt.benchmarks.peers import cvxpy_programs
from fairopt.benchmarks.peers.cvxpy_programs import CONIC, CvxpyPeer, Written
from fairopt.benchmarks.peers.plain import SharedGpus


@dataclass(frozen=True)
class CvxpyEcos(CvxpyPeer):
    """ECOS at its own tolerances, 1e-8. It knows neither a time limit nor threads: it runs on one.

    For cooperative OEF it gets each user's throughput as a variable: at 100 users x 10 types that took it 4.0 s instead
    of 9.5 s on mixed markets and 7.7 s instead of 6.9 s on growing ones. Clarabel was slower with it on both.
    """

    name = "cvxpy-ecos"
    tasks = tuple(CONIC)
    libraries: ClassVar[Sequence[str]] = ("cvxpy", "ecos")
    modules: ClassVar[Sequence[str]] = ("cvxpy", "ecos")
    solver = "ECOS"
    programs: ClassVar[Mapping[str, Callable[[SharedGpus], Written]]] = {
        **CONIC,
        "oef-cooperative": partial(cvxpy_programs.oef_cooperative, own_variable=True),
    }


def _sharing(market: SharedGpus) -> tuple[Any, list[Any]]:
    """Return the shares, and the constraints that hold whatever is fair, one by one."""
    import cvxpy

    n, k = market.shape
    share = cvxpy.Variable((n, k))
    kept = [share >= 0]
    for j in range(k):
        kept.append(cvxpy.sum(share[:, j]) <= market.capacity[j])
    for i in range(n):
        for j in range(k):
            if market.speedup[i, j] == 0:
                kept.append(share[i, j] == 0)
    for i in market.limited.tolist():
        kept.append(cvxpy.sum(share[i]) <= market.limit[i])
    return share, kept


def _total(market: SharedGpus, share: Any) -> Any:
    import cvxpy

    return cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(market.speedup, share)))


def oef_noncooperative(market: SharedGpus) -> Written:
    """Return Eq. (9), one equation for each user and the one before it, instead of one a pair."""
    import cvxpy

    share, kept = _sharing(market)
    for i in range(1, market.shape[0]):
        mine, other = market.speedup[i] @ share[i], market.speedup[i - 1] @ share[i - 1]
        kept.append(mine / market.weight[i] == other / market.weight[i - 1])
    return Written(cvxpy.Problem(_total(market, share), kept), share)


def oef_cooperative(market: SharedGpus) -> Written:
    """Return Eq. (10), one inequality a pair."""
    import cvxpy

    share, kept = _sharing(market)
    n, _ = market.shape
    for i in range(n):
        for other in range(n):
            if i != other:
                claim = market.weight[i] / market.weight[other]
                kept.append(market.speedup[i] @ share[i] >= claim * (market.speedup[i] @ share[other]))
    return Written(cvxpy.Problem(_total(market, share), kept), share)


def max_min(market: SharedGpus) -> Written:
    """Return Gavel's program, one inequality a user."""
    import cvxpy

    share, kept = _sharing(market)
    least = cvxpy.Variable()
    for i in range(market.shape[0]):
        kept.append(market.speedup[i] @ share[i] / market.fair[i] >= least)
    return Written(cvxpy.Problem(cvxpy.Maximize(least), kept), share)


#: The programs that OEF's paper compares, constraint by constraint.
ONE_BY_ONE: Mapping[str, Callable[[SharedGpus], Written]] = {
    "max-min": max_min,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
}


@dataclass(frozen=True)
class OefPaper(CvxpyEcos):
    """The programs as OEF's paper describes its implementation: a variable for the allocation, a list of constraints.

    The paper shows no code. Constraints are appended in loops over users and pairs, as Eq. (9) and (10) read.

    Source: OEF, Sec. 4.5 ("Fair share evaluation": cvxpy, resource allocation as a variable, fairness constraints
    articulated as constraints, ECOS).
    """

    name = "oef-paper"
    tasks = tuple(ONE_BY_ONE)
    programs: ClassVar[Mapping[str, Callable[[SharedGpus], Written]]] = ONE_BY_ONE
