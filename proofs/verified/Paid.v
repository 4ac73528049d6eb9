(** * What all throughputs cost at most, at prices of GPUs and of rights to use one more *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Optima.
Import ListNotations.
Local Open Scope Q_scope.

(** ** What throughput costs *)

(** The least that a unit costs on a type that there is: price and demand dual over the speedup. *)
Fixpoint cheapest (dual : Q) (prices cap s : list Q) : option Q :=
  match prices, cap, s with
  | p :: prices, c :: cap, v :: s =>
    let rest := cheapest dual prices cap s in
    if nothing v || nothing c then rest
    else let cost := mul (add p dual) (/ v) in
         Some match rest with Some r => smaller cost r | None => cost end
  | _, _, _ => None
  end.

Lemma dot_nonneg a : forall b, (forall q, In q a -> 0 <= q) -> (forall q, In q b -> 0 <= q) -> 0 <= dot a b.
Proof.
  induction a as [|x a IH]; intros [|y b] pa pb; simpl; try lra.
  pose proof (pa x (or_introl eq_refl)); pose proof (pb y (or_introl eq_refl)).
  pose proof (IH b (fun q i => pa q (or_intror i)) (fun q i => pb q (or_intror i))); nra.
Qed.

Lemma cheapest_least dual prices : forall cap s b c,
  cheapest dual prices cap s = Some c -> List.length prices = List.length s -> List.length b = List.length s ->
    List.length cap = List.length s ->
  (forall q, In q prices -> 0 <= q) -> 0 <= dual -> (forall q, In q s -> 0 <= q) -> (forall q, In q b -> 0 <= q) ->
  (forall j, nth j s 0 == 0 -> nth j b 0 == 0) -> (forall j, nth j b 0 <= nth j cap 0) ->
  c * dot s b <= dot prices b + dual * sum b.
Proof.
  induction prices as [|p prices IH]; intros [|there cap] [|v s] [|x b] c e lp lb lc pp dp sp bp un fit;
    try discriminate.
  simpl in e, lp, lb, lc; simpl dot; simpl sum; fold (sum b).
  pose proof (bp x (or_introl eq_refl)) as x0; pose proof (sp v (or_introl eq_refl)) as v0;
    pose proof (pp p (or_introl eq_refl)) as p0.
  assert (next : forall c', cheapest dual prices cap s = Some c' -> c' * dot s b <= dot prices b + dual * sum b).
  { intros c' e'; apply (IH cap s b c' e'); try lia; try exact dp.
    - intros q i; apply pp; right; exact i.
    - intros q i; apply sp; right; exact i.
    - intros q i; apply bp; right; exact i.
    - intro j; exact (un (S j)).
    - intro j; exact (fit (S j)). }
  assert (none : cheapest dual prices cap s = None -> dot s b == 0 /\ 0 <= dot prices b + dual * sum b).
  { intro e'; split.
    - clear -e' un fit bp lc lb lp; assert (un' := fun j => un (S j)); assert (fit' := fun j => fit (S j)).
      assert (bp' : forall q, In q b -> 0 <= q) by (intros q i; apply bp; right; exact i).
      simpl in un', fit'; clear un fit bp; revert cap s b e' un' fit' bp' lc lb lp; clear -prices.
      induction prices as [|p prices IH]; intros [|there cap] [|v s] [|x b] e' un fit bp lc lb lp; try discriminate;
        try reflexivity.
      simpl in e', lc, lb, lp; destruct (nothing v || nothing there) eqn:z; [|discriminate]; simpl.
      rewrite (IH cap s b e') by (try lia; solve [intro j; exact (un (S j)) | intro j; exact (fit (S j)) |
        intros q i; apply bp; right; exact i]).
      pose proof (bp x (or_introl eq_refl)); pose proof (un 0%nat) as u0; pose proof (fit 0%nat) as f0; simpl in u0, f0.
      apply orb_true_iff in z; destruct z as [z|z]; apply nothing_true in z; [rewrite z; ring|].
      assert (x == 0) as -> by lra; ring.
    - assert (0 <= dot prices b).
      { apply dot_nonneg; intros q i; solve [apply pp; right; exact i|apply bp; right; exact i]. }
      assert (0 <= sum b).
      { rewrite <- (map_id b); apply sum_nonneg; intros q i; apply bp; right; exact i. }
      nra. }
  pose proof (un 0%nat) as u0; pose proof (fit 0%nat) as f0; simpl in u0, f0.
  destruct (nothing v || nothing there) eqn:z.
  - pose proof (next c e). assert (v * x == 0) as ->.
    { apply orb_true_iff in z; destruct z as [z|z]; apply nothing_true in z; [rewrite z; ring|].
      assert (x == 0) as -> by lra; ring. }
    assert (0 <= p * x + dual * x) by nra. lra.
  - apply orb_false_iff in z; destruct z as [z _]; apply nothing_false in z; assert (vp : 0 < v) by lra.
    set (cost := mul (add p dual) (/ v)) in e; assert (cv : cost * v == p + dual).
    { unfold cost; rewrite mulE, addE; field; lra. }
    assert (own : cost * (v * x) == p * x + dual * x) by (rewrite Qmult_assoc, cv; ring).
    destruct (cheapest dual prices cap s) as [r|].
    + injection e as <-; pose proof (next r eq_refl); unfold smaller; destruct (le cost r) eqn:l.
      * apply leP in l. assert (0 <= dot s b).
        { apply dot_nonneg; intros q i; solve [apply sp; right; exact i|apply bp; right; exact i]. }
        assert (cost * dot s b <= r * dot s b) by (apply Qmult_le_compat_r; assumption). lra.
      * apply le_false in l; assert (r * (v * x) <= cost * (v * x)) by (apply Qmult_le_compat_r; nra). lra.
    + injection e as <-; destruct (none eq_refl) as [-> ?]. lra.
Qed.

Fixpoint costs_of (m : market) (prices : list Q) (us : list user) (duals : list Q) : option (list Q) :=
  match us, duals with
  | [], [] => Some []
  | u :: us, d :: duals =>
    match cheapest d prices (capacity m) (speedup u), costs_of m prices us duals with
    | Some c, Some cs => Some (c :: cs)
    | _, _ => None
    end
  | _, _ => None
  end.

(** What the rights of all to use one more GPU cost: nothing where there is no demand. *)
Definition demanded (u : user) : Q := match demand u with Some d => d | None => 0 end.
Definition dual_fine (u : user) (dual : Q) : bool :=
  le 0 dual && match demand u with Some _ => true | None => nothing dual end.
Definition demand_terms (us : list user) (duals : list Q) : list Q :=
  map (fun '(u, dual) => mul dual (demanded u)) (combine us duals).

Lemma costs_length m prices us : forall duals cs, costs_of m prices us duals = Some cs ->
  List.length cs = List.length us /\ List.length duals = List.length us.
Proof.
  induction us as [|u us IH]; intros [|d duals] cs e; try discriminate; simpl in e; [injection e as <-; auto|].
  destruct (cheapest _ _ _ _); [|discriminate]; destruct (costs_of m prices us duals) as [cs'|] eqn:e'; [|discriminate].
  injection e as <-; destruct (IH _ _ e'); simpl; split; congruence.
Qed.

Lemma dot_comm a : forall b, dot a b == dot b a.
Proof. induction a as [|x a IH]; intros [|y b]; simpl; try reflexivity; rewrite IH; ring. Qed.

Lemma dot_out y prices : sum (map (fun b => dot prices b) y) == dot (out y) prices.
Proof.
  induction y as [|b y IH]; simpl; [reflexivity|]; fold (sum (map (fun b => dot prices b) y)).
  rewrite dot_vadd, IH, (dot_comm prices b); reflexivity.
Qed.

Lemma dot_fits prices : forall o cap, List.length prices = List.length cap -> (forall q, In q prices -> 0 <= q) ->
  (forall j, (j < List.length cap)%nat -> nth j o 0 <= nth j cap 0) -> (forall q, In q cap -> 0 <= q) ->
  dot o prices <= dot prices cap.
Proof.
  induction prices as [|p prices IH]; intros [|x o] [|c cap] l pp fit cp; try discriminate; simpl; try lra.
  - pose proof (pp p (or_introl eq_refl)); pose proof (cp c (or_introl eq_refl)).
    pose proof (dot_nonneg prices cap (fun q i => pp q (or_intror i)) (fun q i => cp q (or_intror i))); nra.
  - pose proof (pp p (or_introl eq_refl)); pose proof (fit 0%nat ltac:(simpl; lia)) as f0; simpl in f0.
    assert (dot o prices <= dot prices cap); [|nra]. apply IH; try (simpl in l; lia).
    + intros q i; apply pp; right; exact i.
    + intros j h; exact (fit (S j) ltac:(simpl; lia)).
    + intros q i; apply cp; right; exact i.
Qed.

Lemma one_of_given y j b : (forall b share, In b y -> In share b -> 0 <= share) -> In b y -> nth j b 0 <= given y j.
Proof.
  unfold given; induction y as [|c y IH]; intros nn i; [destruct i|destruct i as [<-|i]]; simpl.
  - assert (0 <= sum (map (fun b => nth j b 0) y)); [|lra].
    apply sum_nonneg; intros b i; apply nth_nonneg; intros q; apply (nn b q (or_intror i)).
  - pose proof (nth_nonneg c (fun q => nn c q (or_introl eq_refl)) j).
    pose proof (IH (fun b s i => nn b s (or_intror i)) i); unfold sum in *; lra.
Qed.

Lemma paid_each m prices us : forall duals cs y, List.length y = List.length us ->
  costs_of m prices us duals = Some cs ->
  (forall u b c d, In (u, b) (combine us y) -> In (u, d) (combine us duals) ->
    cheapest d prices (capacity m) (speedup u) = Some c -> c * value u b <= dot prices b + d * demanded u) ->
  dot cs (map (fun '(u, b) => value u b) (combine us y)) <=
  sum (map (fun b => dot prices b) y) + sum (demand_terms us duals).
Proof.
  induction us as [|u us IH]; intros [|d duals] cs [|b y] l e per; try discriminate; simpl in e.
  - injection e as <-; apply Qle_refl.
  - destruct (cheapest _ _ _ _) as [c|] eqn:ec; [|discriminate].
    destruct (costs_of m prices us duals) as [cs'|] eqn:e'; [|discriminate]; injection e as <-.
    pose proof (per u b c d (or_introl eq_refl) (or_introl eq_refl) ec).
    assert (rest := IH duals cs' y ltac:(simpl in l; lia) e'
      (fun u b c d i j => per u b c d (or_intror i) (or_intror j))).
    unfold demand_terms in *; simpl; unfold sum in *; rewrite mulE; lra.
Qed.

(** All throughputs cost no more than all GPUs and all demands. *)
Lemma paid_at_most m prices duals cs y : valid m -> sensible m y ->
  List.length prices = List.length (capacity m) -> (forall q, In q prices -> 0 <= q) ->
  (forall u d, In (u, d) (combine (users m) duals) -> dual_fine u d = true) ->
  costs_of m prices (users m) duals = Some cs ->
  dot cs (throughputs m y) <= dot prices (capacity m) + sum (demand_terms (users m) duals).
Proof.
  intros v [[[ly sh] [nn fit]] s] lp pp df e.
  assert (each : dot cs (throughputs m y) <= sum (map (fun b => dot prices b) y) + sum (demand_terms (users m) duals)).
  { apply (paid_each m prices (users m) duals cs y ly e); intros u b c d hu i ce.
    { specialize (df u d i); unfold dual_fine in df; apply andb_true_iff in df.
      destruct df as [d0 df]; apply leP in d0.
      destruct (proj2 (proj2 (proj2 (proj2 v))) u (in_combine_l _ _ _ _ hu)) as (lu & s0 & _ & _ & _).
      assert (ib := in_combine_r _ _ _ _ hu); assert (lb := sh b ib); destruct (s u b hu) as [un dem].
      assert (h : c * dot (speedup u) b <= dot prices b + d * sum b).
      { apply (cheapest_least d prices (capacity m) (speedup u) b c ce); try congruence; try assumption.
        - intros q j; exact (nn b q ib j).
        - intros j z; destruct (Nat.lt_ge_cases j (List.length (capacity m))) as [l|l]; [exact (un j l z)|].
          rewrite nth_overflow by lia; reflexivity.
        - intro j; destruct (Nat.lt_ge_cases j (List.length (capacity m))) as [l|l].
          + eapply Qle_trans; [exact (one_of_given y j b nn ib)|exact (fit j l)].
          + rewrite !nth_overflow by lia; apply Qle_refl. }
      unfold value, demanded; destruct (demand u) as [most|].
      - assert (d * sum b <= d * most) by (rewrite !(Qmult_comm d); apply Qmult_le_compat_r; assumption); lra.
      - apply nothing_true in df; rewrite df in h |- *; lra. } }
  eapply Qle_trans; [exact each|]; rewrite dot_out.
  assert (dot (out y) prices <= dot prices (capacity m)); [|lra].
  apply dot_fits; try assumption; [|apply v]. intros j l; rewrite nth_out; exact (fit j l).
Qed.
