(** * How much a lie can pay

    [m] is the market of the truth.  Under a lie of user [i] a policy decides on another market, in which only the
    speedups of [i] differ; what it promises the others there, it promises them by their true speedups.

    The bounds, and markets that reach them, are those of [fairopt/incentives/bounds.py] and
    [proofs/findings/liars/families.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency Equilibrium.
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

(** The incentive ratio where nobody envies the liar: with p its part of the weight, s / (p s + 1 - p) at most. *)
Theorem envy_free_incentive_ratio s i x y :
  0 <= s -> alike s i -> feasible m y ->
  (forall l, l != i -> weight m l / weight m i * value m l (y i) <= utility m y l) ->
  fair_share m i <= utility m x i ->
  (s * part m i + (1 - part m i)) * utility m y i <= s * utility m x i.
Proof.
move=> s0 al fy no_envy fair.
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
apply: (@le_trans _ _ (s * fair_share m i)); last exact: ler_wpmul2l.
have -> : (s * part m i + (1 - part m i)) * utility m y i =
  part m i * (s * utility m y i + ((part m i)^-1 - 1) * utility m y i).
  by field; rewrite gt_eqF.
have -> : s * fair_share m i = part m i * (s * value m i (capacity m)) by rewrite fair_shareE; ring.
by rewrite ler_pmul2l.
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

Lemma honest_worth l (b : bundle R k) : l != i -> value m' l b = value m l b.
Proof. by case: lie => _ _ same ne; apply: eq_bigr => j _; rewrite same. Qed.

Lemma told_feasible y : feasible m' y -> feasible m y.
Proof. by case: lie => _ cap _ [y0 yc]; split=> // j; rewrite -cap. Qed.

(** The incentive ratio of cooperative OEF, whatever is reported, and whatever optima are chosen. *)
Theorem cooperative_oef_incentive_ratio s x y :
  0 <= s -> alike m s i -> cooperative_oef m x -> cooperative_oef m' y ->
  (s * part m i + (1 - part m i)) * utility m y i <= s * utility m x i.
Proof.
move=> s0 al opt [[fy ef] _]; have [_ fair _] := cooperative_oef_sharing_incentive opt.
apply: envy_free_incentive_ratio => // [|l ne]; first exact: told_feasible.
have [same _ _] := lie; have := ef l i.
by rewrite !same /utility !honest_worth.
Qed.

(** ** Equal throughput, speedups from 1 to [r]

    The liar keeps a part of what the lie gave it, and hands the rest to the others, to whom each GPU is worth 1 or
    more: all then reach a level that the truth's is not below. *)

Lemma reached_level t tau x y : largest_level m t x -> feasible m y -> reaches m tau y -> 0 <= tau -> tau <= t.
Proof. by move=> [_ [_ best]] fy reach tau0; have [z fz lev] := hold_down fy reach tau0; apply: best fz lev. Qed.

Lemma count_le_value (w : market R n k) l (b : bundle R k) :
  (forall j, 1 <= speedup w l j) -> (forall j, 0 <= b j) -> \sum_j b j <= value w l b.
Proof. by move=> one b0; apply: ler_sum => j _; rewrite ler_pemull. Qed.

Theorem noncooperative_oef_incentive_ratio r t t' x y :
  1 <= r -> (forall l j, 1 <= speedup m l j) -> (forall j, speedup m i j <= r) -> (forall j, 1 <= speedup m' i j) ->
  largest_level m t x -> largest_level m' t' y ->
  utility m y i <= (r * (1 - part m i) + part m i) * utility m x i.
Proof.
move=> r1 one most told opt [fy' [lev _]]; have fy := told_feasible fy'; have [y0 yc] := fy.
have [sameW _ _] := lie.
set U := utility m y i; set u := utility m x i; set p := part m i.
have pi0 : 0 < weight m i by apply: weight_gt0.
have p0 : 0 < p by rewrite part_gt0.
have levx : u = weight m i * t by case: opt => _ [at_t _]; apply: at_t.
have U0 : 0 <= U by apply: utility_ge0.
have p1 : p <= 1.
  rewrite ler_pdivr_mulr ?(total_weight_gt0 m i) // mul1r /total_weight (bigD1 i) //= ler_addl.
  by apply: sumr_ge0 => l _; apply: weight_ge0.
have factor1 : 1 <= r * (1 - p) + p by rewrite -[X in X <= _](subrK p) ler_add2r ler_pemull ?subr_ge0.
have u0 : 0 <= u by apply: utility_ge0; case: opt => -[].
have atl l : l != i -> utility m y l = weight m l * t'.
  by move=> ne; rewrite /utility -(honest_worth _ ne) -sameW; apply: lev.
pose E := weight m i * t'; pose g := \sum_j y i j.
have gE : g <= E by rewrite /E -sameW -lev; apply: count_le_value.
have g0 : 0 <= g by apply: sumr_ge0.
have Ug : U <= r * g by rewrite /U /utility /value mulr_sumr; apply: ler_sum => j _; rewrite ler_wpmul2r.
pose rest := total_weight m - weight m i.
have rest_sum : \sum_(l | l != i) weight m l = rest.
  by rewrite /rest /total_weight [in RHS](bigD1 i) //= addrAC subrr add0r.
have rest_gt0 l : l != i -> 0 < rest.
  by move=> ne; rewrite -rest_sum (bigD1 l) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => l' _; apply: weight_ge0.
(* where the liar says that it has no less than it has, or there are no others, all have the liar's own level *)
case: (boolP ((U <= E) || (rest == 0))) => [simple|].
  have level : U / weight m i <= t.
    apply: (reached_level opt fy) => [l|]; last by rewrite divr_ge0 ?weight_ge0.
    case: (eqVneq l i) => [->|ne]; first by rewrite mulrC divfK ?weight_neq0.
    case/orP: simple => [UE|/eqP r0]; last by have := rest_gt0 l ne; rewrite r0 ltxx.
    by rewrite atl // ler_pmul2l ?weight_gt0 // ler_pdivr_mulr // mulrC.
  apply: (@le_trans _ _ u); last by rewrite ler_pemull.
  by rewrite levx mulrC -ler_pdivr_mulr.
rewrite negb_or -ltNge => /andP[EU restn0].
(* else it keeps the part s of its bundle; c is what all of it is worth to the others, for the liar's own weight *)
have rest0 : 0 <= rest by rewrite -rest_sum; apply: sumr_ge0 => l _; apply: weight_ge0.
pose c := weight m i * g / rest.
have c0 : 0 <= c by rewrite divr_ge0 // mulr_ge0 ?weight_ge0.
have E0 : 0 <= E by apply: le_trans gE.
have Upos : 0 < U by apply: le_lt_trans EU.
have Uc0 : 0 < U + c by rewrite ltr_paddr.
pose s := (E + c) / (U + c).
have sE : s * (U + c) = E + c by rewrite /s divfK // gt_eqF.
have sU : s * U = E + (1 - s) * c by apply: (addIr (s * c)); rewrite -mulrDr sE; ring.
have s0 : 0 <= s by rewrite divr_ge0 ?addr_ge0 // ltW.
have s1 : s <= 1 by rewrite ler_pdivr_mulr // mul1r ler_add2r ltW.
pose z l j := if l == i then s * y i j else y l j + (1 - s) * (weight m l / rest) * y i j.
have give0 l : 0 <= (1 - s) * (weight m l / rest) by rewrite mulr_ge0 ?subr_ge0 ?divr_ge0 ?weight_ge0.
have fz : feasible m z.
  split=> [l j|j]; rewrite /z.
    by case: eqP => _; [exact: mulr_ge0 | apply: addr_ge0; [exact: y0 | apply: mulr_ge0]].
  apply: le_trans (yc j); rewrite /given (bigD1 i) //= eqxx [X in _ <= X](bigD1 i) //=.
  rewrite (eq_bigr (fun l => y l j + (1 - s) * (weight m l / rest) * y i j)) => [|l /negbTE->] //.
  rewrite big_split /= addrCA [X in _ <= X]addrC ler_add2l -mulr_suml -mulr_sumr -mulr_suml rest_sum.
  by rewrite divff // mulr1 -mulrDl addrC subrK mul1r.
have lz : s * U / weight m i <= t.
  apply: (reached_level opt fz) => [l|]; last by apply: divr_ge0; [apply: mulr_ge0 | apply: weight_ge0].
  case: (eqVneq l i) => [->|ne].
    by rewrite mulrC divfK ?weight_neq0 // /utility /z eqxx valueZ.
  have rpos := rest_gt0 l ne.
  have -> : utility m z l = weight m l * t' + (1 - s) * (weight m l / rest) * value m l (y i).
    by rewrite -(atl l ne) /utility /z (negbTE ne) valueD valueZ.
  apply: (@le_trans _ _ (weight m l * t' + (1 - s) * (weight m l / rest) * g)); last first.
    by rewrite ler_add2l ler_wpmul2l // count_le_value.
  rewrite sU; apply: le_of_eq; rewrite /c /E; field.
  by rewrite weight_neq0 gt_eqF.
have key : s * U <= u by rewrite levx [weight m i * t]mulrC -ler_pdivr_mulr.
(* so u (U + c) is at least U (E + c); and U + c is at most r g + c, E + c at least g + c *)
have ucE : U * (E + c) <= u * (U + c) by rewrite -sE mulrA [U * s]mulrC ler_wpmul2r // ltW.
have gpos : 0 < g.
  rewrite lt_neqAle g0 andbT eq_sym; apply/eqP => gz.
  by move: Ug; rewrite gz mulr0 leNgt Upos.
have Ec0 : 0 < E + c by rewrite ltr_paddr // (lt_le_trans gpos).
have W0 : total_weight m != 0 by rewrite (total_weight_neq0 m i).
have pr : 1 - p = rest / total_weight m by rewrite /p /part /rest; field.
have cg : c * (1 - p) = g * p by rewrite pr /c /p /part; field; rewrite W0 restn0.
have bound : (r * (1 - p) + p) * (g + c) = r * g + c.
  have -> : (r * (1 - p) + p) * (g + c) = r * (1 - p) * g + r * (c * (1 - p)) + p * g + p * c by ring.
  have -> : r * g + c = r * g + (c * (1 - p) + p * c) by ring.
  by rewrite cg; ring.
have F0 : 0 <= r * (1 - p) + p by apply: le_trans factor1.
rewrite -(ler_pmul2r Ec0); apply: le_trans ucE _.
rewrite mulrAC [_ * u]mulrC; apply: ler_wpmul2l => //.
apply: (@le_trans _ _ (r * g + c)); first by rewrite ler_add2r.
by rewrite -bound; apply: ler_wpmul2l => //; rewrite ler_add2r.
Qed.

(** ** Max-min

    The others keep the part tau of what the lie gave them, and 1 - tau of the whole cluster is divided among them; the
    liar keeps the part tau of its bundle. *)
Theorem gavel_incentive_ratio t t' x y :
  gavel m t x -> gavel m' t' y ->
  utility m y i * fair_share m i <=
  ((1 - part m i) * utility m y i + part m i * fair_share m i) * utility m x i.
Proof.
move=> opt [fy' [ratio' best']]; have [fx [ratio best]] := opt.
have fy := told_feasible fy'; have [y0 yc] := fy; have [sameW sameC _] := lie.
have total_same : total_weight m' = total_weight m by apply: eq_bigr => l _; rewrite sameW.
have fair_same l : l != i -> fair_share m' l = fair_share m l.
  by move=> ne; rewrite !fair_shareE /part total_same sameW honest_worth //; congr (_ * _);
     apply: eq_bigr => j _; rewrite sameC.
have fair_others l : l != i -> fair_share m l <= value m l (y l).
  by move=> ne; rewrite -fair_same // -honest_worth //; apply: gavel_sharing_incentive ratio' best' l.
have fair_own : fair_share m i <= utility m x i by apply: gavel_sharing_incentive ratio best i.
set U := utility m y i; set u := utility m x i in fair_own *; set f := fair_share m i in fair_own *; set p := part m i.
have f0 : 0 <= f by apply: fair_share_ge0.
have U0 : 0 <= U by apply: utility_ge0.
have p0 : 0 < p by rewrite part_gt0.
have W0 : 0 < total_weight m by apply: (total_weight_gt0 m i).
have p1 : p <= 1.
  rewrite ler_pdivr_mulr // mul1r /total_weight (bigD1 i) //= ler_addl.
  by apply: sumr_ge0 => l _; apply: weight_ge0.
have q0 : 0 <= 1 - p by rewrite subr_ge0.
have u0 : 0 <= u by apply: le_trans fair_own.
pose d := (1 - p) * U + p * f.
have d0 : 0 <= d by apply: addr_ge0; apply: mulr_ge0 => //; apply: ltW.
case: (lerP U f) => [Uf|fU].
  apply: (@le_trans _ _ (d * f)).
    by rewrite ler_wpmul2r // -[X in X <= _](mul1r U) -[X in X * U](subrK p) mulrDl ler_add2l ler_wpmul2l // ltW.
  exact: ler_wpmul2l.
have [fz|fnz] := eqVneq f 0.
  by rewrite fz mulr0; apply: mulr_ge0 => //; rewrite mulr0 addr0; apply: mulr_ge0.
have fpos : 0 < f by rewrite lt_neqAle eq_sym fnz.
have dpos : 0 < d by apply: ltr_paddl; [apply: mulr_ge0 | apply: mulr_gt0].
pose tau := f / d.
have tau0 : 0 <= tau by rewrite divr_ge0 // ltW.
have tau1 : tau <= 1.
  rewrite ler_pdivr_mulr // mul1r /d -subr_ge0.
  have -> : (1 - p) * U + p * f - f = (1 - p) * (U - f) by ring.
  by rewrite mulr_ge0 // subr_ge0 ltW.
pose rest := total_weight m - weight m i.
have rest_sum : \sum_(l | l != i) weight m l = rest.
  by rewrite /rest /total_weight [in RHS](bigD1 i) //= addrAC subrr add0r.
have rest_gt0 l : l != i -> 0 < rest.
  by move=> ne; rewrite -rest_sum (bigD1 l) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => l' _; apply: weight_ge0.
have rest0 : 0 <= rest by rewrite -rest_sum; apply: sumr_ge0 => l _; apply: weight_ge0.
pose z l j := if l == i then tau * y i j else tau * y l j + (1 - tau) * (weight m l / rest) * capacity m j.
have give0 l : 0 <= (1 - tau) * (weight m l / rest) by rewrite mulr_ge0 ?subr_ge0 ?divr_ge0 ?weight_ge0.
have fz : feasible m z.
  split=> [l j|j]; rewrite /z.
    case: eqP => _; first exact: mulr_ge0.
    by apply: addr_ge0; [exact: mulr_ge0 | apply: mulr_ge0 => //; apply: capacity_ge0].
  rewrite /given (bigD1 i) //= eqxx.
  rewrite (eq_bigr (fun l => tau * y l j + (1 - tau) * (weight m l / rest) * capacity m j)) => [|l /negbTE->] //.
  rewrite big_split /= addrA -mulr_sumr -mulrDr -mulr_suml -mulr_sumr -mulr_suml rest_sum.
  have -> : y i j + \sum_(l | l != i) y l j = given y j by rewrite /given [in RHS](bigD1 i).
  apply: (@le_trans _ _ (tau * capacity m j + (1 - tau) * capacity m j)); last by rewrite -mulrDl addrC subrK mul1r.
  apply: ler_add; first exact: ler_wpmul2l.
  rewrite -mulrA; apply: ler_wpmul2l; first by rewrite subr_ge0.
  have [->|rn0] := eqVneq rest 0; first by rewrite invr0 mulr0 mul0r capacity_ge0.
  by rewrite divff // mul1r.
have level : tau * U / f <= t.
  apply: best fz _ => l; case: (eqVneq l i) => [->|ne].
    by rewrite divfK // /utility /z eqxx valueZ.
  have rpos := rest_gt0 l ne.
  have -> : utility m z l = tau * value m l (y l) + (1 - tau) * (weight m l / rest) * value m l (capacity m).
    by rewrite /utility /z (negbTE ne) valueD !valueZ.
  apply: (@le_trans _ _ (tau * fair_share m l + (1 - tau) * (weight m l / rest) * value m l (capacity m))); last first.
    by rewrite ler_add2r; apply: ler_wpmul2l => //; apply: fair_others.
  have qpos : 1 - p != 0.
    rewrite /p /part -[X in X - _](divff (lt0r_neq0 W0)) -mulrBl mulf_neq0 ?invr_eq0 ?lt0r_neq0 //.
  have -> : tau * U / f = tau + (1 - tau) / (1 - p).
    have td : tau * d = f by rewrite /tau divfK // lt0r_neq0.
    apply: (mulIf fnz); apply: (mulIf qpos); rewrite divfK //.
    have -> : tau * U * (1 - p) = tau * d - tau * p * f by rewrite /d; ring.
    by rewrite td; field.
  apply: le_of_eq; rewrite [fair_share m l]fair_shareE mulrDl; congr (_ + _).
  rewrite /p /part /rest; field.
  by rewrite lt0r_neq0 //= -/rest lt0r_neq0.
have : tau * U <= u.
  apply: le_trans (ratio i); rewrite -/f; move: level; rewrite ler_pdivr_mulr //.
rewrite /tau mulrAC ler_pdivr_mulr // mulrC => le.
by rewrite mulrC [d * u]mulrC in le *.
Qed.

(** With p its part of the weight, (1 - p) / p + p at most: n - 1 + 1 / n where all n weights are the same. *)
Theorem gavel_incentive_ratio_at_most t t' x y :
  gavel m t x -> gavel m' t' y ->
  part m i * utility m y i <= (1 - part m i + part m i ^+ 2) * utility m x i.
Proof.
move=> opt opt'; have := gavel_incentive_ratio opt opt'; have fy := told_feasible opt'.1.
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

(** ** Nash welfare: competitive equilibria of which weights are the budgets

    That the ratio is below 2 is by Chen, Deng, Zhang and Zhang (Incentive ratios of Fisher markets, ICALP 2012).  Here
    it is at most 2 - p.  Who buys a type after the lie bought at the truth only what has become dearer by as large a
    factor.  So the others' bundles after the lie cost, at the truth's prices, at least the part 1 - p of what they
    pay. *)
Section Budgets.
Variables (price price' : 'I_k -> R) (x y : allocation R n k).
Hypotheses (eq : equilibrium m price x) (eq' : equilibrium m' price' y).
Hypotheses (pos : forall j, 0 < price j) (useful : forall l, exists j, 0 < speedup m l j).

Lemma price'_ge0 j : 0 <= price' j. Proof. exact: price_ge0 eq' j. Qed.

Lemma dearer l j j' : l != i -> 0 < y l j -> 0 < x l j' -> price' j / price j <= price' j' / price j'.
Proof.
move=> ne after before; have [_ _ same] := lie.
have worth j0 : speedup m l j0 * price j' <= speedup m l j' * price j0 by apply: best_buy eq _ _ _ before.
have wants : 0 < speedup m l j'.
  rewrite lt_neqAle speedup_ge0 andbT eq_sym; apply/eqP => none; have [j0 some] := useful l.
  by have := worth j0; rewrite none mul0r leNgt mulr_gt0.
rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr // -(ler_pmul2l wants).
have := best_buy eq' j' after; rewrite !(same _ ne) => bought.
rewrite !mulrA; apply: (@le_trans _ _ (speedup m l j * price' j' * price j')).
  by rewrite ler_pmul2r.
by rewrite mulrAC [leRHS]mulrAC ler_wpmul2r ?price'_ge0.
Qed.

Lemma dearer_bundle l : l != i -> \sum_j price' j * y l j * (price' j / price j) <= cost price' (x l).
Proof.
move=> ne; have [sameW _ _] := lie; have w0 := weight_gt0 m l.
rewrite -(ler_pmul2l w0).
have -> : weight m l * (\sum_j price' j * y l j * (price' j / price j)) =
  \sum_j \sum_j' price j' * x l j' * (price' j * y l j * (price' j / price j)).
  by rewrite -(all_spent eq l) /cost mulr_sumr; apply: eq_bigr => j _; rewrite mulr_suml.
have -> : weight m l * cost price' (x l) =
  \sum_j \sum_j' price j' * x l j' * (price' j * y l j * (price' j' / price j')).
  rewrite -sameW -(all_spent eq' l) /cost mulr_suml; apply: eq_bigr => j _; rewrite mulr_sumr.
  by apply: eq_bigr => j' _; field; rewrite lt0r_neq0.
apply: ler_sum => j _; apply: ler_sum => j' _.
have := (is_feasible eq).1 l j'; rewrite le_eqVlt => /predU1P[<-|before]; first by rewrite mulr0 !mul0r.
have := (is_feasible eq').1 l j; rewrite le_eqVlt => /predU1P[<-|after]; first by rewrite !(mulr0, mul0r).
apply: ler_wpmul2l; first by apply: mulr_ge0; apply: ltW.
by apply: ler_wpmul2l; [apply: mulr_ge0; [apply: price'_ge0 | apply: ltW] | apply: dearer after before].
Qed.

Theorem nash_welfare_incentive_ratio : utility m y i <= (2%:R - part m i) * utility m x i.
Proof.
have [sameW sameC _] := lie; have fy := told_feasible (is_feasible eq').
have total_same : total_weight m' = total_weight m by apply: eq_bigr => l _; rewrite sameW.
have T0 : 0 < total_weight m by apply: (total_weight_gt0 m i).
pose lam := 1 - part m i; pose others := total_weight m - weight m i.
have others_sum : \sum_(l | l != i) weight m l = others.
  by rewrite /others /total_weight [in RHS](bigD1 i) //= addrAC subrr add0r.
have money : \sum_(l | l != i) \sum_j price' j * y l j = others.
  by rewrite -others_sum; apply: eq_bigr => l _; rewrite -sameW -(all_spent eq' l).
have dear : \sum_(l | l != i) \sum_j price' j * y l j * (price' j / price j) <= total_weight m.
  apply: (@le_trans _ _ (\sum_(l | l != i) cost price' (x l))).
    by apply: ler_sum => l; apply: dearer_bundle.
  rewrite -total_same -(cost_capacity eq') /cost exchange_big; apply: ler_sum => j _.
  rewrite -mulr_sumr; apply: ler_wpmul2l; first exact: price'_ge0.
  rewrite sameC; apply: le_trans ((is_feasible eq).2 j); rewrite /given [leRHS](bigD1 i) //= ler_addr.
  exact: (is_feasible eq).1.
(* (price - lam price')^2 / price is not negative *)
have square l j : 2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j)) <=
    price j * y l j.
  rewrite -subr_ge0.
  have -> : price j * y l j - (2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j))) =
    (price j - lam * price' j) ^+ 2 / price j * y l j by field; rewrite lt0r_neq0.
  by rewrite mulr_ge0 ?fy.1 // divr_ge0 ?sqr_ge0 // ltW.
have kept : 2%:R * lam * others - lam ^+ 2 * total_weight m <= \sum_(l | l != i) cost price (y l).
  apply: (@le_trans _ _ (\sum_(l | l != i) \sum_j
    (2%:R * lam * (price' j * y l j) - lam ^+ 2 * (price' j * y l j * (price' j / price j))))); last first.
    by apply: ler_sum => l _; apply: ler_sum => j _.
  under eq_bigr do rewrite sumrB -!mulr_sumr.
  by rewrite sumrB -!mulr_sumr money ler_add2l ler_opp2; apply: ler_wpmul2l; rewrite ?sqr_ge0.
have all : cost price (y i) + \sum_(l | l != i) cost price (y l) <= total_weight m.
  have -> : cost price (y i) + \sum_(l | l != i) cost price (y l) = \sum_l cost price (y l) by rewrite [RHS](bigD1 i).
  rewrite -(cost_capacity eq) /cost exchange_big.
  by apply: ler_sum => j _; rewrite -mulr_sumr; apply: ler_wpmul2l; [apply: ltW | apply: fy.2].
have W0 : weight m i != 0 by rewrite weight_neq0.
have own : cost price (y i) <= weight m i * (2%:R - part m i).
  have -> : weight m i * (2%:R - part m i) = total_weight m - (2%:R * lam * others - lam ^+ 2 * total_weight m).
    by rewrite /lam /others /part; field; rewrite lt0r_neq0.
  by rewrite ler_subr_addr; apply: le_trans all; rewrite ler_add2l.
rewrite -(ler_pmul2l (weight_gt0 m i)); apply: le_trans (worth_its_cost eq i (fy.1 i)) _.
have -> : weight m i * ((2%:R - part m i) * utility m x i) = utility m x i * (weight m i * (2%:R - part m i)) by ring.
by apply: ler_wpmul2l => //; apply: utility_ge0; apply: (is_feasible eq).1.
Qed.

End Budgets.
End Lies.
