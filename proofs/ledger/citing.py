"""What a row of the ledger may lean on: stored counterexamples, Coq's theorems, Z3's decisions. Each is checked here.

Nothing is cited unread: a certificate must be accepted by ``proofs/verify.py``; of a theorem Coq must say that it rests
on nothing; a decision of Z3 must be stored with the answer that is wanted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fairopt.errors import BadInput, NotInstalled
from fairopt.problem import Market, market_from_dict
from fairopt.program import Array
from fairopt.proofs.ledger import coq
from fairopt.proofs.ledger.checking import proved

PROOFS = Path(__file__).parent.parent
COUNTEREXAMPLES = PROOFS / "counterexamples"
THEOREMS = PROOFS / "theorems"


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
        return market_from_dict(data["market"])

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
    path = COUNTEREXAMPLES / f"{name}.json"
    if not path.exists():
        remedy = f"Run python -m fairopt.proofs.claims.counterexamples {name}"
        raise BadInput("there is no such counterexample", place=name, remedy=remedy)
    data = json.loads(path.read_text(encoding="utf-8"))
    return Stored(name, data, proved(data))


# -- Coq -------------------------------------------------------------------------------------------------------------
def theorem(file: str, name: str) -> str:
    """Return the citation of a theorem of ``proofs/theorems/FILE.v`` that Coq has accepted and that rests on nothing.

    ``name`` is its full name in the file: a theorem in a module is called "Module.name". Errors: `BadInput` where it is
    not stated there, where it or the text that it is built on assumes something, and where Coq rejects it;
    `NotInstalled` where Coq is not there to say so.
    """
    for source in _needed(file):
        for assumed in _source(source).assumes:
            raise BadInput(f"{source}.v assumes something: {assumed}", place=name, remedy="Prove it")
    if name not in {each.name for each in _source(file).statements}:
        raise BadInput(f"{file}.v does not state it", place=name, remedy="Name a theorem of that file, in full")
    rests_on = _rests_on(file, name)
    if rests_on != coq.CLOSED:
        raise BadInput(f"it rests on {' '.join(rests_on.split())}", place=f"{file}.{name}", remedy="Prove it")
    return f"Coq: {name} in {file}.v"


def _source(file: str) -> coq.Source:
    return _read((THEOREMS / f"{file}.v").read_text(encoding="utf-8"))


@lru_cache(maxsize=64)
def _read(text: str) -> coq.Source:
    return coq.Source.read(text)


def _needed(file: str) -> list[str]:
    """Return the files that one is built on, and itself, in the order in which they are compiled."""
    return list(dict.fromkeys([*(each for other in _source(file).needs for each in _needed(other)), file]))


@cache
def _rests_on(file: str, name: str) -> str:
    """Return what Coq says that a statement of a file rests on, compiled anew unless what is compiled is younger.

    That goes by the times of the files: who sets those back, or writes a compiled file by hand, deceives it. ``make
    proofs`` in a fresh checkout compiles everything.
    """
    if shutil.which("coqtop") is None:
        raise NotInstalled(
            f"only Coq can check {file}.v, and it is not installed: in a checkout, `make proofs` installs it"
        )
    try:
        if _up_to_date(file):
            return coq.rests_on(THEOREMS, {file: [name]})[file, name]
        with TemporaryDirectory() as folder:
            for needed in _needed(file):
                shutil.copy(THEOREMS / f"{needed}.v", folder)
                coq.run(["coqc", "-q", "-R", ".", coq.LIBRARY, "-w", "none", f"{needed}.v"], Path(folder))
            return coq.rests_on(Path(folder), {file: [name]})[file, name]
    except coq.CoqFails as fails:
        raise BadInput(f"Coq rejects {file}.v: {fails}", place=file, remedy="make proofs") from fails


def _up_to_date(file: str) -> bool:
    """Whether a file and all that it is built on are compiled, each after its text and after what it is built on."""
    made = THEOREMS / f"{file}.vo"
    needs = _source(file).needs
    if not made.exists() or not all(map(_up_to_date, needs)):
        return False
    before = [THEOREMS / f"{file}.v", *(THEOREMS / f"{other}.vo" for other in needs)]
    return made.stat().st_mtime >= max(path.stat().st_mtime for path in before)


# -- Z3 --------------------------------------------------------------------------------------------------------------
def bounded(claim: str, *sizes: str) -> str:
    """Return the citation of decisions of ``proofs/bounded`` that a claim holds for these sizes (users x types).

    What was decided, with all its assumptions, is said in the words of Z3's catalogue. Errors: `BadInput` where one is
    not stored, or is another one.
    """
    return _decided(claim, "holds", sizes)


def bounded_refutation(claim: str, *sizes: str) -> str:
    """Return the citation of decisions of ``proofs/bounded`` that a claim is false for these sizes."""
    return _decided(claim, "refuted", sizes)


def _decided(claim: str, answer: str, sizes: tuple[str, ...]) -> str:
    stored = {each["size"]: each for each in _decisions() if each["claim"] == claim}
    for size in sizes:
        if size not in stored or stored[size]["answer"] != answer:
            what = f"stored is {stored[size]['answer'] if size in stored else None}"
            remedy = f"Run python -m fairopt.proofs.bounded {claim} --write"
            raise BadInput(what, place=f"{claim} {size}", remedy=remedy)
    (says,) = {stored[size]["says"] for size in sizes}
    return f"Z3: {claim}, {', '.join(sizes)}: {says}"


def _decisions() -> Iterator[dict[str, Any]]:
    yield from json.loads((PROOFS / "bounded" / "decisions.json").read_text(encoding="utf-8"))["decisions"]
