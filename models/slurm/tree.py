"""Slurm's tree of associations: who shares with whom, with what shares and past usage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.problem.entitlements import Entitlements
from fairopt.program import INFINITY, Number

#: `AssociationTree.above` of the associations directly below the root.
ROOT = -1


@dataclass(frozen=True)
class AssociationTree:
    """Associations below a root, N of them, in the order in which they are listed; the first ``users`` are users.

    ``account`` (N,): the account in which each is, `ROOT` for the root. ``above`` (N,): in which it shares, the nearest
    that is not Fairshare=parent itself. ``share`` (N,): RawShares; None for Fairshare=parent, which has none of its
    own. ``usage`` (N,): RawUsage, and ``total`` the root's. ``listed`` (N,): the associations in the order of the list.

    Errors: none. Source: Slurm 284c3b95, src/common/assoc_mgr.c: _set_assoc_parent_and_user (fs_assoc_ptr),
    _set_children_level_shares (shares of a level), _normalize_assoc_shares_fair_tree.

    >>> AssociationTree.of((ROOT, ROOT), (3, 1), (10, 30), users=2).level_shares(0)
    4
    """

    account: tuple[int, ...]
    above: tuple[int, ...]
    share: tuple[Number | None, ...]
    usage: tuple[Number, ...]
    users: int
    total: Number
    listed: tuple[int, ...]
    below: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        above: Sequence[int],
        share: Sequence[Number | None],
        usage: Sequence[Number],
        *,
        users: int,
        total: Number | None = None,
        listed: Sequence[int] | None = None,
    ) -> AssociationTree:
        """Return the tree; accounts with Fairshare=parent hand what is in them on to the account that they are in."""
        order = tuple(range(len(above)) if listed is None else listed)
        shares_in = []
        for node in range(len(above)):
            at = above[node]
            while at != ROOT and share[at] is None:
                at = above[at]
            shares_in.append(at)
        below: list[list[int]] = [[] for _ in range(len(above) + 1)]
        for node in order:
            below[shares_in[node]].append(node)  # the root's are the last
        root = sum(usage[node] for node in range(len(above)) if above[node] == ROOT) if total is None else total
        children = tuple(map(tuple, below))
        return cls(tuple(above), tuple(shares_in), tuple(share), tuple(usage), users, root, order, children)

    @classmethod
    def from_entitlements(cls, owed: Entitlements) -> tuple[AssociationTree, list[int]]:
        """Return the tree of entitlements, and the node (N,) of each of its associations.

        A single group that all others are in is the root. Tier 1 with weight 0 is Fairshare=parent.
        """
        tops = owed.tops
        root = tops[0] if len(tops) == 1 and tops[0] >= len(owed.users) else None
        nodes = [node for node in range(len(owed.nodes)) if node != root]
        at = {node: place for place, node in enumerate(nodes)}
        parent = owed.parent.tolist()
        weights, tiers, usage = owed.borrow_weight.tolist(), owed.tier.tolist(), owed.usage.tolist()
        tree = cls.of(
            [at.get(parent[node], ROOT) for node in nodes],
            [None if tiers[node] > 0 and not weights[node] else weights[node] for node in nodes],
            [usage[node] for node in nodes],
            users=len(owed.users),
            total=None if root is None or not usage[root] else usage[root],
        )
        return tree, nodes

    def level_shares(self, node: int) -> Number:
        """Return the shares of an association and of those beside it."""
        return sum(self.share[each] or 0 for each in self.below[self.above[node]])

    def fair_part(self) -> list[Fraction]:
        """Return S (N,), shares over those of the level; 0 where the level has none, or for Fairshare=parent."""
        parts: list[Fraction] = [Fraction(0)] * len(self.above)
        for level in self.below:
            shares = sum(self.share[each] or 0 for each in level)
            for each in level if shares else ():
                parts[each] = Fraction(self.share[each] or 0) / Fraction(shares)
        return parts

    def machine_usage(self) -> list[Fraction]:
        """Return what part of all usage each association's is (N,), at most 1; 0 where there is none."""
        of_all = (Fraction(quotient(used, self.total)) if self.total else Fraction(0) for used in self.usage)
        return [min(each, Fraction(1)) for each in of_all]

    def machine_part(self) -> list[Fraction]:
        """Return what part of the whole machine each association's shares are (N,): the product down the tree.

        Source: Slurm, doc/html/classic_fair_share.shtml, "Normalized Shares"; src/common/assoc_mgr.c,
        _normalize_assoc_shares_traditional: with Fairshare=parent it is the account's.
        """
        own = self.fair_part()
        parts: list[Fraction | None] = [None] * len(self.above)

        def part(node: int) -> Fraction:
            if node == ROOT:
                return Fraction(1)
            found = parts[node]
            if found is None:
                found = part(self.above[node]) * (own[node] if self.share[node] is not None else 1)
                parts[node] = found
            return found

        return [part(node) for node in range(len(self.above))]


def quotient(top: Number, bottom: Number) -> Number:
    """Return top / bottom, infinity where only the bottom is 0."""
    return Fraction(top) / Fraction(bottom) if bottom else INFINITY if top else Fraction(0)
