"""Bad input to every reader: an answer that is written and read back as it is, or an error that says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from changed import changed_bytes, changed_values
from trials import Ending, Fault, Kind

from fairopt import allocate, audit, discovery
from fairopt.certificates.certificate import read_certificate
from fairopt.datasets import dataset_path, oef_example
from fairopt.errors import BadInput
from fairopt.experiment.bench.spec import Spec
from fairopt.experiment.studies.spec import StudySpec
from fairopt.importing.imported import read_with
from fairopt.problem import Market, read_market, write_market
from fairopt.problem.files.allocation import allocation_from, read_allocation
from fairopt.problem.files.batch import read_batch, write_batch
from fairopt.problem.files.cluster import read_cluster, write_cluster
from fairopt.problem.files.trace import read_trace, write_trace
from fairopt.simulation.replay import read_record
from fairopt.testing.samples import entitled_markets, sample_markets

DATA = Path(dataset_path("SOURCES.md")).parent
SPECS = Path(__file__).parents[2] / "benchmarks"
#: Files of one Slurm.
SLURM = ("sshare.txt", "assoc.txt", "qos.txt", "nodes.txt", "squeue.txt", "partitions.txt")
#: An error message is read by people.
LONGEST = 3000


@dataclass(frozen=True)
class Reader:
    """What reads a kind of file; ``write`` writes what was read, so that it can be read back."""

    read: Callable[[Path], Any]
    samples: Callable[[], Mapping[str, bytes]]
    write: Callable[[Any, Path], None] | None = None
    cost: float = 1.5  # milliseconds


@cache
def folder() -> Path:
    """Return a folder of this process's own, in memory where there is such."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="torture-", dir=memory if os.access(memory, os.W_OK) else None))


def judged(name: str, data: bytes, reader: Reader) -> Ending:
    """Read a file with these bytes; `Fault` where the answer cannot be written and read back as the same."""
    path = folder() / name
    path.write_bytes(data)
    try:
        found = reader.read(path)
    except BadInput as error:
        return refusal(error, path.name)
    if reader.write is not None:
        again, third = (folder() / f"{copy}{path.suffix}" for copy in ("again", "third"))
        reader.write(found, again)
        reader.write(reader.read(again), third)
        if again.read_bytes() != third.read_bytes():
            raise Fault(Ending.WRONG, f"what was read of {data[:500]!r} is written and read back as something else")
    return Ending.RIGHT


def refusal(error: BadInput, file: str = "") -> Ending:
    """Return that it was refused, if the message says what a reader needs; else `Fault`."""
    said = str(error)
    if file and file not in said:
        raise Fault(Ending.WRONG, f"the message does not name the file: {said[:300]}")
    if not error.remedy or len(said) > LONGEST:
        raise Fault(Ending.WRONG, f"the message has no remedy, or {len(said)} characters: {said[:300]}")
    said.encode("utf-8")
    return Ending.REFUSED


def attempt(reader: Reader, draw: Random) -> Ending:
    """Change one of the reader's samples, and read it."""
    samples = prepared(reader)
    name = draw.choice(sorted(samples))
    data, parsed = samples[name]
    if parsed is None or draw.random() >= 0.6:
        return judged(name, changed_bytes(data, draw), reader)
    changed = changed_values(parsed, draw)
    try:
        data = _as_text(changed, name, parsed).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return judged(name, changed_bytes(data, draw), reader)
    ending = judged(name, data, reader)
    if ending is Ending.RIGHT and reader.write is not None and not _truths(parsed):
        if _truths(changed):
            raise Fault(Ending.WRONG, f"true or false is read as a number: {data[:500]!r}")
        if _twice(changed):
            raise Fault(Ending.WRONG, f"two entries of one name are read: {data[:500]!r}")
    return ending


def _parts(data: Any) -> Iterator[Any]:
    yield data
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _parts(each)


def _truths(data: Any) -> bool:
    return any(isinstance(each, bool) for each in _parts(data))


def _twice(data: Any) -> bool:
    """Return whether two objects of a list have one name."""
    lists = (each for each in _parts(data) if isinstance(each, list))
    named = ([each["name"] for each in entries if isinstance(each, dict) and "name" in each] for entries in lists)
    return any(names.count(name) > 1 for names in named for name in names)


@cache
def prepared(reader: Reader) -> dict[str, tuple[bytes, Any]]:
    """Return the samples of a reader, and the JSON in them where they are JSON, or lines of it."""
    return {name: (data, _parsed(name, data)) for name, data in reader.samples().items()}


def _parsed(name: str, data: bytes) -> Any:
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in data.splitlines()]
    return json.loads(data) if name.endswith(".json") else None


def _as_text(data: Any, name: str, parsed: Any) -> str:
    if name.endswith(".jsonl") and isinstance(data, list):
        return "".join(json.dumps(line) + "\n" for line in data)
    return json.dumps(data)


# -- samples ---------------------------------------------------------------------------------------------------------
def written(values: Mapping[str, Any], write: Callable[[Any, Path], None]) -> dict[str, bytes]:
    """Return the bytes of files that are written with these names."""
    found = {}
    for name, value in values.items():
        path = folder() / f"sample-{name}"
        try:
            write(value, path)
        except BadInput:
            continue  # job types in CSV
        found[name] = path.read_bytes()
    return found


def markets() -> dict[str, bytes]:
    """Return files of small markets, with and without entitlements, in all three formats."""
    made = [*islice(sample_markets(3, seed=1, demands=True), 3), *islice(entitled_markets(4, seed=2), 4), oef_example()]
    files = {f"m{n}{suffix}": market for n, market in enumerate(made) for suffix in (".toml", ".json", ".csv")}
    return written(files, write_market)


def allocations() -> dict[str, bytes]:
    """Return files of shares of the example."""
    market = oef_example()
    shares = [[str(value) for value in row] for row in market.equal_split().tolist()]
    table = {"schema": 1, "users": list(market.users), "types": list(market.types), "allocation": shares}
    rows = [
        "user," + ",".join(market.types),
        *(",".join([u, *row]) for u, row in zip(market.users, shares, strict=True)),
    ]
    return {"shares.json": json.dumps(table).encode(), "shares.csv": "\n".join(rows).encode()}


def batches() -> dict[str, bytes]:
    """Return the example of a batch, in both formats."""
    batch = read_batch(DATA / "astraea_example.toml")
    return written({"batch.toml": batch, "batch.json": batch}, write_batch)


def clusters() -> dict[str, bytes]:
    """Return the Philly cluster, in both formats."""
    cluster = read_cluster(DATA / "philly_cluster.toml")
    return written({"cluster.toml": cluster, "cluster.json": cluster}, write_cluster)


TYPES = ("P100", "V100")


def traces() -> dict[str, bytes]:
    """Return the first jobs of a trace, in three formats."""
    path = folder() / "head.csv"
    path.write_text("".join((DATA / "philly_1000.csv").read_text().splitlines(keepends=True)[:12]))
    trace = read_trace(path, TYPES)
    found = written({f"trace{suffix}": trace for suffix in (".toml", ".json")}, write_trace)
    return found | {"trace.csv": path.read_bytes()}


def specs(under: str) -> dict[str, bytes]:
    """Return the specifications in a folder of ``benchmarks``."""
    return {path.name: path.read_bytes() for path in sorted((SPECS / under).glob("*.toml"))}


def records() -> dict[str, bytes]:
    """Return the record of a short run."""
    path, jobs = folder() / "record.jsonl", folder() / "head2.csv"
    jobs.write_text("".join((DATA / "philly_1000.csv").read_text().splitlines(keepends=True)[:6]))
    words = [
        "run",
        jobs,
        "--cluster",
        DATA / "philly_cluster.toml",
        "--policy",
        "srtf",
        "--rounds",
        "4",
        "--record",
        path,
    ]
    subprocess.run([sys.executable, "-m", "fairopt", *words], check=True, capture_output=True)
    return {"record.jsonl": path.read_bytes()}


def certificates() -> dict[str, bytes]:
    """Return certificates of some decisions."""
    market, found = oef_example(), {}
    for policy in ("oef-cooperative", "max-min", "water-filling"):
        path = folder() / f"{policy}.json"
        decision = allocate(policy, market, exact=True)
        discovery.load(discovery.POLICIES, policy)().certify(decision).write(path)
        found[path.name] = path.read_bytes()
    return found


def imported(name: str) -> dict[str, bytes]:
    """Return the samples of an importer."""
    paths = sorted(path for path in (DATA / "clusters" / name).iterdir() if path.suffix != ".md")
    return {path.name: path.read_bytes() for path in paths}


def beside(name: str, file: str) -> list[Path]:
    """Return the samples that are read together with one of YARN's, Armada's or Slurm's."""
    others = {"metrics.json": ("capacity-scheduler.xml",), "scheduler.json": ("capacity-scheduler.xml",)}
    others |= dict.fromkeys(("capacity-scheduler.xml", "absolute.xml"), ("metrics.json",))
    others |= dict.fromkeys(("scheduler.yaml", "submit.yaml"), ("cluster.json",))
    others |= {each: tuple(other for other in SLURM if other != each) for each in SLURM}
    known = name in ("armada", "yarn", "slurm")
    return [DATA / "clusters" / name / each for each in others.get(file, ())] if known else []


def import_with(name: str, path: Path) -> Any:
    """Read a cluster's file with an importer, and audit what is read."""
    importer = discovery.load(discovery.IMPORTERS, name)
    found = read_with(importer, [path, *beside(name, path.name)])
    audited(found, name)
    return found


def audited(given: Any, importer: str = "") -> None:
    """Audit a cluster. A rule may refuse what an importer takes over, without the name of a file."""
    try:
        audit(given, importer=importer)
    except BadInput as error:
        refusal(error)


def read_and_audit(path: Path) -> None:
    """Read a market's file, and audit it if it has entitlements."""
    market = read_market(path)
    if market.entitlements is not None:
        audited(market)


def of_clusters() -> dict[str, bytes]:
    """Return the files of markets that fairopt writes for the clusters that it brings."""
    found = {}
    for name in sorted(path.name for path in (DATA / "clusters").iterdir() if path.is_dir()):
        importer = discovery.load(discovery.IMPORTERS, name)
        first = next(each for each in sorted(imported(name)) if beside(name, each) or name not in ("armada", "slurm"))
        market = read_with(importer, [DATA / "clusters" / name / first, *beside(name, first)]).problem
        found |= written({f"{name}{suffix}": market for suffix in (".toml", ".json")}, write_market)
    return found


def parse_with(parse: Callable[[str, str], Any], path: Path) -> Any:
    """Read a specification; bytes that are no text are refused before it."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise BadInput("no UTF-8", file=str(path), remedy="Save it as UTF-8") from error
    return parse(text, str(path))


READERS = {
    "market": Reader(read_market, markets, write_market),
    "market of a cluster": Reader(read_and_audit, of_clusters, cost=5),
    "allocation": Reader(lambda path: read_allocation(path, oef_example()).tolist(), allocations),
    "batch": Reader(read_batch, batches, write_batch),
    "cluster": Reader(read_cluster, clusters, write_cluster),
    "trace": Reader(lambda path: read_trace(path, TYPES), traces, write_trace),
    "study": Reader(partial(parse_with, StudySpec.parse), partial(specs, "studies")),
    "bench": Reader(partial(parse_with, Spec.parse), partial(specs, "specs")),
    "record": Reader(lambda path: list(read_record(path).rounds()), records, cost=6),
    "certificate": Reader(read_certificate, certificates),
} | {
    f"import {name}": Reader(partial(import_with, name), partial(imported, name), cost=10)
    for name in sorted(path.name for path in (DATA / "clusters").iterdir() if path.is_dir())
}


# -- values in Python ------------------------------------------------------------------------------------------------
def strange_call(draw: Random) -> Ending:
    """Call `Market.of` and `allocation_from` with values that are changed."""
    market = oef_example()
    given = {
        "speedup": [[1, 2], [1, 3], [1, 5]],
        "capacity": [1, 1],
        "weight": [1, 2, 1],
        "demand": [None, 1, 2],
        "users": ["a", "b", "c"],
        "types": ["S", "T"],
    }
    table: Any = changed_values(given, draw)
    table = {key: value for key, value in table.items() if key in given} | {
        key: given[key] for key in ("speedup", "capacity") if key not in table
    }
    if draw.random() < 0.3:
        key = draw.choice(sorted(table))
        table[key] = draw.choice([_iterator, str, repr, bool, _as_array])(table[key])
    calls = (Market.of, Market.of_arrays, _market_of_frame, lambda **it: allocation_from(it["speedup"], market))
    try:
        draw.choice(calls)(**table)
    except BadInput as error:
        return refusal(error)
    return Ending.RIGHT


def _market_of_frame(speedup: Any, types: Any = None, users: Any = None, **more: Any) -> None:
    """Give the table as a frame, where pandas makes one of it."""
    try:
        frame = pd.DataFrame(speedup, index=users, columns=types)
    except (ValueError, TypeError, AttributeError, OverflowError, pd.errors.InvalidIndexError):
        return
    Market.of(frame, **more)


def _iterator(value: Any) -> Any:
    return iter(value) if isinstance(value, list | dict | str) else value


def _as_array(value: Any) -> Any:
    for kind in ("float32", "int8", "U5", complex, object):
        try:
            return np.array(value, dtype=kind)
        except (ValueError, TypeError, OverflowError):
            continue
    return None


KINDS = [
    Kind("a", f"read {name}", partial(attempt, reader), 10, reader.cost, partial(prepared, reader))
    for name, reader in READERS.items()
]
KINDS.append(Kind("a", "call Market.of", strange_call, 10, 0.5))
