(** * No truthful rule is Pareto-efficient and sharing-incentive: two users, two types, three markets

    A rule says for every market who gets what.  It is truthful if nobody has more, by its true speedups, of what it gets
    for false ones.  With linear utilities, a rule for two users that is truthful and Pareto-efficient gives everything to
    one of them (Schummer, Strategy-proofness versus efficiency on restricted domains of exchange economies, Social Choice
    and Welfare 1997).  Here is the case of sharing incentive, on as few markets as there can be: one GPU of each type,
    and speedups (1,a) and (1,1), then (1,a) and (1,d), then (1,c) and (1,d), for any a < 1 < c < d.  The markets were
    found by linear programs ([fairopt.properties.misreports.design]); certificates of the case a = 1/2, c = 2, d = 3 are
    own-truthful-efficient-* in [proofs/counterexamples]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Trading Exchange.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Truthful rules, for any numbers of users and types *)

(** [m'] is what the rule is told if user [i] says other speedups than it has in [m]. *)
Definition lie (R : realFieldType) (n k : nat) (i : 'I_n) (m m' : market R n k) : Prop :=
  [/\ forall l j, l != i -> speedup m' l j = speedup m l j,
      forall l, weight m' l = weight m l & forall j, capacity m' j = capacity m j].

(** Nobody has more, by its true speedups, of what it gets for a lie. *)
Definition truthful (R : realFieldType) (n k : nat) (rule : market R n k -> allocation R n k) : Prop :=
  forall m m' i, lie i m m' -> value m i (rule m' i) <= utility m (rule m) i.

Section TwoUsers.
Variable R : realFieldType.

Definition user1 : 'I_2 := @Ordinal 2 0 isT.
Definition user2 : 'I_2 := @Ordinal 2 1 isT.
Let t1 : 'I_2 := @Ordinal 2 0 isT.
Let t2 : 'I_2 := @Ordinal 2 1 isT.

Let sum2 (f : 'I_2 -> R) : \sum_i f i = f user1 + f user2.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (f _ + f _); apply: val_inj. Qed.

(** Users with speedups (1,a) and (1,b), one GPU of each type. *)
Definition two (a b : R) (a0 : 0 <= a) (b0 : 0 <= b) : market R 2 2.
Proof.
apply: (@Market R 2 2 (fun i j => if j == t1 then 1 else if i == user1 then a else b) (fun=> 1) (fun=> 1)).
- by move=> i j; case: eqP => _; [exact: ler01 | case: eqP].
- by move=> _; exact: ltr01.
- by move=> _; exact: ler01.
Defined.

Variables (a b : R) (a0 : 0 <= a) (b0 : 0 <= b).
Let m := two a0 b0.
Implicit Types x : allocation R 2 2.

Lemma two_value1 (z : bundle R 2) : value m user1 z = z t1 + a * z t2.
Proof. by rewrite /value sum2 /= mul1r. Qed.

Lemma two_value2 (z : bundle R 2) : value m user2 z = z t1 + b * z t2.
Proof. by rewrite /value sum2 /= mul1r. Qed.

Lemma two_total_weight : total_weight m = 2%:R.
Proof. by rewrite /total_weight sum2 /= (natrD _ 1 1). Qed.

Lemma two_fair1 x : fair_share m user1 <= utility m x user1 -> 1 + a <= 2%:R * (x user1 t1 + a * x user1 t2).
Proof.
rewrite /fair_share /utility !two_value1 /equal_split two_total_weight /= mulr1 mul1r -[X in X + _]mul1r -mulrDl.
by rewrite ler_pdivr_mulr ?ltr0n // mulrC.
Qed.

Lemma two_fair2 x : fair_share m user2 <= utility m x user2 -> 1 + b <= 2%:R * (x user2 t1 + b * x user2 t2).
Proof.
rewrite /fair_share /utility !two_value2 /equal_split two_total_weight /= mulr1 mul1r -[X in X + _]mul1r -mulrDl.
by rewrite ler_pdivr_mulr ?ltr0n // mulrC.
Qed.

Lemma two_given x : feasible m x -> x user1 t1 + x user2 t1 <= 1 /\ x user1 t2 + x user2 t2 <= 1.
Proof. by move=> [_ xc]; have := xc t1; have := xc t2; rewrite /given !sum2. Qed.

(** All GPUs are given out: the first user could use what is left over. *)
Lemma two_all_given x : 0 < a -> pareto_efficient m x ->
  x user1 t1 + x user2 t1 = 1 /\ x user1 t2 + x user2 t2 = 1.
Proof.
move=> apos [fx best]; have [x0 xc] := fx.
pose y : allocation R 2 2 := fun i j => x i j + (if i == user1 then left_over m x j else 0).
have left0 j : 0 <= left_over m x j by apply: left_over_ge0.
have fy : feasible m y.
  split=> [i j|j]; first by rewrite /y addr_ge0 //; case: eqP.
  rewrite /given sum2 /y eqxx; have -> : (user2 == user1) = false by [].
  by rewrite /left_over /given sum2; apply: le_of_eq; ring.
have above i : utility m x i <= utility m y i.
  by apply: ler_sum => j _; rewrite ler_wpmul2l ?speedup_ge0 // ler_addl; case: eqP.
have := best y fy above user1; rewrite /utility !two_value1 /y /= => less.
have : left_over m x t1 + a * left_over m x t2 <= 0.
  rewrite -(ler_add2l (x user1 t1 + a * x user1 t2)) addr0; apply: le_trans less.
  by apply: le_of_eq; ring.
rewrite le_eqVlt ltNge addr_ge0 ?mulr_ge0 // orbF paddr_eq0 ?mulr_ge0 // mulf_eq0 (gt_eqF apos) /= => /andP[].
by rewrite /left_over /given !sum2 !subr_eq0 => /eqP <- /eqP <-.
Qed.

(** Where the second user's ratio is larger, the first has none of the second type, or the second none of the first. *)
Lemma two_no_exchange x : a < b -> pareto_efficient m x -> x user1 t2 = 0 \/ x user2 t1 = 0.
Proof.
move=> ab pe; have [[x0 _] _] := pe.
have := @pareto_efficient_no_exchange R 2 2 m x user1 user2 t1 t2 pe isT.
rewrite /larger_ratio /= !mulr1 => /(_ ab ltr01) no.
have [->|n1] := eqVneq (x user1 t2) 0; first by left.
have [->|n2] := eqVneq (x user2 t1) 0; first by right.
by case: no; rewrite !lt_neqAle ![0 == _]eq_sym n1 n2 !x0.
Qed.

End TwoUsers.

Lemma weighed (R : realFieldType) (d p q r : R) : 1 < d -> q + r <= p + 1 -> p + d * 1 <= q + d * r -> 1 <= r.
Proof.
move=> d1 less more; have d10 : 0 < d - 1 by rewrite subr_gt0.
rewrite -subr_ge0 -(pmulr_rge0 _ d10); have := ler_add more less; rewrite -subr_ge0 => both.
by apply: le_trans both _; apply: le_of_eq; ring.
Qed.

Section ThreeMarkets.
Variables (R : realFieldType) (a c d : R).
Hypotheses (a0 : 0 < a) (a1 : a < 1) (c1 : 1 < c) (cd : c < d).

Let t1 : 'I_2 := @Ordinal 2 0 isT.
Let t2 : 'I_2 := @Ordinal 2 1 isT.
Let c0 : 0 < c := lt_trans ltr01 c1.
Let d1 : 1 < d := lt_trans c1 cd.
Let d0 : 0 < d := lt_trans c0 cd.
Let m1 := two (ltW a0) (@ler01 R).
Let m2 := two (ltW a0) (ltW d0).
Let m3 := two (ltW c0) (ltW d0).

(** In the first market the first user gets none of the second type. *)
Lemma first_market x : pareto_efficient m1 x -> fair_share m1 user2 <= utility m1 x user2 ->
  x user1 t2 = 0 /\ 1 <= x user2 t1 + x user2 t2.
Proof.
move=> pe /two_fair2; rewrite mul1r => fair; have [fx _] := pe; have [x0 _] := fx.
have two0 : 0 < 2%:R :> R by rewrite ltr0n.
have half : 1 <= x user2 t1 + x user2 t2 by rewrite -(ler_pmul2l two0) mulr1 (natrD _ 1 1).
split=> //; case: (two_no_exchange a1 pe) => // none.
have [_ given2] := two_given fx.
apply/eqP; rewrite eq_le x0 andbT; move: half; rewrite none add0r => half.
by rewrite -(ler_add2r (x user2 t2)) add0r; apply: le_trans given2 half.
Qed.

(** In the third the first user gets all of the first type, and some of the second. *)
Lemma third_market z : pareto_efficient m3 z -> fair_share m3 user1 <= utility m3 z user1 ->
  z user1 t1 = 1 /\ 0 < z user1 t2.
Proof.
move=> pe /two_fair1 fair; have [fz _] := pe; have [z0 _] := fz; have [given1 _] := two_given fz.
have most : z user1 t1 <= 1 by apply: le_trans given1; rewrite ler_addl.
have some : z user1 t2 != 0.
  apply/eqP => none; move: fair; rewrite none mulr0 addr0 leNgt => /negP[].
  apply: (@le_lt_trans _ _ 2%:R); first by rewrite -[leRHS]mulr1 ler_pmul2l ?ltr0n.
  by rewrite (natrD _ 1 1) ltr_add2l.
split; last by rewrite lt_neqAle z0 eq_sym some.
case: (two_no_exchange cd pe) => none; first by rewrite none eqxx in some.
by have [<- _] := two_all_given c0 pe; rewrite none addr0.
Qed.

(** Who is efficient and fair in the first and the third market is lied to in between, whatever it gives in the second:
    user 2 says in one of the first two what is true in the other, or user 1 says in the second what is true in the third. *)
Theorem three_markets (x y z : allocation R 2 2) :
  pareto_efficient m1 x -> fair_share m1 user2 <= utility m1 x user2 ->
  feasible m2 y ->
  pareto_efficient m3 z -> fair_share m3 user1 <= utility m3 z user1 ->
  [\/ utility m1 x user2 < value m1 user2 (y user2), utility m2 y user2 < value m2 user2 (x user2) |
      utility m2 y user1 < value m2 user1 (z user1)].
Proof.
move=> pex fairx fy pez fairz.
have [x12 _] := first_market pex fairx; have [z11 z12] := third_market pez fairz.
have [_] := two_all_given a0 pex; rewrite x12 add0r => x22.
have [y0 _] := fy; have [y1 y2] := two_given fy.
have [?|no1] := ltP (utility m1 x user2) (value m1 user2 (y user2)); first by constructor 1.
have [?|no2] := ltP (utility m2 y user2) (value m2 user2 (x user2)); first by constructor 2.
constructor 3; move: no1 no2; rewrite /utility !two_value1 !two_value2 !mul1r x22 z11 => no1 no2.
have y22 : 1 <= y user2 t2 := weighed d1 no1 no2.
have y12 : y user1 t2 = 0.
  apply/eqP; rewrite eq_le y0 andbT -(ler_add2r (y user2 t2)) add0r.
  exact: le_trans y2 y22.
rewrite y12 mulr0 addr0; apply: (@le_lt_trans _ _ 1); last by rewrite ltr_addl mulr_gt0.
by apply: le_trans y1; rewrite ler_addl.
Qed.

Lemma no_rule_for_three_markets (rule : market R 2 2 -> allocation R 2 2) :
  truthful rule -> (forall m, pareto_efficient m (rule m)) -> (forall m, sharing_incentive m (rule m)) -> False.
Proof.
move=> honest efficient fair.
have first l : l != user2 -> l == user1 by case: l => [[|[|?]] ?].
have said2 : lie user2 m1 m2 by split=> // l j /first; rewrite /= => ->.
have said1 : lie user2 m2 m1 by split=> // l j /first; rewrite /= => ->.
have said3 : lie user1 m2 m3 by split=> // l j; rewrite /= => /negbTE ->.
case: (three_markets (efficient m1) (fair m1 user2) (efficient m2).1 (efficient m3) (fair m3 user1)).
- by rewrite ltNge (honest _ _ _ said2).
- by rewrite ltNge (honest _ _ _ said1).
- by rewrite ltNge (honest _ _ _ said3).
Qed.
End ThreeMarkets.

(** So no truthful rule is Pareto-efficient and sharing-incentive. *)
Theorem no_truthful_efficient_fair_rule (R : realFieldType) (rule : market R 2 2 -> allocation R 2 2) :
  truthful rule -> (forall m, pareto_efficient m (rule m)) -> (forall m, sharing_incentive m (rule m)) -> False.
Proof.
have half0 : 0 < 2%:R^-1 :> R by rewrite invr_gt0 ltr0n.
have half1 : 2%:R^-1 < 1 :> R by rewrite invf_lt1 ?ltr1n ?ltr0n.
have two1 : 1 < 2%:R :> R by rewrite ltr1n.
have three2 : 2%:R < 3%:R :> R by rewrite ltr_nat.
exact: (no_rule_for_three_markets half0 half1 two1 three2).
Qed.
