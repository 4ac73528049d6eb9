"""Gavel's measured throughputs: 26 jobs (model and batch size) on K80, P100 and V100, alone or on several GPUs.

A newer GPU is not always faster: alone and in the simulation's table the V100 runs these jobs between 0.66 and 11.6
times as fast as the K80, and recommendation models train fastest on a P100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from fairopt.datasets.tables import Throughput, by_user, market_of_choices, records
from fairopt.errors import BadInput
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market

_TYPES = ("K80", "P100", "V100")
_PLACEMENT = {True: "consolidated", False: "unconsolidated"}


def gavel_throughputs(
    source: str = "simulation", *, scale_factor: int = 1, consolidated: bool = True
) -> tuple[Throughput, ...]:
    """Return the measured throughputs of jobs on ``scale_factor`` GPUs (1, 2, 4 or 8), on one server or several.

    ``source`` is one of Gavel's two tables: "simulation" or "physical". Numbers are exact as printed.

    Errors: `BadInput` for another source or scale factor.

    Source: Gavel (OSDI 2020), scheduler/simulation_throughputs.json and physical_cluster_throughputs.json.

    >>> len(gavel_throughputs(scale_factor=1))
    26
    """
    rows = records("throughputs_gavel.csv")
    _one_of(source, {row["source"] for row in rows}, "source")
    _one_of(str(scale_factor), {row["gpus"] for row in rows}, "scale_factor")
    _one_of(consolidated, _PLACEMENT, "consolidated")
    wanted = (source, str(scale_factor), _PLACEMENT[consolidated])
    return tuple(
        Throughput(
            row["model"],
            int(row["batch_size"]) if row["batch_size"] else None,
            scale_factor,
            consolidated,
            {name: Fraction(row[name]) if row[name] else None for name in _TYPES},
        )
        for row in rows
        if (row["source"], row["gpus"], row["placement"]) == wanted
    )


def gavel_market(
    jobs: Mapping[str, Any] | Iterable[Any],
    capacity: Mapping[str, Any],
    *,
    scale_factor: int = 1,
    consolidated: bool = True,
    source: str = "simulation",
    weight: Any = None,
    demand: Any = None,
    unit: str | None = "K80",
    digits: int | None = 4,
) -> Market:
    """Return a market of users who train Gavel's jobs, with speedups per GPU.

    * ``jobs``: a list of jobs, or a dictionary from user to job; a job is "ResNet-18 (batch size 64)" or
      ("ResNet-18", 64), and "A3C" or ("A3C", None). ``capacity``: GPUs of each type, of K80, P100, V100.
    * ``scale_factor``, ``consolidated``, ``source``: as `gavel_throughputs`.
    * ``weight``, ``demand``: by user, or in the users' order.
    * ``unit``: the type on which every user's speedup is 1, as in `Market.normalised`. None keeps steps per second.
    * ``digits``: the significant digits of speedups. With four, exact numbers are readable and the rounding is far
      below measurement noise; None keeps every digit of the source.

    Errors: `BadInput` for a job that is unknown (the message lists the known ones), was not measured, or fits nowhere.

    Source: Gavel (OSDI 2020), throughput tables.

    >>> market = gavel_market([("Recommendation", 512)], {"K80": 8, "V100": 4})
    >>> print(market.users[0], *market.speedup[0])
    Recommendation (batch size 512) 1 887/1250
    """
    measured = gavel_throughputs(source, scale_factor=scale_factor, consolidated=consolidated)
    wanted = list(jobs.values()) if isinstance(jobs, Mapping) else list(jobs)
    found = [_find(job, measured) for job in wanted]
    names = by_user(jobs, [entry.name for entry in found], "jobs")
    per_gpu = {name: _per_gpu(entry, capacity) for name, entry in zip(names, found, strict=True)}
    market = market_of_choices(per_gpu, capacity, weight, demand)
    if unit is not None:
        market = market.normalised(unit)
    return market if digits is None else _rounded(market, digits)


def gavel_pair_speeds(
    jobs: Mapping[str, Any], types: Iterable[str]
) -> dict[tuple[str, str], list[tuple[Fraction, Fraction]]]:
    """Return the steps per second of every two of ``jobs`` (user: job, as in `gavel_market`) that share one GPU.

    For each of ``types`` the speeds of the first and the second; 0 where the two do not fit together. They go with
    markets in steps per second (``unit=None``). Errors: `BadInput` for a job that was not measured.

    Source: Gavel (OSDI 2020), scheduler/simulation_throughputs.json.

    >>> speeds = gavel_pair_speeds({"a": "A3C", "b": ("LM", 10)}, ["V100"])
    >>> [[float(value) for value in pair] for pair in speeds["a", "b"]]
    [[3.62237, 51.6348]]
    """
    measured = gavel_throughputs()
    found = {user: _find(job, measured) for user, job in jobs.items()}
    table = {}
    for row in records("throughputs_gavel_pairs.csv"):
        sides = [(row["model"], row["batch_size"]), (row["other_model"], row["other_batch_size"])]
        table[tuple(sides)] = {name: (Fraction(row[name]), Fraction(row[f"{name}_other"])) for name in _TYPES}

    def speeds(one: Throughput, other: Throughput, name: str) -> tuple[Fraction, Fraction]:
        sides = tuple((each.model, str(each.batch_size or "")) for each in (one, other))
        return table[sides][name] if sides in table else table[sides[::-1]][name][::-1]

    return {
        (one, other): [speeds(found[one], found[other], name) for name in types]
        for one, other in combinations(found, 2)
    }


def gavel_example() -> Market:
    """Return the market of "gavel.toml": six users on a cluster of three types, one of whom is slowed by newer GPUs.

    Source: Gavel (OSDI 2020), throughput tables; the users and the cluster are made up.

    >>> gavel_example()
    <Market: 6 users, 3 types (K80, P100, V100), 68 GPUs>
    """
    return gavel_market(
        {
            "vision": ("ResNet-50", 64),
            "small-vision": ("ResNet-18", 32),
            "translation": ("Transformer", 128),
            "language": ("LM", 20),
            "recommendation": ("Recommendation", 2048),
            "games": "A3C",
        },
        {"K80": 36, "P100": 20, "V100": 12},
        weight={"vision": 2, "small-vision": 1, "translation": 1, "language": 1, "recommendation": 2, "games": 1},
    )


def _one_of(value: object, known: Iterable[object], place: str) -> None:
    names = sorted(str(name) for name in known)
    if str(value) not in names:
        raise BadInput(f"got {value!r}", place=place, remedy=f"Give one of {', '.join(names)}")


def _find(job: object, measured: tuple[Throughput, ...]) -> Throughput:
    """Return the measurements of a job given by name, or by model and batch size."""
    job = tuple(job) if isinstance(job, list) else job
    for entry in measured:
        if job in (entry.name, (entry.model, entry.batch_size)):
            return entry
    model = job[0] if isinstance(job, tuple) and job else str(job).partition(" (")[0]
    same = [entry for entry in measured if entry.model == model]
    names = [entry.name for entry in same or measured]
    remedy = f"There are {', '.join(names)}" if same else nearest(model, sorted({e.model for e in measured}), "model")
    raise BadInput(f"there is no job {job!r:.80}", place="jobs", remedy=remedy)


def _per_gpu(entry: Throughput, capacity: Mapping[str, Any]) -> dict[str, Fraction]:
    speeds: dict[str, Fraction] = {}
    for name, steps in entry.steps_per_s.items():
        if steps is None and name in capacity:
            where = f"{name}: {entry.scale_factor} GPUs, {_PLACEMENT[entry.consolidated]}"
            remedy = "Leave out the job or the type, or choose another placement"
            raise BadInput(f"{entry.name} was not measured on {where}", place="jobs", remedy=remedy)
        speeds[name] = (steps or Fraction(0)) / entry.scale_factor
    return speeds


def _rounded(market: Market, digits: int) -> Market:
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 17:
        raise BadInput(f"got {digits!r}", place="digits", remedy="Give 1 to 17, or None to keep every digit")

    def significant(value: Fraction) -> Fraction:
        leading = (Decimal(value.numerator) / Decimal(value.denominator)).adjusted()
        return round(value, digits - 1 - leading) if value else value

    return replace(market, speedup=np.vectorize(significant, otypes=[object])(market.speedup))
