(** * Schedules of a batch: what is in use is most where a schedule begins *)

From Coq Require Import List ZArith QArith Permutation Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs.
Import ListNotations.
Local Open Scope Z_scope.
Local Open Scope list_scope.

(** ** What is in use *)
Lemma total_nonneg {A} (f : A -> Z) l : (forall a, In a l -> 0 <= f a) -> 0 <= total_of (map f l).
Proof.
  induction l as [|a l IH]; intro h; simpl; [lia|].
  pose proof (h a (or_introl eq_refl)); assert (0 <= total_of (map f l)) by (apply IH; intros c i; apply h; right; exact i).
  lia.
Qed.
Lemma total_le {A} (f g : A -> Z) l : (forall a, In a l -> f a <= g a) -> total_of (map f l) <= total_of (map g l).
Proof.
  induction l as [|a l IH]; intro h; simpl; [lia|].
  pose proof (h a (or_introl eq_refl)); assert (total_of (map f l) <= total_of (map g l))
    by (apply IH; intros c i; apply h; right; exact i).
  lia.
Qed.
Lemma total_positive {A} (f : A -> Z) l : 0 < total_of (map f l) -> exists a, In a l /\ 0 < f a.
Proof.
  induction l as [|a l IH]; simpl; [lia|]; intro h.
  destruct (Z_lt_dec 0 (f a)) as [p|p]; [exists a; auto|].
  destruct IH as (c & i & q); [lia|exists c; auto].
Qed.

(** Of those that satisfy something, one that begins last. *)
Lemma latest (P : schedule -> bool) l : (forall s, In s l -> P s = false) \/
  exists s, In s l /\ P s = true /\ forall r, In r l -> P r = true -> from_slot r <= from_slot s.
Proof.
  induction l as [|a l IH]; [left; intros s []|].
  destruct IH as [none|(s & i & p & most)].
  - destruct (P a) eqn:pa; [right; exists a; split; [left; reflexivity|split; [exact pa|]]|left].
    + intros r [<-|ir] pr; [lia|rewrite none in pr; [discriminate|exact ir]].
    + intros s [<-|i]; [exact pa|exact (none s i)].
  - right; destruct (P a && (from_slot s <? from_slot a)) eqn:e.
    + apply andb_true_iff in e; destruct e as [pa le]; apply Z.ltb_lt in le.
      exists a; split; [left; reflexivity|split; [exact pa|]]; intros r [<-|ir] pr; [lia|].
      specialize (most r ir pr); lia.
    + exists s; split; [right; exact i|split; [exact p|]]; intros r [<-|ir] pr; [|exact (most r ir pr)].
      rewrite pr in e; apply Z.ltb_ge in e; exact e.
Qed.

(** It is enough to look at the slots in which schedules begin. *)
Lemma at_beginnings count l limit : (forall s, In s l -> 0 <= count s) -> 0 <= limit ->
  (forall s, In s l -> 0 < count s -> in_use_in count l (from_slot s) <= limit) ->
  forall t, in_use_in count l t <= limit.
Proof.
  intros pos le h t; destruct (latest (fun s => runs_in t s && (0 <? count s)) l) as [none|(s & i & p & most)].
  - apply Z.le_trans with 0; [|exact le]; unfold in_use_in.
    apply Z.le_trans with (total_of (map (fun _ : schedule => 0) l)).
    + apply total_le; intros a ia; specialize (none a ia); specialize (pos a ia); destruct (runs_in t a); [|lia].
      apply Z.ltb_ge in none; exact none.
    + clear; induction l; simpl; lia.
  - apply andb_true_iff in p; destruct p as [r c]; apply Z.ltb_lt in c.
    apply Z.le_trans with (in_use_in count l (from_slot s)); [|exact (h s i c)].
    apply total_le; intros a ia; specialize (pos a ia); destruct (runs_in t a) eqn:ra.
    + destruct (0 <? count a) eqn:ca.
      * assert (from_slot a <= from_slot s) by (apply (most a ia); rewrite ra, ca; reflexivity).
        unfold runs_in in *; rewrite andb_true_iff, !Z.leb_le in r, ra.
        replace ((from_slot a <=? from_slot s) && (from_slot s <=? to_slot a)) with true; [lia|].
        symmetry; rewrite andb_true_iff, !Z.leb_le; lia.
      * apply Z.ltb_ge in ca; destruct (runs_in (from_slot s) a); lia.
    + destruct (runs_in (from_slot s) a); lia.
Qed.

(** ** The checks *)
Definition parts : list part := [Workers; Ps].
Lemma all_parts (f : part -> bool) : forallb f parts = true <-> forall p, f p = true.
Proof.
  unfold parts; simpl; rewrite !andb_true_iff; split; [intros (a & c & _) []; assumption|intro h; auto].
Qed.
Definition all_below (f : nat -> bool) (n : nat) : bool := forallb f (seq 0 n).
Lemma all_belowP f n : all_below f n = true <-> forall j, (j < n)%nat -> f j = true.
Proof.
  unfold all_below; rewrite forallb_forall; split; intros h j; [intro l; apply h, in_seq; lia|].
  intro i; apply in_seq in i; apply h; lia.
Qed.
Definition all_same (l : list nat) : bool := match l with [] => true | k :: l => forallb (Nat.eqb k) l end.
Definition free (q : Q) : bool := nothing q.

Section Batch.
Variable b : batch.

Definition never_negative (h : holder) : bool := forallb (Z.leb 0) (has_workers h) && forallb (Z.leb 0) (has_ps h).
Lemma never_negative_ok h : never_negative h = true -> forall p j, 0 <= has_of p j h.
Proof.
  unfold never_negative; rewrite andb_true_iff, !forallb_forall; intros [w q] p j; unfold has_of.
  set (l := match p with Workers => has_workers h | Ps => has_ps h end).
  destruct (nth_in_or_default j l 0) as [i|e]; [|lia].
  assert (all : forall z, In z l -> (0 <=? z) = true) by (destruct p; assumption).
  apply Z.leb_le, all, i.
Qed.

Definition placed_well_b (p : part) (s : schedule) : bool :=
  Nat.ltb (of_type (part_of p s)) (List.length (types_of b p)) &&
  forallb (fun '(k, count) => Nat.ltb k (List.length (servers b)) && (1 <=? count)) (spots (part_of p s)).
Lemma placed_well_ok p s : placed_well_b p s = true -> placed_well b p s.
Proof.
  unfold placed_well_b; rewrite andb_true_iff, Nat.ltb_lt, forallb_forall; intros [t h]; split; [exact t|].
  intros k count i; specialize (h _ i); simpl in h; rewrite andb_true_iff, Nat.ltb_lt, Z.leb_le in h; exact h.
Qed.
Definition one_place (s : schedule) : bool := all_same (map fst (spots (workers s) ++ spots (ps s))).
Lemma one_place_ok s : one_place s = true <-> on_one_server s.
Proof.
  unfold one_place, on_one_server; split.
  - intro h; destruct (map fst (spots (workers s) ++ spots (ps s))) as [|k l] eqn:e.
    + exists 0%nat; intros p i count it; assert (In i (map fst (spots (workers s) ++ spots (ps s)))) as i'.
      { apply in_map_iff; exists (i, count); split; [reflexivity|]; apply in_or_app; destruct p; [left|right]; exact it. }
      rewrite e in i'; destruct i'.
    + exists k; intros p i count it; assert (In i (k :: l)) as i'.
      { rewrite <- e; apply in_map_iff; exists (i, count); split; [reflexivity|].
        apply in_or_app; destruct p; [left|right]; exact it. }
      destruct i' as [->|i']; [reflexivity|]; simpl in h; rewrite forallb_forall in h.
      symmetry; apply Nat.eqb_eq, h, i'.
  - intros [k h].
    assert (all : forall i, In i (map fst (spots (workers s) ++ spots (ps s))) -> i = k).
    { intros i it; apply in_map_iff in it; destruct it as ([i' count] & <- & it); apply in_app_or in it.
      destruct it as [it|it]; [exact (h Workers _ _ it)|exact (h Ps _ _ it)]. }
    destruct (map fst _) as [|k' l]; [reflexivity|]; simpl; apply forallb_forall; intros i it.
    apply Nat.eqb_eq; rewrite (all k' (or_introl eq_refl)); symmetry; apply all; right; exact it.
Qed.

Definition alone_b (w : job) (s : schedule) : bool :=
  (1 <=? from_slot s) && (from_slot s <=? to_slot s) && forallb (fun p => placed_well_b p s) parts &&
  (devices Workers s <=? chunks w) && forallb (fun p => 1 <=? devices p s) parts &&
  forallb (fun '(k, here) =>
    le (mul (inject_Z (devices Workers s - at_server Workers k s)) (bandwidth b Workers s))
       (mul (inject_Z here) (bandwidth b Ps s))) (spots (ps s)) &&
  Bool.eqb (one_server s) (one_place s) &&
  le (mul (inject_Z (work w)) (time_of_one b w s)) (inject_Z (slots s * devices Workers s)) &&
  (arrival w <=? from_slot s).
Lemma alone_ok w s : alone_b w s = true -> alone b w s.
Proof.
  unfold alone_b; rewrite !andb_true_iff, !all_parts, !Z.leb_le, forallb_forall, !leP, mulE.
  intros ((((((((f & t) & pw) & ch) & dv) & sv) & os) & wk) & ar).
  split; [lia|split; [intro p; apply placed_well_ok, pw|split; [exact ch|split; [intro p; apply Z.leb_le, dv|]]]].
  split; [|split; [|split; [exact wk|exact ar]]].
  - intros k here i; specialize (sv _ i); simpl in sv; rewrite leP, !mulE in sv; exact sv.
  - apply eqb_prop in os; rewrite os; apply one_place_ok.
Qed.

Definition quotas_b : bool := forallb (fun p =>
  all_below (fun j => in_all p j (tenants b) =? in_all p j (servers b)) (List.length (types_of b p))) parts.
Lemma quotas_ok : quotas_b = true -> quotas_add_up b.
Proof.
  unfold quotas_b; rewrite all_parts; intros h p j l; specialize (h p); rewrite all_belowP in h.
  apply Z.eqb_eq, h, l.
Qed.

(** Counts of a type that are not negative. *)
Definition counts (l : list schedule) : Prop := forall s, In s l -> forall p, placed_well b p s.
Lemma devices_nonneg p s : placed_well b p s -> 0 <= devices p s.
Proof.
  intros [_ h]; unfold devices; apply total_nonneg; intros [k c] i; specialize (h k c i); simpl; lia.
Qed.
Lemma at_server_nonneg p k s : placed_well b p s -> 0 <= at_server p k s.
Proof.
  intros [_ h]; unfold at_server; apply total_nonneg; intros [i c] it; specialize (h i c it).
  destruct (Nat.eqb i k); lia.
Qed.

Definition holders_fine : bool := forallb never_negative (tenants b) && forallb never_negative (servers b).
Lemma holders_ok : holders_fine = true -> forall h, In h (tenants b ++ servers b) -> forall p j, 0 <= has_of p j h.
Proof.
  unfold holders_fine; rewrite andb_true_iff, !forallb_forall; intros [t s] h i; apply in_app_or in i.
  apply never_negative_ok; destruct i; auto.
Qed.

Definition fits_in_all_b (l : list schedule) : bool := forallb (fun p => forallb (fun s =>
  let j := of_type (part_of p s) in
  in_use_in (if_type p j (devices p)) l (from_slot s) <=? in_all p j (tenants b)) l) parts.
Lemma fits_in_all_ok l : holders_fine = true -> counts l -> fits_in_all_b l = true -> fits_in_all b l.
Proof.
  intros fine c; unfold fits_in_all_b; rewrite all_parts; intros h p j; specialize (h p); rewrite forallb_forall in h.
  apply at_beginnings.
  - intros s i; unfold if_type; destruct (Nat.eqb _ _); [apply devices_nonneg, c, i|lia].
  - apply total_nonneg; intros o i; apply holders_ok; [exact fine|apply in_or_app; left; exact i].
  - intros s i pos; unfold if_type in pos; destruct (Nat.eqb _ _) eqn:e in pos; [|lia]; apply Nat.eqb_eq in e; subst j.
    apply Z.leb_le, (h s i).
Qed.

Definition fits_at_servers_b (l : list schedule) : bool := forallb (fun p => forallb (fun s =>
  let j := of_type (part_of p s) in
  forallb (fun k => match nth_error (servers b) k with
    | Some h => in_use_in (if_type p j (at_server p k)) l (from_slot s) <=? has_of p j h
    | None => false end) (map fst (spots (part_of p s)))) l) parts.
Lemma fits_at_servers_ok l : holders_fine = true -> counts l -> fits_at_servers_b l = true -> fits_at_servers b l.
Proof.
  intros fine c; unfold fits_at_servers_b; rewrite all_parts; intros h p j k o t e; revert t; specialize (h p).
  rewrite forallb_forall in h; apply at_beginnings.
  - intros s i; unfold if_type; destruct (Nat.eqb _ _); [apply at_server_nonneg, c, i|lia].
  - apply holders_ok; [exact fine|apply in_or_app; right; exact (nth_error_In _ _ e)].
  - intros s i pos; unfold if_type in pos; destruct (Nat.eqb _ _) eqn:te in pos; [|lia]; apply Nat.eqb_eq in te; subst j.
    unfold at_server in pos; apply total_positive in pos; destruct pos as ([k' n] & ik & pk).
    destruct (Nat.eqb k' k) eqn:ek; [|lia]; apply Nat.eqb_eq in ek; subst k'.
    specialize (h s i); rewrite forallb_forall in h; specialize (h k (in_map fst _ _ ik)); rewrite e in h.
    apply Z.leb_le, h.
Qed.

Definition fits_in_shares_b (l : list schedule) : bool := forallb (fun p => forallb (fun s =>
  let j := of_type (part_of p s) in
  match nth_error (jobs b) (of_job s) with
  | Some w => match nth_error (tenants b) (tenant w) with
    | Some h => in_use_in (if_tenant b (tenant w) (if_type p j (devices p))) l (from_slot s) <=? has_of p j h
    | None => false end
  | None => false end) l) parts.
Lemma fits_in_shares_ok l : holders_fine = true -> counts l -> fits_in_shares_b l = true -> fits_in_shares b l.
Proof.
  intros fine c; unfold fits_in_shares_b; rewrite all_parts; intros h p j n o t e; revert t; specialize (h p).
  rewrite forallb_forall in h; apply at_beginnings.
  - intros s i; unfold if_tenant, if_type; destruct (nth_error (jobs b) _); [|lia]; destruct (Nat.eqb _ _); [|lia].
    destruct (Nat.eqb _ _); [apply devices_nonneg, c, i|lia].
  - apply holders_ok; [exact fine|apply in_or_app; left; exact (nth_error_In _ _ e)].
  - intros s i pos; specialize (h s i); simpl in h; unfold if_tenant, if_type in pos.
    destruct (nth_error (jobs b) (of_job s)) as [w|]; [|discriminate].
    destruct (Nat.eqb (tenant w) n) eqn:en; [|lia]; apply Nat.eqb_eq in en; subst n; rewrite e in h.
    destruct (Nat.eqb _ _) eqn:te in pos; [|lia]; apply Nat.eqb_eq in te; subst j; apply Z.leb_le, h.
Qed.

Definition offer_b (o : offer) : bool :=
  match at_place o with
  | None => negb (admitted o) && free (worker_cost o) && free (ps_cost o) && free (utility_told o)
  | Some s => Nat.eqb (of_job s) (offered o) && match nth_error (jobs b) (offered o) with
      | Some w => same (utility_told o) (utility_at (utility_of w) (to_slot s - origin o)) | None => false end
  end.
Lemma offer_ok o : offer_b o = true -> offer_is_fine b o.
Proof.
  unfold offer_b, offer_is_fine, free; destruct (at_place o) as [s|].
  - rewrite andb_true_iff, Nat.eqb_eq; intros [e h]; split; [exact e|].
    destruct (nth_error _ _) as [w|]; [|discriminate]; exists w; split; [reflexivity|apply sameP, h].
  - rewrite !andb_true_iff, negb_true_iff, !nothing_true; tauto.
Qed.
End Batch.

(** ** Schedules that are the same *)
Fixpoint same_spots (a c : list (nat * Z)) : bool :=
  match a, c with
  | [], [] => true
  | (i, n) :: a, (k, n') :: c => Nat.eqb i k && (n =? n') && same_spots a c
  | _, _ => false
  end.
Lemma same_spotsP a : forall c, same_spots a c = true -> a = c.
Proof.
  induction a as [|[i n] a IH]; intros [|[k n'] c] h; try discriminate; [reflexivity|]; simpl in h.
  rewrite !andb_true_iff, Nat.eqb_eq, Z.eqb_eq in h; destruct h as [[-> ->] h]; rewrite (IH c h); reflexivity.
Qed.
Definition same_place (a c : placed) : bool := Nat.eqb (of_type a) (of_type c) && same_spots (spots a) (spots c).
Definition same_schedule (a c : schedule) : bool :=
  Nat.eqb (of_job a) (of_job c) && (from_slot a =? from_slot c) && (to_slot a =? to_slot c) &&
  same_place (workers a) (workers c) && same_place (ps a) (ps c) && Bool.eqb (one_server a) (one_server c).
Lemma same_scheduleP a c : same_schedule a c = true -> a = c.
Proof.
  destruct a as [j f t [k s] [k' s'] o], c as [j' f' t' [l r] [l' r'] o']; unfold same_schedule, same_place; simpl.
  rewrite !andb_true_iff, !Nat.eqb_eq, !Z.eqb_eq; intros (((((-> & ->) & ->) & -> & e) & -> & e') & ob).
  apply same_spotsP in e; apply same_spotsP in e'; apply eqb_prop in ob; subst; reflexivity.
Qed.
Fixpoint distinct_jobs (l : list nat) : bool :=
  match l with [] => true | j :: l => negb (existsb (Nat.eqb j) l) && distinct_jobs l end.
Lemma distinct_jobs_ok l : distinct_jobs l = true -> NoDup l.
Proof.
  induction l as [|j l IH]; simpl; [constructor|]; rewrite andb_true_iff, negb_true_iff; intros [h d].
  constructor; [|exact (IH d)]; intro i; rewrite <- not_true_iff_false in h; apply h, existsb_exists.
  exists j; split; [exact i|apply Nat.eqb_refl].
Qed.

Definition admitted_b (p : plan) : bool :=
  let l := places_of (filter admitted (offers p)) in
  match offers p with
  | [] => true
  | _ => Nat.leb (List.length l) (List.length (schedules p)) &&
         forallb (fun s => existsb (same_schedule s) l) (schedules p)
  end.
Lemma admitted_ok p : NoDup (map of_job (schedules p)) -> admitted_b p = true -> offers p <> [] ->
  Permutation (places_of (filter admitted (offers p))) (schedules p).
Proof.
  unfold admitted_b; intros d h some; destruct (offers p) as [|o l] eqn:e; [congruence|]; clear some.
  rewrite <- e in *; clear e o l.
  set (l := places_of (filter admitted (offers p))) in *; rewrite andb_true_iff, Nat.leb_le, forallb_forall in h.
  destruct h as [le h]; symmetry; apply NoDup_Permutation_bis; [exact (NoDup_map_inv _ _ d)|exact le|].
  intros s i; specialize (h s i); apply existsb_exists in h; destruct h as (r & ir & e).
  apply same_scheduleP in e; subst r; exact ir.
Qed.

Definition check_plan (p : plan) : result :=
  let b := of_batch p in
  let mine := places_of (filter (fun o => admitted o && own_share o) (offers p)) in
  if negb (holders_fine b) then no "somebody has fewer devices than none"
  else if negb (quotas_b b) then no "tenants do not own what servers hold"
  else if negb (distinct_jobs (map of_job (schedules p))) then no "a job has two schedules"
  else if negb (forallb (fun s => match nth_error (jobs b) (of_job s) with Some w => alone_b b w s | None => false end)
                  (schedules p)) then no "a schedule breaks one of (3e)-(3l)"
  else if negb (forallb (fun s => forallb (fun q => placed_well_b b q s) parts) mine) then
    no "an own share is of other types or servers"
  else if negb (fits_in_all_b b (schedules p)) then no "(3a) or (3b): more is in use than there is"
  else if negb (fits_at_servers_b b (schedules p)) then
    no "(3c) or (3d): more is in use at a server than it holds"
  else if negb (admitted_b p) then no "the schedules are not those admitted"
  else if negb (forallb (offer_b b) (offers p)) then no "a utility is not that of the completion"
  else if negb (fits_in_shares_b b mine) then no "a tenant's own share is exceeded"
  else if negb (forallb (fun o => negb (admitted o) || own_share o || (free (worker_cost o) && free (ps_cost o)))
                  (offers p)) then no "what is due is not paid"
  else Accepted (PlanKept p).

Lemma check_plan_sound p s : check_plan p = Accepted s -> meaning s.
Proof.
  unfold check_plan; cbv zeta.
  destruct (holders_fine _) eqn:hf; [|discriminate]; destruct (quotas_b _) eqn:q; [|discriminate].
  destruct (distinct_jobs _) eqn:d; [|discriminate]; apply distinct_jobs_ok in d.
  destruct (forallb _ (schedules p)) eqn:al; [|discriminate]; rewrite forallb_forall in al.
  set (mine := places_of (filter (fun o => admitted o && own_share o) (offers p))).
  destruct (forallb _ mine) eqn:mw; [|discriminate]; rewrite forallb_forall in mw.
  destruct (fits_in_all_b _ _) eqn:fa; [|discriminate]; destruct (fits_at_servers_b _ _) eqn:fs; [|discriminate].
  destruct (admitted_b p) eqn:ad; [|discriminate]; destruct (forallb _ (offers p)) eqn:ob; [|discriminate].
  destruct (fits_in_shares_b _ _) eqn:sh; [|discriminate].
  destruct (forallb _ (offers p)) eqn:pay in |- *; [|discriminate]; intro e; injection e as <-.
  assert (each : forall s, In s (schedules p) -> exists w, nth_error (jobs (of_batch p)) (of_job s) = Some w /\
    alone (of_batch p) w s).
  { intros r i; specialize (al r i); simpl in al; destruct (nth_error _ _) as [w|]; [|discriminate].
    exists w; split; [reflexivity|apply alone_ok, al]. }
  assert (c : counts (of_batch p) (schedules p)).
  { intros r i; destruct (each r i) as (w & _ & a); apply a. }
  assert (c' : counts (of_batch p) mine).
  { intros r i; specialize (mw r i); rewrite all_parts in mw; intro t; apply placed_well_ok, mw. }
  rewrite forallb_forall in ob, pay.
  split; [exact (quotas_ok _ q)|split; [exact d|split; [exact each|]]].
  split; [exact (fits_in_all_ok _ _ hf c fa)|split; [exact (fits_at_servers_ok _ _ hf c fs)|]].
  split; [exact (admitted_ok p d ad)|split; [intros o i; apply offer_ok, ob, i|]].
  split; [exact (fits_in_shares_ok _ _ hf c' sh)|].
  intros o i a own; specialize (pay o i); simpl in pay; rewrite a, own in pay; simpl in pay.
  unfold free in pay; rewrite andb_true_iff, !nothing_true in pay; exact pay.
Qed.
