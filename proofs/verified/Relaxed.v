(** * Rows of trade-offs: sides are lines over epsilon, and so are bounds *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Decided Pareto Lies Lines.
Import ListNotations.
Local Open Scope Q_scope.

Definition sharing_word := word "sharing_incentive".
Definition at_most_word := word "at_most".
Definition shifted (by_ : N) (r : option (N * form)) : option (N * form) :=
  match r with Some (k, f) => Some ((k + by_)%N, f) | None => None end.

Definition envy_by (m : market) (c : context) (eps : Q) (d : dual) : option (N * form) :=
  match at_row d with
  | i :: _ =>
    match envy_row c d, at_ (user_at c) i with
    | Some (k, f), Some u =>
      Some (k, Form (everywhere f) (parts f) (extra f) (Some (mul (- eps) (fair_now m (of_all c) u))) None)
    | _, _ => None
    end
  | _ => None
  end.
Definition sharing_by (m : market) (c : context) (eps : Q) : dual -> option (N * form) :=
  own_row c sharing_word (fun i u =>
    Form [] [(i, speedup u)] 0 (Some (mul (sub 1 eps) (fair_now m (of_all c) u))) None).
Definition at_least_row (i : N) (u : user) : form := Form [] [(i, speedup u)] (- weight u) (Some 0) None.
Definition at_most_row (mean eps : Q) (i : N) (u : user) : form :=
  Form [] [(i, speedup u)] (- weight u) None (Some (mul eps (mul (weight u) mean))).
Definition equal_by (c : context) (mean eps : Q) : dual -> option (N * form) :=
  either (own_row c at_least_word at_least_row)
    (fun d => shifted (many_users c) (own_row c at_most_word (at_most_row mean eps) d)).

(** Beside the least gain there is no second variable: the level is given, and multipliers leave nothing of it. *)
Definition at_least_level (lev : Q) (i : N) (u : user) : form :=
  Form [] [(i, speedup u)] 0 (Some (mul (weight u) lev)) None.
Definition at_most_level (mean eps lev : Q) (i : N) (u : user) : form :=
  Form [] [(i, speedup u)] 0 None (Some (add (mul eps (mul (weight u) mean)) (mul (weight u) lev))).
Definition equal_at (c : context) (mean eps lev : Q) : dual -> option (N * form) :=
  either (own_row c at_least_word (at_least_level lev))
    (fun d => shifted (many_users c) (own_row c at_most_word (at_most_level mean eps lev) d)).

Definition goal_row (m : market) (g : goal) (c : context) (d : dual) : option (N * form) :=
  match g with
  | TotalEfficiency => None
  | LeastGain => shifted (many_users c * many_users c) (own_row c ratio_word (ratio_row m c) d)
  end.
Definition relaxed_row (m : market) (g : goal) (p : relaxed) (c : context) (mean eps lev : Q) : dual -> option (N * form) :=
  match p with
  | EnvyBy => envy_by m c eps
  | SharingBy => sharing_by m c eps
  | EqualBy => match g with TotalEfficiency => equal_by c mean eps | LeastGain => equal_at c mean eps lev end
  | EfficiencyBy => fun _ => None
  end.
Definition row_by (m : market) (g : goal) (p : relaxed) (c : context) (mean eps lev : Q) : dual -> option (N * form) :=
  either (sharing_row c) (either (goal_row m g c) (relaxed_row m g p c mean eps lev)).

Definition mean_now (m : market) : Q :=
  let all := all_weight m in mul (fast_sum (map (fair_now m all) (users m))) (/ all).
Lemma mean_now_ok m : mean_now m == sum (map (fair_share m) (users m)) / total_weight m.
Proof.
  unfold mean_now; cbv zeta; rewrite mulE, fast_sumE.
  rewrite (sum_ext _ (fair_share m)) by (intros; apply fair_now_ok); rewrite all_weight_ok; reflexivity.
Qed.

(** *** They are lines over epsilon *)
Definition alike3 (e : Q) (r0 r1 r : option (N * form)) : Prop :=
  match r0, r1, r with
  | None, None, None => True
  | Some (k, f), Some (k', g), Some (k2, h) => k = k' /\ k = k2 /\ straight_form e f g h
  | _, _, _ => False
  end.

Lemma alike3_same e r : alike3 e r r r.
Proof. destruct r as [[k f]|]; simpl; auto using straight_form_same. Qed.

Lemma either_alike3 e a0 a1 a b0 b1 b d : alike3 e (a0 d) (a1 d) (a d) -> alike3 e (b0 d) (b1 d) (b d) ->
  alike3 e (either a0 b0 d) (either a1 b1 d) (either a b d).
Proof.
  unfold either; intros h k; destruct (a0 d) as [[? ?]|], (a1 d) as [[? ?]|], (a d) as [[? ?]|]; simpl in h;
    try contradiction; assumption.
Qed.

Lemma own_alike3 e c w f0 f1 f d : (forall i u, straight_form e (f0 i u) (f1 i u) (f i u)) ->
  alike3 e (own_row c w f0 d) (own_row c w f1 d) (own_row c w f d).
Proof.
  intro h; unfold own_row; destruct (at_row d) as [|i [|? ?]]; simpl; auto; destruct (same_text _ _); simpl; auto.
  destruct (at_ _ i); simpl; auto.
Qed.

Lemma shifted_alike3 e n r0 r1 r : alike3 e r0 r1 r -> alike3 e (shifted n r0) (shifted n r1) (shifted n r).
Proof.
  destruct r0 as [[? ?]|], r1 as [[? ?]|], r as [[? ?]|]; simpl; try tauto. intros (-> & -> & h); auto.
Qed.

Lemma alike3_finds e f0 f1 f : (forall d, alike3 e (f0 d) (f1 d) (f d)) -> straight_finds e f0 f1 f.
Proof.
  intros all d k h0 e0; specialize (all d); rewrite e0 in all; simpl in all.
  destruct (f1 d) as [[k1 h1]|]; [|contradiction]; destruct (f d) as [[k2 h]|]; [|contradiction].
  destruct all as (<- & <- & s); exists h1, h; auto.
Qed.
Lemma row_by_straight m g p c mean lev e : straight_finds e (row_by m g p c mean 0 lev) (row_by m g p c mean 1 lev)
  (row_by m g p c mean e lev).
Proof.
  apply alike3_finds.
  { intro d; apply either_alike3; [apply alike3_same|]; apply either_alike3; [apply alike3_same|]; destruct p; simpl.
    - unfold envy_by; destruct (at_row d) as [|i ?]; [exact I|]; destruct (envy_row c d) as [[k f]|]; [|exact I].
      destruct (at_ _ i); [|exact I]; repeat split; cbn [low straight]; rewrite !mulE; ring.
    - apply own_alike3; intros i u; repeat split; cbn [low straight]; rewrite !mulE, !subE; ring.
    - destruct g; apply either_alike3; try apply alike3_same; apply shifted_alike3, own_alike3; intros i u; repeat split;
        cbn [high straight at_most_row at_most_level]; rewrite ?addE, (mulE e), (mulE 0), (mulE 1); ring.
    - exact I. }
Qed.
(** Over the level, too. *)
Lemma row_by_straight_level m g p c mean eps lev : straight_finds lev (row_by m g p c mean eps 0)
  (row_by m g p c mean eps 1) (row_by m g p c mean eps lev).
Proof.
  apply alike3_finds; intro d; apply either_alike3; [apply alike3_same|]; apply either_alike3; [apply alike3_same|].
  destruct p; try apply alike3_same; destruct g; [apply alike3_same|]; apply either_alike3; [|apply shifted_alike3];
    apply own_alike3; intros i u; repeat split; cbn [low high straight at_least_level at_most_level];
    rewrite ?addE, (mulE (weight u) lev), (mulE (weight u) 0), (mulE (weight u) 1); ring.
Qed.

(** *** They are kept *)
Lemma row_by_kept m g p eps y t : valid m -> within_by m g p eps y t ->
  exists z lev, (forall d k f, row_by m g p (context_of m) (mean_now m) eps lev d = Some (k, f) -> keeps y z f) /\
    (g = LeastGain -> z = t).
Proof.
  intros va (sen & gy & py); pose proof (proj1 (proj1 sen)) as sh.
  assert (users_of : forall u c, has m y u c -> In u (users m)) by (intros u c i; exact (in_combine_l _ _ _ _ i)).
  assert (both : forall z lev,
    (forall d k f, goal_row m g (context_of m) d = Some (k, f) -> keeps y z f) ->
    (forall d k f, relaxed_row m g p (context_of m) (mean_now m) eps lev d = Some (k, f) -> keeps y z f) ->
    forall d k f, row_by m g p (context_of m) (mean_now m) eps lev d = Some (k, f) -> keeps y z f).
  { intros z lev h1 h2 d k f; unfold row_by, either.
    destruct (sharing_row _ d) as [[? ?]|] eqn:r; [intro e; injection e as <- <-; exact (sharing_row_kept m d _ _ y z va sen r)|].
    destruct (goal_row _ _ _ d) as [[? ?]|] eqn:r1; [intro e; injection e as <- <-; exact (h1 _ _ _ r1)|exact (h2 d k f)]. }
  assert (goal : forall z, (g = LeastGain -> z = t) ->
    forall d k f, goal_row m g (context_of m) d = Some (k, f) -> keeps y z f).
  { intros z zt d k f; unfold goal_row; destruct g; [discriminate|]; rewrite (zt eq_refl).
    destruct (own_row _ _ _ d) as [[k' f']|] eqn:r; [|discriminate]; intro e; injection e as _ <-.
    apply (own_row_kept m _ _ _ _ _ y t va sh r); intros i u _ i'.
    apply (ratio_row_kept m y t i u _ va (users_of _ _ i') eq_refl), gy; exact i'. }
  destruct p.
  - exists t, 0; split; [|auto]; apply (both t 0 (goal t (fun _ => eq_refl))).
    intros d k f; unfold relaxed_row, envy_by; destruct (at_row d) as [|i' l'] eqn:ar; [discriminate|].
    unfold envy_row; rewrite ar; destruct l' as [|l [|? ?]]; try discriminate.
    destruct (_ && _); [|discriminate]; cbn [user_at context_of of_all]; rewrite !at_stored.
    destruct (nth_error (users m) (N.to_nat i')) as [u|] eqn:e; [|discriminate].
    destruct (nth_error (users m) (N.to_nat l)) as [w|] eqn:e'; [|discriminate].
    intro h; injection h as <- <-.
    pose proof (py _ _ _ _ (user_bundle m y i' u va sh e) (user_bundle m y l w va sh e')) as le.
    unfold keeps; cbn [low high everywhere parts extra]; split; [|exact I].
    rewrite form_two, dot_vscale, mulE, fair_now_ok; unfold value in le; lra.
  - exists t, 0; split; [|auto]; apply (both t 0 (goal t (fun _ => eq_refl))).
    intros d k f r; apply (own_row_kept m _ _ _ _ _ y t va sh r); intros i u _ i'.
    pose proof (py u _ i') as le; unfold keeps; cbn [low high of_all context_of]; split; [|exact I].
    rewrite form_own, mulE, subE, fair_now_ok; unfold value in le; lra.
  - destruct g; destruct py as [z py]; [|].
    + exists z, 0; split; [|discriminate]; apply (both z 0); [discriminate|]; intros d k f; unfold relaxed_row, equal_by, either.
    destruct (own_row _ at_least_word _ d) as [[? ?]|] eqn:r.
      * intro e; injection e as <- <-; apply (own_row_kept m _ _ _ _ _ y z va sh r); intros i u _ i'.
      destruct (py u _ i') as [le _]; unfold keeps, at_least_row; cbn [low high]; split; [|exact I].
      rewrite form_own; unfold value in le; lra.
      * destruct (own_row _ at_most_word _ d) as [[k' f']|] eqn:r'; [|discriminate]; intro e; injection e as _ <-.
      apply (own_row_kept m _ _ _ _ _ y z va sh r'); intros i u _ i'.
      destruct (py u _ i') as [_ le]; unfold keeps, at_most_row; cbn [low high]; split; [exact I|].
      rewrite form_own, !mulE, mean_now_ok; unfold value in le; set (q := sum _ / _) in *; lra.
    + exists t, z; split; [|auto]; apply (both t z (goal t (fun _ => eq_refl))); intros d k f; unfold relaxed_row, equal_at, either.
      destruct (own_row _ at_least_word _ d) as [[? ?]|] eqn:r.
      * intro e; injection e as <- <-; apply (own_row_kept m _ _ _ _ _ y t va sh r); intros i u _ i'.
        destruct (py u _ i') as [le _]; unfold keeps, at_least_level; cbn [low high]; split; [|exact I].
        rewrite form_own, mulE; unfold value in le; lra.
      * destruct (own_row _ at_most_word _ d) as [[k' f']|] eqn:r'; [|discriminate]; intro e; injection e as _ <-.
        apply (own_row_kept m _ _ _ _ _ y t va sh r'); intros i u _ i'.
        destruct (py u _ i') as [_ le]; unfold keeps, at_most_level; cbn [low high]; split; [exact I|].
        rewrite form_own, addE, !mulE, mean_now_ok; unfold value in le; set (q := sum _ / _) in *; lra.
  - exists t, 0; split; [|auto]; apply (both t 0 (goal t (fun _ => eq_refl))); discriminate.
Qed.

(** ** Lines that nothing is above *)
Definition goal_bound (m : market) (g : goal) (find : dual -> option (N * form)) (duals : list dual) : option Q :=
  match g with
  | TotalEfficiency => bound_by (alike 1 m) find 0 duals
  | LeastGain => bound_by (alike 0 m) find 1 duals
  end.

Definition line_at_level (m : market) (g : goal) (p : relaxed) (c : context) (mean : Q) (l : tradeoff_line) (lev : Q) : bool :=
  match goal_bound m g (row_by m g p c mean 0 lev) (line_duals l), goal_bound m g (row_by m g p c mean 1 lev) (line_duals l) with
  | Some b0, Some b1 => same b0 (constant l) && same b1 (add (constant l) (slope l))
  | _, _ => false
  end.
(** Where a level is given, it is the same line for another: then for all. *)
Definition line_fine (m : market) (g : goal) (p : relaxed) (c : context) (mean : Q) (l : tradeoff_line) : bool :=
  line_at_level m g p c mean l 0 &&
  match g, p with LeastGain, EqualBy => line_at_level m g p c mean l 1 | _, _ => true end.

Lemma line_at_level_ok m g p l lev eps : line_at_level m g p (context_of m) (mean_now m) l lev = true ->
  exists b, goal_bound m g (row_by m g p (context_of m) (mean_now m) eps lev) (line_duals l) = Some b /\
    b == constant l + slope l * eps.
Proof.
  unfold line_at_level.
  destruct (goal_bound m g (row_by m g p _ _ 0 lev) _) as [b0|] eqn:e0; [|discriminate].
  destruct (goal_bound m g (row_by m g p _ _ 1 lev) _) as [b1|] eqn:e1; [|discriminate].
  rewrite andb_true_iff; intros [h0 h1]; apply sameP in h0; apply sameP in h1; rewrite addE in h1.
  destruct g; unfold goal_bound in *;
    destruct (bound_by_straight eps _ _ _ _ _ _ _ _ (row_by_straight m _ p (context_of m) (mean_now m) lev eps) e0 e1)
      as (b & e & eb); exists b; (split; [exact e|rewrite eb, h0, h1; ring]).
Qed.

Lemma line_fine_at m g p l eps lev : line_fine m g p (context_of m) (mean_now m) l = true ->
  exists b, goal_bound m g (row_by m g p (context_of m) (mean_now m) eps lev) (line_duals l) = Some b /\
    b == constant l + slope l * eps.
Proof.
  unfold line_fine; rewrite andb_true_iff; intros [h0 h1]; destruct (line_at_level_ok m g p l 0 eps h0) as (b0 & e0 & q0).
  destruct p; try (exists b0; split; [exact e0|exact q0]); destruct g; try (exists b0; split; [exact e0|exact q0]).
  destruct (line_at_level_ok m LeastGain EqualBy l 1 eps h1) as (b1 & e1 & q1); unfold goal_bound in *.
  destruct (bound_by_straight lev _ _ _ _ _ _ _ _
    (row_by_straight_level m LeastGain EqualBy (context_of m) (mean_now m) eps lev) e0 e1) as (b & e & eb).
  exists b; split; [exact e|rewrite eb, q0, q1; ring].
Qed.

Lemma line_fine_ok m g p l eps y t : valid m -> line_fine m g p (context_of m) (mean_now m) l = true ->
  within_by m g p eps y t -> t <= constant l + slope l * eps.
Proof.
  intros va fine w; destruct (row_by_kept m g p eps y t va w) as (z & lev & k & zt).
  destruct (line_fine_at m g p l eps lev fine) as (b & e & eb); destruct w as (sen & gy & _).
  destruct g; unfold goal_bound in e;
    pose proof (bound_by_ok m _ (alike_users _ m) _ _ _ _ y z va sen e k) as le; rewrite sum_alike in le.
  - simpl in gy; lra.
  - rewrite (zt eq_refl) in le; lra.
Qed.
