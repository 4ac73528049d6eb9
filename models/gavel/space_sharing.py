"""Gavel with space sharing: max-min over time fractions in which a GPU holds one job, or two that share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.backends.solution import Solution, not_negative
from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.problem.numbers import amount
from fairopt.program import INFINITY, Array, Formulation, Program, cast, objects


@dataclass(frozen=True, eq=False)
class Pairs:
    """The p pairs of jobs that may share GPUs of a market of n jobs on k types; make them with `Pairs.of`.

    ``jobs`` (p, 2): their rows. ``speed`` (p, k, 2): throughput of each on one GPU that it shares with the other.
    """

    jobs: Array
    speed: Array

    @classmethod
    def of(cls, market: Market, speeds: Mapping[tuple[str, str], Sequence[Sequence[object]]]) -> Pairs:
        """Return the pairs of ``speeds``: by names of two jobs, (k, 2) throughputs on one GPU of each type.

        Errors: `BadInput` for unknown jobs, a job with itself, a wrong shape, a negative speed, or gangs of two sizes.
        """
        rows, speed = [], []
        for names, table in speeds.items():
            place = f"pair {names!r:.80}"
            if len(set(names) & set(market.users)) != 2:
                raise BadInput("it is not two jobs of the market", place=place, remedy="Give the names of two users")
            shape = [len(of_type) for of_type in table]
            if shape != [2] * len(market.types):
                remedy = f"Give two numbers for each of {', '.join(market.types)}"
                raise BadInput(f"it has {shape} speeds by type", place=place, remedy=remedy)
            rows.append([market.users.index(name) for name in names])
            speed += [amount(value, place) for of_type in table for value in of_type]
            first, second = market.limit[rows[-1]]
            if first != second:  # the source shares GPUs between gangs of one size only
                remedy = "Pair gangs of the same size"
                raise BadInput(f"its gangs have {first} and {second} GPUs", place=place, remedy=remedy)
        jobs = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return cls(jobs, objects(speed).reshape(-1, len(market.types), 2))

    def __len__(self) -> int:
        return len(self.jobs)


def space_sharing_program(market: Market, pairs: Pairs) -> Program:
    """Return the max-min program with pairs; a job's ``demand`` is the size of its gang.

    GPUs of a type go to jobs and to pairs, and a job is in one place at a time. A job's throughput is the sum over what
    it is part of, relative to that of its equal share alone.

    Source: Gavel, OSDI 2020, Sec. 3.1 (space sharing: rows of T and X for pairs), Sec. 4.1; max_min_fairness.py,
    `MaxMinFairnessPolicyWithPacking`.
    """
    p = Formulation("gavel, max-min with space sharing")
    alone = p.variable("share", market.shape, lower=0, upper=np.where(market.speedup > 0, INFINITY, 0))
    runs = (pairs.speed > 0).any(axis=2)
    shared = p.variable("shared", runs.shape, lower=0, upper=np.where(runs, INFINITY, 0))
    least = p.variable("least_ratio")
    members = _incidence(pairs, 0, market) + _incidence(pairs, 1, market)
    p.maximize(least, equation="min_m throughput_m / throughput_m(equal)", source="Gavel Sec. 4.1")
    p.constrain(
        "capacity",
        alone.sum(axis=0) + shared.sum(axis=0) <= market.capacity,
        equation="sum_k scale_k X_kj <= workers_j",
        source="Gavel Sec. 3.1",
    )
    p.constrain(
        "demand",
        (alone.sum(axis=1) + members @ shared.sum(axis=1) <= market.limit).where(market.limit < INFINITY),
        equation="sum_(k in C_m) sum_j X_kj <= 1",
        source="Gavel Sec. 3.1",
    )
    p.constrain(
        "least_ratio",
        throughput(market, pairs, alone, shared) / market.fair_utility() >= least,
        equation="throughput_m / throughput_m(equal) >= t",
    )
    return p.program()


def throughput(market: Market, pairs: Pairs, alone: Any, shared: Any) -> Any:
    """Return the throughput of each job (n,) from its GPUs alone (n, k) and those of its pairs (p, k)."""
    rate = (market.speedup * alone).sum(axis=1)
    for side in (0, 1):
        rate = rate + _incidence(pairs, side, market) @ (pairs.speed[:, :, side] * shared).sum(axis=1)
    return rate


def _incidence(pairs: Pairs, side: int, market: Market) -> Array:
    """Return (n, p): 1 where a job is on that side of a pair."""
    return np.asarray(np.arange(len(market.users))[:, None] == pairs.jobs[None, :, side], dtype=np.int64)


def max_min_with_space_sharing(market: Market, pairs: Pairs, solve: Session) -> Solution:
    """Return the mean numbers of GPUs of jobs and pairs by which the worst-off job fares best. Errors: `NotSolved`.

    Its ``values`` are "share" (n, k), the GPUs of each job alone, and "shared" (p, k), those of each pair.

    It is a decision about time fractions only. A run cannot carry it out: in `fairopt.simulation` a GPU is held by one
    job at a time, and a job's speed does not depend on its neighbours.

    >>> from fairopt.backends import Highs
    >>> market = Market.of([[2], [3]], capacity=[1], demand=[1, 1], users=["A", "B"])
    >>> pairs = Pairs.of(market, {("A", "B"): [[1.5, 2]]})
    >>> found = max_min_with_space_sharing(market, pairs, Session(Highs()))
    >>> round(float(found.objective), 6), found.values["shared"].round(6).tolist()
    (1.384615, [[0.923077]])
    """
    program = space_sharing_program(market.as_(solve.number), Pairs(pairs.jobs, cast(pairs.speed, solve.number)))
    solution = solve.optimum(program)
    values = {name: not_negative(program.variable(name, solution.point)) for name in ("share", "shared")}
    return replace(solution, objective=program.value(solution.point), values=values)
