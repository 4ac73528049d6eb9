"""Rounds of FFT: jobs with gangs, several types of GPUs, and what each job costs where."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from fairopt.benchmarks.fft_rounds import PHILLY, Case
from fairopt.benchmarks.instances.markets import between, whole
from fairopt.errors import BadInput
from fairopt.experiment.bench import Family, Instance
from fairopt.methods.gang_assignment import GangAssignment
from fairopt.problem.labels import check_keys
from fairopt.problem.numbers import shown

#: GPUs to a job, where they are not given, as in FFT's Sec. 6 by the script of that name.
JOBS_A_GPU = 4


class FftRounds(Family):
    """Rounds modelled on FFT's Sec. 6, the same as those of ``benchmarks/fft_rounds.py``.

    Parameters: ``jobs``; ``gpus`` (a quarter of the jobs); ``types`` (8); ``gangs``, sizes, and ``odds``, how often
    each comes (as in Philly); ``rounded``, what costs are rounded to, so that many are tied (0: not at all).
    """

    name = "fft-rounds"
    source = "FFT (2025), Sec. 6; gang sizes as in the Philly trace"

    def draw(self, seed: int, parameters: Mapping[str, Any]) -> Instance:
        """Return the round of these parameters and this seed."""
        place = f"family {self.name!r}"
        check_keys(parameters, ["jobs", "gpus", "types", "gangs", "odds", "rounded"], ["jobs"], place)
        jobs = whole(1)(parameters["jobs"], f"{place}, parameter 'jobs'")
        gpus = whole(1)(parameters.get("gpus", max(1, jobs // JOBS_A_GPU)), f"{place}, parameter 'gpus'")
        types = whole(1)(parameters.get("types", 8), f"{place}, parameter 'types'")
        rounded = between(0.0, 1e9)(parameters.get("rounded", 0), f"{place}, parameter 'rounded'")
        mix = _mix(parameters, place)
        case = Case(self.name, jobs, gpus, mix, seed, rounded, types=types)
        problem = case.instance()
        given = ", ".join(f"{name} {value}" for name, value in parameters.items())
        return Instance(
            family=self.name,
            name=f"{self.name} ({given}), seed {seed}",
            size=jobs,
            seed=seed,
            problem=problem,
            digest=digest(problem),
            parameters=dict(parameters),
        )


def _mix(parameters: Mapping[str, Any], place: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return gang sizes and how often each comes, adding up to 1."""
    if "gangs" not in parameters and "odds" not in parameters:
        return PHILLY
    gangs, odds = (
        parameters.get("gangs", list(PHILLY[0])),
        parameters.get("odds", [1] * len(parameters.get("gangs", ()))),
    )
    for name, values in (("gangs", gangs), ("odds", odds)):
        if not isinstance(values, list | tuple) or not values:
            raise BadInput(f"got {shown(values)}", place=f"{place}, parameter {name!r}", remedy="Give a list")
    if len(gangs) != len(odds):
        raise BadInput(f"{len(odds)} odds for {len(gangs)} gangs", place=place, remedy="Give as many")
    sizes = tuple(whole(1)(each, f"{place}, parameter 'gangs'") for each in gangs)
    often = [between(0.0, 1e9)(each, f"{place}, parameter 'odds'") for each in odds]
    if not sum(often) > 0:
        raise BadInput("all are 0", place=f"{place}, parameter 'odds'", remedy="Give one that is positive")
    return sizes, tuple(each / sum(often) for each in often)


def digest(problem: GangAssignment) -> str:
    """Return the SHA-256 of a round's numbers: names, shapes and little-endian bytes."""
    content = sha256(f"least {problem.least}\n".encode())
    arrays = {"cost": ("<f8", problem.cost), "gangs": ("<i8", problem.gangs), "capacity": ("<i8", problem.capacity)}
    for name, (kind, array) in {**arrays, "allowed": ("|b1", problem.allowed)}.items():
        plain = np.ascontiguousarray(array, dtype=kind)
        content.update(f"{name} {kind} {plain.shape}\n".encode())
        content.update(plain.tobytes())
    return content.hexdigest()
