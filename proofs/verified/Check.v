(** * The checker, and that what it accepts is so *)

From Coq Require Import List QArith String.
From Verified Require Import Syntax Meaning Programs Decided Pareto Standing Shares Decisions Dominated NashBounds
  Assigned Efficient Frontier.
Import ListNotations.

Definition check_certificate (c : certificate) : result :=
  match c with
  | ProgramBound p x v bound gap duals => check_program_bound p x v bound gap duals
  | ProgramInfeasible p duals => check_program_infeasible p duals
  | Bound m p x v bound gap duals named => check_bound m p x v bound gap duals named
  | Infeasible m wanted duals => check_infeasible m wanted duals
  | Property m x p holds => check_property m x p holds
  | OwedProperty m x p holds => check_owed m x p holds
  | Envy m x i l => check_envy m x i l
  | Dominance m x y => check_dominance m x y
  | DominanceOptima m x y optima => check_dominance_optima m x y optima
  | ParetoWeights m x lambda prices demand_duals => check_pareto_weights m x lambda prices demand_duals
  | Misreport m policy_name who report gain truth lie => check_misreport m policy_name who report gain truth lie
  | NashBounds m x gap lowest highest prices demand_duals =>
    check_nash_bounds m x gap lowest highest prices demand_duals
  | NashBoundsWithin m x gap lowest highest costs owed duals =>
    check_nash_bounds_within m x gap lowest highest costs owed duals
  | EfficientUpTo m x lambda v bound gap nodes => check_efficient m x lambda v bound gap nodes
  | Frontier m g p points lines gap told => check_frontier m g p points lines gap told
  | Gangs r types value bound gap grain root cases => check_gangs r types value bound gap grain root cases
  | Decide d => check_decision d
  end.

Theorem check_certificate_sound c s : check_certificate c = Accepted s -> meaning s.
Proof.
  destruct c; simpl.
  - apply check_program_bound_sound.
  - apply check_program_infeasible_sound.
  - apply check_bound_sound.
  - apply check_infeasible_sound.
  - apply check_property_sound.
  - apply check_owed_sound.
  - apply check_envy_sound.
  - apply check_dominance_sound.
  - apply check_dominance_optima_sound.
  - apply check_pareto_weights_sound.
  - apply check_misreport_sound.
  - apply check_nash_bounds_sound.
  - apply check_nash_bounds_within_sound.
  - apply check_gangs_sound.
  - apply check_efficient_sound.
  - apply check_frontier_sound.
  - apply check_decision_sound.
Qed.
