(** * All optima of a decision: which there are, and how far a sum of shares goes over them *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Decided.
Import ListNotations.
Local Open Scope Q_scope.

(** What is known of the optima of a rule on a market: whether an allocation is one, and rows that all of them keep. *)
Record optima := Optima {
  on_market : market; by_rule : rule;
  is_one : table -> list (text * Q) -> bool;
  their_row : dual -> option (N * form)
}.

Definition optima_fine (o : optima) : Prop :=
  valid (on_market o) /\
  (forall x named, is_one o x named = true -> optimum (on_market o) (by_rule o) x) /\
  (forall y, optimum (on_market o) (by_rule o) y ->
    sensible (on_market o) y /\ exists z, forall d k f, their_row o d = Some (k, f) -> keeps y z f).

(** ** A sum of shares, over all of them *)

Definition cost_slot (cu : list Q * user) : list box :=
  map (fun '(c, s) => (c, (Some 0, if nothing s then Some 0 else None))) (combine (fst cu) (speedup (snd cu))).

Lemma cost_slot_costs c : forall u, List.length c = List.length (speedup u) -> map fst (cost_slot (c, u)) = c.
Proof.
  intros u; unfold cost_slot; simpl; generalize (speedup u); induction c as [|q c IH]; intros [|s l] e;
    try discriminate; [reflexivity|].
  simpl; rewrite IH by (simpl in e; lia); reflexivity.
Qed.

Lemma cost_slot_boxed c u b : List.length c = List.length (speedup u) -> boxed (sharing_slot (0, u)) b ->
  boxed (cost_slot (c, u)) b.
Proof.
  unfold cost_slot, sharing_slot, boxed; simpl; generalize (speedup u); intro s; revert c b.
  induction s as [|q s IH]; intros [|p c] b e h; try discriminate; simpl in *; [exact h|].
  inversion h; subst; constructor; [assumption|apply IH; [lia|assumption]].
Qed.

(** The largest that the sum of shares times costs can be. *)
Definition most_of (o : optima) (costs : table) (duals : list dual) : option Q :=
  match resolve (their_row o) duals Empty with
  | Some l => bound_of _ cost_slot (combine costs (users (on_market o))) 0 l
  | None => None
  end.

Lemma shaped_rows m w : valid m -> shaped m w -> forall u c, In (c, u) (combine w (users m)) ->
  List.length c = List.length (speedup u).
Proof.
  intros va sh u c i. rewrite (proj1 (proj2 (proj2 (proj2 (proj2 va))) u (in_combine_r _ _ _ _ i))).
  apply sh; exact (in_combine_l _ _ _ _ i).
Qed.

Lemma most_of_ok o costs duals b y : optima_fine o -> shaped (on_market o) costs ->
  optimum (on_market o) (by_rule o) y -> most_of o costs duals = Some b -> weighted costs y <= b.
Proof.
  intros (va & _ & all) sh opt; unfold most_of; destruct (resolve _ _ _) as [l|] eqn:r; [|discriminate]; intro e.
  destruct (all y opt) as (sen & z & k); set (m := on_market o) in *.
  assert (lens : List.length costs = List.length (users m)) by apply sh.
  assert (boxes : Forall2 (fun s b => boxed (cost_slot s) b) (combine costs (users m)) y).
  { apply Forall2_combine; [rewrite combine_length, lens, Nat.min_id; symmetry; apply sen|].
    intros [c u] b' i; destruct (has_at _ _ _ _ i) as (j & e1 & e2); apply nth_error_combine in e1;
      destruct e1 as [ec eu].
    apply cost_slot_boxed; [exact (shaped_rows m costs va sh u c (combine_has _ _ _ _ _ ec eu))|].
    pose proof (counted_boxed m (alike 0 m) (alike_users 0 m) y va sen) as f.
    assert (nth_error (alike 0 m) j = Some (0, u)) as ea by (unfold alike; rewrite nth_error_map, eu; reflexivity).
    clear -f ea e2; revert j ea e2; induction f as [|s d l y h f IH]; intros [|j] ea e2; try discriminate.
    - injection ea as <-; injection e2 as <-; exact h.
    - exact (IH j ea e2). }
  pose proof (bound_of_ok _ _ _ _ _ _ y z e boxes (fun q f i => let '(ex_intro _ d (ex_intro _ j (conj _ h))) :=
    resolve_in _ _ _ _ _ _ r i in k d j f h)) as le.
  assert (costs_ok : Linear.costs _ cost_slot (combine costs (users m)) y == weighted costs y).
  { unfold Linear.costs, weighted.
    assert (L := shaped_rows m costs va sh); revert L lens; clear; generalize (users m); revert y.
    induction costs as [|c cs IH]; intros [|b y] [|u us] L lens; simpl in *; try discriminate; try reflexivity.
    rewrite IH by (try (intros; apply L; right; assumption); lia).
    rewrite (cost_slot_costs c u) by (apply L; left; reflexivity); reflexivity. }
  lra.
Qed.

Definition negated (w : table) : table := map (map Qopp) w.

Lemma dot_negated c : forall b, dot (map Qopp c) b == - dot c b.
Proof. induction c as [|q c IH]; intros [|x b]; simpl; try reflexivity. rewrite IH; ring. Qed.

Lemma weighted_negated w y : weighted (negated w) y == - weighted w y.
Proof.
  unfold weighted, negated; revert y; induction w as [|c w IH]; intros [|b y]; simpl; try reflexivity.
  rewrite IH, dot_negated; ring.
Qed.

Lemma negated_shaped m w : shaped m w -> shaped m (negated w).
Proof.
  intros [l h]; split; [unfold negated; rewrite map_length; exact l|].
  intros b i; unfold negated in i; apply in_map_iff in i; destruct i as (c & <- & i); rewrite map_length; apply h;
    exact i.
Qed.

Definition weighted_shares (w x : table) : Q := fast_sum (map (fun '(c, b) => fast_dot c b) (combine w x)).

Lemma weighted_shares_ok w x : weighted_shares w x == weighted w x.
Proof. unfold weighted_shares, weighted; rewrite fast_sumE; apply sum_ext; intros [c b] _; apply fast_dotE. Qed.

(** Whether [v] is the largest ([highest]) or smallest sum of shares times weights over all optima. *)
Definition is_extreme (o : optima) (highest : bool) (w x : table) (v : Q) (duals : list dual) (named : list (text * Q))
  : bool :=
  shaped_b (on_market o) w && is_one o x named && same (weighted_shares w x) v &&
  match most_of o (if highest then w else negated w) duals with
  | Some b => same b (if highest then v else - v)
  | None => false
  end.

Lemma is_extreme_ok o highest w x v duals named : optima_fine o -> is_extreme o highest w x v duals named = true ->
  shaped (on_market o) w /\ extreme (on_market o) (by_rule o) highest w v.
Proof.
  intros fine; unfold is_extreme; rewrite !andb_true_iff; intros [[[sh one] at_x] h].
  apply shaped_ok in sh; apply sameP in at_x; rewrite weighted_shares_ok in at_x.
  destruct (most_of _ _ _) as [b|] eqn:e; [|discriminate]; apply sameP in h; split; [exact sh|split].
  - exists x; split; [apply (proj1 (proj2 fine) x named one)|exact at_x].
  - intros y opt; destruct highest.
    + pose proof (most_of_ok _ _ _ _ _ fine sh opt e); lra.
    + pose proof (most_of_ok _ _ _ _ _ fine (negated_shaped _ _ sh) opt e) as le; rewrite weighted_negated in le; lra.
Qed.

(** ** Of a policy that is a program *)

Definition optimum_word : text := word "optimum".
Fixpoint all_speedups (i : N) (l : list user) : list (N * list Q) :=
  match l with [] => [] | u :: l => (i, speedup u) :: all_speedups (N.succ i) l end.

Definition optimum_row (p : policy) (m : market) (c : context) (best : Q) (d : dual) : option (N * form) :=
  match at_row d with
  | [] =>
    if same_text (of_row d) optimum_word then
      Some ((many_types c + (many_users c + 2) * (many_users c + 1))%N,
        match p with
        | MaxMin => Form [] [] 1 (Some best) None
        | _ => Form [] (all_speedups 0 (users m)) 0 (Some best) None
        end)
    else None
  | _ => None
  end.

Lemma all_speedups_ok l y : forall i y', (forall k, nth k y [] = nth (N.to_nat i + k) y' []) ->
  List.length l = List.length y ->
  sum (map (fun '(i, v) => dot v (bundle y' i)) (all_speedups i l)) == sum (map (fun '(u, b) =>
    value u b) (combine l y)).
Proof.
  revert y; induction l as [|u l IH]; intros [|b y] i y' e len; try discriminate; [reflexivity|].
  simpl; rewrite (IH y (N.succ i) y').
  - unfold bundle; rewrite <- (Nat.add_0_r (N.to_nat i)), <- e; reflexivity.
  - intro k; specialize (e (S k)); simpl in e; rewrite e; f_equal; lia.
  - simpl in len; lia.
Qed.

Definition optima_of_policy (p : policy) (m : market) (best : Q) : optima :=
  let c := context_of m in
  Optima m (OfProgram p)
    (fun x named => match reached p m x named with Some t => le best t | None => false end)
    (either (policy_row p m c) (optimum_row p m c best)).

Lemma optima_of_policy_ok p m x best : valid m -> reaches m p x best -> none_beyond m p best ->
  optima_fine (optima_of_policy p m best).
Proof.
  intros v at_x none; split; [exact v|split]; cbn [on_market by_rule is_one their_row optima_of_policy].
  - intros y named; destruct (reached p m y named) as [t|] eqn:e; [|discriminate]; intro le; apply leP in le.
    pose proof (reached_ok _ _ _ _ _ v e) as r; exists t; split; [exact r|].
    intros y' t' r'; pose proof (none y' t' r'); lra.
  - intros y (t & r & n); split; [exact (proj1 r)|].
    destruct (policy_rows_kept p m y t v r) as (z & k & zt); exists z.
    unfold either; intros d j f; destruct (policy_row _ _ _ d) as [[? ?]|] eqn:pr.
    + intro e; injection e as <- <-; exact (k d _ _ pr).
    + unfold optimum_row; destruct (at_row d); [|discriminate]; destruct (same_text _ _); [|discriminate].
      pose proof (n x best at_x) as le; intro e; injection e as _ <-.
      assert (sum (map (fun '(i, v) => dot v (bundle y i)) (all_speedups 0 (users m))) == total m y) as tot.
      { apply all_speedups_ok; [intro; reflexivity|symmetry; apply r]. }
      destruct p; unfold keeps; cbn [low high]; (split; [|exact I]); unfold form_value; cbn [everywhere parts extra];
        rewrite sum_dot_nil.
      * destruct r as [_ r]; rewrite tot; lra.
      * destruct r as [_ [r _]]; rewrite tot; lra.
      * destruct r as [_ [r _]]; rewrite tot; lra.
      * rewrite (zt eq_refl); simpl; lra.
Qed.

(** ** Of a rule that decides throughputs: everybody gets them *)

Definition throughputs (m : market) (x : table) : list Q := map (fun '(u, b) => value u b) (combine (users m) x).
Definition throughputs_now (m : market) (x : table) : list Q := map (fun '(u, b) =>
  fast_dot (speedup u) b) (combine (users m) x).

Fixpoint all_at_least (a b : list Q) : bool :=
  match a, b with x :: a, y :: b => le x y && all_at_least a b | [], [] => true | _, _ => false end.

Lemma all_at_least_ok a : forall b, all_at_least a b = true -> Forall2 Qle a b.
Proof.
  induction a as [|x a IH]; intros [|y b]; simpl; try discriminate; [constructor|].
  rewrite andb_true_iff, leP; intros [h k]; constructor; [exact h|exact (IH b k)].
Qed.

Lemma throughputs_now_ok m x : equal (throughputs_now m x) (throughputs m x).
Proof.
  unfold throughputs_now, throughputs; induction (combine (users m) x) as [|[u b] l IH]; constructor;
    [apply fast_dotE|exact IH].
Qed.

Definition optima_of_floors (m : market) (r : rule) (w : text) (x : table) : optima :=
  let floors := throughputs_now m x in
  let s := stored floors in
  let c := context_of m in
  Optima m r
    (fun y named => match named with [] => sensible_b m y && all_at_least floors (throughputs_now m y) | _ => false end)
    (either (sharing_row c) (floor_row w c s)).

(** [y] gives nobody less than [x]. *)
Definition as_much (m : market) (x y : table) : Prop := Forall2 Qle (throughputs m x) (throughputs m y).

Lemma Forall2_Qle_equal a a' b b' : equal a a' -> equal b b' -> Forall2 Qle a b -> Forall2 Qle a' b'.
Proof.
  intros e f h; revert a' b' e f; induction h as [|x y a b h t IH]; intros a' b' e f; inversion e; inversion f; subst;
    constructor.
  - lra.
  - apply IH; assumption.
Qed.

Lemma optima_of_floors_ok m r w x : valid m ->
  (forall y, sensible m y -> as_much m x y -> optimum m r y) ->
  (forall y, optimum m r y -> sensible m y /\ as_much m x y) -> optima_fine (optima_of_floors m r w x).
Proof.
  intros v enough all; split; [exact v|split]; cbn [on_market by_rule is_one their_row optima_of_floors].
  - intros y [|? ?]; [|discriminate]; rewrite andb_true_iff; intros [s h]; apply (sensible_ok m y v) in s.
    apply enough; [exact s|]. apply all_at_least_ok in h.
    exact (Forall2_Qle_equal _ _ _ _ (throughputs_now_ok m x) (throughputs_now_ok m y) h).
  - intros y opt; destruct (all y opt) as [s much]; split; [exact s|]; exists 0; unfold either; intros d k f.
    destruct (sharing_row _ d) as [[? ?]|] eqn:e; [intro h; injection h as <- <-;
      exact (sharing_row_kept m d _ _ y 0 v s e)|].
    intro h; apply (floor_row_kept _ _ _ _ _ _ _ _ h); intros i q at_i; rewrite at_stored in at_i.
    destruct (Forall2_at _ _ _ _ _ (Forall2_Qle_equal _ _ _ _ (equal_sym _ _ (throughputs_now_ok m x)) (equal_refl _)
      much) at_i)
      as (q' & e' & le).
    unfold throughputs in e'; rewrite nth_error_map in e'; destruct (nth_error (combine (users m) y) (N.to_nat i)) as
      [[u b]|] eqn:eb; [|discriminate].
    injection e' as <-; exists u, b; split; [exact eb|exact le].
Qed.
