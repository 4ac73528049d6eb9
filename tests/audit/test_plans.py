"""Plans: what is emitted, read back by our importers, is what was planned, on random clusters of every scheduler."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from drawn_seeds import seeds
from live_plan import BEGIN, END, GPUS, MODELS, NEAR, PAGE, SPEED, accounted, in_model, measured
from planned_clusters import SCHEDULERS, TYPES, slurm
from typer.testing import CliRunner

from fairopt import discovery
from fairopt.audit import plan
from fairopt.audit.reading import read_source
from fairopt.cli.app import app
from fairopt.cli.output_schema import OUTPUTS
from fairopt.errors import BadInput, FairoptError
from fairopt.problem import Market

POLICIES = ("oef-cooperative", "oef-noncooperative", "max-min", "equal-split", "nash-welfare", "gavel-proportional")
SEEDS = seeds(4, 12)


def _table(folder: Path, rows: list[str], types: tuple[str, ...], draw: random.Random) -> Path:
    lines = [",".join(["user", *types])]
    lines += [",".join([row, *(f"{draw.randint(10, 60) / 10}" for _ in types)]) for row in rows]
    path = folder / "throughput.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", discovery.names(discovery.PLANNERS))
def test_what_is_emitted_is_read_back_as_planned(name: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"{name} {seed}")
    make, apply = SCHEDULERS[name]
    written = make(tmp_path, draw)
    table = _table(tmp_path, written.rows, written.types, draw)
    before: Market = read_source(written.files, name).problem
    found = plan(written.files, POLICIES[seed % len(POLICIES)], table, importer=name)
    assert (found.held >= 0).all()
    assert (found.held.sum(axis=0) <= before.capacity).all()
    after: Market = read_source(apply(written, found.apply).files, name).problem
    said, want = after.entitlements, found.after.entitlements
    assert said is not None
    assert want is not None
    n, k = len(said.users), len(before.types)
    assert said.nodes == want.nodes
    assert (said.guarantee[:, :k] == want.guarantee[:, :k]).all()
    assert (said.guarantee[:n] == want.guarantee[:n]).all()
    if name != "yarn":  # what a user may have there follows its capacity
        assert (said.cap[:n] == want.cap[:n]).all()
    assert (said.reserve[:n] == want.reserve[:n]).all()
    assert (said.borrow_weight == want.borrow_weight).all()
    if name in ("kueue", "kai", "volcano", "yarn"):
        for row, nodes in zip(found.held, map(_nodes, found.market.users), strict=True):
            owed = said.guarantee[[said.node(node) for node in nodes], :k].sum(axis=0)
            assert (owed == row).all()
            assert all(each == int(each) for each in row)
            assert np.abs(owed - row).max() < 1
    # and undone
    again: Market = read_source(apply(written, found.undo).files, name).problem
    assert again.entitlements is not None
    assert before.entitlements is not None
    for what in ("guarantee", "reserve", "borrow_weight", "tier"):
        assert (getattr(again.entitlements, what)[:, ...] == getattr(before.entitlements, what)).all(), what
    assert (again.entitlements.cap == before.entitlements.cap).all()


def _nodes(row: str) -> list[str]:
    return [part.strip() for part in row.split("+")]


@pytest.mark.parametrize("seed", SEEDS)
def test_slurm_is_told_the_parts_by_billing_and_limits_above_them(seed: int, tmp_path: Path) -> None:
    """Decided again by hand: an account's number over that of its siblings is what their parts are billed."""
    draw = random.Random(seed)
    written = slurm(tmp_path, draw)
    found = plan(written.files, "max-min", _table(tmp_path, written.rows, TYPES, draw), importer="slurm")
    owed = found.after.entitlements
    assert owed is not None
    parts = dict(zip(found.market.users, found.held.sum(axis=1), strict=True))
    for node, name in enumerate(owed.nodes):
        if name in parts:
            row = found.held[found.market.users.index(name)]
            assert all(0 <= cap - gpus < 1 for cap, gpus in zip(owed.cap[node, :2], row, strict=True))
    for family in (owed.tops, *owed.children):
        own = [node for node in family if _part(owed, node, parts)]
        for one in own if len(family) > 1 else ():
            told = owed.borrow_weight[one] / sum(owed.borrow_weight[node] for node in own)
            want = _part(owed, one, parts) / sum(_part(owed, node, parts) for node in own)
            assert abs(told - want) < Fraction(1, 100_000)


def _part(owed: object, node: int, parts: dict[str, Fraction]) -> Fraction:
    name = owed.nodes[node]  # type: ignore[attr-defined]
    below = owed.children[node]  # type: ignore[attr-defined]
    return parts[name] if name in parts else sum((_part(owed, child, parts) for child in below), Fraction(0))


def test_what_is_planned_is_the_policys_decision_up_to_whole_gpus(tmp_path: Path) -> None:
    """Two ClusterQueues of 6 and 6 GPUs of each type that are 1 and 4 times as fast on the second."""
    from planned_clusters import Written, _kueue, _saved

    def queue(name: str) -> dict[str, object]:
        flavors = [{"name": kind, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 6}]} for kind in TYPES]
        groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
        return _kueue("ClusterQueue", name, {"cohortName": "all", "resourceGroups": groups})

    written = Written([_saved(tmp_path / "now.json", [queue("slow"), queue("fast")])], ["slow", "fast"])
    (tmp_path / "t.csv").write_text("user,a100,h100,v100\nslow,1,2,0\nfast,1,5,0\n")
    found = plan(written.files, "oef-cooperative", tmp_path / "t.csv")
    assert found.shares.tolist() == [[12, 3], [0, 9]]  # OEF Eq. (6), 12 of each for 1 of each
    assert found.held.tolist() == found.shares.tolist()
    assert found.today.tolist() == [[6, 6], [6, 6]]
    assert found.is_owed
    today, policy, planned = found.verdicts["pareto_efficiency"]
    assert (today.holds, policy.holds, planned.holds) == (False, True, True)
    assert found.market.utility(found.held).tolist() == [18, 45]
    assert "v100" in found.lost[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user,a100\nlab0,1\n", "no column for the GPU type 'h100'"),
        ("user,a100,h100\n", "no row"),
        ("user,a100,h100\nlab9,1,1\n", "there is no user or group 'lab9'"),
        ("user,a100,h100\nlab0,1,1\nlab0/ada,1,1\n", "has its throughput from the row 'lab0' too"),
        ("user,a100,h100\nlab0,1\n", "2 cells for 3 columns"),
        ("user,a100,h100\nlab0,1,fast\n", "line 2, h100"),
        ("user,a100,h100\nlab0,0,0\n", "no throughput on any type"),
        ("user,a100,h100,weight\nlab0,1,1,0\n", "has the weight 0"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    written = slurm(tmp_path, random.Random(0))
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match=words) as caught:
        plan(written.files, "max-min", tmp_path / "t.csv", importer="slurm")
    assert "t.csv" in str(caught.value)
    assert caught.value.remedy


def test_a_user_with_jobs_and_no_row_is_named(tmp_path: Path) -> None:
    written = slurm(tmp_path, random.Random(0))
    jobs = tmp_path / "squeue.txt"
    jobs.write_text(
        "JOBID|PARTITION|USER|ACCOUNT|QOS|STATE|SUBMIT_TIME|NODES|NODELIST(REASON)|TRES_PER_NODE\n"
        "1|all|ada|lab0|normal|PENDING|2026-11-22T06:00:00|1|(Priority)|gres/gpu:h100:1\n"
    )
    rows = [row for row in written.rows if row not in ("lab0", "lab0/ada")]
    table = _table(tmp_path, rows or ["lab1"], TYPES, random.Random(0))
    with pytest.raises(BadInput, match="no throughput of the user 'lab0/ada'"):
        plan([*written.files, jobs], "max-min", table, importer="slurm")


def test_a_scheduler_without_a_planner_and_a_rule_that_needs_quotas_are_refused(tmp_path: Path) -> None:
    written = slurm(tmp_path, random.Random(0))
    table = _table(tmp_path, written.rows, TYPES, random.Random(0))
    with pytest.raises(BadInput, match="Installed: armada, kai"):
        plan(written.files, "max-min", table, "lsf", importer="slurm")
    with pytest.raises(BadInput, match="a market names no scheduler"):
        plan(read_source(written.files, "slurm").problem, "max-min", table)
    with pytest.raises(FairoptError, match="decides by entitlements"):
        plan(written.files, "kueue", table, importer="slurm")


def test_the_command_writes_what_is_applied_and_undone(tmp_path: Path) -> None:
    written = slurm(tmp_path, random.Random(0))
    table = _table(tmp_path, written.rows, TYPES, random.Random(0))
    given = [*map(str, written.files), "--policy", "oef-cooperative", "--throughput", str(table)]
    out = tmp_path / "out"
    ran = CliRunner().invoke(app, ["plan", *given, "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    found = plan(written.files, "oef-cooperative", table)
    assert (out / "apply.sh").read_text() == found.apply
    assert (out / "undo.sh").read_text() == found.undo
    assert f"sh {out}/apply.sh" in ran.output
    printed = CliRunner().invoke(app, ["plan", *given, "--emit", "slurm"])
    assert printed.output.endswith(found.apply)
    told = json.loads(CliRunner().invoke(app, ["plan", *given, "--json"]).output)
    jsonschema.validate(told, OUTPUTS["plan"])
    assert told["users"].keys() == set(written.rows)
    assert told["apply"] == found.apply


@pytest.mark.parametrize("name", MODELS)
def test_in_our_models_all_hold_what_was_planned(name: str, tmp_path: Path) -> None:
    """Where all ask for more than there is, equal quotas give equal parts, and those of the plan what it says."""
    found, before, then = in_model(name, tmp_path)
    assert (before == before[0]).all()
    assert (before.sum(axis=0) == list(GPUS.values())).all()
    assert (then == found.held).all()
    assert not (then == before).all()


def test_what_was_measured_live_is_near_the_plan() -> None:
    """The figures on the page: each measured part of a type is within 5 % of the planned one."""
    page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = {cells[0]: cells[1:] for line in page.splitlines() if (cells := line.strip("| ").split(" | "))[0] in SPEED}
    assert set(rows) == set(SPEED)
    for cells in rows.values():
        for planned, got in zip(cells[0:4:2], cells[1:4:2], strict=True):
            want = float(planned.rstrip("%"))
            assert abs(float(got.rstrip("%")) - want) <= NEAR * want + 0.1  # both are rounded
        assert float(cells[-1]) > 1  # more than an equal share is worth


def test_what_sacct_says_is_added_up() -> None:
    """Two GPUs of each type, by hand: the window begins with the first job, and ends where a last one begins."""
    lines = [
        "vision|billing=1,gres/gpu:a100=1,gres/gpu=1|2026-11-28T10:00:00|2026-11-28T10:00:10|COMPLETED",
        "vision|billing=1,gres/gpu:a100=1,gres/gpu=1|2026-11-28T10:00:10|2026-11-28T10:00:20|COMPLETED",
        "speech|billing=1,gres/gpu:h100=1,gres/gpu=1|2026-11-28T10:00:05|2026-11-28T10:00:15|COMPLETED",
    ]
    found = measured(list(accounted("\n".join(lines))))
    assert found.seconds == 5  # speech's last begins then
    assert found.gpus.tolist() == [[1, 0], [0, 0], [0, 0]]
