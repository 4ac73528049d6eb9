"""Batches for posted-price packing: Astraea's workloads over the jobs of the Philly trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fairopt.benchmarks.instances.markets import Check, whole
from fairopt.benchmarks.workloads.astraea_batches import astraea_small, astraea_workload
from fairopt.errors import BadInput
from fairopt.experiment.bench import Family, Instance
from fairopt.policy import Plan
from fairopt.problem.batch import Batch
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown
from fairopt.schedules.document import document


def form(value: Any, place: str) -> bool:
    """Return whether utilities of the form of that name are convex."""
    named = {"linear": False, "convex": True}
    if value not in named:
        raise BadInput(f"got {shown(value)}", place=place, remedy=nearest(str(value), named, "form"))
    return named[value]


def size(value: Any, place: str) -> bool:
    """Return whether jobs are those of the paper's small batches."""
    if not isinstance(value, bool):
        raise BadInput(f"got {shown(value)}", place=place, remedy="Give true or false")
    return value


#: The parameters, each with its default and its check.
KNOWN: Mapping[str, tuple[Any, Check]] = {
    "jobs": (None, whole(1)),
    "servers": (100, whole(1)),
    "utility": ("linear", form),
    "small": (False, size),
}


class PostedPriceBatches(Family):
    """Consecutive jobs of the Philly trace with the parameters of Astraea's Sec. 5.1.

    Parameters: ``jobs``; ``servers`` (100); ``utility``, linear or convex; ``small``: two tenants and jobs of a few
    slots, as in Fig. 5 (false: all eight tenants of the excerpt).
    """

    name = "posted-price-batches"
    source = "Astraea (posted prices), Sec. 5.1; jobs of the Philly trace"

    def draw(self, seed: int, parameters: Mapping[str, Any]) -> Instance:
        """Return the batch of these parameters and this seed."""
        place = f"family {self.name!r}"
        check_keys(parameters, list(KNOWN), ["jobs"], place)
        chosen = {
            name: check(parameters.get(name, default), f"{place}, parameter {name!r}")
            for name, (default, check) in KNOWN.items()
        }
        make = astraea_small if chosen.pop("small") else astraea_workload
        batch = make(seed=seed, convex=chosen.pop("utility"), **chosen)
        given = ", ".join(f"{name} {value}" for name, value in parameters.items())
        return Instance(
            family=self.name,
            name=f"{self.name} ({given}), seed {seed}",
            size=len(batch.jobs),
            seed=seed,
            problem=batch,
            digest=digest(batch),
            parameters=dict(parameters),
        )


def digest(batch: Batch) -> str:
    """Return the SHA-256 of the batch as a document holds it: every number in full."""
    told = document(Plan(policy="", batch=batch, schedules=()))["batch"]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
