(** * Fractions of binary integers, and MathComp's rationals

    Each stands for the other: sums, products, quotients and comparisons are the same. *)

From Coq Require Import ZArith QArith List Lia.
From mathcomp Require Import all_ssreflect all_algebra ssrZ zify.
From Verified Require Import Meaning.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Numbers *)

Definition den (d : positive) : rat := (int_of_Z (Zpos d))%:~R.
Definition q2r (q : Q) : rat := (int_of_Z (Qnum q))%:~R / den (Qden q).

Lemma den_gt0 d : 0 < den d.
Proof. by rewrite /den ltr0z /=; lia. Qed.
Lemma den_neq0 d : den d != 0.
Proof. by rewrite gt_eqF ?den_gt0. Qed.

Lemma int_add m n : int_of_Z (Z.add m n) = int_of_Z m + int_of_Z n.
Proof. exact: (raddfD ZInstances.int_of_Z_additive). Qed.
Lemma int_opp m : int_of_Z (Z.opp m) = - int_of_Z m.
Proof. exact: (raddfN ZInstances.int_of_Z_additive). Qed.
Lemma int_mul m n : int_of_Z (Z.mul m n) = int_of_Z m * int_of_Z n.
Proof. exact: (rmorphM ZInstances.int_of_Z_rmorphism). Qed.

Lemma int_ge0 z : Z.le Z0 z <-> 0 <= int_of_Z z.
Proof. by case: z => [|p|p] /=; split=> //; lia. Qed.
Lemma int_le m n : Z.le m n <-> int_of_Z m <= int_of_Z n.
Proof. by rewrite -subr_ge0 -int_opp -int_add -int_ge0; lia. Qed.

Lemma den_mul d e : den (d * e) = den d * den e.
Proof. by rewrite /den -intrM -int_mul. Qed.

Lemma q2rE n d : q2r (Qmake n d) = (int_of_Z n)%:~R / den d.
Proof. by []. Qed.
Lemma int_pos d : (int_of_Z (Zpos d))%:~R = den d.
Proof. by []. Qed.

Lemma q2r_add a b : q2r (Qplus a b) = q2r a + q2r b.
Proof.
case: a b => [m d] [n e].
have -> : Qplus (Qmake m d) (Qmake n e) = Qmake (Z.add (Z.mul m (Zpos e)) (Z.mul n (Zpos d))) (Pos.mul d e) by [].
by rewrite !q2rE den_mul int_add !int_mul rmorphD !rmorphM [X in _ = X]addf_div ?den_neq0.
Qed.

Lemma q2r_mul a b : q2r (Qmult a b) = q2r a * q2r b.
Proof.
case: a b => [m d] [n e].
have -> : Qmult (Qmake m d) (Qmake n e) = Qmake (Z.mul m n) (Pos.mul d e) by [].
by rewrite !q2rE den_mul int_mul rmorphM mulf_div.
Qed.

Lemma q2r_le a b : Qle a b <-> q2r a <= q2r b.
Proof.
case: a b => [m d] [n e]; rewrite !q2rE ler_pdivr_mulr ?den_gt0 // mulrAC ler_pdivl_mulr ?den_gt0 //.
by rewrite -!int_pos -!intrM -!int_mul ler_int -int_le.
Qed.

Lemma q2r_eq a b : Qeq a b <-> q2r a = q2r b.
Proof.
split=> [e|e].
  by apply/eqP; rewrite eq_le; apply/andP; split; apply/q2r_le; rewrite e; apply: Qle_refl.
by apply: Qle_antisym; apply/q2r_le; rewrite e.
Qed.

Lemma q2r_lt a b : Qlt a b <-> q2r a < q2r b.
Proof.
split=> [l|l].
  by rewrite ltNge; apply/negP => /q2r_le; apply: Qlt_not_le.
by apply: Qnot_le_lt => /q2r_le; rewrite leNgt l.
Qed.

Lemma q2r0 : q2r 0 = 0. Proof. by rewrite /q2r /= mul0r. Qed.
Lemma q2r1 : q2r 1 = 1. Proof. by rewrite /q2r /= divff ?den_neq0. Qed.

Lemma q2r_inv a : q2r (Qinv a) = (q2r a)^-1.
Proof.
have [/q2r_eq e|ne] : Qeq a 0 \/ ~ Qeq a 0 by case: (Qeq_dec a 0); [left|right].
  rewrite e q2r0 invr0 -q2r0; apply/q2r_eq; move/q2r_eq: e.
  by case: a => [[|p|p] d]; rewrite /Qeq /Qinv /=; lia.
have nz : q2r a != 0 by apply/eqP; rewrite -q2r0 => /q2r_eq.
by apply: (mulfI nz); rewrite divff // -q2r_mul -q2r1; apply/q2r_eq; apply: Qmult_inv_r.
Qed.

Lemma q2r_div a b : q2r (Qdiv a b) = q2r a / q2r b.
Proof. by rewrite /Qdiv q2r_mul q2r_inv. Qed.

(** Every rational is one. *)
Definition r2q (r : rat) : Q := Qmake (Z_of_int (numq r)) (Z.to_pos (Z_of_int (denq r))).
Lemma r2qK r : q2r (r2q r) = r.
Proof.
have e : int_of_Z (Zpos (Z.to_pos (Z_of_int (denq r)))) = denq r.
  rewrite Z2Pos.id ?Z_of_intK //.
  by have := denq_gt0 r; case: (denq r) => [[|n]|n] // _; rewrite /Z_of_int; lia.
by rewrite /r2q q2rE /den e Z_of_intK divq_num_den.
Qed.

(** ** Sums *)

Notation zero := (Qmake Z0 xH).
Notation at_ l j := (q2r (List.nth j l zero)).

Lemma q2r_sum (A : Type) (d : A) (f : A -> Q) l :
  q2r (sum (map f l)) = \sum_(i < length l) q2r (f (List.nth i l d)).
Proof.
elim: l => [|a l IH] /=; first by rewrite big_ord0 q2r0.
by rewrite q2r_add big_ord_recl /= -IH.
Qed.

Lemma at_nil j : at_ nil j = 0.
Proof. by case: j => [|j]; apply: q2r0. Qed.

Lemma q2r_dot a : forall b, q2r (dot a b) = \sum_(j < length a) at_ a j * at_ b j.
Proof.
elim: a => [|x a IH] [|y b].
- by rewrite big_ord0 q2r0.
- by rewrite big_ord0 q2r0.
- by rewrite big1 ?q2r0 // => j _; rewrite at_nil mulr0.
by rewrite big_ord_recl /= q2r_add q2r_mul IH.
Qed.

