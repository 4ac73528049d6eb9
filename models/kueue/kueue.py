"""Kueue: which workloads are admitted and preempted, by quotas, cohorts and dominant resource shares.

A market with entitlements is Kueue's quotas and workloads, in integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from fairopt.configuring import configured
from fairopt.errors import BadInput, NotCapable, require
from fairopt.models.common.holdings import linked
from fairopt.models.kueue.cycles import Cycles, run
from fairopt.models.kueue.gangs import FEWER, GPU, fewer_pods, past_use, placed, works_of
from fairopt.models.kueue.quotas import UNLIMITED, CohortQuotas
from fairopt.models.kueue.state import FlavorPreference, Preempts, Queueing, Rules, Search, State, Strategy
from fairopt.models.kueue.topology import Topologies
from fairopt.models.kueue.work import QueuedWork
from fairopt.policy import Claim, Computed, Example, Trait
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Entitled, Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import own_part
from fairopt.program import Array, objects

#: Source: preemption.go, HumanReadablePreemptionReasons.
REASONS = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


#: Both rules of fair sharing, in their order.
BOTH = (Strategy.FINAL_SHARE, Strategy.INITIAL_SHARE)
#: What is set for the whole cluster.
_WHOLE = (
    "fair_sharing",
    "strategies",
    "prioritize_non_borrowing",
    "preempt_within_nominal",
    "place_again",
    "topologies",
)
_ROOM, _LATE = "it fits when those that are stopped for it are gone", "it fits now, and was tried before others left"


def _borrowing() -> Market:
    """Two teams in a cohort, 9 and 12; who asks first may have all 21."""
    users, types = ["team-a-cq", "team-b-cq"], ["default-flavor"]
    gangs = Gangs.of(["team-a-cq"] * 7, [3] * 7, users=users, types=types)
    owed = Entitlements.of(
        users, types, group=dict.fromkeys(users, "team-ab"), guarantee={users[0]: [9], users[1]: [12]}, gangs=gangs
    )
    return Market.of([[1], [1]], [21], users=users, types=types, entitlements=owed)


@dataclass(frozen=True)
class Kueue(Computed):
    """Kueue's scheduling cycles on what runs and waits now, until nothing changes any more.

    A user is a ClusterQueue, a group a Cohort, a type a flavor of GPUs, a gang a workload. In each cycle every
    ClusterQueue offers its first workload: highest priority, then oldest, or before these that of the LocalQueue which
    has used least, where that is so ordered. It takes the first flavor that fits, within
    the quota or borrowed from the cohorts. A workload that does not fit may preempt others, which wait again.

    * ``fair_sharing``: whether shares decide who comes next and who is preempted. A share is the largest, over
      resources, of what a node borrows to what could be lent to it, times 1000, by weight; at weight 0 it is infinite.
      Otherwise (classic) who needs not borrow comes first, then priority, then age.
    * ``strategies``: when fair sharing preempts: first rule S2-a, then S2-b.
    * ``reclaim_within_cohort`` (Never, LowerPriority, Any), ``within_cluster_queue`` (Never, LowerPriority,
      LowerOrNewerEqualPriority), ``borrow_within_cohort`` (Never, LowerPriority; classic only) with
      ``max_priority_threshold``: who may be preempted.
    * ``when_can_borrow``, ``when_can_preempt`` (MayStopSearch, TryNextFlavor), ``preference``: the search for a flavor.
    * ``queueing``: StrictFIFO or BestEffortFIFO.
    * ``prioritize_non_borrowing``, ``preempt_within_nominal``: Kueue's feature gates FairSharingPrioritizeNonBorrowing
      and FairSharingPreemptWithinNominal.
    * ``topologies``: of flavors whose nodes are in racks and blocks, what is free where, as `Topologies` reads it: pods
      start where they find places, all in one domain where that is required. ``place_again``: Kueue's feature gate
      TASRecomputeAssignmentWithinSchedulingCycle: pods whose places another took in the same cycle find others.
    * ``cycles``: how many scheduling cycles are played; None until nothing changes. What is preempted in the last is
      gone, and its preemptor waits.

    An option that is None is what the market's `settings` say of each ClusterQueue, else of the cluster, else the
    source's default: without fair sharing or preemption. One that is given holds for all ClusterQueues.

    Readings. "Admitted most recently" is asked for most recently, since a market does not say when a gang started.
    What else is not modelled: docs/schedulers/kueue.md.

    Source: kubernetes-sigs/kueue ff69552e79ad21652c36caa97038382e55625cf7, pkg/scheduler and pkg/cache/scheduler; the
    functions are cited where they are; KEP-1714 (fair sharing), KEP-79 (hierarchical cohorts).

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"A": [4], "B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(Kueue(), market, exact=True).shares[:, 0])
    4 0
    """

    name = "kueue"
    source = "Kueue, github.com/kubernetes-sigs/kueue"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.GUARANTEES, Entitled.CAPS, Entitled.GROUPS})
    claims = (
        Claim("", "docs/concepts/fair_sharing, proof", words="two workloads do not preempt each other in turn"),
        Claim("", "KEP-1714, Story 3", words="300 GPUs go 150 and 150 to cohorts, then 30, 30 and 90 by weight"),
    )
    examples = (
        Example(
            "docs/concepts/cluster_queue, Cohort: quotas of 9 and 12, and one team may use up to 9+12 = 21",
            _borrowing(),
            shares=[[21], [0]],
        ),
    )

    fair_sharing: bool | None = None
    strategies: tuple[Strategy, ...] | None = None
    reclaim_within_cohort: Preempts | None = None
    within_cluster_queue: Preempts | None = None
    borrow_within_cohort: Preempts | None = None
    max_priority_threshold: int | None = None
    when_can_borrow: Search | None = None
    when_can_preempt: Search | None = None
    preference: FlavorPreference | None = None
    queueing: Queueing | None = None
    prioritize_non_borrowing: bool | None = None
    preempt_within_nominal: bool | None = None
    place_again: bool | None = None
    topologies: str | None = None
    cycles: int | None = None

    def __post_init__(self) -> None:
        """Refuse what Kueue's API refuses."""
        for name, refused in (
            ("reclaim_within_cohort", {Preempts.LOWER_OR_NEWER}),
            ("within_cluster_queue", {Preempts.ANY}),
            ("borrow_within_cohort", {Preempts.LOWER_OR_NEWER, Preempts.ANY}),
        ):
            own = getattr(self, name)
            known = ", ".join(each.value for each in Preempts if each not in refused)
            require(own is None or own not in refused, own and own.value, name, f"Give {known}")
        require(self.cycles is None or self.cycles > 0, self.cycles, "cycles", "Give 1 or more, or none")
        if self.fair_sharing and self.borrow_within_cohort not in (None, Preempts.NEVER):
            assert self.borrow_within_cohort is not None
            remedy = "Kueue has it without fair sharing only: leave out one of them"
            raise BadInput(f"got {self.borrow_within_cohort.value}", place="borrow_within_cohort", remedy=remedy)
        require(self.strategies in (None, BOTH, BOTH[:1], BOTH[1:]), len(self.strategies or ()), "strategies",
                "Give LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order")  # fmt: skip

    def rules_on(self, owed: Entitlements) -> tuple[list[Rules], dict[str, Any]]:
        """Return the rules of each ClusterQueue, and the options that hold for the whole cluster.

        Errors: `BadInput` for a setting of the market that is none of Kueue's.
        """
        blank = Kueue()
        made: dict[tuple[tuple[str, str], ...], Kueue] = {}  # many ClusterQueues set the same
        said: dict[str, Kueue] = {}
        ours = owed.settings.get("", {}).get("scheduler", self.name) == self.name
        for name, own in owed.settings.items() if ours else ():
            key = tuple(own.items())
            if key not in made:
                made[key] = configured(blank, [f"{option}={value}" for option, value in key], f"settings of {name!r},")
            said[name] = made[key]
        whole = said.get("", blank)

        def options(names: Iterable[str], own: Kueue) -> dict[str, Any]:
            given = {name: [getattr(each, name) for each in (self, own, whole)] for name in names}
            return {name: left[0] for name, row in given.items() if (left := [e for e in row if e is not None])}

        names = [each.name for each in fields(Rules)]
        known = {id(own): Rules(**options(names, own)) for own in (blank, *made.values())}
        return [known[id(said.get(name, blank))] for name in owed.users], options(_WHOLE, blank)

    def parts(self, problem: Market) -> list[list[int]]:
        """Return the ClusterQueues by the tree that they are in; all together where trees may share nodes."""
        owed = problem.entitlements
        assert owed is not None
        own_quotas(owed)  # a market that is refused has no parts
        return super().parts(problem) if self.rules_on(owed)[1].get("topologies") else linked(owed)

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs that each user holds afterwards (n, k), and why."""
        owed = problem.entitlements
        assert owed is not None
        owed = owed.as_(Fraction)
        quotas, units = quotas_of(owed)
        works = works_of(owed, units)
        rules, whole = self.rules_on(owed)
        cluster = State(
            quotas,
            rules.__getitem__,
            whole.get("fair_sharing", False),
            whole.get("strategies", BOTH),
            whole.get("preempt_within_nominal", True),
            whole.get("prioritize_non_borrowing", True),
            whole.get("place_again", True),
            Topologies(whole.get("topologies", ""), owed.types, works),
        )
        cluster.enter(work for work in works if work.flavor is not None)
        outcome = run(cluster, [work for work in works if work.flavor is None], self.cycles, past_use(owed.gangs))
        gangs = placed(owed.gangs, works)
        n, k = problem.shape
        shares = owed.held[:, :k] + objects(gangs.held(n).ravel() - owed.gangs.held(n).ravel()).reshape(n, k)
        return shares if problem.exact else shares.astype(float), _grounds(owed, gangs, cluster, units, works, outcome)


def _grounds(
    owed: Entitlements, gangs: Gangs, cluster: State, units: Array, works: list[QueuedWork], outcome: Cycles
) -> DecisionReason:
    quotas = cluster.quotas
    shares = dict(zip(owed.nodes, map(quotas.share, range(len(owed.nodes))), strict=True))
    ran = set(np.flatnonzero(~owed.gangs.pending).tolist())
    told: dict[object, str] = {}
    waits, stopped = {}, {}
    circle = {work.number for work in outcome.circle}
    makes_room = {preemptor.number for _, preemptor, _ in outcome.stopped.values()}
    for work in works:
        if work.flavor is not None:
            continue
        if work.number in outcome.stopped and work.number in ran:
            _, preemptor, reason = outcome.stopped[work.number]
            by = owed.nodes[preemptor.queue]
            stopped[work.name] = f"stopped for {preemptor.name!r} of {by!r}: {REASONS[reason]}"
        if work.kind not in told:
            told[work.kind] = _why(owed, cluster, units, work)
        again = (
            "; it and others preempt each other in a circle, so preemption ends here" if work.number in circle else ""
        )
        reason = told[work.kind] or (_ROOM if work.number in makes_room else _LATE)
        waits[work.name] = reason + again
    return DecisionReason(
        gangs,
        "dominant resource share: what is borrowed to what could be lent, times 1000, by weight",
        share={name: float("inf") if own.infinite else own.value for name, own in shares.items()},
        stated={"weightedShare": {name: own.rounded for name, own in shares.items()}},
        owed=owed.guarantee[:, : len(owed.types)],
        order=tuple(work.name for work in outcome.admitted),
        waits=waits,
        stopped=stopped,
    )


def _why(owed: Entitlements, cluster: State, units: Array, work: QueuedWork) -> str:
    """Return why a workload waits, by flavor."""
    queue, said, quotas = owed.nodes[work.queue], [], cluster.quotas
    for flavor, (own, apart) in work.needs.items():
        for column, amount in (*own, *apart):
            free, most = quotas.available(work.queue, column), quotas.potential[work.queue][column]
            if amount <= free:
                continue
            unit = units[column]
            used, quota = quotas.usage[work.queue][column], quotas.nominal[work.queue][column]
            held = f"{queue!r} uses {_number(used, unit)} of a quota of {_number(quota, unit)}"
            if amount > most:
                held = f"{queue!r} can have {_number(most, unit)} at most, with all that it may borrow"
            said.append(f"{owed.columns[column]}: asks for {_number(amount, unit)}, {_number(free, unit)} left; {held}")
            break
        else:
            if lack := cluster.topologies.lack(work, flavor):
                said.append(f"{owed.types[flavor]}: {lack}")
    return ". ".join(said)


def _number(amount: int, unit: int) -> str:
    return f"{amount // unit}" if amount % unit == 0 else f"{amount / unit:g}"


def own_quotas(owed: Entitlements) -> Array:
    """Return the guarantees, those of groups less those of their members (N, k + g).

    Errors: `NotCapable` for what no ClusterQueue or Cohort says.
    """
    own = own_part(owed.guarantee, owed.children)
    for broken, what in ((own < 0, "less than its members together"), (owed.cap < owed.guarantee, "a cap below it")):
        for node, column in np.argwhere(broken)[:1]:
            said = f"{owed.nodes[node]!r} has a guarantee of {owed.guarantee[node, column]} {owed.columns[column]}"
            raise NotCapable(f"Kueue has no such quota: {said}, and {what}")
    return own


def quotas_of(owed: Entitlements) -> tuple[CohortQuotas, Array]:
    """Return the quotas, with what is held besides gangs in use, and the units of each column.

    A guarantee is a nominal quota (a group's less that of its members), a cap less the guarantee a borrowing limit, a
    guarantee less the reserve a lending limit. An amount times its column's unit is an integer; flavors of a resource
    have one unit. Errors: `NotCapable` for what no ClusterQueue or Cohort says.
    """
    own = own_quotas(owed)
    resource = [GPU] * len(owed.types) + [good.resource for good in owed.goods]
    tables = (own, owed.cap, owed.reserve, owed.held)
    unit_of = dict.fromkeys(resource, 1) | {GPU: owed.gangs.parts}
    for column, name in enumerate(resource):
        parts = {
            each.denominator for table in tables for each in table[:, column].tolist() if not isinstance(each, float)
        }
        unit_of[name] = lcm(unit_of[name], *parts)
    for at, name in enumerate(owed.gangs.resources):
        if name in unit_of:
            unit_of[name] = lcm(unit_of[name], *{each.denominator for each in owed.gangs.other[:, at]})
    for text in {own.get(FEWER, "") for own in owed.gangs.settings}:
        for _, takes in fewer_pods(text, f"settings of a gang, {FEWER}"):
            for name in takes.keys() & unit_of.keys():
                unit_of[name] = lcm(unit_of[name], takes[name].denominator)
    units = [unit_of[name] for name in resource]

    def whole(row: Array) -> list[int]:
        return [
            UNLIMITED
            if isinstance(each, float)
            else each.numerator * (unit // each.denominator)  # no float but infinity
            for each, unit in zip(row, units, strict=True)
        ]

    rows = range(len(owed.nodes))
    guaranteed, caps, reserves = (
        [whole(table[node]) for node in rows] for table in (owed.guarantee, owed.cap, owed.reserve)
    )
    quotas = CohortQuotas(
        owed.parent.tolist(),
        resource,
        [whole(own[node]) for node in rows],
        [
            [None if limit == UNLIMITED else limit - least for limit, least in zip(caps[n], guaranteed[n], strict=True)]
            for n in rows
        ],
        [
            [None if kept == 0 else least - kept for kept, least in zip(reserves[n], guaranteed[n], strict=True)]
            for n in rows
        ],
        [Fraction(each) for each in owed.borrow_weight],
    )
    for user, row in enumerate(owed.held):
        quotas.add(user, [(column, amount) for column, amount in enumerate(whole(row)) if amount])
    return quotas, np.array(units, dtype=object)
