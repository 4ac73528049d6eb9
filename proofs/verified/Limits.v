(** * Which allocations there are, as bounds of shares and rows: all sensible ones, or those within what is told *)

From Coq Require Import List NArith QArith Qminmax Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Paid.
Import ListNotations.
Local Open Scope Q_scope.
Local Open Scope list_scope.

(** Bounds by user and type, and the row that a multiplier names. *)
Record limits := Limits { cells : list (list (option Q * option Q)); row_in : dual -> option (N * form) }.

Definition between_b (low : option Q) (q : Q) (high : option Q) : bool :=
  match low with Some l => le l q | None => true end && match high with Some h => le q h | None => true end.
Lemma between_ok low q high : between_b low q high = true <-> between low q high.
Proof. unfold between_b, between; rewrite andb_true_iff; destruct low, high; rewrite ?leP; tauto. Qed.

(** All allowed ones keep them. *)
Definition limits_hold (m : market) (l : limits) (allowed : table -> Prop) : Prop :=
  forall y, allowed y -> sensible m y /\ Forall2 (Forall2 (fun ends q => between (fst ends) q (snd ends))) (cells l) y /\
    forall d k f z, row_in l d = Some (k, f) -> keeps y z f.

(** ** The most of a sum of throughputs *)
Definition cell_slot (s : (Q * user) * list (option Q * option Q)) : list box :=
  map (fun '(v, ends) => (mul (fst (fst s)) v, ends)) (combine (speedup (snd (fst s))) (snd s)).
Definition bound_in (l : limits) (counted : list (Q * user)) (duals : list dual) : option Q :=
  match resolve (row_in l) duals Empty with
  | Some rows => bound_of _ cell_slot (combine counted (cells l)) 0 rows
  | None => None
  end.

Lemma cell_slot_boxed q u ends b : List.length b = List.length (speedup u) ->
  Forall2 (fun e x => between (fst e) x (snd e)) ends b -> boxed (cell_slot ((q, u), ends)) b.
Proof.
  unfold cell_slot, boxed; simpl; generalize (speedup u); intros s l f; revert s l.
  induction f as [|[lo hi] x ends b h f IH]; intros [|v s] l; try discriminate; constructor; [exact h|].
  apply IH; simpl in l; lia.
Qed.
Lemma cell_slot_costs q u ends b : List.length b = List.length (speedup u) -> List.length ends = List.length b ->
  dot (map fst (cell_slot ((q, u), ends))) b == q * value u b.
Proof.
  unfold cell_slot, value; simpl; generalize (speedup u); intros s; revert ends b.
  induction s as [|v s IH]; intros [|e ends] [|x b] l k; try discriminate; simpl; try ring.
  rewrite IH by (simpl in *; lia); rewrite mulE; ring.
Qed.

Lemma bound_in_ok m l (allowed : table -> Prop) counted duals b y : valid m -> limits_hold m l allowed -> map snd counted = users m ->
  allowed y -> bound_in l counted duals = Some b -> weighted_sum counted y <= b.
Proof.
  intros v holds us ay; destruct (holds y ay) as (sy & fits & kept); unfold bound_in.
  destruct (resolve _ _ _) as [rows|] eqn:r; [|discriminate]; intro e.
  assert (ly : List.length counted = List.length y).
  { rewrite <- (map_length snd), us; symmetry; apply sy. }
  assert (lc : List.length (cells l) = List.length y) by exact (Forall2_len _ _ _ fits).
  assert (each : forall q u ends c, In ((q, u), ends, c) (combine (combine counted (cells l)) y) ->
    List.length c = List.length (speedup u) /\ Forall2 (fun e x => between (fst e) x (snd e)) ends c).
  { intros q u ends c i; destruct (has_at _ _ _ _ i) as (j & e1 & e2); apply nth_error_combine in e1.
    destruct e1 as [ec ee]; split.
    - exact (has_shaped m y u c v (proj1 (proj1 sy)) (counted_at m counted us y j q u c ec e2)).
    - destruct (Forall2_at _ _ _ _ _ fits ee) as (c' & ec' & h); rewrite e2 in ec'; injection ec' as <-; exact h. }
  assert (k : costs _ cell_slot (combine counted (cells l)) y + 0 * 0 <= b).
  { apply (bound_of_ok _ _ _ _ _ _ y 0 e).
    - apply Forall2_combine; [rewrite combine_length, ly, lc; apply Nat.min_id|].
      intros [[q u] ends] c i; destruct (each q u ends c i) as [lu f]; exact (cell_slot_boxed q u ends c lu f).
    - intros q f i; destruct (resolve_in _ _ _ _ _ _ r i) as (d & j & _ & h); exact (kept d j f 0 h). }
  assert (costs _ cell_slot (combine counted (cells l)) y == weighted_sum counted y); [|lra].
  unfold costs, weighted_sum; clear -each ly lc; revert ly lc each; generalize (cells l); revert y.
  induction counted as [|[q u] counted IH]; intros [|c y] [|ends cs] ly lc each; try discriminate; [reflexivity|].
  cbn [combine map sum fold_right]; fold (sum (map (fun '(s, b0) => dot (map fst (cell_slot s)) b0) (combine (combine counted cs) y))).
  fold (sum (map (fun '(q0, u0, b0) => q0 * value u0 b0) (combine counted y))).
  rewrite (IH y cs) by (try (simpl in *; lia); intros; apply (each q0 u0); right; assumption).
  destruct (each q u ends c (or_introl eq_refl)) as [lu f].
  rewrite (cell_slot_costs q u ends c lu (Forall2_len _ _ _ f)); reflexivity.
Qed.

(** ** All sensible allocations *)
Definition plain_limits (m : market) : limits :=
  Limits (map (fun u => map snd (sharing_slot (0, u))) (users m)) (sharing_row (context_of m)).

Lemma plain_limits_hold m : valid m -> limits_hold m (plain_limits m) (sensible m).
Proof.
  intros v y sy; split; [exact sy|split].
  - pose proof (counted_boxed m (alike 0 m) (alike_users 0 m) y v sy) as f; unfold plain_limits, alike in *; cbn [cells].
    revert f; generalize (users m); intros us; revert y sy; clear; intros y _; revert y.
    induction us as [|u us IH]; intros y f; inversion f as [|? b ? y' h t]; subst; constructor; [|exact (IH y' t)].
    clear -h; unfold boxed in h; revert h; generalize (sharing_slot (0, u)); intros l h; induction h as [|[q [lo hi]] x l b k h IH];
      constructor; assumption.
  - intros d k f z e; exact (sharing_row_kept m d k f y z v sy e).
Qed.

(** ** Those within what is told of entitlements *)
Section Told.
Variables (m : market) (e : entitlements) (o : owed_told).
Notation k := (List.length (capacity m)).

Definition floor_now (i : nat) (u : user) : list Q :=
  used_now u (map (fun j => match limit_at (guarantees e) i j with
    | Some g => match limit_at (caps e) i j with Some c => smaller g c | None => g end
    | None => 0 end) (seq 0 k)).
Lemma floor_now_ok i u j : nth j (floor_now i u) 0 == nth j (floor_of m e i u) 0.
Proof.
  unfold floor_now, floor_of; transitivity (nth j (used u (map (fun j => match limit_at (guarantees e) i j with
    | Some g => match limit_at (caps e) i j with Some c => smaller g c | None => g end
    | None => 0 end) (seq 0 k))) 0).
  - apply equal_nth, used_now_ok.
  - apply equal_nth, used_equal, equal_map; intro c; destruct (limit_at _ i c); [|reflexivity].
    destruct (limit_at _ i c); [apply smallerE|reflexivity].
Qed.

Definition told_cell (i j : nat) (s there floor : Q) : option Q * option Q :=
  (Some floor, Some (if nothing s then 0 else match limit_at (caps e) i j with Some c => smaller c there | None => there end)).
Definition told_cells (iu : nat * user) : list (option Q * option Q) :=
  let floor := floor_now (fst iu) (snd iu) in
  map (fun '(j, (s, there)) => told_cell (fst iu) j s there (nth j floor 0))
    (combine (seq 0 k) (combine (speedup (snd iu)) (capacity m))).

Definition floor_word : text := word "group_floor".
Definition cap_word : text := word "group_cap".
Definition group_form (g j : nat) (low high : option Q) : form :=
  Form [] (map (fun i => (N.of_nat i, unit_at j)) (people_in m e (people m + g))) 0 low high.
Definition told_row (c : context) (d : dual) : option (N * form) :=
  match at_row d with
  | [i] =>
    if same_text (of_row d) capacity_word then
      option_map (fun cap => (i, Form (unit_at (N.to_nat i)) [] 0 None (Some (smaller (nth (N.to_nat i) (lent_of m o) 0) cap))))
        (at_ (cap_at c) i)
    else sharing_row c d
  | [g; j] =>
    let '(g', j') := (N.to_nat g, N.to_nat j) in
    if negb (N.ltb g (N.of_nat (List.length (groups e))) && N.ltb j (many_types c)) then None
    else let at_ := (many_types c + many_users c + 2 * (g * many_types c + j))%N in
    if same_text (of_row d) floor_word then Some (at_, group_form g' j' (Some (cell (floors_told o) g' j')) None)
    else if same_text (of_row d) cap_word
      then Some (N.succ at_, group_form g' j' None (limit_at (caps e) (people m + g') j'))
    else None
  | _ => None
  end.

Definition told_limits : limits :=
  let c := context_of m in
  Limits (map told_cells (combine (seq 0 (List.length (users m))) (users m))) (told_row c).

Lemma group_form_value g j low high y z :
  form_value (group_form g j low high) y z == sum (map (fun i => cell y i j) (people_in m e (people m + g))).
Proof.
  unfold form_value, group_form; cbn [everywhere parts extra]; rewrite sum_dot_nil, map_map.
  assert (sum (map (fun i => dot (unit_at j) (bundle y (N.of_nat i))) (people_in m e (people m + g))) ==
    sum (map (fun i => cell y i j) (people_in m e (people m + g)))); [|lra].
  apply sum_ext; intros i _; rewrite dot_unit; unfold bundle, cell; rewrite Nat2N.id; reflexivity.
Qed.

Lemma group_form_kept g j lo hi y z :
  between lo (sum (map (fun i => cell y i j) (people_in m e (people m + g)))) hi -> keeps y z (group_form g j lo hi).
Proof.
  intros [a b]; unfold keeps, between; change (low (group_form g j lo hi)) with lo; change (high (group_form g j lo hi)) with hi.
  pose proof (group_form_value g j lo hi y z) as v; destruct lo, hi; rewrite ?v; auto.
Qed.

Lemma told_row_kept d i f y z : valid m -> within_told m e o y -> told_row (context_of m) d = Some (i, f) -> keeps y z f.
Proof.
  intros v (sy & _ & lent & told); unfold told_row; destruct (at_row d) as [|a [|b [|? ?]]] eqn:ed; try discriminate.
  - destruct (same_text _ capacity_word).
    + cbn [cap_at context_of]; rewrite at_stored; destruct (nth_error _ _) as [c|] eqn:e1; [|discriminate].
      intro h; injection h as <- <-; unfold keeps; cbn [low high]; split; [exact I|]; rewrite form_all, sum_dot_unit, smallerE.
      assert (l : (N.to_nat a < k)%nat) by (apply nth_error_Some; congruence).
      apply Q.min_glb; [exact (lent _ l)|]; rewrite <- (nth_error_nth _ _ 0 e1); apply sy; exact l.
    + apply (sharing_row_kept m d i f y z v sy).
  - destruct (N.ltb a _) eqn:la; [|discriminate]; destruct (N.ltb b _) eqn:lb; [|discriminate]; simpl negb; cbv iota zeta.
    apply N.ltb_lt in la; apply N.ltb_lt in lb; cbn [many_types context_of] in lb.
    destruct (told (N.to_nat a) (N.to_nat b)) as [fl cp]; [lia|lia|].
    destruct (same_text _ floor_word); [|destruct (same_text _ cap_word); [|discriminate]]; intro h; injection h as <- <-;
      apply group_form_kept; split; auto; exact I.
Qed.

Lemma told_cells_hold y : valid m -> within_told m e o y ->
  Forall2 (Forall2 (fun ends q => between (fst ends) q (snd ends)))
    (map told_cells (combine (seq 0 (List.length (users m))) (users m))) y.
Proof.
  intros v (sy & cl & _); destruct sy as [[sh [nn fit]] sen].
  assert (g : forall us y i, List.length us = List.length y ->
    (forall j u b, nth_error (combine us y) j = Some (u, b) ->
       Forall2 (fun ends q => between (fst ends) q (snd ends)) (told_cells (i + j, u)%nat) b) ->
    Forall2 (Forall2 (fun ends q => between (fst ends) q (snd ends))) (map told_cells (combine (seq i (List.length us)) us)) y).
  { clear; induction us as [|u us IH]; intros [|b y] i l h; try discriminate; [constructor|].
    cbn [List.length seq combine map]; constructor.
    - specialize (h 0%nat u b eq_refl); rewrite Nat.add_0_r in h; exact h.
    - apply IH; [simpl in l; lia|]; intros j w c ec; specialize (h (S j) w c ec).
      replace (S i + j)%nat with (i + S j)%nat by lia; exact h. }
  apply g; [symmetry; apply sh|]; intros i u b ei; rewrite Nat.add_0_l; clear g.
  assert (hb : has m y u b) by exact (nth_error_In _ _ ei).
  assert (lb : List.length b = k) by (apply sh; exact (in_combine_r _ _ _ _ hb)).
  assert (lu : List.length (speedup u) = k) by (rewrite <- (has_shaped m y u b v sh hb); exact lb).
  assert (each : forall j q, nth_error b j = Some q -> forall s c, nth_error (speedup u) j = Some s ->
    nth_error (capacity m) j = Some c -> let ends := told_cell i j s c (nth j (floor_now i u) 0) in
    between (fst ends) q (snd ends)).
  { intros j q eq s c es ec; unfold told_cell, between; cbn [fst snd].
    assert (jk : (j < k)%nat) by (apply nth_error_Some; congruence).
    destruct (cl i u b j ei jk) as [fl cp]; rewrite (nth_error_nth _ _ 0 eq) in fl, cp; split; [rewrite floor_now_ok; exact fl|].
    pose proof (one_of_given y j b nn (in_combine_r _ _ _ _ hb)) as le1; rewrite (nth_error_nth _ _ 0 eq) in le1.
    pose proof (fit j jk) as le2; rewrite (nth_error_nth _ _ 0 ec) in le2.
    destruct (nothing s) eqn:ns.
    - apply nothing_true in ns; destruct (sen u b hb) as [z _]; specialize (z j jk).
      rewrite (nth_error_nth _ _ 0 es), (nth_error_nth _ _ 0 eq) in z; rewrite (z ns); apply Qle_refl.
    - destruct (limit_at (caps e) i j); [rewrite smallerE; apply Q.min_glb; [exact cp|lra]|lra]. }
  unfold told_cells; cbn [fst snd]; revert each; generalize (nth 0 (floor_now i u) 0); intros _ each.
  assert (h : forall n b s c, List.length b = List.length s -> List.length b = List.length c ->
    (forall j q, nth_error b j = Some q -> forall s' c', nth_error s j = Some s' -> nth_error c j = Some c' ->
       let ends := told_cell i (n + j) s' c' (nth (n + j) (floor_now i u) 0) in between (fst ends) q (snd ends)) ->
    Forall2 (fun ends q => between (fst ends) q (snd ends))
      (map (fun '(j, (s, there)) => told_cell i j s there (nth j (floor_now i u) 0)) (combine (seq n (List.length b)) (combine s c))) b).
  { clear; intros n b; revert n; induction b as [|q b IH]; intros n [|s ss] [|c cs] l1 l2 h; try discriminate; [constructor|].
    cbn [List.length seq combine map]; constructor.
    - specialize (h 0%nat q eq_refl s c eq_refl eq_refl); rewrite Nat.add_0_r in h; exact h.
    - apply IH; [simpl in l1; lia|simpl in l2; lia|]; intros j q' eq s' c' es ec.
      specialize (h (S j) q' eq s' c' es ec); replace (S n + j)%nat with (n + S j)%nat by lia; exact h. }
  rewrite <- lb; apply h; [lia|lia|exact each].
Qed.

Lemma told_limits_hold : valid m -> limits_hold m told_limits (within_told m e o).
Proof.
  intros v y w; split; [apply w|split; [exact (told_cells_hold y v w)|]].
  intros d i f z h; exact (told_row_kept d i f y z v w h).
Qed.

(** ** Decided *)
Definition cell_fine (y : table) (i : nat) (floor : list Q) (j : nat) : bool :=
  le (nth j floor 0) (cell y i j) && match limit_at (caps e) i j with Some c => le (cell y i j) c | None => true end.
Definition within_told_b (y : table) : bool :=
  let ks := seq 0 k in
  sensible_b m y &&
  forallb (fun '(i, u) => let floor := floor_now i u in forallb (cell_fine y i floor) ks)
    (combine (seq 0 (List.length (users m))) (users m)) &&
  (let all := out y in forallb (fun j => le (nth j all 0) (nth j (lent_of m o) 0)) ks) &&
  forallb (fun g => let inside := people_in m e (people m + g) in forallb (fun j =>
    let all := fast_sum (map (fun i => cell y i j) inside) in
    le (cell (floors_told o) g j) all && match limit_at (caps e) (people m + g) j with Some c => le all c | None => true end)
    ks) (seq 0 (List.length (groups e))).

Lemma within_told_ok y : valid m -> within_told_b y = true -> within_told m e o y.
Proof.
  intros v; unfold within_told_b; cbv zeta; rewrite !andb_true_iff, !forallb_forall; intros [[[s c] l] g].
  apply (sensible_ok m y v) in s; split; [exact s|split; [|split]].
  - intros i u b j ei jk; pose proof (proj1 (nth_error_combine _ _ _ _ _) ei) as [eu eb].
    assert (il : (i < List.length (users m))%nat) by (apply nth_error_Some; congruence).
    assert (ii : In (i, u) (combine (seq 0 (List.length (users m))) (users m))).
    { apply (combine_has _ _ i); [|exact eu]; rewrite nth_error_nth' with (d := 0%nat) by (rewrite seq_length; exact il).
      rewrite seq_nth by exact il; reflexivity. }
    specialize (c _ ii); cbv beta iota zeta in c; rewrite forallb_forall in c; specialize (c j (proj2 (in_seq0 _ _) jk)).
    unfold cell_fine in c; rewrite andb_true_iff, leP in c; destruct c as [c1 c2].
    unfold cell in c1, c2; rewrite (nth_error_nth _ _ [] eb) in c1, c2; rewrite floor_now_ok in c1; split; [exact c1|].
    destruct (limit_at _ i j); [apply leP, c2|exact I].
  - intros j jk; specialize (l j (proj2 (in_seq0 _ _) jk)); apply leP in l; rewrite nth_out in l; exact l.
  - intros a j al jk; cbv zeta; specialize (g a (proj2 (in_seq0 _ _) al)); cbv beta zeta in g; rewrite forallb_forall in g.
    specialize (g j (proj2 (in_seq0 _ _) jk)); rewrite andb_true_iff, leP, fast_sumE in g; destruct g as [g1 g2].
    split; [exact g1|]; destruct (limit_at _ _ j); [rewrite leP, fast_sumE in g2; exact g2|exact I].
Qed.

(** A floor is no more than the guarantee, of which there is none where it has no bound; and there is one tier. *)
Definition told_fine : bool :=
  forallb (fun g => forallb (fun j => le (cell (floors_told o) g j)
    match limit_at (guarantees e) (people m + g) j with Some q => q | None => 0 end) (seq 0 k)) (seq 0 (List.length (groups e))) &&
  match tier e with [] => false | t :: l => forallb (Z.eqb t) l end.
End Told.

(** What is told fits the market: the limits, and whether an allocation keeps them. *)
Definition limits_of (m : market) (owed : option owed_told) : option (limits * (table -> bool)) :=
  match entitled m, owed with
  | None, None => Some (plain_limits m, sensible_b m)
  | Some e, Some o => if told_fine m e o then Some (told_limits m e o, within_told_b m e o) else None
  | _, _ => None
  end.
Lemma limits_of_ok m owed l inside : valid m -> limits_of m owed = Some (l, inside) ->
  limits_hold m l (among m owed) /\ forall y, inside y = true -> among m owed y.
Proof.
  intros v; unfold limits_of, among; destruct (entitled m) as [e|], owed as [o|]; try discriminate.
  - destruct (told_fine m e o); [|discriminate]; intro h; injection h as <- <-.
    split; [exact (told_limits_hold m e o v)|intros y; exact (within_told_ok m e o y v)].
  - intro h; injection h as <- <-; split; [exact (plain_limits_hold m v)|intros y; exact (sensible_ok m y v)].
Qed.
