"""The jobs of Shockwave's traces: their epochs, and their batches, which grow while they run."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path

from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.profile import Profile

HERE = Path(__file__).parent
#: By jobs of the trace: GPUs, and the column of throughputs.
CLUSTERS = {120: (32, "tacc"), 220: (64, "wisr"), 460: (128, "wisr"), 900: (256, "wisr")}
#: Samples of an epoch, and the largest batch (`dataset_size_dict` of scheduler.py, `max_bs_dict` of utils.py).
SAMPLES = {"ResNet-18": 50_000, "ResNet-50": 100_000, "Transformer": 10_000, "LM": 59_675, "Recommendation": 117_907}
LARGEST = {"ResNet-18": 256, "ResNet-50": 128, "Transformer": 128, "LM": 80, "Recommendation": 8192}
#: A part of the first epochs in which Accordion keeps a batch small, as the published times alone have it.
KEPT = Fraction(3, 10)


@dataclass(frozen=True)
class Row:
    """A job. ``speed``: steps a second by batch; ``doubles``: epochs at which its batch doubles under GNS."""

    model: str
    batch: int
    gpus: int
    mode: str
    steps: int
    arrival: Fraction
    speed: dict[int, Fraction]
    doubles: tuple[int, ...]

    def steps_of_epoch(self, batch: int) -> int:
        """Return the steps of an epoch."""
        return ceil(SAMPLES[self.model] / batch)

    @property
    def epochs(self) -> Fraction:
        """All of its epochs, the last one perhaps a part."""
        return Fraction(self.steps, self.steps_of_epoch(self.batch))

    def batches(self, kept: Fraction = Fraction(0)) -> list[int]:
        """Return the batch of each epoch, the last one perhaps not whole.

        The simulation of Shockwave's repository and its times alone differ in ``kept``: in the latter Accordion
        leaves the first 30% of all epochs alone.
        """
        count, largest = ceil(self.epochs), LARGEST[self.model]
        if self.mode == "gns":
            return [
                min(self.batch * 2 ** sum(epoch >= each for each in self.doubles), largest) for epoch in range(count)
            ]
        if self.mode == "accordion" and self.model != "Transformer":
            small = self._critical(kept > 0)
            return [self.batch if epoch in small or epoch <= kept * count else largest for epoch in range(count)]
        return [self.batch] * count

    def _critical(self, alone: bool) -> set[int]:
        """Return the epochs with small batches under Accordion (`_simulate_accordion`, `get_accordion_bs_pattern`)."""
        if self.model == "LM":
            return set(range(10))
        if self.model == "Recommendation":
            first = {512: 30, 1024: 30, 2048: 40}.get(self.batch, 10)
            return set(range(first)) | ({*range(60, 70), *range(80, 90)} if alone else set())
        if self.model == "ResNet-50":
            return {epoch for epoch in range(10_000) if epoch % 30 < 10}
        return {*range(20 if self.batch == 256 else 10), *range(150, 160), *range(250, 260)}

    def pace(self, batch: int) -> Fraction:
        """Return epochs a second."""
        return self.speed[batch] / self.steps_of_epoch(batch)

    def course(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Yield runs of epochs with one batch: how many, and epochs a second."""
        batches, begin = self.batches(), 0
        for at, (one, other) in enumerate(pairwise([*batches, 0]), start=1):
            if one != other:
                yield min(Fraction(at), self.epochs) - begin, self.pace(one)
                begin = at

    def alone(self) -> Fraction:
        """Return the seconds that it takes alone, as Shockwave's repository counts them (`duration_every_epoch`)."""
        samples = SAMPLES[self.model]
        return sum((Fraction(samples, each) / self.speed[each] for each in self.batches(KEPT)), Fraction(0))


def rows(count: int) -> list[Row]:
    """Return the jobs of the trace of so many jobs."""
    column = f"{CLUSTERS[count][1]}_steps_per_s"
    speed: dict[tuple[str, int], dict[int, Fraction]] = {}
    doubles = {}
    for each in table("throughputs"):
        key = each["model"], int(each["gpus"])
        speed.setdefault(key, {})[int(each["batch"])] = Fraction(each[column])
        doubles[*key, int(each["batch"])] = tuple(map(int, each["gns_epochs"].split()))
    return [
        Row(
            each["model"],
            int(each["batch"]),
            int(each["gpus"]),
            each["mode"],
            int(each["steps"]),
            Fraction(each["arrival_s"]),
            speed[each["model"], int(each["gpus"])],
            doubles[each["model"], int(each["gpus"]), int(each["batch"])],
        )
        for each in table(f"jobs_{count}")
    ]


def table(name: str) -> list[dict[str, str]]:
    with (HERE / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def trace(jobs: list[Row], *, adapt: bool = True) -> Trace:
    """Return the trace: work in epochs; with ``adapt`` False as many at the first batch's speed as take as long."""
    work, profiles = [], []
    for job in jobs:
        done, time, first = Fraction(0), Fraction(0), job.pace(job.batch)
        factors = []
        for epochs, pace in job.course():
            factors.append((done, 1, pace / first))
            done, time = done + epochs, time + epochs / pace
        work.append(done if adapt else time * first)
        profiles.append(Profile.of([(job.gpus, 1, 1, first)], factors) if adapt and len(factors) > 1 else None)
    return Trace(
        Jobs.of(
            names=[str(at) for at in range(len(jobs))],
            tenant=[f"t{at}" for at in range(len(jobs))],
            types=["V100"],
            arrival=[job.arrival for job in jobs],
            gpus=[job.gpus for job in jobs],
            work=work,
            throughput=[[job.pace(job.batch)] for job in jobs],
            profiles=profiles,
        )
    ).as_(float)


def cluster(count: int) -> Cluster:
    """Return the cluster of a trace; its repository's simulation does not say which GPUs share a host."""
    return Cluster.uniform({"V100": (1, CLUSTERS[count][0])})
