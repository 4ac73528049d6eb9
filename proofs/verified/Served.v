(** * The most that can be served, found by a flow and proved by prices

    How the flow is found proves nothing and need not: it is checked, and so are prices of what is asked for and of
      types,
    and where the two come to the same number, none serves more. *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Allocations.
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

Lemma same_group_ok g h : same_group g h = true <-> g = h.
Proof.
  destruct g as [g|], h as [h|]; simpl; rewrite ?Nat.eqb_eq; split; intro e; try discriminate; try injection e;
    congruence.
Qed.

Lemma Qle_lteq_eq a b : a == b -> a <= b.
Proof. intros ->; apply Qle_refl. Qed.

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

(** ** Prices: what is asked for and what there is pay at least what each GPU is worth where it may serve *)
Definition pays (price : Q) (amount : option Q) : option Q :=
  if nothing price then Some 0 else option_map (mul price) amount.
Definition asked_pays (a : asked * Q) : option Q := pays (snd a) (snd (fst a)).
Definition all_pay (k : nat) (asks : list asked) (room : nat -> option Q) (for_asked for_type : list Q) : option Q :=
  together (map asked_pays (combine asks for_asked)
            ++ map (fun j => pays (nth j for_type 0) (room j)) (seq 0 k)).
Definition priced_well (worths for_type : list Q) (a : asked * Q) : bool :=
  forallb (fun j => le (nth j worths 0) (add (snd a) (nth j for_type 0))) (fst (fst a)).
Definition prices_fine (k : nat) (worths : list Q) (asks : list asked) (for_asked for_type : list Q) : bool :=
  Nat.eqb (length worths) k && Nat.eqb (length for_type) k && Nat.eqb (length for_asked) (length asks) &&
  forallb (le 0) for_asked && forallb (le 0) for_type &&
  forallb (priced_well worths for_type) (combine asks for_asked).

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

Lemma pays_ok price x amount p : 0 <= price -> up_to x amount -> pays price amount = Some p -> price * x <= p.
Proof.
  unfold pays; intros h u e; destruct (nothing price) eqn:z.
  - injection e as <-; apply nothing_true in z; rewrite z; lra.
  - destruct amount as [most|]; [|discriminate]; injection e as <-; simpl in u; rewrite mulE; nra.
Qed.

Lemma row_pays k worths (a : asked) price for_type row : length row = k -> length worths = k -> length for_type = k ->
  (forall j, 0 <= nth j row 0 /\ (~ In j (fst a) -> nth j row 0 == 0)) ->
  (forall j, In j (fst a) -> nth j worths 0 <= price + nth j for_type 0) ->
  dot worths row <= price * sum row + dot for_type row.
Proof.
  intros l lw lt z h; rewrite (dot_nth worths row), (dot_nth for_type row), (sum_nth row) by congruence.
  rewrite lw, lt, l, <- sum_times, <- sum_plus; apply sum_le; intros j _; destruct (z j) as [p zj].
  destruct (in_dec Nat.eq_dec j (fst a)) as [i|n]; [specialize (h j i); nra|rewrite (zj n); lra].
Qed.

Lemma columns_dot k v f : length v = k -> (forall row, In row f -> length row = k) ->
  sum (map (dot v) f) == sum (map (fun j => nth j v 0 * column f j) (seq 0 k)).
Proof.
  intros lv; induction f as [|row f IH]; intro h.
  - simpl; symmetry; rewrite (sum_ext _ (fun _ => 0 * 0)), sum_times; [ring|]; intros j _; unfold column; simpl; ring.
  - simpl; fold (sum (map (dot v) f)); rewrite IH by (intros r i; apply h; right; exact i).
    rewrite (dot_nth v row) by (rewrite (h row (or_introl eq_refl)); auto); rewrite lv, <- sum_plus.
    apply sum_ext; intros j _; unfold column; simpl; ring.
Qed.

Lemma rows_pay k worths for_type : length worths = k -> length for_type = k ->
  forall asks f, Forall2 (fun '(kinds, most) row => length row = k /\ up_to (sum row) most /\
    forall j, 0 <= nth j row 0 /\ (~ In j kinds -> nth j row 0 == 0)) asks f ->
  forall for_asked p, length for_asked = length asks -> (forall q, In q for_asked -> 0 <= q) ->
  (forall (a : asked) q, In (a, q) (combine asks for_asked) -> forall j, In j (fst a) -> nth j worths 0 <= q + nth j
    for_type 0) ->
  together (map asked_pays (combine asks for_asked)) = Some p ->
  sum (map (dot worths) f) <= p + sum (map (dot for_type) f).
Proof.
  intros lw lt asks f r; induction r as [|[ks most] row asks f (l & u & z) _ IH]; intros [|q for_asked] p la nn h e;
    try discriminate; simpl in e.
  - injection e as <-; simpl; lra.
  - destruct (together_cons _ _ _ e) as (p1 & p2 & e1 & e2 & ->); simpl.
    fold (sum (map (dot worths) f)); fold (sum (map (dot for_type) f)).
    assert (rest : sum (map (dot worths) f) <= p2 + sum (map (dot for_type) f)).
    { apply (IH for_asked p2); [simpl in la; lia|intros x i; apply nn; right; exact i| |exact e2].
      intros a x i; apply h; right; exact i. }
    pose proof (row_pays k worths (ks, most) q for_type row l lw lt z (h _ _ (or_introl eq_refl))).
    pose proof (pays_ok q (sum row) most p1 (nn q (or_introl eq_refl)) u e1); lra.
Qed.

Lemma types_pay room f for_type l : (forall j, In j l -> up_to (column f j) (room j)) -> (forall j, 0 <= nth j for_type
  0) ->
  forall p, together (map (fun j => pays (nth j for_type 0) (room j)) l) = Some p ->
  sum (map (fun j => nth j for_type 0 * column f j) l) <= p.
Proof.
  intros h nn; induction l as [|j l IH]; intros p e; [simpl in e; injection e as <-; apply Qle_refl|].
  destruct (together_cons _ _ _ e) as (p1 & p2 & e1 & e2 & ->); simpl.
  specialize (IH (fun i k => h i (or_intror k)) _ e2).
  fold (sum (map (fun j => nth j for_type 0 * column f j) l)).
  pose proof (pays_ok _ _ _ _ (nn j) (h j (or_introl eq_refl)) e1); lra.
Qed.

Lemma prices_bound k worths asks room f for_asked for_type q : divides k asks room f ->
  prices_fine k worths asks for_asked for_type = true -> all_pay k asks room for_asked for_type = Some q ->
  sum (map (dot worths) f) <= q.
Proof.
  unfold prices_fine; rewrite !andb_true_iff, !Nat.eqb_eq, !forallb_forall; intros [r c] [[[[[lw lt] la] na] nt] h] e.
  destruct (together_app _ _ _ e) as (p & p' & e1 & e2 & ->).
  assert (pos : forall j, 0 <= nth j for_type 0).
  { apply nth_nonneg; intros x i; apply leP, nt, i. }
  pose proof (rows_pay k worths for_type lw lt asks f r for_asked p la (fun x i => proj1 (leP _ _) (na x i))) as one.
  specialize (one (fun a x i j ij => Qle_trans _ _ _
    (proj1 (leP _ _) (proj1 (forallb_forall _ _) (h (a, x) i) j ij)) (Qle_lteq_eq _ _ (addE _ _))) e1).
  assert (rows : forall row, In row f -> length row = k).
  { clear -r; induction r as [|[ks most] row asks f (l & _) _ IH]; [intros ? []|intros row' [<-|i]; auto]. }
  rewrite (columns_dot k for_type f lt rows) in one.
  pose proof (types_pay room f for_type (seq 0 k) (fun j i => c j (proj1 (in_seq0 _ _) i)) pos p' e2); lra.
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
    let '(found, seen, reached, next) := fold_left (visit s i path) (fst (fst (want_at s i))) (None, seen, reached, [])
      in
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

Fixpoint flow_from (fuel : nat) (s : flow) : flow * list nat :=
  let first := filter (fun i => some_left (snd (fst (want_at s i)))) (seq 0 (length (wants s))) in
  match search (S (length (wants s))) s (map (fun i => (i, [])) first) [] first with
  | (Some (((_, j) :: _) as path), seen) =>
    match fuel, along s path (nth j (spare s) (Some 0)) with
    | S fuel, Some q => flow_from fuel (Flow (moved q path (wants s)) (altered (spare s) j (fun a => less a q)))
    | _, _ => (s, seen)
    end
  | (_, seen) => (s, seen)
  end.
Definition most_steps : nat := 100 * 100.

(** Types are opened one after the other, those that are worth more first.  At each, what cannot be reached pays for how
    much more the type is worth than the next. *)
Fixpoint placed (worths : list Q) (j : nat) (l : list nat) : list nat :=
  match l with
  | [] => [j]
  | i :: rest => if lt (nth i worths 0) (nth j worths 0) then j :: l else i :: placed worths j rest
  end.
Definition dearest_first (worths : list Q) : list nat := fold_right (placed worths) [] (seq 0 (length worths)).
Fixpoint stages (worths : list Q) (room : nat -> option Q) (order opened : list nat) (s : flow)
    (for_asked for_type : list Q) : flow * (list Q * list Q) :=
  match order with
  | [] => (s, (for_asked, for_type))
  | j :: order =>
    let opened := j :: opened in
    let '(s, seen) := flow_from most_steps (Flow (wants s) (altered (spare s) j (fun _ => room j))) in
    let more := sub (nth j worths 0) (match order with i :: _ => nth i worths 0 | [] => 0 end) in
    let unseen ks := existsb (fun i => mem i opened && negb (mem i seen)) ks in
    stages worths room order opened s
      (map (fun '((ks, _, _), q) => if unseen ks then add q more else q) (combine (wants s) for_asked))
      (map (fun '(i, q) => if mem i opened && mem i seen then add q more else q)
        (combine (seq 0 (length for_type)) for_type))
  end.
Definition served (k : nat) (worths : list Q) (asks : list asked) (room : nat -> option Q) : option Q :=
  let start := Flow (map (fun '(ks, w) => (ks, w, repeat 0 k)) asks) (repeat (Some 0) k) in
  let '(s, (for_asked, for_type)) :=
    stages worths room (dearest_first worths) [] start (map (fun _ => 0) asks) (repeat 0 k) in
  let f := map snd (wants s) in
  let q := fast_sum (map (fast_dot worths) f) in
  if divides_b k asks room f && prices_fine k worths asks for_asked for_type &&
     match all_pay k asks room for_asked for_type with Some c => same c q | None => false end then Some q else None.

Lemma served_ok k worths asks room q : served k worths asks room = Some q -> most_served k worths asks room q.
Proof.
  unfold served; destruct (stages _ _ _ _ _ _ _) as [s [for_asked for_type]]; cbv zeta; set (f := map snd (wants s)).
  destruct (divides_b k asks room f) eqn:d; [|discriminate]; apply divides_ok in d; simpl.
  destruct (prices_fine _ _ _ _ _) eqn:p; [|discriminate]; simpl.
  destruct (all_pay _ _ _ _ _) as [c|] eqn:e; [|discriminate].
  destruct (same c _) eqn:sc; [|discriminate]; apply sameP in sc; intro h; injection h as <-.
  assert (all : fast_sum (map (fast_dot worths) f) == sum (map (dot worths) f)).
  { rewrite fast_sumE; apply sum_ext; intros row _; apply fast_dotE. }
  split; [exists f; split; [exact d|symmetry; exact all]|].
  intros q' (f' & d' & <-); pose proof (prices_bound _ _ _ _ _ _ _ _ d' p e); lra.
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
  (forall j p, room j = Some p -> 0 <= p) -> forall q, exists q', q <= q' /\ serves k (repeat 1 k) asks room q'.
Proof.
  unfold endless; intros l e rc r q; destruct asks as [|[ks [?|]] [|? ?]]; try discriminate; apply mem_ok in e.
  exists (Qmax 0 q); split; [apply Q.le_max_r|].
  set (p := Qmax 0 q); assert (0 <= p) by apply Q.le_max_l.
  exists [all_at k c p]; split; [split|].
  - constructor; [|constructor]; split; [|split; [exact I|]].
    + unfold all_at; rewrite app_length; simpl; rewrite !repeat_length; lia.
    + intro j; rewrite nth_all_at; destruct (Nat.eqb_spec j c) as [->|ne]; [split; [assumption|tauto]|].
      split; [apply Qle_refl|reflexivity].
  - intros j _; unfold column; simpl; rewrite nth_all_at; destruct (Nat.eqb_spec j c) as [->|ne]; [rewrite rc; exact
    I|].
    destruct (room j) as [there|] eqn:rj; simpl; [|exact I]; pose proof (r j there rj); lra.
  - simpl; rewrite dot_ones by (unfold all_at; rewrite app_length; simpl; rewrite !repeat_length; lia).
    unfold all_at; rewrite sum_app; simpl; fold (sum (repeat 0 (k - S c))); rewrite !sum_zeros; ring.
Qed.
