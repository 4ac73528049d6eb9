"""A change of entitlements as the Queue objects that Armada takes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.discovery import library
from fairopt.errors import BadInput, NotCapable
from fairopt.problem import Market


def emit(before: Market, after: Market) -> str:
    """Return the changed queues as YAML, one document each, as ``armadactl get queue`` prints them; "" for no change.

    A queue's priority factor is one over its weight. Other fields are to be taken from what ``armadactl get queue``
    prints, since Armada replaces a queue as a whole. What a queue has not got (guarantees, reserves, tiers), and caps,
    which are limits by priority class, are lines that begin with "#".

    Errors: `BadInput` for a market without entitlements, or other queues; `NotCapable` for a weight such that one over
    it is no decimal number.

    Source: armadaproject/armada at 207cc9e0, pkg/api/submit.proto (Queue), pkg/client/resource.go, example/queue.yaml.
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or old.nodes != new.nodes or old.columns != new.columns:
        remedy = "Import both from the same cluster's files, or change one of them"
        raise BadInput("not the same queues and types", place="the markets", remedy=remedy)
    yaml = library("yaml", "Armada's objects", "import")
    lines, made = [], []
    for node, name in enumerate(new.nodes):
        for what, why in (
            ("guarantee", "Armada guarantees nothing"),
            ("reserve", "Armada reserves nothing"),
            ("tier", "priorities are those of jobs"),
            ("cap", "limits are by priority class: set resourceLimitsByPriorityClassName"),
        ):
            if not np.array_equal(getattr(old, what)[node], getattr(new, what)[node]):
                lines.append(f"# {name}: {what} changes; {why}\n")
        if old.borrow_weight[node] != new.borrow_weight[node]:
            header = {"apiVersion": "armadaproject.io/v1beta1", "kind": "Queue", "name": name}
            made.append(header | {"priorityFactor": _factor(name, new.borrow_weight[node])})
    return "".join(lines) + (yaml.safe_dump_all(made, sort_keys=False) if made else "")


def _factor(name: str, weight: object) -> float:
    """Return a priority factor that says exactly one over the weight."""
    exact = Fraction(str(weight))
    if exact <= 0:
        raise BadInput(f"got {exact}", place=f"queue {name!r}, weight", remedy="Give a weight above 0")
    factor = float(1 / exact)
    if Fraction(repr(factor)) != 1 / exact:
        raise NotCapable(
            f"{name!r}: one over the weight {exact} is no short decimal number, which a priority factor is"
        )
    return factor
