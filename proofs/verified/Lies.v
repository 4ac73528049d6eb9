(** * A lie that pays *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Decided Pareto Optima Served.
Import ListNotations.
Local Open Scope Q_scope.

(** ** The same market *)

Fixpoint all2 {A} (f : A -> A -> bool) (a b : list A) : bool :=
  match a, b with [], [] => true | x :: a, y :: b => f x y && all2 f a b | _, _ => false end.

Lemma all2_ok {A} (f : A -> A -> bool) (R : A -> A -> Prop) : (forall x y, f x y = true <-> R x y) ->
  forall a b, all2 f a b = true <-> Forall2 R a b.
Proof.
  intro h; induction a as [|x a IH]; intros [|y b]; simpl; split; try discriminate; intro k; try (inversion k; fail);
    try constructor; try (apply andb_true_iff in k; destruct k as [k1 k2]).
  - apply h; exact k1.
  - apply IH; exact k2.
  - inversion k; subst; apply andb_true_iff; split; [apply h; assumption|apply IH; assumption].
Qed.

Lemma same_text_ok a : forall b, same_text a b = true <-> a = b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; split; try discriminate; try reflexivity.
  - rewrite andb_true_iff, Z.eqb_eq, IH; intros [-> ->]; reflexivity.
  - intro e; injection e as -> ->; rewrite Z.eqb_refl; apply IH; reflexivity.
Qed.

Definition like_user_b (u v : user) : bool :=
  same_text (name u) (name v) && all2 same (speedup u) (speedup v) && same (weight u) (weight v) &&
  match demand u, demand v with Some d, Some e => same d e | None, None => true | _, _ => false end.

Lemma like_user_ok u v : like_user_b u v = true <-> like_user u v.
Proof.
  unfold like_user_b, like_user; rewrite !andb_true_iff, same_text_ok, (all2_ok _ _ sameP), sameP.
  destruct (demand u), (demand v); rewrite ?sameP; intuition discriminate.
Qed.

Definition like_limits_b : list (list (option Q)) -> list (list (option Q)) -> bool :=
  all2 (all2 (fun p q => match p, q with Some p, Some q => same p q | None, None => true | _, _ => false end)).
Definition like_gang_b (g h : gang) : bool :=
  Nat.eqb (waiting g) (waiting h) && same (gang_gpus g) (gang_gpus h) && all2 Nat.eqb (allowed g) (allowed h) &&
  all2 (fun p q => same_text (fst p) (fst q) && same (snd p) (snd q)) (takes g) (takes h).
Definition same_good (g h : text * text) : bool := same_text (fst g) (fst h) && same_text (snd g) (snd h).
Definition like_entitlements_b (a b : entitlements) : bool :=
  all2 same_text (groups a) (groups b) && all2 same_group (around a) (around b) && all2 same_good (goods a) (goods b) &&
  all2 same (stock a) (stock b) && like_limits_b (guarantees a) (guarantees b) && like_limits_b (caps a) (caps b) &&
  all2 same (borrow_weight a) (borrow_weight b) && all2 Z.eqb (tier a) (tier b) &&
  all2 (all2 same) (in_hand a) (in_hand b) && all2 (all2 same) (pinned a) (pinned b) &&
  all2 like_gang_b (pending a) (pending b).

Definition like_b (m m' : market) : bool :=
  all2 same_text (types m) (types m') && all2 same (capacity m) (capacity m') && all2 like_user_b (users m) (users m')
  && match entitled m, entitled m' with
     | Some a, Some b => like_entitlements_b a b | None, None => true | _, _ => false end.

Lemma Forall2_eq {A} (a b : list A) : Forall2 eq a b <-> a = b.
Proof.
  split; [induction 1; congruence|intros ->; induction b; constructor; auto].
Qed.

Lemma like_limits_ok a b : like_limits_b a b = true <-> like_limits a b.
Proof.
  apply all2_ok; apply all2_ok; intros [p|] [q|]; rewrite ?sameP; intuition discriminate.
Qed.

Lemma like_gang_ok g h : like_gang_b g h = true <-> like_gang g h.
Proof.
  unfold like_gang_b, like_gang; rewrite !andb_true_iff, Nat.eqb_eq, sameP, (all2_ok _ _ Nat.eqb_eq), Forall2_eq.
  rewrite (all2_ok _ (fun p q : text * Q => fst p = fst q /\ snd p == snd q)); [tauto|].
  intros p q; rewrite andb_true_iff, same_text_ok, sameP; reflexivity.
Qed.

Lemma like_entitlements_ok a b : like_entitlements_b a b = true <-> like_entitlements a b.
Proof.
  unfold like_entitlements_b, like_entitlements.
  rewrite !andb_true_iff, !like_limits_ok, (all2_ok _ _ same_text_ok), (all2_ok _ _ Z.eqb_eq), !(all2_ok _ _ sameP),
    !(all2_ok _ _ (all2_ok _ _ sameP)), (all2_ok _ _ like_gang_ok).
  rewrite (all2_ok same_group eq), (all2_ok same_good eq), !Forall2_eq; [tauto| |].
  - intros [p q] [r t]; unfold same_good; simpl; rewrite andb_true_iff, !same_text_ok.
    split; [intros [-> ->]; reflexivity|intro e; injection e; auto].
  - exact same_group_ok.
Qed.

Lemma like_ok m m' : like_b m m' = true <-> like m m'.
Proof.
  unfold like_b, like; rewrite !andb_true_iff, (all2_ok _ _ same_text_ok), (all2_ok _ _ sameP),
    (all2_ok _ _ like_user_ok), Forall2_eq.
  destruct (entitled m), (entitled m'); rewrite ?like_entitlements_ok; intuition discriminate.
Qed.

(** ** Within its demand, a user uses all that it can run on *)

Lemma sum_at (f : nat -> Q) j k : (j < k)%nat -> sum (map (fun i => if Nat.eqb i j then f i else 0) (seq 0 k)) == f j.
Proof.
  intro l; replace k with (j + S (k - S j))%nat by lia; rewrite seq_app, map_app, sum_app; simpl.
  rewrite Nat.eqb_refl; fold (sum (map (fun i => if Nat.eqb i j then f i else 0) (seq (S j) (k - S j)))).
  rewrite (sum_ext (fun i => if Nat.eqb i j then f i else 0) (fun _ => 0 * 0) (seq 0 j)).
  - rewrite (sum_ext (fun i => if Nat.eqb i j then f i else 0) (fun _ => 0 * 0) (seq (S j) _)); [rewrite !sum_times;
    ring|].
    intros i h; apply in_seq in h; destruct (Nat.eqb_spec i j); [lia|ring].
  - intros i h; apply in_seq in h; destruct (Nat.eqb_spec i j); [lia|ring].
Qed.

Lemma ahead_le s b j : List.length b = List.length s -> (forall i, 0 <= nth i b 0) -> (j < List.length s)%nat ->
  ahead s b j + nth j b 0 <= sum b.
Proof.
  intros l p h; rewrite (sum_nth b), l, <- (sum_at (fun i => nth i b 0) j (List.length s) h).
  unfold ahead; rewrite <- sum_plus; apply sum_le; intros i _; pose proof (p i).
  destruct (Nat.eqb_spec i j) as [->|_]; [|destruct (comes_first s i j); lra].
  replace (comes_first s j j) with false; [lra|]; symmetry; apply not_true_iff_false; rewrite comes_first_eq;
    intros [?|[? ?]]; [lra|lia].
Qed.

Lemma worth_within u b : List.length b = List.length (speedup u) -> (forall i, 0 <= nth i b 0) ->
  match demand u with Some d => sum b <= d | None => True end -> worth u b == value u b.
Proof.
  intros l p w; rewrite (worth_used u b l); unfold value; rewrite (dot_nth _ b l),
    (dot_nth _ (used u b)) by apply used_length.
  apply sum_ext; intros j i; apply in_seq0 in i; rewrite nth_used by exact i; unfold uses.
  destruct (Qeq_bool _ 0) eqn:z; [apply Qeq_bool_iff in z; rewrite z; ring|].
  destruct (demand u) as [d|]; [|reflexivity].
  pose proof (ahead_le _ b j l p i); pose proof (p j); rewrite Q.min_l, Q.max_r by lra; reflexivity.
Qed.

(** ** Decisions *)

Inductive chosen := Point (x : table) | Range (highest : bool) (weights : table) (v : Q).
Definition chosen_fine (o : optima) (c : chosen) : Prop :=
  match c with
  | Point x => optimum (on_market o) (by_rule o) x
  | Range highest w v => shaped (on_market o) w /\ extreme (on_market o) (by_rule o) highest w v
  end.

(** A sum in which user [who] counts by its speedups, and nobody else. *)
Definition zeros (row : list Q) : bool := forallb nothing row.
Fixpoint own_rows (s : list Q) (who : nat) (w : table) : bool :=
  match w, who with
  | [], _ => false
  | row :: w, O => all2 same row s && forallb zeros w
  | row :: w, S who => zeros row && own_rows s who w
  end.

Lemma zeros_dot row : zeros row = true -> forall b, dot row b == 0.
Proof.
  induction row as [|q row IH]; simpl; intros h [|x b]; simpl; try reflexivity.
  apply andb_true_iff in h; destruct h as [z h]; apply nothing_true in z; rewrite z, (IH h); ring.
Qed.

Lemma zeros_weighted w : forallb zeros w = true -> forall y, weighted w y == 0.
Proof.
  unfold weighted; induction w as [|row w IH]; simpl; intros h [|b y]; simpl; try reflexivity.
  apply andb_true_iff in h; destruct h as [z h]; rewrite (zeros_dot row z), (IH h); ring.
Qed.

Lemma equal_dot_l a a' b : equal a a' -> dot a b == dot a' b.
Proof. intro e; revert b; induction e as [|x y a a' h e IH]; intros [|z b]; simpl; try reflexivity; rewrite h, IH;
  reflexivity. Qed.

Lemma own_rows_ok s w : forall who y b, own_rows s who w = true -> nth_error y who = Some b -> weighted w y == dot s b.
Proof.
  unfold weighted; induction w as [|row w IH]; intros [|who] [|c y] b h e; try discriminate; simpl in *;
    apply andb_true_iff in h; destruct h as [h1 h2].
  - injection e as ->; rewrite (zeros_weighted w h2 y : sum (map _ (combine w y)) == 0).
    apply (all2_ok _ _ sameP) in h1; rewrite (equal_dot_l _ _ _ h1); ring.
  - rewrite (zeros_dot _ h1), (IH who y b h2 e); ring.
Qed.

Definition gain_of (u : user) (who : nat) (before after : chosen) : option (Q * bool) :=
  match before, after with
  | Point x, Point y =>
    match nth_error x who, nth_error y who with
    | Some b, Some c => Some (sub (worth_now u c) (worth_now u b), false)
    | _, _ => None
    end
  | Range true w v, Range false w' v' =>
    if own_rows (speedup u) who w && own_rows (speedup u) who w' then Some (sub v' v, true) else None
  | _, _ => None
  end.

Definition policy_word (p : policy) : text :=
  word match p with
       | MaxEfficiency => "max-efficiency" | OefNoncooperative => "oef-noncooperative"
       | OefCooperative => "oef-cooperative" | MaxMin => "max-min"
       end.
Definition rule_word (r : rule) : text :=
  match r with
  | OfProgram p => policy_word p
  | WaterFilling OwnPartition => word "water-filling"
  | WaterFilling EqualTime => word "water-filling, equal-time"
  | WaterFilling Isolated => word "water-filling, isolated"
  | NashWelfare => word "nash-welfare"
  | OefEfficient => word "oef-efficient"
  | PartialAllocation => word "partial-allocation"
  | SplitEqually false => word "equal-split"
  | SplitEqually true => word "second-price-trading"
  | OfAuthor name => name
  end.
Definition same_rule (r r' : rule) : bool :=
  match r, r' with
  | OfProgram MaxEfficiency, OfProgram MaxEfficiency | OfProgram OefNoncooperative, OfProgram OefNoncooperative
  | OfProgram OefCooperative, OfProgram OefCooperative | OfProgram MaxMin, OfProgram MaxMin
  | WaterFilling OwnPartition, WaterFilling OwnPartition | WaterFilling EqualTime, WaterFilling EqualTime
  | WaterFilling Isolated, WaterFilling Isolated | NashWelfare, NashWelfare | OefEfficient, OefEfficient
  | PartialAllocation, PartialAllocation | SplitEqually true, SplitEqually true
  | SplitEqually false, SplitEqually false => true
  | _, _ => false
  end.
Lemma same_rule_ok r r' : same_rule r r' = true -> r = r'.
Proof. destruct r as [[]|[]| | | |[]|], r' as [[]|[]| | | |[]|]; simpl; congruence. Qed.

Definition check_rewards (m : market) (policy_name : text) (who : N) (report : list Q) (gain : Q)
    (o : optima) (before : chosen) (o' : optima) (after : chosen) : result :=
  let truth := on_market o in
  let lie := misreported truth who report in
  if negb (like_b m truth && like_b lie (on_market o')) then no
    "the decisions are not on the truth and on the misreport"
  else if negb (same_rule (by_rule o) (by_rule o') && same_text policy_name (rule_word (by_rule o)))
    then no "the decisions are another policy's"
  else match nth_error (users truth) (N.to_nat who) with
  | None => no "there is no such user"
  | Some u =>
    match gain_of u (N.to_nat who) before after with
    | None => no "the best at any optimum before and the worst after, or two allocations, are needed"
    | Some (g, always) =>
      if same g gain && lt 0 gain && negb (like_b truth lie)
      then Accepted (Rewards truth (by_rule o) who report gain always)
      else no "the misreport does not gain this, or it is the truth"
    end
  end.

(** What a user does with the bundle of an optimum, of the truth or of a lie. *)
Lemma worth_at m o y who u u' b : on_market o = m -> optima_fine o -> optimum m (by_rule o) y ->
  nth_error (users m) who = Some u' -> nth_error y who = Some b ->
  List.length (speedup u) = List.length (capacity m) ->
  match demand u, demand u' with Some d, Some e => d == e | None, None => True | _, _ => False end ->
  worth u b == value u b.
Proof.
  intros <- (va & _ & all) opt eu eb l d; destruct (all y opt) as (sen & _).
  pose proof (combine_has _ _ _ _ _ eu eb) as h; destruct sen as [[sh [nn _]] sen].
  apply worth_within.
  - rewrite l; apply sh; exact (in_combine_r _ _ _ _ h).
  - exact (has_nonneg _ _ _ _ nn h).
  - destruct (sen _ _ h) as [_ w]; destruct (demand u), (demand u'); try contradiction; [lra|exact I].
Qed.

Lemma replaced_at l : forall who report u, nth_error l who = Some u ->
  nth_error (replaced l who report) who = Some (User (name u) report (weight u) (demand u)).
Proof. induction l as [|v l IH]; intros [|who] report u e; try discriminate; simpl in *; [injection e as ->;
  reflexivity|apply IH; exact e]. Qed.

Lemma check_rewards_sound m name who report gain o before o' after s :
  optima_fine o -> chosen_fine o before -> optima_fine o' -> chosen_fine o' after ->
  check_rewards m name who report gain o before o' after = Accepted s -> meaning s.
Proof.
  intros fo fb fo' fa; unfold check_rewards; cbv zeta.
  destruct (like_b m (on_market o)); [|discriminate].
  destruct (like_b (misreported _ _ _) (on_market o')) eqn:lk; [|discriminate]; apply like_ok in lk; simpl.
  destruct (same_rule _ _) eqn:sr; [|discriminate]; apply same_rule_ok in sr.
  destruct (same_text _ _); [|discriminate]; simpl.
  destruct (nth_error (users (on_market o)) (N.to_nat who)) as [u|] eqn:eu; [|discriminate].
  destruct (gain_of _ _ _ _) as [[g always]|] eqn:eg; [|discriminate].
  destruct (same g gain) eqn:sg; [|discriminate]; destruct (lt 0 gain) eqn:pos; [|discriminate].
  destruct (like_b (on_market o) _) eqn:nl; [discriminate|]; simpl; intro e; injection e as <-.
  apply sameP in sg; apply ltP in pos.
  split; [exact (proj1 fo)|split; [exact pos|split]].
  { intro h; apply like_ok in h; congruence. }
  exists (on_market o'); split; [exact lk|split; [exact (proj1 fo')|]]; cbv zeta.
  destruct lk as (_ & caps & lk & _).
  destruct (Forall2_at _ _ _ _ _ lk (replaced_at _ _ report _ eu)) as (u' & eu' & (_ & _ & _ & dem)); simpl in dem.
  assert (lu : List.length (speedup u) = List.length (capacity (on_market o))).
  { apply (proj2 (proj2 (proj2 (proj2 (proj1 fo)))) u (nth_error_In _ _ eu)). }
  assert (lu' : List.length (speedup u) = List.length (capacity (on_market o'))).
  { rewrite lu; exact (Forall2_len _ _ _ caps). }
  assert (dd : match demand u, demand u with Some d, Some e => d == e | None, None => True | _, _ => False end).
  { destruct (demand u); [reflexivity|exact I]. }
  assert (bundles : forall o y v, optima_fine o -> optimum (on_market o) (by_rule o) y ->
    nth_error (users (on_market o)) (N.to_nat who) = Some v -> exists b, nth_error y (N.to_nat who) = Some b).
  { intros q y v fq opt ev; destruct (proj2 (proj2 fq) y opt) as [[[[l _] _] _] _];
    exact (beside _ y _ _ (eq_sym l) ev). }
  assert (both : forall x y, optimum (on_market o) (by_rule o) x -> optimum (on_market o') (by_rule o) y ->
    exists b c, nth_error x (N.to_nat who) = Some b /\ nth_error y (N.to_nat who) = Some c /\
      worth u b == value u b /\ worth u c == value u c).
  { intros x y ox oy; rewrite sr in oy.
    destruct (bundles o x u fo ox eu) as [b eb]; destruct (bundles o' y u' fo' oy eu') as [c ec].
    exists b, c; repeat split; try assumption.
    - exact (worth_at _ o x _ u u b eq_refl fo ox eu eb lu dd).
    - exact (worth_at _ o' y _ u u' c eq_refl fo' oy eu' ec lu' dem). }
  unfold gain_of in eg; destruct before as [x|highest w v], after as [y|highest' w' v']; try discriminate;
    try (destruct highest; discriminate).
  - simpl in fb, fa; rewrite <- sr in fa.
    destruct (nth_error x (N.to_nat who)) as [b|] eqn:eb; [|discriminate].
    destruct (nth_error y (N.to_nat who)) as [c|] eqn:ec; [|discriminate]; injection eg as <- <-.
    split; [|discriminate]. exists x, y; split; [exact fb|split; [exact fa|]]; exists u, b, c.
    split; [apply nth_error_combine; auto|split; [exact ec|]].
    rewrite subE, !worth_now_ok in sg; lra.
  - destruct highest; [|discriminate]; destruct highest'; [discriminate|].
    destruct (own_rows (speedup u) (N.to_nat who) w) eqn:ow; [|discriminate].
    destruct (own_rows (speedup u) (N.to_nat who) w') eqn:ow'; [|discriminate]; injection eg as <- <-.
    destruct fb as [_ [(x & ox & vx) most]], fa as [_ [(y & oy & vy) least]]; rewrite <- sr in oy, least.
    rewrite subE in sg; split.
    + exists x, y; split; [exact ox|split; [exact oy|]].
      destruct (both x y ox oy) as (b & c & eb & ec & wb & wc); exists u, b, c.
      split; [apply nth_error_combine; auto|split; [exact ec|]]; rewrite wb, wc; unfold value.
      rewrite <- (own_rows_ok _ _ _ _ _ ow eb), <- (own_rows_ok _ _ _ _ _ ow' ec); lra.
    + intros _ x2 y2 ox2 oy2; destruct (both x2 y2 ox2 oy2) as (b & c & eb & ec & wb & wc).
      exists (value u c - value u b); split.
      * unfold value; rewrite <- (own_rows_ok _ _ _ _ _ ow eb), <- (own_rows_ok _ _ _ _ _ ow' ec).
        pose proof (most x2 ox2); pose proof (least y2 oy2); lra.
      * exists u, b, c; split; [apply nth_error_combine; auto|split; [exact ec|rewrite wb, wc; ring]].
Qed.
