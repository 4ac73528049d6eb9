(** * How much users can gain who lie together

    [m] is the market of the truth, [m'] the one that they tell: in it only the speedups of users in [S] differ.  Each
    bound says: if the lie gives every user in [S] at least [g] times what the truth gives it, then [g] is at most so
    much.  One liar is the case of a single user in [S] (Incentives.v).

    In words, and for which markets these bounds are reached: [fairopt/properties/misreports/bounds.py] and
    [proofs/findings/liars/coalitions.py]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive EqualEfficiency.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A lie of the users in [S]: only their speedups differ. *)
Definition lie_of_all (R : realFieldType) (n k : nat) (S : {set 'I_n}) (m m' : market R n k) : Prop :=
  [/\ forall l, weight m' l = weight m l,
      forall j, capacity m' j = capacity m j
    & forall l, l \notin S -> forall j, speedup m' l j = speedup m l j].

Section Coalition.
Variables (R : realFieldType) (n k : nat) (m : market R n k) (S : {set 'I_n}).
Implicit Types (x y : allocation R n k) (i l s : 'I_n) (j : 'I_k) (b : bundle R k).

(** What the users in [S] are of all, by weight. *)
Definition part_of : R := \sum_(s in S) part m s.
(** The weight of the others. *)
Definition others : R := \sum_(l | l \notin S) weight m l.

Lemma others_ge0 : 0 <= others. Proof. by apply: sumr_ge0 => l _; apply: weight_ge0. Qed.

Lemma others_gt0 l : l \notin S -> 0 < others.
Proof.
move=> out; rewrite /others (bigD1 l) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => l' _; exact: weight_ge0.
Qed.

Lemma members_and_others (F : 'I_n -> R) : \sum_l F l = \sum_(s in S) F s + \sum_(l | l \notin S) F l.
Proof. by rewrite (bigID (mem S)). Qed.

Lemma part_ofE (i : 'I_n) : 1 - part_of = others / total_weight m.
Proof.
rewrite -(sum_part m i) /part_of (members_and_others (part m)) addrAC subrr add0r.
by rewrite /others mulr_suml.
Qed.

Lemma part_of_ge0 : 0 <= part_of. Proof. by apply: sumr_ge0 => s _; apply: ltW; apply: part_gt0. Qed.

Lemma part_of_le1 (i : 'I_n) : part_of <= 1.
Proof. by rewrite -subr_ge0 (part_ofE i) divr_ge0 ?others_ge0 // ltW // (total_weight_gt0 m i). Qed.

(** ** No envy *)

Section NoEnvy.
Variables (r : R) (low : 'I_n -> R).
Hypotheses (r1 : 1 <= r) (low_gt0 : forall l, 0 < low l).
(** Nobody's largest speedup is more than r times its least. *)
Hypothesis range : forall l j, low l <= speedup m l j <= r * low l.

Let count b : R := \sum_j b j.
(** What a bundle is worth in units of one's own least speedup. *)
Let own l b : R := value m l b / low l.

Let r0 : 0 <= r. Proof. exact: le_trans r1. Qed.

Let own_ge l b : (forall j, 0 <= b j) -> count b <= own l b.
Proof.
move=> b0; rewrite ler_pdivl_mulr // mulr_suml; apply: ler_sum => j _.
by rewrite mulrC ler_wpmul2r //; case/andP: (range l j).
Qed.

Let own_le l b : (forall j, 0 <= b j) -> own l b <= r * count b.
Proof.
move=> b0; rewrite ler_pdivr_mulr // mulrAC mulr_sumr; apply: ler_sum => j _.
by rewrite ler_wpmul2r //; case/andP: (range l j).
Qed.

(** The others do not envy the liars, so that each liar leaves them some of what it likes; and what another liar is
    given counts for something, too. *)
Theorem envy_free_coalition_ratio g p x y i :
  i \in S -> (exists j, 0 < capacity m j) -> 0 <= g -> 0 <= p -> (forall s, s \in S -> p <= part m s) ->
  feasible m y ->
  (forall s l, s \in S -> l \notin S -> weight m l / weight m s * value m l (y s) <= utility m y l) ->
  (forall s, s \in S -> fair_share m s <= utility m x s) ->
  (forall s, s \in S -> g * utility m x s <= utility m y s) ->
  g * (r ^+ 2 * p + r * ((#|S|)%:R - 1) * p + (1 - part_of)) <= r ^+ 2.
Proof.
move=> iS [j0 some] g0 p0 least fy no_envy fair gain; have [y0 yc] := fy.
pose V s := own s (capacity m); pose u s := own s (y s).
have u0 s : 0 <= u s by rewrite divr_ge0 ?(ltW (low_gt0 s)) // utility_ge0.
have V0 s : 0 < V s.
  apply: lt_le_trans (own_ge s (capacity_ge0 m)); rewrite /count (bigD1 j0) //= ltr_paddr //.
  by apply: sumr_ge0 => j _; apply: capacity_ge0.
have gained s : s \in S -> g * (part m s * V s) <= u s.
  move=> sS; have -> : g * (part m s * V s) = g * fair_share m s / low s by rewrite fair_shareE /V /own !mulrA.
  rewrite /u /own ler_pmul2r ?invr_gt0 //.
  by apply: le_trans (gain s sS); apply: ler_wpmul2l => //; exact: fair.
have counted s : u s <= r * count (y s) by apply: own_le.
have left_by l s : s \in S -> l \notin S -> weight m l / weight m s * u s <= r ^+ 2 * own s (y l).
  move=> sS lS; have q0 : 0 <= weight m l / weight m s by rewrite divr_ge0 ?weight_ge0.
  have kept : weight m l / weight m s * count (y s) <= own l (y l).
    apply: (@le_trans _ _ (weight m l / weight m s * own l (y s))).
      by apply: ler_wpmul2l => //; apply: own_ge.
    by rewrite /own mulrA ler_pmul2r ?invr_gt0 //; apply: no_envy.
  apply: (@le_trans _ _ (r * (weight m l / weight m s * count (y s)))).
    by rewrite [r * _]mulrCA; apply: ler_wpmul2l.
  rewrite expr2 -[leRHS]mulrA; apply: ler_wpmul2l => //.
  apply: le_trans kept _; apply: le_trans (own_le l (y0 l)) _.
  by apply: ler_wpmul2l => //; apply: own_ge.
have whole s : \sum_l own s (y l) <= V s.
  rewrite -mulr_suml /V /own ler_pmul2r ?invr_gt0 //.
  by rewrite (value_capacity m s y) ler_addl; apply: value_ge0 => j; apply: left_over_ge0.
have parts s : s \in S -> \sum_(l | l \notin S) (weight m l / weight m s) = (1 - part_of) / part m s.
  move=> sS; rewrite -mulr_suml -/others (part_ofE i) /part; field.
  by rewrite weight_neq0 (total_weight_neq0 m i).
pose all := \sum_(s in S) V s.
have each s : s \in S -> g * (r ^+ 2 * p * V s + (1 - part_of) * V s + r * p * (all - V s)) <= r ^+ 2 * V s.
  move=> sS.
  have rest : g * ((1 - part_of) * V s) <= r ^+ 2 * \sum_(l | l \notin S) own s (y l).
    apply: (@le_trans _ _ (\sum_(l | l \notin S) (weight m l / weight m s * u s))); last first.
      by rewrite mulr_sumr; apply: ler_sum => l lS; apply: left_by.
    rewrite -mulr_suml parts //.
    have -> : g * ((1 - part_of) * V s) = (1 - part_of) / part m s * (g * (part m s * V s)).
      by field; rewrite gt_eqF ?part_gt0.
    by apply: ler_wpmul2l; [rewrite divr_ge0 ?subr_ge0 ?(part_of_le1 i) ?(ltW (part_gt0 m s)) | apply: gained].
  have mine : g * (r ^+ 2 * p * V s) <= r ^+ 2 * own s (y s).
    have -> : g * (r ^+ 2 * p * V s) = r ^+ 2 * (g * (p * V s)) by ring.
    apply: ler_wpmul2l; first exact: exprn_ge0.
    apply: le_trans (gained s sS); apply: ler_wpmul2l => //.
    by apply: ler_wpmul2r; [apply: ltW | apply: least].
  have theirs : g * (r * p * (all - V s)) <= r ^+ 2 * \sum_(l in S | l != s) own s (y l).
    have -> : all - V s = \sum_(l in S | l != s) V l by rewrite /all (bigD1 s) //= addrAC subrr add0r.
    rewrite !mulr_sumr; apply: ler_sum => l /andP[lS _].
    apply: (@le_trans _ _ (r * u l)); last first.
      rewrite expr2 -[leRHS]mulrA; apply: ler_wpmul2l => //; apply: le_trans (counted l) _.
      by apply: ler_wpmul2l => //; apply: own_ge.
    have -> : g * (r * p * V l) = r * (g * (p * V l)) by ring.
    apply: ler_wpmul2l => //; apply: le_trans (gained l lS).
    by apply: ler_wpmul2l => //; apply: ler_wpmul2r; [apply: ltW | apply: least].
  have -> : g * (r ^+ 2 * p * V s + (1 - part_of) * V s + r * p * (all - V s)) =
    g * (r ^+ 2 * p * V s) + g * (r * p * (all - V s)) + g * ((1 - part_of) * V s) by ring.
  apply: le_trans (ler_add (ler_add mine theirs) rest) _.
  rewrite -mulrDr -mulrDr; apply: ler_wpmul2l; first exact: exprn_ge0.
  by apply: le_trans (whole s); rewrite members_and_others [in leRHS](bigD1 s).
have all0 : 0 < all by rewrite /all (bigD1 i) //= ltr_paddr // sumr_ge0 // => s _; apply: ltW.
rewrite -(ler_pmul2r all0).
have summed : \sum_(s in S) g * (r ^+ 2 * p * V s + (1 - part_of) * V s + r * p * (all - V s)) <=
  \sum_(s in S) r ^+ 2 * V s by apply: ler_sum => s; apply: each.
rewrite -[leRHS]mulr_sumr -/all in summed; apply: le_trans summed; apply: le_of_eq.
rewrite -mulr_sumr !big_split /= -!mulr_sumr sumrB sumr_const -/all -[all *+ _]mulr_natl.
by move: (#|S|%:R : R) => c; ring.
Qed.

End NoEnvy.
(** ** Equal throughput, speedups from 1 to [r]

    The liars keep a part of what the lie gave them, and hand the rest to the others, to whom each GPU is worth 1 or
    more: all then reach a level that the truth's is not below. *)

Lemma reached_level t tau x y : largest_level m t x -> feasible m y -> reaches m tau y -> 0 <= tau -> tau <= t.
Proof. by move=> [_ [_ best]] fy reach tau0; have [z fz lev] := hold_down fy reach tau0; apply: best fz lev. Qed.

Lemma count_le_value (w : market R n k) l b :
  (forall j, 1 <= speedup w l j) -> (forall j, 0 <= b j) -> \sum_j b j <= value w l b.
Proof. by move=> one b0; apply: ler_sum => j _; rewrite ler_pemull. Qed.

(** [h] is what all in [S] reach in y for each unit of weight, [t'] what the others do. *)
Lemma level_kept r t t' h x y i :
  i \in S -> 1 <= r -> (forall l j, 1 <= speedup m l j) -> (forall s, s \in S -> forall j, speedup m s j <= r) ->
  largest_level m t x -> feasible m y -> (forall l, l \notin S -> utility m y l = weight m l * t') ->
  \sum_(s in S) \sum_j y s j <= (\sum_(s in S) weight m s) * t' -> 0 <= h ->
  (forall s, s \in S -> weight m s * h <= utility m y s) ->
  h <= (r * (1 - part_of) + part_of) * t.
Proof.
move=> iS r1 one most opt fy atl told h0 gain; have [y0 yc] := fy; set P := part_of; set F := r * (1 - P) + P.
have P1 : P <= 1 by apply: (part_of_le1 i).
have F1 : 1 <= F by rewrite /F -[X in X <= _](subrK P) ler_add2r ler_pemull ?subr_ge0.
have W0 : 0 < total_weight m by apply: (total_weight_gt0 m i).
pose held j := \sum_(s in S) y s j.
pose A := \sum_j held j.
pose wS := \sum_(s in S) weight m s.
have wS0 : 0 < wS by rewrite /wS (bigD1 i) //= ltr_paddr ?weight_gt0 // sumr_ge0 // => s _; apply: weight_ge0.
have held0 j : 0 <= held j by apply: sumr_ge0 => s _.
have A0 : 0 <= A by apply: sumr_ge0.
have AE : A = \sum_(s in S) \sum_j y s j by rewrite /A exchange_big.
have At : A <= wS * t' by rewrite AE.
have hA : wS * h <= r * A.
  rewrite AE /wS mulr_suml mulr_sumr; apply: ler_sum => s sS; apply: le_trans (gain s sS) _.
  by rewrite /utility /value mulr_sumr; apply: ler_sum => j _; rewrite ler_wpmul2r ?most.
have t0 : 0 <= t.
  have [[x0 _] [at_t _]] := opt; have := @utility_ge0 _ _ _ m x i (x0 i).
  by rewrite at_t pmulr_rge0 ?weight_gt0.
case: (boolP ((h <= t') || (others == 0))) => [simple|].
  apply: (@le_trans _ _ t); last by rewrite ler_pemull.
  apply: (reached_level opt fy) => // l; case: (boolP (l \in S)) => [|out]; first exact: gain.
  case/orP: simple => [ht|/eqP r0]; last by have := others_gt0 out; rewrite r0 ltxx.
  by rewrite atl // ler_wpmul2l ?weight_ge0.
rewrite negb_or -ltNge => /andP[th restn0].
have rest0 : 0 < others by rewrite lt_neqAle eq_sym restn0 others_ge0.
pose c := A / others.
have c0 : 0 <= c by rewrite divr_ge0 // ltW.
have t'0 : 0 <= t' by rewrite -(pmulr_rge0 _ wS0); apply: le_trans At.
have hpos : 0 < h by apply: le_lt_trans th.
have hc0 : 0 < h + c by rewrite ltr_paddr.
pose tau := (t' + c) / (h + c).
have tauE : tau * (h + c) = t' + c by rewrite /tau divfK // gt_eqF.
have tauh : tau * h = t' + (1 - tau) * c by apply: (addIr (tau * c)); rewrite -mulrDr tauE; ring.
have tau0 : 0 <= tau by rewrite divr_ge0 ?addr_ge0 // ltW.
have tau1 : tau <= 1 by rewrite ler_pdivr_mulr // mul1r ler_add2r ltW.
pose z l j := if l \in S then tau * y l j else y l j + (1 - tau) * (weight m l / others) * held j.
have give0 l : 0 <= (1 - tau) * (weight m l / others).
  by rewrite mulr_ge0 ?subr_ge0 // divr_ge0 ?weight_ge0 // ltW.
have fz : feasible m z.
  split=> [l j|j]; rewrite /z.
    by case: ifP => _; [exact: mulr_ge0 | apply: addr_ge0; [exact: y0 | apply: mulr_ge0]].
  apply: le_trans (yc j); rewrite /given (members_and_others _) [leRHS](members_and_others _).
  rewrite (eq_bigr (fun s => tau * y s j)) => [|s ->] //.
  rewrite [X in _ + X <= _](eq_bigr (fun l => y l j + (1 - tau) * (weight m l / others) * held j)); last first.
    by move=> l /negbTE->.
  rewrite big_split /= addrCA [leRHS]addrC ler_add2l -mulr_sumr -mulr_suml -mulr_sumr -mulr_suml -/(others).
  by rewrite divff // mulr1 -/(held j) -mulrDl addrC subrK mul1r.
have level : tau * h <= t.
  apply: (reached_level opt fz) => [l|]; last exact: mulr_ge0.
  rewrite /utility /z; case: (boolP (l \in S)) => [lS|out].
    by rewrite valueZ mulrCA; apply: ler_wpmul2l => //; apply: gain.
  rewrite valueD valueZ -/(utility m y l) atl //.
  apply: (@le_trans _ _ (weight m l * t' + (1 - tau) * (weight m l / others) * A)); last first.
    by rewrite ler_add2l ler_wpmul2l // count_le_value.
  by apply: le_of_eq; rewrite tauh /c; field.
have Apos : 0 < A.
  by rewrite -(pmulr_rgt0 _ (lt_le_trans ltr01 r1)); apply: lt_le_trans hA; apply: mulr_gt0.
have tc0 : 0 < t' + c by rewrite ltr_paddl // divr_gt0.
have bound : h + c <= F * (t' + c).
  have least : A / wS <= t' by rewrite ler_pdivr_mulr // mulrC.
  apply: (@le_trans _ _ (F * (A / wS + c))); last by rewrite ler_wpmul2l ?ler_add2r // (le_trans ler01).
  have -> : F * (A / wS + c) = r * A / wS + c.
    have PE : P = wS / total_weight m by rewrite /P /part_of /wS mulr_suml.
    have QE : 1 - P = others / total_weight m by apply: part_ofE.
    have TE : total_weight m = wS + others by rewrite /total_weight (members_and_others _).
    have T0 : wS + others != 0 by rewrite -TE lt0r_neq0.
    rewrite /F QE PE TE /c; field.
    by rewrite T0 restn0 lt0r_neq0.
  by rewrite ler_add2r ler_pdivl_mulr // mulrC.
rewrite -(ler_pmul2r tc0); apply: (@le_trans _ _ (t * (h + c))).
  by rewrite -tauE mulrA [h * tau]mulrC; apply: ler_wpmul2r; [apply: ltW | apply: level].
by rewrite [F * t]mulrC -mulrA; apply: ler_wpmul2l.
Qed.

(** ** Max-min

    [h] is what all in [S] have in y, over their fair shares, of which the others have at least one.  All keep the part
    tau of their bundles, and 1 - tau of the whole cluster is divided among the others. *)
Lemma ratio_kept t h x y (i : 'I_n) :
  gavel m t x -> feasible m y -> (forall l, l \notin S -> fair_share m l <= utility m y l) -> 0 <= h ->
  (forall s, s \in S -> h * fair_share m s <= utility m y s) ->
  h <= ((1 - part_of) * h + part_of) * t.
Proof.
move=> [fx [ratio best]] fy fair_others h0 gain; have [y0 yc] := fy; set P := part_of.
have W0 : 0 < total_weight m by apply: (total_weight_gt0 m i).
have q0 : 0 <= 1 - P by rewrite subr_ge0 /P (part_of_le1 i).
have P0 : 0 <= P by apply: part_of_ge0.
have t1 : 1 <= t.
  by apply: best (equal_split_feasible m) _ => l; rewrite mul1r.
have t0 : 0 <= t by apply: le_trans t1.
have d0 : 0 <= (1 - P) * h + P by rewrite addr_ge0 // mulr_ge0.
case: (lerP h 1) => [h1|h1].
  apply: (@le_trans _ _ ((1 - P) * h + P)); last by rewrite ler_pemulr.
  rewrite -subr_ge0; have -> : (1 - P) * h + P - h = P * (1 - h) by ring.
  by rewrite mulr_ge0 ?subr_ge0.
pose d := (1 - P) * h + P.
have d1 : 1 <= d.
  by rewrite /d -[X in X <= _](subrK P) ler_add2r ler_pemulr // ltW.
have dpos : 0 < d by apply: lt_le_trans d1.
pose tau := d^-1.
have tau0 : 0 <= tau by rewrite invr_ge0 ltW.
have tau1 : tau <= 1 by rewrite invf_le1.
have taud : tau * d = 1 by rewrite mulVf // gt_eqF.
pose z l j := if l \in S then tau * y l j else tau * y l j + (1 - tau) * (weight m l / others) * capacity m j.
have rest0 : 0 <= others by apply: others_ge0.
have give0 l : 0 <= (1 - tau) * (weight m l / others) by rewrite mulr_ge0 ?subr_ge0 // divr_ge0 ?weight_ge0.
have fz : feasible m z.
  split=> [l j|j]; rewrite /z.
    case: ifP => _; first exact: mulr_ge0.
    by apply: addr_ge0; apply: mulr_ge0 => //; apply: capacity_ge0.
  rewrite /given (members_and_others _) (eq_bigr (fun s => tau * y s j)) => [|s ->] //.
  rewrite [X in _ + X <= _](eq_bigr (fun l => tau * y l j + (1 - tau) * (weight m l / others) * capacity m j));
    last by move=> l /negbTE->.
  rewrite big_split /= addrA -!mulr_sumr -mulrDr -(members_and_others (fun l => y l j)) -!mulr_suml -mulr_sumr.
  apply: (@le_trans _ _ (tau * capacity m j + (1 - tau) * capacity m j)); last by rewrite -mulrDl addrC subrK mul1r.
  apply: ler_add; first by apply: ler_wpmul2l => //; apply: yc.
  rewrite -mulr_suml -/(others); have [->|rn0] := eqVneq (others) 0.
    by rewrite invr0 mulr0 mulr0 mul0r mulr_ge0 ?subr_ge0 ?capacity_ge0.
  by rewrite divff // mulr1.
have level : tau * h <= t.
  apply: best fz _ => l; rewrite /utility /z; case: (boolP (l \in S)) => [lS|out].
    by rewrite valueZ -mulrA; apply: ler_wpmul2l => //; apply: gain.
  have rpos := others_gt0 out.
  rewrite valueD !valueZ -/(utility m y l).
  apply: (@le_trans _ _ (tau * fair_share m l + (1 - tau) * (weight m l / others) * value m l (capacity m)));
    last by rewrite ler_add2r; apply: ler_wpmul2l => //; apply: fair_others.
  have QE : 1 - P = others / total_weight m by apply: (part_ofE i).
  have qn0 : 1 - P != 0 by rewrite QE mulf_neq0 ?invr_eq0 ?lt0r_neq0.
  have -> : tau * h = tau + (1 - tau) / (1 - P).
    apply: (mulIf qn0); rewrite [RHS]mulrDl [X in _ = _ + X]divfK //.
    have -> : tau * h * (1 - P) = tau * d - tau * P by rewrite /d; ring.
    by rewrite taud; ring.
  apply: le_of_eq; rewrite [LHS]mulrDl; congr (_ + _); rewrite fair_shareE /part QE; field.
  by rewrite !lt0r_neq0.
have : d * (tau * h) <= d * t by apply: ler_wpmul2l => //; apply: ltW.
by rewrite mulrA [d * tau]mulrC taud mul1r.
Qed.

End Coalition.

Section Lies.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (S : {set 'I_n}).
Implicit Types (x y : allocation R n k) (i l s : 'I_n) (j : 'I_k).
Hypothesis lie : lie_of_all S m m'.

Lemma honest_worth l (b : bundle R k) : l \notin S -> value m' l b = value m l b.
Proof. by case: lie => _ _ same out; apply: eq_bigr => j _; rewrite same. Qed.

Lemma told_feasible y : feasible m' y -> feasible m y.
Proof. by case: lie => _ cap _ [y0 yc]; split=> // j; rewrite -cap. Qed.

Lemma same_total : total_weight m' = total_weight m.
Proof. by case: lie => same _ _; apply: eq_bigr => l _; rewrite same. Qed.

(** Cooperative OEF, whatever is reported, and whatever optima are chosen. *)
Theorem cooperative_oef_coalition_ratio r low g p x y i :
  1 <= r -> (forall l, 0 < low l) -> (forall l j, low l <= speedup m l j <= r * low l) ->
  i \in S -> (exists j, 0 < capacity m j) -> 0 <= g -> 0 <= p -> (forall s, s \in S -> p <= part m s) ->
  cooperative_oef m x -> cooperative_oef m' y -> (forall s, s \in S -> g * utility m x s <= utility m y s) ->
  g * (r ^+ 2 * p + r * ((#|S|)%:R - 1) * p + (1 - part_of m S)) <= r ^+ 2.
Proof.
move=> r1 low0 range iS some g0 p0 least opt [[fy ef] _] gain.
have [_ fair _] := cooperative_oef_sharing_incentive opt.
apply: (envy_free_coalition_ratio r1 low0 range iS some g0 p0 least (told_feasible fy) _ _ gain) => [s l _ lS|s _].
  by have [same _ _] := lie; have := ef l s; rewrite !same /utility !honest_worth.
exact: fair.
Qed.

(** Non-cooperative OEF: [h] is what all liars reach by their true speedups, for each unit of weight. *)
Theorem noncooperative_oef_coalition_ratio r t t' h x y i :
  i \in S -> 1 <= r -> (forall l j, 1 <= speedup m l j) -> (forall s, s \in S -> forall j, speedup m s j <= r) ->
  (forall s, s \in S -> forall j, 1 <= speedup m' s j) ->
  largest_level m t x -> largest_level m' t' y -> 0 <= h ->
  (forall s, s \in S -> weight m s * h <= utility m y s) ->
  h <= (r * (1 - part_of m S) + part_of m S) * t.
Proof.
move=> iS r1 one most told opt [fy' [lev _]] h0 gain; have fy := told_feasible fy'; have [sameW _ _] := lie.
apply: (level_kept iS r1 one most opt fy _ _ h0 gain) => [l out|].
  by rewrite /utility -(honest_worth _ out) -sameW; apply: lev.
rewrite mulr_suml; apply: ler_sum => s sS; rewrite -sameW -lev; apply: count_le_value; first exact: told.
exact: fy.1.
Qed.

(** The others have their fair shares by what they tell. *)
Lemma others_fair t' y l : gavel m' t' y -> l \notin S -> fair_share m l <= utility m y l.
Proof.
move=> [_ [ratio best]] out; have [sameW sameC _] := lie.
have -> : fair_share m l = fair_share m' l.
  rewrite !fair_shareE /part same_total sameW honest_worth //; congr (_ * _).
  by apply: eq_bigr => j _; rewrite sameC.
by rewrite /utility -honest_worth //; apply: gavel_sharing_incentive ratio best l.
Qed.

(** Max-min: [h] is what all liars have after the lie, over their fair shares. *)
Theorem gavel_coalition_ratio t t' h x y (i : 'I_n) :
  gavel m t x -> gavel m' t' y -> 0 <= h -> (forall s, s \in S -> h * fair_share m s <= utility m y s) ->
  h <= ((1 - part_of m S) * h + part_of m S) * t.
Proof.
move=> opt opt' h0 gain; apply: (ratio_kept i opt (told_feasible opt'.1) _ h0 gain) => l; exact: others_fair opt'.
Qed.

(** With p the part of a liar, P that of all liars, (1 - P) / p + P at most. *)
Theorem gavel_coalition_ratio_at_most t t' g x y i :
  i \in S -> 0 < fair_share m i -> gavel m t x -> gavel m' t' y -> 0 <= g ->
  (forall s, s \in S -> g * utility m x s <= utility m y s) ->
  part m i * g <= 1 - part_of m S + part m i * part_of m S.
Proof.
move=> iS f0 opt opt' g0 gain; have fy := told_feasible opt'.1.
have [fx [ratio best]] := opt; set P := part_of m S; set p := part m i.
have t1 : 1 <= t by apply: best (equal_split_feasible m) _ => l; rewrite mul1r.
have tpos : 0 < t by apply: lt_le_trans t1.
have p0 : 0 < p by apply: part_gt0.
have q0 : 0 <= 1 - P by rewrite subr_ge0 /P (part_of_le1 m S i).
have reach s : s \in S -> g * t * fair_share m s <= utility m y s.
  by move=> sS; apply: le_trans (gain s sS); rewrite -mulrA; apply: ler_wpmul2l => //; apply: ratio.
have := gavel_coalition_ratio i opt opt' (mulr_ge0 g0 (ltW tpos)) reach.
rewrite ler_pmul2r // -/P => bound.
have most : p * (g * t) <= 1.
  rewrite -(ler_pmul2r f0) mul1r -mulrA; apply: (@le_trans _ _ (p * utility m y i)).
    by rewrite ler_pmul2l //; apply: reach.
  rewrite fair_shareE ler_pmul2l // (value_capacity m i y) (bigD1 i) //= -addrA ler_addl addr_ge0 //.
    by apply: sumr_ge0 => l _; apply: value_ge0; apply: fy.1.
  by apply: value_ge0 => j; apply: left_over_ge0.
apply: (@le_trans _ _ (p * ((1 - P) * (g * t) + P))); first by rewrite ler_pmul2l.
by rewrite mulrDr ler_add2r mulrCA ler_pimulr.
Qed.

End Lies.
