(** * What a market and an allocation are: the definitions of [Meaning], decided *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums.
Import ListNotations.
Local Open Scope Q_scope.

Definition same_length {A B} (a : list A) (b : list B) : bool := Nat.eqb (length a) (length b).

Lemma same_lengthP {A B} (a : list A) (b : list B) : same_length a b = true <-> length a = length b.
Proof. apply Nat.eqb_eq. Qed.

(** ** Lists side by side *)

Lemma nth_error_combine {A B} (a : list A) : forall (b : list B) i x y,
  nth_error (combine a b) i = Some (x, y) <-> nth_error a i = Some x /\ nth_error b i = Some y.
Proof.
  induction a as [|x' a IH]; intros [|y' b] [|i] x y; simpl; split; try (intros; discriminate);
    try (intros [? ?]; discriminate).
  - intro e; injection e as <- <-; auto.
  - intros [e f]; congruence.
  - apply IH.
  - apply IH.
Qed.

Lemma combine_has {A B} (a : list A) (b : list B) i x y :
  nth_error a i = Some x -> nth_error b i = Some y -> In (x, y) (combine a b).
Proof. intros e f; apply (nth_error_In _ i); apply nth_error_combine; auto. Qed.

Lemma has_at {A B} (a : list A) (b : list B) x y :
  In (x, y) (combine a b) -> exists i, nth_error a i = Some x /\ nth_error b i = Some y.
Proof. intro i; destruct (In_nth_error _ _ i) as [n e]; exists n; apply nth_error_combine; exact e. Qed.

Lemma beside {A B} (a : list A) (b : list B) i x : length a = length b ->
  nth_error a i = Some x -> exists y, nth_error b i = Some y.
Proof.
  intros l e; destruct (nth_error b i) as [y|] eqn:f; [exists y; reflexivity|].
  apply nth_error_None in f; assert (i < length a)%nat; [apply nth_error_Some; congruence|lia].
Qed.

Lemma Forall2_at {A B} (R : A -> B -> Prop) a b i x : Forall2 R a b -> nth_error a i = Some x ->
  exists y, nth_error b i = Some y /\ R x y.
Proof.
  intro f; revert i; induction f as [|p q a b h f IH]; intros [|i] e; try discriminate; simpl in *.
  - injection e as <-; exists q; auto.
  - apply IH; exact e.
Qed.

Definition equal := Forall2 Qeq.

Lemma equal_dot s : forall a b, equal a b -> dot s a == dot s b.
Proof.
  induction s as [|x s IH]; intros a b e; [reflexivity|].
  destruct e as [|y z a b h e]; simpl; [reflexivity|]. rewrite h, (IH _ _ e); reflexivity.
Qed.
Lemma equal_sum a b : equal a b -> sum a == sum b.
Proof. induction 1 as [|x y a b h e IH]; simpl; [reflexivity|]; rewrite h, IH; reflexivity. Qed.
Lemma equal_nth a b : equal a b -> forall j, nth j a 0 == nth j b 0.
Proof. induction 1 as [|x y a b h e IH]; intros [|j]; simpl; try reflexivity; auto. Qed.
Lemma equal_refl a : equal a a.
Proof. induction a; constructor; [reflexivity|assumption]. Qed.
Lemma equal_sym a b : equal a b -> equal b a.
Proof. induction 1; constructor; [symmetry|]; assumption. Qed.
Lemma equal_trans a b c : equal a b -> equal b c -> equal a c.
Proof.
  intro e; revert c; induction e as [|x y a b h e IH]; intros c f; inversion f; subst; constructor.
  - rewrite h; assumption.
  - apply IH; assumption.
Qed.

Lemma dot_nth s : forall b, length b = length s ->
  dot s b == sum (map (fun j => nth j s 0 * nth j b 0) (seq 0 (length s))).
Proof.
  induction s as [|x s IH]; intros [|y b] l; try discriminate; [reflexivity|].
  simpl length; cbn [seq map sum fold_right dot]; rewrite IH by (simpl in l; lia).
  rewrite <- seq_shift, map_map; reflexivity.
Qed.

Lemma sum_nth b : sum b == sum (map (fun j => nth j b 0) (seq 0 (length b))).
Proof.
  induction b as [|y b IH]; [reflexivity|].
  simpl length; cbn [seq map sum fold_right]; fold (sum b); rewrite IH, <- seq_shift, map_map; reflexivity.
Qed.

Lemma nth_map_seq (f : nat -> Q) k j : (j < k)%nat -> nth j (map f (seq 0 k)) 0 = f j.
Proof.
  intro l; rewrite (nth_indep _ 0 (f 0%nat)) by (rewrite map_length, seq_length; exact l).
  rewrite (map_nth f), seq_nth by exact l; reflexivity.
Qed.

Lemma in_seq0 j k : In j (seq 0 k) <-> (j < k)%nat.
Proof. rewrite in_seq; lia. Qed.

(** ** What users run on *)

(** [ahead], in one walk: [j] is the position of who asks, of speed [sj]; [i] that of the first of [s]. *)
Fixpoint fast_ahead (sj : Q) (j : nat) (s b : list Q) (i : nat) (acc : Q) : Q :=
  match s, b with
  | si :: s, bi :: b =>
    fast_ahead sj j s b (S i) (if negb (le si sj) || (same si sj && (i <? j)%nat) then add acc bi else acc)
  | _, _ => acc
  end.

Definition counted (sj : Q) (j : nat) (s b : list Q) (i h : nat) : Q :=
  if negb (le (nth h s 0) sj) || (same (nth h s 0) sj && (i + h <? j)%nat) then nth h b 0 else 0.

Lemma counted_next sj j si s bi b i h : counted sj j (si :: s) (bi :: b) i (S h) = counted sj j s b (S i) h.
Proof. unfold counted; simpl nth; replace (i + S h)%nat with (S i + h)%nat by lia; reflexivity. Qed.

Lemma fast_aheadE sj j s : forall b i acc,
  fast_ahead sj j s b i acc == acc + sum (map (counted sj j s b i) (seq 0 (length s))).
Proof.
  induction s as [|si s IH]; intros b i acc; [simpl; ring|].
  destruct b as [|bi b].
  - simpl fast_ahead. rewrite (sum_ext _ (fun _ => 0 * 0)).
    + rewrite sum_times; ring.
    + intros [|h] _; unfold counted; simpl nth; destruct (_ || _); reflexivity.
  - cbn [fast_ahead]; rewrite IH.
    change (seq 0 (length (si :: s))) with (0 :: seq 1 (length s))%nat; rewrite <- seq_shift.
    cbn [map]; rewrite map_map, (map_ext _ _ (fun h => counted_next sj j si s bi b i h)).
    set (rest := map _ _); cbn [sum fold_right]; fold (sum rest).
    unfold counted; simpl nth; replace (i + 0)%nat with i by lia.
    destruct (negb (le si sj) || (same si sj && (i <? j)%nat)); rewrite ?addE; ring.
Qed.

Lemma fast_ahead_ok s b j : fast_ahead (nth j s 0) j s b 0 0 == ahead s b j.
Proof. rewrite fast_aheadE, Qplus_0_l; reflexivity. Qed.

Definition bigger (a b : Q) : Q := if le a b then b else a.
Definition smaller (a b : Q) : Q := if le a b then a else b.

Lemma biggerE a b : bigger a b == Qmax a b.
Proof.
  unfold bigger; destruct (le a b) eqn:e.
  - apply leP in e; symmetry; apply Q.max_r; exact e.
  - apply le_false in e; symmetry; apply Q.max_l; lra.
Qed.
Lemma smallerE a b : smaller a b == Qmin a b.
Proof.
  unfold smaller; destruct (le a b) eqn:e.
  - apply leP in e; symmetry; apply Q.min_l; exact e.
  - apply le_false in e; symmetry; apply Q.min_r; lra.
Qed.

Section Used.
Variables (d : Q) (s0 b0 : list Q).
Fixpoint fast_used (s b : list Q) (j : nat) : list Q :=
  match s with
  | [] => []
  | sj :: s =>
    let '(bj, b) := match b with [] => (0, []) | bj :: b => (bj, b) end in
    (if nothing sj || nothing bj then 0 else bigger 0 (smaller bj (sub d (fast_ahead sj j s0 b0 0 0))))
      :: fast_used s b (S j)
  end.
End Used.

Definition used_now (u : user) (b : list Q) : list Q :=
  match demand u with
  | Some d => fast_used d (speedup u) b (speedup u) b 0
  | None => used u b
  end.

Lemma minmax0 a : Qmax 0 (Qmin 0 a) == 0.
Proof. apply Q.max_l, Q.le_min_l. Qed.

Lemma fast_used_ok d s0 b0 s : forall b j,
  (forall i, (i < length s)%nat -> nth i s 0 = nth (j + i) s0 0) ->
  (forall i, (i < length s)%nat -> nth i b 0 = nth (j + i) b0 0) ->
  equal (fast_used d s0 b0 s b j)
    (map (fun i => if Qeq_bool (nth i s0 0) 0 then 0 else Qmax 0 (Qmin (nth i b0 0) (d - ahead s0 b0 i))) (seq j
      (length s))).
Proof.
  induction s as [|sj s IH]; intros b j es eb; [constructor|].
  assert (ej : sj = nth j s0 0) by (specialize (es 0%nat ltac:(simpl; lia)); rewrite Nat.add_0_r in es; exact es).
  assert (bj : nth 0 b 0 = nth j b0 0) by (specialize (eb 0%nat ltac:(simpl; lia)); rewrite Nat.add_0_r in eb;
    exact eb).
  destruct b as [|b1 b]; cbn [fast_used length seq map]; constructor.
  - rewrite <- bj, <- ej; simpl nth. rewrite orb_true_r. destruct (Qeq_bool sj 0); [reflexivity|].
    symmetry; apply minmax0.
  - apply IH; intros i l; [specialize (es (S i) ltac:(simpl; lia))|specialize (eb (S i) ltac:(simpl; lia))];
      simpl in *; rewrite <- Nat.add_succ_r; try exact es. destruct i; exact eb.
  - simpl in bj; rewrite <- bj, <- ej. destruct (nothing sj) eqn:z.
    + apply nothing_true, Qeq_bool_iff in z; rewrite z; reflexivity.
    + apply nothing_false in z. destruct (Qeq_bool sj 0) eqn:z'; [apply Qeq_bool_iff in z'; contradiction|]. simpl.
      destruct (nothing b1) eqn:zb.
      * apply nothing_true in zb; rewrite zb; symmetry; apply minmax0.
      * rewrite biggerE, smallerE, subE, ej, fast_ahead_ok; reflexivity.
  - apply IH; intros i l; [specialize (es (S i) ltac:(simpl; lia))|specialize (eb (S i) ltac:(simpl; lia))];
      simpl in *; rewrite <- Nat.add_succ_r; assumption.
Qed.

Lemma used_now_ok u b : equal (used_now u b) (used u b).
Proof.
  unfold used_now; destruct (demand u) as [d|] eqn:e; [|apply equal_refl].
  unfold used, uses; rewrite e; apply fast_used_ok; reflexivity.
Qed.

Definition worth_now (u : user) (b : list Q) : Q :=
  match demand u with None => fast_dot (speedup u) b | Some _ => fast_dot (speedup u) (used_now u b) end.

Lemma worth_now_ok u b : worth_now u b == worth u b.
Proof.
  unfold worth_now, worth; destruct (demand u); rewrite fast_dotE; [|reflexivity].
  apply equal_dot, used_now_ok.
Qed.

Lemma comes_first_eq s i j : comes_first s i j = true <->
  nth j s 0 < nth i s 0 \/ (nth i s 0 == nth j s 0 /\ (i < j)%nat).
Proof.
  unfold comes_first; rewrite orb_true_iff, andb_true_iff, (ltP (nth j s 0) (nth i s 0)), sameP, Nat.ltb_lt; tauto.
Qed.

(** What a user uses is part of the bundle, and no more than it demands. *)
Lemma uses_bounds u b j : 0 <= nth j b 0 -> 0 <= uses u b j <= nth j b 0.
Proof.
  intro p; unfold uses; destruct (Qeq_bool _ 0); [lra|]; destruct (demand u) as [d|]; [|lra]; split.
  - apply Q.le_max_l.
  - apply Q.max_lub; [exact p|apply Q.le_min_l].
Qed.

Section Demand.
Variables (s b : list Q) (d : Q).
Hypothesis d0 : 0 <= d.
Hypothesis b0 : forall j, 0 <= nth j b 0.

Definition ahead_in (l : list nat) (j : nat) : Q := sum (map (fun i => if comes_first s i j then nth i b 0 else 0) l).
Definition part_in (l : list nat) (j : nat) : Q := Qmax 0 (Qmin (nth j b 0) (d - ahead_in l j)).

Lemma last_of (l : list nat) : l <> [] -> NoDup l ->
  exists l1 j l2, l = l1 ++ j :: l2 /\ forall i, In i (l1 ++ l2) -> comes_first s i j = true /\
    comes_first s j i = false.
Proof.
  induction l as [|a l IH]; [congruence|intros _ nd]. inversion nd as [|? ? na nd']; subst.
  destruct l as [|a' l'].
  - exists [], a, []; split; [reflexivity|intros i []].
  - destruct (IH ltac:(discriminate) nd') as (l1 & j & l2 & e & p).
    assert (ne : a <> j) by (intro; subst a; apply na; rewrite e; apply in_or_app; right; left; reflexivity).
    destruct (comes_first s a j) eqn:f.
    + exists (a :: l1), j, l2; split; [simpl; f_equal; exact e|].
      intros i [<-|i']; [|exact (p i i')]. split; [exact f|].
      apply not_true_iff_false; rewrite comes_first_eq; apply comes_first_eq in f; intros [g|[g g']];
        destruct f as [f|[f f']];
        try lra; lia.
    + assert (g : comes_first s j a = true).
      { apply comes_first_eq; apply not_true_iff_false in f; rewrite comes_first_eq in f.
        destruct (Qlt_le_dec (nth a s 0) (nth j s 0)) as [|h]; [left; assumption|right].
        destruct (Qlt_le_dec (nth j s 0) (nth a s 0)) as [|h']; [exfalso; apply f; left; assumption|].
        assert (nth j s 0 == nth a s 0) by lra; split; [assumption|].
        destruct (Nat.lt_ge_cases a j); [exfalso; apply f; right; split; [lra|assumption]|lia]. }
      exists [], a, (a' :: l'); split; [reflexivity|]. simpl. intros i i'.
      assert (t : i = j \/ (comes_first s i j = true /\ comes_first s j i = false)).
      { destruct i' as [<-|i'].
        - destruct l1 as [|x l1]; simpl in e; injection e as e1 e2; [left; exact e1|right; apply p; left; congruence].
        - assert (In i (l1 ++ j :: l2)) as h by (rewrite <- e; right; exact i').
          apply in_app_or in h; destruct h as [h|[h|h]]; [right; apply p, in_or_app; auto|left; auto|right; apply p,
            in_or_app; auto]. }
      destruct t as [->|[t1 t2]]; [split; assumption|].
      apply comes_first_eq in t1. apply comes_first_eq in g. split.
      * apply comes_first_eq. destruct t1 as [?|[? ?]], g as [?|[? ?]]; [left; lra|left; lra|left; lra|right; split;
        [lra|lia]].
      * apply not_true_iff_false; rewrite comes_first_eq; intros [?|[? ?]]; destruct t1 as [?|[? ?]], g as [?|[? ?]];
          try lra; lia.
Qed.

(** In this order, they run on all of it or on what they demand, whichever is less. *)
Lemma parts_sum n : forall l, (length l <= n)%nat -> NoDup l ->
  sum (map (part_in l) l) == Qmin d (sum (map (fun j => nth j b 0) l)).
Proof.
  induction n as [|n IH]; intros l len nd.
  - destruct l; [|simpl in len; lia]; simpl; symmetry; apply Q.min_r; exact d0.
  - destruct l as [|a l']; [simpl; symmetry; apply Q.min_r; exact d0|].
    destruct (last_of (a :: l') ltac:(discriminate) nd) as (l1 & j & l2 & e & p); rewrite e in *; clear e a l'.
    assert (nd' : NoDup (l1 ++ l2)) by (apply (NoDup_remove_1 _ _ _ nd)).
    assert (len' : (length (l1 ++ l2) <= n)%nat) by (rewrite app_length in *; simpl in len; lia).
    specialize (IH _ len' nd').
    assert (same_ahead : forall i, In i (l1 ++ l2) -> part_in (l1 ++ j :: l2) i == part_in (l1 ++ l2) i).
    { intros i h; unfold part_in, ahead_in. rewrite !map_app; simpl map. rewrite (proj2 (p i h)).
      rewrite !sum_app; simpl. rewrite Qplus_0_l. reflexivity. }
    assert (own_ahead : ahead_in (l1 ++ j :: l2) j == sum (map (fun i => nth i b 0) (l1 ++ l2))).
    { unfold ahead_in.
      assert (comes_first s j j = false) as jj.
      { apply not_true_iff_false; rewrite comes_first_eq; intros [?|[? ?]]; [lra|lia]. }
      rewrite !map_app; simpl map; rewrite jj, !sum_app; simpl; rewrite Qplus_0_l.
      rewrite <- !sum_app, <- !map_app. apply sum_ext; intros i h; rewrite (proj1 (p i h)); reflexivity. }
    rewrite map_app; simpl map; rewrite sum_app; simpl.
    assert (sum (map (part_in (l1 ++ j :: l2)) l1) + sum (map (part_in (l1 ++ j :: l2)) l2)
            == Qmin d (sum (map (fun i => nth i b 0) (l1 ++ l2)))) as rest.
    { rewrite <- sum_app, <- map_app, <- IH; apply sum_ext; exact same_ahead. }
    set (B := sum (map (fun i => nth i b 0) (l1 ++ l2))) in *.
    assert (sum (map (fun j => nth j b 0) (l1 ++ j :: l2)) == B + nth j b 0) as all.
    { unfold B; rewrite !map_app, !sum_app; simpl; ring. }
    rewrite all. unfold part_in at 2; rewrite own_ahead.
    pose proof (b0 j) as bj.
    assert (part : Qmax 0 (Qmin (nth j b 0) (d - B)) == Qmin d (B + nth j b 0) - Qmin d B).
    { destruct (Qlt_le_dec d B) as [h|h].
      - rewrite (Q.min_r (nth j b 0)), (Q.max_l 0), (Q.min_l d (_ + _)), (Q.min_l d B); lra.
      - rewrite (Q.min_r d B) by lra. destruct (Qlt_le_dec (d - B) (nth j b 0)).
        + rewrite (Q.min_r (nth j b 0)), (Q.max_r 0), (Q.min_l d); lra.
        + rewrite (Q.min_l (nth j b 0)), (Q.max_r 0), (Q.min_r d); lra. }
    fold sum in *. rewrite part. fold (sum (map (part_in (l1 ++ j :: l2)) l2)). lra.
Qed.
End Demand.

Lemma uses_le_part u b d j : demand u = Some d -> 0 <= nth j b 0 -> 
  uses u b j <= part_in (speedup u) b d (seq 0 (length (speedup u))) j.
Proof.
  intros e p; unfold uses; rewrite e; destruct (Qeq_bool _ 0); [apply Q.le_max_l|apply Qle_refl].
Qed.

Lemma used_within_demand u b d : demand u = Some d -> 0 <= d -> (forall j, 0 <= nth j b 0) -> sum (used u b) <= d.
Proof.
  intros e d0 b0; unfold used.
  eapply Qle_trans; [apply sum_le; intros j _; apply (uses_le_part u b d j e (b0 j))|].
  rewrite (parts_sum (speedup u) b d d0 b0 _ _ (le_n _) (seq_NoDup _ _)); apply Q.le_min_l.
Qed.
