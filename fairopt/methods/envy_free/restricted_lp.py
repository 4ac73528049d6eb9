"""The program of envy-free shares, restricted: most users hold one type only and share one bundle.

Two users who hold nothing but the same type hold the same number of GPUs per weight, since otherwise one would envy the
other. In an optimum most users are like that, so that they need no variables of their own: those who are expected to
hold type j only are the core of type j, and one variable says what each of them holds. The others are free: they have a
variable for each type that they may hold. Rows against envy are added where they are violated.

Units: a user's row of speedups is divided by its largest entry, GPUs are counted in parts of the type's capacity and
weights in parts of all, so that every capacity is one. A bundle is what a user holds per weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.incremental_lp import GrowingProgram, Sparse
from fairopt.program import INFINITY, Array

#: Envy below this part of a user's own bundle is left to the proof.
NO_ENVY = 1e-11
#: For each user so many rows a round, against those it envies most.
AGAINST = 2
#: For each core so many rows a round, each by its member that envies most.
OF_CORE = 10
_BASIC, _LOWER, _UPPER = 1, 0, 2


@dataclass(frozen=True, eq=False)
class Users:
    """Who is to be made free of envy.

    Shapes: ``value`` (n, k) speedups in the units above, the largest of each user is 1; ``gain`` (n,) what a unit of
    that counts in the objective; ``weight`` (n,), adds up to 1; ``limit`` (n,) GPUs per weight, infinity for no demand,
    where a unit of type j counts ``size`` (k,) GPUs.
    """

    value: Array
    gain: Array
    weight: Array
    limit: Array
    size: Array


@dataclass(frozen=True, eq=False)
class Held:
    """An optimum of a restricted program, with its duals.

    Shapes: ``bundle`` (k + n, k): first what a core of each type holds, then each free user's; ``holds`` (n,) which of
    these rows is whose. ``prices`` (k,), ``rents`` (n,), and ``envy``: pairs (envious user, row of ``bundle``) with
    their dual values.
    """

    bundle: Array
    holds: Array
    prices: Array
    rents: Array
    envious: Array
    envied: Array
    envy: Array


@dataclass(frozen=True, eq=False)
class Basis:
    """What is basic: variables of users (n, k) and of cores (k,), rows of capacities (k,) and of demands (n,)."""

    held: Array
    core: Array
    capacity: Array
    demand: Array


@dataclass(frozen=True, eq=False)
class Start:
    """Where a restricted program begins: who is in which core (-1: free), what the free may hold, rows and a basis.

    Shapes: ``core`` (n,), ``may_hold`` (n, k); ``envious``, ``envied`` (q,) rows as in `Held`, of which ``tight`` (q,)
    are at their bound. ``givers``, ``takers``: pairs of users that are likely to carry multipliers within cores.
    """

    core: Array
    may_hold: Array
    envious: Array
    envied: Array
    tight: Array
    givers: Array
    takers: Array
    basis: Basis | None = None

    @classmethod
    def cold(cls, core: Array, may_hold: Array) -> Start:
        """Return a start without rows and basis."""
        none = np.zeros(0, dtype=np.int64)
        return cls(core, may_hold, none, none, np.zeros(0, dtype=bool), none, none)


class EnvyProgram:
    """The restricted program: who is in which core (-1: free), and which types the free may hold."""

    def __init__(self, users: Users, start: Start) -> None:
        n, k = users.value.shape
        self.users, self.core, self.may_hold = users, start.core.copy(), start.may_hold.copy()
        self.envious, self.envied, self._tight = start.envious, start.envied, start.tight
        self._known = set((self.envious * (n + k) + self.envied).tolist())
        self._basis_known = start.basis is not None
        known = start.basis or Basis(*(np.zeros(shape, dtype=bool) for shape in ((n, k), k, k, n)))
        self._column_basic, self._core_basic = known.held.copy(), known.core.copy()
        self._capacity_basic, self._demand_basic = known.capacity.copy(), known.demand.copy()
        self.rounds = self.iterations = 0

    def as_start(self, givers: Array, takers: Array) -> Start:
        """Return where a program of nearly the same users may begin."""
        basis = Basis(self._column_basic, self._core_basic, self._capacity_basic, self._demand_basic)
        return Start(self.core, self.may_hold, self.envious, self.envied, self._tight, givers, takers, basis)

    # -- changing the restriction --------------------------------------------------------------------------------
    def free(self, members: Array, may_hold: Array, envious: Array, envied: Array) -> None:
        """Give members of cores variables of their own, for their core's type and those of ``may_hold`` (q, k).

        Pairs of users ``envious``, ``envied`` carry multipliers within the core: rows that will be needed.
        """
        types = self.core[members]
        self.may_hold[members] = may_hold
        self.may_hold[members, types] = True
        # where they were is a vertex still: the new variable takes the core's value by a row that ties it to the core
        stays = np.bincount(self.core[self.core >= 0], minlength=len(self._core_basic)) - np.bincount(
            types, minlength=len(self._core_basic)
        )
        tied = stays[types] > 0
        self._column_basic[members, types] = True
        self.core[members] = -1
        self._pool(members[tied], types[tied], tight=True)
        of_freed = self.core[envied] < 0
        self._pool(envious[of_freed], len(self._core_basic) + envied[of_freed])

    def allow(self, members: Array, types: Array) -> None:
        """Let free users hold further types."""
        self.may_hold[members, types] = True

    def _pool(self, envious: Array, envied: Array, *, tight: bool = False) -> Array:
        """Add rows that are not there yet, and return which of the given they are."""
        stride = len(self.core) + len(self._core_basic)
        keys = (envious * stride + envied).tolist()
        new = np.zeros(len(keys), dtype=bool)
        for place, key in enumerate(keys):
            if key not in self._known:
                self._known.add(key)
                new[place] = True
        self.envious = np.concatenate([self.envious, envious[new]])
        self.envied = np.concatenate([self.envied, envied[new]])
        self._tight = np.concatenate([self._tight, np.full(int(new.sum()), tight)])
        return new

    # -- solving -------------------------------------------------------------------------------------------------
    def solve(self) -> Held:
        """Return the optimum; rows are added until nobody envies anybody."""
        n, k = self.users.value.shape
        self._drop_targets()
        is_free = self.core < 0
        free = np.flatnonzero(is_free)
        there = np.bincount(self.core[~is_free], minlength=k) > 0
        column = np.full((k + n, k), -1)
        column[np.flatnonzero(there), np.flatnonzero(there)] = np.arange(int(there.sum()))
        who, what = np.nonzero(self.may_hold & is_free[:, None])
        column[k + who, what] = int(there.sum()) + np.arange(len(who))
        holds = np.where(is_free, k + np.arange(n), self.core)
        program, limited = self._load(column, holds, there, who, what)
        targets = np.concatenate([np.flatnonzero(there), k + free])
        if not len(self.envious):
            self._begin(program, column, holds, there, free)
        while True:
            x, dual = program.solve()
            self.rounds += 1
            bundle = np.where(column >= 0, x[np.maximum(column, 0)], 0.0)
            envious, envied = self._violated(bundle, holds, targets)
            new = self._pool(envious, envied)
            if not new.any():
                x = program.polished(x)
                bundle = np.where(column >= 0, x[np.maximum(column, 0)], 0.0)
                break
            self._add(program, column, holds, envious[new], envied[new])
        self.iterations += program.iterations
        held = (self.envious, self.envied)
        self._remember(program, there, who, what, limited)
        rents = np.zeros(n)
        rents[limited] = dual[k : k + len(limited)]
        first = k + len(limited)
        return Held(bundle, holds, dual[:k], rents, *held, np.maximum(-dual[first:], 0.0))

    def _load(self, column: Array, holds: Array, there: Array, who: Array, what: Array) -> tuple[GrowingProgram, Array]:
        """Return the program with capacities, demands of the free and the rows known, and who has a demand row."""
        users, k = self.users, self.users.value.shape[1]
        cored = np.flatnonzero(self.core >= 0)
        types = self.core[cored]
        worth = np.bincount(types, users.gain[cored] * users.value[cored, types], minlength=k)
        weight = np.bincount(types, users.weight[cored], minlength=k)
        cost = np.concatenate([worth[there], users.gain[who] * users.value[who, what]])
        width = 1 + int(np.bincount(what, minlength=k).max(initial=0))
        place, value = np.full((k, width), -1), np.zeros((k, width))
        for j in range(k):
            mine = np.flatnonzero(what == j)
            place[j, 0], value[j, 0] = column[j, j], weight[j]
            place[j, 1 : 1 + len(mine)], value[j, 1 : 1 + len(mine)] = column[k + who[mine], j], users.weight[who[mine]]
        limited = np.flatnonzero((self.core < 0) & (users.limit < INFINITY))
        of_demand = np.where(column[k + limited] >= 0, users.size, 0.0)
        scale = users.limit[limited]
        upper = np.concatenate([np.ones(k), np.ones(len(limited))])
        pool = self._rows(column, holds, self.envious, self.envied)
        table = [Sparse.of(place, value), Sparse.of(column[k + limited], of_demand / scale[:, None]), pool]
        lower = np.concatenate([np.full(len(upper), -INFINITY), np.zeros(len(pool))])
        upper = np.concatenate([upper, np.full(len(pool), INFINITY)])
        program = GrowingProgram(cost, lower, upper, Sparse.joined(table))
        if self._basis_known:
            columns = np.concatenate([self._core_basic[there], self._column_basic[who, what]]).astype(int)
            first = np.concatenate([self._capacity_basic, self._demand_basic[limited]])
            rows = np.concatenate([np.where(first, _BASIC, _UPPER), np.where(self._tight, _LOWER, _BASIC)])
            program.start(*_counted(columns, rows))
        return program, limited

    def _rows(self, column: Array, holds: Array, envious: Array, envied: Array) -> Sparse:
        """Return own bundle less the other's, at the envious user's speedups."""
        value = self.users.value[envious]
        return Sparse.of(
            np.concatenate([column[holds[envious]], column[envied]], axis=1),
            np.concatenate([value, -value], axis=1),
        )

    def _add(self, program: GrowingProgram, column: Array, holds: Array, envious: Array, envied: Array) -> None:
        rows = self._rows(column, holds, envious, envied)
        program.add_rows(np.zeros(len(rows)), np.full(len(rows), INFINITY), rows)

    def _begin(self, program: GrowingProgram, column: Array, holds: Array, there: Array, free: Array) -> None:
        """Add the rows that are likely to matter: the free against cores, cores against each other; all if few."""
        k = self.users.value.shape[1]
        cores = np.flatnonzero(there)
        pairs = [(np.repeat(free, len(cores)), np.tile(cores, len(free)))]
        for j in cores:
            members = np.flatnonzero(self.core == j)
            others = cores[cores != j]
            ratio = self.users.value[members][:, others] / self.users.value[members, j][:, None]
            pairs.append((members[ratio.argmax(axis=0)], others))
        if len(free) <= SMALL:
            one, other = np.nonzero(~np.eye(len(free), dtype=bool))
            pairs.append((free[one], k + free[other]))
        envious, envied = (np.concatenate(each) for each in zip(*pairs, strict=True))
        new = self._pool(envious, envied)
        self._add(program, column, holds, envious[new], envied[new])

    def _violated(self, bundle: Array, holds: Array, targets: Array) -> tuple[Array, Array]:
        """Return the rows to add: for each free user those it envies most, for each core its most envious members."""
        k = self.users.value.shape[1]
        # of equal bundles one will do; they are told apart by one number each
        _, first = np.unique(np.round(bundle[targets] @ np.sqrt(np.arange(2, k + 2)), 9), return_index=True)
        targets = targets[first]
        envy = self.users.value @ bundle[targets].T
        own = (self.users.value * bundle[holds]).sum(axis=1)
        envy -= own[:, None]
        envy[envy <= NO_ENVY * np.maximum(own, own.mean())[:, None]] = 0.0
        free = np.flatnonzero(self.core < 0)
        of_free = envy[free]
        most = min(AGAINST, len(targets))
        top = np.argpartition(-of_free, most - 1, axis=1)[:, :most] if len(free) else np.zeros((0, most), dtype=int)
        rows, places = np.nonzero(np.take_along_axis(of_free, top, axis=1) > 0)
        envious, envied = [free[rows]], [targets[top[rows, places]]]
        for j in range(k):
            members = np.flatnonzero(self.core == j)
            if not len(members):
                continue
            of_core = envy[members]
            worst = of_core.argmax(axis=0)
            size = of_core[worst, np.arange(len(targets))]
            against = np.argsort(-size)[:OF_CORE]
            against = against[size[against] > 0]
            envious.append(members[worst[against]])
            envied.append(targets[against])
        return np.concatenate(envious), np.concatenate(envied)

    # -- from one restriction to the next ------------------------------------------------------------------------
    def _remember(self, program: GrowingProgram, there: Array, who: Array, what: Array, limited: Array) -> None:
        columns, rows = program.basis()
        count = int(there.sum())
        self._core_basic[:] = False
        self._column_basic[:] = False
        self._core_basic[there] = columns[:count] == _BASIC
        self._column_basic[who, what] = columns[count:] == _BASIC
        k = len(self.users.size)
        first = k + len(limited)
        self._capacity_basic[:] = rows[:k] == _BASIC
        self._demand_basic[:] = False
        self._demand_basic[limited] = rows[k:first] == _BASIC
        self._basis_known = True
        self._tight = rows[first:] != _BASIC
        # rows that do not bind come back where they are violated
        self._keep(self._tight)

    def _keep(self, keep: Array) -> None:
        stride = len(self.core) + len(self._core_basic)
        self.envious, self.envied, self._tight = self.envious[keep], self.envied[keep], self._tight[keep]
        self._known = set((self.envious * stride + self.envied).tolist())

    def _drop_targets(self) -> None:
        """Forget rows against cores that have no members any more: nobody holds such a bundle."""
        k = len(self._core_basic)
        there = np.bincount(self.core[self.core >= 0], minlength=k) > 0
        self._keep(np.append(there, True)[np.minimum(self.envied, k)])


def _counted(columns: Array, rows: Array) -> tuple[Array, Array]:
    """Return the positions with as many basic as there are rows: users came and went, and their parts with them."""
    missing = len(rows) - int((columns == _BASIC).sum() + (rows == _BASIC).sum())
    columns, rows = columns.copy(), rows.copy()
    if missing > 0:
        rows[np.flatnonzero(rows != _BASIC)[::-1][:missing]] = _BASIC
    elif missing < 0:
        columns[np.flatnonzero(columns == _BASIC)[::-1][:-missing]] = _LOWER
    return columns, rows


#: Up to so many free users all rows among them are there from the start.
SMALL = 30
