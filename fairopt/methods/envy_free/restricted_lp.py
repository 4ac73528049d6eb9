"""The program of envy-free shares, restricted: most users hold one type only, and share one bundle of it.

Two users who hold nothing but the same type hold the same number of GPUs per weight, since otherwise one would envy the
other. In an optimum most users are like that and need no variables of their own: users who are expected to hold type j
only are the *single-type group* of j, and one variable says what each of them holds. The other users are *free*: they
have a variable for each type that they may hold. Rows against envy are added where they are violated.

Units: a user's row of speedups is divided by its largest entry, GPUs are counted in parts of the type's capacity and
weights in parts of all, so that every capacity is one. A bundle is what a user holds per weight.

Everything is keyed by *holders*: holder j < k is the single-type group of type j, holder k + i is user i. Row h of a
table of bundles is what holder h holds; the variable (h, j) is how much of type j that is.
"""

from __future__ import annotations

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.methods.envy_free.problem import RestrictedStart, Users, optimum_of
from fairopt.methods.incremental_lp import BASIC, CHOOSE, DUAL, LOWER, UPPER, Blocks, Entries, IncrementalLP, entries_of
from fairopt.program import INFINITY, Array

#: Envy below this part of a user's own bundle is left to the proof.
NO_ENVY = 1e-11
#: For each free user so many rows a round, against the holders that it envies most.
AGAINST = 2
#: For each single-type group so many rows a round, each by the member that envies most.
OF_GROUP = 10
#: Rows that do not bind are dropped once there are so many rows, fewer where a basis is near, and so many times as many
#: rows as variables.
MANY_ROWS, MANY_NEAR, CROWDED = 5000, 700, 3
#: The total must have come down by this part since rows were last dropped, so that none come and go without end.
LOWER_TOTAL = 1e-6
#: Up to so many free users all rows among them are there from the start.
FEW = 30
#: A free user holds what a group does where the bundles differ by at most this part.
EQUAL = 1e-11


class RestrictedLP:
    """The restricted program, solved and relaxed in turns; ``single_type``, ``may_hold``: as in `RestrictedStart`.

    ``total`` is that of the program solved last, ``back`` the one, or the first, when users last went back to groups.
    """

    def __init__(self, users: Users, start: RestrictedStart) -> None:
        self.users, self.types = users, len(users.size)
        self.single_type, self.may_hold = start.single_type.copy(), start.may_hold.copy()
        self.rows, self.tight = start.rows, start.tight
        self._basis, self._dual = start.basis, start.dual
        self._many_rows = MANY_ROWS if start.basis is None else MANY_NEAR
        self.rounds = self.iterations = 0
        self.total = self.back = 0.0
        self._set_known()

    def as_start(self, near: Array) -> RestrictedStart:
        """Return where a program of nearly the same users may begin."""
        return RestrictedStart(self.single_type, self.may_hold, self.rows, self.tight, near, self._basis)

    # -- changing the restriction --------------------------------------------------------------------------------------
    def free(self, members: Array, may_hold: Array, envious: Array, envied: Array) -> None:
        """Give members of groups variables for what they ``may_hold`` (q, k), and rows for pairs with multipliers."""
        k, types = self.types, self.single_type[members]
        self.may_hold[members] = may_hold
        self.may_hold[members, types] = True
        remaining = np.bincount(self.single_type[self.single_type >= 0], minlength=k) - np.bincount(types, minlength=k)
        # the last vertex stays one: the new variable takes the group's value, by a row that ties it to the group
        tied = remaining[types] > 0
        if self._basis is not None:
            held = self._basis[0].copy()
            held[k + members, types] = True
            self._basis = held, self._basis[1]
        self.single_type[members] = -1
        self._add(members[tied], types[tied], tight=True)
        of_freed = self.single_type[envied] < 0
        self._add(envious[of_freed], k + envied[of_freed])

    def put_back(self, found: Solution, stay: Array) -> None:
        """Return to the groups the free users without a demand that hold what a group holds in ``found``.

        Where the mask ``stay`` (n,) says so, users stay free. The optimum remains one of the smaller program.
        """
        n, k = self.users.value.shape
        groups = np.flatnonzero(np.bincount(self.single_type[self.single_type >= 0], minlength=k))
        free = np.flatnonzero((self.single_type < 0) & (self.users.limit == INFINITY) & ~stay)
        if not len(groups):
            return
        bundle = found.values["bundle"]
        apart = np.abs(bundle[k + free][:, None] - bundle[groups]).max(axis=2, initial=0.0)
        alike = apart <= EQUAL * bundle[groups].max(axis=1)
        members, types = free[alike.any(axis=1)], groups[alike[alike.any(axis=1)].argmax(axis=1)]
        self.single_type[members] = types
        if self._basis is not None:
            held = self._basis[0].copy()
            held[k + members] = False
            self._basis = held, self._basis[1]
        holder = np.arange(k + n)
        holder[k + members] = types
        envious, envied = self.rows[0], holder[self.rows[1]]
        inside = self.single_type[envious] == envied
        order = np.argsort(~self.tight, kind="stable")  # of rows that are one now, those that are tight come first
        order = order[~inside[order]]
        keys = np.array(self._keys(envious[order], envied[order]), dtype=np.int64)
        kept = np.sort(order[np.unique(keys, return_index=True)[1]])
        self.rows = np.stack([envious, envied])
        self._keep(kept)

    # -- solving -------------------------------------------------------------------------------------------------------
    def solve(self) -> Solution:
        """Return the optimum; rows are added until nobody envies anybody."""
        n, k = self.users.value.shape
        groups = np.bincount(self.single_type[self.single_type >= 0], minlength=k) > 0
        self._keep(np.append(groups, True)[np.minimum(self.rows[1], k)])  # nobody holds an empty group's bundle
        is_free = self.single_type < 0
        free = np.flatnonzero(is_free)
        exists = np.concatenate([np.diag(groups), self.may_hold & is_free[:, None]])
        column = np.full((k + n, k), -1)
        column[exists] = np.arange(int(exists.sum()))
        holds = np.where(is_free, k + np.arange(n), self.single_type)
        limited = free[self.users.limit[free] < INFINITY]
        program = self._load(exists, column, holds, limited)
        holders = np.concatenate([np.flatnonzero(groups), k + free])
        if not self.rows.size:
            self._add_to(program, column, holds, *self._likely(np.flatnonzero(groups), free))
        least = INFINITY
        while True:
            program.solve()
            self.rounds += 1
            if self._crowded(exists) and (total := program.total) < least * (1 - LOWER_TOTAL):
                least = total
                self.iterations += program.iterations
                self._remember(program, exists, limited)
                program = self._load(exists, column, holds, limited)
                program.solve()
            bundle = _table(column, program.x)
            if not self._add_to(program, column, holds, *self._violated(bundle, holds, holders)):
                dual = program.dual
                program.polish()
                bundle = _table(column, program.x)
                break
        self.iterations += program.iterations
        demand_duals, first, (envious, envied) = np.zeros(n), k + len(limited), self.rows
        demand_duals[limited] = dual[k:first]
        envy = np.maximum(-dual[first:], 0.0)
        self._remember(program, exists, limited)
        return optimum_of(bundle, holds, dual[:k], demand_duals, (envious, envied, envy))

    def _crowded(self, exists: Array) -> bool:
        """Return whether most rows do not bind, so that steps take longer than they must."""
        return len(self.tight) > max(self._many_rows, CROWDED * int(exists.sum()))

    def _load(self, exists: Array, column: Array, holds: Array, limited: Array) -> IncrementalLP:
        """Return the program with the rows of capacities, of the demands of ``limited`` users, and those known."""
        users, k = self.users, self.types
        grouped = np.flatnonzero(self.single_type >= 0)
        types = self.single_type[grouped]
        weight = np.concatenate([np.bincount(types, users.weight[grouped], minlength=k), users.weight])
        worth = np.bincount(types, users.gain[grouped] * users.value[grouped, types], minlength=k)
        gain = np.concatenate([np.diag(worth), users.gain[:, None] * users.value])[exists]
        holder, type_ = np.nonzero(exists)
        lp = Blocks()
        columns, capacities = lp.columns(gain), lp.rows(-INFINITY, 1.0, k)
        lp.entries(capacities[type_], columns, weight[holder])
        needs = np.where(column[k + limited] >= 0, users.size, 0.0) / users.limit[limited][:, None]
        for rows, (line, place, value) in (
            (lp.rows(-INFINITY, 1.0, len(limited)), entries_of(column[k + limited], needs)),
            (lp.rows(0.0, INFINITY, len(self.tight)), self._against(column, holds, *self.rows)),
        ):
            lp.entries(rows[line], place, value)
        strategy = DUAL if self._basis is None and self._dual else CHOOSE
        program = IncrementalLP(lp.program("a restricted program of envy-free shares"), strategy=strategy)
        if self._basis is not None:
            held, limits_basic = self._basis
            basic = np.concatenate([limits_basic[:k], limits_basic[k + limited]])
            positions = np.concatenate([np.where(basic, BASIC, UPPER), np.where(self.tight, LOWER, BASIC)])
            program.start(*_counted(np.where(held[exists], BASIC, LOWER), positions))
        return program

    def _against(self, column: Array, holds: Array, envious: Array, envied: Array) -> Entries:
        """Return own bundle less the other's, at the envious user's speedups."""
        value = self.users.value[envious]
        index = np.concatenate([column[holds[envious]], column[envied]], axis=1)
        return entries_of(index, np.concatenate([value, -value], axis=1))

    def _likely(self, groups: Array, free: Array) -> tuple[Array, Array]:
        """Return the rows that are likely to matter: the free against groups, groups against each other; all if few."""
        k, value = self.types, self.users.value
        pairs = [(np.repeat(free, len(groups)), np.tile(groups, len(free)))]
        for j in groups:
            members = np.flatnonzero(self.single_type == j)
            others = groups[groups != j]
            ratio = value[members][:, others] / value[members, j][:, None]
            pairs.append((members[ratio.argmax(axis=0)], others))
        if len(free) <= FEW:
            one, other = np.nonzero(~np.eye(len(free), dtype=bool))
            pairs.append((free[one], k + free[other]))
        envious, envied = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return envious, envied

    def _violated(self, bundle: Array, holds: Array, holders: Array) -> tuple[Array, Array]:
        """Return the rows to add: against whom each free user envies most, and by the most envious of each group."""
        k = self.types
        # of equal bundles one will do; they are told apart by one number each
        _, first = np.unique(np.round(bundle[holders] @ np.sqrt(np.arange(2, k + 2)), 9), return_index=True)
        holders = holders[first]
        envy = self.users.value @ bundle[holders].T
        own = (self.users.value * bundle[holds]).sum(axis=1)
        envy -= own[:, None]
        envy[envy <= NO_ENVY * np.maximum(own, own.mean())[:, None]] = 0.0
        free = np.flatnonzero(self.single_type < 0)
        of_free = envy[free]
        most = min(AGAINST, len(holders))
        top = np.argpartition(-of_free, most - 1, axis=1)[:, :most] if len(free) else np.zeros((0, most), dtype=int)
        rows, places = np.nonzero(np.take_along_axis(of_free, top, axis=1) > 0)
        envious, envied = [free[rows]], [holders[top[rows, places]]]
        for j in np.unique(self.single_type[self.single_type >= 0]):
            members = np.flatnonzero(self.single_type == j)
            of_group = envy[members]
            worst = of_group.argmax(axis=0)
            size = of_group[worst, np.arange(len(holders))]
            against = np.argsort(-size)[:OF_GROUP]
            against = against[size[against] > 0]
            envious.append(members[worst[against]])
            envied.append(holders[against])
        return np.concatenate(envious), np.concatenate(envied)

    # -- rows and basis ------------------------------------------------------------------------------------------------
    def _add_to(self, program: IncrementalLP, column: Array, holds: Array, envious: Array, envied: Array) -> bool:
        """Add rows that are not there yet, to the program as well; return whether there were any."""
        new = self._add(envious, envied)
        if count := int(new.sum()):
            rows = self._against(column, holds, envious[new], envied[new])
            program.add_rows(np.zeros(count), np.full(count, INFINITY), rows)
        return bool(new.any())

    def _add(self, envious: Array, envied: Array, *, tight: bool = False) -> Array:
        """Add rows that are not there yet, and return a mask of those among the given."""
        keys, new = self._keys(envious, envied), np.zeros(len(envious), dtype=bool)
        for place, key in enumerate(keys):
            new[place] = key not in self._known
            self._known.add(key)
        self.rows = np.concatenate([self.rows, [envious[new], envied[new]]], axis=1)
        self.tight = np.concatenate([self.tight, np.full(int(new.sum()), tight)])
        return new

    def _keep(self, kept: Array) -> None:
        """Forget rows but for those that ``kept`` says, a mask or places."""
        self.rows, self.tight = self.rows[:, kept], self.tight[kept]
        self._set_known()

    def _set_known(self) -> None:
        self._known = set(self._keys(*self.rows))

    def _keys(self, envious: Array, envied: Array) -> list[int]:
        keys: list[int] = (envious * (len(self.single_type) + self.types) + envied).tolist()
        return keys

    def _remember(self, program: IncrementalLP, exists: Array, limited: Array) -> None:
        """Keep the basis, and the rows that bind: others come back where they are violated."""
        k = self.types
        columns, rows = program.basis()
        held, limits = np.zeros(exists.shape, dtype=bool), np.zeros(len(exists), dtype=bool)
        held[exists] = columns == BASIC
        first = k + len(limited)
        limits[np.concatenate([np.arange(k), k + limited])] = rows[:first] == BASIC
        self._basis = held, limits
        self.tight = rows[first:] != BASIC
        self._keep(self.tight)


def _table(column: Array, x: Array) -> Array:
    """Return the bundles by holder."""
    return np.where(column >= 0, np.maximum(x, 0.0)[np.maximum(column, 0)], 0.0)


def _counted(columns: Array, rows: Array) -> tuple[Array, Array]:
    """Return the positions with as many basic as there are rows: users came and went, and their parts with them."""
    missing = len(rows) - int((columns == BASIC).sum() + (rows == BASIC).sum())
    columns, rows = columns.copy(), rows.copy()
    if missing > 0:
        rows[np.flatnonzero(rows != BASIC)[::-1][:missing]] = BASIC
    elif missing < 0:
        columns[np.flatnonzero(columns == BASIC)[::-1][:-missing]] = LOWER
    return columns, rows
