(** * Water filling: rounds of multipliers show that ratios are lexicographically max-min *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Decided Pareto Optima Limits.
Import ListNotations.
Local Open Scope Q_scope.

Definition normal_now (m : market) (all : Q) (n : normaliser) (u : user) : Q :=
  let part := mul (weight u) (/ all) in
  let whole := fast_dot (speedup u) (map (mul part) (capacity m)) in
  match n with
  | OwnPartition => fair_now m all u
  | EqualTime => whole
  | Isolated =>
    match demand u with
    | Some d => mul whole (smaller 1 (mul d (/ mul (mul (fast_sum (capacity m)) (weight u)) (/ all))))
    | None => whole
    end
  end.

Lemma normal_now_ok m n u : normal_now m (all_weight m) n u == normal m n u.
Proof.
  assert (w : fast_dot (speedup u) (map (mul (mul (weight u) (/ all_weight m))) (capacity m)) == value u (own_part m
    u)).
  { rewrite fast_dotE; unfold value, own_part; apply equal_dot, equal_map; intro c; rewrite !mulE, all_weight_ok;
    unfold Qdiv; ring. }
  destruct n; simpl.
  - apply fair_now_ok.
  - exact w.
  - destruct (demand u) as [d|]; [|rewrite w; ring].
    rewrite mulE, w, smallerE, !mulE, fast_sumE, all_weight_ok; unfold Qdiv; reflexivity.
Qed.

(** ** A round *)

(** Multipliers of ratios, with the sign changed, and all others. *)
Fixpoint split (n : N) (l : list dual) (ratios : store Q) (rest : list dual) : option (store Q * list dual) :=
  match l with
  | [] => Some (ratios, rest)
  | d :: l =>
    match at_row d with
    | [i] =>
      if same_text (of_row d) ratio_word then
        match at_ ratios i with
        | Some _ => None
        | None => if N.ltb i n && le (rate d) 0 then split n l (change_at (fun _ => - rate d) ratios i) rest else None
        end
      else split n l ratios (d :: rest)
    | _ => split n l ratios (d :: rest)
    end
  end.

(** A user with its bundle; its ratio, where that is fixed; its multiplier; whether its ratio is fixed now. *)
Definition of_round : Type := (user * list Q) * (option Q * (Q * bool)).

Fixpoint lines (i : N) (held : list (user * list Q)) (ratios : list (option Q)) (mu : store Q) (now : store unit) :
  list of_round :=
  match held, ratios with
  | h :: held, r :: ratios =>
    (h, (r, (match at_ mu i with Some q => q | None => 0 end, match at_ now i with Some _ => true | None => false end)))
      :: lines (N.succ i) held ratios mu now
  | _, _ => []
  end.

Section Round.
Variables (lim : limits) (normal_of : user -> Q) (level : Q).

Definition counts (l : of_round) : Q * user := let '((u, _), (_, (mu, _))) := l in (mul mu (/ normal_of u), u).

Definition of_round_fine (l : of_round) : bool :=
  let '((u, b), (r, (mu, now))) := l in
  let norm := normal_of u in
  let own := fast_dot (speedup u) b in
  let target := match r with Some r => r | None => level end in
  lt 0 norm && le (mul norm target) own && le 0 mu && (if lt 0 mu then le own (mul norm level) else true)
  && (if now then (match r with None => true | Some _ => false end) && lt 0 mu else true).

Definition free_part (l : of_round) : Q := let '(_, (r, (mu, _))) := l in match r with None => mu | Some _ => 0 end.
Definition fixed_part (l : of_round) : Q := let '(_, (r, (mu, _))) := l in match r with None => 0 | Some r =>
  mul mu r end.
Definition own_part_of (l : of_round) : Q :=
  let '((u, b), (_, (mu, _))) := l in mul (mul mu (/ normal_of u)) (fast_dot (speedup u) b).

Definition round_fine (ls : list of_round) (duals : list dual) : bool :=
  forallb of_round_fine ls && existsb (fun l : of_round => snd (snd (snd l))) ls &&
    same (fast_sum (map free_part ls)) 1 &&
  match bound_in lim (map counts ls) duals with
  | Some b => same (sub b (fast_sum (map fixed_part ls))) level && le b (fast_sum (map own_part_of ls))
  | None => false
  end.
End Round.

Definition after (level : Q) (l : of_round) : option Q := let '(_, (r, (_, now))) := l in if now then Some level else r.

Definition fixed_now (n : N) (l : list N) : option (store unit) :=
  if forallb (fun i => N.ltb i n) l then Some (fold_left (fun s i => change_at (fun _ => tt) s i) l Empty) else None.

Fixpoint fill_up (m : market) (lim : limits) (normal_of : user -> Q) (held : list (user * list Q)) (rounds : list filling)
    (ratios : list (option Q)) : bool :=
  match rounds with
  | [] => forallb (fun r => match r with Some _ => true | None => false end) ratios
  | f :: rounds =>
    let n := N.of_nat (List.length (users m)) in
    match split n (held_by f) Empty [], fixed_now n (fixed f) with
    | Some (mu, rest), Some now =>
      let ls := lines 0 held ratios mu now in
      round_fine lim normal_of (level f) ls rest && fill_up m lim normal_of held rounds (map (after (level f)) ls)
    | _, _ => false
    end
  end.

(** [lim]: which allocations there are; whether the one that is given is among them is looked at elsewhere. *)
Definition is_filling (m : market) (lim : limits) (n : normaliser) (x : table) (rounds : list filling) : bool :=
  let all := all_weight m in
  fill_up m lim (normal_now m all n) (combine (users m) x) rounds (map (fun _ => None) (users m)).

(** ** What a round shows *)

Lemma exists_or_all {A} (f : A -> bool) l : (exists a, In a l /\ f a = true) \/ forall a, In a l -> f a = false.
Proof.
  induction l as [|a l IH]; [right; intros a []|].
  destruct (f a) eqn:e; [left; exists a; split; [left; reflexivity|exact e]|].
  destruct IH as [(b & i & h)|h]; [left; exists b; split; [right; exact i|exact h]|right; intros b [<-|i]; auto].
Qed.

(** Who gains takes it from somebody whose ratio is not larger. *)
Definition fair_at (m : market) (norm : user -> Q) (x : table) (u : user) (b : list Q) (y : table) (c : list Q) : Prop
  :=
  value u b < value u c ->
  exists v b' c', In (v, (b', c')) (combine (users m) (combine x y)) /\ value v c' < value v b' /\
    value v b' / norm v <= value u b / norm u.

Lemma lines_held held : forall i ratios mu now, List.length ratios = List.length held ->
  map fst (lines i held ratios mu now) = held.
Proof.
  induction held as [|h held IH]; intros i [|r ratios] mu now l; try discriminate; [reflexivity|].
  simpl; rewrite IH by (simpl in l; lia); reflexivity.
Qed.

Lemma lines_ratios held : forall i ratios mu now, List.length ratios = List.length held ->
  map (fun l : of_round => fst (snd l)) (lines i held ratios mu now) = ratios.
Proof.
  induction held as [|h held IH]; intros i [|r ratios] mu now l; try discriminate; [reflexivity|].
  simpl; rewrite IH by (simpl in l; lia); reflexivity.
Qed.

Lemma weighted_diff (su : list (Q * user)) : forall x y, List.length su = List.length x ->
  List.length su = List.length y ->
  sum (map (fun '((q, u), (b, c)) => q * (value u c - value u b)) (combine su (combine x y))) ==
  weighted_sum su y - weighted_sum su x.
Proof.
  unfold weighted_sum; induction su as [|[q u] su IH]; intros [|b x] [|c y] lx ly; try discriminate; simpl in *;
    [reflexivity|].
  fold (sum (map (fun '((q, u), (b, c)) => q * (value u c - value u b)) (combine su (combine x y)))).
  rewrite IH by lia; unfold sum; simpl; ring.
Qed.

Lemma counts_own norm (ls : list of_round) :
  weighted_sum (map (counts norm) ls) (map (fun l : of_round => snd (fst l)) ls) == sum (map (own_part_of norm) ls).
Proof.
  transitivity (sum (map (fun l : of_round => fst (counts norm l) * value (snd (counts norm l)) (snd (fst l))) ls)).
  - unfold weighted_sum; assert (forall a b : Q, a = b -> a == b) as eq by (intros ? ? ->; reflexivity); apply eq;
    f_equal.
    clear; induction ls as [|l ls IH]; [reflexivity|]; cbn [map combine]; rewrite IH; destruct (counts norm l);
      reflexivity.
  - apply sum_ext; intros [[u b] [r [mu now]]] _; cbn [counts own_part_of fst snd]; unfold value.
    rewrite (mulE (mul mu _)), mulE, fast_dotE; reflexivity.
Qed.

Lemma ratio_le a b p q l : 0 < p -> 0 < q -> a <= p * l -> q * l <= b -> a / p <= b / q.
Proof.
  intros p0 q0 h k; apply Qle_shift_div_l; [exact q0|].
  assert (a / p <= l) by (apply Qle_shift_div_r; [exact p0|lra]). nra.
Qed.

Lemma round_shows m lim allowed norm level x ls duals : valid m -> limits_hold m lim allowed -> sensible m x ->
  map fst ls = combine (users m) x -> round_fine lim norm level ls duals = true ->
  forall u b r mu y c j, allowed y -> nth_error ls j = Some ((u, b), (r, (mu, true))) -> nth_error y j = Some c ->
  fair_at m norm x u b y c.
Proof.
  intros v holds sx held; unfold round_fine; rewrite !andb_true_iff; intros [[[fine _] _] h].
  destruct (bound_in _ _ _) as [B|] eqn:e; [|discriminate]; apply andb_true_iff in h; destruct h as [_ reach].
  apply leP in reach; rewrite fast_sumE in reach; rewrite forallb_forall in fine.
  intros u b r mu y c j ay ej ey gain; destruct (holds y ay) as [sy _].
  assert (us : map snd (map (counts norm) ls) = users m).
  { transitivity (map fst (map fst ls)).
    - rewrite !map_map; apply map_ext; intros [[? ?] [? [? ?]]]; reflexivity.
    - rewrite held; apply combine_fst; symmetry; apply sx. }
  pose proof (bound_in_ok m lim allowed _ _ _ y v holds us ay e) as le.
  assert (ls_len : List.length (map (counts norm) ls) = List.length (users m)) by (rewrite <- us; symmetry;
    apply map_length).
  assert (lx : List.length (map (counts norm) ls) = List.length x) by (rewrite ls_len; symmetry; apply sx).
  assert (ly : List.length (map (counts norm) ls) = List.length y) by (rewrite ls_len; symmetry; apply sy).
  assert (at_x : weighted_sum (map (counts norm) ls) x == sum (map (own_part_of norm) ls)).
  { assert (map (fun l : of_round => snd (fst l)) ls = x) as ex.
    { transitivity (map snd (map fst ls)); [rewrite map_map; reflexivity|].
      rewrite held; apply combine_snd; symmetry; apply sx. }
    rewrite <- ex; apply counts_own. }
  assert (none : sum (map (fun '((q, u), (b, c)) => q * (value u c - value u b)) (combine (map (counts norm) ls)
    (combine x y))) <= 0).
  { rewrite weighted_diff by assumption; lra. }
  pose proof (fine _ (nth_error_In _ _ ej)) as fj; unfold of_round_fine in fj; rewrite !andb_true_iff in fj.
  destruct fj as [[[[nj tj] _] _] [rj mj]]; destruct r; [discriminate rj|]; apply ltP in nj; apply ltP in mj;
    apply leP in tj.
  rewrite mulE, fast_dotE in tj; fold (value u b) in tj.
  destruct (exists_or_all (fun '((q, w), (b, c)) => lt 0 q && lt (value w c) (value w b)) (combine (map (counts norm)
    ls) (combine x y)))
    as [([[q w] [b' c']] & i & h)|all].
  - apply andb_true_iff in h; destruct h as [q0 less]; apply ltP in q0; apply ltP in less.
    destruct (has_at _ _ _ _ i) as (k & e1 & e2); rewrite nth_error_map in e1; unfold of_round in e1.
    destruct (nth_error ls k) as [[[w' bx] [r' [mu' now']]]|] eqn:ek; [|discriminate e1]; simpl in e1;
      injection e1 as <- <-.
    assert (eh : nth_error (combine (users m) x) k = Some (w', bx)) by (rewrite <- held, nth_error_map, ek;
      reflexivity).
    apply nth_error_combine in eh; destruct eh as [ewk exk].
    pose proof (proj1 (nth_error_combine _ _ _ _ _) e2) as [exk' eyk]; rewrite exk in exk'; injection exk' as ->.
    exists w', b', c'; split; [exact (combine_has _ _ _ _ _ ewk e2)|split; [exact less|]].
    pose proof (fine _ (nth_error_In _ _ ek)) as fk; unfold of_round_fine in fk; rewrite !andb_true_iff in fk.
    destruct fk as [[[[nk _] mk] tk] _]; apply ltP in nk; apply leP in mk.
    assert (0 < mu') as mpos.
    { rewrite mulE in q0; destruct (Qlt_le_dec 0 mu') as [|z]; [assumption|exfalso].
      assert (mu' == 0) as z' by lra; rewrite z' in q0; lra. }
    apply ltP in mpos; rewrite mpos in tk; apply leP in tk; rewrite mulE, fast_dotE in tk; fold (value w' b') in tk.
    exact (ratio_le _ _ _ _ level nk nj tk tj).
  - exfalso. set (f := fun '((q, u), (b, c)) => q * (value u c - value u b)) in *.
    assert (each : forall a, In a (combine (map (counts norm) ls) (combine x y)) -> 0 <= f a).
    { intros [[q w] [b' c']] i; specialize (all _ i); cbv beta iota in all; apply andb_false_iff in all.
      destruct (has_at _ _ _ _ i) as (k & e1 & _); rewrite nth_error_map in e1; unfold of_round in e1.
      destruct (nth_error ls k) as [[[w' bx] [r' [mu' now']]]|] eqn:ek; [|discriminate e1]; simpl in e1;
        injection e1 as <- <-.
      pose proof (fine _ (nth_error_In _ _ ek)) as fk; unfold of_round_fine in fk; rewrite !andb_true_iff in fk.
      destruct fk as [[[[nk _] mk] _] _]; apply ltP in nk; apply leP in mk.
      assert (0 <= mul mu' (/ norm w')) as q0.
      { rewrite mulE; apply Qmult_le_0_compat; [exact mk|apply Qlt_le_weak, Qinv_lt_0_compat; exact nk]. }
      unfold f; destruct all as [z|z]; apply lt_false in z.
      - assert (mul mu' (/ norm w') == 0) as -> by lra; lra.
      - nra. }
    assert (eb : nth_error x j = Some b).
    { assert (eh : nth_error (combine (users m) x) j = Some (u, b)) by (rewrite <- held, nth_error_map, ej;
      reflexivity).
      apply nth_error_combine in eh; apply eh. }
    assert (i : In ((mul mu (/ norm u), u), (b, c)) (combine (map (counts norm) ls) (combine x y))).
    { apply (combine_has _ _ j); [rewrite nth_error_map; unfold of_round; rewrite ej;
      reflexivity|apply nth_error_combine; auto]. }
    pose proof (sum_zero_each f _ each none _ i) as h; unfold f in h; rewrite mulE in h.
    assert (0 < mu * / norm u) by (apply Qmult_lt_0_compat; [exact mj|apply Qinv_lt_0_compat; exact nj]).
    nra.
Qed.
