(** * Gangs: a round of FFT *)

From Coq Require Import List QArith.
From Verified Require Import Syntax Owed.
Import ListNotations.
Local Open Scope Q_scope.

Section Round.
Variable r : round.

(** An assignment says on which type each job runs; a job with none waits, which costs nothing. *)
Definition costs_on (row : list (option Q)) (t : option nat) (c : Q) : Prop :=
  match t with None => c = 0 | Some j => nth_error row j = Some (Some c) end.
(** GPUs of a type that are in use; of any type. *)
Definition in_use (types : list (option nat)) (j : nat) : Q :=
  sum (map (fun '(size, t) => match t with Some i => if Nat.eqb i j then inject_Z size else 0 | None => 0 end)
         (combine (sizes r) types)).
Definition in_use_all (types : list (option nat)) : Q :=
  sum (map (fun '(size, t) => match t with Some _ => inject_Z size | None => 0 end) (combine (sizes r) types)).
(** Each job runs where it may or waits, and costs so much; no type is used more than there is of it, and enough are. *)
Definition assigned (types : list (option nat)) (cost : Q) : Prop :=
  length types = length (sizes r) /\
  (exists each, Forall2 (fun '(row, t) c => costs_on row t c) (combine (job_costs r) types) each /\ sum each == cost) /\
  (forall j, (j < length (gpus r))%nat -> in_use types j <= inject_Z (nth j (gpus r) 0%Z)) /\
  inject_Z (least_used r) <= in_use_all types.
Definition is_round : Prop :=
  length (job_costs r) = length (sizes r) /\ forall row, In row (job_costs r) -> length row = length (gpus r).
End Round.
