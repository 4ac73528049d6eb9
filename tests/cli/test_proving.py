"""The commands ``check`` and ``claims``, the evidence that ``compare`` writes, and the ledger as a whole."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from ran_command import Ran

from fairopt.errors import BadInput, NotInstalled
from fairopt.proofs.ledger import page
from fairopt.proofs.ledger.entries import Entry, Finding, Ruling, ledger, read_package

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "fairopt" / "datasets" / "oef_example.toml"
#: What the ledger was asked to decide: names, kinds, and what the words were, which the rows do not repeat.
ASKED = ROOT / "tests" / "proofs" / "asked_claims.csv"


def test_compare_is_exact_and_its_evidence_is_accepted(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    status, out, err = fairopt("compare", EXAMPLE, "--json", "--evaluations", 4, "--certificates", tmp_path)
    assert status == 0
    for name, row in json.loads(out)["policies"].items():
        for of, verdict in row["properties"].items():
            kinds = verdict.get("by_misreport", {"": verdict}).values()
            assert all(each["exact"] for each in kinds), (name, of)
            # every verdict has its evidence, but a search that finds nothing
            written = [tmp_path / name / f"{of}.json"]
            if "by_misreport" in verdict:
                written = [
                    tmp_path / name / f"{of}-{kind}.json"
                    for kind, each in verdict["by_misreport"].items()
                    if each["answer"] == "FAILS"
                ]
            assert all(path.is_file() or f"no certificate: {name}/{of}" in err for path in written), (name, of)
        unproved = f"no certificate: {name}/decision" in err  # a rule that nothing proves but doing it again
        assert (tmp_path / name / "decision.json").is_file() is not unproved
        assert not unproved or name in {"gavel-isolated", "gavel-proportional", "hierarchical-water-filling"}
    count = len(list(tmp_path.rglob("*.json")))
    assert f"{count} certificates" in err
    status, out, _ = fairopt("check", tmp_path)
    assert status == 0
    assert out.count(": accepted: ") == count
    bare = subprocess.run(
        [sys.executable, "-I", str(ROOT / "proofs" / "verify.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bare.stdout == out


def test_floats_are_said_to_be_floats(fairopt: Callable[..., Ran]) -> None:
    status, out, _ = fairopt(
        "compare", EXAMPLE, "--json", "--floats", "--policy", "max-min", "--property", "envy_freeness"
    )
    assert status == 0
    assert json.loads(out)["policies"]["max-min"]["properties"]["envy_freeness"]["exact"] is False


def test_check_says_what_is_wrong(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    assert fairopt("compare", EXAMPLE, "--policy", "max-min", "--evaluations", 3, "--certificates", tmp_path)[0] == 0
    path = tmp_path / "max-min" / "decision.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"value": "2"}))
    status, out, _ = fairopt("check", path)
    assert status == 1
    assert "REJECTED" in out
    path.write_text("{")
    assert fairopt("check", path)[0] == 2
    assert fairopt("check", tmp_path / "nothing.json")[0] == 2


def test_a_computation_that_stops_does_not_stop_the_others(
    fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairopt.proofs.verify import Rejected

    def stopped(row: Entry) -> tuple[Finding, float]:
        if row.id == "oef-eq6":
            raise Rejected("the certificate was changed")
        if row.id == "oef-fig2":
            raise NotInstalled("no coqc here; make proofs")
        return Finding(row.verdict, row.evidence), 0.0

    monkeypatch.setattr(Entry, "recompute", stopped)
    status, out, _ = fairopt("claims", "oef-eq6", "oef-fig2", "oef-eq2", "--run", "--json")
    assert status == 3
    rows = json.loads(out)
    assert [row["follows"] for row in rows] == [False, False, True]
    assert "changed" in rows[0]["error"]
    assert fairopt("claims", "oef-eq6", "oef-eq2", "--run")[0] == 1


def test_certificates_need_a_place(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    status, _, err = fairopt(
        "compare", EXAMPLE, "--policy", "equal-split", "--evaluations", 3, "--certificates", blocked
    )
    assert status == 2
    assert str(blocked) in err
    # what an earlier run has left would pass for this one's
    status, _, err = fairopt("compare", EXAMPLE, "--policy", "equal-split", "--certificates", tmp_path)
    assert status == 2
    assert "not empty" in err
    status, _, err = fairopt("solve", EXAMPLE, "--policy", "max-min", "--certificate", tmp_path / "no" / "c.json")
    assert status == 2
    assert "folder that exists" in err


def test_claims_are_listed_and_shown(fairopt: Callable[..., Ran]) -> None:
    status, out, _ = fairopt("claims")
    assert status == 0
    assert all(row.id in out for row in ledger())
    status, out, _ = fairopt("claims", "oef-eq6")
    assert status == 0
    assert "fairopt claims oef-eq6 --run" in out
    status, out, _ = fairopt("claims", "--json", "--paper", "oef")
    assert {"id", "paper", "where", "verdict", "evidence", "seconds"} <= json.loads(out)[0].keys()
    assert {row["paper"] for row in json.loads(out)} == {"oef"}
    for wrong, named in (
        (("oef-eq66",), "oef-eq6"),
        (("--paper", "nonsense"), "gandiva"),
        (("oef-fig7", "--paper", "gandiva"), "no claim fits"),
        (("--verdict", "open", "--run"), "recomputed"),
    ):
        status, out, err = fairopt("claims", *wrong)
        assert (status, out) == (2, "")
        assert named in err
    assert fairopt("claims", "oef-eq6", "oef-eq6")[1].count("verdict:") == 1


def test_a_claim_is_recomputed(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, _ = fairopt("claims", "oef-eq6", "--run", "--json")
    assert status == 0
    row = json.loads(out)[0]
    assert row["follows"] is True
    assert row["recomputed"] == {"verdict": row["verdict"], "evidence": row["evidence"]}
    # and one that no longer follows fails
    monkeypatch.setattr(row["run"].replace(":", "."), lambda: Finding(Ruling.REFUTED, "something else"))
    status, out, _ = fairopt("claims", "oef-eq6", "--run")
    assert status == 1
    assert "is NOT confirmed" in out
    undecided = replace(ledger()[0], id="undecided", verdict=Ruling.OPEN, run="", waits_for="a study")
    monkeypatch.setattr("fairopt.cli.proving.ledger", lambda: [undecided])
    status, _, err = fairopt("claims", "undecided", "--run")
    assert status == 2
    assert "waits for" in err


def test_open_rows_wait_for_something_and_decided_ones_can_be_recomputed() -> None:
    for row in ledger():
        if row.verdict is Ruling.OPEN:
            assert row.waits_for, row.id
            assert not row.evidence, row.id
        else:
            assert row.evidence, row.id
            assert row.run, row.id


def test_every_row_of_the_list_of_claims_stands_in_the_ledger() -> None:
    with ASKED.open(encoding="utf-8", newline="") as stream:
        asked = {row["id"]: row for row in csv.DictReader(stream)}
    assert len(asked) == 92
    rows = {row.id: row for row in ledger()}
    assert rows.keys() >= asked.keys()  # what schedulers claim is not in that list
    words = {name: sha256(rows[name].says.strip().encode()).hexdigest() for name in asked}
    assert all(words[name] != told["says_sha256"] for name, told in asked.items()), "in the project's own words"
    assert all(rows[name].kind == told["kind"] for name, told in asked.items())


def test_a_paper_is_a_folder_of_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = tmp_path / "some_ledger" / "paper"
    paper.mkdir(parents=True)
    for folder in (paper.parent, paper):
        (folder / "__init__.py").write_text("")
    (paper / "claims.toml").write_text(
        '[[claim]]\nid = "x"\npaper = "p"\nwhere = "1"\nkind = "theorem"\nsays = "s"\nverdict = "refuted"\n'
        'evidence = "e"\nrun = "decided:it"\n'
    )
    (paper / "decided.py").write_text(
        "from fairopt.proofs.ledger.entries import Finding, Ruling\n\n\n"
        "def it():\n    return Finding(Ruling.REFUTED, 'e')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (row,) = read_package("some_ledger")
    assert row.package == "some_ledger.paper"
    assert row.follows(row.recompute()[0])


def test_a_broken_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "broken_ledger"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "claims.toml").write_text('[[claim]]\nid = "x"\nverdikt = "open"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match=r"claims.toml.*claim 1 \(x\)"):
        list(read_package("broken_ledger"))


@pytest.mark.parametrize("figure", ['"max-min", "speed", "1", "any"', '"max-min", "envy_freeness", "1", "any"', '"1"'])
def test_a_figure_that_is_none_is_refused(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "figured_ledger"
    package.mkdir()
    (package / "__init__.py").write_text("")
    keys = "".join(f'{key} = "x"\n' for key in ("id", "paper", "where", "kind", "says", "evidence"))
    (package / "claims.toml").write_text(f'[[claim]]\n{keys}verdict = "open"\nfigures = [[{figure}]]\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "figured_ledger", raising=False)
    with pytest.raises(BadInput, match=r"claim 1 \(x\)"):
        list(read_package("figured_ledger"))


@pytest.mark.parametrize("name", ["ledger.md", "beyond.md"])
def test_the_pages_of_the_ledger_are_what_the_ledger_says(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page.put_into(text, ledger()) == text, "run `make claims`"


def test_what_we_found_ourselves_is_short_before_it_is_folded() -> None:
    """No paragraph is a wall, and a row says the rest where it is unfolded; docs/beyond.md has the statements alone."""
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8").partition("<!-- beyond the papers: begin")[2]
    shown = re.sub(r"<details>.*?</details>", "", text.partition("<!-- beyond the papers: end")[0], flags=re.DOTALL)
    assert len(shown.split()) <= 20 * 300
    assert max(len(paragraph.split()) for paragraph in shown.split("\n\n") if not paragraph.startswith("* ")) <= 120
    statements = (ROOT / "docs" / "beyond.md").read_text(encoding="utf-8")
    assert all(f"`{row.id}`" in statements for row in ledger() if row.paper == page.OWN)


def test_a_lie_is_found_shrunk_and_proved(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    small, proof = tmp_path / "small.toml", tmp_path / "proof.json"
    asked = ("lie", EXAMPLE, "--policy", "oef-cooperative", "--kind", "larger", "--evaluations", 20)
    status, out, _ = fairopt(*asked, "--shrink", "--markets", 20, "--out", small, "--certificate", proof, "--json")
    assert status == 1
    told = json.loads(out)
    assert told["found"]
    assert len(told["market"]["user"]) == 2  # nobody can gain alone
    assert fairopt("solve", small, "--policy", "oef-cooperative")[0] == 0
    status, out, _ = fairopt("check", proof)
    assert status == 0
    assert "oef-cooperative rewards" in out


def test_no_lie_is_found_where_none_can_pay(fairopt: Callable[..., Ran]) -> None:
    status, out, _ = fairopt("lie", EXAMPLE, "--policy", "equal-split", "--evaluations", 9)
    assert status == 0
    assert "no lie that pays was found" in out
    status, _, err = fairopt("lie", EXAMPLE, "--policy", "equal-spli")
    assert status == 2
    assert "equal-split" in err


def test_what_depends_on_the_choice_among_optima_is_said(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "alike.toml"
    path.write_text(
        'schema = 1\ntypes = ["A", "B"]\ncapacity = [1, 1]\n'
        '[[user]]\nname = "x"\nspeedup = [1, 2]\n[[user]]\nname = "y"\nspeedup = [1, 2]\n'
    )
    asked = ("compare", path, "--policy", "max-efficiency", "--evaluations", 3, "--every-optimum")
    assert "sharing_incentive: holds for some optimum, not for all" in fairopt(*asked)[1]
    properties = json.loads(fairopt(*asked, "--json")[1])["policies"]["max-efficiency"]["properties"]
    by_optimum = properties["sharing_incentive"]["by_optimum"]
    assert (by_optimum["some"]["answer"], by_optimum["every"]["answer"]) == ("HOLDS", "FAILS")
    assert by_optimum["every"]["exact"] is True
    assert properties["pareto_efficiency"]["by_optimum"]["every"]["answer"] == "HOLDS"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.json", "No such file or directory"),
        ("folder", "no file in this folder ends in .json, .jsonl, .json.gz, .jsonl.gz, or it cannot be looked into"),
    ],
)
def test_what_cannot_be_read_says_why(fairopt: Callable[..., Ran], tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    ran = fairopt("check", tmp_path / name)
    assert (ran.status, ran.out) == (2, f"{tmp_path / name}: cannot be read: {said}\n")
