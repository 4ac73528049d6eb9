(** * Whether a key stands twice in a long list *)

From Coq Require Import NArith List Bool Mergesort Orders.
Import ListNotations.

(** Sorted, neighbours differ. *)
Fixpoint compare_positions (a b : list N) : comparison :=
  match a, b with
  | [], [] => Eq
  | [], _ => Lt
  | _, [] => Gt
  | x :: a, y :: b => match (x ?= y)%N with Eq => compare_positions a b | c => c end
  end.

Module ByPositions <: TotalLeBool.
  Definition t := list N.
  Definition leb (a b : t) : bool := match compare_positions a b with Gt => false | _ => true end.
  Theorem leb_total : forall a b, leb a b = true \/ leb b a = true.
  Proof.
    unfold leb. induction a as [|x a IH]; destruct b as [|y b]; cbn; auto.
    rewrite (N.compare_antisym x y). destruct (x ?= y)%N; cbn; auto.
  Qed.
End ByPositions.
Module Import Sorted := Sort ByPositions.

Fixpoint neighbours_differ (l : list (list N)) : bool :=
  match l with
  | a :: (b :: _) as rest => match compare_positions a b with Eq => false | _ => neighbours_differ rest end
  | _ => true
  end.

Definition no_key_twice (l : list (list N)) : bool := neighbours_differ (sort l).
