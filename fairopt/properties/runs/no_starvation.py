"""No starvation: nobody who can run waits for GPUs beyond a bound."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from fairopt.errors import BadInput
from fairopt.problem import Queue, exact
from fairopt.program import Number, number_text
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.runs.run_property import BOTH, ONE, RunProperty, jobs, scripted
from fairopt.properties.verdict import Answer
from fairopt.simulation import History
from fairopt.simulation.gpu_time import IdealTime, presence, time_on_own_part


@dataclass(frozen=True)
class NoStarvation(RunProperty):
    """No job that can run waits without GPUs for longer than a bound, from the first round on that passes it over.

    The bound is ``longest`` where it is given, in the trace's unit of time; else what the job would take from
    beginning to end on its own 1/N part of the cluster (``ideal``, which must not fall in N), N being the mean number
    of jobs present while it waited. It is looked at whenever N changes, and at the end: in between the bound grows less
    than the wait. A failure shows a job that holds no GPUs from ``begin`` to ``end``, longer than ``bound``.

    Source: starvation freedom, OEF Sec. 4.3; the part, FFT Sec. 6.1.5 after Themis.
    """

    name = "no_starvation"
    head = "no job starves"
    broken = "{who} starves"
    source = "OEF Sec. 4.3; Themis, NSDI 2020 (1/N of the cluster)"
    definition = "t - s <= W_j / theta_j(1/N of the cluster) for every job j that waits without GPUs from s to t"
    unit = "time"
    looked_at = "moments of waits"
    instances = (
        CitedInstance(
            "two jobs of 20 take turns: none waits longer than 10",
            None,
            lambda: scripted(jobs([2, 2], [20, 20]), {"a": BOTH}, {"b": BOTH}, {"a": BOTH}, {"b": BOTH}),
            Answer.HOLDS,
        ),
        CitedInstance(
            "a job of 10 on one of two GPUs waits for 40 behind a job of 40; its own part is a GPU",
            None,
            lambda: scripted(jobs([2, 1], [40, 10]), *[{"a": BOTH}] * 4, {"b": ONE}),
            Answer.FAILS,
        ),
    )
    longest: Number | None = None
    ideal: IdealTime = time_on_own_part

    def __post_init__(self) -> None:
        if self.longest is not None:
            longest = exact(self.longest, "longest")
            if longest <= 0:
                raise BadInput(f"got {longest}", place="longest", remedy="Give a time, positive, or None")
            object.__setattr__(self, "longest", longest)

    def cases(self, history: History) -> Iterator[SlackCase]:
        """Yield moments of waits, the most pressing waits first; those that are not as pressing are left out."""
        if not history.rounds:
            return
        jobs, present = history.trace.jobs, presence(history)
        queue = Queue.fresh(jobs, history.cluster, length=1)
        alone = {row: self._bound(queue, row, 1) for row in {row for row, _, _ in waits(history)}}
        tightest: Number | None = None
        # no wait is tighter than it would be if the job were alone
        for row, begin, end in sorted(waits(history), key=lambda wait: (wait[1] - wait[2]) / alone[wait[0]]):
            if tightest is not None and 1 - (end - begin) / alone[row] > tightest:
                return
            for moment in (*(at for at in present.times if begin < at < end), end):
                waited = moment - begin
                bound = self._bound(queue, row, present.integral(begin, moment) / waited)
                tightest = 1 - waited / bound if tightest is None else min(tightest, 1 - waited / bound)
                shown = {"job": jobs.names[row], "begin": begin, "end": moment, "bound": bound}
                yield self.case(bound - waited, bound, **shown)

    def says(self, case: SlackCase) -> str:
        """Return who waits how long, in a sentence."""
        begin, end, bound = map(number_text, (case.begin, case.end, case.bound))
        return f"{case.job} waits without GPUs from {begin} to {end}, longer than {bound}"

    def fails(self, case: SlackCase, history: History) -> bool:
        """Whether the job is there all the time, holds nothing, and that is longer than the bound."""
        done = history.completion[case.job]
        there = history.arrival[case.job] <= case.begin and (done is None or case.end <= done)
        held = any(ran.begin < case.end and case.begin < ran.end for ran in history.ran[case.job])
        return bool(there and case.end <= history.until and not held and case.end - case.begin > case.bound)

    def _bound(self, queue: Queue, row: int, present: Number) -> Number:
        if self.longest is None:
            return self.ideal(queue, row, present)
        return self.longest if queue.exact else float(self.longest)


def waits(history: History) -> Iterator[tuple[int, Number, Number]]:
    """Yield the waits of jobs that can run: row, begin (that of a round), end; also those that the run ends in."""
    row = {name: at for at, name in enumerate(history.trace.jobs.names)}
    rounds = [record.begin for record in history.rounds]
    for name, ran in history.ran.items():
        if name in history.unschedulable:
            continue
        done = history.completion[name]
        last = history.until if done is None else done
        held = [(each.begin, each.end) for each in ran]
        for (_, free), (end, _) in pairwise([(last, history.arrival[name]), *held, (last, last)]):
            decided = bisect_left(rounds, free)  # nobody decides between two rounds
            if decided < len(rounds) and rounds[decided] < end:
                yield row[name], rounds[decided], end
