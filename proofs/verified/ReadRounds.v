(** * From JSON to a certificate of gangs of GPUs *)

From Coq Require Import ZArith NArith QArith List String Bool.
From Verified Require Import Syntax Json Numbers Decode.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition natural_of (j : json) : outcome N := let* z := integer j in Ok (Z.to_N z).

(** An integer of at least 1; a type, or -1 for a job that waits. *)
Definition size_of (j : json) : outcome Z :=
  let* z := integer j in if 1 <=? z then Ok z else unreadable "no integer of at least 1".
Definition type_of (j : json) : outcome (option N) :=
  match j with Int (-1) => Ok None | _ => let* i := natural_of j in Ok (Some i) end.

Definition toll_of (j : json) : outcome (Z * N * Q) :=
  match j with
  | Arr [size; i; toll] =>
    let* size := integer size in let* i := natural_of i in let* q := number toll in Ok (size, i, q)
  | _ => unreadable "no [size, type, toll]"
  end.
Definition tolled_in (l : fields) : outcome tolled :=
  let* prices := field l "prices" (list_of amount) in
  let* reward := field l "reward" amount in
  let* tolls := field l "tolls" (or_null (list_of toll_of)) in
  Ok (Tolled prices reward (match tolls with Some t => t | None => [] end)).

Definition case_of (j : json) : outcome case :=
  let* l := object_of [] (keys ["split"; "prices"; "reward"; "tolls"]) j in
  match get l "split" with
  | Null => let* t := tolled_in l in Ok (Bounded t)
  | Arr [size; i; most] =>
    let* size := integer size in let* i := natural_of i in let* most := integer most in Ok (Split size i most)
  | _ => unreadable "no [size, type, number]"
  end.

Definition of_gangs (l : fields) : outcome certificate :=
  let* l := object_of (keys ["gangs"; "capacity"; "least"; "cost"; "types"; "value"; "bound"; "gap"; "root"; "cases"])
              (keys ["grain"]) (Obj l) in
  let* sizes := field l "gangs" (list_of size_of) in
  let* gpus := field l "capacity" (list_of integer) in
  let* least := field l "least" integer in
  let* costs := field l "cost" (list_of (fun j =>
    let* row := list_of (or_null number) j in exactly_many (List.length gpus) row)) in
  let* types := field l "types" (list_of type_of) in
  let* value := field l "value" number in
  let* bound := field l "bound" number in
  let* gap := field l "gap" number in
  let* grain := field l "grain" (or_null positive) in
  let* root := field l "root" (fun j => let* l := object_of (keys ["prices";
    "reward"]) (keys ["tolls"]) j in tolled_in l) in
  (* where the root is enough, nobody looks at the cases *)
  let cases := match field l "cases" (list_of case_of) with Ok cases => Some cases | Error _ _ => None end in
  Ok (Gangs (Round sizes costs gpus least) types value bound gap grain root cases).
