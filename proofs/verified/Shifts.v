(** * Where somebody can have more and nobody less, an allocation is not Pareto-efficient *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Allocations Lies.
Import ListNotations.
Local Open Scope Q_scope.

Definition share (y : table) (i j : nat) : Q := nth j (nth i y []) 0.
Definition speed_of (m : market) (i j : nat) : Q := nth j (speedup (nth i (users m) (User [] [] 0 None))) 0.

Lemma sum_swap {A B} (f : A -> B -> Q) la lb :
  sum (map (fun a => sum (map (f a) lb)) la) == sum (map (fun b => sum (map (fun a => f a b) la)) lb).
Proof.
  induction la as [|a la IH]; simpl; [induction lb; simpl; [reflexivity|rewrite <- IHlb; ring]|].
  fold (sum (map (fun a => sum (map (f a) lb)) la)); rewrite IH, <- sum_plus; reflexivity.
Qed.

Lemma sum_positive {A} (f : A -> Q) l a : (forall b, In b l -> 0 <= f b) -> In a l -> 0 < f a -> 0 < sum (map f l).
Proof.
  induction l as [|b l IH]; simpl; intros h i p; [destruct i|].
  pose proof (h b (or_introl eq_refl)); pose proof (sum_nonneg f l (fun c k => h c (or_intror k))).
  destruct i as [->|i]; [unfold sum in *; lra|].
  assert (0 < sum (map f l)) by (apply IH; auto; intros; apply h; right; assumption); unfold sum in *; lra.
Qed.

Lemma least_positive {A} (f : A -> Q) l : (forall a, In a l -> 0 < f a) ->
  exists d, 0 < d /\ forall a, In a l -> d <= f a.
Proof.
  induction l as [|b l IH]; intro h; [exists 1; split; [lra|intros a []]|].
  destruct IH as (d & p & q); [intros a i; apply h; right; exact i|].
  pose proof (h b (or_introl eq_refl)).
  destruct (Qlt_le_dec d (f b)); [exists d|exists (f b)]; (split; [assumption|]); intros a [<-|i]; try lra;
    specialize (q a i); lra.
Qed.

(** ** Users get more or less of some types, and somebody gains *)
Section Shift.
Variables (m : market) (y : table) (net : nat -> nat -> Q).
Let n := length (users m).
Let k := length (capacity m).
Hypothesis va : valid m.
Hypothesis free : forall u, In u (users m) -> demand u = None.
Hypothesis fy : feasible m y.
Hypothesis enough : forall i j, (i < n)%nat -> (j < k)%nat -> 0 <= share y i j + net i j.
Hypothesis room : forall j, (j < k)%nat -> given y j + sum (map (fun i => net i j) (seq 0 n)) <= nth j (capacity m) 0.
Definition gained (i : nat) : Q := sum (map (fun j => speed_of m i j * net i j) (seq 0 k)).
Hypothesis gains : forall i, (i < n)%nat -> 0 <= gained i.
Variable best : nat.
Hypothesis best_in : (best < n)%nat.
Hypothesis pays : 0 < gained best.

Lemma share_row i : (i < n)%nat -> exists b, nth_error y i = Some b /\ nth i y [] = b /\ length b = k.
Proof.
  intro h; destruct fy as [[sh rows] _]; destruct (nth_error y i) as [b|] eqn:e.
  - exists b; split; [reflexivity|split; [exact (nth_error_nth _ _ _ e)|apply rows, (nth_error_In _ _ e)]].
  - apply nth_error_None in e; unfold n in h; rewrite sh in e; lia.
Qed.

Definition traded : table := map (fun i => map (fun j => share y i j + net i j) (seq 0 k)) (seq 0 n).

Lemma traded_at i : (i < n)%nat -> nth_error traded i = Some (map (fun j => share y i j + net i j) (seq 0 k)).
Proof.
  intro h; unfold traded; rewrite nth_error_map.
  assert (e : nth_error (seq 0 n) i = Some i) by (rewrite (nth_error_nth' _ 0%nat), seq_nth; try rewrite seq_length; auto).
  rewrite e; reflexivity.
Qed.

Lemma traded_value i u b : nth_error (users m) i = Some u -> nth_error y i = Some b ->
  exists c, nth_error traded i = Some c /\ value u c == value u b + gained i.
Proof.
  intros eu eb; assert (h : (i < n)%nat) by (apply nth_error_Some; congruence).
  exists (map (fun j => share y i j + net i j) (seq 0 k)); split; [exact (traded_at i h)|].
  assert (len : length (speedup u) = k) by (apply va, (nth_error_In _ _ eu)).
  destruct (share_row i h) as (b' & eb' & nb & lb); rewrite eb in eb'; injection eb' as <-.
  unfold value; rewrite (dot_nth _ b) by congruence; rewrite dot_nth by (rewrite map_length, seq_length; congruence).
  rewrite len; unfold gained; rewrite <- sum_plus; apply sum_ext; intros j hj; apply in_seq0 in hj.
  rewrite nth_map_seq by exact hj; unfold share; rewrite nb.
  unfold speed_of; rewrite (nth_error_nth _ _ _ eu); ring.
Qed.

Lemma given_traded j : (j < k)%nat -> given traded j == given y j + sum (map (fun i => net i j) (seq 0 n)).
Proof.
  intro h; unfold given, traded; rewrite map_map.
  rewrite (sum_ext _ (fun i => share y i j + net i j)) by (intros i _; rewrite nth_map_seq by exact h; reflexivity).
  rewrite sum_plus.
  assert (e : map (fun b => nth j b 0) y = map (fun i => share y i j) (seq 0 n)).
  { unfold n; rewrite <- (proj1 (proj1 fy)); unfold share; clear; induction y as [|b t IH]; [reflexivity|].
    cbn [length seq map nth]; f_equal; rewrite <- seq_shift, map_map; exact IH. }
  rewrite e; reflexivity.
Qed.

Theorem shift_pays : ~ pareto_efficient m y.
Proof.
  intros [_ none].
  assert (fz : feasible m traded).
  { split; [split|split].
    - unfold traded; rewrite map_length, seq_length; reflexivity.
    - intros c i; unfold traded in i; apply in_map_iff in i; destruct i as (i & <- & _).
      rewrite map_length, seq_length; reflexivity.
    - intros c q i j; unfold traded in i; apply in_map_iff in i; destruct i as (i & <- & hi).
      apply in_map_iff in j; destruct j as (j & <- & hj); apply in_seq0 in hi; apply in_seq0 in hj; auto.
    - intros j h; rewrite given_traded by exact h; apply room; exact h. }
  assert (better : everybody_at_least m y traded).
  { intros u b c i; destruct (has_at _ _ _ _ i) as (i' & eu & ec); apply nth_error_combine in ec; destruct ec as [eb ec].
    destruct (traded_value i' u b eu eb) as (c' & ec' & v); rewrite ec in ec'; injection ec' as <-.
    unfold worth; rewrite (free u (nth_error_In _ _ eu)), v.
    assert (h : (i' < n)%nat) by (apply nth_error_Some; congruence); pose proof (gains i' h); lra. }
  destruct (nth_error (users m) best) as [u|] eqn:eu; [|apply nth_error_None in eu; unfold n in best_in; lia].
  destruct (share_row _ best_in) as (b & eb & _ & _).
  destruct (traded_value _ u b eu eb) as (c & ec & v).
  assert (i : In (u, (c, b)) (combine (users m) (combine traded y))).
  { apply (combine_has _ _ best); [exact eu|apply nth_error_combine; auto]. }
  pose proof (none _ fz better u c b i) as h; unfold worth in h; rewrite (free u (nth_error_In _ _ eu)), v in h; lra.
Qed.
End Shift.

Lemma share_nonneg m y i j : feasible m y -> 0 <= share y i j.
Proof.
  intro fy; unfold share; destruct (Nat.lt_ge_cases i (length y)) as [h|h].
  - apply nth_nonneg; intros q; apply fy; apply nth_In; exact h.
  - rewrite (nth_overflow y) by exact h; destruct j; simpl; lra.
Qed.

(** What somebody can run on is given out. *)
Lemma useful_is_given m y i j : valid m -> (forall u, In u (users m) -> demand u = None) -> pareto_efficient m y ->
  (i < length (users m))%nat -> (j < length (capacity m))%nat -> 0 < speed_of m i j -> nth j (capacity m) 0 <= given y j.
Proof.
  intros va free eff hi hj pos; destruct (Qlt_le_dec (given y j) (nth j (capacity m) 0)) as [less|]; [exfalso|assumption].
  set (d := nth j (capacity m) 0 - given y j); assert (d0 : 0 < d) by (unfold d; lra).
  pose proof (proj1 eff) as fy.
  assert (value : forall i', gained m (fun i' j' => if Nat.eqb i' i then (if Nat.eqb j' j then d else 0) else 0) i' ==
    if Nat.eqb i' i then speed_of m i j * d else 0).
  { intro i'; unfold gained; destruct (Nat.eqb_spec i' i) as [->|].
    - rewrite <- (sum_at (fun j' => speed_of m i j' * d) j _ hj); apply sum_ext; intros j' _.
      destruct (Nat.eqb j' j); ring.
    - rewrite (sum_ext _ (fun _ => 0 * 0)) by (intros; ring); rewrite sum_times; ring. }
  revert eff; apply (shift_pays m y (fun i' j' => if Nat.eqb i' i then (if Nat.eqb j' j then d else 0) else 0) va free fy)
    with (best := i); [| | |exact hi|].
  - intros i' j' _ _; pose proof (share_nonneg m y i' j' fy); destruct (Nat.eqb i' i), (Nat.eqb j' j); lra.
  - intros j' hj'; rewrite (sum_at (fun _ => if Nat.eqb j' j then d else 0) i _ hi).
    destruct (Nat.eqb_spec j' j) as [->|]; [unfold d; lra|]. pose proof (proj2 (proj2 fy) j' hj'); lra.
  - intros i' _; rewrite value; destruct (Nat.eqb i' i); nra.
  - rewrite value, Nat.eqb_refl; nra.
Qed.
