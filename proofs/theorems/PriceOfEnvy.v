(** * What fairness costs at most: the largest total against that of a fair allocation

    Whatever is sharing-incentive, so every optimum of cooperative OEF, has at least the n-th part of the largest total.
    No more can be said of what is envy-free, not even with two types, speedup 1 on the first and one GPU of each: n - 1
    users (1, R) and one (1, R^2). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section AtMost.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k).

(** With weights, the part is that of the user of the least weight. *)
Theorem sharing_incentive_total x y (q : R) :
  (forall i, q <= part m i) -> sharing_incentive m x -> feasible m y -> q * total m y <= total m x.
Proof.
move=> least si [y0 yc]; rewrite /total mulr_sumr; apply: ler_sum => i _.
apply: le_trans (si i); rewrite fair_shareE.
have whole : value m i (y i) <= value m i (capacity m).
  apply: ler_sum => j _; apply: ler_wpmul2l; [exact: speedup_ge0 | apply: le_trans (yc j)].
  by rewrite /given (bigD1 i) //= ler_addl; apply: sumr_ge0.
apply: (@le_trans _ _ (part m i * value m i (y i))); first by apply: ler_wpmul2r => //; apply: value_ge0.
by apply: ler_wpmul2l => //; rewrite ltW ?part_gt0.
Qed.

(** Equal weights: the n-th part of the largest total. *)
Theorem cooperative_oef_total x y :
  (forall i, weight m i = 1) -> cooperative_oef m x -> feasible m y -> total m y <= n%:R * total m x.
Proof.
move=> one opt fy; have [_ si _] := cooperative_oef_sharing_incentive opt.
case: (posnP n) => [n0|npos].
  have none (f : 'I_n -> R) : \sum_i f i = 0 by apply: big1 => i; have := ltn_ord i; rewrite {2}n0.
  by rewrite /total !none mulr0.
have n0 : 0 < n%:R :> R by rewrite ltr0n.
rewrite -ler_pdivr_mull //; apply: sharing_incentive_total si fy => i.
by rewrite /part /total_weight one (eq_bigr _ (fun l _ => one l)) sumr_const card_ord div1r.
Qed.

(** What gives nobody less than an optimum of cooperative OEF, and somebody more, is envied. *)
Theorem improvement_envied x y i :
  cooperative_oef m x -> feasible m y -> (forall l, utility m x l <= utility m y l) -> utility m x i < utility m y i ->
  ~ envy_free m y.
Proof.
move=> [_ best] fy more gain no_envy; have := best y (conj fy no_envy); rewrite leNgt => /negP[].
by rewrite /total (bigD1 i) //= [ltRHS](bigD1 i) //=; apply: ltr_le_add => //; apply: ler_sum.
Qed.

End AtMost.

Section AtLeast.
Variables (R : realFieldType) (n : nat) (b : R).
Hypothesis b1 : 1 <= b.

Let slow : 'I_2 := @Ordinal 2 0 isT.
Let fast : 'I_2 := @Ordinal 2 1 isT.
Let last := @ord_max n.
Let b0 : 0 < b. Proof. exact: lt_le_trans ltr01 b1. Qed.

Definition price_speedup (i : 'I_n.+1) (j : 'I_2) : R := if j == slow then 1 else if i == last then b * b else b.

Lemma price_speedup_ge0 i j : 0 <= price_speedup i j.
Proof.
have b_ge0 := ltW b0; rewrite /price_speedup; case: (j == slow); first exact: ler01.
by case: (i == last); rewrite ?mulr_ge0.
Qed.

(** One GPU of each type; users 1 to n with speedups (1, b), and one with (1, b^2). *)
Definition price_market : market R n.+1 2 :=
  @Market R n.+1 2 price_speedup (fun=> 1) (fun=> 1) price_speedup_ge0 (fun=> ltr01) (fun=> ler01).

Let sum_types (f : 'I_2 -> R) : \sum_j f j = f slow + f fast.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (f _ + f _); apply: val_inj. Qed.

Let valueE i (c : 'I_2 -> R) : value price_market i c = c slow + (if i == last then b * b else b) * c fast.
Proof. by rewrite /value sum_types /= {1}/price_speedup eqxx mul1r. Qed.

(** All to the last user: the largest total. *)
Definition all_to_last : allocation R n.+1 2 := fun i _ => if i == last then 1 else 0.

Lemma all_to_last_feasible : feasible price_market all_to_last.
Proof.
split=> [i j|j]; first by rewrite /all_to_last; case: (i == last); rewrite ?ler01.
by rewrite /given /all_to_last -big_mkcond big_pred1_eq.
Qed.

Lemma all_to_last_total : total price_market all_to_last = 1 + b * b.
Proof.
rewrite /total (bigD1 last) //= big1 ?addr0 => [|i il]; rewrite /utility valueE /all_to_last.
  by rewrite eqxx mulr1.
by rewrite (negbTE il) mulr0 addr0.
Qed.

Lemma envy_free_total_at_most x :
  feasible price_market x -> envy_free price_market x -> n.+1%:R * total price_market x <= (1 + b) * (n%:R + b).
Proof.
move=> [x0 xc] ex; pose y := x last fast; pose others (f : 'I_n.+1 -> R) := \sum_(i | i != last) f i.
have split j : given x j = x last j + others (fun i => x i j) by rewrite /given (bigD1 last).
have envy : n%:R * (b * y) <= others (fun i => x i slow) + b * others (fun i => x i fast).
  rewrite /others mulr_sumr -big_split /=.
  have -> : n%:R * (b * y) = \sum_(i | i != last) b * y.
    by rewrite sumr_const cardC1 card_ord mulr_natl.
  apply: ler_sum => i il; have := ex i last; rewrite /= divr1 mul1r /utility !valueE (negbTE il).
  by apply: le_trans; rewrite ler_addr.
have tot : total price_market x = given x slow + b * others (fun i => x i fast) + b * b * y.
  rewrite /total (bigD1 last) //= /utility valueE eqxx split -/y.
  rewrite (eq_bigr (fun i => x i slow + b * x i fast)) => [|i /negbTE il]; last by rewrite valueE il.
  by rewrite big_split /= -mulr_sumr addrAC addrA.
have := xc slow; have := xc fast; have := x0 last slow; have := split slow; rewrite /= (split fast) -/y.
rewrite tot mulrSr; move: envy; move: (others _) (others _) (given x slow) (x last slow) => ys xs X xl.
rewrite -subr_ge0 => envy eX xl0; rewrite -(subr_ge0 _ 1) => fasts; rewrite -(subr_ge0 _ 1) => slows.
rewrite -subr_ge0.
have -> : (1 + b) * (n%:R + b) - (n%:R + 1) * (X + b * ys + b * b * y)
    = (n%:R + 1) * (1 - X) + (n%:R + 1) * b * (1 - (y + ys))
      + (b - 1) * (xs + b * ys - n%:R * (b * y) + (1 - X) + xl + b * (1 - (y + ys))) by rewrite eX; ring.
have b_ge0 := ltW b0; have n0 : 0 <= n%:R + 1 :> R by rewrite addr_ge0 ?ler0n ?ler01.
have b1_ge0 : 0 <= b - 1 by rewrite subr_ge0.
apply: addr_ge0; first by apply: addr_ge0; [apply: mulr_ge0 | apply: mulr_ge0 => //; apply: mulr_ge0].
apply: mulr_ge0 => //; apply: addr_ge0; last exact: mulr_ge0.
by apply: addr_ge0 => //; apply: addr_ge0.
Qed.

End AtLeast.

(** So the price of envy-freeness for n users, the largest total against the best that is envy-free, is at most n, and
    for each e > 0 there is a market where it is more than n / (1 + e).  Here for n + 1. *)
Theorem price_of_envy_freeness (R : realFieldType) (n : nat) (e : R) :
  0 < e ->
  exists m : market R n.+1 2,
    [/\ forall i, speedup m i (@Ordinal 2 0 isT) = 1, forall i, weight m i = 1, forall j, capacity m j = 1 &
    exists2 y, feasible m y & forall x, feasible m x -> envy_free m x -> n.+1%:R * total m x <= (1 + e) * total m y].
Proof.
move=> e0; pose N : R := n.+1%:R; have N0 : 0 < N by rewrite ltr0n.
pose b : R := 1 + N *+ 2 / e; have b1 : 1 <= b.
  by rewrite ler_addl; apply: divr_ge0 (ltW e0); apply: mulrn_wge0 (ltW N0).
exists (price_market n b1); split=> //; exists (@all_to_last R n); first exact: all_to_last_feasible.
move=> x fx ex; apply: le_trans (envy_free_total_at_most fx ex) _; rewrite all_to_last_total.
have -> : (n%:R + b : R) = N + b - 1 by rewrite /N mulrSr; ring.
have eb : e * b = e + N *+ 2 by rewrite /b; field; rewrite gt_eqF.
rewrite -subr_ge0; have -> : (1 + e) * (1 + b * b) - (1 + b) * (N + b - 1) = e + 2%:R - N + e * b * b - N * b.
  by ring.
rewrite eb; have -> : e + 2%:R - N + (e + N *+ 2) * b - N * b = e + 2%:R + e * b + N * (b - 1) by ring.
have bge0 : 0 <= b := le_trans ler01 b1.
apply: addr_ge0; last by apply: mulr_ge0 (ltW N0) _; rewrite subr_ge0.
by apply: addr_ge0 (addr_ge0 (ltW e0) (ler0n _ _)) (mulr_ge0 (ltW e0) bge0).
Qed.
