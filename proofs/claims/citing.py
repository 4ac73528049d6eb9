"""What a row of the ledger may lean on: stored counterexamples, Coq's theorems, Z3's decisions. Each is checked here.

Nothing is cited unread: a certificate must be accepted by ``proofs/verify.py``, a theorem stated without anything that
is only assumed and compiled by Coq since its file was last written (by the times of the files), a decision of Z3 stored
with the answer that is wanted.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairopt.errors import BadInput, NotInstalled
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.claims.checking import proved
from fairopt.proofs.claims.counterexamples import FOLDER

PROOFS = FOLDER.parent
THEOREMS = PROOFS / "theorems"
#: A file of theorems compiles in less than a minute.
COQ_SECONDS = 300


# -- counterexamples -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Stored:
    """A counterexample's certificate, accepted by ``proofs/verify.py``, and what that says it proves."""

    name: str
    data: dict[str, Any]
    statement: str

    @property
    def said(self) -> str:
        """The statement without what follows it in brackets: the market and the allocation that it speaks of."""
        return self.statement.partition(" [")[0]

    @property
    def market(self) -> Market:
        """The market that it speaks of."""
        data = self.data
        while "market" not in data:
            data = data["of"]
        return Market.from_dict(data["market"])

    @property
    def policy(self) -> str:
        """The policy that it speaks of, "" where it speaks of none."""
        data = self.data
        while "policy" not in data and "of" in data:
            data = data["of"]
        return str(data.get("policy", ""))

    def number(self, key: str) -> Fraction:
        """Return a number of the certificate."""
        return Fraction(self.data[key])

    def table(self, key: str) -> Array:
        """Return a row or table of numbers of the certificate."""
        rows = self.data[key]
        listed = [[Fraction(v) for v in row] if isinstance(row, list) else Fraction(row) for row in rows]
        return np.array(listed, dtype=object)


def counterexample(name: str) -> Stored:
    """Return a stored certificate. Errors: `BadInput` where there is none, `NoLongerFollows` where it is rejected."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        remedy = f"Run python -m fairopt.proofs.claims.counterexamples {name}"
        raise BadInput("there is no such counterexample", place=name, remedy=remedy)
    data = json.loads(path.read_text(encoding="utf-8"))
    return Stored(name, data, proved(data))


def rows(table: Any) -> str:
    """Return speedups or shares in words: "(1, 2, 3), (1, 4, 5)"."""
    return ", ".join(f"({', '.join(map(str, row))})" for row in table)


def speedups(market: Market) -> str:
    """Return a market in words: its speedups, and its GPUs where they are not one of each type."""
    text = rows(market.speedup)
    if all(market.capacity == 1):
        return f"{text}, one GPU of each type"
    return f"{text}, {', '.join(map(str, market.capacity))} GPUs of the types"


# -- Coq -------------------------------------------------------------------------------------------------------------
def theorem(file: str, name: str) -> str:
    """Return how to cite a theorem of ``proofs/theorems/FILE.v`` that Coq has accepted.

    Errors: `BadInput` where it is not stated there or leans on something that is only assumed; `NotInstalled` where Coq
    has to compile it and is not there.
    """
    for source in _needed(file):
        text = (THEOREMS / f"{source}.v").read_text(encoding="utf-8")
        for word in ("Admitted", "Axiom", "Parameter", "admit"):
            if re.search(rf"\b{word}\b", text):
                raise BadInput(f"{word} stands in {source}.v", place=name, remedy="Prove it")
    if not re.search(rf"^(Theorem|Lemma) {name}\b", (THEOREMS / f"{file}.v").read_text(encoding="utf-8"), re.MULTILINE):
        raise BadInput(f"{file}.v does not state it", place=name, remedy="Name a theorem of that file")
    _compiled(file)
    return f"Coq: {name} in {file}.v"


def _needed(file: str) -> list[str]:
    """Return the files that one is built on, and itself, in the order in which they are compiled."""
    text = (THEOREMS / f"{file}.v").read_text(encoding="utf-8")
    found = re.search(r"From FairSharing Require Import ([\w\s]+)\.", text)
    names = [each for other in (found[1].split() if found else []) for each in _needed(other)]
    return list(dict.fromkeys([*names, file]))


@cache
def _compiled(file: str) -> None:
    """Have Coq compile a file and what it is built on, unless what is compiled is younger than what it was made from.

    That goes by the times of the files: who sets those back, or writes a compiled file by hand, deceives it. ``make
    proofs`` in a fresh checkout compiles everything, and prints what each theorem rests on.
    """
    newest = 0.0
    for name in _needed(file):
        made = THEOREMS / f"{name}.vo"
        newest = max(newest, (THEOREMS / f"{name}.v").stat().st_mtime)
        if not made.exists() or made.stat().st_mtime < newest:
            break
        newest = made.stat().st_mtime
    else:
        return
    coq = shutil.which("coqc")
    if coq is None:
        raise NotInstalled(f"{file}.v is not compiled, and Coq is not installed: run make proofs")
    with TemporaryDirectory() as folder:
        for name in _needed(file):
            shutil.copy(THEOREMS / f"{name}.v", folder)
            command = [coq, "-q", "-R", ".", "FairSharing", "-w", "none", f"{name}.v"]
            try:
                ran = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, check=False, timeout=COQ_SECONDS
                )
            except subprocess.TimeoutExpired as late:
                raise BadInput(
                    f"Coq needs more than {late.timeout:.0f} s", place=f"{name}.v", remedy="make proofs"
                ) from late
            if ran.returncode:
                raise BadInput(f"Coq rejects {name}.v: {ran.stderr.strip()[-300:]}", place=file, remedy="make proofs")


# -- Z3 --------------------------------------------------------------------------------------------------------------
def bounded(claim: str, *sizes: str) -> str:
    """Return how to cite decisions of ``proofs/bounded`` that a claim holds for these sizes (users x types).

    What was decided, with all its assumptions, is said in the words of Z3's catalogue. Errors: `BadInput` where one is
    not stored, or is another one.
    """
    return _decided(claim, "holds", sizes)


def bounded_refutation(claim: str, *sizes: str) -> str:
    """Return how to cite decisions of ``proofs/bounded`` that a claim is false for these sizes, as `bounded` does."""
    return _decided(claim, "refuted", sizes)


def _decided(claim: str, answer: str, sizes: tuple[str, ...]) -> str:
    stored = {each["size"]: each for each in _decisions() if each["claim"] == claim}
    for size in sizes:
        if size not in stored or stored[size]["answer"] != answer:
            what = f"stored is {stored[size]['answer'] if size in stored else None}"
            remedy = f"Run python -m fairopt.proofs.bounded {claim} --write"
            raise BadInput(what, place=f"{claim} {size}", remedy=remedy)
    (says,) = {stored[size]["says"] for size in sizes}
    return f"Z3: {claim}, {', '.join(sizes)}: {says}; one GPU of each type, equal weights"


def _decisions() -> Iterator[dict[str, Any]]:
    yield from json.loads((PROOFS / "bounded" / "decisions.json").read_text(encoding="utf-8"))["decisions"]
