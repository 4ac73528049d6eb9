"""What the families of markets have in common: their parameters, clusters in several styles, and the content's hash."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairopt.errors import BadInput
from fairopt.experiment.bench import Family, Instance
from fairopt.problem import Market
from fairopt.problem.labels import check_keys, nearest
from fairopt.problem.numbers import shown

Floats = NDArray[np.float64]
Check = Callable[[Any, str], Any]


def whole(least: int) -> Check:
    """Return a check that takes whole numbers, at least ``least``."""

    def check(value: Any, place: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give a whole number, at least {least}")
        return value

    return check


def between(low: float, high: float) -> Check:
    """Return a check that takes numbers from ``low`` to ``high``."""

    def check(value: Any, place: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give a number from {low:g} to {high:g}")
        return float(value)

    return check


def style(value: Any, place: str) -> str:
    """Return the name of a style of clusters."""
    if value not in CLUSTERS:
        raise BadInput(f"got {shown(value)}", place=place, remedy=nearest(value, CLUSTERS, "style"))
    return str(value)


class MarketFamily(Family):
    """Markets in floats, drawn from a seed.

    Parameters of all: ``users``; ``types`` (10), where the family can choose; ``capacity``, a style of `CLUSTERS`.
    Each family adds its own in ``own``: name to (default, check).
    """

    own: ClassVar[Mapping[str, tuple[Any, Check]]] = {}
    #: Whether there may be any number of types.
    any_types: ClassVar[bool] = True

    def draw(self, seed: int, parameters: Mapping[str, Any]) -> Instance:
        """Return the market of these parameters and this seed; see the class for the parameters.

        Errors: `BadInput` for an unknown parameter and a value that cannot be.
        """
        chosen = self.checked(parameters)
        market = self.market(np.random.default_rng([seed, chosen["users"], chosen.get("types", 0)]), chosen)
        given = ", ".join(f"{name} {value}" for name, value in parameters.items())
        return Instance(
            family=self.name,
            name=f"{self.name} ({given}), seed {seed}",
            size=len(market.weight),
            seed=seed,
            problem=market,
            digest=digest(market),
            parameters=dict(parameters),
        )

    def checked(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters, defaults where none is given."""
        place = f"family {self.name!r}"
        known: dict[str, tuple[Any, Check]] = {"users": (None, whole(1)), "capacity": ("cluster", style)}
        if self.any_types:
            known["types"] = (10, whole(1))
        known |= self.own
        check_keys(parameters, list(known), ["users"], place)
        return {
            name: check(parameters.get(name, default), f"{place}, parameter {name!r}")
            for name, (default, check) in known.items()
        }

    @abstractmethod
    def market(self, random: np.random.Generator, chosen: Mapping[str, Any]) -> Market:
        """Return a market drawn with ``random``."""


def runnable(speedup: Floats, capacity: Floats) -> Floats:
    """Return speedups (n, k) in which every user runs somewhere: 1 on the largest type for one that did not."""
    idle = ~((speedup > 0) & (capacity > 0)).any(axis=1)
    speedup[idle, int(np.argmax(capacity))] = 1.0
    return speedup


def digest(market: Market) -> str:
    """Return the SHA-256 of a market's numbers: names, shapes and little-endian bytes of its arrays; no user's name."""
    content = sha256()
    for name, array in (
        ("speedup", market.speedup),
        ("capacity", market.capacity),
        ("weight", market.weight),
        ("demand", market.demand),
    ):
        if array is not None:
            plain = np.ascontiguousarray(array, dtype="<f8")
            content.update(f"{name} {plain.dtype.str} {plain.shape}\n".encode())
            content.update(plain.tobytes())
    return content.hexdigest()


def _cluster(random: np.random.Generator, users: int, types: int) -> Floats:
    return random.integers(8, 65, types).astype(float)


def _per_user(random: np.random.Generator, users: int, types: int) -> Floats:
    return np.ceil(users * random.uniform(0.05, 0.5, types))


def _skewed(random: np.random.Generator, users: int, types: int) -> Floats:
    return np.ceil(10.0 ** random.uniform(0, 5, types))


def _one_empty(random: np.random.Generator, users: int, types: int) -> Floats:
    capacity = _cluster(random, users, types)
    if types > 1:
        capacity[random.integers(types)] = 0.0
    return capacity


#: Styles of clusters: GPUs of each type (k,) for so many users. "cluster": 8 to 64 of each; "per-user": growing with
#: the users; "skewed": from 1 to 100,000; "one-empty": as cluster, with one type that has none.
CLUSTERS: Mapping[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "cluster": _cluster,
    "per-user": _per_user,
    "skewed": _skewed,
    "one-empty": _one_empty,
}
