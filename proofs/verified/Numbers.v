(** * Numbers in text: how they are read, and how they are printed

    A number in a certificate is an integer or a string "p/q" or "p", as in [proofs/verifier/reading.py].  What is printed
    reads back as the same number: [read_decimal_decimal]. *)

From Coq Require Import ZArith QArith Qreduction List String Lia.
From Verified Require Import Syntax Json.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Printed *)

(** The digits of a number that is not negative, before [acc]; [fuel] is at least how many there are. *)
Fixpoint digits (fuel : nat) (n : Z) (acc : text) : text :=
  match fuel with
  | O => acc
  | S fuel =>
    if n <? 10 then (48 + n) :: acc
    else let '(q, r) := Z.div_eucl n 10 in digits fuel q ((48 + r) :: acc)
  end.

Definition fuel_for (n : Z) : nat := S (Z.to_nat (Z.log2 n)).

Definition natural (n : Z) : text := digits (fuel_for n) n [].
Definition decimal (n : Z) : text := if n <? 0 then 45 :: natural (- n) else natural n.

(** In lowest terms: "p", or "p/q". *)
Definition exactly (q : Q) : text :=
  match Qden q with
  | 1%positive => decimal (Qnum q)
  | d => decimal (Qnum q) ++ 47 :: natural (Zpos d)
  end.

(** ** Read *)
Definition most_digits : Z := 20000.

(** The value of digits, where all of them are, after those of which it is [acc]. *)
Fixpoint value_of (acc : Z) (s : text) : option Z :=
  match s with
  | [] => Some acc
  | c :: rest => if digit c then value_of (acc * 10 + (c - 48)) rest else None
  end.

Definition read_natural (s : text) : option Z := match s with [] => None | _ => value_of 0 s end.

Definition read_decimal (s : text) : option Z :=
  match s with
  | c :: rest => if c =? 45 then option_map Z.opp (read_natural rest) else read_natural s
  | [] => None
  end.

(** What stands before the first "/", and after it where there is one. *)
Fixpoint cut (s : text) : text * option text :=
  match s with
  | [] => ([], None)
  | c :: rest => if c =? 47 then ([], Some rest) else let '(a, b) := cut rest in (c :: a, b)
  end.

Definition too_long (s : text) : bool := most_digits <? Z.of_nat (List.length s).

Definition no_number : text := codes "no number".

Definition read_ratio (s : text) : outcome Q :=
  let '(p, q) := cut s in
  let q := match q with Some q => q | None => [49] end in
  if too_long p || too_long q then Error NoCertificate "a number has too many digits"
  else match read_decimal p, read_natural q with
       | Some a, Some (Zpos b) => Ok (Qred (Qmake a b))
       | Some _, Some _ => Error NoCertificate "a number divides by zero"
       | _, _ => Error NoCertificate no_number
       end.

Definition number (j : json) : outcome Q :=
  match j with
  | Int z => Ok (Qmake z 1)
  | Str s => read_ratio s
  | _ => Error NoCertificate no_number
  end.

(** ** What is printed is read as the same *)

Lemma value_of_app s t acc : value_of acc (s ++ t) = match value_of acc s with Some a => value_of a t | None => None end.
Proof.
  revert acc; induction s as [|c s IH]; intros acc; simpl; [reflexivity|].
  destruct (digit c); [apply IH | reflexivity].
Qed.

Lemma digit_of r : 0 <= r < 10 -> digit (48 + r) = true.
Proof. intros H. unfold digit, zero, nine. apply andb_true_iff. split; apply Z.leb_le; lia. Qed.

(** [digits] writes what [value_of] reads, whatever follows. *)
Lemma value_of_digits fuel n acc before :
  0 <= n -> n < 2 ^ Z.of_nat fuel -> (fuel > 0)%nat ->
  exists k, 0 <= k /\ value_of before (digits fuel n acc) = value_of (before * 10 ^ k + n) acc.
Proof.
  revert n acc before; induction fuel as [|fuel IH]; intros n acc before H0 H P; [lia|].
  cbn [digits]. destruct (Z.ltb_spec n 10) as [L|L].
  - exists 1. split; [lia|]. cbn [value_of]. rewrite digit_of by lia. f_equal. lia.
  - destruct (Z.div_eucl n 10) as [q r] eqn:E.
    generalize (Z_div_mod n 10 ltac:(lia)). rewrite E. intros [En Hr].
    assert (Hq : q < 2 ^ Z.of_nat fuel).
    { rewrite Nat2Z.inj_succ, Z.pow_succ_r in H by lia. lia. }
    destruct fuel as [|fuel']; [simpl in Hq; lia|].
    destruct (IH q ((48 + r) :: acc) before ltac:(lia) Hq ltac:(lia)) as [k [Hk ->]].
    exists (k + 1). split; [lia|]. cbn [value_of]. rewrite digit_of by lia. f_equal.
    rewrite Z.pow_add_r by lia. rewrite Z.pow_1_r, En. lia.
Qed.

Lemma natural_value n : 0 <= n -> value_of 0 (natural n) = Some n.
Proof.
  intros H. unfold natural, fuel_for.
  destruct (value_of_digits (S (Z.to_nat (Z.log2 n))) n [] 0 H) as [k [_ ->]].
  - rewrite Nat2Z.inj_succ, Z2Nat.id by apply Z.log2_nonneg.
    destruct (Z.eq_dec n 0) as [->|N]; [reflexivity|]. apply Z.log2_spec. lia.
  - lia.
  - reflexivity.
Qed.

Lemma digits_nonempty fuel n acc : (fuel > 0)%nat -> 0 <= n -> exists c rest, digits fuel n acc = c :: rest /\ digit c = true.
Proof.
  revert n acc; induction fuel as [|fuel IH]; intros n acc P H; [lia|].
  cbn [digits]. destruct (Z.ltb_spec n 10) as [L|L].
  - exists (48 + n), acc. split; [reflexivity | apply digit_of; lia].
  - destruct (Z.div_eucl n 10) as [q r] eqn:E.
    generalize (Z_div_mod n 10 ltac:(lia)). rewrite E. intros [En Hr].
    destruct fuel as [|fuel'].
    + cbn [digits]. exists (48 + r), acc. split; [reflexivity | apply digit_of; lia].
    + apply IH; lia.
Qed.

Lemma read_natural_natural n : 0 <= n -> read_natural (natural n) = Some n.
Proof.
  intros H. unfold read_natural.
  destruct (digits_nonempty (fuel_for n) n [] ltac:(unfold fuel_for; lia) H) as [c [rest [e _]]].
  unfold natural. rewrite e. rewrite <- e. now apply natural_value.
Qed.

Theorem read_decimal_decimal n : read_decimal (decimal n) = Some n.
Proof.
  unfold decimal. destruct (Z.ltb_spec n 0) as [L|L].
  - unfold read_decimal. rewrite Z.eqb_refl, read_natural_natural by lia. cbn [option_map]. f_equal. lia.
  - unfold read_decimal.
    destruct (digits_nonempty (fuel_for n) n [] ltac:(unfold fuel_for; lia) L) as [c [rest [e d]]].
    unfold natural. rewrite e.
    destruct (Z.eqb_spec c 45) as [->|_]; [discriminate d|].
    rewrite <- e. now apply read_natural_natural.
Qed.

Lemma digits_no_slash fuel n acc : 0 <= n -> ~ In 47 acc -> ~ In 47 (digits fuel n acc).
Proof.
  revert n acc; induction fuel as [|fuel IH]; intros n acc H A; cbn [digits]; [easy|].
  destruct (Z.ltb_spec n 10) as [L|L].
  - intros [e|e]; [lia | easy].
  - destruct (Z.div_eucl n 10) as [q r] eqn:E.
    generalize (Z_div_mod n 10 ltac:(lia)). rewrite E. intros [En Hr].
    apply IH; [lia|]. intros [e|e]; [lia | easy].
Qed.

Lemma cut_none s : ~ In 47 s -> cut s = (s, None).
Proof.
  induction s as [|c s IH]; intros H; [reflexivity|]. cbn.
  destruct (Z.eqb_spec c 47) as [e|_]; [exfalso; apply H; now left|].
  rewrite IH; [reflexivity|]. intros I. apply H. now right.
Qed.

Lemma cut_some s t : ~ In 47 s -> cut (s ++ 47 :: t) = (s, Some t).
Proof.
  induction s as [|c s IH]; intros H; [reflexivity|]. cbn.
  destruct (Z.eqb_spec c 47) as [e|_]; [exfalso; apply H; now left|].
  rewrite IH; [reflexivity|]. intros I. apply H. now right.
Qed.

Lemma decimal_no_slash n : ~ In 47 (decimal n).
Proof.
  unfold decimal, natural. destruct (Z.ltb_spec n 0) as [L|L].
  - intros [e|e]; [lia|]. revert e. now apply digits_no_slash; [lia|].
  - now apply digits_no_slash.
Qed.

(** A fraction in lowest terms that is printed is read as the same fraction, if it keeps to the limit on digits. *)
Theorem read_exactly q :
  Qred q = q -> too_long (decimal (Qnum q)) = false -> too_long (natural (Zpos (Qden q))) = false ->
  read_ratio (exactly q) = Ok q.
Proof.
  intros R P D. destruct q as [a b]. cbn [Qnum Qden] in *.
  assert (C : cut (exactly (a # b)) = (decimal a, match b with 1%positive => None | _ => Some (natural (Zpos b)) end)).
  { unfold exactly. cbn [Qnum Qden]. destruct b;
      first [apply cut_some, decimal_no_slash | apply cut_none, decimal_no_slash]. }
  unfold read_ratio. rewrite C.
  assert (N : (match match b with 1%positive => None | _ => Some (natural (Zpos b)) end with
               | Some q => q | None => [49] end) = natural (Zpos b)).
  { destruct b; reflexivity. }
  rewrite N, P, D, read_decimal_decimal, read_natural_natural by lia. cbn [orb]. now rewrite R.
Qed.
