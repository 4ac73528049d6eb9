(** * Entitlements that are well formed, what users could use, and what bundles are worth to them *)

From Coq Require Import List QArith Qminmax Qround Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Served.
Import ListNotations.
Local Open Scope Q_scope.
Local Open Scope list_scope.

(** ** Well formed *)
Definition amounts_b (width : nat) (row : list Q) : bool := Nat.eqb (List.length row) width && forallb (le 0) row.
Definition ends_b (width : nat) (row : list (option Q)) : bool :=
  Nat.eqb (List.length row) width && forallb (fun q => match q with Some q => le 0 q | None => true end) row.
Fixpoint pinned_fine (width : nat) (a b : table) : bool :=
  match a, b with
  | [], [] => true
  | row :: a, all :: b =>
    amounts_b width row && amounts_b width all && forallb (fun '(p, q) => le p q) (combine row all) && pinned_fine
      width a b
  | _, _ => false
  end.
Definition gang_fine (m : market) (g : gang) : bool :=
  (waiting g <? people m)%nat && le 0 (gang_gpus g) && some (allowed g) &&
  forallb (fun j => (j <? kinds m)%nat) (allowed g) && forallb (fun '(_, q) => le 0 q) (takes g).
Definition well_formed_b (m : market) (e : entitlements) : bool :=
  let n := nodes m e in
  let width := (kinds m + List.length (goods e))%nat in
  Nat.eqb (List.length (around e)) n &&
  forallb (fun d => match group_of e d with Some g => (people m <=? g)%nat && (g <? n)%nat | None => true end
                    && (List.length (path_in e (S deepest) d) <=? deepest)%nat) (seq 0 n) &&
  amounts_b (List.length (goods e)) (stock e) && amounts_b n (borrow_weight e) && Nat.eqb (List.length (tier e)) n &&
  Nat.eqb (List.length (guarantees e)) n && forallb (ends_b width) (guarantees e) &&
  Nat.eqb (List.length (caps e)) n && forallb (ends_b width) (caps e) &&
  Nat.eqb (List.length (in_hand e)) (people m) && forallb (amounts_b width) (in_hand e) &&
  pinned_fine width (pinned e) (in_hand e) && forallb (gang_fine m) (pending e).

Lemma amounts_ok w row : amounts_b w row = true -> amounts w row.
Proof.
  unfold amounts_b, amounts; rewrite andb_true_iff, Nat.eqb_eq, forallb_forall; intros [l h]; split; [exact l|].
  intros q i; apply leP, h, i.
Qed.
Lemma ends_ok w row : ends_b w row = true -> ends w row.
Proof.
  unfold ends_b, ends; rewrite andb_true_iff, Nat.eqb_eq, forallb_forall; intros [l h]; split; [exact l|].
  intros q i; apply leP, (h _ i).
Qed.
Lemma pinned_ok w a : forall b, pinned_fine w a b = true ->
  Forall2 (fun fixed all => amounts w fixed /\ Forall2 Qle fixed all) a b.
Proof.
  induction a as [|row a IH]; intros [|all b]; simpl; try discriminate; [constructor|].
  rewrite !andb_true_iff; intros [[[f g] h] r]; apply amounts_ok in f; apply amounts_ok in g.
  constructor; [split; [exact f|]|apply IH; exact r].
  apply Forall2_combine; [rewrite (proj1 f); symmetry; apply g|].
  intros p q i; rewrite forallb_forall in h; apply leP, (h (p, q) i).
Qed.

Lemma well_formed_ok m e : well_formed_b m e = true -> well_formed m e.
Proof.
  unfold well_formed_b, well_formed; cbv zeta; rewrite !andb_true_iff, !Nat.eqb_eq, !forallb_forall.
  intros [[[[[[[[[[[[a b] c] d] f] g] h] i] j] k] l] n] o].
  split; [exact a|split; [|split; [|split; [apply amounts_ok, c|split; [apply amounts_ok, d|split; [exact f|split;
    [exact g|split; [intros row r; apply ends_ok, h, r|split; [exact i|split; [intros row r; apply ends_ok, j, r|split;
    [exact k|split; [intros row r; apply amounts_ok, l, r|split; [apply pinned_ok, n|]]]]]]]]]]]]].
  - intros y z ly e1; specialize (b y (proj2 (in_seq0 _ _) ly)); rewrite e1, !andb_true_iff, Nat.leb_le, Nat.ltb_lt in
    b.
    lia.
  - intros y ly; specialize (b y (proj2 (in_seq0 _ _) ly)); rewrite andb_true_iff, !Nat.leb_le in b; apply b.
  - intros y z; specialize (o y z); unfold gang_fine in o; rewrite !andb_true_iff, Nat.ltb_lt, leP, !forallb_forall in
    o.
    destruct o as [[[[o1 o2] o3] o4] o5].
    split; [exact o1|split; [exact o2|split; [apply some_ok, o3|split]]].
    + intros t u; apply Nat.ltb_lt, o4, u.
    + intros t q u; apply leP, (o5 (t, q) u).
Qed.

Definition well_told (m : market) : bool := match entitled m with Some e => well_formed_b m e | None => true end.

(** ** What users could use *)
Fixpoint all_known {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some a :: l => match all_known l with Some r => Some (a :: r) | None => None end
  | None :: _ => None
  end.
Lemma all_known_at {A} (l : list (option A)) : forall r i a, all_known l = Some r -> nth_error l i = Some a ->
  exists b, a = Some b /\ nth_error r i = Some b.
Proof.
  induction l as [|[h|] l IH]; intros r [|i] a e n; simpl in *; try discriminate;
    destruct (all_known l) as [r'|]; try discriminate; injection e as <-; simpl.
  - injection n as <-; exists h; auto.
  - exact (IH r' i a eq_refl n).
Qed.

Lemma all_known_length {A} (l : list (option A)) : forall r, all_known l = Some r -> List.length l = List.length r.
Proof.
  induction l as [|[h|] l IH]; intros r e; simpl in *; try discriminate; [injection e as <-; reflexivity|].
  destruct (all_known l) as [r'|]; [|discriminate]; injection e as <-; simpl; rewrite (IH r' eq_refl); reflexivity.
Qed.

(** [row]: what user [i] has. *)
Definition could_cell (m : market) (e : entitlements) (x : table) (row : list Q) (i : nat) (asked : list asked) (have :
  Q)
    (c : nat) : option (option Q) :=
  if (c <? kinds m)%nat then
    if endless c asked then Some None
    else match served (kinds m) (one_each m) asked (with_any c (room_of row)) with
         | Some q => Some (Some (sub q have))
         | None => None
         end
  else Some (Some (Qred (good_waits m e x i c))).
Definition could_row (m : market) (e : entitlements) (x : table) (row : list Q) (i : nat) (u : user) : option (list
  (option Q)) :=
  let asked := asks m e i u in
  match served (kinds m) (one_each m) asked (room_of row) with
  | Some have => all_known (map (could_cell m e x row i asked have) (seq 0 (columns m e x)))
  | None => None
  end.
Definition could_table (m : market) (e : entitlements) (x : table) : option (list (list (option Q))) :=
  let rows := mine m e x in
  all_known (map (fun '(i, u) => could_row m e x (nth i rows []) i u) (combine (seq 0 (List.length (users m))) (users
    m))).
Definition looked_up (t : list (list (option Q))) (i c : nat) : option Q := nth c (nth i t []) (Some 0).

Lemma nth_error_seq i k : (i < k)%nat -> nth_error (seq 0 k) i = Some i.
Proof.
  intro l; rewrite (nth_error_nth' _ 0%nat) by (rewrite seq_length; exact l); rewrite seq_nth by exact l; reflexivity.
Qed.

Lemma most_served_eq k worths asked room p q :
  p == q -> most_served k worths asked room p -> most_served k worths asked room q.
Proof.
  intros e [[f [d s]] h]; split; [exists f; split; [exact d|rewrite s; exact e]|].
  intros q' s'; rewrite <- e; exact (h q' s').
Qed.

Lemma in_mine m e x i c : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) -> 0 <= cell (mine m
  e x) i c.
Proof.
  intros w nn; assert (rows : forall b, In b (mine m e x) -> forall q, In q b -> 0 <= q).
  { unfold mine; destruct (now m e x); [|intros b ib q iq; exact (nn b q ib iq)].
    destruct w as (_ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & h & _); intros b ib; apply (h b ib). }
  unfold cell; apply nth_nonneg; destruct (Nat.lt_ge_cases i (List.length (mine m e x))) as [l|l].
  - apply rows, nth_In; exact l.
  - rewrite nth_overflow by exact l; intros q [].
Qed.

Lemma could_ok m e x t : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) ->
  could_table m e x = Some t -> could_use m e x (looked_up t).
Proof.
  unfold could_table; cbv zeta; intros w nn et i u c eu lc; set (row_of := fun i => nth i (mine m e x) []).
  assert (li : (i < List.length (users m))%nat) by (apply nth_error_Some; congruence).
  assert (at_i : nth_error (map (fun '(i, u) => could_row m e x (nth i (mine m e x) []) i u)
    (combine (seq 0 (List.length (users m))) (users m))) i = Some (could_row m e x (row_of i) i u)).
  { rewrite nth_error_map; assert (nth_error (combine (seq 0 (List.length (users m))) (users m)) i = Some (i, u)) as ->;
      [|reflexivity]. apply nth_error_combine; split; [apply nth_error_seq; exact li|exact eu]. }
  destruct (all_known_at _ _ _ _ et at_i) as (row & er & nr); unfold could_row in er.
  destruct (served _ _ _ _) as [have|] eqn:eh; [|discriminate]; apply served_ok in eh.
  assert (at_c : nth_error (map (could_cell m e x (row_of i) i (asks m e i u) have) (seq 0 (columns m e x))) c
                 = Some (could_cell m e x (row_of i) i (asks m e i u) have c)).
  { rewrite nth_error_map, (nth_error_seq _ _ lc); reflexivity. }
  destruct (all_known_at _ _ _ _ er at_c) as (q & ec & nq).
  unfold looked_up; rewrite (nth_error_nth _ _ [] nr), (nth_error_nth _ _ (Some 0) nq).
  unfold could_cell in ec; destruct (c <? kinds m)%nat eqn:lk.
  - exists have; split; [exact eh|]. destruct (endless c (asks m e i u)) eqn:en.
    + injection ec as <-; apply Nat.ltb_lt in lk; intro q'.
      apply (endless_ok _ _ _ _ lk en); [unfold with_any; rewrite Nat.eqb_refl; reflexivity|].
      intros j p; unfold with_any, given_to; destruct (Nat.eqb j c); [discriminate|intro h; injection h as <-].
      apply in_mine; assumption.
    + destruct (served _ _ _ (with_any _ _)) as [q'|] eqn:es; [|discriminate]; injection ec as <-; apply served_ok in
      es.
      apply (most_served_eq _ _ _ _ q'); [rewrite subE; ring|exact es].
  - injection ec as <-; eexists; split; [reflexivity|apply Qred_correct].
Qed.

(** ** What bundles are worth for what users ask for *)
Definition worth_asked_now (m : market) (e : entitlements) (i : nat) (u : user) (b : list Q) : option Q :=
  if usage_told m e then served (kinds m) (speedup u) (asks m e i u) (room_of b) else Some (worth_now u b).
Lemma worth_asked_ok m e i u b t : worth_asked_now m e i u b = Some t -> worth_asked m e i u b t.
Proof.
  unfold worth_asked_now, worth_asked; destruct (usage_told m e); [apply served_ok|].
  intro h; injection h as <-; apply worth_now_ok.
Qed.
Definition both_worths (m : market) (e : entitlements) (i : nat) (u : user) (b : list Q) : option (Q * Q) :=
  match worth_asked_now m e i u b, worth_asked_now m e i u (guaranteed m e i) with
  | Some own, Some sure => Some (own, sure)
  | _, _ => None
  end.
Definition worths_table (m : market) (e : entitlements) (x : table) : option (list (Q * Q)) :=
  let all := combine (users m) x in
  all_known (map (fun '(i, (u, b)) => both_worths m e i u b) (combine (seq 0 (List.length all)) all)).

Lemma worths_ok m e x t : worths_table m e x = Some t ->
  worths_are m e x (fun i => fst (nth i t (0, 0))) (fun i => snd (nth i t (0, 0))).
Proof.
  intros et i u b eu; assert (li : (i < List.length (combine (users m) x))%nat) by (apply nth_error_Some; congruence).
  assert (at_i : nth_error (map (fun '(i, (u, b)) => both_worths m e i u b)
    (combine (seq 0 (List.length (combine (users m) x))) (combine (users m) x))) i = Some (both_worths m e i u b)).
  { rewrite nth_error_map; assert (nth_error (combine (seq 0 (List.length (combine (users m) x))) (combine (users m)
    x)) i
      = Some (i, (u, b))) as ->; [|reflexivity]. apply nth_error_combine; split; [apply nth_error_seq; exact li|exact
        eu]. }
  destruct (all_known_at _ _ _ _ et at_i) as ([own sure] & er & nr); unfold both_worths in er.
  destruct (worth_asked_now m e i u b) as [o|] eqn:eo; [|discriminate].
  destruct (worth_asked_now m e i u (guaranteed m e i)) as [s|] eqn:es; [|discriminate]; injection er as <- <-.
  rewrite (nth_error_nth _ _ (0, 0) nr); split; apply worth_asked_ok; assumption.
Qed.

Lemma all_worths_ok (t : list (Q * Q)) n : List.length t = n -> forallb (fun '(own, sure) => le sure own) t = true <->
  forall i, (i < n)%nat -> snd (nth i t (0, 0)) <= fst (nth i t (0, 0)).
Proof.
  intros <-; rewrite forallb_forall; split.
  - intros h i l; specialize (h (nth i t (0, 0)) (nth_In _ _ l)); destruct (nth i t (0, 0)); apply leP, h.
  - intros h [own sure] k; destruct (In_nth _ _ (0, 0) k) as (i & l & ei); specialize (h i l); rewrite ei in h; apply
    leP, h.
Qed.

