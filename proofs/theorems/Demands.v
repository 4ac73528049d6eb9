(** * Demands and bounds on shares: what remains true of non-cooperative OEF

    [allowed] says which allocations are possible.  Nothing is assumed of it but that shares are not negative and that who
    may hold some bundles may hold parts of them: so it is with capacities, with demands (a user uses so many GPUs at once
    at most), with Gavel's bound on a user's shares, and with all of them together.  Who claims too much then gains
    nothing, as without demands: OEF Theorem 5.4.

    What is not true with demands the row own-demands of the ledger says, with markets: sharing incentive in Theorem 5.1,
    Theorems 5.2 and 5.3, and the bound of Sec. 4.4. *)

From mathcomp Require Import all_ssreflect all_algebra.
From FairSharing Require Import Market Duality EqualEfficiency.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Allowed.
Variables (R : realFieldType) (n k : nat) (allowed : allocation R n k -> Prop).
Hypothesis allowed_ge0 : forall x, allowed x -> forall i j, 0 <= x i j.
Hypothesis parts_allowed : forall x (keep : 'I_n -> R),
  allowed x -> (forall i, 0 <= keep i <= 1) -> allowed (fun i j => keep i * x i j).
Implicit Types (m : market R n k) (x y z : allocation R n k) (t : R) (i l : 'I_n) (liars : pred 'I_n).

(** Eq. (9) among what is allowed, with the common level as a variable. *)
Definition largest_level_allowed m t x : Prop :=
  allowed x /\ at_level m t x /\ forall y t', allowed y -> at_level m t' y -> t' <= t.

Lemma hold_down_allowed m t y :
  allowed y -> reaches m t y -> 0 <= t -> exists2 z, allowed z & at_level m t z.
Proof.
move=> ay reach t0; pose keep i := weight m i * t / utility m y i.
have u0 i : 0 <= utility m y i by apply: utility_ge0; apply: allowed_ge0.
have keep01 i : 0 <= keep i <= 1.
  rewrite divr_ge0 //=; last by rewrite mulr_ge0 ?weight_ge0.
  have := u0 i; rewrite le_eqVlt => /predU1P[e|pos]; first by rewrite /keep -e invr0 mulr0 ler01.
  by rewrite ler_pdivr_mulr // mul1r.
exists (fun i j => keep i * y i j); first exact: parts_allowed.
move=> i; rewrite /utility valueZ -/(utility m y i) /keep.
case: (eqVneq (utility m y i) 0) => [e|ne]; last by rewrite divfK.
rewrite e mulr0; apply/eqP; rewrite eq_le {1}mulr_ge0 ?weight_ge0 //=.
by rewrite -e; apply: reach.
Qed.

(** No allocation that is allowed lifts all above the largest level. *)
Lemma largest_level_allowed_not_exceeded m t x y i :
  largest_level_allowed m t x -> allowed y -> ~ (forall l, weight m l * t < utility m y l).
Proof.
case=> ax [lev best] ay /(all_above i)[t' tt' reach].
have t0 : 0 <= t.
  by rewrite -(pmulr_rge0 _ (weight_gt0 m i)) -lev; apply: utility_ge0; apply: allowed_ge0.
have [|z az levz] := hold_down_allowed ay reach; first exact: le_trans (ltW tt').
by have := best _ _ az levz; rewrite leNgt tt'.
Qed.

(** OEF Theorem 5.4 for reports nowhere smaller than the truth: even together, liars cannot all gain. *)
Theorem over_reporting_allowed liars m m' t t' x x' i0 :
  over_reports liars m m' -> largest_level_allowed m t x -> largest_level_allowed m' t' x' -> liars i0 ->
  exists2 i, liars i & value m i (x' i) <= utility m x i.
Proof.
move=> lie opt [ax' [lev' _]] li0; have [ax [lev _]] := opt; have [wt _ _ _] := lie.
case: (boolP [exists i, liars i && (value m i (x' i) <= utility m x i)]) => [/existsP[i /andP[]]|].
  by exists i.
rewrite negb_exists => /forallP all_gain.
have gain i : liars i -> weight m i * t < value m i (x' i).
  by move=> li; have := all_gain i; rewrite li /= -ltNge lev.
have tt' : t < t'.
  rewrite -(ltr_pmul2l (weight_gt0 m i0)); apply: lt_le_trans (gain _ li0) _.
  apply: le_trans (reported_value lie _ (allowed_ge0 ax' i0)) _.
  by rewrite -/(utility m' x' i0) lev' wt.
case: (largest_level_allowed_not_exceeded i0 opt ax') => l.
case: (boolP (liars l)) => [|hl]; first exact: gain.
by rewrite /utility -(honest_value lie _ hl) -/(utility m' x' l) lev' wt ltr_pmul2l ?weight_gt0.
Qed.

End Allowed.

(** So it is with demands that are told truly. *)
Section Demands.
Variables (R : realFieldType) (n k : nat) (m m' : market R n k) (limited : pred 'I_n) (limit : 'I_n -> R).
Implicit Types (x : allocation R n k) (t : R) (i : 'I_n).

Theorem over_reporting_with_demands i t t' x x' :
  over_reports (pred1 i) m m' ->
  largest_level_allowed (feasible_with_demands m limited limit) m t x ->
  largest_level_allowed (feasible_with_demands m limited limit) m' t' x' ->
  value m i (x' i) <= utility m x i.
Proof.
move=> lie opt opt'.
have nonneg y : feasible_with_demands m limited limit y -> forall l j, 0 <= y l j by case=> -[].
have parts y (keep : 'I_n -> R) : feasible_with_demands m limited limit y ->
    (forall l, 0 <= keep l <= 1) -> feasible_with_demands m limited limit (fun l j => keep l * y l j).
  move=> [[y0 yc] yd] keep01.
  have less l j : keep l * y l j <= y l j by case/andP: (keep01 l) => _ le1; rewrite ler_pimull.
  split; first split=> [l j|j].
  - by case/andP: (keep01 l) => ge0 _; rewrite mulr_ge0.
  - by apply: le_trans (yc j); apply: ler_sum.
  - by move=> l lim; apply: le_trans (yd l lim); apply: ler_sum.
by have [|l /eqP->] := over_reporting_allowed nonneg parts lie opt opt' (_ : pred1 i i); first exact: eqxx.
Qed.

End Demands.
