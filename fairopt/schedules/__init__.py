"""Scheduling over time slots, batch by batch and without preemption: plans as documents, and price bases.

>>> from fairopt import decide
>>> from fairopt.datasets import astraea_example
>>> isinstance(decide("fcfs", astraea_example()), Plan)
True
"""

from dataclasses import dataclass

from fairopt.policy import Admission, Payment, Plan, Policy

__all__ = ["Admission", "Bases", "Payment", "Plan", "Policy"]


@dataclass(frozen=True)
class Bases:
    """The bases of prices in one interval: theta for each worker type and for each type of PS.

    ``interval``: l, from 1. ``rounds``: lambda. ``slots``: tau_l of each; round i begins after (lambda + i - 1) tau_l.
    Source: Astraea (posted prices) Eq. (8), Algorithm 2.

    >>> Bases(interval=1, rounds=0, slots=24, workers=(1.5,), ps=(1.0,)).workers
    (1.5,)
    """

    interval: int
    rounds: int
    slots: int
    workers: tuple[float, ...]
    ps: tuple[float, ...]
