(** * How much a lie can pay

    [m] is the market of the truth.  Under a lie of user [i] a policy decides on another market, in which only the
    speedups of [i] differ; what it promises the others there, it promises them by their true speedups.

    The bounds, and markets that reach them, are those of [fairopt/properties/misreports/bounds.py] and
    [proofs/findings/liars/families.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency Equilibrium Coalitions
  EquilibriumCoalitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section NoEnvy.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (i l : 'I_n) (j : 'I_k).

(** Up to the units of each, the speedups of user [i] and of any other differ by no more than the factor [s].  It is so
    with s = r^2 where nobody's largest speedup is more than r times its least. *)
Definition alike (s : R) i : Prop :=
  forall l, exists2 c, 0 < c & forall j, c * speedup m i j <= speedup m l j <= s * (c * speedup m i j).

Lemma value_le i l a (b : bundle R k) : (forall j, a * speedup m i j <= speedup m l j) -> (forall j, 0 <= b j) ->
  a * value m i b <= value m l b.
Proof. by move=> le b0; rewrite /value mulr_sumr; apply: ler_sum => j _; rewrite mulrA ler_wpmul2r. Qed.

Lemma value_ge i l a (b : bundle R k) : (forall j, speedup m l j <= a * speedup m i j) -> (forall j, 0 <= b j) ->
  value m l b <= a * value m i b.
Proof. by move=> le b0; rewrite /value mulr_sumr; apply: ler_sum => j _; rewrite mulrA ler_wpmul2r. Qed.

(** Who does not envy the liar keeps it from what it likes: of that much, the rest has some value for the liar too. *)
Lemma kept_by_other s i l y :
  alike s i -> feasible m y -> weight m l / weight m i * value m l (y i) <= utility m y l ->
  weight m l / weight m i * utility m y i <= s * value m i (y l).
Proof.
move=> /(_ l)[c c0 range] [y0 _] no_envy.
have low : c * utility m y i <= value m l (y i) by apply: value_le => // j; case/andP: (range j).
have high : utility m y l <= s * c * value m i (y l).
  by apply: value_ge => // j; case/andP: (range j); rewrite mulrA.
have part0 : 0 <= weight m l / weight m i by rewrite divr_ge0 ?weight_ge0.
rewrite -(ler_pmul2l c0) mulrCA.
apply: (@le_trans _ _ (weight m l / weight m i * value m l (y i))); first exact: ler_wpmul2l.
by apply: le_trans no_envy _; apply: le_trans high _; rewrite mulrCA mulrA.
Qed.

(** The most that the liar has where nobody envies it, of the whole cluster as it counts it: s p / (s p + 1 - p). *)
Lemma envy_free_most s i y :
  0 <= s -> alike s i -> feasible m y ->
  (forall l, l != i -> weight m l / weight m i * value m l (y i) <= utility m y l) ->
  (s * part m i + (1 - part m i)) * utility m y i <= s * part m i * value m i (capacity m).
Proof.
move=> s0 al fy no_envy.
have given_le : \sum_l value m i (y l) <= value m i (capacity m).
  rewrite (value_capacity m i y) ler_addl; apply: value_ge0 => j; exact: left_over_ge0.
have others : \sum_(l | l != i) (weight m l / weight m i * utility m y i) <= \sum_(l | l != i) (s * value m i (y l)).
  by apply: ler_sum => l ne; apply: kept_by_other => //; apply: no_envy.
have pi0 : weight m i != 0 by rewrite weight_neq0.
have W0 : total_weight m != 0 by rewrite (total_weight_neq0 m i).
have rest : \sum_(l | l != i) (weight m l / weight m i * utility m y i) = ((part m i)^-1 - 1) * utility m y i.
  rewrite -mulr_suml -mulr_suml; congr (_ * _).
  have -> : \sum_(l | l != i) weight m l = total_weight m - weight m i.
    by rewrite /total_weight [in RHS](bigD1 i) //= addrAC subrr add0r.
  by rewrite /part; field; rewrite pi0 W0.
have whole : s * utility m y i + ((part m i)^-1 - 1) * utility m y i <= s * value m i (capacity m).
  apply: (@le_trans _ _ (s * \sum_l value m i (y l))); last exact: ler_wpmul2l.
  by rewrite (bigD1 i) //= mulrDr ler_add2l -rest mulr_sumr.
have p0 : 0 < part m i by rewrite part_gt0.
have -> : (s * part m i + (1 - part m i)) * utility m y i =
  part m i * (s * utility m y i + ((part m i)^-1 - 1) * utility m y i).
  by field; rewrite gt_eqF.
have -> : s * part m i * value m i (capacity m) = part m i * (s * value m i (capacity m)) by ring.
by rewrite ler_pmul2l.
Qed.

(** The incentive ratio where nobody envies the liar: with p its part of the weight, s / (p s + 1 - p) at most. *)
Theorem envy_free_incentive_ratio s i x y :
  0 <= s -> alike s i -> feasible m y ->
  (forall l, l != i -> weight m l / weight m i * value m l (y i) <= utility m y l) ->
  fair_share m i <= utility m x i ->
  (s * part m i + (1 - part m i)) * utility m y i <= s * utility m x i.
Proof.
move=> s0 al fy no_envy fair; apply: le_trans (envy_free_most s0 al fy no_envy) _.
by rewrite -mulrA -fair_shareE ler_wpmul2l.
Qed.

End NoEnvy.

(** A lie of user [i]: only its speedups differ. *)
Definition lie_of (R : realFieldType) (n k : nat) (i : 'I_n) (m m' : market R n k) : Prop :=
  [/\ forall l, weight m' l = weight m l,
      forall j, capacity m' j = capacity m j
    & forall l, l != i -> forall j, speedup m' l j = speedup m l j].

Section Lies.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (i : 'I_n).
Implicit Types (x y : allocation R n k) (l : 'I_n) (j : 'I_k).
Hypothesis lie : lie_of i m m'.

Lemma lie_of_one : lie_of_all [set i] m m'.
Proof. by case: lie => sameW sameC same; split=> // l; rewrite inE; apply: same. Qed.

Lemma part_of_one : part_of m [set i] = part m i. Proof. exact: big_set1. Qed.

(** The incentive ratio of cooperative OEF, whatever is reported, and whatever optima are chosen. *)
Theorem cooperative_oef_incentive_ratio s x y :
  0 <= s -> alike m s i -> cooperative_oef m x -> cooperative_oef m' y ->
  (s * part m i + (1 - part m i)) * utility m y i <= s * utility m x i.
Proof.
move=> s0 al opt [[fy ef] _]; have [_ fair _] := cooperative_oef_sharing_incentive opt.
apply: envy_free_incentive_ratio => // [|l ne]; first exact: told_feasible lie_of_one _ fy.
have [same _ _] := lie; have := ef l i.
by rewrite !same /utility !(honest_worth lie_of_one) // inE.
Qed.

(** Equal throughput, speedups from 1 to [r]. *)
Theorem noncooperative_oef_incentive_ratio r t t' x y :
  1 <= r -> (forall l j, 1 <= speedup m l j) -> (forall j, speedup m i j <= r) -> (forall j, 1 <= speedup m' i j) ->
  largest_level m t x -> largest_level m' t' y ->
  utility m y i <= (r * (1 - part m i) + part m i) * utility m x i.
Proof.
move=> r1 one most told opt opt'; have [_ [lev _]] := opt.
have U0 : 0 <= utility m y i by apply: utility_ge0; apply: (told_feasible lie_of_one opt'.1).1.
have -> : utility m x i = weight m i * t by apply: lev.
rewrite mulrCA -ler_pdivr_mull ?weight_gt0 // [leLHS]mulrC -part_of_one.
apply: (noncooperative_oef_coalition_ratio lie_of_one (set11 i) r1 one _ _ opt opt') => [s|s||s]; try move=> /set1P ->.
- exact: most.
- exact: told.
- by rewrite divr_ge0 ?weight_ge0.
by rewrite [leLHS]mulrC divfK ?weight_neq0.
Qed.

(** Max-min. *)
Theorem gavel_incentive_ratio t t' x y :
  gavel m t x -> gavel m' t' y ->
  utility m y i * fair_share m i <=
  ((1 - part m i) * utility m y i + part m i * fair_share m i) * utility m x i.
Proof.
move=> opt opt'; have [_ [ratio _]] := opt.
have U0 : 0 <= utility m y i by apply: utility_ge0; apply: (told_feasible lie_of_one opt'.1).1.
have p1 := part_of_le1 m [set i] i; rewrite part_of_one in p1.
have p0 : 0 <= part m i by apply: ltW; apply: part_gt0.
have f0 : 0 <= fair_share m i by apply: fair_share_ge0.
have u0 : 0 <= utility m x i by apply: utility_ge0; apply: opt.1.1.
have [fz|fnz] := eqVneq (fair_share m i) 0.
  by rewrite fz mulr0 mulr0 addr0; apply: mulr_ge0 => //; apply: mulr_ge0 => //; rewrite subr_ge0.
have fpos : 0 < fair_share m i by rewrite lt_neqAle eq_sym fnz.
have h0 : 0 <= utility m y i / fair_share m i by rewrite divr_ge0.
have gain s : s \in [set i] -> utility m y i / fair_share m i * fair_share m s <= utility m y s.
  by move=> /set1P ->; rewrite divfK.
have := gavel_coalition_ratio lie_of_one i opt opt' h0 gain; rewrite part_of_one.
rewrite -(ler_pmul2r fpos) divfK // => level.
have -> : (1 - part m i) * utility m y i + part m i * fair_share m i =
  ((1 - part m i) * (utility m y i / fair_share m i) + part m i) * fair_share m i by field.
rewrite mulrAC; apply: ler_wpmul2r => //; apply: le_trans level _; rewrite -mulrA; apply: ler_wpmul2l => //.
by rewrite addr_ge0 // mulr_ge0 ?subr_ge0.
Qed.

(** With p its part of the weight, (1 - p) / p + p at most: n - 1 + 1 / n where all n weights are the same. *)
Theorem gavel_incentive_ratio_at_most t t' x y :
  gavel m t x -> gavel m' t' y ->
  part m i * utility m y i <= (1 - part m i + part m i ^+ 2) * utility m x i.
Proof.
move=> opt opt'; have := gavel_incentive_ratio opt opt'; have fy := told_feasible lie_of_one opt'.1.
set U := utility m y i; set f := fair_share m i; set p := part m i; set u := utility m x i => ratio.
have p0 : 0 < p by rewrite part_gt0.
have U0 : 0 <= U by apply: utility_ge0; apply: fy.1.
have u0 : 0 <= u by apply: utility_ge0; apply: opt.1.1.
have Uf : p * U <= f.
  rewrite /f fair_shareE ler_pmul2l // (value_capacity m i y) (bigD1 i) //= -addrA ler_addl addr_ge0 //.
    by apply: sumr_ge0 => l _; apply: value_ge0; apply: fy.1.
  by apply: value_ge0 => j; apply: left_over_ge0.
have f0 : 0 <= f by apply: fair_share_ge0.
have [fz|fnz] := eqVneq f 0.
  apply: (@le_trans _ _ 0); first by rewrite -fz.
  apply: mulr_ge0 => //; apply: addr_ge0; last exact: exprn_ge0 (ltW p0).
  rewrite subr_ge0 ler_pdivr_mulr ?(total_weight_gt0 m i) // mul1r /total_weight (bigD1 i) //= ler_addl.
  by apply: sumr_ge0 => l _; apply: weight_ge0.
have fpos : 0 < f by rewrite lt_neqAle eq_sym fnz.
rewrite -(ler_pmul2r fpos); apply: (@le_trans _ _ (p * (((1 - p) * U + p * f) * u))).
  by rewrite -mulrA ler_pmul2l.
have -> : p * (((1 - p) * U + p * f) * u) = ((1 - p) * (p * U) + p ^+ 2 * f) * u by ring.
have -> : (1 - p + p ^+ 2) * u * f = ((1 - p) * f + p ^+ 2 * f) * u by ring.
apply: ler_wpmul2r => //; rewrite ler_add2r; apply: ler_wpmul2l => //.
rewrite subr_ge0 ler_pdivr_mulr ?(total_weight_gt0 m i) // mul1r /total_weight (bigD1 i) //= ler_addl.
by apply: sumr_ge0 => l _; apply: weight_ge0.
Qed.

(** Nash welfare: competitive equilibria of which weights are the budgets.  That the ratio is below 2 is by Chen, Deng,
    Zhang and Zhang (Incentive ratios of Fisher markets, ICALP 2012). *)
Theorem nash_welfare_incentive_ratio price price' x y :
  equilibrium m price x -> equilibrium m' price' y -> (forall j, 0 < price j) ->
  (forall l, exists j, 0 < speedup m l j) -> utility m y i <= (2%:R - part m i) * utility m x i.
Proof.
move=> eq eq' pos useful; have fy := told_feasible lie_of_one (is_feasible eq').
have := liars_bundles lie_of_one eq eq' pos useful; rewrite part_of_one !big_set1 => own.
rewrite -(ler_pmul2l (weight_gt0 m i)); apply: le_trans (worth_its_cost eq i (fy.1 i)) _.
have -> : weight m i * ((2%:R - part m i) * utility m x i) = utility m x i * ((2%:R - part m i) * weight m i) by ring.
by apply: ler_wpmul2l => //; apply: utility_ge0; apply: (is_feasible eq).1.
Qed.

End Lies.
