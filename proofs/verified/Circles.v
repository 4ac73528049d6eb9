(** * Trades in a circle: where they pay, an efficient allocation lacks one of their pairs of a user and a type *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Allocations Lies Shifts.
Import ListNotations.
Local Open Scope Q_scope.

(** ** A circle: each of its stations is a user that receives an amount of one type and hands over one of another *)
Definition station : Type := nat * ((nat * Q) * (nat * Q)).
Definition stop (s : station) : nat := fst s.
Definition received (s : station) : nat * Q := fst (snd s).
Definition handed (s : station) : nat * Q := snd (snd s).

Definition if_of (j : nat) (p : nat * Q) : Q := if Nat.eqb j (fst p) then snd p else 0.
Definition net (l : list station) (i j : nat) : Q :=
  sum (map (fun s => if Nat.eqb i (stop s) then if_of j (received s) - if_of j (handed s) else 0) l).

Lemma sum_alone (f : nat -> Q) (p : nat * Q) k : (fst p < k)%nat ->
  sum (map (fun j => f j * if_of j p) (seq 0 k)) == f (fst p) * snd p.
Proof.
  intro l; rewrite <- (sum_at (fun j => f j * snd p) (fst p) k l); apply sum_ext; intros j _; unfold if_of.
  destruct (Nat.eqb j (fst p)); ring.
Qed.

Section Circle.
Variables (m : market) (y : table) (l : list station).
Let n := length (users m).
Let k := length (capacity m).
Hypothesis va : valid m.
Hypothesis free : forall u, In u (users m) -> demand u = None.
Hypothesis fy : feasible m y.
Hypothesis places : forall s, In s l -> (stop s < n)%nat /\ (fst (received s) < k)%nat /\ (fst (handed s) < k)%nat.
Hypothesis closed : forall f : nat * Q -> Q, sum (map (fun s => f (received s)) l) == sum (map (fun s => f (handed s)) l).
Hypothesis amounts : forall s, In s l -> 0 < snd (received s) /\ 0 < snd (handed s).
Definition for_own (s : station) : Q :=
  speed_of m (stop s) (fst (received s)) * snd (received s) - speed_of m (stop s) (fst (handed s)) * snd (handed s).
Hypothesis pay : forall s, In s l -> 0 <= for_own s.
Variable best : station.
Hypothesis best_in : In best l.
Hypothesis pays : 0 < for_own best.
Hypothesis there : forall s, In s l -> 0 < share y (stop s) (fst (handed s)).

Let given_away := sum (map (fun s => snd (handed s)) l).

Lemma given_away_positive : 0 < given_away.
Proof.
  apply (sum_positive _ _ best); [|exact best_in|exact (proj2 (amounts _ best_in))].
  intros b i; pose proof (proj2 (amounts b i)); lra.
Qed.

Lemma if_of_bounds j p : 0 < snd p -> 0 <= if_of j p <= snd p.
Proof. intro h; unfold if_of; destruct (Nat.eqb _ _); lra. Qed.

Lemma net_least i j : - given_away <= net l i j.
Proof.
  unfold given_away, net.
  setoid_replace (- sum (map (fun s => snd (handed s)) l)) with (sum (map (fun s => - (1) * snd (handed s)) l))
    by (rewrite sum_times; ring).
  apply sum_le; intros s i'; destruct (amounts s i') as [p q].
  pose proof (if_of_bounds j _ p); pose proof (if_of_bounds j _ q); destruct (Nat.eqb i (stop s)); lra.
Qed.

Lemma net_rises i j : (forall s, In s l -> i = stop s -> j <> fst (handed s)) -> 0 <= net l i j.
Proof.
  intro h; apply sum_nonneg; intros s i'; destruct (amounts s i') as [p q].
  destruct (Nat.eqb_spec i (stop s)) as [e|]; [|lra].
  pose proof (if_of_bounds j _ p); specialize (h s i' e); unfold if_of at 2.
  destruct (Nat.eqb_spec j (fst (handed s))); [contradiction|lra].
Qed.

Lemma net_worth d i : gained m (fun i j => d * net l i j) i ==
  d * sum (map (fun s => if Nat.eqb i (stop s) then for_own s else 0) l).
Proof.
  unfold gained; fold k; rewrite (sum_ext _ (fun j => d * (speed_of m i j * net l i j))) by (intros; ring).
  rewrite sum_times; apply Qmult_comp; [reflexivity|].
  transitivity (sum (map (fun j => sum (map (fun s => speed_of m i j * (if Nat.eqb i (stop s)
    then if_of j (received s) - if_of j (handed s) else 0)) l)) (seq 0 k))).
  { apply sum_ext; intros j _; rewrite sum_times; reflexivity. }
  rewrite sum_swap; apply sum_ext; intros s i'; destruct (places s i') as (_ & p & q); unfold for_own.
  destruct (Nat.eqb_spec i (stop s)) as [<-|].
  - rewrite <- (sum_alone (speed_of m i) _ k p), <- (sum_alone (speed_of m i) _ k q).
    rewrite (sum_ext _ (fun j => speed_of m i j * if_of j (received s) + -(1) * (speed_of m i j * if_of j (handed s))))
      by (intros; ring).
    rewrite sum_plus, sum_times; ring.
  - rewrite (sum_ext _ (fun _ => 0 * 0)) by (intros; ring); rewrite sum_times; ring.
Qed.

Lemma net_column j : sum (map (fun i => net l i j) (seq 0 n)) == 0.
Proof.
  unfold net; rewrite sum_swap.
  rewrite (sum_ext _ (fun s => if_of j (received s) + -(1) * if_of j (handed s))).
  - rewrite sum_plus, sum_times, (closed (if_of j)); ring.
  - intros s i'; destruct (places s i') as (p & _).
    rewrite (sum_at (fun _ => if_of j (received s) - if_of j (handed s)) (stop s) n p); ring.
Qed.

Theorem circle_pays : ~ pareto_efficient m y.
Proof.
  destruct (least_positive (fun s => share y (stop s) (fst (handed s))) l there) as (e & e0 & le_e).
  pose proof given_away_positive as G; set (d := e / given_away).
  assert (d0 : 0 < d) by (apply Qlt_shift_div_l; lra).
  assert (de : d * given_away == e) by (unfold d; field; lra).
  assert (terms : forall i s, In s l -> 0 <= if Nat.eqb i (stop s) then for_own s else 0).
  { intros i s is; destruct (Nat.eqb i (stop s)); [exact (pay s is)|lra]. }
  apply (shift_pays m y (fun i j => d * net l i j) va free fy) with (best := stop best).
  - intros i j _ _; pose proof (share_nonneg m y i j fy) as s0.
    destruct (existsb (fun s => Nat.eqb i (stop s) && Nat.eqb j (fst (handed s))) l) eqn:ex.
    + apply existsb_exists in ex; destruct ex as (s & is & h); apply andb_true_iff in h; destruct h as [h1 h2].
      apply Nat.eqb_eq in h1; apply Nat.eqb_eq in h2; subst i j.
      pose proof (le_e s is); pose proof (net_least (stop s) (fst (handed s))); nra.
    + assert (0 <= net l i j); [|nra]. apply net_rises; intros s is -> ->.
      assert (existsb (fun s' => Nat.eqb (stop s) (stop s') && Nat.eqb (fst (handed s)) (fst (handed s'))) l = true).
      { apply existsb_exists; exists s; split; [exact is|]; rewrite !Nat.eqb_refl; reflexivity. }
      congruence.
  - intros j h; fold n; rewrite sum_times, net_column; pose proof (proj2 (proj2 fy) j h); lra.
  - intros i _; rewrite net_worth; pose proof (sum_nonneg _ l (terms i)); nra.
  - exact (proj1 (places _ best_in)).
  - rewrite net_worth; assert (0 < sum (map (fun s => if Nat.eqb (stop best) (stop s) then for_own s else 0) l)); [|nra].
    apply (sum_positive _ _ best); [exact (terms _)|exact best_in|]; rewrite Nat.eqb_refl; exact pays.
Qed.
End Circle.

(** ** Amounts for a circle of which the product of what is taken exceeds that of what is given *)

Lemma room_below gs : forall r, (forall g, In g gs -> 0 <= g) -> product gs < r ->
  exists hs, Forall2 (fun g h => g <= h /\ 0 < h) gs hs /\ product hs < r.
Proof.
  induction gs as [|g gs IH]; intros r nn less; [exists []; split; [constructor|exact less]|].
  change (product (g :: gs)) with (g * product gs) in less.
  assert (P : 0 <= product gs).
  { clear -nn; induction gs as [|h gs IH]; [discriminate|]; change (product (h :: gs)) with (h * product gs).
    assert (0 <= product gs) by (apply IH; intros q [<-|i]; apply nn; [left|right; right]; auto).
    pose proof (nn h (or_intror (or_introl eq_refl))); nra. }
  pose proof (nn g (or_introl eq_refl)) as g0; assert (nn' : forall h, In h gs -> 0 <= h) by (intros; apply nn; right; auto).
  destruct (Qlt_le_dec 0 g) as [pos|z].
  - destruct (IH (r / g) nn') as (hs & f & b); [apply Qlt_shift_div_l; [exact pos|lra]|].
    exists (g :: hs); split; [constructor; [split; [lra|exact pos]|exact f]|].
    change (product (g :: hs)) with (g * product hs).
    assert (g * (r / g) == r) by (field; lra); nra.
  - assert (g == 0) as gz by lra; rewrite gz in less; assert (r0 : 0 < r) by lra.
    destruct (IH (product gs + 1) nn') as (hs & f & b); [lra|].
    assert (H : 0 < r / (product gs + 1)) by (apply Qlt_shift_div_l; lra).
    exists (r / (product gs + 1) :: hs); split; [constructor; [split; [lra|exact H]|exact f]|].
    change (product (r / (product gs + 1) :: hs)) with (r / (product gs + 1) * product hs).
    assert (r / (product gs + 1) * (product gs + 1) == r) by (field; lra); nra.
Qed.

Section Amounts.
Variable speed : nat -> nat -> Q.

Definition given_in (c : list (nat * nat)) : list Q := map (fun p => speed (fst p) (snd p)) c.
Fixpoint taken_in (c : list (nat * nat)) (t : nat) : list Q :=
  match c with [] => [] | p :: c => speed (fst p) t :: taken_in c (snd p) end.
Fixpoint last_type (c : list (nat * nat)) (t : nat) : nat := match c with [] => t | p :: c => last_type c (snd p) end.

Fixpoint stations (c : list (nat * nat)) (t : nat) (a : Q) (hs : list Q) : list station :=
  match c, hs with
  | p :: c, h :: hs => let b := a * speed (fst p) t / h in (fst p, ((t, a), (snd p, b))) :: stations c (snd p) b hs
  | _, _ => []
  end.
Fixpoint arrives (c : list (nat * nat)) (t : nat) (a : Q) (hs : list Q) : Q :=
  match c, hs with p :: c, h :: hs => arrives c (snd p) (a * speed (fst p) t / h) hs | _, _ => a end.

Lemma stations_closed (f : nat * Q -> Q) c : forall t a hs, length hs = length c ->
  sum (map (fun s => f (handed s)) (stations c t a hs)) + f (t, a) ==
  sum (map (fun s => f (received s)) (stations c t a hs)) + f (last_type c t, arrives c t a hs).
Proof.
  induction c as [|p c IH]; intros t a [|h hs] l; try discriminate; [reflexivity|]; simpl in l.
  cbn [stations arrives last_type map sum fold_right]; set (b := a * speed (fst p) t / h).
  pose proof (IH (snd p) b hs ltac:(lia)) as e; unfold received, handed in *; cbn [fst snd] in *.
  fold (sum (map (fun s : station => f (snd (snd s))) (stations c (snd p) b hs))).
  fold (sum (map (fun s : station => f (fst (snd s))) (stations c (snd p) b hs))).
  lra.
Qed.

Lemma arrives_product c : forall t a hs, length hs = length c -> (forall h, In h hs -> 0 < h) ->
  arrives c t a hs * product hs == a * product (taken_in c t).
Proof.
  induction c as [|p c IH]; intros t a [|h hs] l pos; try discriminate; [reflexivity|]; simpl in l.
  cbn [arrives taken_in]; change (product (h :: hs)) with (h * product hs).
  change (product (speed (fst p) t :: taken_in c (snd p))) with (speed (fst p) t * product (taken_in c (snd p))).
  pose proof (pos h (or_introl eq_refl)).
  pose proof (IH (snd p) (a * speed (fst p) t / h) hs ltac:(lia) (fun q i => pos q (or_intror i))) as e.
  setoid_replace (arrives c (snd p) (a * speed (fst p) t / h) hs * (h * product hs))
    with (h * (arrives c (snd p) (a * speed (fst p) t / h) hs * product hs)) by ring.
  rewrite e; field; lra.
Qed.

(** At each station what is handed over costs no more than what is received brings. *)
Lemma stations_pay c : forall t a hs, 0 < a -> Forall2 (fun g h => g <= h /\ 0 < h) (given_in c) hs ->
  (forall q, In q (taken_in c t) -> 0 < q) -> forall s, In s (stations c t a hs) ->
  0 < snd (received s) /\ 0 < snd (handed s) /\ In (stop s, fst (handed s)) c /\
  speed (stop s) (fst (handed s)) * snd (handed s) <= speed (stop s) (fst (received s)) * snd (received s).
Proof.
  induction c as [|p c IH]; intros t a hs a0 f pos s i; inversion f as [|? h ? hs' [gh h0] f']; subst; [destruct i|].
  cbn [stations] in i; pose proof (pos _ (or_introl eq_refl)) as s0.
  set (b := a * speed (fst p) t / h) in *; assert (eb : h * b == a * speed (fst p) t) by (unfold b; field; lra).
  assert (b0 : 0 < b) by (apply Qlt_shift_div_l; nra).
  destruct i as [<-|i].
  - unfold received, handed, stop; cbn [fst snd]; split; [exact a0|split; [exact b0|split; [left; destruct p; reflexivity|]]].
    nra.
  - destruct (IH (snd p) b hs' b0 f' (fun q k => pos q (or_intror k)) s i) as (x & z & w & v); auto with datatypes.
Qed.

Lemma stations_receive c : forall t a hs s, In s (stations c t a hs) ->
  fst (received s) = t \/ exists i, In (i, fst (received s)) c.
Proof.
  induction c as [|p c IH]; intros t a [|h hs] s i; try destruct i as [<-|i]; try contradiction; [left; reflexivity|].
  right; destruct (IH _ _ _ _ i) as [->|(i' & k)]; [exists (fst p); left; destruct p; reflexivity|exists i'; right; exact k].
Qed.
End Amounts.

Lemma last_type_in c t : c <> [] -> exists i, In (i, last_type c t) c.
Proof.
  revert t; induction c as [|p c IH]; intros t h; [congruence|]; simpl; destruct c as [|p' c'].
  - exists (fst p); left; destruct p; reflexivity.
  - destruct (IH (snd p) ltac:(discriminate)) as [i k]; exists i; right; exact k.
Qed.

Lemma product_positive l : (forall q, In q l -> 0 <= q) -> 0 < product l -> forall q, In q l -> 0 < q.
Proof.
  induction l as [|a l IH]; simpl; intros nn pos q i; [destruct i|]; change (product (a :: l)) with (a * product l) in pos.
  pose proof (nn a (or_introl eq_refl)) as a0.
  assert (P : 0 <= product l).
  { clear -nn; induction l as [|h l IH]; [discriminate|]; change (product (h :: l)) with (h * product l).
    assert (0 <= product l) by (apply IH; intros q [<-|i]; apply nn; [left|right; right]; auto).
    pose proof (nn h (or_intror (or_introl eq_refl))); nra. }
  destruct i as [<-|i]; [nra|]; apply IH; [intros; apply nn; right; assumption|nra|exact i].
Qed.

Theorem circle_lacks m y c : valid m -> (forall u, In u (users m) -> demand u = None) -> pareto_efficient m y ->
  (forall p, In p c -> (fst p < length (users m))%nat /\ (snd p < length (capacity m))%nat) ->
  product (given_in (speed_of m) c) < product (taken_in (speed_of m) c (last_type c 0)) ->
  exists p, In p c /\ share y (fst p) (snd p) == 0.
Proof.
  intros va free eff inside less; pose proof (proj1 eff) as fy.
  assert (speeds : forall i j, (i < length (users m))%nat -> 0 <= speed_of m i j).
  { intros i j h; unfold speed_of; apply nth_nonneg; intros q iq.
    apply (proj2 (proj2 (proj2 (proj2 va))) (nth i (users m) (User [] [] 0 None)) (nth_In _ _ h)); exact iq. }
  destruct (existsb (fun p => nothing (share y (fst p) (snd p))) c) eqn:ex.
  { apply existsb_exists in ex; destruct ex as (p & i & z); apply nothing_true in z; exists p; auto. }
  exfalso; revert eff.
  assert (pos : forall p, In p c -> 0 < share y (fst p) (snd p)).
  { intros p i; pose proof (share_nonneg m y (fst p) (snd p) fy).
    destruct (Qlt_le_dec 0 (share y (fst p) (snd p))) as [|z]; [assumption|exfalso].
    assert (existsb (fun p => nothing (share y (fst p) (snd p))) c = true); [|congruence].
    apply existsb_exists; exists p; split; [exact i|]; apply nothing_true; lra. }
  assert (ne : c <> []) by (intros ->; simpl in less; unfold product in less; simpl in less; lra).
  assert (gn : forall g, In g (given_in (speed_of m) c) -> 0 <= g).
  { intros g i; apply in_map_iff in i; destruct i as (p & <- & i); apply speeds, (inside p i). }
  assert (tn : forall t q, In q (taken_in (speed_of m) c t) -> 0 <= q).
  { clear -inside speeds; induction c as [|p c IH]; intros t q i; [destruct i|]; destruct i as [<-|i].
    - apply speeds, (inside p (or_introl eq_refl)).
    - apply (IH (fun p k => inside p (or_intror k)) _ _ i). }
  destruct (room_below _ _ gn less) as (hs & f & below); set (t := last_type c 0) in *.
  assert (len : length hs = length c) by (rewrite <- (Forall2_len _ _ _ f); apply map_length).
  assert (hpos : forall h, In h hs -> 0 < h).
  { clear -f; induction f as [|g h gs hs [_ h0] f IH]; intros q i; [destruct i|destruct i as [<-|i]; auto]. }
  assert (hp : 0 < product hs).
  { clear -hpos; induction hs as [|h hs IH]; [reflexivity|]; change (product (h :: hs)) with (h * product hs).
    pose proof (hpos h (or_introl eq_refl)); assert (0 < product hs) by (apply IH; intros; apply hpos; right; auto); nra. }
  assert (tpos : forall q, In q (taken_in (speed_of m) c t) -> 0 < q).
  { apply product_positive; [exact (tn t)|lra]. }
  pose proof (arrives_product (speed_of m) c t 1 hs len hpos) as arr.
  set (A := arrives (speed_of m) c t 1 hs) in *.
  assert (A1 : 1 < A) by nra.
  pose proof (stations_pay (speed_of m) c t 1 hs ltac:(lra) f tpos) as pay.
  pose proof (fun g => stations_closed (speed_of m) g c t 1 hs len) as closed.
  assert (lt_t : last_type c t = t).
  { unfold t; clear -ne; destruct c as [|p c]; [congruence|]; reflexivity. }
  fold A in closed; rewrite lt_t in closed.
  destruct (stations (speed_of m) c t 1 hs) as [|first rest] eqn:es.
  { destruct c as [|p c]; [congruence|]; destruct hs; discriminate. }
  assert (ef : received first = (t, 1)).
  { destruct c as [|p c]; [congruence|]; destruct hs; [discriminate|]; cbn [stations] in es; injection es as <- _; reflexivity. }
  set (begin := (stop first, ((t, A), handed first)) : station).
  assert (recv : forall s, In s (first :: rest) -> (fst (received s) < length (capacity m))%nat).
  { intros s i; rewrite <- es in i; destruct (stations_receive (speed_of m) c t 1 hs s i) as [->|(i' & k)].
    - destruct (last_type_in c 0 ne) as (i' & k); exact (proj2 (inside _ k)).
    - exact (proj2 (inside _ k)). }
  destruct (pay first (or_introl eq_refl)) as (_ & hf & inf & payf); rewrite ef in payf; cbn [fst snd] in payf.
  assert (sf : 0 < speed_of m (stop first) t).
  { destruct c as [|p c]; [congruence|]; destruct hs; [discriminate|]; cbn [stations] in es; injection es as <- _.
    apply tpos; left; reflexivity. }
  assert (own : 0 < for_own m begin).
  { change (0 < speed_of m (stop first) t * A - speed_of m (stop first) (fst (handed first)) * snd (handed first)).
    assert (0 < speed_of m (stop first) t * (A - 1)) by (apply Qmult_lt_0_compat; lra); lra. }
  apply (circle_pays m y (begin :: rest) va free fy) with (best := begin).
  - intros s [<-|i].
    + unfold begin, stop, received, handed; cbn [fst snd]; pose proof (inside _ inf) as [h1 h2]; split; [exact h1|].
      split; [|exact h2]; pose proof (recv first (or_introl eq_refl)) as r; rewrite ef in r; exact r.
    + destruct (pay s (or_intror i)) as (_ & _ & k & _); destruct (inside _ k) as [h1 h2].
      split; [exact h1|split; [apply recv; right; exact i|exact h2]].
  - intro g; pose proof (closed g) as e.
    change (g (handed first) + sum (map (fun s => g (handed s)) rest) + g (t, 1) ==
      g (received first) + sum (map (fun s => g (received s)) rest) + g (t, A)) in e; rewrite ef in e.
    change (g (t, A) + sum (map (fun s => g (received s)) rest) ==
      g (handed first) + sum (map (fun s => g (handed s)) rest)); lra.
  - intros s [<-|i]; [unfold begin, received, handed; cbn [fst snd]; split; [lra|exact hf]|].
    destruct (pay s (or_intror i)) as (p & q & _); split; assumption.
  - intros s [<-|i]; [apply Qlt_le_weak; exact own|].
    destruct (pay s (or_intror i)) as (_ & _ & _ & le); unfold for_own; lra.
  - left; reflexivity.
  - exact own.
  - intros s [<-|i]; [unfold begin, stop, handed; cbn [fst snd]; exact (pos _ inf)|].
    destruct (pay s (or_intror i)) as (_ & _ & k & _); exact (pos _ k).
Qed.
