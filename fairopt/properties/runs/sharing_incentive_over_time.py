"""Sharing incentive over time: nobody is done later than on its own part of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairopt.program import number_text
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.runs.run_property import BOTH, ONE, RunProperty, jobs, scripted
from fairopt.properties.verdict import Answer
from fairopt.simulation import History
from fairopt.simulation.gpu_time import IdealTime, finish_time_fairness, time_on_own_part


@dataclass(frozen=True)
class SharingIncentiveOverTime(RunProperty):
    """Each job that is done was done no later than on its own 1/N part of the cluster: finish-time fairness rho <= 1.

    N is the mean number of jobs present while the job was; ``ideal`` says how long it takes on its part.
    A failure shows a job, how long it took from its arrival on, how long it would have taken on its own part, and their
    ratio ``rho``.

    Source: Themis, NSDI 2020 (finish-time fairness); FFT Sec. 6.1.5.
    """

    name = "sharing_incentive_over_time"
    head = "as fast as on an own part"
    broken = "{who} takes longer than on its own part of the cluster"
    source = "Themis, NSDI 2020; FFT Sec. 6.1.5"
    definition = "rho_j = (completion - arrival) / (W_j / theta_j(1/N of the cluster)) <= 1 for every job j"
    unit = "rho"
    looked_at = "jobs that are done"
    instances = (
        CitedInstance(
            "two jobs of 20 on a GPU each",
            None,
            lambda: scripted(jobs([1, 1], [20, 20]), *[{"a": ONE, "b": ONE}] * 2),
            Answer.HOLDS,
        ),
        CitedInstance(
            "a job of 10 on one GPU is done after 50, behind a job of 40; N is 9/5, its own part a GPU",
            None,
            lambda: scripted(jobs([2, 1], [40, 10]), *[{"a": BOTH}] * 4, {"b": ONE}),
            Answer.FAILS,
        ),
    )
    ideal: IdealTime = time_on_own_part

    def cases(self, history: History) -> Iterator[SlackCase]:
        """Yield the jobs that are done."""
        for name, rho in finish_time_fairness(history, self.ideal).items():
            done = history.completion[name]
            assert done is not None
            took = done - history.arrival[name]
            yield self.case(1 - rho, 1, job=name, rho=rho, took=took, own_part=took / rho)

    def says(self, case: SlackCase) -> str:
        """Return how long a job takes, and would on its own part, in a sentence."""
        took, own, rho = map(number_text, (case.took, case.own_part, case.rho))
        return f"{case.job} takes {took}; on its own part it would take {own} (rho {rho})"

    def fails(self, case: SlackCase, history: History) -> bool:
        """Whether the job took as long as is said, and that is longer than on its own part."""
        done = next(ran.end for record in history.rounds for ran in record.ran if ran.job == case.job and ran.completed)
        took = done - history.arrival[case.job]
        return bool(took == case.took > case.own_part)
