"""What the Workloads of a file add up to, by ClusterQueue: the numbers that its status states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from fairopt.importing.kueue_quotas import QuotaOwner
from fairopt.importing.kueue_workloads import ReadWorkload
from fairopt.problem.entitled_rows import Good

#: Which workloads count: those with quota, and of them those that were let run.
_RESERVING, _ADMITTED = (("reservingWorkloads", "flavorsReservation"), ("admittedWorkloads", "flavorsUsage"))


def counted(
    queues: Mapping[str, QuotaOwner], works: Iterable[ReadWorkload], local: Mapping[tuple[str, str], tuple[str, str]]
) -> dict[str, dict[str, Fraction]]:
    """Return by ClusterQueue how many workloads wait, have quota and were let run, and what those take by flavor.

    ``local``: the ClusterQueue of each LocalQueue, first. Source: kubernetes-sigs/kueue ff69552e,
    pkg/cache/scheduler/clusterqueue.go, getUsage: without a Cohort nothing is borrowed.
    """
    found: dict[str, dict[str, Fraction]] = {name: {} for name in queues}

    def add(queue: str, what: str, amount: Fraction | int = 1) -> None:
        if queue in found:
            found[queue][what] = found[queue].get(what, Fraction(0)) + amount

    for name, owner in queues.items():
        for what in owner.declared:
            if what != "weightedShare":
                add(name, what, 0)
    for work in works:
        if not work.admitted:
            add(local.get(work.local_queue, ("", ""))[0], "pendingWorkloads")
        for count, usage in (_RESERVING, _ADMITTED)[: (1 + work.let_run) if work.admitted else 0]:
            add(work.admitted, count)
            for pods in work.pod_sets:
                for resource, flavor in pods.flavors.items():
                    amount = pods.amounts.get(resource, Fraction(0))
                    add(work.admitted, f"{usage} {Good(resource, flavor)} total", amount)
    for name, owner in queues.items():
        for good, quota in owner.quotas.items():
            for _, usage in (_RESERVING, _ADMITTED):
                total = found[name].get(f"{usage} {good} total", Fraction(0))
                beyond = max(Fraction(0), total - quota.nominal) if owner.parent else Fraction(0)
                found[name][f"{usage} {good} borrowed"] = beyond
    return found
