"""The bases of posted prices: the part of a plan's evidence from which prices can be recomputed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bases:
    """The bases of prices in one interval: theta for each worker type and for each type of PS.

    ``interval``: l, from 1. ``rounds``: lambda. ``slots``: of one round, tau_l; round i begins after slot
    (lambda + i - 1) tau_l.

    Source: Astraea (posted prices) Eq. (8), Algorithm 2.
    """

    interval: int
    rounds: int
    slots: int
    workers: tuple[float, ...]
    ps: tuple[float, ...]
