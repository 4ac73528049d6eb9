"""The policies of the papers over symbolic markets, each as the linear program that the paper prints."""

from __future__ import annotations

from itertools import permutations

import z3

from fairopt.proofs.bounded.solver import Term
from fairopt.proofs.bounded.symbolic import ONE, ZERO, Linear, LinearProgram, SymbolicMarket, SymbolicOptimum


def cooperative(market: SymbolicMarket, tag: str = "") -> SymbolicOptimum:
    """Return an optimum of OEF Eq. (10): the largest total throughput among allocations that nobody envies."""
    program = _sharing(market, tag)
    program.cost = {_name(u, j): market.speedup(u, j) for u, j in market.places()}
    for u, other in permutations(range(market.n), 2):
        program.at_most.append(({**_throughput(market, u, other), **_throughput(market, u, u, -ONE)}, ZERO))
    return _optimum(market, program)


def sharing_incentive(market: SymbolicMarket, tag: str = "") -> SymbolicOptimum:
    """Return an optimum of the largest total throughput where each user has at least 1/n of what all GPUs give it."""
    program = _sharing(market, tag)
    program.cost = {_name(u, j): market.speedup(u, j) for u, j in market.places()}
    for u in range(market.n):
        program.at_most.append((_throughput(market, u, u, -ONE), -z3.Sum(market.ratio[u]) / market.n))
    return _optimum(market, program)


def max_efficiency(market: SymbolicMarket, tag: str = "") -> SymbolicOptimum:
    """Return an optimum of OEF Eq. (4): the largest total throughput."""
    program = _sharing(market, tag)
    program.cost = {_name(u, j): market.speedup(u, j) for u, j in market.places()}
    return _optimum(market, program)


def noncooperative(market: SymbolicMarket, tag: str = "") -> SymbolicOptimum:
    """Return an optimum of OEF Eq. (9): the largest throughput that all have alike."""
    program = _sharing(market, tag)
    program.free, program.cost = ["level"], {"level": ONE}
    for u in range(market.n):
        row = {_name(u, j): market.speedup(u, j) for j in _runs(market, u)}
        program.equal.append(({**row, "level": -ONE}, ZERO))
    return _optimum(market, program)


def max_min(market: SymbolicMarket, tag: str = "") -> SymbolicOptimum:
    """Return an optimum of Gavel's max-min: the largest least ratio to the throughput on the own partition.

    Each user's unit is its throughput on all GPUs, which the ratio makes free to choose.
    """
    program = _sharing(market, tag)
    program.free, program.cost = ["level"], {"level": ONE}
    for u in range(market.n):
        row = _throughput(market, u, u, -ONE)
        program.at_most.append(({**row, "level": z3.Sum(market.ratio[u])}, ZERO))
    return _optimum(market, program)


def throughput(market: SymbolicMarket, u: int, shares: list[Term]) -> Term:
    """Return what user u gets out of ``shares``, in units of its throughput on the first type."""
    return z3.Sum([market.ratio[u][j] * shares[j] for j in range(market.k)])


def _sharing(market: SymbolicMarket, tag: str) -> LinearProgram:
    """Return the shares and capacities that all policies have in common.

    Where everybody runs everywhere an optimum gives every GPU out, so that capacities are equations: what is left of a
    type could be divided among all, so that nobody's envy, equality or least ratio is hurt, and the objective rises
    (cooperative: in equal parts; otherwise: in inverse proportion to the speedups on it).
    """
    program = LinearProgram(tag)
    program.nonnegative = [_name(u, j) for u, j in market.places()]
    for j in range(market.k):
        row: Linear = {_name(u, j): ONE for u in range(market.n) if (u, j) not in market.stopped}
        (program.at_most if market.stopped else program.equal).append((row, ONE))
    return program


def _optimum(market: SymbolicMarket, program: LinearProgram) -> SymbolicOptimum:
    constraints, cases, strict = program.optimal()
    share = [
        [ZERO if (u, j) in market.stopped else program.term(_name(u, j)) for j in range(market.k)]
        for u in range(market.n)
    ]
    reduced = {(u, j): program.reduced(_name(u, j)) for u, j in market.places()}
    return SymbolicOptimum(share, [*market.constraints, *constraints], cases, strict, reduced)


def _throughput(market: SymbolicMarket, u: int, of: int, factor: Term = ONE) -> dict[str, Term]:
    return {_name(of, j): factor * market.ratio[u][j] for j in range(market.k) if (of, j) not in market.stopped}


def _runs(market: SymbolicMarket, u: int) -> list[int]:
    return [j for j in range(market.k) if (u, j) not in market.stopped]


def _name(u: int, j: int) -> str:
    return f"x_{u}{j}"
