"""Slurm's two rules as policies: Fair Tree, and multifactor with the classic fair-share factor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from fairopt.errors import require
from fairopt.models.common.holdings import entitlements_of
from fairopt.models.slurm.scheduling import scheduled
from fairopt.models.slurm.site import SlurmJob, SlurmPartition, SlurmSite, whole_number
from fairopt.models.slurm.starting import JobStarter
from fairopt.models.slurm.tree import (
    ROOT,
    AssociationTree,
    Exponential,
    Ties,
    classic_factors,
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
#: Options that are numbers, by what slurm.conf calls them, and what they are where nobody says.
OPTIONS = MappingProxyType(
    {
        "weight_fairshare": "PriorityWeightFairShare",
        "weight_qos": "PriorityWeightQOS",
        "weight_age": "PriorityWeightAge",
        "weight_partition": "PriorityWeightPartition",
        "weight_size": "PriorityWeightJobSize",
        "max_age": "PriorityMaxAge",
        "dampening": "FairShareDampeningFactor",
    }
)
DEFAULTS = MappingProxyType({"max_age": 604_800, "dampening": 1})
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
    """What Slurm starts next: pending jobs by priority, within limits, partitions and the free GPUs.

    A user of the market is an association; `borrow_weight` is RawShares, `usage` RawUsage (decayed), `cap` GrpTRES;
    tier 1 with weight 0 is Fairshare=parent; a gang's tier is the priority of its QOS. Guarantees and reserves, which
    Slurm has not, are refused. Partitions, QOS, limits on jobs, preemption and time limits are what the market's
    settings say; without any, nothing is stopped and nobody knows when a job ends.

    An option that is None is what the settings say (slurm.conf), else Slurm's default. With all weights 0 no sum is
    made, and jobs go by fair-share factor, then QOS, then submission; where the settings say so, by submission.

    * ``backfill``: a job may start although one before it waits for GPUs, where that does not delay it.
    * ``one_partition``: where no partitions are named, all types are in one, which a job that waits for GPUs keeps for
      itself without ``backfill``; else each type is taken for a partition.
    * ``weight_fairshare``: PriorityWeightFairshare.
    * ``weight_qos``: PriorityWeightQOS, of the QOS's priority over the highest.
    * ``weight_age``: PriorityWeightAge, of the time waited over ``max_age``.
    * ``max_age``: PriorityMaxAge, in seconds; 7 days.
    * ``weight_partition``: PriorityWeightPartition, of the partition's PriorityJobFactor over the highest.
    * ``weight_size``: PriorityWeightJobSize, of the mean of the job's parts of all nodes and of all CPUs.

    `DecisionReason.owed` is each association's part of every type by shares down the tree: what usage is compared with,
    no quota. Errors: `BadInput` for other options.
    """

    backfill: bool | None = None
    one_partition: bool = False
    weight_fairshare: int | None = None
    weight_qos: int | None = None
    weight_age: int | None = None
    max_age: int | None = None
    weight_partition: int | None = None
    weight_size: int | None = None

    traits: ClassVar[frozenset[Trait]] = frozenset({Trait.ENTITLED, Trait.EXACT, Trait.UNIT_FREE, Trait.DETERMINED})
    supports: ClassVar[frozenset[Entitled]] = frozenset({Entitled.CAPS, Entitled.GROUPS, Entitled.TIERS})
    examples = (Example("by hand: a has LF 2 and factor 2 ** -1/2, b 2/3 and 2 ** -3/2", _two_accounts(), [[8], [0]]),)
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        require(isinstance(self.backfill, bool | None), self.backfill, "backfill", "Give true, false or none")
        require(isinstance(self.one_partition, bool), self.one_partition, "one_partition", "Give true or false")
        for name in OPTIONS:
            value, least = getattr(self, name, None), int(name in ("max_age", "dampening"))
            most = 65535 if name == "dampening" else HIGHEST
            fits = value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most)
            require(fits, value, name, f"Give a whole number from {least} to {most}")

    @abstractmethod
    def find(self, tree: AssociationTree) -> Found:
        """Return the factor of each user, the value of each association, and the users in the rule's order."""

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that users hold after the jobs that can start have started, and why."""
        owed = problem.entitlements
        assert owed is not None
        rule = self.as_set(owed)
        tree, nodes = AssociationTree.from_entitlements(owed)
        factor, value, users = rule.find(tree)
        starter = rule.starter(problem, factor)
        room = scheduled(starter, backfill=bool(rule.backfill))
        names = owed.nodes
        part: dict[int, Fraction] = dict(zip(nodes, tree.machine_part, strict=True))
        parts = objects(part.get(node, Fraction(1)) for node in range(len(names)))

        def told(column: Sequence[Number | None]) -> dict[str, Number]:
            return {names[node]: each for node, each in zip(nodes, column, strict=True) if each is not None}

        stated = {what: told(column) for what, column in rule.further(tree, value).items()}
        return room.decided(
            problem,
            self.unit,
            told(value),
            stated={"FairShare": dict(zip(owed.users, map(float, factor), strict=True))} | stated,
            owed=np.multiply.outer(parts, cast(problem.capacity, Fraction)),
            order=tuple(names[user] for user in users),
        )

    def as_set(self, owed: Entitlements) -> Self:
        """Return the same rule with every option that is None as the settings of a market say, else as by default."""
        said = owed.settings.get("", {})
        found: dict[str, Any] = {
            name: whole_number(said, OPTIONS[name], DEFAULTS.get(name, 0))
            for name in OPTIONS
            if getattr(self, name, 0) is None
        }
        if self.backfill is None:
            found["backfill"] = said.get("SchedulerType", "").endswith("backfill")
        return replace(self, **found) if found else self

    def starter(self, market: Market, factor: Sequence[Fraction | Exponential]) -> JobStarter:
        """Return a market's jobs in the order in which they are tried; ``factor`` (n,) is by user.

        Without weights: by fair-share factor, then tier, then when they were asked for; where slurm.conf is known, by
        the latter alone. With weights: by the whole part of the weighted sum, then when they were asked for.

        Source: Slurm 22.05.8 and 284c3b95, src/plugins/priority/multifactor/priority_multifactor.c,
        _get_priority_internal and set_priority_factors; src/slurmctld/job_scheduler.c, sort_job_queue2.
        """
        gangs, rule = entitlements_of(market).gangs, self.as_set(entitlements_of(market))
        user, tier, since = gangs.user.tolist(), gangs.tier.tolist(), gangs.since.tolist()
        weighs = any(getattr(rule, name) for name in OPTIONS if name.startswith("weight"))
        place, moment = _places(factor), gangs.moments.tolist()

        def key(job: SlurmJob, part: SlurmPartition) -> tuple[Any, ...]:
            gang = job.number
            if weighs:
                first: tuple[Any, ...] = (
                    -rule._priority(starter.site, job, part, factor, now, since[gang], tier[gang]),
                )
            else:
                first = () if "PriorityType" in starter.site.said else (place[user[gang]], -tier[gang])
            return (*first, moment[gang], gang)

        now = max(since, default=0)
        starter = JobStarter(market, key, one_partition=self.one_partition)
        return starter

    def priorities(self, market: Market, factor: Sequence[Fraction | Exponential]) -> dict[int, dict[str, int]]:
        """Return the priority of each pending gang, by its number, in each of its partitions, as `sprio` prints it.

        ``factor`` (n,) is by user.
        """
        starter, gangs = self.starter(market, factor), entitlements_of(market).gangs
        rule, since, tier = self.as_set(entitlements_of(market)), gangs.since.tolist(), gangs.tier.tolist()
        now = max(since, default=0)
        return {
            job.number: {
                part.name: rule._priority(starter.site, job, part, factor, now, since[job.number], tier[job.number])
                for part in job.partitions
            }
            for job in starter.site.jobs.values()
            if job.gang.on < 0
        }

    def _priority(
        self, site: SlurmSite, job: SlurmJob, part: SlurmPartition, factor: Sequence[Fraction | Exponential],
        now: Number, since: Number, tier: int,
    ) -> int:  # fmt: skip
        """Return the priority of a job in a partition: the whole part of the weighted sum, at least 1."""
        own = (job.gang.queue, tier, since, part.factor, job.nice, job.nodes, job.cpus)
        known = site.priorities.get(own)
        if known is None:
            age = min(Fraction(now - since) / (self.max_age or 1), Fraction(1))
            rest = (self.weight_age or 0) * age - job.nice
            rest += (self.weight_qos or 0) * Fraction(max(tier, 0), site.highest_qos(tier))
            rest += (self.weight_partition or 0) * Fraction(part.factor, site.highest_factor)
            rest += (self.weight_size or 0) * site.size_of(job)
            found = weighted(self.weight_fairshare or 0, factor[job.gang.queue], rest)
            known = site.priorities[own] = min(max(found, LOWEST), HIGHEST)
        return known

    @abstractmethod
    def further(self, tree: AssociationTree, value: Sequence[Number | None]) -> dict[str, Sequence[Number | None]]:
        """Return what sshare prints beside FairShare, by column and association; None for what is not said here."""

    def factors(self, market: Market) -> Mapping[str, Fraction | Exponential]:
        """Return the fair-share factor of every user, as `sshare` prints it in the column FairShare."""
        owed = market.entitlements
        assert owed is not None
        return dict(zip(owed.users, self.as_set(owed).find(AssociationTree.from_entitlements(owed)[0])[0], strict=True))


def _places(factor: Sequence[Fraction | Exponential]) -> list[int]:
    """Return each user's place (n,) by factor, the highest 0; equal ones share a place."""
    values = [each.exponent if isinstance(each, Exponential) else -each for each in factor]
    places = {each: at for at, each in enumerate(sorted(set(values)))}
    return [places[each] for each in values]


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

    dampening: int | None = None

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

    def further(self, tree: AssociationTree, value: Sequence[Number | None]) -> dict[str, Sequence[Number | None]]:
        """Return usage and shares of the whole machine, effective usage, and the factor of these two.

        sshare computes it of what it prints; priorities have the root's of Fairshare=parent in the root.

        Source: classic_fair_share.shtml; Slurm, src/sshare/process.c, PRINT_FSFACTOR.
        """
        part, used = tree.machine_part, tree.effective
        return {
            "FairShare": [
                2.0 ** -float(u / s / (self.dampening or 1)) if s else 0.0 for u, s in zip(used, part, strict=True)
            ],
            "NormShares": part,
            "NormUsage": tree.machine_usage(),
            "EffectvUsage": used,
        }

    def find(self, tree: AssociationTree) -> Found:
        """Return the classic factors, and users by them."""
        factors = classic_factors(tree, self.dampening or 1)
        users = sorted(range(tree.users), key=lambda user: factors[user].exponent)
        return factors[: tree.users], [float(each) if each.exponent < INFINITY else 0.0 for each in factors], users
