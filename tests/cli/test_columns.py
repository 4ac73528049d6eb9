"""``--column KEY=NAME``: which column of somebody's own table says what; and tables whose names are known."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

from fairopt.errors import BadInput
from fairopt.importing import job_csv, sacct

JOBS = "id,team,begin,secs,cards,note\na,ml,10,100,1,x\nb,cv,20,50,2,y\n"
MARKET = "A100,group,V100,prio\n2,ann,1,3\n1,bob,1,1\n4,capacity,3,\n"
NAMED = ["--column", "submit=begin", "--column", "duration=secs", "--column", "gpus=cards"]
OF_MARKET = ["--column", "user=group", "--column", "weight=prio"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return path


@pytest.fixture
def market(tmp_path: Path) -> Path:
    path = tmp_path / "market.csv"
    path.write_text(MARKET)
    return path


def test_an_importer_says_what_is_missing_and_takes_it(fairopt: Callable[..., Ran], table: Path) -> None:
    out = table.with_name("trace.csv")
    ran = fairopt("import", "job-csv", table, "--out", out)
    assert ran.status == 2
    assert (
        "no column holds 'submit'. Say which one does: --column submit=NAME (in Python columns={'submit': 'NAME'}); "
        "there are id, team, begin, secs, cards, note"
    ) in ran.err
    assert fairopt("import", "job-csv", table, "--out", out, *NAMED).status == 0
    assert out.read_text().splitlines() == ["job_id,tenant,submit_s,duration_s,gpus", "a,ml,0,100,1", "b,cv,10,50,2"]


def test_commands_read_a_table_whose_names_are_known(fairopt: Callable[..., Ran], table: Path) -> None:
    table.write_text("job_id,vc,gpu_num,submit_time,duration\na,ml,4,2020-04-01 00:00:00,600\n")
    ran = fairopt("run", table, "--cluster", "@philly-cluster", "--policy", "srtf")
    assert ran.status == 0, ran.err
    assert "1 of 1 job completed" in ran.out
    ran = fairopt("compare", table, "--cluster", "@philly-cluster", "--policy", "srtf", "--property", "lease_kept")
    assert ran.out.startswith("1 job on ")
    table.write_text("job_id,tenant,submit_s,duration_s,gpus,colour\na,ml,0,600,4,red\n")  # our own, with a mistake
    ran = fairopt("run", table, "--cluster", "@philly-cluster", "--policy", "srtf")
    assert (ran.status, "unknown column 'colour'" in ran.err) == (2, True)


@pytest.mark.parametrize("command", ["run", "compare"])
def test_commands_read_an_own_trace(fairopt: Callable[..., Ran], table: Path, command: str) -> None:
    arguments = [command, table, "--cluster", "@philly-cluster", "--policy", "srtf"]
    ran = fairopt(*arguments)
    assert ran.status == 2
    assert "--column submit=NAME" in ran.err
    ran = fairopt(*arguments, *NAMED)
    assert ran.status in (0, 4)
    assert "2" in ran.out
    assert "not taken over: job-csv, note" in ran.err


@pytest.mark.parametrize(
    "command",
    [
        ["solve", "--policy", "max-min"],
        ["compare", "--policy", "max-min", "--property", "envy_freeness"],
        ["lie", "--policy", "equal-split", "--evaluations", "5"],
        ["incentives", "--policy", "equal-split", "--evaluations", "5"],
        ["frontier", "--policy", "max-min", "--goal", "total_efficiency", "--property", "envy_freeness"],
    ],
    ids=lambda command: command[0],
)
def test_commands_read_an_own_market(fairopt: Callable[..., Ran], market: Path, command: list[str]) -> None:
    name, *options = command
    ran = fairopt(name, market, *options)
    assert ran.status == 2
    assert "--column user=NAME" in ran.err
    assert fairopt(name, market, *options, *OF_MARKET).status in (0, 4)


def test_a_comparison_tells_a_market_from_a_trace(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "market.csv"
    path.write_text(MARKET.replace(",prio", "").replace("1,3", "1").replace("1,1\n", "1\n").replace("3,\n", "3\n"))
    ran = fairopt("compare", path, "--policy", "max-min", "--property", "envy_freeness", "--column", "user=group")
    assert ran.status == 0, ran.err


def test_a_market_is_what_its_columns_say(fairopt: Callable[..., Ran], market: Path) -> None:
    ran = fairopt("solve", market, "--policy", "equal-split", "--json", *OF_MARKET)
    assert ran.data["users"] == ["ann", "bob"]
    assert ran.data["types"] == ["A100", "V100"]
    assert ran.data["allocation"] == [[3, 2.25], [1, 0.75]]


def test_jobs_of_types_run_on_a_cluster_that_has_more(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("id,tenant,begin,duration,gpus,kind\na,x,0,100,1,v100\nb,y,0,50,1,K80\n")
    arguments = ["run", path, "--cluster", "@philly-cluster", "--policy", "fifo", "--json"]
    ran = fairopt(*arguments, "--column", "submit=begin", "--column", "type=kind")
    assert ran.status == 0, ran.err
    assert ran.data["measures"]["jobs"] == 2
    assert ran.data["measures"]["unfinished"] == []


def test_a_trace_of_fairopt_keeps_its_throughputs(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path, cluster = tmp_path / "t.csv", tmp_path / "c.toml"
    path.write_text("job_id,when,work,gpus,throughput K80\na,0,100,1,2\n")
    cluster.write_text("schema = 1\n[[host]]\nname = 'h'\ntype = 'K80'\ngpus = 1\n")
    ran = fairopt("run", path, "--cluster", cluster, "--policy", "fifo", "--column", "submit_s=when", "--json")
    assert ran.status == 0, ran.err
    assert ran.data["measures"]["jct"]["mean"] == 50


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--column", "user"], "--column: got 'user'. Write KEY=NAME"),
        (["--column", "user=x", "--column", "user=y"], "user is given twice"),
        (["--column", "user=grup"], "line 1: no column 'grup'. Did you mean 'group'?"),
    ],
)
def test_mistakes(fairopt: Callable[..., Ran], market: Path, options: list[str], says: str) -> None:
    ran = fairopt("solve", market, "--policy", "max-min", *options)
    assert ran.status == 2
    assert says in ran.err


def test_what_is_no_table_is_refused(fairopt: Callable[..., Ran], table: Path) -> None:
    assert "is for tables" in fairopt("solve", "@oef-example", "--policy", "max-min", *OF_MARKET).err
    ran = fairopt("import", "kueue", table, "--out", table.with_name("x.toml"), *NAMED)
    assert "reads no table whose columns could be named" in ran.err


def test_the_file_in_whose_place_another_stands_is_not_written_over(fairopt: Callable[..., Ran], market: Path) -> None:
    ran = fairopt("solve", market, "--policy", "max-min", "--certificate", market, *OF_MARKET)
    assert ran.status == 2
    assert market.read_text() == MARKET


def test_sacct_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text("Id|Team|When|Elapsed|State|AllocTRES\n1|ml|2026-11-22T08:30:00|00:10:00|COMPLETED|gres/gpu=2\n")
    with pytest.raises(BadInput, match=r"no column account, jobid, submit.*--column account=NAME"):
        sacct.read(path)
    jobs = sacct.read(path, {"JobID": "Id", "tenant": "Team", "submit": "When"}).problem.jobs
    assert (jobs.names, jobs.tenants, jobs.work.tolist()) == (("1",), ("ml",), [600])


#: Headers of public tables of jobs, a row of each, and what it says: tenant, submission, seconds, GPUs, type.
TABLES = {
    "sacct": (
        "JobID|User|Account|Submit|Start|End|Elapsed|State|ReqTRES|AllocTRES",
        "7|u|ml|2026-11-22T08:30:00|2026-11-22T08:31:00|2026-11-22T08:41:00|00:10:00|COMPLETED|gres/gpu=1|"
        "billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2",
        ("ml", 1795336200, 600, 2, "a100"),
    ),
    "philly": (
        "job_id,user,vc,gpu_num,submit_time,run_time,wait_time",
        "p1,u,v1,4,2017-10-03 07:00:00,3600,5",
        ("v1", 1507014000, 3600, 4, "GPU"),
    ),
    "helios": (
        "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "9,u,v2,x,8,32,1,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:01:00,2020-04-01 00:03:00,120,50",
        ("v2", 1585699210, 120, 8, "GPU"),
    ),
    "alibaba-pai": (
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type,user",
        "j,worker,3,Terminated,100.0,400.0,600,30,50,V100,u",
        ("u", 100, 300, 2, "V100"),
    ),
    "alibaba-openb": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "pod-1,4000,100,1,460,T4,LS,Succeeded,50,350,100",
        ("tenant", 50, 250, 1, "T4"),
    ),
    "gavel": (
        "job_type,total_steps,scale_factor,priority_weight,arrival_time,duration,user",
        "ResNet-18 (batch size 16),1000,2,1,30,900,u",
        ("u", 30, 900, 2, "GPU"),
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("packed", [False, True])
def test_columns_of_public_traces_are_known(tmp_path: Path, name: str, packed: bool) -> None:
    header, row, (tenant, submit, seconds, gpus, kind) = TABLES[name]
    path = tmp_path / ("jobs.csv" + (".gz" if packed else ""))
    data = f"{header}\n{row}\n".encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    places = job_csv.Places()
    lines = job_csv.table_cells(path)
    place, names = next(lines)
    ((job, *rest),) = job_csv._jobs(lines, job_csv._columns(names, {}, place), places)
    assert (rest[0], rest[1], rest[3], rest[2], rest[4]) == (tenant, submit, seconds, gpus, kind)
    assert job
    assert len(job_csv.read(path).problem.jobs) == 1


def test_a_packed_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(JOBS.encode())[:20])
    with pytest.raises(BadInput, match="Give the whole file, or unpack it"):
        job_csv.read(path)
