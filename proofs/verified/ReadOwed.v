(** * From JSON to the entitlements of a market *)

From Coq Require Import ZArith QArith List String Bool Mergesort Orders.
From Verified Require Import Syntax ReadKeys Json Numbers Decode.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** Types of a gang in order, each once; its further goods in order of their names. *)
Fixpoint put_in (j : nat) (l : list nat) : list nat :=
  match l with
  | [] => [j]
  | i :: rest => if Nat.eqb j i then l else if Nat.ltb j i then j :: l else i :: put_in j rest
  end.
Module ByResource <: TotalLeBool.
  Definition t : Type := text * Q.
  Definition leb (a b : t) := not_beyond (fst a) (fst b).
  Lemma leb_total a b : leb a b = true \/ leb b a = true.
  Proof. apply not_beyond_total. Qed.
End ByResource.
Module ResourcesSorted := Sort ByResource.

Definition most_gpus : Q := 1000000 # 1.

Definition gang_of (users kinds : list text) (j : json) : outcome gang :=
  let* l := object_of (keys ["user"; "gpus"; "types"]) (keys ["other"]) j in
  let* allowed := field l "types" (list_of (position kinds)) in
  let* _ := require (match allowed with [] => false | _ => true end) NoCertificate "there are no types" in
  let* gpus := field l "gpus" amount in
  let* _ := require (Qle_bool gpus most_gpus) NoCertificate "a gang has too many GPUs" in
  let* other := field l "other" (fun j =>
    match j with
    | Null => Ok []
    | Obj l => all_of (fun '(r, v) => let* q := amount v in Ok (r, q)) l
    | _ => unreadable "no object"
    end) in
  let* user := field l "user" (position users) in
  Ok (Gang user gpus (fold_right put_in [] allowed) (ResourcesSorted.sort other)).

Definition good_of (j : json) : outcome (text * text) :=
  let* l := object_of (keys ["resource"; "flavor"]) [] j in
  let* r := field l "resource" name in
  let* f := field l "flavor" name in
  Ok (r, f).

Definition least_tier : Z := - 2 ^ 62.
Definition tier_of (j : json) : outcome Z :=
  match j with
  | Int z => if least_tier <=? z then Ok z else unreadable "an integer is too small"
  | _ => unreadable "no integer"
  end.

Definition rows_of {A : Type} (rows columns : nat) (read : json -> outcome A) (j : json) : outcome (list (list A)) :=
  let* l := list_of (fun j => let* row := list_of read j in exactly_many columns row) j in exactly_many rows l.
Definition row_of {A : Type} (columns : nat) (read : json -> outcome A) (j : json) : outcome (list A) :=
  let* l := list_of read j in exactly_many columns l.

Fixpoint goods_differ (l : list (text * text)) : bool :=
  match l with
  | [] => true
  | (r, f) :: rest => negb (existsb (fun '(s, g) => same r s && same f g) rest) && goods_differ rest
  end.

(** [kinds]: the types. *)
Definition entitlements_of (kinds users : list text) (j : json) : outcome entitlements :=
  let* l := object_of (keys ["groups"; "in"; "goods"; "stock"; "guarantee"; "cap"; "borrow_weight"; "tier"; "held";
                             "fixed"; "pending"]) [] j in
  let* groups := field l "groups" (list_of name) in
  let nodes := users ++ groups in
  let* _ := require (distinct nodes) NoCertificate "a name stands twice" in
  let n := List.length nodes in
  let people := List.length users in
  let* around := field l "in" (row_of n (or_null (position nodes))) in
  let* _ := require (forallb (fun g => match g with Some g => Nat.leb people g | None => true end) around)
              NoCertificate "a user is no group" in
  let* goods := field l "goods" (list_of good_of) in
  let* _ := require (goods_differ goods) NoCertificate "a good stands twice" in
  let width := (List.length kinds + List.length goods)%nat in
  let* guarantees := field l "guarantee" (rows_of n width (or_null amount)) in
  let* caps := field l "cap" (rows_of n width (or_null amount)) in
  let* held := field l "held" (rows_of people width amount) in
  let* pinned := field l "fixed" (rows_of people width amount) in
  let* stock := field l "stock" (row_of (List.length goods) amount) in
  let* weight := field l "borrow_weight" (row_of n amount) in
  let* tier := field l "tier" (row_of n tier_of) in
  let* pending := field l "pending" (list_of (gang_of users kinds)) in
  Ok (Entitlements groups around goods stock guarantees caps weight tier held pinned pending).
