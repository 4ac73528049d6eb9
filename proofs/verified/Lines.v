(** * Where the sides of rows are lines over a parameter, a bound by multipliers is a line over it, too *)

From Coq Require Import List QArith Lqa Lia Bool.
From Verified Require Import Syntax Meaning Sums Linear Programs Policies.
Import ListNotations.
Local Open Scope Q_scope.

Section Straight.
Variable e : Q.

(** At 0, at 1 and at [e]. *)
Definition straight (p q r : option Q) : Prop :=
  match p, q, r with
  | None, None, None => True
  | Some p, Some q, Some r => r == (1 - e) * p + e * q
  | _, _, _ => False
  end.

Definition straight_form (f g h : form) : Prop :=
  (everywhere f = everywhere g /\ parts f = parts g /\ extra f = extra g) /\
  (everywhere f = everywhere h /\ parts f = parts h /\ extra f = extra h) /\
  straight (low f) (low g) (low h) /\ straight (high f) (high g) (high h).

Lemma straight_same (q : option Q) : straight q q q.
Proof. destruct q; simpl; [ring|exact I]. Qed.

Lemma straight_form_same f : straight_form f f f.
Proof. repeat split; apply straight_same. Qed.

Lemma at_most_straight q l0 l1 l h0 h1 h m : straight l0 l1 l -> straight h0 h1 h -> at_most q l0 h0 = Some m ->
  exists m1 m2, at_most q l1 h1 = Some m1 /\ at_most q l h = Some m2 /\ m2 == (1 - e) * m + e * m1.
Proof.
  intros sl sh; unfold at_most; destruct (nothing q); [intro x; injection x as <-; exists 0, 0; repeat split; ring|].
  destruct (lt 0 q).
  - destruct h0, h1, h; simpl in sh; try contradiction; try discriminate; intro x; injection x as <-.
    eexists; eexists; repeat split; rewrite !mulE, sh; ring.
  - destruct l0, l1, l; simpl in sl; try contradiction; try discriminate; intro x; injection x as <-.
    eexists; eexists; repeat split; rewrite !mulE, sl; ring.
Qed.

Definition beside (a b c : added) : Prop :=
  (to_all a = to_all b /\ to_one a = to_one b /\ to_extra a = to_extra b) /\
  (to_all a = to_all c /\ to_one a = to_one c /\ to_extra a = to_extra c) /\
  limit c == (1 - e) * limit a + e * limit b.

Lemma add_row_straight a b c q f g h a' : beside a b c -> straight_form f g h -> add_row a q f = Some a' ->
  exists b' c', add_row b q g = Some b' /\ add_row c q h = Some c' /\ beside a' b' c'.
Proof.
  intros ((x1 & x2 & x3) & (y1 & y2 & y3) & li) ((p1 & p2 & p3) & (q1 & q2 & q3) & sl & sh); unfold add_row.
  destruct (nothing q); [intro r; injection r as <-; exists b, c; repeat split; assumption|].
  destruct (at_most q (low f) (high f)) as [m|] eqn:am; [|discriminate].
  destruct (at_most_straight q _ _ _ _ _ _ m sl sh am) as (m1 & m2 & -> & -> & em).
  intro r; injection r as <-; eexists; eexists; split; [reflexivity|split; [reflexivity|]].
  unfold beside; cbn [to_all to_one to_extra limit]; rewrite <- x1, <- x2, <- x3, <- y1, <- y2, <- y3, <- p1, <- p2, <- p3,
    <- q1, <- q2, <- q3; repeat split; rewrite !addE, li, em; ring.
Qed.

Inductive rows3 : list (Q * form) -> list (Q * form) -> list (Q * form) -> Prop :=
| rows_nil : rows3 [] [] []
| rows_cons q f g h l0 l1 l : straight_form f g h -> rows3 l0 l1 l -> rows3 ((q, f) :: l0) ((q, g) :: l1) ((q, h) :: l).

Lemma add_rows_straight l0 l1 l : rows3 l0 l1 l -> forall a b c a', beside a b c -> add_rows a l0 = Some a' ->
  exists b' c', add_rows b l1 = Some b' /\ add_rows c l = Some c' /\ beside a' b' c'.
Proof.
  induction 1 as [|q f g h l0 l1 l s r IH]; intros a b c a' n; simpl; [intro x; injection x as <-; eauto|].
  destruct (add_row a q f) as [a2|] eqn:e2; [|discriminate].
  destruct (add_row_straight a b c q f g h a2 n s e2) as (b2 & c2 & -> & -> & n2); apply IH; exact n2.
Qed.

Lemma slot_bound_from vars : forall cs acc acc' m, slot_bound vars cs acc = Some m ->
  exists m', slot_bound vars cs acc' = Some m' /\ m' - acc' == m - acc.
Proof.
  induction vars as [|[c [lo hi]] vars IH]; intros cs acc acc' m; simpl.
  - intro x; injection x as <-; exists acc'; split; [reflexivity|ring].
  - destruct cs as [|a cs]; destruct (at_most _ lo hi) as [k|]; try discriminate; intro x;
      destruct (IH _ _ (add acc' k) _ x) as (m' & e' & d); exists m'; (split; [exact e'|]); rewrite !addE in d; lra.
Qed.

Lemma slots_bound_from {A} (slot : A -> list box) a b ls : to_all a = to_all b -> to_one a = to_one b ->
  forall i acc acc' m, slots_bound A slot a i ls acc = Some m ->
  exists m', slots_bound A slot b i ls acc' = Some m' /\ m' - acc' == m - acc.
Proof.
  intros ea eo; induction ls as [|s ls IH]; intros i acc acc' m; simpl.
  - intro x; injection x as <-; exists acc'; split; [reflexivity|ring].
  - rewrite <- ea, <- eo; destruct (slot_bound (slot s) _ acc) as [k|] eqn:sb; [|discriminate]; intro x.
    destruct (slot_bound_from _ _ _ acc' _ sb) as (k' & -> & d); destruct (IH _ _ k' _ x) as (m' & e' & d').
    exists m'; split; [exact e'|lra].
Qed.

Lemma bound_of_straight {A} (slot : A -> list box) ls ce l0 l1 l b0 b1 : rows3 l0 l1 l ->
  bound_of A slot ls ce l0 = Some b0 -> bound_of A slot ls ce l1 = Some b1 ->
  exists b, bound_of A slot ls ce l = Some b /\ b == (1 - e) * b0 + e * b1.
Proof.
  intro r; unfold bound_of.
  destruct (add_rows (Added [] Empty 0 0) l0) as [a|] eqn:ar; [|discriminate].
  assert (n : beside (Added [] Empty 0 0) (Added [] Empty 0 0) (Added [] Empty 0 0)) by (repeat split; simpl; ring).
  destruct (add_rows_straight _ _ _ r _ _ _ a n ar) as (b & c & -> & -> & ((x1 & x2 & x3) & (y1 & y2 & y3) & li)).
  rewrite <- x3, <- y3; destruct (same (to_extra a) ce); [|discriminate]; intros h0 h1.
  destruct (slots_bound_from slot a b ls x1 x2 _ _ (limit b) _ h0) as (m1 & e1 & d1); rewrite e1 in h1; injection h1 as ->.
  destruct (slots_bound_from slot a c ls y1 y2 _ _ (limit c) _ h0) as (m & em & d); exists m; split; [exact em|].
  rewrite li in d; assert (b1 == b0 - limit a + limit b) as -> by lra; lra.
Qed.

Definition straight_finds (f0 f1 f : dual -> option (N * form)) : Prop :=
  forall d k h0, f0 d = Some (k, h0) -> exists h1 h, f1 d = Some (k, h1) /\ f d = Some (k, h) /\ straight_form h0 h1 h.

Lemma resolve_straight f0 f1 f duals : straight_finds f0 f1 f -> forall seen l0, resolve f0 duals seen = Some l0 ->
  exists l1 l, resolve f1 duals seen = Some l1 /\ resolve f duals seen = Some l /\ rows3 l0 l1 l.
Proof.
  intro s; induction duals as [|d duals IH]; intros seen l0; simpl; [intro x; injection x as <-; exists [], []; repeat split; constructor|].
  destruct (f0 d) as [[k h0]|] eqn:e0; [|discriminate]; destruct (s d k h0 e0) as (h1 & h & -> & -> & sf).
  destruct (at_ seen k); [discriminate|].
  destruct (resolve f0 duals _) as [rest|] eqn:er; [|discriminate]; intro x; injection x as <-.
  destruct (IH _ _ er) as (l1 & l & -> & -> & r); eexists; eexists; split; [reflexivity|split; [reflexivity|]].
  constructor; assumption.
Qed.

Theorem bound_by_straight su f0 f1 f ce duals b0 b1 : straight_finds f0 f1 f ->
  bound_by su f0 ce duals = Some b0 -> bound_by su f1 ce duals = Some b1 ->
  exists b, bound_by su f ce duals = Some b /\ b == (1 - e) * b0 + e * b1.
Proof.
  intros s; unfold bound_by; destruct (resolve f0 duals Empty) as [l0|] eqn:r0; [|discriminate].
  destruct (resolve_straight f0 f1 f duals s _ _ r0) as (l1 & l & -> & -> & r); apply bound_of_straight; exact r.
Qed.
End Straight.
