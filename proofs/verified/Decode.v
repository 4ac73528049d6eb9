(** * From a JSON value to the parts of a certificate: objects with known keys, numbers, names, tables *)

From Coq Require Import ZArith QArith List String Bool.
From Verified Require Import Syntax Json Numbers Unicode.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition unreadable {A : Type} (why : text) : outcome A := Error NoCertificate why.
Definition rejected {A : Type} (why : text) : outcome A := Error NotProved why.
Definition not_covered {A : Type} (why : text) : outcome A := Error Unknown why.

Definition require (holds : bool) (what : fault) (why : text) : outcome unit :=
  if holds then Ok tt else Error what why.

(** The place is put before a message, so that it costs nothing where there is none. *)
Definition at_place {A : Type} (place : text) (r : outcome A) : outcome A :=
  match r with
  | Error what why => Error what (place ++ codes ": " ++ why)
  | ok => ok
  end.

(** The results of all, or the first error. *)
Fixpoint all_of {A B : Type} (f : A -> outcome B) (l : list A) : outcome (list B) :=
  match l with
  | [] => Ok []
  | a :: rest => let* b := f a in let* bs := all_of f rest in Ok (b :: bs)
  end.

(** ** Objects *)
Definition fields := list (text * json).

Fixpoint find_key (key : text) (l : fields) : option json :=
  match l with
  | [] => None
  | (k, v) :: rest => if same k key then Some v else find_key key rest
  end.

(** What stands under a key; null where nothing does. *)
Definition get (l : fields) (key : text) : json := match find_key key l with Some v => v | None => Null end.
Definition has (l : fields) (key : text) : bool := match find_key key l with Some _ => true | None => false end.

Definition object (j : json) : outcome fields :=
  match j with Obj l => Ok l | _ => unreadable "no object" end.

(** An object with the keys [needed], and no other but the [optional]. *)
Definition object_of (needed optional : list text) (j : json) : outcome fields :=
  let* l := object j in
  let* _ := require (forallb (has l) needed) NoCertificate "a key is missing" in
  let* _ := require (forallb (fun '(k, _) => member k needed || member k optional) l) NoCertificate "a key is unknown" in
  Ok l.

Definition keys (s : list string) : list text := map codes s.

(** [read] what stands under a key, which is named where it cannot be read. *)
Definition field {A : Type} (l : fields) (key : text) (read : json -> outcome A) : outcome A :=
  at_place key (read (get l key)).

Definition or_null {A : Type} (read : json -> outcome A) (j : json) : outcome (option A) :=
  match j with Null => Ok None | _ => let* a := read j in Ok (Some a) end.

Definition absent (l : fields) (key : text) : bool := match get l key with Null => true | _ => false end.

(** ** Lists and numbers *)
Definition items (j : json) : outcome (list json) :=
  match j with Arr l => Ok l | _ => unreadable "no list" end.

Definition list_of {A : Type} (read : json -> outcome A) (j : json) : outcome (list A) :=
  let* l := items j in all_of read l.

Definition exactly_many {A : Type} (n : nat) (l : list A) : outcome (list A) :=
  if Nat.eqb (List.length l) n then Ok l else unreadable "a list has another number of entries than is needed".

Definition numbers (n : nat) (j : json) : outcome (list Q) :=
  let* l := list_of number j in exactly_many n l.

Definition table (rows columns : nat) (j : json) : outcome (list (list Q)) :=
  let* l := list_of (numbers columns) j in exactly_many rows l.

(** A number that is not negative, or that is positive. *)
Definition amount (j : json) : outcome Q :=
  let* q := number j in if 0 <=? Qnum q then Ok q else unreadable "a number is too little".
Definition positive (j : json) : outcome Q :=
  let* q := number j in if 0 <? Qnum q then Ok q else unreadable "a number is too little".

(** An integer that is no string and not negative. *)
Definition integer (j : json) : outcome Z :=
  match j with
  | Int z => if 0 <=? z then Ok z else unreadable "no integer of at least 0"
  | _ => unreadable "no integer of at least 0"
  end.

Definition truth (j : json) : outcome bool :=
  match j with Bool b => Ok b | _ => unreadable "neither true nor false" end.

(** ** Words and names *)
Definition string_of (j : json) : outcome text := match j with Str s => Ok s | _ => unreadable "no string" end.

Definition most_name : Z := 200.
Definition tilde : Z := 126.

(** A name as it can be printed: neither blank nor long. *)
Definition printable (c : Z) : bool := ((space <=? c) && (c <=? tilde)) || ((tilde + 1 <? c) && beyond_ascii c).

Definition name (j : json) : outcome text :=
  let* s := string_of j in
  let* _ := require (forallb printable s && negb (forallb (Z.eqb space) s)) NoCertificate "a name cannot be printed" in
  let* _ := require (Z.of_nat (List.length s) <=? most_name) NoCertificate "a name has too many characters" in
  Ok s.

Definition names (j : json) : outcome (list text) :=
  let* l := list_of name j in
  let* _ := require (distinct l) NoCertificate "a name stands twice" in
  Ok l.

Fixpoint position_in (s : text) (l : list text) : option nat :=
  match l with
  | [] => None
  | x :: rest => if same x s then Some O else option_map S (position_in s rest)
  end.

(** Where a name stands among those that are known. *)
Definition position (known : list text) (j : json) : outcome nat :=
  match j with
  | Str s => match position_in s known with Some i => Ok i | None => unreadable "a name is unknown" end
  | _ => unreadable "a name is unknown"
  end.

(** One of some words, with what it stands for. *)
Definition choice {A : Type} (known : list (string * A)) (j : json) : outcome A :=
  match j with
  | Str s =>
    match find (fun '(w, _) => same (codes w) s) known with
    | Some (_, a) => Ok a
    | None => unreadable "a word is none of those that are known"
    end
  | _ => unreadable "a word is none of those that are known"
  end.

Definition version (j : json) : outcome unit :=
  match j with Int 1 => Ok tt | _ => unreadable "the version is not 1" end.

(** ** What reading gives *)
Lemma object_of_keys needed optional j l :
  object_of needed optional j = Ok l ->
  (forall k, In k needed -> has l k = true) /\ (forall k v, In (k, v) l -> In k needed \/ In k optional).
Proof.
  unfold object_of, require. destruct j; simpl; try discriminate.
  destruct (forallb (has l0) needed) eqn:N; simpl; [|discriminate].
  destruct (forallb _ l0) eqn:U; simpl; [|discriminate]. intros [= <-]. split.
  - now apply forallb_forall.
  - intros k v I. rewrite forallb_forall in U. specialize (U _ I). cbn in U.
    rewrite orb_true_iff, !memberP in U. exact U.
Qed.

Lemma names_distinct j l : names j = Ok l -> NoDup l.
Proof.
  unfold names. destruct (list_of name j) as [l'|]; simpl; [|discriminate].
  unfold require. destruct (distinct l') eqn:D; simpl; [|discriminate]. intros [= <-]. now apply distinctP.
Qed.

Lemma exactly_many_length {A} n (l l' : list A) : exactly_many n l = Ok l' -> l' = l /\ List.length l = n.
Proof.
  unfold exactly_many. destruct (Nat.eqb (List.length l) n) eqn:E; [|discriminate].
  intros [= <-]. split; [reflexivity | now apply Nat.eqb_eq].
Qed.

Lemma all_of_length {A B} (f : A -> outcome B) l r : all_of f l = Ok r -> List.length r = List.length l.
Proof.
  revert r; induction l as [|a l IH]; cbn; intros r; [now intros [= <-]|].
  destruct (f a) as [b|]; cbn; [|discriminate]. destruct (all_of f l) as [bs|]; cbn; [|discriminate].
  intros [= <-]. cbn. now rewrite (IH bs).
Qed.

Lemma numbers_length n j l : numbers n j = Ok l -> List.length l = n.
Proof.
  unfold numbers. destruct (list_of number j) as [l'|]; cbn; [|discriminate].
  intros H. apply exactly_many_length in H as [-> H]. exact H.
Qed.

Lemma all_of_forall {A B} (f : A -> outcome B) (P : B -> Prop) l r :
  all_of f l = Ok r -> (forall a b, f a = Ok b -> P b) -> Forall P r.
Proof.
  revert r; induction l as [|a l IH]; cbn; intros r; [intros [= <-]; constructor|].
  destruct (f a) as [b|] eqn:E; cbn; [|discriminate]. destruct (all_of f l) as [bs|] eqn:F; cbn; [|discriminate].
  intros [= <-] H. constructor; [now apply (H a)|]. now apply IH.
Qed.

Lemma table_shape rows columns j l :
  table rows columns j = Ok l -> List.length l = rows /\ Forall (fun row => List.length row = columns) l.
Proof.
  unfold table, list_of. destruct (items j) as [js|]; cbn; [|discriminate].
  destruct (all_of (numbers columns) js) as [l'|] eqn:E; cbn; [|discriminate].
  intros H. apply exactly_many_length in H as [-> H]. split; [exact H|].
  apply (all_of_forall _ _ _ _ E). intros a b. apply numbers_length.
Qed.
