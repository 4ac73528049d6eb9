"""How long a job may wait for its first round under FFT: an adversary's search against Theorem 4.2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

from fairopt.models.fft.fft import FFT
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.proofs.ledger.checking import found, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed
from fairopt.simulation import Round, run

#: GPUs of the one type, and rounds that a stream lasts in the search.
GPUS, LASTS = 4, 12


@dataclass(frozen=True)
class Stream:
    """An adversary's stream: each round brings jobs with these numbers of GPUs, each of them done in one round.

    ``gang``, ``work``: GPUs and rounds of the victim, which is there from the start. ``unit``: how much work the
    victim says that a round is.
    """

    gangs: tuple[int, ...]
    gang: int
    work: int
    unit: int = 1

    @property
    def load(self) -> Fraction:
        """The part of the GPUs that the stream asks for in each round."""
        return Fraction(sum(self.gangs), GPUS)

    def play(self, lasts: int = LASTS) -> Iterator[Round]:
        """Yield the records until the victim first runs."""
        small = len(self.gangs) * lasts
        jobs = Jobs.of(
            names=["victim", *(f"s{number}" for number in range(small))],
            types=["T"],
            gpus=[self.gang, *(gang for _ in range(lasts) for gang in self.gangs)],
            work=[self.work * self.unit] + [1] * small,
            throughput=[[self.unit]] + [[1]] * small,
            arrival=[0, *(age for age in range(lasts) for _ in self.gangs)],
        )
        for record in run(FFT(), Trace(jobs), Cluster.uniform({"T": (1, GPUS)}), length=1):
            yield record
            if any(ran.job == "victim" for ran in record.ran):
                return

    def wait(self, lasts: int = LASTS) -> int:
        """Return the rounds before the victim first runs."""
        return len(list(self.play(lasts))) - 1

    def shuts_out(self) -> bool:
        """Whether no schedule that keeps as many GPUs busy as can be has the victim in it, by trying all."""
        return self.most_busy(with_victim=True) < self.most_busy(with_victim=False)

    def most_busy(self, *, with_victim: bool) -> int:
        """Return the most GPUs that one round's jobs keep busy, with the victim among them or without it."""
        base = self.gang if with_victim else 0
        sums = [base + sum(chosen) for size in range(len(self.gangs) + 1) for chosen in combinations(self.gangs, size)]
        return max((total for total in sums if total <= GPUS), default=0)


def first_round() -> Finding:
    """Theorem 4.2: the longest wait grows with the stream, with the number of jobs, and with the victim's size."""
    streams = [
        Stream(gangs, gang, work)
        for size in range(1, GPUS + 1)
        for gangs in combinations_with_replacement(range(1, GPUS + 1), size)
        if sum(gangs) <= GPUS
        for gang in range(1, GPUS + 1)
        for work in (1, 4)
    ]
    waits = {stream: stream.wait() for stream in streams}
    starved = [stream for stream, wait in waits.items() if wait >= LASTS]
    shut_out = [stream for stream in streams if stream.shuts_out()]
    light = found(
        min(shut_out, key=lambda stream: (stream.load, stream.gang), default=None), "a victim that is shut out"
    )
    growing = {lasts: light.wait(lasts) for lasts in (10, 20, 40)}
    owed = [record.after.state.compensation["victim"] for record in light.play(40)][38]
    require(set(shut_out) <= set(starved), "who is shut out never runs")
    require(all(wait == lasts for lasts, wait in growing.items()), "the wait is as long as the stream")
    slow = [stream for stream in starved if stream not in shut_out]
    others = max(wait for stream, wait in waits.items() if stream not in starved)
    full = Stream((1,) * GPUS, 1, 1)
    sizes = {work: Stream(full.gangs, 1, work).wait(60) for work in (1, 2, 4, 8)}
    units = {unit: Stream(full.gangs, 1, 4, unit).wait(60) for unit in (1, 10, 100)}
    crowds = {jobs: _crowd(jobs) for jobs in (8, 16, 32)}
    require(all(wait == jobs // GPUS - 1 for jobs, wait in crowds.items()), "the last of a crowd waits for the others")
    return Finding(
        Ruling.REFUTED,
        f"No constant exists, not even at a load that leaves GPUs idle. With each round comes a job of "
        f"{light.gangs[0]} of the {GPUS} GPUs that one round completes (load {light.load}); the victim asks for "
        f"{light.gang} for {light.work} round. K(t) of Eq. (7) is {light.most_busy(with_victim=False)}, "
        "which no schedule with the victim reaches, whatever it is owed: it first runs when the stream ends, after "
        f"{listed(map(str, growing.values()))} rounds of streams that last as long (it is owed {owed} in the last), "
        f"while nobody would wait longer than {_longest_wait_if_first(light, 40)} round if the victim ran at once. "
        f"Search over all {len(streams)} such streams on {GPUS} GPUs at loads up to 1: {len(starved)} keep the victim "
        f"waiting for all of {LASTS} rounds, {len(shut_out)} by Eq. (7) alone, at loads from {light.load}, and "
        f"{len(slow)} at load {listed(sorted({str(each.load) for each in slow}))} because compensation is not enough "
        f"by then; elsewhere the longest wait is {others}. Where Eq. (7) leaves room the wait ends, but depends on the "
        "victim: against a full load of jobs of one GPU, victims of "
        f"{listed(map(str, sizes))} rounds wait {listed(map(str, sizes.values()))}; one of 4 rounds waits "
        f"{listed(map(str, units.values()))} where it counts {listed(map(str, units))} units of work a round. And of "
        f"{listed(map(str, crowds))} jobs of one GPU and one round that come at once the last waits "
        f"{listed(map(str, crowds.values()))} rounds, as under any policy.",
    )


def _crowd(jobs: int) -> int:
    """Return the longest wait for a first round among jobs of one GPU and one round that come at once."""
    trace = Trace(Jobs.of(types=["T"], gpus=[1] * jobs, work=[1] * jobs))
    return max(record.index for record in run(FFT(), trace, Cluster.uniform({"T": (1, GPUS)}), length=1))


def _longest_wait_if_first(stream: Stream, lasts: int) -> int:
    """Return the longest wait of the stream's jobs where the victim runs at once, and they in the order they come."""
    waiting, longest, now = [age for age in range(lasts) for _ in stream.gangs], 0, stream.work
    gangs = list(stream.gangs) * lasts
    while waiting:
        left = GPUS
        while waiting and waiting[0] <= now and gangs[0] <= left:
            left -= gangs.pop(0)
            longest = max(longest, now - waiting.pop(0))
        now += 1
    return longest
