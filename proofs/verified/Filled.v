(** * What water filling leaves: max-min fair ratios, and these alone *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Optima Limits Filling.
Import ListNotations.
Local Open Scope Q_scope.

Lemma fill_up_ok m lim allowed norm x rounds : valid m -> limits_hold m lim allowed -> sensible m x -> forall ratios,
  List.length ratios = List.length (combine (users m) x) ->
  fill_up m lim norm (combine (users m) x) rounds ratios = true ->
  forall j u b, nth_error (combine (users m) x) j = Some (u, b) -> nth_error ratios j = Some None ->
  forall y c, allowed y -> nth_error y j = Some c -> fair_at m norm x u b y c.
Proof.
  intros v holds sx; induction rounds as [|f rounds IH]; intros ratios len h j u b eh er y c sy ey; simpl in h.
  - rewrite forallb_forall in h; specialize (h _ (nth_error_In _ _ er)); discriminate.
  - destruct (split _ _ _ _) as [[mu rest]|]; [|discriminate]; destruct (fixed_now _ _) as [now|]; [|discriminate].
    apply andb_true_iff in h; destruct h as [round h].
    set (ls := lines 0 (combine (users m) x) ratios mu now) in *.
    pose proof (lines_held (combine (users m) x) 0 ratios mu now len) as held; fold ls in held.
    pose proof (lines_ratios (combine (users m) x) 0 ratios mu now len) as rs; fold ls in rs.
    assert (el : exists mu' now', nth_error ls j = Some ((u, b), (None, (mu', now')))).
    { rewrite <- held, nth_error_map in eh; rewrite <- rs, nth_error_map in er; unfold of_round in *.
      destruct (nth_error ls j) as [[[u' b'] [r' [mu' now']]]|]; [|discriminate]; simpl in *.
      injection eh as -> ->; injection er as ->; exists mu', now'; reflexivity. }
    destruct el as (mu' & [|] & el); [exact (round_shows _ _ _ _ _ _ _ _ v holds sx held round u b None mu' y c j sy el ey)|].
    refine (IH (map (after (level f)) ls) _ h j u b eh _ y c sy ey).
    + rewrite map_length, <- held at 1; unfold of_round; rewrite map_length; reflexivity.
    + rewrite nth_error_map; unfold of_round in *; rewrite el; reflexivity.
Qed.

Lemma is_filling_ok m lim allowed n x rounds : valid m -> limits_hold m lim allowed -> allowed x ->
  is_filling m lim n x rounds = true -> fairest m allowed n x.
Proof.
  unfold is_filling; intros v holds ax h; destruct (holds x ax) as [s _]; split; [exact ax|]; intros y sy u b c i.
  destruct (has_at _ _ _ _ i) as (j & eu & e); pose proof (proj1 (nth_error_combine _ _ _ _ _) e) as [eb ec].
  cbv zeta in h; intro gain.
  assert (len : List.length (map (fun _ : user => @None Q) (users m)) = List.length (combine (users m) x)).
  { rewrite map_length, combine_length, (proj1 (proj1 (proj1 s))); symmetry; apply Nat.min_id. }
  assert (eh : nth_error (combine (users m) x) j = Some (u, b)) by (apply nth_error_combine; auto).
  assert (er : nth_error (map (fun _ : user => @None Q) (users m)) j = Some None) by (rewrite nth_error_map, eu;
    reflexivity).
  destruct (fill_up_ok m lim allowed _ x rounds v holds s _ len h j u b eh er y c sy ec gain) as (w & b' & c' & k & less & le).
  exists w, b', c'; split; [exact k|split; [exact less|]].
    rewrite !normal_now_ok in le; exact le.
Qed.

(** ** These ratios alone *)

Lemma triple_at m (x y : table) u b c : In (u, (b, c)) (combine (users m) (combine x y)) <->
  exists j, nth_error (users m) j = Some u /\ nth_error x j = Some b /\ nth_error y j = Some c.
Proof.
  split.
  - intro i; destruct (has_at _ _ _ _ i) as (j & eu & e); apply nth_error_combine in e; exists j; tauto.
  - intros (j & eu & eb & ec); apply (combine_has _ _ j); [exact eu|apply nth_error_combine; auto].
Qed.

Lemma triple_swap m (x y : table) u b c :
  In (u, (b, c)) (combine (users m) (combine x y)) <-> In (u, (c, b)) (combine (users m) (combine y x)).
Proof. rewrite !triple_at; split; intros (j & h); exists j; tauto. Qed.

Lemma throughput_at m (x : table) j u b : nth_error (users m) j = Some u -> nth_error x j = Some b ->
  nth_error (throughputs m x) j = Some (value u b).
Proof.
  intros eu eb; unfold throughputs; rewrite nth_error_map, (proj2 (nth_error_combine _ _ _ _ _) (conj eu eb));
    reflexivity.
Qed.

Lemma as_much_each m (x y : table) u b c : as_much m x y -> In (u, (b, c)) (combine (users m) (combine x y)) ->
  value u b <= value u c.
Proof.
  intros h i; apply triple_at in i; destruct i as (j & eu & eb & ec).
  destruct (Forall2_at _ _ _ _ _ h (throughput_at m x j u b eu eb)) as (q & e & le).
  rewrite (throughput_at m y j u c eu ec) in e; injection e as <-; exact le.
Qed.

Lemma each_as_much m (x y : table) : shaped m x -> shaped m y ->
  (forall u b c, In (u, (b, c)) (combine (users m) (combine x y)) -> value u b <= value u c) -> as_much m x y.
Proof.
  intros [lx _] [ly _] h; unfold as_much, throughputs.
  assert (k : forall us x y, List.length us = List.length x -> List.length us = List.length y ->
    (forall u b c, In (u, (b, c)) (combine us (combine x y)) -> value u b <= value u c) ->
    Forall2 Qle (map (fun '(u, b) => value u b) (combine us x)) (map (fun '(u, b) => value u b) (combine us y))).
  { clear; induction us as [|u us IH]; intros [|b x] [|c y] lx ly h; try discriminate; constructor.
    - apply h; left; reflexivity.
    - apply IH; [simpl in lx; lia|simpl in ly; lia|]; intros u' b' c' i; apply h; right; exact i. }
  apply k; auto.
Qed.

Lemma least_of {A} (f : A -> Q) (p : A -> bool) l : (forall a, In a l -> p a = false) \/
  exists a, In a l /\ p a = true /\ forall b, In b l -> p b = true -> f a <= f b.
Proof.
  induction l as [|a l IH]; [left; intros a []|].
  destruct IH as [none|(b & i & pb & least)].
  - destruct (p a) eqn:pa; [right|left; intros b [<-|j]; auto].
    exists a; split; [left; reflexivity|split; [exact pa|]]; intros c [<-|j] pc;
      [apply Qle_refl|rewrite (none c j) in pc; discriminate].
  - right; destruct (p a && le (f a) (f b)) eqn:t.
    + apply andb_true_iff in t; destruct t as [pa le1]; apply leP in le1; exists a; split; [left; reflexivity|split;
      [exact pa|]].
      intros c [<-|j] pc; [apply Qle_refl|]; pose proof (least c j pc); lra.
    + exists b; split; [right; exact i|split; [exact pb|]]; intros c [<-|j] pc; [|exact (least c j pc)].
      rewrite pc in t; simpl in t; apply le_false in t; lra.
Qed.

Section Alone.
Variables (m : market) (n : normaliser) (x : table).
Hypothesis va : valid m.
Hypothesis fair : max_min_fair m n x.
Hypothesis positive : forall u, In u (users m) -> 0 < normal m n u.

Lemma fair_enough y : sensible m y -> as_much m x y -> max_min_fair m n y.
Proof.
  intros sy much; destruct fair as [sx fx].
  assert (same_value : forall u b c, In (u, (b, c)) (combine (users m) (combine x y)) -> value u b == value u c).
  { intros u b c i; pose proof (as_much_each m x y u b c much i) as le1.
    destruct (Qlt_le_dec (value u b) (value u c)) as [l|]; [|lra]; exfalso.
    destruct (fx y sy u b c i l) as (w & b' & c' & j & less & _); pose proof (as_much_each m x y w b' c' much j); lra. }
  assert (of_x : forall (z : table) u c d, In (u, (c, d)) (combine (users m) (combine y z)) ->
    exists b, In (u, (b, d)) (combine (users m) (combine x z)) /\ value u b == value u c).
  { intros z u c d i; apply triple_at in i; destruct i as (j & eu & ec & ed).
    destruct (beside _ x _ _ (eq_sym (proj1 (proj1 (proj1 sx)))) eu) as [b eb]; exists b; split.
    - apply triple_at; exists j; auto.
    - apply same_value, triple_at; exists j; auto. }
  split; [exact sy|]; intros z sz u c d i gain; destruct (of_x z u c d i) as (b & i' & e).
  destruct (fx z sz u b d i') as (w & b' & d' & k & less & le1); [lra|].
  apply triple_at in k; destruct k as (j & ew & eb & ed).
  destruct (beside _ y _ _ (eq_sym (proj1 (proj1 (proj1 sy)))) ew) as [c' ec].
  assert (same' : value w b' == value w c') by (apply same_value, triple_at; exists j; auto).
  exists w, c', d'; split; [apply triple_at; exists j; auto|split; [lra|]]; rewrite <- same', <- e; exact le1.
Qed.

Lemma fair_alone y : max_min_fair m n y -> sensible m y /\ as_much m x y.
Proof.
  intros [sy fy]; destruct fair as [sx fx]; split; [exact sy|]; apply each_as_much; [apply sx|apply sy|].
  destruct (least_of (fun '(u, (b, c)) => value u c / normal m n u) (fun '(u, (b, c)) => lt (value u c) (value u b))
    (combine (users m) (combine x y))) as [none|([u [b c]] & i & less & least)].
  - intros u b c i; specialize (none _ i); cbv beta iota in none; apply lt_false; exact none.
  - exfalso; apply ltP in less.
    destruct (fy x sx u c b (proj1 (triple_swap m x y u b c) i) less) as (w & c1 & b1 & j & less1 & le1).
    apply triple_swap in j.
    destruct (fx y sy w b1 c1 j less1) as (w2 & b2 & c2 & k & less2 & le2).
    pose proof (least _ k (proj2 (ltP _ _) less2)) as le3; cbv beta iota in le3.
    assert (p2 : 0 < normal m n w2) by (apply positive; exact (in_combine_l _ _ _ _ k)).
    assert (p1 : 0 < normal m n w) by (apply positive; exact (in_combine_l _ _ _ _ j)).
    assert (value w2 c2 / normal m n w2 < value w2 b2 / normal m n w2) as s2.
    { apply Qmult_lt_compat_r; [apply Qinv_lt_0_compat; exact p2|exact less2]. }
    assert (value w b1 / normal m n w < value w c1 / normal m n w) as s1.
    { apply Qmult_lt_compat_r; [apply Qinv_lt_0_compat; exact p1|exact less1]. }
    lra.
Qed.
End Alone.

Definition levels_word : text := word "levels".
Definition optima_of_filling (m : market) (n : normaliser) (x : table) : optima :=
  optima_of_floors m (WaterFilling n) levels_word x.

Definition norms_positive (m : market) (n : normaliser) : bool :=
  let all := all_weight m in forallb (fun u => lt 0 (normal_now m all n u)) (users m).

Lemma optima_of_filling_ok m n x : valid m -> max_min_fair m n x -> norms_positive m n = true ->
  optima_fine (optima_of_filling m n x).
Proof.
  intros v f p; apply optima_of_floors_ok; [exact v|exact (fair_enough m n x f)|].
  apply (fair_alone m n x f); intros u i; unfold norms_positive in p; cbv zeta in p; rewrite forallb_forall in p.
  specialize (p u i); apply ltP in p; rewrite normal_now_ok in p; exact p.
Qed.
