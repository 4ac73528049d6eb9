(** * Equal efficiency: non-cooperative OEF and max-min

    OEF Eq. (9), Theorem 5.4 (strategy-proofness) and Theorem 5.3 (Pareto-efficiency). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Level.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y z : allocation R n k) (t : R) (i l : 'I_n) (j : 'I_k).

(** ** Maximising the total is maximising the level *)

Lemma at_level_reaches t x : at_level m t x -> reaches m t x.
Proof. by move=> lev i; rewrite lev. Qed.

Lemma equal_efficiency_level x (i : 'I_n) :
  equal_efficiency m x -> at_level m (utility m x i / weight m i) x.
Proof. by move=> eq l; rewrite (eq i l) mulrC divfK ?weight_neq0. Qed.

Lemma level_equal_efficiency t x : at_level m t x -> equal_efficiency m x.
Proof. by move=> lev i l; rewrite !lev ![_ * t]mulrC !mulfK ?weight_neq0. Qed.

Lemma total_at_level t x : at_level m t x -> total m x = total_weight m * t.
Proof. by move=> lev; rewrite /total_weight mulr_suml; apply: eq_bigr => i _; apply: lev. Qed.

Lemma level_ge0 t x (i : 'I_n) : feasible m x -> at_level m t x -> 0 <= t.
Proof.
case=> x0 _ /(_ i) lev; rewrite -(pmulr_rge0 _ (weight_gt0 m i)) -lev.
exact: utility_ge0.
Qed.

(** Eq. (9) as printed, and with the level as a variable, have the same optima.  (There must be a user: without one
    every number is a level.) *)
Theorem noncooperative_oef_largest_level x :
  (0 < n)%N -> noncooperative_oef m x <-> exists t, largest_level m t x.
Proof.
move=> npos; pose i0 := Ordinal npos; have W := total_weight_gt0 m i0.
split=> [[[fx eq] best]|[t [fx [lev best]]]].
  have lev := equal_efficiency_level i0 eq; exists (utility m x i0 / weight m i0); split=> //; split=> // y t' fy lev'.
  have := best _ (conj fy (level_equal_efficiency lev')).
  by rewrite (total_at_level lev) (total_at_level lev') ler_pmul2l.
split=> [|y [fy eqy]]; first by split=> //; apply: level_equal_efficiency lev.
have levy := equal_efficiency_level i0 eqy.
by rewrite (total_at_level lev) (total_at_level levy) ler_pmul2l //; apply: best levy.
Qed.

(** ** From "at least" to "equal" *)

(** Where all reach the level [t], all can be held at [t]: who has more keeps the part w_i t / u_i of its bundle. *)
Lemma hold_down t y :
  feasible m y -> reaches m t y -> 0 <= t -> exists2 z, feasible m z & at_level m t z.
Proof.
move=> [y0 yc] reach t0; pose keep i := weight m i * t / utility m y i.
have u0 i : 0 <= utility m y i by apply: utility_ge0.
have keep0 i : 0 <= keep i by rewrite divr_ge0 // mulr_ge0 ?weight_ge0.
have keep1 i : keep i <= 1.
  have := u0 i; rewrite le_eqVlt => /predU1P[e|pos]; first by rewrite /keep -e invr0 mulr0 ler01.
  by rewrite ler_pdivr_mulr // mul1r.
exists (fun i j => keep i * y i j).
  split=> [i j|j]; first by rewrite mulr_ge0.
  by apply: le_trans (yc j); apply: ler_sum => i _; rewrite ler_pimull.
move=> i; rewrite /utility valueZ -/(utility m y i) /keep.
case: (eqVneq (utility m y i) 0) => [e|ne]; last by rewrite divfK.
rewrite e mulr0; apply/eqP; rewrite eq_le {1}mulr_ge0 ?weight_ge0 //=.
by rewrite -e; apply: reach.
Qed.

(** Where all exceed [t], all reach a larger level. *)
Lemma all_above t y (i : 'I_n) :
  (forall l, weight m l * t < utility m y l) -> exists2 t', t < t' & reaches m t' y.
Proof.
move=> above; pose level l := utility m y l / weight m l.
case: (@arg_minP _ _ _ i predT level isT) => l _ least; exists (level l).
  by rewrite ltr_pdivl_mulr ?weight_gt0 // mulrC.
by move=> l'; have := least l' isT; rewrite {2}/level ler_pdivl_mulr ?weight_gt0 // mulrC.
Qed.

(** So no allocation lifts all above the largest level. *)
Lemma largest_level_not_exceeded t x y (i : 'I_n) :
  largest_level m t x -> feasible m y -> ~ (forall l, weight m l * t < utility m y l).
Proof.
case=> fx [lev best] fy /(all_above i)[t' tt' reach].
have [|z fz levz] := hold_down fy reach; first by apply: ltW; apply: le_lt_trans tt'; apply: level_ge0 lev.
by have := best _ _ fz levz; rewrite leNgt tt'.
Qed.

Lemma max_min_not_exceeded t x y (i : 'I_n) :
  max_min m t x -> feasible m y -> ~ (forall l, weight m l * t < utility m y l).
Proof.
case=> fx [lev best] fy /(all_above i)[t' tt' reach].
by have := best _ _ fy reach; rewrite leNgt tt'.
Qed.

Lemma max_min_ge0 t x : (0 < n)%N -> max_min m t x -> 0 <= t.
Proof.
move=> npos [[x0 xc] [_ best]]; apply: (best x 0) => // l.
by rewrite mulr0 utility_ge0.
Qed.

(** Equal efficiency at the largest level is max-min without the excess. *)
Theorem largest_level_max_min t x :
  (0 < n)%N -> largest_level m t x <-> max_min m t x /\ at_level m t x.
Proof.
move=> npos; pose i0 := Ordinal npos; split=> [opt|[[fx [_ best]] lev]]; last first.
  by split=> //; split=> // y t' fy levy; apply: best fy (at_level_reaches levy).
have [fx [lev best]] := opt; split=> //; split=> //; split=> [|y t' fy reach]; first exact: at_level_reaches.
rewrite leNgt; apply/negP => tt'; apply: (largest_level_not_exceeded i0 opt fy) => l.
by apply: lt_le_trans (reach l); rewrite ltr_pmul2l ?weight_gt0.
Qed.

(** ** Where whoever can run on a type, all can: an excess can be shared by all *)

(** If all reach [t] and user [i] exceeds it, then [i] gives a little of some type to all, and all exceed it. *)
Lemma share_excess t y i :
  same_types m -> 0 <= t -> feasible m y -> reaches m t y -> weight m i * t < utility m y i ->
  exists2 z, feasible m z & forall l, weight m l * t < utility m z l.
Proof.
move=> same t0 [y0 yc] reach excess.
have [|j sij yij] := value_gt0 (y0 i) (_ : 0 < value m i (y i)).
  by apply: le_lt_trans excess; rewrite mulr_ge0 ?weight_ge0.
pose gap := utility m y i - weight m i * t; have gap0 : 0 < gap by rewrite subr_gt0.
pose e := Num.min (y i j) (gap / speedup m i j).
have e0 : 0 < e by rewrite lt_minr yij divr_gt0.
have ey : e <= y i j by rewrite le_minl lexx.
have eg : speedup m i j * e <= gap by rewrite mulrC -ler_pdivl_mulr // le_minl lexx orbT.
have npos : 0 < n%:R :> R by rewrite ltr0n; apply: leq_ltn_trans (leq0n i) (ltn_ord i).
pose d := e / n%:R; have d0 : 0 < d by rewrite divr_gt0.
pose z l j' := y l j' + only j (d - if l == i then e else 0) j'.
have uz l : utility m z l = utility m y l + speedup m l j * (d - if l == i then e else 0).
  by rewrite /utility /z valueD value_only.
exists z; first split.
- move=> l j'; rewrite /z /only; case: eqP => [->|_]; last by rewrite addr0.
  case: eqP => [->|_]; last by rewrite subr0 addr_ge0 // ltW.
  by rewrite addrCA addr_ge0 ?subr_ge0 // ltW.
- move=> j'; apply: le_trans (yc j'); rewrite /given /z big_split /= ger_addl /only.
  case: eqP => _; last by rewrite big1.
  rewrite sumrB -big_mkcond big_pred1_eq sumr_const card_ord /d -[_ *+ n]mulr_natr.
  by rewrite divfK ?subrr // gt_eqF.
- move=> l; rewrite uz; case: eqP => [->|_].
    apply: (@lt_le_trans _ _ (weight m i * t + speedup m i j * d)); first by rewrite ltr_addl mulr_gt0.
    rewrite -subr_ge0; move: eg; rewrite -subr_ge0 => eg; apply: le_trans eg _; apply: le_of_eq.
    by rewrite /gap; ring.
  apply: le_lt_trans (reach l) _.
  by rewrite subr0 ltr_addl mulr_gt0 // (same i).
Qed.

(** Max-min then gives everybody the same: it is equal efficiency at the largest level. *)
Theorem max_min_at_level t x : same_types m -> max_min m t x -> at_level m t x.
Proof.
move=> same opt i; have [fx [reach best]] := opt.
have npos : (0 < n)%N by apply: leq_ltn_trans (leq0n i) (ltn_ord i).
apply/eqP; rewrite eq_le reach andbT leNgt; apply/negP => excess.
have [z fz above] := share_excess same (max_min_ge0 npos opt) fx reach excess.
exact: (max_min_not_exceeded i opt fz above).
Qed.

(** OEF Theorem 5.3 for non-cooperative OEF: Pareto-efficient among all feasible allocations, where every user runs on
    every type (that anybody runs on).  Without this it is false: [models/oef/noncooperative.py], ONE_CANNOT_RUN. *)
Theorem largest_level_pareto_efficient t x :
  same_types m -> largest_level m t x -> pareto_efficient m x.
Proof.
move=> same opt; have [fx [lev _]] := opt; split=> // y fy dom i.
rewrite leNgt; apply/negP => more.
have reach : reaches m t y by move=> l; rewrite -lev.
have [|z fz above] := share_excess same (level_ge0 i fx lev) fy reach (_ : weight m i * t < utility m y i).
  by rewrite -lev.
exact: (largest_level_not_exceeded i opt fz above).
Qed.

Theorem noncooperative_oef_pareto_efficient x :
  same_types m -> noncooperative_oef m x -> pareto_efficient m x.
Proof.
move=> same opt; case: (posnP n) => [n0|npos]; last first.
  by have /(noncooperative_oef_largest_level _ npos)[t] := opt; apply: largest_level_pareto_efficient.
by split=> [|y _ _ i]; [case: opt => -[] | have := ltn_ord i; rewrite {2}n0].
Qed.

Theorem max_min_pareto_efficient t x : same_types m -> max_min m t x -> pareto_efficient m x.
Proof.
move=> same opt; case: (posnP n) => [n0|npos].
  by split=> [|y _ _ i]; [case: opt | have := ltn_ord i; rewrite {2}n0].
apply: (@largest_level_pareto_efficient t) => //; apply/largest_level_max_min => //; split=> //.
exact: max_min_at_level.
Qed.

End Level.

(** ** Gavel's max-min

    Gavel maximises the least ratio of efficiency to fair share ([least_ratio]).  In units in which the fair share of each
    user is its weight, that is max-min. *)
Section Gavel.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (t : R) (i l : 'I_n) (j : 'I_k).

Definition gavel t x : Prop :=
  feasible m x /\ least_ratio m t x /\ forall y t', feasible m y -> least_ratio m t' y -> t' <= t.

Lemma fair_share_ge0 i : 0 <= fair_share m i.
Proof. by apply: value_ge0 => j; apply: (equal_split_feasible m).1. Qed.

(** A largest least ratio exists only if somebody's fair share is worth something; and then everybody's is. *)
Lemma gavel_fair_share_gt0 t x : same_types m -> gavel t x -> forall i, 0 < fair_share m i.
Proof.
move=> same [fx [_ best]]; case: (boolP [forall i, fair_share m i == 0]) => [/forallP zero|].
  have := best x (t + 1) fx; rewrite leNgt ltr_addl ltr01 => /(_ _)/negP[] // i.
  by rewrite (eqP (zero i)) mulr0; apply: utility_ge0; apply: fx.1.
rewrite negb_forall => /existsP[i ne] l.
have [|j sij cj] := value_gt0 ((equal_split_feasible m).1 i) (_ : 0 < value m i (equal_split m i)).
  by rewrite -/(fair_share m i) lt_neqAle eq_sym ne fair_share_ge0.
have cap : 0 < capacity m j by move: cj; rewrite /equal_split pmulr_rgt0 // (part_gt0 m i).
rewrite /fair_share /value (bigD1 j) //= ltr_paddr ?sumr_ge0 // => [j' _|].
  by rewrite mulr_ge0 ?speedup_ge0 //; apply: (equal_split_feasible m).1.
apply: mulr_gt0; first exact: same sij.
exact: (mulr_gt0 (part_gt0 m l) cap).
Qed.

Section Rescaled.
Hypothesis share_gt0 : forall i, 0 < fair_share m i.

Definition unit_of i : R := weight m i / fair_share m i.

Lemma unit_of_gt0 i : 0 < unit_of i.
Proof. by rewrite divr_gt0 ?weight_gt0. Qed.

Definition rescaled : market R n k.
Proof.
apply: (@Market R n k (fun i j => unit_of i * speedup m i j) (weight m) (capacity m)) => [i j|i|j].
- by rewrite mulr_ge0 ?speedup_ge0 ?ltW ?unit_of_gt0.
- exact: weight_gt0.
- exact: capacity_ge0.
Defined.

Lemma rescaled_utility x i : utility rescaled x i = unit_of i * utility m x i.
Proof. by rewrite /utility /value mulr_sumr; apply: eq_bigr => j _; rewrite mulrA. Qed.

Lemma rescaled_reaches t x : reaches rescaled t x <-> least_ratio m t x.
Proof.
suff e i : (weight rescaled i * t <= utility rescaled x i) = (t * fair_share m i <= utility m x i).
  by split=> le i; [rewrite -e | rewrite e].
rewrite rescaled_utility /= /unit_of -mulrA ler_pmul2l ?weight_gt0 //.
by rewrite mulrC ler_pdivl_mulr.
Qed.

Lemma rescaled_max_min t x : gavel t x -> max_min rescaled t x.
Proof.
move=> [fx [ratio best]]; split=> //; split=> [|y t' fy]; first exact/rescaled_reaches.
by move/rescaled_reaches; apply: best.
Qed.

Lemma rescaled_same_types : same_types m -> same_types rescaled.
Proof.
move=> same i l j /=; rewrite (pmulr_rgt0 _ (unit_of_gt0 i)) (pmulr_rgt0 _ (unit_of_gt0 l)).
exact: same.
Qed.

Lemma rescaled_pareto_efficient x : pareto_efficient rescaled x -> pareto_efficient m x.
Proof.
move=> [fx best]; split=> // y fy dom i.
rewrite -(ler_pmul2l (unit_of_gt0 i)) -!rescaled_utility; apply: best => // l.
by rewrite !rescaled_utility ler_pmul2l ?unit_of_gt0.
Qed.

End Rescaled.

(** All get the same multiple of their fair share, *)
Theorem gavel_equal_ratios t x i : same_types m -> gavel t x -> utility m x i = t * fair_share m i.
Proof.
move=> same opt; have pos := gavel_fair_share_gt0 same opt.
have := max_min_at_level (rescaled_same_types (share_gt0 := pos) same) (rescaled_max_min pos opt) i.
rewrite rescaled_utility /= /unit_of -mulrA => /(mulfI (weight_neq0 m i)) <-.
by rewrite mulrC mulVKf // gt_eqF.
Qed.

(** and nobody could get more without somebody getting less. *)
Theorem gavel_pareto_efficient t x : same_types m -> gavel t x -> pareto_efficient m x.
Proof.
move=> same opt; have pos := gavel_fair_share_gt0 same opt.
apply: (rescaled_pareto_efficient (share_gt0 := pos)); apply: (@max_min_pareto_efficient _ _ _ _ t).
  exact: rescaled_same_types.
exact: rescaled_max_min.
Qed.

End Gavel.

(** Two users then do not envy each other, on any number of types; of three one may: oef-table1-max-min-envy. *)
Theorem gavel_two_users_envy_free (R : realFieldType) (k : nat) (m : market R 2 k) t x :
  (forall i j, 0 < speedup m i j) -> gavel m t x -> envy_free m x.
Proof.
move=> pos opt; apply: two_envy_free => [j|].
  apply: (pareto_efficient_all_given _ (pos ord0 j)).
  exact: gavel_pareto_efficient (all_positive_same_types pos) opt.
by case: opt => _ [ratio best]; apply: gavel_sharing_incentive ratio best.
Qed.

(** ** Who claims too much gains nothing: OEF Theorem 5.4

    Strategy-proofness as OEF Sec. 2.3.1 (1) defines it: a lie is a vector no smaller than the truth in any entry.  The
    proof is not OEF's (which argues from Theorem 5.2): if the liar truly gained, then its reported efficiency, and with
    it the common level, would have risen too, so all would be above the old level at the true speedups; and then the
    old level was not the largest.  No speedup need be positive.

    The market [m] is the truth and [m'] what is reported; those in [liars] claim too much, the others tell the truth. *)
Section OverReporting.
Variables (R : realFieldType) (n k : nat).
Implicit Types (m : market R n k) (x : allocation R n k) (liars : pred 'I_n).

Definition over_reports liars m m' : Prop :=
  [/\ forall i, weight m' i = weight m i,
      forall j, capacity m' j = capacity m j,
      forall i j, liars i -> speedup m i j <= speedup m' i j
    & forall i j, ~~ liars i -> speedup m' i j = speedup m i j].

Section Lie.
Variables (liars : pred 'I_n) (m m' : market R n k).
Hypothesis lie : over_reports liars m m'.

Lemma reported_value i b : (forall j, 0 <= b j) -> value m i b <= value m' i b.
Proof.
case: lie => _ _ up same b0; apply: ler_sum => j _.
by case: (boolP (liars i)) => [/up|/same] le; rewrite ?le // ler_wpmul2r.
Qed.

Lemma honest_value i b : ~~ liars i -> value m' i b = value m i b.
Proof. by case: lie => _ _ _ same hi; apply: eq_bigr => j _; rewrite same. Qed.

Lemma reported_feasible x : feasible m' x -> feasible m x.
Proof. by case: lie => _ cap _ _ [x0 xc]; split=> // j; rewrite -cap. Qed.

(** Even together, liars cannot all gain. *)
Theorem largest_level_over_reporting t t' x x' (i0 : 'I_n) :
  largest_level m t x -> largest_level m' t' x' -> liars i0 ->
  exists2 i, liars i & value m i (x' i) <= utility m x i.
Proof.
move=> opt [fx' [lev' _]] li0; have [fx [lev _]] := opt; have [wt _ _ _] := lie.
case: (boolP [exists i, liars i && (value m i (x' i) <= utility m x i)]) => [/existsP[i /andP[]]|].
  by exists i.
rewrite negb_exists => /forallP all_gain.
have gain i : liars i -> weight m i * t < value m i (x' i).
  by move=> li; have := all_gain i; rewrite li /= -ltNge lev.
have tt' : t < t'.
  rewrite -(ltr_pmul2l (weight_gt0 m i0)); apply: lt_le_trans (gain _ li0) _.
  by apply: le_trans (reported_value _ (fx'.1 i0)) _; rewrite -/(utility m' x' i0) lev' wt.
case: (largest_level_not_exceeded i0 opt (reported_feasible fx')) => l.
case: (boolP (liars l)) => [|hl]; first exact: gain.
by rewrite /utility -(honest_value _ hl) -/(utility m' x' l) lev' wt ltr_pmul2l ?weight_gt0.
Qed.

(** The same for max-min, whatever the lie, if in truth all run on the same types. *)
Theorem max_min_over_reporting t t' x x' (i0 : 'I_n) :
  same_types m -> max_min m t x -> max_min m' t' x' -> liars i0 ->
  exists2 i, liars i & value m i (x' i) <= utility m x i.
Proof.
move=> same opt [fx' [reach' best']] li0; have [fx [reach _]] := opt; have [wt cap _ _] := lie.
have npos : (0 < n)%N by apply: leq_ltn_trans (leq0n i0) (ltn_ord i0).
case: (boolP [exists i, liars i && (value m i (x' i) <= utility m x i)]) => [/existsP[i /andP[]]|].
  by exists i.
rewrite negb_exists => /forallP all_gain.
have gain i : liars i -> weight m i * t < value m i (x' i).
  by move=> li; have := all_gain i; rewrite li /= -ltNge; apply: le_lt_trans; apply: reach.
have fx'm := reported_feasible fx'.
have tt' : t <= t'.
  apply: (best' x); first by split=> [|j]; [exact: fx.1 | rewrite cap; exact: fx.2].
  by move=> l; rewrite wt; apply: le_trans (reach l) (reported_value _ (fx.1 l)).
have reach_m : reaches m t x'.
  move=> l; case: (boolP (liars l)) => [/gain/ltW //|hl].
  by rewrite /utility -(honest_value _ hl); apply: le_trans (reach' l); rewrite wt ler_pmul2l ?weight_gt0.
have [z fz above] := share_excess same (max_min_ge0 npos opt) fx'm reach_m (gain _ li0).
by case: (max_min_not_exceeded i0 opt fz).
Qed.

(** Everybody else is at least as well off after the lie. *)
Theorem largest_level_over_reporting_others t t' x x' l :
  largest_level m t x -> largest_level m' t' x' -> ~~ liars l -> utility m x l <= utility m x' l.
Proof.
move=> [fx [lev _]] opt' hl; have [wt cap _ _] := lie.
have npos : (0 < n)%N by apply: leq_ltn_trans (leq0n l) (ltn_ord l).
have [[fx' [_ best']] lev'] := (largest_level_max_min _ t' x' npos).1 opt'.
have tt' : t <= t'.
  apply: (best' x); first by split=> [|j]; [exact: fx.1 | rewrite cap; exact: fx.2].
  by move=> a; rewrite wt -lev; apply: reported_value (fx.1 a).
by rewrite lev /utility -(honest_value _ hl) -/(utility m' x' l) lev' wt ler_pmul2l ?weight_gt0.
Qed.

End Lie.

(** OEF Theorem 5.4 as the paper means it: one liar, Eq. (9), any optimum before and any after the lie. *)
Theorem noncooperative_oef_over_reporting i m m' x x' :
  over_reports (pred1 i) m m' -> noncooperative_oef m x -> noncooperative_oef m' x' ->
  value m i (x' i) <= utility m x i.
Proof.
have npos : (0 < n)%N by apply: leq_ltn_trans (leq0n i) (ltn_ord i).
move=> lie /(noncooperative_oef_largest_level _ _ npos)[t opt] /(noncooperative_oef_largest_level _ _ npos)[t' opt'].
by have [|l /eqP->] := largest_level_over_reporting lie opt opt' (_ : pred1 i i); first exact: eqxx.
Qed.

End OverReporting.
