"""Slurm's limits on jobs: of associations and of QOS, on numbers of jobs and on what jobs hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from math import inf

from fairopt.models.slurm.site import SlurmJob, SlurmPartition, SlurmSite, amounts, whole_number
from fairopt.problem import Entitlements
from fairopt.problem.entitled_rows import TOP

GPU = "gres/gpu"
#: What is counted beside trackable resources.
JOBS = "jobs"
#: Limits of a QOS on all its jobs, those of a user, and those of an account; and on each job.
_OF_QOS = (("GrpTRES", "GrpJobs", ""), ("MaxTRESPA", "MaxJobsPA", "account"), ("MaxTRESPU", "MaxJobsPU", "user"))

OF_QOS = frozenset({"MaxTRES", "MaxWall", *(key for row in _OF_QOS for key in row[:2])})
OF_ASSOCIATION = frozenset({"GrpJobs", "MaxJobs", "MaxTRES", "MaxWall"})
#: Who is limited: a QOS, a user or an account in it, an association.
Who = tuple[str, ...]
#: A limit: who, on which resource, how much.
Limit = tuple[Who, str, int]


class JobLimits:
    """Counts what jobs hold, and says which limit one more would break.

    A limit that a QOS has on a resource stands in the place of that of associations. Submission (MaxSubmit) and use
    over time (GrpTRESMins, GrpWall) are not looked at: what waits has passed the former.

    Source: Slurm 22.05.8, src/slurmctld/acct_policy.c, acct_policy_job_runnable_pre_select and _post_select.
    """

    def __init__(self, owed: Entitlements, site: SlurmSite) -> None:
        """Read the limits, and count the jobs that run."""
        self.owed, self.site, self._names = owed, site, owed.nodes
        enforced = site.option("AccountingStorageEnforce", "limits").split(",")
        self.enforced = bool({"limits", "safe", "all"} & set(enforced))
        self.used: dict[Who, Counter[str]] = {}
        self._limits_of = cache(self._found)
        self._any = any(OF_QOS & own.keys() for own in site.qos.values()) or any(
            own for name, own in owed.settings.items() if name
        )
        for job in site.jobs.values():
            if job.gang.on >= 0:
                self.count(job, 1)

    def asks(self, job: SlurmJob, kind: int) -> dict[str, int]:
        """Return what a job counts for."""
        named = {f"{GPU}:{self.site.types[kind]}": job.gpus}
        return {JOBS: 1, GPU: job.gpus, "cpu": job.cpus, "node": job.nodes} | named

    def count(self, job: SlurmJob, sign: int) -> None:
        """Count a job that starts (1) or stops (-1)."""
        if not self._any:
            return
        asks = self.asks(job, job.kind)
        for who in self._everybody(job):
            own = self.used.setdefault(who, Counter())
            for name, amount in asks.items():
                own[name] += sign * amount

    def on_jobs(self, job: SlurmJob, partition: SlurmPartition) -> str:
        """Return the limit on numbers of jobs, or on how long one runs, that stops a job; "" for none."""
        if not self._any or not self.enforced:
            return ""
        counted, _, longest = self._limits_of(job.gang.queue, job.qos, partition.says.get("QoS", ""))
        if job.limit < inf and partition.seconds(job) > longest:
            return f"its time limit is above MaxWall of {longest:g} s"
        return self._broken(counted, {JOBS: 1})

    def on_amounts(self, job: SlurmJob, partition: SlurmPartition, kind: int) -> str:
        """Return the limit on what jobs hold, each or together, that stops a job on a type; "" for none."""
        if not self._any or not self.enforced:
            return ""
        counted, each, _ = self._limits_of(job.gang.queue, job.qos, partition.says.get("QoS", ""))
        asks = self.asks(job, kind)
        for who, name, most in each:
            if asks.get(name, 0) > most:
                return f"the limit of {_called(who)} on each job: {most} {_short(name)}, and it asks for {asks[name]}"
        return self._broken(counted, {name: amount for name, amount in asks.items() if name != JOBS})

    def of_qos_instead(self, job: SlurmJob, partition: SlurmPartition) -> frozenset[str]:
        """Return the resources on which a QOS has GrpTRES, so that GrpTRES of associations does not count."""
        said = (self.site.qos.get(name, {}).get("GrpTRES", "") for name in (partition.says.get("QoS", ""), job.qos))
        return frozenset(name for text in said if text for name in amounts(text))

    def _broken(self, counted: list[Limit], asks: Mapping[str, int]) -> str:
        for who, name, most in counted:
            held = self.used[who][name] if who in self.used else 0
            if name in asks and held + asks[name] > most:
                return f"the limit of {_called(who)}: {most} {_short(name)}, of which it holds {held}"
        return ""

    def _everybody(self, job: SlurmJob) -> Iterator[Who]:
        names = {job.qos, *(part.says.get("QoS", "") for part in job.partitions)} - {""}
        for qos in names:
            yield from (("QOS", qos), ("QOS", qos, "account", job.account), ("QOS", qos, "user", job.user))
        for node in self.owed.path(job.gang.queue):
            yield (self._names[node],)

    def _found(self, queue: int, qos: str, of_partition: str) -> tuple[list[Limit], list[Limit], float]:
        """Return what limits jobs of an association and QOS: together, each, and in seconds."""
        account, _, user = self._names[queue].partition("/")
        own = {"account": account, "user": user.partition("/")[0]}
        counted: list[Limit] = []
        each: list[Limit] = []
        longest, said, on_each = inf, set[tuple[str, str]](), set[str]()
        jobs_of_qos = False
        for name in filter(None, (of_partition, qos)):
            limits = self.site.qos.get(name, {})
            for tres, jobs, whose in _OF_QOS:
                who = ("QOS", name, whose, own[whose]) if whose else ("QOS", name)
                amounts_ = amounts(limits.get(tres, "")) | (
                    {JOBS: whole_number(limits, jobs, 0)} if jobs in limits else {}
                )
                counted += [(who, what, most) for what, most in amounts_.items() if (whose, what) not in said]
                said |= {(whose, what) for what in amounts_}
                jobs_of_qos = jobs_of_qos or bool(whose and JOBS in amounts_)
            whole = amounts(limits.get("MaxTRES", ""))
            each += [(("QOS", name), what, most) for what, most in whole.items() if what not in on_each]
            on_each |= set(whole)
            longest = whole_number(limits, "MaxWall", inf) if longest == inf else longest
        node, first = queue, True
        while node != TOP:
            name = self._names[node]
            own_limits = self.owed.settings.get(name, {})
            if "GrpJobs" in own_limits and ("", JOBS) not in said:
                counted.append(((name,), JOBS, whole_number(own_limits, "GrpJobs", 0)))
            if first:  # Slurm hands these on to users, and so sacctmgr lists them there
                if "MaxJobs" in own_limits and not jobs_of_qos:
                    counted.append(((name,), JOBS, whole_number(own_limits, "MaxJobs", 0)))
                whole = amounts(own_limits.get("MaxTRES", ""))
                each += [((name,), what, most) for what, most in whole.items() if what not in on_each]
                longest = whole_number(own_limits, "MaxWall", inf) if longest == inf else longest
            node, first = int(self.owed.parent[node]), False
        return counted, each, longest


def _called(who: Who) -> str:
    if who[0] != "QOS" or len(who) == 1:
        return who[0]
    return f"QOS {who[1]}" + (f" for {who[2]} {who[3]}" if len(who) > 2 else "")


def _short(name: str) -> str:
    return name.removeprefix(f"{GPU}:") if name != GPU else "GPUs"
