(** * From JSON values to markets, programs and multipliers *)

From Coq Require Import ZArith NArith QArith List String Ascii Bool.
From Verified Require Import Syntax Json Numbers Decode ReadKeys ReadRounds ReadOwed.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition is_kind (kind : text) (s : string) : bool := same kind (codes s).

Definition user_at (known : list text) (j : json) : outcome N := let* i := position known j in Ok (N.of_nat i).

(** ** Markets *)
Definition user_of (whole : bool) (types : nat) (j : json) : outcome user :=
  let more := if whole then ["least"; "most"] else [] in
  let* l := object_of (keys ["name"; "speedup"]) (keys (["weight"; "demand"] ++ more)) j in
  let* name := field l "name" name in
  let* speedup := field l "speedup" (numbers types) in
  let* weight := field l "weight" (or_null positive) in
  let* demand := field l "demand" (or_null positive) in
  let* _ := require (absent l "least" && absent l "most") Unknown "speedups within bounds" in
  Ok (User name speedup (match weight with Some w => w | None => 1%Q end) demand).

Definition names_of (m : market) : list text := map Syntax.name (users m).
Definition user_count (m : market) : nat := List.length (users m).
Definition type_count (m : market) : nat := List.length (types m).

(** [whole]: whether the kind allows entitlements, and bounds of speedups, which this program does not know. *)
Definition market_of (whole : bool) (j : json) : outcome market :=
  let* l := object_of (keys ["schema"; "types"; "capacity"; "user"]) (keys (if whole then ["entitlements"] else [])) j
    in
  let* _ := field l "schema" version in
  let* types := field l "types" names in
  let count := List.length types in
  let* capacity := field l "capacity" (numbers count) in
  let* users := field l "user" (list_of (user_of whole count)) in
  let* _ := require (distinct (map Syntax.name users)) NoCertificate "a name stands twice" in
  let* entitled := field l "entitlements" (or_null (entitlements_of types (map Syntax.name users))) in
  let* _ := require (match types, users with [], _ | _, [] => false | _, _ => true end) NoCertificate
              "there are no users, or no types" in
  let* _ := require (forallb (fun q => 0 <=? Qnum q) capacity) NoCertificate "a capacity is negative" in
  let* _ := require (forallb (fun u => forallb (fun q => 0 <=? Qnum q) (speedup u)) users) NoCertificate
              "a speedup is negative" in
  Ok (Market types capacity users entitled).

Definition table_of (m : market) (j : json) : outcome Syntax.table := Decode.table (user_count m) (type_count m) j.

(** ** Programs *)
Definition bound_of : json -> outcome (option Q) := or_null number.

Definition variable_of (j : json) : outcome variable :=
  let* l := object_of (keys ["cost"; "lower"; "upper"; "integer"]) [] j in
  let* cost := field l "cost" number in
  let* lower := field l "lower" bound_of in
  let* upper := field l "upper" bound_of in
  let* integer := field l "integer" truth in
  Ok (Column cost lower upper integer).

Definition pair_of {A B : Type} (first : json -> outcome A) (second : json -> outcome B) (j : json) : outcome (A * B) :=
  match j with
  | Arr [a; b] => let* a := first a in let* b := second b in Ok (a, b)
  | _ => unreadable "no list of two"
  end.

Definition row_of_json (variables : N) (j : json) : outcome row :=
  let* l := object_of (keys ["terms"; "lower"; "upper"]) [] j in
  let* terms := field l "terms" (list_of (pair_of natural_of number)) in
  let* _ := require (forallb (fun '(v, _) => (v <? variables)%N) terms
                     && no_key_twice (map (fun '(v, _) => [Z.of_N v]) terms)) NoCertificate "a term is strange" in
  let* lower := field l "lower" bound_of in
  let* upper := field l "upper" bound_of in
  Ok (Row terms lower upper).

Definition senses : list (string * bool) := [("maximize", true); ("minimize", false)].

Definition program_of (j : json) : outcome program :=
  let* l := object_of (keys ["sense"; "offset"; "variables"; "rows"]) [] j in
  let* maximize := field l "sense" (choice senses) in
  let* offset := field l "offset" number in
  let* variables := field l "variables" (list_of variable_of) in
  let* rows := field l "rows" (list_of (row_of_json (N.of_nat (List.length variables)))) in
  Ok (Program maximize offset variables rows).

(** ** Multipliers, and values of variables by name *)
Fixpoint parts_of_dual (l : list json) : outcome (list N * Q) :=
  match l with
  | [] => unreadable "no [row, ..., number]"
  | [last] => let* q := number last in Ok ([], q)
  | j :: rest => let* i := natural_of j in let* found := parts_of_dual rest in Ok (i :: fst found, snd found)
  end.

Definition dual_of (j : json) : outcome (text * list N * Q) :=
  match j with
  | Arr (Str word :: first :: more) =>
    let* found := parts_of_dual (first :: more) in Ok (word, fst found, snd found)
  | _ => unreadable "no [row, ..., number]"
  end.

Definition duals_of (j : json) : outcome (list dual) :=
  let* l := list_of dual_of j in
  let key '(word, at_, _) := word ++ 1114112 :: map Z.of_N at_ in
  let* _ := require (no_key_twice (map key l)) NoCertificate "a row has two multipliers" in
  Ok (map (fun '(word, at_, q) => Dual word at_ q) l).

Definition named_of (j : json) : outcome (list (text * Q)) :=
  match j with
  | Null => Ok []
  | Obj l => all_of (fun '(k, v) => let* q := number v in Ok (k, q)) l
  | _ => unreadable "no object"
  end.

Definition some_numbers (count : nat) : json -> outcome (option (list Q)) := or_null (numbers count).
