(** * A number that is printed exactly reads back as the same number *)

From Coq Require Import ZArith QArith Qreduction List String Bool Lia.
From Verified Require Import Syntax Json Numbers Print.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Lemma digits_length fuel n acc : (List.length (digits fuel n acc) <= fuel + List.length acc)%nat.
Proof.
  revert n acc; induction fuel as [|fuel IH]; intros n acc; cbn [digits]; [lia|].
  destruct (n <? 10); cbn [List.length]; [lia|]. destruct (Z.div_eucl n 10) as [q r].
  specialize (IH q ((48 + r) :: acc)). cbn [List.length] in IH. lia.
Qed.

Lemma natural_length n : Z.of_nat (List.length (natural n)) <= Z.log2 n + 1.
Proof.
  unfold natural, fuel_for. assert (H := digits_length (S (Z.to_nat (Z.log2 n))) n []). cbn [List.length] in H.
  assert (0 <= Z.log2 n) by apply Z.log2_nonneg. lia.
Qed.

Definition short (q : Q) : Prop := Z.max (bit_length (Qnum q)) (bit_length (Zpos (Qden q))) <= most_shown_bits.

Lemma bit_length_log z : z <> 0 -> bit_length z = Z.log2 (Z.abs z) + 1.
Proof. intros H. unfold bit_length. destruct (Z.eqb_spec z 0); [easy|reflexivity]. Qed.

Lemma decimal_length z : Z.of_nat (List.length (decimal z)) <= bit_length z + 2.
Proof.
  unfold decimal. destruct (Z.ltb_spec z 0) as [L|L].
  - cbn [List.length]. rewrite Nat2Z.inj_succ. assert (H := natural_length (- z)).
    rewrite bit_length_log by lia. rewrite Z.abs_neq by lia. lia.
  - destruct (Z.eq_dec z 0) as [->|N]; [vm_compute; discriminate|].
    assert (H := natural_length z). rewrite bit_length_log by exact N. rewrite Z.abs_eq by lia. lia.
Qed.

Lemma short_digits q : short q ->
  too_long (decimal (Qnum q)) = false /\ too_long (natural (Zpos (Qden q))) = false.
Proof.
  unfold short, too_long, most_digits, most_shown_bits. intros S. split; apply Z.ltb_ge.
  - assert (H := decimal_length (Qnum q)). lia.
  - assert (H := natural_length (Zpos (Qden q))). rewrite (bit_length_log (Zpos (Qden q))) in S by discriminate.
    change (Z.abs (Zpos (Qden q))) with (Zpos (Qden q)) in S. lia.
Qed.

(** A number that is printed exactly is read as the same number. *)
Theorem read_shown q : short (Qred q) -> read_ratio (shown q) = Ok (Qred q).
Proof.
  intros S. unfold shown. replace (_ <=? most_shown_bits) with true by (symmetry; apply Z.leb_le; exact S).
  destruct (short_digits _ S). apply read_exactly; [|assumption|assumption].
  apply Qred_complete, Qred_correct.
Qed.
