"""YARN: capacities of queues by partition, in whole GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.sax.saxutils import escape, unescape

import numpy as np

from fairopt.audit.plans.planner import Planner, Realised, entitled, whole_quotas
from fairopt.importing.yarn_objects import properties
from fairopt.problem import Market
from fairopt.problem.files.storage import AnyPath
from fairopt.program import INFINITY, Array


def _realise(market: Market, nodes: Sequence[int], shares: Array) -> Realised:
    """Return capacities as amounts; maximum capacities are raised to them where they are less."""
    found, old = whole_quotas(market, nodes, shares, fixed=True, units={}), entitled(market)
    owed, k = entitled(found.after), len(market.types)
    quota, cap = owed.guarantee.copy(), owed.cap.copy()
    quota[:, k:] = _down(quota[:, k:])  # where a partition has none of its GPUs planned
    for node in np.flatnonzero((cap != old.cap).any(axis=1)):
        cap[node] = np.maximum(_down(cap[node]), quota[node])
    after = replace(found.after, entitlements=replace(owed, guarantee=quota, cap=cap))
    words = "capacities become amounts: they do not grow with the cluster, as per cent do"
    return Realised(after, found.held, (*found.lost, words))


def _down(amounts: Array) -> Array:
    out = amounts.copy()
    out[amounts < INFINITY] //= 1
    return out


def _undo(files: Sequence[AnyPath], told: str) -> str:
    """Return the properties of the cluster's own configuration in the place of those that are told."""
    names = [unescape(name) for name in re.findall(r"<name>(.*?)</name>", told)]
    own = [properties(path) for path in files if str(path).lower().endswith(".xml")]
    old = {name: value for each in own for name, value in each.items()}
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(old[name])}</value></property>\n"
        if name in old
        else f"  <!-- remove {name} -->\n"
        for name in names
    ]
    return f"<configuration>\n{''.join(lines)}</configuration>\n" if lines else ""


YARN = Planner(
    _realise,
    ".xml",
    "yarn rmadmin -refreshQueues  # after the properties of {file} are put into capacity-scheduler.xml",
    fixed=True,
    undo=_undo,
)
