"""The exact model in a box of prices: the users that may choose otherwise within it, as a small linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import NotSolved
from fairopt.methods.level.problem import Task
from fairopt.program import Array

if TYPE_CHECKING:
    import highspy

#: Relative speeds that agree to so many bits are one: users with the same are put together.
BITS = 2.0**42
#: A basis of up to so many rows is solved again, for the last digits.
POLISHED = 300
# how HiGHS numbers where a variable stands
LOWER, BASIC, UPPER = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Rest:
    """What is outside the small program: others hold ``held + rising * t`` (k,), for t from ``least`` to ``most``.

    ``cheap``, ``dear`` (k,) bound the prices; None: only by 0 and infinity.
    """

    held: Array
    rising: Array
    least: float = -np.inf
    most: float = np.inf
    cheap: Array | None = None
    dear: Array | None = None


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex of the small program: ``prices`` (k,), ``level``, ``shares`` (k, n), ``rent`` (n,).

    ``inside`` says that neither a price nor the level is held by its box; ``bought`` are the
    GPUs beyond the capacities, as parts of them, which the box sells at its dearest prices.
    """

    prices: Array
    level: float
    shares: Array
    rent: Array | None
    inside: bool
    bought: float


def vertex(task: Task, among: Array, rest: Rest, level: float, prices: Array) -> Vertex:
    """Return the optimum of ``task`` with shares only where ``among`` (k, n) says, and the ``rest`` as it is.

    ``level`` and ``prices`` (k,) are about where it is. Errors: `NotSolved` where HiGHS finds no optimum.
    """
    among = among & np.isfinite(task.need)
    groups = _Groups(task, among)
    k = len(task.capacity)
    g = len(groups.first)
    part = groups.weight / task.capacity[:, None]  # of each type's capacity, for one unit of every member's throughput
    type_, group = np.nonzero(groups.among)
    rows_limited = np.full(g, -1)
    limited = np.flatnonzero(np.isfinite(groups.limit))
    rows_limited[limited] = k + g + np.arange(len(limited))
    unit = float(groups.size.mean())
    gain = np.concatenate([[1.0], np.zeros(len(type_))])
    rate_row, rate_column, rate = (
        [np.arange(k), k + np.arange(g)],
        [],
        [rest.rising / task.capacity, -groups.rate * unit],
    )
    column = 1 + np.arange(len(type_))
    rate_column = [np.zeros(k + g, dtype=np.int64), column, column]
    rate_row += [type_, k + group]
    rate += [part[type_, group] / unit, np.ones(len(type_))]
    if len(limited):
        of = rows_limited[group] >= 0
        rate_column.append(column[of])
        rate_row.append(rows_limited[group][of])
        rate.append(groups.relative[type_, group][of])
    boxed = rest.cheap is not None and rest.dear is not None
    if rest.cheap is not None and rest.dear is not None:
        buys, sells = 1 + len(type_) + np.arange(k), 1 + len(type_) + k + np.arange(k)
        gain = np.concatenate([gain, -rest.dear * task.capacity, rest.cheap * task.capacity])
        rate_column += [buys, sells]
        rate_row += [np.arange(k), np.arange(k)]
        rate += [-np.ones(k), np.ones(k)]
    columns, rows = len(gain), k + g + len(limited)
    left = (task.capacity - rest.held - rest.rising * level) / (task.capacity * unit)
    lower = np.concatenate([np.full(k, -np.inf), groups.floor + groups.rate * level, np.full(len(limited), -np.inf)])
    upper = np.concatenate([left, np.full(g, np.inf), groups.limit[limited]])
    at_least = np.concatenate([[(rest.least - level) / unit], np.zeros(columns - 1)])
    at_most = np.concatenate([[(rest.most - level) / unit], np.full(columns - 1, np.inf)])
    entries = (np.concatenate(rate_row), np.concatenate(rate_column), np.concatenate(rate))
    # to begin with, everybody holds what is cheapest at the prices given
    cost = np.where(groups.among, groups.relative * prices[:, None], np.inf)
    held = np.zeros(columns, dtype=bool)
    held[1 : 1 + len(type_)] = cost.argmin(axis=0)[group] == type_
    met = np.zeros(rows, dtype=bool)
    met[k : k + g] = True
    x, dual, reduced = _solve(gain, at_least, at_most, lower, upper, entries, (held, met))
    amount = np.zeros((k, g))
    amount[type_, group] = np.maximum(x[1 : 1 + len(type_)], 0.0)
    size = task.size
    shares = amount[:, groups.of] * np.where(among, task.need, 0.0) * size
    prices = np.maximum(dual[:k], 0.0) / task.capacity
    rent = None
    if task.demand is not None:
        rents = np.zeros(g)
        # a member's row stands for itself by its part of the group; see `_Groups`
        rents[limited] = np.maximum(dual[k + g :], 0.0) * unit
        rent = rents[groups.of] / groups.total[groups.of]
    inside = abs(reduced[0]) <= 1e-9
    bought = 0.0
    if boxed:
        bought = float(x[-2 * k : -k].sum()) * unit
        inside = inside and max(bought, float((x[-k:] * (gain[-k:] > 0)).sum()) * unit) <= 1e-13
    return Vertex(prices, level + unit * float(x[0]), shares, rent, bool(inside), bought)


class _Groups:
    """Users that are alike up to size: the same relative speeds on the types among which they choose.

    ``of`` (n,) is each user's group and ``first`` a member of each. With one unit of throughput per size for each
    member, a group takes ``weight`` (k, g) GPUs. Demands are per GPU that the member would need on its best type;
    ``total`` is the sum of such GPUs over the members, and ``relative`` (k, g) the needs in that unit.
    """

    def __init__(self, task: Task, among: Array) -> None:
        need = np.where(among, task.need, np.inf)
        size = task.size
        best = need.min(axis=0)
        relative = np.where(among, need / best, 0.0)
        gpus = size * best
        ratio = task.rate / size
        limit = np.full(len(size), np.inf) if task.demand is None else task.demand / gpus
        rounded = np.rint(relative * BITS)
        keys = [*rounded, np.rint(ratio * BITS), np.where(np.isfinite(limit), np.rint(limit * BITS), -1.0)]
        # summed one after the other, so that equal users have equal sums
        mixed = np.zeros(len(size))
        for key, by in zip(keys, np.random.default_rng(7).uniform(1, 2, len(keys)), strict=True):
            mixed += key * by
        _, self.first, self.of = np.unique(mixed, return_index=True, return_inverse=True)
        if any((key[self.first][self.of] != key).any() for key in keys):  # different users with equal sums: all apart
            self.first = self.of = np.arange(len(size))
        first, count = self.first, len(self.first)
        self.total = np.bincount(self.of, weights=gpus, minlength=count)
        self.size = np.bincount(self.of, weights=size, minlength=count)
        self.relative, self.among = relative[:, first], among[:, first]
        self.weight = self.relative * self.total
        self.rate, self.floor = ratio[first], (task.floor / size)[first]
        self.limit = limit[first]


def _solve(
    gain: Array,
    at_least: Array,
    at_most: Array,
    lower: Array,
    upper: Array,
    entries: tuple[Array, Array, Array],
    begin: tuple[Array, Array],
) -> tuple[Array, Array, Array]:
    """Maximise with HiGHS's simplex, and return the point, the rows' duals and the variables' reduced costs."""
    import highspy

    row, column, rate = entries
    order = np.argsort(column, kind="stable")
    counts = np.bincount(column, minlength=len(gain))
    start = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
    highs = highspy.Highs()
    settings: dict[str, Any] = {
        "output_flag": False,
        "presolve": "off",
        "solver": "simplex",
        "small_matrix_value": 1e-12,
    }
    settings |= {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    highs.passModel(
        len(gain), len(lower), len(rate), 1, -1, 0.0, gain, at_least, at_most, lower, upper, start,
        row[order].astype(np.int32), rate[order], np.zeros(len(gain), dtype=np.int32),
    )  # fmt: skip
    held, met = begin
    kind = highspy.HighsBasisStatus
    basis = highspy.HighsBasis()
    basis.col_status = [kind.kBasic if each else kind.kLower for each in held.tolist()]
    basis.col_status[0] = kind.kZero if not np.isfinite(at_least[0]) else kind.kLower
    basis.row_status = [kind.kLower if each else kind.kBasic for each in met.tolist()]
    highs.setBasis(basis)
    highs.run()
    if highs.getModelStatus().name == "kUnknown":  # cycling about tolerances that the numbers are too coarse for
        highs.clearSolver()
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(name, 1e-7)
        highs.run()
    answer = highs.getSolution()
    status = highs.getModelStatus().name
    if status != "kOptimal" or not answer.value_valid or not answer.dual_valid:
        raise NotSolved(f"HiGHS found no vertex of a box of prices: {status}")
    return _polished(highs, (gain, at_least, at_most, lower, upper), entries) or (
        np.array(answer.col_value),
        np.array(answer.row_dual),
        np.array(answer.col_dual),
    )


def _polished(
    highs: highspy.Highs, sides: tuple[Array, Array, Array, Array, Array], entries: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array] | None:
    """Return the vertex of HiGHS's basis to the last digits; None where that is too large, or no improvement.

    HiGHS's tolerances are absolute; here the equations of the basis are solved as exactly as floats can.
    """
    gain, at_least, at_most, lower, upper = sides
    row, column, rate = entries
    rows, columns = len(lower), len(gain)
    if rows > POLISHED:
        return None
    basis = highs.getBasis()
    where = np.array([int(each) for each in (*basis.col_status, *basis.row_status)])
    basic = np.flatnonzero(where == BASIC)
    if len(basic) != rows:
        return None
    matrix = np.zeros((rows, columns + rows))
    matrix[row, column] = rate
    matrix[np.arange(rows), columns + np.arange(rows)] = -1.0  # each row's activity as a variable
    low, high = np.concatenate([at_least, lower]), np.concatenate([at_most, upper])
    x = np.where(where == UPPER, high, np.where(where == LOWER, low, 0.0))
    x[basic] = 0.0
    cost = np.concatenate([gain, np.zeros(rows)])
    try:
        inverse = np.linalg.inv(matrix[:, basic])
    except np.linalg.LinAlgError:
        return None
    dual = np.zeros(rows)
    for _ in range(3):
        x[basic] -= inverse @ (matrix @ x)
        dual += (cost - dual @ matrix)[basic] @ inverse
    if not (np.isfinite(x).all() and np.isfinite(dual).all()):
        return None
    reduced = cost - dual @ matrix
    return x[:columns], dual, reduced[:columns]
