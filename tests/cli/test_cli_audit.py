"""`fairopt audit`, `explain` and `whatif` on scheduler's files and on markets, and what goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from ran_command import Ran

from fairopt import allocate, audit, discovery, write_market
from fairopt.audit import explain, whatif
from fairopt.audit.settings import with_settings
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported
from fairopt.problem import Entitlements, Gangs, Market

CLUSTERS = Path(str(files("fairopt.datasets") / "clusters"))
KUEUE = CLUSTERS / "kueue" / "cluster.json"
SAMPLES = [
    *([CLUSTERS / "kueue" / name] for name in ("cluster.json", "older.yaml", "story3.yaml")),
    *([CLUSTERS / "kai" / name] for name in ("cluster.yaml", "snapshot.json")),
    *([CLUSTERS / "volcano" / name] for name in ("capacity.json", "hdrf.yaml")),
    [CLUSTERS / "yarn" / "capacity-scheduler.xml", CLUSTERS / "yarn" / "scheduler.json"],
    [CLUSTERS / "slurm" / "sshare.txt"],
    [CLUSTERS / "slurm" / name for name in ("sshare.txt", "assoc.txt", "nodes.txt", "squeue.txt", "qos.txt")],
]
NOW = """
schema = 1
types = ["H100"]
capacity = [8]
user = [
  { name = "train", speedup = "unknown", guarantee = [6], cap = [8] },
  { name = "batch", speedup = "unknown", guarantee = [2] },
]
gang = [
  { name = "a", user = "train", gpus = 4 },
  { name = "b", user = "batch", gpus = 2, on = "H100" },
  { name = "c", user = "batch", gpus = 4, on = "H100" },
]
"""


@pytest.fixture
def now(tmp_path: Path) -> Path:
    file = tmp_path / "now.toml"
    file.write_text(NOW)
    return file


@pytest.mark.parametrize("paths", SAMPLES, ids=lambda paths: "/".join(paths[0].parts[-2:]))
def test_every_sample_is_recognised_and_its_certificates_are_accepted(
    paths: list[Path], fairopt: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = fairopt("audit", *paths, "--json", "--certificates", tmp_path / "certificates", "--html", tmp_path / "p.html")
    assert ran.status in (0, 1), ran.err
    assert ran.data["source"] == paths[0].parts[-2]
    assert ran.status == int(ran.data["violated"])
    assert ran.data["unplaced"]
    checked = fairopt("check", tmp_path / "certificates", "--json")
    assert checked.status == 0
    assert {each["status"] for each in checked.data["files"]} == {"accepted"}
    assert {Path(each["file"]).stem for each in checked.data["files"]} == set(ran.data["properties"])
    assert (tmp_path / "p.html").read_text().startswith("<!DOCTYPE html>")


def test_words_for_people_and_the_status_for_scripts(now: Path, fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("audit", now, "--policy", "kueue")
    assert ran.status == 1
    for words in (
        "1 STARVED, 1 BORROWING",
        "train: a (4 GPUs) waits: train is owed 4 more H100, 2 are free, and batch holds 4 more than it is owed",
        "reclaim 2 H100: stop b of batch. Then a runs",
        "kueue: ",
    ):
        assert words in ran.out
    text = NOW.replace('{ name = "a", user = "train", gpus = 4 },', "")
    now.write_text(text)
    assert fairopt("audit", now).status == 0


@pytest.mark.parametrize("grouped", [True, False])
def test_of_many_lines_the_first_are_shown_and_the_others_counted(
    grouped: bool, fairopt: Callable[..., Ran], tmp_path: Path
) -> None:
    """Everybody holds or waits but three; who starves comes first, and groups last."""
    users = [f"user{number}" for number in range(50)]
    gangs = Gangs.of(users[:47], [1] * 47, users=users, types=["T"], on=[None, *["T"] * 46])
    group = dict.fromkeys(users, "all") if grouped else None
    owed = Entitlements.of(users, ["T"], guarantee={user: [1] for user in users}, group=group, gangs=gangs)
    market = Market.of([[1]] * 50, [50], users=users, types=["T"], entitlements=owed)
    write_market(market, tmp_path / "many.toml")
    asked = ("audit", tmp_path / "many.toml", "--policy", "drf")
    short, whole = fairopt(*asked).out, fairopt(*asked, "--verbose").out
    lines, every = (re.findall(r"^ (?:user\d+|\(all\)) .*T .*$", text, re.MULTILINE) for text in (short, whole))
    assert (len(lines), len(every), lines[0].split()[0]) == (40, 50 + grouped, "user0")
    assert f"{47 + grouped - 40} more lines: --verbose shows all" in short
    assert ("(NAME) is a group" in short) == ("(NAME) is a group" in whole) == grouped
    assert ("(all)" in every[-1]) == grouped


def test_what_cannot_be_decided_is_said_by_the_status(now: Path, fairopt: Callable[..., Ran]) -> None:
    two = NOW.replace('["H100"]', '["H100", "A100"]').replace("capacity = [8]", "capacity = [8, 8]")
    now.write_text(
        two.replace("[6], cap = [8]", "[6, 0]").replace("[2]", "[2, 0]").replace("gpus = 4", 'gpus = 6, on = "A100"', 1)
    )
    ran = fairopt("audit", now, "--property", "envy_freeness")  # which of the types is faster for train?
    assert ran.status == 4, ran.out


def test_rates_and_speedups_make_all_properties_decidable(
    now: Path, fairopt: Callable[..., Ran], tmp_path: Path
) -> None:
    rates, speedups = tmp_path / "rates.toml", tmp_path / "speedups.csv"
    rates.write_text("H100 = 2\n")
    speedups.write_text("user,H100\nbatch,1\ntrain,3\n")
    for option, file in (("--rates", rates), ("--speedups", speedups)):
        ran = fairopt("audit", now, option, file, "--json")
        assert ran.data["properties"]["envy_freeness"]["answer"] == "FAILS"
    both = fairopt("audit", now, "--rates", rates, "--speedups", speedups)
    assert (both.status, "Give one of them" in both.err) == (2, True)
    rates.write_text("H200 = 2\n")
    assert "Did you mean 'H100'?" in fairopt("audit", now, "--rates", rates).err


def test_mistakes_are_named_with_what_to_do(now: Path, fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("hello\n")
    for words, arguments in (
        ("Did you mean 'train'?", ("explain", now, "trian")),
        ("Did you mean 'train.H100'?", ("whatif", now, "--set", "trian.H100.quota=8")),
        ("Did you mean 'quota'?", ("whatif", now, "--set", "train.H100.qota=8")),
        ("Did you mean 'H100'?", ("whatif", now, "--set", "H10.capacity=8")),
        ("Write NAME.TYPE.quota=8", ("whatif", now, "--set", "train")),
        ("got -1", ("whatif", now, "--set", "train.weight=-1")),
        ("or train.H100.cap to 9 or more too", ("whatif", now, "--set", "train.H100.quota=9")),
        ("Give --set, or two files to compare", ("whatif", now)),
        ("Did you mean kueue?", ("audit", now, "--from", "kueu")),
        ("Name the importer, to see what it lacks: --from NAME", ("audit", other)),
        ("no importer reads it", ("audit", tmp_path)),
        ("there is no such file. Known files: notes.txt", ("audit", tmp_path / "none")),
        ("there is no such file", ("audit", tmp_path / "none.json")),
        ("speedup", ("audit", _without(now, 'speedup = "unknown", '))),
        ("nothing of entitlements", ("audit", "@oef-eq6")),
    ):
        ran = fairopt(*arguments)
        assert (ran.status, words in ran.err) == (2, True), ran.err
        assert ran.err.count("\n") == 1


def _without(file: Path, words: str) -> Path:
    other = file.with_name("other.toml")
    other.write_text(file.read_text().replace(words, ""))
    return other


def test_files_that_several_importers_read_are_nobodys(now: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    market = audit(now, policies=[]).market
    readers = {"one": lambda path: market, "two": lambda path: Imported(market), "trace": lambda path: 3}
    monkeypatch.setattr(discovery, "names", lambda group: list(readers))
    monkeypatch.setattr(discovery, "load", lambda group, name: readers[name])
    now.rename(now.with_suffix(".dump"))
    with pytest.raises(BadInput, match="one and two can read it"):
        audit(now.with_suffix(".dump"), policies=[])
    assert audit(now.with_suffix(".dump"), importer="two", policies=[], properties=[]).source == "two"


def test_explain_says_what_a_gpu_more_gives(now: Path, fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("explain", now, "train", "--policy", "hierarchical-water-filling")
    assert ran.status == 0
    assert "Smallest remedy: reclaim 2 H100: stop b of batch" in ran.out
    gangs = [("train", 1, True), ("train", 3, False), ("train", 2, False), ("batch", 2, True), ("batch", 3, True)]
    listed = [
        f'{{ name = "g{number}", user = "{user}", gpus = {gpus}' + ', on = "H100"' * on + " }"
        for number, (user, gpus, on) in enumerate(gangs)
    ]
    head = NOW.partition("gang =")[0].replace("[6], cap = [8]", "[2]")
    now.write_text(f"{head}gang = [{', '.join(listed)}]")
    found = explain(now, "train", policies=["kueue"])
    gains = {str(each.change): each.gains for each in found.sensitivities}
    assert gains["train.H100.quota+=1"] == {"H100": 2}  # its gang of 2 then fits into its quota and what it may borrow
    assert gains["H100.capacity+=3"] == {}  # one more gave nothing, nor do as many as its first gang takes
    for each in found.sensitivities:
        market = with_settings(found.found.market, [each.change])
        more = allocate("kueue", market).shares - allocate("kueue", found.found.market).shares
        assert (each.gains.get("H100", 0), each.others) == (more[0, 0], more[1, 0])


def test_loans_are_the_least_that_lets_a_gang_run(now: Path) -> None:
    now.write_text(NOW.replace("gpus = 4 },", "gpus = 8 },", 1).replace("cap = [8]", "cap = [7]"))
    [loan] = explain(now, "train", policies=[]).loans
    assert str(loan) == "a could run on H100: raise the cap of train from 7 to 8; free or add 6 H100"
    now.write_text(
        NOW.replace("gpus = 4 },", "gpus = 8 },", 1).replace("guarantee = [2]", "guarantee = [8], reserve = [8]")
    )
    [loan] = explain(now, "train", policies=[]).loans
    assert loan.steps == ("let batch lend 2 of the 2 H100 that it keeps", "free or add 6 H100")


def test_whatif_says_who_stands_differently(now: Path, fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("whatif", now, "--set", "batch.H100.quota=6", "--set", "train.H100.quota=2", "--json")
    assert ran.status == 0
    assert [(each["name"], each["after"]) for each in ran.data["footings"]] == [
        ("train", "WITHIN"),
        ("batch", "WITHIN"),
    ]
    assert ran.data["mended"]
    back = fairopt("whatif", _without(now, "guarantee = [6], "), now)
    assert back.status == 1
    assert "Newly broken:" in back.out


def test_what_nodes_that_go_leave_overbooked_is_said(now: Path, fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    asked = ("whatif", now, "--set", "H100.capacity=2", "--policy", "kueue")
    ran = fairopt(*asked, "--html", tmp_path / "page.html")
    words = "GPUs of H100 are held, and there would be 2: some gangs must go"
    assert words in ran.out
    assert words in (tmp_path / "page.html").read_text(encoding="utf-8")
    after = fairopt(*asked, "--json").data["after"]["types"]["H100"]
    assert (after["held"] > after["gpus"], after["free"]) == (True, 0)
    assert "must go" not in fairopt("whatif", now, "--set", "train.weight=2", "--policy", "kueue").out


def test_an_audit_says_that_more_is_held_than_there_is(now: Path, fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    market, page = tmp_path / "over.toml", tmp_path / "page.html"
    market.write_text(re.sub(r"capacity = \[\d+\]", "capacity = [2]", now.read_text()))
    ran = fairopt("audit", market, "--policy", "kueue", "--html", page)
    held = int(re.search(r"2 H100 \((\d+) held, too many\)", ran.out)[1])  # type: ignore[index]
    assert held > 2
    text = page.read_text(encoding="utf-8")
    assert "More H100 are held than there are." in text
    assert re.search(rf">2</td>\s*<td[^>]*>{held}</td>\s*<td[^>]*>0</td>", text)


def test_a_rule_that_gives_out_too_much_is_said(now: Path, fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    """Kueue counts quotas: it starts 4 H100 of train within its quota of 6, and batch keeps its 6 of 8."""
    page = tmp_path / "page.html"
    words = "10 H100 are given out, and there are 8"
    ran = fairopt("audit", now, "--policy", "kueue", "--policy", "volcano-capacity", "--html", page)
    assert f"  kueue: {words}\n" in ran.out
    assert ran.out.count("are given out") == page.read_text(encoding="utf-8").count(words) == 1


def test_one_is_said_of_one(now: Path, fairopt: Callable[..., Ran]) -> None:
    alone = now.with_name("alone.toml")
    alone.write_text(
        'schema = 1\ntypes = ["T"]\ncapacity = [2]\nuser = [{ name = "u", speedup = [1], group = "g" }]\n'
        'group = [{ name = "g" }]\ngang = [{ name = "a", user = "u", gpus = 1 }]\n'
    )
    said = fairopt("audit", alone, "--policy", "kueue").out
    assert said.startswith("1 user in 1 group, 2 T (2 free); 0 gangs run, 1 waits\n")
    assert "a (1 GPU) waits: " in said


def test_a_change_that_no_object_says_is_named(now: Path, fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("whatif", now, "--set", "H100.capacity=16", "--policy", "kueue", "--emit", "kueue")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == "fairopt: --emit: kueue has no object that says what changes here\n"


def test_whatif_says_which_verdicts_change(now: Path, fairopt: Callable[..., Ran]) -> None:
    change = ("--set", "batch.H100.quota=8", "--set", "train.H100.quota=0", "--policy", "kueue")
    ran = fairopt("whatif", now, *change)
    rows = {line.split()[0]: re.split(r"\s{2,}", line.strip()) for line in ran.out.splitlines() if line.strip()}
    assert rows["guarantee_kept"][:5] == ["guarantee_kept", "NO", "-4 GPUs of H100", "yes", "0 GPUs of H100"]
    said = fairopt("whatif", now, *change, "--json").data["verdicts"]
    pair = said["guarantee_kept"]
    assert [pair[when]["answer"] for when in ("before", "after")] == ["FAILS", "HOLDS"]
    assert [pair[when]["margin"] for when in ("before", "after")] == [-4, 0]
    for name, both in said.items():
        assert rows[name][0] == name
        assert both["before"] != both["after"]


def test_whatif_says_that_no_verdict_changes_and_which_one_nobody_asked_for(
    now: Path, fairopt: Callable[..., Ran]
) -> None:
    same = fairopt("whatif", now, now, "--policy", "kueue")
    assert "No verdict on the GPUs held changes." in same.out
    assert fairopt("whatif", now, now, "--policy", "kueue", "--json").data["verdicts"] == {}
    uncapped = _without(now, ", cap = [8]")
    [row] = [line for line in fairopt("whatif", uncapped, now).out.splitlines() if "not asked" in line]
    assert re.split(r"\s{2,}", row.strip())[:3] == ["cap_kept", "not asked", "yes"]
    assert fairopt("whatif", uncapped, now, "--json").data["verdicts"]["cap_kept"]["before"] is None


def test_settings_of_names_with_dots_and_of_groups() -> None:
    users, types = ["a.b", "c"], ["T.1"]
    gangs = Gangs.of(["a.b"], [2], users=users, types=types)
    given = {"guarantee": {"a.b": [2], "c": [2]}, "group": {"a.b": "g", "c": "g"}}
    market = Market.of(
        [[1]] * 2, [4], users=users, types=types, entitlements=Entitlements.of(users, types, gangs=gangs, **given)
    )
    found = whatif(market, ["a.b.T.1.quota+=3", "g.weight=2", "T.1.capacity=9", "c.T.1.cap=none"], policies=[])
    after = found.after.accounts
    assert [after.said.guarantee[node, 0] for node in range(3)] == [5, 2, 7]  # the group has what its members have
    assert found.implied == ("g.T.1.quota=7",)
    assert (after.market.capacity[0], after.said.borrow_weight[2]) == (9, 2)
    low = Entitlements.of(users, types, **given | {"guarantee": {"a.b": [2], "c": [2], "g": [1]}})
    apart = whatif(
        Market.of([[1]] * 2, [4], users=users, types=types, entitlements=low), ["a.b.T.1.quota=3"], policies=[]
    )
    assert apart.after.accounts.said.guarantee[2, 0] == 1  # a group's own number is its own


def _of_two(quota: int) -> Market:
    entitlements = Entitlements.of(["a", "b"], ["T"], guarantee={"a": [quota], "b": [2]})
    return Market.of([[1], [1]], [10], users=["a", "b"], types=["T"], entitlements=entitlements)


def test_a_policy_that_no_longer_decides_gives_nothing_the_same(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    write_market(_of_two(8), tmp_path / "now.toml")
    found = whatif(_of_two(8), ["a.T.quota=9"], policies=["max-min"])
    assert list(found.undecided) == ["max-min"]
    assert "add up to 11" in found.undecided["max-min"][1]
    asked = ("whatif", tmp_path / "now.toml", "--set", "a.T.quota=9", "--policy", "max-min")
    printed = fairopt(*asked).out
    assert "max-min, before: decides\nmax-min, after:  guarantee, 'T'" in printed
    assert "gives anything different" not in printed
    assert fairopt(*asked, "--json").data["undecided"]["max-min"]["before"] is None


@pytest.mark.parametrize("name", discovery.names(discovery.EMITTERS))
def test_a_change_is_written_as_the_scheduler_takes_it(name: str, fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    change = {
        "kueue": (KUEUE, "vision.h100.quota=24", r"kind: ClusterQueue(?s:.*)name: vision(?s:.*)nominalQuota: '24'"),
        "kai": (CLUSTERS / "kai" / "cluster.yaml", "llm.h100.quota=8", '"quota": 8'),
        "slurm": (
            CLUSTERS / "slurm" / "sshare.txt",
            "hep/bo.weight=4",
            "sacctmgr .* name=bo account=hep set fairshare=4",
        ),
        "volcano": (CLUSTERS / "volcano" / "capacity.json", "vision.weight=4", '"weight": 4'),
        "yarn": (
            CLUSTERS / "yarn" / "absolute.xml",
            "root.train.default.cap=16",
            r"root\.train\.maximum-capacity</name><value>\[yarn\.io/gpu=16,memory-mb=204800,vcores=200\]",
        ),
        "armada": (CLUSTERS / "armada" / "cluster.json", "students.weight=0.5", "name: students\npriorityFactor: 2.0"),
    }
    file, setting, written = change[name]
    beside = [CLUSTERS / "yarn" / "metrics.json"] if name == "yarn" else []
    ran = fairopt("whatif", file, *beside, "--set", setting, "--policy", "kueue", "--emit", name)
    assert ran.status == 0, ran.err
    assert re.search(written, ran.out)
    again = json.loads(fairopt("whatif", file, *beside, "--set", setting, "--emit", name, "--json").out)
    assert again["emitted"] == ran.out


def test_what_volcanos_queues_say_they_hold_is_added_up_again(tmp_path: Path) -> None:
    document = json.loads((CLUSTERS / "volcano" / "capacity.json").read_text())
    found = audit(CLUSTERS / "volcano" / "capacity.json", policies=[])
    known = [each for each in found.declared if each.computed is not None]
    assert (len(known), [each for each in known if each.differs]) == (35, [])
    for item in document["items"]:
        if (item["kind"], item["metadata"]["name"]) == ("Queue", "language"):
            item["status"]["allocated"]["nvidia.com/a100"] = "7"
    (tmp_path / "now.json").write_text(json.dumps(document))
    [wrong] = [each for each in audit(tmp_path / "now.json", policies=[]).declared if each.differs]
    said = "language, status.allocated nvidia.com/a100: the file says 7, the sum of the gangs that run computes 6"
    assert str(wrong) == said


def test_what_kais_queues_say_they_hold_is_added_up_again(tmp_path: Path) -> None:
    text = (CLUSTERS / "kai" / "cluster.yaml").read_text()
    found = audit(CLUSTERS / "kai" / "cluster.yaml", policies=[])
    known = [each for each in found.declared if each.computed is not None]
    assert (len(known), [each for each in known if each.differs]) == (14, [])
    document = yaml.safe_load(text)
    for item in document["items"]:
        if (item["kind"], item["metadata"]["name"]) == ("Queue", "vision"):
            item["status"]["allocated"]["nvidia.com/gpu"] = "12"
    (tmp_path / "now.yaml").write_text(yaml.safe_dump(document))
    [wrong] = [each for each in audit(tmp_path / "now.yaml", policies=[]).declared if each.differs]
    assert str(wrong) == "vision, allocated h100: the file says 12, the sum of what runs computes 14"


def test_values_that_a_file_states_are_computed_again(tmp_path: Path) -> None:
    text = (CLUSTERS / "slurm" / "sshare.txt").read_text()
    found = audit(CLUSTERS / "slurm" / "sshare.txt")
    known = [each for each in found.declared if each.computed is not None]
    assert {each.what for each in known} == {"FairShare", "LevelFS", "EffectvUsage", "NormShares", "NormUsage"}
    assert not [each for each in known if each.differs]
    other = tmp_path / "sshare.txt"
    other.write_text(text.replace("0.555556", "0.777778"))
    [wrong] = [each for each in audit(other).declared if each.differs]
    assert str(wrong) == "hep/ada, FairShare: the file says 0.777778, slurm-fair-tree computes 0.555556"


def test_what_mends_do_not_look_at_is_said(fairopt: Callable[..., Ran]) -> None:
    assert "with enough cpu and memory" in fairopt("audit", KUEUE).out
    assert json.loads(fairopt("audit", KUEUE, "--json").out)["mends_leave_aside"] == ""
    gangs = Gangs.of(["a"], [1], users=["a"], types=["T"], other={"cpu": [1]})
    owed = Entitlements.of(["a"], ["T"], gangs=gangs)
    bare = audit(Market.of([[1]], [1], users=["a"], types=["T"], entitlements=owed), policies=[])
    assert bare.unlooked == "Whether there is enough cpu was not looked at: the file does not say"
