(** * Whether a market is valid, and whether an allocation is feasible *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Everything that there is in a list *)

Lemma forallb_false {A} (f : A -> bool) l : forallb f l = false <-> exists a, In a l /\ f a = false.
Proof.
  induction l as [|a l IH]; simpl; [split; [discriminate|intros (? & [] & _)]|].
  rewrite andb_false_iff, IH; split.
  - intros [e|(b & i & e)]; [exists a; auto|exists b; auto].
  - intros (b & [<-|i] & e); [auto|right; exists b; auto].
Qed.

Definition everybody (m : market) (x : table) (f : user -> list Q -> bool) : bool :=
  forallb (fun '(u, b) => f u b) (combine (users m) x).

Lemma everybody_ok m x f : everybody m x f = true <-> forall u b, has m x u b -> f u b = true.
Proof.
  unfold everybody; rewrite forallb_forall; split; [intros h u b i; apply (h (u, b) i)|intros h [u b] i; apply h;
    exact i].
Qed.

(** ** Feasible *)

Definition shaped_b (m : market) (x : table) : bool :=
  same_length x (users m) && forallb (fun b => same_length b (capacity m)) x.

Lemma shaped_ok m x : shaped_b m x = true <-> shaped m x.
Proof.
  unfold shaped_b, shaped; rewrite andb_true_iff, same_lengthP, forallb_forall.
  split; intros [a b]; split; auto; intros c i; apply same_lengthP; apply b; exact i.
Qed.

Definition not_negative (x : table) : bool := forallb (forallb (le 0)) x.

Lemma not_negative_ok x : not_negative x = true <-> forall b share, In b x -> In share b -> 0 <= share.
Proof.
  unfold not_negative; rewrite forallb_forall; split.
  - intros h b s i j; specialize (h b i); rewrite forallb_forall in h; apply leP, h; exact j.
  - intros h b i; apply forallb_forall; intros s j; apply leP, (h b s i j).
Qed.

Definition out (x : table) : list Q := fold_right vadd [] x.

Lemma nth_vadd a : forall b j, nth j (vadd a b) 0 == nth j a 0 + nth j b 0.
Proof.
  induction a as [|x a IH]; intros [|y b] [|j]; simpl; try ring; [apply addE|apply IH].
Qed.

Lemma nth_out x j : nth j (out x) 0 == given x j.
Proof.
  unfold given; induction x as [|b x IH]; simpl; [destruct j; reflexivity|]. rewrite nth_vadd, IH; reflexivity.
Qed.

Fixpoint fits (out cap : list Q) : bool :=
  match cap with
  | [] => true
  | c :: cap => match out with [] => le 0 c && fits [] cap | o :: out => le o c && fits out cap end
  end.

Lemma fits_ok cap : forall out, fits out cap = true <-> forall j, (j < length cap)%nat -> nth j out 0 <= nth j cap 0.
Proof.
  induction cap as [|c cap IH]; intro out; simpl.
  - split; [intros _ j l; lia|reflexivity].
  - destruct out as [|o out]; rewrite andb_true_iff, leP, IH; split.
    + intros [h t] [|j] l; [exact h|specialize (t j); destruct j; apply t; lia].
    + intro h; split; [apply (h 0%nat); lia|]; intros j l; specialize (h (S j)); destruct j; apply h; lia.
    + intros [h t] [|j] l; [exact h|apply t; lia].
    + intro h; split; [apply (h 0%nat); lia|]; intros j l; apply (h (S j)); lia.
Qed.

Definition feasible_b (m : market) (x : table) : bool :=
  shaped_b m x && not_negative x && fits (out x) (capacity m).

Lemma feasible_ok m x : feasible_b m x = true <-> feasible m x.
Proof.
  unfold feasible_b, feasible; rewrite !andb_true_iff, shaped_ok, not_negative_ok, fits_ok.
  split.
  - intros [[a b] c]; repeat split; try apply a; auto. intros j l; rewrite <- nth_out; auto.
  - intros (a & b & c); repeat split; try apply a; auto. intros j l; rewrite nth_out; auto.
Qed.

(** ** Sensible *)

Fixpoint only_usable (s b : list Q) : bool :=
  match s, b with
  | sj :: s, bj :: b => (if nothing sj then nothing bj else true) && only_usable s b
  | _, _ => true
  end.

Lemma only_usable_ok s : forall b, only_usable s b = true -> length b = length s ->
  forall j, nth j s 0 == 0 -> nth j b 0 == 0.
Proof.
  induction s as [|sj s IH]; intros [|bj b] u l [|j] z; try discriminate; simpl in *; try reflexivity.
  - apply andb_true_iff in u; destruct u as [u _]. apply nothing_true in z; rewrite z in u; apply nothing_true; exact u.
  - apply andb_true_iff in u; destruct u as [_ u]. apply (IH b u); [lia|exact z].
Qed.

Definition within_demand (u : user) (b : list Q) : bool :=
  match demand u with Some d => le (fast_sum b) d | None => true end.

Definition sensible_b (m : market) (x : table) : bool :=
  feasible_b m x && forallb (fun '(u, b) => only_usable (speedup u) b && within_demand u b) (combine (users m) x).

Lemma sensible_ok m x : valid m -> sensible_b m x = true -> sensible m x.
Proof.
  intros (_ & _ & _ & _ & v); unfold sensible_b; rewrite andb_true_iff, feasible_ok, forallb_forall.
  intros [f h]; split; [exact f|]; intros u b i; specialize (h (u, b) i); apply andb_true_iff in h.
  destruct h as [o w]; split.
  - intros j _ z; apply (only_usable_ok _ _ o); [|exact z].
    destruct (v u (in_combine_l _ _ _ _ i)) as [l _]; destruct f as [[_ f] _].
    rewrite l; apply f; apply (in_combine_r _ _ _ _ i).
  - unfold within_demand in w; destruct (demand u); [|exact I]. apply leP in w; rewrite <- fast_sumE; exact w.
Qed.

(** ** Valid markets *)

Definition all_weight (m : market) : Q := fast_sum (map weight (users m)).
Lemma all_weight_ok m : all_weight m == total_weight m.
Proof. apply fast_sumE. Qed.

(** What the weight's part of every type is worth; [all] is the sum of all weights. *)
Definition fair_now (m : market) (all : Q) (u : user) : Q :=
  let part := mul (weight u) (/ all) in worth_now u (map (mul part) (capacity m)).

Lemma equal_map {A} (f g : A -> Q) l : (forall a, f a == g a) -> equal (map f l) (map g l).
Proof. intro h; induction l; constructor; auto. Qed.

Lemma ahead_equal s a b j : equal a b -> ahead s a j == ahead s b j.
Proof. intro e; apply sum_ext; intros i _; destruct (comes_first _ _ _); [apply equal_nth; exact e|reflexivity]. Qed.

Lemma uses_equal u a b j : equal a b -> uses u a j == uses u b j.
Proof.
  intro e; unfold uses; destruct (Qeq_bool _ _); [reflexivity|].
  destruct (demand u); [|apply equal_nth; exact e].
  rewrite (equal_nth _ _ e j), (ahead_equal _ _ _ j e); reflexivity.
Qed.

Lemma used_equal u a b : equal a b -> equal (used u a) (used u b).
Proof. intro e; apply equal_map; intro j; apply uses_equal; exact e. Qed.

Lemma worth_equal u a b : equal a b -> worth u a == worth u b.
Proof.
  intro e; unfold worth, value; destruct (demand u); apply equal_dot; [apply used_equal|]; exact e.
Qed.

Lemma fair_now_ok m u : fair_now m (all_weight m) u == fair_share m u.
Proof.
  unfold fair_now; rewrite worth_now_ok; apply worth_equal, equal_map; intro c.
  rewrite !mulE, all_weight_ok; unfold Qdiv; ring.
Qed.

Definition some {A} (l : list A) : bool := match l with [] => false | _ => true end.

Definition valid_user (m : market) (all : Q) (u : user) : bool :=
  same_length (speedup u) (capacity m) && forallb (le 0) (speedup u) && lt 0 (weight u)
  && match demand u with Some d => lt 0 d | None => true end && lt 0 (fair_now m all u).

Definition valid_b (m : market) : bool :=
  some (users m) && some (capacity m) && same_length (types m) (capacity m) && forallb (le 0) (capacity m)
  && (let all := all_weight m in forallb (valid_user m all) (users m)).

Lemma some_ok {A} (l : list A) : some l = true -> l <> [].
Proof. destruct l; simpl; congruence. Qed.

Lemma valid_ok m : valid_b m = true -> valid m.
Proof.
  unfold valid_b; rewrite !andb_true_iff, !forallb_forall; intros [[[[a b] c] d] e].
  apply some_ok in a; apply some_ok in b; apply same_lengthP in c.
  repeat split; auto; try (intros t i; apply leP, d; exact i);
    specialize (e u H); unfold valid_user in e; rewrite !andb_true_iff in e; destruct e as [[[[e1 e2] e3] e4] e5].
  - apply same_lengthP; exact e1.
  - rewrite forallb_forall in e2; intros s i; apply leP, e2; exact i.
  - apply ltP; exact e3.
  - destruct (demand u); [apply ltP; exact e4|exact I].
  - apply ltP in e5; rewrite fair_now_ok in e5; exact e5.
Qed.

(** ** What is known of users and bundles *)

Lemma has_shaped m x u b : valid m -> shaped m x -> has m x u b -> length b = length (speedup u).
Proof.
  intros (_ & _ & _ & _ & v) [_ s] i. destruct (v u (in_combine_l _ _ _ _ i)) as [-> _].
  apply s; apply (in_combine_r _ _ _ _ i).
Qed.

Lemma nth_nonneg b : (forall q, In q b -> 0 <= q) -> forall j, 0 <= nth j b 0.
Proof.
  intros h j; destruct (Nat.lt_ge_cases j (length b)) as [l|l]; [apply h, nth_In; exact l|].
  rewrite nth_overflow by exact l; lra.
Qed.

Lemma has_nonneg m x u b : (forall b share, In b x -> In share b -> 0 <= share) -> has m x u b -> forall j,
  0 <= nth j b 0.
Proof. intros f i; apply nth_nonneg; intros q; apply f; apply (in_combine_r _ _ _ _ i). Qed.

Lemma dot_le s : forall a b, (forall q, In q s -> 0 <= q) -> Forall2 Qle a b -> dot s a <= dot s b.
Proof.
  induction s as [|x s IH]; intros a b h f; [apply Qle_refl|].
  destruct f as [|y z a b l f]; simpl; [apply Qle_refl|].
  pose proof (h x (or_introl eq_refl)); assert (dot s a <= dot s b); [apply IH; auto; intros q i; apply h; right;
    exact i|nra].
Qed.

Lemma Forall2_nth (R : Q -> Q -> Prop) a : forall b, length a = length b ->
  (forall j, (j < length a)%nat -> R (nth j a 0) (nth j b 0)) -> Forall2 R a b.
Proof.
  induction a as [|x a IH]; intros [|y b] l h; try discriminate; constructor.
  - apply (h 0%nat); simpl; lia.
  - apply IH; [simpl in l; lia|]; intros j k; apply (h (S j)); simpl; lia.
Qed.

Lemma used_length u b : length (used u b) = length (speedup u).
Proof. unfold used; rewrite map_length, seq_length; reflexivity. Qed.

Lemma nth_used u b j : (j < length (speedup u))%nat -> nth j (used u b) 0 = uses u b j.
Proof. apply nth_map_seq. Qed.

Lemma used_le u b : length b = length (speedup u) -> (forall j, 0 <= nth j b 0) -> Forall2 Qle (used u b) b.
Proof.
  intros l h; apply Forall2_nth; [rewrite used_length; congruence|].
  intros j k; rewrite used_length in k; rewrite nth_used by exact k; apply uses_bounds, h.
Qed.

Lemma worth_le_value u b : (forall q, In q (speedup u) -> 0 <= q) -> length b = length (speedup u) ->
  (forall j, 0 <= nth j b 0) -> worth u b <= value u b.
Proof.
  intros s l h; unfold worth, value; destruct (demand u); [|apply Qle_refl].
  apply dot_le; [exact s|apply used_le; assumption].
Qed.
