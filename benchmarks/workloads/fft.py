"""The traces of FFT's evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.problem.numbers import exact, within
from fairopt.workloads.distributions import drawn, hours, marginals
from fairopt.workloads.poisson import FINE, arrivals, scaled, stretched
from fairopt.workloads.workload import Counted, Workload, gpu_time, streams


class Variant(NamedTuple):
    """A model of Table 2: the workers that a job of it may have; its parameters in billions (ours, as published)."""

    name: str
    workers: tuple[int, ...]
    parameters: str


#: Table 2. Bark's sizes are those of its checkpoints.
VARIANTS = (
    *(Variant(name, (1, 2, 3, 4), size) for name, size in (("VGG-16", "0.138"), ("VGG-19", "0.144"))),
    *(Variant(name, (1, 2, 3, 4), size) for name, size in (("ResNet-50", "0.026"), ("ResNet-152", "0.060"))),
    *(Variant(name, (1, 2, 3, 4), size) for name, size in (("DenseNet-121", "0.008"), ("DenseNet-201", "0.020"))),
    *(Variant(name, (1,), size) for name, size in (("Bark", "0.9"), ("Bark small", "0.24"))),
    *(Variant(name, (1,), size) for name, size in (("BERT base", "0.11"), ("BERT large", "0.34"))),
    *(Variant(name, (4,), size) for name, size in (("GPT-neo 1.3B", "1.3"), ("GPT-neo 2.7B", "2.7"))),
    *(Variant(name, (4, 8), size) for name, size in (("GPT-2 medium", "0.355"), ("GPT-2 large", "0.774"))),
    *(Variant(name, (4, 8), size) for name, size in (("OPT 2.7B", "2.7"), ("OPT 6.7B", "6.7"))),
)
#: The models that "generated large files for training state" (Sec. 6.3.1).
LARGE = tuple(each for each in VARIANTS if each.name.startswith(("GPT", "OPT")))


class TraceKind(NamedTuple):
    """What tells one of the nine traces from the others; ``large``: the part of jobs of large models, None for any."""

    jobs: int = 20_000  # Sec. 6.1.3: "up to 20,000 jobs"
    workers: int | None = None
    large: Fraction | None = None
    spread: int | None = None
    busier: int = 1


#: Sec. 6.1.3 (1 and 2), 6.3.1 (6, 7 and 9); nothing is said of what sets 3, 4, 5 and 8 apart but the random draw.
KINDS = MappingProxyType(
    {
        1: TraceKind(800, workers=4),  # "four-worker training jobs only"
        2: TraceKind(800),  # "jobs with varying amounts of worker demand"
        **dict.fromkeys((3, 4, 5, 8), TraceKind()),
        6: TraceKind(large=Fraction(1, 2)),  # "Approximately 50% of the models in Trace 6 are GPT-neo, GPT-2, and OPT"
        7: TraceKind(busier=2),  # "the highest intensive arrival rate"; how high is not said: twice, ours
        9: TraceKind(spread=3),  # "a factor of 3x between the shortest and longest jobs"
    }
)


@dataclass(frozen=True)
class FftTraces(Workload):
    """One of the nine traces of FFT's evaluation; what the paper does not say is an option.

    * ``which``: 1 to 9. ``jobs``: how many (none: 800 in 1 and 2, 20,000 in the others, which have "up to" that many).
    * ``days``: in which they come. None: two for 800 jobs, "over a period of two days" (Sec. 6.1.3, of 1 and 2); in
      the same proportion for others (ours).
    * ``load``: open. Run times are multiplied so that the load over the days is this; trace 7 has twice it. None: as
      they are in Philly.
    * ``longest_hours``: the longest run time, before they are multiplied (none: any; ours); Philly has weeks.
    * ``like``: "the arrival time and processing time distributions in Philly" (Sec. 6.1.3), of gangs of the same size.
    * ``slowest_speedup``: the least of the last type over the first: "from 1.6x to 2.71x" (Sec. 2.2, of Fig. 1(a)).
      ``largest_speedup``: the largest; even between them, and the A10 in the middle (ours).
    * ``bytes_each``: bytes of state for each parameter: 107 GB of OPT-6.7B (Sec. 2.2) are 16.
    * ``counted``: the speed at which the load counts a job's GPU-time.

    Models and workers are drawn evenly from Table 2. Each job is its own tenant's, as FFT knows none.

    Source: FFT (2025), Sec. 6.1 and 6.3.1, Table 2.

    >>> from fairopt.datasets import fft_cluster
    >>> trace = FftTraces(jobs=40, load=1.2).trace(seed=1, cluster=fft_cluster())
    >>> sorted(set(trace.jobs.gpus.tolist())), round(float(FftTraces().load_of(trace, fft_cluster())), 3)
    ([4], 1.2)
    """

    name = "fft-traces"
    source = "FFT (2025), Sec. 6.1 and 6.3.1, Table 2"
    home = "fft-cluster"

    which: int = 1
    jobs: int | None = within(None, least=2)
    days: float | None = within(None, above=0, most=10_000)
    load: float | None = within(1, above=0, most=1000)
    longest_hours: float | None = None
    like: str = "philly"
    slowest_speedup: float = 1.6
    largest_speedup: float = 2.71
    bytes_each: float = within(16, above=0)
    counted: Counted = Counted.MEAN

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.which not in KINDS:
            raise BadInput(f"got {self.which}", place="which", remedy=f"Give one of {', '.join(map(str, KINDS))}")
        hours(self.like)

    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed for ``cluster``, such as the data set fft-cluster."""
        for_models, for_times, for_speeds, for_arrivals = streams(seed, 4)
        kind = KINDS[self.which]
        count = kind.jobs if self.jobs is None else self.jobs
        picked = _picked(kind, count, int(cluster.capacity.max()), for_models)
        gpus = [workers for _, workers in picked]
        speed = drawn(count, len(cluster.types), for_speeds, (self.slowest_speedup, self.largest_speedup))
        seconds = self._seconds(kind, gpus, for_times)
        days = Fraction(2 * count, 800) if self.days is None else exact(self.days, "days")
        span = round(days * 86_400 * FINE)
        if self.load is not None:
            needed = gpu_time(gpus, seconds, speed, cluster, self.counted)
            wanted = exact(self.load, "load") * kind.busier * int(cluster.gpus.sum()) * Fraction(span, FINE)
            seconds = scaled(seconds, wanted / needed)
        return Trace(
            Jobs.of(
                gpus=gpus,
                work=seconds,
                types=cluster.types,
                throughput=speed,
                arrival=arrivals(count, span, stretched(hours(self.like), span), for_arrivals),
                tenant=[f"t{number}" for number in range(1, count + 1)],
                state_size=[exact(self.bytes_each, "bytes_each") * Fraction(model.parameters) for model, _ in picked],
            )
        )

    def _seconds(self, kind: TraceKind, gpus: Sequence[int], random: np.random.Generator) -> list[Fraction]:
        """Return run times on the first type; where a trace limits their spread, evenly from 1 to it."""
        if kind.spread is not None:
            return [
                1 + Fraction(int(each) * (kind.spread - 1), FINE) for each in random.integers(FINE + 1, size=len(gpus))
            ]
        parts = marginals(self.like).up_to(max(gpus), self.longest_hours)
        seconds = {size: iter(parts.of_size(size).draw(random, gpus.count(size))[1]) for size in sorted(set(gpus))}
        return [Fraction(int(next(seconds[size]))) for size in gpus]


def _picked(kind: TraceKind, count: int, largest: int, random: np.random.Generator) -> list[tuple[Variant, int]]:
    """Return models and their workers, both drawn evenly from those that a trace may have."""
    allowed = [
        (each, [size for size in each.workers if size <= largest and kind.workers in (None, size)]) for each in VARIANTS
    ]
    fit = [(each, sizes) for each, sizes in allowed if sizes]
    large, others = [each for each in fit if each[0] in LARGE], [each for each in fit if each[0] not in LARGE]
    if not large:
        raise BadInput(f"no type has more than {largest} GPUs", place="cluster", remedy="Give a larger one")
    found = []
    for part, at, workers in random.integers(2**32, size=(count, 3)).tolist():
        known = fit if kind.large is None else large if part < kind.large * 2**32 else others
        model, sizes = known[at % len(known)]
        found.append((model, sizes[workers % len(sizes)]))
    return found
