"""Problems of the golden master, from seeds: markets, traces with clusters, and batches, as the texts of files.

Only the standard library is used, and nothing of fairopt, so that a problem stays what it is whatever becomes of the
code. Nothing is filtered: a problem that a command refuses is in the master with its refusal.

    python tests/golden/generate.py FOLDER --kind markets --from 0 --to 5     # writes their files, to be looked at
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from texts import csv_text, json_text, number_of, toml_text, written

#: How many problems of each kind there are.
COUNTS: Mapping[str, int] = {"markets": 1200, "queues": 500, "batches": 300}


@dataclass(frozen=True)
class Problem:
    """A problem: its files by name, and what the plan of commands wants to know of it."""

    name: str
    kind: str
    number: int
    files: Mapping[str, str]
    facts: Mapping[str, Any] = field(default_factory=dict)


def problem(kind: str, number: int) -> Problem:
    """Return problem ``number`` of a kind; the same one every time."""
    random = Random(f"golden {kind} {number}")
    makers = {"markets": market, "queues": queue, "batches": lambda draw: batch(draw, small=number % 5 == 0)}
    files, facts = makers[kind](random)
    return Problem(f"{kind[0]}{number:04d}", kind, number, files, facts)


# -- markets ---------------------------------------------------------------------------------------------------------
def market(random: Random) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a market's file and an allocation by anyone, with the names of both."""
    n, k = random.choice([1, 2, 2, 3, 3, 3, 4, 4, 5, 6]), random.choice([1, 2, 2, 2, 3, 3, 3, 4])
    odd = random.random() < 0.05
    types = [f"Ü {j}" if odd else f"T{j}" for j in range(1, k + 1)]
    style = random.choice(sorted(_STYLES))
    has_jobs, has_weights, has_demands = (random.random() < part for part in (0.2, 0.4, 0.3))
    users: list[dict[str, Any]] = []
    row: list[Any] = []
    for i in range(1, n + 1):
        user: dict[str, Any] = {"name": f"lab {i}" if odd else f"u{i}"}
        if not (style == "twins" and row and random.random() < 0.6):
            row = _STYLES[style](random, k)
        if has_jobs and random.random() < 0.5:
            user["job"] = [
                {"name": f"j{j}", "speedup": row if j == 1 else _STYLES[style](random, k)}
                for j in range(1, random.randint(1, 3) + 1)
            ]
            if random.random() < 0.3:
                for job in user["job"]:
                    job["weight"] = random.randint(1, 3)
        else:
            user["speedup"] = row
        if has_weights and random.random() < 0.8:
            user["weight"] = random.choice([1, 2, 2, 3, 4, "1/2", "3/2", Decimal("0.1"), Decimal("2.5")])
        if has_demands and random.random() < 0.6:
            user["demand"] = random.choice([1, 1, 2, 3, 4, "1/2", "5/3", Decimal("0.5"), Decimal("1.5")])
        users.append(user)
    capacity = _capacity(random, n, k)
    data = {"schema": 1, "types": types, "capacity": capacity, "user": users}
    suffix = random.choice(["toml", "toml", "toml", "json", "csv"])
    if suffix == "csv" and any("job" in user for user in users):
        suffix = "toml"
    text = {"toml": toml_text, "json": json_text, "csv": _market_csv}[suffix](data)
    rows = [name for user in users for name in _rows_of(user)]
    given = "allocation." + random.choice(["csv", "json"])
    shares = _shares(random, [number_of(each) for each in capacity], len(rows))
    files = {f"market.{suffix}": text, given: _allocation(given, rows, types, shares)}
    return files, {"market": f"market.{suffix}", "allocation": given}


def _small(random: Random, k: int) -> list[Any]:
    return [random.randint(1, 5) for _ in range(k)]


def _ties(random: Random, k: int) -> list[Any]:
    return [random.choice([1, 2]) for _ in range(k)]


def _ordered(random: Random, k: int) -> list[Any]:
    row = [1]
    while len(row) < k:
        row.append(row[-1] + random.choice([0, 1, 1, 2, 3]))
    return row


def _decimals(random: Random, k: int) -> list[Any]:
    return [Decimal(random.randint(1, 60)) / 10 for _ in range(k)]


def _fractions(random: Random, k: int) -> list[Any]:
    return [f"{random.randint(1, 9)}/{random.randint(1, 9)}" for _ in range(k)]


def _measured(random: Random, k: int) -> list[Any]:
    """Return throughputs as somebody measured them, slowest type first."""
    return sorted(Decimal(random.randint(1, 40000)) / 1000 for _ in range(k))


def _zeros(random: Random, k: int) -> list[Any]:
    row = [random.choice([0, 1, 2, 3, 4]) for _ in range(k)]
    if not any(row) and random.random() < 0.9:  # a user that can run nowhere is in the master, too
        row[random.randrange(k)] = 1
    return row


def _scales(random: Random, k: int) -> list[Any]:
    """Return speedups in a unit of the user's own."""
    unit = random.choice(["1/1000", "1", "1000", "1000000"])
    return [str(Fraction(unit) * random.randint(1, 9)) for _ in range(k)]


def _far(random: Random, k: int) -> list[Any]:
    """Return speedups of several orders of magnitude."""
    return [10 ** random.randint(0, 5) for _ in range(k)]


_STYLES = {
    "small": _small,
    "ties": _ties,
    "ordered": _ordered,
    "decimals": _decimals,
    "fractions": _fractions,
    "measured": _measured,
    "zeros": _zeros,
    "scales": _scales,
    "far": _far,
    "twins": _small,
}


def _capacity(random: Random, n: int, k: int) -> list[Any]:
    style = random.choice(["ones", "small", "small", "small", "large", "parts", "decimals", "per-user"])
    draw = {
        "ones": lambda: 1,
        "small": lambda: random.randint(1, 8),
        "large": lambda: random.choice([8, 16, 32, 64, 100]),
        "parts": lambda: random.choice(["1/2", "3/2", "7/3", 2]),
        "decimals": lambda: random.choice([Decimal("0.5"), Decimal("2.5"), 3]),
        "per-user": lambda: n,
    }[style]
    return [draw() for _ in range(k)]


def _rows_of(user: Mapping[str, Any]) -> list[str]:
    return [f"{user['name']}/{job['name']}" for job in user["job"]] if "job" in user else [user["name"]]


def _shares(random: Random, capacity: Sequence[Fraction], rows: int) -> list[list[Fraction]]:
    """Return shares that anybody could have proposed: all of it, not all of it, or more than there is."""
    used = random.choice([Fraction(1), Fraction(1), Fraction(1), Fraction(9, 10), Fraction(11, 10)])
    shares = [[Fraction(0)] * len(capacity) for _ in range(rows)]
    equal = random.random() < 0.3
    for j, gpus in enumerate(capacity):
        parts = [1 if equal else random.choice([0, 0, 1, 1, 2, 3]) for _ in range(rows)]
        total = sum(parts)
        for i in range(rows):
            shares[i][j] = gpus * used * Fraction(parts[i], total) if total else Fraction(0)
    return shares


def _allocation(name: str, rows: Sequence[str], types: Sequence[str], shares: Sequence[Sequence[Fraction]]) -> str:
    if name.endswith("json"):
        return json.dumps({"allocation": [[str(each) for each in row] for row in shares]})
    return csv_text([["user", *types], *([row, *map(str, of)] for row, of in zip(rows, shares, strict=True))])


def _market_csv(data: Mapping[str, Any]) -> str:
    optional = [key for key in ("weight", "demand") if any(key in user for user in data["user"])]
    table = [["user", *optional, *data["types"]]]
    for user in data["user"]:
        table.append([user["name"], *(str(user.get(key, "")) for key in optional), *map(str, user["speedup"])])
    table.append(["capacity", *("" for _ in optional), *map(str, data["capacity"])])
    return csv_text(table)


# -- traces and clusters ---------------------------------------------------------------------------------------------
def queue(random: Random) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a trace's file and a cluster's, with their names and the length of a round."""
    length = random.choice([60, 60, 300, 300, 300, Decimal("0.5"), 1])
    kinds = [f"G{j}" for j in range(1, random.choice([1, 2, 2, 2, 3]) + 1)]
    cluster = _cluster(random, kinds)
    names = [name for host in cluster["host"] for name in _hosts_of(host)]
    largest = sum(host["gpus"] * host.get("count", 1) for host in cluster["host"])
    trace = _trace(random, kinds, names, largest, Fraction(length))
    can_be_csv = "outage" not in trace and "tenant" not in trace
    suffix = random.choice(["csv", "csv", "toml", "json"] if can_be_csv else ["toml", "json"])
    text = {"toml": toml_text, "json": json_text, "csv": lambda data: _trace_csv(data, kinds)}[suffix](trace)
    other = random.choice(["toml", "toml", "json"])
    files = {f"trace.{suffix}": text, f"cluster.{other}": {"toml": toml_text, "json": json_text}[other](cluster)}
    return files, {"trace": f"trace.{suffix}", "cluster": f"cluster.{other}", "length": str(length)}


def _cluster(random: Random, kinds: Sequence[str]) -> dict[str, Any]:
    hosts = []
    memory = {kind: random.choice([12, 16, 32]) for kind in kinds} if random.random() < 0.3 else {}
    slow = random.random() < 0.5
    for number, kind in enumerate([*kinds, *random.choices(kinds, k=random.choice([0, 0, 1]))], start=1):
        host: dict[str, Any] = {"name": f"h{number}", "type": kind, "gpus": random.choice([1, 1, 2, 2, 4])}
        if random.random() < 0.25:
            host["count"] = random.randint(1, 3)
        if kind in memory:
            host["memory"] = memory[kind]
        if slow:
            host["bandwidth"] = random.choice([1, Decimal("1.25"), Decimal("0.1")])
        hosts.append(host)
    return {"schema": 1, **({"types": list(kinds)} if random.random() < 0.7 else {}), "host": hosts}


def _hosts_of(host: Mapping[str, Any]) -> list[str]:
    count = host.get("count", 1)
    return [host["name"]] if count == 1 else [f"{host['name']}-{number}" for number in range(1, count + 1)]


def _trace(
    random: Random, kinds: Sequence[str], hosts: Sequence[str], largest: int, length: Fraction
) -> dict[str, Any]:
    tenants = [f"t{i}" for i in range(1, random.choice([1, 2, 2, 3]) + 1)]
    whole = random.random() < 0.5
    has = {
        key: random.random() < part
        for key, part in {
            "speeds": 0.8, "zeros": 0.3, "memory": 0.2, "state": 0.5, "pattern": 0.3, "dataset": 0.2,
            "weight": 0.2, "priority": 0.3, "tenants": 0.25, "outages": 0.15,
        }.items()
    }  # fmt: skip
    jobs = []
    now = Fraction(0)
    for number in range(1, random.randint(3, 8) + 1):
        now += length * random.choice([0, 0, Fraction(1, 10), Fraction(1, 2), 1, Fraction(7, 5), 3])
        rounds = random.choice([Fraction(1, 4), Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 5, Fraction(43, 7)])
        job: dict[str, Any] = {
            "name": f"j{number}",
            "tenant": random.choice(tenants),
            "submit_s": written(now),
            "gpus": random.choice([1, 1, 1, 2, 2, 4, random.randint(1, 8), largest + (random.random() < 0.05)]),
        }
        speeds = [random.choice([1, 1, 2, 3, Decimal("1.5"), Decimal("0.7"), Decimal("3.3")]) for _ in kinds]
        if has["speeds"]:
            if has["zeros"]:
                speeds = [0 if random.random() < 0.3 else speed for speed in speeds]
                if not any(speeds):
                    speeds[random.randrange(len(kinds))] = 1
            job["throughput"] = speeds
        job["work"] = written(length * rounds * (1 if whole else random.choice([1, Fraction(13, 10)])))
        if has["memory"]:
            job["memory"] = random.choice([0, 4, 14, 24])
        if has["state"]:
            job["state_size"] = random.choice([0, 1, Decimal("0.5"), Decimal("12.5")])
        if has["pattern"]:
            job["pattern"] = random.choice(["intra", "inter"]) if job["gpus"] > 1 else "alone"
        if has["dataset"] and random.random() < 0.6:
            job["dataset"] = random.choice(["images", "texts"])
            job["dataset_size"] = {"images": 140, "texts": Decimal("2.5")}[job["dataset"]]
        if has["weight"]:
            job["weight"] = random.choice([1, 2, Decimal("0.5")])
        if has["priority"]:
            job["priority"] = random.randint(0, 3)
        jobs.append(job)
    data: dict[str, Any] = {"schema": 1}
    if has["speeds"]:
        data["types"] = list(kinds)
    used = {job["tenant"] for job in jobs}
    if has["tenants"]:
        data["tenant"] = [
            {"name": name, "weight": random.choice([1, 2, Decimal("2.5"), "1/3"])} for name in tenants if name in used
        ]
    data["job"] = jobs
    if has["outages"]:
        begin = length * random.choice([0, Fraction(1, 2), 1, 2, Fraction(5, 2)])
        outage = {"host": random.choice(list(hosts)), "begin": written(begin)}
        if random.random() < 0.8:
            outage["end"] = written(begin + length * random.choice([1, Fraction(3, 2), 3]))
        data["outage"] = [outage]
    return data


def _trace_csv(data: Mapping[str, Any], kinds: Sequence[str]) -> str:
    keys = list(dict.fromkeys(key for job in data["job"] for key in job if key not in ("name", "throughput")))
    speeds = kinds if any("throughput" in job for job in data["job"]) else []
    table = [["job_id", *keys, *(f"throughput {kind}" for kind in speeds)]]
    for job in data["job"]:
        cells = [str(job.get(key, "")) for key in keys]
        table.append([job["name"], *cells, *(str(each) for each in (job["throughput"] if speeds else []))])
    return csv_text(table)


# -- batches ---------------------------------------------------------------------------------------------------------
def batch(random: Random, *, small: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a batch's file, with its name; a small one is small enough for an integer program."""
    several = random.random() < 0.2
    worker_types = ["V", "W"] if several else ["worker"]
    ps_types = ["cpu", "big"] if several and random.random() < 0.5 else ["ps"]
    servers = []
    total = {"workers": [0] * len(worker_types), "ps": [0] * len(ps_types)}
    for _ in range(random.randint(1, 3)):
        count = random.choice([1, 1, 2])
        server = {
            "workers": [random.randint(1, 3) for _ in worker_types],
            "ps": [random.randint(1, 2) for _ in ps_types],
        }
        for key, of in total.items():
            for at, each in enumerate(server[key]):
                of[at] += each * count
        servers.append(
            {**{key: _one(value) for key, value in server.items()}, **({"count": count} if count > 1 else {})}
        )
    owners = [f"t{i}" for i in range(1, random.choice([1, 2, 2, 3]) + 1)]
    quotas = {key: [_parted(random, each, len(owners)) for each in of] for key, of in total.items()}
    tenants = [
        {"name": name, **{key: _one([part[at] for part in parts]) for key, parts in quotas.items()}}
        for at, name in enumerate(owners)
    ]
    jobs = []
    for number in range(1, (3 if small else random.randint(3, 8)) + 1):
        job: dict[str, Any] = {
            "name": f"j{number}",
            "tenant": random.choice(owners),
            "arrival": random.choice([0, 1] if small else [0, 0, 1, 1, 2, 3, 5]),
            "epochs": 1 if small else random.randint(1, 2),
            "chunks": random.randint(1, 2 if small else 4),
            "minibatches": random.choice([1, 1, 2]),
            "minibatch_time": _one(
                [random.choice([1, 1, Decimal("0.5"), "1/3", Decimal("0.25")]) for _ in worker_types]
            ),
            "gradient": random.choice([0, 0, Decimal("0.5"), "1/4", Decimal("0.1")]),
        }
        if random.random() < 0.3:
            job["update_time"] = _one([random.choice([0, Decimal("0.25"), Decimal("0.1")]) for _ in ps_types])
        form = random.choice(["linear", "linear", "power", "steps"])
        job["utility"] = {
            form: {
                "linear": lambda: [-random.randint(0, 5), random.choice([10, 20, 50, 100])],
                "power": lambda: [random.randint(2, 20), random.choice([1, 2])],
                "steps": lambda: sorted((random.randint(0, 30) for _ in range(random.randint(2, 8))), reverse=True),
            }[form]()
        }
        jobs.append(job)
    data: dict[str, Any] = {"schema": 1}
    if worker_types != ["worker"]:
        data["worker_types"] = worker_types
    if ps_types != ["ps"]:
        data["ps_types"] = ps_types
    data["bandwidth"] = {
        "worker": _one([random.choice([1, 2, Decimal("0.5")]) for _ in worker_types]),
        "ps": _one([random.choice([1, 1, 2]) for _ in ps_types]),
    }
    data |= {"tenant": tenants, "server": servers, "job": jobs}
    suffix = random.choice(["toml", "toml", "json"])
    return {f"batch.{suffix}": {"toml": toml_text, "json": json_text}[suffix](data)}, {"batch": f"batch.{suffix}"}


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _parted(random: Random, total: int, parts: int) -> list[int]:
    """Return ``parts`` whole numbers, none negative, with a given sum."""
    cuts = sorted(random.randint(0, total) for _ in range(parts - 1))
    return [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]


def main() -> None:
    """Write the files of problems into folders, one each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=sorted(COUNTS), required=True)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=5)
    asked = parser.parse_args()
    for number in range(asked.first, asked.last):
        made = problem(asked.kind, number)
        place = asked.folder / made.name
        place.mkdir(parents=True, exist_ok=True)
        for name, text in made.files.items():
            (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
