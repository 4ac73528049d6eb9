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
    the types.  Gandiva_fair's prices lie there: [second_price_acceptable], [middle_price_acceptable] below. *)
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

(** ** Gandiva_fair's prices

    As [models/gandiva_fair/second_price_trading.py] has them.  A user's ratio is its speedup on the fast type over that on the slow
    one.  It is [unbounded] where the user can run on the fast type only, and 0 where it cannot run on the fast type:
    [a / 0] is 0 in mathcomp, so [ratio] is right for users that can run on neither. *)
Definition ratio t i : R := speedup m i (fast t) / speedup m i (slow t).
Definition unbounded t i : bool := (0 < speedup m i (fast t)) && (speedup m i (slow t) == 0).

(** The ratio of [l] is below that of [i]. *)
Definition below t l i : bool := ~~ unbounded t l && (unbounded t i || (ratio t l < ratio t i)).

(** Who buys has the largest ratio of all owners of slow GPUs, and a larger one than who sells.  (Gandiva_fair's seller
    has the least ratio of all owners of fast GPUs; that is not needed.) *)
Definition buyer_wins (owner : pred 'I_n) t : Prop :=
  below t (seller t) (buyer t) /\ forall i, owner i -> ~~ below t (buyer t) i.

(** Bidders are the other owners of slow GPUs with a finite ratio above the seller's. *)
Definition bids (owner : pred 'I_n) t i : bool :=
  [&& i != buyer t, owner i, ~~ unbounded t i & below t (seller t) i].

(** The second price: the highest bid. *)
Definition second_price (owner : pred 'I_n) t : Prop :=
  exists i, [/\ bids owner t i, price t = ratio t i & forall l, bids owner t l -> ratio t l <= price t].

(** The price where nobody bids: the middle of the two ratios.  An unbounded ratio has no middle; twice the seller's ratio
    (the middle of the inverse ratios) takes its place; and where that is 0 too, any price from 0 on. *)
Definition middle_price t : Prop :=
  if ~~ unbounded t (buyer t) then price t = (ratio t (seller t) + ratio t (buyer t)) / 2%:R
  else if 0 < ratio t (seller t) then price t = 2%:R * ratio t (seller t)
  else 0 <= price t.

Lemma ratio_ge0 t i : 0 <= ratio t i.
Proof. by rewrite divr_ge0 ?speedup_ge0. Qed.

Lemma second_price_ge0 owner t : second_price owner t -> 0 <= price t.
Proof. by case=> i [_ -> _]; apply: ratio_ge0. Qed.

Lemma middle_price_ge0 t : middle_price t -> 0 <= price t.
Proof.
rewrite /middle_price; case: ifP => _; last case: ifP => _ //.
  by move=> ->; rewrite divr_ge0 ?ler0n // addr_ge0 // ratio_ge0.
by move=> ->; rewrite mulr_ge0 ?ler0n // ratio_ge0.
Qed.

Lemma below_neq t l i : below t l i -> i != l.
Proof. by apply: contraTneq => ->; rewrite /below ltxx orbF andNb. Qed.

(** Between the ratios, where they are finite, is acceptable. *)
Lemma acceptable_between t :
  below t (seller t) (buyer t) -> 0 <= amount t -> 0 <= price t -> ratio t (seller t) <= price t ->
  unbounded t (buyer t) || (price t <= ratio t (buyer t)) -> acceptable t.
Proof.
move=> lower a0 p0 sells buys; split=> //; first exact: below_neq lower.
  have := speedup_ge0 m (seller t) (slow t); rewrite le_eqVlt => /predU1P[zero|pos]; last first.
    by rewrite -ler_pdivr_mulr.
  case/andP: lower => finite _; rewrite -zero mulr0 leNgt.
  by apply: contra finite => fpos; rewrite /unbounded fpos -zero eqxx.
have := speedup_ge0 m (buyer t) (slow t); rewrite le_eqVlt => /predU1P[<-|pos].
  by rewrite mulr0 speedup_ge0.
by case/orP: buys => [/andP[_]|]; [rewrite gt_eqF | rewrite ler_pdivl_mulr].
Qed.

(** The second price lies between the ratios; zeros are allowed. *)
Theorem second_price_acceptable owner t :
  0 <= amount t -> buyer_wins owner t -> second_price owner t -> acceptable t.
Proof.
move=> a0 [lower best] second; have [i [/and4P[_ own finite above] e _]] := second.
apply: acceptable_between => //; first exact: second_price_ge0 second.
  rewrite e; apply: ltW; case/andP: above => _.
  by rewrite (negbTE finite).
by move: (best i own); rewrite /below (negbTE finite) negb_and negbK /= -leNgt e.
Qed.

(** So does the middle. *)
Theorem middle_price_acceptable t :
  0 <= amount t -> below t (seller t) (buyer t) -> middle_price t -> acceptable t.
Proof.
move=> a0 lower middle; have two : 0 < 2%:R :> R by rewrite ltr0n.
have p0 := middle_price_ge0 middle.
move: middle; rewrite /middle_price; case: ifP => [finite e|/negbFE infinite].
  have /andP[_] := lower; rewrite (negbTE finite) /= => /ltW le.
  apply: acceptable_between => //; rewrite e.
    by rewrite ler_pdivl_mulr // mulr_natr mulr2n ler_add2l.
  by rewrite ler_pdivr_mulr // mulr_natr mulr2n ler_add2r le orbT.
case: ifP => [pos e|/negbT zero _]; apply: acceptable_between => //; rewrite ?infinite //.
  by rewrite e mulr_natl mulr2n ler_addl ratio_ge0.
by apply: le_trans p0; rewrite leNgt.
Qed.

(** A trade as Gandiva_fair makes it while users hold [x]: two types, a buyer that wins, the second price or, where nobody
    bids, the middle, and an amount that both can give. *)
Definition owners t x : pred 'I_n := fun i => 0 < x i (slow t).
Definition gandiva_fair_trade t x : Prop :=
  [/\ fast t != slow t, buyer_wins (owners t x) t,
      second_price (owners t x) t \/ (forall i, ~~ bids (owners t x) t i) /\ middle_price t,
      0 <= amount t & amount t <= x (seller t) (fast t) /\ amount t * price t <= x (buyer t) (slow t)].

Fixpoint gandiva_fair_trades (ts : seq (trade R n k)) x : Prop :=
  if ts is t :: rest then gandiva_fair_trade t x /\ gandiva_fair_trades rest (carry_out t x) else True.

Theorem gandiva_fair_trade_acceptable t x : gandiva_fair_trade t x -> acceptable t /\ affordable t x.
Proof.
move=> [fs wins prices a0 can]; have ok : acceptable t.
  case: prices => [second|[_ middle]]; first exact: second_price_acceptable second.
  exact: middle_price_acceptable wins.1 middle.
split=> //; split=> //; first by case: ok.
by case: prices => [/second_price_ge0|[_ /middle_price_ge0]].
Qed.

(** So Gandiva_fair's trading, however many trades and whoever sells, gives everybody at least its fair share. *)
Theorem second_price_trading_sharing_incentive ts :
  gandiva_fair_trades ts (equal_split m) ->
  feasible m (carry_out_all ts (equal_split m)) /\ sharing_incentive m (carry_out_all ts (equal_split m)).
Proof.
move=> trades; suff [] : all_acceptable ts /\ all_affordable ts (equal_split m).
  exact: trading_feasible_and_sharing_incentive.
elim: ts (equal_split m) trades => [|t ts IH] x //= [/gandiva_fair_trade_acceptable[ok can] /IH[oks cans]].
by split.
Qed.

End Trading.
