"""Files of batches: what is written is read again exactly, and what is broken is refused with its place."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from fairopt import datasets
from fairopt.benchmarks.workloads.astraea_batches import astraea_workload
from fairopt.datasets import astraea_example
from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.files.batch import (
    batch_from_dict,
    batch_schema,
    batch_to_dict,
    is_batch_file,
    read_batch,
    write_batch,
)
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps

VALIDATOR = jsonschema.Draft202012Validator(batch_schema())

SEVERAL = """
schema = 1
worker_types = ["K80", "V100"]
ps_types = ["cpu"]
[bandwidth]
worker = [1.5, "4/3"]
ps = 2

[[tenant]]
name = "lab"
workers = [3, 2]
ps = 4
[[tenant]]
name = "shop"
workers = [0, 1]
ps = 1

[[server]]
name = "old"
workers = [1, 0]
ps = 1
count = 3
[[server]]
workers = [0, 3]
ps = 2

[[job]]
name = "train"
tenant = "lab"
arrival = 4
epochs = 2
chunks = 3
minibatches = 5
minibatch_time = [0.1, "1/30"]
update_time = 0.01
gradient = 0.5
utility = {power = [60, 1.5]}
[[job]]
name = "tune"
tenant = "shop"
epochs = 1
chunks = 1
minibatches = 1
minibatch_time = 2
utility = {steps = [10, 10, "7/2", -1]}
"""


def columns(batch: Batch) -> Iterator[tuple[str, Any]]:
    for part in (batch, batch.jobs):
        for name, value in vars(part).items():
            if name != "jobs":
                yield name, value.tolist() if isinstance(value, np.ndarray) else value


def same(one: Batch, other: Batch) -> bool:
    return dict(columns(one)) == dict(columns(other)) and batch_to_dict(one) == batch_to_dict(other)


def random_batch(seed: int) -> Batch:
    draw = random.Random(seed)
    kinds, ps_kinds, hosts, users = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 7), draw.randint(1, 3)

    def alike(types: int) -> list[list[int]]:
        rows = [[draw.randint(0, 2) for _ in range(types)] for _ in range(2)]
        return [draw.choice(rows) for _ in range(hosts)]

    def divided(table: list[list[int]]) -> list[list[int]]:
        parts = [[0] * len(table[0]) for _ in range(users)]
        for row in table:
            for kind, count in enumerate(row):
                parts[draw.randrange(users)][kind] += count
        return parts

    def number() -> Fraction:
        return draw.choice([Fraction(draw.randint(1, 9)), Fraction(draw.randint(1, 99), 100), Fraction(1, 3)])

    def utility() -> CompletionUtility:
        falling = sorted((number() - 3 for _ in range(draw.randint(1, 4))), reverse=True)
        return draw.choice([Linear(-number(), number()), Power(number(), number()), Steps(tuple(falling))])

    workers, ps, jobs = alike(kinds), alike(ps_kinds), draw.randint(1, 5)
    tenants = [f"t {user}" for user in range(users)]
    names = draw.choice(
        [
            None,
            [f"s{at + 1}" for at in range(hosts)],
            [f"host-{at + 1}" for at in range(hosts)],
            [f"s{hosts - at}" for at in range(hosts)],
            ["-1", "s-1", "s-2", "s4", "s", "x-1", "x-3"][:hosts],
        ]
    )
    return Batch.of(
        workers=workers,
        ps=ps,
        servers=names,
        worker_quota=dict(zip(tenants, divided(workers), strict=True)),
        ps_quota=dict(zip(tenants, divided(ps), strict=True)),
        worker_types=[f"w{kind}" for kind in range(kinds)],
        ps_types=[f"p{kind}" for kind in range(ps_kinds)],
        worker_bandwidth=[number() for _ in range(kinds)],
        ps_bandwidth=[number() for _ in range(ps_kinds)],
        tenant=[draw.choice(tenants) for _ in range(jobs)],
        arrival=[draw.randint(0, 9) for _ in range(jobs)],
        **{key: [draw.randint(1, 9) for _ in range(jobs)] for key in ("epochs", "chunks", "minibatches")},
        minibatch_time=[[number() for _ in range(kinds)] for _ in range(jobs)],
        update_time=[[number() for _ in range(ps_kinds)] for _ in range(jobs)],
        gradient=[number() for _ in range(jobs)],
        utility=[utility() for _ in range(jobs)],
    )


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"batch{suffix}"
    for seed in range(60):
        batch = random_batch(seed)
        assert not list(VALIDATOR.iter_errors(batch_to_dict(batch)))
        write_batch(batch, path)
        assert same(read_batch(path), batch), seed
    for batch in (astraea_example(), astraea_workload(jobs=30, servers=20, convex=True)):
        write_batch(batch, path)
        assert same(read_batch(path), batch)


def test_several_types_blanks_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "batch.toml"
    path.write_text(SEVERAL)
    batch = read_batch(path)
    assert batch.servers == ("old-1", "old-2", "old-3", "s4")
    assert batch.workers.tolist() == [[1, 0]] * 3 + [[0, 3]]
    assert batch.worker_bandwidth.tolist() == [Fraction(3, 2), Fraction(4, 3)]
    assert batch.jobs.minibatch_time.tolist() == [[Fraction(1, 10), Fraction(1, 30)], [2, 2]]
    assert batch.jobs.update_time.tolist() == [[Fraction(1, 100)], [0]]
    assert (batch.jobs.arrival.tolist(), batch.jobs.gradient.tolist()) == ([4, 0], [Fraction(1, 2), 0])
    assert batch.jobs.utility == (Power(Fraction(60), Fraction(3, 2)), Steps((10, 10, Fraction(7, 2), -1)))  # type: ignore[arg-type]


def test_groups_are_written_where_names_allow(tmp_path: Path) -> None:
    path = tmp_path / "batch.toml"
    write_batch(astraea_workload(jobs=1, servers=90), path)
    assert len(batch_to_dict(read_batch(path))["server"]) < 60
    write_batch(astraea_example(), path)
    assert len(batch_to_dict(read_batch(path))["server"]) == 1


def test_the_papers_example() -> None:
    batch = astraea_example()
    assert batch.tenants == ("u1", "u2")
    assert batch.worker_quota.tolist() == [[4], [4]]
    assert batch.ps_quota.tolist() == [[2], [2]]
    assert batch.jobs.names == ("j11", "j12", "j21", "j22")
    assert batch.jobs.chunks.tolist() == [2, 3, 2, 30]
    assert {batch.speed(job, True) for job in range(4)} == {1}
    assert {batch.speed(job, False) for job in range(4)} == {Fraction(1, 2)}
    # 2 * 3 mini-batches on 3 workers apart: 4 slots, as the example has (8, 12]
    assert batch.duration(1, 3, together=False) == 4
    assert batch.jobs.utility[0].value(Fraction(2)) == 96


def test_what_is_a_batch(tmp_path: Path) -> None:
    for name in ("oef_example.toml", "philly_cluster.toml", "philly_1000.csv"):
        assert not is_batch_file(datasets.dataset_path(name))
    assert is_batch_file(datasets.dataset_path("astraea_example.toml"))
    odd = tmp_path / "odd.json"
    odd.write_text('{"user": "server"}')
    assert not is_batch_file(odd)
    assert not is_batch_file(tmp_path / "nowhere.txt")
    with pytest.raises(BadInput, match="no such file"):
        is_batch_file(tmp_path / "nowhere.toml")


# -- what is broken ------------------------------------------------------------------------------------------------
def valid() -> dict[str, Any]:
    """Return the dictionary of a batch that has every key."""
    return {
        "schema": 1,
        "worker_types": ["A", "B"],
        "ps_types": ["P"],
        "bandwidth": {"worker": [1, 2], "ps": 3},
        "tenant": [{"name": "u", "workers": [2, 2], "ps": 1}, {"name": "v", "workers": [0, 0], "ps": 1}],
        "server": [{"name": "x", "workers": 1, "ps": 1, "count": 2}],
        "job": [
            {
                **{"name": "a", "tenant": "u", "arrival": 1, "epochs": 2, "chunks": 3, "minibatches": 4},
                **{"minibatch_time": [1, 2], "update_time": 0, "gradient": 1, "utility": {"linear": [-1, 5]}},
            },
            {
                **{"name": "b", "tenant": "v", "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_time": 1},
                "utility": {"steps": [3, 2, 1]},
            },
        ],
    }


def test_the_valid_one_is_valid() -> None:
    assert batch_from_dict({**valid(), "server": [{"workers": 1, "ps": 1, "count": 2}]}).servers == ("s1", "s2")
    assert batch_from_dict(valid()).servers == ("x-1", "x-2")


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]  # type: ignore[index]
        data[path[-1]] = value  # type: ignore[index]

    return change


def drop(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]  # type: ignore[index]
        del data[path[-1]]  # type: ignore[arg-type]

    return change


BROKEN: list[tuple[Callable[[dict[str, Any]], None], str, str]] = [
    (drop("schema"), "the top level", "Add schema = 1"),
    (put("schema", value=2), "schema", "write the integer 1"),
    (put("servers", value=[]), "the top level", "Did you mean 'server'?"),
    (drop("bandwidth"), "the top level", "Add bandwidth"),
    (put("bandwidth", value=3), "bandwidth", "Give a table"),
    (drop("bandwidth", "ps"), "bandwidth", "Add ps"),
    (put("bandwidth", "pss", value=1), "bandwidth", "Did you mean 'ps'?"),
    (put("bandwidth", "ps", value=0), "bandwidth, ps", "Give a positive number"),
    (put("bandwidth", "worker", value=[1]), "bandwidth, worker", "one for each of A, B"),
    (put("bandwidth", "worker", value=[1, -2]), "bandwidth, worker, type 'B'", "Give a positive number"),
    (put("worker_types", value=["A", "A"]), "worker_types", "'A' stands twice"),
    (put("worker_types", value=[]), "worker_types", "Give at least one"),
    (put("ps_types", value="P"), "ps_types", "Give a list"),
    (put("tenant", value=[]), "tenant", "Give at least one"),
    (put("tenant", 1, "name", value="u"), "tenant 2 ('u')", "a name of its own"),
    (drop("tenant", 0, "ps"), "tenant 1 ('u')", "Add ps"),
    (put("tenant", 0, "ps", value=2), "quotas", "the tenants own 3 PS of type 'P', and the servers hold 2"),
    (put("tenant", 0, "workers", value=[2, 1]), "quotas", "own 1 workers of type 'B', and the servers hold 2"),
    (put("tenant", 0, "workers", value=[2]), "tenant 1 ('u'), workers", "1 value for 2 types"),
    (put("tenant", 0, "workers", value=[2, 0.5]), "tenant 1 ('u'), workers, type 'B'", "whole number from 0"),
    (put("tenant", 0, "weight", value=1), "tenant 1 ('u')", "unknown key 'weight'"),
    (put("server", 0, "count", value=0), "server 1 ('x'), count", "whole number from 1"),
    (put("server", 0, "count", value=10**6), "server 1 ('x'), count", "at most"),
    (put("server", 0, "ps", value=-1), "server 1 ('x'), ps", "whole number from 0"),
    (put("server", 0, "gpus", value=1), "server 1 ('x')", "unknown key 'gpus'"),
    (put("server", 0, "name", value=""), "server 1 (''), name", "printable name"),
    (
        put("server", value=[{"name": "x-1", "workers": 1, "ps": 1}, {"name": "x", "workers": 1, "ps": 1, "count": 2}]),
        "server 2 ('x'), name",
        "a server of server 1 ('x-1') is called 'x-1' too",
    ),
    (put("job", value={}), "job", "Give a list of jobs"),
    (put("job", value=[]), "job", "Give at least one"),
    (put("job", 1, "name", value="a"), "job 2 ('a')", "job 1 has the same name"),
    (put("job", 0, "tenant", value="w"), "job 1 ('a'), tenant", "tenants: u, v"),
    (put("job", 0, "tenant", value=3), "job 1 ('a'), tenant", "printable name"),
    (drop("job", 0, "chunks"), "job 1 ('a')", "Add chunks"),
    (put("job", 0, "epoch", value=1), "job 1 ('a')", "Did you mean 'epochs'?"),
    (put("job", 0, "epochs", value=0), "job 1 ('a'), epochs", "whole number from 1"),
    (put("job", 0, "epochs", value=1.5), "job 1 ('a'), epochs", "whole number from 1"),
    (put("job", 0, "arrival", value=-1), "job 1 ('a'), arrival", "whole number from 0"),
    (put("job", 0, "minibatches", value=True), "job 1 ('a'), minibatches", "Give a number"),
    (put("job", 0, "minibatch_time", value=0), "job 1 ('a'), minibatch_time, type 'A'", "Give a positive number"),
    (put("job", 0, "minibatch_time", value=[1, 2, 3]), "job 1 ('a'), minibatch_time", "3 values for 2 types"),
    (put("job", 0, "update_time", value="soon"), "job 1 ('a'), update_time", "not a number"),
    (put("job", 0, "gradient", value=math.nan), "job 1 ('a'), gradient", "Give a finite number"),
    (put("job", 0, "gradient", value=-1), "job 1 ('a'), gradient", "not negative"),
    (put("job", 0, "gradient", value="1/0"), "job 1 ('a'), gradient", "division by zero"),
    (put("job", 0, "utility", value=5), "job 1 ('a'), utility", "Give a table"),
    (put("job", 0, "utility", value={}), "job 1 ('a'), utility", "Give one of linear, power, steps"),
    (put("job", 0, "utility", value={"liner": [0, 1]}), "job 1 ('a'), utility", "Did you mean 'linear'?"),
    (put("job", 0, "utility", value={"linear": [0, 1], "steps": [1]}), "job 1 ('a'), utility", "2 forms"),
    (put("job", 0, "utility", value={"linear": [1]}), "job 1 ('a'), utility, linear", "Give 2"),
    (put("job", 0, "utility", value={"linear": 1}), "job 1 ('a'), utility, linear", "Give a list"),
    (put("job", 0, "utility", value={"linear": [1, 1]}), "job 1 ('a'), utility: linear utility, slope", "not positive"),
    (put("job", 0, "utility", value={"linear": ["k", 1]}), "job 1 ('a'), utility, linear, number 1", "not a number"),
    (put("job", 0, "utility", value={"power": [0, 1]}), "job 1 ('a'), utility: convex utility, scale", "positive"),
    (put("job", 0, "utility", value={"steps": []}), "job 1 ('a'), utility: utility, values", "one value at least"),
    (put("job", 0, "utility", value={"steps": [1, 2]}), "job 1 ('a'), utility: utility, values", "never rise"),
]


@pytest.mark.parametrize(("change", "place", "words"), BROKEN)
def test_what_is_broken_is_refused_with_its_place(
    change: Callable[[dict[str, Any]], None], place: str, words: str, tmp_path: Path
) -> None:
    data = copy.deepcopy(valid())
    change(data)
    with pytest.raises(BadInput) as caught:
        batch_from_dict(data)
    assert caught.value.place == place
    assert words in str(caught.value)
    assert caught.value.remedy
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput) as again:
        read_batch(path)
    # the same place and remedy; a decimal of a file is shown as it is written there
    assert (again.value.place, again.value.remedy) == (caught.value.place, caught.value.remedy)
    assert str(again.value).startswith(f"{path}: {place}: ")


def test_files_that_are_none(tmp_path: Path) -> None:
    for name, text, words in (
        ("batch.csv", "a,b", "ends in .toml, .json"),
        ("batch.toml", "schema = ", "not TOML"),
        ("batch.json", "[1]", "Give an object"),
        ("batch.toml", "", "empty"),
        ("batch.json", '{"schema": 1, "schema": 1}', "stands twice"),
    ):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(BadInput, match=words):
            read_batch(path)
    with pytest.raises(BadInput, match="no such file"):
        read_batch(tmp_path / "nowhere.toml")


class Own(CompletionUtility):
    def value(self, time: Any) -> Any:
        return 1


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    batch = astraea_example()
    with pytest.raises(BadInput, match="one job at least"):
        write_batch(batch.select([]), tmp_path / "none.toml")
    jobs = batch.jobs.take([0])
    odd = replace(batch, jobs=jobs)
    object.__setattr__(jobs, "utility", (Own(),))
    with pytest.raises(BadInput, match=r"job 1 \('j11'\), utility: got an Own"):
        write_batch(odd, tmp_path / "own.toml")
    with pytest.raises(BadInput, match="cannot write"):
        write_batch(batch, tmp_path / "nowhere" / "batch.toml")
