"""Gandiva_fair's Table 1: speedups of seven models on newer GPUs over a K80."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fairopt.datasets.tables import by_user, market_of_choices, records
from fairopt.errors import BadInput
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market

_NEWER = ("P40", "P100", "V100")


class Timing(NamedTuple):
    """One row of the table: milliseconds per mini-batch on a K80, and speedups over it by type (K80: 1)."""

    model: str
    k80_ms: Fraction
    speedup: Mapping[str, Fraction]


def gandiva_table1() -> tuple[Timing, ...]:
    """Return the seven rows of the table, in its order.

    Source: Gandiva_fair Table 1.

    >>> print(gandiva_table1()[0].speedup["V100"])
    5/4
    """
    return tuple(
        Timing(
            row["model"],
            Fraction(row["K80_ms"]),
            {"K80": Fraction(1)} | {name: Fraction(row[f"{name}_percent"]) / 100 for name in _NEWER},
        )
        for row in records("gandiva_fair_table1.csv")
    )


def gandiva_market(
    capacity: Mapping[str, Any], users: Mapping[str, str] | Sequence[str], weight: Any = None, demand: Any = None
) -> Market:
    """Return a market of users who train models of the table; speedups are over the K80.

    ``capacity``: GPUs of each type, of K80, P40, P100, V100; its order is the market's. ``users``: a dictionary from
    user to model, or a list of different models, which then name the users. ``weight``, ``demand``: by user, or in
    the users' order.

    Errors: `BadInput` for a model or a type that the table does not have.

    Source: Gandiva_fair Table 1.

    >>> gandiva_market({"K80": 60, "V100": 12}, {"A": "VAE", "B": "DCGAN"})
    <Market: 2 users, 2 types (K80, V100), 72 GPUs>
    """
    table = {timing.model: timing.speedup for timing in gandiva_table1()}
    models = list(users.values()) if isinstance(users, Mapping) else list(users)
    for model in models:
        if model not in table:
            raise BadInput(f"there is no model {model!r}", place="users", remedy=nearest(model, table, "model"))
    names = by_user(users, models, "users")
    choices = {name: table[model] for name, model in zip(names, models, strict=True)}
    return market_of_choices(choices, capacity, weight, demand)
