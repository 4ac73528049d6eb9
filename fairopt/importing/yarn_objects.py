"""A change of entitlements as the properties that YARN's capacity scheduler takes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from fairopt.errors import BadInput, NotCapable
from fairopt.importing.yarn import DEFAULT, GPU
from fairopt.importing.yarn_config import PREFIX, ROOT
from fairopt.problem import Entitlements, Market
from fairopt.program import INFINITY


def emit(before: Market, after: Market) -> str:
    """Return the properties of capacity-scheduler.xml that change, as a configuration, to replace those of their names.

    Where a queue's capacity changes, all queues beside it are written in amounts, since YARN takes one way of writing
    for the queues below one. Types are partitions, counted in yarn.io/gpu. Maximum capacities are the caps; a
    ``user-limit-factor`` that lowers them stays. Reserves and weights, which YARN has not got, are comments.

    Errors: `BadInput` for a market without entitlements, and for other queues or partitions; `NotCapable` for amounts
    that are not whole.

    Source: Hadoop's CapacityScheduler.md, Configuring Resource Allocation; NodeLabel.md.
    """
    old, new = before.entitlements, after.entitlements
    if old is None or new is None or old.nodes != new.nodes or old.columns != new.columns:
        remedy = "Import both from the same cluster's files, or change one of them"
        raise BadInput("not the same queues and partitions", place="the markets", remedy=remedy)
    lines = [line for node in range(len(new.nodes)) for line in _comments(old, new, node)]
    for node, path in enumerate(new.nodes):
        for what, key in (("guarantee", "capacity"), ("cap", "maximum-capacity")):
            beside = range(len(new.nodes)) if what == "guarantee" else [node]
            same = all(
                np.array_equal(getattr(old, what)[each], getattr(new, what)[each])
                for each in beside
                if new.parent[each] == new.parent[node]
            )
            if not same:
                lines += _amounts(new, getattr(new, what)[node], path, key)
        if old.tier[node] != new.tier[node]:
            lines.append(_property(f"{path}.priority", str(int(new.tier[node]))))
    return f"<configuration>\n{''.join(lines)}</configuration>\n" if lines else ""


def _comments(old: Entitlements, new: Entitlements, node: int) -> Iterator[str]:
    for what in ("reserve", "borrow_weight"):
        if not np.array_equal(getattr(old, what)[node], getattr(new, what)[node]):
            name = new.nodes[node].replace("--", "- -")
            yield f"  <!-- {name}: {what.replace('_', ' ')} changes; YARN has none -->\n"


def _amounts(owed: Entitlements, row: Any, path: str, key: str) -> Iterator[str]:
    """Yield a property for each partition, with all resources of it."""
    for at, label in enumerate(owed.types):
        named = [(GPU, row[at])] + [
            (good.resource, row[len(owed.types) + column])
            for column, good in enumerate(owed.goods)
            if good.flavor == label
        ]
        said = ",".join(f"{name}={_whole(amount, path, key)}" for name, amount in named if amount != INFINITY)
        place = "" if label == DEFAULT else f"accessible-node-labels.{label}."
        yield _property(f"{path}.{place}{key}", f"[{said}]")


def _whole(amount: Any, path: str, key: str) -> int:
    exact = Fraction(amount)
    if exact.denominator != 1:
        raise NotCapable(f"{path}, {key}: {exact} is not whole, and YARN counts in whole units")
    return int(exact)


def _property(name: str, value: str) -> str:
    if not name.startswith(f"{ROOT}."):
        raise BadInput(
            f"got {name!r}", place="queue", remedy="Call queues by their paths, as `fairopt import yarn` does"
        )
    return f"  <property><name>{escape(PREFIX + name)}</name><value>{escape(value)}</value></property>\n"
