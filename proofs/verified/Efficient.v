(** * The largest total among efficient, envy-free allocations that give everybody its fair share

    A tree shows that none has more.  Where a circle of trades would pay whoever holds all of its pairs of a user and
    a type, an efficient allocation lacks one of these pairs; at each end of the tree multipliers bound what is left. *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Pareto Properties Lies Shifts
  Circles.
Import ListNotations.
Local Open Scope Q_scope.

Definition no_demands (m : market) : bool := forallb (fun u => match demand u with None => true | _ => false end) (users m).

Lemma no_demands_ok m : no_demands m = true -> forall u, In u (users m) -> demand u = None.
Proof.
  unfold no_demands; rewrite forallb_forall; intros h u i; specialize (h u i); destruct (demand u); [discriminate|reflexivity].
Qed.

(** ** Pairs of a user and a type, in order *)
Definition pair : Type := (N * N)%type.
Definition same_pair (p q : pair) : bool := N.eqb (fst p) (fst q) && N.eqb (snd p) (snd q).
Definition before (p q : pair) : bool := N.ltb (fst p) (fst q) || (N.eqb (fst p) (fst q) && N.ltb (snd p) (snd q)).

Fixpoint put (p : pair) (l : list pair) : list pair :=
  match l with
  | [] => [p]
  | q :: rest => if before p q then p :: l else if same_pair p q then l else q :: put p rest
  end.
Definition in_order (l : list pair) : list pair := fold_right put [] l.

Lemma same_pair_ok p q : same_pair p q = true <-> p = q.
Proof.
  unfold same_pair; rewrite andb_true_iff, !N.eqb_eq; destruct p, q; simpl; split; [intros [-> ->]; reflexivity|].
  intro e; injection e; auto.
Qed.

Lemma put_in p q l : In q (put p l) -> q = p \/ In q l.
Proof.
  induction l as [|r l IH]; simpl; [intros [<-|[]]; auto|].
  destruct (before p r); [intros [<-|i]; auto|]; destruct (same_pair p r); [auto|].
  intros [<-|i]; [auto|]; destruct (IH i); auto.
Qed.

Fixpoint same_pairs (a b : list pair) : bool :=
  match a, b with [], [] => true | p :: a, q :: b => same_pair p q && same_pairs a b | _, _ => false end.
Lemma same_pairs_ok a : forall b, same_pairs a b = true -> a = b.
Proof.
  induction a as [|p a IH]; intros [|q b]; simpl; try discriminate; [reflexivity|].
  rewrite andb_true_iff, same_pair_ok; intros [-> h]; rewrite (IH b h); reflexivity.
Qed.

Definition lacking (key : list pair) (i j : N) : bool := existsb (same_pair (i, j)) key.

(** ** Rows: capacities of what somebody can run on are used up, and nobody envies *)
Definition full_row (c : context) (useful : store bool) (d : dual) : option (N * form) :=
  match sharing_row c d with
  | Some (i, f) => Some (i, match at_ useful i with Some true => Form (everywhere f) (parts f) (extra f) (high f) (high f) | _ => f end)
  | None => None
  end.
Definition useful_types (m : market) : list bool :=
  map (fun j => existsb (fun u => lt 0 (nth j (speedup u) 0)) (users m)) (seq 0 (List.length (capacity m))).

Definition numbered {A} (l : list A) : list (N * A) := combine (map N.of_nat (seq 0 (List.length l))) l.
(** A user's speedups, with which of these types it must not hold. *)
Definition masked (key : list pair) (iu : N * user) : list (Q * bool) :=
  map (fun '(j, s) => (s, lacking key (fst iu) j)) (numbered (speedup (snd iu))).
Definition masked_slot (key : list pair) (iu : N * user) : list box :=
  map (fun '(s, z) => (s, (Some 0, if nothing s || z then Some 0 else None))) (masked key iu).

Definition end_bound (m : market) (c : context) (useful : store bool) (key : list pair) (duals : list dual) : option Q :=
  match resolve (either (full_row c useful) (envy_row c)) duals Empty with
  | Some l => bound_of _ (masked_slot key) (numbered (users m)) 0 l
  | None => None
  end.

(** ** The tree *)
Definition taken_now (m : market) (c : list pair) : Q * Q :=
  let c := map (fun p => (N.to_nat (fst p), N.to_nat (snd p))) c in
  let at_most_once l := fold_left mul l 1 in
  (at_most_once (given_in (speed_of m) c), at_most_once (taken_in (speed_of m) c (last_type c 0))).

Definition node_fine (m : market) (c : context) (useful : store bool) (bound : Q) (done : list (list pair))
    (key : list pair) (b : branch) : bool :=
  match circle b with
  | [] => match end_bound m c useful key (bounded_by b) with Some q => le q bound | None => false end
  | circle =>
    Nat.leb (List.length circle) (List.length (capacity m)) &&
    (let '(given, taken) := taken_now m circle in lt given taken) &&
    forallb (fun '(i, j) => N.ltb i (many_users c) && N.ltb j (many_types c)) circle &&
    forallb (fun p => negb (lacking key (fst p) (snd p)) && existsb (same_pairs (put p key)) done) circle
  end.

Fixpoint proved (m : market) (c : context) (useful : store bool) (bound : Q) (nodes : list (list pair * branch))
    (done : list (list pair)) : list (list pair) :=
  match nodes with
  | [] => done
  | (key, b) :: nodes =>
    proved m c useful bound nodes (if node_fine m c useful bound done key b then key :: done else done)
  end.

(** Those that lack most come first. *)
Fixpoint placed_in (x : list pair * branch) (l : list (list pair * branch)) : list (list pair * branch) :=
  match l with
  | [] => [x]
  | y :: rest => if Nat.ltb (List.length (fst x)) (List.length (fst y)) then y :: placed_in x rest else x :: l
  end.
Fixpoint distinct_keys (l : list (list pair)) : bool :=
  match l with [] => true | k :: l => negb (existsb (same_pairs k) l) && distinct_keys l end.

Definition bounded_tree (m : market) (bound : Q) (nodes : list branch) : bool :=
  let c := context_of m in
  let useful := stored (useful_types m) in
  let keyed := map (fun b => (in_order (lacks b), b)) nodes in
  let done := proved m c useful bound (fold_right placed_in [] keyed) [] in
  distinct_keys (map fst keyed) && existsb (same_pairs []) done.

(** ** That it bounds *)

(** What is true of an efficient allocation in which nobody holds what it cannot use. *)
Definition trim (m : market) (y : table) : Prop :=
  sensible m y /\ pareto_efficient m y /\
  forall u b v c, has m y u b -> has m y v c -> weight u / weight v * value u c <= value u b.
Definition lacks_all (y : table) (key : list pair) : Prop :=
  forall p, In p key -> share y (N.to_nat (fst p)) (N.to_nat (snd p)) == 0.

Lemma full_row_kept m d k f y z : valid m -> (forall u, In u (users m) -> demand u = None) -> trim m y ->
  full_row (context_of m) (stored (useful_types m)) d = Some (k, f) -> keeps y z f.
Proof.
  intros va free (sen & eff & _); unfold full_row.
  destruct (sharing_row (context_of m) d) as [[i g]|] eqn:r; [|discriminate].
  pose proof (sharing_row_kept m d i g y z va sen r) as kept.
  intro e; injection e as <- <-; rewrite at_stored.
  destruct (nth_error (useful_types m) (N.to_nat i)) as [[|]|] eqn:ue; try exact kept.
  unfold useful_types in ue; rewrite nth_error_map in ue.
  destruct (nth_error (seq 0 _) (N.to_nat i)) as [j|] eqn:sj; [|discriminate].
  assert (hj : (N.to_nat i < List.length (capacity m))%nat).
  { rewrite <- (seq_length (List.length (capacity m)) 0); apply nth_error_Some; congruence. }
  rewrite (nth_error_nth' _ 0%nat), seq_nth in sj by (rewrite ?seq_length; exact hj); simpl in sj; injection sj as <-.
  simpl in ue; injection ue as ue; apply existsb_exists in ue; destruct ue as (u & iu & pos); apply ltP in pos.
  apply In_nth_error in iu; destruct iu as [w ew].
  assert (full : nth (N.to_nat i) (capacity m) 0 <= given y (N.to_nat i)).
  { apply (useful_is_given m y w); auto; [apply nth_error_Some; congruence|].
    unfold speed_of; rewrite (nth_error_nth _ _ _ ew); exact pos. }
  revert r kept; unfold sharing_row; destruct (at_row d) as [|i' [|? ?]]; try discriminate.
  cbn [cap_at user_at context_of many_types]; destruct (same_text _ capacity_word).
  - rewrite at_stored; destruct (nth_error (capacity m) (N.to_nat i')) as [q|] eqn:e; [|discriminate].
    intro h; cbn [option_map] in h; injection h as <- <-.
    unfold keeps; cbn [low high everywhere parts extra]; intros [_ h]; split; [|exact h].
    rewrite form_all, sum_dot_unit; rewrite (nth_error_nth _ _ 0 e) in full; exact full.
  - destruct (same_text _ demand_word); [|discriminate]; destruct (at_ _ i'); [|discriminate].
    intro h; cbn [option_map] in h; injection h as h _; exfalso; lia.
Qed.

Lemma numbered_at {A} (l : list A) i a : nth_error (numbered l) i = Some a <->
  fst a = N.of_nat i /\ nth_error l i = Some (snd a).
Proof.
  unfold numbered; destruct a as [n a]; rewrite nth_error_combine, nth_error_map; simpl.
  destruct (Nat.lt_ge_cases i (List.length l)) as [h|h].
  - rewrite (nth_error_nth' _ 0%nat), seq_nth by (rewrite ?seq_length; exact h); simpl.
    split; intros [e f]; split; auto; congruence.
  - assert (nth_error l i = None) as -> by (apply nth_error_None; exact h); split; intros [? ?]; discriminate.
Qed.

Lemma numbered_length {A} (l : list A) : List.length (numbered l) = List.length l.
Proof. unfold numbered; rewrite combine_length, map_length, seq_length; apply Nat.min_id. Qed.

Lemma numbered_snd {A} (l : list A) : map snd (numbered l) = l.
Proof. unfold numbered; apply combine_snd; rewrite map_length, seq_length; reflexivity. Qed.

Lemma masked_costs key iu : map fst (masked_slot key iu) = speedup (snd iu).
Proof.
  unfold masked_slot, masked; rewrite map_map, map_map.
  transitivity (map snd (numbered (speedup (snd iu)))); [apply map_ext; intros [? ?]; reflexivity|apply numbered_snd].
Qed.

Lemma Forall2_by_nth {A B} (R : A -> B -> Prop) a : forall b, List.length a = List.length b ->
  (forall i x y, nth_error a i = Some x -> nth_error b i = Some y -> R x y) -> Forall2 R a b.
Proof.
  induction a as [|x a IH]; intros [|y b] l h; try discriminate; constructor; [exact (h 0%nat _ _ eq_refl eq_refl)|].
  apply IH; [simpl in l; lia|]; intros i; apply (h (S i)).
Qed.

Lemma end_bound_ok m key duals q y : valid m -> (forall u, In u (users m) -> demand u = None) -> trim m y ->
  lacks_all y key -> end_bound m (context_of m) (stored (useful_types m)) key duals = Some q -> total m y <= q.
Proof.
  intros va free tr lk; unfold end_bound; destruct (resolve _ _ _) as [l|] eqn:r; [|discriminate]; intro e.
  pose proof tr as ([[sh [nn fit]] sen] & _ & envy).
  assert (boxes : Forall2 (fun s b => boxed (masked_slot key s) b) (numbered (users m)) y).
  { apply Forall2_by_nth; [rewrite numbered_length; symmetry; apply sh|].
    intros i [n u] b ei eb; apply numbered_at in ei; simpl in ei; destruct ei as [-> eu].
    pose proof (combine_has _ _ _ _ _ eu eb) as h; pose proof (has_shaped m y u b va sh h) as lb.
    pose proof (has_nonneg m y u b nn h) as pos; destruct (sen u b h) as [zero _].
    unfold boxed, masked_slot, masked; rewrite map_map; simpl snd; simpl fst.
    apply Forall2_by_nth; [rewrite map_length, numbered_length; symmetry; exact lb|].
    intros j x s ej es; rewrite nth_error_map in ej; destruct (nth_error (numbered (speedup u)) j) as [[n' s']|] eqn:en;
      [|discriminate]; apply numbered_at in en; simpl in en; destruct en as [-> en]; simpl in ej; injection ej as <-.
    pose proof (nth_error_nth _ _ 0 es) as ns; pose proof (pos j) as p; rewrite ns in p; split; [exact p|].
    destruct (nothing s' || lacking key (N.of_nat i) (N.of_nat j)) eqn:z; [|exact I].
    assert (s == 0) as ->; [|lra]. apply orb_true_iff in z; destruct z as [z|z].
    - rewrite <- ns; apply zero; [|rewrite (nth_error_nth _ _ 0 en); apply nothing_true; exact z].
      assert (j < List.length b)%nat by (apply nth_error_Some; congruence).
      rewrite <- (proj2 sh b (in_combine_r _ _ _ _ h)); assumption.
    - unfold lacking in z; apply existsb_exists in z; destruct z as (p' & ip & z); apply same_pair_ok in z; subst p'.
      pose proof (lk _ ip) as h'; unfold share in h'; simpl in h'; rewrite !Nnat.Nat2N.id in h'.
      rewrite (nth_error_nth _ _ _ eb), ns in h'; exact h'. }
  pose proof (bound_of_ok _ _ _ _ _ _ y 0 e boxes) as le.
  assert (kept : forall p f, In (p, f) l -> keeps y 0 f).
  { intros p f i; destruct (resolve_in _ _ _ _ _ _ r i) as (d & j & _ & h); revert h; unfold either.
    destruct (full_row _ _ d) as [[? ?]|] eqn:fr; [intro h; injection h as <- <-; exact (full_row_kept m d _ _ y 0 va free tr fr)|].
    intro h; exact (envy_row_kept m d _ _ y 0 va sh h envy). }
  specialize (le kept).
  assert (tot : costs _ (masked_slot key) (numbered (users m)) y == total m y).
  { unfold costs, total.
    transitivity (sum (map (fun '(u, b) => value u b) (combine (map snd (numbered (users m))) y)));
      [|rewrite numbered_snd; reflexivity].
    generalize (numbered (users m)); clear; intro us; revert y.
    induction us as [|iu us IH]; intros [|b y]; simpl; try reflexivity; rewrite IH, masked_costs; reflexivity. }
  lra.
Qed.

Lemma fold_mul l : forall a, fold_left mul l a == a * product l.
Proof.
  induction l as [|b l IH]; intro a; [unfold product; simpl; ring|].
  change (product (b :: l)) with (b * product l); simpl; rewrite IH, mulE; ring.
Qed.

Definition holds_below (m : market) (bound : Q) (key : list pair) : Prop :=
  forall y, trim m y -> lacks_all y key -> total m y <= bound.

Lemma node_fine_ok m bound done key b : valid m -> (forall u, In u (users m) -> demand u = None) ->
  (forall k, In k done -> holds_below m bound k) ->
  node_fine m (context_of m) (stored (useful_types m)) bound done key b = true -> holds_below m bound key.
Proof.
  intros va free below; unfold node_fine; destruct (circle b) as [|p0 c0] eqn:ec; [|set (c := p0 :: c0) in *].
  - destruct (end_bound _ _ _ _ _) as [q|] eqn:e; [|discriminate]; intros h y tr lk; apply leP in h.
    pose proof (end_bound_ok m key _ q y va free tr lk e); lra.
  - unfold taken_now; rewrite !andb_true_iff, !forallb_forall; intros [[[_ less] inside] next] y tr lk.
    apply ltP in less; rewrite !fold_mul in less; set (c' := map _ c) in *.
    destruct (circle_lacks m y c' va free (proj1 (proj2 tr))) as (p & i & z); [| |].
    + intros p i; unfold c' in i; apply in_map_iff in i; destruct i as ([n j] & <- & i); specialize (inside _ i).
      apply andb_true_iff in inside; destruct inside as [h1 h2]; apply N.ltb_lt in h1; apply N.ltb_lt in h2.
      cbn [many_users many_types context_of] in *; simpl; lia.
    + lra.
    + unfold c' in i; apply in_map_iff in i; destruct i as (q & <- & i); cbn [fst snd] in z.
      specialize (next q i); apply andb_true_iff in next; destruct next as [_ next].
      apply existsb_exists in next; destruct next as (k & ik & sk); apply same_pairs_ok in sk; subst k.
      apply (below _ ik y tr); intros r ir; destruct (put_in _ _ _ ir) as [->|ir']; [exact z|exact (lk r ir')].
Qed.

Lemma proved_ok m bound nodes : valid m -> (forall u, In u (users m) -> demand u = None) -> forall done,
  (forall k, In k done -> holds_below m bound k) ->
  forall k, In k (proved m (context_of m) (stored (useful_types m)) bound nodes done) -> holds_below m bound k.
Proof.
  intros va free; induction nodes as [|[key b] nodes IH]; intros done h; [exact h|]; simpl; apply IH.
  destruct (node_fine _ _ _ _ _ _ _) eqn:f; [|exact h].
  intros k [<-|i]; [exact (node_fine_ok m bound done key b va free h f)|exact (h k i)].
Qed.

(** What nobody can use is taken away: nobody loses by it, and nobody envies more. *)
Lemma trimmed m y : valid m -> (forall u, In u (users m) -> demand u = None) -> pareto_efficient m y -> envy_free m y ->
  trim m (in_use_of m y) /\ total m (in_use_of m y) == total m y.
Proof.
  intros va free eff envy; pose proof (proj1 eff) as fy; pose proof fy as [sh [nn _]].
  pose proof (in_use_sensible m y va fy) as sen.
  assert (from : forall i u c, nth_error (users m) i = Some u -> nth_error (in_use_of m y) i = Some c ->
    exists b, nth_error y i = Some b /\ has m y u b /\ c = used u b /\ value u c == value u b).
  { intros i u c eu e; destruct (beside _ y _ _ (eq_sym (proj1 sh)) eu) as [b g]; exists b.
    pose proof (combine_has _ _ _ _ _ eu g) as h; rewrite (in_use_at _ _ _ _ _ eu g) in e; injection e as <-.
    split; [exact g|split; [exact h|split; [reflexivity|]]].
    rewrite <- (worth_used u b (has_shaped m y u b va sh h)); unfold worth; rewrite (free u (nth_error_In _ _ eu)); reflexivity. }
  assert (from2 : forall u c, has m (in_use_of m y) u c -> exists b, has m y u b /\ c = used u b /\ value u c == value u b).
  { intros u c i; destruct (has_at _ _ _ _ i) as (j & e & f); destruct (from j u c e f) as (b & _ & h); exists b; exact h. }
  split; [split; [exact sen|split; [split; [exact (proj1 sen)|]|]]|].
  - intros z fz better u c b i.
    assert (h : everybody_at_least m y z).
    { intros v d e i'; destruct (has_at _ _ _ _ i') as (j & ev & ed); apply nth_error_combine in ed; destruct ed as [ed ee].
      assert (e' : nth_error (in_use_of m y) j = Some (used v d)) by (exact (in_use_at _ _ _ _ _ ev ed)).
      pose proof (better v (used v d) e (combine_has _ _ j _ _ ev (proj2 (nth_error_combine _ _ _ _ _) (conj e' ee)))) as w.
      destruct (from j v _ ev e') as (d' & ed' & _ & _ & vd); rewrite ed in ed'; injection ed' as <-.
      unfold worth in *; rewrite (free v (nth_error_In _ _ ev)) in *; lra. }
    destruct (has_at _ _ _ _ i) as (j & eu & ec); apply nth_error_combine in ec; destruct ec as [ec eb].
    destruct (from j u b eu eb) as (b' & eb' & _ & _ & vb).
    pose proof (proj2 eff z fz h u c b' (combine_has _ _ j _ _ eu (proj2 (nth_error_combine _ _ _ _ _) (conj ec eb')))) as w.
    unfold worth in *; rewrite (free u (nth_error_In _ _ eu)) in *; lra.
  - intros u b v c iu iv; destruct (from2 u b iu) as (b' & hb & _ & vb); destruct (from2 v c iv) as (c' & hc & -> & _).
    pose proof (in_combine_l _ _ _ _ hb) as inu; pose proof (in_combine_l _ _ _ _ hc) as inv.
    assert (q0 : 0 < weight u / weight v).
    { apply Qlt_shift_div_l; [apply va; exact inv|]; rewrite Qmult_0_l; apply va; exact inu. }
    assert (le : value u (used v c') <= value u c').
    { apply dot_le; [intros q i; apply (proj2 (proj2 (proj2 (proj2 va))) u inu); exact i|].
      apply used_le; [exact (has_shaped m y v c' va sh hc)|exact (has_nonneg m y v c' nn hc)]. }
    pose proof (envy u b' v c' hb hc) as ne; unfold envies, worth in ne; rewrite (free u inu) in ne.
    assert (value u (scaled (weight u / weight v) c') == weight u / weight v * value u c') as e by apply dot_scale_r.
    apply Qnot_lt_le in ne; rewrite e in ne; rewrite vb; nra.
  - rewrite <- (Qmult_1_l (total m (in_use_of m y))), <- sum_alike.
    rewrite (weighted_in_use m (alike 1 m) va (alike_users 1 m) y sh).
    unfold weighted_worth, alike, total; revert free; generalize (users m); clear; intro us; revert y.
    induction us as [|u us IH]; intros [|b y] free; simpl; try reflexivity.
    rewrite IH by (intros w i; apply free; right; exact i); unfold worth at 1; rewrite (free u (or_introl eq_refl)); ring.
Qed.

Theorem bounded_tree_ok m bound nodes y : valid m -> (forall u, In u (users m) -> demand u = None) ->
  bounded_tree m bound nodes = true -> pareto_efficient m y -> envy_free m y -> total m y <= bound.
Proof.
  intros va free; unfold bounded_tree; cbv zeta; rewrite andb_true_iff; intros [_ h] eff envy.
  apply existsb_exists in h; destruct h as (k & i & s); apply same_pairs_ok in s; subst k.
  destruct (trimmed m y va free eff envy) as [tr tot]; rewrite <- tot.
  apply (proved_ok m bound _ va free [] (fun k (j : In k []) => match j with end) [] i _ tr); intros p [].
Qed.

(** ** The certificate *)
Definition best_prices (m : market) (lambda : list Q) : list Q :=
  map (fun j => fold_left (fun best '(w, u) => bigger best (mul w (nth j (speedup u) 0))) (combine lambda (users m)) 0)
    (seq 0 (List.length (capacity m))).

Definition is_best_efficient (m : market) (x : table) (lambda : list Q) (v bound gap : Q) (nodes : list branch) : bool :=
  valid_b m && no_demands m && sensible_b m x && envy_free_b m x && sharing_incentive_b m x &&
  weights_show m x lambda (Pareto.priced capacity_word 0 (best_prices m lambda)) &&
  same (total_now m x) v && gap_is gap v bound && le v bound && bounded_tree m bound nodes.

Lemma is_best_efficient_ok m x lambda v bound gap nodes : is_best_efficient m x lambda v bound gap nodes = true ->
  valid m /\ sensible m x /\ efficient_and_fair m x /\ total m x == v /\
  forall y, efficient_and_fair m y -> total m y <= bound.
Proof.
  unfold is_best_efficient; rewrite !andb_true_iff; intros [[[[[[[[[va free] sen] envy] share] eff] tot] _] _] tree].
  apply valid_ok in va; pose proof (no_demands_ok m free) as free'; apply (sensible_ok m x va) in sen.
  pose proof (proj1 sen) as fx; apply (envy_free_ok m x va (proj1 fx) (proj1 (proj2 fx))) in envy.
  apply sharing_incentive_ok in share; apply (weights_show_ok m x _ _ va fx) in eff.
  apply sameP in tot; rewrite total_now_ok in tot.
  split; [exact va|split; [exact sen|split; [split; [exact envy|split; [exact share|exact eff]]|split; [exact tot|]]]].
  intros y (ey & _ & py); exact (bounded_tree_ok m bound nodes y va free' tree py ey).
Qed.

Definition unproved_tree : string := "the allocation is not efficient, envy-free and fair, or the tree does not bound all such".

Definition check_efficient m x lambda v bound gap nodes : result :=
  if is_best_efficient m x lambda v bound gap nodes then Accepted (BestEfficient m x v bound) else no unproved_tree.

Lemma check_efficient_sound m x lambda v bound gap nodes s :
  check_efficient m x lambda v bound gap nodes = Accepted s -> meaning s.
Proof.
  unfold check_efficient; destruct (is_best_efficient _ _ _ _ _ _ _) eqn:e; [|discriminate]; intro h; injection h as <-.
  destruct (is_best_efficient_ok _ _ _ _ _ _ _ e) as (va & _ & rest); exact (conj va rest).
Qed.
