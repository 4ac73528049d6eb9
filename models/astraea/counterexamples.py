"""Batches on which claims of the source fail."""

from __future__ import annotations

from fractions import Fraction

from fairopt.problem.batch import Batch
from fairopt.problem.utilities import Linear

#: Two tenants with a worker, a PS and a job of one slot each, worth 20 - t: the round of posted prices has two slots.
TWO_TENANTS = Batch.of(
    workers=[1, 1],
    ps=[1, 1],
    worker_quota={"u1": 1, "u2": 1},
    ps_quota={"u1": 1, "u2": 1},
    tenant=["u1", "u2"],
    epochs=[1, 1],
    chunks=[1, 1],
    minibatches=[1, 1],
    minibatch_time=[1, 1],
    update_time=[0, 0],
    gradient=[0, 0],
    utility=[Linear(Fraction(-1), Fraction(20))] * 2,
)
#: One job, which posted prices run so late that it costs its tenant 8; told to have three chunks, it is not run.
RUN_TOO_LATE = Batch.of(
    workers=[1],
    ps=[1],
    worker_quota={"u1": 1},
    ps_quota={"u1": 1},
    tenant=["u1"],
    arrival=[3],
    epochs=[1],
    chunks=[1],
    minibatches=[1],
    minibatch_time=[1],
    update_time=["1/2"],
    gradient=["1/4"],
    utility=[Linear(Fraction(-4), Fraction(20))],
)
