(** * Programs that are built from the market: what a policy reaches, and what nothing is beyond *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Whole.
Import ListNotations.
Local Open Scope Q_scope.

(** ** What a policy reaches with an allocation *)

Definition total_now (m : market) (x : table) : Q :=
  fast_sum (map (fun '(u, b) => fast_dot (speedup u) b) (combine (users m) x)).

Lemma total_now_ok m x : total_now m x == total m x.
Proof.
  unfold total_now, total; rewrite fast_sumE; apply sum_ext; intros [u b] _; apply fast_dotE.
Qed.

Definition level_word : text := word "level".
Definition ratio_word : text := word "least_ratio".

Definition only_named (w : text) (named : list (text * Q)) : option Q :=
  match named with [(name, z)] => if same_text name w then Some z else None | _ => None end.

(** What a policy wants to be large, at an allocation that it may choose. *)
Definition reached (p : policy) (m : market) (x : table) (named : list (text * Q)) : option Q :=
  if negb (sensible_b m x) then None
  else match p with
  | MaxEfficiency => match named with [] => Some (total_now m x) | _ => None end
  | OefNoncooperative =>
    match only_named level_word named with
    | Some z => if everybody m x (fun u b => same (fast_dot (speedup u) b) (mul (weight u) z))
                then Some (total_now m x) else None
    | None => None
    end
  | OefCooperative =>
    match named with [] => if nobody_envies_all m x then Some (total_now m x) else None | _ => None end
  | MaxMin =>
    match only_named ratio_word named with
    | Some z =>
      let all := all_weight m in
      if everybody m x (fun u b => le (mul (fair_now m all u) z) (fast_dot (speedup u) b)) then Some z else None
    | None => None
    end
  end.

Lemma reached_ok p m x named t : valid m -> reached p m x named = Some t -> reaches m p x t.
Proof.
  intro v; unfold reached, reaches; destruct (sensible_b m x) eqn:s; [|discriminate].
  apply (sensible_ok m x v) in s; simpl; intro e; split; [exact s|].
  assert (pos : forall u, In u (users m) -> 0 < weight u) by (intros u i; apply v; exact i).
  destruct p.
  - destruct named; [|discriminate]; injection e as <-; symmetry; apply total_now_ok.
  - destruct (only_named _ _) as [z|]; [|discriminate].
    destruct (everybody _ _ _) eqn:h; [|discriminate]; injection e as <-.
    split; [symmetry; apply total_now_ok|]; exists z; intros u b i.
    pose proof (proj1 (everybody_ok _ _ _) h u b i) as h'; cbv beta in h'; apply sameP in h'.
    rewrite fast_dotE, mulE in h'; exact h'.
  - destruct named; [|discriminate]; destruct (nobody_envies_all m x) eqn:h; [|discriminate]; injection e as <-.
    split; [symmetry; apply total_now_ok|]; exact (nobody_envies_all_ok m x pos h).
  - destruct (only_named _ _) as [z|]; [|discriminate].
    destruct (everybody _ _ _) eqn:h; [|discriminate]; injection e as <-; intros u b i.
    pose proof (proj1 (everybody_ok _ _ _) h u b i) as h'; cbv beta in h'; apply leP in h'.
    rewrite fast_dotE, mulE, fair_now_ok in h'; exact h'.
Qed.

(** ** Rows that multipliers name *)

Record context := Context { many_users : N; many_types : N; user_at : store user; cap_at : store Q; of_all : Q }.
Definition context_of (m : market) : context :=
  Context (N.of_nat (List.length (users m))) (N.of_nat (List.length (capacity m)))
    (stored (users m)) (stored (capacity m)) (all_weight m).

Definition capacity_word := word "capacity".
Definition demand_word := word "demand".
Definition equal_word := word "equal_efficiency".
Definition envy_word := word "envy_free".
Definition at_least_word := word "at_least".

Definition ones (s : list Q) : list Q := map (fun _ => 1) s.

Definition sharing_row (c : context) (d : dual) : option (N * form) :=
  match at_row d with
  | [i] =>
    if same_text (of_row d) capacity_word then
      option_map (fun cap => (i, Form (unit_at (N.to_nat i)) [] 0 None (Some cap))) (at_ (cap_at c) i)
    else if same_text (of_row d) demand_word then
      option_map (fun u => ((many_types c + i)%N, Form [] [(i, ones (speedup u))] 0 None (demand u))) (at_ (user_at c)
        i)
    else None
  | _ => None
  end.

(** A row for each user, of its own bundle, after those of [sharing_row]. *)
Definition own_row (c : context) (w : text) (f : N -> user -> form) (d : dual) : option (N * form) :=
  match at_row d with
  | [i] =>
    if same_text (of_row d) w then
      option_map (fun u => ((many_types c + many_users c + i)%N, f i u)) (at_ (user_at c) i)
    else None
  | _ => None
  end.

Definition equal_row (i : N) (u : user) : form := Form [] [(i, speedup u)] (- weight u) (Some 0) (Some 0).
Definition ratio_row (m : market) (c : context) (i : N) (u : user) : form :=
  Form [] [(i, vscale (/ fair_now m (of_all c) u) (speedup u))] (-(1)) (Some 0) None.

Definition envy_row (c : context) (d : dual) : option (N * form) :=
  match at_row d with
  | [i; l] =>
    if same_text (of_row d) envy_word && negb (N.eqb i l) then
      match at_ (user_at c) i, at_ (user_at c) l with
      | Some u, Some v =>
        Some ((many_types c + many_users c + i * many_users c + l)%N,
              Form [] [(i, speedup u); (l, vscale (- (weight u / weight v)) (speedup u))] 0 (Some 0) None)
      | _, _ => None
      end
    else None
  | _ => None
  end.

Definition either (a b : dual -> option (N * form)) (d : dual) : option (N * form) :=
  match a d with Some r => Some r | None => b d end.

Definition policy_row (p : policy) (m : market) (c : context) : dual -> option (N * form) :=
  match p with
  | MaxEfficiency => sharing_row c
  | OefNoncooperative => either (sharing_row c) (own_row c equal_word equal_row)
  | OefCooperative => either (sharing_row c) (envy_row c)
  | MaxMin => either (sharing_row c) (own_row c ratio_word (ratio_row m c))
  end.

(** ** They are kept *)

Lemma Forall2_combine {A B} (R : A -> B -> Prop) a : forall b, List.length a = List.length b ->
  (forall x y, In (x, y) (combine a b) -> R x y) -> Forall2 R a b.
Proof.
  induction a as [|x a IH]; intros [|y b] l h; try discriminate; constructor.
  - apply h; left; reflexivity.
  - apply IH; [simpl in l; lia|]; intros x' y' i; apply h; right; exact i.
Qed.

Lemma sum_dot_nil y : sum (map (dot []) y) == 0.
Proof. induction y; simpl; [reflexivity|]; rewrite IHy; ring. Qed.

Lemma form_all w lo hi y z : form_value (Form w [] 0 lo hi) y z == sum (map (dot w) y).
Proof. unfold form_value; simpl; ring. Qed.
Lemma form_own i v e lo hi y z : form_value (Form [] [(i, v)] e lo hi) y z == dot v (bundle y i) + e * z.
Proof. unfold form_value; cbn [everywhere parts extra]; rewrite sum_dot_nil; simpl; ring. Qed.
Lemma form_two i v l w lo hi y z :
  form_value (Form [] [(i, v); (l, w)] 0 lo hi) y z == dot v (bundle y i) + dot w (bundle y l).
Proof. unfold form_value; cbn [everywhere parts extra]; rewrite sum_dot_nil; simpl; ring. Qed.

Lemma sum_dot_unit j y : sum (map (dot (unit_at j)) y) == given y j.
Proof. apply sum_ext; intros b _; apply dot_unit. Qed.

Lemma user_bundle m y i u : valid m -> shaped m y -> nth_error (users m) (N.to_nat i) = Some u ->
  has m y u (bundle y i).
Proof.
  intros v [l _] e; destruct (beside _ y _ _ (eq_sym l) e) as [b f].
  unfold bundle; rewrite (nth_error_nth _ _ _ f); exact (combine_has _ _ _ _ _ e f).
Qed.

Lemma dot_ones_sum s : forall b, List.length b = List.length s -> dot (ones s) b == sum b.
Proof.
  induction s as [|x s IH]; intros [|y b] l; try discriminate; [reflexivity|].
  simpl; rewrite IH by (simpl in l; lia); ring.
Qed.

Lemma sharing_row_kept m d k f y z : valid m -> sensible m y ->
  sharing_row (context_of m) d = Some (k, f) -> keeps y z f.
Proof.
  intros v [[sh [nn fit]] sen]; unfold sharing_row; destruct (at_row d) as [|i [|? ?]]; try discriminate.
  destruct (same_text _ capacity_word); [|destruct (same_text _ demand_word); [|discriminate]];
    cbn [cap_at user_at context_of]; rewrite at_stored; destruct (nth_error _ _) as [c|] eqn:e; try discriminate;
    intro h; injection h as <- <-; unfold keeps; cbn [low high].
  - split; [exact I|]; rewrite form_all, sum_dot_unit.
    assert (N.to_nat i < List.length (capacity m))%nat by (apply nth_error_Some; congruence).
    pose proof (fit _ H) as h; rewrite (nth_error_nth _ _ 0 e) in h; lra.
  - pose proof (user_bundle m y i c v sh e) as i'; destruct (sen _ _ i') as [_ within].
    split; [exact I|]; destruct (demand c); [|exact I].
    rewrite form_own, (dot_ones_sum _ _ (has_shaped _ _ _ _ v sh i')); lra.
Qed.

Lemma own_row_kept m w g d k f y z : valid m -> shaped m y ->
  own_row (context_of m) w g d = Some (k, f) ->
  (forall i u, nth_error (users m) (N.to_nat i) = Some u -> has m y u (bundle y i) -> keeps y z (g i u)) -> keeps y z f.
Proof.
  intros v sh; unfold own_row; destruct (at_row d) as [|i [|? ?]]; try discriminate.
  destruct (same_text _ w); [|discriminate]; cbn [user_at context_of]; rewrite at_stored.
  destruct (nth_error _ _) as [u|] eqn:e; [|discriminate]; intro h; injection h as <- <-; intro h.
  apply h; [exact e|]; exact (user_bundle m y i u v sh e).
Qed.

Lemma equal_row_kept m y z i u b : has m y u b -> b = bundle y i -> value u b == weight u * z ->
  keeps y z (equal_row i u).
Proof.
  intros _ -> e; unfold keeps, equal_row; cbn [low high].
  unfold value in e; split; rewrite form_own; lra.
Qed.

Lemma ratio_row_kept m y z i u b : valid m -> In u (users m) -> b = bundle y i -> fair_share m u * z <= value u b ->
  keeps y z (ratio_row m (context_of m) i u).
Proof.
  intros v j -> h; unfold keeps, ratio_row; cbn [low high of_all context_of].
  destruct v as (_ & _ & _ & _ & v); destruct (v u j) as (_ & _ & _ & _ & pos).
  unfold value in h; split; [|exact I]; rewrite form_own, dot_vscale, fair_now_ok.
  assert (dot (speedup u) (bundle y i) == fair_share m u * (/ fair_share m u * dot (speedup u) (bundle y i))) as e.
  { field; lra. }
  rewrite e in h; set (r := / fair_share m u * _) in *; nra.
Qed.

Lemma envy_row_kept m d k f y z : valid m -> shaped m y -> envy_row (context_of m) d = Some (k, f) ->
  (forall u b v c, has m y u b -> has m y v c -> weight u / weight v * value u c <= value u b) -> keeps y z f.
Proof.
  intros v sh; unfold envy_row; destruct (at_row d) as [|i [|l [|? ?]]]; try discriminate.
  destruct (_ && _); [|discriminate]; cbn [user_at context_of]; rewrite !at_stored.
  destruct (nth_error (users m) (N.to_nat i)) as [u|] eqn:e; [|discriminate].
  destruct (nth_error (users m) (N.to_nat l)) as [w|] eqn:e'; [|discriminate].
  intro h; injection h as <- <-; intro h.
  pose proof (h _ _ _ _ (user_bundle m y i u v sh e) (user_bundle m y l w v sh e')) as le.
  unfold keeps; cbn [low high].
  unfold value in le; split; [rewrite form_two, dot_vscale; lra|exact I].
Qed.

(** ** The bound *)

(** Each user with what a unit of its throughput counts. *)
Definition sharing_slot (su : Q * user) : list box :=
  map (fun s => (mul (fst su) s, (Some 0, if nothing s then Some 0 else None))) (speedup (snd su)).

Lemma costs_of_slot q u b : dot (map fst (sharing_slot (q, u))) b == q * value u b.
Proof.
  unfold sharing_slot, value; simpl; rewrite map_map; simpl; generalize (speedup u); intro s; revert b.
  induction s as [|x s IH]; intros [|y b]; simpl; try ring. rewrite IH, mulE; ring.
Qed.

Lemma boxed_slot q u b : List.length b = List.length (speedup u) -> (forall j, 0 <= nth j b 0) ->
  (forall j, nth j (speedup u) 0 == 0 -> nth j b 0 == 0) -> boxed (sharing_slot (q, u)) b.
Proof.
  unfold sharing_slot, boxed; simpl; generalize (speedup u); intro s; revert b.
  induction s as [|x s IH]; intros [|y b] l p z; try discriminate; constructor.
  - pose proof (p 0%nat) as p0; pose proof (z 0%nat) as z0; simpl in *; split; [exact p0|].
    destruct (nothing x) eqn:n; [|exact I]; apply nothing_true in n; rewrite (z0 n); lra.
  - apply IH; [simpl in l; lia|intro j; apply (p (S j))|intro j; apply (z (S j))].
Qed.

(** Rows of the policy are kept wherever it reaches [t], with [t] or its level for the further variable. *)
Lemma policy_rows_kept p m y t : valid m -> reaches m p y t ->
  exists z, (forall d k f, policy_row p m (context_of m) d = Some (k, f) -> keeps y z f) /\ (p = MaxMin -> z = t).
Proof.
  intros v [s h]; pose proof (proj1 (proj1 s)) as sh.
  assert (users_of : forall u c, has m y u c -> In u (users m)) by (intros u c i; exact (in_combine_l _ _ _ _ i)).
  destruct p; unfold policy_row.
  - exists 0; split; [|discriminate]. intros d k g r; exact (sharing_row_kept m d k g y 0 v s r).
  - destruct h as [_ [z level]]; exists z; split; [|discriminate].
    unfold either; intros d k g; destruct (sharing_row _ d) as [[? ?]|] eqn:r.
    + intro r'; injection r' as <- <-; exact (sharing_row_kept m d _ _ y z v s r).
    + intro r'; apply (own_row_kept m _ _ _ _ _ y z v sh r'); intros i u _ i'.
      apply (equal_row_kept m y z i u _ i' eq_refl), level; exact i'.
  - destruct h as [_ envy]; exists 0; split; [|discriminate].
    unfold either; intros d k g; destruct (sharing_row _ d) as [[? ?]|] eqn:r.
    + intro r'; injection r' as <- <-; exact (sharing_row_kept m d _ _ y 0 v s r).
    + intro r'; exact (envy_row_kept m d _ _ y 0 v sh r' envy).
  - exists t; split; [|reflexivity].
    unfold either; intros d k g; destruct (sharing_row _ d) as [[? ?]|] eqn:r.
    + intro r'; injection r' as <- <-; exact (sharing_row_kept m d _ _ y t v s r).
    + intro r'; apply (own_row_kept m _ _ _ _ _ y t v sh r'); intros i u _ i'.
      apply (ratio_row_kept m y t i u _ v (users_of _ _ i') eq_refl), h; exact i'.
Qed.

Section Counted.
(** Users with what they count. *)
Variables (m : market) (counted_users : list (Q * user)).
Hypothesis the_users : map snd counted_users = users m.

Lemma counted_at y j q u b : nth_error counted_users j = Some (q, u) -> nth_error y j = Some b -> has m y u b.
Proof.
  intros e f; apply (combine_has _ _ j); [|exact f]; rewrite <- the_users, nth_error_map, e; reflexivity.
Qed.

Lemma counted_boxed y : valid m -> sensible m y -> Forall2 (fun s b => boxed (sharing_slot s) b) counted_users y.
Proof.
  intros v [[sh [nn _]] sen]; apply Forall2_combine.
  - rewrite <- (map_length snd), the_users; symmetry; apply sh.
  - intros [q u] b i; destruct (has_at _ _ _ _ i) as (j & e & e'); pose proof (counted_at _ _ _ _ _ e e') as h.
    pose proof (has_shaped _ _ _ _ v sh h) as l; apply boxed_slot; [exact l|exact (has_nonneg _ _ _ _ nn h)|].
    destruct (sen u b h) as [z _]; intros k zk; destruct (Nat.lt_ge_cases k (List.length b)) as [lt|ge].
    + apply z; [|exact zk]. destruct sh as [_ sh]; rewrite <- (sh b (in_combine_r _ _ _ _ h)); exact lt.
    + rewrite nth_overflow by exact ge; reflexivity.
Qed.

Definition weighted_sum (y : table) : Q := sum (map (fun '((q, u), b) => q * value u b) (combine counted_users y)).

Lemma counted_costs y : costs _ sharing_slot counted_users y == weighted_sum y.
Proof. apply sum_ext; intros [[q u] b] _; apply costs_of_slot. Qed.

Definition bound_by (find : dual -> option (N * form)) (cost_extra : Q) (duals : list dual) : option Q :=
  match resolve find duals Empty with
  | Some l => bound_of _ sharing_slot counted_users cost_extra l
  | None => None
  end.

Lemma bound_by_ok find cost_extra duals b y z : valid m -> sensible m y ->
  bound_by find cost_extra duals = Some b ->
  (forall d k g, find d = Some (k, g) -> keeps y z g) -> weighted_sum y + cost_extra * z <= b.
Proof.
  intros v s; unfold bound_by; destruct (resolve _ _ _) as [l|] eqn:r; [|discriminate]; intros e k.
  rewrite <- counted_costs; apply (bound_of_ok _ _ _ _ _ _ y z e (counted_boxed y v s)).
  intros q g i; destruct (resolve_in _ _ _ _ _ _ r i) as (d & j & _ & h); exact (k d j g h).
Qed.
End Counted.

Definition alike (q : Q) (m : market) : list (Q * user) := map (fun u => (q, u)) (users m).
Lemma alike_users q m : map snd (alike q m) = users m.
Proof. unfold alike; rewrite map_map; apply map_id. Qed.

Definition policy_bound (p : policy) (m : market) (duals : list dual) : option Q :=
  let find := policy_row p m (context_of m) in
  match p with
  | MaxMin => bound_by (alike 0 m) find 1 duals
  | _ => bound_by (alike 1 m) find 0 duals
  end.

Lemma sum_alike q m y : weighted_sum (alike q m) y == q * total m y.
Proof.
  unfold weighted_sum, alike, total; rewrite <- sum_times; generalize (users m); intro us; revert y.
  induction us as [|u us IH]; intros [|b y]; simpl; try reflexivity; rewrite IH; reflexivity.
Qed.

Lemma policy_bound_ok p m duals b : valid m -> policy_bound p m duals = Some b -> none_beyond m p b.
Proof.
  intros v e y t r; destruct (policy_rows_kept p m y t v r) as (z & k & zt); destruct r as [s h].
  destruct p; unfold policy_bound in e; cbv zeta in e;
    pose proof (bound_by_ok m _ (alike_users _ m) _ _ _ _ y z v s e k) as le; rewrite sum_alike in le.
  - lra.
  - destruct h as [h _]; lra.
  - destruct h as [h _]; lra.
  - rewrite (zt eq_refl) in le; lra.
Qed.
