(** * Envy-freeness, sharing-incentive and cooperative OEF: OEF Theorem 5.1 *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section SharingIncentive.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k) (i l : 'I_n) (j : 'I_k).

(** The bundles given out and what is left over make up the capacities. *)
Lemma value_capacity i x :
  value m i (capacity m) = \sum_l value m i (x l) + value m i (left_over m x).
Proof.
rewrite -value_given -valueD; apply: eq_bigr => j _.
by rewrite /left_over addrCA subrr addr0.
Qed.

(** Nobody's envy is needed but the user's own, and nothing about what is left over: user [i] misses its fair share by
    no more than its part of the value that the leftovers have for it.  The proof is that of OEF Theorem 5.1: sum up
    pi_l times "i does not envy l" over all l, l = i included. *)
Theorem envy_free_gap x i :
  (forall l, weight m i / weight m l * value m i (x l) <= utility m x i) ->
  fair_share m i - part m i * value m i (left_over m x) <= utility m x i.
Proof.
move=> ef; rewrite fair_shareE (value_capacity i x) mulrDr addrK.
have -> : utility m x i = part m i * \sum_l (weight m l / weight m i * utility m x i).
  rewrite -mulr_suml -mulr_suml -/(total_weight m) /part.
  by field; rewrite weight_neq0 (total_weight_neq0 m i).
rewrite ler_pmul2l ?part_gt0 //; apply: ler_sum => l _.
have := ef l; rewrite -(ler_pmul2l (_ : 0 < weight m l / weight m i)) ?divr_gt0 ?weight_gt0 // => le.
apply: le_trans le; rewrite le_eqVlt; apply/orP; left; apply/eqP.
by field; rewrite !weight_neq0.
Qed.

(** So a user that envies nobody and has no use for what is left over has its fair share. *)
Theorem sharing_incentive_of_one x i :
  (forall l, weight m i / weight m l * value m i (x l) <= utility m x i) ->
  value m i (left_over m x) <= 0 ->
  fair_share m i <= utility m x i.
Proof.
move=> ef none; apply: le_trans (envy_free_gap ef).
by rewrite ler_addl oppr_ge0 mulr_ge0_le0 // ltW ?part_gt0.
Qed.

(** Envy-free, and nothing left over that anybody can use: sharing-incentive. *)
Theorem envy_free_sharing_incentive x :
  envy_free m x -> nothing_left_over m x -> sharing_incentive m x.
Proof.
move=> ef none i; apply: sharing_incentive_of_one => [l|]; first exact: ef.
apply: le_of_eq; apply: big1 => j _; move: (speedup_ge0 m i j).
by rewrite le_eqVlt => /predU1P[<-|/none e]; rewrite ?mul0r // /left_over e subrr mulr0.
Qed.

(** Handing out the leftovers to all, by weight. *)
Definition hand_out x : allocation R n k := fun i j => x i j + part m i * left_over m x j.

Lemma hand_out_utility x i l :
  value m i (hand_out x l) = value m i (x l) + part m l * value m i (left_over m x).
Proof. by rewrite /hand_out valueD valueZ. Qed.

Lemma hand_out_given x j (i : 'I_n) : given (hand_out x) j = capacity m j.
Proof.
rewrite /given big_split /= -mulr_suml (sum_part m i) mul1r.
by rewrite /left_over addrCA subrr addr0.
Qed.

Lemma hand_out_feasible x : feasible m x -> feasible m (hand_out x).
Proof.
move=> fx; have [x0 xc] := fx; split=> [i j|j].
  by rewrite addr_ge0 // mulr_ge0 ?left_over_ge0 // ltW ?part_gt0.
case: (posnP n) => [n0|npos]; last by rewrite (hand_out_given x j (Ordinal npos)).
by rewrite /given big1 ?capacity_ge0 // => i; have := ltn_ord i; rewrite {2}n0.
Qed.

(** It raises nobody's envy: each sees every bundle grow by the same value for each unit of weight. *)
Lemma hand_out_envy_free x : envy_free m x -> envy_free m (hand_out x).
Proof.
move=> ef i l; rewrite /utility !hand_out_utility mulrDr; apply: ler_add; first exact: ef.
apply: le_of_eq; rewrite /part; field.
by rewrite weight_neq0 (total_weight_neq0 m i).
Qed.

Lemma hand_out_total x :
  total m (hand_out x) = total m x + \sum_i part m i * value m i (left_over m x).
Proof. by rewrite /total -big_split; apply: eq_bigr => i _; rewrite /utility hand_out_utility. Qed.

(** Every optimum of cooperative OEF leaves nothing over that anybody can use. *)
Theorem cooperative_oef_nothing_left_over x : cooperative_oef m x -> nothing_left_over m x.
Proof.
case=> -[fx ef] best; apply/(left_over_value0 fx) => i.
have := best _ (conj (hand_out_feasible fx) (hand_out_envy_free ef)).
have term l : 0 <= part m l * value m l (left_over m x).
  by rewrite mulr_ge0 ?value_ge0 // => [|j]; rewrite ?left_over_ge0 // ltW ?part_gt0.
rewrite hand_out_total ger_addl => le0.
have: \sum_l part m l * value m l (left_over m x) == 0 by rewrite eq_le le0 sumr_ge0.
rewrite psumr_eq0 // => /allP/(_ i); rewrite mem_index_enum => /(_ isT).
by rewrite mulf_eq0 gt_eqF ?part_gt0 //= => /eqP.
Qed.

(** OEF Theorem 5.1: it is envy-free, sharing-incentive and most efficient among what is envy-free. *)
Theorem cooperative_oef_sharing_incentive x :
  cooperative_oef m x ->
  [/\ envy_free m x, sharing_incentive m x & forall y, feasible m y -> envy_free m y -> total m y <= total m x].
Proof.
move=> opt; have [[fx ef] best] := opt; split=> // [|y fy ey]; last exact: best.
exact: envy_free_sharing_incentive ef (cooperative_oef_nothing_left_over opt).
Qed.

(** ** Gavel's max-min

    Gavel (OSDI 2020, Sec. 4.1) maximises the least ratio t of a user's efficiency to its fair share.  The equal split
    has t = 1, so the maximum is sharing-incentive, as OEF Sec. 2.4 says. *)
Definition least_ratio (t : R) x : Prop := forall i, t * fair_share m i <= utility m x i.

Theorem gavel_sharing_incentive x (t : R) :
  least_ratio t x -> (forall y t', feasible m y -> least_ratio t' y -> t' <= t) -> sharing_incentive m x.
Proof.
move=> ratio best i.
have t1 : 1 <= t by apply: best (equal_split_feasible m) _ => l; rewrite mul1r.
apply: le_trans (ratio i); rewrite ler_pemull // value_ge0 // => j.
by rewrite mulr_ge0 ?capacity_ge0 // ltW ?(part_gt0 m).
Qed.

(** How far above it the total of any sharing-incentive allocation can be, such as that of cooperative OEF.  [lambda] and
    [price] with [t] are an optimum of the dual of Gavel's program, in units in which the least [lambda] is 1: multiply
    each user's fair share, a lower bound, by [lambda i - 1] and add up. *)
Theorem sharing_incentive_above_gavel x y (t : R) (lambda : 'I_n -> R) (price : 'I_k -> R) :
  (forall i, 1 <= lambda i) -> (forall j, 0 <= price j) -> (forall i j, lambda i * speedup m i j <= price j) ->
  \sum_j price j * capacity m j <= t * (\sum_i lambda i * fair_share m i) ->
  least_ratio t y -> feasible m x -> sharing_incentive m x ->
  total m x <= total m y + (t - 1) * (\sum_i (lambda i - 1) * fair_share m i).
Proof.
move=> lambda1 price0 enough dual ratio [x0 xc] si.
have spent : \sum_i lambda i * utility m x i <= t * (\sum_i lambda i * fair_share m i).
  apply: le_trans dual; apply: (@le_trans _ _ (\sum_j price j * given x j)); last first.
    by apply: ler_sum => j _; apply: ler_wpmul2l.
  have -> : \sum_j price j * given x j = \sum_i \sum_j price j * x i j.
    by rewrite exchange_big; apply: eq_bigr => j _; rewrite mulr_sumr.
  apply: ler_sum => i _; rewrite /utility /value mulr_sumr; apply: ler_sum => j _.
  by rewrite mulrA ler_wpmul2r.
have above : \sum_i (lambda i - 1) * fair_share m i <= \sum_i (lambda i - 1) * utility m x i.
  by apply: ler_sum => i _; apply: ler_wpmul2l; rewrite ?subr_ge0.
have level : t * (\sum_i fair_share m i) <= total m y.
  by rewrite mulr_sumr; apply: ler_sum => i _; apply: ratio.
have parts (u : 'I_n -> R) : \sum_i (lambda i - 1) * u i = \sum_i lambda i * u i - \sum_i u i.
  by rewrite -sumrB; apply: eq_bigr => i _; rewrite mulrBl mul1r.
move: above spent level; rewrite !parts -/(total m x).
move: (total m x) (total m y) (\sum_i lambda i * utility m x i) (\sum_i lambda i * fair_share m i).
move: (\sum_i fair_share m i) => F a b u l above spent level.
rewrite -subr_ge0; have -> : b + (t - 1) * (l - F) - a = (b - t * F) + (t * l - u) + (u - a - (l - F)) by ring.
by apply: addr_ge0; first apply: addr_ge0; rewrite subr_ge0.
Qed.

End SharingIncentive.

(** ** Two users

    Among two users who hold everything, not to envy the other is to have one's fair share.  Fair shares are lower bounds
    on utilities, which a dominating allocation respects.  So with two users, and any number of types, cooperative OEF is
    Pareto-efficient: OEF Theorem 5.3.  With three it need not be: see [Counterexamples.v]. *)
Section TwoUsers.
Variables (R : realFieldType) (k : nat) (m : market R 2 k).
Implicit Types (x y : allocation R 2 k) (i l : 'I_2).

Lemma two_envy_free x :
  (forall j, given x j = capacity m j) -> sharing_incentive m x -> envy_free m x.
Proof.
move=> full si i l; case: (eqVneq i l) => [<-|il]; first by rewrite divff ?weight_neq0 // mul1r.
have split2 (f : 'I_2 -> R) : \sum_a f a = f i + f l.
  rewrite (bigD1 i) //=; congr (_ + _); rewrite (bigD1 l) ?(eq_sym l) //= big1 ?addr0 // => a /andP[ai al].
  by case: (i) (l) (a) il ai al => [[|[|?]] ?] [[|[|?]] ?] [[|[|?]] ?].
have := si i; rewrite fair_shareE /part (value_capacity m i x) !split2 => le.
have zero : value m i (left_over m x) = 0.
  by apply: big1 => j _; rewrite /left_over full subrr mulr0.
move: le; rewrite zero addr0 /total_weight split2 => le.
have sum_gt0 : 0 < weight m i + weight m l by rewrite addr_gt0 ?weight_gt0.
rewrite mulrAC ler_pdivr_mulr ?weight_gt0 //.
move: le; rewrite mulrAC ler_pdivr_mulr // mulrDr mulrDr -/(utility m x i).
by rewrite (mulrC (utility _ _ _) (weight m i)) ler_add2l.
Qed.

Theorem two_users_pareto_efficient x : cooperative_oef m x -> pareto_efficient m x.
Proof.
move=> opt; have [[fx ef] best] := opt; split=> // y fy dom i.
have [_ si _] := cooperative_oef_sharing_incentive opt.
pose z := hand_out m y.
have up l : utility m y l <= utility m z l.
  rewrite /utility hand_out_utility ler_addl mulr_ge0 ?value_ge0 // => [|j]; last exact: left_over_ge0.
  by rewrite ltW ?part_gt0.
have fz : feasible m z by apply: hand_out_feasible.
have ez : envy_free m z.
  apply: two_envy_free => [j|l]; first exact: hand_out_given i.
  by apply: le_trans (si l) _; apply: le_trans (dom l) (up l).
have /(_ z (conj fz ez)) tot := best.
rewrite leNgt; apply/negP => more; move: tot; rewrite leNgt => /negP[].
rewrite /total (bigD1 i) //= [ltRHS](bigD1 i) //=; apply: ltr_le_add.
  exact: lt_le_trans (up i).
by apply: ler_sum => l _; apply: le_trans (dom l) (up l).
Qed.

End TwoUsers.
