"""Slurm's files: what each says, all of them together, and what is wrong with broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt import allocate
from fairopt.errors import BadInput
from fairopt.importing import job_csv, sacct, slurm
from fairopt.importing.slurm_values import duration, gpus_of, gres, hosts, moment, tres
from fairopt.models import SlurmFairTree
from fairopt.program import INFINITY
from fairopt.testing.data_suites import importer_suite

SAMPLES = Path(slurm.__file__).parent.parent / "datasets" / "clusters" / "slurm"
TEXT = [SAMPLES / name for name in ("sshare.txt", "assoc.txt", "nodes.txt", "qos.txt", "partitions.txt", "jobs.txt")]
JSON = [SAMPLES / name for name in ("sshare.json", "assoc.json", "nodes.json", "qos.txt", "squeue.json")]
EVERY = sorted(SAMPLES.iterdir())
COMMANDS = {
    path.name: path for path in EVERY if path.name not in ("nodes.txt", "nodes.json", "qos.txt", "partitions.txt")
}


@pytest.mark.parametrize("name", ["sshare.txt", "sshare.json", "assoc.txt", "assoc.json", "jobs.txt", "squeue.txt"])
def test_each_file_alone_conforms(name: str) -> None:
    importer_suite(SAMPLES / name).run([slurm.read]).require_complete()


def test_the_trace_conforms() -> None:
    importer_suite(SAMPLES / "sacct.txt").run([sacct.read]).require_complete()


def test_sshare_alone_is_enough_for_tree_shares_usage_and_what_it_declares() -> None:
    found = slurm.read(SAMPLES / "sshare.txt")
    owed = found.problem.entitlements
    users = "root/root hep/ada hep/bo astro/cem astro/dia vision/eve vision/fay nlp/gil nlp/ada"
    assert " ".join(owed.users) == users
    assert [owed.nodes[node] for node in owed.path(owed.node("hep/ada"))] == ["hep/ada", "hep", "physics", "root"]
    assert [int(owed.borrow_weight[owed.node(name)]) for name in ("physics", "ml", "vision/eve", "nlp/ada")] == [
        *(40, 60, 10, 5)
    ]
    assert owed.usage[owed.node("physics")] == 13_500_000
    parent = owed.node("astro/cem")
    assert (owed.tier[parent], owed.borrow_weight[parent]) == (1, 0)  # Fairshare=parent
    assert found.problem.types == ("GPU",)
    assert any("no node is listed" in each.why for each in found.unplaced)
    assert found.declared["nlp/ada"]["LevelFS"] == INFINITY
    assert found.declared["hep/bo"]["FairShare"] == Fraction("0.666667")
    assert slurm.read(SAMPLES / "sshare.txt", gpus=32).problem.capacity.tolist() == [32]


def test_text_and_json_say_the_same() -> None:
    text, json_ = (slurm.read(SAMPLES / f"sshare.{form}").problem.entitlements for form in ("txt", "json"))
    assert (
        replace(text, settings={"": {**text.settings[""], "ClusterName": "alpha"}}) == json_
    )  # sshare -P does not name the cluster
    assert slurm.read(SAMPLES / "assoc.txt").problem == slurm.read(SAMPLES / "assoc.json").problem
    with_nodes = slurm.read(SAMPLES / "assoc.txt", SAMPLES / "nodes.txt").problem
    assert with_nodes == slurm.read(SAMPLES / "assoc.txt", SAMPLES / "nodes.json").problem


@pytest.mark.parametrize("files", [TEXT, JSON])
def test_all_files_make_one_market(files: list[Path]) -> None:
    market = slurm.read(*files).problem
    owed = market.entitlements
    assert dict(zip(market.types, market.capacity, strict=True)) == {"a100": 8, "h100": 16}  # h3 is drained
    a100, h100, anyone = (owed.columns.index(name) for name in ("a100", "h100", "gres/gpu:any"))
    assert owed.cap[owed.node("ml"), h100] == owed.cap[owed.node("physics"), anyone] == 12
    assert owed.cap[owed.node("astro"), a100] == 4
    assert owed.cap[owed.node("astro"), owed.columns.index("mem:any")] == 512 * 1024**3
    assert owed.held[owed.users.index("hep/ada"), a100] == 3
    gangs = owed.gangs
    by_name = dict(zip(gangs.names, range(len(gangs)), strict=True))
    assert "110" not in by_name  # held by its user
    assert gangs.allowed[by_name["108"]].tolist() == [True, True]  # gres/gpu without a type
    assert gangs.tier[by_name["102"]] == 100
    assert gangs.preemptible[by_name["106"]]
    assert not gangs.preemptible[by_name["102"]]


def test_billing_weights_are_rates() -> None:
    assert slurm.read(*TEXT).problem.entitlements.rate.tolist() == [4, Fraction("12.15")]


def test_a_pending_array_is_its_tasks() -> None:
    gangs = slurm.read(SAMPLES / "squeue.txt", SAMPLES / "nodes.txt").problem.entitlements.gangs
    assert [name for name in gangs.names if name.startswith("111")] == ["111_1", "111_2", "111_3"]


def test_gpus_of_each_node_are_those_of_all_nodes(tmp_path: Path) -> None:
    path = tmp_path / "squeue.txt"
    path.write_text("JOBID|ACCOUNT|USER|STATE|NODES|TRES_PER_NODE\n1|ml|eve|PENDING|3|gres/gpu:h100:8\n")
    assert slurm.read(path).problem.entitlements.gangs.gpus.tolist() == [24]


def test_accounts_without_a_parent_are_put_into_root_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "assoc.txt"
    path.write_text("Account|User|Share\nroot||1\nml||2\nvision||3\nvision|eve|1\n")
    found = slurm.read(path)
    owed = found.problem.entitlements
    assert [owed.nodes[node] for node in owed.path(0)] == ["vision/eve", "vision", "root"]
    assert any("use `tree`" in each.why for each in found.unplaced)


def test_everything_that_has_no_place_is_named() -> None:
    for path in EVERY:
        if path.suffix == ".txt" and path.name not in ("nodes.txt", "jobs.txt", "partitions.txt", "config.txt"):
            files = {path, SAMPLES / "sshare.txt"}
            header = path.read_text().splitlines()[0].lower().split("|")
            rows = [line.split("|") for line in path.read_text().splitlines()[1:]]
            said = " ".join(f"{each.place} {each.value}".lower() for each in slurm.read(*sorted(files)).unplaced)
            taken = {"account", "user", "share", "grptres", "name", "priority", "preempt", "cluster", "id", "partition"}
            taken |= {"rawshares", "normshares", "rawusage", "normusage", "effectvusage", "fairshare", "levelfs"}
            taken |= {"jobid", "state", "qos", "submit", "submit_time", "reqtres", "alloctres", "nodelist"}
            taken |= {"nodelist(reason)", "tres_per_node", "maxjobs", "grpjobs", "maxtres", "maxwall", "preemptmode"}
            taken |= {"maxtrespu", "maxtrespa", "maxjobspu", "maxjobspa", "nnodes", "elapsed", "timelimit"}
            for column, name in enumerate(header):
                if name not in taken and any(row[column].strip() for row in rows):
                    assert name in said or name == "nodes", (path.name, name)


def test_sacct_is_a_trace() -> None:
    found = sacct.read(SAMPLES / "sacct.txt")
    jobs = found.problem.jobs
    row = jobs.names.index("92")  # ran 1-02:03:04 until it was cancelled
    assert jobs.work[row] == 93784
    assert (jobs.arrival[row], jobs.gpus[row], jobs.tenant_of(row)) == (3600, 4, "vision")
    assert jobs.throughput[jobs.names.index("94")].tolist() == [1, 1]  # no type said
    assert "93" not in jobs.names  # cancelled before it ran
    assert "95" not in jobs.names  # no GPU
    assert any("90.batch" in each.value for each in found.unplaced)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_table_of_jobs_is_a_trace(tmp_path: Path, separator: str) -> None:
    rows = [["Job", "VC", "When", "Run time", "num_gpus", "gpu_type"]]
    rows += [
        ["a", "x", "2026-01-01T00:00:00", "00:30:00", "2", "V100"],
        ["b", "y", "2026-01-01T00:01:00", "90", "1", ""],
    ]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(separator.join(row) for row in rows))
    with pytest.raises(BadInput, match=r"no column holds 'submit'. Say which one does: .*columns=\{'submit'"):
        job_csv.read(path)
    jobs = job_csv.read(path, {"submit": "When"}).problem.jobs
    assert (jobs.arrival.tolist(), jobs.work.tolist(), jobs.gpus.tolist()) == ([0, 60], [1800, 90], [2, 1])


def test_values() -> None:
    assert duration("1-02:03:04", "") == 93784
    assert duration("02:03.500", "") == 123
    assert moment("2026-11-22T08:30:00", "") == 1795336200
    assert gpus_of(tres("cpu=4,gres/gpu=6,gres/gpu:a100=4", ""), "") == {"a100": 4, "GPU": 2}
    assert gres("gpu:4", "") == gres("gres/gpu=4", "") == gres("gpu:4(S:0)", "") == {"GPU": 4}
    assert hosts("n[08-10]x,y", "") == ["n08x", "n09x", "n10x", "y"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Account|User|RawShares\nroot||1\n ml|a|x\n", r"line 3, RawShares: got 'x'"),
        ("Account|User|RawShares\nroot||1\n ml|a\n", r"line 3: 2 cells for 3 columns"),
        ("Account|User|RawShares\nroot|a|1\nroot|a|1\n", r"line 3: this association stands twice"),
        ("Account|User|RawShares\nroot||1\n", r"no user associations.*sshare -alP"),
        ("Hello world\n", r"line 1: got .*Give what one of these prints: sshare -alP"),
        ("   Account  User  RawShares  RawUsage\n---- ----\n", r'no "|" between them, as sshare -alP prints it'),
        ("Account|User|Share|GrpTRES\nml|a|1|gres/gpu=x\n", r"line 2, GrpTRES: got 'gres/gpu=x'"),
        ("Cluster|Account|User|Share\na|ml|u|1\nb|ml|u|1\n", r"got the clusters 'a', 'b'.*show config.*cluster=NAME"),
        ("Account|User|Share|ParentName\na||1|b\nb||1|a\na|u|1|\n", r"in a circle of accounts"),
        ("JobID|Account|User|State|AllocTRES\n1|a|u|RUNNING|gres/gpu=1.5\n", r"line 2, TRES, GPU: got 3/2 GPUs"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "slurm.txt"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"slurm\.txt.*" + what):
        slurm.read(path)


DRAINS = """NodeName=n1
   Gres=gpu:a100:4
   State=MIXED
   CfgTRES=cpu=8,gres/gpu=4,gres/gpu:a100=4
   AllocTRES=cpu=2,gres/gpu=2
NodeName=n2
   Gres=gpu:a100:8
   State=MIXED+DRAIN
   CfgTRES=cpu=8,gres/gpu=8
   AllocTRES=cpu=2,gres/gpu=3
NodeName=n3
   Gres=gpu:v100:8
   State=DOWN*
   AllocTRES=
"""


def test_what_runs_on_a_node_that_drains_takes_nothing_from_others(tmp_path: Path) -> None:
    names = ["sshare.txt", "nodes.txt", "squeue.txt"]
    shares, nodes, jobs = (tmp_path / name for name in names)
    shares.write_text("Account|User|RawShares\nroot||1\n ml||1\n  ml|ann|1\n")
    nodes.write_text(DRAINS)
    header = "JOBID|USER|ACCOUNT|STATE|NODES|TRES_PER_NODE\n"
    jobs.write_text(f"{header}1|ann|ml|RUNNING|1|gpu:a100:2\n2|ann|ml|RUNNING|1|gpu:a100:3\n")
    found = slurm.read(shares, nodes, jobs).problem
    assert (found.types, found.capacity.tolist()) == (("a100",), [7])  # 2 of the 4 up are free, and nothing else
    assert found.entitlements.held[found.entitlements.node("ml/ann")].tolist() == [5]
    assert slurm.read(shares, nodes).problem.capacity.tolist() == [4]  # without jobs what they hold would look free


@pytest.mark.parametrize(
    ("state", "gpus"),
    [("IDLE+CLOUD+POWERED_DOWN", 8), ("MIXED+PLANNED", 8), ("IDLE+POWERING_DOWN", 4), ("IDLE*+NOT_RESPONDING", 4)],
)
def test_a_node_that_sleeps_is_there(tmp_path: Path, state: str, gpus: int) -> None:
    shares, nodes = tmp_path / "sshare.txt", tmp_path / "nodes.txt"
    shares.write_text("Account|User|RawShares\nroot||1\n ml||1\n  ml|ann|1\n")
    nodes.write_text(f"NodeName=a Gres=gpu:4 State=IDLE\nNodeName=b Gres=gpu:4 State={state}\n")
    assert slurm.read(shares, nodes).problem.capacity.tolist() == [gpus]


def _answers(reader: Callable[[Path], object], path: Path) -> None:
    with suppress(BadInput):
        reader(path)


MANGLED = st.sampled_from(
    ["", "-1", "inf", "nan", "parent", "9" * 50, "1e400", "(null)", "[", "=", "é", "\x00", "gpu:", "a[1-"]
)


@given(data=st.data())
def test_broken_text_is_an_answer_or_bad_input(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([path for path in EVERY if path.suffix == ".txt"]))
    lines = sample.read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        mark = "|" if "|" in lines[at] else "="
        cells = lines[at].split(mark)
        cells[data.draw(st.integers(0, len(cells) - 1))] = data.draw(MANGLED)
        lines[at : at + 1] = data.draw(
            st.sampled_from([[], [lines[at]] * 2, [mark.join(cells)], [mark.join(cells[1:])]])
        )
        lines = lines or [""]
    path = tmp_path_factory.mktemp("slurm") / sample.name
    path.write_text("\n".join(lines), encoding="utf-8")
    for reader in (slurm.read, sacct.read, job_csv.read):
        _answers(reader, path)


@given(data=st.data())
def test_broken_json_is_an_answer_or_bad_input(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([path for path in EVERY if path.suffix == ".json"]))
    value = json.loads(sample.read_text())
    at, way = value, data.draw(st.integers(1, 8))
    for _ in range(way):
        inside = [
            each for each in (at.values() if isinstance(at, dict) else at) if isinstance(each, dict | list) and each
        ]
        if not inside:
            break
        at = data.draw(st.sampled_from(inside))
    deep: object = []
    for _ in range(data.draw(st.sampled_from([1, 50, 3000]))):
        deep = [deep]
    strange = data.draw(st.one_of(MANGLED, st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.just(deep)))
    place = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[place] = strange
    path = tmp_path_factory.mktemp("slurm") / sample.name
    try:
        path.write_text(json.dumps(value))
    except RecursionError:
        return
    _answers(slurm.read, path)


def test_json_on_one_long_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sshare.json"
    path.write_text(json.dumps({"filler": "x" * 1_100_000} | json.loads((SAMPLES / "sshare.json").read_text())))
    assert slurm.read(path).problem == slurm.read(SAMPLES / "sshare.json").problem


def test_a_large_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    with path.open("w") as out:
        out.write("JobID|Account|User|Submit|Elapsed|State|AllocTRES\n")
        out.writelines(
            f"{n}|a{n % 7}|u|2026-01-01T00:{n % 60:02}:00|00:01:00|COMPLETED|gres/gpu=1\n" for n in range(20_000)
        )
    jobs = sacct.read(path).problem.jobs
    assert len(jobs) == 20_000
    assert np.all(np.diff(jobs.arrival.astype(float)) >= 0)


def test_a_name_that_no_terminal_can_print_is_named_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "assoc.json"
    each = {"account": "ml", "user": "u", "shares_raw": 1}
    names = ("alpha", "\ud800")
    path.write_text(json.dumps({"associations": [{**each, "cluster": name} for name in names]}))
    with pytest.raises(BadInput) as refused:
        slurm.read(path)
    assert "got the clusters 'alpha', '\\ud800'" in str(refused.value)
    assert str(refused.value).encode()


def test_a_node_that_says_two_numbers_of_gpus_is_told(tmp_path: Path) -> None:
    """One of them was taken without a word."""
    path = tmp_path / "nodes.txt"
    for counted, told in ((4, []), (8, ["'a1: 8 GPUs'"])):
        path.write_text(f"NodeName=a1 Gres=gpu:a100:4\n   State=IDLE\n   CfgTRES=cpu=64,gres/gpu={counted}\n")
        found = slurm.read(path, SAMPLES / "squeue.txt")
        assert [each.value for each in found.unplaced if each.place.endswith("CfgTRES")] == told


def test_of_jobs_alike_the_lower_number_goes_first_in_whatever_order_they_are_listed(tmp_path: Path) -> None:
    """squeue lists them by falling numbers; Slurm 22.05.8 starts them by rising ones."""
    head = "JOBID|USER|ACCOUNT|STATE|SUBMIT_TIME|NODES|TRES_PER_NODE|NODELIST(REASON)\n"
    rest = "ann|ml|PENDING|2026-11-28T10:00:00|1|gpu:a100:2|(None)\n"
    path = tmp_path / "squeue.txt"
    path.write_text(head + "".join(f"{job}|{rest}" for job in ("10", "9", "7_10", "7_9")))
    assert slurm.read(path).problem.entitlements.gangs.names == ("7_9", "7_10", "9", "10")


def test_a_cap_on_cpus_counts_what_squeue_says_a_job_takes(tmp_path: Path) -> None:
    """GrpTRES=cpu=4 stopped jobs of a live Slurm 22.05.8 that squeue listed with their GPUs alone."""
    shares, nodes, jobs = (tmp_path / name for name in ("assoc.txt", "nodes.txt", "squeue.txt"))
    shares.write_text("Cluster|Account|User|Share|GrpTRES\nc|root||1|\nc| ml||1|cpu=4\nc|  ml|ann|1|\n")
    nodes.write_text("NodeName=n1\n   Gres=gpu:a100:8\n   State=IDLE\n   CfgTRES=cpu=64,mem=4000M,gres/gpu=8\n")
    head = "JOBID|USER|ACCOUNT|STATE|NODES|NODELIST(REASON)|TRES_PER_NODE|CPUS\n"
    jobs.write_text(head + "".join(f"{job}|ann|ml|PENDING|1|(None)|gpu:a100:1|2\n" for job in range(1, 5)))
    market = slurm.read(shares, nodes, jobs).problem
    assert allocate(SlurmFairTree(), market, exact=True).shares.tolist() == [[2]]


@pytest.mark.parametrize(
    ("reason", "waits", "why"),
    [
        ("(PartitionDown)", False, "no free GPU starts such a job"),
        ("(ReqNodeNotAvail, UnavailableNodes:n[1-2])", False, "no free GPU starts such a job"),
        ("(launch failed requeued held)", False, "no free GPU starts such a job"),
        ("(QOSMaxGRESPerUser)", False, "a limit that Slurm states: no free GPU starts such a job"),
        ("(AssocMaxJobsLimit)", False, "a limit that Slurm states: no free GPU starts such a job"),
        ("(MaxGRESPerAccount)", False, "a limit that Slurm states: no free GPU starts such a job"),
        ("(MaxGRESRunMinsPerUser)", False, "a limit that Slurm states: no free GPU starts such a job"),
        (
            "(Job's QOS not permitted to use this partition (r denies low including low))",
            False,
            "no free GPU starts such",
        ),
        ("(MpiPortsBusy)", False, "no free GPU starts such a job"),
        ("(ReservationInvalid)", False, "no free GPU starts such a job"),
        ("(job requeued in held state)", False, "no free GPU starts such a job"),
        ("(Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions)", True, ""),
        ("(AssocGrpGRES)", False, "a limit that Slurm states and no file here has"),
        ("(SomethingNew)", True, "not known here"),
        ("(Priority)", True, ""),
        ("(Resources)", True, ""),
        ("(None)", True, ""),
        ("", True, ""),
    ],
)
def test_a_reason_that_slurm_states_is_known_or_told(tmp_path: Path, reason: str, waits: bool, why: str) -> None:
    """Jobs of a partition that is down were said to be stopped by nothing, and their users starved."""
    shares, nodes, jobs = (tmp_path / name for name in ("sshare.txt", "nodes.txt", "squeue.txt"))
    shares.write_text("Account|User|RawShares\nroot||1\n ml||1\n  ml|ann|1\n")
    nodes.write_text("NodeName=n1\n   Gres=gpu:a100:4\n   State=IDLE\n")
    line = "1|ann|ml|PENDING|1|gpu:a100:2"
    jobs.write_text(f"JOBID|USER|ACCOUNT|STATE|NODES|TRES_PER_NODE|NODELIST(REASON)\n{line}|{reason}\n")
    found = slurm.read(shares, nodes, jobs)
    assert bool(found.problem.entitlements.gangs.names) == waits
    told = [each.why for each in found.unplaced if "Reason" in each.place]
    assert [each.startswith(why) for each in told] == [True] * bool(why)
    jobs.write_text(f"JOBID|USER|ACCOUNT|STATE|NODES|TRES_PER_NODE|REASON\n{line}|{reason.strip('()')}\n")
    assert slurm.read(shares, nodes, jobs).unplaced == found.unplaced
    each = {
        "job_id": 1,
        "user_name": "ann",
        "account": "ml",
        "job_state": ["PENDING"],
        "tres_req_str": "gres/gpu:a100=2",
    }
    path = tmp_path / "squeue.json"
    path.write_text(json.dumps({"jobs": [each | {"state_reason": reason.strip("()")}]}))
    assert bool(slurm.read(shares, nodes, path).problem.entitlements.gangs.names) == waits
    jobs.write_text(
        f"JobId=1 UserId=ann(7) Account=ml JobState=PENDING Reason={reason.strip('()').replace(' ', '_')} "
        "NumNodes=1 TresPerNode=gres/gpu:a100:2\n"
    )
    assert bool(slurm.read(shares, nodes, jobs).problem.entitlements.gangs.names) == waits
