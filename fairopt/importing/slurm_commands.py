"""A change of entitlements as the `sacctmgr` commands that make it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np

from fairopt.errors import BadInput
from fairopt.importing.slurm import ANYWHERE
from fairopt.importing.slurm_values import GPUS, UNTYPED
from fairopt.problem import Market
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.entitlements import Entitlements
from fairopt.program import INFINITY, Number


def emit(before: Market, after: Market) -> str:
    """Return the commands that change what Slurm has, from ``before`` to ``after``, one a line; "" for no change.

    Associations come and go, move, and get other shares and GrpTRES. What Slurm cannot be told this way (guarantees,
    reserves, the GPUs themselves) is a line that begins with "#". Names are those of `fairopt.importing.slurm`:
    ACCOUNT, ACCOUNT/USER, ACCOUNT/USER/PARTITION. Where the files name the cluster, each command does: a slurmdbd may
    have several.

    Errors: `BadInput` for a market without entitlements, and for a user whose name is no ACCOUNT/USER.

    Source: Slurm 284c3b95, doc/man/man1/sacctmgr.1; "-1" clears a limit.
    """
    old, new = _owed(before, "before"), _owed(after, "after")
    lines: list[str] = []
    if dict(zip(before.types, before.capacity, strict=True)) != dict(zip(after.types, after.capacity, strict=True)):
        lines.append("# the GPUs themselves change: nodes are configured in slurm.conf and gres.conf")
    gone = [node for name, node in _nodes(old).items() if name not in _nodes(new)]
    for node in sorted(gone, key=lambda node: node >= len(old.users)):
        lines.append(f"sacctmgr -i remove {_where(old, node)}{_cluster(old)}")
    for name, node in sorted(_nodes(new).items(), key=lambda each: _depth(new, each[1])):
        lines += _changes(old, _nodes(old).get(name), new, node)
    return "".join(f"{line}\n" for line in lines)


def _changes(old: Entitlements, was: int | None, new: Entitlements, now: int) -> Iterator[str]:
    settings = []
    name, above = new.nodes[now], _above(new, now)
    if was is not None and above != _above(old, was):
        if now < len(new.users):
            raise BadInput(f"{name!r} moves to {above!r}", place="group", remedy="Name it after the account it is in")
        settings.append(f"parent={shlex.quote(above or 'root')}")
    if was is None or _shares(old, was) != _shares(new, now):
        settings.append(f"fairshare={_shares(new, now)}")
    limits = _limits(old, was, new, now)
    if limits:
        settings.append(f"GrpTRES={','.join(limits)}")
    for what in ("guarantee", "reserve"):
        row = getattr(new, what)[now]
        if was is None or now >= len(new.users) or np.array_equal(row, getattr(old, what)[was]):
            continue
        yield f"# {name}: {what} changes; Slurm has none (a reservation, or a partition with its own nodes, is near)"
    if was is None:
        yield f"sacctmgr -i add {_added(new, now, above)}{_cluster(new)} {' '.join(settings)}"
    elif settings:
        yield f"sacctmgr -i modify {_where(new, now)}{_cluster(new)} set {' '.join(settings)}"


def _limits(old: Entitlements, was: int | None, new: Entitlements, now: int) -> list[str]:
    columns = {name: at for at, name in enumerate(old.columns)}
    limits = []
    for at, column in enumerate(new.columns):
        most = new.cap[now, at]
        before = INFINITY if was is None or column not in columns else old.cap[was, columns[column]]
        if most != before:
            resource, _, flavor = column.rpartition(":")
            named = resource if flavor == ANYWHERE and resource else GPUS if column == UNTYPED else f"{GPUS}:{column}"
            limits.append(shlex.quote(f"{named}={_count(most, named)}"))
    return limits


def _count(most: Number, resource: str) -> str:
    """Return a limit as Slurm takes it: whole numbers, memory in megabytes, -1 for none."""
    if most == INFINITY:
        return "-1"
    return f"{int(most / 1024**2)}M" if resource == "mem" else str(int(most))


def _shares(owed: Entitlements, node: int) -> str:
    weight = owed.borrow_weight[node]
    if owed.tier[node] > 0 and not weight:
        return "parent"
    if weight != int(weight):
        raise BadInput(f"got {weight}", place=f"{owed.nodes[node]!r}, borrow_weight", remedy="Shares are whole numbers")
    return str(int(weight))


def _cluster(owed: Entitlements) -> str:
    name = owed.settings.get("", {}).get("ClusterName", "")
    return f" cluster={shlex.quote(name)}" if name else ""


def _where(owed: Entitlements, node: int) -> str:
    parts = [shlex.quote(part) for part in _parts(owed, node)]
    if len(parts) == 1:
        return f"account where name={parts[0]}"
    return f"user where name={parts[1]} account={parts[0]}" + "".join(f" partition={part}" for part in parts[2:])


def _added(owed: Entitlements, node: int, above: str) -> str:
    parts = [shlex.quote(part) for part in _parts(owed, node)]
    if len(parts) == 1:
        return f"account {parts[0]} parent={shlex.quote(above or 'root')}"
    return f"user {parts[1]} account={parts[0]}" + "".join(f" partition={part}" for part in parts[2:])


def _parts(owed: Entitlements, node: int) -> list[str]:
    name = owed.nodes[node]
    parts = name.split("/") if node < len(owed.users) else [name]
    if not all(parts) or (node < len(owed.users)) != (len(parts) > 1) or len(parts) > 3:
        raise BadInput(f"got {name!r}", place="user", remedy="Call users ACCOUNT/USER, as `fairopt import slurm` does")
    return parts


def _nodes(owed: Entitlements) -> dict[str, int]:
    return {name: node for node, name in enumerate(owed.nodes)}


def _above(owed: Entitlements, node: int) -> str:
    return "" if owed.parent[node] == TOP else owed.nodes[owed.parent[node]]


def _depth(owed: Entitlements, node: int) -> tuple[bool, int]:
    return node < len(owed.users), sum(1 for _ in owed.path(node))


def _owed(market: Market, place: str) -> Entitlements:
    if market.entitlements is None:
        raise BadInput("no entitlements", place=place, remedy="Give a market that was imported from Slurm's files")
    return market.entitlements
