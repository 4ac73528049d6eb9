(** * How far a number may be from the mean: bounds on products, in the place of logarithms

    log t <= (t - 1) - (1 - t)^2 / 2 where t < 1, and log t <= (t - 1) - (t - 1)^2 / (2 t) where t > 1.  Here log t <= l
    is t <= (1 + l / n)^n for some n: these powers grow with n, to e^l. *)

From Coq Require Import List QArith Qround Lqa Lia.
From Verified Require Import Syntax Meaning Sums Markets Means.
Import ListNotations.
Local Open Scope Q_scope.

Lemma many_0 : many 0 == 0.
Proof. reflexivity. Qed.
Lemma many_nonneg n : 0 <= many n.
Proof. unfold many; change 0 with (inject_Z 0); rewrite <- Zle_Qle; lia. Qed.
Lemma many_pos n : (0 < n)%nat -> 0 < many n.
Proof. intro p; unfold many; change 0 with (inject_Z 0); rewrite <- Zlt_Qlt; lia. Qed.
Lemma many_times a b : many (a * b) == many a * many b.
Proof. unfold many; rewrite Nat2Z.inj_mul, inject_Z_mult; reflexivity. Qed.
Lemma many_plus a b : many (a + b) == many a + many b.
Proof. unfold many; rewrite Nat2Z.inj_add, inject_Z_plus; reflexivity. Qed.

Lemma beyond (q : Q) : exists n, (2 <= n)%nat /\ q <= many n.
Proof.
  exists (Z.to_nat (Z.max 2 (Qceiling q))); split; [lia|]; unfold many; rewrite Z2Nat.id by lia.
  eapply Qle_trans; [apply Qle_ceiling|]; rewrite <- Zle_Qle; lia.
Qed.

Lemma power_le a b k : 0 <= a -> a <= b -> 0 <= power a k <= power b k.
Proof. intros p h; induction k; simpl; [lra|]; nra. Qed.
Lemma power_more a n k : power a (k * n) == power (power a n) k.
Proof.
  assert (plus : forall i j, power a (i + j) == power a i * power a j).
  { intros i j; induction i; simpl; [ring|]; rewrite IHi; ring. }
  induction k; simpl; [reflexivity|]; rewrite plus, IHk; reflexivity.
Qed.

(** ** The first terms of a power *)
Lemma power_up x n : 0 <= x -> 1 + many n * x + many n * (many n - 1) * (x * x) * (1 # 2) <= power (1 + x) n.
Proof.
  intro p; induction n as [|n IH]; [rewrite many_0; simpl; lra|].
  rewrite many_S; simpl; pose proof (many_nonneg n) as np; set (N := many n) in *.
  eapply Qle_trans; [|apply Qmult_le_l with (z := 1 + x) in IH; [exact IH|lra]].
  assert (0 <= N * (N - 1)).
  { destruct n; [unfold N; rewrite many_0; lra|]; unfold N; rewrite many_S; pose proof (many_nonneg n); nra. }
  assert (0 <= N * (N - 1) * (x * x * x)) by (apply Qmult_le_0_compat; [assumption|repeat apply Qmult_le_0_compat;
    assumption]).
  lra.
Qed.

Lemma three_nonneg n : 0 <= many n * (many n - 1) * (many n - 2).
Proof.
  destruct n as [|[|n]]; [rewrite many_0; lra|rewrite many_S, many_0; lra|].
  rewrite !many_S; pose proof (many_nonneg n); set (N := many n) in *.
  setoid_replace ((1 + (1 + N)) * (1 + (1 + N) - 1) * (1 + (1 + N) - 2)) with ((1 + (1 + N)) * (1 + N) * N) by ring.
  apply Qmult_le_0_compat; [nra|assumption].
Qed.

Lemma power_down y n : 0 <= y -> y <= 1 ->
  1 - many n * y + many n * (many n - 1) * (y * y) * (1 # 2) - many n * (many n - 1) * (many n - 2) * (y * y * y) * (1
    # 6)
    <= power (1 - y) n.
Proof.
  intros p q; induction n as [|n IH]; [rewrite many_0; simpl; lra|].
  pose proof (three_nonneg n) as t; rewrite many_S; simpl; set (N := many n) in *.
  assert (0 <= N * (N - 1) * (N - 2) * (y * y * y * y)) by (apply Qmult_le_0_compat;
    [assumption|repeat apply Qmult_le_0_compat; assumption]).
  assert (h : (1 - y) * (1 - N * y + N * (N - 1) * (y * y) * (1 # 2) - N * (N - 1) * (N - 2) * (y * y * y) * (1 # 6))
               <= (1 - y) * power (1 - y) n).
  { rewrite !(Qmult_comm (1 - y)); apply Qmult_le_compat_r; [exact IH|lra]. }
  eapply Qle_trans; [|exact h]. lra.
Qed.

(** ** Bounds on logarithms *)
Definition log_at_most (t l : Q) : Prop := exists n, (0 < n)%nat /\ 0 <= 1 + l / many n /\
  t <= power (1 + l / many n) n.

Lemma log_above t : 1 < t -> log_at_most t ((t - 1) - (t - 1) * (t - 1) / (2 * t)).
Proof.
  intro p; set (e := t - 1) in *; assert (e0 : 0 < e) by (unfold e; lra).
  assert (te : t == 1 + e) by (unfold e; ring).
  set (L := e - e * e / (2 * t)).
  assert (Le : L == e * (2 + e) / (2 * (1 + e))) by (unfold L; rewrite te; field; lra).
  destruct (beyond (4 * (1 + e / 2) * (1 + e / 2) / (e * e))) as (n & n2 & big).
  assert (n0 : 0 < many n) by (apply many_pos; lia).
  assert (L0 : 0 < L) by (rewrite Le; apply Qlt_shift_div_l; nra).
  exists n; split; [lia|split].
  - assert (0 < L / many n) by (apply Qlt_shift_div_l; lra); lra.
  - eapply Qle_trans; [|apply power_up; apply Qle_shift_div_l; lra].
    assert (many n * (L / many n) == L) as -> by (field; lra).
    assert (many n * (many n - 1) * (L / many n * (L / many n)) * (1 # 2) == L * L / 2 - L * L / (2 * many n)) as ->
      by (field; lra).
    assert (sq : L * L == e * e * ((2 + e) * (2 + e)) / (4 * ((1 + e) * (1 + e)))) by (rewrite Le; field; lra).
    assert (small : L * L / (2 * many n) <= e * e * (e * e) / (8 * ((1 + e) * (1 + e)))).
    { apply Qle_shift_div_r; [lra|]; rewrite sq.
      assert (b : (2 + e) * (2 + e) <= many n * (e * e)).
      { assert (x : 4 * (1 + e / 2) * (1 + e / 2) / (e * e) * (e * e) <= many n * (e * e)).
        { apply Qmult_le_compat_r; [exact big|nra]. }
        setoid_replace (4 * (1 + e / 2) * (1 + e / 2) / (e * e) * (e * e)) with ((2 + e) * (2 + e)) in x by (field;
          lra).
        exact x. }
      setoid_replace (e * e * (e * e) / (8 * ((1 + e) * (1 + e))) * (2 * many n))
        with (e * e * (many n * (e * e)) / (4 * ((1 + e) * (1 + e)))) by (field; lra).
      unfold Qdiv; apply Qmult_le_compat_r; [|apply Qinv_le_0_compat; nra].
      assert (0 < e * e) by nra; apply Qmult_le_l; assumption. }
    assert (is : 1 + L + (L * L / 2 - e * e * (e * e) / (8 * ((1 + e) * (1 + e)))) == t).
    { rewrite sq, Le, te; field; lra. }
    lra.
Qed.

Lemma log_below t : 0 <= t -> t < 1 -> log_at_most t ((t - 1) - (1 - t) * (1 - t) / 2).
Proof.
  intros t0 t1; set (d := 1 - t); assert (d0 : 0 < d) by (unfold d; lra); assert (d1 : d <= 1) by (unfold d; lra).
  set (l := d + d * d * (1 # 2)).
  assert (neg : t - 1 - d * d / 2 == - l) by (unfold l, d; field).
  destruct (beyond (18 / d)) as (n & n2 & big). assert (n0 : 0 < many n) by (apply many_pos; lia).
  assert (nn : 2 <= many n) by (unfold many; change 2 with (inject_Z 2); rewrite <- Zle_Qle; lia).
  assert (dd : 0 < d * d /\ d * d <= d) by nra.
  assert (l0 : 0 < l) by (unfold l; lra). assert (l15 : l <= (3 # 2) * d) by (unfold l; lra).
  assert (y : 0 <= l / many n /\ l / many n <= 1).
  { split; [apply Qle_shift_div_l; lra|apply Qle_shift_div_r; [lra|]]. lra. }
  assert (e : 1 + (t - 1 - d * d / 2) / many n == 1 - l / many n) by (rewrite neg; field; lra).
  exists n; split; [lia|split]; [rewrite e; lra|].
  rewrite (power_equal _ _ n e).
  eapply Qle_trans; [|apply power_down; lra].
  assert (many n * (l / many n) == l) as -> by (field; lra).
  assert (many n * (many n - 1) * (l / many n * (l / many n)) * (1 # 2) == l * l * (1 # 2) - l * l / (2 * many n)) as ->
    by (field; lra).
  assert (c : many n * (many n - 1) * (many n - 2) * (l / many n * (l / many n) * (l / many n)) * (1 # 6) <= l * l * l
    * (1 # 6)).
  { setoid_replace (many n * (many n - 1) * (many n - 2) * (l / many n * (l / many n) * (l / many n)) * (1 # 6))
      with ((many n - 1) * (many n - 2) * (l * l * l) / (6 * (many n * many n))) by (field; lra).
    apply Qle_shift_div_r; [nra|].
    setoid_replace (l * l * l * (1 # 6) * (6 * (many n * many n))) with (many n * many n * (l * l * l)) by field.
    apply Qmult_le_compat_r; [nra|]. apply Qmult_le_0_compat; [nra|lra]. }
  assert (small : l * l / (2 * many n) <= d * d * d * (1 # 16)).
  { apply Qle_shift_div_r; [lra|].
    assert (b : 18 <= many n * d).
    { assert (x : 18 / d * d <= many n * d) by (apply Qmult_le_compat_r; lra).
      setoid_replace (18 / d * d) with 18 in x by (field; lra); exact x. }
    assert (l * l <= (9 # 4) * (d * d)).
    { assert (l * l <= (3 # 2) * d * l) by (apply Qmult_le_compat_r; lra).
      assert (l * d <= (3 # 2) * d * d) by (apply Qmult_le_compat_r; lra). lra. }
    setoid_replace (d * d * d * (1 # 16) * (2 * many n)) with (many n * d * (d * d) * (1 # 8)) by field.
    assert (0 < d * d) by nra. assert (18 * (d * d) <= many n * d * (d * d)) by (apply Qmult_le_compat_r; lra). lra. }
  assert (poly : d * d * d * (1 # 16) <= d - l + (l * l * (1 # 2) - l * l * l * (1 # 6))).
  { setoid_replace (d - l + (l * l * (1 # 2) - l * l * l * (1 # 6)))
      with (d * d * d * (1 # 3) - d * d * d * d * (1 # 8) - d * d * d * d * d * (1 # 8) - d * d * d * d * d * d * (1 #
        48))
      by (unfold l; field).
    assert (d3 : 0 < d * d * d) by (apply Qmult_lt_0_compat; nra).
    assert (d * d * d * d <= d * d * d) by nra.
    assert (0 < d * d * d * d) by nra. assert (d * d * d * d * d <= d * d * d) by nra.
    assert (0 < d * d * d * d * d) by nra. assert (d * d * d * d * d * d <= d * d * d) by nra. lra. }
  assert (td : t == 1 - d) by (unfold d; ring). lra.
Qed.

(** ** Products *)
Lemma product_times c l : product (map (fun q => c * q) l) == power c (length l) * product l.
Proof. induction l as [|q l IH]; simpl; [ring|]; rewrite IH; ring. Qed.

(** Nothing has a product beyond that of as many numbers alike with the same sum. *)
Lemma product_at_most s l : 0 < s -> (forall q, In q l -> 0 <= q) -> sum l <= s * many (length l) ->
  product l <= power s (length l).
Proof.
  intros p nn h. destruct (mean_product (length l) (map (fun q => / s * q) l)) as [le _].
  - apply map_length.
  - intros q i; apply in_map_iff in i; destruct i as (r & <- & i); apply Qmult_le_0_compat; [apply Qinv_le_0_compat;
    lra|
      exact (nn r i)].
  - rewrite (sum_times (/ s) (fun q => q)), map_id.
    apply (Qmult_le_l _ _ s p); rewrite Qmult_assoc, Qmult_inv_r, Qmult_1_l by lra; exact h.
  - rewrite product_times in le; pose proof (power_pos s (length l) p) as pp.
    assert (one : power s (length l) * power (/ s) (length l) == 1).
    { rewrite <- power_times, (power_equal _ 1) by (field; lra); clear; induction (length l) as [|n IH]; simpl;
      [reflexivity|]; rewrite IH; ring. }
    assert (product l == power s (length l) * (power (/ s) (length l) * product l)) as -> by (rewrite Qmult_assoc,
      one; ring).
    nra.
Qed.

Lemma product_below l : (forall q, In q l -> 0 <= q) -> sum l < many (length l) -> product l < 1.
Proof.
  intros nn h; destruct (mean_product (length l) l eq_refl nn ltac:(lra)) as [le eq].
  destruct (Qlt_le_dec (product l) 1) as [|big]; [assumption|exfalso].
  specialize (eq big). assert (sum l == many (length l)); [|lra].
  clear -eq; induction l as [|q l IH]; [reflexivity|]; simpl; fold (sum l).
  rewrite (eq q (or_introl eq_refl)), IH by (intros r i; apply eq; right; exact i); rewrite many_S; reflexivity.
Qed.

Lemma powers_of_split ks1 k ks2 ts1 t ts2 : length ks1 = length ts1 ->
  powers_of (ks1 ++ k :: ks2) (ts1 ++ t :: ts2) == power t k * (powers_of ks1 ts1 * powers_of ks2 ts2).
Proof.
  intro l; rewrite <- !flat_product; revert ts1 l; induction ks1 as [|k1 ks1 IH]; intros [|t1 ts1] l; try discriminate.
  - cbn [app flat]; rewrite product_app, product_repeat; change (product []) with 1; ring.
  - cbn [app flat]; rewrite !product_app, IH by (simpl in l; lia); ring.
Qed.

Lemma dot_split ks1 k ks2 ts1 t ts2 : length ks1 = length ts1 ->
  dot (map many (ks1 ++ k :: ks2)) (ts1 ++ t :: ts2) ==
  many k * t + (dot (map many ks1) ts1 + dot (map many ks2) ts2).
Proof.
  revert ts1; induction ks1 as [|k1 ks1 IH]; intros [|t1 ts1] l; try discriminate; simpl; [ring|].
  rewrite IH by (simpl in l; lia); ring.
Qed.

Lemma sum_split ks1 k ks2 : sum (map many (ks1 ++ k :: ks2)) == many k + (sum (map many ks1) + sum (map many ks2)).
Proof. rewrite map_app, sum_app; simpl; ring. Qed.

(** Where one of the numbers is so far from 1 that the others cannot make up for it, the product is below 1. *)
Theorem product_far ks ts rs j k t l : length ks = length ts -> length ks = length rs ->
  (forall q, In q ts -> 0 <= q) -> (forall q, In q rs -> 0 <= q) ->
  nth_error ks j = Some k -> nth_error ts j = Some t -> log_at_most t l ->
  dot (map many ks) ts + dot (map many ks) rs + many k * (l - (t - 1)) < 2 * sum (map many ks) ->
  powers_of ks ts * powers_of ks rs < 1.
Proof.
  intros lt lr tn rn ek et (n & n0 & fn & le) h.
  destruct (nth_error_split _ _ ek) as (ks1 & ks2 & -> & l1); destruct (nth_error_split _ _ et) as (ts1 & ts2 & ->
    & l2).
  assert (len1 : length ks1 = length ts1) by lia.
  assert (len2 : length ks2 = length ts2) by (rewrite !app_length in lt; simpl in lt; lia).
  set (f := 1 + l / many n) in *.
  set (all := flat ks1 ts1 ++ (repeat f (k * n) ++ (flat ks2 ts2 ++ flat (ks1 ++ k :: ks2) rs))).
  assert (pos : forall q, In q all -> 0 <= q).
  { intros q i; unfold all in i; rewrite !in_app_iff in i; destruct i as [i|[i|[i|i]]].
    - apply tn, in_app_iff; left; exact (in_flat_inv _ _ _ i).
    - apply repeat_spec in i; subst q; exact fn.
    - apply tn, in_app_iff; right; right; exact (in_flat_inv _ _ _ i).
    - apply rn; exact (in_flat_inv _ _ _ i). }
  assert (kn : many (k * n) * f == many (k * n) + many k * l).
  { unfold f; rewrite many_times; pose proof (many_pos n n0); field; lra. }
  assert (less : product all < 1).
  { apply product_below; [exact pos|]. unfold all; rewrite !sum_app, !app_length, !many_plus, repeat_length, sum_repeat.
    rewrite (flat_sum ks1 ts1 len1), (flat_sum ks2 ts2 len2), (flat_sum _ rs lr).
    rewrite (flat_length ks1 ts1 len1), (flat_length ks2 ts2 len2), (flat_length _ rs lr), kn.
    rewrite (dot_split ks1 k ks2 ts1 t ts2 len1) in h; rewrite sum_split in h |- *.
    set (D := dot (map many (ks1 ++ k :: ks2)) rs) in *; lra. }
  assert (is : product all == power (power f n) k * (powers_of ks1 ts1 * powers_of ks2 ts2) * powers_of (ks1 ++ k ::
    ks2) rs).
  { unfold all; rewrite !product_app, product_repeat, !flat_product, power_more; ring. }
  rewrite is in less; eapply Qle_lt_trans; [|exact less].
  rewrite powers_of_split by exact len1.
  assert (nn : forall ks ts, (forall q, In q ts -> 0 <= q) -> 0 <= powers_of ks ts).
  { intros ks0 ts0 nn; rewrite <- flat_product; apply product_nonneg; intros q i; exact (nn q (in_flat_inv _ _ _ i)). }
  assert (t0 : 0 <= t) by (apply tn, in_app_iff; right; left; reflexivity).
  pose proof (nn (ks1 ++ k :: ks2) rs rn). assert (0 <= powers_of ks1 ts1) by (apply nn; intros q i; apply tn,
    in_app_iff; auto).
  assert (0 <= powers_of ks2 ts2) by (apply nn; intros q i; apply tn, in_app_iff; right; right; exact i).
  apply Qmult_le_compat_r; [|assumption]; apply Qmult_le_compat_r; [|apply Qmult_le_0_compat; assumption].
  apply (power_le t (power f n) k t0 le).
Qed.
