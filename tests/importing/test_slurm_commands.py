"""Changes as sacctmgr commands: each kind of change, and what Slurm cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt.errors import BadInput
from fairopt.importing import slurm
from fairopt.importing.slurm_commands import emit
from fairopt.problem import Market
from fairopt.problem.entitlements import Entitlements

SAMPLES = Path(slurm.__file__).parent.parent / "datasets" / "clusters" / "slurm"


def market_of(tmp_path: Path, rows: str) -> Market:
    path = tmp_path / "assoc.txt"
    path.write_text("Account|User|Share|ParentName|GrpTRES\n" + rows)
    found: Market = slurm.read(path, SAMPLES / "nodes.txt").problem
    return found


def test_commands_name_the_cluster_where_the_files_do(tmp_path: Path) -> None:
    path = tmp_path / "assoc.txt"
    head, rows = "Cluster|Account|User|Share|ParentName\n", "c|root||1|\nc|ml||6|root\nc|ml|eve|1|\n"
    path.write_text(head + rows)
    before = slurm.read(path).problem
    path.write_text(head + rows.replace("eve|1", "gil|2").replace("||6", "||7"))
    assert emit(before, slurm.read(path).problem).splitlines() == [
        "sacctmgr -i remove user where name=eve account=ml cluster=c",
        "sacctmgr -i modify account where name=ml cluster=c set fairshare=7",
        "sacctmgr -i add user gil account=ml cluster=c fairshare=2",
    ]


def test_slurm_conf_says_which_of_several_clusters_is_meant(tmp_path: Path) -> None:
    path, config = tmp_path / "assoc.txt", tmp_path / "config.txt"
    path.write_text("Cluster|Account|User|Share\na|ml|u|1\nb|ml|u|2\n")
    with pytest.raises(BadInput, match="show config"):
        slurm.read(path)
    config.write_text("Configuration data as of 2026-11-28T12:00:00\nClusterName = b\n")
    found = slurm.read(path, config)
    assert found.problem.entitlements.borrow_weight[0] == 2
    assert any("only 'b' was asked for" in each.why for each in found.unplaced)
    assert slurm.read(path, config, cluster="a").problem.entitlements.borrow_weight[0] == 1


BEFORE = "root||1||\nml||60|root|gres/gpu:h100=12,mem=1G\nvision||1|ml|\nvision|eve|10||gres/gpu:h100=8\nnlp|gil|20||\n"


@pytest.mark.parametrize(
    ("old", "new", "command"),
    [
        ("vision|eve|10|", "vision|eve|30|", "sacctmgr -i modify user where name=eve account=vision set fairshare=30"),
        ("ml||60", "ml||parent", "sacctmgr -i modify account where name=ml set fairshare=parent"),
        ("=8\n", "=4\n", "sacctmgr -i modify user where name=eve account=vision set GrpTRES=gres/gpu:h100=4"),
        ("gres/gpu:h100=12,mem=1G", "mem=2G", "modify account where name=ml set GrpTRES=gres/gpu:h100=-1,mem=2048M"),
        ("vision||1|ml|", "vision||1|root|", "sacctmgr -i modify account where name=vision set parent=root"),
        ("vision|eve|10||gres/gpu:h100=8\n", "", "sacctmgr -i remove user where name=eve account=vision"),
        (
            "nlp|gil|20||\n",
            "nlp|gil|20||\nnlp|o'hara|5||\n",
            """sacctmgr -i add user 'o'"'"'hara' account=nlp fairshare=5""",
        ),
        ("vision||1|ml|\n", "vision||1|ml|\nnew||3|ml|\n", "sacctmgr -i add account new parent=ml fairshare=3"),
    ],
)
def test_each_change_is_a_command(tmp_path: Path, old: str, new: str, command: str) -> None:
    before, after = market_of(tmp_path, BEFORE), market_of(tmp_path, BEFORE.replace(old, new))
    assert emit(before, before) == ""
    assert emit(before, after).rstrip("\n").endswith(command)
    assert emit(before, after).count("\n") == 1


def test_what_slurm_has_not_is_said() -> None:
    def market(quota: int, gpus: int) -> Market:
        owed = Entitlements.of(["a/b"], ["h100"], group={"a/b": "a"}, guarantee={"a/b": [quota]})
        return Market.of([[1]], [gpus], users=["a/b"], types=["h100"], entitlements=owed)

    lines = emit(market(1, 8), market(2, 16)).splitlines()
    assert [line.split(":")[0] for line in lines] == ["# the GPUs themselves change", "# a/b"]


def test_names_that_are_none_of_slurms_are_refused() -> None:
    def market(weight: object) -> Market:
        owed = Entitlements.of(["b"], ["h100"], borrow_weight={"b": weight})
        return Market.of([[1]], [8], users=["b"], types=["h100"], entitlements=owed)

    with pytest.raises(BadInput, match="ACCOUNT/USER"):
        emit(market(1), market(2))
    with pytest.raises(BadInput, match=r"borrow_weight.*whole numbers"):
        emit(market(1), market("1/2"))
    with pytest.raises(BadInput, match="after: no entitlements"):
        emit(market(1), market(1).plain())


def test_two_files_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    tree, shares = tmp_path / "assoc.txt", tmp_path / "sshare.txt"
    tree.write_text("Cluster|Account|User|Share\nc|root||1\nc| above||1\nc|  a||1\nc|   a|ann|1\n")
    shares.write_text("Account|User|RawShares|NormShares|RawUsage\nroot||||9\n a||1|1.0|9\n  a|ann|1|1.0|9\n")
    with pytest.raises(BadInput) as refused:
        slurm.read(tree, shares)
    assert all(each in str(refused.value) for each in ("assoc.txt", "sshare.txt", "'above'", "'root'"))
