(** * Competitive equilibrium: envy-free, sharing-incentive, Pareto-efficient

    Eisenberg and Gale 1959, Varian 1974; the policy [nash-welfare], whose certificate is an equilibrium. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Duality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Equilibrium.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (b : bundle R k) (i l : 'I_n) (j : 'I_k).

Definition cost (price : 'I_k -> R) b : R := \sum_j price j * b j.

(** Prices at which [x] is a competitive equilibrium, each user's budget being its weight:
    no price is negative, users spend all they have, buy only what gives most for the money, and what has a price is
    sold out.  [best_buy] compares s_ij/p_j with s_ij'/p_j' without dividing by prices, which may be 0. *)
Record equilibrium (price : 'I_k -> R) x : Prop := {
  is_feasible : feasible m x;
  price_ge0 : forall j, 0 <= price j;
  all_spent : forall i, cost price (x i) = weight m i;
  best_buy : forall i j j', 0 < x i j -> speedup m i j' * price j <= speedup m i j * price j';
  sold_out : forall j, 0 < price j -> given x j = capacity m j
}.

Section Prices.
Variables (price : 'I_k -> R) (x : allocation R n k).
Hypothesis eq : equilibrium price x.
Let fx := is_feasible eq.

(** A GPU of type j is worth no more to user [i] than u_i/pi_i for each unit of its price. *)
Lemma worth_its_price i j : weight m i * speedup m i j <= utility m x i * price j.
Proof.
rewrite -(all_spent eq i) /utility /value /cost !mulr_suml; apply: ler_sum => j' _.
have := fx.1 i j'; rewrite le_eqVlt => /predU1P[<-|held]; first by rewrite !(mulr0, mul0r).
by rewrite mulrAC [leRHS]mulrAC ler_pmul2r // mulrC; apply: (best_buy eq).
Qed.

Lemma worth_its_cost i b : (forall j, 0 <= b j) -> weight m i * value m i b <= utility m x i * cost price b.
Proof.
move=> b0; rewrite /value /cost !mulr_sumr; apply: ler_sum => j _.
by rewrite !mulrA ler_wpmul2r // worth_its_price.
Qed.

(** The textbook form of the definition: nobody can afford anything better. *)
Theorem equilibrium_best_bundle i b :
  (forall j, 0 <= b j) -> cost price b <= weight m i -> value m i b <= utility m x i.
Proof.
move=> b0 afford; rewrite -(ler_pmul2l (weight_gt0 m i)); apply: le_trans (worth_its_cost i b0) _.
by rewrite [leRHS]mulrC ler_wpmul2l // utility_ge0 //; apply: fx.1.
Qed.

(** All money buys all that has a price. *)
Lemma cost_capacity : cost price (capacity m) = total_weight m.
Proof.
transitivity (cost price (given x)).
  apply: eq_bigr => j _; have := price_ge0 eq j.
  by rewrite le_eqVlt => /predU1P[<-|/(sold_out eq)->]; rewrite ?mul0r.
rewrite /cost /total_weight; under eq_bigr do rewrite mulr_sumr.
by rewrite exchange_big; apply: eq_bigr => i _; apply: all_spent eq i.
Qed.

Lemma costZ a b : cost price (fun j => a * b j) = a * cost price b.
Proof. by rewrite /cost mulr_sumr; apply: eq_bigr => j _; rewrite mulrCA. Qed.

(** Envy-free: the bundle of another, scaled to one's own budget, is affordable. *)
Theorem equilibrium_envy_free : envy_free m x.
Proof.
move=> i l; rewrite -valueZ; apply: equilibrium_best_bundle => [j|].
  by rewrite mulr_ge0 ?(fx.1 l) // divr_ge0 ?weight_ge0.
by rewrite costZ (all_spent eq) divfK ?weight_neq0.
Qed.

(** Sharing-incentive: one's part of everything is affordable.  (No hypothesis on what is left over.) *)
Theorem equilibrium_sharing_incentive : sharing_incentive m x.
Proof.
move=> i; apply: equilibrium_best_bundle => [j|].
  by rewrite /equal_split mulr_ge0 ?capacity_ge0 // ltW ?(part_gt0 m).
by rewrite /equal_split costZ cost_capacity divfK ?(total_weight_neq0 m i).
Qed.

(** From here on everybody can use something: else its money buys what others could use. *)
Hypothesis useful : forall i, exists j, 0 < speedup m i j.

Lemma equilibrium_utility_gt0 i : 0 < utility m x i.
Proof.
rewrite lt_neqAle utility_ge0 ?andbT; last exact: fx.1.
apply/eqP => zero; have [j sij] := useful i.
have := worth_its_price i j; rewrite -zero mul0r leNgt.
by rewrite mulr_gt0 ?weight_gt0.
Qed.

(** Proportional fairness: no feasible allocation raises the weighted mean of the ratios to these efficiencies above 1.
    (This is the first-order condition of maximal Nash welfare.) *)
Theorem equilibrium_proportionally_fair y :
  feasible m y -> \sum_i weight m i * (utility m y i / utility m x i) <= total_weight m.
Proof.
move=> [y0 yc]; apply: (@le_trans _ _ (\sum_i cost price (y i))).
  apply: ler_sum => i _; rewrite mulrA ler_pdivr_mulr ?equilibrium_utility_gt0 // mulrC [leRHS]mulrC mulrC.
  by apply: worth_its_cost; apply: y0.
rewrite -cost_capacity /cost exchange_big; apply: ler_sum => j _ /=; rewrite -mulr_sumr.
by rewrite ler_wpmul2l ?(price_ge0 eq) //; apply: yc.
Qed.

(** Pareto-efficient among all feasible allocations: the weights pi_i/u_i prove it. *)
Theorem equilibrium_pareto_efficient : pareto_efficient m x.
Proof.
apply: (@weighted_maximum_pareto_efficient _ _ _ _ _ (fun i => weight m i / utility m x i)).
  by move=> i; rewrite divr_gt0 ?weight_gt0 ?equilibrium_utility_gt0.
split=> // y fy.
have -> : \sum_i weight m i / utility m x i * utility m x i = total_weight m.
  by apply: eq_bigr => i _; rewrite divfK ?gt_eqF ?equilibrium_utility_gt0.
apply: le_trans (equilibrium_proportionally_fair fy); apply: ler_sum => i _.
by rewrite mulrA mulrAC.
Qed.

(** It maximises Nash welfare, the product of the efficiencies to the power of the weights, for integral weights
    (rational ones are integral in a smaller unit).  By the inequality of arithmetic and geometric means. *)
Theorem equilibrium_nash_welfare (copies : 'I_n -> nat) y :
  (forall i, weight m i = (copies i)%:R) -> feasible m y ->
  \prod_i utility m y i ^+ copies i <= \prod_i utility m x i ^+ copies i.
Proof.
move=> wt fy; have fair := equilibrium_proportionally_fair fy.
pose r i := utility m y i / utility m x i.
have r0 i : 0 <= r i.
  by rewrite divr_ge0 ?(ltW (equilibrium_utility_gt0 _)) //; apply: utility_ge0; apply: fy.1.
(* each user stands as often as its weight says *)
pose crowd : finType := [finType of {i : 'I_n & 'I_(copies i)}].
have sum_crowd : \sum_(c : crowd) r (tag c) <= #|crowd|%:R.
  rewrite -(sig_big_dep xpredT (fun i => xpredT) (fun i _ => r i)) /=.
  have -> : #|crowd|%:R = total_weight m.
    by rewrite card_tagged sumnE big_map big_enum /= natr_sum; apply: eq_bigr => i _; rewrite card_ord wt.
  apply: le_trans fair; apply: ler_sum => i _.
  by rewrite sumr_const card_ord wt mulr_natl.
have prod_crowd : \prod_(c : crowd) r (tag c) <= 1.
  have [le _] := @leif_AGM R crowd predT (r \o tag) (fun c _ => r0 (tag c)).
  apply: le_trans le _; apply: exprn_ile1.
    by rewrite divr_ge0 ?ler0n // sumr_ge0 // => c _; apply: r0.
  have := leq0n #|crowd|; rewrite leq_eqVlt => /predU1P[<-|pos]; first by rewrite invr0 mulr0 ler01.
  by rewrite ler_pdivr_mulr ?ltr0n // mul1r.
have prod_r : \prod_i r i ^+ copies i <= 1.
  rewrite -(sig_big_dep xpredT (fun i => xpredT) (fun i _ => r i)) /= in prod_crowd.
  by under eq_bigr do rewrite -[X in _ ^+ X]card_ord -prodr_const.
have -> : \prod_i utility m y i ^+ copies i = (\prod_i r i ^+ copies i) * \prod_i utility m x i ^+ copies i.
  by rewrite -big_split; apply: eq_bigr => i _ /=; rewrite -exprMn /r divfK ?gt_eqF ?equilibrium_utility_gt0.
by rewrite ler_pimull // prodr_ge0 // => i _; rewrite exprn_ge0 // ltW ?equilibrium_utility_gt0.
Qed.

End Prices.
End Equilibrium.
