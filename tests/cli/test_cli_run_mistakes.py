"""What `fairopt run` says to mistakes: one line with place, value and remedy, the right status, nothing printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

from fairopt.configuring import choices, configured
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput
from fairopt.models.fft.fft import FFT
from fairopt.models.fft.placement import HierarchicalPlacement
from fairopt.models.fft.program import nothing
from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair
from fairopt.models.gandiva_fair.lottery import GangAwareLottery
from fairopt.models.gandiva_fair.stride import GangAwareStride, fastest
from fairopt.models.gavel.objectives import LeastCost, Objective
from fairopt.models.gavel.rounds import GavelRounds
from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness, urgent_first
from fairopt.simulation import Mechanics
from fairopt.simulation.placement import Placement

CLUSTER = """
schema = 1
[[host]]
type = "GPU"
gpus = 4
"""
TRACE = """
schema = 1
[[job]]
name = "a"
submit_s = 0
duration_s = 600
gpus = 1
"""
TABLE_2 = """job_id,tenant,submit_s,duration_s,gpus
a1,A,0,100000,1
a2,A,0,100000,1
b1,B,0,100000,2
b2,B,0,100000,2
c1,C,0,100000,4
c2,C,0,100000,4
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "trace.toml").write_text(TRACE)
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    return tmp_path / "trace.toml", tmp_path / "cluster.toml"


def said(fairopt: Callable[..., Ran], *words: object) -> tuple[int, str]:
    """Return the exit status and the one line on standard error; nothing may stand on standard output."""
    ran = fairopt(*words)
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    return ran.status, ran.err


@pytest.mark.parametrize("json_", [(), ("--json",)])
@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (("--length", "0"), 2, "--length: got 0. Give the seconds of a round, positive"),
        (("--restart", "-1"), 2, "fairopt: --restart: got -1. Give a number from 0"),
        (("--spread", "2"), 2, "fairopt: --spread: got 2. Give a number above 0 and at most 1"),
        (("--length", "-1/2"), 2, "--length: got -1/2. Give the seconds of a round, positive"),
        (("--backend", "highs"), 3, "it has no program for highs, so leave it out"),
        (("--policy", "max-min"), 2, "`fairopt solve` takes it"),
        (("--policy", "posted-prices"), 2, "`fairopt schedule` takes it"),
        (("--policy", "fft", "--set", "gap=-1"), 2, "fft, gap: got -1.0. Give a number from 0"),
        (("--policy", "fft", "--set", "gap=0", "--set", "gap=1"), 2, "--set gap: it is given twice"),
        (("--policy", "fft", "--backend", "ecos"), 3, "backend 'ecos' has no integer variables"),
    ],
)
def test_an_error_before_the_first_round_prints_nothing_else(fairopt, files, words, status, line, json_):
    trace, cluster = files
    policy = () if "--policy" in words else ("--policy", "srtf")
    got = said(fairopt, "run", trace, "--cluster", cluster, *policy, *words, *json_)
    assert got[0] == status
    assert line in got[1]


def test_a_policy_of_rounds_is_none_of_shares(fairopt):
    status, line = said(fairopt, "solve", dataset_path("gavel.toml"), "--policy", "fft")
    assert status == 2
    assert "`fairopt run` takes it" in line


def test_an_outage_of_an_unknown_host_names_the_file(fairopt, files):
    trace, cluster = files
    trace.write_text(TRACE + "[[outage]]\nhost = 'x'\nbegin = 0\n")
    status, line = said(fairopt, "run", trace, "--cluster", cluster, "--policy", "srtf")
    assert status == 2
    assert f"{trace}: outages: there is no host 'x'. Hosts: GPU-1" in line


KINDS = {"market": "gavel.toml", "cluster": "philly_cluster.toml", "batch": "astraea_example.toml", "trace": ""}


@pytest.mark.parametrize(
    ("kind", "wanted"), [(kind, other) for kind in KINDS for other in ("trace", "cluster", "market") if kind != other]
)
def test_a_file_of_another_kind_is_named(fairopt, files, kind, wanted):
    given = KINDS[kind]
    path = dataset_path(given) if given else files[0]
    words = {
        "trace": ("run", path, "--cluster", files[1], "--policy", "srtf"),
        "cluster": ("run", files[0], "--cluster", path, "--policy", "srtf"),
        "market": ("solve", path, "--policy", "max-min"),
    }[wanted]
    status, line = said(fairopt, *words)
    assert status == 2
    assert f"is that of a {kind}. Give a {wanted}; `fairopt " in line


def test_options_that_are_functions_and_classes_are_named_by_module():
    models = "fairopt.models"
    least_cost = configured(GavelRounds(), [f"objective={models}.gavel.objectives:LeastCost"])
    assert least_cost == GavelRounds(LeastCost())
    repacking = configured(FFT(), [f"placement={models}.fft.placement:HierarchicalPlacement"]).placement
    assert repacking == HierarchicalPlacement()
    assert configured(FFT(), [f"usable={models}.fft.program:nothing"]).usable is nothing
    preferences = configured(LongTermGpuTimeFairness(), [f"preferences={models}.ltgf.ltgf:urgent_first"]).preferences
    assert preferences == (urgent_first,)
    assert configured(GangAwareStride(), [f"assign={models}.gandiva_fair.stride:fastest"]).assign is fastest


def test_classes_that_come_with_the_policy_are_named_by_their_name_alone():
    assert configured(GavelRounds(), ["objective=LeastCost"]) == GavelRounds(LeastCost())
    assert configured(FFT(), ["served=Mechanics"]).served == Mechanics()
    assert {"HierarchicalPlacement", "Consolidated"} <= set(choices(Placement, FFT))
    assert not {"Objective", "GavelRounds"} & set(choices(Objective, GavelRounds))
    with pytest.raises(BadInput, match="Did you mean 'LeastMakespan'"):
        configured(GavelRounds(), ["objective=leastmakespan"])


@pytest.mark.parametrize(
    ("policy", "setting", "problem"),
    [
        (FFT(), "usable=all", "got 'all' for an option of type function of 3 arguments"),
        (FFT(), "usable=os:getcwd", "'os:getcwd' is no function of 3 arguments"),
        (FFT(), "usable=os:nothing", "'os:nothing' cannot be loaded"),
        (FFT(), "usable=no.such.module:nothing", "cannot be loaded"),
        (FFT(), "placement=fairopt.models.fft.fft:FFTState", "is no Placement"),
        (FFT(), "served=fairopt.models.fft.fft:FFTState", "is no Mechanics"),
        (GavelRounds(), "objective=os:getcwd", "'os:getcwd' is no Objective"),
        (GangAwareStride(), "assign=os:getcwd", "'os:getcwd' is no"),
        (GangAwareLottery(), "longest=-1", "got -1"),
        (GandivaFair(), "migrations=-1", "got -1"),
        (GandivaFair(), "threshold=-1/2", "got -1/2"),
    ],
)
def test_options_that_fit_nothing_are_refused(policy, setting, problem):
    with pytest.raises(BadInput) as error:
        configured(policy, [setting])
    assert problem in str(error.value)


@pytest.mark.parametrize("policy", ["stride", "split-stride", "gandiva-fair"])
def test_table_2_from_a_file(fairopt, files, tmp_path, policy):
    trace = tmp_path / "table_2.csv"
    trace.write_text(TABLE_2)
    played = fairopt("run", trace, "--cluster", files[1], "--policy", policy, "--rounds", 6, "--json")
    assert played.status == 0
    ran = [each["job"] for record in played.data["rounds"] for each in record["ran"]]
    assert {job: ran.count(job) for job in sorted({*ran})} == {"a1": 4, "a2": 4, "b1": 2, "b2": 2, "c1": 1, "c2": 1}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("duration_s = 600", "duration_s = 'x'", "job 1 ('a'), duration_s: got 'x', not a number"),
        ("duration_s = 600", "work = 0", "job 1 ('a'), work: got 0. Give a positive number"),
    ],
)
def test_a_job_s_length_is_named_as_the_file_names_it(fairopt, files, before, after, line):
    trace, cluster = files
    trace.write_text(TRACE.replace(before, after))
    status, text = said(fairopt, "run", trace, "--cluster", cluster, "--policy", "srtf")
    assert status == 2
    assert line in text


def test_a_column_without_a_use_is_not_suggested(fairopt, files):
    trace = files[0].with_suffix(".csv")
    trace.write_text("job_id,submit_s,duration_s,gpus,type\na,0,1,1,GPU\n")
    status, text = said(fairopt, "run", trace, "--cluster", files[1], "--policy", "srtf")
    assert status == 2
    assert "column 5: unknown column 'type'. Known columns: job_id" in text
    assert "gpu_type" not in text


def test_jobs_that_have_not_arrived_are_counted(fairopt, files):
    trace, cluster = files
    trace.write_text(TRACE + TRACE.replace("schema = 1", "").replace('"a"', '"b"').replace("= 0", "= 9000"))
    out = fairopt("run", trace, "--cluster", cluster, "--policy", "srtf", "--rounds", 2).out
    assert "srtf: 1 of 2 jobs completed in 2 rounds" in out
    assert "not arrived when the run ended: 1 job" in out


@pytest.mark.parametrize("option", ["--record", "--state", "--parquet"])
def test_what_a_run_reads_is_not_written_over(fairopt: Callable[..., Ran], tmp_path: Path, option: str) -> None:
    trace, cluster = tmp_path / "trace.toml", tmp_path / "cluster.toml"
    trace.write_text(TRACE)
    cluster.write_text(CLUSTER)
    for given, called in ((trace, "TRACE"), (cluster, "--cluster")):
        ran = fairopt("run", trace, "--cluster", cluster, "--policy", "srtf", option, given)
        assert ran.status == 2
        assert f"{option}: {given} is the file of {called} as well. Name another file" in ran.err
    assert (trace.read_text(), cluster.read_text()) == (TRACE, CLUSTER)
    ran = fairopt("generate", "poisson", "--cluster", cluster, "--out", cluster)
    assert "--out: " in ran.err
    assert cluster.read_text() == CLUSTER
