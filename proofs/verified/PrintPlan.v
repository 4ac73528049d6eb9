(** * What is printed of schedules of a batch *)

From Coq Require Import ZArith NArith QArith List String Bool.
From Verified Require Import Syntax Json Numbers Sha256 Print.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition utility_digested (u : utility) : text :=
  json_list match u with
  | LinearUtility slope height => [json_string (codes "linear"); json_number slope; json_number height]
  | PowerUtility scale exponent => [json_string (codes "power"); json_number scale; json_number (inject_Z (Z.of_N exponent))]
  | StepUtility steps => json_string (codes "steps") :: map json_number steps
  end.

Definition batch_digest (b : batch) : text :=
  let type '(name, bandwidth) := json_list [json_string name; json_number bandwidth] in
  let holder h :=
    json_list [json_string (holder_name h); json_list (map decimal (has_workers h)); json_list (map decimal (has_ps h))] in
  let job w :=
    json_list [json_string (job_name w); natural (Z.of_nat (tenant w)); decimal (arrival w); decimal (chunks w);
               json_string (decimal (work w)); json_row (minibatch_time w); json_row (update_time w); json_number (gradient w);
               utility_digested (utility_of w)] in
  digest (json_list
    [json_string (codes "batch"); json_list (map type (worker_types b)); json_list (map type (ps_types b));
     json_list (map holder (tenants b)); json_list (map holder (servers b)); json_list (map job (jobs b))]).

Definition batch_shown (b : batch) : text :=
  codes "batch " ++ batch_digest b ++ codes ": " ++ plural (size (jobs b)) "jobs" ++ codes ", "
    ++ plural (size (tenants b)) "tenants" ++ codes ", " ++ plural (size (servers b)) "servers".

Definition plan_shown (p : plan) : text :=
  natural (size (schedules p)) ++ codes " of " ++ natural (size (jobs (of_batch p))) ++ codes " jobs of "
    ++ quoted (planned_by p) ++ codes " run within (3a)-(3o); "
    ++ match offers p with
       | [] => codes "how this was decided is not told"
       | l => plural (size l) "decisions, the prices and the order of which were not judged"
       end
    ++ codes "; no payments".
