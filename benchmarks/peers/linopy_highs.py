"""linopy with HiGHS, written as one writes linopy: labelled arrays."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.plain import Floats, Peer, SharedGpus
from fairopt.errors import NotSolved, OutOfTime


def _table(values: Any, *names: str) -> Any:
    """Return an array with a name, and numbers from 0 on, for each of its axes."""
    import xarray

    array = np.asarray(values)
    return xarray.DataArray(array, [(name, np.arange(size)) for name, size in zip(names, array.shape, strict=True)])


def _sharing(market: SharedGpus) -> tuple[Any, Any, Any]:
    """Return a model, its shares within capacities and limits, and each user's own throughput."""
    import linopy

    model = linopy.Model()
    share = model.add_variables(lower=0, upper=_table(market.most, "user", "type"), name="share")
    model.add_constraints(share.sum("user") <= _table(market.capacity, "type"), name="capacity")
    if len(market.limited):
        limited = _table(np.isfinite(market.limit), "user")
        most = _table(np.where(np.isfinite(market.limit), market.limit, 0.0), "user")
        model.add_constraints(share.sum("type") <= most, name="limit", mask=limited)
    return model, share, (_table(market.speedup, "user", "type") * share).sum("type")


def max_min(market: SharedGpus) -> Any:
    """Return Gavel's program, Sec. 4.1."""
    model, _, own = _sharing(market)
    least = model.add_variables(name="least")
    model.add_constraints(own / _table(market.fair, "user") - least >= 0, name="ratio")
    model.add_objective(least.to_linexpr(), sense="max")
    return model


def oef_noncooperative(market: SharedGpus) -> Any:
    """Return OEF Eq. (9) with the level as a variable."""
    model, _, own = _sharing(market)
    level = model.add_variables(name="level")
    model.add_constraints(own - _table(market.weight, "user") * level == 0, name="equal")
    model.add_objective(own.sum(), sense="max")
    return model


def oef_cooperative(market: SharedGpus) -> Any:
    """Return OEF Eq. (10)."""
    model, share, own = _sharing(market)
    claim = _table(market.weight[:, None] / market.weight[None, :], "user", "other")
    of_others = (_table(market.speedup, "user", "type") * share.rename(user="other")).sum("type") * claim
    pairs = _table(~np.eye(len(market.fair), dtype=bool), "user", "other")
    model.add_constraints(own - of_others >= 0, name="envy_free", mask=pairs)
    model.add_objective(own.sum(), sense="max")
    return model


MODELS: Mapping[str, Callable[[SharedGpus], Any]] = {
    "max-min": max_min,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
}


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what is written to the standard output: linopy starts HiGHS before it switches its output off."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@dataclass(frozen=True, eq=False)
class _Limited:
    """A model, and how HiGHS is to be run on it."""

    model: Any
    options: Mapping[str, Any]


@dataclass(frozen=True)
class LinopyHighs(Peer):
    """linopy with HiGHS, passed in memory. linopy hands the model over as it solves, so that this counts as "solve"."""

    name = "linopy-highs"
    tasks = tuple(MODELS)
    libraries: ClassVar[Sequence[str]] = ("linopy", "highspy")
    modules: ClassVar[Sequence[str]] = ("linopy", "highspy")

    def build(self, task: str, prepared: SharedGpus, *, time_limit: float, threads: int) -> _Limited:
        """Write the model."""
        options = {"time_limit": float(time_limit), "threads": threads, "output_flag": False, "log_to_console": False}
        return _Limited(MODELS[task](prepared), options)

    def solve(self, built: _Limited) -> Floats:
        """Hand the model over, run HiGHS and fetch the shares."""
        with _quiet():
            status, condition = built.model.solve(
                "highs", io_api="direct", set_names=False, progress=False, **built.options
            )
        if condition == "time_limit":
            raise OutOfTime("HiGHS, through linopy, stopped at its time limit")
        if (status, condition) != ("ok", "optimal"):
            raise NotSolved(f"HiGHS, through linopy: {status}, {condition}")
        return np.asarray(built.model.solution["share"].transpose("user", "type").to_numpy(), dtype=float)
