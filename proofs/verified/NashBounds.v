(** * Between which throughputs Nash welfare is largest, and how far an allocation is from it *)

From Coq Require Import List QArith Qround Setoid Morphisms Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Pareto Optima Means Gaps Nash Paid Limits Could Standing.
Import ListNotations.
Local Open Scope Q_scope.

(** ** The gap *)

#[local] Instance mul_comp : Proper (Qeq ==> Qeq ==> Qeq) mul.
Proof. intros a a' e b b' f; rewrite !mulE, e, f; reflexivity. Qed.
#[local] Instance sub_comp : Proper (Qeq ==> Qeq ==> Qeq) sub.
Proof. intros a a' e b b' f; rewrite !subE, e, f; reflexivity. Qed.

Fixpoint times (a b : list Q) : list Q := match a, b with x :: a, y :: b => mul x y :: times a b | _, _ => [] end.

(** Rounded up to a multiple of the grain, so that sums stay short. *)
Definition rounded_up (grain q : Q) : Z := Qceiling (mul q (/ grain)).

Lemma rounded_sum grain l : 0 < grain ->
  sum l <= inject_Z (fold_left Z.add (map (rounded_up grain) l) 0%Z) * grain.
Proof.
  intro g; assert (h : forall a, inject_Z a * grain + sum l <=
    inject_Z (fold_left Z.add (map (rounded_up grain) l) a) * grain).
  { induction l as [|q l IH]; intro a; simpl; [lra|]. eapply Qle_trans; [|apply IH].
    rewrite inject_Z_plus. pose proof (Qle_ceiling (mul q (/ grain))) as c; fold (rounded_up grain q) in c.
    assert (q == mul q (/ grain) * grain) as e by (rewrite mulE; field; lra).
    assert (q <= inject_Z (rounded_up grain q) * grain) by (rewrite e at 1; apply Qmult_le_compat_r; lra).
    unfold sum in *; lra. }
  specialize (h 0%Z); change (inject_Z 0) with 0 in h; lra.
Qed.

(** What users pay at the allocation that is given: weight * (weight / cost - 1), and less the weight. *)
Fixpoint own_terms (ws paid : list Q) : list Q :=
  match ws, paid with w :: ws, c :: paid => mul w (sub (mul w (/ c)) 1) :: - w :: own_terms ws paid | _, _ => [] end.

Definition many_terms : N := 1000.
Definition proves_gap (gap : Q) (count : nat) (terms : list Q) : bool :=
  let grain := mul gap (/ inject_Z (Z.of_N many_terms * Z.of_nat count)) in
  if nothing gap then le (fast_sum terms) gap else lt 0 grain && le (mul (inject_Z (fold_left Z.add (map (rounded_up grain) terms) 0%Z)) grain) gap.

Lemma proves_gap_ok gap count terms : proves_gap gap count terms = true -> sum terms <= gap.
Proof.
  unfold proves_gap; destruct (nothing gap); [rewrite leP, fast_sumE; auto|].
  rewrite andb_true_iff; intros [g h]; apply ltP in g; apply leP in h; rewrite mulE in h.
  eapply Qle_trans; [exact (rounded_sum _ terms g)|exact h].
Qed.

Section Scaled.
Variables (unit : Q) (ks : list nat) (ws cs vx vy : list Q).
Hypothesis whole : Forall2 (fun k w => many k == unit * w) ks ws.
Hypothesis unit_pos : 0 < unit.
Hypothesis w_pos : forall q, In q ws -> 0 < q.
Hypothesis c_pos : forall q, In q cs -> 0 < q.
Hypothesis x_pos : forall q, In q vx -> 0 < q.
Hypothesis lc : List.length cs = List.length ws.
Hypothesis lx : List.length vx = List.length ws.
Hypothesis ly : List.length vy = List.length ws.

Lemma scaled_powers :
  powers_of ks (over (times cs vy) ws) * powers_of ks (over ws (times cs vx)) * powers_of ks vx == powers_of ks vy.
Proof.
  clear unit_pos; revert cs vx vy w_pos c_pos x_pos lc lx ly; induction whole as [|k w ks0 ws0 h t IH];
    intros [|c cs0] [|x vx0] [|y vy0] wp cp xp l1 l2 l3; try discriminate; [reflexivity|].
  cbn [times over]; unfold powers_of in *; cbn [combine map]; unfold product in *; cbn [fold_right].
  rewrite <- (IH t cs0 vx0 vy0) by (try (simpl in *; lia); intros q i; solve [apply wp; right; exact i|apply cp; right;
    exact i|apply xp; right; exact i]).
  pose proof (wp w (or_introl eq_refl)); pose proof (cp c (or_introl eq_refl)); pose proof (xp x (or_introl eq_refl)).
  assert (e : power y k == power (mul c y / w) k * power (w / mul c x) k * power x k).
  { rewrite <- !power_times; apply power_equal; rewrite !mulE; field; lra. }
  rewrite e; ring.
Qed.

Lemma scaled_dot vs : List.length vs = List.length ws ->
  dot (map many ks) (over (times cs vs) ws) == unit * dot cs vs.
Proof.
  clear ly lx x_pos unit_pos; revert cs vs w_pos c_pos lc; induction whole as [|k w ks0 ws0 h t IH];
    intros [|c cs0] [|v vs] wp cp l1 l2; try discriminate; [simpl; ring|]. cbn [times over map dot].
  rewrite (IH t cs0 vs) by (try (simpl in *; lia); intros q i; solve [apply wp; right; exact i|apply cp; right;
    exact i]).
  pose proof (wp w (or_introl eq_refl)); rewrite h, mulE; field; lra.
Qed.

Lemma scaled_own :
  dot (map many ks) (over ws (times cs vx)) == unit * sum (own_terms ws (times cs vx)) + 2 * sum (map many ks).
Proof.
  clear ly unit_pos; revert cs vx w_pos c_pos x_pos lc lx; induction whole as [|k w ks0 ws0 h t IH];
    intros [|c cs0] [|x vx0] wp cp xp l1 l2; try discriminate; [simpl; ring|]. cbn [times over map dot own_terms].
  rewrite (IH t cs0 vx0) by (try (simpl in *; lia); intros q i; solve [apply wp; right; exact i|apply cp; right;
    exact i|apply xp; right; exact i]).
  pose proof (cp c (or_introl eq_refl)); pose proof (xp x (or_introl eq_refl)).
  unfold sum; cbn [map fold_right]; rewrite h, !mulE, !subE; field; lra.
Qed.
End Scaled.

(** ** Bounds on one throughput *)

(** On each side of what prices say, and not closer than the gap allows. *)
Definition bounds_fine (gap w c low high : Q) : bool :=
  let l := mul (mul c low) (/ w) in
  let h := mul (mul c high) (/ w) in
  le 0 l && le l 1 && le 1 h
  && le (mul 2 gap) (mul w (mul (sub 1 l) (sub 1 l))) && le (mul (mul 2 h) gap) (mul w (mul (sub h 1) (sub h 1))).

Lemma bounds_fine_ok gap w c low high v : bounds_fine gap w c low high = true -> 0 <= gap -> 0 < w -> 0 < c -> 0 <= v ->
  (low <= v <= high) \/ exists l, log_at_most (mul c v / w) l /\ w * (l - (mul c v / w - 1)) < - gap.
Proof.
  unfold bounds_fine; rewrite !andb_true_iff, !leP; cbv zeta; rewrite !mulE, !subE.
  intros [[[[l0 l1] h1] dl] dh] g w0 c0 v0.
  set (t := mul c v / w); assert (te : t == c * v / w) by (unfold t; rewrite mulE; reflexivity).
  assert (t0 : 0 <= t) by (rewrite te; apply Qle_shift_div_l; nra).
  set (l := c * low * / w) in *; set (h := c * high * / w) in *.
  destruct (Qlt_le_dec v low) as [less|a]; [right|destruct (Qlt_le_dec high v) as [more|b]; [right|left; lra]].
  - assert (tl : t < l) by (rewrite te; unfold l, Qdiv; apply Qmult_lt_compat_r; [apply Qinv_lt_0_compat;
    exact w0|nra]).
    exists (t - 1 - (1 - t) * (1 - t) / 2); split; [apply log_below; lra|].
    assert ((1 - l) * (1 - l) < (1 - t) * (1 - t)) by nra.
    assert (w * ((1 - l) * (1 - l)) < w * ((1 - t) * (1 - t))) by (apply Qmult_lt_l; assumption).
    setoid_replace (w * (t - 1 - (1 - t) * (1 - t) / 2 - (t - 1))) with (- (w * ((1 - t) * (1 - t))) * (1 # 2)) by
      field.
    lra.
  - assert (th : h < t) by (rewrite te; unfold h, Qdiv; apply Qmult_lt_compat_r; [apply Qinv_lt_0_compat;
    exact w0|nra]).
    exists (t - 1 - (t - 1) * (t - 1) / (2 * t)); split; [apply log_above; lra|].
    assert (far : 2 * t * gap < w * ((t - 1) * (t - 1))).
    { assert (a1 : (h - 1) * (h - 1) * t < (t - 1) * (t - 1) * h).
      { assert (e : (t - 1) * (t - 1) * h - (h - 1) * (h - 1) * t == (t - h) * (t * h - 1)) by ring.
        assert (0 < (t - h) * (t * h - 1)) by (apply Qmult_lt_0_compat; nra). lra. }
      assert (a2 : w * ((h - 1) * (h - 1) * t) < w * ((t - 1) * (t - 1) * h)) by (apply Qmult_lt_l; assumption).
      assert (a3 : 2 * h * gap * t <= w * ((h - 1) * (h - 1)) * t) by (apply Qmult_le_compat_r; assumption).
      apply (Qmult_lt_r _ _ h); [lra|]. lra. }
    setoid_replace (w * (t - 1 - (t - 1) * (t - 1) / (2 * t) - (t - 1))) with (- (w * ((t - 1) * (t - 1)) / (2 * t)))
      by (field; lra).
    assert (gap < w * ((t - 1) * (t - 1)) / (2 * t)) by (apply Qlt_shift_div_l; lra). lra.
Qed.

(** ** Lists of positive numbers *)

Lemma times_length a : forall b, List.length a = List.length b -> List.length (times a b) = List.length a.
Proof. induction a as [|x a IH]; intros [|y b] l; try discriminate; simpl in *; [reflexivity|]; rewrite IH by lia;
  reflexivity. Qed.

Lemma in_times (P : Q -> Prop) a : (forall x y, In x a -> P y -> P (mul x y)) -> forall b, (forall y, In y b -> P y) ->
  forall q, In q (times a b) -> P q.
Proof.
  induction a as [|x a IH]; intros h [|y b] hb q i; try contradiction; destruct i as [<-|i].
  - apply h; [left; reflexivity|apply hb; left; reflexivity].
  - exact (IH (fun x y i => h x y (or_intror i)) b (fun y i => hb y (or_intror i)) q i).
Qed.

Lemma nth_times a : forall b j x y, nth_error a j = Some x -> nth_error b j = Some y ->
  nth_error (times a b) j = Some (mul x y).
Proof.
  induction a as [|x0 a IH]; intros [|y0 b] [|j] x y ea eb; try discriminate; simpl in *.
  - injection ea as ->; injection eb as ->; reflexivity.
  - exact (IH b j x y ea eb).
Qed.

Lemma powers_equal ks : forall a b, equal a b -> powers_of ks a == powers_of ks b.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros a b e; [reflexivity|].
  destruct e as [|x y a b h e]; [reflexivity|]; simpl; apply Qmult_comp; [apply power_equal; exact h|exact (IH a b e)].
Qed.

Lemma flat_many ks : forall rs, List.length ks = List.length rs -> List.length (flat ks rs) = list_sum ks.
Proof.
  induction ks as [|k ks IH]; intros [|r rs] l; try discriminate; [reflexivity|].
  simpl; rewrite app_length, repeat_length, IH by (simpl in l; lia); reflexivity.
Qed.

Lemma sum_many ks : sum (map many ks) == many (list_sum ks).
Proof. induction ks as [|k ks IH]; [reflexivity|]; simpl; fold (sum (map many ks)); rewrite IH, many_plus;
  reflexivity. Qed.

(** ** Certificates *)

Definition has_demand (u : user) : bool := match demand u with Some _ => true | None => false end.

Definition bounds_all_fine (m : market) (gap : Q) (cs lowest highest : list Q) : bool :=
  let ws := map weight (users m) in
  same_length lowest ws && same_length highest ws &&
    forallb (fun '((w, c), (low, high)) => bounds_fine gap w c low high) (combine (combine ws cs) (combine lowest highest)).

Definition check_nash_bounds m x gap lowest highest prices demand_duals : result :=
  let duals := match demand_duals with Some l => l | None => map (fun _ => 0) (users m) end in
  let ws := map weight (users m) in
  let own := throughputs_now m x in
  if negb (valid_b m && feasible_b m x && everybody m x within_demand) then no
    "the allocation is not feasible, or somebody gets more than it demands"
  else if negb (same_length prices (capacity m) && forallb (le 0) prices && same_length duals (users m) &&
                forallb (fun '(u, dual) => dual_fine u dual) (combine (users m) duals)) then no
    "a price or a demand dual is negative, or one of who has no demand"
  else match costs_of m prices (users m) duals with
  | None => no "somebody pays nothing"
  | Some cs =>
    let paid := times cs own in
    let count := (List.length prices + List.length (filter has_demand (users m)) + 2 * List.length ws)%nat in
    if negb (lt 0 gap && forallb (lt 0) cs && forallb (lt 0) own) then no "somebody gets nothing, or pays nothing"
    else if negb (proves_gap gap count (times prices (capacity m) ++ demand_terms (users m) duals ++ own_terms ws paid))
    then no "prices and demand duals prove a larger gap"
    else match entitled m with
    | Some _ => no "what users are entitled to is not counted"
    | None => if bounds_all_fine m gap cs lowest highest then Accepted (NashWithin m x gap lowest highest None)
              else no "the bounds are closer than is proved"
    end
  end.

(** Within entitlements, at any costs of a unit of throughput: multipliers bound what all throughputs cost. *)
Definition check_nash_bounds_within m x gap lowest highest cs owed duals : result :=
  let ws := map weight (users m) in
  let own := throughputs_now m x in
  if negb (valid_b m) then no "the market is not valid"
  else match limits_of m (Some owed) with
  | None => no "what is told does not fit the entitlements"
  | Some (lim, inside) =>
    if negb (inside x && keeps_entitlements_b m x) then no "the allocation breaks caps or guarantees, or what is told"
    else if negb (same_length cs (users m) && le 0 gap && forallb (lt 0) cs && forallb (lt 0) own)
      then no "somebody gets nothing, or pays nothing"
    else match bound_in lim (combine cs (users m)) duals with
    | None => no "the multipliers bound nothing"
    | Some most =>
      if negb (proves_gap gap (1 + 2 * List.length ws) (most :: own_terms ws (times cs own)))
      then no "the multipliers prove a larger gap"
      else if bounds_all_fine m gap cs lowest highest then Accepted (NashWithin m x gap lowest highest (Some owed))
      else no "the bounds are closer than is proved"
    end
  end.

Section Within.
Variables (m : market) (allowed : table -> Prop) (x : table) (gap : Q) (cs : list Q).
Let ws := map weight (users m).
Let own := throughputs_now m x.
Hypothesis v : valid m.
Hypothesis fx : feasible m x.
Hypothesis gap_nonneg : 0 <= gap.
Hypothesis sensible_of : forall y, allowed y -> sensible m y.
Hypothesis c_pos : forall q, In q cs -> 0 < q.
Hypothesis own_pos : forall q, In q own -> 0 < q.
Hypothesis lc : List.length cs = List.length ws.
Hypothesis enough : forall y, allowed y -> dot cs (throughputs m y) + sum (own_terms ws (times cs own)) <= gap.

Lemma w_pos q : In q ws -> 0 < q.
Proof. intro i; apply in_map_iff in i; destruct i as (u & <- & i); apply v; exact i. Qed.
Lemma lo : List.length own = List.length ws.
Proof.
  unfold own, ws; rewrite map_length; unfold throughputs_now; rewrite map_length, combine_length, (proj1 (proj1 fx)).
  apply Nat.min_id.
Qed.
Lemma ly y : sensible m y -> List.length (throughputs m y) = List.length ws.
Proof. intro s; rewrite (throughputs_length m y (proj1 (proj1 s))); symmetry; apply map_length. Qed.
Lemma y_nonneg y q : sensible m y -> In q (throughputs m y) -> 0 <= q.
Proof. intros s i; destruct (in_throughputs _ _ _ i) as (u & b & h & ->); exact (value_nonneg m y u b v (proj1 s) h).
  Qed.

Section Powers.
Variables (unit : Q) (ks : list nat) (y : table).
Hypothesis weights : times_weights m unit ks.
Hypothesis ay : allowed y.
Let sy := sensible_of y ay.
Let ts := over (times cs (throughputs m y)) ws.
Let rs := over ws (times cs own).

Lemma whole : Forall2 (fun k w => many k == unit * w) ks ws.
Proof. unfold ws; destruct weights as [_ h]; clear -h; induction h; constructor; assumption. Qed.
Lemma lk : List.length ks = List.length ws.
Proof. exact (Forall2_len _ _ _ whole). Qed.
Lemma lt_ : List.length ks = List.length ts.
Proof.
  unfold ts; rewrite lk, over_length; rewrite times_length; [exact (eq_sym lc)|exact (eq_trans lc (eq_sym (ly y
    sy)))|exact lc|
    exact (eq_trans lc (eq_sym (ly y sy)))].
Qed.
Lemma lr : List.length ks = List.length rs.
Proof.
  unfold rs; rewrite lk, over_length; [reflexivity|]; rewrite times_length; [exact (eq_sym lc)|].
  exact (eq_trans lc (eq_sym lo)).
Qed.
Lemma tn q : In q ts -> 0 <= q.
Proof.
  apply in_over; [|exact w_pos]; apply in_times; [|intros z i; exact (y_nonneg y z sy i)].
  intros c z i z0; pose proof (c_pos c i); rewrite mulE; apply Qmult_le_0_compat; lra.
Qed.
Lemma rn q : In q rs -> 0 <= q.
Proof.
  apply in_over; [intros w i; apply Qlt_le_weak, w_pos, i|]. apply in_times; [|exact own_pos].
  intros c z i z0; pose proof (c_pos c i); rewrite mulE; apply Qmult_lt_0_compat; assumption.
Qed.

Lemma ratio : powers_of ks ts * powers_of ks rs * nash_welfare m ks x == nash_welfare m ks y.
Proof.
  rewrite !nash_welfare_powers, <- (powers_equal ks _ _ (throughputs_now_ok m x)).
  exact (scaled_powers unit ks ws cs own (throughputs m y) whole w_pos c_pos own_pos lc lo (ly y sy)).
Qed.
Lemma x_nash : 0 < nash_welfare m ks x.
Proof.
  rewrite nash_welfare_powers, <- (powers_equal ks _ _ (throughputs_now_ok m x)); apply powers_pos; exact own_pos.
Qed.

Lemma together : dot (map many ks) ts + dot (map many ks) rs <= unit * gap + 2 * sum (map many ks).
Proof.
  unfold ts, rs; rewrite (scaled_dot unit ks ws cs whole w_pos c_pos lc _ (ly y sy)).
  rewrite (scaled_own unit ks ws cs own whole w_pos c_pos own_pos lc lo).
  pose proof (enough y ay) as h; apply (Qmult_le_l _ _ unit (proj1 weights)) in h; lra.
Qed.

Lemma inside j u b c low high : nash_welfare m ks x <= nash_welfare m ks y ->
  nth_error (combine (users m) y) j = Some (u, b) -> nth_error cs j = Some c ->
  bounds_fine gap (weight u) c low high = true -> low <= value u b <= high.
Proof.
  intros better e ec fine; pose proof (proj1 (nth_error_combine _ _ _ _ _) e) as [eu _].
  assert (ew : nth_error ws j = Some (weight u)) by (unfold ws; rewrite nth_error_map, eu; reflexivity).
  assert (ev : nth_error (throughputs m y) j = Some (value u b)) by (unfold throughputs; rewrite nth_error_map, e;
    reflexivity).
  destruct (beside _ ks _ _ (eq_sym lk) ew) as [k ek].
  assert (kw : many k == unit * weight u).
  { destruct (Forall2_at _ _ _ _ _ whole ek) as (w & ew' & h); rewrite ew in ew'; injection ew' as <-; exact h. }
  assert (et := nth_over _ _ _ _ _ (nth_times _ _ _ _ _ ec ev) ew); fold ts in et.
  assert (w0 : 0 < weight u) by (apply v; exact (nth_error_In _ _ eu)).
  destruct (bounds_fine_ok _ _ _ _ _ (value u b) fine gap_nonneg w0 (c_pos c (nth_error_In _ _ ec))
    (y_nonneg y _ sy (nth_error_In _ _ ev))) as [h|(l & at_most & far)]; [exact h|exfalso].
  assert (small : powers_of ks ts * powers_of ks rs < 1).
  { apply (product_far ks ts rs j k _ l lt_ lr tn rn ek et at_most). pose proof together as t; rewrite kw.
    apply (Qmult_lt_l _ _ unit (proj1 weights)) in far. lra. }
  pose proof ratio as r; pose proof x_nash as p. apply (Qmult_lt_r _ _ _ p) in small. lra.
Qed.

Lemma not_beyond : nash_welfare m ks y <=
  power (1 + unit * gap / many (list_sum ks + list_sum ks)) (list_sum ks + list_sum ks) * nash_welfare m ks x.
Proof.
  rewrite <- ratio; apply Qmult_le_compat_r; [|apply Qlt_le_weak, x_nash].
  set (n := (list_sum ks + list_sum ks)%nat). set (all := flat ks ts ++ flat ks rs).
  assert (len : List.length all = n) by (unfold all, n; rewrite app_length, !flat_many by (exact lt_ || exact lr);
    reflexivity).
  assert (n0 : 0 < many n).
  { assert (some_w : exists w, nth_error ws 0 = Some w).
    { pose proof (proj1 v) as ne; unfold ws; revert ne; destruct (users m) as [|u us]; intro ne;
        [destruct (ne eq_refl)|exists (weight u); reflexivity]. }
    destruct some_w as [w ew]; destruct (beside _ ks _ _ (eq_sym lk) ew) as [k ek].
    destruct (Forall2_at _ _ _ _ _ whole ek) as (w' & ew' & kw); pose proof (w_pos w' (nth_error_In _ _ ew')) as w0.
    assert (0 < many k) by (rewrite kw; apply Qmult_lt_0_compat; [exact (proj1 weights)|exact w0]).
    assert (k <= list_sum ks)%nat.
    { destruct ks as [|k0 ks0]; [discriminate|]; injection ek as ->; simpl; lia. }
    assert (many k <= many n) by (unfold many, n; rewrite <- Zle_Qle; lia). lra. }
  assert (is : powers_of ks ts * powers_of ks rs == product all) by (unfold all; rewrite product_app, !flat_product;
    reflexivity).
  rewrite is, <- len; apply product_at_most; rewrite ?len.
  - assert (0 <= unit * gap / many n); [|lra]. apply Qle_shift_div_l; [exact n0|].
    rewrite Qmult_0_l; apply Qmult_le_0_compat; [apply Qlt_le_weak; exact (proj1 weights)|exact gap_nonneg].
  - intros q i; unfold all in i; apply in_app_iff in i; destruct i as [i|i]; [apply tn|apply rn];
    exact (in_flat_inv _ _ _ i).
  - unfold all; rewrite sum_app, (flat_sum _ _ lt_), (flat_sum _ _ lr).
    pose proof together as t; rewrite sum_many in t.
    setoid_replace ((1 + unit * gap / many n) * many n) with (many n + unit * gap) by (field; lra).
    unfold n; rewrite many_plus; lra.
Qed.
End Powers.
End Within.

(** What all costs bound bounds all throughputs, and Nash welfare. *)
Lemma nash_within_ok m (allowed : table -> Prop) x gap cs lowest highest : valid m -> feasible m x -> everybody m x within_demand = true ->
  0 <= gap -> (forall y, allowed y -> sensible m y) -> (forall q, In q cs -> 0 < q) ->
  (forall q, In q (throughputs_now m x) -> 0 < q) -> List.length cs = List.length (users m) ->
  (forall y, allowed y ->
    dot cs (throughputs m y) + sum (own_terms (map weight (users m)) (times cs (throughputs_now m x))) <= gap) ->
  bounds_all_fine m gap cs lowest highest = true -> nash_within m allowed x gap lowest highest.
Proof.
  intros v fx wd g sen c_pos own_pos lc' enough fine.
  assert (lc : List.length cs = List.length (map weight (users m))) by (rewrite map_length; exact lc').
  unfold bounds_all_fine in fine; rewrite !andb_true_iff, !same_lengthP, forallb_forall in fine.
  destruct fine as [[l1 l2] bf]; split; [exact fx|split].
  - intros u b h; split.
    + assert (ho : In (fast_dot (speedup u) b) (throughputs_now m x)).
      { unfold throughputs_now; apply in_map_iff; exists (u, b); auto. }
      pose proof (own_pos _ ho) as p; rewrite fast_dotE in p; exact p.
    + pose proof (proj1 (everybody_ok _ _ _) wd u b h) as w; unfold within_demand in w; destruct (demand u); [|exact I].
      apply leP in w; rewrite fast_sumE in w; exact w.
  - intros unit ks wt; split.
    + intros y sy better i u b e.
      assert (ew : nth_error (map weight (users m)) i = Some (weight u)).
      { rewrite nth_error_map, (proj1 (proj1 (nth_error_combine _ _ _ _ _) e)); reflexivity. }
      destruct (beside _ cs _ _ (eq_sym lc) ew) as [c eci].
      destruct (beside _ lowest _ _ (eq_sym l1) ew) as [low el]; destruct (beside _ highest _ _ (eq_sym l2) ew) as
        [high eh].
      rewrite (nth_error_nth _ _ 0 el), (nth_error_nth _ _ 0 eh).
      apply (inside m allowed x gap cs v fx g sen c_pos own_pos lc enough unit ks y wt sy i u b c low high better e eci).
      apply (bf ((weight u, c), (low, high))). apply (nth_error_In _ i); apply nth_error_combine; split;
        apply nth_error_combine; auto.
    + exists (list_sum ks + list_sum ks)%nat; intros y sy.
      exact (not_beyond m allowed x gap cs v fx g sen c_pos own_pos lc enough unit ks y wt sy).
Qed.

Lemma check_nash_bounds_sound m x gap lowest highest prices demand_duals s :
  check_nash_bounds m x gap lowest highest prices demand_duals = Accepted s -> meaning s.
Proof.
  unfold check_nash_bounds; cbv zeta; set (duals := match demand_duals with Some l => l | None => _ end).
  destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (feasible_b m x) eqn:fx; [|discriminate]; apply feasible_ok in fx.
  destruct (everybody m x within_demand) eqn:wd; [|discriminate]; simpl negb; cbv iota.
  destruct (same_length prices _) eqn:lp; [|discriminate]; apply same_lengthP in lp.
  destruct (forallb (le 0) prices) eqn:pp; [|discriminate]; rewrite forallb_forall in pp.
  destruct (same_length duals _); [|discriminate]; destruct (forallb _ (combine (users m) duals)) eqn:df;
    [|discriminate].
  rewrite forallb_forall in df; simpl negb; cbv iota.
  destruct (costs_of _ _ _ _) as [cs|] eqn:ec; [|discriminate].
  destruct (lt 0 gap) eqn:g; [|discriminate]; apply ltP in g.
  destruct (forallb (lt 0) cs) eqn:cp; [|discriminate]; rewrite forallb_forall in cp.
  destruct (forallb (lt 0) (throughputs_now m x)) eqn:op; [|discriminate]; rewrite forallb_forall in op; simpl negb;
    cbv iota.
  destruct (proves_gap _ _ _) eqn:pg; [|discriminate]; apply proves_gap_ok in pg; simpl negb; cbv iota.
  destruct (entitled m) eqn:ent; [discriminate|].
  destruct (bounds_all_fine _ _ _ _ _) eqn:bf; [|discriminate]; intro e; injection e as <-.
  assert (c_pos : forall q, In q cs -> 0 < q) by (intros q i; apply ltP, cp, i).
  assert (own_pos : forall q, In q (throughputs_now m x) -> 0 < q) by (intros q i; apply ltP, op, i).
  assert (enough : forall y, sensible m y ->
    dot cs (throughputs m y) + sum (own_terms (map weight (users m)) (times cs (throughputs_now m x))) <= gap).
  { intros y sy; eapply Qle_trans; [|exact pg]. rewrite !sum_app.
    assert (sum (times prices (capacity m)) == dot prices (capacity m)) as ->.
    { clear; revert prices; induction (capacity m) as [|c cap IH]; intros [|p prices]; try reflexivity.
      simpl; fold (sum (times prices cap)); rewrite mulE, IH; reflexivity. }
    pose proof (paid_at_most m prices duals cs y v sy lp (fun q i => proj1 (leP 0 q) (pp q i))
      (fun u d i => df (u, d) i) ec); lra. }
  split; [exact v|split; [unfold keeps_entitlements; rewrite ent; exact I|split; [exact I|]]].
  apply (nash_within_ok m (among m None) x gap cs lowest highest v fx wd); auto.
  - apply Qlt_le_weak, g.
  - unfold among; rewrite ent; auto.
  - exact (proj1 (costs_length _ _ _ _ _ ec)).
  - unfold among; rewrite ent; exact enough.
Qed.

Lemma weighted_dot cs us : forall y,
  weighted_sum (combine cs us) y == dot cs (map (fun '(u, b) => value u b) (combine us y)).
Proof.
  unfold weighted_sum; revert cs; induction us as [|u us IH]; intros [|c cs] [|b y]; try reflexivity.
  simpl; fold (sum (map (fun '(q, v, b) => q * value v b) (combine (combine cs us) y))); rewrite IH; reflexivity.
Qed.

Lemma check_nash_bounds_within_sound m x gap lowest highest cs owed duals s :
  check_nash_bounds_within m x gap lowest highest cs owed duals = Accepted s -> meaning s.
Proof.
  unfold check_nash_bounds_within; cbv zeta; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  simpl negb; cbv iota; destruct (limits_of m (Some owed)) as [[lim inside]|] eqn:el; [|discriminate].
  destruct (limits_of_ok _ _ _ _ v el) as [holds fits].
  destruct (inside x) eqn:ix; [|discriminate]; destruct (keeps_entitlements_b m x) eqn:ke; [|discriminate].
  destruct (same_length cs _) eqn:lc; [|discriminate]; apply same_lengthP in lc.
  destruct (le 0 gap) eqn:g; [|discriminate]; apply leP in g.
  destruct (forallb (lt 0) cs) eqn:cp; [|discriminate]; rewrite forallb_forall in cp.
  destruct (forallb (lt 0) (throughputs_now m x)) eqn:op; [|discriminate]; rewrite forallb_forall in op; simpl negb; cbv iota.
  destruct (bound_in _ _ _) as [most|] eqn:eb; [|discriminate].
  destruct (proves_gap _ _ _) eqn:pg; [|discriminate]; apply proves_gap_ok in pg; simpl negb; cbv iota.
  destruct (bounds_all_fine _ _ _ _ _) eqn:bf; [|discriminate]; intro e; injection e as <-.
  pose proof (fits x ix) as ax; destruct (holds x ax) as [sx _]; pose proof (proj1 sx) as fx.
  split; [exact v|split; [exact (keeps_entitlements_ok m x fx ke)|split; [exact ax|]]].
  apply (nash_within_ok m (among m (Some owed)) x gap cs lowest highest v fx); auto.
  - apply everybody_ok; intros u b h; unfold within_demand; destruct (proj2 sx u b h) as [_ w]; destruct (demand u);
      [apply leP; rewrite fast_sumE; exact w|reflexivity].
  - intros y ay; exact (proj1 (holds y ay)).
  - intros q i; apply ltP, cp, i.
  - intros q i; apply ltP, op, i.
  - intros y ay; pose proof (combine_snd cs (users m) lc) as us.
    pose proof (bound_in_ok m lim _ _ _ _ y v holds us ay eb) as le1; destruct (holds y ay) as [sy _].
    cbn [sum fold_right map] in pg; unfold sum in pg; cbn [fold_right] in pg; fold (sum (own_terms (map weight (users m)) (times cs (throughputs_now m x)))) in pg.
    pose proof (weighted_dot cs (users m) y) as e; fold (throughputs m y) in e; lra.
Qed.
