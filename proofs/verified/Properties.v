(** * Properties of an allocation: each is decided, whichever answer is right *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Allocations Whole.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Sharing incentive *)
Definition sharing_incentive_b (m : market) (x : table) : bool :=
  let all := all_weight m in everybody m x (fun u b => le (fair_now m all u) (worth_now u b)).

Lemma sharing_incentive_ok m x : sharing_incentive_b m x = true <-> sharing_incentive m x.
Proof.
  unfold sharing_incentive_b, sharing_incentive; rewrite everybody_ok; split; intros h u b i; specialize (h u b i).
  - apply leP in h; rewrite fair_now_ok, worth_now_ok in h; exact h.
  - apply leP; rewrite fair_now_ok, worth_now_ok; exact h.
Qed.

(** ** Envy *)
Definition worth_of_others (u v : user) (c : list Q) : Q := worth_now u (map (mul (weight u / weight v)) c).

Lemma worth_of_others_ok u v c : worth_of_others u v c == worth u (scaled (weight u / weight v) c).
Proof. unfold worth_of_others; rewrite worth_now_ok; apply worth_equal, equal_map; intro; apply mulE. Qed.

(** The others, with their bundles for each unit of weight in whole numbers. *)
Definition other : Type := (user * list Q) * ((list Q * (list Z * positive)) * bool).
Definition others (m : market) (x : table) : list other :=
  map (fun '(u, b) => let w := as_whole (by_weight (weight u) b) in ((u, b), (w, checked w))) (combine (users m) x).

(** First in whole numbers, as if [u] could use all of it. *)
Definition content (u : user) (s : list Q * (list Z * positive)) (sure : bool) (own limit : Q) (o : other) : bool :=
  let '((v, c), (w, ok)) := o in
  if sure && ok && at_most_whole (snd s) limit w then true else le (worth_of_others u v c) own.

Definition envy_free_b (m : market) (x : table) : bool :=
  let all := others m x in
  everybody m x (fun u b =>
    let s := as_whole (speedup u) in
    let own := worth_now u b in
    let limit := mul own (/ weight u) in
    let sure := checked s in
    forallb (content u s sure own limit) all).

Lemma content_ok m x u b v c :
  valid m -> shaped m x -> (forall b share, In b x -> In share b -> 0 <= share) -> has m x u b -> has m x v c ->
  let s := as_whole (speedup u) in let w := as_whole (by_weight (weight v) c) in let own := worth_now u b in
  content u s (checked s) own (mul own (/ weight u)) ((v, c), (w, checked w)) = true <->
  worth u (scaled (weight u / weight v) c) <= worth u b.
Proof.
  intros va sh nn i j s w own; unfold content.
  assert (slow : le (worth_of_others u v c) own = true <-> worth u (scaled (weight u / weight v) c) <= worth u b).
  { unfold own; rewrite leP, worth_of_others_ok, worth_now_ok; reflexivity. }
  destruct (checked s && checked w && at_most_whole (snd s) (mul own (/ weight u)) w) eqn:f; [|exact slow].
  split; [intros _|reflexivity]; rewrite !andb_true_iff in f; destruct f as [[s' ok] h].
  destruct (proj2 (proj2 (proj2 (proj2 va))) u (in_combine_l _ _ _ _ i)) as (lu & su & wu & _ & _).
  destruct (proj2 (proj2 (proj2 (proj2 va))) v (in_combine_l _ _ _ _ j)) as (_ & _ & wv & _ & _).
  unfold s, w, as_whole, checked, at_most_whole in *; cbn [snd] in h.
  destruct (whole (speedup u)) as [zs d]; destruct (whole (by_weight (weight v) c)) as [zc e].
  apply leP in h; rewrite (zdot_dot _ _ _ _ _ _ s' ok), mulE in h.
  assert (dot (speedup u) (by_weight (weight v) c) == / weight v * value u c) as e1.
  { unfold by_weight, value; rewrite <- dot_scale_r; apply equal_dot, equal_map; intro; apply mulE. }
  assert (q0 : 0 <= weight u / weight v) by (apply Qle_shift_div_l; lra).
  assert (n : forall k, 0 <= nth k (scaled (weight u / weight v) c) 0).
  { apply nth_nonneg; intros q k; unfold scaled in k; apply in_map_iff in k; destruct k as (y & <- & k).
    pose proof (nn c y (in_combine_r _ _ _ _ j) k); nra. }
  assert (l : length (scaled (weight u / weight v) c) = length (speedup u)).
  { unfold scaled; rewrite map_length, lu; apply sh; exact (in_combine_r _ _ _ _ j). }
  eapply Qle_trans; [exact (worth_le_value u _ su l n)|].
  unfold scaled, value; rewrite dot_scale_r; fold (value u c). rewrite e1 in h.
  unfold own in h; rewrite worth_now_ok in h.
  assert (weight u / weight v * value u c == weight u * (/ weight v * value u c)) as -> by (unfold Qdiv; ring).
  assert (worth u b == weight u * (worth u b * / weight u)) as -> by (field; lra).
  set (p := / weight v * value u c) in *; set (r := worth u b * / weight u) in *; nra.
Qed.

Lemma envy_free_ok m x : valid m -> shaped m x -> (forall b share, In b x -> In share b -> 0 <= share) ->
  (envy_free_b m x = true <-> envy_free m x).
Proof.
  intros va sh nn; unfold envy_free_b, envy_free; cbv zeta; rewrite everybody_ok.
  assert (o : forall v c, has m x v c ->
    In ((v, c), (as_whole (by_weight (weight v) c), checked (as_whole (by_weight (weight v) c)))) (others m x)).
  { intros v c j; unfold others; apply in_map_iff; exists (v, c); split; [reflexivity|exact j]. }
  split.
  - intros h u b v c i j; specialize (h u b i); rewrite forallb_forall in h; specialize (h _ (o v c j)).
    apply (content_ok m x u b v c va sh nn i j) in h; unfold envies; lra.
  - intros h u b i; apply forallb_forall; intros [[v c] [w ok]] k.
    unfold others in k; apply in_map_iff in k; destruct k as ([v' c'] & e & j); injection e as <- <- <- <-.
    apply (content_ok m x u b v' c' va sh nn i j).
    destruct (Qlt_le_dec (worth u b) (worth u (scaled (weight u / weight v') c'))) as [l|]; [|assumption].
    exfalso; exact (h u b v' c' i j l).
Qed.

(** ** Work conservation *)
Fixpoint of_no_use (idle speeds : list Q) : bool :=
  match idle, speeds with i :: idle, s :: speeds => (if lt 0 i then nothing s else true) && of_no_use idle speeds | _,
    _ => true end.

Lemma of_no_use_ok speeds : forall idle, length idle = length speeds ->
  (of_no_use idle speeds = true <-> forall j, (j < length speeds)%nat -> 0 < nth j idle 0 -> nth j speeds 0 == 0).
Proof.
  induction speeds as [|s speeds IH]; intros [|i idle] l; try discriminate; simpl.
  - split; [intros _ j k; lia|reflexivity].
  - rewrite andb_true_iff, IH by (simpl in l; lia); split.
    + intros [h t] [|j] k p; [|apply t; [lia|exact p]].
      destruct (lt 0 i) eqn:z; [apply nothing_true; exact h|apply lt_false in z; lra].
    + intro h; split; [|intros j k; apply (h (S j)); lia].
      destruct (lt 0 i) eqn:z; [|reflexivity]; apply nothing_true, (h 0%nat); [lia|apply ltP; exact z].
Qed.

Fixpoint minus (a b : list Q) : list Q :=
  match a with [] => [] | x :: a => match b with [] => x :: a | y :: b => sub x y :: minus a b end end.

Lemma minus_length a : forall b, length (minus a b) = length a.
Proof. induction a as [|x a IH]; intros [|y b]; simpl; try reflexivity; rewrite IH; reflexivity. Qed.
Lemma nth_minus a : forall b j, (j < length a)%nat -> nth j (minus a b) 0 == nth j a 0 - nth j b 0.
Proof.
  induction a as [|x a IH]; intros [|y b] [|j] l; simpl in *; try lia; try ring; [apply subE|apply IH; lia].
Qed.

Definition in_use (m : market) (x : table) : table := map (fun '(u, b) => used_now u b) (combine (users m) x).
Definition idle_now (m : market) (x : table) : list Q := minus (capacity m) (out (in_use m x)).

Lemma idle_now_ok m x j : (j < length (capacity m))%nat -> nth j (idle_now m x) 0 == idle m x j.
Proof.
  intro l; unfold idle_now, idle; rewrite nth_minus, nth_out by exact l; unfold given, in_use; rewrite map_map.
  rewrite (sum_ext _ (fun '(u, b) => nth j (used u b) 0)); [reflexivity|].
  intros [u b] _; apply equal_nth, used_now_ok.
Qed.

Definition wants_more_b (u : user) (b : list Q) : bool :=
  match demand u with Some d => lt (fast_sum (used_now u b)) d | None => true end.

Lemma wants_more_ok u b : wants_more_b u b = true <-> wants_more u b.
Proof.
  unfold wants_more_b, wants_more; destruct (demand u); [|tauto].
  rewrite ltP, fast_sumE, (equal_sum _ _ (used_now_ok u b)); reflexivity.
Qed.

Definition work_conserving_b (m : market) (x : table) : bool :=
  let idle := idle_now m x in
  everybody m x (fun u b => if wants_more_b u b then of_no_use idle (speedup u) else true).

Lemma work_conserving_ok m x : valid m -> (work_conserving_b m x = true <-> work_conserving m x).
Proof.
  intro va; unfold work_conserving_b, work_conserving; cbv zeta; rewrite everybody_ok.
  assert (L : forall u b, has m x u b -> length (idle_now m x) = length (speedup u) /\
    length (capacity m) = length (speedup u)).
  { intros u b i; destruct (proj2 (proj2 (proj2 (proj2 va))) u (in_combine_l _ _ _ _ i)) as (l & _).
    unfold idle_now; rewrite minus_length; auto. }
  split.
  - intros h u b j i w k p; specialize (h u b i); destruct (L u b i) as [l l'].
    rewrite (proj2 (wants_more_ok u b) w) in h. apply (proj1 (of_no_use_ok _ _ l) h); [lia|].
    rewrite idle_now_ok by exact k; exact p.
  - intros h u b i; destruct (L u b i) as [l l']; destruct (wants_more_b u b) eqn:w; [|reflexivity].
    apply wants_more_ok in w; apply (of_no_use_ok _ _ l); intros j k p.
    apply (h u b j i w); [lia|]. rewrite <- idle_now_ok by lia; exact p.
Qed.

(** ** Types next to each other *)
Inductive seen := Before | Inside | After.

Fixpoint in_a_row (cap b : list Q) (now : seen) : bool :=
  match cap, b with
  | c :: cap, share :: b =>
    if nothing c then in_a_row cap b now
    else if lt 0 share then match now with After => false | _ => in_a_row cap b Inside end
    else in_a_row cap b (match now with Before => Before | _ => After end)
  | _, _ => true
  end.

Definition there (cap : list Q) (j : nat) : Prop := ~ nth j cap 0 == 0.
Definition held (b : list Q) (j : nat) : Prop := 0 < nth j b 0.

Definition specified (cap b : list Q) (now : seen) : Prop :=
  match now with
  | After => forall l, there cap l -> ~ held b l
  | Inside => forall j l, (j < l)%nat -> there cap j -> there cap l -> held b l -> held b j
  | Before => forall i j l, (i < j < l)%nat -> there cap i -> there cap j -> there cap l -> held b i -> held b l ->
    held b j
  end.

Lemma in_a_row_ok cap : forall b now, length b = length cap -> (in_a_row cap b now = true <-> specified cap b now).
Proof.
  induction cap as [|c cap IH]; intros [|share b] now l; try discriminate.
  - simpl; split; [intros _|reflexivity].
    assert (z : forall j, ~ held [] j) by (intros [|j] h; unfold held in h; simpl in h; lra).
    destruct now; simpl; intros; try (intro; eapply z; eassumption); exfalso; eapply z; eassumption.
  - simpl in l; simpl in_a_row.
    assert (tS : forall j, there (c :: cap) (S j) <-> there cap j) by reflexivity.
    assert (hS : forall j, held (share :: b) (S j) <-> held b j) by reflexivity.
    assert (t0 : there (c :: cap) 0 <-> ~ c == 0) by reflexivity.
    assert (h0 : held (share :: b) 0 <-> 0 < share) by reflexivity.
    destruct (nothing c) eqn:zc.
    + apply nothing_true in zc; rewrite (IH b now) by lia.
      destruct now; simpl; split.
      * intros h [|i] [|j] [|k] lt ti tj tk; try lia; [exfalso; apply t0 in ti; auto|].
        apply (h i j k); [lia|exact ti|exact tj|exact tk].
      * intros h i j k lt; apply (h (S i) (S j) (S k)); lia.
      * intros h [|j] [|k] lt tj tk; try lia; [exfalso; apply t0 in tj; auto|].
        apply (h j k); [lia|exact tj|exact tk].
      * intros h j k lt; apply (h (S j) (S k)); lia.
      * intros h [|k] tk; [exfalso; apply t0 in tk; auto|apply (h k tk)].
      * intros h k; apply (h (S k)).
    + apply nothing_false in zc; apply t0 in zc. destruct (lt 0 share) eqn:zs.
      * apply ltP in zs; apply h0 in zs; destruct now.
        -- rewrite (IH b Inside) by lia; simpl; split.
           ++ intros h [|i] [|j] [|k] lt ti tj tk hi hk; try lia; [apply (h j k); try lia; assumption|].
              apply (h j k); [lia|exact tj|exact tk|exact hk].
           ++ intros h j k lt tj tk hk; apply (h 0 (S j) (S k))%nat; try lia; assumption.
        -- rewrite (IH b Inside) by lia; simpl; split.
           ++ intros h [|j] [|k] lt tj tk hk; try lia; [exact zs|apply (h j k); try lia; assumption].
           ++ intros h j k lt; apply (h (S j) (S k)); lia.
        -- simpl; split; [discriminate|intro h; exfalso; exact (h 0%nat zc zs)].
      * assert (nh : ~ held (share :: b) 0) by (rewrite h0; apply lt_false in zs; lra). destruct now.
        -- rewrite (IH b Before) by lia; simpl; split.
           ++ intros h [|i] [|j] [|k] lt ti tj tk hi hk; try lia; [contradiction|].
              apply (h i j k); [lia|exact ti|exact tj|exact tk|exact hi|exact hk].
           ++ intros h i j k lt; apply (h (S i) (S j) (S k)); lia.
        -- rewrite (IH b After) by lia; simpl; split.
           ++ intros h [|j] [|k] lt tj tk hk; try lia; [exfalso; exact (h k tk hk)|exfalso; exact (h k tk hk)].
           ++ intros h k tk hk; apply nh; apply (h 0 (S k))%nat; try lia; assumption.
        -- rewrite (IH b After) by lia; simpl; split.
           ++ intros h [|k] tk; [exact nh|exact (h k tk)].
           ++ intros h k tk; exact (h (S k) tk).
Qed.

Definition adjacent_b (m : market) (x : table) : bool := forallb (fun b => in_a_row (capacity m) b Before) x.

Lemma adjacent_ok m x : shaped m x -> (adjacent_b m x = true <-> adjacent m x).
Proof.
  intros [_ sh]; unfold adjacent_b, adjacent; rewrite forallb_forall; split.
  - intros h b i j l k lt hi hl ti tj tl.
    exact (proj1 (in_a_row_ok _ b Before (sh b k)) (h b k) i j l lt ti tj tl hi hl).
  - intros h b k; apply (in_a_row_ok _ b Before (sh b k)); intros i j l lt ti tj tl hi hl.
    exact (h b i j l k lt hi hl ti tj tl).
Qed.
