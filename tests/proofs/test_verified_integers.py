"""The integers that the verified program runs on: each function that is mapped to zarith gives what Coq computes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

VERIFIED = Path(__file__).parents[2] / "proofs" / "verified"
READY = all(map(shutil.which, ["coqc", "ocamlfind"])) and (VERIFIED / "Extract.vo").exists()
#: Every mapped function, of two integers, as integers.
RESULTS = """
From Coq Require Import ZArith NArith List Bool. Import ListNotations.
From Verified Require Import Extract.
Open Scope Z_scope.
Definition small := map (fun i => Z.of_nat i - 3) (seq 0 8).
Definition values := small ++ [-7; 2 ^ 62; 2 ^ 62 - 1; - 2 ^ 62 - 1; - (3 ^ 60); 15 * 2 ^ 64].
Definition sign_of (c : comparison) : Z := match c with Eq => 0 | Lt => -1 | Gt => 1 end.
Definition bit (b : bool) : Z := if b then 1 else 0.
Definition of_two (a b : Z) : list Z :=
  let (p, q) := (Z.to_pos a, Z.to_pos b) in
  let (k, l) := (Z.to_nat (Z.min a 9), Z.to_nat (Z.min b 9)) in
  [a + b; a - b; a * b; Z.min a b; Z.max a b; sign_of (a ?= b); bit (a =? b); bit (a <=? b); bit (a <? b);
   bit (a >=? b); bit (a >? b); a / b; a mod b; fst (Z.div_eucl a b); snd (Z.div_eucl a b); Z.gcd a b; fst (Z.ggcd a b);
   fst (snd (Z.ggcd a b)); snd (snd (Z.ggcd a b)); Z.land a b; Z.lor a b; Z.lxor a b;
   Z.shiftl a (Z.min (Z.max b (-9)) 9); Z.shiftr a (Z.min (Z.max b (-9)) 9);
   Zpos (p + q); Zpos (p * q); bit (Pos.eqb p q); bit (Pos.leb p q); bit (Pos.ltb p q); sign_of (Pos.compare p q);
   Zpos (Pos.gcd p q); Z.of_nat (k + l); Z.of_nat (k * l); bit (Nat.eqb k l); bit (Nat.leb k l);
   bit (Nat.ltb k l)]%list.
Definition of_one (a : Z) : list Z :=
  [- a; Z.abs a; Z.succ a; Z.pred a; Z.sgn a; Z.log2 a; Z.of_N (Z.to_N a); Zpos (Z.to_pos a);
   Z.of_nat (N.to_nat (Z.to_N (Z.min a 9))); Z.of_N (N.of_nat (Z.to_nat (Z.min a 9)));
   Z.of_nat (Pos.to_nat (Z.to_pos (Z.min a 9))); Zpos (Pos.of_succ_nat (Z.to_nat (Z.min a 9)));
   Zpos (Pos.succ (Z.to_pos a)); bit (Z.even a); bit (Z.odd a); Zpos (xO (Z.to_pos a)); Zpos (xI (Z.to_pos a))].
Definition results : list Z := flat_map of_one values ++ flat_map (fun a => flat_map (of_two a) values) values.
"""
#: Functions that stand there by their signs.
SIGNS = ["add", "sub", "mul", "opp", "eqb", "leb", "ltb", "geb", "gtb", "compare", "div", "modulo"]
BY_SIGNS = {f"Z.{word}" for word in SIGNS}
BY_SIGNS |= {f"{kind}.{word}" for kind in ("Pos", "Nat") for word in ("add", "mul")}
PRINTED = 'let () = List.iter (fun a -> print_string (Integer.to_string a ^ " ")) Results.results'


def run(*command: object, at: Path) -> str:
    """Return what a command prints."""
    done = subprocess.run([*map(str, command)], cwd=at, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not READY, reason="it is not built: make verified")
def test_the_integers_of_the_program_are_those_of_coq(tmp_path: Path) -> None:
    (tmp_path / "Results.v").write_text(f'{RESULTS}\nExtraction "results.ml" results.\nEval vm_compute in results.\n')
    told = run("coqc", "-w", "none", "-R", VERIFIED, "Verified", "Results.v", at=tmp_path)
    by_coq = [int(each) for each in re.findall(r"-?\d+", told[told.index("=") : told.rindex(":")])]
    (tmp_path / "main.ml").write_text(PRINTED)
    shutil.copy(VERIFIED / "integer.ml", tmp_path)
    parts = ["integer.ml", "results.mli", "results.ml", "main.ml"]
    run("ocamlfind", "ocamlopt", "-w", "-a", "-package", "zarith", "-linkpkg", *parts, "-o", "main", at=tmp_path)
    assert [int(each) for each in run(tmp_path / "main", at=tmp_path).split()] == by_coq
    assert len(by_coq) > 7_000


def test_every_mapped_function_is_tried() -> None:
    mapped = re.findall(r"Extract (?:Inlined )?Constant (\S+) =>", (VERIFIED / "Extract.v").read_text(encoding="utf-8"))
    assert len(mapped) > 40
    assert not [each for each in mapped if each not in RESULTS and each not in BY_SIGNS]
