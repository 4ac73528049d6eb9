(** * How much a lie can pay where all that is known is that the others have their fair shares

    Second-price trading is such a rule: no trade hurts anybody (Trading.v).  With n users of equal weight a lie gives
      at
    most n ((n - 1) (R^2 - 1) + 1) / ((n - 1) R^2 + 1) times as much, below n,
      where nobody's largest speedup is more than
    R times its least; markets that come near n are in [proofs/findings/liars/families.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency Equilibrium Coalitions
  EquilibriumCoalitions Trading Incentives.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section FairShares.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (i l : 'I_n) (j : 'I_k).

(** Who has its fair share keeps something that the liar likes, too. *)
Lemma fair_share_kept s i l y :
  alike m s i -> feasible m y -> fair_share m l <= utility m y l ->
  part m l * value m i (capacity m) <= ((1 - part m l) * s + part m l) * value m i (y l).
Proof.
move=> /(_ l)[c c0 range] fy; have [y0 _] := fy; rewrite fair_shareE => fair.
have p0 : 0 < part m l by rewrite part_gt0.
have p1 : part m l <= 1.
  by rewrite ler_pdivr_mulr ?(total_weight_gt0 m l) // mul1r /total_weight (bigD1 l) //= ler_addl sumr_ge0 // => *;
    apply: weight_ge0.
pose rest : bundle R k := fun j => capacity m j - y l j.
have rest0 j : 0 <= rest j.
  rewrite subr_ge0; apply: le_trans (fy.2 j); rewrite /given (bigD1 l) //= ler_addl.
  by apply: sumr_ge0 => *; apply: y0.
have low : c * value m i rest <= value m l rest by apply: value_le => // j; case/andP: (range j).
have high : utility m y l <= s * c * value m i (y l).
  by apply: value_ge => // j; case/andP: (range j); rewrite mulrA.
have restE a : value m a rest = value m a (capacity m) - value m a (y l) by apply: valueB.
rewrite !restE in low; rewrite -(ler_pmul2l c0); move: fair low high; rewrite /utility.
set W := value m i _; set V := value m l _; set u := value m l _; set v := value m i _ => fair low high.
have step : part m l * (c * (W - v)) <= (1 - part m l) * u.
  apply: (@le_trans _ _ (part m l * (V - u))); first by rewrite ler_pmul2l.
  by rewrite mulrBl mul1r mulrBr ler_sub.
have : part m l * (c * (W - v)) <= (1 - part m l) * (s * c * v).
  by apply: le_trans step _; rewrite ler_wpmul2l // subr_ge0.
rewrite -subr_ge0 => le; rewrite -subr_ge0; apply: le_trans le _; apply: le_of_eq; ring.
Qed.

(** All that is known of what the lie brings about is that each other user has its fair share; weights are equal. *)
Theorem fair_share_incentive_ratio s q i x y :
  1 <= s -> alike m s i -> (forall l, part m l = q) -> feasible m y ->
  (forall l, l != i -> fair_share m l <= utility m y l) -> fair_share m i <= utility m x i ->
  q * ((1 - q) * s + q) * utility m y i <= ((1 - q) * s + q - (1 - q)) * utility m x i.
Proof.
move=> s1 al parts fy fair own; have [y0 _] := fy.
have q0 : 0 < q by rewrite -(parts i) part_gt0.
have all : \sum_l part m l = 1 by apply: sum_part i.
have others : \sum_(l | l != i) part m l = 1 - q.
  have e : q + \sum_(l | l != i) part m l = 1 by rewrite -(parts i) -all [RHS](bigD1 i).
  by rewrite -e addrC addKr.
have q1 : 0 <= 1 - q by rewrite -others; apply: sumr_ge0 => l _; rewrite ltW ?part_gt0.
pose a := (1 - q) * s + q; have a0 : 0 < a.
  by rewrite /a ltr_paddl ?mulr_ge0 // (le_trans ler01).
have kept : (1 - q) * value m i (capacity m) <= a * \sum_(l | l != i) value m i (y l).
  rewrite -others mulr_suml mulr_sumr; apply: ler_sum => l li.
  by have := fair_share_kept al fy (fair l li); rewrite parts.
have whole : utility m y i + \sum_(l | l != i) value m i (y l) <= value m i (capacity m).
  rewrite (value_capacity m i y) [X in _ <= X + _](bigD1 i) //= ler_addl; apply: value_ge0 => j; exact: left_over_ge0.
have most : a * utility m y i <= (a - (1 - q)) * value m i (capacity m).
  rewrite mulrBl ler_subr_addr; apply: (@le_trans _ _ (a * utility m y i + a * \sum_(l | l != i) value m i (y l))).
    by rewrite ler_add2l.
  by rewrite -mulrDr ler_pmul2l.
have b0 : 0 <= a - (1 - q).
  have -> : a - (1 - q) = (1 - q) * (s - 1) + q by rewrite /a; ring.
  by rewrite addr_ge0 ?(ltW q0) // mulr_ge0 // subr_ge0.
rewrite -/a -mulrA; apply: (@le_trans _ _ (q * ((a - (1 - q)) * value m i (capacity m)))); first by rewrite ler_pmul2l.
by rewrite mulrCA; apply: ler_wpmul2l => //; rewrite -(parts i) -fair_shareE.
Qed.
End FairShares.

Section Traded.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (i : 'I_n).
Hypothesis lie : lie_of i m m'.

(** Second-price trading, for n users of equal weight (q = 1/n): at most n times (n - 1)(s - 1) + 1 over (n - 1) s + 1.
  *)
Theorem second_price_trading_incentive_ratio s q ts ts' :
  1 <= s -> alike m s i -> (forall l, part m l = q) ->
  gandiva_fair_trades m ts (equal_split m) -> gandiva_fair_trades m' ts' (equal_split m') ->
  q * ((1 - q) * s + q) * utility m (carry_out_all ts' (equal_split m')) i <=
  ((1 - q) * s + q - (1 - q)) * utility m (carry_out_all ts (equal_split m)) i.
Proof.
move=> s1 al parts tx ty; have [_ six] := second_price_trading_sharing_incentive tx.
have [fy' siy] := second_price_trading_sharing_incentive ty.
apply: (fair_share_incentive_ratio s1 al parts (told_feasible (lie_of_one lie) fy')) => [l li|]; last exact: six.
have [sameW sameC same] := lie; have := siy l.
have valueE b : value m' l b = value m l b by apply: eq_bigr => j _; rewrite same.
rewrite !fair_shareE /utility !valueE; apply: le_trans; apply: le_of_eq; congr (_ * _).
  by rewrite /part /total_weight sameW; congr (_ / _); apply: eq_bigr => l' _; rewrite sameW.
by apply: eq_bigr => j _; rewrite sameC.
Qed.
End Traded.
