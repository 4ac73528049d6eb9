(** * The checker, and that what it accepts is so *)

From Coq Require Import List QArith String.
From Verified Require Import Syntax Meaning Programs.
Import ListNotations.

Definition not_covered (s : string) : result := NotCovered (word s).

Definition check_certificate (c : certificate) : result :=
  match c with
  | ProgramBound p x v bound gap duals => check_program_bound p x v bound gap duals
  | ProgramInfeasible p duals => check_program_infeasible p duals
  | _ => not_covered "this kind of certificate"
  end.

Theorem check_certificate_sound c s : check_certificate c = Accepted s -> meaning s.
Proof.
  destruct c; simpl; try discriminate.
  - apply check_program_bound_sound.
  - apply check_program_infeasible_sound.
Qed.
