(** * Decisions: what a rule decides on a market, alone or inside of other certificates *)

From Coq Require Import List QArith Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Decided Optima Nash Filling Filled Lies.
Import ListNotations.
Local Open Scope Q_scope.

(** What a certificate inside of another proves: all optima, what is chosen among them, and the statement. *)
Inductive answer :=
| Decided (o : optima) (c : chosen) (s : statement)
| Refused (r : result).

Definition refused (s : string) : answer := Refused (no s).
Definition unknown (s : string) : answer := Refused (NotCovered (word s)).

Definition answer_fine (a : answer) : Prop :=
  match a with
  | Decided o c s => optima_fine o /\ chosen_fine o c /\ meaning s
  | Refused (Accepted _) => False
  | Refused _ => True
  end.

Definition decide_optimality m p x v duals named : answer :=
  match check_optimality m p x v duals named with
  | Accepted s => Decided (optima_of_policy p m v) (Point x) s
  | r => Refused r
  end.

Lemma decide_optimality_fine m p x v duals named : answer_fine (decide_optimality m p x v duals named).
Proof.
  unfold decide_optimality; destruct (check_optimality m p x v duals named) as [s| |] eqn:e; [|exact I|exact I].
  pose proof (check_optimality_sound _ _ _ _ _ _ _ e) as h.
  assert (s = IsOptimal m p x v) as ->.
  { revert e; unfold check_optimality; destruct (reached_and_bound _ _ _ _ _) as [[t b]|]; [|discriminate].
    destruct (same t v && same b v); [|discriminate]; congruence. }
  destruct h as (va & r & n).
  split; [exact (optima_of_policy_ok p m x v va r n)|split; [exists v; auto|exact (conj va (conj r n))]].
Qed.

Definition decide_equilibrium m x prices demand_duals : answer :=
  match price_duals m prices demand_duals with
  | None => refused "prices or demand duals are not one for each"
  | Some duals =>
    if is_equilibrium m x duals then Decided (optima_of_equilibrium m x) (Point x) (MaximisesNash m x)
    else refused "the allocation is not feasible, or the prices are not those of an equilibrium"
  end.

Lemma decide_equilibrium_fine m x prices demand_duals : answer_fine (decide_equilibrium m x prices demand_duals).
Proof.
  unfold decide_equilibrium; destruct (price_duals _ _ _) as [duals|]; [|exact I].
  destruct (is_equilibrium m x duals) eqn:e; [|exact I]; apply is_equilibrium_ok in e.
  pose proof (settled_maximises m x e) as best.
  split; [exact (optima_of_equilibrium_ok m x e)|split; [exact best|exact (conj (proj1 e) best)]].
Qed.

Definition decide_levels m x n rounds : answer :=
  if is_filling m n x rounds && norms_positive m n then Decided (optima_of_filling m n x) (Point x) (LevelsAre m x n)
  else refused "the allocation is not feasible, or the rounds do not show its levels".

Lemma decide_levels_fine m x n rounds : answer_fine (decide_levels m x n rounds).
Proof.
  unfold decide_levels; destruct (is_filling m n x rounds) eqn:f; [|exact I].
  destruct (norms_positive m n) eqn:p; [|exact I]; destruct (is_filling_ok _ _ _ _ f) as [v fair].
  split; [exact (optima_of_filling_ok m n x v fair p)|split; [exact fair|exact (conj v fair)]].
Qed.

Definition decide_alone (d : decision) : answer :=
  match d with
  | Optimality m p x v duals named => decide_optimality m p x v duals named
  | Levels m x n rounds => decide_levels m x n rounds
  | Equilibrium m x prices demand_duals => decide_equilibrium m x prices demand_duals
  | Extreme _ _ _ _ _ _ _ => refused "a range leaves no choice over which a range is certified"
  | _ => unknown "this kind of decision"
  end.

Definition decide (d : decision) : answer :=
  match d with
  | Extreme of highest w x v duals named =>
    match decide_alone of with
    | Decided o _ _ =>
      if is_extreme o highest w x v duals named
      then Decided o (Range highest w v) (ExtremeIs (on_market o) (by_rule o) highest w v)
      else refused "the extreme over all optima is another"
    | r => r
    end
  | _ => decide_alone d
  end.

Lemma decide_alone_fine d : answer_fine (decide_alone d).
Proof.
  destruct d; try exact I.
  - apply decide_optimality_fine.
  - apply decide_levels_fine.
  - apply decide_equilibrium_fine.
Qed.

Lemma decide_fine d : answer_fine (decide d).
Proof.
  destruct d as [| | |of highest w x v duals named|]; try apply decide_alone_fine; simpl.
  pose proof (decide_alone_fine of) as h; destruct (decide_alone of) as [o c s|r]; [|exact h].
  destruct (is_extreme _ _ _ _ _ _ _) eqn:e; [|exact I]; destruct h as (fo & _ & _).
  pose proof (is_extreme_ok _ _ _ _ _ _ _ fo e) as ex.
  split; [exact fo|split; [exact ex|split; [exact (proj1 fo)|exact ex]]].
Qed.

Definition check_decision (d : decision) : result :=
  match decide d with Decided _ _ s => Accepted s | Refused r => r end.

Lemma check_decision_sound d s : check_decision d = Accepted s -> meaning s.
Proof.
  unfold check_decision; pose proof (decide_fine d) as h; destruct (decide d) as [o c t|r]; simpl in h.
  - intro e; injection e as <-; apply h.
  - destruct r; [destruct h|discriminate|discriminate].
Qed.

Definition check_misreport m policy_name who report gain truth lie : result :=
  match decide truth, decide lie with
  | Decided o c _, Decided o' c' _ => check_rewards m policy_name who report gain o c o' c'
  | Refused r, _ | _, Refused r => r
  end.

Lemma check_misreport_sound m policy_name who report gain truth lie s :
  check_misreport m policy_name who report gain truth lie = Accepted s -> meaning s.
Proof.
  unfold check_misreport; pose proof (decide_fine truth) as h; pose proof (decide_fine lie) as h'.
  destruct (decide truth) as [o c t|r]; [|destruct r; [destruct h|discriminate|discriminate]].
  destruct (decide lie) as [o' c' t'|r]; [|destruct r; [destruct h'|discriminate|discriminate]].
  destruct h as (fo & fc & _), h' as (fo' & fc' & _); exact (check_rewards_sound _ _ _ _ _ _ _ _ _ _ fo fc fo' fc').
Qed.
