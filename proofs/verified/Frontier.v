(** * Trade-offs: points that allocations reach, mixtures between them, and lines that nothing is above *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Decided Pareto Lies Lines Mixtures Relaxed.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Points that are reached *)
Definition fails_by_b (m : market) (p : relaxed) (c : context) (mean eps : Q) (x : table) (level : Q) : bool :=
  let all := of_all c in
  match p with
  | EnvyBy => everybody m x (fun u b =>
      let own := fast_dot (speedup u) b in
      let slack := mul eps (fair_now m all u) in
      everybody m x (fun v d => le (sub (mul (weight u / weight v) (fast_dot (speedup u) d)) slack) own))
  | SharingBy => everybody m x (fun u b => le (mul (sub 1 eps) (fair_now m all u)) (fast_dot (speedup u) b))
  | EqualBy => everybody m x (fun u b =>
      let own := fast_dot (speedup u) b in
      let at_level := mul (weight u) level in
      le at_level own && le own (add at_level (mul eps (mul (weight u) mean))))
  | EfficiencyBy => true
  end.

Lemma fails_by_ok m p eps x level : fails_by_b m p (context_of m) (mean_now m) eps x level = true -> fails_by m p eps x.
Proof.
  unfold fails_by_b; cbn [of_all context_of]; destruct p; simpl; [| | |auto].
  - rewrite everybody_ok; intros h u b v c i j; specialize (h u b i); rewrite everybody_ok in h; specialize (h v c j).
    apply leP in h; rewrite subE, !mulE, !fast_dotE, fair_now_ok in h; exact h.
  - rewrite everybody_ok; intros h u b i; specialize (h u b i); apply leP in h.
    rewrite mulE, subE, fast_dotE, fair_now_ok in h; exact h.
  - rewrite everybody_ok; intro h; exists level; intros u b i; specialize (h u b i); apply andb_true_iff in h.
    destruct h as [h k]; apply leP in h; apply leP in k; rewrite mulE, fast_dotE in h.
    rewrite fast_dotE, addE, (mulE eps), (mulE (weight u) (mean_now m)), (mulE (weight u) level), mean_now_ok in k.
    unfold value; set (q := sum _ / _) in *; split; lra.
Qed.

(** The least gain, and the level where there is one. *)
Definition gain_and_level (p : relaxed) (named : list (text * Q)) : option (Q * Q) :=
  match p, named with
  | EqualBy, [(a, q); (b, r)] =>
    if same_text a ratio_word && same_text b level_word then Some (q, r)
    else if same_text a level_word && same_text b ratio_word then Some (r, q) else None
  | EqualBy, _ => None
  | _, _ => option_map (fun z => (z, 0)) (only_named ratio_word named)
  end.

Definition point_value (m : market) (g : goal) (p : relaxed) (c : context) (mean : Q) (pt : tradeoff_point) : option Q :=
  let x := reached_by pt in
  let fails level := fails_by_b m p c mean (epsilon pt) x level in
  if negb (sensible_b m x) then None
  else match g with
  | TotalEfficiency =>
    match p with
    | EqualBy =>
      match only_named level_word (named_values pt) with
      | Some z => if fails z then Some (total_now m x) else None
      | None => None
      end
    | _ => match named_values pt with [] => if fails 0 then Some (total_now m x) else None | _ => None end
    end
  | LeastGain =>
    match gain_and_level p (named_values pt) with
    | Some (z, lev) =>
      if everybody m x (fun u b => le (mul (fair_now m (of_all c) u) z) (fast_dot (speedup u) b)) && fails lev
      then Some z else None
    | None => None
    end
  end.

Lemma point_value_ok m g p pt v : valid m -> point_value m g p (context_of m) (mean_now m) pt = Some v ->
  within_by m g p (epsilon pt) (reached_by pt) v.
Proof.
  intro va; unfold point_value; destruct (sensible_b m _) eqn:s; [|discriminate]; apply (sensible_ok m _ va) in s; simpl.
  destruct g.
  - assert (done : forall z, fails_by_b m p (context_of m) (mean_now m) (epsilon pt) (reached_by pt) z = true ->
      Some (total_now m (reached_by pt)) = Some v -> within_by m TotalEfficiency p (epsilon pt) (reached_by pt) v).
    { intros z f e; injection e as <-; split; [exact s|split; [symmetry; apply total_now_ok|exact (fails_by_ok _ _ _ _ _ f)]]. }
    destruct p; try (destruct (named_values pt); [|discriminate];
      destruct (fails_by_b _ _ _ _ _ _ _) eqn:f; [exact (done 0 f)|discriminate]).
    destruct (only_named _ _) as [z|]; [|discriminate].
    destruct (fails_by_b _ _ _ _ _ _ _) eqn:f; [exact (done z f)|discriminate].
  - destruct (gain_and_level _ _) as [[z lev]|]; [|discriminate]; destruct (everybody _ _ _) eqn:h; [|discriminate].
    destruct (fails_by_b _ _ _ _ _ _ _) eqn:f; [|discriminate]; simpl; intro e; injection e as <-.
    split; [exact s|split; [|exact (fails_by_ok _ _ _ _ _ f)]].
    intros u b i; rewrite everybody_ok in h; specialize (h u b i); apply leP in h.
    rewrite mulE, fast_dotE in h; cbn [of_all context_of] in h; rewrite fair_now_ok in h; exact h.
Qed.

(** ** Points that are efficient, by weights of users and the most that their sum can be *)
Definition by_weights_now (su : list (Q * user)) (x : table) : Q :=
  fast_sum (map (fun '((q, u), b) => mul q (fast_dot (speedup u) b)) (combine su x)).
Lemma by_weights_now_ok su x : by_weights_now su x == weighted_sum su x.
Proof.
  unfold by_weights_now, weighted_sum; rewrite fast_sumE; apply sum_ext; intros [[q u] b] _; rewrite mulE, fast_dotE; reflexivity.
Qed.

Definition most_by (m : market) (told : list Q * (list Q * option (list Q))) : option (list (Q * user) * Q) :=
  let '(lambda, (prices, demand_duals)) := told in
  let su := combine lambda (users m) in
  if same_length lambda (users m) && forallb (lt 0) lambda && same_length prices (capacity m)
     && match demand_duals with Some l => same_length l (users m) | None => true end
  then match bound_by su (sharing_row (context_of m)) 0 (Pareto.priced capacity_word 0 prices
         ++ Pareto.priced demand_word 0 match demand_duals with Some l => l | None => [] end) with
       | Some most => Some (su, most)
       | None => None
       end
  else None.

Definition at_most_of (best : option (list (Q * user) * Q)) (y : table) : Prop :=
  match best with Some (su, most) => weighted_sum su y == most | None => True end.

Lemma most_by_ok m told su most y : valid m -> most_by m told = Some (su, most) -> sensible m y ->
  weighted_sum su y == most -> pareto_efficient m y.
Proof.
  intros va; unfold most_by; destruct told as [lambda [prices dd]].
  destruct (same_length lambda (users m)) eqn:l; [|discriminate]; destruct (forallb (lt 0) lambda) eqn:p; [|discriminate].
  destruct (same_length prices _); [|discriminate]; destruct (match dd with Some l => _ | None => true end); [|discriminate].
  simpl andb; cbv iota; destruct (bound_by _ _ _ _) as [q|] eqn:e; [|discriminate]; intro h; injection h as <- <-.
  apply same_lengthP in l; pose proof (combine_snd _ _ l) as us; rewrite forallb_forall in p; intros sy w.
  apply (weights_pareto m _ va us) with (most := q).
  - intros r u i; apply ltP, p; exact (in_combine_l _ _ _ _ i).
  - exact (proj1 sy).
  - intros z s; pose proof (bound_by_ok m _ us _ _ _ _ z 0 va s e (fun d k g r => sharing_row_kept m d k g z 0 va s r)); lra.
  - rewrite <- w; apply Qle_lteq; right; symmetry; unfold weighted_worth, weighted_sum.
    apply sum_ext; intros [[r u] b] i; destruct (has_at _ _ _ _ i) as (j & e1 & e2).
    assert (h : has m y u b) by (apply (combine_has _ _ j); [rewrite <- us, nth_error_map, e1; reflexivity|exact e2]).
    rewrite worth_within; [reflexivity| | |].
    + exact (has_shaped m y u b va (proj1 (proj1 sy)) h).
    + exact (has_nonneg m y u b (proj1 (proj2 (proj1 sy))) h).
    + exact (proj2 (proj2 sy u b h)).
Qed.

(** ** From point to point *)
Fixpoint rising (l : list (Q * Q)) : bool :=
  match l with
  | [] => true
  | p :: rest => match rest with [] => true | q :: _ => lt (fst p) (fst q) && rising rest end
  end.
(** By how much lines are above the points at which they begin and end. *)
Fixpoint excesses (points : list (Q * Q)) (lines : list tradeoff_line) : list Q :=
  match points, lines with
  | p :: rest, l :: lines =>
    let over q := sub (add (constant l) (mul (slope l) (fst q))) (snd q) in
    over p :: match rest with [] => [] | q :: _ => over q :: excesses rest lines end
  | _, _ => []
  end.
Fixpoint last_falls (lines : list tradeoff_line) : bool :=
  match lines with [] => false | l :: rest => match rest with [] => le (slope l) 0 | _ => last_falls rest end end.

Section Spans.
Variables (m : market) (g : goal) (p : relaxed) (gap : Q) (best : option (list (Q * user) * Q)).
Hypothesis va : valid m.
Hypothesis users_known : forall su most, best = Some (su, most) -> map snd su = users m.
Definition reached_at (e v : Q) : Prop := exists y, within_by m g p e y v /\ at_most_of best y.

Lemma between_points e0 v0 e1 v1 eps : e0 < e1 -> e0 <= eps -> eps <= e1 -> reached_at e0 v0 -> reached_at e1 v1 ->
  reached_at eps (v0 + (eps - e0) / (e1 - e0) * (v1 - v0)).
Proof.
  intros lt01 l0 l1 (x & wx & bx) (y & wy & by_); set (a := (eps - e0) / (e1 - e0)).
  assert (ea : a * (e1 - e0) == eps - e0) by (unfold a; field; lra).
  assert (a0 : 0 <= a) by (apply Qle_shift_div_l; lra).
  assert (a1 : a <= 1) by (apply Qle_shift_div_r; lra).
  exists (mix a x y); split.
  - apply (within_eq m g p ((1 - a) * e0 + a * e1) eps _ ((1 - a) * v0 + a * v1)); [lra|ring|].
    exact (mix_within m a x y (proj1 wx) (proj1 wy) a0 a1 g p e0 e1 v0 v1 wx wy).
  - unfold at_most_of in *; destruct best as [[su most]|]; [|exact I].
    rewrite (mix_total_of m a x y (proj1 wx) (proj1 wy) su), bx, by_; [ring|].
    rewrite <- (map_length snd), (users_known su most eq_refl); symmetry; apply (proj1 wx).
Qed.

Lemma spans_ok points : forall lines, List.length points = List.length lines -> points <> [] -> rising points = true ->
  last_falls lines = true -> (forall q, In q (excesses points lines) -> q <= gap) ->
  (forall l, In l lines -> forall eps y t, within_by m g p eps y t -> t <= constant l + slope l * eps) ->
  (forall e v, In (e, v) points -> reached_at e v) ->
  forall eps, first_point points <= eps -> reached_at eps (line_at points eps) /\
    forall y t, within_by m g p eps y t -> t <= line_at points eps + gap.
Proof.
  induction points as [|[e v] rest IH]; intros [|l lines] len ne up falls over above reach eps le; try discriminate.
  simpl in le.
  pose proof (above l (or_introl eq_refl) eps) as top; destruct rest as [|[e' v'] rest].
  - destruct lines; [|discriminate]; simpl in falls; apply leP in falls; simpl.
    pose proof (over _ (or_introl eq_refl)) as o; rewrite subE, addE, mulE in o; simpl in o; split.
    + destruct (reach e v (or_introl eq_refl)) as (y & w & b); exists y; split; [exact (within_more m g p e eps y v va le w)|exact b].
    + intros y t w; specialize (top y t w); assert (slope l * eps <= slope l * e) by nra; lra.
  - cbn [rising] in up; apply andb_true_iff in up; destruct up as [lt01 up]; apply ltP in lt01; simpl fst in lt01.
    pose proof (over _ (or_introl eq_refl)) as o; pose proof (over _ (or_intror (or_introl eq_refl))) as o'.
    rewrite subE, addE, mulE in o, o'; simpl fst in o, o'; simpl snd in o, o'.
    change (line_at ((e, v) :: (e', v') :: rest) eps) with
      (if Qle_bool eps e' then v + (eps - e) / (e' - e) * (v' - v) else line_at ((e', v') :: rest) eps).
    destruct (Qle_bool eps e') eqn:le'.
    + apply Qle_bool_iff in le'; split.
      * apply between_points; auto; apply reach; [left|right; left]; reflexivity.
      * intros y t w; specialize (top y t w); set (a := (eps - e) / (e' - e)).
        assert (ea : a * (e' - e) == eps - e) by (unfold a; field; lra).
        assert (a0 : 0 <= a) by (apply Qle_shift_div_l; lra).
        assert (a1 : a <= 1) by (apply Qle_shift_div_r; lra).
        assert (eps == (1 - a) * e + a * e') as ee by lra; rewrite ee in top.
        assert ((1 - a) * (constant l + slope l * e - v) <= (1 - a) * gap) by nra.
        assert (a * (constant l + slope l * e' - v') <= a * gap) by nra.
        lra.
    + assert (e' < eps) by (apply Qnot_le_lt; intro h; apply Qle_bool_iff in h; congruence).
      apply (IH lines); auto; try discriminate.
      * destruct lines; [discriminate|exact falls].
      * intros q i; apply over; right; right; exact i.
      * intros l' i; apply above; right; exact i.
      * intros e2 v2 i; apply reach; right; exact i.
      * simpl; lra.
Qed.
End Spans.

(** ** The certificate *)
Definition largest (l : list Q) : Q := match l with [] => 0 | q :: l => fold_left bigger l q end.
Lemma largest_from l : forall q, q <= fold_left bigger l q /\ forall r, In r l -> r <= fold_left bigger l q.
Proof.
  induction l as [|s l IH]; intro q; simpl; [split; [lra|intros r []]|].
  destruct (IH (bigger q s)) as [h k]; unfold bigger in *; destruct (le q s) eqn:c.
  - apply leP in c; split; [lra|]; intros r [<-|i]; [exact h|exact (k r i)].
  - apply le_false in c; split; [exact h|]; intros r [<-|i]; [lra|exact (k r i)].
Qed.

Definition check_frontier (m : market) (g : goal) (p : relaxed) (points : list tradeoff_point) (lines : list tradeoff_line)
    (gap : Q) (told : option (list Q * (list Q * option (list Q)))) : result :=
  if negb (valid_b m) then no "the market is not valid"
  else
    let c := context_of m in
    let mean := mean_now m in
    let best := match told with Some t => most_by m t | None => None end in
    let proved := match told with Some _ => true | None => match p with EfficiencyBy => true | _ => false end end in
    let pairs := map (fun pt => (epsilon pt, reaches_value pt)) points in
    if negb (match told, best with Some _, None => false | None, _ => negb proved | _, _ => true end)
      then no "weights and prices prove nothing"
    else if negb (forallb (fun pt => le 0 (epsilon pt) &&
        match point_value m g p c mean pt with Some v => same v (reaches_value pt) | None => false end &&
        match best with Some (su, most) => same (by_weights_now su (reached_by pt)) most | None => true end) points)
      then no "a point does not reach its value, or is not efficient"
    else if negb (forallb (line_fine m g p c mean) lines) then no "the duals do not prove a line"
    else if negb (same_length points lines && some points && rising pairs && last_falls lines)
      then no "there are no points, they are out of order, or the last line rises"
    else if (if nothing (first_point pairs) then true else proved) && same (largest (excesses pairs lines)) gap
      then Accepted (FrontierIs m g p pairs gap proved)
      else no "the first point is not at epsilon 0, or the gap is another".

Lemma check_frontier_sound m g p points lines gap told s :
  check_frontier m g p points lines gap told = Accepted s -> meaning s.
Proof.
  unfold check_frontier; destruct (valid_b m) eqn:va; [|discriminate].
  apply valid_ok in va; cbv zeta; simpl negb; cbv iota.
  set (best := match told with Some t => most_by m t | None => None end).
  set (proved := match told with Some _ => true | None => _ end).
  set (pairs := map _ points).
  destruct (match told, best with Some _, None => false | None, _ => negb proved | _, _ => true end) eqn:known; [|discriminate].
  destruct (forallb _ points) eqn:reach; [|discriminate]; destruct (forallb _ lines) eqn:above; [|discriminate].
  destruct (_ && _ && _ && _) eqn:shape; [|discriminate]; simpl negb; cbv iota.
  destruct (_ && same _ gap) eqn:h; [|discriminate]; intro e; injection e as <-.
  apply andb_true_iff in h; destruct h as [_ hg]; apply sameP in hg.
  rewrite !andb_true_iff in shape; destruct shape as [[[len ne] up] falls]; apply same_lengthP in len; apply some_ok in ne.
  rewrite forallb_forall in reach, above.
  assert (ne' : pairs <> []) by (unfold pairs; destruct points; [congruence|discriminate]).
  split; [exact va|split; [exact ne'|]]; intros eps le_eps.
  assert (us : forall su most, best = Some (su, most) -> map snd su = users m).
  { unfold best; destruct told as [[lambda [prices dd]]|]; [|discriminate]; intros su most; unfold most_by.
    destruct (same_length lambda (users m)) eqn:l; [|discriminate]; apply same_lengthP in l.
    destruct (_ && _ && _); [|discriminate]; destruct (bound_by _ _ _ _); [|discriminate]; intro k; injection k as <- <-.
    apply combine_snd; exact l. }
  destruct (spans_ok m g p gap best va us pairs lines) with (eps := eps) as [(y & w & b) top]; auto.
  - unfold pairs; rewrite map_length; exact len.
  - intros q i; rewrite <- hg; unfold largest; destruct (excesses pairs lines) as [|q0 l]; [destruct i|].
    destruct (largest_from l q0) as [h k]; destruct i as [<-|i]; [exact h|exact (k q i)].
  - intros l i eps' y t w; exact (line_fine_ok m g p l eps' y t va (above l i) w).
  - intros e v i; unfold pairs in i; apply in_map_iff in i; destruct i as (pt & e1 & i); injection e1 as <- <-.
    specialize (reach pt i); rewrite !andb_true_iff in reach; destruct reach as [[_ r] eff].
    destruct (point_value _ _ _ _ _ _) as [v|] eqn:pv; [|discriminate]; apply sameP in r.
    exists (reached_by pt); split; [exact (within_eq m g p _ _ _ _ _ (Qeq_refl _) r (point_value_ok m g p pt v va pv))|].
    unfold at_most_of; destruct best as [[su most]|]; [|exact I]; apply sameP in eff; rewrite by_weights_now_ok in eff; exact eff.
  - split; [exists y; split; [exact w|]|exact top]; intro pr; unfold at_most_of in b.
    destruct told as [t|]; [|unfold proved in *; destruct p; simpl in known; discriminate].
    destruct best as [[su most]|] eqn:eb; [|discriminate]; exact (most_by_ok m t su most y va eb (proj1 w) b).
Qed.
