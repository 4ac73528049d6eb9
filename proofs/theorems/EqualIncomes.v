(** * How much an equilibrium with equal incomes can lack of what is possible without envy

    [x] is a competitive equilibrium (Nash welfare), [y] any envy-free allocation.  With n equal incomes no user has
      more
    than (n + 1)/2 times as much in [y] as in [x]; so [x] has at least 2/(n + 1) of the total of [y],
      whatever the units.
    Markets that come as near as one likes are in [proofs/findings/frontier/equilibrium.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Duality Equilibrium.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section EqualIncomes.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Variables (price : 'I_k -> R) (x y : allocation R n k).
Hypothesis eq : equilibrium m price x.
Hypothesis useful : forall i, exists j, 0 < speedup m i j.
Hypothesis fy : feasible m y.
Hypothesis no_envy : envy_free m y.

Let x0 i j : 0 <= x i j := (is_feasible eq).1 i j.
Let y0 i j : 0 <= y i j := fy.1 i j.
Let p0 j : 0 <= price j := price_ge0 eq j.

(** What a user buys is worth its price to it. *)
Lemma bought_at_price i j : 0 < x i j -> weight m i * speedup m i j = utility m x i * price j.
Proof.
move=> held; have zero : \sum_j' (utility m x i * price j' - weight m i * speedup m i j') * x i j' = 0.
  transitivity (utility m x i * cost price (x i) - weight m i * utility m x i).
    rewrite /cost /utility /value !mulr_sumr -sumrB; apply: eq_bigr => j' _; ring.
  by rewrite (all_spent eq) mulrC subrr.
have ge0 j' : true -> 0 <= (utility m x i * price j' - weight m i * speedup m i j') * x i j'.
  by move=> _; rewrite mulr_ge0 // subr_ge0; apply: (worth_its_price eq).
have := psumr_eq0P ge0 zero (i := j) isT.
by move/eqP; rewrite mulf_eq0 (gt_eqF held) orbF subr_eq0 eq_sym => /eqP.
Qed.

(** The money that user [i] would pay for what it has in [y] of the types that user [l] buys. *)
Definition of_buys i l : R := \sum_(j | 0 < x l j) price j * y i j.

Lemma of_buys_ge0 i l : 0 <= of_buys i l.
Proof. by apply: sumr_ge0 => j _; apply: mulr_ge0. Qed.

(** Who does not envy [i] has so much itself. *)
Lemma of_buys_le i l : weight m l * of_buys i l <= weight m i * cost price (y l).
Proof.
have u0 := equilibrium_utility_gt0 eq useful l; rewrite -(ler_pmul2l u0).
have step : utility m x l * of_buys i l <= weight m i * utility m y l.
  apply: (@le_trans _ _ (weight m l * value m l (y i))).
    rewrite /of_buys /value !mulr_sumr [leRHS](bigID (fun j => 0 < x l j)) /= -[leLHS]addr0; apply: ler_add.
      by apply: ler_sum => j held; rewrite !mulrA bought_at_price.
    by apply: sumr_ge0 => j _; rewrite !mulr_ge0 ?weight_ge0 ?speedup_ge0.
  have := no_envy l i; rewrite -(ler_pmul2l (weight_gt0 m i)); apply: le_trans; apply: le_of_eq.
  by rewrite mulrA mulrCA divff ?mulr1 // weight_neq0.
rewrite mulrCA; apply: (@le_trans _ _ (weight m l * (weight m i * utility m y l))).
  by rewrite ler_wpmul2l ?weight_ge0.
rewrite mulrCA [leRHS]mulrCA ler_wpmul2l ?weight_ge0 //.
by apply: (worth_its_cost eq) => j; apply: y0.
Qed.

(** Types that nobody else buys cost no more than the income of [i], who buys all of them. *)
Lemma cost_le i : cost price (y i) <= weight m i + \sum_(l | l != i) of_buys i l.
Proof.
have -> : \sum_(l | l != i) of_buys i l = \sum_j \sum_(l | l != i) (if 0 < x l j then price j * y i j else 0).
  by rewrite [RHS]exchange_big /=; apply: eq_bigr => l _; rewrite /of_buys big_mkcond.
rewrite -(all_spent eq i) /cost -big_split; apply: ler_sum => j _ /=.
have others0 l : l != i -> 0 <= (if 0 < x l j then price j * y i j else 0) by case: ifP => // _ _; apply: mulr_ge0.
case: (boolP [exists l, (l != i) && (0 < x l j)]) => [/existsP[l /andP[li held]]|none].
  rewrite (bigD1 l) //= held addrCA ler_addl; apply: addr_ge0; first exact: mulr_ge0.
  by apply: sumr_ge0 => l' /andP[l'i _]; apply: others0.
apply: (@le_trans _ _ (price j * x i j)); last by rewrite ler_addl; apply: sumr_ge0 => l; apply: others0.
have := p0 j; rewrite le_eqVlt => /predU1P[<-|pos]; first by rewrite !mul0r.
rewrite ler_pmul2l //; apply: (@le_trans _ _ (given y j)).
  by rewrite /given (bigD1 i) //= ler_addl; apply: sumr_ge0.
apply: le_trans (fy.2 j) _; rewrite -(sold_out eq pos) /given (bigD1 i) //= big1 ?addr0 // => l li.
move: none; rewrite negb_exists => /forallP/(_ l); rewrite li /= -leNgt => le.
by apply/eqP; rewrite eq_le le x0.
Qed.

Lemma all_cost : \sum_l cost price (y l) <= total_weight m.
Proof.
rewrite -(cost_capacity eq) /cost exchange_big; apply: ler_sum => j _ /=; rewrite -mulr_sumr.
by rewrite ler_wpmul2l //; apply: fy.2.
Qed.

(** With incomes: W is the sum of all, v at most that of each other. *)
Theorem equal_incomes_most i v :
  0 < v -> (forall l, l != i -> v <= weight m l) ->
  (weight m i + v) * utility m y i <= (total_weight m + v) * utility m x i.
Proof.
move=> v0 least; have wi := weight_gt0 m i.
have spent : (weight m i + v) * cost price (y i) <= weight m i * (total_weight m + v).
  have le : v * cost price (y i) <= v * weight m i + weight m i * \sum_(l | l != i) cost price (y l).
    apply: (@le_trans _ _ (v * (weight m i + \sum_(l | l != i) of_buys i l))); first by rewrite ler_pmul2l // cost_le.
    rewrite mulrDr ler_add2l !mulr_sumr; apply: ler_sum => l li.
    by apply: le_trans (of_buys_le i l); rewrite ler_wpmul2r ?of_buys_ge0 ?least.
  rewrite mulrDl; apply: (@le_trans _ _ (weight m i * cost price (y i) +
    (v * weight m i + weight m i * \sum_(l | l != i) cost price (y l)))); first by rewrite ler_add2l.
  rewrite addrCA -mulrDr [weight m i * (_ + v)]mulrDr [v * _]mulrC addrC ler_add2r ler_pmul2l //.
  by apply: le_trans all_cost; rewrite [leRHS](bigD1 i).
rewrite -(ler_pmul2l wi) mulrCA; apply: (@le_trans _ _ ((weight m i + v) * (utility m x i * cost price (y i)))).
  by rewrite ler_pmul2l ?addr_gt0 //; apply: (worth_its_cost eq) => j; apply: y0.
by rewrite mulrCA [leRHS]mulrA [leRHS]mulrC ler_wpmul2l // ltW // (equilibrium_utility_gt0 eq useful).
Qed.

(** With equal incomes: (n + 1)/2 times as much. *)
Theorem equal_incomes_most_each w i :
  (forall l, weight m l = w) -> 2%:R * utility m y i <= (n%:R + 1) * utility m x i.
Proof.
move=> same; have w0 : 0 < w by rewrite -(same i) weight_gt0.
have := @equal_incomes_most i w w0 (fun l _ => le_of_eq (esym (same l))).
have -> : total_weight m = n%:R * w.
  by rewrite /total_weight; under eq_bigr do rewrite same; rewrite sumr_const card_ord mulr_natl.
rewrite same => le; rewrite -(ler_pmul2l w0).
have -> : w * (2%:R * utility m y i) = (w + w) * utility m y i by ring.
by have -> : w * ((n%:R + 1) * utility m x i) = (n%:R * w + w) * utility m x i by ring.
Qed.

(** So the equilibrium has at least 2/(n + 1) of the total. *)
Theorem equal_incomes_total w :
  (forall l, weight m l = w) -> 2%:R * total m y <= (n%:R + 1) * total m x.
Proof.
by move=> same; rewrite /total !mulr_sumr; apply: ler_sum => i _; apply: equal_incomes_most_each same.
Qed.

(** Not all can have [most / least] > 1 times as much at once: so the total is less than that. *)
Lemma total_less (least most : R) :
  (0 < n)%N -> 0 < least -> least < most -> (forall i, least * utility m y i <= most * utility m x i) ->
  least * total m y < most * total m x.
Proof.
move=> npos least0 lt le; rewrite ltNge; apply/negP => ge.
have each i : most * utility m x i <= least * utility m y i.
  have ge0 l : true -> 0 <= most * utility m x l - least * utility m y l by rewrite subr_ge0.
  have zero : \sum_l (most * utility m x l - least * utility m y l) = 0.
    apply/eqP; rewrite eq_le; apply/andP; split; last by apply: sumr_ge0 => l; apply: ge0.
    by rewrite sumrB subr_le0 -!mulr_sumr.
  by have := psumr_eq0P ge0 zero (i := i) isT => /eqP; rewrite subr_eq0 => /eqP ->.
have fair := equilibrium_proportionally_fair eq useful fy.
have : most * total_weight m <= least * total_weight m.
  apply: le_trans (ler_wpmul2l (ltW least0) fair); rewrite /total_weight !mulr_sumr; apply: ler_sum => i _.
  rewrite mulrCA [leLHS]mulrC ler_pmul2l ?weight_gt0 // mulrA ler_pdivl_mulr ?each //.
  exact: (equilibrium_utility_gt0 eq useful).
by rewrite leNgt ltr_pmul2r ?lt // (total_weight_gt0 m (Ordinal npos)).
Qed.

(** More than that, where there is more than one user. *)
Theorem equal_incomes_total_more w :
  (1 < n)%N -> (forall l, weight m l = w) -> 2%:R * total m y < (n%:R + 1) * total m x.
Proof.
move=> n1 same; apply: total_less => [|||i]; rewrite ?(ltn_trans _ n1) ?ltr0n //; last exact: equal_incomes_most_each same.
by rewrite -mulrSr ltr_nat ltnS.
Qed.

End EqualIncomes.
