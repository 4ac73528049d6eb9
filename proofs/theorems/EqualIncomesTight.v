(** * Equal incomes: no smaller factor will do than that of [EqualIncomes.v]

    User 0 runs alike on all types, each other user on one type of its own; one GPU of each type.  In equilibrium each has
    one GPU; without envy user 0 can have half of each other type, too.  So it has (n + 1)/2 times as much, and in units
    of user 0 that are large enough the equilibrium has little more than 2/(n + 1) of the total. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market Duality Equilibrium.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Tight.
Variables (R : realFieldType) (n : nat) (unit : R).
Hypothesis unit0 : 0 < unit.
Implicit Types i j l : 'I_n.+1.

Definition alone_speedup i j : R := if i == ord0 then unit else (i == j)%:R.

Lemma alone_speedup_ge0 i j : 0 <= alone_speedup i j.
Proof. by rewrite /alone_speedup; case: ifP => _; rewrite ?ler0n // ltW. Qed.

Definition alone : market R n.+1 n.+1 := Market alone_speedup_ge0 (fun=> ltr01) (fun=> ler01).

(** One GPU each; and halves of the others' types. *)
Definition own_type : allocation R n.+1 n.+1 := fun i j => (i == j)%:R.
Definition others_halved : allocation R n.+1 n.+1 := fun i j =>
  if j == ord0 then (i == ord0)%:R else ((i == ord0)%:R + (i == j)%:R) / 2%:R.

Let sum_is l : \sum_i (i == l)%:R = 1 :> R.
Proof. by rewrite (bigD1 l) //= eqxx big1 ?addr0 // => i /negbTE ->; rewrite ?mulr0n. Qed.

Let sum_is' l : \sum_i (l == i)%:R = 1 :> R.
Proof. by rewrite -[RHS](sum_is l); apply: eq_bigr => i _; rewrite eq_sym. Qed.

(** What a user that runs on its own type alone makes of a bundle. *)
Let value_own i (b : bundle R n.+1) : i != ord0 -> value alone i b = b i.
Proof.
move=> /negbTE i0; rewrite /value (bigD1 i) //= /alone_speedup i0 eqxx mul1r big1 ?addr0 // => j /negbTE ji.
by rewrite eq_sym ji mul0r.
Qed.

Let value_0 (b : bundle R n.+1) : value alone ord0 b = unit * \sum_j b j.
Proof. by rewrite /value mulr_sumr; apply: eq_bigr => j _; rewrite /= /alone_speedup eqxx. Qed.

Lemma own_type_equilibrium : equilibrium alone (fun=> 1) own_type.
Proof.
have all j : given own_type j = 1 by rewrite /given /own_type sum_is.
split=> [|j|i|i j j'|j _]; first by split=> [i j|j]; rewrite ?ler0n ?all.
- exact: ler01.
- by rewrite /cost; under eq_bigr do rewrite mul1r; rewrite sum_is'.
- rewrite /own_type /= /alone_speedup !mulr1 ltr0n lt0b => /eqP <-.
  by case: ifP => // _; rewrite eqxx ler_nat leq_b1.
exact: all.
Qed.

Let halves_of_0 : \sum_j others_halved ord0 j = 1 + n%:R / 2%:R.
Proof.
rewrite big_ord_recl /others_halved /= (eq_bigr (fun=> 2%:R^-1)) => [|j _]; last by rewrite addr0 mul1r.
by rewrite sumr_const card_ord -[2%:R^-1 *+ n]mulr_natl.
Qed.

Lemma others_halved_feasible : feasible alone others_halved.
Proof.
split=> [i j|j]; rewrite /others_halved; first by case: ifP => _; rewrite ?ler0n // divr_ge0 ?addr_ge0 ?ler0n ?ler01.
rewrite /given /=; case: (j == ord0) => /=; first by rewrite sum_is.
by rewrite -mulr_suml big_split /= !sum_is -(natrD _ 1 1) divff // pnatr_eq0.
Qed.

Lemma others_halved_utility i :
  utility alone others_halved i = if i == ord0 then unit * (1 + n%:R / 2%:R) else 2%:R^-1.
Proof.
case: (altP (i =P ord0)) => [->|i0]; first by rewrite /utility value_0 halves_of_0.
by rewrite /utility value_own // /others_halved (negbTE i0) eqxx add0r mul1r.
Qed.

Lemma own_type_utility i : utility alone own_type i = if i == ord0 then unit else 1.
Proof.
case: (altP (i =P ord0)) => [->|i0]; first by rewrite /utility value_0 /own_type sum_is' mulr1.
by rewrite /utility value_own // /own_type eqxx.
Qed.

Lemma others_halved_envy_free : envy_free alone others_halved.
Proof.
move=> i l; rewrite /= divr1 mul1r others_halved_utility; case: (altP (i =P ord0)) => [->|i0].
  rewrite value_0 ler_pmul2l // -halves_of_0; apply: ler_sum => j _; rewrite /others_halved eqxx.
  case: (altP (j =P ord0)) => [_|j0]; first by rewrite ler_nat leq_b1.
  rewrite ler_pmul2r ?invr_gt0 ?ltr0n // [ord0 == j]eq_sym (negbTE j0) addr0 -natrD ler_nat.
  by case: (altP (l =P ord0)) => [->|_]; rewrite ?[ord0 == j]eq_sym ?(negbTE j0) // leq_b1.
rewrite value_own // /others_halved (negbTE i0); case: (altP (l =P ord0)) => [->|l0].
  by rewrite [ord0 == i]eq_sym (negbTE i0) addr0 mul1r.
by rewrite add0r ler_pimull ?invr_ge0 ?ler0n // lern1 leq_b1.
Qed.

(** So user 0 has (n + 1)/2 times as much, n + 1 being the [n.+1] users. *)
Theorem equal_incomes_tight :
  [/\ equilibrium alone (fun=> 1) own_type, feasible alone others_halved, envy_free alone others_halved
    & 2%:R * utility alone others_halved ord0 = (n.+1%:R + 1) * utility alone own_type ord0].
Proof.
split; [exact: own_type_equilibrium | exact: others_halved_feasible | exact: others_halved_envy_free |].
by rewrite others_halved_utility own_type_utility eqxx mulrSr; field.
Qed.

End Tight.

(** No larger part of the total than 2/(n + 1) will do, for any number of users. *)
Theorem equal_incomes_total_tight (R : realFieldType) (n : nat) (e : R) : (0 < n)%N -> 0 < e ->
  exists (m : market R n.+1 n.+1) (price : 'I_n.+1 -> R) (x y : allocation R n.+1 n.+1),
    [/\ forall l, weight m l = 1, equilibrium m price x, feasible m y /\ envy_free m y
      & (n.+1%:R + 1) * total m x < (2%:R + e) * total m y].
Proof.
move=> n0 e0; pose unit := (n.+1%:R + 1) * n%:R / e.
have unit0 : 0 < unit by rewrite divr_gt0 // mulr_gt0 ?addr_gt0 ?ltr0n ?ltr01.
exists (@alone R n _ unit0), (fun=> 1), (@own_type R n), (@others_halved R n).
have [eq fy ef _] := @equal_incomes_tight R n _ unit0; split=> //.
have utilities (f : 'I_n.+1 -> R) a b : (forall i, f i = if i == ord0 then a else b) -> \sum_i f i = a + n%:R * b.
  by move=> h; rewrite (eq_bigr _ (fun i _ => h i)) big_ord_recl /= sumr_const card_ord mulr_natl.
rewrite /total (utilities _ _ _ (own_type_utility unit0)) (utilities _ _ _ (others_halved_utility unit0)).
have pos : 0 < n%:R :> R by rewrite ltr0n.
rewrite -subr_gt0 mulr1.
have -> : (2%:R + e) * (unit * (1 + n%:R / 2%:R) + n%:R / 2%:R) - (n.+1%:R + 1) * (unit + n%:R)
        = e * unit * (n%:R / 2%:R) + (2%:R + e) * (n%:R / 2%:R).
  by rewrite /unit mulrSr; field; rewrite (gt_eqF e0).
have half : 0 < n%:R / 2%:R :> R by rewrite divr_gt0 ?ltr0n.
by apply: addr_gt0; apply: mulr_gt0 => //; [apply: mulr_gt0 | apply: addr_gt0; rewrite ?ltr0n].
Qed.
