"""Problem (5) as a program over given columns, and its linear relaxation by column generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.backends import Session
from fairopt.methods.columns.columns import Times
from fairopt.methods.columns.pricing import Prices, Pricing, weak_duality
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Affine, Array, Formulation, Program

SOURCE = "Astraea (posted prices)"
#: Columns of a job that are added in one round, those of the largest gain.
MOST_ADDED = 8
#: The relaxation is solved when its bound is above its value by no more than this part of the value.
CLOSE = 1e-7


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The linear relaxation of (5): columns that span an optimum, its ``value`` in floats, and what ``prices`` prove.

    ``bound``: no schedule earns more, in rationals; ``proved``: the same before rounding to a multiple of
    `Times.unit`. ``rounds``: how often prices were computed.
    """

    columns: tuple[JobSchedule, ...]
    value: float
    prices: Prices
    bound: Fraction
    proved: Fraction
    rounds: int


def groups_of_servers(batch: Batch) -> Array:
    """Return (S,) the group of each server; servers of a group hold the same.

    Over such servers an optimum of the relaxation can be averaged, so that one row for a group is as good as one for
    each, and its price is that of each.
    """
    servers = batch.servers
    keys = [(*servers.workers[s].tolist(), *servers.ps[s].tolist()) for s in range(len(servers.names))]
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return np.array([order[key] for key in keys], dtype=np.int64)


def packing_program(
    batch: Batch, times: Times, columns: Sequence[JobSchedule], *, groups: Array | None = None, integer: bool = True
) -> Program:
    """Return problem (5) over ``columns``; with ``groups`` (S,) its rows (5a) and (5b) are added up over each group.

    Source: Astraea (posted prices) Eq. (5), (5a)-(5d).
    """
    servers, jobs = batch.servers, batch.jobs
    of = np.arange(len(servers.names)) if groups is None else groups
    p = Formulation("compact-exponential packing")
    o = p.variable("admitted", (len(columns),), lower=0, upper=1 if integer else None, integer=integer)
    worth = [times.worth[each.job][each.last - 1] for each in columns]
    exact = not any(isinstance(value, float) for value in worth)
    p.maximize((np.array(worth, dtype=object if exact else float) * o).sum(), equation="sum o f(t+)", source="Eq. (5)")
    for name, there, which in (("5a_workers", servers.workers, 0), ("5b_ps", servers.ps, 1)):
        room = np.zeros((int(of.max()) + 1, there.shape[1]), dtype=np.int64)
        np.add.at(room, of, there)
        shape = (*room.shape, times.slots)
        use = _sums(o, *_use(columns, which, of, shape), shape)
        rows = (use <= room[..., None]).where(np.diff(use.start).reshape(shape) > 0)
        p.constrain(name, rows, equation="sum o y(t) <= C_s", source=f"{SOURCE} Eq. (5{name[1]})")
    job_of = np.array([each.job for each in columns], dtype=np.int64)
    once = _sums(o, job_of, np.arange(len(columns)), np.ones(len(columns), dtype=np.int64), (len(jobs),))
    p.constrain("5c_once", once <= 1, equation="sum_i o_j <= 1", source=f"{SOURCE} Eq. (5c)", labels=(jobs.names,))
    return p.program()


def relax(batch: Batch, times: Times, solve: Session) -> Relaxation:
    """Solve the linear relaxation of (5) by column generation, and prove a bound with the prices that it ends with.

    Errors: `NotSolved`.
    """
    groups = groups_of_servers(batch)
    shapes = [(*there.shape, times.slots) for there in (batch.servers.workers, batch.servers.ps)]
    prices = Prices(np.zeros(shapes[0]), np.zeros(shapes[1]))
    floors = np.zeros(len(batch.jobs))  # the duals of (5c)
    worth = [np.array([float(value) for value in row]) for row in times.worth]
    columns: dict[JobSchedule, None] = {}
    value, rounds = 0.0, 0
    while True:
        rounds += 1
        pricing = Pricing(batch, times, prices)
        bound, fresh = float(pricing.income), 0
        for job in range(len(batch.jobs)):
            best = pricing.cheapest(job)
            gain = np.where(best.cost < pricing.most, worth[job] - best.cost, -1.0)
            bound += max(0.0, float(gain.max(initial=0.0)))
            for at in np.argsort(-gain, kind="stable")[:MOST_ADDED]:
                if gain[at] > floors[job] + CLOSE * max(1.0, worth[job].max(initial=0.0)):
                    column = pricing.schedule(job, int(at) + 1, best)
                    fresh += column not in columns
                    columns[column] = None
        if not fresh or bound - value <= CLOSE * max(1.0, abs(value)):
            break
        program = packing_program(batch, times, tuple(columns), groups=groups, integer=False)
        solution = solve(program).require_optimal()
        assert solution.dual is not None
        assert solution.objective is not None
        value = float(solution.objective)
        tables = []
        for name, shape in zip(("5a_workers", "5b_ps"), shapes, strict=True):
            block = program.row_block(name)
            table = np.zeros((int(groups.max()) + 1, *shape[1:]))
            table.ravel()[np.arange(table.size) if block.kept is None else block.kept] = solution.dual[block.span]
            tables.append(np.maximum(table, 0.0)[groups])
        prices = Prices(*tables)
        floors = np.asarray(solution.dual[program.row_block("5c_once").span], dtype=float)
    kept = prices.rounded()
    proved = weak_duality(batch, kept, times)
    return Relaxation(tuple(columns), value, kept, times.rounded(proved), proved, rounds)


def _use(
    columns: Sequence[JobSchedule], which: int, groups: Array, shape: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    """Return (row, column, how many) of the workers (0) or PS (1) that columns take in each slot."""
    row: list[int] = []
    column: list[int] = []
    count: list[int] = []
    for number, each in enumerate(columns):
        spots, type = (each.workers, each.worker_type) if which == 0 else (each.ps, each.ps_type)
        for server, taken in spots:
            first = (int(groups[server]) * shape[1] + type) * shape[2] + each.first - 1
            row += range(first, first + each.duration)
            column += [number] * each.duration
            count += [taken] * each.duration
    return np.array(row, dtype=np.int64), np.array(column, dtype=np.int64), np.array(count, dtype=np.int64)


def weighted_sums(variables: Affine, weights: Array) -> Affine:
    """Return ``weights @ variables`` for weights (rows, variables) of which most are 0 and make no entry."""
    row, column = np.nonzero(weights)
    return _sums(variables, row, column, weights[row, column], weights.shape[:1])


def _sums(variables: Affine, row: Array, column: Array, value: Array, shape: tuple[int, ...]) -> Affine:
    """Return the expressions ``sum value * variables[column]`` by ``row``; a dense table of them would be too large."""
    size = int(np.prod(shape))
    order = np.argsort(row, kind="stable")
    start = np.searchsorted(row[order], np.arange(size + 1))
    constant = np.zeros(shape, dtype=np.int64)
    return Affine(variables.owner, constant, start, variables.column[column[order]], value[order])
