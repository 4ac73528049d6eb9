"""Files of clusters: what is written is read again exactly, and what is broken is refused with its place."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from problem_files import put, refused

from fairopt.errors import BadInput
from fairopt.problem import Cluster
from fairopt.problem.files.cluster import (
    cluster_from_dict,
    cluster_schema,
    cluster_to_dict,
    read_cluster,
    write_cluster,
)

VALIDATOR = jsonschema.Draft202012Validator(cluster_schema())

CLUSTER = """
schema = 1
types = ["V100", "K80"]

[[host]]
name = "old"
type = "K80"
gpus = 4
count = 2
memory = 12
bandwidth = 1.25

[[host]]
type = "V100"
gpus = 8

[[host]]
type = "K80"
gpus = 2
count = 2
memory = 12.0
"""


def same_cluster(one: Cluster, other: Cluster) -> bool:
    return all(np.array_equal(value, getattr(other, name)) for name, value in vars(one).items())


def test_a_cluster_file_in_all_its_keys(tmp_path: Path) -> None:
    cluster = read_cluster(put(tmp_path, "c.toml", CLUSTER))
    assert cluster.types == ("V100", "K80")
    assert cluster.hosts == ("old-1", "old-2", "V100-1", "K80-3", "K80-4")
    assert cluster.gpus.tolist() == [4, 4, 8, 2, 2]
    assert cluster.memory.tolist() == [float("inf"), 12]
    assert cluster.bandwidth.tolist() == [Fraction(5, 4)] * 2 + [float("inf")] * 3


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_clusters_are_read_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    draw = random.Random(1)
    for number in range(60):
        types = [f"T{at}" for at in range(draw.randint(1, 3))]
        kinds = [draw.choice(types) for _ in range(draw.randint(1, 8))]
        names = draw.sample(
            [f"{base}-{at}" for base in ("a", "b c", "") for at in range(1, 4)] + ["x", "y"], len(kinds)
        )
        cluster = Cluster.of(
            kinds,
            [draw.randint(1, 3) for _ in kinds],
            types=types if draw.random() < 0.5 else None,
            memory={kind: draw.choice(["0.1", 16, Fraction(1, 3)]) for kind in kinds if draw.random() < 0.7},
            bandwidth=[draw.choice([None, "1.25", Fraction(1, 7)]) for _ in kinds],
            hosts=names if draw.random() < 0.7 else sorted(names),
        )
        assert not list(VALIDATOR.iter_errors(cluster_to_dict(cluster)))
        path = tmp_path / f"{number}{suffix}"
        write_cluster(cluster, path)
        assert same_cluster(read_cluster(path), cluster)
        assert same_cluster(read_cluster(path), cluster)


def test_alike_hosts_are_written_as_one_group() -> None:
    cluster = Cluster.uniform({"K80": (3, 4), "V100": (1, 8)}, memory={"K80": 12}, bandwidth="0.1")
    groups = cluster_to_dict(cluster)["host"]
    assert groups[0] == {"name": "K80", "type": "K80", "gpus": 4, "count": 3, "memory": 12, "bandwidth": 0.1}
    assert groups[1]["name"] == "V100-1"
    assert same_cluster(cluster_from_dict(cluster_to_dict(cluster)), cluster)
    with pytest.raises(BadInput, match="it has a memory but no hosts"):
        cluster_to_dict(Cluster.of(["A"], [1], types=["A", "B"], memory={"B": 1}))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", ["schema", "got version 2"]),
        ("schema = 1", "", ["'schema' is missing"]),
        ("schema = 1", "schema = 1\nhosts = 3", ["unknown key 'hosts'", "Did you mean 'host'"]),
        ('type = "V100"', 'type = "V10"', ["host 2 ('V10'), type", "Did you mean 'V100'"]),
        ('type = "V100"', "type = 100", ["host 2, type", "100"]),
        ('type = "V100"', "", ["host 2", "'type' is missing"]),
        ("gpus = 8", "", ["host 2 ('V100')", "'gpus' is missing"]),
        ("gpus = 8", "gpus = 0", ["host 2 ('V100'), gpus", "got 0", "whole number from 1"]),
        ("gpus = 8", "gpus = 2.5", ["got", "2.5"]),
        ("gpus = 8", "gpus = true", ["a truth value"]),
        ("gpus = 8", "gpu = 8", ["unknown key 'gpu'", "Did you mean 'gpus'"]),
        ("count = 2\nmemory = 12\n", "count = 0\nmemory = 12\n", ["host 1 ('old'), count", "got 0"]),
        ("count = 2\nmemory = 12\n", "count = 100000\nmemory = 12\n", ["hosts up to here", "at most 100000"]),
        ("memory = 12.0", "memory = 16", ["host 3 ('K80'), memory", "16 GB", "host 1 ('old') says 12 GB"]),
        ("memory = 12.0", "", ["no limit on a GPU of type 'K80'", "says 12 GB"]),
        ("memory = 12.0", "memory = 0", ["got 0", "positive"]),
        ("memory = 12.0", "memory = nan", ["NaN"]),
        ("bandwidth = 1.25", "bandwidth = -1", ["host 1 ('old'), bandwidth", "got -1"]),
        ("bandwidth = 1.25", 'bandwidth = "fast"', ["'fast'", "not a number"]),
        ("gpus = 2\n", 'gpus = 2\nname = "old"\n', ["host 3 ('old'), name", "a host of host 1 ('old')", "'old-1' too"]),
        ('type = "V100"\ngpus = 8', 'type = "V100"\ngpus = 8\nname = "old-1"', ["host 2 ('old-1'), name", "host 1"]),
        ('name = "old"', 'name = ""', ["name", "printable"]),
        ("[[host]]", "[host]", ["not TOML"]),
        ('types = ["V100", "K80"]', 'types = ["K80", "K80", "V100"]', ["both called 'K80'"]),
        ('types = ["V100", "K80"]', "types = 1", ["types"]),
    ],
)
def test_broken_cluster_files(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in CLUSTER
    path = put(tmp_path, "c.toml", CLUSTER.replace(old, new))
    with pytest.raises(BadInput) as error:
        read_cluster(path)
    refused(error, path, *words)


@pytest.mark.parametrize(
    "text", ['{"schema": 1}', '{"schema": 1, "host": []}', '{"schema": 1, "host": [3]}', "[]", "{"]
)
def test_broken_json_clusters(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, "c.json", text)
    with pytest.raises(BadInput) as error:
        read_cluster(path)
    refused(error, path)
