(** * Whether a key stands twice in a long list: sorted, neighbours differ *)

From Coq Require Import ZArith List Bool Mergesort Orders Permutation Sorting.Sorted Lia.
Import ListNotations.
Local Open Scope Z_scope.

Fixpoint compare_keys (a b : list Z) : comparison :=
  match a, b with
  | [], [] => Eq
  | [], _ => Lt
  | _, [] => Gt
  | x :: a, y :: b => match x ?= y with Eq => compare_keys a b | c => c end
  end.
Definition not_beyond (a b : list Z) : bool := match compare_keys a b with Gt => false | _ => true end.

Lemma compare_keys_eq a : forall b, compare_keys a b = Eq <-> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; cbn; try easy. destruct (Z.compare_spec x y) as [->|l|l].
  - rewrite IH; split; [intros ->; reflexivity | intro e; now injection e].
  - split; [discriminate | intro e; injection e; lia].
  - split; [discriminate | intro e; injection e; lia].
Qed.
Lemma not_beyond_total : forall a b, not_beyond a b = true \/ not_beyond b a = true.
Proof.
  unfold not_beyond; induction a as [|x a IH]; destruct b as [|y b]; cbn; auto.
  rewrite (Z.compare_antisym x y); destruct (x ?= y); cbn; auto.
Qed.
Lemma not_beyond_both a : forall b, not_beyond a b = true -> not_beyond b a = true -> a = b.
Proof.
  unfold not_beyond; induction a as [|x a IH]; intros [|y b]; cbn; try easy.
  rewrite (Z.compare_antisym x y); destruct (Z.compare_spec x y) as [->|l|l]; cbn; try easy.
  intros h k; f_equal; exact (IH b h k).
Qed.
Lemma not_beyond_trans a : forall b c, not_beyond a b = true -> not_beyond b c = true -> not_beyond a c = true.
Proof.
  unfold not_beyond; induction a as [|x a IH]; intros [|y b] [|z c]; cbn; try easy.
  destruct (Z.compare_spec x y) as [->|l|l]; try easy.
  - destruct (y ?= z); try easy; apply IH.
  - intros _; destruct (Z.compare_spec y z) as [->|l'|l']; try easy; intros _;
      replace (x ?= _) with Lt by (symmetry; apply Z.compare_lt_iff; lia); reflexivity.
Qed.

Module ByKeys <: TotalLeBool.
  Definition t := list Z.
  Definition leb := not_beyond.
  Definition leb_total := not_beyond_total.
End ByKeys.
Module Import KeysSorted := Sort ByKeys.

Fixpoint neighbours_differ (l : list (list Z)) : bool :=
  match l with
  | a :: (b :: _) as rest => match compare_keys a b with Eq => false | _ => neighbours_differ rest end
  | _ => true
  end.
Definition no_key_twice (l : list (list Z)) : bool := neighbours_differ (sort l).

Lemma neighbours_differP l : StronglySorted (fun a b => is_true (not_beyond a b)) l -> (neighbours_differ l = true <-> NoDup l).
Proof.
  induction 1 as [|a l s IH h]; [split; [constructor | reflexivity]|].
  destruct l as [|b l]; [split; [repeat constructor; intros [] | reflexivity]|].
  change (neighbours_differ (a :: b :: l))
    with (match compare_keys a b with Eq => false | _ => neighbours_differ (b :: l) end).
  rewrite Forall_forall in h; split.
  - intro d; assert (n : neighbours_differ (b :: l) = true /\ compare_keys a b <> Eq)
      by (destruct (compare_keys a b); easy).
    destruct n as [n ne]; constructor; [|now apply IH]; intros [->|i]; [now apply ne, compare_keys_eq|].
    apply ne, compare_keys_eq, not_beyond_both; [apply h; left; reflexivity|].
    inversion s as [|? ? _ k]; subst; rewrite Forall_forall in k; exact (k a i).
  - intro d; inversion d as [|? ? n d']; subst; apply IH in d'.
    destruct (compare_keys a b) eqn:e; try exact d'.
    apply compare_keys_eq in e; subst; exfalso; apply n; left; reflexivity.
Qed.

Lemma no_key_twiceP l : no_key_twice l = true <-> NoDup l.
Proof.
  unfold no_key_twice; rewrite neighbours_differP.
  - split; apply Permutation_NoDup; [apply Permutation_sym|]; apply Permuted_sort.
  - apply StronglySorted_sort; intros a b c; exact (not_beyond_trans a b c).
Qed.
