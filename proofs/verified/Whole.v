(** * Envy of all with all: a million rows, in whole numbers *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Allocations.
Import ListNotations.
Local Open Scope Q_scope.

Definition common (l : list Q) : positive :=
  fold_left (fun d q => Z.to_pos (Zpos d * (Zpos (Qden q) / Z.gcd (Zpos d) (Zpos (Qden q))))) l 1%positive.
(** Whole numbers, and what they are to be divided by. *)
Definition whole (l : list Q) : list Z * positive :=
  let l := map Qred l in let d := common l in (map (fun q => (Qnum q * (Zpos d / Zpos (Qden q)))%Z) l, d).

Fixpoint is_whole_of (l : list Q) (d : positive) (z : list Z) : bool :=
  match l, z with
  | [], [] => true
  | q :: l, a :: z => Z.eqb (Qnum q * Zpos d) (a * Zpos (Qden q)) && is_whole_of l d z
  | _, _ => false
  end.

Lemma is_whole_of_ok l d : forall z, is_whole_of l d z = true -> equal (map (fun a => a # d) z) l.
Proof.
  induction l as [|q l IH]; intros [|a z]; simpl; try discriminate; [constructor|].
  rewrite andb_true_iff, Z.eqb_eq; intros [e h]; constructor; [|apply IH; exact h].
  unfold Qeq; simpl; lia.
Qed.

Fixpoint zdot (a b : list Z) (acc : Z) : Z :=
  match a, b with x :: a, y :: b => zdot a b (acc + x * y) | _, _ => acc end.

Lemma zdot_ok d e a : forall b acc,
  zdot a b acc # (d * e) == (acc # (d * e)) + dot (map (fun x => x # d) a) (map (fun x => x # e) b).
Proof.
  induction a as [|x a IH]; intros [|y b] acc; simpl; try (rewrite Qplus_0_r; reflexivity).
  rewrite IH. assert (acc + x * y # d * e == (acc # d * e) + (x # d) * (y # e)) as ->; [|ring].
  unfold Qeq, Qplus, Qmult; simpl; rewrite !Pos2Z.inj_mul; ring.
Qed.

Lemma equal_dot2 a a' b b' : equal a a' -> equal b b' -> dot a b == dot a' b'.
Proof.
  intro e; revert b b'; induction e as [|x y a a' h e IH]; intros b b' f; [reflexivity|].
  destruct f as [|z w b b' h' f]; simpl; [reflexivity|]; rewrite h, h', (IH _ _ f); reflexivity.
Qed.

Lemma zdot_dot s b d e zs zb : is_whole_of s d zs = true -> is_whole_of b e zb = true ->
  zdot zs zb 0 # (d * e) == dot s b.
Proof.
  intros h h'; rewrite zdot_ok, (equal_dot2 _ s _ b (is_whole_of_ok _ _ _ h) (is_whole_of_ok _ _ _ h')).
  setoid_replace (0 # d * e) with 0 by reflexivity; ring.
Qed.

(** Bundles for each unit of weight, as whole numbers, with what they are. *)
Definition by_weight (w : Q) (c : list Q) : list Q := map (mul (/ w)) c.
Definition as_whole (l : list Q) : list Q * (list Z * positive) := (l, whole l).
Definition checked (l : list Q * (list Z * positive)) : bool := let '(q, (z, d)) := l in is_whole_of q d z.

(** A user's speedups, times a bundle for each unit of weight, are at most [limit]. *)
Definition at_most_whole (s : list Z * positive) (limit : Q) (c : list Q * (list Z * positive)) : bool :=
  let '(zs, d) := s in let '(_, (zc, e)) := c in Qle_bool (zdot zs zc 0 # (d * e)) limit.

Definition bundles_by_weight (m : market) (x : table) : list (list Q * (list Z * positive)) :=
  map (fun '(u, b) => as_whole (by_weight (weight u) b)) (combine (users m) x).

Definition nobody_envies_all (m : market) (x : table) : bool :=
  let others := bundles_by_weight m x in
  forallb checked others &&
  forallb (fun '(u, b) =>
    let s := as_whole (speedup u) in
    let limit := mul (fast_dot (speedup u) b) (/ weight u) in
    checked s && forallb (at_most_whole (snd s) limit) others) (combine (users m) x).

Lemma nobody_envies_all_ok m x : (forall u, In u (users m) -> 0 < weight u) -> nobody_envies_all m x = true ->
  forall u b v c, has m x u b -> has m x v c -> weight u / weight v * value u c <= value u b.
Proof.
  intros pos; unfold nobody_envies_all; rewrite andb_true_iff, !forallb_forall; intros [ok h] u b v c i j.
  specialize (h (u, b) i); cbv beta iota zeta in h; apply andb_true_iff in h; destruct h as [s h].
  assert (k : In (as_whole (by_weight (weight v) c)) (bundles_by_weight m x)).
  { unfold bundles_by_weight; apply in_map_iff; exists (v, c); split; [reflexivity|exact j]. }
  specialize (ok _ k); rewrite forallb_forall in h; specialize (h _ k).
  unfold checked, at_most_whole, as_whole in *; cbv beta iota zeta in *; cbn [snd] in h.
  destruct (whole (speedup u)) as [zs d]; destruct (whole (by_weight (weight v) c)) as [zc e].
  apply leP in h; rewrite (zdot_dot _ _ _ _ _ _ s ok), mulE, fast_dotE in h.
  assert (dot (speedup u) (by_weight (weight v) c) == / weight v * value u c) as e1.
  { unfold by_weight, value; rewrite <- dot_scale_r; apply equal_dot, equal_map; intro; apply mulE. }
  rewrite e1 in h; unfold value in *.
  pose proof (pos u (in_combine_l _ _ _ _ i)) as wu.
  assert (weight u / weight v * dot (speedup u) c == weight u * (/ weight v * dot (speedup u) c)) as ->
    by (unfold Qdiv; ring).
  assert (dot (speedup u) b == weight u * (dot (speedup u) b * / weight u)) as -> by (field; lra).
  set (a := / weight v * dot (speedup u) c) in *; set (r := dot (speedup u) b * / weight u) in *; nra.
Qed.

