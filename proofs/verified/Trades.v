(** * Prices under which no circle of trades pays: worked out here, and then checked like any other weights

    In a circle of trades each user gives GPUs of a type that it holds to the next and gets another type.  If none pays,
    there are prices at which nobody would rather have another type than one that it holds.  That they are found is not
    proved; that those which are found show Pareto efficiency is ([weights_show_ok]). *)

From Coq Require Import List QArith Bool.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Pareto.
Import ListNotations.
Local Open Scope Q_scope.

(** What users hold and can use. *)
Fixpoint of_use (s b : list Q) : list Q :=
  match s, b with sj :: s, bj :: b => (if nothing sj then 0 else bj) :: of_use s b | _, _ => [] end.

Fixpoint higher (a b : list Q) : list Q :=
  match a, b with [], b => b | a, [] => a | x :: a, y :: b => bigger x y :: higher a b end.

(** For each type that a user holds, how many of it are worth one of each other type, to who values these most. *)
Fixpoint own_rates (all s held : list Q) (rates : list (list Q)) : list (list Q) :=
  match s, held, rates with
  | sj :: s, h :: held, r :: rates =>
    (if lt 0 h then higher (map (fun other => mul other (/ sj)) all) r else r) :: own_rates all s held rates
  | _, _, rates => rates
  end.

(** One more trade: [traded] says which types are. *)
Fixpoint raised (prices : list Q) (rates : list (list Q)) (found : list Q) : list Q :=
  match prices, rates with
  | p :: prices, r :: rates => raised prices rates (if nothing p then found else higher (map (mul p) r) found)
  | _, _ => found
  end.
Fixpoint masked (traded : list bool) (prices : list Q) : list Q :=
  match traded, prices with t :: traded, p :: prices => (if t then p else 0) :: masked traded prices | _, _ => [] end.
Fixpoint trade (times : nat) (traded : list bool) (rates : list (list Q)) (prices : list Q) : list Q :=
  match times with
  | O => prices
  | S times => trade times traded rates (masked traded (raised prices rates prices))
  end.

(** What a unit of a user's throughput may count at these prices: as much as what it holds, or the least of all. *)
Fixpoint of_held (s held prices : list Q) : option Q :=
  match s, held, prices with
  | sj :: s, h :: held, p :: prices => if lt 0 h then Some (mul p (/ sj)) else of_held s held prices
  | _, _, _ => None
  end.
Fixpoint of_best (s prices : list Q) (traded : list bool) : option Q :=
  match s, prices, traded with
  | sj :: s, p :: prices, t :: traded =>
    let rest := of_best s prices traded in
    if t && negb (nothing sj) then
      Some (match rest with Some q => smaller q (mul p (/ sj)) | None => mul p (/ sj) end)
    else rest
  | _, _, _ => None
  end.

Fixpoint chosen (traded : list bool) (prices all : list Q) : list Q :=
  match traded, prices, all with
  | t :: traded, p :: prices, a :: all => (if t then p else a) :: chosen traded prices all
  | _, _, _ => []
  end.

Definition trading_prices (m : market) (held : table) (traded : list bool) : list Q * list Q :=
  let none := map (fun _ => []) (capacity m) in
  let rates := fold_left (fun r '(u, h) => own_rates (speedup u) (speedup u) h r) (combine (users m) held) none in
  let prices := trade (length (filter (fun t => t) traded)) traded rates (map (fun t : bool =>
    if t then 1 else 0) traded) in
  let lambda := map (fun '(u, h) =>
    match of_held (speedup u) h prices with
    | Some q => q
    | None => match of_best (speedup u) prices traded with Some q => q | None => 1 end
    end) (combine (users m) held) in
  let least := fold_left (fun found '(q, u) => higher (map (mul q) (speedup u)) found) (combine lambda (users m)) [] in
  (lambda, chosen traded prices least).

(** Of more types there are too many circles: the other verifier looks at each of them. *)
Definition most_types : nat := 8.

Definition no_trade_pays (m : market) (x : table) : bool :=
  let held := map (fun '(u, b) => of_use (speedup u) b) (combine (users m) x) in
  let traded := map (lt 0) (fold_left higher held (map (fun _ => 0) (capacity m))) in
  if Nat.leb (length (filter (fun t => t) traded)) most_types then
    let '(lambda, prices) := trading_prices m held traded in
    weights_show m x lambda (priced capacity_word 0 prices)
  else false.

Lemma no_trade_pays_ok m x : valid m -> feasible m x -> no_trade_pays m x = true -> pareto_efficient m x.
Proof.
  intros va fx; unfold no_trade_pays; cbv zeta; destruct (Nat.leb _ _); [|discriminate].
  destruct (trading_prices _ _ _) as [lambda prices]; apply weights_show_ok; assumption.
Qed.
