(** * Equal splits, and second-price trading: they are worked out again *)

From Coq Require Import List NArith QArith Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Lies.
Import ListNotations.
Local Open Scope Q_scope.

(** Users times types, of which trades are looked for; as in [proofs/verifier/trading.py], which takes the square. *)
Definition most_pairs : Z := 200000000.

Definition same_trade (a b : trade) : bool :=
  Nat.eqb (buyer a) (buyer b) && Nat.eqb (seller a) (seller b) && Nat.eqb (fast_type a) (fast_type b) &&
  Nat.eqb (slow_type a) (slow_type b) && same (trade_price a) (trade_price b) && same (fast_amount a) (fast_amount b) &&
  same (slow_amount a) (slow_amount b).

Definition told_trades (trades : option (list trade)) : bool := match trades with Some _ => true | None => false end.
Definition split_now (m : market) (trades : option (list trade)) : option (table * list trade) :=
  match trades with Some _ => traded m | None => Some (equal_split m, []) end.
Definition too_many (m : market) (trades : option (list trade)) : bool :=
  let cells := Z.of_nat (List.length (users m) * List.length (types m)) in
  told_trades trades && Z.ltb most_pairs (cells * cells).

Definition check_traded (m : market) (x : table) (trades : option (list trade)) : result :=
  if negb (valid_b m && feasible_b m x) then no "the market is not valid, or the allocation is not feasible"
  else if too_many m trades then no "there are too many users and types"
  else match split_now m trades with
  | Some (y, due) =>
    if all2 same_trade match trades with Some l => l | None => [] end due && all2 (all2 same) x y
    then Accepted (SplitLeft m x (told_trades trades)) else no "the trades that are told are not those that are due, or lead elsewhere"
  | None => no "the trades that are due do not end"
  end.

Lemma check_traded_sound m x trades s : check_traded m x trades = Accepted s ->
  s = SplitLeft m x (told_trades trades) /\ valid m /\ is_split m (told_trades trades) x.
Proof.
  unfold check_traded; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (feasible_b m x); [|discriminate]; simpl negb; cbv iota; destruct (too_many m trades); [discriminate|].
  destruct (split_now m trades) as [[y due]|] eqn:e; [|discriminate].
  destruct (all2 same_trade _ _); [|discriminate]; destruct (all2 (all2 same) x y) eqn:q; [|discriminate].
  intro h; injection h as <-; split; [reflexivity|split; [exact v|]]; exists y; split.
  - destruct trades; simpl in *; [rewrite e; reflexivity|injection e as <- _; reflexivity].
  - apply (all2_ok _ _ (all2_ok _ _ sameP)); exact q.
Qed.

(** Of a market there is one such allocation. *)
Lemma split_alike m after_trades x y : is_split m after_trades x -> is_split m after_trades y -> Forall2 (Forall2 Qeq) x y.
Proof.
  intros (z & e & h) (z' & e' & h'); rewrite e in e'; injection e' as <-; revert h y h'; clear.
  assert (rows : forall a b : list Q, Forall2 Qeq a b -> forall c, Forall2 Qeq c b -> Forall2 Qeq a c).
  { induction 1 as [|p q a b e h IH]; intros c k; inversion k; subst; constructor; [rewrite e; symmetry; assumption|auto]. }
  induction 1 as [|a b x z e h IH]; intros y k; inversion k; subst; constructor; [eapply rows; eassumption|auto].
Qed.
