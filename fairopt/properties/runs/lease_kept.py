"""Leases kept: who was given GPUs until a time holds them until then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from fairopt.program import number_text
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.runs.run_property import ONE, RunProperty, jobs, scripted
from fairopt.properties.verdict import Answer
from fairopt.simulation import History


class LeaseKept(RunProperty):
    """A job that is given a lease stays on the same GPUs until it ends, the job is done, or one of its hosts fails.

    A failure shows a job that was given its GPUs from ``begin`` until ``lease``, and had them until ``until`` only.

    Source: ASTRAEA, TPDS 2022, Sec. 5.1 (leases).
    """

    name = "lease_kept"
    head = "leases kept"
    broken = "{who} is stopped within its lease"
    source = "ASTRAEA, TPDS 2022, Sec. 5.1"
    definition = "a job with a lease until t runs on the same GPUs until t, unless it is done or a host of its fails"
    unit = "time"
    looked_at = "leases beyond a round"
    instances = (
        CitedInstance(
            "a lease of two rounds, kept",
            None,
            lambda: scripted(jobs([1], [20]), {"a": ONE}, {"a": ONE}, leases={(0, "a"): 20}),
            Answer.HOLDS,
        ),
        CitedInstance(
            "a lease of three rounds; the job waits in the second",
            None,
            lambda: promised(scripted(jobs([1], [20]), {"a": ONE}, {}, {"a": ONE}), 30),
            Answer.FAILS,
        ),
    )

    def cases(self, history: History) -> Iterator[SlackCase]:
        """Yield the leases that go on beyond a round which another follows."""
        for record, after in pairwise(history.rounds):
            then = {ran.job: ran for ran in after.ran}
            for ran in record.ran:
                failed = ran.lost or any(host in after.down for host, _ in ran.spots)
                if ran.lease > record.end and not (ran.completed or failed):
                    held = then.get(ran.job)
                    until = min(held.lease if held and held.spots == ran.spots else record.end, ran.lease)
                    shown = {"job": ran.job, "begin": ran.begin, "until": until, "lease": ran.lease}
                    yield self.case(until - ran.lease, ran.lease - ran.begin, **shown)

    def says(self, case: SlackCase) -> str:
        """Return until when a job was given its GPUs, and until when it had them, in a sentence."""
        begin, until, lease = map(number_text, (case.begin, case.until, case.lease))
        return f"{case.job} is given its GPUs at {begin} until {lease}, and has them until {until}"

    def fails(self, case: SlackCase, history: History) -> bool:
        """Whether the job got the lease in one round, and does not hold it on the same GPUs in the next."""
        for record, after in pairwise(history.rounds):
            given = next((ran for ran in record.ran if ran.job == case.job and ran.begin == case.begin), None)
            if given is not None:
                then = next((ran for ran in after.ran if ran.job == case.job), None)
                kept = then is not None and then.spots == given.spots and then.lease >= given.lease
                return given.lease == case.lease > record.end and not given.completed and not kept
        return False


def promised(history: History, lease: int) -> History:
    """Return the history in which the first round's jobs are given a lease, whatever comes of it."""
    first = history.rounds[0]
    ran = tuple(replace(each, lease=type(each.lease)(lease)) for each in first.ran)
    return replace(history, rounds=(replace(first, ran=ran), *history.rounds[1:]))
