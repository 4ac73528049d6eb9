"""Markets of one GPU type, whose users hold some and wait for more."""

from __future__ import annotations

from typing import Any

from fairopt.problem import Entitlements, Gangs, Market


def one_type(capacity: int, held: dict[str, int], asked: dict[str, int], **more: Any) -> Market:
    """Return users of one type, each with a gang that runs and one that waits."""
    users = list(held)
    both = [(user, gpus, "H100") for user, gpus in held.items()] + [(user, gpus, None) for user, gpus in asked.items()]
    gangs = Gangs.of(
        *zip(*[(u, g) for u, g, _ in both], strict=True), users=users, types=["H100"], on=[o for *_, o in both]
    )
    owed = Entitlements.of(users, ["H100"], gangs=gangs, **more)
    return Market.of([[1]] * len(users), [capacity], users=users, types=["H100"], entitlements=owed)


def now(market: Market) -> Any:
    """Return what users hold now."""
    assert market.entitlements is not None
    return market.entitlements.held[:, : len(market.types)]
