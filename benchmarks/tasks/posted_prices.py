"""Posted-price packing: which jobs run when and where, at prices that rise with use."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from fairopt.benchmarks.workloads.astraea_batches import astraea_small
from fairopt.experiment.bench import Instance, Judgement, Task
from fairopt.models.astraea.posted_prices import PostedPricePacking, last_interval
from fairopt.models.astraea.reference import Reference
from fairopt.policy import Plan, decide
from fairopt.problem.batch import Batch
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.proofs.verifier.reading import Unreadable
from fairopt.schedules.document import document

#: The keys of a plan's document that are the answer; the batch is the instance's.
ANSWER = ("policy", "bases", "schedules", "admissions", "payments")


def as_answer(plan: Plan) -> dict[str, Any]:
    """Return a plan as an answer: its document, without the batch."""
    whole = document(plan)
    return {key: whole[key] for key in ANSWER}


@dataclass(frozen=True)
class PostedPrices(Task):
    """Posted-price packing: the answer is a plan (`as_answer`), its schedules, decisions and payments.

    ``proofs/verify_schedule.py``, which shares no code with contenders, checks every constraint, price and
    payment. The paper's algorithms try every slot, number of workers (up to the job's chunks) and server: where the
    product of all chunks, the slots of the longest round and the servers is at most ``comparable``, they are run as
    they are printed, and the plan must be theirs, decision by decision. Beyond that there is no optimum to compare
    with, and only feasibility is judged: the gap is unknown then. The objective is the total utility.

    Source: Astraea (posted prices), Algorithms 1-5.
    """

    name = "posted-prices"
    comparable: int = 100_000

    def warm_up(self) -> Batch:
        """Return a batch of two jobs."""
        return astraea_small(jobs=2, servers=2, seed=0)

    def reference(self, instance: Instance) -> dict[str, Any]:
        """Return the plan of the printed algorithms, None where they would take too long."""
        batch: Batch = instance.problem
        tries = int(batch.jobs.chunks.sum()) * 2 ** last_interval(batch) * len(batch.servers)
        if tries > self.comparable:
            return {"plan": None}
        return {"plan": as_answer(decide(PostedPricePacking(search=Reference()), batch))}

    def judge(self, instance: Instance, answer: Any, reference: Any) -> Judgement:
        """Return what a plan is worth."""
        batch: Batch = instance.problem
        if not isinstance(answer, dict) or set(answer) != set(ANSWER):
            return _broken(f"the keys are not {', '.join(ANSWER)}")
        frame = document(Plan(policy="", batch=batch, schedules=()))
        try:
            found, statement = verify_schedule.decide(json.dumps({**frame, **answer}))
        except (Unreadable, TypeError, ValueError) as error:
            return _broken(str(error))
        if found:
            return _broken(f"{len(found)} violations, the first: {found[0]}")
        total = _utility(batch, answer)
        right = reference["plan"]
        if right is None:
            return Judgement(True, 0.0, math.nan, total, f"{statement}; too large for the printed algorithms")
        here, there = (json.loads(json.dumps(plan)) for plan in (answer, right))
        for key in ANSWER:
            if here[key] != there[key]:
                gap = (_utility(batch, right) - total) / max(abs(total), 1e-300)
                return Judgement(False, 0.0, gap, total, f"{key} differ from those of the printed algorithms")
        return Judgement(True, 0.0, 0.0, total, "the plan of the printed algorithms, decision by decision")


def _utility(batch: Batch, answer: Any) -> float:
    """Return the total utility of the jobs that run, counted from their arrivals."""
    jobs = batch.jobs
    row = {name: at for at, name in enumerate(jobs.names)}
    return math.fsum(
        float(jobs.utility[row[each["job"]]].value(each["last"] - int(jobs.arrival[row[each["job"]]])))
        for each in answer["schedules"]
    )


def _broken(why: str) -> Judgement:
    return Judgement(accepted=False, violation=1.0, gap=math.nan, objective=math.nan, note=why)
