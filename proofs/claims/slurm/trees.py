"""Small trees of associations, all of them, and what Slurm's pages say of their ranking."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from fairopt.models.slurm.tree import ROOT, AssociationTree, Ties, fair_tree
from fairopt.report import Statement


def small_trees(most: int) -> Iterator[AssociationTree]:
    """Yield all trees of at most so many associations, one a user, in every order of listing.

    Shares and the usage of users are 0 or 1; an account's usage is that of its members.
    """
    for count in range(1, most + 1):
        for kinds in product((True, False), repeat=count):  # whether it is a user; each is listed after its account
            accounts = [[ROOT, *(over for over in range(at) if not kinds[over])] for at in range(count)]
            for above in product(*accounts) if any(kinds) else ():
                for shares in product((0, 1), repeat=count):
                    users = [at for at in range(count) if kinds[at]]
                    for used in product((0, 1), repeat=len(users)):
                        yield tree(above, kinds, shares, dict(zip(users, used, strict=True)))


def tree(
    above: tuple[int, ...], kinds: tuple[bool, ...], shares: tuple[int, ...], used: dict[int, int]
) -> AssociationTree:
    """Return the tree of associations in the order listed; ``used`` is the usage of the users among them."""
    seq = sorted(range(len(above)), key=lambda at: not kinds[at])
    place = {at: row for row, at in enumerate(seq)} | {ROOT: ROOT}
    usage = [Fraction(used.get(at, 0)) for at in range(len(above))]
    for at in reversed(range(len(above))):
        if above[at] != ROOT:
            usage[above[at]] += usage[at]
    return AssociationTree.of(
        [place[above[at]] for at in seq],
        [shares[at] for at in seq],
        [usage[at] for at in seq],
        users=sum(kinds),
        listed=[place[at] for at in range(len(above))],
    )


def members(found: AssociationTree, node: int) -> list[int]:
    """Return the users below an account, or the user itself."""
    if node < found.users:
        return [node]
    return [user for each in found.below[node] for user in members(found, each)]


def siblings(found: AssociationTree) -> Iterator[tuple[int, int]]:
    """Yield all pairs of associations of one level."""
    for level in found.below:
        yield from ((one, other) for one in level for other in level if one != other)


def higher_account_not_higher(found: AssociationTree, ranking: Statement) -> bool:
    """Whether some user of an account does not go before a user of a sibling with a lower level fair-share."""
    return any(
        one >= found.users
        and ranking.level[one] > ranking.level[other]
        and min((ranking.rank[user] for user in members(found, one)), default=found.users + 1)
        <= max((ranking.rank[user] for user in members(found, other)), default=0)
        for one, other in siblings(found)
    )


def tied_user_not_beside(found: AssociationTree, ranking: Statement) -> bool:
    """Whether some user has not the rank of the highest user of a sibling account with its level fair-share."""
    return any(
        one < found.users <= other
        and ranking.level[one] == ranking.level[other]
        and members(found, other)
        and ranking.rank[one] != max(ranking.rank[user] for user in members(found, other))
        for one, other in siblings(found)
    )


def tied_users_apart(found: AssociationTree, ranking: Statement) -> bool:
    """Whether two sibling users of the same level fair-share have different ranks."""
    return any(
        one < found.users > other
        and ranking.level[one] == ranking.level[other]
        and ranking.rank[one] != ranking.rank[other]
        for one, other in siblings(found)
    )


def lower_without_reason(found: AssociationTree, ranking: Statement) -> bool:
    """Whether a user has a lower rank than one whose ancestor below their common one has no higher level fair-share."""
    return any(
        ranking.level[one] >= ranking.level[other]
        and any(ranking.rank[a] < ranking.rank[b] for a in members(found, one) for b in members(found, other))
        for one, other in siblings(found)
    )


def best_below_1(found: AssociationTree, ranking: Statement) -> bool:
    """Whether nobody has FairShare 1."""
    return bool(max(ranking.rank) != found.users)


def listed(found: AssociationTree) -> str:
    """Return a tree in words: associations in the order listed, with shares and usage."""

    def told(node: int) -> str:
        name = f"user {chr(97 + node)}" if node < found.users else f"account {chr(65 + node - found.users)}"
        inside = f" ({', '.join(map(told, found.below[node]))})" if found.below[node] else ""
        return f"{name} {found.share[node]}/{found.usage[node]}{inside}"

    return ", ".join(map(told, found.below[ROOT]))


def factors(found: AssociationTree, ties: Ties) -> str:
    """Return FairShare of all users."""
    return ", ".join(f"{chr(97 + user)} {factor}" for user, factor in enumerate(fair_tree(found, ties).factor))
