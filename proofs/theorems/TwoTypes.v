(** * Two types of GPUs, where every speedup on the first is 1: cooperative OEF

    OEF Sec. 2.3 normalises speedups to the slowest type.  With two types a user is then one number, its ratio.  For any
    number of users, any weights and capacities, every optimum of Eq. (10)

    - gives a user of the least ratio either no fast GPU, or all slow ones that are not with its equals (OEF Lemma 3.1);
    - gives a user of the largest ratio either no slow GPU, or all fast ones that are not with its equals;
    - is Pareto-efficient if no two ratios in order lie strictly between two others, so with three users.

    With four ratios it need not be: [Counterexamples.v]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive Duality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Between two allocations *)
Section Mix.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x z : allocation R n k) (s : R).

Definition mix s x z : allocation R n k := fun i j => (1 - s) * x i j + s * z i j.

Lemma value_mix s x z i l : value m i (mix s x z l) = (1 - s) * value m i (x l) + s * value m i (z l).
Proof. by rewrite /mix valueD !valueZ. Qed.

Lemma given_mix s x z j : given (mix s x z) j = (1 - s) * given x j + s * given z j.
Proof. by rewrite /given /mix big_split /= -!mulr_sumr. Qed.

Lemma total_mix s x z : total m (mix s x z) = (1 - s) * total m x + s * total m z.
Proof. by rewrite /total !mulr_sumr -big_split; apply: eq_bigr => i _; rewrite /utility value_mix. Qed.

Lemma envy_free_mix s x z : 0 <= s -> s <= 1 -> envy_free m x -> envy_free m z -> envy_free m (mix s x z).
Proof.
move=> s0 s1 ex ez i l; rewrite /utility !value_mix mulrDr !(mulrCA (weight m i / weight m l)).
by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0 //; [apply: ex | apply: ez].
Qed.

(** No optimum of Eq. (10) can be moved towards something without envy that is worth more. *)
Lemma optimum_not_towards s x z :
  cooperative_oef m x -> 0 < s -> s <= 1 -> envy_free m z -> (forall j, given z j = given x j) ->
  (forall i j, 0 <= mix s x z i j) -> total m z <= total m x.
Proof.
move=> [[fx ex] best] s0 s1 ez same ge0; have [x0 xc] := fx.
have fy : feasible m (mix s x z).
  by split=> // j; rewrite given_mix same -mulrDl subrK mul1r.
have := best _ (conj fy (envy_free_mix (ltW s0) s1 ex ez)).
by rewrite total_mix mulrBl mul1r -addrA ger_addl addrC -mulrBr pmulr_rle0 // subr_le0.
Qed.

End Mix.

Section TwoTypes.
Variables (R : realFieldType) (n : nat) (m : market R n 2).
Implicit Types (x y z : allocation R n 2) (i l p u t : 'I_n).

Definition slow : 'I_2 := @Ordinal 2 0 isT.
Definition fast : 'I_2 := @Ordinal 2 1 isT.

(** Normalised, and everybody can use both types. *)
Hypothesis normalised : forall i, speedup m i slow = 1.
Hypothesis positive : forall i, 0 < speedup m i fast.
Definition ratio i : R := speedup m i fast.
Local Notation r := ratio.
Let w := weight m.
Let W := total_weight m.

Let sum_types (f : 'I_2 -> R) : \sum_j f j = f slow + f fast.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (f _ + f _); apply: val_inj. Qed.

Let each_type (P : 'I_2 -> Prop) : P slow -> P fast -> forall j, P j.
Proof. by move=> p0 p1 [[|[|?]] lt] //; [move: p0 | move: p1]; rewrite (bool_irrelevance lt isT). Qed.

Let valueE i (b : 'I_2 -> R) : value m i b = b slow + r i * b fast.
Proof. by rewrite /value sum_types normalised mul1r. Qed.

Let r0 i : 0 < r i. Proof. exact: positive. Qed.
Let rn0 i : r i != 0. Proof. by rewrite gt_eqF. Qed.
Let w0 i : 0 < w i. Proof. exact: weight_gt0. Qed.
Let wn0 i : w i != 0. Proof. exact: weight_neq0. Qed.

(** What all have the same of, by weight, but for one user. *)
Let sum_even_but_one u (c d : R) : \sum_i (w i * c - (if i == u then d else 0)) = W * c - d.
Proof. by rewrite sumrB -mulr_suml -big_mkcond big_pred1_eq. Qed.

(** ** The least ratio *)
Section Least.
Variables (x : allocation R n 2) (u : 'I_n).
Hypothesis least : forall i, r u <= r i.
Let X := given x slow.
Let Y := given x fast.
Let c := (Y + X / r u) / W.

(** All have the same of the fast type, and [u] gives some of its own for everything slow, at its own ratio. *)
Definition to_least : allocation R n 2 := fun i j =>
  if j == slow then (if i == u then X else 0) else w i * c - (if i == u then X / r u else 0).

Let Wn0 : W != 0. Proof. exact: total_weight_neq0 u. Qed.

Lemma to_least_given j : given to_least j = given x j.
Proof.
move: j; apply: each_type; rewrite /given /to_least /=; first by rewrite -big_mkcond big_pred1_eq.
by rewrite sum_even_but_one /c mulrCA divff ?Wn0 // mulr1 addrK.
Qed.

Lemma to_least_value i l : value m i (to_least l) = w l * (r i * c) - (if l == u then X * (r i / r u - 1) else 0).
Proof. by rewrite valueE /to_least /=; move: (X) (c) => X' c'; case: eqP => _; ring. Qed.

Lemma to_least_utility i : utility m to_least i = w i * (r i * c).
Proof. by rewrite /utility to_least_value; case: eqP => [->|_]; rewrite ?divff ?rn0 // ?subrr ?mulr0 subr0. Qed.

Lemma to_least_total : total m to_least = \sum_i w i * (r i * c).
Proof. by apply: eq_bigr => i _; apply: to_least_utility. Qed.

Hypotheses (x0 : forall i j, 0 <= x i j) (ex : envy_free m x).

Lemma X_ge0 : 0 <= X. Proof. exact: sumr_ge0. Qed.

Lemma to_least_envy_free : envy_free m to_least.
Proof.
move=> i l; rewrite to_least_utility to_least_value.
rewrite -(ler_pmul2l (_ : 0 < w l / w i)) ?divr_gt0 //.
have -> : w l / w i * (weight m i / weight m l * (w l * (r i * c) - (if l == u then X * (r i / r u - 1) else 0)))
        = w l * (r i * c) - (if l == u then X * (r i / r u - 1) else 0).
  by rewrite -/w; field; rewrite !wn0.
have -> : w l / w i * (w i * (r i * c)) = w l * (r i * c) by field; rewrite wn0.
rewrite ler_subl_addr ler_addl; case: eqP => // _.
by rewrite mulr_ge0 ?X_ge0 // subr_ge0 ler_pdivl_mulr // mul1r.
Qed.

(** Envy between two users, for each unit of weight. *)
Let a i := x i slow / w i.
Let b i := x i fast / w i.
Let a0 i : 0 <= a i. Proof. by rewrite divr_ge0 // ltW. Qed.
Let slowE i : x i slow = w i * a i. Proof. by rewrite /a mulrCA divff ?mulr1. Qed.
Let fastE i : x i fast = w i * b i. Proof. by rewrite /b mulrCA divff ?mulr1. Qed.
Let ef i l : a l + r i * b l <= a i + r i * b i.
Proof.
rewrite -(ler_pmul2l (w0 i)); have := ex i l; rewrite /utility !valueE !slowE !fastE -/w.
have -> : w i / w l * (w l * a l + r i * (w l * b l)) = w i * (a l + r i * b l).
  by move: (a l) (b l) => a' b'; field; rewrite wn0.
by rewrite !(mulrCA (r i)) -mulrDr.
Qed.

(** What two users, of either order, contribute to the difference of totals. *)
Let gap l p : R := (r p - r l) * b l + (r p / r u - 1) * a l.

Let gap_of_pair l p : r l <= r p -> a p * ((r p / r l - 1) + (r l / r u - 1)) <= gap l p + gap p l.
Proof.
move=> lp; rewrite -subr_ge0.
have -> : gap l p + gap p l - a p * ((r p / r l - 1) + (r l / r u - 1))
        = (r p - r l) * ((r l)^-1 * (a l + r l * b l - (a p + r l * b p))) + a l * (r p * ((r u)^-1 - (r l)^-1)).
  by rewrite /gap; move: (a p) (a l) (b p) (b l) => a1 a2 b1 b2; field; rewrite !rn0.
apply: addr_ge0; apply: mulr_ge0; rewrite ?subr_ge0 //; apply: mulr_ge0; rewrite ?subr_ge0 ?invr_ge0 ?(ltW (r0 _)) //.
by rewrite lef_pinv ?posrE.
Qed.

Let ratio_ge1 i : 0 <= r i / r u - 1.
Proof. by rewrite subr_ge0 ler_pdivl_mulr // mul1r. Qed.

Let gap_ge0 l p : 0 <= gap l p + gap p l.
Proof.
wlog lp : l p / r l <= r p => [only|].
  by case/orP: (le_total (r l) (r p)) => /only; rewrite // addrC.
apply: le_trans (gap_of_pair lp); rewrite mulr_ge0 // addr_ge0 // subr_ge0 ler_pdivl_mulr // mul1r //.
Qed.

Let difference : W * (total m to_least - total m x) = \sum_l \sum_p w l * w p * gap l p.
Proof.
pose M := \sum_p w p * r p.
have inner l : \sum_p w l * w p * gap l p = M * (x l fast + x l slow / r u) - W * utility m x l.
  have -> : utility m x l = w l * a l + r l * (w l * b l) by rewrite /utility valueE slowE fastE.
  rewrite slowE fastE /M /W /total_weight !mulr_suml -sumrB; apply: eq_bigr => p _; rewrite /gap -/w.
  by move: (a l) (b l) => a' b'; field; rewrite rn0.
rewrite (eq_bigr _ (fun l _ => inner l)) sumrB -!mulr_sumr big_split /= -mulr_suml -/(total m x).
rewrite mulrBr; congr (_ - _); rewrite to_least_total.
have -> : \sum_i w i * (r i * c) = M * c by rewrite /M mulr_suml; apply: eq_bigr => i _; rewrite mulrA.
by rewrite mulrCA /c [W * _]mulrCA divff ?Wn0 // mulr1.
Qed.

(** If somebody of a larger ratio holds something slow, that allocation is worth more. *)
Lemma to_least_better p : 0 < x p slow -> r u < r p -> total m x < total m to_least.
Proof.
move=> held up; rewrite -subr_gt0 -(pmulr_rgt0 _ (total_weight_gt0 m u)) -/W difference.
set D := (X in 0 < X); have twice : D + D = \sum_l \sum_p w l * w p * (gap l p + gap p l).
  rewrite {2}/D exchange_big /D -big_split /=; apply: eq_bigr => l _; rewrite -big_split /=; apply: eq_bigr => q _.
  by move: (gap l q) (gap q l) => g h; ring.
have term l q : 0 <= w l * w q * (gap l q + gap q l) by rewrite mulr_ge0 // mulr_ge0 // ltW.
have: 0 < D + D.
  rewrite twice (bigD1 u) //= ltr_spaddl //; last by apply: sumr_ge0 => l _; apply: sumr_ge0 => q _; apply: term.
  rewrite (bigD1 p) //= ltr_spaddl //; last by apply: sumr_ge0 => q _; apply: term.
  rewrite mulr_gt0 ?mulr_gt0 //; apply: lt_le_trans (gap_of_pair (least p)).
  by rewrite divff // subrr addr0 mulr_gt0 ?divr_gt0 // subr_gt0 ltr_pdivl_mulr // mul1r.
by rewrite -mulr2n pmulrn_lgt0.
Qed.

End Least.

(** OEF Lemma 3.1, by ratios: who has the least ratio holds nothing fast, or its equals hold all that is slow. *)
Theorem normalised_two_types_least_ratio x u p :
  cooperative_oef m x -> (forall i, ratio u <= ratio i) -> 0 < x u fast -> ratio u < ratio p -> x p slow = 0.
Proof.
move=> opt least held up; have [[[x0 xc] ex] best] := opt.
apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => slower.
have := to_least_better least x0 ex slower up; rewrite ltNge => /negP[].
pose K := given x slow / r u; have K0 : 0 <= K by apply: divr_ge0; [apply: X_ge0 | apply: ltW].
have sum0 : 0 < x u fast + K by rewrite ltr_spaddl.
pose s := x u fast / (x u fast + K).
have s0 : 0 < s by rewrite divr_gt0.
have s1 : s <= 1 by rewrite ler_pdivr_mulr // mul1r ler_addl.
apply: (@optimum_not_towards _ _ _ m s) => //.
- exact: to_least_envy_free.
- exact: to_least_given.
move=> i; apply: each_type; rewrite /mix /to_least /=.
  by rewrite addr_ge0 // mulr_ge0 ?subr_ge0 ?(ltW s0) //; case: eqP => // _; apply: (X_ge0 x0).
have c0 : 0 <= (given x fast + K) / W.
  by apply: divr_ge0 (ltW (total_weight_gt0 m u)); apply: addr_ge0 K0; apply: sumr_ge0.
have wc : 0 <= s * (w i * ((given x fast + K) / W)) := mulr_ge0 (ltW s0) (mulr_ge0 (ltW (w0 i)) c0).
case: eqP => [e|_]; last by rewrite subr0 addr_ge0 // mulr_ge0 ?subr_ge0.
rewrite e -/K in wc *; rewrite mulrBr addrCA; apply: addr_ge0 => //.
by rewrite mulrBl mul1r -addrA -opprD -mulrDr divfK ?gt_eqF // subrr.
Qed.

(** ** The largest ratio *)

(** All have the same of the slow type, and [t] gives some of its own for everything fast, at its own ratio. *)
Definition to_largest x t : allocation R n 2 := fun i j =>
  if j == slow then w i * ((given x slow + r t * given x fast) / W) - (if i == t then r t * given x fast else 0)
  else if i == t then given x fast else 0.

(** Who has the largest ratio holds nothing slow, or its equals hold all that is fast. *)
Theorem normalised_two_types_largest_ratio x t p :
  cooperative_oef m x -> (forall i, ratio i <= ratio t) -> 0 < x t slow -> ratio p < ratio t -> x p fast = 0.
Proof.
move=> opt largest held up; have [[[x0 xc] ex] best] := opt.
apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => faster.
pose d := (given x slow + r t * given x fast) / W; pose K := r t * given x fast.
have Wn0 : W != 0 by apply: total_weight_neq0 t.
have Y0 : 0 <= given x fast by apply: sumr_ge0.
have K0 : 0 <= K by rewrite mulr_ge0 // ltW.
have val i l : value m i (to_largest x t l) = w l * d - (if l == t then (r t - r i) * given x fast else 0).
  by rewrite valueE /to_largest /= -/d; move: (d) (given x fast) => d' Y; case: eqP => _; ring.
have util i : utility m (to_largest x t) i = w i * d.
  by rewrite /utility val; case: eqP => [->|_]; rewrite ?subrr ?mul0r subr0.
have tot : total m (to_largest x t) = given x slow + r t * given x fast.
  by rewrite /total (eq_bigr _ (fun i _ => util i)) -mulr_suml -/(total_weight m) -/W mulrCA divff ?mulr1.
have: total m x < total m (to_largest x t).
  have -> : total m x = given x slow + \sum_i r i * x i fast.
    by rewrite /total /given -big_split; apply: eq_bigr => i _; rewrite /utility valueE.
  rewrite tot ltr_add2l /given mulr_sumr (bigD1 p) //= [ltRHS](bigD1 p) //=.
  apply: ltr_le_add; first by rewrite ltr_pmul2r.
  by apply: ler_sum => i _; rewrite ler_wpmul2r.
rewrite ltNge => /negP[].
have sum0 : 0 < x t slow + K by rewrite ltr_spaddl.
pose s := x t slow / (x t slow + K).
have s0 : 0 < s by rewrite divr_gt0.
have s1 : s <= 1 by rewrite ler_pdivr_mulr // mul1r ler_addl.
apply: (@optimum_not_towards _ _ _ m s) => // [i l|j|i].
- rewrite util val; apply: (@le_trans _ _ (w i / w l * (w l * d))).
    rewrite ler_pmul2l ?divr_gt0 // ler_subl_addr ler_addl; case: eqP => // _.
    by rewrite mulr_ge0 // subr_ge0.
  by rewrite mulrA divfK.
- move: j; apply: each_type; rewrite {1}/given /to_largest /=; last by rewrite -big_mkcond big_pred1_eq.
  by rewrite sum_even_but_one mulrCA divff // mulr1 addrK.
move: i; rewrite /mix /to_largest => i; apply: each_type => /=; last first.
  by rewrite addr_ge0 // mulr_ge0 ?subr_ge0 ?(ltW s0) //; case: eqP.
have wd : 0 <= s * (w i * d).
  apply: mulr_ge0 (ltW s0) (mulr_ge0 (ltW (w0 i)) (divr_ge0 _ (ltW (total_weight_gt0 m t)))).
  by apply: addr_ge0 K0; apply: sumr_ge0.
case: eqP => [e|_]; last by rewrite subr0 addr_ge0 // mulr_ge0 ?subr_ge0.
rewrite e -/K in wd *; rewrite mulrBr addrCA; apply: addr_ge0 => //.
by rewrite mulrBl mul1r -addrA -opprD -mulrDr divfK ?gt_eqF // subrr.
Qed.

(** ** Pareto-efficiency: OEF Theorem 5.3 *)

(** Nobody holds something fast while somebody of a larger ratio holds something slow. *)
Definition no_exchange x : Prop := forall i l, r i < r l -> 0 < x i fast -> 0 < x l slow -> False.

Lemma no_exchange_pareto_efficient x :
  feasible m x -> nothing_left_over m x -> no_exchange x -> pareto_efficient m x.
Proof.
move=> fx none calm; have [x0 xc] := fx.
suff pe : 'I_n -> pareto_efficient m x by split=> // y fy dom i; have [_] := pe i; apply.
move=> user; have full j : given x j = capacity m j.
  by apply: (none user); move: j; apply: each_type; rewrite ?normalised ?ltr01.
have util i : utility m x i = x i slow + r i * x i fast by rewrite /utility valueE.
case: (pickP (fun i => 0 < x i slow)) => [i0 held0|nobody]; last first.
  have zero i : x i slow = 0 by apply/eqP; rewrite eq_le x0 andbT leNgt nobody.
  have inv_ge0 i : 0 <= (r i)^-1 by rewrite invr_ge0 ltW.
  pose top := \sum_i (r i)^-1; pose price (j : 'I_2) := if j == slow then top else 1.
  apply: (@pareto_weights_without_demands _ _ _ _ (fun i => (r i)^-1) price) => //.
  - by move=> i; rewrite invr_gt0.
  - by apply: each_type; rewrite /price /= ?ler01 // /top; apply: sumr_ge0.
  - move=> i; apply: each_type; rewrite /price /=; last by rewrite mulVf.
    by rewrite normalised mulr1 /top (bigD1 i) //= ler_addl; apply: sumr_ge0.
  rewrite sum_types -!full /price /= mul1r {1}/given (eq_bigr _ (fun i _ => zero i)) big1 // mulr0 add0r.
  by apply: ler_sum => i _; rewrite util zero add0r mulKf.
have [t held most] : exists2 t, 0 < x t slow & forall i, 0 < x i slow -> r i <= r t.
  pose holds i := 0 < x i slow; pose t := [arg max_(i > i0 | holds i) r i]%O.
  by exists t; rewrite /t; case: arg_maxP => // t' ht max i; apply: max.
have above i : r t < r i -> x i slow = 0.
  by move=> up; apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => /most; rewrite leNgt up.
have below i : r i < r t -> x i fast = 0.
  by move=> up; apply/eqP; rewrite eq_le x0 andbT leNgt; apply/negP => /(calm i t up); apply.
pose lambda i := if r i <= r t then 1 else r t / r i; pose price (j : 'I_2) := if j == slow then 1 else r t.
apply: (@pareto_weights_without_demands _ _ _ _ lambda price) => //.
- by move=> i; rewrite /lambda; case: ifP => _; rewrite ?ltr01 ?divr_gt0.
- by apply: each_type; rewrite /price /= ?ler01 // ltW.
- move=> i; apply: each_type; rewrite /price /lambda /=; case: (leP (r i) (r t)) => // lt; rewrite ?normalised ?mulr1 //.
  + by rewrite ler_pdivr_mulr // mul1r ltW.
  + by rewrite mul1r.
  by rewrite divfK.
rewrite sum_types -!full /price /= mul1r /given mulr_sumr -big_split /=; apply: ler_sum => i _.
rewrite util /lambda; case: (ltgtP (r i) (r t)) => [lt|gt|->]; last by rewrite mul1r.
  by rewrite (below i lt) !mulr0 mul1r.
by rewrite (above i gt) !add0r mulrA divfK.
Qed.

(** No two ratios in order lie strictly between two others: there are three ratios at most. *)
Definition three_ratios : Prop := forall i l, ratio i < ratio l ->
  (forall p, ratio i <= ratio p) \/ (forall p, ratio p <= ratio l).

(** Then cooperative OEF is Pareto-efficient, whatever the weights and capacities, and whatever optimum is chosen. *)
Theorem normalised_two_types_pareto_efficient x :
  three_ratios -> cooperative_oef m x -> pareto_efficient m x.
Proof.
move=> three opt; have [[fx _] _] := opt.
apply: no_exchange_pareto_efficient fx (cooperative_oef_nothing_left_over opt) _ => i l up fi sl.
have [least|largest] := three i l up.
  by move: sl; rewrite (normalised_two_types_least_ratio opt least fi up) ltxx.
by move: fi; rewrite (normalised_two_types_largest_ratio opt largest sl up) ltxx.
Qed.

End TwoTypes.

(** Three users have three ratios at most. *)
Theorem normalised_two_types_three_users (R : realFieldType) (m : market R 3 2) (x : allocation R 3 2) :
  (forall i, speedup m i slow = 1) -> (forall i, 0 < speedup m i fast) ->
  cooperative_oef m x -> pareto_efficient m x.
Proof.
move=> one pos; apply: normalised_two_types_pareto_efficient => // i l up.
have il : i != l by apply/eqP => e; move: up; rewrite e ltxx.
have [p [pi pl all3]] : exists p, [/\ p != i, p != l & forall q, [|| q == i, q == l | q == p]].
  by case: i l {up} il => [[|[|[|?]]] ?] [[|[|[|?]]] ?] //= _;
    do ?[by exists (@Ordinal 3 0 isT); split=> // -[[|[|[|?]]] ?] | by exists (@Ordinal 3 1 isT); split=> // -[[|[|[|?]]] ?]
       | by exists (@Ordinal 3 2 isT); split=> // -[[|[|[|?]]] ?]].
case: (leP (ratio m i) (ratio m p)) => [ip|pi'].
  by left=> q; have := all3 q; case/or3P => /eqP-> //; apply: ltW.
by right=> q; have := all3 q; case/or3P => /eqP-> //; apply: ltW => //; apply: lt_trans up.
Qed.
