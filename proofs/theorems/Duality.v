(** * Why certificates prove what they say

    A certificate is a handful of numbers, and a checker tests a few inequalities between them.  Here is why these
    inequalities prove the statement: for linear programs (optimal, at most so much, infeasible, unbounded), for
    Lagrangian bounds of any program, and for Pareto-efficiency.  That numbers of this kind always exist where the
    statement is true is not needed for trusting them, and not proved. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Linear programs

    Maximise sum_j c_j x_j subject to, for each row i, sum_j a_ij x_j <= b_i, or = b_i where [equality i]; and x_j >= 0
    unless [free j].  (A minimum is the negative of a maximum, a row with >= is the negative of one with <=, a range is
    two rows, a bound is a row.) *)
Section LinearPrograms.
Variables (R : realFieldType) (rows columns : finType).
Variables (c : columns -> R) (a : rows -> columns -> R) (b : rows -> R).
Variables (equality : pred rows) (free : pred columns).
Implicit Types (x r : columns -> R) (y : rows -> R).

Definition objective x : R := \sum_j c j * x j.
Definition row x i : R := \sum_j a i j * x j.
Definition primal_feasible x : Prop :=
  (forall j, ~~ free j -> 0 <= x j) /\
  (forall i, if equality i then row x i = b i else row x i <= b i).

(** The dual: a multiplier for each row, of any sign where the row is an equality. *)
Definition dual_objective y : R := \sum_i y i * b i.
Definition column y j : R := \sum_i y i * a i j.
Definition signs y : Prop := forall i, ~~ equality i -> 0 <= y i.
Definition dual_feasible y : Prop :=
  signs y /\ (forall j, if free j then column y j = c j else c j <= column y j).

Lemma rows_columns x y : \sum_i y i * row x i = \sum_j column y j * x j.
Proof.
under eq_bigr do rewrite /row mulr_sumr.
rewrite exchange_big; apply: eq_bigr => j _; rewrite /column mulr_suml.
by apply: eq_bigr => i _; rewrite mulrA.
Qed.

(** Rows, each multiplied by its multiplier, added up. *)
Lemma multiplied_rows x y :
  primal_feasible x -> signs y -> \sum_j column y j * x j <= dual_objective y.
Proof.
move=> [_ fx] sy; rewrite -rows_columns; apply: ler_sum => i _.
by move: (fx i) (sy i); case: (equality i) => [->|le /(_ isT) y0] //; rewrite ler_wpmul2l.
Qed.

(** Weak duality: a dual feasible point bounds the objective ([Bound]). *)
Theorem lp_bound x y : primal_feasible x -> dual_feasible y -> objective x <= dual_objective y.
Proof.
move=> fx [sy dy]; apply: le_trans (multiplied_rows fx sy); apply: ler_sum => j _.
by move: (dy j) (fx.1 j); case: (free j) => [->|le /(_ isT) x0] //; rewrite ler_wpmul2r.
Qed.

(** [Optimality]: both feasible, and the objectives meet. *)
Theorem lp_optimal x y :
  primal_feasible x -> dual_feasible y -> dual_objective y <= objective x ->
  maximises primal_feasible objective x.
Proof. by move=> fx dy meet; split=> // z fz; apply: le_trans (lp_bound fz dy) meet. Qed.

(** Instead of equal objectives, complementary slackness may be checked. *)
Theorem lp_complementary_slackness x y :
  primal_feasible x -> dual_feasible y ->
  (forall i, y i * (b i - row x i) = 0) -> (forall j, (column y j - c j) * x j = 0) ->
  maximises primal_feasible objective x.
Proof.
move=> fx dy rows0 cols0; apply: lp_optimal (fx) (dy) _; apply: le_of_eq.
have -> : dual_objective y = \sum_i y i * row x i.
  by apply: eq_bigr => i _; apply/eqP; rewrite -subr_eq0 -mulrBr rows0.
rewrite rows_columns; apply: eq_bigr => j _.
by apply/eqP; rewrite -subr_eq0 -mulrBl cols0.
Qed.

(** Farkas ([Infeasibility]): multipliers under which the rows add up to 0 <= something negative. *)
Theorem lp_infeasible y :
  signs y -> (forall j, if free j then column y j = 0 else 0 <= column y j) -> dual_objective y < 0 ->
  forall x, ~ primal_feasible x.
Proof.
move=> sy nonneg neg x fx; have := le_lt_trans (multiplied_rows fx sy) neg; rewrite ltNge => /negP[].
apply: sumr_ge0 => j _; move: (nonneg j) (fx.1 j).
by case: (free j) => [->|c0 /(_ isT) x0]; rewrite ?mul0r // mulr_ge0.
Qed.

(** A feasible point and a ray along which the objective rises for ever: no bound holds. *)
Theorem lp_unbounded x r :
  primal_feasible x ->
  (forall j, ~~ free j -> 0 <= r j) -> (forall i, if equality i then row r i = 0 else row r i <= 0) ->
  0 < objective r ->
  forall bound, exists2 z, primal_feasible z & bound < objective z.
Proof.
move=> fx r0 rr up bound; pose s := Num.max 0 ((bound - objective x) / objective r) + 1.
have s0 : 0 <= s by rewrite addr_ge0 ?ler01 // le_maxr lexx.
exists (fun j => x j + s * r j); first split.
- by move=> j nf; rewrite addr_ge0 ?mulr_ge0 ?r0 ?fx.1.
- move=> i; have -> : row (fun j => x j + s * r j) i = row x i + s * row r i.
    by rewrite /row mulr_sumr -big_split; apply: eq_bigr => j _ /=; ring.
  move: (fx.2 i) (rr i); case: (equality i) => [-> ->|le1 le2]; first by rewrite mulr0 addr0.
  by rewrite -[b i]addr0 ler_add // mulr_ge0_le0.
have -> : objective (fun j => x j + s * r j) = objective x + s * objective r.
  by rewrite /objective mulr_sumr -big_split; apply: eq_bigr => j _ /=; ring.
rewrite -ltr_subl_addl -ltr_pdivr_mulr // /s ltr_spaddr ?ltr01 //.
by rewrite le_maxr lexx orbT.
Qed.

End LinearPrograms.

(** ** Lagrangian bounds

    For any set of points (the integral ones, say), any objective and any constraints g_i <= 0 (or = 0): if the
    objective less the multiplied constraints is at most L on the whole set, then the objective is at most L where the
    constraints hold. *)
Theorem lagrangian_bound (R : realFieldType) (rows : finType) (A : Type) (points : A -> Prop)
    (f : A -> R) (g : A -> rows -> R) (equality : pred rows) (y : rows -> R) (L : R) :
  (forall i, ~~ equality i -> 0 <= y i) ->
  (forall z, points z -> f z - \sum_i y i * g z i <= L) ->
  forall z, points z -> (forall i, if equality i then g z i = 0 else g z i <= 0) -> f z <= L.
Proof.
move=> sy bound z pz gz; apply: le_trans (bound z pz); rewrite ler_addl oppr_ge0 -oppr_ge0 -sumrN.
apply: sumr_ge0 => i _; rewrite oppr_ge0; move: (gz i) (sy i).
by case: (equality i) => [->|le /(_ isT) y0]; rewrite ?mulr0 // mulr_ge0_le0.
Qed.

(** ** Weights and prices that prove Pareto-efficiency ([ParetoWeights]) *)
Section ParetoWeights.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y : allocation R n k).

(** What maximises a positively weighted sum of efficiencies is Pareto-efficient. *)
Lemma weighted_maximum_pareto_efficient (among : allocation R n k -> Prop) (lambda : 'I_n -> R) x :
  (forall i, 0 < lambda i) ->
  maximises among (fun y => \sum_i lambda i * utility m y i) x ->
  pareto_efficient_among m among x.
Proof.
move=> pos [ax best]; split=> // y ay dom i; rewrite leNgt; apply/negP => more.
have := best y ay; rewrite leNgt => /negP[].
rewrite (bigD1 i) //= [ltRHS](bigD1 i) //=; apply: ltr_le_add; first by rewrite ltr_pmul2l.
by apply: ler_sum => l _; rewrite ler_pmul2l.
Qed.

(** Demands: [limit i] bounds the number of GPUs that user [i] uses at once, where [limited i]. *)
Variables (limited : pred 'I_n) (limit : 'I_n -> R).
Definition within_demands x : Prop := forall i, limited i -> \sum_j x i j <= limit i.
Definition feasible_with_demands x : Prop := feasible m x /\ within_demands x.

(** [lambda]: the weights of users; [price] of one GPU of each type; [rent] of a user's right to use one more. *)
Variables (lambda : 'I_n -> R) (price : 'I_k -> R) (rent : 'I_n -> R).
Hypothesis lambda_gt0 : forall i, 0 < lambda i.
Hypothesis price_ge0 : forall j, 0 <= price j.
Hypothesis rent_ge0 : forall i, 0 <= rent i.
Hypothesis rent0 : forall i, ~~ limited i -> rent i = 0.
Hypothesis enough : forall i j, lambda i * speedup m i j <= price j + rent i.

Definition pareto_bound : R := \sum_j price j * capacity m j + \sum_(i | limited i) rent i * limit i.

Lemma weighted_sum_bound y : feasible_with_demands y -> \sum_i lambda i * utility m y i <= pareto_bound.
Proof.
move=> [[y0 yc] yd].
have -> : pareto_bound = \sum_j price j * capacity m j + \sum_i (if limited i then rent i * limit i else 0).
  by rewrite -big_mkcond.
apply: (@le_trans _ _ (\sum_j price j * given y j + \sum_i rent i * \sum_j y i j)).
  have -> : \sum_j price j * given y j = \sum_i \sum_j price j * y i j.
    by rewrite exchange_big; apply: eq_bigr => j _; rewrite mulr_sumr.
  rewrite -big_split; apply: ler_sum => i _ /=; rewrite /utility /value !mulr_sumr -big_split.
  by apply: ler_sum => j _ /=; rewrite mulrA -mulrDl ler_wpmul2r.
apply: ler_add; first by apply: ler_sum => j _; rewrite ler_wpmul2l.
apply: ler_sum => i _; case: ifPn => [li|nl]; first by rewrite ler_wpmul2l ?yd.
by rewrite rent0 // mul0r.
Qed.

(** The check of [ParetoWeights.violations]: the weighted sum of efficiencies reaches its bound. *)
Theorem pareto_weights_sound x :
  feasible_with_demands x -> pareto_bound <= \sum_i lambda i * utility m x i ->
  pareto_efficient_among m feasible_with_demands x.
Proof.
move=> fx reached; apply: (weighted_maximum_pareto_efficient lambda_gt0); split=> // y fy.
exact: le_trans (weighted_sum_bound fy) reached.
Qed.

(** Or complementary slackness: who holds a type values it at its price and rent, what has a price is given out, and who
    pays a rent is at its demand. *)
Theorem pareto_weights_slackness x :
  feasible_with_demands x ->
  (forall i j, 0 < x i j -> lambda i * speedup m i j = price j + rent i) ->
  (forall j, 0 < price j -> given x j = capacity m j) ->
  (forall i, 0 < rent i -> \sum_j x i j = limit i) ->
  pareto_efficient_among m feasible_with_demands x.
Proof.
move=> fx held sold at_demand; apply: (pareto_weights_sound fx); have [[x0 xc] xd] := fx; apply: le_of_eq.
transitivity (\sum_j price j * given x j + \sum_i rent i * \sum_j x i j).
  rewrite /pareto_bound [X in _ + X]big_mkcond /=; congr (_ + _).
    apply: eq_bigr => j _; have := price_ge0 j.
    by rewrite le_eqVlt => /predU1P[<-|/sold->]; rewrite ?mul0r.
  apply: eq_bigr => i _; case: ifPn => [li|nl]; last by rewrite rent0 // mul0r.
  by have := rent_ge0 i; rewrite le_eqVlt => /predU1P[<-|/at_demand->]; rewrite ?mul0r.
have -> : \sum_j price j * given x j = \sum_i \sum_j price j * x i j.
  by rewrite exchange_big; apply: eq_bigr => j _; rewrite mulr_sumr.
rewrite -big_split; apply: eq_bigr => i _ /=; rewrite /utility /value !mulr_sumr -big_split.
apply: eq_bigr => j _ /=; rewrite mulrA -mulrDl; have := x0 i j.
by rewrite le_eqVlt => /predU1P[<-|/held->]; rewrite ?mulr0.
Qed.

End ParetoWeights.

(** Without demands. *)
Theorem pareto_weights_without_demands (R : realFieldType) (n k : nat) (m : market R n k)
    (lambda : 'I_n -> R) (price : 'I_k -> R) (x : allocation R n k) :
  (forall i, 0 < lambda i) -> (forall j, 0 <= price j) ->
  (forall i j, lambda i * speedup m i j <= price j) ->
  feasible m x -> \sum_j price j * capacity m j <= \sum_i lambda i * utility m x i ->
  pareto_efficient m x.
Proof.
move=> lambda0 price0 enough fx reached.
have zero : \sum_j price j * capacity m j = pareto_bound m pred0 (fun=> 0) price (fun=> 0).
  by rewrite /pareto_bound big_pred0_eq addr0.
rewrite zero in reached.
have enough' i j : lambda i * speedup m i j <= price j + 0 by rewrite addr0.
have [|_ dom] := pareto_weights_sound lambda0 price0 (fun=> lexx 0) (fun _ _ => erefl) enough' _ reached.
  by split.
by split=> // y fy; apply: dom.
Qed.
