(** * An allocation that is better than every optimum of a policy *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Pareto Shares Optima Lies Decisions.
Import ListNotations.
Local Open Scope Q_scope.

(** Markets that are written alike: numbers are read in lowest terms, so those that are the same are. *)
Definition identical (a b : Q) : bool := Z.eqb (Qnum a) (Qnum b) && Pos.eqb (Qden a) (Qden b).
Lemma identical_ok a b : identical a b = true <-> a = b.
Proof.
  unfold identical; destruct a, b; simpl; rewrite andb_true_iff, Z.eqb_eq, Pos.eqb_eq.
  split; [intros [-> ->]; reflexivity|intro e; injection e; auto].
Qed.

Definition identical_user (u v : user) : bool :=
  same_text (name u) (name v) && all2 identical (speedup u) (speedup v) && identical (weight u) (weight v) &&
  match demand u, demand v with Some d, Some e => identical d e | None, None => true | _, _ => false end.
Lemma identical_user_ok u v : identical_user u v = true <-> u = v.
Proof.
  unfold identical_user; destruct u as [a s w d], v as [a' s' w' d']; simpl.
  rewrite !andb_true_iff, same_text_ok, (all2_ok _ _ identical_ok), Forall2_eq, identical_ok.
  destruct d as [d|], d' as [d'|]; rewrite ?identical_ok; split; try (intros [[[-> ->] ->] h]; congruence);
    intro e; injection e as -> -> ->; repeat split; congruence.
Qed.

(** Markets with entitlements are none of these here. *)
Definition identical_market (m m' : market) : bool :=
  all2 same_text (types m) (types m') && all2 identical (capacity m) (capacity m') &&
    all2 identical_user (users m) (users m') &&
    match entitled m, entitled m' with None, None => true | _, _ => false end.
Lemma identical_market_ok m m' : identical_market m m' = true -> m = m'.
Proof.
  unfold identical_market; destruct m as [? ? ? [?|]], m' as [? ? ? [?|]]; simpl; rewrite ?andb_false_r, ?andb_true_r;
    try discriminate.
  rewrite !andb_true_iff, (all2_ok _ _ same_text_ok), (all2_ok _ _ identical_ok), (all2_ok _ _ identical_user_ok),
    !Forall2_eq.
  intros [[-> ->] ->]; reflexivity.
Qed.

(** What certificates inside of another prove, or the first that does not. *)
Fixpoint decide_all (l : list decision) : list (optima * chosen) + result :=
  match l with
  | [] => inl []
  | d :: l =>
    match decide d with
    | Refused r => inr r
    | Told _ _ _ | Alone _ _ _ _ | Authors _ _ _ _ _ => inr (no "a range over optima of one policy is needed")
    | Decided o c _ => match decide_all l with inl rest => inl ((o, c) :: rest) | inr r => inr r end
    end
  end.

(** Each user's most at any optimum. *)
Fixpoint most_of_each (m : market) (r : rule) (i : nat) (us : list user) (l : list (optima * chosen)) : option (list Q)
  :=
  match us, l with
  | [], [] => Some []
  | u :: us, (o, Range true w v) :: l =>
    if identical_market m (on_market o) && same_rule r (by_rule o) && own_rows (speedup u) i w then
      match most_of_each m r (S i) us l with Some rest => Some (v :: rest) | None => None end
    else None
  | _, _ => None
  end.

Definition over_most (m : market) (y : table) (most : list Q) : list Q :=
  map (fun '(h, v) => sub (worth_now (fst h) (snd h)) v) (combine (combine (users m) y) most).

Definition check_dominance_optima m x y (ds : list decision) : result :=
  if negb (valid_b m && feasible_b m x && feasible_b m y) then no
    "the market is not valid, or an allocation is not feasible"
  else match decide_all ds with
  | inr r => r
  | inl [] => no "each user's most at any optimum of one policy is needed, in order"
  | inl ((o, c) :: rest) =>
    match most_of_each m (by_rule o) 0 (users m) ((o, c) :: rest) with
    | None => no "each user's most at any optimum of one policy is needed, in order"
    | Some most =>
      let all := over_most m y most in
      let '(i, gain) := most_gain all 0 (0%N, 0) in
      if forallb (le 0) all && lt 0 gain then Accepted (OptimaDominated m (by_rule o) i gain)
      else no "somebody loses, or nobody gains"
    end
  end.

Lemma decide_all_fine ds : match decide_all ds with
  | inl l => Forall (fun '(o, c) => optima_fine o /\ chosen_fine o c) l
  | inr (Accepted _) => False
  | inr _ => True
  end.
Proof.
  induction ds as [|d ds IH]; simpl; [constructor|].
  pose proof (decide_fine d) as h; destruct (decide d) as [o c s|p m author x v|r m x s|s|r]; [|exact I|exact I|exact I|exact h].
  destruct (decide_all ds) as [l|r]; [|exact IH]; constructor; [split; apply h|exact IH].
Qed.

Lemma most_of_each_ok m r us : forall i l most, most_of_each m r i us l = Some most ->
  Forall (fun '(o, c) => optima_fine o /\ chosen_fine o c) l ->
  forall j u, nth_error us j = Some u -> exists v o w, nth_error most j = Some v /\ optima_fine o /\ on_market o = m /\
    by_rule o = r /\
    extreme m r true w v /\ own_rows (speedup u) (i + j) w = true.
Proof.
  induction us as [|u us IH]; intros i l most e f j u' eu; [destruct j; discriminate|].
  destruct l as [|[o [x|[|] w v]] l]; try discriminate; simpl in e.
  destruct (identical_market m (on_market o)) eqn:im; [|discriminate]; apply identical_market_ok in im.
  destruct (same_rule r (by_rule o)) eqn:sr; [|discriminate]; apply same_rule_ok in sr.
  destruct (own_rows _ _ _) eqn:ow; [|discriminate]; simpl in e.
  destruct (most_of_each m r (S i) us l) as [rest|] eqn:re; [|discriminate]; injection e as <-.
  destruct (Forall_inv f) as [fo [_ ex]]; pose proof (Forall_inv_tail f) as f'; destruct j as [|j]; simpl in eu |- *.
  - injection eu as <-; exists v, o, w; rewrite Nat.add_0_r; rewrite <- im, <- sr in ex.
    split; [reflexivity|split; [exact fo|split; [symmetry; exact im|split; [symmetry; exact sr|split;
      [exact ex|exact ow]]]]].
  - destruct (IH (S i) l rest re f' j u' eu) as (v' & o' & w' & h); exists v', o', w'; rewrite <- Nat.add_succ_comm;
    exact h.
Qed.

Lemma check_dominance_optima_sound m x y ds s : check_dominance_optima m x y ds = Accepted s -> meaning s.
Proof.
  unfold check_dominance_optima; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (feasible_b m x); [|discriminate]; destruct (feasible_b m y) eqn:fy; [|discriminate];
    apply feasible_ok in fy; simpl.
  pose proof (decide_all_fine ds) as fine; destruct (decide_all ds) as [[|[o c] rest]|r]; [discriminate| |destruct r;
    [contradiction|discriminate|discriminate]].
  destruct (most_of_each _ _ _ _ _) as [most|] eqn:me; [|discriminate].
  destruct (most_gain _ _ _) as [i gain] eqn:mg.
  destruct (forallb (le 0) (over_most m y most)) eqn:all; [|discriminate]; destruct (lt 0 gain) eqn:pos;
    [|discriminate].
  intro h; injection h as <-; apply ltP in pos; rewrite forallb_forall in all.
  pose proof (most_of_each_ok _ _ _ _ _ _ me fine) as each; simpl in each; set (r := by_rule o) in *.
  (* what a user's optima are worth, against its bundle in [y] *)
  assert (at_user : forall j u b, nth_error (users m) j = Some u -> nth_error y j = Some b ->
    exists most_j, nth_error (over_most m y most) j = Some (sub (worth_now u b) most_j) /\
      (forall z, optimum m r z -> exists d, nth_error z j = Some d /\ worth u d <= most_j) /\
      (exists z d, optimum m r z /\ nth_error z j = Some d /\ worth u d == most_j)).
  { intros j u b eu eb; destruct (each j u eu) as (q & o' & w & em & fo & om & br & [(z & oz & vz) top] & ow).
    assert (at_z : forall z, optimum m r z -> exists d, nth_error z j = Some d /\ worth u d == weighted w z).
    { intros z' oz'; assert (oo : optimum (on_market o') (by_rule o') z') by (rewrite om, br; exact oz').
      destruct (proj2 (proj2 fo) z' oo) as [[[[lz _] _] _] _]; rewrite om in lz.
      destruct (beside _ z' _ _ (eq_sym lz) eu) as [d ed]; exists d; split; [exact ed|].
      rewrite (own_rows_ok _ _ _ _ _ ow ed); rewrite <- br in oz'.
      apply (worth_at m o' z' j u u d om fo oz' eu ed).
      - apply (proj2 (proj2 (proj2 (proj2 v))) u (nth_error_In _ _ eu)).
      - destruct (demand u); [reflexivity|exact I]. }
    exists q; split; [|split].
    - unfold over_most; rewrite nth_error_map.
      rewrite (proj2 (nth_error_combine _ _ j (u, b) q)); [reflexivity|split; [apply nth_error_combine; auto|exact em]].
    - intros z' oz'; destruct (at_z z' oz') as (d & ed & e); exists d; split; [exact ed|rewrite e; exact (top z' oz')].
    - destruct (at_z z oz) as (d & ed & e); exists z, d; split; [exact oz|split; [exact ed|rewrite e; exact vz]]. }
  split; [exact v|split; [exact pos|exists y; split; [exact fy|split]]].
  - intros z oz u b d k; destruct (has_at _ _ _ _ k) as (j & eu & e); apply nth_error_combine in e;
    destruct e as [eb ed].
    destruct (at_user j u d eu ed) as (q & eo & below & _).
    specialize (all _ (nth_error_In _ _ eo)); apply leP in all; rewrite subE, worth_now_ok in all.
    destruct (below z oz) as (b' & eb' & le1); rewrite eb in eb'; injection eb' as <-; lra.
  - destruct (most_gain_ok _ _ _ _ _ mg) as [h|(j & -> & h)]; [injection h as _ ->; lra|].
    assert (eh : exists u b, nth_error (users m) j = Some u /\ nth_error y j = Some b).
    { unfold over_most in h; rewrite nth_error_map in h; destruct (nth_error _ j) as [[[u b] q]|] eqn:e;
      [|discriminate].
      apply nth_error_combine in e; destruct e as [e _]; apply nth_error_combine in e; exists u, b; exact e. }
    destruct eh as (u & b & eu & eb); destruct (at_user j u b eu eb) as (q & eo & below & z & d & oz & ed & ez).
    rewrite eo in h; injection h as <-; exists u, b; unfold said_of; replace (N.to_nat (0 + N.of_nat j)) with j by lia.
    split; [apply nth_error_combine; auto|split].
    + intros z' d' oz' hd; apply nth_error_combine in hd; destruct hd as [_ hd].
      destruct (below z' oz') as (d2 & e2 & le1); rewrite hd in e2; injection e2 as <-; rewrite subE, worth_now_ok; lra.
    + exists z, d; split; [exact oz|split; [apply nth_error_combine; auto|]]; rewrite subE, worth_now_ok; lra.
Qed.
