(** * How much users can gain who lie together in a Fisher market

    Nash welfare: competitive equilibria of which weights are the budgets.  That the ratio is below 2 for one liar is by
    Chen, Deng, Zhang and Zhang (Incentive ratios of Fisher markets, ICALP 2012).  Here it is at most 2 - P, P the part of
    all liars.  Who buys a type after the lie bought at the truth only what has become dearer by as large a factor.  So the
    others' bundles after the lie cost, at the truth's prices, at least the part 1 - P of what they pay. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive Equilibrium Coalitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Two markets in which a user is the same, with equilibria of both: what it buys in the second has become dearer, from
    the first to the second, by no larger a factor than what it bought in the first. *)
Section Dearer.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (l : 'I_n).
Implicit Types (j : 'I_k).
Hypotheses (sameW : weight m' l = weight m l) (same : forall j, speedup m' l j = speedup m l j).
Variables (price price' : 'I_k -> R) (x y : allocation R n k).
Hypotheses (eq : equilibrium m price x) (eq' : equilibrium m' price' y).
Hypotheses (pos : forall j, 0 < price j) (useful : exists j, 0 < speedup m l j).

Lemma price'_ge0 j : 0 <= price' j. Proof. exact: price_ge0 eq' j. Qed.

Lemma dearer j j' : 0 < y l j -> 0 < x l j' -> price' j / price j <= price' j' / price j'.
Proof.
move=> after before.
have worth j0 : speedup m l j0 * price j' <= speedup m l j' * price j0 by apply: best_buy eq _ _ _ before.
have wants : 0 < speedup m l j'.
  rewrite lt_neqAle speedup_ge0 andbT eq_sym; apply/eqP => none; have [j0 some] := useful.
  by have := worth j0; rewrite none mul0r leNgt mulr_gt0.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr // -(ler_pmul2l wants).
have := best_buy eq' j' after; rewrite !same => bought.
rewrite !mulrA; apply: (@le_trans _ _ (speedup m l j * price' j' * price j')).
  by rewrite ler_pmul2r.
by rewrite mulrAC [leRHS]mulrAC ler_wpmul2r ?price'_ge0.
Qed.

Lemma dearer_bundle : \sum_j price' j * y l j * (price' j / price j) <= cost price' (x l).
Proof.
have w0 := weight_gt0 m l; rewrite -(ler_pmul2l w0).
have -> : weight m l * (\sum_j price' j * y l j * (price' j / price j)) =
  \sum_j \sum_j' price j' * x l j' * (price' j * y l j * (price' j / price j)).
  by rewrite -(all_spent eq l) /cost mulr_sumr; apply: eq_bigr => j _; rewrite mulr_suml.
have -> : weight m l * cost price' (x l) =
  \sum_j \sum_j' price j' * x l j' * (price' j * y l j * (price' j' / price j')).
  rewrite -sameW -(all_spent eq' l) /cost mulr_suml; apply: eq_bigr => j _; rewrite mulr_sumr.
  by apply: eq_bigr => j' _; field; rewrite lt0r_neq0.
apply: ler_sum => j _; apply: ler_sum => j' _.
have := (is_feasible eq).1 l j'; rewrite le_eqVlt => /predU1P[<-|before]; first by rewrite mulr0 !mul0r.
have := (is_feasible eq').1 l j; rewrite le_eqVlt => /predU1P[<-|after]; first by rewrite !(mulr0, mul0r).
apply: ler_wpmul2l; first by apply: mulr_ge0; apply: ltW.
by apply: ler_wpmul2l; [apply: mulr_ge0; [apply: price'_ge0 | apply: ltW] | apply: dearer after before].
Qed.

End Dearer.

Section Budgets.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (S : {set 'I_n}).
Implicit Types (i l s : 'I_n) (j : 'I_k).
Hypothesis lie : lie_of_all S m m'.
Variables (price price' : 'I_k -> R) (x y : allocation R n k).
Hypotheses (eq : equilibrium m price x) (eq' : equilibrium m' price' y).
Hypotheses (pos : forall j, 0 < price j) (useful : forall l, exists j, 0 < speedup m l j).

(** What the liars have after the lie costs, at the truth's prices, no more than 2 - P times what they pay. *)
Lemma liars_bundles : \sum_(s in S) cost price (y s) <= (2%:R - part_of m S) * \sum_(s in S) weight m s.
Proof.
have [sameW sameC _] := lie; have fy := told_feasible lie (is_feasible eq').
set P := part_of m S; set wS := \sum_(s in S) weight m s; pose lam := 1 - P.
have all_money : total_weight m = wS + others m S by rewrite /total_weight (members_and_others S).
have money : \sum_(l | l \notin S) \sum_j price' j * y l j = others m S.
  by apply: eq_bigr => l _; rewrite -sameW -(all_spent eq' l).
have dear : \sum_(l | l \notin S) \sum_j price' j * y l j * (price' j / price j) <= total_weight m.
  apply: (@le_trans _ _ (\sum_(l | l \notin S) cost price' (x l))).
    by have [_ _ same] := lie; apply: ler_sum => l out; apply: dearer_bundle eq eq' pos (useful l) => // j; apply: same.
  rewrite -(same_total lie) -(cost_capacity eq') /cost exchange_big; apply: ler_sum => j _.
  rewrite -mulr_sumr; apply: ler_wpmul2l; first exact: price'_ge0 eq' j.
  rewrite sameC; apply: le_trans ((is_feasible eq).2 j); rewrite /given [leRHS](members_and_others S) ler_addr.
  by apply: sumr_ge0 => s _; apply: (is_feasible eq).1.
(* (price - lam price')^2 / price is not negative *)
have square l j : 2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j)) <=
    price j * y l j.
  rewrite -subr_ge0.
  have -> : price j * y l j - (2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j))) =
    (price j - lam * price' j) ^+ 2 / price j * y l j by field; rewrite lt0r_neq0.
  by rewrite mulr_ge0 ?fy.1 // divr_ge0 ?sqr_ge0 // ltW.
have kept : 2%:R * lam * others m S - lam ^+ 2 * total_weight m <= \sum_(l | l \notin S) cost price (y l).
  apply: (@le_trans _ _ (\sum_(l | l \notin S) \sum_j
    (2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j))))); last first.
    by apply: ler_sum => l _; apply: ler_sum => j _.
  under eq_bigr do rewrite sumrB -!mulr_sumr.
  by rewrite sumrB -!mulr_sumr money ler_add2l ler_opp2; apply: ler_wpmul2l; rewrite ?sqr_ge0.
have all : \sum_(s in S) cost price (y s) + \sum_(l | l \notin S) cost price (y l) <= total_weight m.
  rewrite -members_and_others -(cost_capacity eq) /cost exchange_big.
  by apply: ler_sum => j _; rewrite -mulr_sumr; apply: ler_wpmul2l; [apply: ltW | apply: fy.2].
have [none|[i _]] := set_0Vmem S.
  by rewrite /wS none !big_set0 mulr0.
have W0 : total_weight m != 0 by rewrite (total_weight_neq0 m i).
have -> : (2%:R - P) * wS = total_weight m - (2%:R * lam * others m S - lam ^+ 2 * total_weight m).
  have -> : P = wS / total_weight m by rewrite /P /part_of /wS mulr_suml.
  have -> : lam = others m S / total_weight m by apply: (part_ofE m S i).
  have -> : others m S = total_weight m - wS by rewrite all_money addrAC subrr add0r.
  by field.
by rewrite ler_subr_addr; apply: le_trans all; rewrite ler_add2l.
Qed.

Theorem nash_welfare_coalition_ratio g i :
  i \in S -> 0 <= g -> (forall s, s \in S -> g * utility m x s <= utility m y s) -> g <= 2%:R - part_of m S.
Proof.
move=> iS g0 gain; have fy := told_feasible lie (is_feasible eq').
have wS0 : 0 < \sum_(s in S) weight m s.
  by rewrite (bigD1 i) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => s _; apply: weight_ge0.
rewrite -(ler_pmul2r wS0); apply: le_trans liars_bundles; rewrite mulr_sumr; apply: ler_sum => s sS.
have u0 : 0 < utility m x s by apply: equilibrium_utility_gt0 eq useful s.
rewrite -(ler_pmul2l u0); apply: le_trans (worth_its_cost eq s (fy.1 s)).
by rewrite mulrC -mulrA mulrC -mulrA; apply: ler_wpmul2l; [apply: weight_ge0 | rewrite mulrC; apply: gain].
Qed.

End Budgets.
