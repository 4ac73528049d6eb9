"""Slurm's two rules as policies: Fair Tree, and multifactor with the classic fair-share factor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import require
from fairopt.models.common.holdings import Holdings, entitlements_of, light
from fairopt.models.slurm.tree import (
    ROOT,
    AssociationTree,
    Exponential,
    Ties,
    classic_factors,
    effective_usage,
    fair_tree,
    quotient,
    weighted,
)
from fairopt.policy import Claim, Computed, Example, Trait
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.program import INFINITY, Array, Number, cast, objects

#: Priorities are whole numbers of 32 bits, from 1. Source: priority_multifactor.c, _get_priority_internal.
LOWEST, HIGHEST = 1, 0xFFFFFFFF
#: What a rule finds: a factor for each user, the value of each association, and users in its order.
Found = tuple[Sequence[Fraction | Exponential], Sequence[Number | None], Sequence[int]]


def _two_accounts() -> Market:
    """Return two accounts of equal shares, of which b has used three times as much as a; both ask for all GPUs."""
    users, types = ["a/u", "b/v"], ["H100"]
    owed = Entitlements.of(
        users,
        types,
        group={"a/u": "a", "b/v": "b"},
        usage={"a/u": 1, "a": 1, "b/v": 3, "b": 3},
        gangs=Gangs.of(["b/v", "a/u"], [8, 8], users=users, types=types),
    )
    return Market.of([[1], [1]], [8], users=users, types=types, entitlements=owed)


@dataclass(frozen=True)
class SlurmQueue(Computed):
    """What Slurm starts next: pending jobs by priority, within GrpTRES and the free GPUs.

    A user of the market is an association; `borrow_weight` is RawShares, `usage` RawUsage (decayed), `cap` GrpTRES;
    tier 1 with weight 0 is Fairshare=parent; a gang's tier is the priority of its QOS. What runs is not stopped.
    Guarantees and reserves, which Slurm has not, are refused. With all weights 0, the default in slurm.conf, no sum is
    made, and jobs go by fair-share factor, then QOS, then submission.

    * ``backfill``: a job may start although one before it waits for GPUs.
    * ``one_partition``: all types are in one partition, which a job that waits for GPUs keeps for itself without
      ``backfill``; else each type is taken for a partition.
    * ``weight_fairshare``: PriorityWeightFairshare.
    * ``weight_qos``: PriorityWeightQOS, of the tier over the highest.
    * ``weight_age``: PriorityWeightAge, of the time waited over ``max_age``.
    * ``max_age``: PriorityMaxAge, in seconds; 7 days.

    `DecisionReason.owed` is each association's part of every type by shares down the tree: what usage is compared with,
    no quota. Errors: `BadInput` for other options.
    """

    backfill: bool = False
    one_partition: bool = False
    weight_fairshare: int = 0
    weight_qos: int = 0
    weight_age: int = 0
    max_age: int = 604_800

    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.ENTITLED, Trait.EXACT, Trait.UNIT_FREE, Trait.DETERMINED})
    supports: ClassVar[frozenset[Entitled]] = frozenset({Entitled.CAPS, Entitled.GROUPS, Entitled.TIERS})
    examples = (Example("by hand: a has LF 2 and factor 2 ** -1/2, b 2/3 and 2 ** -3/2", _two_accounts(), [[8], [0]]),)
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        for name in ("backfill", "one_partition"):
            require(isinstance(getattr(self, name), bool), getattr(self, name), name, "Give true or false")
        for name in ("weight_fairshare", "weight_qos", "weight_age", "max_age"):
            value, least = getattr(self, name), int(name == "max_age")
            fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= HIGHEST
            require(fits, value, name, f"Give a whole number from {least} to {HIGHEST}")

    @abstractmethod
    def find(self, tree: AssociationTree) -> Found:
        """Return the factor of each user, the value of each association, and the users in the rule's order."""

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that users hold after the jobs that can start have started, and why."""
        owed = problem.entitlements
        assert owed is not None
        tree, nodes = AssociationTree.from_entitlements(owed)
        factor, value, users = self.find(tree)
        order = self.order(owed.gangs, factor)
        room = start(problem, order, backfill=self.backfill, one_partition=self.one_partition)
        names = owed.nodes
        part: dict[int, Fraction] = dict(zip(nodes, tree.machine_part(), strict=True))
        parts = objects(part.get(node, Fraction(1)) for node in range(len(names)))

        def told(column: Sequence[Number | None]) -> dict[str, Number]:
            return {names[node]: each for node, each in zip(nodes, column, strict=True) if each is not None}

        stated = {what: told(column) for what, column in self.further(tree, value).items()}
        return room.decided(
            problem,
            self.unit,
            told(value),
            stated={"FairShare": dict(zip(owed.users, map(float, factor), strict=True))} | stated,
            owed=np.multiply.outer(parts, cast(problem.capacity, Fraction)),
            order=tuple(names[user] for user in users),
        )

    def order(self, gangs: Gangs, factor: Sequence[Fraction | Exponential]) -> list[int]:
        """Return the pending gangs, the one that goes first before the others; ``factor`` (n,) is by user.

        Without weights: by fair-share factor, then tier, then when they were asked for. With weights: by the whole part
        of the weighted sum of fair-share, QOS (the tier over the highest) and age, then when they were asked for. "Now"
        is when the last job was asked for.

        Source: Slurm 284c3b95, src/plugins/priority/multifactor/priority_multifactor.c, _get_priority_internal and
        set_priority_factors; src/slurmctld/job_scheduler.c, sort_job_queue2.
        """
        pending = [gang for gang, on in enumerate(gangs.on.tolist()) if on < 0]
        user, tier, since = gangs.user.tolist(), gangs.tier.tolist(), gangs.since.tolist()
        if not (self.weight_fairshare or self.weight_qos or self.weight_age):
            place = _places(factor)
            return sorted(pending, key=lambda gang: (place[user[gang]], -tier[gang], since[gang]))
        priority = self.priorities(gangs, factor)
        return sorted(pending, key=lambda gang: (-priority[gang], since[gang]))

    def priorities(self, gangs: Gangs, factor: Sequence[Fraction | Exponential]) -> dict[int, int]:
        """Return the priority of each pending gang by its number, as `sprio` prints it; ``factor`` (n,) is by user."""
        user, tier, since = gangs.user.tolist(), gangs.tier.tolist(), gangs.since.tolist()
        now, top = max(since, default=0), max([*tier, 1])
        found: dict[tuple[int, int, Number], int] = {}
        priority = {}
        for gang in (gang for gang, on in enumerate(gangs.on.tolist()) if on < 0):
            key = (user[gang], tier[gang], since[gang])
            if key not in found:
                age = min(Fraction(now - since[gang]) / self.max_age, Fraction(1))
                rest = self.weight_age * age + self.weight_qos * Fraction(max(tier[gang], 0), top)
                found[key] = min(max(weighted(self.weight_fairshare, factor[user[gang]], rest), LOWEST), HIGHEST)
            priority[gang] = found[key]
        return priority

    @abstractmethod
    def further(self, tree: AssociationTree, value: Sequence[Number | None]) -> dict[str, Sequence[Number | None]]:
        """Return what sshare prints beside FairShare, by column and association; None for what is not said here."""

    def factors(self, market: Market) -> Mapping[str, Fraction | Exponential]:
        """Return the fair-share factor of every user, as `sshare` prints it in the column FairShare."""
        owed = market.entitlements
        assert owed is not None
        return dict(zip(owed.users, self.find(AssociationTree.from_entitlements(owed)[0])[0], strict=True))


def _places(factor: Sequence[Fraction | Exponential]) -> list[int]:
    """Return each user's place (n,) by factor, the highest 0; equal ones share a place."""
    falling: list[Number] = [each.exponent if isinstance(each, Exponential) else -each for each in factor]
    places = {each: at for at, each in enumerate(sorted(set(falling)))}
    return [places[each] for each in falling]


_PAGE = "Slurm 284c3b95, doc/html/fair_tree.shtml"


@dataclass(frozen=True)
class SlurmFairTree(SlurmQueue):
    """Fair Tree: LF = S / U at every level, users ranked depth first, FairShare = rank over the number of users.

    * ``ties``: `Ties.CODE` does what the code does with sibling accounts of the same level fair-share, which is not
      what its page says; `Ties.DOCUMENTED` what the page says.
    * ``rounded``: level fair-shares as the code rounds them on x86, where some that are equal come out different.

    The value of an association is LevelFS.

    Source: Slurm 284c3b95, src/plugins/priority/multifactor/fair_tree.c; doc/html/fair_tree.shtml.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(SlurmFairTree(), market, exact=True).shares[:, 0])
    4 0
    """

    ties: Ties = Ties.CODE
    rounded: bool = False

    name = "slurm-fair-tree"
    source = "Slurm, Fair Tree Fairshare Algorithm (Cox and Morrison, 2014)"
    unit = "level fair-share"
    claims = (
        Claim("", _PAGE, words="all users from a higher priority account receive a higher fair share factor"),
        Claim("", f"{_PAGE}, Ties", words="sibling accounts with the same Level Fairshare have their children merged"),
        Claim("", f"{_PAGE}, Overview", words="the highest ranked user receives a 1.0 fairshare value"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        told = ", ".join(f"Ties.{each.name}" for each in Ties)
        require(isinstance(self.ties, Ties), self.ties, "ties", f"Give {told}")
        require(isinstance(self.rounded, bool), self.rounded, "rounded", "Give true or false")

    def further(self, tree: AssociationTree, value: Sequence[Number | None]) -> dict[str, Sequence[Number | None]]:
        """Return LevelFS, and usage and shares over those of the account.

        Source: Slurm, doc/html/fair_tree.shtml; sshare.1, EFFECTV USAGE and NORM SHARES with Fair Tree.
        """
        above = [tree.total if over == ROOT else tree.usage[over] for over in tree.above]
        part = [*tree.fair_part(), Fraction(0)]  # the last is the root's
        return {
            "LevelFS": value,
            "NormShares": [
                part[over] if own is None else part[node]  # with Fairshare=parent it is that of the account
                for node, (own, over) in enumerate(zip(tree.share, tree.above, strict=True))
            ],
            "NormUsage": tree.machine_usage(),
            "EffectvUsage": [quotient(used, max(used, all_)) for used, all_ in zip(tree.usage, above, strict=True)],
        }

    def find(self, tree: AssociationTree) -> Found:
        """Return FairShare of users, LevelFS of associations, and the ranking."""
        ranking = fair_tree(tree, self.ties, rounded=self.rounded)
        return ranking.factor, ranking.level, ranking.order


@dataclass(frozen=True)
class SlurmMultifactor(SlurmQueue):
    """Multifactor priority with the classic fair-share factor 2 ** (-U / S / d) (PriorityFlags=NO_FAIR_TREE).

    * ``dampening``: d, FairShareDampeningFactor.

    Factors are irrational; they are compared by their exponents, which are rational, and the whole part of a weighted
    sum is exact. The value of an association is its factor, in floats.

    Source: Slurm 284c3b95, src/plugins/priority/multifactor/priority_multifactor.c; doc/html/classic_fair_share.shtml,
    doc/html/priority_multifactor.shtml.

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(SlurmMultifactor(), market, exact=True).shares[:, 0])
    4 0
    """

    dampening: int = 1

    name = "slurm-multifactor"
    source = "Slurm, Multifactor Priority Plugin, and Classic Fairshare Algorithm"
    unit = "fair-share factor"
    claims = (
        Claim(
            "",
            "Slurm 284c3b95, doc/html/classic_fair_share.shtml, Simplified Fair-Share Formula",
            words="a factor of 0.5: the user's jobs have used exactly the portion of the machine allocated to them",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = isinstance(self.dampening, int) and not isinstance(self.dampening, bool) and 1 <= self.dampening <= 65535
        require(fits, self.dampening, "dampening", "Give a whole number from 1 to 65535")

    def further(self, tree: AssociationTree, value: Sequence[Number | None]) -> dict[str, Sequence[Number | None]]:
        """Return usage and shares of the whole machine, effective usage, and the factor of these two.

        sshare computes it of what it prints; priorities have the root's of Fairshare=parent in the root.

        Source: classic_fair_share.shtml; Slurm, src/sshare/process.c, PRINT_FSFACTOR.
        """
        part, used = tree.machine_part(), effective_usage(tree)
        return {
            "FairShare": [2.0 ** -float(u / s / self.dampening) if s else 0.0 for u, s in zip(used, part, strict=True)],
            "NormShares": part,
            "NormUsage": tree.machine_usage(),
            "EffectvUsage": used,
        }

    def find(self, tree: AssociationTree) -> Found:
        """Return the classic factors, and users by them."""
        factors = classic_factors(tree, self.dampening)
        users = sorted(range(tree.users), key=lambda user: factors[user].exponent)
        return factors[: tree.users], [float(each) if each.exponent < INFINITY else 0.0 for each in factors], users


def start(market: Market, order: Sequence[int], *, backfill: bool, one_partition: bool = False) -> Holdings:
    """Return what is held after pending gangs were started in ``order``, by number, and why others wait.

    A job that breaks a limit is passed over. A job for which there are too few free GPUs keeps the types that it could
    take for itself: nobody after it starts there, unless with ``backfill``. What runs is not stopped. Types are tried
    in the market's order. Which host a GPU is in, how long jobs run and reservations are not looked at.

    Source: Slurm 284c3b95, src/slurmctld/job_scheduler.c, _schedule: acct_policy_job_runnable_pre_select, `continue`;
    ESLURM_NODES_BUSY, fail_by_part; ESLURM_ACCOUNTING_POLICY (assoc_limit_stop is off by default). A GPU type is taken
    for a partition, or with ``one_partition`` all are one. With ``backfill`` jobs are tried as in
    src/plugins/sched/backfill, without its time limits.
    """
    owed, room = entitlements_of(market), Holdings.at_first(market)
    cap = [light(row) for row in owed.cap.tolist()]
    limited = [any(each < INFINITY for each in row) for row in cap]
    there, taken = [int(each) for each in market.capacity], owed.held[:, : len(market.types)].sum(axis=0)
    room.free[: len(there)] = [all_ - int(each) for all_, each in zip(there, taken, strict=True)]  # whole GPUs
    limits = [[over for over in owed.path(user) if limited[over]] for user in range(len(owed.users))]
    pending = {gang.number: gang for own in room.waiting.values() for gang in own}
    kept: dict[int, str] = {}  # the job for which a type is kept
    for number in order:
        gang = pending[number]
        why, short, need = "", [], owed.gangs.size(number)
        for kind, takes in gang.takes.items():
            if need > there[kind]:
                continue
            if kind in kept:
                why = why or f"{market.types[kind]} is kept for {kept[kind]}, which goes first"
                continue
            over = ((node, room.beyond(node, takes, cap[node])) for node in limits[gang.queue])
            broken = next(((node, column) for node, column in over if column is not None), None)
            if broken is not None:
                node, column = broken
                held, most = room.held[node][column], cap[node][column]
                why = f"the limit of {room.names[node]}: {most} {room.columns[column]}, of which it holds {held}"
            elif need > room.free[kind]:
                short.append(kind)
                why = f"it needs {need} {market.types[kind]}, and {max(room.free[kind], 0)} are free"
            else:
                room.start(gang, kind)
                break
        else:
            room.waits[gang.name] = why or f"it needs {need} GPUs, more than there are of any type that it may take"
            if not backfill:
                kept |= dict.fromkeys(range(len(market.types)) if one_partition and short else short, gang.name)
    return room
