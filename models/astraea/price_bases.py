"""Sources of the bases of posted prices, and the number of rounds that Lemma 1 requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log
from typing import Protocol

from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.numbers import exact


class Theta(Protocol):
    """A source of theta, the base of a price."""

    def bases(self, batch: Batch, jobs: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return theta for each worker type and for each type of PS, each above 1."""


@dataclass(frozen=True)
class Given:
    """The same base for all types: from history, or from an example.

    Source: Astraea (posted prices) Sec. 5.2, "Setting of Maximum Price"; the example of Sec. 4.4 has 16 and 16.
    """

    workers: float = 16.0
    ps: float = 16.0

    def bases(self, batch: Batch, jobs: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the given bases, one for each type."""
        return [self.workers] * len(batch.servers.worker_types), [self.ps] * len(batch.servers.ps_types)


@dataclass(frozen=True)
class Admissible:
    """The least bases at which a full cluster admits nobody: theta - 1 is the largest utility per resource and slot.

    For each job over every number of workers: f of the duration over workers times slots, and over slots with one PS;
    at least 1.

    Source: Astraea (posted prices) Sec. 4.4, after Eq. (8).
    """

    def bases(self, batch: Batch, jobs: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the bases for the given jobs."""
        servers = batch.servers
        workers = [Fraction(1)] * len(servers.worker_types)
        ps = [Fraction(1)] * len(servers.ps_types)
        for job in jobs:
            for w, p in servers.pairs:
                by_worker, by_slot = batch.densities(job, w, p)
                workers[w], ps[p] = max(workers[w], by_worker), max(ps[p], by_slot)
        return [float(each + 1) for each in workers], [float(each + 1) for each in ps]


def read_theta(text: str, place: str) -> Theta:
    """Return the source that a text names: "admissible", one base, or two for workers and PS, such as "16, 8"."""
    if text.strip().lower() == "admissible":
        return Admissible()
    numbers = [exact(part, place) for part in text.split(",")]
    if len(numbers) > 2 or min(numbers) <= 1:
        raise BadInput(f"got {text!r}", place=place, remedy="Give admissible, or one or two numbers above 1")
    return Given(float(numbers[0]), float(numbers[-1]))


def rounds(total: float, least: float, theta_workers: float, theta_ps: float) -> int:
    """Return lambda of Lemma 1, from the total utility of all jobs and the least of one.

    sigma is 2 (log theta_w + log theta_p), with natural logarithms; it is above 1 for bases from e on.

    Source: Astraea (posted prices) Lemmas 1 and 3.
    """
    sigma = 2 * (log(theta_workers) + log(theta_ps))
    return floor((log(total) - log(least)) / (log(sigma) - log(sigma - 1))) + 1
