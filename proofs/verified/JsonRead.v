(** * What is written as JSON is read as it was: [read_json_text]

    Every value without floats, of keys that differ, of characters that there are, and within the limits, is read from
    its text as the value that it is.  So the reader refuses nothing that it should read, and mistakes nothing. *)

From Coq Require Import ZArith List String Bool Lia.
From Verified Require Import Syntax ReadKeys Json Numbers JsonText.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Lists and objects *)
Section Induction.
Variable P : json -> Prop.
Hypotheses (null : P Null) (bool_ : forall b, P (Bool b)) (int : forall z, P (Int z)) (float : forall q, P (Float q))
  (str : forall s, P (Str s)) (arr : forall l, Forall P l -> P (Arr l))
  (obj : forall l, Forall (fun kv => P (snd kv)) l -> P (Obj l)).

Fixpoint nested (v : json) : P v :=
  match v with
  | Null => null
  | Bool b => bool_ b
  | Int z => int z
  | Float q => float q
  | Str s => str s
  | Arr l =>
    arr l ((fix all l : Forall P l := match l with [] => Forall_nil _ | v :: l => Forall_cons _ (nested v) (all l) end) l)
  | Obj l =>
    obj l ((fix all l : Forall (fun kv => P (snd kv)) l :=
              match l with [] => Forall_nil _ | (k, v) :: l => Forall_cons (k, v) (nested v) (all l) end) l)
  end.
End Induction.

Definition reads (v : json) : Prop := forall d stack empty, fits d v ->
  as_good_as (run (At stack d (Value empty)) (json_text v)) (complete stack d v).

Lemma run_step s c l : run s (c :: l) = run (step s c) l.
Proof. destruct s as [stack d m|why]; [reflexivity|]. cbn. now rewrite run_failed. Qed.

Fixpoint all_fit (d : Z) (l : list json) : Prop := match l with [] => True | v :: l => fits d v /\ all_fit d l end.
Fixpoint members_fit (d : Z) (l : list (text * json)) : Prop :=
  match l with [] => True | (k, v) :: l => Forall scalar k /\ fits d v /\ members_fit d l end.

Lemma run_elements stack d v l : Forall reads (v :: l) -> forall held empty, all_fit (d + 1) (v :: l) ->
  run (At (OpenArr held :: stack) (d + 1) (Value empty)) (separated (map json_text (v :: l)) ++ [93])
  = complete stack d (Arr (rev held ++ v :: l)).
Proof.
  revert v; induction l as [|w l IH]; intros v F held empty [Fv Fl]; inversion F as [|? ? Rv Rl]; subst.
  - cbn [map separated]. rewrite run_app, run_step.
    rewrite (Rv _ _ _ Fv 93) by (unfold ends; auto).
    cbn [complete step run]. unfold after. change (blank 93) with false. change (93 =? comma) with false.
    change (93 =? right_bracket) with true. cbv iota. replace (d + 1 - 1) with d by lia.
    unfold rev'. now rewrite rev_append_rev, app_nil_r.
  - change (separated (map json_text (v :: w :: l))) with (json_text v ++ 44 :: separated (map json_text (w :: l))).
    rewrite <- app_assoc, <- app_comm_cons, run_app, run_step, (Rv _ _ _ Fv 44) by (unfold ends; auto).
    cbn [complete step]. unfold after. change (blank 44) with false. change (44 =? comma) with true. cbv iota.
    rewrite (IH w Rl (v :: held) false Fl). cbn [rev]. now rewrite <- app_assoc.
Qed.

Lemma string_text_then s rest : string_text s ++ rest = 34 :: flat_map character s ++ 34 :: rest.
Proof. unfold string_text. cbn [app]. now rewrite <- app_assoc. Qed.

Lemma run_string_then stack d key s rest : Forall scalar s ->
  run (At stack d (InString key [] Plain)) (flat_map character s ++ 34 :: rest)
  = run (if key then At stack d (Colon s) else complete stack d (Str s)) rest.
Proof.
  intros S. replace (flat_map character s ++ 34 :: rest) with ((flat_map character s ++ [34]) ++ rest)
    by now rewrite <- app_assoc.
  now rewrite run_app, run_string.
Qed.

Definition member_text (kv : text * json) : text := let '(k, v) := kv in string_text k ++ 58 :: json_text v.

Lemma run_key stack d held key k rest empty : Forall scalar k ->
  run (At (OpenObj held key :: stack) d (Key empty)) (string_text k ++ 58 :: rest)
  = run (At (OpenObj held k :: stack) d (Value false)) rest.
Proof.
  intros Fk. rewrite string_text_then, run_step.
  change (step (At (OpenObj held key :: stack) d (Key empty)) 34)
    with (At (OpenObj held key :: stack) d (InString true [] Plain)).
  rewrite run_string_then by exact Fk. now rewrite run_step.
Qed.

Lemma run_members stack d k v l : Forall (fun kv => reads (snd kv)) ((k, v) :: l) -> forall held empty key,
  members_fit (d + 1) ((k, v) :: l) -> NoDup (map fst (rev held ++ (k, v) :: l)) ->
  run (At (OpenObj held key :: stack) (d + 1) (Key empty)) (separated (map member_text ((k, v) :: l)) ++ [125])
  = complete stack d (Obj (rev held ++ (k, v) :: l)).
Proof.
  revert k v; induction l as [|[k' v'] l IH]; intros k v F held empty key [Fk [Fv Fl]] D;
    inversion F as [|? ? Rv Rl]; subst; cbn [snd] in Rv.
  - cbn [map separated member_text]. rewrite <- app_assoc, <- app_comm_cons, run_key by exact Fk.
    rewrite run_app, run_step, (Rv _ _ _ Fv 125) by (unfold ends; auto).
    cbn [complete step run]. unfold after. change (blank 125) with false. change (125 =? comma) with false.
    change (125 =? right_brace) with true. cbv iota. unfold close_object.
    assert (N : NoDup (map fst ((k, v) :: held))).
    { apply NoDup_rev in D. rewrite <- map_rev, rev_app_distr, rev_involutive in D. exact D. }
    apply no_key_twiceP in N. rewrite N. replace (d + 1 - 1) with d by lia.
    unfold rev'. now rewrite rev_append_rev, app_nil_r.
  - change (separated (map member_text ((k, v) :: (k', v') :: l)))
      with ((string_text k ++ 58 :: json_text v) ++ 44 :: separated (map member_text ((k', v') :: l))).
    rewrite <- !app_assoc. rewrite <- !app_comm_cons. rewrite run_key by exact Fk.
    rewrite run_app, run_step, (Rv _ _ _ Fv 44) by (unfold ends; auto).
    cbn [complete step]. unfold after. change (blank 44) with false. change (44 =? comma) with true. cbv iota.
    rewrite (IH k' v' Rl ((k, v) :: held) false [] Fl).
    + cbn [rev]. now rewrite <- app_assoc.
    + cbn [rev]. now rewrite <- app_assoc.
Qed.

(** ** Every value *)
Lemma reads_all v : reads v.
Proof.
  induction v using nested; intros d stack empty Fit; cbn [json_text fits] in *.
  - intros c E. reflexivity.
  - intros c E. destruct b; reflexivity.
  - destruct (run_integer stack d empty z Fit) as [s [-> G]]. exact G.
  - destruct Fit.
  - intros c E. unfold string_text. rewrite run_step.
    change (step (At stack d (Value empty)) 34) with (At stack d (InString false [] Plain)).
    now rewrite run_string.
  - intros c E. f_equal. destruct Fit as [Deep Fit]. rewrite run_step.
    replace (step (At stack d (Value empty)) 91) with (At (OpenArr [] :: stack) (d + 1) (Value true)).
    2:{ cbn [step]. change (blank 91) with false. cbv iota. unfold begin. change (91 =? quote) with false.
        change (91 =? left_bracket) with true. cbv iota. unfold open.
        now replace (d <? most_depth) with true by (symmetry; apply Z.ltb_lt; exact Deep). }
    destruct l as [|v l].
    + cbn. now replace (d + 1 - 1) with d by lia.
    + rewrite (run_elements stack d v l H [] true); [reflexivity|].
      assert (G : forall l', (fix all l := match l with [] => True | v :: l => fits (d + 1) v /\ all l end) l' ->
        all_fit (d + 1) l').
      { induction l' as [|w l' IH]; cbn; [easy|]. intros [Fw Fl]. split; [exact Fw | exact (IH Fl)]. }
      exact (G (v :: l) Fit).
  - intros c E. f_equal. destruct Fit as [Deep [D Fit]]. rewrite run_step.
    replace (step (At stack d (Value empty)) 123) with (At (OpenObj [] [] :: stack) (d + 1) (Key true)).
    2:{ cbn [step]. change (blank 123) with false. cbv iota. unfold begin. change (123 =? quote) with false.
        change (123 =? left_bracket) with false. change (123 =? left_brace) with true. cbv iota. unfold open.
        now replace (d <? most_depth) with true by (symmetry; apply Z.ltb_lt; exact Deep). }
    destruct l as [|[k v] l].
    + cbn. now replace (d + 1 - 1) with d by lia.
    + change (map (fun '(k, v) => string_text k ++ 58 :: json_text v) ((k, v) :: l)) with (map member_text ((k, v) :: l)).
      rewrite (run_members stack d k v l H [] true []); [reflexivity| |exact D].
      assert (G : forall l',
        (fix all l := match l with [] => True | (k, v) :: l => Forall scalar k /\ fits (d + 1) v /\ all l end) l' ->
        members_fit (d + 1) l').
      { induction l' as [|[k' w] l' IH]; cbn; [easy|]. intros [Fk [Fw Fl]]. repeat split; [exact Fk | exact Fw | exact (IH Fl)]. }
      exact (G ((k, v) :: l) Fit).
Qed.

(** What is written is read as it was. *)
Theorem read_json_text v : fits 0 v -> read (json_text v) = Ok v.
Proof.
  intros F. unfold read, start. change space with 32. rewrite (reads_all v 0 [] false F 32) by (unfold ends; auto). reflexivity.
Qed.
