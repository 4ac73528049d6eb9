"""Checks of the options of policies."""

from __future__ import annotations

from fairopt.errors import require
from fairopt.policy import Policy
from fairopt.problem.numbers import exact


def check_lease(lease: object, place: str) -> None:
    """Refuse what is neither a positive length of time nor None."""
    require(lease is None or exact(lease, place) > 0, lease, place, "Give a length of time, or None for a round")


def check_whole(policy: Policy, least: int, *options: str) -> None:
    """Refuse options that are not whole numbers from ``least``; None is one where it is the default."""
    for name in options:
        value = getattr(policy, name)
        fits = value is getattr(type(policy), name) is None or (isinstance(value, int) and value >= least)
        require(fits, repr(value), f"{policy.name}, {name}", f"Give a whole number from {least}")
