(** * How much a user gains that enters as several

    The user's weight is divided among the rows in [S], which have its speedups at the truth.  It is the same whether the
    truth has these rows or one: what counts is what they have together.  In the market that is told, [m'], each of them
    may have any speedups.

    The bounds are those on a single liar whose part of the weight is that of all rows in [S] (Incentives.v). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency Equilibrium Coalitions EquilibriumCoalitions
  Incentives.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Sybils.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (S : {set 'I_n}) (i : 'I_n).
Implicit Types (x y : allocation R n k) (l q s : 'I_n) (j : 'I_k).
Hypotheses (iS : i \in S) (same : forall s, s \in S -> forall j, speedup m s j = speedup m i j).

(** What the rows in [S] have together. *)
Definition together x : R := \sum_(s in S) utility m x s.

Let wS : R := \sum_(s in S) weight m s.

Lemma worth_the_same s (b : bundle R k) : s \in S -> value m s b = value m i b.
Proof. by move=> sS; apply: eq_bigr => j _; rewrite same. Qed.

Lemma rows_weight_gt0 : 0 < wS.
Proof. by rewrite /wS (bigD1 i) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => s _; apply: weight_ge0. Qed.

Lemma together_ge0 x : feasible m x -> 0 <= together x.
Proof. by move=> [x0 _]; apply: sumr_ge0 => s _; apply: utility_ge0. Qed.

(** The rows put together what they have, and divide it by weight. *)
Definition pooled y : allocation R n k :=
  fun l j => if l \in S then weight m l / wS * \sum_(s in S) y s j else y l j.

Lemma pooled_feasible y : feasible m y -> feasible m (pooled y).
Proof.
move=> [y0 yc]; split=> [l j|j]; rewrite /pooled.
  case: ifP => _ //; apply: mulr_ge0; first by rewrite divr_ge0 ?weight_ge0 // ltW ?rows_weight_gt0.
  by apply: sumr_ge0 => s _.
apply: le_trans (yc j); rewrite /given (members_and_others S) [leRHS](members_and_others S).
rewrite (eq_bigr (fun s => weight m s / wS * \sum_(q in S) y q j)) => [|s ->] //.
rewrite [X in _ + X <= _](eq_bigr (fun l => y l j)) => [|l /negbTE->] //.
by rewrite -!mulr_suml divff ?mul1r // lt0r_neq0 // rows_weight_gt0.
Qed.

Lemma pooled_member y s : s \in S -> utility m (pooled y) s = weight m s / wS * together y.
Proof.
move=> sS; rewrite /utility /pooled sS valueZ; congr (_ * _).
rewrite /together worth_the_same // /value exchange_big /=; apply: eq_bigr => j _.
by rewrite mulr_sumr; apply: eq_bigr => q qS; rewrite same.
Qed.

Lemma pooled_other y l : l \notin S -> utility m (pooled y) l = utility m y l.
Proof. by move=> out; apply: eq_bigr => j _; rewrite /pooled (negbTE out). Qed.

Lemma fair_shares : \sum_(s in S) fair_share m s = part_of m S * value m i (capacity m).
Proof. by rewrite /part_of mulr_suml; apply: eq_bigr => s sS; rewrite fair_shareE worth_the_same. Qed.

Lemma fair_share_row s : s \in S -> fair_share m s = weight m s / wS * (part_of m S * value m i (capacity m)).
Proof.
move=> sS; rewrite fair_shareE worth_the_same // mulrA; congr (_ * _).
rewrite /part_of -mulr_suml -/wS /part; field.
by rewrite (total_weight_neq0 m i) lt0r_neq0 // rows_weight_gt0.
Qed.

(** No envy: the others envy none of the rows. *)
Theorem envy_free_sybils_ratio f x y :
  0 <= f -> alike m f i -> feasible m y ->
  (forall l q, l \notin S -> q \in S -> weight m l / weight m q * value m l (y q) <= utility m y l) ->
  part_of m S * value m i (capacity m) <= together x ->
  (f * part_of m S + (1 - part_of m S)) * together y <= f * together x.
Proof.
move=> f0 al fy no_envy fair; have [y0 yc] := fy; have w0 := rows_weight_gt0; have w_n0 : wS != 0 by rewrite lt0r_neq0.
set P := part_of m S; set U := together y.
have kept l : l \notin S -> weight m l / wS * U <= f * value m i (y l).
  move=> out; rewrite mulrAC ler_pdivr_mulr // /U /together [leLHS]mulr_sumr /wS [leRHS]mulr_sumr; apply: ler_sum => q qS.
  have [c c0 range] := al l; have wq := weight_gt0 m q.
  have low : c * utility m y q <= value m l (y q).
    by rewrite /utility worth_the_same //; apply: value_le => // j; case/andP: (range j).
  have high : utility m y l <= f * c * value m i (y l).
    by apply: value_ge => // j; case/andP: (range j); rewrite mulrA.
  have := le_trans (no_envy l q out qS) high; rewrite mulrAC ler_pdivr_mulr // => bound.
  rewrite -(ler_pmul2l c0); apply: (@le_trans _ _ (weight m l * value m l (y q))).
    by rewrite mulrCA; apply: ler_wpmul2l => //; apply: weight_ge0.
  by apply: le_trans bound _; rewrite [leRHS]mulrA [c * _]mulrCA [f * (c * _)]mulrA.
have whole : U + \sum_(l | l \notin S) value m i (y l) <= value m i (capacity m).
  have -> : U = \sum_(q in S) value m i (y q) by apply: eq_bigr => q qS; rewrite /utility worth_the_same.
  rewrite -members_and_others (value_capacity m i y) ler_addl; apply: value_ge0 => j; exact: left_over_ge0.
have rest : others m S / wS * U <= f * \sum_(l | l \notin S) value m i (y l).
  have -> : others m S / wS * U = \sum_(l | l \notin S) weight m l / wS * U by rewrite -!mulr_suml.
  by rewrite mulr_sumr; apply: ler_sum => l; apply: kept.
have P0 : 0 <= P by apply: part_of_ge0.
have PE : P = wS / total_weight m by rewrite /P /part_of /wS mulr_suml.
have QE : 1 - P = others m S / total_weight m by apply: part_ofE.
apply: (@le_trans _ _ (f * (P * value m i (capacity m)))); last exact: ler_wpmul2l.
have -> : (f * P + (1 - P)) * U = P * (f * U + others m S / wS * U).
  rewrite QE PE; field; by rewrite w_n0 (total_weight_neq0 m i).
rewrite [leRHS]mulrCA; apply: ler_wpmul2l => //.
by apply: le_trans (ler_wpmul2l f0 whole); rewrite mulrDr ler_add2l.
Qed.

Hypothesis lie : lie_of_all S m m'.

Theorem cooperative_oef_sybils_ratio f x y :
  0 <= f -> alike m f i -> cooperative_oef m x -> cooperative_oef m' y ->
  (f * part_of m S + (1 - part_of m S)) * together y <= f * together x.
Proof.
move=> f0 al opt [[fy ef] _]; have [_ fair _] := cooperative_oef_sharing_incentive opt.
apply: (envy_free_sybils_ratio f0 al (told_feasible lie fy)) => [l q out qS|].
  by have [sameW _ _] := lie; have := ef l q; rewrite !sameW /utility !(honest_worth lie).
by rewrite -fair_shares; apply: ler_sum => q _; apply: fair.
Qed.

(** Equal throughput, speedups from 1 to [r]. *)
Theorem noncooperative_oef_sybils_ratio r t t' x y :
  1 <= r -> (forall l j, 1 <= speedup m l j) -> (forall j, speedup m i j <= r) ->
  (forall s, s \in S -> forall j, 1 <= speedup m' s j) ->
  largest_level m t x -> largest_level m' t' y ->
  together y <= (r * (1 - part_of m S) + part_of m S) * together x.
Proof.
move=> r1 one most told opt [fy' [lev _]]; have fy := told_feasible lie fy'; have [sameW _ _] := lie.
have w0 := rows_weight_gt0; have w_n0 : wS != 0 by rewrite lt0r_neq0.
have -> : together x = wS * t by rewrite /wS mulr_suml; apply: eq_bigr => s _; case: opt => _ [at_t _]; apply: at_t.
rewrite mulrCA -ler_pdivr_mull // [leLHS]mulrC.
apply: (level_kept iS r1 one _ opt (pooled_feasible fy)) => [s sS j|l out|||s sS].
- by rewrite same.
- by rewrite pooled_other // /utility -(honest_worth lie _ out) -sameW; apply: lev.
- have -> : \sum_(s in S) \sum_j pooled y s j = \sum_(s in S) \sum_j y s j.
    rewrite exchange_big [RHS]exchange_big /=; apply: eq_bigr => j _.
    rewrite (eq_bigr (fun s => weight m s / wS * \sum_(q in S) y q j)) => [|s sS]; last by rewrite /pooled sS.
    by rewrite -!mulr_suml divff // mul1r.
  rewrite mulr_suml; apply: ler_sum => s sS; rewrite -sameW -lev; apply: count_le_value; first exact: told.
  exact: fy.1.
- by rewrite divr_ge0 ?together_ge0 // ltW.
by rewrite pooled_member // [leLHS]mulrA [leRHS]mulrAC.
Qed.

(** Max-min. *)
Theorem gavel_sybils_ratio t t' x y :
  gavel m t x -> gavel m' t' y ->
  part_of m S * together y <= (1 - part_of m S + part_of m S ^+ 2) * together x.
Proof.
move=> opt opt'; have fy := told_feasible lie opt'.1; have [fx [ratio best]] := opt.
set P := part_of m S; set U := together y; set W := value m i (capacity m).
have P0 : 0 <= P by apply: part_of_ge0.
have q0 : 0 <= 1 - P by rewrite subr_ge0 /P (part_of_le1 m S i).
have W0 : 0 <= W by apply: value_ge0 => j; apply: capacity_ge0.
have x0 : 0 <= together x by apply: together_ge0.
have UW : U <= W.
  have -> : U = \sum_(q in S) value m i (y q) by apply: eq_bigr => q qS; rewrite /utility worth_the_same.
  rewrite /W (value_capacity m i y) (members_and_others S) -addrA ler_addl addr_ge0 //.
    by apply: sumr_ge0 => l _; apply: value_ge0; apply: fy.1.
  by apply: value_ge0 => j; apply: left_over_ge0.
have d0 : 0 <= 1 - P + P ^+ 2 by rewrite addr_ge0 ?sqr_ge0.
have [Wz|Wn] := eqVneq W 0.
  apply: (@le_trans _ _ 0); last exact: mulr_ge0.
  by apply: mulr_ge0_le0 => //; rewrite -Wz.
have Wpos : 0 < W by rewrite lt_neqAle eq_sym Wn.
have Ppos : 0 < P by rewrite /P /part_of (bigD1 i) //= ltr_paddr ?part_gt0 // sumr_ge0 // => s _; apply: ltW; apply: part_gt0.
have F0 : 0 < P * W by apply: mulr_gt0.
have h0 : 0 <= U / (P * W) by rewrite divr_ge0 ?together_ge0 // ltW.
have fairs : t * (P * W) <= together x.
  by rewrite -fair_shares mulr_sumr; apply: ler_sum => s _; apply: ratio.
have others_have l : l \notin S -> fair_share m l <= utility m (pooled y) l.
  by move=> out; rewrite pooled_other //; apply: (others_fair lie opt').
have rows_have s : s \in S -> U / (P * W) * fair_share m s <= utility m (pooled y) s.
  by move=> sS; rewrite pooled_member // fair_share_row // -/P -/W mulrCA divfK // lt0r_neq0.
have := ratio_kept i opt (pooled_feasible fy) others_have h0 rows_have; rewrite -/P.
rewrite -(ler_pmul2r F0) divfK ?lt0r_neq0 // => level.
have most : P * ((1 - P) * (U / (P * W)) + P) <= 1 - P + P ^+ 2.
  have -> : P * ((1 - P) * (U / (P * W)) + P) = (1 - P) * (U / W) + P ^+ 2.
    by field; rewrite Wn lt0r_neq0.
  by rewrite ler_add2r ler_pimulr // ler_pdivr_mulr // mul1r.
apply: (@le_trans _ _ (P * (((1 - P) * (U / (P * W)) + P) * t * (P * W)))); first by rewrite ler_pmul2l.
have -> : P * (((1 - P) * (U / (P * W)) + P) * t * (P * W)) = P * ((1 - P) * (U / (P * W)) + P) * (t * (P * W)) by ring.
apply: (@le_trans _ _ ((1 - P + P ^+ 2) * (t * (P * W)))); last exact: ler_wpmul2l.
apply: ler_wpmul2r most; apply: mulr_ge0; last exact: ltW.
by apply: le_trans ler01 _; apply: best (equal_split_feasible m) _ => l; rewrite mul1r.
Qed.

(** Nash welfare. *)
Theorem nash_welfare_sybils_ratio price price' x y :
  equilibrium m price x -> equilibrium m' price' y -> (forall j, 0 < price j) ->
  (forall l, exists j, 0 < speedup m l j) -> together y <= (2%:R - part_of m S) * together x.
Proof.
move=> eq eq' pos useful; have fy := told_feasible lie (is_feasible eq').
have w0 := weight_gt0 m i; have u0 : 0 <= utility m x i by apply: utility_ge0; apply: (is_feasible eq).1.
have as_well s : s \in S -> weight m i * utility m x s = weight m s * utility m x i.
  move=> sS; have ef := equilibrium_envy_free eq; apply/eqP; rewrite eq_le; apply/andP; split.
    have := ef s i; have := ef i s; rewrite -(worth_the_same _ sS) -/(utility m x s) mulrAC ler_pdivr_mulr ?weight_gt0 //.
    by rewrite [utility m x i * _]mulrC.
  have := ef s i; rewrite worth_the_same // -/(utility m x i) mulrAC ler_pdivr_mulr //.
  by rewrite [utility m x s * _]mulrC.
have all : weight m i * together x = wS * utility m x i.
  by rewrite /together /wS mulr_sumr mulr_suml; apply: eq_bigr.
rewrite -(ler_pmul2l w0) mulrCA all.
apply: (@le_trans _ _ (utility m x i * \sum_(s in S) cost price (y s))); last first.
  have -> : (2%:R - part_of m S) * (wS * utility m x i) = utility m x i * ((2%:R - part_of m S) * wS) by ring.
  apply: ler_wpmul2l => //; exact: (liars_bundles lie eq eq' pos useful).
rewrite /together [leLHS]mulr_sumr [leRHS]mulr_sumr; apply: ler_sum => s sS.
have -> : utility m y s = value m i (y s) by apply: worth_the_same.
exact: (worth_its_cost eq i (fy.1 s)).
Qed.

End Sybils.
