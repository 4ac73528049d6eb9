"""The traces of ASTRAEA's evaluation: two weeks of Venus and of Philly, as they were."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from fairopt.datasets.tables import dataset_path
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.numbers import exact, within
from fairopt.workloads.distributions import quotas
from fairopt.workloads.poisson import FINE, span_of
from fairopt.workloads.workload import Workload, gpu_time


class Weights(Enum):
    """Tenants' weights: EQUAL, the GPUs that their jobs ask for (REQUESTED), or the QUOTA of GPUs that they had."""

    EQUAL = "equal"
    REQUESTED = "requested"
    QUOTA = "quota"


@dataclass(frozen=True)
class AstraeaVenus(Workload):
    """Jobs of Venus' September, on 100 hosts of 8 GPUs in the paper.

    * ``data``: the table of Venus' jobs (.csv or .csv.gz); "" for those of the two weeks from 2020-09-01 on, which are
      part of fairopt: 12,801 jobs.
    * ``begin_s``: when the window begins, in the table's seconds. No two weeks have the paper's 11,304 jobs; in the
      whole table those with tenants begin at 14414301 (2020-09-01), 14932701 (09-07) and 15451101 (09-13).
    * ``days``: "a two-week snapshot" (Sec. 6.1.2). ``jobs``: the most jobs, the paper's 11,304 (none: all).
    * ``longest_hours``: longer run times are cut to this (none: they are "unmodified", Sec. 6.1.3).
    * ``load``: arrivals are stretched or compressed to this (none: as they were, Sec. 6.1.3).
    * ``weights``: of tenants: quota (what they had; ours), requested (as the paper has it for Philly), equal.

    Jobs whose tenant is not known are left out. Nothing is random, whatever the seed.

    Source: ASTRAEA (2022), Sec. 6.1.2 and 6.1.3; Hu et al., SC 2021.

    >>> from fairopt.datasets import astraea_venus_cluster
    >>> AstraeaVenus(jobs=1000).trace(seed=0, cluster=astraea_venus_cluster())
    <Trace: <Jobs: 1000 of 15 tenants, types V100>, 0 outages>
    """

    name = "astraea-venus"
    source = "ASTRAEA (2022), Sec. 6.1.2 and 6.1.3"
    home = "astraea-venus-cluster"
    excerpt: ClassVar[str] = "venus_two_weeks.csv.gz"
    trace_name: ClassVar[str] = "venus"

    data: str = ""
    begin_s: int = within(0, least=0)
    days: float = within(14, above=0, most=10_000)
    jobs: int | None = within(11_304, least=2)
    longest_hours: float | None = within(None, above=0, most=10_000)
    load: float | None = within(None, above=0, most=1000)
    weights: Weights = Weights.QUOTA

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the jobs of the window for ``cluster``; throughputs are 1, whatever its types."""
        rows = list(islice(self._rows(), self.jobs))
        if len(rows) < 2:
            remedy = "Give another begin_s, or the whole table as data"
            raise BadInput(f"{len(rows)} jobs from second {self.begin_s} on", place="begin_s", remedy=remedy)
        gpus, work = [int(row["gpus"]) for row in rows], [Fraction(row["duration_s"]) for row in rows]
        if self.longest_hours is not None:
            work = [min(each, 3600 * exact(self.longest_hours, "longest_hours")) for each in work]
        arrival = [Fraction(row["submit_s"]) - Fraction(rows[0]["submit_s"]) for row in rows]
        if self.load is not None:
            speed = [[Fraction(1)] * len(cluster.types)] * len(rows)
            span = span_of(gpu_time(gpus, work, speed, cluster, self.counted), self.load, cluster)
            if not arrival[-1]:
                raise BadInput("all jobs arrive at once", place="jobs", remedy="Ask for more jobs")
            arrival = [Fraction(round(each * span / arrival[-1]), FINE) for each in arrival]
        tenant = [row["tenant"] for row in rows]
        return Trace(
            Jobs.of(
                names=[row["job_id"] for row in rows],
                gpus=gpus,
                work=work,
                types=cluster.types,
                arrival=arrival,
                tenant=tenant,
                tenant_weight=self._weights(tenant, gpus),
            )
        )

    def _weights(self, tenant: list[str], gpus: list[int]) -> dict[str, int]:
        if self.weights is Weights.EQUAL:
            return {}
        if self.weights is Weights.REQUESTED:
            asked: dict[str, int] = {}
            for name, count in zip(tenant, gpus, strict=True):
                asked[name] = asked.get(name, 0) + count
            return asked
        known = quotas(self.trace_name)
        without = sorted({name for name in tenant if not known.get(name)})
        if without:
            remedy = "Say weights=requested or weights=equal"
            raise BadInput(f"the quota of {without[0]!r} is not known", place="weights", remedy=remedy)
        return {name: known[name] for name in tenant}

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of the window whose tenant is known."""
        path = Path(self.data) if self.data else dataset_path(self.excerpt)
        try:
            with (
                gzip.open(path, "rt", encoding="utf-8", newline="")
                if path.suffix == ".gz"
                else path.open(encoding="utf-8", newline="") as stream
            ):
                for row in csv.DictReader(stream):
                    after = int(row["submit_s"]) - self.begin_s
                    if 0 <= after < self.days * 86_400 and row["tenant"] not in ("", "unknown"):
                        yield row
        except (OSError, EOFError, UnicodeDecodeError, KeyError, ValueError) as error:
            remedy = "Give the table of the trace's jobs, with the columns of a trace file"
            raise BadInput(f"cannot be read: {error!r}", place="data", remedy=remedy, file=str(path)) from error


@dataclass(frozen=True)
class AstraeaPhilly(AstraeaVenus):
    """Jobs of Philly, on 210 hosts of 8 GPUs in the paper.

    * ``data``: the table of Philly's jobs (.csv or .csv.gz); "" for the thousand jobs that are part of fairopt.
    * ``begin_s``: when the window begins, in the table's seconds. No two weeks have the paper's 44,329 jobs; the most,
      33,571, begin at 5493534 (2017-10-10).
    * ``days``: "a two-week snapshot" (Sec. 6.1.2). ``jobs``: the most jobs (none: all; the paper has 44,329).
    * ``longest_hours``: longer run times are cut to this (none: they are "unmodified", Sec. 6.1.3).
    * ``load``: arrivals are stretched or compressed to this (none: as they were, Sec. 6.1.3).
    * ``weights``: of tenants: requested, "proportional to the total number of GPUs requested by all the jobs in this
      VC" (Sec. 6.1.2), or equal.

    Jobs whose tenant is not known are left out. Nothing is random, whatever the seed.

    Source: ASTRAEA (2022), Sec. 6.1.2 and 6.1.3; Jeon et al., USENIX ATC 2019.

    >>> from fairopt.datasets import astraea_philly_cluster
    >>> AstraeaPhilly(jobs=100).trace(seed=0, cluster=astraea_philly_cluster())
    <Trace: <Jobs: 100 of 6 tenants, types GPU>, 0 outages>
    """

    name = "astraea-philly"
    source = "ASTRAEA (2022), Sec. 6.1.2 and 6.1.3"
    home = "astraea-philly-cluster"
    excerpt = "philly_1000.csv"
    trace_name = "philly"

    jobs: int | None = None
    weights: Weights = Weights.REQUESTED
