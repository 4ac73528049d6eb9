"""The gates of the theorems: nothing is cited, or counted as proved, that rests on something that is only assumed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairopt.errors import BadInput, NotInstalled
from fairopt.proofs.ledger import citing, coq

PROVED = "Theorem easy : 1 = 1.\nProof. reflexivity. Qed.\n"
HIDDEN = f"Module Hidden.\n  Theorem easy : 1 = 2.\n  Proof. Admitted.\nEnd Hidden.\n{PROVED}"
LOOP = "Fixpoint loop (n : nat) : False := loop n.\n"
UNGUARDED = f"Unset Guard Checking.\n{LOOP}Set Guard Checking.\nTheorem easy : False.\nProof. exact (loop 0). Qed.\n"
with_coq = pytest.mark.skipif(shutil.which("coqtop") is None, reason="Coq is not installed: make proofs")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Write the one file of theorems, Mine.v, that is cited from."""
    monkeypatch.setattr(citing, "THEOREMS", tmp_path)

    def write(text: str) -> Path:
        (tmp_path / "Mine.v").write_text(text, encoding="utf-8")
        citing._rests_on.cache_clear()
        return tmp_path

    return write


# -- the text, without Coq ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("Theorem easy : 1 = 2.\nProof. Admitted.\n", "line 2: Admitted"),
        ("Theorem easy : 1 = 2.\nProof.\n  admit.\nAdmitted.\n", "line 3: admit"),
        (f"Axiom no : False.\n{PROVED}", "line 1: Axiom"),
        (f"Local Axioms (no : False) (nor : False).\n{PROVED}", "line 1: Axioms"),
        (f"Conjecture no : False.\n{PROVED}", "line 1: Conjecture"),
        (f"Module Type Of. Parameter no : False. End Of.\n{PROVED}", "line 1: Parameter"),
        (f"Declare  Module M : Of.\n{PROVED}", "line 1: Declare Module"),
        (f"#[local] Hypothesis no : False.\n{PROVED}", "line 1: Hypothesis outside a section"),
        (f"Section A.\nEnd A.\nVariable no : False.\n{PROVED}", "line 3: Variable outside a section"),
        (f"Module A.\nContext (no : False).\nEnd A.\n{PROVED}", "line 2: Context outside a section"),
        (UNGUARDED, "line 1: Guard Checking"),
        (f"Unset Positivity  Checking.\n{PROVED}", "line 1: Positivity Checking"),
        (f"Unset Universe Checking.\n{PROVED}", "line 1: Universe Checking"),
        (f"#[bypass_check(guard)] {LOOP}{PROVED}", "line 1: bypass_check"),
        (f'Load "elsewhere".\n{PROVED}', "line 1: Load"),
        (HIDDEN, "line 3: Admitted"),
    ],
)
def test_what_is_only_assumed_is_not_cited(text: str, assumed: str, written: Callable[[str], Path]) -> None:
    written(text)
    assert coq.Source.read(text).assumes[0] == assumed
    with pytest.raises(BadInput, match=assumed):
        citing.theorem("Mine", "easy")


def test_what_a_file_is_built_on_is_read_too(written: Callable[[str], Path]) -> None:
    folder = written(f"From FairSharing\n  Require Export Other. From mathcomp Require Import ring.\n{PROVED}")
    (folder / "Other.v").write_text("Require FairSharing.Third.\n", encoding="utf-8")
    (folder / "Third.v").write_text("(* *)\nAxiom no : False.\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"Third\.v assumes something: line 2: Axiom"):
        citing.theorem("Mine", "easy")


@pytest.mark.parametrize(
    "text",
    [
        f"(* {PROVED} (* and *) Theorem easy : True. *)\n",
        f'Definition said := "\n{PROVED}".\n',
        f'(* "*)" {PROVED} *)\n',
        "Module Inner.\n" + PROVED + "End Inner.\n",
        "Theorem easy' : True.\nProof. exact I. Qed.\n",
    ],
)
def test_what_is_not_stated_at_the_top_of_the_file_is_not_cited(text: str, written: Callable[[str], Path]) -> None:
    written(text)
    with pytest.raises(BadInput, match="does not state it"):
        citing.theorem("Mine", "easy")


def test_words_in_comments_and_what_a_section_assumes_are_no_assumptions() -> None:
    text = f"(* Admitted, Axiom *)\nSection A.\nVariables (n : nat).\nHypothesis h : n = 1.\n{PROVED}End A.\n"
    source = coq.Source.read(text)
    assert source.assumes == ()
    assert source.statements == (coq.Statement("Theorem", "easy", 5),)
    assert [each.name for each in coq.Source.read(HIDDEN).statements] == ["Hidden.easy", "easy"]


def test_nothing_is_cited_where_coq_cannot_be_asked(
    written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(PROVED)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NotInstalled, match="make proofs"):
        citing.theorem("Mine", "easy")


def test_the_theorems_of_this_house_assume_nothing() -> None:
    sources = {path.stem: coq.Source.read(path.read_text(encoding="utf-8")) for path in citing.THEOREMS.glob("*.v")}
    assert {file: source.assumes for file, source in sources.items() if source.assumes} == {}
    assert all(set(source.needs) <= sources.keys() for source in sources.values())
    assert len([each for source in sources.values() for each in source.statements if each.kind == "Theorem"]) == 119


def test_files_are_compiled_in_any_order_that_their_needs_allow(written: Callable[[str], Path]) -> None:
    folder = written("From FairSharing Require Import One Other.\n")
    for name in ("One", "Other"):
        (folder / f"{name}.v").write_text(PROVED, encoding="utf-8")
    for age, name in enumerate(("Other.v", "One.v", "Mine.v", "Other.vo", "One.vo", "Mine.vo")):
        (folder / name).touch()
        os.utime(folder / name, (age, age))
    assert citing._up_to_date("Mine")
    os.utime(folder / "Other.vo", (9, 9))
    assert not citing._up_to_date("Mine")
    assert citing._up_to_date("Other")


# -- with Coq ----------------------------------------------------------------------------------------------------
@with_coq
def test_coq_is_asked_about_what_is_not_compiled(written: Callable[[str], Path]) -> None:
    written(PROVED)
    assert citing.theorem("Mine", "easy") == "Coq: easy in Mine.v"
    written("Theorem wrong : 1 = 2.\nProof. reflexivity. Qed.\n")
    with pytest.raises(BadInput, match="Coq rejects"):
        citing.theorem("Mine", "wrong")


@with_coq
def test_coq_is_asked_what_a_theorem_rests_on(written: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    written(UNGUARDED)
    monkeypatch.setattr(citing, "_source", lambda file: coq.Source((coq.Statement("Theorem", "easy", 4),), (), ()))
    with pytest.raises(BadInput, match=r"it rests on Axioms: Mine\.loop is assumed to be guarded"):
        citing.theorem("Mine", "easy")


@with_coq
def test_of_several_statements_coq_says_which_one_rests_on_what(written: Callable[[str], Path]) -> None:
    folder = written(HIDDEN + PROVED.replace("easy", "easier"))
    coq.run(["coqc", "-q", "-R", ".", coq.LIBRARY, "Mine.v"], folder)
    assert coq.rests_on(folder, {"Mine": ["easy", "easier"]}) == dict.fromkeys(
        [("Mine", "easy"), ("Mine", "easier")], coq.CLOSED
    )
    said = coq.rests_on(folder, {"Mine": ["easy", "Hidden.easy", "easier"]})
    assert "Hidden.easy" in said.pop(("Mine", "Hidden.easy"))
    assert {*said.values()} == {coq.CLOSED}
    with pytest.raises(coq.CoqFails, match="nowhere"):
        coq.rests_on(folder, {"Mine": ["easy", "nowhere"]})


@with_coq
@pytest.mark.parametrize(
    ("text", "last", "line"),
    [
        (PROVED, "1 of 1", "easy Mine.v proved, no axioms"),
        (HIDDEN, "1 of 2", "Hidden.easy Mine.v NOT PROVED: Axioms: Mine.Hidden.easy : 1 = 2"),
        (UNGUARDED, "0 of 1", "easy Mine.v NOT PROVED: Axioms: Mine.loop is assumed to be guarded."),
        ("Lemma easy : 1 = 1.\nProof. reflexivity. Qed.\n", "0 of 0", "0 of 0 theorems proved without axioms"),
    ],
)
def test_make_proofs_names_what_is_not_proved(text: str, last: str, line: str, written: Callable[[str], Path]) -> None:
    folder = written(text)
    coq.run(["coqc", "-q", "-R", ".", coq.LIBRARY, "Mine.v"], folder)
    ran = subprocess.run([sys.executable, coq.__file__, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == (0 if last == "1 of 1" else 1)
    assert line in [" ".join(each.split()) for each in ran.stdout.splitlines()]
    assert f"{last} theorems proved without axioms" in ran.stdout
    (folder / "Mine.vo").unlink()
    ran = subprocess.run([sys.executable, coq.__file__, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "proved" not in ran.stdout
