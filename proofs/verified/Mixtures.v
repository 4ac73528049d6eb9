(** * Mixtures of two allocations: of what both reach, they reach a mixture *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies Decided Pareto Lies Lines.
Import ListNotations.
Local Open Scope Q_scope.

Definition mixed (a : Q) (b c : list Q) : list Q := map (fun '(p, q) => (1 - a) * p + a * q) (combine b c).
Definition mix (a : Q) (x y : table) : table := map (fun '(b, c) => mixed a b c) (combine x y).

Lemma dot_mixed a s : forall b c, List.length b = List.length c -> dot s (mixed a b c) == (1 - a) * dot s b + a * dot s c.
Proof.
  induction s as [|q s IH]; intros [|p b] [|r c] l; try discriminate; simpl; try ring.
  unfold mixed in IH; rewrite IH by (simpl in l; lia); ring.
Qed.
Lemma nth_mixed a b : forall c j, List.length b = List.length c ->
  nth j (mixed a b c) 0 == (1 - a) * nth j b 0 + a * nth j c 0.
Proof.
  induction b as [|p b IH]; intros [|r c] [|j] l; try discriminate; simpl; try ring. apply IH; simpl in l; lia.
Qed.
Lemma sum_mixed a b : forall c, List.length b = List.length c -> sum (mixed a b c) == (1 - a) * sum b + a * sum c.
Proof.
  induction b as [|p b IH]; intros [|r c] l; try discriminate; [unfold mixed; simpl; ring|].
  change (sum (mixed a (p :: b) (r :: c))) with ((1 - a) * p + a * r + sum (mixed a b c)).
  rewrite IH by (simpl in l; lia); simpl; fold (sum b); fold (sum c); ring.
Qed.
Lemma mixed_length a b c : List.length b = List.length c -> List.length (mixed a b c) = List.length b.
Proof. intro l; unfold mixed; rewrite map_length, combine_length, l; apply Nat.min_id. Qed.

Section Mix.
Variables (m : market) (a : Q) (x y : table).
Hypothesis va : valid m.
Hypothesis sx : sensible m x.
Hypothesis sy : sensible m y.
Hypothesis a0 : 0 <= a.
Hypothesis a1 : a <= 1.

Lemma row_lengths b c : In b x -> In c y -> List.length b = List.length c.
Proof. intros i j; rewrite (proj2 (proj1 (proj1 sx)) b i), (proj2 (proj1 (proj1 sy)) c j); reflexivity. Qed.

Lemma mix_at i d : nth_error (mix a x y) i = Some d -> exists b c, nth_error x i = Some b /\ nth_error y i = Some c /\
  d = mixed a b c.
Proof.
  unfold mix; rewrite nth_error_map; destruct (nth_error (combine x y) i) as [[b c]|] eqn:e; [|discriminate].
  apply nth_error_combine in e; destruct e as [e f]; intro h; injection h as <-; exists b, c; auto.
Qed.

Lemma has_mix u d : has m (mix a x y) u d -> exists b c, has m x u b /\ has m y u c /\ List.length b = List.length c /\
  d = mixed a b c.
Proof.
  intro h; destruct (has_at _ _ _ _ h) as (i & eu & ed); destruct (mix_at i d ed) as (b & c & eb & ec & ->).
  exists b, c; split; [exact (combine_has _ _ _ _ _ eu eb)|split; [exact (combine_has _ _ _ _ _ eu ec)|split; [|reflexivity]]].
  exact (row_lengths b c (nth_error_In _ _ eb) (nth_error_In _ _ ec)).
Qed.

Lemma value_mix u b c : List.length b = List.length c ->
  value u (mixed a b c) == (1 - a) * value u b + a * value u c.
Proof. intro l; apply dot_mixed; exact l. Qed.

Lemma mix_total_of (su : list (Q * user)) : List.length su = List.length x ->
  weighted_sum su (mix a x y) == (1 - a) * weighted_sum su x + a * weighted_sum su y.
Proof.
  intro l; assert (l' : List.length su = List.length y) by (rewrite l, (proj1 (proj1 (proj1 sx))); symmetry; apply sy).
  pose proof row_lengths as rows; clear -l l' rows; unfold weighted_sum, mix; revert x y l l' rows.
  induction su as [|[q u] su IH]; intros [|b x] [|c y] l l' rows; try discriminate; simpl; [ring|].
  fold (sum (map (fun '((q, u), b) => q * value u b) (combine su (map (fun '(b, c) => mixed a b c) (combine x y))))).
  rewrite IH by (simpl in *; try lia; intros; apply rows; right; assumption).
  rewrite value_mix by (apply rows; left; reflexivity); fold (sum (map (fun '((q, u), b) => q * value u b) (combine su x)));
    fold (sum (map (fun '((q, u), b) => q * value u b) (combine su y))); ring.
Qed.

Lemma given_mix j : given (mix a x y) j == (1 - a) * given x j + a * given y j.
Proof.
  assert (l : List.length x = List.length y) by (rewrite (proj1 (proj1 (proj1 sx))); symmetry; apply sy).
  pose proof row_lengths as rows; clear -l rows; unfold given, mix; revert l rows; generalize y; induction x as [|b x' IH];
    intros [|c y'] l rows; try discriminate; simpl; [ring|].
  fold (sum (map (fun b => nth j b 0) (map (fun '(b, c) => mixed a b c) (combine x' y')))).
  rewrite IH by (simpl in *; try lia; intros; apply rows; right; assumption).
  rewrite nth_mixed by (apply rows; left; reflexivity); fold (sum (map (fun b => nth j b 0) x'));
    fold (sum (map (fun b => nth j b 0) y')); ring.
Qed.

Lemma mix_sensible : sensible m (mix a x y).
Proof.
  destruct sx as [[[lx rx] [nx fx]] dx], sy as [[[ly ry] [ny fy]] dy].
  split; [split; [split|split]|].
  - unfold mix; rewrite map_length, combine_length, lx, ly; apply Nat.min_id.
  - intros d i; apply In_nth_error in i; destruct i as [i e]; destruct (mix_at i d e) as (b & c & eb & ec & ->).
    rewrite mixed_length by (exact (row_lengths b c (nth_error_In _ _ eb) (nth_error_In _ _ ec))).
    apply rx, (nth_error_In _ _ eb).
  - intros d q i k; apply In_nth_error in i; destruct i as [i e]; destruct (mix_at i d e) as (b & c & eb & ec & ->).
    unfold mixed in k; apply in_map_iff in k; destruct k as ([p r] & <- & k).
    pose proof (nx b p (nth_error_In _ _ eb) (in_combine_l _ _ _ _ k)).
    pose proof (ny c r (nth_error_In _ _ ec) (in_combine_r _ _ _ _ k)); nra.
  - intros j h; rewrite given_mix; pose proof (fx j h); pose proof (fy j h); nra.
  - intros u d h; destruct (has_mix u d h) as (b & c & hb & hc & l & ->).
    destruct (dx u b hb) as [zb wb], (dy u c hc) as [zc wc]; split.
    + intros j hj z; rewrite nth_mixed, (zb j hj z), (zc j hj z) by exact l; ring.
    + destruct (demand u); [|exact I]; rewrite sum_mixed by exact l; nra.
Qed.

Lemma mix_within g p e0 e1 v0 v1 : within_by m g p e0 x v0 -> within_by m g p e1 y v1 ->
  within_by m g p ((1 - a) * e0 + a * e1) (mix a x y) ((1 - a) * v0 + a * v1).
Proof.
  intros (_ & gx & px) (_ & gy & py); split; [exact mix_sensible|split].
  - destruct g; simpl in *.
    + pose proof (mix_total_of (alike 1 m)) as h; rewrite !sum_alike in h.
      assert (List.length (alike 1 m) = List.length x) as l by (unfold alike; rewrite map_length; symmetry; apply sx).
      specialize (h l); rewrite gx, gy in h; lra.
    + intros u d h; destruct (has_mix u d h) as (b & c & hb & hc & l & ->); rewrite value_mix by exact l.
      pose proof (gx u b hb); pose proof (gy u c hc); nra.
  - destruct p; simpl in *.
    + intros u d v d' h h'; destruct (has_mix u d h) as (b & c & hb & hc & l & ->).
      destruct (has_mix v d' h') as (b' & c' & hb' & hc' & l' & ->); rewrite !value_mix by assumption.
      pose proof (px u b v b' hb hb'); pose proof (py u c v c' hc hc').
      set (w := weight u / weight v) in *; nra.
    + intros u d h; destruct (has_mix u d h) as (b & c & hb & hc & l & ->); rewrite value_mix by exact l.
      pose proof (px u b hb); pose proof (py u c hc); nra.
    + destruct px as [l0 px], py as [l1 py]; exists ((1 - a) * l0 + a * l1).
      intros u d h; destruct (has_mix u d h) as (b & c & hb & hc & l & ->); rewrite value_mix by exact l.
      destruct (px u b hb), (py u c hc); set (mean := sum _ / _) in *; split; nra.
    + exact I.
Qed.
End Mix.

Lemma within_eq m g p e e' y v v' : e == e' -> v == v' -> within_by m g p e y v -> within_by m g p e' y v'.
Proof.
  intros ee ev (s & gy & py); split; [exact s|split].
  - destruct g; simpl in *; [rewrite <- ev; exact gy|intros u b i; rewrite <- ev; exact (gy u b i)].
  - destruct p; simpl in *; [intros; rewrite <- ee; auto|intros; rewrite <- ee; auto| |exact I].
    destruct py as [l py]; exists l; intros u b i; rewrite <- ee; exact (py u b i).
Qed.

Lemma mean_nonneg m : valid m -> 0 <= sum (map (fair_share m) (users m)) / total_weight m.
Proof.
  intro va; assert (0 <= sum (map (fair_share m) (users m))).
  { apply sum_nonneg; intros u i; apply Qlt_le_weak, va; exact i. }
  assert (0 < total_weight m).
  { unfold total_weight; destruct va as (ne & _ & _ & _ & all); destruct (users m) as [|u us]; [congruence|].
    pose proof (proj1 (proj2 (proj2 (all u (or_introl eq_refl))))) as w; simpl.
    assert (0 <= sum (map weight us)) by (apply sum_nonneg; intros v i; apply Qlt_le_weak, all; right; exact i).
    unfold sum in *; lra. }
  apply Qle_shift_div_l; lra.
Qed.

Lemma within_more m g p e e' y v : valid m -> e <= e' -> within_by m g p e y v -> within_by m g p e' y v.
Proof.
  intros va le (s & gy & py); split; [exact s|split; [exact gy|]].
  assert (fair : forall u b, has m y u b -> 0 < fair_share m u) by (intros u b i; apply va; exact (in_combine_l _ _ _ _ i)).
  destruct p; simpl in *.
  - intros u b w c i j; pose proof (py u b w c i j); pose proof (fair u b i); nra.
  - intros u b i; pose proof (py u b i); pose proof (fair u b i); nra.
  - destruct py as [l py]; exists l; intros u b i; destruct (py u b i) as [h k]; split; [exact h|].
    pose proof (mean_nonneg m va) as mean; set (q := sum _ / _) in *.
    assert (0 < weight u) by (apply va; exact (in_combine_l _ _ _ _ i)).
    assert (0 <= weight u * q) by (apply Qmult_le_0_compat; lra); nra.
  - exact I.
Qed.
