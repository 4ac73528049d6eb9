"""Specifications of benchmarks: what is read, and what is refused with which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairopt.errors import BadInput
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.spec import Spec, Statistic

GOOD = """
schema = 1
name = "small"
task = "max-min"
time_limit = 2.5
memory_limit = "2 GB"

[[instances]]
family = "uniform"
parameters = { users = [4, 8], types = 3 }
seeds = [1, 2]

[[contenders]]
contender = "bench_fakes:Sound"
label = "sound"
settings = { delay = 1 }

[[contenders]]
contender = "bench_fakes:Content"
label = "content"
largest = 4

[[goals]]
text = "quick"
contender = "sound"
against = "content"
statistic = "ratio"
limit = 2
instances = { size = 8, parameters = { types = 3 } }
"""


def read(tmp_path: Path, text: str) -> Spec:
    path = tmp_path / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return Spec.read(path)


def test_a_specification_says_what_it_says(tmp_path: Path) -> None:
    spec = read(tmp_path, GOOD)
    assert (spec.title, spec.memory_limit, spec.repeats, spec.threads) == ("small", 2 * 10**9, 1, 1)
    assert spec.instances[0].combinations() == [
        ({"users": users, "types": 3}, seed) for users in (4, 8) for seed in (1, 2)
    ]
    assert [(each.label, each.largest) for each in spec.contenders] == [("sound", None), ("content", 4)]
    [goal] = spec.goals
    assert (goal.statistic, goal.limit, goal.against) == (Statistic.RATIO, 2.0, "content")
    eight = kinds.Instance("any", "", 8, 0, {"types": 3, "users": 8}, "")
    assert goal.instances.has(eight)
    assert not goal.instances.has(replace(eight, size=4))
    assert not goal.instances.has(replace(eight, parameters={"types": 4}))
    first = spec.contenders[0]
    assert kinds.contender(first.name, first.settings).delay == 1.0  # type: ignore[attr-defined]


def test_a_specification_may_have_no_goals(tmp_path: Path) -> None:
    before, _, _ = GOOD.partition("[[goals]]")
    assert read(tmp_path, before).goals == read(tmp_path, "goals = []\n" + before).goals == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", ["key 'schema'", "got 2", "schema = 1"]),
        ("time_limit = 2.5", "time_limit = 0", ["key 'time_limit'", "got 0", "above 0"]),
        ("time_limit = 2.5", "time_limit = true", ["key 'time_limit'", "got True"]),
        ("time_limit = 2.5", "", ["'time_limit' is missing"]),
        ("time_limit", "time_limt", ["unknown key 'time_limt'", "Did you mean 'time_limit'"]),
        ('"2 GB"', '"2 pounds"', ["key 'memory_limit'", "'2 pounds'", '"8 GB"']),
        ('"2 GB"', "-1", ["key 'memory_limit'", "got -1"]),
        ('task = "max-min"', 'task = "max-mim"', ["key 'task'", "'max-mim'", "max-min"]),
        ('family = "uniform"', 'family = "unifrom"', ["instances 1, key 'family'", "'unifrom'", "uniform"]),
        ("users = [4, 8]", "users = []", ["instances 1, parameter 'users'", "empty list"]),
        ("users = [4, 8]", "users = [4, 4]", ["instances 1, parameter 'users'", "4 stands twice"]),
        ("users = [4, 8]", "users = [4, { a = 1 }]", ["instances 1, parameter 'users'", "Give a number"]),
        ("seeds = [1, 2]", "seeds = [1, -2]", ["instances 1, key 'seeds'", "got -2"]),
        ("seeds = [1, 2]", "sedes = [1, 2]", ["instances 1", "Did you mean 'seeds'"]),
        ("bench_fakes:Sound", "bench_fakes:Sond", ["contenders 1 (sound)", "cannot be loaded", "Sond"]),
        ("bench_fakes:Sound", "bench_fakes:np", ["contenders 1 (sound)", "is no Contender"]),
        ('"bench_fakes:Sound"', '"higs"', ["contenders 1 (sound)", "'higs'", "highs"]),
        ('"bench_fakes:Sound"', '"scip-pip"', ["contenders 1 (sound)", "scip"]),
        ("delay = 1", 'delay = "long"', ["contenders 1 (sound), settings, key 'delay'", "'long'", "Give a number"]),
        ("delay = 1", "dealy = 1", ["contenders 1 (sound), settings", "'dealy'", "Did you mean 'delay'"]),
        ('label = "content"', 'label = "sound"', ["contenders 2", "'sound' stands twice"]),
        ("largest = 4", "largest = 4.5", ["contenders 2, key 'largest'", "4.5"]),
        ('contender = "sound"', 'contender = "sond"', ["goals 1, key 'contender'", "Did you mean 'sound'"]),
        ('statistic = "ratio"', 'statistic = "seconds"', ["goals 1, key 'against'", "ratio"]),
        ("size = 8, ", "size = 8, seeds = 1, ", ["goals 1, key 'instances'", "unknown key 'seeds'"]),
        ('statistic = "ratio"', 'statistic = "rate"', ["goals 1, key 'statistic'", "Did you mean 'ratio'"]),
        ("limit = 2\n", 'limit = "2"\n', ["goals 1, key 'limit'"]),
        ("[[instances]]", "[[instance]]", ["unknown key 'instance'", "Did you mean 'instances'"]),
        ("[[instances]]", "[instances]", ["key 'instances'", "[[instances]]"]),
        ("seeds = [1, 2]", "seeds = [1, 2", ["line", "not TOML"]),
        ('task = "max-min"', 'task = "water-filling"', ["contenders 2 (content)", "does not answer", "max-min"]),
    ],
)
def test_mistakes_are_named_with_their_place_and_a_remedy(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    assert old in GOOD
    with pytest.raises(BadInput) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(str(tmp_path / "spec.toml"))
    assert caught.value.remedy
    for word in words:
        assert word in text


def test_what_is_no_file_and_no_name_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BadInput, match="no such file"):
        Spec.read("nowhere/spec.toml")
    name = next(iter(Spec.shipped()))
    with pytest.raises(BadInput, match=f"Did you mean '{name}'"):
        Spec.read(name + "x")


@pytest.mark.parametrize("name", Spec.shipped())
def test_every_specification_that_comes_with_fairopt_can_be_read(name: str) -> None:
    spec = Spec.read(name)
    assert spec.name == name
    assert spec.contenders
