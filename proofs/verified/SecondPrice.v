(** * Equal splits, and second-price trading

    "Gandiva_fair" is Chaudhary and others, Balancing Efficiency and Fairness in Heterogeneous GPU Clusters for Deep
    Learning, EuroSys 2020; trades are those of its Sec. 3.4.  [Qred] is the same number in lowest terms. *)

From Coq Require Import List ZArith QArith Qminmax.
From Verified Require Import Syntax Owed.
Import ListNotations.
Local Open Scope Q_scope.

Definition plus_all (l : list Q) : Q := fold_right (fun a b => Qred (a + b)) 0 l.
Definition less (a b : Q) : bool := negb (Qle_bool b a).

(** ** Equal splits: the same number of GPUs for each unit of weight, or as many as are demanded *)

Definition gpus_at (level : Q) (u : user) : Q :=
  let part := Qred (weight u * level) in match demand u with Some d => Qmin d part | None => part end.
Definition content_at (level : Q) (u : user) : bool :=
  match demand u with Some d => Qle_bool d (weight u * level) | None => false end.
(** So many GPUs for a unit of weight: what those leave who demand less is split again among the others. *)
Fixpoint level_of (rounds : nat) (left : Q) (l : list user) : Q :=
  let level := Qred (left / plus_all (map weight l)) in
  match rounds, partition (content_at level) l with
  | S rounds, ((_ :: _) as few, (_ :: _) as others) => level_of rounds (left - plus_all (map (gpus_at level) few)) others
  | _, _ => level
  end.
(** All types in the same proportion. *)
Definition equal_split (m : market) : table :=
  let all := plus_all (capacity m) in
  let level := level_of (length (users m)) all (users m) in
  map (fun u => map (fun there => Qred (gpus_at level u / all * there)) (capacity m)) (users m).

(** ** In order: of two that are alike the first comes first *)
Section Order.
Context {A : Type} (before : A -> A -> bool).
Fixpoint put (a : A) (l : list A) : list A :=
  match l with [] => [a] | b :: rest => if before a b then a :: l else b :: put a rest end.
Definition in_order (l : list A) : list A := fold_left (fun found a => put a found) l [].
End Order.

(** Types from the slowest to the fastest, by the users' mean, by weight, of speedups over what all GPUs are worth. *)
Definition by_speed (m : market) : list nat :=
  let scaled := map (fun u => Qred (weight u / dot (speedup u) (capacity m))) (users m) in
  let mean j := plus_all (map (fun '(s, u) => Qred (s * nth j (speedup u) 0)) (combine scaled (users m))) in
  map fst (in_order (fun a b => less (snd a) (snd b)) (map (fun j => (j, mean j)) (seq 0 (length (types m))))).
(** Pairs of a faster and a slower type: the fastest first, each with the slowest first. *)
Fixpoint pairs_from (fastest_first : list nat) : list (nat * nat) :=
  match fastest_first with [] => [] | fast :: slower => map (pair fast) (rev slower) ++ pairs_from slower end.

(** ** Trades between two types *)

(** What a user holds; how many slow GPUs one fast GPU is worth to it ([None]: any number); whether it may still buy fast
    ones, and sell them. *)
Record trader := Trader {
  place : nat; who : user; bundle_of : list Q; gain_of_fast : option Q; buys : bool; sells : bool }.
Definition worth_of_fast (fast slow : nat) (u : user) : option Q :=
  let f := nth fast (speedup u) 0 in let s := nth slow (speedup u) 0 in
  if Qeq_bool f 0 then Some 0 else if Qeq_bool s 0 then None else Some (Qred (f / s)).
Definition gains_more (a b : option Q) : bool :=
  match a, b with Some p, Some q => less q p | None, Some _ => true | _, None => false end.
Fixpoint name_before (a b : text) : bool :=
  match a, b with
  | _, [] => false
  | [], _ => true
  | x :: a, y :: b => (x <? y)%Z || ((x =? y)%Z && name_before a b)
  end.
(** Who gains least comes first, and of two alike the one whose name does. *)
Definition sells_before (t u : trader) : bool :=
  gains_more (gain_of_fast u) (gain_of_fast t) ||
  (negb (gains_more (gain_of_fast t) (gain_of_fast u)) && name_before (name (who t)) (name (who u))).
Definition held_of (j : nat) (t : trader) : Q := nth j (bundle_of t) 0.
Definition some_of (j : nat) (t : trader) : bool := negb (Qeq_bool (held_of j t) 0).
Definition other_than (t u : trader) : bool := negb (Nat.eqb (place t) (place u)).

Definition most_gaining (l : list trader) : option trader :=
  fold_left (fun best t => match best with
    | Some b => if gains_more (gain_of_fast t) (gain_of_fast b) then Some t else best
    | None => Some t end) l None.
(** The highest of these bids, but for those without bound. *)
Definition highest_bid (l : list trader) : Q :=
  fold_right (fun t bid => match gain_of_fast t with Some q => Qmax q bid | None => bid end) 0 l.
(** In slow GPUs for a fast one: the second bid where it is above the seller's gain, else the middle of the two. *)
Definition price_of (bid : Q) (buyer seller : trader) (fast slow : nat) : Q :=
  let least := match gain_of_fast seller with Some q => q | None => 0 end in
  Qred (if less least bid then bid else
        match gain_of_fast buyer with
        | Some q => (q + least) / 2
        | None => if Qeq_bool least 0 then held_of slow buyer / held_of fast seller else 2 * least
        end).
(** How many fast GPUs it can trade until it has all that it demands; each adds [more] GPUs. *)
Definition room_for (more : Q) (t : trader) : option Q :=
  if Qle_bool more 0 then None
  else option_map (fun d => Qred (Qmax 0 (d - plus_all (bundle_of t)) / more)) (demand (who t)).
Definition at_most_room (q : Q) (room : option Q) : Q := match room with Some r => Qmin q r | None => q end.
Definition short_of_room (q : Q) (room : option Q) : bool := match room with Some r => less r q | None => false end.

Fixpoint change_at (j : nat) (by_ : Q) (l : list Q) : list Q :=
  match l, j with [], _ => [] | q :: l, O => Qred (q + by_) :: l | q :: l, S j => q :: change_at j by_ l end.
Definition exchanged (fast slow : nat) (amount price : Q) (t : trader) : trader :=
  Trader (place t) (who t) (change_at slow (- (amount * price)) (change_at fast amount (bundle_of t))) (gain_of_fast t)
    (buys t) (sells t).

(** In each step who gains most, of those that hold slow GPUs, buys of who gains least, of those that hold fast ones;
    none is left where the buyer gains no more than the seller. [None]: there are more steps than that. *)
Fixpoint trades_between (steps : nat) (fast slow : nat) (l : list trader) : option (list trader * list trade) :=
  let bidders := filter (fun t => buys t && some_of slow t) l in
  match most_gaining bidders, find (fun t => sells t && some_of fast t) l with
  | Some buyer, Some seller =>
    if negb (gains_more (gain_of_fast buyer) (gain_of_fast seller)) then Some (l, []) else
    match steps with
    | O => None
    | S steps =>
      let price := price_of (highest_bid (filter (other_than buyer) bidders)) buyer seller fast slow in
      let most := Qred (Qmin (held_of fast seller) (held_of slow buyer / price)) in
      let of_seller := room_for (price - 1) seller in
      let of_buyer := room_for (1 - price) buyer in
      let amount := at_most_room (at_most_room most of_seller) of_buyer in
      let after t :=
        let t := Trader (place t) (who t) (bundle_of t) (gain_of_fast t)
          (buys t && (other_than buyer t || negb (short_of_room most of_buyer)))
          (sells t && (other_than seller t || negb (short_of_room most of_seller))) in
        if negb (other_than buyer t) then exchanged fast slow amount price t
        else if negb (other_than seller t) then exchanged fast slow (- amount) price t else t in
      match trades_between steps fast slow (map after l) with
      | None => None
      | Some (l, rest) =>
        Some (l, if Qeq_bool amount 0 then rest
                 else Trade (place buyer) (place seller) fast slow price amount (Qred (amount * price)) :: rest)
      end
    end
  | _, _ => Some (l, [])
  end.
Fixpoint all_trades (pairs : list (nat * nat)) (l : list trader) : option (list trader * list trade) :=
  match pairs with
  | [] => Some (l, [])
  | (fast, slow) :: pairs =>
    let begins t := Trader (place t) (who t) (bundle_of t) (worth_of_fast fast slow (who t)) true true in
    match trades_between (4 * length l) fast slow (in_order sells_before (map begins l)) with
    | None => None
    | Some (l, some) =>
      match all_trades pairs l with Some (l, rest) => Some (l, some ++ rest) | None => None end
    end
  end.

(** What second-price trading makes of an equal split, and its trades. *)
Definition traded (m : market) : option (table * list trade) :=
  let begin '(i, (u, b)) := Trader i u b None true true in
  match all_trades (pairs_from (rev (by_speed m)))
          (map begin (combine (seq 0 (length (users m))) (combine (users m) (equal_split m)))) with
  | Some (l, trades) => Some (map bundle_of (in_order (fun t u => Nat.ltb (place t) (place u)) l), trades)
  | None => None
  end.

Definition is_split (m : market) (after_trades : bool) (x : table) : Prop :=
  exists y, (if after_trades then option_map fst (traded m) else Some (equal_split m)) = Some y /\
    Forall2 (Forall2 Qeq) x y.
