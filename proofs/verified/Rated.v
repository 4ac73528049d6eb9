(** * Water filling at rates that are told: multipliers show how far ratios rise, and who is held down *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Pareto Optima Limits Filling.
Import ListNotations.
Local Open Scope Q_scope.
Local Open Scope list_scope.

Definition unit_now (m : market) (all : Q) (n : normaliser) (u : user) : Q :=
  mul (mul (normal_now m all n u) all) (/ mul (inject_Z (Z.of_nat (List.length (users m)))) (weight u)).
Lemma unit_now_ok m n u : unit_now m (all_weight m) n u == unit_of m n u.
Proof. unfold unit_now, unit_of; rewrite !mulE, normal_now_ok, all_weight_ok; unfold Qdiv; reflexivity. Qed.

(** A user with its bundle; what it had, its rate, its multiplier. *)
Definition item : Type := (user * list Q) * (Q * (Q * Q)).
Definition multiplier (mu : store Q) (i : N) : Q := match at_ mu i with Some q => q | None => 0 end.
Fixpoint items_of (i : N) (held : list (user * list Q)) (had rate : list Q) (mu : store Q) : list item :=
  match held, had, rate with
  | h :: held, a :: had, r :: rate => (h, (a, (r, multiplier mu i))) :: items_of (N.succ i) held had rate mu
  | _, _, _ => []
  end.

Lemma items_at held : forall i had rate mu j h a r, nth_error held j = Some h -> nth_error had j = Some a ->
  nth_error rate j = Some r -> nth_error (items_of i held had rate mu) j = Some (h, (a, (r, multiplier mu (i + N.of_nat
    j)))).
Proof.
  induction held as [|h' held IH]; intros i [|a' had] [|r' rate] mu [|j] h a r eh ea er; try discriminate; simpl in *.
  - injection eh as ->; injection ea as ->; injection er as ->; rewrite N.add_0_r; reflexivity.
  - rewrite (IH (N.succ i) had rate mu j h a r eh ea er).
    replace (N.succ i + N.of_nat j)%N with (i + N.of_nat (S j))%N by lia; reflexivity.
Qed.
Lemma items_are held : forall i had rate mu j h a r q, nth_error (items_of i held had rate mu) j = Some (h, (a, (r,
  q))) ->
  nth_error held j = Some h /\ nth_error had j = Some a /\ nth_error rate j = Some r.
Proof.
  induction held as [|h' held IH]; intros i [|a' had] [|r' rate] mu [|j] h a r q e; try discriminate; simpl in *.
  - injection e as -> -> -> _; auto.
  - exact (IH _ _ _ _ _ _ _ _ _ e).
Qed.
Lemma items_held held : forall i had rate mu, List.length had = List.length held -> List.length rate = List.length held
  ->
  map fst (items_of i held had rate mu) = held.
Proof.
  induction held as [|h held IH]; intros i [|a had] [|r rate] mu la lr; try discriminate; [reflexivity|]; simpl.
  rewrite IH by (simpl in *; lia); reflexivity.
Qed.

Section Round.
Variables (m : market) (lim : limits) (unit : user -> Q).

Definition weighs (it : item) : Q * user := let '((u, _), (_, (_, q))) := it in (mul q (/ unit u), u).
Definition item_fine (level : Q) (it : item) : bool :=
  let '((u, b), (a, (r, q))) := it in
  lt 0 (unit u) && le 0 r && le 0 q && le (mul (unit u) (Qred (a + r * level))) (fast_dot (speedup u) b).
Definition of_had (it : item) : Q := let '(_, (a, (_, q))) := it in mul q a.
Definition of_rate (it : item) : Q := let '(_, (_, (r, q))) := it in mul q r.
Definition round_rises (level : Q) (ls : list item) (duals : list dual) : bool :=
  forallb (item_fine level) ls && same (fast_sum (map of_rate ls)) 1 &&
  match bound_in lim (map weighs ls) duals with
  | Some b => same (sub b (fast_sum (map of_had ls))) level
  | None => false
  end.

(** What an item counts in [y] beyond its part at a level. *)
Definition beyond (level : Q) (p : item * list Q) : Q :=
  let '(((u, _), (a, (r, q))), c) := p in mul q (/ unit u) * (value u c - unit u * (a + r * level)).

Lemma beyond_sum level ls : forall y, (forall it, In it ls -> 0 < unit (fst (fst it))) -> List.length ls = List.length
  y ->
  sum (map (beyond level) (combine ls y)) ==
  weighted_sum (map weighs ls) y - sum (map of_had ls) - level * sum (map of_rate ls).
Proof.
  unfold weighted_sum; induction ls as [|[[u b] [a [r q]]] ls IH]; intros [|c y] pos l; try discriminate;
    [simpl; ring|].
  simpl; fold (sum (map (beyond level) (combine ls y))).
  rewrite IH by (try (intros it i; apply pos; right; exact i); simpl in l; lia).
  pose proof (pos _ (or_introl eq_refl)) as p; simpl in p; unfold sum; rewrite !mulE; field; lra.
Qed.

Lemma item_fine_ok level it : item_fine level it = true -> let '((u, b), (a, (r, q))) := it in
  0 < unit u /\ 0 <= r /\ 0 <= q /\ unit u * (a + r * level) <= value u b.
Proof.
  destruct it as [[u b] [a [r q]]]; unfold item_fine; rewrite !andb_true_iff, ltP, !leP; intros [[[p r0] q0] h].
  rewrite mulE, Qred_correct, fast_dotE in h; auto.
Qed.

Lemma rises_at_most allowed level ls duals y : valid m -> limits_hold m lim allowed -> allowed y -> map (fun it : item => fst (fst it)) ls = users m ->
  round_rises level ls duals = true -> forall l, sum (map (beyond l) (combine ls y)) <= level - l.
Proof.
  intros v holds ay us; destruct (holds y ay) as [sy _]; unfold round_rises; rewrite !andb_true_iff, forallb_forall.
  intros [[fine one] h] l; destruct (bound_in _ _ _) as [B|] eqn:e; [|discriminate]; apply sameP in h; apply sameP in one.
  rewrite subE, !fast_sumE in *.
  assert (counted : map snd (map weighs ls) = users m).
  { rewrite <- us, map_map; apply map_ext; intros [[u b] [a [r q]]]; reflexivity. }
  pose proof (bound_in_ok m lim allowed _ _ _ y v holds counted ay e) as le.
  rewrite beyond_sum.
  - rewrite one; lra.
  - intros it i; pose proof (item_fine_ok level it (fine it i)) as f; destruct it as [[u b] [a [r q]]]; apply f.
  - rewrite <- (map_length (fun it : item => fst (fst it))), us; symmetry; apply sy.
Qed.
End Round.

(** ** A round *)
Definition fixed_fine (n : N) (rate : list Q) (mu : store Q) (done l : list N) : bool :=
  some l && forallb (fun i => N.ltb i n && lt 0 (nth (N.to_nat i) rate 0) && lt 0 (multiplier mu i)
                              && negb (existsb (N.eqb i) done)) l.
Fixpoint rise_up (m : market) (lim : limits) (unit : user -> Q) (held : list (user * list Q)) (had : list Q) (done : list N)
    (rates : table) (rounds : list filling) : bool :=
  let n := N.of_nat (List.length (users m)) in
  match rates, rounds with
  | [], [] => forallb (fun i => existsb (N.eqb (N.of_nat i)) done) (seq 0 (List.length (users m)))
  | rate :: rates, f :: rounds =>
    match split n (held_by f) Empty [] with
    | Some (mu, rest) =>
      same_length rate (users m) && forallb (fun i => nothing (nth (N.to_nat i) rate 0)) done &&
      fixed_fine n rate mu done (fixed f) && round_rises lim unit (level f) (items_of 0 held had rate mu) rest &&
      rise_up m lim unit held (risen had rate (level f)) (fixed f ++ done) rates rounds
    | None => false
    end
  | _, _ => false
  end.
Definition is_rising (m : market) (lim : limits) (n : normaliser) (x : table) (rates : table) (rounds : list filling) : bool :=
  let all := all_weight m in
  rise_up m lim (unit_now m all n) (combine (users m) x) (map (fun _ => 0) (users m)) [] rates rounds.

Lemma risen_at had rate level j a r : nth_error had j = Some a -> nth_error rate j = Some r ->
  nth_error (risen had rate level) j = Some (Qred (a + r * level)).
Proof.
  intros ea er; unfold risen; rewrite nth_error_map, (proj2 (nth_error_combine _ _ _ _ _) (conj ea er)); reflexivity.
Qed.

Section Rises.
Variables (m : market) (lim : limits) (allowed : table -> Prop) (n : normaliser) (x : table).
Hypothesis va : valid m.
Hypothesis holds : limits_hold m lim allowed.
Hypothesis ax : allowed x.
Notation unit := (unit_now m (all_weight m) n).
Notation held := (combine (users m) x).

Lemma sx : sensible m x.
Proof. exact (proj1 (holds x ax)). Qed.
Lemma held_length : List.length held = List.length (users m).
Proof. rewrite combine_length, (proj1 (proj1 (proj1 sx))); apply Nat.min_id. Qed.

Section One.
Variables (had rate : list Q) (mu : store Q) (level : Q) (rest : list dual).
Hypothesis lh : List.length had = List.length (users m).
Hypothesis lr : List.length rate = List.length (users m).
Notation ls := (items_of 0 held had rate mu).
Hypothesis round : round_rises lim unit level ls rest = true.

Lemma the_users : map (fun it : item => fst (fst it)) ls = users m.
Proof.
  transitivity (map fst (map fst ls)); [rewrite map_map; reflexivity|].
  rewrite items_held by (rewrite held_length; assumption); apply combine_fst; symmetry; apply sx.
Qed.
Lemma all_fine it : In it ls -> let '((u, b), (a, (r, q))) := it in
  0 < unit u /\ 0 <= r /\ 0 <= q /\ unit u * (a + r * level) <= value u b.
Proof.
  intro i; unfold round_rises in round; rewrite !andb_true_iff, forallb_forall in round.
  exact (item_fine_ok unit level it (proj1 (proj1 round) it i)).
Qed.

(** Who reaches a level has nothing less than its part at it. *)
Lemma beyond_nonneg y l : allowed y -> reach m n y (risen had rate l) ->
  forall p, In p (combine ls y) -> 0 <= beyond unit l p.
Proof.
  intros sy h [[[u b] [a [r q]]] c] i; destruct (has_at _ _ _ _ i) as (j & e1 & e2).
  destruct (all_fine _ (in_combine_l _ _ _ _ i)) as (p & _ & q0 & _).
  destruct (items_are _ _ _ _ _ _ _ _ _ _ e1) as (eh & ea & er); apply nth_error_combine in eh; destruct eh as [eu _].
  pose proof (h j u c _ (proj2 (nth_error_combine _ _ _ _ _) (conj eu e2)) (risen_at _ _ l _ _ _ ea er)) as le.
  rewrite Qred_correct, <- unit_now_ok in le; simpl; rewrite mulE.
  assert (0 <= q * / unit u) by (apply Qmult_le_0_compat; [exact q0|apply Qlt_le_weak, Qinv_lt_0_compat; exact p]).
  nra.
Qed.

Lemma rises_once now_fixed done : fixed_fine (N.of_nat (List.length (users m))) rate mu done now_fixed = true ->
  one_rise m allowed n had rate level now_fixed /\ reach m n x (risen had rate level).
Proof.
  intro ff; split; [split|].
  - intros y l sy h; pose proof (rises_at_most m lim unit allowed level ls rest y va holds sy the_users round l) as le.
    pose proof (sum_nonneg (beyond unit l) _ (beyond_nonneg y l sy h)); lra.
  - intros i ifx; unfold fixed_fine in ff; rewrite andb_true_iff, forallb_forall in ff; destruct ff as [_ ff].
    specialize (ff i ifx); rewrite !andb_true_iff, !ltP, N.ltb_lt in ff; destruct ff as [[[il r0] q0] _].
    split; [exact r0|]; intros y u c sy h e; set (j := N.to_nat i) in *.
    pose proof (proj1 (nth_error_combine _ _ _ _ _) e) as [eu ec].
    assert (jl : (j < List.length (users m))%nat) by (unfold j; lia).
    destruct (nth_error x j) as [b|] eqn:eb; [|apply nth_error_None in eb; rewrite (proj1 (proj1 (proj1 sx))) in eb;
      lia].
    destruct (nth_error had j) as [a|] eqn:ea; [|apply nth_error_None in ea; lia].
    destruct (nth_error rate j) as [r|] eqn:er; [|apply nth_error_None in er; lia].
    assert (at_j := items_at held 0 had rate mu j (u, b) a r (proj2 (nth_error_combine _ _ _ _ _) (conj eu eb)) ea er).
    replace (0 + N.of_nat j)%N with i in at_j by (unfold j; lia).
    pose proof (rises_at_most m lim unit allowed level ls rest y va holds sy the_users round level) as le.
    assert (zero := sum_zero_each (beyond unit level) (combine ls y) (beyond_nonneg y level sy h)
      ltac:(lra) _ (combine_has _ _ _ _ _ at_j ec)).
    destruct (all_fine _ (nth_error_In _ _ at_j)) as (p & _ & _ & _).
    simpl in zero; rewrite mulE in zero; rewrite (nth_error_nth _ _ 0 (risen_at _ _ level _ _ _ ea er)), Qred_correct.
    rewrite <- unit_now_ok; assert (0 < multiplier mu i * / unit u).
    { apply Qmult_lt_0_compat; [exact q0|apply Qinv_lt_0_compat; exact p]. }
    assert (value u c - unit u * (a + r * level) <= 0) by nra.
    pose proof (h j u c _ e (risen_at _ _ level _ _ _ ea er)) as low; rewrite Qred_correct, <- unit_now_ok in low; lra.
  - intros j u b q e eq; pose proof e as e'; apply nth_error_combine in e'; destruct e' as [eu eb].
    assert (jl : (j < List.length (users m))%nat) by (apply nth_error_Some; congruence).
    destruct (nth_error had j) as [a|] eqn:ea; [|apply nth_error_None in ea; lia].
    destruct (nth_error rate j) as [r|] eqn:er; [|apply nth_error_None in er; lia].
    rewrite (risen_at _ _ level _ _ _ ea er) in eq; assert (is : q = Qred (a + r * level)) by congruence.
    destruct (all_fine _ (nth_error_In _ _ (items_at held 0 had rate mu j (u, b) a r e ea er))) as (_ & _ & _ & le).
    rewrite is, Qred_correct, <- unit_now_ok; exact le.
Qed.
Lemma rates_nonneg r : In r rate -> 0 <= r.
Proof.
  intro i; destruct (In_nth_error _ _ i) as [j er].
  assert (jl : (j < List.length (users m))%nat) by (rewrite <- lr; apply nth_error_Some; congruence).
  destruct (nth_error held j) as [[u b]|] eqn:eh; [|apply nth_error_None in eh; rewrite held_length in eh; lia].
  destruct (nth_error had j) as [a|] eqn:ea; [|apply nth_error_None in ea; lia].
  destruct (all_fine _ (nth_error_In _ _ (items_at held 0 had rate mu j (u, b) a r eh ea er))) as (_ & h & _); exact h.
Qed.
End One.

Lemma rise_up_ok rounds : forall rates had done, List.length had = List.length (users m) ->
  rise_up m lim unit held had done rates rounds = true ->
  exists told, map fst told = rates /\ rises m allowed n x had done told.
Proof.
  induction rounds as [|f rounds IH]; intros [|rate rates] had done lh h; try discriminate; simpl in h.
  - exists []; split; [reflexivity|]; intros i l; rewrite forallb_forall in h.
    specialize (h i (proj2 (in_seq0 _ _) l)); apply existsb_exists in h; destruct h as (k & ik & e).
    apply N.eqb_eq in e; subst; exact ik.
  - destruct (split _ _ _ _) as [[mu rest]|]; [|discriminate]; rewrite !andb_true_iff in h.
    destruct h as [[[[lr dn] ff] round] h]; apply same_lengthP in lr.
    assert (lh' : List.length (risen had rate (level f)) = List.length (users m)).
    { unfold risen; rewrite map_length, combine_length, lh, lr; apply Nat.min_id. }
    destruct (IH rates _ _ lh' h) as (told & et & rt).
    destruct (rises_once had rate mu (level f) rest lh lr round (fixed f) done ff) as [one re].
    exists ((rate, (level f, fixed f)) :: told); split; [simpl; rewrite et; reflexivity|].
    split; [exact lr|split; [exact (rates_nonneg had rate mu (level f) rest lh lr round)|split; [|split; [|split;
      [exact one|split; [exact re|exact rt]]]]]].
    + unfold fixed_fine in ff; apply andb_true_iff in ff; destruct ff as [s _]; exact (some_ok _ s).
    + intros i k; rewrite forallb_forall in dn; apply nothing_true, dn, k.
Qed.
End Rises.

Lemma is_rising_ok m lim allowed n x rates rounds : valid m -> limits_hold m lim allowed -> allowed x ->
  is_rising m lim n x rates rounds = true -> exists told, map fst told = rates /\
    rises m allowed n x (map (fun _ => 0) (users m)) [] told.
Proof.
  intros v holds ax h; exact (rise_up_ok m lim allowed n x v holds ax rounds rates _ [] (map_length _ _) h).
Qed.
