(** * What is printed of numbers and names says which they are

    Two numbers of at most 400 bits that print the same are the same, and so are two names.  A table of more than twelve
    numbers is printed as a digest of 128 bits, as each market and program is: two of them could share it.  So this
    is said of numbers and names, and not of whole lines. *)

From Coq Require Import ZArith QArith Qreduction List Bool Lia.
From Verified Require Import Syntax Json Numbers Sha256 Print Printed.
Import ListNotations.
Local Open Scope Z_scope.

Theorem shown_says_which p q : short (Qred p) -> short (Qred q) -> shown p = shown q -> (p == q)%Q.
Proof.
  intros sp sq e; pose proof (read_shown p sp) as rp; rewrite e, (read_shown q sq) in rp; injection rp as h.
  rewrite <- (Qred_correct p), <- (Qred_correct q), h; reflexivity.
Qed.

(** ** Hexadecimal digits *)
Lemma hex_digit_inj x y : 0 <= x < 16 -> 0 <= y < 16 -> hex_digit x = hex_digit y -> x = y.
Proof.
  intros hx hy; assert (all : forall z, 0 <= z < 16 -> In z [0; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; 12; 13; 14; 15])
    by (intros z h; simpl; lia).
  specialize (all x hx) as ix; specialize (all y hy) as iy; simpl in ix, iy.
  repeat (destruct ix as [<-|ix]; [repeat (destruct iy as [<-|iy]; [vm_compute; congruence|]); destruct iy|]);
    destruct ix.
Qed.

Lemma digit_at x i : Z.land (Z.shiftr x (4 * Z.of_nat i)) 15 = (x / 16 ^ Z.of_nat i) mod 16.
Proof.
  change 15 with (Z.ones 4); rewrite Z.land_ones, Z.shiftr_div_pow2 by lia.
  replace (2 ^ (4 * Z.of_nat i)) with (16 ^ Z.of_nat i); [reflexivity|].
  change 16 with (2 ^ 4); rewrite <- Z.pow_mul_r by lia; reflexivity.
Qed.

Lemma same_digits n x y : (forall i, (i < n)%nat -> (x / 16 ^ Z.of_nat i) mod 16 = (y / 16 ^ Z.of_nat i) mod 16) ->
  x mod 16 ^ Z.of_nat n = y mod 16 ^ Z.of_nat n.
Proof.
  induction n as [|n IH]; intro h; [rewrite !Z.mod_1_r; reflexivity|].
  rewrite Nat2Z.inj_succ, Z.pow_succ_r, (Z.mul_comm 16) by lia.
  assert (0 < 16 ^ Z.of_nat n) by (apply Z.pow_pos_nonneg; lia).
  rewrite !Z.rem_mul_r by lia; rewrite IH by (intros i l; apply h; lia); rewrite (h n) by lia; reflexivity.
Qed.

Lemma map_same {A B} (f g : A -> B) l : map f l = map g l -> forall a, In a l -> f a = g a.
Proof. induction l as [|b l IH]; intros e a []; injection e as h t; [subst; exact h|exact (IH t a H)]. Qed.

Lemma in_hex_inj n x y : 0 <= x < 16 ^ Z.of_nat n -> 0 <= y < 16 ^ Z.of_nat n -> in_hex n x = in_hex n y -> x = y.
Proof.
  intros hx hy e; rewrite <- (Z.mod_small x (16 ^ Z.of_nat n)), <- (Z.mod_small y (16 ^ Z.of_nat n)) by assumption.
  apply same_digits; intros i l; unfold in_hex in e.
  pose proof (map_same _ _ _ e i) as h; cbv beta in h; rewrite !digit_at in h.
  apply hex_digit_inj; [apply Z.mod_pos_bound; lia|apply Z.mod_pos_bound; lia|].
  apply h; rewrite <- in_rev; apply in_seq; lia.
Qed.

Lemma in_hex_length n x : List.length (in_hex n x) = n.
Proof. unfold in_hex; rewrite map_length, rev_length, seq_length; reflexivity. Qed.

Lemma app_same_length {A} (a b u v : list A) : List.length a = List.length b -> a ++ u = b ++ v -> a = b /\ u = v.
Proof.
  revert b; induction a as [|x a IH]; intros [|y b] l e; try discriminate; [auto|].
  injection e as -> e; destruct (IH b ltac:(simpl in l; lia) e) as [-> ->]; auto.
Qed.

Lemma in_hex_prefix n x y u v : 0 <= x < 16 ^ Z.of_nat n -> 0 <= y < 16 ^ Z.of_nat n ->
  in_hex n x ++ u = in_hex n y ++ v -> x = y /\ u = v.
Proof.
  intros hx hy e; apply app_same_length in e; [|rewrite !in_hex_length; reflexivity].
  destruct e as [e ->]; split; [exact (in_hex_inj n x y hx hy e)|reflexivity].
Qed.

(** ** Names *)
Definition character_shown (with_ c : Z) : text := if (c =? with_) || (c =? 92) then [92; c] else in_ascii c.
Definition a_character (c : Z) : Prop := 0 <= c <= 1114111.

Lemma quoted_is s : exists with_, (with_ = 39 \/ with_ = 34) /\
  quoted s = with_ :: flat_map (character_shown with_) s ++ [with_].
Proof. unfold quoted; eexists; split; [|reflexivity]. destruct (_ && _); [right|left]; reflexivity. Qed.

Ltac cases_of c := destruct (Z.ltb_spec c 127); [|destruct (Z.ltb_spec c 256); [|destruct (Z.ltb_spec c 65536)]].

Lemma character_prefix with_ a b u v : with_ = 39 \/ with_ = 34 -> a_character a -> a_character b ->
  character_shown with_ a ++ u = character_shown with_ b ++ v -> a = b /\ u = v.
Proof.
  intros w ha hb; unfold character_shown, in_ascii, a_character in *.
  assert (cons : forall (x y : Z) s t, x :: s = y :: t -> x = y /\ s = t) by (intros x y s t e; injection e; auto).
  destruct (Z.eqb_spec a with_) as [ea|na], (Z.eqb_spec b with_) as [eb|nb]; cbn [orb];
    try destruct (Z.eqb_spec a 92) as [ea'|na']; try destruct (Z.eqb_spec b 92) as [eb'|nb'];
    try cases_of a; try cases_of b; cbn [app]; intro e;
    repeat match goal with h : _ :: _ = _ :: _ |- _ => apply cons in h; destruct h end; unfold backslash in *;
    try (exfalso; lia); try (split; [lia|assumption]);
    match goal with h : in_hex ?n _ ++ _ = in_hex ?n _ ++ _ |- _ =>
      apply (in_hex_prefix n) in h; [exact h|cbn; lia|cbn; lia] end.
Qed.

Lemma end_of_name with_ a u : with_ = 39 \/ with_ = 34 -> a_character a ->
  [with_] <> character_shown with_ a ++ u.
Proof.
  intros w h; unfold character_shown, in_ascii, a_character in *.
  assert (cons : forall (x y : Z) s t, x :: s = y :: t -> x = y /\ s = t) by (intros x y s t e; injection e; auto).
  destruct (Z.eqb_spec a with_) as [ea|na]; cbn [orb]; try destruct (Z.eqb_spec a 92) as [e|n]; try cases_of a;
    cbn [app]; intro e'; apply cons in e'; destruct e' as [e' _]; unfold backslash in *; lia.
Qed.

Theorem quoted_says_which s t : Forall a_character s -> Forall a_character t -> quoted s = quoted t -> s = t.
Proof.
  intros hs ht; destruct (quoted_is s) as (w & w2 & ->), (quoted_is t) as (w' & w2' & ->); intro e.
  assert (cons : forall (x y : Z) s t, x :: s = y :: t -> x = y /\ s = t) by (intros x y u v h; injection h; auto).
  apply cons in e; destruct e as [<- e]; clear w2'; revert t ht e.
  induction hs as [|a s ha hs IH]; intros t ht e; destruct ht as [|b t hb ht]; [reflexivity| | |]; cbn [flat_map] in e.
  - rewrite <- app_assoc in e; exfalso; exact (end_of_name w b _ w2 hb e).
  - rewrite <- app_assoc in e; exfalso; exact (end_of_name w a _ w2 ha (eq_sym e)).
  - rewrite <- !app_assoc in e; destruct (character_prefix w a b _ _ w2 ha hb e) as [<- e'].
    rewrite (IH t ht e'); reflexivity.
Qed.
