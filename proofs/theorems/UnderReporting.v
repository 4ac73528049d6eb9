(** * Who claims too little can gain without bound: against OEF Theorem 5.4 for reports that are smaller

    All speedups are 1, but those of the first user on all types but the first: they are b.  One GPU of each type, equal
    weights.  Non-cooperative OEF then gives everybody b k / (1 + b (n - 1)).  If the first user reports r instead of b,
    1 < r <= b, it is given as many GPUs as if r were true, all of types on which it is fast, and these are worth
    (1 + b (n - 1)) / (1 + r (n - 1)) times as much to it as what it would have had: for r near 1 that is near
    (1 + b (n - 1)) / n, for two users (b + 1) / 2.  Every speedup and report is 1 on the first type. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market EqualEfficiency.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section UnderReporting.
Variables (R : realFieldType) (others fasts : nat).
Let n := others.+2.
Let k := fasts.+2.
Implicit Types (x y : allocation R n k) (i : 'I_n) (j : 'I_k) (b r : R).

Definition liar : 'I_n := ord0.
Definition slow : 'I_k := ord0.

Definition speedups b i j : R := if (i == liar) && (j != slow) then b else 1.

Lemma speedups_ge0 b i j : 1 <= b -> 0 <= speedups b i j.
Proof. by move=> b1; rewrite /speedups; case: ifP => _; rewrite ?ler01 // (le_trans ler01). Qed.

(** The market in which the first user's speedup is [b] but on the first type. *)
Definition one_is_fast b (b1 : 1 <= b) : market R n k :=
  @Market R n k (speedups b) (fun=> 1) (fun=> 1) (fun i j => speedups_ge0 i j b1) (fun=> ltr01) (fun=> ler01).

(** How many there are besides the liar, how many types, and how many on which it is fast. *)
Let N : R := others.+1%:R.
Let K : R := fasts.+2%:R.
Let M : R := fasts.+1%:R.

Let N_ge1 : 1 <= N. Proof. by rewrite ler1n. Qed.
Let M_ge1 : 1 <= M. Proof. by rewrite ler1n. Qed.
Let KE : K = 1 + M. Proof. by rewrite /K /M -[in LHS]addn1 natrD addrC. Qed.

(** GPUs of the types on which the liar is fast. *)
Definition fast_part (f : 'I_k -> R) : R := \sum_(j | j != slow) f j.

Let sum_types (f : 'I_k -> R) : \sum_j f j = f slow + fast_part f.
Proof. exact: bigD1. Qed.

Let sum_users (f : 'I_n -> R) : \sum_i f i = f liar + \sum_(i | i != liar) f i.
Proof. exact: bigD1. Qed.

Let count_users : #|[pred i : 'I_n | i != liar]| = others.+1.
Proof. by have := cardC1 liar; rewrite card_ord; apply: etrans; apply: eq_card. Qed.

Let count_types : #|[pred j : 'I_k | j != slow]| = fasts.+1.
Proof. by have := cardC1 slow; rewrite card_ord; apply: etrans; apply: eq_card. Qed.

Lemma liar_value b (b1 : 1 <= b) (f : 'I_k -> R) : value (one_is_fast b1) liar f = f slow + b * fast_part f.
Proof.
rewrite /value sum_types /fast_part /= {1}/speedups eqxx /= mul1r mulr_sumr; congr (_ + _).
by apply: eq_bigr => j js; rewrite /speedups js.
Qed.

Lemma other_value b (b1 : 1 <= b) i (f : 'I_k -> R) : i != liar -> value (one_is_fast b1) i f = \sum_j f j.
Proof. by move=> /negbTE ne; apply: eq_bigr => j _; rewrite /= /speedups ne mul1r. Qed.

Section Level.
Variables (b : R) (b1 : 1 <= b).
Let m := one_is_fast b1.
Let b0 : 0 < b := lt_le_trans ltr01 b1.

Let share : R := 1 + b * N.
Let share_gt0 : 0 < share.
Proof. by rewrite addr_gt0 ?ltr01 // mulr_gt0 // (lt_le_trans ltr01). Qed.

Definition level : R := b * K / share.

Lemma levelE : level * share = b * K.
Proof. by rewrite /level divfK // gt_eqF. Qed.

(** No level is larger; and at this one the liar holds none of the first type. *)
Lemma level_bound t x : feasible m x -> at_level m t x -> t * share + (b - 1) * x liar slow <= b * K.
Proof.
move=> [x0 xc] lev; have := lev liar; rewrite /= mul1r /utility liar_value => own.
have rest : \sum_(i | i != liar) \sum_j x i j = N * t.
  rewrite (eq_bigr (fun=> t)) => [|i ne]; last by have := lev i; rewrite /= mul1r /utility other_value.
  by rewrite sumr_const count_users -[_ *+ _]mulr_natl.
have : \sum_j given x j <= \sum_(j : 'I_k) 1 by apply: ler_sum => j _; apply: (xc j).
rewrite sumr_const card_ord -/K exchange_big sum_users sum_types rest => all_given.
have := ler_wpmul2l (ltW b0) all_given; rewrite -[b * K]addr0 => le.
apply: le_trans (le_trans _ le) _; last by rewrite addr0.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite /share -own; ring.
Qed.

(** It is reached: the liar holds an equal part of each fast type, the others share the rest. *)
Definition fast_share : R := level / (b * M).
Definition reached : allocation R n k := fun i j =>
  if i == liar then (if j == slow then 0 else fast_share)
  else (if j == slow then 1 else 1 - fast_share) / N.

Let M_gt0 : 0 < M := lt_le_trans ltr01 M_ge1.
Let N_gt0 : 0 < N := lt_le_trans ltr01 N_ge1.

Lemma fast_shareE : b * M * fast_share = level.
Proof. by rewrite /fast_share mulrC divfK // gt_eqF // mulr_gt0. Qed.

Lemma fast_share_ge0 : 0 <= fast_share.
Proof.
apply: divr_ge0; last exact: ltW (mulr_gt0 b0 M_gt0).
apply: divr_ge0; last exact: ltW.
exact: mulr_ge0 (ltW b0) (ler0n _ _).
Qed.

Lemma fast_share_le1 : fast_share <= 1.
Proof.
have bM : 0 < b * M * share by rewrite !mulr_gt0.
rewrite -(ler_pmul2l bM) mulr1.
have -> : b * M * share * fast_share = b * K by rewrite -levelE -fast_shareE; ring.
rewrite -mulrA ler_pmul2l // KE /share mulrDr mulr1 addrC ler_add2l.
rewrite -[1]mulr1; apply: ler_pmul; rewrite ?ler01 //.
by rewrite -[1]mulr1; apply: ler_pmul; rewrite ?ler01.
Qed.

Let fast_part_const c : fast_part (fun j => if j == slow then 0 else c) = M * c.
Proof.
rewrite /fast_part (eq_bigr (fun=> c)) => [|j /negbTE->] //.
by rewrite sumr_const count_types -[_ *+ _]mulr_natl.
Qed.

Lemma reached_feasible : feasible m reached.
Proof.
have f0 := fast_share_ge0; have f1 := fast_share_le1.
split=> [i j|j].
  rewrite /reached; case: (i == liar); case: (j == slow) => //; apply: divr_ge0; rewrite ?ler01 ?subr_ge0 //; exact: ltW.
rewrite /given sum_users /reached eqxx /=.
rewrite (eq_bigr (fun=> (if j == slow then 1 else 1 - fast_share) / N)) => [|i /negbTE->] //.
rewrite sumr_const count_users -[_ *+ _]mulr_natr divfK ?pnatr_eq0 //.
by case: (j == slow); rewrite ?add0r // addrCA subrr addr0.
Qed.

Lemma reached_level : at_level m level reached.
Proof.
move=> i; rewrite /= mul1r; case: (eqVneq i liar) => [->|ne].
  rewrite /utility liar_value /reached !eqxx add0r fast_part_const mulrA; exact: fast_shareE.
rewrite /utility other_value // /reached (negbTE ne) -mulr_suml sum_types eqxx.
have -> : fast_part (fun j => if j == slow then 1 else 1 - fast_share) = M * (1 - fast_share).
  by rewrite -fast_part_const; apply: eq_bigr => j /negbTE->.
have N0 : N != 0 by rewrite pnatr_eq0.
apply: (canLR (mulfK N0)); apply: (@mulfI _ b); first by rewrite gt_eqF.
have e1 := levelE; have e2 := fast_shareE; rewrite KE /share in e1.
have -> : b * (1 + M * (1 - fast_share)) = b * (1 + M) - b * M * fast_share by ring.
by rewrite -e1 e2; ring.
Qed.

Lemma reached_optimal : noncooperative_oef m reached.
Proof.
apply/noncooperative_oef_largest_level => //; exists level; split; first exact: reached_feasible.
split=> [|y t fy levy]; first exact: reached_level.
rewrite -(ler_pmul2r share_gt0) levelE; apply: le_trans (level_bound fy levy).
by rewrite ler_addl mulr_ge0 ?subr_ge0 //; apply: fy.1.
Qed.

(** So it is for every optimum. *)
Lemma optimum_level x :
  noncooperative_oef m x -> utility m x liar * share = b * K /\ (b - 1) * x liar slow = 0.
Proof.
move=> /noncooperative_oef_largest_level -/(_ isT)[t [fx [lev best]]].
have up := level_bound fx lev; have low := best _ _ reached_feasible reached_level.
have rest : 0 <= (b - 1) * x liar slow by rewrite mulr_ge0 ?subr_ge0 //; apply: fx.1.
have tl : t * share = b * K.
  apply/eqP; rewrite eq_le; apply/andP; split; first by apply: le_trans up; rewrite ler_addl.
  by rewrite -levelE ler_pmul2r.
split; first by have := lev liar; rewrite /= mul1r => ->.
by apply/eqP; rewrite eq_le rest andbT; move: up; rewrite tl ger_addl.
Qed.

End Level.

(** What the liar gains, exactly, whatever optima are chosen before and after. *)
Theorem under_reporting_gain b r (b1 : 1 <= b) (r1 : 1 <= r) x x' :
  1 < r -> noncooperative_oef (one_is_fast b1) x -> noncooperative_oef (one_is_fast r1) x' ->
  value (one_is_fast b1) liar (x' liar) * (1 + r * N) = utility (one_is_fast b1) x liar * (1 + b * N).
Proof.
move=> r_gt1 /optimum_level [-> _] /optimum_level [lev zero].
have none : x' liar slow = 0.
  by move/eqP: zero; rewrite mulf_eq0 subr_eq0 gt_eqF //= => /eqP.
have r0 : r != 0 by rewrite gt_eqF // (lt_trans ltr01).
move: lev; rewrite /utility !liar_value none !add0r => lev; apply: (mulfI r0).
have -> : r * (b * fast_part (x' liar) * (1 + r * N)) = b * (r * fast_part (x' liar) * (1 + r * N)) by ring.
by rewrite lev; ring.
Qed.

(** For all numbers of users and types from two on: reports that are nowhere larger, and 1 on the first type as the truth
    is, gain more than any factor. *)
Theorem under_reporting_without_bound (factor : R) :
  exists b r (b1 : 1 <= b) (r1 : 1 <= r),
    [/\ r <= b, exists x, noncooperative_oef (one_is_fast b1) x, exists x, noncooperative_oef (one_is_fast r1) x
      & forall x x', noncooperative_oef (one_is_fast b1) x -> noncooperative_oef (one_is_fast r1) x' ->
          factor * utility (one_is_fast b1) x liar < value (one_is_fast b1) liar (x' liar)].
Proof.
pose c : R := 1 + 2%:R * N; have c0 : 0 < c by rewrite addr_gt0 ?ltr01 // mulr_gt0 ?ltr0n // (lt_le_trans ltr01).
have r1 : 1 <= 2%:R :> R by rewrite ler1n.
pose b := 2%:R + `|factor| * c.
have rb : 2%:R <= b by rewrite ler_addl mulr_ge0 ?normr_ge0 // ltW.
have b1 : 1 <= b := le_trans r1 rb.
exists b, 2%:R, b1, r1; split=> //; [by exists (reached b); apply: reached_optimal | | move=> x x' opt opt'].
  by exists (reached 2%:R); apply: reached_optimal.
have gain := under_reporting_gain (_ : 1 < 2%:R) opt opt'; rewrite -(ltr_pmul2r c0) gain ?ltr1n //.
have [lev _] := optimum_level opt.
have u0 : 0 < utility (one_is_fast b1) x liar.
  have share0 : 0 < 1 + b * N.
    by rewrite addr_gt0 ?ltr01 // mulr_gt0 // ?(lt_le_trans ltr01).
  by rewrite -(pmulr_lgt0 _ share0) lev mulr_gt0 ?ltr0n // (lt_le_trans ltr01).
rewrite mulrAC mulrC ltr_pmul2l //.
apply: (@le_lt_trans _ _ (`|factor| * c)); first by rewrite ler_wpmul2r ?ler_norm // ltW.
apply: (@lt_le_trans _ _ b); first by rewrite ltr_addr ltr0n.
apply: (@le_trans _ _ (b * N)); first by rewrite ler_pemulr // (le_trans ler01).
by rewrite ler_addr ler01.
Qed.

End UnderReporting.
