(** * The same with two types: no user has more than 2 - 1/n times as much without envy

    [x] is a competitive equilibrium with n equal incomes, [y] any envy-free allocation, as in [EqualIncomes.v].  So [x]
    has more than n/(2n - 1) of the total of [y], whatever the units.  No smaller factor will do, and no larger part. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Duality Equilibrium EqualIncomes.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** No more

    In money of the equilibrium: [Q] is what user [i] holds in [y], [worth l] what [l] gets out of [y].  The other user
    whose worth is least buys type [a]; so nobody holds more than that worth of [a].  Who buys the other type [c] envies
    [i] unless it holds nearly as much of [c] as all that [i] holds. *)
Section TwoTypes.
Variables (R : realFieldType) (n : nat) (m : market R n 2).
Variables (price : 'I_2 -> R) (x y : allocation R n 2) (w : R).
Hypothesis eq : equilibrium m price x.
Hypothesis useful : forall i, exists j, 0 < speedup m i j.
Hypothesis fy : feasible m y.
Hypothesis no_envy : envy_free m y.
Hypothesis same : forall l, weight m l = w.

Let u0 l : 0 < utility m x l := equilibrium_utility_gt0 eq useful l.
Let p0 j : 0 <= price j := price_ge0 eq j.

Let sum_types a c (f : 'I_2 -> R) : a != c -> \sum_j f j = f a + f c.
Proof.
move=> ac; rewrite (bigD1 a) //= (bigD1 c) /= 1?eq_sym // big1 ?addr0 // => j.
by move: j a c ac => [[|[|?]] //= ?] [[|[|?]] //= ?] [[|[|?]] //= ?]; rewrite -!val_eqE.
Qed.

Let all_weights : total_weight m = n%:R * w.
Proof. by rewrite /total_weight; under eq_bigr do rewrite same; rewrite sumr_const card_ord mulr_natl. Qed.

Definition worth l : R := w * utility m y l / utility m x l.

Lemma worth_le l : worth l <= cost price (y l).
Proof.
rewrite /worth ler_pdivr_mulr // [leRHS]mulrC -(same l).
by apply: (worth_its_cost eq) => j; apply: fy.1.
Qed.

(** Nobody holds more of what [l] buys than [l] gets. *)
Lemma held_le l l' j : 0 < x l j -> price j * y l' j <= worth l.
Proof.
move=> bought; rewrite /worth ler_pdivl_mulr // mulrAC [price j * _]mulrC -(bought_at_price eq bought) same.
have w0 : 0 < w by rewrite -(same l) weight_gt0.
rewrite -mulrA ler_pmul2l //; have := no_envy l l'; rewrite !same divff ?gt_eqF // mul1r; apply: le_trans.
by rewrite /value (bigD1 j) //= ler_addl; apply: sumr_ge0 => j' _; rewrite mulr_ge0 ?speedup_ge0 ?fy.1.
Qed.

Section User.
Variable i : 'I_n.
Let Q := cost price (y i).

Lemma others_worth : Q + \sum_(l | l != i) worth l <= n%:R * w.
Proof.
apply: (@le_trans _ _ (\sum_l cost price (y l))); last by rewrite -all_weights; apply: all_cost eq fy.
by rewrite [leRHS](bigD1 i) //= ler_add2l; apply: ler_sum => l _; apply: worth_le.
Qed.

Section Least.
Variables (l0 : 'I_n) (a c : 'I_2).
Hypotheses (ac : a != c) (bought : 0 < x l0 a).
Hypothesis least : forall l, l != i -> worth l0 <= worth l.
Let b := worth l0.
Let D : pred 'I_n := fun l => (l != i) && (0 < x l c).

Let qE l : cost price (y l) = price a * y l a + price c * y l c.
Proof. exact: sum_types. Qed.

Lemma buyers_hold l : D l -> Q - b <= price c * y l c.
Proof.
move=> /andP[_ held]; rewrite ler_subl_addr /Q qE.
have w0 : 0 < w by rewrite -(same l) weight_gt0.
have step : w * (speedup m l a * (y i a - y l a)) <= utility m x l * (price c * (y l c - y i c)).
  have envy : value m l (y i) <= value m l (y l) by have := no_envy l i; rewrite !same divff ?gt_eqF // mul1r.
  rewrite [leRHS]mulrA -(bought_at_price eq held) same -mulrA ler_pmul2l // -subr_ge0.
  have -> : speedup m l c * (y l c - y i c) - speedup m l a * (y i a - y l a) = value m l (y l) - value m l (y i).
    by rewrite /value !(sum_types _ ac); ring.
  by rewrite subr_ge0.
case: (leP (y l a) (y i a)) => [more|less].
  rewrite [leRHS]addrC; apply: ler_add; first exact: held_le bought.
  rewrite -subr_ge0 -mulrBr -(pmulr_rge0 _ (u0 l)); apply: le_trans step.
  by rewrite !mulr_ge0 ?speedup_ge0 ?subr_ge0 // ltW.
apply: (@le_trans _ _ (price c * y l c + price a * y l a)); last by rewrite ler_add2l held_le.
rewrite -subr_ge0.
have -> : price c * y l c + price a * y l a - (price a * y i a + price c * y i c)
        = price c * (y l c - y i c) - price a * (y i a - y l a) by ring.
rewrite subr_ge0 -(ler_pmul2l (u0 l)); apply: le_trans step.
rewrite !mulrA -subr_le0 -mulrBl mulr_ge0_le0 ?subr_le0 ?(ltW less) // subr_ge0.
by rewrite -(same l) (worth_its_price eq).
Qed.

(** All that is left of type [c] is theirs who buy it, for their incomes. *)
Lemma buyers_held : price c * y i c + \sum_(l | D l) price c * y l c <= w + #|D|%:R * w.
Proof.
have spends l : price c * x l c <= w.
  by rewrite -(same l) -(all_spent eq l) /cost (sum_types _ ac) ler_addr mulr_ge0 ?(is_feasible eq).1.
apply: (@le_trans _ _ (price c * capacity m c)).
  apply: (@le_trans _ _ (price c * given y c)); last by rewrite ler_wpmul2l ?fy.2.
  rewrite /given mulr_sumr [leRHS](bigD1 i) //= ler_add2l big_mkcondr; apply: ler_sum => l _.
  by case: ifP => // _; rewrite mulr_ge0 ?fy.1.
have := p0 c; rewrite le_eqVlt => /predU1P[<-|/(sold_out eq) <-].
  by rewrite mul0r addr_ge0 ?mulr_ge0 ?ler0n // -(same i) weight_ge0.
rewrite /given mulr_sumr (bigD1 i) //= ler_add // mulr_natl -sumr_const [leRHS]big_mkcond [leLHS]big_mkcond.
apply: ler_sum => l _; rewrite unfold_in /D; case: (l != i) => //=.
case: ltP => [//|none]; rewrite (_ : x l c = 0) ?mulr0 //.
by apply/eqP; rewrite eq_le none (is_feasible eq).1.
Qed.

Lemma least_bounds : Q <= w + b /\ Q + (n.-1%:R * b + #|D|%:R * (Q - 2%:R * b)) <= n%:R * w.
Proof.
split.
  have le : (1 + #|D|%:R) * (Q - b) <= (1 + #|D|%:R) * w.
    rewrite !mulrDl !mul1r; apply: le_trans buyers_held; apply: ler_add.
      by rewrite ler_subl_addr /Q qE addrC ler_add2l held_le.
    by rewrite mulr_natl -sumr_const; apply: ler_sum => l /buyers_hold.
  by rewrite -ler_subl_addr -(ler_pmul2l (_ : 0 < 1 + #|D|%:R)) // -mulrS ltr0n.
apply: le_trans others_worth; rewrite ler_add2l.
have -> : n.-1%:R * b + #|D|%:R * (Q - 2%:R * b) = \sum_(l | l != i) (b + (if 0 < x l c then Q - 2%:R * b else 0)).
  rewrite big_split /= -big_mkcondr !sumr_const !mulr_natl; congr (_ *+ _ + _ *+ _).
  by rewrite -[n in n.-1]card_ord -(cardC1 i).
apply: ler_sum => l li; case: ifP => [held|_]; last by rewrite addr0 least.
have -> : b + (Q - 2%:R * b) = Q - b by ring.
by apply: le_trans (held_le i held); rewrite ler_subl_addr /Q qE addrC ler_add2l held_le.
Qed.

End Least.

(** Nobody can hold more than 2 - 1/n incomes. *)
Lemma cost_le_two_types : n%:R * Q <= (2%:R * n%:R - 1) * w.
Proof.
have w0 : 0 < w by rewrite -(same i) weight_gt0.
have npos : (0 < n)%N := leq_ltn_trans (leq0n i) (ltn_ord i).
have n1 : 1 <= n%:R :> R by rewrite ler1n.
have income : Q <= w -> n%:R * Q <= (2%:R * n%:R - 1) * w.
  move=> le; apply: (@le_trans _ _ (n%:R * w)); first by rewrite ler_pmul2l ?ltr0n.
  rewrite ler_pmul2r // -subr_ge0 (_ : _ - n%:R = n%:R - 1) ?subr_ge0 //; ring.
case: (pickP (fun l => l != i)) => [l1 other1|none]; last first.
  apply: income; apply: le_trans (_ : n%:R * w <= w).
    by apply: le_trans others_worth; rewrite big_pred0 // addr0.
  rewrite -[leRHS]mul1r ler_pmul2r // lern1 -[n in (n <= 1)%N]card_ord.
  by rewrite (eq_card1 (x := i)) // => l; rewrite !inE (negbFE (none l)).
case: (@arg_minP _ _ _ l1 (fun l => l != i) worth other1) => l0 _ least.
have [a bought] : exists a, 0 < x l0 a.
  apply/existsP; rewrite -[X in is_true X]negbK negb_exists; apply/negP => /forallP no.
  have := weight_gt0 m l0; rewrite -(all_spent eq l0) /cost big1 ?ltxx // => j _.
  have := no j; rewrite -leNgt => le; rewrite (_ : x l0 j = 0) ?mulr0 //.
  by apply/eqP; rewrite eq_le le (is_feasible eq).1.
pose c : 'I_2 := if a == ord0 then ord_max else ord0.
have ac : a != c by rewrite /c; case: (a =P ord0) => [->|/eqP].
have [] := least_bounds ac bought least.
set b := worth l0; set D := (fun l => _); set d := #|D|%:R => cap sum.
have d0 : 0 <= d by rewrite ler0n.
have nS : n%:R = n.-1%:R + 1 :> R by rewrite -[in LHS](prednK npos) mulrSr.
have dn : d <= n.-1%:R.
  rewrite ler_nat -[n in n.-1]card_ord -(cardC1 i); apply: subset_leq_card.
  by apply/subsetP => l /andP[].
have [small|large] := leP b w; last first.
  apply: income; rewrite -(ler_add2r (n.-1%:R * w)); apply: le_trans (_ : n%:R * w <= _); last first.
    by rewrite nS mulrDl mul1r addrC.
  apply: le_trans others_worth; rewrite ler_add2l -[n in n.-1]card_ord -(cardC1 i) mulr_natl -sumr_const.
  by apply: ler_sum => l li; apply: ltW; apply: lt_le_trans large (least l li).
have all0 : 0 <= n%:R * w - Q * (1 + d) - (n%:R - 1 - 2%:R * d) * b.
  rewrite -subr_ge0 in sum; apply: le_trans sum _; apply: le_of_eq; rewrite nS; ring.
have [most|many] := leP 0 (n%:R - 1 - 2%:R * d).
  have pos : 0 < n%:R - d by rewrite subr_gt0; apply: le_lt_trans dn _; rewrite nS ltr_addl ltr01.
  rewrite -subr_ge0 -(pmulr_rge0 _ pos).
  have -> : (n%:R - d) * ((2%:R * n%:R - 1) * w - n%:R * Q)
          = n%:R * ((n%:R * w - Q * (1 + d) - (n%:R - 1 - 2%:R * d) * b) + (n%:R - 1 - 2%:R * d) * (w + b - Q)) + d * w.
    ring.
  apply: addr_ge0; last by rewrite mulr_ge0 // ltW.
  by rewrite mulr_ge0 ?ler0n // addr_ge0 // mulr_ge0 // subr_ge0.
have pos : 0 < 1 + d by rewrite -mulrS ltr0n.
rewrite -subr_ge0 -(pmulr_rge0 _ pos).
have -> : (1 + d) * ((2%:R * n%:R - 1) * w - n%:R * Q)
        = n%:R * ((n%:R * w - Q * (1 + d) - (n%:R - 1 - 2%:R * d) * b) + (2%:R * d + 1 - n%:R) * (w - b))
          + (n%:R - 1 - d) * w.
  ring.
apply: addr_ge0; last first.
  by rewrite mulr_ge0 ?(ltW w0) // nS addrK subr_ge0.
rewrite mulr_ge0 ?ler0n // addr_ge0 // mulr_ge0 ?subr_ge0 //.
by move: many; rewrite subr_lt0 ltr_subl_addr => /ltW.
Qed.

(** No user has more than 2 - 1/n times as much. *)
Theorem equal_incomes_two_types_each : n%:R * utility m y i <= (2%:R * n%:R - 1) * utility m x i.
Proof.
have w0 : 0 < w by rewrite -(same i) weight_gt0.
rewrite -(ler_pmul2l w0) mulrCA; apply: (@le_trans _ _ (n%:R * (utility m x i * Q))).
  rewrite ler_wpmul2l ?ler0n // -{1}(same i).
  by apply: (worth_its_cost eq) => j; apply: fy.1.
rewrite mulrCA [leRHS]mulrA [leRHS]mulrC; apply: ler_wpmul2l; first by rewrite ltW.
by rewrite [leRHS]mulrC cost_le_two_types.
Qed.

End User.

(** So the equilibrium has at least n/(2n - 1) of the total: never less than half. *)
Theorem equal_incomes_two_types_total : n%:R * total m y <= (2%:R * n%:R - 1) * total m x.
Proof. by rewrite /total !mulr_sumr; apply: ler_sum => i _; apply: equal_incomes_two_types_each. Qed.

(** More than that, where there is more than one user. *)
Theorem equal_incomes_two_types_total_more : (1 < n)%N -> n%:R * total m y < (2%:R * n%:R - 1) * total m x.
Proof.
move=> n1; have n0 : (0 < n)%N by apply: ltn_trans n1.
apply: (total_less eq useful fy) => [|||i]; rewrite ?ltr0n //; last exact: equal_incomes_two_types_each.
by rewrite mulr_natl mulr2n -addrA ltr_addl subr_gt0 ltr1n.
Qed.

End TwoTypes.

(** ** No smaller factor

    User 0 runs alike on both types, its GPU the only one of type 0; the n others run on type 1
    only, which has a GPU for each.  In equilibrium each has one GPU; without envy user 0 can have an equal part of type 1, too. *)
Section Tight.
Variables (R : realFieldType) (n : nat) (unit : R).
Hypothesis unit0 : 0 < unit.
Local Notation "'N'" := (n.+1%:R : R).

Definition lone_speedup (i : 'I_n.+1) (j : 'I_2) : R := if i == ord0 then unit else (j != ord0)%:R.
Definition lone_capacity (j : 'I_2) : R := if j == ord0 then 1 else n%:R.

Lemma lone_speedup_ge0 i j : 0 <= lone_speedup i j.
Proof. by rewrite /lone_speedup; case: ifP => _; rewrite ?ler0n // ltW. Qed.
Lemma lone_capacity_ge0 j : 0 <= lone_capacity j.
Proof. by rewrite /lone_capacity; case: ifP => _; rewrite ?ler01 ?ler0n. Qed.

Definition lone : market R n.+1 2 := Market lone_speedup_ge0 (fun=> ltr01) lone_capacity_ge0.

(** One GPU each; and type 1 in equal parts. *)
Definition one_each : allocation R n.+1 2 := fun i j => ((i == ord0) == (j == ord0))%:R.
Definition type_1_shared : allocation R n.+1 2 := fun i j => if j == ord0 then (i == ord0)%:R else n%:R / N.

Let two (f : 'I_2 -> R) : \sum_j f j = f ord0 + f (lift ord0 ord0).
Proof. by rewrite big_ord_recl big_ord1. Qed.

Let others (f : 'I_n.+1 -> R) a : (forall i, f (lift ord0 i) = a) -> \sum_i f i = f ord0 + n%:R * a.
Proof. by move=> e; rewrite big_ord_recl (eq_bigr _ (fun i _ => e i)) sumr_const card_ord mulr_natl. Qed.

Let each_type (P : 'I_2 -> Prop) : P ord0 -> P (lift ord0 ord0) -> forall j, P j.
Proof. by move=> p0 p1 j; case: (unliftP ord0 j) => [k ->|->] //; rewrite (ord1 k). Qed.

Let Nn0 : N != 0. Proof. by rewrite pnatr_eq0. Qed.

Lemma one_each_equilibrium : equilibrium lone (fun=> 1) one_each.
Proof.
have all j : given one_each j = capacity lone j.
  rewrite /given /=; move: j; apply: each_type; rewrite /one_each /lone_capacity /=.
    by rewrite (@others _ 0) // mulr0 addr0.
  by rewrite (@others _ 1) // mulr1 add0r.
split=> [|j|i|i j j'|j _]; first by split=> [i j|j]; rewrite ?ler0n ?all.
- exact: ler01.
- by rewrite /cost two !mul1r /one_each /=; case: (i == ord0); rewrite ?addr0 ?add0r.
- rewrite /one_each /= /lone_speedup !mulr1; case: (i == ord0) => //=.
  by case: (j == ord0); rewrite /= ?ltxx //; case: (j' == ord0); rewrite /= ?ler01.
exact: all.
Qed.

Lemma type_1_shared_feasible : feasible lone type_1_shared.
Proof.
split=> [i j|]; first by rewrite /type_1_shared; case: ifP => _; rewrite ?ler0n // divr_ge0 ?ler0n.
apply: each_type; rewrite /given /type_1_shared /= /lone_capacity /=; first by rewrite (@others _ 0) // mulr0 addr0.
by rewrite sumr_const card_ord -[leLHS]mulr_natr divfK.
Qed.

Lemma type_1_shared_utility i :
  utility lone type_1_shared i = if i == ord0 then unit * (1 + n%:R / N) else n%:R / N.
Proof.
rewrite /utility /value two /= /type_1_shared /lone_speedup /=; case: (i == ord0) => /=; first by rewrite mulrDr.
by rewrite mul0r add0r mul1r.
Qed.

Lemma one_each_utility i : utility lone one_each i = if i == ord0 then unit else 1.
Proof.
rewrite /utility /value two /= /one_each /lone_speedup /=; case: (i == ord0) => /=; first by rewrite mulr1 mulr0 addr0.
by rewrite mulr0 add0r mulr1.
Qed.

Lemma type_1_shared_envy_free : envy_free lone type_1_shared.
Proof.
move=> i l; rewrite /= divr1 mul1r type_1_shared_utility /value two /= /type_1_shared /lone_speedup /=.
case: (i == ord0) => /=; last by rewrite mul0r add0r mul1r.
by rewrite -mulrDr ler_pmul2l // ler_add2r lern1 leq_b1.
Qed.

(** So user 0 has 2 - 1/N times as much, N users in all. *)
Theorem equal_incomes_two_types_tight :
  [/\ equilibrium lone (fun=> 1) one_each, feasible lone type_1_shared, envy_free lone type_1_shared
    & N * utility lone type_1_shared ord0 = (2%:R * N - 1) * utility lone one_each ord0].
Proof.
split; [exact: one_each_equilibrium | exact: type_1_shared_feasible | exact: type_1_shared_envy_free |].
rewrite type_1_shared_utility one_each_utility eqxx mulrCA mulrDr mulr1 [N * _]mulrCA divff // mulr1 mulrC.
by rewrite -[n%:R]addr0 -(subrr 1) addrA -mulrSr; congr (_ * _); ring.
Qed.

End Tight.

(** In units of user 0 that are large enough the total of the equilibrium comes as near to n/(2n - 1) as one likes. *)
Theorem equal_incomes_two_types_total_tight (R : realFieldType) (n : nat) (e : R) : (0 < n)%N -> 0 < e ->
  exists (m : market R n.+1 2) (price : 'I_2 -> R) (x y : allocation R n.+1 2),
    [/\ forall l, weight m l = 1, equilibrium m price x, feasible m y /\ envy_free m y
      & (2%:R * n.+1%:R - 1) * total m x < (n.+1%:R + e) * total m y].
Proof.
move=> n0 e0; pose unit := n.+1%:R * n%:R / e.
have unit0 : 0 < unit by rewrite divr_gt0 // mulr_gt0 ?ltr0n.
exists (@lone R n _ unit0), (fun=> 1), (@one_each R n), (@type_1_shared R n).
have [eq fy ef _] := @equal_incomes_two_types_tight R n _ unit0; split=> //.
have utilities (f : 'I_n.+1 -> R) a b : (forall i, f i = if i == ord0 then a else b) -> \sum_i f i = a + n%:R * b.
  by move=> h; rewrite (eq_bigr _ (fun i _ => h i)) big_ord_recl /= sumr_const card_ord mulr_natl.
rewrite /total (utilities _ _ _ (one_each_utility unit0)) (utilities _ _ _ (type_1_shared_utility unit0)).
set N := n.+1%:R; have Nn0 : N != 0 by rewrite pnatr_eq0.
have nN : n%:R = N - 1 :> R by rewrite /N mulrSr addrK.
rewrite -subr_gt0 mulr1.
have -> : (N + e) * (unit * (1 + n%:R / N) + n%:R * (n%:R / N)) - (2%:R * N - 1) * (unit + n%:R)
        = (N + e) * (n%:R * (n%:R / N)).
  rewrite /unit -/N nN; field; rewrite Nn0 (gt_eqF e0) //.
by rewrite !(mulr_gt0, addr_gt0, invr_gt0, divr_gt0) ?ltr0n.
Qed.
