(** * Cooperative OEF is not Pareto-efficient, even with two types: against OEF Theorem 5.3

    Four users with speedups (1,1), (1,6), (1,7), (1,23), each normalised to the slowest type as OEF Sec. 2.3 asks for,
    share 22 slow GPUs and 4 fast ones.  The only optimum of Eq. (10) is

         8 0
         7 1
         7 1
         0 2      with efficiencies 8, 13, 14, 46: in all 81.

    Users 2 and 3 could exchange one fast GPU for 6.5 slow ones, and both would gain 0.5.  But then user 1 would envy
    user 2.

    With three types there is an example with three users, in [models/oef/cooperative.py]; with two types and
    speedups that are not normalised too: (4,3), (2,0), (3,2), one GPU of each type, where all get a third of the first
    type and users 1 and 3 half of the second.  With two users there is none ([SharingIncentive.v]). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Exchange.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section TwoTypes.
Variable R : realFieldType.

Definition slow_type : 'I_2 := @Ordinal 2 0 isT.
Definition fast_type : 'I_2 := @Ordinal 2 1 isT.

Definition speedups (i : 'I_4) (j : 'I_2) : R :=
  if j == slow_type then 1 else (nth 0%N [:: 1; 6; 7; 23]%N i)%:R.
Definition capacities (j : 'I_2) : R := if j == slow_type then 22%:R else 4%:R.

Lemma speedups_gt0 i j : 0 < speedups i j.
Proof.
rewrite /speedups; case: eqP => _; rewrite ?ltr01 // ltr0n.
by case: i => [[|[|[|[|?]]]] ?].
Qed.

Definition two_types : market R 4 2.
Proof.
apply: (@Market R 4 2 speedups (fun=> 1) capacities) => [i j|_|j].
- exact: ltW (speedups_gt0 i j).
- exact: ltr01.
- by rewrite /capacities; case: eqP => _; apply: ler0n.
Defined.

Let u1 : 'I_4 := @Ordinal 4 0 isT.
Let u2 : 'I_4 := @Ordinal 4 1 isT.
Let u3 : 'I_4 := @Ordinal 4 2 isT.
Let u4 : 'I_4 := @Ordinal 4 3 isT.

Let sum_users (f : 'I_4 -> R) : \sum_i f i = f u1 + f u2 + f u3 + f u4.
Proof.
rewrite !big_ord_recl big_ord0 addr0 !addrA.
by congr (f _ + f _ + f _ + f _); apply: val_inj.
Qed.

Let sum_types (f : 'I_2 -> R) : \sum_j f j = f slow_type + f fast_type.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (f _ + f _); apply: val_inj. Qed.

Let valueE (i : 'I_4) (b : 'I_2 -> R) :
  value two_types i b = b slow_type + speedups i fast_type * b fast_type.
Proof. by rewrite /value sum_types /= {1}/speedups eqxx mul1r. Qed.

Implicit Types x : allocation R 4 2.

(** The allocation above. *)
Definition optimum : allocation R 4 2 := fun i j =>
  if j == slow_type then (nth 0%N [:: 8; 7; 7; 0]%N i)%:R else (nth 0%N [:: 0; 1; 1; 2]%N i)%:R.

Lemma optimum_feasible : feasible two_types optimum.
Proof.
split=> [i j|j]; first by rewrite /optimum; case: eqP => _; apply: ler0n.
rewrite /given sum_users /= /capacities /optimum; case: eqP => _ /=; rewrite -!natrD.
  by rewrite ler_nat.
by rewrite ler_nat.
Qed.

Lemma optimum_envy_free : envy_free two_types optimum.
Proof.
move=> i l; rewrite /= divr1 mul1r /utility !valueE /optimum /speedups /= -!natrM -!natrD ler_nat.
by case: i l => [[|[|[|[|?]]]] ?] [[|[|[|[|?]]]] ?].
Qed.

Lemma optimum_total : total two_types optimum = 81%:R.
Proof. by rewrite /total sum_users /utility !valueE /optimum /speedups /=; ring. Qed.

(** The dual solution: 62 times (81 less the total) is a sum of terms that cannot be negative in an envy-free feasible
    allocation. *)
Section Dual.
Variable x : allocation R 4 2.
Hypotheses (fx : feasible two_types x) (ex : envy_free two_types x).

Let slack (i l : 'I_4) : R := utility two_types x i - value two_types i (x l).
Let rest (j : 'I_2) : R := capacities j - given x j.

Let slack_ge0 i l : 0 <= slack i l.
Proof. by rewrite subr_ge0; have := ex i l; rewrite /= divr1 mul1r. Qed.

Let rest_ge0 j : 0 <= rest j.
Proof. by rewrite subr_ge0; apply: fx.2. Qed.

Let terms : seq R :=
  [:: 95%:R * rest slow_type; 733%:R * rest fast_type;
      33%:R * slack u1 u2; 68%:R * slack u2 u3; 2%:R * slack u3 u2; 99%:R * slack u3 u4;
      638%:R * x u1 fast_type; 132%:R * x u4 slow_type].

Lemma dual : 62%:R * (81%:R - total two_types x) = \sum_(t <- terms) t.
Proof.
rewrite /terms !big_cons big_nil /rest /slack /total /given !sum_users /utility !valueE.
rewrite /capacities /speedups /=.
by ring.
Qed.

Lemma terms_ge0 t : t \in terms -> 0 <= t.
Proof.
have x0 := fx.1.
by rewrite !inE; do ![case/orP]; move=> /eqP->; rewrite mulr_ge0 ?ler0n.
Qed.

Lemma total_le : total two_types x <= 81%:R.
Proof.
rewrite -subr_ge0 -(pmulr_rge0 _ (_ : 0 < 62%:R)) ?ltr0n // dual big_seq.
by apply: sumr_ge0 => t; apply: terms_ge0.
Qed.

(** At an optimum all terms are 0, and this determines who holds what: users 2 and 3 hold 7 slow GPUs and a fast one. *)
Lemma optimum_unique :
  total two_types x = 81%:R -> x u2 fast_type = 1 /\ x u3 slow_type = 7%:R.
Proof.
move=> e; have := dual; rewrite e subrr mulr0 big_seq => /esym/eqP.
rewrite psumr_eq0; last by move=> t; apply: terms_ge0.
move=> /allP zero.
have {}zero (c : nat) t : (0 < c)%N -> c%:R * t \in terms -> t = 0.
  move=> c0 ct; have := zero _ ct; rewrite ct /= mulf_eq0 pnatr_eq0.
  by case: c c0 {ct} => //= c _ /eqP.
have rs : rest slow_type = 0 by apply: (@zero 95%N) => //; rewrite !inE eqxx ?orbT.
have rf : rest fast_type = 0 by apply: (@zero 733%N) => //; rewrite !inE eqxx ?orbT.
have s12 : slack u1 u2 = 0 by apply: (@zero 33%N) => //; rewrite !inE eqxx ?orbT.
have s23 : slack u2 u3 = 0 by apply: (@zero 68%N) => //; rewrite !inE eqxx ?orbT.
have s32 : slack u3 u2 = 0 by apply: (@zero 2%N) => //; rewrite !inE eqxx ?orbT.
have s34 : slack u3 u4 = 0 by apply: (@zero 99%N) => //; rewrite !inE eqxx ?orbT.
have f1 : x u1 fast_type = 0 by apply: (@zero 638%N) => //; rewrite !inE eqxx ?orbT.
have s4 : x u4 slow_type = 0 by apply: (@zero 132%N) => //; rewrite !inE eqxx ?orbT.
move: rs rf s12 s23 s32 s34.
rewrite /rest /slack /given !sum_users /utility !valueE /capacities /speedups /= f1 s4.
move: (x u1 slow_type) (x u2 slow_type) (x u2 fast_type) (x u3 slow_type) (x u3 fast_type) (x u4 fast_type).
move=> a1 a2 b2 a3 b3 b4 rs rf s12 s23 s32 s34.
have eb : b3 = b2.
  apply/eqP; rewrite -subr_eq0; apply/eqP; rewrite -[RHS]addr0 -{1}s23 -s32; ring.
have ea : a3 = a2.
  by apply/eqP; rewrite -subr_eq0; apply/eqP; rewrite -s32 eb; ring.
rewrite {s23 s32} ea eb in rs rf s34 *.
have : 62%:R * (b2 - 1) = 3%:R * (a2 + 7%:R * b2 - (0 + 7%:R * b4)) + (22%:R - (a1 + a2 + a2 + 0))
                          + (a1 + 1 * 0 - (a2 + 1 * b2)) - 21%:R * (4%:R - (0 + b2 + b2 + b4)) by ring.
rewrite s34 rs s12 rf !(mulr0, addr0, subr0) => /eqP.
rewrite mulf_eq0 pnatr_eq0 /= subr_eq0 => /eqP b1; split=> //.
have : 3%:R * (a2 - 7%:R) = - (22%:R - (a1 + a2 + a2 + 0)) - (a1 + 1 * 0 - (a2 + 1 * b2)) by rewrite b1; ring.
by rewrite rs s12 subr0 oppr0 => /eqP; rewrite mulf_eq0 pnatr_eq0 /= subr_eq0 => /eqP.
Qed.

End Dual.

Lemma optimum_optimal : cooperative_oef two_types optimum.
Proof.
split=> [|y [fy ey]]; first by split; [exact: optimum_feasible | exact: optimum_envy_free].
by rewrite optimum_total; apply: total_le.
Qed.

(** There is an optimum, and no optimum is Pareto-efficient: users 2 and 3 could both gain by an exchange. *)
Theorem cooperative_oef_two_types_not_pareto_efficient :
  (forall i, weight two_types i = 1 /\ speedup two_types i slow_type = 1 /\ 1 <= speedup two_types i fast_type) /\
  (exists x, cooperative_oef two_types x) /\
  forall x, cooperative_oef two_types x -> ~ pareto_efficient two_types x.
Proof.
split.
  move=> i; rewrite /= /speedups eqxx; split=> //; split=> //=; rewrite ler1n.
  by case: i => [[|[|[|[|?]]]] ?].
split; first by exists optimum; apply: optimum_optimal.
move=> x [[fx ex] best] pe.
have e : total two_types x = 81%:R.
  apply/eqP; rewrite eq_le total_le //= -optimum_total.
  by apply: best; split; [exact: optimum_feasible | exact: optimum_envy_free].
have [x2 x3] := optimum_unique fx ex e.
apply: (pareto_efficient_no_exchange pe (i := u2) (l := u3) (p := slow_type) (q := fast_type)) => //.
- by rewrite /larger_ratio /= /speedups /= !mulr1 ltr_nat.
- exact: speedups_gt0.
- by rewrite x2 x3 ltr01 ltr0n.
Qed.

End TwoTypes.
