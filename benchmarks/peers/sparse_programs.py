"""The programs as sparse rows in arrays, for peers that take a matrix; written without fairopt's own formulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairopt.benchmarks.peers.plain import Floats, SharedGpus
from fairopt.methods.gang_assignment import GangAssignment

Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a matrix, one after the other: row r has ``values[starts[r]:starts[r + 1]]`` at those ``columns``.

    Between ``lower`` and ``upper``, one number a row; ``starts`` has one more.
    """

    lower: Floats
    upper: Floats
    starts: Indices
    columns: Indices
    values: Floats

    @classmethod
    def dense(cls, columns: NDArray[np.int64], values: Floats, lower: object, upper: object) -> Rows:
        """Return rows that all have as many entries; shapes (rows, entries)."""
        count, length = columns.shape
        ends = np.arange(count + 1, dtype=np.int64) * length
        sides = [np.broadcast_to(np.asarray(side, dtype=float), count) for side in (lower, upper)]
        return cls(sides[0], sides[1], ends.astype(np.int32), columns.ravel().astype(np.int32), values.ravel())

    @classmethod
    def one_after_the_other(cls, *blocks: Rows) -> Rows:
        """Return the rows of all blocks."""
        sizes = np.concatenate([np.diff(block.starts) for block in blocks])
        return cls(
            np.concatenate([block.lower for block in blocks]),
            np.concatenate([block.upper for block in blocks]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
            np.concatenate([block.columns for block in blocks]),
            np.concatenate([block.values for block in blocks]),
        )


@dataclass(frozen=True, eq=False)
class SparseProgram:
    """Maximise ``gain`` over ``lower`` <= x <= ``upper`` (all (v,)) subject to ``rows``; x are whole where ``whole``.

    ``read`` makes the answer of the task out of x.
    """

    gain: Floats
    lower: Floats
    upper: Floats
    rows: Rows
    whole: bool
    read: Callable[[Floats], object]


def _sharing(market: SharedGpus) -> Rows:
    """Return the rows of the capacities and of the limits, over the shares (n, k) as the first n k variables."""
    n, k = market.shape
    place = np.arange(n * k).reshape(n, k)
    ones = np.ones((n, k))
    capacity = Rows.dense(place.T, ones.T, -np.inf, market.capacity)
    who = market.limited
    if not len(who):
        return capacity
    return Rows.one_after_the_other(capacity, Rows.dense(place[who], ones[who], -np.inf, market.limit[who]))


def _shares(market: SharedGpus, gain: Floats, rows: Rows, more: int) -> SparseProgram:
    """Return the program with ``more`` free variables after the shares."""
    n, k = market.shape
    return SparseProgram(
        gain=gain,
        lower=np.zeros(n * k + more),
        upper=np.concatenate([market.most.ravel(), np.full(more, np.inf)]),
        rows=rows,
        whole=False,
        read=lambda x: x[: n * k].reshape(n, k),
    )


def _against_level(market: SharedGpus, unit: Floats, upper: object) -> SparseProgram:
    """Return the program that raises one level t; each user has between t and t + ``upper``, in units of its own."""
    n, k = market.shape
    columns = np.column_stack([np.arange(n * k).reshape(n, k), np.full(n, n * k)])
    values = np.column_stack([market.speedup / unit[:, None], np.full(n, -1.0)])
    rows = Rows.one_after_the_other(Rows.dense(columns, values, 0.0, upper), _sharing(market))
    gain = np.zeros(n * k + 1)
    gain[-1] = 1.0
    return _shares(market, gain, rows, more=1)


def max_min(market: SharedGpus) -> SparseProgram:
    """Return the program of the largest least ratio to the fair share. Its first n rows are those of the ratios.

    Source: Gavel, OSDI 2020, Sec. 4.1.
    """
    return _against_level(market, market.fair, np.inf)


def oef_noncooperative(market: SharedGpus) -> SparseProgram:
    """Return the program of the largest common level, by weight; the total is the level times the sum of weights.

    Source: OEF Eq. (9).
    """
    return _against_level(market, market.weight, 0.0)


def oef_cooperative(market: SharedGpus) -> SparseProgram:
    """Return the program of the largest total without envy.

    Each user's own throughput is a variable, so that a row of envy has k + 1 entries instead of 2 k: HiGHS's simplex is
    as fast with either, its interior-point method twice as fast with this one.

    Source: OEF Eq. (10).
    """
    n, k = market.shape
    place = np.arange(n * k).reshape(n, k)
    own = n * k + np.arange(n)
    defines = Rows.dense(np.column_stack([place, own]), np.column_stack([market.speedup, np.full(n, -1.0)]), 0.0, 0.0)
    envious, envied = np.nonzero(~np.eye(n, dtype=bool))
    claim = market.weight[envious] / market.weight[envied]
    envy = Rows.dense(
        np.column_stack([own[envious], place[envied]]),
        np.column_stack([np.ones(len(envious)), -market.speedup[envious] * claim[:, None]]),
        0.0,
        np.inf,
    )
    gain = np.concatenate([np.zeros(n * k), np.ones(n)])
    return _shares(market, gain, Rows.one_after_the_other(defines, envy, _sharing(market)), more=n)


def fft_round(problem: GangAssignment) -> SparseProgram:
    """Return the assignment as a binary program, with variables only where a job may run and fits.

    Source: FFT (2025), Eq. (1), (6), (7).
    """
    job, kind = np.nonzero(problem.allowed & (problem.gangs[:, None] <= problem.capacity))
    gang = problem.gangs[job].astype(float)
    jobs, amount = np.unique(job, return_counts=True)
    by_kind = np.argsort(kind, kind="stable")
    one_type = Rows(
        np.full(len(jobs), -np.inf),
        np.ones(len(jobs)),
        np.concatenate([[0], np.cumsum(amount)]).astype(np.int32),
        np.arange(len(job), dtype=np.int32),
        np.ones(len(job)),
    )
    kinds = len(problem.capacity)
    capacity = Rows(
        np.full(kinds, -np.inf),
        problem.capacity.astype(float),
        np.concatenate([[0], np.cumsum(np.bincount(kind, minlength=kinds))]).astype(np.int32),
        by_kind.astype(np.int32),
        gang[by_kind],
    )
    busy = Rows.dense(np.arange(len(job))[None, :], gang[None, :], float(problem.least), np.inf)

    def read(x: Floats) -> NDArray[np.int64]:
        type_of = np.full(len(problem.gangs), -1)
        runs = x > 0.5
        type_of[job[runs]] = kind[runs]
        return type_of

    return SparseProgram(
        gain=-problem.cost[job, kind],
        lower=np.zeros(len(job)),
        upper=np.ones(len(job)),
        rows=Rows.one_after_the_other(one_type, capacity, busy),
        whole=True,
        read=read,
    )


#: The linear programs, by task.
LINEAR: Mapping[str, Callable[[SharedGpus], SparseProgram]] = {
    "max-min": max_min,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
}
#: The linear and integer programs, by task.
PROGRAMS: Mapping[str, Callable[..., SparseProgram]] = {**LINEAR, "fft-round": fft_round}
