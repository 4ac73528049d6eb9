(** * The market, and the properties that the papers claim

    What the other files speak about.  To read it, this much Coq is enough: ['I_n] is the set of the numbers
    0, ..., n-1 (users), ['I_k] those below k (GPU types), [\sum_i f i] sums over all of them, [A /\ B] is "and",
    [A -> B -> C] is "if A and B then C", [f x y] is what mathematicians write f(x, y).  [R] is any ordered field:
    the rationals, the reals, or anything between and above.

    "OEF" is Mo, Xu and Lau, Optimal Resource Efficiency with Fairness in Heterogeneous GPU Clusters,
    Middleware 2024; "Gandiva_fair" is Chaudhary et al., EuroSys 2020. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Data: OEF Sec. 2.3

    [speedup m i j] is OEF's w_i^j, the throughput of user i on one GPU of type j: any number from 0 on, in any unit,
    in any order of types.  [weight m i] is pi_i of Sec. 4.2.3 (all 1 in most of the paper).  [capacity m j] is m_j;
    it need not be an integer. *)
Record market (R : realFieldType) (n k : nat) := Market {
  speedup : 'I_n -> 'I_k -> R;
  weight : 'I_n -> R;
  capacity : 'I_k -> R;
  speedup_ge0 : forall i j, 0 <= speedup i j;
  weight_gt0 : forall i, 0 < weight i;
  capacity_ge0 : forall j, 0 <= capacity j
}.

(** [maximises P f a]: a has P, and nothing that has P has a larger f. *)
Definition maximises (R : realFieldType) (A : Type) (P : A -> Prop) (f : A -> R) (a : A) : Prop :=
  P a /\ forall b, P b -> f b <= f a.

Lemma le_of_eq (R : realFieldType) (a b : R) : a = b -> a <= b.
Proof. by move->. Qed.

Section Market.
Variables (R : realFieldType) (n k : nat) (m : market R n k).

(** A bundle says how many GPUs of each type; an allocation gives each user a bundle (OEF's matrix X). *)
Definition bundle := 'I_k -> R.
Definition allocation := 'I_n -> bundle.
Implicit Types (x y z : allocation) (b : bundle).

(** What user [i] can do with the bundle [b]: sum_j w_i^j b^j. *)
Definition value (i : 'I_n) b : R := \sum_j speedup m i j * b j.

(** Efficiency of user [i]: sum_j w_i^j x_i^j, OEF Sec. 2.3. *)
Definition utility x (i : 'I_n) : R := value i (x i).

(** Overall efficiency, the objective of OEF Eq. (4), (9a) and (10a). *)
Definition total x : R := \sum_i utility x i.

(** GPUs of type [j] given out, and those left over. *)
Definition given x (j : 'I_k) : R := \sum_i x i j.
Definition left_over x : bundle := fun j => capacity m j - given x j.

(** OEF Eq. (4), (9b), (10b). *)
Definition feasible x : Prop :=
  (forall i j, 0 <= x i j) /\ (forall j, given x j <= capacity m j).

(** ** Fairness: OEF Sec. 2.3.1, with the weights of Sec. 4.2.3 *)

Definition total_weight : R := \sum_i weight m i.

(** The same part of every type, by weight: 1/n of it where all weights are 1. *)
Definition equal_split : allocation := fun i j => weight m i / total_weight * capacity m j.
Definition fair_share (i : 'I_n) : R := value i (equal_split i).

(** Sharing-incentive, OEF Sec. 2.3.1 (3). *)
Definition sharing_incentive x : Prop := forall i, fair_share i <= utility x i.

(** Envy-freeness, OEF Sec. 2.3.1 (2) and the first formula in the proof of Theorem 5.1; with weights, user [i]
    compares its own efficiency with that of pi_i/pi_l times the bundle of user [l]. *)
Definition envy_free x : Prop :=
  forall i l, weight m i / weight m l * value i (x l) <= utility x i.

(** Pareto-efficiency, OEF Sec. 2.3.1 (4): no allocation in [among] gives everybody as much and somebody more. *)
Definition pareto_efficient_among (among : allocation -> Prop) x : Prop :=
  among x /\ forall y, among y -> (forall i, utility x i <= utility y i) -> forall i, utility y i <= utility x i.
Definition pareto_efficient x : Prop := pareto_efficient_among feasible x.

(** Nothing is left over of any type that somebody can use. *)
Definition nothing_left_over x : Prop :=
  forall i j, 0 < speedup m i j -> given x j = capacity m j.

(** ** Policies *)

(** Cooperative OEF, Eq. (10). *)
Definition cooperative_oef x : Prop :=
  maximises (fun y => feasible y /\ envy_free y) total x.

(** Non-cooperative OEF, Eq. (9). *)
Definition equal_efficiency x : Prop :=
  forall i l, utility x i / weight m i = utility x l / weight m l.
Definition noncooperative_oef x : Prop :=
  maximises (fun y => feasible y /\ equal_efficiency y) total x.

(** The same with the common level [t] as a variable, which is what [models/oef/noncooperative.py] solves. *)
Definition at_level t x : Prop := forall i, utility x i = weight m i * t.
Definition largest_level t x : Prop :=
  feasible x /\ at_level t x /\ forall y t', feasible y -> at_level t' y -> t' <= t.

(** Max-min: the largest level that everybody reaches, whoever exceeds it. *)
Definition reaches t x : Prop := forall i, weight m i * t <= utility x i.
Definition max_min t x : Prop :=
  feasible x /\ reaches t x /\ forall y t', feasible y -> reaches t' y -> t' <= t.

(** ** What follows from the definitions alone *)

Lemma weight_neq0 i : weight m i != 0. Proof. by rewrite gt_eqF ?weight_gt0. Qed.
Lemma weight_ge0 i : 0 <= weight m i. Proof. by rewrite ltW ?weight_gt0. Qed.

Lemma total_weight_gt0 (i : 'I_n) : 0 < total_weight.
Proof.
rewrite /total_weight (bigD1 i) //= ltr_paddr ?weight_gt0 //.
by apply: sumr_ge0 => l _; apply: weight_ge0.
Qed.

Lemma total_weight_neq0 (i : 'I_n) : total_weight != 0.
Proof. by rewrite gt_eqF ?(total_weight_gt0 i). Qed.

(** Weights as parts of a whole. *)
Definition part (i : 'I_n) : R := weight m i / total_weight.

Lemma part_gt0 i : 0 < part i.
Proof. by rewrite divr_gt0 ?weight_gt0 ?(total_weight_gt0 i). Qed.

Lemma sum_part (i : 'I_n) : \sum_l part l = 1.
Proof. by rewrite -mulr_suml divff ?(total_weight_neq0 i). Qed.

Lemma eq_value i b b' : b =1 b' -> value i b = value i b'.
Proof. by move=> e; apply: eq_bigr => j _; rewrite e. Qed.

Lemma value_ge0 i b : (forall j, 0 <= b j) -> 0 <= value i b.
Proof. by move=> b0; apply: sumr_ge0 => j _; rewrite mulr_ge0 ?speedup_ge0. Qed.

Lemma valueD i b b' : value i (fun j => b j + b' j) = value i b + value i b'.
Proof. by rewrite -big_split /=; apply: eq_bigr => j _; rewrite mulrDr. Qed.

Lemma valueZ i a b : value i (fun j => a * b j) = a * value i b.
Proof. by rewrite /value mulr_sumr; apply: eq_bigr => j _; rewrite mulrCA. Qed.

Lemma valueB i b b' : value i (fun j => b j - b' j) = value i b - value i b'.
Proof. by rewrite -sumrB; apply: eq_bigr => j _; rewrite mulrBr. Qed.

Lemma value_given i x : value i (given x) = \sum_l value i (x l).
Proof. by rewrite exchange_big /=; apply: eq_bigr => j _; rewrite mulr_sumr. Qed.

(** One type alone: [a] GPUs of type [j], nothing else. *)
Definition only (j : 'I_k) (a : R) : bundle := fun j' => if j' == j then a else 0.

Lemma value_only i j a : value i (only j a) = speedup m i j * a.
Proof.
rewrite /value (bigD1 j) //= /only eqxx big1 ?addr0 // => j' /negbTE ->.
by rewrite mulr0.
Qed.

Lemma fair_shareE i : fair_share i = part i * value i (capacity m).
Proof. by rewrite /fair_share -valueZ. Qed.

Lemma utility_ge0 x i : (forall j, 0 <= x i j) -> 0 <= utility x i.
Proof. exact: value_ge0. Qed.

Lemma left_over_ge0 x j : feasible x -> 0 <= left_over x j.
Proof. by case=> _ /(_ j); rewrite subr_ge0. Qed.

Lemma equal_split_feasible : feasible equal_split.
Proof.
split=> [i j|j]; first by rewrite mulr_ge0 ?capacity_ge0 // ltW // part_gt0.
case: (posnP n) => [n0|npos]; first by rewrite /given big1 ?capacity_ge0 // => i; have := ltn_ord i; rewrite {2}n0.
by rewrite /given -mulr_suml (sum_part (Ordinal npos)) mul1r.
Qed.

(** A bundle that is worth something holds some of a type that the user can use. *)
Lemma value_gt0 i b : (forall j, 0 <= b j) -> 0 < value i b -> exists2 j, 0 < speedup m i j & 0 < b j.
Proof.
move=> b0 pos; case: (boolP [exists j, (0 < speedup m i j) && (0 < b j)]) => [/existsP[j /andP[]]|].
  by exists j.
rewrite negb_exists => /forallP none; move: pos; rewrite ltNge => /negP[].
rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => j _; rewrite oppr_ge0.
move: (none j); rewrite negb_and -!leNgt => /orP[] le0.
  by rewrite mulr_le0_ge0.
by rewrite mulr_ge0_le0 ?speedup_ge0.
Qed.

(** What is left over has no value for anybody iff nothing that anybody can use is left over. *)
Lemma left_over_value0 x : feasible x ->
  (forall i, value i (left_over x) = 0) <-> nothing_left_over x.
Proof.
move=> fx; split=> [zero i j sij | none i].
  have: \sum_j' speedup m i j' * left_over x j' = 0 := zero i.
  move/eqP; rewrite psumr_eq0 => [/allP/(_ j)|j' _]; last by rewrite mulr_ge0 ?speedup_ge0 ?left_over_ge0.
  by rewrite mem_index_enum => /(_ isT); rewrite mulf_eq0 gt_eqF //= subr_eq0 eq_sym => /eqP.
apply: big1 => j _; move: (speedup_ge0 m i j); rewrite le_eqVlt => /predU1P[<-|/none e].
  by rewrite mul0r.
by rewrite /left_over e subrr mulr0.
Qed.

(** A Pareto-efficient allocation gives out all of a type that somebody can use. *)
Lemma pareto_efficient_all_given x i p : pareto_efficient x -> 0 < speedup m i p -> given x p = capacity m p.
Proof.
move=> [fx best] sip; apply/eqP; rewrite eq_le fx.2 /= leNgt; apply/negP => less.
(* give the rest to user i *)
pose rest := left_over x p; have rest0 : 0 < rest by rewrite subr_gt0.
pose y : allocation := fun l j => x l j + (if l == i then only p rest j else 0).
have fy : feasible y.
  split=> [l j|j].
    rewrite addr_ge0 ?fx.1 //; case: eqP => // _; rewrite /only; case: eqP => // _; exact: ltW.
  rewrite /given /y big_split /= -big_mkcond big_pred1_eq /only.
  case: eqP => [->|_]; last by rewrite addr0 fx.2.
  by rewrite /rest /left_over addrCA subrr addr0.
have uy l : utility y l = utility x l + (if l == i then speedup m l p * rest else 0).
  rewrite /utility /y valueD; congr (_ + _); case: eqP => _; first exact: value_only.
  by apply: big1 => j _; rewrite mulr0.
have := best y fy _ i; rewrite uy eqxx leNgt ltr_addl mulr_gt0 // => /(_ _)/negP; apply=> // l.
by rewrite uy ler_addl; case: eqP => // _; rewrite mulr_ge0 ?speedup_ge0 ?ltW.
Qed.

(** The weakest positivity that some theorems need: there are no zeros among the speedups, except for types that
    nobody can use. *)
Definition same_types : Prop := forall i l j, 0 < speedup m i j -> 0 < speedup m l j.

Lemma all_positive_same_types : (forall i j, 0 < speedup m i j) -> same_types.
Proof. by move=> pos i l j _; apply: pos. Qed.

End Market.

Arguments bundle : clear implicits.
Arguments allocation : clear implicits.
