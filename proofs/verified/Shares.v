(** * Certificates about an allocation, whoever made it *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Properties Pareto Trades Could.
Import ListNotations.
Local Open Scope Q_scope.

Definition has_property_b (m : market) (x : table) (p : property) : bool :=
  match p with
  | Feasibility => feasible_b m x
  | SharingIncentive => sharing_incentive_b m x
  | EnvyFreeness => envy_free_b m x
  | WorkConservation => work_conserving_b m x
  | AdjacentTypes => adjacent_b m x
  | ParetoEfficiency => feasible_b m x && no_trade_pays m x
  end.

Lemma has_property_ok m x p : valid m -> shaped m x ->
  (p <> Feasibility -> forall b share, In b x -> In share b -> 0 <= share) ->
  (has_property_b m x p = true -> has_property m x p) /\
  (p <> ParetoEfficiency -> has_property m x p -> has_property_b m x p = true).
Proof.
  intros va sh nn; assert (two : forall (a : bool) (P Q : Prop), (a = true <-> P) -> (a = true -> P) /\ (Q -> P ->
    a = true)) by tauto.
  destruct p; simpl.
  - apply two, feasible_ok.
  - apply two, sharing_incentive_ok.
  - apply two, envy_free_ok; try assumption; apply nn; discriminate.
  - apply two, work_conserving_ok; exact va.
  - apply two, adjacent_ok; exact sh.
  - split; [|congruence]; rewrite andb_true_iff; intros [f t]; apply feasible_ok in f.
    exact (no_trade_pays_ok m x va f t).
Qed.

Definition is_feasibility (p : property) : bool := match p with Feasibility => true | _ => false end.
Definition is_pareto (p : property) : bool := match p with ParetoEfficiency => true | _ => false end.

Definition check_property m x p (holds : bool) : result :=
  if negb (valid_b m && shaped_b m x) then no "the market is not valid, or the allocation is not of its users and types"
  else if negb (well_told m) then no "the entitlements are not of the market's users and types"
  else if negb (is_feasibility p || not_negative x) then no "what a negative share is worth is not defined"
  else if is_pareto p && negb holds then no "that it fails is shown by an allocation that is better"
  else if Bool.eqb (has_property_b m x p) holds then Accepted (HasProperty m x p holds (feasible_b m x))
  else no "the property does not get this answer".

Lemma check_property_sound m x p holds s : check_property m x p holds = Accepted s -> meaning s.
Proof.
  unfold check_property; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (shaped_b m x) eqn:sh; [|discriminate]; apply shaped_ok in sh; simpl.
  destruct (well_told m); [|discriminate]; simpl.
  destruct (is_feasibility p || not_negative x) eqn:n; [|discriminate]; simpl.
  assert (nn : p <> Feasibility -> forall b share, In b x -> In share b -> 0 <= share).
  { intro ne; apply not_negative_ok; destruct p; simpl in n; congruence. }
  destruct (has_property_ok m x p v sh nn) as [yes rev].
  destruct (is_pareto p && negb holds) eqn:ip; [discriminate|].
  destruct (Bool.eqb (has_property_b m x p) holds) eqn:e; [|discriminate]; apply eqb_prop in e; intro h;
    injection h as <-.
  split; [exact v|split; [exact sh|split; [|apply feasible_ok]]].
  destruct holds; [exact (yes e)|]; intro h; rewrite rev in e; [discriminate| |exact h].
  intros ->; discriminate.
Qed.

(** ** Envy *)
Definition holding (m : market) (x : table) (i : N) : option (user * list Q) := nth_error (combine (users m) x)
  (N.to_nat i).

Definition check_envy m x i l : result :=
  if negb (valid_b m && shaped_b m x && not_negative x) then no "the market is not valid, or the allocation is not one"
  else match holding m x i, holding m x l with
  | Some (u, b), Some (v, c) =>
    let own := worth_now u b in
    let theirs := worth_of_others u v c in
    if lt own theirs then Accepted (Envies m x i l own theirs (feasible_b m x)) else no "there is no envy"
  | _, _ => no "there is no such user"
  end.

Lemma check_envy_sound m x i l s : check_envy m x i l = Accepted s -> meaning s.
Proof.
  unfold check_envy; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (shaped_b m x); [|discriminate]; destruct (not_negative x); [|discriminate]; simpl.
  destruct (holding m x i) as [[u b]|] eqn:e; [|discriminate].
  destruct (holding m x l) as [[w c]|] eqn:e'; [|discriminate].
  destruct (lt _ _) eqn:le; [|discriminate]; intro h; injection h as <-; apply ltP in le.
  split; [exact v|split; [|apply feasible_ok]].
  exists u, b, w, c; repeat split; try assumption; [symmetry; apply worth_now_ok|symmetry; apply worth_of_others_ok].
Qed.

(** ** An allocation that is better *)

(** Who gains most, and how much: the first of those who do. *)
Fixpoint most_gain (l : list Q) (i : N) (best : N * Q) : N * Q :=
  match l with
  | [] => best
  | g :: l => most_gain l (N.succ i) (if lt (snd best) g then (i, g) else best)
  end.

Lemma most_gain_ok l : forall i best k g, most_gain l i best = (k, g) ->
  (k, g) = best \/ exists j, (k = i + N.of_nat j)%N /\ nth_error l j = Some g.
Proof.
  induction l as [|a l IH]; simpl; intros i best k g e; [left; auto|].
  destruct (IH _ _ _ _ e) as [h|(j & -> & h)].
  - destruct (lt (snd best) a); [|left; exact h]. injection h as -> ->; right; exists 0%nat; split; [lia|reflexivity].
  - right; exists (S j); split; [lia|exact h].
Qed.

Definition gains (m : market) (x y : table) : list Q :=
  map (fun '(u, (b, c)) => sub (worth_now u c) (worth_now u b)) (combine (users m) (combine x y)).

Definition check_dominance m x y : result :=
  if negb (valid_b m && feasible_b m x && feasible_b m y) then no
    "the market is not valid, or an allocation is not feasible"
  else let all := gains m x y in
  let '(i, gain) := most_gain all 0 (0%N, 0) in
  if forallb (le 0) all && lt 0 gain then Accepted (Dominated m x i gain) else no "somebody loses, or nobody gains".

Lemma check_dominance_sound m x y s : check_dominance m x y = Accepted s -> meaning s.
Proof.
  unfold check_dominance; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (feasible_b m x) eqn:fx; [|discriminate]; apply feasible_ok in fx.
  destruct (feasible_b m y) eqn:fy; [|discriminate]; apply feasible_ok in fy; simpl.
  destruct (most_gain _ _ _) as [i gain] eqn:mg.
  destruct (forallb (le 0) (gains m x y)) eqn:all; [|discriminate]; destruct (lt 0 gain) eqn:pos; [|discriminate].
  intro h; injection h as <-; apply ltP in pos; rewrite forallb_forall in all.
  split; [exact v|split; [exact fx|exists y; split; [exact fy|split; [|split; [exact pos|]]]]].
  - intros u b c k; assert (h : In (sub (worth_now u c) (worth_now u b)) (gains m x y)).
    { unfold gains; apply in_map_iff; exists (u, (b, c)); split; [reflexivity|exact k]. }
    specialize (all _ h); apply leP in all; rewrite subE, !worth_now_ok in all; lra.
  - destruct (most_gain_ok _ _ _ _ _ mg) as [h|(j & -> & h)]; [injection h as _ ->; lra|].
    unfold gains in h; rewrite nth_error_map in h.
    destruct (nth_error _ j) as [[u [b c]]|] eqn:e; [|discriminate]; injection h as <-.
    apply nth_error_combine in e; destruct e as [eu e]; apply nth_error_combine in e; destruct e as [ex ey].
    exists u, b, c; unfold said_of; replace (N.to_nat (0 + N.of_nat j)) with j by lia.
    split; [apply nth_error_combine; auto|split; [apply nth_error_combine; auto|]].
    rewrite subE, !worth_now_ok; ring.
Qed.
