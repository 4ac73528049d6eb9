(** * The most that can be served, found by a flow and proved by a cut

    How the flow is found proves nothing and need not: it is checked, and so is the cut, and where the two are the same
    number, none serves more (Ford and Fulkerson 1956). *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Numbers that may have no bound *)
Definition up_to_b (q : Q) (a : option Q) : bool := match a with Some most => le q most | None => true end.
Lemma up_to_ok q a : up_to_b q a = true <-> up_to q a.
Proof. destruct a; simpl; [apply leP|tauto]. Qed.
Definition some_more_b (a : option Q) : bool := match a with Some q => lt 0 q | None => true end.
Lemma some_more_ok a : some_more_b a = true <-> some_more a.
Proof. destruct a; simpl; [apply ltP|tauto]. Qed.

Definition mem (j : nat) (l : list nat) : bool := existsb (Nat.eqb j) l.
Lemma mem_ok j l : mem j l = true <-> In j l.
Proof.
  unfold mem; rewrite existsb_exists; split; [intros (i & h & e); apply Nat.eqb_eq in e; subst; exact h|].
  intro h; exists j; split; [exact h|apply Nat.eqb_refl].
Qed.

Definition same_group (g h : option nat) : bool :=
  match g, h with Some g, Some h => Nat.eqb g h | None, None => true | _, _ => false end.
Lemma same_group_ok g h : same_group g h = true <-> g = h.
Proof.
  destruct g as [g|], h as [h|]; simpl; rewrite ?Nat.eqb_eq; split; intro e; try discriminate; try injection e; congruence.
Qed.

(** ** A division, checked *)
Definition row_fine (k : nat) (a : asked) (row : list Q) : bool :=
  Nat.eqb (length row) k && up_to_b (fast_sum row) (snd a) &&
  forallb (fun j => le 0 (nth j row 0) && (mem j (fst a) || nothing (nth j row 0))) (seq 0 k).
Fixpoint rows_fine (k : nat) (asks : list asked) (f : table) : bool :=
  match asks, f with
  | [], [] => true
  | a :: asks, row :: f => row_fine k a row && rows_fine k asks f
  | _, _ => false
  end.
Definition column_now (f : table) (j : nat) : Q := fast_sum (map (fun row => nth j row 0) f).
Definition divides_b (k : nat) (asks : list asked) (room : nat -> option Q) (f : table) : bool :=
  rows_fine k asks f && forallb (fun j => up_to_b (column_now f j) (room j)) (seq 0 k).

Lemma up_to_eq p q a : p == q -> up_to p a -> up_to q a.
Proof. destruct a; simpl; [intros e h; rewrite <- e; exact h|auto]. Qed.

Lemma divides_ok k asks room f : divides_b k asks room f = true -> divides k asks room f.
Proof.
  unfold divides_b, divides; rewrite andb_true_iff, forallb_forall; intros [r c]; split.
  - clear c; revert f r; induction asks as [|[ks most] asks IH]; intros [|row f] r; try discriminate; constructor.
    + simpl in r; apply andb_true_iff in r; destruct r as [r _]; unfold row_fine in r; simpl in r.
      rewrite !andb_true_iff, Nat.eqb_eq, up_to_ok, forallb_forall in r; destruct r as [[l u] z].
      split; [exact l|split; [exact (up_to_eq _ _ _ (fast_sumE row) u)|]]; intro j.
      destruct (Nat.lt_ge_cases j k) as [lt|ge].
      * specialize (z j (proj2 (in_seq0 _ _) lt)); rewrite andb_true_iff, leP, orb_true_iff, mem_ok, nothing_true in z.
        tauto.
      * rewrite nth_overflow by lia; split; [apply Qle_refl|reflexivity].
    + apply IH; simpl in r; apply andb_true_iff in r; apply r.
  - intros j l; specialize (c j (proj2 (in_seq0 _ _) l)); apply up_to_ok in c.
    exact (up_to_eq _ _ _ (fast_sumE _) c).
Qed.

(** ** A cut: GPUs of some types, and all that is asked for and may run elsewhere *)
Definition cut_of (a : asked) (on : list nat) : option Q := if forallb (fun j => mem j on) (fst a) then Some 0 else snd a.
Definition cut (k : nat) (asks : list asked) (room : nat -> option Q) (on : list nat) : option Q :=
  together (map (fun a => cut_of a on) asks ++ map (fun j => if mem j on then room j else Some 0) (seq 0 k)).

Lemma together_cons a l q : together (a :: l) = Some q -> exists p r, a = Some p /\ together l = Some r /\ q = p + r.
Proof.
  simpl; fold (together l); destruct a as [p|], (together l) as [r|]; try discriminate; intro e; injection e as <-.
  exists p, r; auto.
Qed.

Lemma together_app a b q : together (a ++ b) = Some q ->
  exists p r, together a = Some p /\ together b = Some r /\ q == p + r.
Proof.
  revert q; induction a as [|h a IH]; intros q e.
  - exists 0, q; simpl in *; repeat split; auto; ring.
  - destruct (together_cons _ _ _ e) as (p & r & -> & e' & ->); destruct (IH _ e') as (p' & r' & t & t' & s).
    exists (p + p'), r'; simpl; fold (together a); rewrite t; repeat split; auto. rewrite s; ring.
Qed.

(** What a row, or a table, gives out of some types. *)
Definition within_row (k : nat) (on : list nat) (row : list Q) : Q :=
  sum (map (fun j => if mem j on then nth j row 0 else 0) (seq 0 k)).
Definition within_all (k : nat) (on : list nat) (f : table) : Q :=
  sum (map (fun j => if mem j on then column f j else 0) (seq 0 k)).

Lemma within_cons k on row f : within_all k on (row :: f) == within_row k on row + within_all k on f.
Proof.
  unfold within_all, within_row; rewrite <- sum_plus; apply sum_ext; intros j _; destruct (mem j on); [|ring].
  reflexivity.
Qed.

Lemma row_cut k a row on p : length row = k -> up_to (sum row) (snd a) ->
  (forall j, 0 <= nth j row 0 /\ (~ In j (fst a) -> nth j row 0 == 0)) -> cut_of a on = Some p ->
  sum row <= p + within_row k on row.
Proof.
  intros l u z; unfold cut_of, within_row; destruct (forallb _ (fst a)) eqn:inside; intro e.
  - injection e as <-; rewrite forallb_forall in inside; rewrite (sum_nth row), l, Qplus_0_l.
    apply sum_le; intros j _; destruct (mem j on) eqn:mj; [apply Qle_refl|].
    destruct (z j) as [_ zj]; rewrite zj; [apply Qle_refl|].
    intro i; rewrite (inside j i) in mj; discriminate.
  - rewrite e in u; simpl in u.
    assert (0 <= sum (map (fun j => if mem j on then nth j row 0 else 0) (seq 0 k))); [|lra].
    apply sum_nonneg; intros j _; destruct (mem j on); [apply z|apply Qle_refl].
Qed.

Lemma rows_cut k asks on f : Forall2 (fun '(kinds, most) row => length row = k /\ up_to (sum row) most /\
    forall j, 0 <= nth j row 0 /\ (~ In j kinds -> nth j row 0 == 0)) asks f ->
  forall p, together (map (fun a => cut_of a on) asks) = Some p -> sum (map sum f) <= p + within_all k on f.
Proof.
  induction 1 as [|[ks most] row asks f (l & u & z) _ IH]; intros p e.
  - simpl in e; injection e as <-; simpl; unfold within_all.
    rewrite (sum_ext _ (fun _ => 0 * 0)), sum_times; [lra|]; intros j _; destruct (mem j on); reflexivity.
  - destruct (together_cons _ _ _ e) as (q & r & c & e' & ->); specialize (IH _ e').
    pose proof (row_cut k (ks, most) row on q l u z c); rewrite within_cons; simpl; fold (sum (map sum f)); lra.
Qed.

Lemma columns_cut on room f l : (forall j, In j l -> up_to (column f j) (room j)) ->
  forall p, together (map (fun j => if mem j on then room j else Some 0) l) = Some p ->
  sum (map (fun j => if mem j on then column f j else 0) l) <= p.
Proof.
  induction l as [|j l IH]; intros h p e; [simpl in e; injection e as <-; apply Qle_refl|].
  destruct (together_cons _ _ _ e) as (q & r & c & e' & ->).
  specialize (IH (fun i k => h i (or_intror k)) _ e'); simpl.
  pose proof (h j (or_introl eq_refl)) as hj; destruct (mem j on); [rewrite c in hj; simpl in hj|injection c as <-];
    fold (sum (map (fun j => if mem j on then column f j else 0) l)); lra.
Qed.

Lemma cut_bounds k asks room f on q : divides k asks room f -> cut k asks room on = Some q -> sum (map sum f) <= q.
Proof.
  intros [r c] e; destruct (together_app _ _ _ e) as (p & p' & e1 & e2 & ->).
  pose proof (rows_cut k asks on f r p e1) as h.
  assert (within_all k on f <= p'); [|lra].
  apply (columns_cut on room f _ (fun j i => c j (proj1 (in_seq0 _ _) i)) _ e2).
Qed.

(** ** A flow, found by paths that take more: Ford and Fulkerson's, the shortest first *)

(** What each asks for still, and has; what is left of each type. *)
Record flow := Flow { wants : list (list nat * option Q * list Q); spare : list (option Q) }.
Definition some_left (a : option Q) : bool := match a with Some q => lt 0 q | None => true end.
Fixpoint altered {A} (l : list A) (n : nat) (g : A -> A) : list A :=
  match l, n with [], _ => [] | a :: l, O => g a :: l | a :: l, S n => a :: altered l n g end.
Definition less (a : option Q) (q : Q) : option Q := option_map (fun p => sub p q) a.
Definition want_at (s : flow) (i : nat) : list nat * option Q * list Q := nth i (wants s) ([], Some 0, []).
Definition given_at (s : flow) (i j : nat) : Q := nth j (snd (want_at s i)) 0.

Definition visit (s : flow) (i : nat) (path : list (nat * nat)) acc (j : nat) :=
  let '(found, seen, reached, next) := acc in
  match found with
  | Some _ => acc
  | None =>
    if mem j seen then acc
    else if some_left (nth j (spare s) (Some 0)) then (Some ((i, j) :: path), seen, reached, next)
    else
      let others := filter (fun i' => negb (mem i' reached) && lt 0 (given_at s i' j)) (seq 0 (length (wants s))) in
      (None, j :: seen, others ++ reached, next ++ map (fun i' => (i', (i, j) :: path)) others)
  end.
(** A path, the last step first, or the types that can be reached. *)
Fixpoint search (fuel : nat) (s : flow) (queue : list (nat * list (nat * nat))) (seen reached : list nat)
    : option (list (nat * nat)) * list nat :=
  match fuel, queue with
  | S fuel, (i, path) :: queue =>
    let '(found, seen, reached, next) := fold_left (visit s i path) (fst (fst (want_at s i))) (None, seen, reached, []) in
    match found with Some p => (Some p, seen) | None => search fuel s (queue ++ next) seen reached end
  | _, _ => (None, seen)
  end.

Fixpoint along (s : flow) (path : list (nat * nat)) (most : option Q) : option Q :=
  match path with
  | [] => most
  | (i, j) :: rest =>
    match rest with
    | (_, j') :: _ => along s rest (lesser most (Some (given_at s i j')))
    | [] => lesser most (snd (fst (want_at s i)))
    end
  end.
Fixpoint moved (q : Q) (path : list (nat * nat)) (l : list (list nat * option Q * list Q)) :=
  match path with
  | [] => l
  | (i, j) :: rest =>
    let l := altered l i (fun '(ks, w, row) => (ks, w, altered row j (add q))) in
    match rest with
    | (_, j') :: _ => moved q rest (altered l i (fun '(ks, w, row) => (ks, w, altered row j' (fun p => sub p q))))
    | [] => altered l i (fun '(ks, w, row) => (ks, less w q, row))
    end
  end.

Fixpoint flow_from (fuel : nat) (s : flow) : table * list nat :=
  let first := filter (fun i => some_left (snd (fst (want_at s i)))) (seq 0 (length (wants s))) in
  match search (S (length (wants s))) s (map (fun i => (i, [])) first) [] first with
  | (Some (((_, j) :: _) as path), seen) =>
    match fuel, along s path (nth j (spare s) (Some 0)) with
    | S fuel, Some q => flow_from fuel (Flow (moved q path (wants s)) (altered (spare s) j (fun a => less a q)))
    | _, _ => (map snd (wants s), seen)
    end
  | (_, seen) => (map snd (wants s), seen)
  end.
Definition most_steps : nat := 100 * 100.
Definition served (k : nat) (asks : list asked) (room : nat -> option Q) : option Q :=
  let '(f, seen) := flow_from most_steps
    (Flow (map (fun '(ks, w) => (ks, w, repeat 0 k)) asks) (map room (seq 0 k))) in
  let q := fast_sum (map fast_sum f) in
  if divides_b k asks room f && match cut k asks room seen with Some c => same c q | None => false end then Some q else None.

Lemma served_ok k asks room q : served k asks room = Some q -> most_served k asks room q.
Proof.
  unfold served; destruct (flow_from _ _) as [f seen]; destruct (divides_b k asks room f) eqn:d; [|discriminate].
  apply divides_ok in d; simpl; destruct (cut k asks room seen) as [c|] eqn:e; [|discriminate].
  destruct (same c _) eqn:s; [|discriminate]; apply sameP in s; intro h; injection h as <-.
  assert (all : fast_sum (map fast_sum f) == sum (map sum f)).
  { rewrite fast_sumE; apply sum_ext; intros row _; apply fast_sumE. }
  split; [exists f; split; [exact d|symmetry; exact all]|].
  intros q' (f' & d' & <-); pose proof (cut_bounds _ _ _ _ _ _ d' e); lra.
Qed.

Global Opaque served most_steps.

(** ** There is no bound where any number is asked for, of a type of which there is any number *)
Definition endless (c : nat) (asks : list asked) : bool :=
  match asks with [(ks, None)] => mem c ks | _ => false end.

Lemma nth_zeros k j : nth j (repeat 0 k) 0 = 0.
Proof. revert j; induction k; intros [|j]; simpl; auto. Qed.
Lemma sum_zeros k : sum (repeat 0 k) == 0.
Proof. induction k; simpl; [reflexivity|]; fold (sum (repeat 0 k)); rewrite IHk; ring. Qed.
Definition all_at (k c : nat) (q : Q) : list Q := repeat 0 c ++ q :: repeat 0 (k - S c).
Lemma nth_all_at k c q j : nth j (all_at k c q) 0 = if Nat.eqb j c then q else 0.
Proof.
  unfold all_at; destruct (Nat.eqb_spec j c) as [->|ne].
  - rewrite app_nth2 by (rewrite repeat_length; lia); rewrite repeat_length, Nat.sub_diag; reflexivity.
  - destruct (Nat.lt_ge_cases j c).
    + rewrite app_nth1 by (rewrite repeat_length; lia); apply nth_zeros.
    + rewrite app_nth2 by (rewrite repeat_length; lia); rewrite repeat_length.
      destruct (j - c)%nat eqn:d; [lia|apply nth_zeros].
Qed.

Lemma endless_ok k c asks room : (c < k)%nat -> endless c asks = true -> room c = None ->
  (forall j p, room j = Some p -> 0 <= p) -> forall q, exists q', q <= q' /\ serves k asks room q'.
Proof.
  unfold endless; intros l e rc r q; destruct asks as [|[ks [?|]] [|? ?]]; try discriminate; apply mem_ok in e.
  exists (Qmax 0 q); split; [apply Q.le_max_r|].
  set (p := Qmax 0 q); assert (0 <= p) by apply Q.le_max_l.
  exists [all_at k c p]; split; [split|].
  - constructor; [|constructor]; split; [|split; [exact I|]].
    + unfold all_at; rewrite app_length; simpl; rewrite !repeat_length; lia.
    + intro j; rewrite nth_all_at; destruct (Nat.eqb_spec j c) as [->|ne]; [split; [assumption|tauto]|].
      split; [apply Qle_refl|reflexivity].
  - intros j _; unfold column; simpl; rewrite nth_all_at; destruct (Nat.eqb_spec j c) as [->|ne]; [rewrite rc; exact I|].
    destruct (room j) as [there|] eqn:rj; simpl; [|exact I]; pose proof (r j there rj); lra.
  - simpl; unfold all_at; rewrite sum_app; simpl; fold (sum (repeat 0 (k - S c))); rewrite !sum_zeros; ring.
Qed.
