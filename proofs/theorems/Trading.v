(** * Second-price trading hurts nobody: Gandiva_fair Sec. 3.4 and 3.5 *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** [buyer] gets [amount] GPUs of type [fast] from [seller] and pays [price] GPUs of type [slow] for each. *)
Record trade (R : realFieldType) (n k : nat) := Trade {
  buyer : 'I_n;
  seller : 'I_n;
  fast : 'I_k;
  slow : 'I_k;
  price : R;
  amount : R
}.

Section Trading.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x : allocation R n k) (t : trade R n k) (i : 'I_n) (j : 'I_k).

(** What a trade adds to the bundle of user [i]: the buyer gets fast GPUs and gives slow ones, the seller the reverse. *)
Definition sign t i : R := (if i == buyer t then 1 else 0) - (if i == seller t then 1 else 0).
Definition swapped t : bundle R k :=
  fun j => only (fast t) (amount t) j - only (slow t) (amount t * price t) j.
Definition carry_out t x : allocation R n k := fun i j => x i j + sign t i * swapped t j.

(** The price lies between the seller's ratio and the buyer's, where a user's ratio is its speedup on the fast type over
    that on the slow one.  Written without dividing, so that it also makes sense for users that cannot run on one of
    the types.  The second price is the highest ratio but one, or the middle where there is none: either lies there. *)
Definition acceptable t : Prop :=
  [/\ buyer t != seller t, 0 <= amount t,
      speedup m (seller t) (fast t) <= price t * speedup m (seller t) (slow t)
    & price t * speedup m (buyer t) (slow t) <= speedup m (buyer t) (fast t)].

Lemma acceptable_by_ratios t :
  buyer t != seller t -> 0 <= amount t ->
  0 < speedup m (seller t) (slow t) -> 0 < speedup m (buyer t) (slow t) ->
  speedup m (seller t) (fast t) / speedup m (seller t) (slow t) <= price t ->
  price t <= speedup m (buyer t) (fast t) / speedup m (buyer t) (slow t) ->
  acceptable t.
Proof. by move=> bs a0 ss sb; rewrite ler_pdivr_mulr // ler_pdivl_mulr //; split. Qed.

Lemma carry_out_utility t x i :
  utility m (carry_out t x) i =
  utility m x i + sign t i * (amount t * (speedup m i (fast t) - price t * speedup m i (slow t))).
Proof. by rewrite /utility valueD valueZ valueB !value_only; ring. Qed.

Lemma sign_buyer t : buyer t != seller t -> sign t (buyer t) = 1.
Proof. by rewrite /sign eqxx => /negbTE->; rewrite subr0. Qed.

Lemma sign_seller t : buyer t != seller t -> sign t (seller t) = - 1.
Proof. by rewrite /sign eqxx eq_sym => /negbTE->; rewrite sub0r. Qed.

(** What the two sides gain. *)
Theorem buyer_gain t x : buyer t != seller t ->
  utility m (carry_out t x) (buyer t) - utility m x (buyer t) =
  amount t * (speedup m (buyer t) (fast t) - price t * speedup m (buyer t) (slow t)).
Proof. by move=> bs; rewrite carry_out_utility sign_buyer //; ring. Qed.

Theorem seller_gain t x : buyer t != seller t ->
  utility m (carry_out t x) (seller t) - utility m x (seller t) =
  amount t * (price t * speedup m (seller t) (slow t) - speedup m (seller t) (fast t)).
Proof. by move=> bs; rewrite carry_out_utility sign_seller //; ring. Qed.

Theorem bystander_gain t x i : i != buyer t -> i != seller t ->
  utility m (carry_out t x) i = utility m x i.
Proof. by move=> /negbTE ib /negbTE is_; rewrite carry_out_utility /sign ib is_ subrr mul0r addr0. Qed.

(** Each trade hurts neither side, nor anybody else. *)
Theorem trade_hurts_nobody t x i : acceptable t -> utility m x i <= utility m (carry_out t x) i.
Proof.
move=> [bs a0 sells buys].
case: (eqVneq i (buyer t)) => [->|ib]; first by rewrite -subr_ge0 buyer_gain // mulr_ge0 ?subr_ge0.
case: (eqVneq i (seller t)) => [->|is_]; first by rewrite -subr_ge0 seller_gain // mulr_ge0 ?subr_ge0.
by rewrite bystander_gain.
Qed.

(** Strictly between the ratios, and for a positive amount, both sides gain. *)
Theorem trade_helps_both t x :
  buyer t != seller t -> 0 < amount t ->
  speedup m (seller t) (fast t) < price t * speedup m (seller t) (slow t) ->
  price t * speedup m (buyer t) (slow t) < speedup m (buyer t) (fast t) ->
  utility m x (buyer t) < utility m (carry_out t x) (buyer t) /\
  utility m x (seller t) < utility m (carry_out t x) (seller t).
Proof.
move=> bs a0 sells buys; split.
  by rewrite -subr_gt0 buyer_gain // mulr_gt0 ?subr_gt0.
by rewrite -subr_gt0 seller_gain // mulr_gt0 ?subr_gt0.
Qed.

(** ** Trading keeps an allocation feasible while nobody gives more than it has *)

Definition affordable t x : Prop :=
  [/\ fast t != slow t, buyer t != seller t, 0 <= amount t, 0 <= price t &
      amount t <= x (seller t) (fast t) /\ amount t * price t <= x (buyer t) (slow t)].

Lemma sum_sign t : \sum_i sign t i = 0.
Proof. by rewrite /sign sumrB -!big_mkcond !big_pred1_eq subrr. Qed.

Theorem trade_keeps_given t x j : given (carry_out t x) j = given x j.
Proof. by rewrite /given big_split /= -mulr_suml sum_sign mul0r addr0. Qed.

Theorem trade_keeps_feasible t x : affordable t x -> feasible m x -> feasible m (carry_out t x).
Proof.
move=> [/negbTE fs bs a0 p0 [sells buys]] [x0 xc]; split=> [i j|j]; last by rewrite trade_keeps_given.
have pay0 : 0 <= amount t * price t by rewrite mulr_ge0.
rewrite /carry_out.
case: (eqVneq i (buyer t)) => [->|ib].
  rewrite sign_buyer // mul1r /swapped /only; case: (eqVneq j (fast t)) => [->|_].
    by rewrite fs subr0 addr_ge0.
  by case: eqP => [->|_]; rewrite sub0r ?oppr0 ?addr0 // subr_ge0.
case: (eqVneq i (seller t)) => [->|is_].
  rewrite sign_seller // mulN1r /swapped /only opprB; case: (eqVneq j (fast t)) => [->|_].
    by rewrite fs sub0r subr_ge0.
  by rewrite subr0 addr_ge0 //; case: ifP.
by rewrite /sign (negbTE ib) (negbTE is_) subrr mul0r addr0.
Qed.

(** ** Any number of trades *)

(** [leads ts x y]: the trades [ts], one after the other, lead from [x] to [y]. *)
Fixpoint carry_out_all (ts : seq (trade R n k)) x : allocation R n k :=
  if ts is t :: rest then carry_out_all rest (carry_out t x) else x.

Fixpoint all_acceptable (ts : seq (trade R n k)) : Prop :=
  if ts is t :: rest then acceptable t /\ all_acceptable rest else True.

Fixpoint all_affordable (ts : seq (trade R n k)) x : Prop :=
  if ts is t :: rest then affordable t x /\ all_affordable rest (carry_out t x) else True.

Theorem trades_hurt_nobody ts x i :
  all_acceptable ts -> utility m x i <= utility m (carry_out_all ts x) i.
Proof.
elim: ts x => [|t ts IH] x //= [ok oks].
exact: le_trans (trade_hurts_nobody x i ok) (IH _ oks).
Qed.

Theorem trades_keep_feasible ts x :
  all_affordable ts x -> feasible m x -> feasible m (carry_out_all ts x).
Proof. by elim: ts x => [|t ts IH] x //= [ok oks] fx; apply: IH => //; apply: trade_keeps_feasible. Qed.

(** From the equal split, whoever trades what at acceptable prices, everybody keeps at least its fair share. *)
Theorem trading_sharing_incentive ts :
  all_acceptable ts -> sharing_incentive m (carry_out_all ts (equal_split m)).
Proof. by move=> ok i; apply: (trades_hurt_nobody (equal_split m) i ok). Qed.

(** Gandiva_fair Sec. 3.4: "each user in the trade is still guaranteed to get their fair share". *)
Theorem trading_feasible_and_sharing_incentive ts :
  all_acceptable ts -> all_affordable ts (equal_split m) ->
  feasible m (carry_out_all ts (equal_split m)) /\ sharing_incentive m (carry_out_all ts (equal_split m)).
Proof.
move=> ok can; split; last exact: trading_sharing_incentive.
exact: trades_keep_feasible can (equal_split_feasible m).
Qed.

End Trading.
