"""`CohortQuotas`: the tree of ClusterQueues and Cohorts, what each may have, and what is in use.

Amounts are integers, so that shares are compared exactly. Nodes are numbers, ClusterQueues and Cohorts alike; columns
are pairs of a resource and a flavor.

Source: kubernetes-sigs/kueue ff69552e, pkg/cache/scheduler/resource_node.go and fair_sharing.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import product
from math import lcm
from operator import mul
from typing import NamedTuple

from fairopt.problem.entitled_rows import TOP

#: What an infinite quota counts as. Source: pkg/resources, Amount: int64 saturates.
UNLIMITED = 2**63 - 1
#: The share of a borrower of weight 0, in a status.
MOST_SHARE = 2**63 - 1
Needs = Sequence[tuple[int, int]]
#: Usage and quotas of some nodes.
Rows = Sequence[tuple[list[int], Sequence[int]]]
#: How far above a ClusterQueue the common ancestor with another one is, and the rows of that one up to there.
Beside = tuple[int, Rows]
_NOBODY: frozenset[int] = frozenset()


class DominantShare(NamedTuple):
    """A dominant resource share; `CohortQuotas.order` compares those of siblings (`CompareDRS` in fair_sharing.go).

    ``infinite``: it borrows at weight 0, and comes after all who do not. ``value``: the ratio of what is borrowed to
    what could be lent, times 1000, by weight where that is not 0. ``resource``: the dominant one.
    """

    infinite: bool
    value: Fraction
    resource: str = ""
    borrowing: bool = False

    @property
    def rounded(self) -> int:
        """As a status has it: `roundedWeightedShare`."""
        return MOST_SHARE if self.infinite else -(-self.value.numerator // self.value.denominator)


NOTHING = DominantShare(False, Fraction(0))


class CohortQuotas:
    """A forest of quotas, and the usage in it.

    ``parent``: of each node, -1 at a root. ``resource``: the resource of each column. ``nominal``: each node's own
    quota. ``borrowing`` and ``lending``: limits, None for none. ``weight``: 0 is an infinite share.
    """

    def __init__(
        self,
        parent: Sequence[int],
        resource: Sequence[str],
        nominal: Sequence[Sequence[int]],
        borrowing: Sequence[Sequence[int | None]],
        lending: Sequence[Sequence[int | None]],
        weight: Sequence[Fraction],
    ) -> None:
        self.parent, self.nominal, self.borrowing, self.weight = parent, nominal, borrowing, weight
        self.resources = sorted(set(resource))
        self.resource = [self.resources.index(each) for each in resource]
        #: Of each column: whether its resource has another one, of another flavor.
        self.several = [self.resource.count(each) > 1 for each in self.resource]
        nodes, self.width = range(len(parent)), len(resource)
        self.paths = [tuple(self._up(node)) for node in nodes]
        self.children: list[list[int]] = [[] for _ in nodes]
        for node in nodes:
            if parent[node] != TOP:
                self.children[parent[node]].append(node)
        deepest_first = sorted(nodes, key=lambda node: -len(self.paths[node]))
        #: updateCohortResourceNode: own quota, and of each child what is not its local quota.
        self.subtree = [list(row) for row in nominal]
        self.local = [[0] * self.width for _ in nodes]
        self.height = [0] * len(parent)  # getNodeHeight
        for node in deepest_first:
            for column, limit in enumerate(lending[node]):
                if limit is not None:
                    self.local[node][column] = max(0, self.subtree[node][column] - limit)
            over = parent[node]
            if over != TOP:
                self.height[over] = max(self.height[over], self.height[node] + 1)
                for column in range(self.width):
                    self.subtree[over][column] += self.subtree[node][column] - self.local[node][column]
        self.potential = [[0] * self.width for _ in nodes]
        for node in reversed(deepest_first):
            for column in range(self.width):
                self.potential[node][column] = self._potential(node, column)
        # calculateLendable: what each node's parent could have of each resource, all flavors together
        summed = [self._by_resource(row) for row in self.potential]
        self.lendable = [summed[over] if over != TOP else [0] * len(self.resources) for over in parent]
        self.times = [self._times(node, self.children[over] if over != TOP else ()) for node, over in enumerate(parent)]
        self.usage = [[0] * self.width for _ in nodes]
        #: Of each node, upwards: its usage.
        self._rows = [[self.usage[at] for at in path] for path in self.paths]
        #: Of each node and column, upwards: usage, local quota, quota, and the most that may be used, if limited.
        self._steps = [[tuple(self._upwards(node, column)) for column in range(self.width)] for node in nodes]
        self._below_root = [[steps[:-1] for steps in row] for row in self._steps]
        #: The same where that bounds anything: a limit, or what is not for others.
        self._bounds = [
            [tuple(one for one in steps if one[1] > 0 or one[3] is not None) for steps in row] for row in self._steps
        ]
        #: By the root of a tree and column: whether nobody there has a limit, or keeps anything for itself.
        self._shared = [[True] * self.width for _ in nodes]
        for node, column in product(nodes, range(self.width)):
            if self.local[node][column] > 0 or (parent[node] != TOP and borrowing[node][column] is not None):
                self._shared[self.paths[node][-1]][column] = False
        #: Of each node: itself, or the one above it where that has the same `room`, since all is for everybody.
        self.like = [
            over if over != TOP and all(self._shared[self.paths[over][-1]]) else node
            for node, over in enumerate(parent)
        ]
        self.borrowed = [[0] * len(self.resources) for _ in nodes]
        #: Of each column: by tree (its root) the ClusterQueues that use more of it than their quota, by node the
        #: children that do.
        self._above: list[dict[int, set[int]]] = [{} for _ in range(self.width)]
        self._above_below: list[dict[int, set[int]]] = [{} for _ in range(self.width)]
        #: What `beside` says, by the node above.
        self._beside: dict[int, dict[int, Beside]] = {}
        #: Of each node: its `order` where that is known.
        self._orders: list[tuple[bool, int] | None] = [None] * len(parent)
        #: Of each node: how many of its columns are above the quota.
        self._columns_above = [0] * len(parent)

    def _up(self, node: int) -> Iterable[int]:
        while node != TOP:
            yield node
            node = self.parent[node]

    def _upwards(self, node: int, column: int) -> Iterator[tuple[list[int], int, int, int | None]]:
        for at in self.paths[node]:
            quota, limit = self.subtree[at][column], self.borrowing[at][column] if self.parent[at] != TOP else 0
            yield self.usage[at], self.local[at][column], quota, None if limit is None else quota + limit

    def _by_resource(self, row: Sequence[int]) -> list[int]:
        numbers = range(len(self.resources))
        return [sum(each for each, of in zip(row, self.resource, strict=True) if of == number) for number in numbers]

    def _potential(self, node: int, column: int) -> int:
        """Return the most that a node could have if nothing were in use: `potentialAvailable`."""
        over, limit = self.parent[node], self.borrowing[node][column]
        if over == TOP:
            return self.subtree[node][column]
        most = self.local[node][column] + self.potential[over][column]
        return most if limit is None else min(most, self.subtree[node][column] + limit)

    def _times(self, node: int, siblings: Sequence[int]) -> list[int]:
        """Return by what an amount of each resource is multiplied, so that shares of siblings are integers."""
        lent = self.lendable[node]
        weights = [self.weight[each].numerator for each in siblings if self.weight[each]]
        whole = 1000 * lcm(*(each for each in lent if each > 0), 1) * lcm(*weights, 1)
        weight = self.weight[node] or Fraction(1)
        return [0 if each <= 0 else int(whole / weight / each) for each in lent]

    # -- usage ---------------------------------------------------------------------------------------------------
    def add(self, node: int, needs: Needs) -> None:
        """Add usage, at the node and above it beyond what is local: `addUsage`. A negative amount stays at the node."""
        for column, amount in needs:
            for at in self.paths[node]:
                usage, quota = self.usage[at], self.subtree[at][column]
                before = usage[column]
                usage[column] = after = before + amount
                if before > quota or after > quota:
                    self._cross(at, column, before - quota, after - quota)
                room = self.local[at][column] - before
                if room > 0:
                    amount -= room
                if amount <= 0:
                    break

    def remove(self, node: int, needs: Needs) -> None:
        """Take usage away: `removeUsage`."""
        for column, amount in needs:
            for at in self.paths[node]:
                usage, quota = self.usage[at], self.subtree[at][column]
                before = usage[column]
                usage[column] = after = before - amount
                if before > quota or after > quota:
                    self._cross(at, column, before - quota, after - quota)
                above = before - self.local[at][column]
                if above < amount:
                    amount = above
                if amount <= 0:
                    break

    def lift(self, node: int, needs: Needs) -> None:
        """Take usage away for a while, as `remove`: what is noted of who is above the quota stays as it is."""
        for column, amount in needs:
            for at, usage in zip(self.paths[node], self._rows[node], strict=True):
                above = usage[column] - self.local[at][column]
                usage[column] -= amount
                if above < amount:
                    amount = above
                if amount <= 0:
                    break

    def put(self, node: int, needs: Needs) -> None:
        """Add usage again that was lifted."""
        for column, amount in needs:
            for at, usage in zip(self.paths[node], self._rows[node], strict=True):
                room = self.local[at][column] - usage[column]
                usage[column] += amount
                if room > 0:
                    amount -= room
                if amount <= 0:
                    break

    def _cross(self, node: int, column: int, before: int, after: int) -> None:
        """Note that usage above the quota was ``before`` and is ``after``; one of them is above 0."""
        self._orders[node] = None
        borrowed, resource = self.borrowed[node], self.resource[column]
        if before > 0 and after > 0:
            borrowed[resource] += after - before
            return
        borrowed[resource] += after if after > 0 else -before
        self._columns_above[node] += 1 if after > 0 else -1
        places = [self._above_below[column].setdefault(self.parent[node], set())]
        if not self.children[node]:
            places.append(self._above[column].setdefault(self.paths[node][-1], set()))
        for place in places:
            (place.add if after > 0 else place.discard)(node)

    def above_quota(self, node: int, columns: Iterable[int]) -> set[int]:
        """Return the ClusterQueues of a node's tree that use more than their quota of any of the columns."""
        root = self.paths[node][-1]
        return set().union(*[self._above[column].get(root, ()) for column in columns])

    def above_below(self, node: int, columns: Iterable[int]) -> Set[int]:
        """Return the children of a node that use more than their quota of any of the columns; not to be changed."""
        first, *others = [self._above_below[column].get(node, _NOBODY) for column in columns]
        return frozenset().union(first, *others) if others else first

    def beside(self, node: int) -> Mapping[int, Beside]:
        """Return what is `Beside` a node: all in its tree that have no children, and itself, at level 1."""
        over = self.parent[node]
        if (found := self._beside.get(over)) is None:
            found, path = dict[int, Beside](), self.paths[over]
            for other, up in enumerate(self.paths):
                if up[-1] == path[-1] and not self.children[other]:
                    rows = [(self.usage[each], self.subtree[each]) for each in up if each not in path]
                    found[other] = path.index(up[len(rows)]) + 1, rows
            self._beside[over] = found
        return found

    # -- asking --------------------------------------------------------------------------------------------------
    def available(self, node: int, column: int, counted: int = 0) -> int:
        """Return how much more a node may take without preemption: `Available`, at least 0.

        ``counted``: what of its usage is not.
        """
        least: int | None = None  # of what the nodes let through
        below = 0  # what is left of local quotas
        for usage, local, _, most in (self._steps if counted > 0 else self._bounds)[node][column]:
            used = usage[column]
            if counted > 0:
                used, counted = used - counted, min(counted, used - local)
            if most is not None and (least is None or most - used + below < least):
                least = most - used + below
            if used < local:
                below += local - used
        assert least is not None
        return least if least > 0 else 0

    def room(self, node: int, column: int) -> tuple[int, int]:
        """Return how much more a node may take, and for how much a quota below the root has room; -1 where none is."""
        most, given = -1, 0
        for usage, local, quota, _ in self._below_root[node][column]:
            used = usage[column]
            if (left := quota - used + given) > most:
                most = left
            if local > used:
                given += local - used
        return self.available(node, column), most

    def shared_room(self, node: int, column: int) -> int | None:
        """Return what is left in the tree of a node, negative where more is in use; None where some is not for all."""
        root = self.paths[node][-1]
        return self.subtree[root][column] - self.usage[root][column] if self._shared[root][column] else None

    def level(self, node: int, column: int, amount: int) -> int:
        """Return how far above a node the lowest subtree is that has room in its quota; the root where none has.

        Source: hierarchical_preemption.go, FindHeightOfLowestSubtreeThatFits.
        """
        level = -1
        for usage, local, quota, _ in self._steps[node][column]:
            level += 1
            used = usage[column]
            if used + amount <= quota:
                break
            if local > used:
                amount -= local - used
        return level

    def level_of_all(self, node: int, needs: Needs) -> int:
        """Return how far above a node the lowest subtree is that has room for all; where none has, one more.

        Source: hierarchical_preemption.go, QuantitiesFitInQuota.
        """
        for level, at in enumerate(self.paths[node]):
            usage, quota, local, fits, left = self.usage[at], self.subtree[at], self.local[at], True, []
            for column, amount in needs:
                used = usage[column]
                fits = fits and used + amount <= quota[column]
                left.append((column, max(0, amount - (local[column] - used)) if used < local[column] else amount))
            if fits:
                return level
            needs = left
        return len(self.paths[node])

    def fits(self, node: int, needs: Needs, *, counted: bool = False) -> bool:
        """Return whether all of it is available, or (``counted``) would be if it were not in use there already."""
        root = self.paths[node][-1]
        shared, quota, usage = self._shared[root], self.subtree[root], self.usage[root]
        for column, amount in needs:
            if shared[column]:
                free = quota[column] - usage[column] + (amount if counted else 0)
            else:
                free = self.available(node, column, amount if counted else 0)
            if amount > free and amount > 0:
                return False
        return True

    def over(self, node: int, column: int, more: int = 0) -> bool:
        """Return whether usage, with ``more``, is above the quota: `BorrowingWith`."""
        return self.usage[node][column] + more > self.subtree[node][column]

    def over_any(self, node: int, columns: Iterable[int]) -> bool:
        """Return whether usage is above the quota in any of the columns: not `IsWithinNominalInResources`."""
        usage, quota = self.usage[node], self.subtree[node]
        for column in columns:  # noqa: SIM110 - any() takes three times as long
            if usage[column] > quota[column]:
                return True
        return False

    def _with(self, node: int, more: Needs) -> list[int]:
        """Return what a node borrows of each resource, with ``more`` (may be negative) in use there."""
        borrowed = self.borrowed[node]
        if more:
            borrowed = borrowed[:]
            usage, quota = self.usage[node], self.subtree[node]
            for column, amount in more:
                before = usage[column] - quota[column]
                after = before + amount
                borrowed[self.resource[column]] += (after if after > 0 else 0) - (before if before > 0 else 0)
        return borrowed

    def order(self, node: int, more: Needs = ()) -> tuple[bool, int]:
        """Return what shares of siblings are compared by: as `share`, in a unit of theirs."""
        known = self._orders[node]
        if known is not None and not more:
            return known
        most = max(map(mul, self._with(node, more), self.times[node]), default=0)
        found = most > 0 and not self.weight[node], most
        if not more:
            self._orders[node] = found
        return found

    def order_without(self, node: int, queue: int, needs: Needs) -> tuple[bool, int]:
        """Return `order` of a node above a ClusterQueue, or of itself, as if that used ``needs`` less."""
        less = []
        for column, amount in needs:
            for at in self.paths[queue]:
                if at == node or amount <= 0:
                    break
                above = self.usage[at][column] - self.local[at][column]
                amount = 0 if above < 0 else min(amount, above)
            less.append((column, -amount))
        return self.order(node, less)

    def borrows(self, node: int) -> bool:
        """Return whether a node uses more than its quota of anything; a root never does."""
        return self._columns_above[node] > 0 and self.parent[node] != TOP

    def share(self, node: int, more: Needs = ()) -> DominantShare:
        """Return the dominant resource share of a node, with ``more`` in use there: `dominantResourceShare`."""
        if self.parent[node] == TOP:
            return NOTHING
        borrowed = self._with(node, more)
        best, at, lendable, borrowing = Fraction(0), -1, self.lendable[node], False
        for number, amount in enumerate(borrowed):  # resources by name: the first of equals is the dominant one
            if amount > 0:
                borrowing = True
                if lendable[number] > 0:
                    ratio = Fraction(1000 * amount, lendable[number])
                    if ratio > best:
                        best, at = ratio, number
        if not best:
            return DominantShare(False, best, "", True) if borrowing else NOTHING
        weight = self.weight[node]
        return DominantShare(not weight, best / weight if weight else best, self.resources[at], True)
