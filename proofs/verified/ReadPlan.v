(** * From JSON to the schedules of a batch

    A number may be a float here, which stands for the fraction that it is.  Prices and payments, and a power that is no
    whole number, are not known here. *)

From Coq Require Import ZArith NArith QArith List String Bool.
From Verified Require Import Syntax Json Numbers Decode ReadKeys ReadRounds.
From Verified Require Import Print ReadMarkets Reader.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Floats: 53 bits, and at least 2^-1074 *)
Definition most_float : Z := 1024.
Definition least_float : Z := -1074.
Definition digits_of (a : Z) : Z := Z.log2 a * 30103 / 100000.

(** The float nearest to m times 10 ^ e; none where that is beyond all. *)
Definition nearest_float (m e : Z) : option Q :=
  let a := Z.abs m in
  if (a =? 0) || (digits_of a + e <? -340) then Some 0%Q
  else if 310 <? digits_of a + e then None
  else
    let '(n, d) := if e <? 0 then (a, ten_to (- e)) else (a * ten_to e, 1) in
    let about := Z.log2 n - Z.log2 d in
    let below := if about <? 0 then Z.shiftl n (- about) <? d else n <? Z.shiftl d about in
    let k := Z.max ((if below then about - 1 else about) - 52) least_float in
    let bits := if k <? 0 then nearest (Z.shiftl n (- k)) d else nearest n (Z.shiftl d k) in
    if (0 <=? k) && (Z.shiftl 1 (most_float - k) <=? bits) then None
    else
      let signed := if m <? 0 then - bits else bits in
      Some (Qred (if k <? 0 then Qmake signed (Z.to_pos (Z.shiftl 1 (- k))) else Qmake (Z.shiftl signed k) 1)).

Definition told (j : json) : outcome Q :=
  match j with
  | Float (Some (m, e)) =>
    match nearest_float m e with Some q => Ok q | None => unreadable "a number is too large for a float" end
  | Float None => not_covered "a float that is no number, or has too many digits"
  | _ => number j
  end.
Definition told_amount (j : json) : outcome Q :=
  let* q := told j in if 0 <=? Qnum q then Ok q else unreadable "a number is too little".
Definition told_positive (j : json) : outcome Q :=
  let* q := told j in if 0 <? Qnum q then Ok q else unreadable "a number is too little".
Definition told_row (n : nat) (j : json) : outcome (list Q) := let* l := list_of told j in exactly_many n l.

(** ** The batch *)
Definition type_of_devices (j : json) : outcome (text * Q) :=
  let* l := object_of (keys ["name"; "bandwidth"]) [] j in
  let* name := field l "name" name in
  let* bandwidth := field l "bandwidth" told_positive in
  Ok (name, bandwidth).

Definition distinct_names {A : Type} (named : A -> text) (l : list A) : outcome (list A) :=
  if distinct (map named l) then Ok l else unreadable "a name stands twice".

Definition counts_of (n : nat) (j : json) : outcome (list Z) := let* l := list_of integer j in exactly_many n l.
Definition holder_of (workers ps : nat) (j : json) : outcome holder :=
  let* l := object_of (keys ["name"; "workers"; "ps"]) [] j in
  let* name := field l "name" name in
  let* w := field l "workers" (counts_of workers) in
  let* p := field l "ps" (counts_of ps) in
  Ok (Holder name w p).

Fixpoint falls (l : list Q) : bool :=
  match l with a :: (b :: _) as rest => Qle_bool b a && falls rest | _ => true end.

Definition utility_in (j : json) : outcome utility :=
  let* l := object j in
  let* form := field l "form" string_of in
  if same form "linear" then
    let* l := object_of (keys ["form"; "slope"; "height"]) [] j in
    let* slope := field l "slope" told in
    let* height := field l "height" told in
    let* _ := require (Qnum slope <=? 0) NoCertificate "a utility rises" in
    Ok (LinearUtility slope height)
  else if same form "power" then
    let* l := object_of (keys ["form"; "scale"; "exponent"]) [] j in
    let* scale := field l "scale" told_positive in
    let* exponent := field l "exponent" told_positive in
    let* _ := require (Z.pos (Qden exponent) =? 1) Unknown "a power that is no whole number" in
    Ok (PowerUtility scale (Z.to_N (Qnum exponent)))
  else if same form "steps" then
    let* l := object_of (keys ["form"; "values"]) [] j in
    let* steps := field l "values" (list_of told) in
    let* _ := require (falls steps && negb (match steps with [] => true | _ => false end)) NoCertificate
                "a utility rises, or has no step" in
    Ok (StepUtility steps)
  else unreadable "a word is none of those that are known".

Definition job_of (known : list text) (workers ps : nat) (j : json) : outcome job :=
  let* l := object_of (keys ["name"; "tenant"; "arrival"; "epochs"; "chunks"; "minibatches"; "minibatch_time";
                             "update_time"; "gradient"; "utility"]) [] j in
  let* name := field l "name" name in
  let* tenant := field l "tenant" (position known) in
  let* arrival := field l "arrival" integer in
  let* chunks := field l "chunks" size_of in
  let* epochs := field l "epochs" size_of in
  let* minibatches := field l "minibatches" size_of in
  let* one := field l "minibatch_time" (told_row workers) in
  let* update := field l "update_time" (told_row ps) in
  let* _ := require (forallb (fun q => 0 <? Qnum q) one && forallb (fun q => 0 <=? Qnum q) update) NoCertificate
              "a time is negative, or that of a mini-batch is 0" in
  let* gradient := field l "gradient" told_amount in
  let* utility := field l "utility" utility_in in
  Ok (Job name tenant arrival chunks (epochs * chunks * minibatches) one update gradient utility).

Definition batch_of (j : json) : outcome batch :=
  let* l := object_of (keys ["tenants"; "worker_types"; "ps_types"; "servers"; "jobs"]) [] j in
  let types j := let* l := list_of type_of_devices j in distinct_names fst l in
  let* workers := field l "worker_types" types in
  let* ps := field l "ps_types" types in
  let* _ := require (match workers, ps with [], _ | _, [] => false | _, _ => true end) NoCertificate
              "there is a part without a type" in
  let w := List.length workers in
  let p := List.length ps in
  let holders j := let* l := list_of (holder_of w p) j in distinct_names holder_name l in
  let* tenants := field l "tenants" holders in
  let* servers := field l "servers" holders in
  let* jobs := field l "jobs" (list_of (job_of (map holder_name tenants) w p)) in
  let* jobs := distinct_names job_name jobs in
  Ok (Batch workers ps tenants servers jobs).

(** ** Schedules and decisions *)
Fixpoint rising (l : list (nat * Z)) : bool :=
  match l with (a, _) :: ((b, _) :: _) as rest => Nat.ltb a b && rising rest | _ => true end.
Definition placed_in (servers types : list text) (l : fields) (spots type : string) : outcome placed :=
  let* spots := field l spots (list_of (pair_of (position servers) size_of)) in
  let* _ := require (rising spots) NoCertificate "servers do not rise" in
  let* type := field l type (position types) in
  Ok (Placed type spots).

Definition schedule_of (b : batch) (j : json) : outcome schedule :=
  let* l := object_of (keys ["job"; "first"; "last"; "workers"; "ps"; "worker_type"; "ps_type"; "together"]) [] j in
  let* job := field l "job" (position (map job_name (jobs b))) in
  let* first := field l "first" size_of in
  let* last := field l "last" size_of in
  let* _ := require (first <=? last) NoCertificate "a schedule ends before it begins" in
  let known := map holder_name (servers b) in
  let* workers := placed_in known (map fst (worker_types b)) l "workers" "worker_type" in
  let* ps := placed_in known (map fst (ps_types b)) l "ps" "ps_type" in
  let* together := field l "together" truth in
  Ok (Schedule job first last workers ps together).

(** What a power is asked for: a time after 0, and no more bits than can be decided. *)
Definition power_fine (u : utility) (time : Z) : bool :=
  match u with
  | PowerUtility scale exponent =>
    let base := Qred (scale / inject_Z time) in
    (0 <? time) && (Z.of_N exponent * Z.max (bit_length (Qnum base)) (bit_length (Z.pos (Qden base))) <=? 4 * most_digits)
  | _ => true
  end.

Definition offer_of (b : batch) (j : json) : outcome offer :=
  let* l := object_of (keys ["job"; "interval"; "round"; "own"; "schedule"; "worker_cost"; "ps_cost"; "utility";
                             "origin"; "admitted"]) [] j in
  let* job := field l "job" (position (map job_name (jobs b))) in
  let* _ := field l "interval" size_of in
  let* _ := field l "round" size_of in
  let* own := field l "own" truth in
  let* admitted := field l "admitted" truth in
  let* place := field l "schedule" (or_null (schedule_of b)) in
  let* workers := field l "worker_cost" told_amount in
  let* ps := field l "ps_cost" told_amount in
  let* utility := field l "utility" told in
  let* origin := field l "origin" integer in
  let* _ := match place with
    | None => require (negb admitted) NoCertificate "a job is admitted to nothing"
    | Some s =>
      let* _ := require (Nat.eqb (of_job s) job) NoCertificate "a job is offered another's schedule" in
      require (match nth_error (jobs b) job with
               | Some w => power_fine (utility_of w) (to_slot s - origin) | None => false end)
        NoCertificate "a power is asked for at time 0, or is too large"
    end in
  Ok (Offer job own place workers ps utility origin admitted).

Definition listed (l : fields) (key : string) : outcome bool :=
  let* l := field l key items in Ok (match l with [] => false | _ => true end).

Definition plan_of (j : json) : outcome plan :=
  let* l := object_of (keys ["schema"; "policy"; "batch"; "bases"; "schedules"; "admissions"; "payments"])
              (keys ["options"; "backend"; "revenue"; "gains"; "unscheduled"; "proven"; "seconds"]) j in
  let* _ := field l "schema" version in
  let* b := field l "batch" batch_of in
  let* policy := field l "policy" string_of in
  let* _ := require (forallb printable policy) Unknown "the name of a policy that cannot be printed" in
  let* schedules := field l "schedules" (list_of (schedule_of b)) in
  let* offers := field l "admissions" (list_of (offer_of b)) in
  let* prices := listed l "bases" in
  let* _ := require (negb prices) Unknown "posted prices" in
  let* paid := listed l "payments" in
  let* _ := require (negb paid) Unknown "payments" in
  Ok (Plan policy b schedules offers).
