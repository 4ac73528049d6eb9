(** * Pareto efficiency: by weights and prices, by trades that do not pay, and by an allocation that is better *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Bundles that are used *)

Definition in_use_of (m : market) (y : table) : table := map (fun '(u, b) => used u b) (combine (users m) y).

Lemma in_use_at m y j u b : nth_error (users m) j = Some u -> nth_error y j = Some b ->
  nth_error (in_use_of m y) j = Some (used u b).
Proof.
  intros e f; unfold in_use_of; rewrite nth_error_map, (proj2 (nth_error_combine _ _ _ _ _) (conj e f)); reflexivity.
Qed.

Lemma worth_used u b : List.length b = List.length (speedup u) -> worth u b == value u (used u b).
Proof.
  intro l; unfold worth; destruct (demand u) eqn:d; [reflexivity|]; unfold value, used, uses; rewrite d.
  generalize dependent (speedup u); intros s l.
  rewrite (dot_nth s b l), (dot_nth s _) by (rewrite map_length, seq_length; reflexivity).
  apply sum_ext; intros j i; apply in_seq0 in i; rewrite nth_map_seq by exact i.
  destruct (Qeq_bool (nth j s 0) 0) eqn:z; [apply Qeq_bool_iff in z; rewrite z; ring|reflexivity].
Qed.

Lemma in_use_sensible m y : valid m -> feasible m y -> sensible m (in_use_of m y).
Proof.
  intros va [sh [nn fit]].
  assert (len : List.length (in_use_of m y) = List.length (users m)).
  { unfold in_use_of; rewrite map_length, combine_length, (proj1 sh); apply Nat.min_id. }
  assert (from : forall c, In c (in_use_of m y) -> exists u b, has m y u b /\ c = used u b).
  { intros c i; unfold in_use_of in i; apply in_map_iff in i; destruct i as ([u b] & <- & i); exists u, b; auto. }
  assert (from2 : forall u c, has m (in_use_of m y) u c -> exists b, has m y u b /\ c = used u b).
  { intros u c i; destruct (has_at _ _ _ _ i) as (j & e & f).
    destruct (beside _ y _ _ (eq_sym (proj1 sh)) e) as [b g]; exists b; split; [exact (combine_has _ _ _ _ _ e g)|].
    rewrite (in_use_at _ _ _ _ _ e g) in f; injection f as <-; reflexivity. }
  assert (posn : forall u b, has m y u b -> forall k, 0 <= nth k b 0) by (intros u b i;
    exact (has_nonneg _ _ _ _ nn i)).
  split; [split; [split; [exact len|]|split]|].
  - intros c i; destruct (from c i) as (u & b & h & ->); rewrite used_length.
    apply va; exact (in_combine_l _ _ _ _ h).
  - intros c share i k; destruct (from c i) as (u & b & h & ->).
    unfold used in k; apply in_map_iff in k; destruct k as (j & <- & _); apply uses_bounds, (posn u b h).
  - intros j l; eapply Qle_trans; [|apply (fit j l)].
    unfold given, in_use_of; rewrite map_map.
    assert (map (fun b => nth j b 0) y = map (fun '(u, b) => nth j b 0) (combine (users m) y)) as ->.
    { destruct sh as [sh _]; clear -sh; revert sh; generalize (users m); intros us; revert y.
      induction us as [|u us IH]; intros [|b y] e; simpl in *; try discriminate; [reflexivity|].
      rewrite <- IH by lia; reflexivity. }
    apply sum_le; intros [u b] i.
    assert (lu : List.length (speedup u) = List.length (capacity m)) by (apply va; exact (in_combine_l _ _ _ _ i)).
    rewrite nth_used by lia; apply uses_bounds, (posn u b i).
  - intros u c i; destruct (from2 u c i) as (b & h & ->).
    assert (vu := proj2 (proj2 (proj2 (proj2 va))) u (in_combine_l _ _ _ _ h)); destruct vu as (lu & _ & _ & du & _).
    split.
    + intros j l z; rewrite nth_used by lia; unfold uses; apply Qeq_bool_iff in z; rewrite z; reflexivity.
    + destruct (demand u) as [d|] eqn:e; [|exact I]; apply (used_within_demand u b d e); [lra|exact (posn u b h)].
Qed.

(** ** A weighted sum that nothing exceeds *)

Lemma sum_zero_each {A} (f : A -> Q) l : (forall a, In a l -> 0 <= f a) -> sum (map f l) <= 0 ->
  forall a, In a l -> f a <= 0.
Proof.
  induction l as [|b l IH]; simpl; intros h s a i; [destruct i|].
  pose proof (h b (or_introl eq_refl)); pose proof (sum_nonneg f l (fun a i => h a (or_intror i))).
  destruct i as [<-|i]; [unfold sum in *; lra|]; apply IH; auto. unfold sum in *; lra.
Qed.

Definition weighted_worth (su : list (Q * user)) (y : table) : Q :=
  sum (map (fun '((q, u), b) => q * worth u b) (combine su y)).

Section Weights.
Variables (m : market) (su : list (Q * user)).
Hypothesis va : valid m.
Hypothesis the_users : map snd su = users m.
Hypothesis positive : forall q u, In (q, u) su -> 0 < q.

Lemma weighted_in_use y : shaped m y -> weighted_sum su (in_use_of m y) == weighted_worth su y.
Proof.
  intro sh; unfold weighted_sum, weighted_worth, in_use_of; rewrite <- the_users.
  assert (L : forall u b, In (u, b) (combine (map snd su) y) -> List.length b = List.length (speedup u)).
  { intros u b i; rewrite the_users in i; exact (has_shaped _ _ _ _ va sh i). }
  clear -L; revert y L; induction su as [|[q u] l IH]; intros [|b y] L; simpl; try reflexivity.
  rewrite IH by (intros u' b' i; apply L; right; exact i).
  rewrite (worth_used u b (L u b (or_introl eq_refl))); reflexivity.
Qed.

Lemma weights_pareto x most : feasible m x -> (forall y, sensible m y -> weighted_sum su y <= most) ->
  most <= weighted_worth su x -> pareto_efficient m x.
Proof.
  intros fx bound reach; split; [exact fx|]; intros y fy better u b c i.
  assert (le : weighted_worth su y <= weighted_worth su x).
  { rewrite <- (weighted_in_use y (proj1 fy)); eapply Qle_trans; [apply bound, in_use_sensible;
    assumption|exact reach]. }
  unfold weighted_worth in le.
  assert (lx : List.length su = List.length x) by (rewrite <- (map_length snd), the_users; symmetry; apply fx).
  assert (ly : List.length su = List.length y) by (rewrite <- (map_length snd), the_users; symmetry; apply fy).
  assert (D : sum (map (fun '((q, u), (b, c)) => q * (worth u c - worth u b)) (combine su (combine x y))) ==
    weighted_worth su y - weighted_worth su x).
  { unfold weighted_worth; clear -lx ly; revert x y lx ly.
    induction su as [|[q u] l IH]; intros [|b x] [|c y] lx ly; simpl in *; try discriminate; [reflexivity|].
    rewrite IH by lia; ring. }
  apply In_nth_error in i; destruct i as [j i]; apply nth_error_combine in i; destruct i as [eu i].
  apply nth_error_combine in i; destruct i as [ey ex].
  rewrite <- the_users, nth_error_map in eu; destruct (nth_error su j) as [[q u']|] eqn:es; [|discriminate].
  simpl in eu; injection eu as ->.
  assert (k : In ((q, u), (c, b)) (combine su (combine x y))).
  { apply (combine_has _ _ j _ _ es); apply nth_error_combine; auto. }
  set (f := fun '((q, u), (b, c)) => q * (worth u c - worth u b)) in D.
  assert (each : forall a, In a (combine su (combine x y)) -> 0 <= f a).
  { intros [[q' u''] [b' c']] i; destruct (has_at _ _ _ _ i) as (j' & e1 & e2).
    pose proof (positive q' u'' (nth_error_In _ _ e1)) as p; apply nth_error_In in e2.
    assert (worth u'' b' <= worth u'' c') as h.
    { destruct (has_at _ _ _ _ i) as (j2 & f1 & f2); apply better, (combine_has _ _ j2); [|exact f2].
      rewrite <- the_users, nth_error_map, f1; reflexivity. }
    unfold f; nra. }
  assert (none : sum (map f (combine su (combine x y))) <= 0) by (rewrite D; unfold weighted_worth; lra).
  pose proof (sum_zero_each f _ each none _ k) as h; unfold f in h.
  pose proof (positive q u (nth_error_In _ _ es)); nra.
Qed.
End Weights.

Definition weighted_now (su : list (Q * user)) (y : table) : Q :=
  fast_sum (map (fun '((q, u), b) => mul q (worth_now u b)) (combine su y)).

Lemma weighted_now_ok su y : weighted_now su y == weighted_worth su y.
Proof.
  unfold weighted_now, weighted_worth; rewrite fast_sumE; apply sum_ext; intros [[q u] b] _.
  rewrite mulE, worth_now_ok; reflexivity.
Qed.

(** Weights of users, and multipliers of capacities and demands. *)
Definition weights_show (m : market) (x : table) (lambda : list Q) (duals : list dual) : bool :=
  let su := combine lambda (users m) in
  same_length lambda (users m) && forallb (lt 0) lambda &&
  match bound_by su (sharing_row (context_of m)) 0 duals with
  | Some most => le most (weighted_now su x)
  | None => false
  end.

Lemma combine_snd {A B} (a : list A) : forall b : list B, List.length a = List.length b -> map snd (combine a b) = b.
Proof. induction a as [|x a IH]; intros [|y b] l; simpl in *; try discriminate; [reflexivity|]; rewrite IH by lia;
  reflexivity. Qed.

Lemma combine_fst {A B} (a : list A) : forall b : list B, List.length a = List.length b -> map fst (combine a b) = a.
Proof. induction a as [|x a IH]; intros [|y b] l; simpl in *; try discriminate; [reflexivity|]; rewrite IH by lia;
  reflexivity. Qed.

Lemma weights_show_ok m x lambda duals : valid m -> feasible m x -> weights_show m x lambda duals = true ->
  pareto_efficient m x.
Proof.
  intros va fx; unfold weights_show; cbv zeta; rewrite !andb_true_iff, forallb_forall; intros [[l p] h].
  apply same_lengthP in l; pose proof (combine_snd _ _ l) as us; set (su := combine lambda (users m)) in *.
  destruct (bound_by su _ 0 duals) as [most|] eqn:e; [|discriminate]; apply leP in h; rewrite weighted_now_ok in h.
  apply (weights_pareto m su va us) with (most := most); [|exact fx| |exact h].
  - intros q u i; apply ltP, p; exact (in_combine_l _ _ _ _ i).
  - intros y s.
    pose proof (bound_by_ok m su us _ _ _ _ y 0 va s e (fun d k g r => sharing_row_kept m d k g y 0 va s r)); lra.
Qed.

Fixpoint priced (w : text) (i : N) (l : list Q) : list dual :=
  match l with [] => [] | q :: l => Dual w [i] q :: priced w (N.succ i) l end.

Definition check_pareto_weights m x lambda prices (demand_duals : option (list Q)) : result :=
  let of_demands := match demand_duals with Some l => l | None => [] end in
  if negb (valid_b m && feasible_b m x) then no "the market is not valid, or the allocation is not feasible"
  else if negb (same_length prices (capacity m)
      && match demand_duals with Some l => same_length l (users m) | None => true end)
    then no "prices or demand duals are not one for each"
  else if weights_show m x lambda (priced capacity_word 0 prices ++ priced demand_word 0 of_demands)
    then Accepted (ParetoEfficient m x) else no "prices prove nothing".

Lemma check_pareto_weights_sound m x lambda prices demand_duals s :
  check_pareto_weights m x lambda prices demand_duals = Accepted s -> meaning s.
Proof.
  unfold check_pareto_weights; destruct (valid_b m) eqn:v; [|discriminate]; destruct (feasible_b m x) eqn:f;
    [|discriminate].
  simpl; destruct (negb _); [discriminate|]; destruct (weights_show _ _ _ _) eqn:w; [|discriminate].
  intro e; injection e as <-; apply valid_ok in v; apply feasible_ok in f.
  split; [exact v|exact (weights_show_ok _ _ _ _ v f w)].
Qed.
