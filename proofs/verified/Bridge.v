(** * The definitions of [Meaning] are those of [proofs/theorems/Market.v]

    There numbers are of any ordered field; here they are fractions of Coq's binary integers, which compute.  A fraction
    stands for a number of MathComp's field of rationals, every one of these stands for one,
      and what [Meaning] says of a
    market without demands is what [Market.v] says of the market that it stands for. *)

From Coq Require Import ZArith QArith List Lia.
From mathcomp Require Import all_ssreflect all_algebra ssrZ zify.
From Verified Require Import Syntax Meaning Rationals.
From FairSharing Require Market.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Markets and allocations *)

Notation nobody := (User nil nil zero None).

Section Market.
Variables (m : market) (v : valid m).
Notation n := (length (users m)).
Notation k := (length (capacity m)).

Definition user_at (i : nat) : user := List.nth i (users m) nobody.
Definition bundle_at (x : table) (i : nat) : list Q := List.nth i x nil.

Lemma user_in (i : 'I_n) : In (user_at i) (users m).
Proof. by apply: nth_In; apply/ssrnat.ltP; apply: ltn_ord. Qed.
Lemma user_fine (i : 'I_n) :
  length (speedup (user_at i)) = k /\ (forall s, In s (speedup (user_at i)) -> Qle 0 s) /\ Qlt 0 (weight (user_at i)).
Proof. by case: v => _ [_ [_ [_ /(_ _ (user_in i))]]] [? [? [? _]]]. Qed.

Lemma nonneg_at l (j : nat) : (forall q, In q l -> Qle 0 q) -> 0 <= at_ l j.
Proof.
move=> h; rewrite -q2r0; apply/q2r_le; case: (Nat.lt_ge_cases j (length l)) => [lt|ge]; first exact: h (nth_In _ _ lt).
by rewrite nth_overflow //; apply: Qle_refl.
Qed.

Fact speedup_nonneg (i : 'I_n) (j : 'I_k) : 0 <= at_ (speedup (user_at i)) j.
Proof. by apply: nonneg_at; case: (user_fine i) => _ []. Qed.
Fact weight_pos (i : 'I_n) : 0 < q2r (weight (user_at i)).
Proof. by rewrite -q2r0; apply/q2r_lt; case: (user_fine i) => _ []. Qed.
Fact capacity_nonneg (j : 'I_k) : 0 <= at_ (capacity m) j.
Proof. by apply: nonneg_at; case: v => _ [_ [_ []]]. Qed.

(** The market of [Market.v] that [m] stands for, and the allocation that a table does. *)
Definition the_market : Market.market [realFieldType of rat] n k :=
  Market.Market speedup_nonneg weight_pos capacity_nonneg.
Definition the_allocation (x : table) : Market.allocation [realFieldType of rat] n k :=
  fun i j => at_ (bundle_at x i) j.

Lemma has_at x u b : shaped m x -> has m x u b <-> exists i : 'I_n, u = user_at i /\ b = bundle_at x i.
Proof.
move=> [len _]; split=> [h|[i [-> ->]]].
  have [j [lt e]] := In_nth _ _ (nobody, nil) h; have := e; rewrite combine_nth // => -[<- <-].
  have ltn : (j < n)%N by apply/ssrnat.ltP; move: lt; rewrite combine_length len Nat.min_id.
  by exists (Ordinal ltn).
have lt : (i < length (combine (users m) x))%coq_nat.
  by rewrite combine_length len Nat.min_id; apply/ssrnat.ltP; apply: ltn_ord.
by rewrite /has /user_at /bundle_at -combine_nth //; apply: nth_In.
Qed.

Lemma bundle_length x (i : 'I_n) : shaped m x -> length (bundle_at x i) = k.
Proof. by move=> [len h]; apply/h/nth_In; rewrite len; apply/ssrnat.ltP; apply: ltn_ord. Qed.

Lemma value_same i b : q2r (value (user_at i) b) = \sum_(j < length (speedup (user_at i))) at_ (speedup (user_at i)) j
  * at_ b j.
Proof. exact: q2r_dot. Qed.

Lemma utility_same x (i : 'I_n) : q2r (value (user_at i) (bundle_at x i)) = Market.utility the_market (the_allocation
  x) i.
Proof. by rewrite value_same (user_fine i).1. Qed.

Lemma other_same x (i l : 'I_n) : q2r (value (user_at i) (bundle_at x l)) = Market.value the_market i (the_allocation x
  l).
Proof. by rewrite value_same (user_fine i).1. Qed.

Lemma given_same x (j : 'I_k) : shaped m x -> q2r (given x j) = Market.given (the_allocation x) j.
Proof. by move=> [len _]; rewrite /given (q2r_sum nil) len. Qed.

(** *** Feasible *)
Theorem feasible_same x : shaped m x -> feasible m x <-> Market.feasible the_market (the_allocation x).
Proof.
move=> sh; split=> [[_ [nn fit]]|[nn fit]]; split.
- move=> i j; apply: nonneg_at => q h; apply: (nn (bundle_at x i)) => //.
  by apply: nth_In; rewrite sh.1; apply/ssrnat.ltP; apply: ltn_ord.
- by move=> j; rewrite -given_same //; apply/q2r_le/fit/ssrnat.ltP/ltn_ord.
- exact: sh.
split=> [b q hb hq|j /ssrnat.ltP lt].
  have [i [lti eb]] := In_nth _ _ nil hb; have [j [ltj eq]] := In_nth _ _ zero hq.
  have ltin : (i < n)%N by apply/ssrnat.ltP; rewrite -sh.1.
  have ltjk : (j < k)%N by apply/ssrnat.ltP; rewrite -(sh.2 b hb).
  by move: (nn (Ordinal ltin) (Ordinal ltjk)); rewrite /the_allocation /bundle_at /= eb eq -q2r0 => /q2r_le.
by apply/q2r_le; rewrite (given_same (Ordinal lt)) //; apply: fit.
Qed.

(** *** Without demands *)
Hypothesis no_demands : forall u, In u (users m) -> demand u = None.

Lemma worth_same i b : worth (user_at i) b = value (user_at i) b.
Proof.
rewrite /worth; case: (Nat.lt_ge_cases i n) => [lt|ge]; last by rewrite /user_at nth_overflow.
by rewrite no_demands //; apply: nth_In.
Qed.

Lemma total_weight_same : q2r (total_weight m) = Market.total_weight the_market.
Proof. by rewrite /total_weight (q2r_sum nobody). Qed.

Lemma fair_share_same (i : 'I_n) : q2r (fair_share m (user_at i)) = Market.fair_share the_market i.
Proof.
rewrite /fair_share worth_same value_same (user_fine i).1; apply: eq_bigr => j _; congr (_ * _).
rewrite /own_part (nth_indep _ zero (Qmult (Qdiv (weight (user_at i)) (total_weight m)) zero)); last first.
  by rewrite map_length; apply/ssrnat.ltP; apply: ltn_ord.
by rewrite (map_nth (fun there => Qmult _ there)) q2r_mul q2r_div total_weight_same.
Qed.

(** *** Sharing incentive *)
Theorem sharing_incentive_same x : shaped m x ->
  sharing_incentive m x <-> Market.sharing_incentive the_market (the_allocation x).
Proof.
move=> sh; split=> [h i|h u b /(has_at _ _ sh) [i [-> ->]]].
  rewrite -fair_share_same -utility_same; apply/q2r_le; rewrite -worth_same; apply: h.
  by apply/has_at => //; exists i.
by apply/q2r_le; rewrite fair_share_same worth_same utility_same.
Qed.

Lemma scaled_value i a b : Qeq (value (user_at i) (scaled a b)) (Qmult a (value (user_at i) b)).
Proof.
rewrite /value; elim: (speedup _) b => [|s l IH] [|q b] /=; try by rewrite /Qeq /=; lia.
by rewrite IH; ring.
Qed.

(** *** Envy *)
Lemma envy_at x (i l : 'I_n) : q2r (value (user_at i) (scaled (Qdiv (weight (user_at i)) (weight (user_at l)))
  (bundle_at x l))) =
  Market.weight the_market i / Market.weight the_market l * Market.value the_market i (the_allocation x l).
Proof. by rewrite ((q2r_eq _ _).1 (scaled_value _ _ _)) q2r_mul q2r_div other_same. Qed.

Theorem envy_free_same x : shaped m x -> envy_free m x <-> Market.envy_free the_market (the_allocation x).
Proof.
move=> sh; split=> [h i l|h u b w c /(has_at _ _ sh) [i [-> ->]] /(has_at _ _ sh) [l [-> ->]]].
  rewrite -envy_at -utility_same leNgt; apply/negP => /q2r_lt envy.
  apply: (h (user_at i) (bundle_at x i) (user_at l) (bundle_at x l)); [by apply/has_at => //; exists i| |].
    by apply/has_at => //; exists l.
  by rewrite /envies !worth_same.
by rewrite /envies !worth_same => /q2r_lt; rewrite envy_at utility_same ltNge h.
Qed.

(** *** Pareto efficiency *)
Lemma nth_same (A : Type) (d : A) l (j : nat) : List.nth j l d = nth d l j.
Proof. by elim: l j => [|a l IH] [|j] //=. Qed.
Lemma length_same (A : Type) (l : seq A) : length l = size l.
Proof. by []. Qed.

Definition table_of (y : Market.allocation [realFieldType of rat] n k) : table :=
  [seq [seq r2q (y i j) | j <- enum 'I_k] | i <- enum 'I_n].

Lemma table_shaped y : shaped m (table_of y).
Proof.
split; first by rewrite length_same size_map size_enum_ord.
move=> b h; have [i [lt <-]] := In_nth _ _ nil h; move: lt; rewrite length_same size_map size_enum_ord =>
  /ssrnat.ltP lt.
by rewrite nth_same (nth_map (Ordinal lt)) ?size_enum_ord // length_same size_map size_enum_ord.
Qed.

Lemma table_at y i j : the_allocation (table_of y) i j = y i j.
Proof.
rewrite /the_allocation /bundle_at !nth_same /table_of (nth_map i) ?size_enum_ord // (nth_map j) ?size_enum_ord //.
by rewrite r2qK !nth_ord_enum.
Qed.

Lemma triple_in x y (i : 'I_n) : shaped m x -> shaped m y ->
  In (user_at i, (bundle_at x i, bundle_at y i)) (combine (users m) (combine x y)).
Proof.
move=> [lx _] [ly _]; have lc : length (combine x y) = n by rewrite combine_length lx ly Nat.min_id.
rewrite /user_at /bundle_at -combine_nth ?lx ?ly // -combine_nth ?lc //; apply: nth_In.
by rewrite combine_length lc Nat.min_id; apply/ssrnat.ltP; apply: ltn_ord.
Qed.

Lemma least_same x y : shaped m x -> shaped m y ->
  everybody_at_least m x y <->
  (forall i, Market.utility the_market (the_allocation x) i <= Market.utility the_market (the_allocation y) i).
Proof.
move=> sx sy; split=> [h i|h u b c hin].
  by rewrite -!utility_same; apply/q2r_le; rewrite -!worth_same; apply: h; apply: triple_in.
have lc : length (combine x y) = n by rewrite combine_length sx.1 sy.1 Nat.min_id.
have [i [lt e]] := In_nth _ _ (nobody, (nil, nil)) hin; have lti : (i < n)%N.
  by apply/ssrnat.ltP; move: lt; rewrite combine_length lc Nat.min_id.
move: e; rewrite combine_nth ?lc // combine_nth ?sx.1 ?sy.1 // => -[<- <- <-].
by have := h (Ordinal lti); rewrite -!utility_same => /q2r_le; rewrite -!worth_same.
Qed.

Lemma utility_eq (y z : Market.allocation [realFieldType of rat] n k) i :
  (forall i j, y i j = z i j) -> Market.utility the_market y i = Market.utility the_market z i.
Proof. by move=> e; apply: eq_bigr => j _; rewrite e. Qed.

Lemma feasible_eq (y z : Market.allocation [realFieldType of rat] n k) :
  (forall i j, y i j = z i j) -> Market.feasible the_market y -> Market.feasible the_market z.
Proof.
move=> e [nn fit]; split=> [i j|j]; first by rewrite -e.
by have := fit j; rewrite /Market.given; under eq_bigr do rewrite e.
Qed.

Theorem pareto_efficient_same x : shaped m x ->
  pareto_efficient m x <-> Market.pareto_efficient the_market (the_allocation x).
Proof.
move=> sh; split=> [[fx best]|[fx best]].
  split; first exact/feasible_same.
  move=> y fy better i; have sy := table_shaped y.
  have ft : feasible m (table_of y) by apply/(feasible_same sy)/(feasible_eq _ fy) => ? ?; rewrite table_at.
  have /(least_same sy sh) : everybody_at_least m (table_of y) x.
    apply: best => //; apply/(least_same sh sy) => l.
    by rewrite (utility_eq _ (table_at y)).
  by move/(_ i); rewrite (utility_eq _ (table_at y)).
split; first exact/feasible_same.
move=> y fy; have sy := fy.1; move/(least_same sh sy) => better; apply/(least_same sy sh).
by apply: best => //; apply/feasible_same.
Qed.

(** *** Policies *)
Lemma total_same x : shaped m x -> q2r (total m x) = Market.total the_market (the_allocation x).
Proof.
move=> [len _]; rewrite /total (q2r_sum (nobody, nil)) combine_length len Nat.min_id; apply: eq_bigr => i _.
by rewrite combine_nth // -utility_same.
Qed.

(** What is of no use is left where it is. *)
Definition useful (y : Market.allocation [realFieldType of rat] n k) : Market.allocation [realFieldType of rat] n k :=
  fun i j => if Market.speedup the_market i j == 0 then 0 else y i j.

Lemma useful_utility y i : Market.utility the_market (useful y) i = Market.utility the_market y i.
Proof. by apply: eq_bigr => j _; rewrite /useful; case: eqP => // ->; rewrite !mul0r. Qed.

Lemma useful_value y i l : Market.feasible the_market y -> Market.value the_market i (useful y l) <= Market.value
  the_market i (y l).
Proof.
move=> [nn _]; apply: ler_sum => j _; rewrite ler_wpmul2l ?Market.speedup_ge0 // /useful.
by case: eqP => // _; apply: nn.
Qed.

Lemma useful_feasible y : Market.feasible the_market y -> Market.feasible the_market (useful y).
Proof.
move=> [nn fit]; split=> [i j|j]; first by rewrite /useful; case: eqP.
by apply: le_trans (fit j); apply: ler_sum => i _; rewrite /useful; case: eqP.
Qed.

Lemma useful_sensible y : Market.feasible the_market y -> sensible m (table_of (useful y)).
Proof.
move=> fy; have sy := table_shaped (useful y); split.
  by apply/(feasible_same sy)/(feasible_eq _ (useful_feasible fy)) => ? ?; rewrite table_at.
move=> u b /(has_at _ _ sy) [i [-> ->]]; split; last by rewrite no_demands //; apply: user_in.
move=> j /ssrnat.ltP lt z; apply/q2r_eq; rewrite q2r0.
have := table_at (useful y) i (Ordinal lt); rewrite /the_allocation /= => ->.
by rewrite /useful; case: eqP => // ne; case: ne; rewrite /= -[RHS]q2r0; apply/q2r_eq.
Qed.

Lemma sensible_shaped x : sensible m x -> shaped m x. Proof. by case=> [[]]. Qed.

Theorem max_efficiency_same x t : reaches m MaxEfficiency x t -> none_beyond m MaxEfficiency t ->
  Market.maximises (Market.feasible the_market) (Market.total the_market) (the_allocation x).
Proof.
move=> [sx tx] none; have sh := sensible_shaped sx; split; first by apply/feasible_same => //; case: sx.
move=> y fy; rewrite -total_same // (_ : q2r (total m x) = q2r t); last exact/q2r_eq.
rewrite -(r2qK (Market.total the_market y)); apply/q2r_le/(none (table_of (useful y))); split;
  first exact: useful_sensible.
apply/q2r_eq; rewrite (total_same (table_shaped _)) r2qK; apply: eq_bigr => i _.
by rewrite (utility_eq _ (table_at _)) useful_utility.
Qed.

Theorem cooperative_oef_same x t : reaches m OefCooperative x t -> none_beyond m OefCooperative t ->
  Market.cooperative_oef the_market (the_allocation x).
Proof.
move=> [sx [tx envy]] none; have sh := sensible_shaped sx; split.
  split; first by apply/feasible_same => //; case: sx.
  move=> i l; rewrite -other_same -utility_same -q2r_div -q2r_mul; apply/q2r_le/envy; apply/has_at => //;
    [by exists i|by exists l].
move=> y [fy ey]; rewrite -total_same // (_ : q2r (total m x) = q2r t); last exact/q2r_eq.
rewrite -(r2qK (Market.total the_market y)); apply/q2r_le/(none (table_of (useful y))); split;
  first exact: useful_sensible.
split.
  apply/q2r_eq; rewrite (total_same (table_shaped _)) r2qK; apply: eq_bigr => i _.
  by rewrite (utility_eq _ (table_at _)) useful_utility.
move=> u b w c /(has_at _ _ (table_shaped _)) [i [-> ->]] /(has_at _ _ (table_shaped _)) [l [-> ->]].
apply/q2r_le; rewrite q2r_mul q2r_div other_same utility_same (utility_eq _ (table_at _)) useful_utility.
apply: le_trans (ey i l); apply: ler_wpmul2l.
  by rewrite divr_ge0 // ltW // weight_pos.
apply: le_trans (useful_value i l fy); apply: Market.le_of_eq; apply: eq_bigr => j _; by rewrite table_at.
Qed.

Theorem noncooperative_oef_same x t : reaches m OefNoncooperative x t -> none_beyond m OefNoncooperative t ->
  Market.noncooperative_oef the_market (the_allocation x).
Proof.
move=> [sx [tx [level lev]]] none; have sh := sensible_shaped sx.
have wn (i : 'I_n) : q2r (weight (user_at i)) != 0 by rewrite gt_eqF // weight_pos.
have at_level (i : 'I_n) : Market.utility the_market (the_allocation x) i / Market.weight the_market i = q2r level.
  have /q2r_eq := lev (user_at i) (bundle_at x i) ((has_at _ _ sh).2 (ex_intro _ i (conj erefl erefl))).
  by rewrite utility_same q2r_mul => ->; rewrite mulrAC divff ?mul1r // wn.
split.
  split; first by apply/feasible_same => //; case: sx.
  by move=> i l; rewrite !at_level.
move=> y [fy ey]; rewrite -total_same // (_ : q2r (total m x) = q2r t); last exact/q2r_eq.
rewrite -(r2qK (Market.total the_market y)); apply/q2r_le/(none (table_of (useful y))); split;
  first exact: useful_sensible.
split.
  apply/q2r_eq; rewrite (total_same (table_shaped _)) r2qK; apply: eq_bigr => i _.
  by rewrite (utility_eq _ (table_at _)) useful_utility.
case: (posnP n) => [n0|n0].
  exists zero => u b /(has_at _ _ (table_shaped _)) [i _]; by have := ltn_ord i; rewrite {2}n0.
pose i0 := Ordinal n0; exists (r2q (Market.utility the_market y i0 / Market.weight the_market i0)).
move=> u b /(has_at _ _ (table_shaped _)) [i [-> ->]].
apply/q2r_eq; rewrite q2r_mul r2qK utility_same (utility_eq _ (table_at _)) useful_utility -(ey i i0).
by rewrite mulrCA divff ?mulr1 // wn.
Qed.

End Market.
