(** * Multipliers bound every point of a linear program

    A point is a table of numbers (the bundles of users, or the variables of a bare program, one in a row) and one more
    number that has no bounds.  Rows are multiplied and added up, each at the better of its two sides; what is left of
    each variable's cost is at most what it is at the better of the variable's two bounds. *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums.
Import ListNotations.
Local Open Scope Q_scope.

(** The largest [rate * x] with [x] between [low] and [high]. *)
Definition at_most (rate : Q) (low high : option Q) : option Q :=
  if nothing rate then Some 0
  else match (if lt 0 rate then high else low) with Some side => Some (mul rate side) | None => None end.

Lemma at_most_ok rate low high x m : at_most rate low high = Some m -> between low x high -> rate * x <= m.
Proof.
  unfold at_most; intros e [hl hh].
  destruct (nothing rate) eqn:z.
  - injection e as <-; apply nothing_true in z; rewrite z; lra.
  - destruct (lt 0 rate) eqn:s.
    + destruct high as [h|]; [|discriminate]; injection e as <-; rewrite mulE; apply ltP in s; nra.
    + destruct low as [l|]; [|discriminate]; injection e as <-; rewrite mulE; apply lt_false in s; nra.
Qed.

(** A row: low <= (each bundle times [everywhere]) + (some bundles times vectors) + extra * z <= high. *)
Record form := Form { everywhere : list Q; parts : list (N * list Q); extra : Q; low : option Q; high : option Q }.

Definition bundle (y : table) (i : N) : list Q := nth (N.to_nat i) y [].
Definition form_value (f : form) (y : table) (z : Q) : Q :=
  sum (map (dot (everywhere f)) y) + sum (map (fun '(i, v) => dot v (bundle y i)) (parts f)) + extra f * z.
Definition keeps (y : table) (z : Q) (f : form) : Prop := between (low f) (form_value f y z) (high f).

(** Rows added up so far. *)
Record added := Added { to_all : list Q; to_one : store (list Q); to_extra : Q; limit : Q }.

Definition or_empty (v : option (list Q)) : list Q := match v with Some v => v | None => [] end.
Definition take (t : store (list Q)) (i : N) : list Q := or_empty (at_ t i).
Definition put (v : list Q) (t : store (list Q)) (i : N) : store (list Q) :=
  change_at (fun old => vadd v (or_empty old)) t i.

Fixpoint each_dot (t : store (list Q)) (i : N) (y : table) : Q :=
  match y with [] => 0 | b :: y => dot (take t i) b + each_dot t (N.succ i) y end.

Definition added_value (a : added) (y : table) (z : Q) : Q :=
  sum (map (dot (to_all a)) y) + each_dot (to_one a) 0 y + to_extra a * z.

Lemma take_put v t i j : take (put v t i) j = if N.eqb i j then vadd v (take t i) else take t j.
Proof. unfold take, put; rewrite at_change; destruct (N.eqb i j); reflexivity. Qed.

Lemma each_dot_put v t p y : forall i,
  each_dot (put v t p) i y ==
  each_dot t i y + (if N.ltb p i then 0 else dot v (nth (N.to_nat (p - i)) y [])).
Proof.
  induction y as [|b y IH]; intro i.
  - simpl; destruct (N.ltb p i); destruct (N.to_nat (p - i)); rewrite ?dot_nil_r; ring.
  - cbn [each_dot]; rewrite IH, take_put.
    destruct (N.eqb_spec p i) as [->|ne].
    + replace (N.ltb i (N.succ i)) with true by (symmetry; apply N.ltb_lt; lia).
      replace (N.ltb i i) with false by (symmetry; apply N.ltb_ge; lia).
      replace (i - i)%N with 0%N by lia; simpl; rewrite dot_vadd; ring.
    + destruct (N.ltb_spec p i).
      * replace (N.ltb p (N.succ i)) with true by (symmetry; apply N.ltb_lt; lia); ring.
      * replace (N.ltb p (N.succ i)) with false by (symmetry; apply N.ltb_ge; lia).
        replace (N.to_nat (p - i)) with (S (N.to_nat (p - N.succ i))) by lia; simpl; ring.
Qed.

Fixpoint put_all (q : Q) (l : list (N * list Q)) (t : store (list Q)) : store (list Q) :=
  match l with [] => t | (i, v) :: l => put_all q l (put (vscale q v) t i) end.

Lemma each_dot_put_all q l y : forall t,
  each_dot (put_all q l t) 0 y == each_dot t 0 y + q * sum (map (fun '(i, v) => dot v (bundle y i)) l).
Proof.
  induction l as [|[i v] l IH]; intro t; simpl; [ring|].
  rewrite IH, each_dot_put.
  replace (N.ltb i 0) with false by (symmetry; apply N.ltb_ge; lia).
  replace (i - 0)%N with i by lia. rewrite dot_vscale; unfold bundle; ring.
Qed.

Definition add_row (a : added) (q : Q) (f : form) : option added :=
  if nothing q then Some a
  else match at_most q (low f) (high f) with
  | None => None
  | Some m =>
    Some (Added (vadd (vscale q (everywhere f)) (to_all a)) (put_all q (parts f) (to_one a))
            (add (to_extra a) (mul q (extra f))) (add (limit a) m))
  end.

Lemma sum_dot_vadd u v y : sum (map (dot (vadd u v)) y) == sum (map (dot u) y) + sum (map (dot v) y).
Proof. induction y; simpl; [ring|]; rewrite IHy, dot_vadd; ring. Qed.
Lemma sum_dot_vscale q v y : sum (map (dot (vscale q v)) y) == q * sum (map (dot v) y).
Proof. induction y; simpl; [ring|]; rewrite IHy, dot_vscale; ring. Qed.

Lemma add_row_ok a q f a' y z :
  add_row a q f = Some a' -> keeps y z f -> added_value a y z <= limit a -> added_value a' y z <= limit a'.
Proof.
  unfold add_row; intros e k le; destruct (nothing q); [injection e as <-; exact le|].
  destruct (at_most q (low f) (high f)) as [m|] eqn:am; [|discriminate]; injection e as <-.
  pose proof (at_most_ok _ _ _ _ _ am k) as bound.
  unfold added_value, form_value in *; cbn [to_all to_one to_extra limit] in *.
  rewrite sum_dot_vadd, sum_dot_vscale, each_dot_put_all, !addE, mulE.
  set (A := sum (map (dot (everywhere f)) y)) in *; set (B := sum (map _ (parts f))) in *.
  set (C := sum (map (dot (to_all a)) y)) in *; set (D := each_dot (to_one a) 0 y) in *.
  nra.
Qed.

Fixpoint add_rows (a : added) (l : list (Q * form)) : option added :=
  match l with
  | [] => Some a
  | (q, f) :: l => match add_row a q f with Some a => add_rows a l | None => None end
  end.

Lemma add_rows_ok l y z : (forall q f, In (q, f) l -> keeps y z f) -> forall a a',
  add_rows a l = Some a' -> added_value a y z <= limit a -> added_value a' y z <= limit a'.
Proof.
  induction l as [|[q f] l IH]; simpl; intros k a a' e le; [injection e as <-; exact le|].
  destruct (add_row a q f) as [b|] eqn:ar; [|discriminate].
  apply (IH (fun q f i => k q f (or_intror i)) b a' e).
  apply (add_row_ok _ _ _ _ _ _ ar); [apply (k q f); left; reflexivity|exact le].
Qed.

(** ** What is left of the costs *)

(** A variable's cost and bounds. *)
Definition box : Type := Q * (option Q * option Q).

Fixpoint slot_bound (vars : list box) (coefficients : list Q) (acc : Q) : option Q :=
  match vars with
  | [] => Some acc
  | (c, (lo, hi)) :: vars =>
    let '(a, rest) := match coefficients with [] => (0, []) | a :: rest => (a, rest) end in
    match at_most (sub c a) lo hi with Some m => slot_bound vars rest (add acc m) | None => None end
  end.

Definition boxed (vars : list box) (b : list Q) : Prop :=
  Forall2 (fun '(_, (lo, hi)) x => between lo x hi) vars b.

Lemma slot_bound_ok vars : forall coefficients acc m b,
  slot_bound vars coefficients acc = Some m -> boxed vars b ->
  acc + dot (map fst vars) b - dot coefficients b <= m.
Proof.
  induction vars as [|[c [lo hi]] vars IH]; intros cs acc m b e k; inversion k as [|? x ? b' bt k' E1 E2]; subst.
  - simpl in e; injection e as <-; simpl; rewrite dot_nil_r; lra.
  - simpl in e. destruct cs as [|a cs].
    + destruct (at_most (sub c 0) lo hi) as [m'|] eqn:am; [|discriminate].
      pose proof (at_most_ok _ _ _ _ _ am bt) as h; pose proof (IH _ _ _ _ e k') as h'.
      rewrite addE in h'; rewrite subE in h; simpl in *; nra.
    + destruct (at_most (sub c a) lo hi) as [m'|] eqn:am; [|discriminate].
      pose proof (at_most_ok _ _ _ _ _ am bt) as h; pose proof (IH _ _ _ _ e k') as h'.
      rewrite addE in h'; rewrite subE in h; simpl in *; nra.
Qed.

Section Slots.
Variables (A : Type) (slot : A -> list box).

Fixpoint slots_bound (a : added) (i : N) (l : list A) (acc : Q) : option Q :=
  match l with
  | [] => Some acc
  | s :: l =>
    match slot_bound (slot s) (vadd (take (to_one a) i) (to_all a)) acc with
    | Some m => slots_bound a (N.succ i) l m
    | None => None
    end
  end.

Definition costs (l : list A) (y : table) : Q :=
  sum (map (fun '(s, b) => dot (map fst (slot s)) b) (combine l y)).

Lemma slots_bound_ok a l : forall i acc m y,
  slots_bound a i l acc = Some m -> Forall2 (fun s b => boxed (slot s) b) l y ->
  acc + costs l y - sum (map (dot (to_all a)) y) - each_dot (to_one a) i y <= m.
Proof.
  induction l as [|s l IH]; intros i acc m y e k; inversion k as [|? b ? y' bt k' E1 E2]; subst.
  - simpl in e; injection e as <-; unfold costs; simpl; lra.
  - simpl in e. destruct (slot_bound _ _ acc) as [m'|] eqn:sb; [|discriminate].
    pose proof (slot_bound_ok _ _ _ _ _ sb bt) as h; pose proof (IH _ _ _ _ e k') as h'.
    rewrite dot_vadd in h; unfold costs in *; simpl in *; lra.
Qed.

(** The most that costs and [cost_extra * z] can be together. *)
Definition bound_of (l : list A) (cost_extra : Q) (duals : list (Q * form)) : option Q :=
  match add_rows (Added [] Empty 0 0) duals with
  | None => None
  | Some a => if same (to_extra a) cost_extra then slots_bound a 0 l (limit a) else None
  end.

Lemma each_dot_empty y : forall i, each_dot Empty i y == 0.
Proof. induction y as [|b y IH]; intro i; simpl; [reflexivity|]; rewrite IH; ring. Qed.

Theorem bound_of_ok l cost_extra duals m y z :
  bound_of l cost_extra duals = Some m ->
  Forall2 (fun s b => boxed (slot s) b) l y -> (forall q f, In (q, f) duals -> keeps y z f) ->
  costs l y + cost_extra * z <= m.
Proof.
  unfold bound_of; intros e k r.
  destruct (add_rows _ duals) as [a|] eqn:ar; [|discriminate].
  destruct (same (to_extra a) cost_extra) eqn:s; [|discriminate]; apply sameP in s.
  pose proof (slots_bound_ok _ _ _ _ _ _ e k) as h.
  assert (start : added_value (Added [] Empty 0 0) y z <= limit (Added [] Empty 0 0)).
  { unfold added_value; cbn [to_all to_one to_extra limit]; rewrite each_dot_empty.
    assert (sum (map (dot []) y) == 0) as -> by (clear; induction y; simpl; [reflexivity|rewrite IHy; ring]).
    lra. }
  pose proof (add_rows_ok duals y z r _ _ ar start) as h'.
  unfold added_value in h'; rewrite s in h'; lra.
Qed.
End Slots.
