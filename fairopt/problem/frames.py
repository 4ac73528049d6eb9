"""Markets out of pandas tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairopt.errors import BadInput
from fairopt.problem.labels import aligned, as_name, is_pandas
from fairopt.problem.market import Market

if TYPE_CHECKING:
    from pandas import DataFrame


def market_from_frame(frame: DataFrame, capacity: Any, weight: Any = None, demand: Any = None) -> Market:
    """Return the market whose speedups (n, k) are a pandas table: a row for each user, a column for each type.

    ``capacity`` (by type), ``weight`` and ``demand`` (by user) are a Series or a dictionary, aligned by label, or a
    list in order. Errors: `BadInput` where labels are not the same set, and for values that are no numbers.
    """
    if not is_pandas(frame, "DataFrame"):
        remedy = "Give a pandas DataFrame, or lists to Market.of"
        raise BadInput(f"got {type(frame).__name__}", place="frame", remedy=remedy)
    users, types = axes(frame)
    return Market.of(
        frame.to_numpy(dtype=object).tolist(),
        aligned(capacity, types, "capacity", "type"),
        weight=None if weight is None else aligned(weight, users, "weight", "user"),
        demand=None if demand is None else aligned(demand, users, "demand", "user"),
        users=users,
        types=types,
    )


def axes(frame: DataFrame) -> tuple[list[str], list[str]]:
    """Return the labels of the rows and of the columns of a table, as names."""
    rows = [as_name(label, "the table's rows") for label in frame.index]
    return rows, [as_name(label, "the table's columns") for label in frame.columns]
