(** * A product is at most 1 where the mean is: what proves that an equilibrium maximises Nash welfare *)

From Coq Require Import List QArith Lqa Lia Permutation.
From Verified Require Import Syntax Meaning Sums Markets.
Import ListNotations.
Local Open Scope Q_scope.

Lemma sum_permutation a b : Permutation a b -> sum a == sum b.
Proof.
  induction 1; simpl; try reflexivity; [rewrite IHPermutation; reflexivity|ring|].
  rewrite IHPermutation1; exact IHPermutation2.
Qed.
Lemma product_permutation a b : Permutation a b -> product a == product b.
Proof.
  induction 1; simpl; try reflexivity; [rewrite IHPermutation; reflexivity|ring|].
  rewrite IHPermutation1; exact IHPermutation2.
Qed.
Lemma product_app a b : product (a ++ b) == product a * product b.
Proof. induction a as [|x a IH]; simpl; [ring|]; rewrite IH; ring. Qed.

Definition many (n : nat) : Q := inject_Z (Z.of_nat n).
Lemma many_S n : many (S n) == 1 + many n.
Proof. unfold many; rewrite Nat2Z.inj_succ, <- Z.add_1_l, inject_Z_plus; reflexivity. Qed.

Lemma product_nonneg l : (forall q, In q l -> 0 <= q) -> 0 <= product l.
Proof.
  induction l as [|q l IH]; simpl; intro h; [lra|].
  pose proof (h q (or_introl eq_refl)); pose proof (IH (fun q i => h q (or_intror i))); nra.
Qed.

(** None above 1: the product is at most 1, and 1 only if all are. *)
Lemma product_small l : (forall q, In q l -> 0 <= q <= 1) -> product l <= 1 /\ (1 <= product l -> forall q, In q l ->
  q == 1).
Proof.
  induction l as [|q l IH]; simpl; intro h; [split; [lra|intros _ q []]|].
  destruct (h q (or_introl eq_refl)) as [q0 q1].
  destruct (IH (fun q i => h q (or_intror i))) as [le eq].
  pose proof (product_nonneg l (fun q i => proj1 (h q (or_intror i)))) as p0.
  split; [nra|]; intros big r [<-|i]; [nra|apply eq; [nra|exact i]].
Qed.

Lemma find_first (f : Q -> bool) l : (exists q l', f q = true /\ Permutation l (q :: l')) \/ forall q, In q l ->
  f q = false.
Proof.
  induction l as [|a l IH]; [right; intros q []|].
  destruct (f a) eqn:e; [left; exists a, l; auto|].
  destruct IH as [(q & l' & h & p)|h].
  - left; exists q, (a :: l'); split; [exact h|]. rewrite p; apply perm_swap.
  - right; intros q [<-|i]; [exact e|exact (h q i)].
Qed.

Lemma sum_big l : (forall q, In q l -> 1 <= q) -> many (length l) <= sum l.
Proof.
  induction l as [|q l IH]; simpl; intro h; [exact (Qle_refl 0)|].
  pose proof (h q (or_introl eq_refl)); pose proof (IH (fun q i => h q (or_intror i))).
  pose proof (many_S (length l)); unfold sum in *; lra.
Qed.

Lemma mean_product n : forall l, length l = n -> (forall q, In q l -> 0 <= q) -> sum l <= many n ->
  product l <= 1 /\ (1 <= product l -> forall q, In q l -> q == 1).
Proof.
  induction n as [|n IH]; intros l len p s; [destruct l; [|discriminate]; simpl; split; [lra|intros _ q []]|].
  destruct (find_first (lt 1) l) as [(a & l1 & a1 & pa)|none].
  2: { apply product_small; intros q i; split; [exact (p q i)|apply lt_false, none, i]. }
  apply ltP in a1. destruct (find_first (fun q => lt q 1) l1) as [(b & l2 & b1 & pb)|none].
  2: { exfalso. pose proof (sum_permutation _ _ pa) as e; simpl in e.
       assert (h : many (length l1) <= sum l1) by (apply sum_big; intros q i; apply lt_false, (none q i)).
       apply Permutation_length in pa; simpl in pa; assert (length l1 = n) as L by lia; rewrite L in h.
       pose proof (many_S n); unfold sum in *; lra. }
  apply ltP in b1.
  assert (pl : Permutation l (a :: b :: l2)) by (rewrite pa; constructor; exact pb).
  assert (nn : forall q, In q (a :: b :: l2) -> 0 <= q) by (intros q i; apply p;
    exact (Permutation_in _ (Permutation_sym pl) i)).
  pose proof (nn b (or_intror (or_introl eq_refl))) as b0.
  pose proof (sum_permutation _ _ pl) as es; pose proof (product_permutation _ _ pl) as ep; simpl in es, ep.
  pose proof (product_nonneg l2 (fun q i => nn q (or_intror (or_intror i)))) as p2.
  assert (len2 : length ((a + b - 1) :: l2) = n) by (apply Permutation_length in pl; simpl in *; lia).
  destruct (IH ((a + b - 1) :: l2) len2) as [le eq].
  - intros q [<-|i]; [lra|apply nn; right; right; exact i].
  - simpl; pose proof (many_S n); unfold sum in *; lra.
  - simpl in le. fold (product l2) in *. assert (ab : a * b <= a + b - 1) by nra.
    assert (ab' : a * b * product l2 <= (a + b - 1) * product l2) by nra.
    split; [nra|]; intro big; exfalso.
    assert (big' : 1 <= product ((a + b - 1) :: l2)) by (simpl; fold (product l2); nra).
    pose proof (eq big' (a + b - 1) (or_introl eq_refl)) as one.
    simpl in big'; fold (product l2) in big'.
    assert (product l2 <= 1) as small by nra. nra.
Qed.

(** ** With powers *)

Fixpoint flat (ks : list nat) (rs : list Q) : list Q :=
  match ks, rs with k :: ks, r :: rs => repeat r k ++ flat ks rs | _, _ => [] end.

Definition powers_of (ks : list nat) (vs : list Q) : Q := product (map (fun '(k, v) => power v k) (combine ks vs)).

Lemma sum_repeat r k : sum (repeat r k) == many k * r.
Proof. induction k; simpl; [unfold many; simpl; ring|]; fold (sum (repeat r k)); rewrite IHk, many_S; ring. Qed.
Lemma product_repeat r k : product (repeat r k) == power r k.
Proof. induction k; simpl; [reflexivity|]; fold (product (repeat r k)); rewrite IHk; reflexivity. Qed.

Lemma power_times a b k : power (a * b) k == power a k * power b k.
Proof. induction k; simpl; [ring|]; rewrite IHk; ring. Qed.
Lemma power_equal a b k : a == b -> power a k == power b k.
Proof. intro e; induction k; simpl; [reflexivity|]; apply Qmult_comp; assumption. Qed.
Lemma power_pos a k : 0 < a -> 0 < power a k.
Proof. intro p; induction k; simpl; [lra|nra]. Qed.

Lemma flat_sum ks : forall rs, length ks = length rs -> sum (flat ks rs) == dot (map many ks) rs.
Proof.
  induction ks as [|k ks IH]; intros [|r rs] l; try discriminate; [reflexivity|].
  simpl; rewrite sum_app, sum_repeat, IH by (simpl in l; lia); reflexivity.
Qed.
Lemma flat_length ks : forall rs, length ks = length rs -> many (length (flat ks rs)) == sum (map many ks).
Proof.
  induction ks as [|k ks IH]; intros [|r rs] l; try discriminate; [reflexivity|].
  simpl; fold (sum (map many ks)); rewrite app_length, repeat_length, <- (IH rs) by (simpl in l; lia).
  unfold many; rewrite Nat2Z.inj_add, inject_Z_plus; reflexivity.
Qed.
Lemma flat_product ks : forall rs, product (flat ks rs) == powers_of ks rs.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros [|r rs]; simpl; try reflexivity.
  rewrite product_app, product_repeat, IH; reflexivity.
Qed.

(** Each number over another. *)
Fixpoint over (a b : list Q) : list Q := match a, b with x :: a, y :: b => x / y :: over a b | _, _ => [] end.

Lemma powers_over ks : forall vy vx, length vy = length vx -> (forall q, In q vx -> 0 < q) ->
  powers_of ks vy == powers_of ks (over vy vx) * powers_of ks vx.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros [|y vy] [|x vx] l p; try discriminate; simpl; try ring.
  fold (product (map (fun '(k, v) => power v k) (combine ks vy))) (product (map (fun '(k, v) =>
    power v k) (combine ks vx)))
    (product (map (fun '(k, v) => power v k) (combine ks (over vy vx)))).
  rewrite (IH vy vx) by (try (intros q i; apply p; right; exact i); simpl in l; lia).
  pose proof (p x (or_introl eq_refl)).
  assert (power y k == power (y / x) k * power x k) as ->; [|ring].
  rewrite <- power_times; apply power_equal; field; lra.
Qed.

Lemma powers_pos ks : forall vs, (forall q, In q vs -> 0 < q) -> 0 < powers_of ks vs.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros [|v vs] p; simpl; try lra.
  pose proof (power_pos v k (p v (or_introl eq_refl))); pose proof (IH vs (fun q i => p q (or_intror i))).
  unfold product in *; nra.
Qed.

Lemma over_length a : forall b, length a = length b -> length (over a b) = length a.
Proof. induction a as [|x a IH]; intros [|y b] l; try discriminate; [reflexivity|]; simpl in *; rewrite IH by lia;
  reflexivity. Qed.

Lemma in_over a : forall b q, (forall x, In x a -> 0 <= x) -> (forall x, In x b -> 0 < x) -> In q (over a b) -> 0 <= q.
Proof.
  induction a as [|x a IH]; intros [|y b] q ha hb i; try contradiction.
  destruct i as [<-|i]; [|exact (IH b q (fun x i => ha x (or_intror i)) (fun x i => hb x (or_intror i)) i)].
  pose proof (ha x (or_introl eq_refl)); pose proof (hb y (or_introl eq_refl)); apply Qle_shift_div_l; lra.
Qed.

Lemma in_flat ks : forall rs j k r, nth_error ks j = Some (S k) -> nth_error rs j = Some r -> In r (flat ks rs).
Proof.
  induction ks as [|k0 ks IH]; intros [|r0 rs] [|j] k r ek er; try discriminate; simpl in *; apply in_or_app.
  - injection ek as ->; injection er as ->; left; left; reflexivity.
  - right; exact (IH rs j k r ek er).
Qed.

Lemma in_flat_inv ks : forall rs q, In q (flat ks rs) -> In q rs.
Proof.
  induction ks as [|k ks IH]; intros [|r rs] q i; try contradiction; simpl in i; apply in_app_or in i;
    destruct i as [i|i].
  - left; symmetry; exact (repeat_spec _ _ _ i).
  - right; exact (IH rs q i).
Qed.

Lemma nth_over a : forall b j x y, nth_error a j = Some x -> nth_error b j = Some y ->
  nth_error (over a b) j = Some (x / y).
Proof.
  induction a as [|x0 a IH]; intros [|y0 b] [|j] x y ea eb; try discriminate; simpl in *.
  - injection ea as ->; injection eb as ->; reflexivity.
  - exact (IH b j x y ea eb).
Qed.

(** The product of powers of [vy] is at most that of [vx]; if it is as large, they are the same. *)
Theorem mean_of_powers ks vy vx : length ks = length vx -> length vy = length vx ->
  (forall q, In q vy -> 0 <= q) -> (forall q, In q vx -> 0 < q) ->
  dot (map many ks) (over vy vx) <= sum (map many ks) ->
  powers_of ks vy <= powers_of ks vx /\
  (powers_of ks vx <= powers_of ks vy -> forall j k x y, nth_error ks j = Some (S k) ->
    nth_error vy j = Some y -> nth_error vx j = Some x -> y == x).
Proof.
  intros lk lv py px le. assert (lo : length ks = length (over vy vx)) by (rewrite over_length; congruence).
  pose proof (powers_pos ks vx px) as pos; pose proof (powers_over ks vy vx lv px) as e.
  destruct (mean_product (length (flat ks (over vy vx))) (flat ks (over vy vx)) eq_refl) as [small one].
  - intros q i; apply in_flat_inv in i; exact (in_over vy vx q py px i).
  - rewrite flat_sum, flat_length by exact lo; exact le.
  - rewrite flat_product in small, one; split; [nra|]; intros big j k x y ek ey ex.
    assert (x0 := px x (nth_error_In _ _ ex)).
    assert (y / x == 1) as h.
    { apply one; [|exact (in_flat _ _ _ _ _ ek (nth_over _ _ _ _ _ ey ex))].
      rewrite e in big; set (P := powers_of ks (over vy vx)) in *; set (R := powers_of ks vx) in *; nra. }
    assert (y == y / x * x) as -> by (field; lra). rewrite h; ring.
Qed.
