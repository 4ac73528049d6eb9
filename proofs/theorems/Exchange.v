(** * What Pareto-efficiency says about who gets which types: OEF Lemma 3.1 and Theorem 5.2

    Both are about allocations in which no two users can gain by exchanging GPUs of two types.  The papers take users
    to be ordered by their speedups, entry by entry.  That is too little; what decides is the ratio between types.  (As
    printed, Theorem 5.2 is false in both modes: the certificates oef-thm5.2-* in [proofs/counterexamples].)  With users
    ordered by their ratios, both hold for every Pareto-efficient allocation: so for non-cooperative OEF where all run on
    all types, for competitive equilibria, and for what maximises the total. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive Trading EqualEfficiency.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Exchange.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (i l : 'I_n) (p q r : 'I_k).

(** What maximises the total is Pareto-efficient: among all (Eq. (4)), and where everybody is guaranteed so much, such as
    its fair share (what Theorem 3.3 speaks of). *)
Lemma max_total_above_floors_pareto_efficient (floor : 'I_n -> R) x :
  maximises (fun y => feasible m y /\ forall i, floor i <= utility m y i) (total m) x -> pareto_efficient m x.
Proof.
move=> [[fx above] best]; split=> // y fy dom i; rewrite leNgt; apply/negP => more.
have above_y l : floor l <= utility m y l := le_trans (above l) (dom l).
have := best y (conj fy above_y); rewrite leNgt => /negP[].
rewrite /total (bigD1 i) //= [ltRHS](bigD1 i) //=; apply: ltr_le_add more _.
exact: ler_sum.
Qed.

Theorem max_total_pareto_efficient x : maximises (feasible m) (total m) x -> pareto_efficient m x.
Proof.
move=> [fx best]; apply: (@max_total_above_floors_pareto_efficient (fun=> 0)); split=> [|y [fy _]]; last exact: best.
by split=> // i; apply: utility_ge0; apply: fx.1.
Qed.

Theorem max_total_sharing_incentive_pareto_efficient x :
  maximises (fun y => feasible m y /\ sharing_incentive m y) (total m) x -> pareto_efficient m x.
Proof. exact: (@max_total_above_floors_pareto_efficient (fair_share m)). Qed.

(** At the largest total each type is held by those that are fastest on it.  So Lemma 3.1 holds at the maximum of Eq. (4)
    for a user that is strictly slower than somebody on all types but the first: it holds nothing but the first type. *)
Theorem max_total_held_by_fastest x i l j :
  maximises (feasible m) (total m) x -> 0 < x i j -> speedup m l j <= speedup m i j.
Proof.
move=> [fx best] held; rewrite leNgt; apply/negP => faster.
have li : l != i by apply/eqP => e; move: faster; rewrite e ltxx.
have [x0 xc] := fx.
pose sign u : R := (if u == l then 1 else 0) - (if u == i then 1 else 0).
pose y : allocation R n k := fun u j' => x u j' + sign u * only j (x i j) j'.
have sum_sign0 : \sum_u sign u = 0 by rewrite /sign sumrB -!big_mkcond !big_pred1_eq subrr.
have fy : feasible m y.
  split=> [u j'|j']; last by rewrite /given big_split /= -mulr_suml sum_sign0 mul0r addr0; apply: xc.
  rewrite /y /sign /only; case: (eqVneq j' j) => [->|_]; last by rewrite mulr0 addr0.
  case: (eqVneq u l) => [->|_]; first by rewrite (negbTE li) subr0 mul1r addr_ge0.
  by case: eqP => [->|_]; rewrite sub0r ?mulN1r ?subrr // oppr0 mul0r addr0.
have := best y fy; rewrite leNgt => /negP[].
have -> : total m y = total m x + (speedup m l j - speedup m i j) * x i j.
  have uy u : utility m y u = utility m x u + sign u * (speedup m u j * x i j).
    by rewrite /utility valueD valueZ value_only.
  rewrite /total (eq_bigr _ (fun u _ => uy u)) big_split /=; congr (_ + _).
  under eq_bigr do rewrite mulrBl !(fun_if (fun c => c * _)) !mul1r !mul0r.
  by rewrite sumrB -!big_mkcond !big_pred1_eq mulrBl.
by rewrite ltr_addl mulr_gt0 // subr_gt0.
Qed.

(** User [l] is sped up by [q] over [p] more than user [i] is: s_iq/s_ip < s_lq/s_lp. *)
Definition larger_ratio i l p q : Prop :=
  speedup m i q * speedup m l p < speedup m l q * speedup m i p.

(** Then [i] does not hold the one and [l] the other: both would gain by a trade at a price between their ratios. *)
Theorem pareto_efficient_no_exchange x i l p q :
  pareto_efficient m x -> p != q -> larger_ratio i l p q -> 0 < speedup m l p ->
  ~ (0 < x i q /\ 0 < x l p).
Proof.
move=> [fx pe] pq ratio slp [xiq xlp]; have [x0 xc] := fx.
have sip : 0 < speedup m i p.
  rewrite lt_neqAle speedup_ge0 andbT; apply/eqP => zero.
  by move: ratio; rewrite /larger_ratio -zero mulr0 ltNge mulr_ge0 ?speedup_ge0.
have il : l != i.
  by apply/eqP => e; move: ratio; rewrite /larger_ratio e ltxx.
(* the price: the buyer's ratio, so that the seller gains and the buyer does not lose *)
pose r := speedup m l q / speedup m l p.
have r0 : 0 <= r by rewrite divr_ge0 ?speedup_ge0.
have sells : speedup m i q < r * speedup m i p.
  by rewrite /r mulrAC ltr_pdivl_mulr.
have rpos : 0 < r.
  by rewrite -(pmulr_lgt0 _ sip); apply: le_lt_trans sells; apply: speedup_ge0.
pose a := Num.min (x i q) (x l p / r).
have a0 : 0 < a by rewrite lt_minr xiq divr_gt0.
pose t := Trade l i q p r a.
have buys : r * speedup m l p = speedup m l q by rewrite /r divfK // gt_eqF.
have ok : acceptable m t by split=> //=; [exact: ltW | exact: ltW | rewrite buys].
have can : affordable t x.
  split=> //=; [by rewrite eq_sym | exact: ltW | split].
    by rewrite /a le_minl lexx.
  by rewrite -ler_pdivl_mulr // /a le_minl lexx orbT.
have := pe _ (trade_keeps_feasible can fx) (fun u => trade_hurts_nobody x u ok) i.
rewrite leNgt => /negP[]; rewrite -subr_gt0 (seller_gain m x (t := t)) //=.
by rewrite mulr_gt0 // subr_gt0.
Qed.

(** ** Lemma 3.1, corrected

    If user [i] has the strictly least ratio between any two types, and holds some of type [q], then it holds all GPUs of
    each slower type that is given out.  "Slower" is the order of the numbers of the types; it need not be that of the
    speedups. *)
Definition least_ratios i : Prop :=
  forall l p q, l != i -> (p < q)%N -> larger_ratio i l p q.

Theorem least_ratios_from_left x i :
  pareto_efficient m x -> (forall l p, 0 < speedup m l p) -> least_ratios i ->
  forall p q, (p < q)%N -> 0 < x i q -> x i p = given x p.
Proof.
move=> pe pos least p q pq xiq; have [[x0 xc] _] := pe.
rewrite /given (bigD1 i) //= big1 ?addr0 // => l li.
apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => xlp.
apply: (pareto_efficient_no_exchange pe _ (least _ _ _ li pq) (pos l p)) => //.
by apply/eqP => e; move: pq; rewrite e ltnn.
Qed.

(** Where nothing is left over it is all that there is: x_1^p = m_p, as printed. *)
Theorem least_ratios_fill_from_left x i :
  pareto_efficient m x -> (forall l p, 0 < speedup m l p) -> least_ratios i ->
  forall p q, (p < q)%N -> 0 < x i q -> x i p = capacity m p.
Proof.
move=> pe pos least p q pq xiq; rewrite (least_ratios_from_left pe pos least pq xiq).
exact: (pareto_efficient_all_given pe (pos i p)).
Qed.

(** ** Theorem 5.2, corrected

    Users in strict order of their ratios: of two users, the later one has the larger ratio between any two types. *)
Definition ordered_by_ratios : Prop :=
  forall i l p q, (i < l)%N -> (p < q)%N -> larger_ratio i l p q.

(** No non-zero "to the lower left" of another (the printed proof). *)
Theorem no_lower_left x :
  pareto_efficient m x -> (forall l p, 0 < speedup m l p) -> ordered_by_ratios ->
  forall i l p q, (i < l)%N -> (p < q)%N -> ~ (0 < x i q /\ 0 < x l p).
Proof.
move=> pe pos ord i l p q il pq; apply: (pareto_efficient_no_exchange pe) => //; last exact: ord.
by apply/eqP => e; move: pq; rewrite e ltnn.
Qed.

(** A user that holds types [p] and [r] is the only one to hold a type between them. *)
Theorem adjacent_types x :
  pareto_efficient m x -> (forall l p, 0 < speedup m l p) -> ordered_by_ratios ->
  forall i p q r, (p < q)%N -> (q < r)%N -> 0 < x i p -> 0 < x i r -> x i q = given x q.
Proof.
move=> pe pos ord i p q r pq qr xip xir; have [[x0 xc] _] := pe.
rewrite /given (bigD1 i) //= big1 ?addr0 // => l li.
apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => xlq.
have := li; rewrite neq_ltn => /orP[le|le].
  exact: (no_lower_left pe pos ord le pq (conj xlq xip)).
exact: (no_lower_left pe pos ord le qr (conj xir xlq)).
Qed.

(** It holds all that there is of that type: a type that it skips is one of which there are no GPUs. *)
Theorem adjacent_types_hold_all x :
  pareto_efficient m x -> (forall l p, 0 < speedup m l p) -> ordered_by_ratios ->
  forall i p q r, (p < q)%N -> (q < r)%N -> 0 < x i p -> 0 < x i r -> x i q = capacity m q.
Proof.
move=> pe pos ord i p q r pq qr xip xir; rewrite (adjacent_types pe pos ord pq qr xip xir).
exact: (pareto_efficient_all_given pe (pos i q)).
Qed.

(** OEF Theorem 5.2 for non-cooperative OEF. *)
Theorem noncooperative_oef_adjacent_types x :
  noncooperative_oef m x -> (forall l p, 0 < speedup m l p) -> ordered_by_ratios ->
  forall i p q r, (p < q)%N -> (q < r)%N -> 0 < x i p -> 0 < x i r -> x i q = capacity m q.
Proof.
move=> opt pos; apply: adjacent_types_hold_all => //.
by apply: noncooperative_oef_pareto_efficient opt; apply: all_positive_same_types.
Qed.

End Exchange.

(** ** Two users

    Cooperative OEF is then Pareto-efficient, so that both hold for it too, with any number of types and in any units.
    With three users and three types both are false: the certificates oef-thm5.2-cooperative-ordered-* and
    oef-lemma3.1-cooperative-ratios-*. *)
Section TwoUsers.
Variables (R : realFieldType) (k : nat) (m : market R 2 k).
Hypothesis positive : forall l p, 0 < speedup m l p.
Implicit Types (x : allocation R 2 k) (i : 'I_2) (p q r : 'I_k).

Theorem two_users_adjacent_types x :
  cooperative_oef m x -> ordered_by_ratios m ->
  forall i p q r, (p < q)%N -> (q < r)%N -> 0 < x i p -> 0 < x i r -> x i q = capacity m q.
Proof. by move=> /two_users_pareto_efficient pe ord; apply: adjacent_types_hold_all. Qed.

Theorem two_users_fill_from_left x i :
  cooperative_oef m x -> least_ratios m i ->
  forall p q, (p < q)%N -> 0 < x i q -> x i p = capacity m p.
Proof. by move=> /two_users_pareto_efficient pe least; apply: least_ratios_fill_from_left. Qed.

End TwoUsers.
