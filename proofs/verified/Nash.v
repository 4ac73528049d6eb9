(** * An equilibrium maximises Nash welfare, and all that do give the same throughputs *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Pareto Optima Means.
Import ListNotations.
Local Open Scope Q_scope.

(** What a unit of throughput counts: the weight over what there is. *)
Definition marginal (m : market) (x : table) : list (Q * user) :=
  map (fun '(u, b) => (mul (weight u) (/ fast_dot (speedup u) b), u)) (combine (users m) x).

Definition is_equilibrium (m : market) (x : table) (duals : list dual) : bool :=
  valid_b m && sensible_b m x && everybody m x (fun u b => lt 0 (fast_dot (speedup u) b)) &&
  match bound_by (marginal m x) (sharing_row (context_of m)) 0 duals with
  | Some most => le most (all_weight m)
  | None => false
  end.

(** Nothing has more throughput, each counted so, than all weights together. *)
Definition settled (m : market) (x : table) : Prop :=
  valid m /\ sensible m x /\ (forall u b, has m x u b -> 0 < value u b) /\
  forall y, sensible m y -> weighted_sum (marginal m x) y <= total_weight m.

Lemma marginal_users m x : shaped m x -> map snd (marginal m x) = users m.
Proof.
  intros [l _]; unfold marginal; rewrite map_map; revert x l; generalize (users m); induction l as [|u us IH];
    intros [|b x] l;
    try discriminate; [reflexivity|]; simpl in *; rewrite IH by lia; reflexivity.
Qed.

Lemma is_equilibrium_ok m x duals : is_equilibrium m x duals = true -> settled m x.
Proof.
  unfold is_equilibrium; rewrite !andb_true_iff; intros [[[v s] p] h].
  apply valid_ok in v; apply (sensible_ok m x v) in s; pose proof (proj1 (everybody_ok _ _ _) p) as pos.
  destruct (bound_by _ _ _ _) as [most|] eqn:e; [|discriminate]; apply leP in h; rewrite all_weight_ok in h.
  split; [exact v|split; [exact s|split]].
  - intros u b i; specialize (pos u b i); cbv beta in pos; apply ltP in pos; rewrite fast_dotE in pos; exact pos.
  - intros y sy.
    pose proof (bound_by_ok m _ (marginal_users m x (proj1 (proj1 s))) _ _ _ _ y 0 v sy e
      (fun d k g r => sharing_row_kept m d k g y 0 v sy r)); lra.
Qed.

Lemma throughputs_length m x : shaped m x -> List.length (throughputs m x) = List.length (users m).
Proof. intros [l _]; unfold throughputs; rewrite map_length, combine_length, l; apply Nat.min_id. Qed.

Lemma nash_welfare_powers m ks x : nash_welfare m ks x = powers_of ks (throughputs m x).
Proof.
  unfold nash_welfare, powers_of, throughputs; f_equal; generalize (combine (users m) x); intro l; revert l.
  induction ks as [|k ks IH]; intros [|[u b] l]; simpl; try reflexivity; rewrite IH; reflexivity.
Qed.

Lemma weights_of_powers unit ks us : Forall2 (fun k u => many k == unit * weight u) ks us ->
  sum (map many ks) == unit * sum (map weight us).
Proof. induction 1 as [|k u ks us h t IH]; simpl; [ring|]; unfold sum in *; rewrite h, IH; ring. Qed.

Lemma ratios_of_powers unit ks us : forall x y, Forall2 (fun k u => many k == unit * weight u) ks us ->
  List.length us = List.length x -> List.length us = List.length y ->
  dot (map many ks) (over (map (fun '(u, b) => value u b) (combine us y)) (map (fun '(u, b) =>
    value u b) (combine us x))) ==
  unit * sum (map (fun '((q, u), b) => q * value u b)
           (combine (map (fun '(u, b) => (mul (weight u) (/ fast_dot (speedup u) b), u)) (combine us x)) y)).
Proof.
  intros x y h; revert x y; induction h as [|k u ks us h t IH]; intros [|b x] [|c y] lx ly; try discriminate; simpl;
    [ring|].
  simpl in lx, ly; fold (sum (map (fun '((q, u), b) => q * value u b)
    (combine (map (fun '(u, b) => (mul (weight u) (/ fast_dot (speedup u) b), u)) (combine us x)) y))).
  rewrite IH by lia; rewrite h, mulE, fast_dotE; unfold value, Qdiv; ring.
Qed.

Lemma in_throughputs m x q : In q (throughputs m x) -> exists u b, has m x u b /\ q = value u b.
Proof. unfold throughputs; intro i; apply in_map_iff in i; destruct i as ([u b] & <- & i); exists u, b; auto. Qed.

Lemma value_nonneg m x u b : valid m -> feasible m x -> has m x u b -> 0 <= value u b.
Proof.
  intros v [_ [nn _]] i. destruct (proj2 (proj2 (proj2 (proj2 v))) u (in_combine_l _ _ _ _ i)) as (_ & s0 & _).
  assert (b0 : forall q, In q b -> 0 <= q) by (intros q j; exact (nn b q (in_combine_r _ _ _ _ i) j)).
  unfold value; revert s0 b0; generalize (speedup u); intro s; clear i; revert b.
  induction s as [|x0 s IH]; intros [|y0 b] s0 b0; simpl; try lra.
  pose proof (s0 x0 (or_introl eq_refl)); pose proof (b0 y0 (or_introl eq_refl)).
  pose proof (IH b (fun q i => s0 q (or_intror i)) (fun q i => b0 q (or_intror i))); nra.
Qed.

Section Settled.
Variables (m : market) (x : table).
Hypothesis fine : settled m x.

Lemma settled_means ks y : by_weights m ks -> sensible m y ->
  powers_of ks (throughputs m y) <= powers_of ks (throughputs m x) /\
  (powers_of ks (throughputs m x) <= powers_of ks (throughputs m y) -> forall j k a b, nth_error ks j = Some (S k) ->
    nth_error (throughputs m y) j = Some b -> nth_error (throughputs m x) j = Some a -> b == a).
Proof.
  intros (unit & u0 & h) sy; destruct fine as (v & sx & pos & bound).
  assert (shx := proj1 (proj1 sx)); assert (shy := proj1 (proj1 sy)).
  apply mean_of_powers.
  - rewrite (throughputs_length m x shx); exact (Forall2_len _ _ _ h).
  - rewrite !throughputs_length by assumption; reflexivity.
  - intros q i; destruct (in_throughputs _ _ _ i) as (u & b & hb & ->); exact (value_nonneg m y u b v (proj1 sy) hb).
  - intros q i; destruct (in_throughputs _ _ _ i) as (u & b & hb & ->); exact (pos u b hb).
  - unfold throughputs; rewrite (ratios_of_powers unit ks (users m) x y h (eq_sym (proj1 shx)) (eq_sym (proj1 shy))).
    rewrite (weights_of_powers unit ks (users m) h).
    apply (Qmult_le_l _ _ _ u0); exact (bound y sy).
Qed.

Lemma settled_maximises : maximises_nash m x.
Proof.
  destruct fine as (v & sx & pos & _); split; [exact sx|split; [exact pos|]].
  intros y ks sy h; rewrite !nash_welfare_powers; exact (proj1 (settled_means ks y h sy)).
Qed.

(** Weights have whole numbers in proportion. *)
Lemma powers_exist us : (forall u, In u us -> 0 < weight u) ->
  exists (d : positive) ks, Forall2 (fun k u => many (S k) == inject_Z (Zpos d) * weight u) ks us.
Proof.
  induction us as [|u us IH]; intro p; [exists 1%positive, []; constructor|].
  destruct (IH (fun u i => p u (or_intror i))) as (d & ks & h); pose proof (p u (or_introl eq_refl)) as w0.
  destruct (weight u) as [n e] eqn:ew.
  assert (n0 : (0 < n)%Z) by (unfold Qlt in w0; simpl in w0; lia).
  exists (d * e)%positive, (Nat.pred (Z.to_nat (n * Zpos d)) :: map (fun k => Nat.pred (S k * Pos.to_nat e)) ks);
    constructor.
  - rewrite ew; replace (S (Nat.pred (Z.to_nat (n * Z.pos d)))) with (Z.to_nat (n * Z.pos d)) by lia.
    unfold many; rewrite Z2Nat.id by lia; unfold inject_Z, Qeq, Qmult; cbn [Qnum Qden]; rewrite ?Pos2Z.inj_mul; ring.
  - clear IH; induction h as [|k v ks us h t IH]; constructor.
    + assert (S (Nat.pred (S k * Pos.to_nat e)) = S k * Pos.to_nat e)%nat as -> by lia.
      unfold many in *; rewrite Nat2Z.inj_mul, inject_Z_mult, h, positive_nat_Z.
      rewrite Pos2Z.inj_mul, inject_Z_mult; ring.
    + apply IH; intros u' i; apply p; destruct i as [<-|i]; [left; reflexivity|right; right; exact i].
Qed.

Lemma settled_same y : maximises_nash m y -> sensible m y /\ as_much m x y.
Proof.
  intros (sy & py & most); split; [exact sy|]; destruct fine as (v & sx & pos & _).
  destruct (powers_exist (users m)) as (d & ks & h); [intros u i; apply v; exact i|].
  assert (bw : by_weights m (map S ks)).
  { exists (inject_Z (Zpos d)); split; [reflexivity|]. clear -h; induction h; constructor; assumption. }
  pose proof (most x (map S ks) sx bw) as le; rewrite !nash_welfare_powers in le.
  pose proof (proj2 (settled_means (map S ks) y bw sy) le) as same.
  assert (shx := proj1 (proj1 sx)); assert (shy := proj1 (proj1 sy)); unfold as_much.
  assert (each : forall j a b, nth_error (throughputs m x) j = Some a -> nth_error (throughputs m y) j = Some b ->
    a <= b).
  { intros j a b ea eb; assert (lk : List.length ks = List.length (throughputs m x)).
    { rewrite (throughputs_length m x shx); exact (Forall2_len _ _ _ h). }
    destruct (beside _ ks _ _ (eq_sym lk) ea) as [k ek].
    assert (nth_error (map S ks) j = Some (S k)) as ek' by (rewrite nth_error_map, ek; reflexivity).
    rewrite (same j k a b ek' eb ea); apply Qle_refl. }
  apply Forall2_nth; [rewrite !throughputs_length by assumption; reflexivity|].
  intros j l; assert (l' : (j < List.length (throughputs m y))%nat).
  { rewrite throughputs_length in * by assumption; exact l. }
  destruct (nth_error (throughputs m x) j) as [a|] eqn:ea; [|apply nth_error_None in ea; lia].
  destruct (nth_error (throughputs m y) j) as [b|] eqn:eb; [|apply nth_error_None in eb; lia].
  rewrite (nth_error_nth _ _ 0 ea), (nth_error_nth _ _ 0 eb); exact (each j a b ea eb).
Qed.

Lemma powers_monotone ks : forall a b, Forall2 Qle a b -> (forall q, In q a -> 0 < q) ->
  powers_of ks a <= powers_of ks b.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros a b h p; [apply Qle_refl|].
  destruct h as [|x0 y0 a b h t]; simpl; [apply Qle_refl|].
  fold (product (map (fun '(k, v) => power v k) (combine ks a))) (product (map (fun '(k, v) =>
    power v k) (combine ks b))).
  pose proof (p x0 (or_introl eq_refl)) as x0p; assert (pw : power x0 k <= power y0 k).
  { clear -h x0p; induction k as [|k IH]; simpl; [apply Qle_refl|]. pose proof (power_pos x0 k x0p); nra. }
  pose proof (IH a b t (fun q i => p q (or_intror i))) as le.
  pose proof (powers_pos ks a (fun q i => p q (or_intror i))) as pp; unfold powers_of in pp.
  pose proof (power_pos x0 k x0p); nra.
Qed.

Lemma settled_enough y : sensible m y -> as_much m x y -> maximises_nash m y.
Proof.
  intros sy much; destruct fine as (v & sx & pos & _).
  assert (px : forall q, In q (throughputs m x) -> 0 < q).
  { intros q i; destruct (in_throughputs _ _ _ i) as (u & b & hb & ->); exact (pos u b hb). }
  split; [exact sy|split].
  - intros u c i; destruct (has_at _ _ _ _ i) as (j & eu & ec).
    destruct (beside _ x _ _ (eq_sym (proj1 (proj1 (proj1 sx)))) eu) as [b eb].
    assert (ex : nth_error (throughputs m x) j = Some (value u b)).
    { unfold throughputs; rewrite nth_error_map, (proj2 (nth_error_combine _ _ _ _ _) (conj eu eb)); reflexivity. }
    destruct (Forall2_at _ _ _ _ _ much ex) as (q & ey & le).
    unfold throughputs in ey; rewrite nth_error_map, (proj2 (nth_error_combine _ _ _ _ _) (conj eu ec)) in ey;
      injection ey as <-.
    pose proof (px _ (nth_error_In _ _ ex)); lra.
  - intros z ks sz h; rewrite !nash_welfare_powers; eapply Qle_trans; [exact (proj1 (settled_means ks z h sz))|].
    apply powers_monotone; assumption.
Qed.
End Settled.

Definition utilities_word : text := word "utilities".
Definition optima_of_equilibrium (m : market) (x : table) : optima := optima_of_floors m NashWelfare utilities_word x.

Lemma optima_of_equilibrium_ok m x : settled m x -> optima_fine (optima_of_equilibrium m x).
Proof.
  intro s; apply optima_of_floors_ok; [exact (proj1 s)|exact (settled_enough m x s)|exact (settled_same m x s)].
Qed.

(** Prices of types and, where they are told, duals of demands. *)
Definition price_duals (m : market) (prices : list Q) (demand_duals : option (list Q)) : option (list dual) :=
  if same_length prices (capacity m) then
    match demand_duals with
    | None => Some (priced capacity_word 0 prices)
    | Some l => if same_length l (users m) then Some (priced capacity_word 0 prices ++ priced demand_word 0 l) else None
    end
  else None.
