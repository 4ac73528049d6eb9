(** * Fractions, sums, and a store by position

    What the checkers compute with.  Sums are kept in lowest terms, so that numbers stay short; what is zero costs
    nothing. *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning.
Import ListNotations.
Local Open Scope Q_scope.

Definition nothing (a : Q) : bool := Z.eqb (Qnum a) 0.

Definition add (a b : Q) : Q := if nothing a then b else if nothing b then a else Qred (a + b).
Definition mul (a b : Q) : Q := if nothing a || nothing b then 0 else Qred (a * b).
Definition sub (a b : Q) : Q := add a (- b).

Lemma nothing_true a : nothing a = true <-> a == 0.
Proof.
  unfold nothing, Qeq; simpl; rewrite Z.eqb_eq; lia.
Qed.

Lemma nothing_false a : nothing a = false <-> ~ a == 0.
Proof. rewrite <- nothing_true; destruct (nothing a); split; congruence. Qed.

Lemma addE a b : add a b == a + b.
Proof.
  unfold add; destruct (nothing a) eqn:za; [apply nothing_true in za; rewrite za; ring|].
  destruct (nothing b) eqn:zb; [apply nothing_true in zb; rewrite zb; ring|exact (Qred_correct _)].
Qed.

Lemma mulE a b : mul a b == a * b.
Proof.
  unfold mul; destruct (nothing a) eqn:za; simpl; [apply nothing_true in za; rewrite za; ring|].
  destruct (nothing b) eqn:zb; [apply nothing_true in zb; rewrite zb; ring|exact (Qred_correct _)].
Qed.

Lemma subE a b : sub a b == a - b.
Proof. unfold sub; rewrite addE; ring. Qed.

(** ** Comparisons *)
Definition le (a b : Q) : bool := Qle_bool a b.
Definition lt (a b : Q) : bool := negb (Qle_bool b a).
Definition same (a b : Q) : bool := Qeq_bool a b.

Lemma leP a b : le a b = true <-> a <= b.
Proof. apply Qle_bool_iff. Qed.
Lemma le_false a b : le a b = false <-> b < a.
Proof.
  split; intro H.
  - apply Qnot_le_lt; intro L; apply leP in L; congruence.
  - destruct (le a b) eqn:L; auto; apply leP in L; exfalso; lra.
Qed.
Lemma ltP a b : lt a b = true <-> a < b.
Proof. unfold lt; rewrite negb_true_iff; apply (le_false b a). Qed.
Lemma lt_false a b : lt a b = false <-> b <= a.
Proof. unfold lt; rewrite negb_false_iff; apply leP. Qed.
Lemma sameP a b : same a b = true <-> a == b.
Proof. apply Qeq_bool_iff. Qed.

(** ** Sums *)
Definition fast_sum (l : list Q) : Q := fold_left add l 0.
Fixpoint fast_dot_from (acc : Q) (a b : list Q) : Q :=
  match a, b with x :: a, y :: b => fast_dot_from (add acc (mul x y)) a b | _, _ => acc end.
Definition fast_dot (a b : list Q) : Q := fast_dot_from 0 a b.

Lemma fast_sum_from l : forall a, fold_left add l a == a + sum l.
Proof.
  induction l as [|b l IH]; intro a; simpl; [ring|].
  rewrite IH, addE; ring.
Qed.
Lemma fast_sumE l : fast_sum l == sum l.
Proof. unfold fast_sum; rewrite fast_sum_from; ring. Qed.

Lemma fast_dot_fromE a : forall acc b, fast_dot_from acc a b == acc + dot a b.
Proof.
  induction a as [|x a IH]; intros acc [|y b]; simpl; try ring.
  rewrite IH, addE, mulE; ring.
Qed.
Lemma fast_dotE a b : fast_dot a b == dot a b.
Proof. unfold fast_dot; rewrite fast_dot_fromE; ring. Qed.

Lemma sum_app a b : sum (a ++ b) == sum a + sum b.
Proof. induction a; simpl; [ring|]. rewrite IHa; ring. Qed.

Lemma sum_ext {A} (f g : A -> Q) l : (forall a, In a l -> f a == g a) -> sum (map f l) == sum (map g l).
Proof.
  induction l as [|a l IH]; intro e; simpl; [reflexivity|].
  rewrite (e a (or_introl eq_refl)), IH; [reflexivity|]. intros b i; apply e; right; exact i.
Qed.

Lemma sum_le {A} (f g : A -> Q) l : (forall a, In a l -> f a <= g a) -> sum (map f l) <= sum (map g l).
Proof.
  induction l as [|a l IH]; intro e; simpl; [lra|].
  pose proof (e a (or_introl eq_refl)). assert (sum (map f l) <= sum (map g l)); [|lra].
  apply IH; intros b i; apply e; right; exact i.
Qed.

Lemma sum_nonneg {A} (f : A -> Q) l : (forall a, In a l -> 0 <= f a) -> 0 <= sum (map f l).
Proof.
  induction l as [|a l IH]; intro e; simpl; [lra|].
  pose proof (e a (or_introl eq_refl)). assert (0 <= sum (map f l)); [|lra].
  apply IH; intros b i; apply e; right; exact i.
Qed.

Lemma sum_plus {A} (f g : A -> Q) l : sum (map (fun a => f a + g a) l) == sum (map f l) + sum (map g l).
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.

Lemma sum_times {A} (c : Q) (f : A -> Q) l : sum (map (fun a => c * f a) l) == c * sum (map f l).
Proof. induction l; simpl; [ring|]. rewrite IHl; ring. Qed.

Lemma Forall2_len {A B} (R : A -> B -> Prop) a b : Forall2 R a b -> length a = length b.
Proof. induction 1; simpl; congruence. Qed.

Lemma dot_nil_r a : dot a [] = 0.
Proof. destruct a; reflexivity. Qed.

(** ** Vectors; what is missing is zero *)
Fixpoint vadd (a b : list Q) : list Q :=
  match a, b with
  | [], b => b
  | a, [] => a
  | x :: a, y :: b => add x y :: vadd a b
  end.
Definition vscale (q : Q) (a : list Q) : list Q := map (mul q) a.

Lemma dot_vadd a : forall b c, dot (vadd a b) c == dot a c + dot b c.
Proof.
  induction a as [|x a IH]; intros [|y b] [|z c]; simpl; try ring.
  rewrite IH, addE; ring.
Qed.
Lemma dot_vscale q a : forall c, dot (vscale q a) c == q * dot a c.
Proof.
  induction a as [|x a IH]; intros [|z c]; simpl; try ring.
  rewrite IH, mulE; ring.
Qed.
Lemma dot_scale_r q a : forall c, dot a (map (fun y => q * y) c) == q * dot a c.
Proof.
  induction a as [|x a IH]; intros [|z c]; simpl; try ring.
  rewrite IH; ring.
Qed.

(** [unit_at j]: 1 at position j. *)
Fixpoint unit_at (j : nat) : list Q := match j with O => [1] | S j => 0 :: unit_at j end.
Lemma dot_unit j : forall b, dot (unit_at j) b == nth j b 0.
Proof.
  induction j as [|j IH]; intros [|y b]; simpl; try ring.
  rewrite IH; ring.
Qed.

Lemma dot_ones k : forall b, (length b <= k)%nat -> dot (repeat 1 k) b == sum b.
Proof.
  induction k as [|k IH]; intros [|y b]; simpl; intro l; try ring; try lia.
  rewrite IH by lia; ring.
Qed.

(** ** A store by position *)
Inductive store (A : Type) := Empty | Node (l : store A) (here : option A) (r : store A).
Arguments Empty {A}.
Arguments Node {A}.

Fixpoint look {A} (t : store A) (p : positive) : option A :=
  match t with
  | Empty => None
  | Node l o r => match p with xH => o | xO p => look l p | xI p => look r p end
  end.
Fixpoint change {A} (f : option A -> A) (t : store A) (p : positive) : store A :=
  let '(l, o, r) := match t with Empty => (Empty, None, Empty) | Node l o r => (l, o, r) end in
  match p with
  | xH => Node l (Some (f o)) r
  | xO p => Node (change f l p) o r
  | xI p => Node l o (change f r p)
  end.

Lemma look_change {A} (f : option A -> A) p : forall t q,
  look (change f t p) q = if Pos.eqb p q then Some (f (look t p)) else look t q.
Proof.
  induction p as [p IH|p IH|]; intros [|l o r] [q|q|]; simpl; try reflexivity; try (rewrite IH; reflexivity);
    rewrite IH; destruct (Pos.eqb p q); try reflexivity; destruct q; reflexivity.
Qed.

Definition at_ {A} (t : store A) (i : N) : option A := look t (N.succ_pos i).
Definition change_at {A} (f : option A -> A) (t : store A) (i : N) : store A := change f t (N.succ_pos i).

Lemma at_change {A} (f : option A -> A) t i j :
  at_ (change_at f t i) j = if N.eqb i j then Some (f (at_ t i)) else at_ t j.
Proof.
  unfold at_, change_at; rewrite look_change.
  destruct (N.eqb_spec i j) as [->|ne]; [rewrite Pos.eqb_refl; reflexivity|].
  destruct (Pos.eqb_spec (N.succ_pos i) (N.succ_pos j)) as [e|]; [|reflexivity].
  exfalso; apply ne. apply (f_equal Npos) in e; rewrite !N.succ_pos_spec in e; lia.
Qed.

Fixpoint fill {A} (l : list A) (i : N) (t : store A) : store A :=
  match l with [] => t | a :: l => fill l (N.succ i) (change_at (fun _ => a) t i) end.
Definition stored {A} (l : list A) : store A := fill l 0 Empty.

Lemma at_fill {A} (l : list A) : forall i t j,
  at_ (fill l i t) j = if (N.leb i j && N.ltb j (i + N.of_nat (length l)))%bool
                       then nth_error l (N.to_nat (j - i)) else at_ t j.
Proof.
  induction l as [|a l IH]; intros i t j; simpl.
  - replace (N.ltb j (i + 0)) with (negb (N.leb i j)).
    + destruct (N.leb i j); reflexivity.
    + destruct (N.leb_spec i j); destruct (N.ltb_spec j (i + 0)); simpl; try reflexivity; lia.
  - rewrite IH, at_change.
    destruct (N.eqb_spec i j) as [->|ne].
    + replace (N.leb (N.succ j) j) with false by (symmetry; apply N.leb_gt; lia).
      replace (N.leb j j) with true by (symmetry; apply N.leb_le; lia).
      replace (N.ltb j (j + _)) with true by (symmetry; apply N.ltb_lt; lia).
      replace (j - j)%N with 0%N by lia; reflexivity.
    + destruct (N.leb_spec (N.succ i) j).
      * replace (N.leb i j) with true by (symmetry; apply N.leb_le; lia); simpl.
        replace (N.ltb j (N.succ i + N.of_nat (length l))) with (N.ltb j (i + N.pos (Pos.of_succ_nat (length l)))).
        -- destruct (N.ltb_spec j (i + N.pos (Pos.of_succ_nat (length l)))); [|reflexivity].
           replace (N.to_nat (j - i)) with (S (N.to_nat (j - N.succ i))) by lia; reflexivity.
        -- f_equal; lia.
      * replace (N.leb i j) with false by (symmetry; apply N.leb_gt; lia); reflexivity.
Qed.

Lemma at_empty {A} i : at_ (@Empty A) i = None.
Proof. reflexivity. Qed.

Lemma at_stored {A} (l : list A) j : at_ (stored l) j = nth_error l (N.to_nat j).
Proof.
  unfold stored; rewrite at_fill, at_empty.
  replace (N.leb 0 j) with true by (symmetry; apply N.leb_le; lia); simpl.
  destruct (N.ltb_spec j (N.of_nat (length l))).
  - f_equal; lia.
  - symmetry; apply nth_error_None; lia.
Qed.
