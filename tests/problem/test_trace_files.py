"""Files of traces: what is written is read again exactly, and what is broken is refused with its place."""

from __future__ import annotations

import csv
import gzip
import random
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from problem_files import put, refused
from whole_data import whole

from fairopt import datasets
from fairopt.errors import BadInput
from fairopt.problem import Jobs, Outage, Pattern, Trace
from fairopt.problem.files.trace import UNUSED, read_trace, trace_schema, trace_to_dict, write_trace

#: The same bytes at any hour.
packed = partial(gzip.compress, mtime=0)

TRACES = Path(__file__).with_name("traces")

VALIDATOR = jsonschema.Draft202012Validator(trace_schema())

TRACE = """
schema = 1
types = ["K80", "P100", "V100"]

[[tenant]]
name = "lab"
weight = 2.5

[[job]]
name = "train"
tenant = "lab"
submit_s = 10.1
work = 1000
gpus = 8
throughput = [0, 2, 3.3]
memory = 14
state_size = 0.1
pattern = "inter"
dataset = "images"
dataset_size = 140
weight = 2
priority = 3

[[job]]
name = "tune"
submit_s = 0
duration_s = 60
gpus = 1
throughput = [1, 1, "5/4"]

[[outage]]
host = "K80-1"
begin = 100
end = 200.5

[[outage]]
host = "V100-1"
begin = 7
"""

TABLE = """job_id,tenant,submit_s,work,gpus,weight,pattern,throughput K80,throughput V100,status
a,lab,0,100,1,,,1,3.3,Pass
b,,5.5,1e3,8,2,inter,0,10,Failed
"""


def same_trace(one: Trace, other: Trace) -> bool:
    for name, value in vars(one.jobs).items():
        there = getattr(other.jobs, name)
        alike = np.array_equal(value, there) if isinstance(value, np.ndarray) else value == there
        if not alike:
            return False
    return one.outages == other.outages


# -- traces ----------------------------------------------------------------------------------------------------------
def test_a_trace_file_in_all_its_keys(tmp_path: Path) -> None:
    trace = read_trace(put(tmp_path, "t.toml", TRACE), ["V100", "K80"])
    jobs = trace.jobs
    assert jobs.names == ("tune", "train")  # by arrival
    assert [jobs.tenants[owner] for owner in jobs.tenant] == ["unknown", "lab"]
    assert dict(zip(jobs.tenants, jobs.tenant_weight, strict=True)) == {"unknown": 1, "lab": Fraction(5, 2)}
    assert jobs.arrival.tolist() == [0, Fraction("10.1")]
    assert jobs.work.tolist() == [60, 1000]
    assert jobs.throughput.tolist() == [[Fraction(5, 4), 1], [Fraction("3.3"), 0]]
    assert (jobs.memory[1], jobs.state_size[1], jobs.dataset_size[1]) == (14, Fraction(1, 10), 140)
    assert jobs.pattern == (Pattern.ALONE, Pattern.INTER)
    assert (jobs.dataset, jobs.weight.tolist(), jobs.priority.tolist()) == (("", "images"), [1, 2], [0, 3])
    assert trace.outages == (
        Outage("K80-1", Fraction(100), Fraction("200.5")),
        Outage("V100-1", Fraction(7), float("inf")),
    )


def test_a_table_of_jobs(tmp_path: Path) -> None:
    jobs = read_trace(put(tmp_path, "t.csv", TABLE), ["V100", "K80"]).jobs
    assert jobs.throughput.tolist() == [[Fraction("3.3"), 1], [10, 0]]
    assert jobs.work.tolist() == [100, 1000]
    assert jobs.tenants == ("lab", "unknown")
    assert jobs.pattern == (Pattern.ALONE, Pattern.INTER)
    assert jobs.weight.tolist() == [1, 2]
    plain = read_trace(put(tmp_path, "p.csv", "gpus,job_id,submit_s,duration_s\n2,x,3,1.5\n"), ["A", "B"]).jobs
    assert plain.throughput.tolist() == [[1, 1]]
    assert plain.work.tolist() == [Fraction(3, 2)]
    assert plain.pattern == (Pattern.INTRA,)


def random_trace(draw: random.Random, *, rich: bool) -> Trace:
    count, types = draw.randint(1, 12), ["A", "B"]
    number = ["0.1", 3, Fraction(1, 3), "2.75", 10**6]
    tenants = [draw.choice(["t1", "t 2", "ü"]) for _ in range(count)]
    speeds = draw.random() < 0.7
    jobs = Jobs.of(
        gpus=[draw.randint(1, 4) for _ in range(count)],
        work=[draw.choice(number) for _ in range(count)],
        types=types,
        throughput=[[draw.choice([0, *number]) for _ in types] for _ in range(count)] if speeds else None,
        arrival=[draw.choice([0, 5, *number]) for _ in range(count)],
        tenant=tenants,
        tenant_weight={tenants[0]: draw.choice(number)} if draw.random() < 0.5 else None,
        memory=[draw.choice([0, *number]) for _ in range(count)] if draw.random() < 0.5 else None,
        state_size=[draw.choice([0, *number]) for _ in range(count)] if draw.random() < 0.5 else None,
        pattern=[draw.choice(list(Pattern)) for _ in range(count)] if draw.random() < 0.5 else None,
        dataset=[draw.choice(["", "d 1"]) for _ in range(count)],
        dataset_size=[draw.choice([0, 7]) for _ in range(count)],
        weight=[draw.choice(number) for _ in range(count)] if draw.random() < 0.5 else None,
        priority=[draw.randint(0, 2) for _ in range(count)],
        names=[draw.choice(["job", "a,b", 'c"d']) + f" {at}" for at in range(count)],
    )
    down = (Outage("A-1", Fraction(1, 3), Fraction(2)), Outage("A-1", Fraction(4), float("inf")))
    return Trace(jobs, down if rich else ())


def in_order_of_arrival(trace: Trace) -> Trace:
    """Return a trace with its tenants in the order in which they arrive: a file has no other."""
    jobs = trace.jobs
    order = list(dict.fromkeys(jobs.tenant.tolist()))
    tenant = np.array([order.index(owner) for owner in jobs.tenant])
    names = tuple(jobs.tenants[owner] for owner in order)
    return Trace(replace(jobs, tenant=tenant, tenants=names, tenant_weight=jobs.tenant_weight[order]), trace.outages)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".toml", ".json"])
def test_traces_are_read_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    draw = random.Random(2)
    for number in range(40):
        trace = random_trace(draw, rich="csv" not in suffix and number % 2 == 0)
        assert not list(VALIDATOR.iter_errors(trace_to_dict(trace)))
        path = tmp_path / f"{number}{suffix}"
        write_trace(trace, path)
        again = read_trace(path, trace.jobs.types)
        assert same_trace(again, in_order_of_arrival(trace))
        written = path.read_bytes()
        write_trace(again, path)
        assert path.read_bytes() == written


def test_a_table_says_tenants_weights_in_any_of_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,tenant,submit_s,duration_s,gpus,tenant_weight\na,x,0,1,1,\nb,x,0,1,1,2.5\nc,y,0,1,1,\n")
    assert read_trace(path, ["A"]).jobs.tenant_weight.tolist() == [Fraction(5, 2), 1]
    path.write_text("job_id,tenant,submit_s,duration_s,gpus,tenant_weight\na,x,0,1,1,2\nb,x,0,1,1,3\n")
    with pytest.raises(BadInput, match=r"(?s)line 3.*tenant_weight.*'x' weighs 3, and 2 in .*line 2.*the same"):
        read_trace(path, ["A"])


def test_a_table_cannot_hold_outages(tmp_path: Path) -> None:
    jobs = Jobs.of(gpus=[1], work=[1], types=["A"])
    with pytest.raises(BadInput, match="1 outages"):
        write_trace(Trace(jobs, (Outage("A-1", 0, 1),)), tmp_path / "t.csv")
    spaces = Jobs.of(gpus=[1], work=[1], types=["A"], names=[" x"])
    with pytest.raises(BadInput, match="the name ' x'"):
        write_trace(Trace(spaces), tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("job_id", "id", ["line 1, column 1", "unknown column 'id'"]),
        ("submit_s", "submit", ["unknown column 'submit'", "Did you mean 'submit_s'"]),
        ("gpus", "GPUs", ["unknown column 'GPUs'", "'gpus'"]),
        ("weight", "wieght", ["Did you mean 'weight'"]),
        ("status", "state", ["unknown column 'state'"]),
        ("status", "weight", ["column 10", "'weight' stands twice"]),
        ("status", "throughput ", ["unknown column 'throughput'"]),
        ("submit_s", "priority", ["no column is called 'submit_s'"]),
        (",work", ",priority", ["neither 'work' nor 'duration_s'"]),
        ("status", "duration_s", ["both 'work' and 'duration_s'"]),
        ("throughput V100", "throughput V10", ["'throughput V100'", "the cluster has that type", "V10"]),
        ("b,,5.5,1e3,8", "a,,5.5,1e3,8", ["line 3, column 'job_id'", "'a' stands in line 2 too"]),
        ("b,,5.5,1e3,8", ",,5.5,1e3,8", ["line 3, column 'job_id'"]),
        ("b,,5.5,1e3,8", "b,5.5,1e3,8", ["line 3 ('b')", "9 cells for 10 columns"]),
        ("b,,5.5,1e3,8", "b,,,1e3,8", ["line 3 ('b'), column 'submit_s'", "the cell is blank", "never submitted"]),
        ("b,,5.5,1e3,8", "b,,-1,1e3,8", ["line 3 ('b')", "arrival", "got -1"]),
        ("b,,5.5,1e3,8", "b,,soon,1e3,8", ["column 'submit_s'", "got 'soon', not a number"]),
        ("b,,5.5,1e3,8", "b,,nan,1e3,8", ["got 'nan'"]),
        ("b,,5.5,1e3,8", "b,,5.5,0,8", ["line 3 ('b'), column 'work'", "got 0", "leave out jobs that never ran"]),
        ("b,,5.5,1e3,8", "b,,5.5,-2,8", ["got -2"]),
        ("b,,5.5,1e3,8", "b,,5.5,,8", ["column 'work'", "the cell is blank"]),
        ("b,,5.5,1e3,8", "b,,5.5,1e99,8", ["beyond"]),
        ("b,,5.5,1e3,8", "b,,5.5,1e3,0", ["line 3 ('b'), gpus", "whole number from 1"]),
        ("b,,5.5,1e3,8", "b,,5.5,1e3,2.5", ["gpus", "got 5/2"]),
        ("b,,5.5,1e3,8", "b,,5.5,1e3,9999999", ["gpus", "9999999"]),
        ("b,,5.5,1e3,8", "b\x07,,5.5,1e3,8", ["printable"]),
        ("inter", "ring", ["line 3 ('b'), pattern", "'ring'", "alone, intra, inter"]),
        (",2,inter", ",0,inter", ["line 3 ('b'), weight", "positive"]),
        (",2,inter", ",x,inter", ["weight", "'x'"]),
        (",0,10,", ",-1,10,", ["line 3 ('b')", "'K80'", "got -1"]),
        (",0,10,", ",,10,", ["column 'throughput K80'", "the cell is blank", "0 where there is none"]),
        ("b,,5.5", '"b,,5.5', ["not CSV"]),
    ],
)
def test_broken_tables(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in TABLE
    path = put(tmp_path, "t.csv", TABLE.replace(old, new, 1))
    with pytest.raises(BadInput) as error:
        read_trace(path, ["K80", "V100"])
    refused(error, path, *words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "", ["'schema' is missing"]),
        ('types = ["K80", "P100", "V100"]', "", ["'types' is missing", "throughputs"]),
        (
            'types = ["K80", "P100", "V100"]',
            'types = ["K80", "P100", "V10"]',
            ["'V100'", "a type of the cluster", "is missing"],
        ),
        ('types = ["K80", "P100", "V100"]', 'types = ["K80", "K80", "V100"]', ["2 times"]),
        ('name = "tune"', 'name = "train"', ["job 2 ('train')", "job 1 has the same name"]),
        ('name = "tune"', "", ["job 2", "'name' is missing"]),
        ('name = "tune"', 'nome = "tune"', ["Did you mean 'name'"]),
        ("gpus = 8", "", ["job 1 ('train')", "'gpus' is missing"]),
        ("gpus = 8", "gpus = [8]", ["job 1 ('train'), gpus"]),
        ("work = 1000", "work = 1000\nduration_s = 3", ["job 1 ('train')", "both 'work' and 'duration_s'"]),
        ("work = 1000", "", ["neither"]),
        ("work = 1000", "work = 0", ["got 0", "leave out jobs that never ran"]),
        ("throughput = [0, 2, 3.3]", "throughput = [0, 2]", ["2 throughputs for 3 types"]),
        ("throughput = [0, 2, 3.3]", "throughput = 2", ["throughput", "got 2"]),
        ("throughput = [0, 2, 3.3]", "", ["job 1 ('train')", "'throughput' is missing", "every job, or for none"]),
        ("throughput = [0, 2, 3.3]", 'throughput = [0, 2, "x"]', ["'x'"]),
        ('tenant = "lab"', 'tenant = ""', ["tenant", "printable"]),
        ('tenant = "lab"', "tenant = 3", ["job 1 ('train'), tenant", "Give a string"]),
        ('tenant = "lab"', 'tenant = "labs"', ["tenant 1 ('lab')", "it has no jobs", "Did you mean 'labs'"]),
        ("weight = 2.5", "weight = 0", ["tenant 1 ('lab'), weight", "got 0"]),
        ("weight = 2.5", "", ["'weight' is missing"]),
        ("weight = 2.5", 'weight = 1\n[[tenant]]\nname = "lab"\nweight = 2', ["tenant 2 ('lab')", "same name"]),
        ('pattern = "inter"', "pattern = 1", ["job 1 ('train'), pattern", "Give a string"]),
        ('pattern = "inter"', 'pattern = ""', ["pattern", "alone, intra, inter"]),
        ("priority = 3", "priority = -1", ["priority", "got -1"]),
        ("weight = 2\n", 'weight = ""\n', ["job 1 ('train'), weight", "not a number"]),
        ("memory = 14", 'memory = ""', ["memory", "not a number"]),
        ("end = 200.5", "end = 100", ["outage 1 ('K80-1')", "from 100 to 100"]),
        ("begin = 7", "begin = -7", ["outage 2 ('V100-1')", "from -7"]),
        ("begin = 7", "", ["outage 2", "'begin' is missing"]),
        ("begin = 7", "begin = 7\nuntil = 8", ["unknown key 'until'"]),
        ('host = "V100-1"', "host = 1", ["outage 2, host"]),
        ('[[outage]]\nhost = "V100-1"', '[[outages]]\nhost = "V100-1"', ["unknown key 'outages'", "'outage'"]),
        ("gpus = 8", "gpus = ", ["not TOML", "line"]),
    ],
)
def test_broken_trace_files(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in TRACE
    path = put(tmp_path, "t.toml", TRACE.replace(old, new, 1))
    with pytest.raises(BadInput) as error:
        read_trace(path, ["K80", "V100"])
    refused(error, path, *words)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("t.csv", b"", "the file is empty"),
        ("t.csv", b"job_id,submit_s,work,gpus\n", "no jobs"),
        ("t.csv.gz", b"job_id", "not gzip"),
        ("t.csv.gz", packed(b"job_id,submit_s,work,gpus\n" * 9)[:-9], "not gzip"),
        ("t.csv.gz", packed(b""), "the file is empty"),
        ("t.csv.gz", packed(b"\xff\xfe"), "not UTF-8"),
        ("t.csv.gz", packed(b"x" * (101 << 20)), "more than 100 MB unpacked"),
        ("t.gz", b"", "ends in .toml, .json, .csv, .csv.gz"),
        ("t", b"", "no suffix"),
        ("t.json", b'{"schema": 1}', "'job' is missing"),
        ("t.json", b'{"schema": 1, "job": []}', "no jobs"),
        ("t.json", b"[]", "Give an object"),
        ("t.toml", b"schema = 1\njob = [1]", "job 1: got 1"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",  # the bytes may be a hundred thousand
)
def test_files_that_are_none(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BadInput) as error:
        read_trace(path, ["A"])
    refused(error, path, says)
    with pytest.raises(BadInput, match="no such file"):
        read_trace(tmp_path / "other.csv", ["A"])


# -- the public tables -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["philly", "venus", "pai_sample"])
def test_public_tables_read_as_they_are(tmp_path: Path, name: str) -> None:
    text = (TRACES / f"{name}.csv").read_text()
    check_read_as_it_is(tmp_path, text, 100)


@pytest.mark.parametrize("name", ["philly", "venus", "pai_sample"])
def test_whole_public_tables_read_as_they_are(tmp_path: Path, name: str) -> None:
    with gzip.open(whole(f"jobs_{name}.csv.gz"), "rt", newline="") as stream:
        check_read_as_it_is(tmp_path, "".join(next(stream) for _ in range(1501)), 1500)


def check_read_as_it_is(tmp_path: Path, text: str, count: int) -> None:
    rows = list(csv.DictReader(text.splitlines()))
    assert set(rows[0]) <= {"job_id", "tenant", "submit_s", "duration_s", "gpus", *UNUSED}
    jobs = read_trace(put(tmp_path, "t.csv", text), ["V100"]).jobs
    of: dict[str, Any] = {row["job_id"]: row for row in rows}
    assert len(jobs) == count
    for at, job in enumerate(jobs.names):
        row = of[job]
        told = (row["tenant"] or "unknown", Fraction(row["submit_s"]), Fraction(row["duration_s"]), int(row["gpus"]))
        assert (jobs.tenants[jobs.tenant[at]], jobs.arrival[at], jobs.work[at], jobs.gpus[at]) == told


def test_pods_that_never_ran_are_not_dropped_silently() -> None:
    with pytest.raises(BadInput, match=r"column 'duration_s': the cell is blank. Leave out jobs that never ran"):
        read_trace(TRACES / "openb2023.csv", ["V100"])


# -- the excerpt -----------------------------------------------------------------------------------------------------
def test_the_excerpt_is_what_its_source_and_rule_give() -> None:
    folder = whole("jobs_philly.csv.gz").parent
    import importlib.util

    path = Path(__file__).parents[2] / "benchmarks" / "make_philly_excerpt.py"
    spec = importlib.util.spec_from_file_location("make_philly_excerpt", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made = [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in script.excerpt(folder)]
    assert made == datasets.dataset_path("philly_1000.csv").read_text().splitlines()


def test_the_excerpt_keeps_its_cluster_busy() -> None:
    jobs, cluster = datasets.philly_trace().as_(float).jobs, datasets.philly_cluster()
    assert (len(jobs), len(jobs.tenants), set(jobs.gpus.tolist())) == (1000, 8, {1, 2, 4, 8})
    assert max(jobs.work) <= 12 * 3600
    assert set(jobs.throughput[:, 1].tolist()) == {1.0}
    speed = (jobs.throughput * cluster.capacity).sum(axis=1) / cluster.capacity.sum()
    there = (jobs.arrival[-1] - jobs.arrival[0]) * cluster.capacity.sum()
    assert round((jobs.gpus * jobs.work / speed).sum() / there, 3) == 1.009  # as SOURCES.md says
    assert datasets.philly_trace(["V100", "K80"]).jobs.types == ("V100", "K80")
    with pytest.raises(BadInput, match="throughput A100"):
        datasets.philly_trace(["A100"])
