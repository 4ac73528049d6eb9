(** * How much a user can gain that claims another weight

    [m] is the market of the truth.  In [m'] user [i] has another weight, and everything else is the same.

    In words, and for which markets these bounds are reached: [proofs/findings/liars/weights.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency Equilibrium Coalitions
  EquilibriumCoalitions Incentives.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A claim of user [i]: only its weight differs. *)
Definition claim_of (R : realFieldType) (n k : nat) (i : 'I_n) (m m' : market R n k) : Prop :=
  [/\ forall l, l != i -> weight m' l = weight m l,
      forall j, capacity m' j = capacity m j
    & forall l j, speedup m' l j = speedup m l j].

(** If the prices of all GPUs change, those that rise more count for more where each counts by its new price. *)
Lemma square_of_cost (R : realFieldType) (k : nat) (price price' : 'I_k -> R) (b : bundle R k) :
  (forall j, 0 < price j) -> (forall j, 0 <= b j) -> 0 < cost price b ->
  cost price' b ^+ 2 <= cost price b * \sum_j price' j * (price' j / price j) * b j.
Proof.
move=> pos b0; set Q := \sum_j _; move all: (cost price b) => a; move all': (cost price' b) => a' a0.
have : 0 <= \sum_j (price' j * a - price j * a') ^+ 2 / price j * b j.
  by apply: sumr_ge0 => j _; rewrite mulr_ge0 // divr_ge0 ?sqr_ge0 // ltW.
have -> : \sum_j (price' j * a - price j * a') ^+ 2 / price j * b j =
  a ^+ 2 * Q - 2%:R * a * a' * cost price' b + a' ^+ 2 * cost price b.
  rewrite /Q /cost !mulr_sumr -sumrB -big_split; apply: eq_bigr => j _ /=.
  by field; rewrite gt_eqF.
rewrite all all'; have -> : a ^+ 2 * Q - 2%:R * a * a' * a' + a' ^+ 2 * a = a * (a * Q - a' ^+ 2) by ring.
by rewrite pmulr_rge0 // subr_ge0.
Qed.

Section Claims.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (i : 'I_n).
Implicit Types (x y : allocation R n k) (l : 'I_n) (j : 'I_k) (b : bundle R k).
Hypothesis claim : claim_of i m m'.

Lemma claim_feasible y : feasible m' y -> feasible m y.
Proof. by case: claim => _ cap _ [y0 yc]; split=> // j; rewrite -cap. Qed.

Lemma claim_value l b : value m' l b = value m l b.
Proof. by case: claim => _ _ same; apply: eq_bigr => j _; rewrite same. Qed.

Lemma claim_utility y l : utility m' y l = utility m y l.
Proof. exact: claim_value. Qed.

Lemma claim_capacity l : value m' l (capacity m') = value m l (capacity m).
Proof. by case: claim => _ cap _; rewrite claim_value; apply: eq_value. Qed.

(** Cooperative OEF: with p the liar's part of the weight and q that which it claims, at most q / p times s / (q s + 1 - q),
    and so less than 1 / p. *)
Theorem cooperative_oef_weight_claim s x y :
  0 <= s -> alike m s i -> cooperative_oef m x -> cooperative_oef m' y ->
  part m i * ((s * part m' i + (1 - part m' i)) * utility m y i) <= s * part m' i * utility m x i.
Proof.
move=> s0 al opt [[fy ef] _]; have [_ fair _] := cooperative_oef_sharing_incentive opt.
have al' : alike m' s i.
  by case: claim => _ _ same l; have [c c0 range] := al l; exists c => // j; rewrite !same.
have := envy_free_most s0 al' fy (fun l _ => ef l i); rewrite claim_utility claim_capacity => most.
apply: (@le_trans _ _ (part m i * (s * part m' i * value m i (capacity m)))).
  by apply: ler_wpmul2l => //; apply: ltW; apply: part_gt0.
rewrite mulrCA -fair_shareE; apply: ler_wpmul2l; last exact: fair.
by rewrite mulr_ge0 // ltW // part_gt0.
Qed.

Section More.
Hypothesis more : weight m i <= weight m' i.

Lemma weight_le l : weight m l <= weight m' l.
Proof. by case: claim => others _ _; case: (eqVneq l i) => [->//|ne]; rewrite others. Qed.

(** Equal throughput: who claims f times its weight has at most f times as much. *)
Theorem noncooperative_oef_weight_claim t t' x y :
  largest_level m t x -> largest_level m' t' y -> weight m i * utility m y i <= weight m' i * utility m x i.
Proof.
move=> [_ [lev best]] [fy' [lev' _]]; have fy := claim_feasible fy'.
have t'0 : 0 <= t'.
  rewrite -(pmulr_rge0 _ (weight_gt0 m' i)) -(lev' i); apply: utility_ge0; exact: fy'.1.
pose z : allocation R n k := fun l j => weight m l / weight m' l * y l j.
have part0 l : 0 <= weight m l / weight m' l by rewrite divr_ge0 ?weight_ge0.
have fz : feasible m z.
  split=> [l j|j]; first by rewrite mulr_ge0 // fy.1.
  apply: le_trans (fy.2 j); apply: ler_sum => l _; rewrite ler_pimull ?fy.1 //.
  by rewrite ler_pdivr_mulr ?weight_gt0 // mul1r weight_le.
have tt : t' <= t.
  apply: best fz _ => l; rewrite /utility valueZ -/(utility m y l) -claim_utility lev'.
  by field; rewrite weight_neq0.
by rewrite -claim_utility lev' lev mulrCA !ler_wpmul2l ?weight_ge0.
Qed.

(** The same where the least ratio to the fair share is maximised. *)
Theorem gavel_weight_claim t t' x y :
  (forall l j, 0 < speedup m l j) -> gavel m t x -> gavel m' t' y ->
  weight m i * utility m y i <= weight m' i * utility m x i.
Proof.
move=> pos [_ [ratio best]] opt'; have [fy' [ratio' _]] := opt'; have fy := claim_feasible fy'.
have pos' l j : 0 < speedup m' l j by case: claim => _ _ ->.
have W0 := total_weight_gt0 m i; have W'0 := total_weight_gt0 m' i.
have e0 l : 0 <= value m l (capacity m) by apply: value_ge0; apply: capacity_ge0.
have own : utility m y i = t' * fair_share m' i.
  by rewrite -claim_utility; apply: gavel_equal_ratios (all_positive_same_types pos') opt'.
have t'0 : 0 <= t'.
  have fpos := gavel_fair_share_gt0 (all_positive_same_types pos') opt' i.
  by rewrite -(pmulr_lge0 _ fpos) -own; apply: utility_ge0; apply: fy.1.
have tt : t' * (total_weight m / total_weight m') <= t.
  apply: best fy _ => l; apply: le_trans (_ : _ <= t' * fair_share m' l) _; last by rewrite -claim_utility.
  rewrite !fair_shareE claim_capacity -mulrA; apply: ler_wpmul2l => //; rewrite mulrA; apply: ler_wpmul2r => //.
  have -> : total_weight m / total_weight m' * part m l = weight m l / total_weight m'.
    by rewrite /part; field; rewrite !gt_eqF.
  by rewrite ler_pmul2r ?invr_gt0 // weight_le.
rewrite own fair_shareE claim_capacity.
apply: (@le_trans _ _ (weight m' i * (t * fair_share m i))); last by apply: ler_wpmul2l (ratio i); apply: weight_ge0.
rewrite fair_shareE /part.
have -> : weight m i * (t' * (weight m' i / total_weight m' * value m i (capacity m))) =
  weight m' i * weight m i * value m i (capacity m) / total_weight m * (t' * (total_weight m / total_weight m')).
  by field; rewrite !gt_eqF.
have -> : weight m' i * (t * (weight m i / total_weight m * value m i (capacity m))) =
  weight m' i * weight m i * value m i (capacity m) / total_weight m * t by field; rewrite gt_eqF.
by apply: ler_wpmul2l tt; rewrite divr_ge0 ?(ltW W0) // !mulr_ge0 ?weight_ge0.
Qed.
End More.

(** Nash welfare: who claims f times its weight has at most f / (1 + (f - 1) p) times as much, what the equal split
    gives it. *)
Theorem nash_welfare_weight_claim price price' x y :
  equilibrium m price x -> equilibrium m' price' y -> (forall j, 0 < price j) ->
  (forall l, exists j, 0 < speedup m l j) -> weight m i < weight m' i ->
  total_weight m' * (weight m i * utility m y i) <= total_weight m * (weight m' i * utility m x i).
Proof.
move=> eq eq' pos useful more; have [sameW cap same] := claim.
set w := weight m i; set w' := weight m' i; set U := utility m x i; set U' := utility m y i.
set W := total_weight m; set W' := total_weight m'.
have fx := is_feasible eq; have fy := claim_feasible (is_feasible eq').
have p'0 j : 0 <= price' j by apply: price_ge0 eq' j.
have U'0 : 0 <= U' by apply: utility_ge0; apply: fy.1.
have w0 : 0 < w by apply: weight_gt0.
have w'0 : 0 < w' by apply: weight_gt0.
have W0 : 0 < W by apply: total_weight_gt0 i.
have growth : W' - W = w' - w.
  rewrite /W' /W /total_weight (bigD1 i) //= [in X in _ - X](bigD1 i) //=.
  have -> : \sum_(l | l != i) weight m' l = \sum_(l | l != i) weight m l by apply: eq_bigr => l; apply: sameW.
  by rewrite opprD addrACA subrr addr0.
pose r j := price' j / price j.
pose Q := \sum_j price' j * r j * capacity m j.
pose A := \sum_j price' j * y i j * r j.
pose X := cost price' (x i).
(* what is bought of all types has become dearer by no more, on the average, than what was bought *)
have dear : Q <= W' - X + A.
  have -> : Q = \sum_l \sum_j price' j * y l j * r j.
    rewrite exchange_big; apply: eq_bigr => j _; rewrite -mulr_suml -mulr_sumr mulrAC; congr (_ * _).
    have := p'0 j; rewrite le_eqVlt => /predU1P[<-|pj]; first by rewrite !mul0r.
    by rewrite -cap -(sold_out eq' pj).
  rewrite (bigD1 i) //= -/A addrC ler_add2r.
  apply: (@le_trans _ _ (\sum_(l | l != i) cost price' (x l))).
    by apply: ler_sum => l ne; apply: dearer_bundle eq eq' pos (useful l); [apply: sameW | apply: same].
  have -> : \sum_(l | l != i) cost price' (x l) = \sum_l cost price' (x l) - X by rewrite [in RHS](bigD1 i) //= addrAC subrr add0r.
  rewrite ler_add2r /W' -(cost_capacity eq') /cost exchange_big; apply: ler_sum => j _.
  by rewrite -mulr_sumr cap; apply: ler_wpmul2l => //; apply: fx.2.
have spread : W' ^+ 2 <= W * Q.
  have all : W = cost price (capacity m) by rewrite /W (cost_capacity eq).
  have all' : W' = cost price' (capacity m) by rewrite /W' -(cost_capacity eq'); apply: eq_bigr => j _; rewrite cap.
  have cost0 : 0 < cost price (capacity m) by rewrite -all.
  by rewrite all all'; exact: (square_of_cost price' pos (capacity_ge0 m) cost0).
have bought : w * U' * A <= w' * U * w'.
  have <- : \sum_j w' * U * (price' j * y i j) = w' * U * w' by rewrite -mulr_sumr; congr (_ * _); apply: all_spent eq' i.
  rewrite /A mulr_sumr; apply: ler_sum => j _.
  have := fy.1 i j; rewrite le_eqVlt => /predU1P[<-|held]; first by rewrite !(mulr0, mul0r).
  have best : U' * price' j <= speedup m i j * w'.
    rewrite -[w'](all_spent eq' i) /cost mulr_sumr /U' /utility /value mulr_suml; apply: ler_sum => j' _.
    rewrite [leRHS]mulrA mulrAC; apply: ler_wpmul2r; first exact: fy.1.
    by have := best_buy eq' j' held; rewrite !same.
  have step : w * U' * r j <= w' * U.
    rewrite /r mulrA ler_pdivr_mulr // -[leLHS]mulrA.
    apply: (@le_trans _ _ (w * (speedup m i j * w'))); first by rewrite ler_pmul2l.
    by rewrite mulrA [leLHS]mulrC -[leRHS]mulrA ler_pmul2l //; apply: worth_its_price eq i j.
  have -> : w * U' * (price' j * y i j * r j) = w * U' * r j * (price' j * y i j).
    by rewrite [price' j * y i j * r j]mulrC [LHS]mulrA.
  by apply: ler_wpmul2r step; rewrite mulr_ge0 // ltW.
have kept : w' * U <= U' * X.
  by have := worth_its_cost eq' i (fx.1 i); rewrite claim_value claim_utility.
have high : W' ^+ 2 - W * W' <= W * (A - X).
  rewrite -subr_ge0 in dear; rewrite -subr_ge0 in spread; rewrite -subr_ge0.
  have sum (a b c d q : R) : a * (c - d) - (b ^+ 2 - a * b) = a * (b - d + c - q) + (a * q - b ^+ 2) by ring.
  by rewrite (sum W W' A X Q); apply: addr_ge0 => //; apply: mulr_ge0 => //; apply: ltW.
have low : w * U' * (A - X) <= w' * U * (W' - W).
  rewrite growth !mulrBr; apply: ler_sub => //.
  by rewrite [w' * U * w]mulrC -[w * U' * X]mulrA ler_pmul2l.
have gain : w * U' * (W' ^+ 2 - W * W') <= W * (w' * U * (W' - W)).
  apply: (@le_trans _ _ (w * U' * (W * (A - X)))).
    by apply: ler_wpmul2l high; rewrite mulr_ge0 // ltW.
  by rewrite mulrCA; apply: ler_wpmul2l low; apply: ltW.
have grown : 0 < W' - W by rewrite growth subr_gt0.
rewrite -(ler_pmul2r grown).
have product (a b c : R) : b * c * (b - a) = c * (b ^+ 2 - a * b) by ring.
by rewrite (product W W') -[leRHS]mulrA.
Qed.

End Claims.
