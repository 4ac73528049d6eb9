(** * What it means that schedules of a batch are kept

    "Astraea" is Wang and others, IEEE Transactions on Computers 2023; its constraints are (3a) to (3o).  A schedule is
    alike from its first slot to its last, which is (3f), (3h), (3m) and (3n).  Slots are counted from 1. *)

From Coq Require Import List ZArith QArith Permutation.
From Verified Require Import Syntax.
Import ListNotations.
Local Open Scope Z_scope.

Definition total_of (l : list Z) : Z := fold_right Z.add 0 l.

Section Batch.
Variable b : batch.

Definition types_of (p : part) : list (text * Q) := match p with Workers => worker_types b | Ps => ps_types b end.
(** How many devices of a type somebody has; all tenants, or servers. *)
Definition has_of (p : part) (t : nat) (h : holder) : Z :=
  nth t (match p with Workers => has_workers h | Ps => has_ps h end) 0.
Definition in_all (p : part) (t : nat) (l : list holder) : Z := total_of (map (has_of p t) l).

Definition part_of (p : part) (s : schedule) : placed := match p with Workers => workers s | Ps => ps s end.
Definition devices (p : part) (s : schedule) : Z := total_of (map snd (spots (part_of p s))).
Definition at_server (p : part) (k : nat) (s : schedule) : Z :=
  total_of (map (fun '(i, count) => if Nat.eqb i k then count else 0) (spots (part_of p s))).
Definition bandwidth (p : part) (s : schedule) : Q := nth (of_type (part_of p s)) (map snd (types_of p)) 0%Q.
Definition slots (s : schedule) : Z := to_slot s - from_slot s + 1.

(** What is in use in a slot, of what [count] counts; of a type alone. *)
Definition runs_in (t : Z) (s : schedule) : bool := (from_slot s <=? t) && (t <=? to_slot s).
Definition in_use_in (count : schedule -> Z) (l : list schedule) (t : Z) : Z :=
  total_of (map (fun s => if runs_in t s then count s else 0) l).
Definition if_type (p : part) (j : nat) (count : schedule -> Z) (s : schedule) : Z :=
  if Nat.eqb (of_type (part_of p s)) j then count s else 0.

(** *** A schedule by itself *)
Definition placed_well (p : part) (s : schedule) : Prop :=
  (of_type (part_of p s) < length (types_of p))%nat /\
  forall k count, In (k, count) (spots (part_of p s)) -> (k < length (servers b))%nat /\ 1 <= count.
Definition on_one_server (s : schedule) : Prop :=
  exists k, forall p i count, In (i, count) (spots (part_of p s)) -> i = k.
(** Astraea Eq. (1): the time of a mini-batch on one worker. *)
Definition time_of_one (w : job) (s : schedule) : Q :=
  nth (of_type (workers s)) (minibatch_time w) 0%Q + nth (of_type (ps s)) (update_time w) 0%Q +
  (if one_server s then 0 else 2 * gradient w / bandwidth Workers s).
Definition alone (w : job) (s : schedule) : Prop :=
  1 <= from_slot s <= to_slot s /\ (forall p, placed_well p s) /\
  devices Workers s <= chunks w (* 3e *) /\ (forall p, 1 <= devices p s) (* 3g *) /\
  (forall k here, In (k, here) (spots (ps s)) -> (* 3i, of servers that hold PS *)
    inject_Z (devices Workers s - at_server Workers k s) * bandwidth Workers s <= inject_Z here * bandwidth Ps s)%Q /\
  (one_server s = true <-> on_one_server s) (* 3j *) /\
  (inject_Z (work w) * time_of_one w s <= inject_Z (slots s * devices Workers s))%Q (* 3k *) /\
  arrival w <= from_slot s (* 3l *).

(** *** Schedules together: of a type in all, and of a type at a server *)
Definition fits_in_all (l : list schedule) : Prop := forall p j t,
  in_use_in (if_type p j (devices p)) l t <= in_all p j (tenants b). (* 3a, 3b *)
Definition fits_at_servers (l : list schedule) : Prop := forall p j k h t, nth_error (servers b) k = Some h ->
  in_use_in (if_type p j (at_server p k)) l t <= has_of p j h. (* 3c, 3d *)
Definition quotas_add_up : Prop := forall p j, (j < length (types_of p))%nat ->
  in_all p j (tenants b) = in_all p j (servers b).

(** *** Decisions, where they are told *)
(** Utility at a time of completion. *)
Definition utility_at (u : utility) (time : Z) : Q :=
  match u with
  | LinearUtility slope height => slope * inject_Z time + height
  | PowerUtility scale exponent => (scale / inject_Z time) ^ Z.of_N exponent
  | StepUtility steps => nth (Z.to_nat (Z.min (Z.max time 0) (Z.of_nat (length steps) - 1))) steps 0
  end%Q.
Definition offer_is_fine (o : offer) : Prop :=
  match at_place o with
  | None => admitted o = false /\ (worker_cost o == 0 /\ ps_cost o == 0 /\ utility_told o == 0)%Q
  | Some s => of_job s = offered o /\ exists w, nth_error (jobs b) (offered o) = Some w /\
      (utility_told o == utility_at (utility_of w) (to_slot s - origin o))%Q
  end.
Definition places_of (l : list offer) : list schedule :=
  flat_map (fun o => match at_place o with Some s => [s] | None => [] end) l.
Definition if_tenant (n : nat) (count : schedule -> Z) (s : schedule) : Z :=
  match nth_error (jobs b) (of_job s) with Some w => if Nat.eqb (tenant w) n then count s else 0 | None => 0 end.
(** What is admitted as a tenant's own fits into its quota. *)
Definition fits_in_shares (l : list schedule) : Prop := forall p j n h t, nth_error (tenants b) n = Some h ->
  in_use_in (if_tenant n (if_type p j (devices p))) l t <= has_of p j h.
End Batch.

(** Those that are admitted are the schedules; what is not a tenant's own costs nothing, where nothing is paid. *)
Definition decisions_are_kept (p : plan) : Prop :=
  (offers p <> [] -> Permutation (places_of (filter admitted (offers p))) (schedules p)) /\
  (forall o, In o (offers p) -> offer_is_fine (of_batch p) o) /\
  fits_in_shares (of_batch p) (places_of (filter (fun o => admitted o && own_share o) (offers p))) /\
  (forall o, In o (offers p) -> admitted o = true -> own_share o = false -> (worker_cost o == 0 /\ ps_cost o == 0)%Q).

Definition plan_is_kept (p : plan) : Prop :=
  let b := of_batch p in
  quotas_add_up b /\ NoDup (map of_job (schedules p)) /\
  (forall s, In s (schedules p) -> exists w, nth_error (jobs b) (of_job s) = Some w /\ alone b w s) /\
  fits_in_all b (schedules p) /\ fits_at_servers b (schedules p) /\ decisions_are_kept p.
