(** * Whether somebody starves while others borrow: gangs are chosen by the sums that they can make *)

From Coq Require Import List QArith Qminmax Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Markets Served Could.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Sums of some of the numbers of a list, up to a most *)
Fixpoint put_sum (q : Q) (l : list Q) : list Q :=
  match l with
  | [] => [q]
  | p :: rest => if same q p then l else if lt q p then q :: l else p :: put_sum q rest
  end.
Fixpoint sums (most : Q) (l : list Q) : list Q :=
  match l with
  | [] => [0]
  | g :: l =>
    let old := sums most l in
    fold_right put_sum old (filter (fun q => le q most) (map (add g) old))
  end.

Definition among (t : Q) (l : list Q) : Prop := exists s, In s l /\ s == t.
Lemma among_put t q l : among t (put_sum q l) <-> q == t \/ among t l.
Proof.
  induction l as [|p l IH]; simpl.
  - unfold among; simpl; split; [intros (s & [<-|[]] & e); auto|intros [e|(s & [] & _)]; exists q; auto].
  - destruct (same q p) eqn:e; [|destruct (lt q p)].
    + apply sameP in e; unfold among; simpl; split; [intros (s & i & h); right; exists s; auto|].
      intros [h|(s & i & h)]; [exists p; split; [auto|lra]|exists s; auto].
    + unfold among; simpl; split; [intros (s & [<-|i] & h); [auto|right; exists s; auto]|].
      intros [h|(s & i & h)]; [exists q; auto|exists s; auto].
    + split.
      * intros (s & [<-|i] & h); [right; exists p; simpl; auto|].
        destruct (proj1 IH (ex_intro _ s (conj i h))) as [k|(s' & i' & h')]; [auto|right; exists s'; simpl; auto].
      * intros [h|(s & [<-|i] & h)]; [|exists p; simpl; auto|].
        -- destruct (proj2 IH (or_introl h)) as (s & i & k); exists s; simpl; auto.
        -- destruct (proj2 IH (or_intror (ex_intro _ s (conj i h)))) as (s' & i' & k); exists s'; simpl; auto.
Qed.
Lemma among_fold t l old : among t (fold_right put_sum old l) <-> among t l \/ among t old.
Proof.
  induction l as [|q l IH]; simpl; [split; [auto|intros [(s & [] & _)|h]; exact h]|].
  rewrite among_put, IH; unfold among; simpl; split.
  - intros [h|[(s & i & h)|h]]; [left; exists q; auto|left; exists s; auto|auto].
  - intros [(s & [<-|i] & h)|h]; [auto|right; left; exists s; auto|auto].
Qed.

Lemma picked_nonneg l : (forall q, In q l -> 0 <= q) -> forall which, 0 <= picked which l.
Proof.
  induction l as [|g l IH]; intros nn [|b which]; unfold picked; simpl; try apply Qle_refl.
  specialize (IH (fun q i => nn q (or_intror i)) which); pose proof (nn g (or_introl eq_refl)).
  fold (sum (map (fun '(b, q) => if b : bool then q else 0) (combine which l))); fold (picked which l); destruct b; lra.
Qed.

Lemma sums_ok most : 0 <= most -> forall l, (forall q, In q l -> 0 <= q) -> forall t,
  among t (sums most l) <-> t <= most /\ exists which, picked which l == t.
Proof.
  intros p l; induction l as [|g l IH]; intros nn t.
  - simpl; unfold among; simpl; split.
    + intros (s & [<-|[]] & h); split; [lra|exists []; exact h].
    + intros [_ (which & h)]; exists 0; split; [auto|]; destruct which; exact h.
  - specialize (IH (fun q i => nn q (or_intror i))); cbn [sums]; rewrite among_fold, IH; split.
    + intros [(s & i & h)|[k (which & h)]].
      * apply filter_In in i; destruct i as [i m]; apply leP in m; apply in_map_iff in i; destruct i as (s' & <- & i).
        rewrite addE in h, m; destruct (proj1 (IH s') (ex_intro _ s' (conj i (Qeq_refl s')))) as [_ (which & e)].
        split; [lra|exists (true :: which); unfold picked; simpl; fold (picked which l); rewrite <- h, <- e;
          reflexivity].
      * split; [exact k|exists (false :: which); unfold picked; simpl; fold (picked which l)].
        rewrite <- h; unfold picked; ring.
    + intros [k ([|[] which] & h)].
      * right; split; [exact k|exists []; exact h].
      * left; unfold picked in h; simpl in h; fold (sum (map (fun '(b, q) => if b : bool then q else 0) (combine which
        l))) in h.
        fold (picked which l) in h; pose proof (nn g (or_introl eq_refl)).
        assert (among (picked which l) (sums most l)) as (s & i & e).
        { apply IH; split; [lra|exists which; reflexivity]. }
        exists (add g s); split; [|rewrite addE; lra].
        apply filter_In; split; [apply in_map; exact i|apply leP; rewrite addE; lra].
      * right; split; [exact k|exists which]; unfold picked in h; simpl in h.
        fold (sum (map (fun '(b, q) => if b : bool then q else 0) (combine which l))) in h; unfold picked; lra.
Qed.

(** Some of them together are more than [over], and no more than [most]. *)
Definition some_between (over most : Q) (l : list Q) : bool :=
  le 0 most && existsb (lt over) (sums most l).
Lemma some_between_ok over most l : (forall q, In q l -> 0 <= q) ->
  some_between over most l = true <-> exists which, over < picked which l /\ picked which l <= most.
Proof.
  intro nn; unfold some_between; rewrite andb_true_iff, leP, existsb_exists; split.
  - intros [p (s & i & o)]; apply ltP in o.
    destruct (proj1 (sums_ok most p l nn s) (ex_intro _ s (conj i (Qeq_refl s)))) as [k (which & h)].
    exists which; lra.
  - intros (which & o & k); pose proof (picked_nonneg l nn which); assert (p : 0 <= most) by lra; split; [exact p|].
    destruct (proj2 (sums_ok most p l nn (picked which l))) as (s & i & h); [split; [exact k|exists which;
      reflexivity]|].
    exists s; split; [exact i|apply ltP; lra].
Qed.

Section Starves.
Variables (m : market) (e : entitlements) (x : table) (could : nat -> nat -> option Q) (given : nat -> nat -> Q).

Lemma gang_sizes_nonneg i c : well_formed m e -> forall q, In q (gang_sizes m e x could given i c) -> 0 <= q.
Proof.
  intros w q; unfold gang_sizes; rewrite in_flat_map; intros (g & ig & h); apply in_flat_map in h; destruct h as (j & _
    & h).
  destruct (could_start _ _ _ _ _ _ _ _); [|destruct h]; apply in_flat_map in h; destruct h as ([c' q'] & h & k).
  destruct (Nat.eqb c' c); [|destruct k]; destruct k as [<-|[]].
  unfold takes_some in h; apply filter_In in h; destruct h as [h _].
  unfold gangs_of in ig; apply filter_In in ig; destruct ig as [ig _].
  assert (fine : 0 <= gang_gpus g /\ forall r q, In (r, q) (takes g) -> 0 <= q).
  { unfold well_formed in w; cbv zeta in w; destruct w as (_ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & w).
    destruct (w g ig) as (_ & a & _ & _ & b); auto. }
  destruct fine as [a b]; unfold needs in h; destruct h as [h|h]; [injection h as <- <-; exact a|].
  apply in_flat_map in h; destruct h as ([r p] & h & k); destruct (good_of _ _ _ _); [|destruct k].
  destruct (_ && _); [|destruct k]; destruct k as [k|[]]; injection k as <- <-; exact (b r p h).
Qed.

(** Who is not below its guarantee is not owed anything. *)
Definition starves_b (i c : nat) : bool :=
  lt (above m e x i c) 0 &&
  let more := owing m e x could given i c in
  lt 0 more && lt 0 (lent m e x given i c) &&
  (negb (usage_told m e) ||
   let over := ahead_of_gangs m e x could given i c in some_between over (over + more) (gang_sizes m e x could given i
     c)).
Lemma starves_ok i c : well_formed m e -> starves_b i c = true <-> starves m e x could given i c.
Proof.
  intro w; assert (below : 0 < owing m e x could given i c -> above m e x i c < 0).
  { unfold owing; cbv zeta; set (q := Qmin _ (- above m e x i c)); assert (q <= - above m e x i c) by apply Q.le_min_r.
    destruct (lesser _ _) as [r|]; [|lra]; pose proof (Q.le_min_r r q); lra. }
  unfold starves_b, starves; cbv zeta; rewrite !andb_true_iff, !ltP, orb_true_iff, negb_true_iff.
  rewrite (some_between_ok _ _ _ (gang_sizes_nonneg i c w)); destruct (usage_told m e); intuition discriminate.
Qed.
End Starves.

(** What each gives, worked out once. *)
Definition giving (m : market) (e : entitlements) (x : table) : store (store Q) :=
  stored (map (fun d => stored (map (gives m e x d) (seq 0 (columns m e x)))) (seq 0 (nodes m e))).
Definition given_in (t : store (store Q)) (d c : nat) : Q :=
  match at_ t (N.of_nat d) with
  | Some row => match at_ row (N.of_nat c) with Some q => q | None => 0 end
  | None => 0
  end.
Lemma giving_ok m e x d c : (d < nodes m e)%nat -> (c < columns m e x)%nat ->
  given_in (giving m e x) d c = gives m e x d c.
Proof.
  intros ld lc; unfold given_in, giving; rewrite at_stored, Nnat.Nat2N.id, nth_error_map, (nth_error_seq _ _ ld); simpl.
  rewrite at_stored, Nnat.Nat2N.id, nth_error_map, (nth_error_seq _ _ lc); reflexivity.
Qed.
