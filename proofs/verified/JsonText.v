(** * Texts of JSON values, and what the reader makes of strings and numbers *)

From Coq Require Import ZArith List String Bool Lia.
From Verified Require Import Syntax Json Numbers.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Text of a value *)
Definition hex_of (x : Z) : Z := if x <? 10 then 48 + x else 87 + x.

(** A character in UTF-8; quotation marks, backslashes and control characters are escaped. *)
Definition character (c : Z) : text :=
  if (c =? 34) || (c =? 92) then [92; c]
  else if c <? 32 then [92; 117; 48; 48; hex_of (c / 16); hex_of (c mod 16)]
  else if c <? 128 then [c]
  else if c <? 2048 then [192 + c / 64; 128 + c mod 64]
  else if c <? 65536 then [224 + c / 4096; 128 + (c / 64) mod 64; 128 + c mod 64]
  else [240 + c / 262144; 128 + (c / 4096) mod 64; 128 + (c / 64) mod 64; 128 + c mod 64].

Definition string_text (s : text) : text := 34 :: flat_map character s ++ [34].

Fixpoint separated (l : list text) : text :=
  match l with
  | [] => []
  | [a] => a
  | a :: l => a ++ 44 :: separated l
  end.

Fixpoint json_text (v : json) : text :=
  match v with
  | Null => codes "null"
  | Bool b => if b then codes "true" else codes "false"
  | Int z => decimal z
  | Float _ => []
  | Str s => string_text s
  | Arr l => 91 :: separated (map json_text l) ++ [93]
  | Obj l => 123 :: separated (map (fun '(k, v) => string_text k ++ 58 :: json_text v) l) ++ [125]
  end.

(** ** What is read back *)

(** A character that Unicode has: no half of a surrogate pair. *)
Definition scalar (c : Z) : Prop := 0 <= c < 55296 \/ 57344 <= c <= 1114111.

(** [fits d v]: a value that stands [d] lists or objects deep. *)
Fixpoint fits (d : Z) (v : json) : Prop :=
  match v with
  | Null | Bool _ => True
  | Int z => Z.of_nat (List.length (decimal z)) <= most_plain_digits
  | Float _ => False
  | Str s => Forall scalar s
  | Arr l => d < most_depth /\ (fix all l := match l with [] => True | v :: l => fits (d + 1) v /\ all l end) l
  | Obj l =>
    d < most_depth /\ NoDup (map fst l)
    /\ (fix all l := match l with [] => True | (k, v) :: l => Forall scalar k /\ fits (d + 1) v /\ all l end) l
  end.

(** ** The automaton over texts that are put together *)
Lemma run_failed why l : run (Failed why) l = Failed why.
Proof. now destruct l. Qed.

Lemma run_cons stack d m c l : run (At stack d m) (c :: l) = run (step (At stack d m) c) l.
Proof. reflexivity. Qed.

Lemma run_app s a b : run s (a ++ b) = run (run s a) b.
Proof.
  revert s; induction a as [|c a IH]; intros s; [reflexivity|].
  destruct s as [stack d m|why]; [|cbn; now rewrite run_failed]. cbn [app]. rewrite !run_cons. apply IH.
Qed.

(** *** Strings *)
Lemma hex_hex_of x : 0 <= x < 16 -> hex (hex_of x) = Some x.
Proof.
  intros H. assert (C : x = 0 \/ x = 1 \/ x = 2 \/ x = 3 \/ x = 4 \/ x = 5 \/ x = 6 \/ x = 7 \/ x = 8 \/ x = 9 \/ x = 10
    \/ x = 11 \/ x = 12 \/ x = 13 \/ x = 14 \/ x = 15) by lia.
  repeat (destruct C as [->|C]; [reflexivity|]). subst. reflexivity.
Qed.

Lemma joined_plain rev c : Forall (fun x => 0 <= x) rev -> 0 <= c < 55296 -> joined rev c = c :: rev.
Proof.
  intros F H. unfold joined, xD800, xDBFF, xDC00, xDFFF.
  assert (E : (55296 <=? c) = false) by (apply Z.leb_gt; lia).
  destruct rev as [|h rev]; [now rewrite E|]. inversion F; subst.
  replace (h <=? - (55296)) with false by (symmetry; apply Z.leb_gt; lia).
  rewrite !andb_false_r. cbn [andb]. now rewrite E.
Qed.

Ltac decided :=
  repeat match goal with
  | |- context [?a =? ?b] => first [replace (a =? b) with false by (symmetry; apply Z.eqb_neq; lia)
                                   | replace (a =? b) with true by (symmetry; apply Z.eqb_eq; lia)]
  | |- context [?a <? ?b] => first [replace (a <? b) with true by (symmetry; apply Z.ltb_lt; lia)
                                   | replace (a <? b) with false by (symmetry; apply Z.ltb_ge; lia)]
  | |- context [?a <=? ?b] => first [replace (a <=? b) with true by (symmetry; apply Z.leb_le; lia)
                                    | replace (a <=? b) with false by (symmetry; apply Z.leb_gt; lia)]
  end; cbn [andb orb].

Ltac bytes := cbn [run step in_string_step]; unfold quote, backslash, space, small_u, x80, xC2, xE0, xF0, xF5, xC0, x800, x10000,
  sixty_four, x10FFFF, xD800, xDFFF.

Lemma run_character stack d key rev c :
  Forall (fun x => 0 <= x) rev -> scalar c ->
  run (At stack d (InString key rev Plain)) (character c) = At stack d (InString key (c :: rev) Plain).
Proof.
  intros F S. unfold character.
  destruct (Z.eqb_spec c 34) as [->|N34]; [reflexivity|].
  destruct (Z.eqb_spec c 92) as [->|N92]; [reflexivity|]. cbn [orb].
  destruct (Z.ltb_spec c 32) as [L|L].
  { assert (0 <= c < 32) by (unfold scalar in S; lia).
    cbn [run]. cbn [step in_string_step]. change (92 =? quote) with false. change (92 =? backslash) with true.
    cbn [step in_string_step]. change (117 =? small_u) with true. cbv iota.
    cbn [step in_string_step]. change (hex 48) with (Some 0). cbv iota zeta. change (4 =? 1) with false. cbv iota.
    cbn [step in_string_step]. change (hex 48) with (Some 0). cbv iota zeta. change (4 - 1 =? 1) with false. cbv iota.
    cbn [step in_string_step]. rewrite hex_hex_of by (Z.to_euclidean_division_equations; lia).
    cbv iota zeta. change (4 - 1 - 1 =? 1) with false. cbv iota.
    cbn [step in_string_step]. rewrite hex_hex_of by (Z.to_euclidean_division_equations; lia).
    cbv iota zeta. change (4 - 1 - 1 - 1 =? 1) with true. cbv iota.
    replace (((0 * sixteen + 0) * sixteen + 0) * sixteen + c / 16) with (c / 16) by (unfold sixteen; lia).
    replace (c / 16 * sixteen + c mod 16) with c by (unfold sixteen; Z.to_euclidean_division_equations; lia).
    rewrite joined_plain by (easy || lia). reflexivity. }
  destruct (Z.ltb_spec c 128) as [L1|L1].
  { bytes. decided. reflexivity. }
  destruct (Z.ltb_spec c 2048) as [L2|L2].
  { assert (194 <= 192 + c / 64 < 224) by (Z.to_euclidean_division_equations; lia).
    assert (128 <= 128 + c mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
    assert (E : (192 + c / 64 - 192) * 64 + (128 + c mod 64 - 128) = c) by (Z.to_euclidean_division_equations; lia).
    bytes. decided. bytes. decided. rewrite E. unfold scalar in S. decided. reflexivity. }
  destruct (Z.ltb_spec c 65536) as [L3|L3].
  { assert (224 <= 224 + c / 4096 < 240) by (Z.to_euclidean_division_equations; lia).
    assert (128 <= 128 + (c / 64) mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
    assert (128 <= 128 + c mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
    assert (E : ((224 + c / 4096 - 224) * 64 + (128 + (c / 64) mod 64 - 128)) * 64 + (128 + c mod 64 - 128) = c)
      by (Z.to_euclidean_division_equations; lia).
    bytes. decided. bytes. decided. bytes. decided. rewrite E. 
    replace ((55296 <=? c) && (c <=? 57343)) with false.
    2:{ symmetry. apply andb_false_iff. unfold scalar in S. destruct S; [left|right]; apply Z.leb_gt; lia. }
    decided. reflexivity. }
  assert (c <= 1114111) by (unfold scalar in S; lia).
  assert (240 <= 240 + c / 262144 < 245) by (Z.to_euclidean_division_equations; lia).
  assert (128 <= 128 + (c / 4096) mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
  assert (128 <= 128 + (c / 64) mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
  assert (128 <= 128 + c mod 64 < 192) by (Z.to_euclidean_division_equations; lia).
  assert (E : (((240 + c / 262144 - 240) * 64 + (128 + (c / 4096) mod 64 - 128)) * 64 + (128 + (c / 64) mod 64 - 128)) * 64
      + (128 + c mod 64 - 128) = c) by (Z.to_euclidean_division_equations; lia).
  bytes. decided. bytes. decided. bytes. decided. bytes. decided. rewrite E. decided. reflexivity.
Qed.

Lemma run_characters stack d key s : forall rev,
  Forall (fun x => 0 <= x) rev -> Forall scalar s ->
  run (At stack d (InString key rev Plain)) (flat_map character s) = At stack d (InString key (rev_append s rev) Plain).
Proof.
  induction s as [|c s IH]; intros rev F S; [reflexivity|]. inversion S as [|? ? Sc Ss]; subst. cbn [flat_map].
  rewrite run_app, run_character by assumption. rewrite IH; [reflexivity| |assumption].
  constructor; [unfold scalar in Sc; lia|assumption].
Qed.

Lemma settled_rev s : Forall scalar s -> settled (rev_append s []) = s.
Proof.
  intros S. unfold settled. rewrite !rev_append_rev, !app_nil_r, map_rev, rev_involutive.
  induction S as [|c s Sc Ss IH]; [reflexivity|]. cbn. rewrite IH. f_equal. unfold scalar in Sc. lia.
Qed.

(** A string is read after its first quotation mark. *)
Lemma run_string stack d key s : Forall scalar s ->
  run (At stack d (InString key [] Plain)) (flat_map character s ++ [34])
  = if key then At stack d (Colon s) else complete stack d (Str s).
Proof.
  intros S. rewrite run_app, run_characters by (constructor || assumption). cbn [run step in_string_step].
  change (34 =? quote) with true. cbv iota. now rewrite settled_rev.
Qed.

(** *** Numbers: what a text of digits leads to, and what the byte after it does *)
Definition ends (c : Z) : Prop := c = 44 \/ c = 93 \/ c = 125 \/ c = 32.

(** The state [s], by whatever ends a number, goes where the state after the value goes. *)
Definition as_good_as (s after : state) : Prop := forall c, ends c -> step s c = step after c.

Lemma beyond_step stack d v c : ends c -> beyond (complete stack d v) c = step (complete stack d v) c.
Proof.
  intros E. destruct stack as [|[held|held key] rest]; cbn [complete beyond step]; try reflexivity.
Qed.

Lemma whole_ends stack d minus n value length v c :
  n = Whole -> v = Int (if minus : bool then - value else value) -> ends c ->
  step (At stack d (InNumber minus n value length)) c = step (complete stack d v) c.
Proof.
  intros -> -> E. rewrite <- beyond_step by exact E. cbn [step in_number_step].
  destruct E as [->|[->|[->| ->]]]; reflexivity.
Qed.

Lemma zero_ends stack d minus value length c : ends c ->
  step (At stack d (InNumber minus Json.Zero value length)) c = step (complete stack d (Int 0)) c.
Proof.
  intros E. rewrite <- beyond_step by exact E. cbn [step in_number_step].
  destruct E as [->|[->|[->| ->]]]; reflexivity.
Qed.

Lemma run_digits stack d minus l : forall value length found,
  value_of value l = Some found -> length + Z.of_nat (List.length l) <= most_plain_digits ->
  run (At stack d (InNumber minus Whole value length)) l
  = At stack d (InNumber minus Whole found (length + Z.of_nat (List.length l))).
Proof.
  induction l as [|c l IH]; intros value length found V L.
  - cbn in V. injection V as <-. cbn. now rewrite Z.add_0_r.
  - cbn [value_of] in V. destruct (digit c) eqn:D; [|discriminate].
    change (Z.of_nat (List.length (c :: l))) with (Z.of_nat (S (List.length l))) in *. rewrite Nat2Z.inj_succ in *.
    rewrite run_cons. cbn [step in_number_step]. rewrite D.
    replace (length <? most_plain_digits) with true by (symmetry; apply Z.ltb_lt; lia).
    rewrite (IH _ _ found) by (exact V || lia). do 2 f_equal. lia.
Qed.

(** The digits of a positive number begin with one that is not zero. *)
Lemma digits_first fuel n acc : 0 < n -> n < 2 ^ Z.of_nat fuel -> (fuel > 0)%nat ->
  exists c rest, digits fuel n acc = c :: rest /\ 49 <= c <= 57.
Proof.
  revert n acc; induction fuel as [|fuel IH]; intros n acc H0 H P; [lia|]. cbn [digits].
  destruct (Z.ltb_spec n 10) as [L|L]; [exists (48 + n), acc; split; [reflexivity|lia]|].
  destruct (Z.div_eucl n 10) as [q r] eqn:E.
  generalize (Z_div_mod n 10 ltac:(lia)). rewrite E. intros [En Hr].
  assert (Hq : q < 2 ^ Z.of_nat fuel) by (rewrite Nat2Z.inj_succ, Z.pow_succ_r in H by lia; lia).
  destruct fuel as [|fuel']; [simpl in Hq; lia|]. apply IH; lia.
Qed.

Lemma natural_first n : 0 < n -> exists c rest, natural n = c :: rest /\ 49 <= c <= 57.
Proof.
  intros H. apply digits_first; [exact H| |unfold fuel_for; lia].
  unfold fuel_for. rewrite Nat2Z.inj_succ, Z2Nat.id by apply Z.log2_nonneg. now apply Z.log2_spec.
Qed.

Lemma run_natural stack d empty n : 0 < n -> Z.of_nat (List.length (natural n)) <= most_plain_digits ->
  exists length, run (At stack d (Value empty)) (natural n) = At stack d (InNumber false Whole n length).
Proof.
  intros H L. destruct (natural_first n H) as [c [rest [e C]]].
  assert (V := natural_value n ltac:(lia)). rewrite e in *. cbn [value_of] in V.
  assert (D : digit c = true) by (unfold digit, zero, nine; apply andb_true_iff; split; apply Z.leb_le; lia).
  rewrite D in V. cbn [List.length] in L. rewrite Nat2Z.inj_succ in L.
  eexists. rewrite run_cons. cbn [step]. unfold blank, space, newline, return_, tab. decided.
  unfold begin, quote, left_bracket, left_brace, minus_sign, zero. decided. rewrite D.
  rewrite (run_digits _ _ _ _ _ _ n) by (exact V || lia). reflexivity.
Qed.

Lemma run_minus stack d empty n : 0 < n -> Z.of_nat (List.length (natural n)) + 1 <= most_plain_digits ->
  exists length, run (At stack d (Value empty)) (45 :: natural n) = At stack d (InNumber true Whole n length).
Proof.
  intros H L. destruct (natural_first n H) as [c [rest [e C]]].
  assert (V := natural_value n ltac:(lia)). rewrite e in *. cbn [value_of] in V.
  assert (D : digit c = true) by (unfold digit, zero, nine; apply andb_true_iff; split; apply Z.leb_le; lia).
  rewrite D in V. cbn [List.length] in L. rewrite Nat2Z.inj_succ in L.
  eexists. rewrite run_cons. change (step (At stack d (Value empty)) 45) with (At stack d (InNumber true Minus 0 1)). rewrite run_cons.
  cbn [step in_number_step]. unfold zero. decided. rewrite D.
  rewrite (run_digits _ _ _ _ _ _ n) by (exact V || lia). reflexivity.
Qed.

Lemma run_integer stack d empty z : Z.of_nat (List.length (decimal z)) <= most_plain_digits ->
  exists s, run (At stack d (Value empty)) (decimal z) = s /\ as_good_as s (complete stack d (Int z)).
Proof.
  intros L. unfold decimal in *. destruct (Z.ltb_spec z 0) as [N|N].
  - cbn [List.length] in L. rewrite Nat2Z.inj_succ in L.
    destruct (run_minus stack d empty (- z) ltac:(lia) ltac:(lia)) as [length ->]. eexists; split; [reflexivity|].
    intros c E. apply whole_ends; [reflexivity| |exact E]. f_equal. lia.
  - destruct (Z.eq_dec z 0) as [->|Z0].
    + eexists; split; [reflexivity|]. intros c E. now apply zero_ends.
    + destruct (run_natural stack d empty z ltac:(lia) L) as [length ->]. eexists; split; [reflexivity|].
      intros c E. now apply whole_ends.
Qed.
