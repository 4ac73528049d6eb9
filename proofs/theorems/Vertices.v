(** * Vertices have few non-zeros: OEF Sec. 4.4

    "According to the Extreme Point Theorem [32], the allocation matrix produced by OEF contains a maximum of (n + m - 1)
    nonzero elements" (m is the number of types there, k here).  True for the vertices of non-cooperative OEF, whose
    rows are n - 1 equations and k capacities, and for two users in cooperative OEF.  That has n (n - 1) envy rows, which is
    all that is proved here for more users. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From FairSharing Require Import Market SharingIncentive Duality Exchange.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** ** Extreme points *)

(** [x] has P and is the middle of two points that have P only if these are [x] itself. *)
Definition extreme (R : realFieldType) (T : Type) (P : (T -> R) -> Prop) (x : T -> R) : Prop :=
  P x /\ forall y z, P y -> P z -> (forall j, x j = (y j + z j) / 2%:R) -> y =1 x.

(** Steps that are small enough: none of finitely many room sizes is exceeded. *)
Lemma small_step (R : realFieldType) (T : finType) (room move : T -> R) :
  (forall t, 0 <= room t) -> (forall t, room t = 0 -> move t = 0) ->
  exists2 e, 0 < e & forall t, `|e * move t| <= room t.
Proof.
move=> room0 stuck; pose total := 1 + \sum_t `|move t| / room t.
have term t : 0 <= `|move t| / room t by rewrite divr_ge0 ?normr_ge0.
have total0 : 0 < total by rewrite ltr_paddr ?ltr01 ?sumr_ge0.
exists total^-1 => [|t]; first by rewrite invr_gt0.
rewrite normrM gtr0_norm ?invr_gt0 // mulrC ler_pdivr_mulr //.
have := room0 t; rewrite le_eqVlt => /predU1P[e|pos].
  by rewrite (stuck t (esym e)) normr0 -e mul0r.
rewrite mulrC -ler_pdivr_mulr // /total (bigD1 t) //= addrCA ler_addl.
by rewrite addr_ge0 ?ler01 ?sumr_ge0.
Qed.

Section Polyhedron.
Variables (R : realFieldType) (rows columns : finType).
Variables (a : rows -> columns -> R) (b : rows -> R) (equality : pred rows).
Implicit Types (x y d : columns -> R).

(** {x >= 0, a x <= b, with = in some rows}. *)
Definition polyhedron x : Prop := primal_feasible a b equality pred0 x.

Definition support x : {set columns} := [set j | x j != 0].
Definition tight x : {set rows} := [set i | row a x i == b i].

(** The columns of the non-zeros in the tight rows (transposed: a row here for each non-zero). *)
Definition tight_matrix x : 'M[R]_(#|support x|, #|tight x|) :=
  \matrix_(s, t) a (enum_val t) (enum_val s).

Lemma rowD x d e i : row a (fun j => x j + e * d j) i = row a x i + e * row a d i.
Proof. by rewrite /row mulr_sumr -big_split; apply: eq_bigr => j _ /=; ring. Qed.

(** A step from [x] that moves no zero and no tight row, and is small enough, stays in the polyhedron. *)
Lemma small_step_inside x d e :
  polyhedron x -> (forall i, equality i -> row a d i = 0) ->
  (forall j, `|e * d j| <= x j) -> (forall i, `|e * row a d i| <= b i - row a x i) ->
  polyhedron (fun j => x j + e * d j).
Proof.
move=> [_ fx] eqs cols rows0; split=> [j _|i].
  by rewrite -ler_subl_addl sub0r; move: (cols j); rewrite ler_norml => /andP[].
rewrite rowD; move: (fx i) (eqs i) (rows0 i).
case: (equality i) => [-> /(_ isT)-> _|_ _ small]; first by rewrite mulr0 addr0.
by rewrite -ler_subr_addl; apply: le_trans small; apply: ler_norm.
Qed.

(** At an extreme point these are linearly independent: else there is a direction that changes non-zeros only and no
    tight row, and [x] is the middle of a small step this way and the same step back. *)
Theorem vertex_independent x : extreme polyhedron x -> row_free (tight_matrix x).
Proof.
case=> px ext; rewrite -kermx_eq0; apply/negPn/negP => /rowV0Pn[v /sub_kermxP ker /negP[]].
have [x0 fx] := px.
pose d j := \sum_(s | enum_val s == j) v 0 s.
have dS (s : 'I_#|support x|) : d (enum_val s) = v 0 s.
  by rewrite /d (big_pred1 s) // => s' /=; apply: (inj_eq enum_val_inj).
have d0 j : x j = 0 -> d j = 0.
  move=> xj; rewrite /d big_pred0 // => s; apply/negP => /eqP sj.
  by have := enum_valP s; rewrite sj inE xj eqxx.
have rowd i : row a d i = \sum_s v 0 s * a i (enum_val s).
  rewrite /row /d; under eq_bigr do rewrite mulr_sumr big_mkcond.
  rewrite exchange_big; apply: eq_bigr => s _ /=.
  rewrite (bigD1 (enum_val s)) //= eqxx big1 ?addr0 1?mulrC // => j.
  by rewrite eq_sym => /negbTE->.
have rowd0 i : row a x i = b i -> row a d i = 0.
  move=> /eqP ti; have it : i \in tight x by rewrite inE.
  have /rowP/(_ (enum_rank_in it i)) := ker; rewrite mxE [RHS]mxE => ker_i.
  rewrite rowd -[RHS]ker_i; apply: eq_bigr => s _.
  by rewrite mxE enum_rankK_in.
pose room t := match t with inl j => x j | inr i => b i - row a x i end.
pose move_ t := match t with inl j => d j | inr i => row a d i end.
have [] := @small_step R _ room move_ => [[j|i]|[j|i]|e e0 small].
- exact: x0.
- by rewrite /= subr_ge0; have := fx i; case: ifP => // _ ->.
- exact: d0.
- by move=> /= /eqP; rewrite subr_eq0 eq_sym => /eqP; apply: rowd0.
have eqs i : equality i -> row a d i = 0 by move=> ei; apply: rowd0; have := fx i; rewrite ei.
have p1 : polyhedron (fun j => x j + e * d j).
  by apply: small_step_inside => // [j|i]; [apply: (small (inl j)) | apply: (small (inr i))].
have p2 : polyhedron (fun j => x j + (- e) * d j).
  apply: small_step_inside => // [j|i]; rewrite mulNr normrN.
    exact: (small (inl j)).
  exact: (small (inr i)).
have mid j : x j = ((x j + e * d j) + (x j + (- e) * d j)) / 2%:R by field.
have same := ext _ _ p1 p2 mid; apply/eqP/rowP => s; rewrite mxE -dS.
have /eqP := same (enum_val s); rewrite addrC -subr_eq0 addrK mulf_eq0 gt_eqF //= => /eqP.
exact.
Qed.

(** So there are at most as many non-zeros as tight rows. *)
Theorem vertex_support x : extreme polyhedron x -> (#|support x| <= #|tight x|)%N.
Proof. by move=> /vertex_independent /eqP <-; apply: rank_leq_col. Qed.

Theorem vertex_support_rows x : extreme polyhedron x -> (#|support x| <= #|rows|)%N.
Proof. by move=> /vertex_support le; apply: leq_trans le (max_card _). Qed.

End Polyhedron.

(** ** Non-cooperative OEF *)
Section NonCooperative.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y z : allocation R n k).

(** Extreme points of a set of allocations. *)
Definition extreme_allocation (P : allocation R n k -> Prop) x : Prop :=
  P x /\ forall y z, P y -> P z -> (forall i j, x i j = (y i j + z i j) / 2%:R) -> forall i j, y i j = x i j.

Definition nonzeros x : nat := #|[set ij : 'I_n * 'I_k | x ij.1 ij.2 != 0]|.

(** The rows: the capacities, and for each user but the first that its efficiency by weight is that of the first. *)
Variable i0 : 'I_n.
Let rows : finType := [finType of 'I_k + {i : 'I_n | i != i0}].
Let columns : finType := [finType of 'I_n * 'I_k].
Let a (r : rows) (ij : columns) : R :=
  match r with
  | inl j => if ij.2 == j then 1 else 0
  | inr i => (if ij.1 == val i then speedup m (val i) ij.2 * weight m i0 else 0)
             - (if ij.1 == i0 then speedup m i0 ij.2 * weight m (val i) else 0)
  end.
Let b (r : rows) : R := if r is inl j then capacity m j else 0.
Let equality (r : rows) : bool := if r is inr _ then true else false.

Let pairs (F : 'I_n * 'I_k -> R) : \sum_ij F ij = \sum_i \sum_j F (i, j).
Proof. by rewrite pair_bigA /=; apply: eq_bigr => -[]. Qed.

Let row_capacity (f : columns -> R) j : row a f (inl j) = \sum_i f (i, j).
Proof.
rewrite /row pairs /=; apply: eq_bigr => i _; rewrite (bigD1 j) //= eqxx mul1r big1 ?addr0 // => j' /negbTE->.
by rewrite mul0r.
Qed.

Let row_level (f : columns -> R) (i : {i : 'I_n | i != i0}) :
  row a f (inr i) = utility m (fun i j => f (i, j)) (val i) * weight m i0
                    - utility m (fun i j => f (i, j)) i0 * weight m (val i).
Proof.
have one l c : \sum_ij (if ij.1 == l then speedup m l ij.2 * c else 0) * f ij
               = utility m (fun i j => f (i, j)) l * c.
  rewrite pairs /= (bigD1 l) //= eqxx [X in _ + X]big1 ?addr0 => [|l' /negbTE e].
    by rewrite /utility /value mulr_suml; apply: eq_bigr => j _; rewrite mulrAC.
  by rewrite big1 // => j _; rewrite e mul0r.
by rewrite -!one -sumrB; apply: eq_bigr => ij _; rewrite mulrBl.
Qed.

Let polyhedronE (f : columns -> R) :
  polyhedron a b equality f <->
  feasible m (fun i j => f (i, j)) /\ equal_efficiency m (fun i j => f (i, j)).
Proof.
set x := fun i j => f (i, j); split=> [[f0 fr]|[[x0 xc] eq]].
  have lev i : utility m x i / weight m i = utility m x i0 / weight m i0.
    case: (eqVneq i i0) => [->//|ne].
    have /= := fr (inr (exist _ i ne)); rewrite row_level /= => /eqP; rewrite subr_eq0 => /eqP e.
    by apply/eqP; rewrite eqr_div ?weight_neq0 //; apply/eqP.
  split; last by move=> i l; rewrite !lev.
  split=> [i j|j]; first exact: f0.
  by have /= := fr (inl j); rewrite row_capacity.
split=> [[i j] _|[j|i]] /=; first exact: x0.
  by rewrite row_capacity; apply: xc.
rewrite row_level; apply/eqP; rewrite subr_eq0 -eqr_div ?weight_neq0 //; apply/eqP; apply: eq.
Qed.

(** OEF Sec. 4.4, for the vertices of Eq. (9b)-(9c). *)
Theorem equal_efficiency_vertex_nonzeros x :
  extreme_allocation (fun y => feasible m y /\ equal_efficiency m y) x -> (nonzeros x <= n + k - 1)%N.
Proof.
case=> px ext; pose f (ij : columns) := x ij.1 ij.2.
have ef : extreme (polyhedron a b equality) f.
  split=> [|g h /polyhedronE pg /polyhedronE ph mid [i j]]; first exact/polyhedronE.
  by rewrite (ext _ _ pg ph) // => i' j'; apply: (mid (i', j')).
have := vertex_support_rows ef; rewrite card_sum card_ord card_sig cardC1 card_ord => le.
apply: leq_trans le _; have n0 : (0 < n)%N by apply: leq_ltn_trans (leq0n i0) (ltn_ord i0).
by rewrite -addnBAC // subn1 addnC.
Qed.

(** A vertex of the set of optima is a vertex: so the bound holds for each allocation that the simplex method can return
    for Eq. (9). *)
Lemma extreme_optimum x :
  extreme_allocation (noncooperative_oef m) x ->
  extreme_allocation (fun y => feasible m y /\ equal_efficiency m y) x.
Proof.
case=> -[px best] ext; split=> // y z py pz mid.
(* the total is linear, so both ends of a segment whose middle is an optimum are optima *)
have end_optimal u v : feasible m u /\ equal_efficiency m u -> feasible m v /\ equal_efficiency m v ->
    (forall i j, x i j = (u i j + v i j) / 2%:R) -> noncooperative_oef m u.
  move=> pu pv middle; split=> // o po; have := best _ pv; have := best _ po.
  have -> : total m x = (total m u + total m v) / 2%:R.
    rewrite /total -big_split mulr_suml; apply: eq_bigr => i _ /=.
    rewrite /utility -valueD mulrC -valueZ; apply: eq_value => j.
    by rewrite middle mulrC.
  rewrite !ler_pdivl_mulr ?ltr0n // !mulr_natr !mulr2n ler_add2r => ole vu.
  by rewrite -(ler_pmuln2r (isT : 0 < 2)%N) !mulr2n (le_trans ole) // ler_add2l.
apply: (ext y z) => //; first exact: end_optimal py pz mid.
by apply: (end_optimal z y) => // i j; rewrite mid addrC.
Qed.

Theorem noncooperative_oef_vertex_nonzeros x :
  extreme_allocation (noncooperative_oef m) x -> (nonzeros x <= n + k - 1)%N.
Proof. by move=> /extreme_optimum; apply: equal_efficiency_vertex_nonzeros. Qed.

End NonCooperative.

(** ** Cooperative OEF

    Its rows are the capacities and n (n - 1) envies, so that an extreme point has at most k + n (n - 1) non-zeros, and
    there are no more than n k of them anyway.  How many an optimum can have: the row own-vertices of our findings. *)
Section Cooperative.
Variables (R : realFieldType) (n k : nat) (m : market R n k).
Implicit Types (x y z : allocation R n k).

Let rows : finType := [finType of 'I_k + {il : 'I_n * 'I_n | il.1 != il.2}].
Let columns : finType := [finType of 'I_n * 'I_k].
Let a (r : rows) (ij : columns) : R :=
  match r with
  | inl j => if ij.2 == j then 1 else 0
  | inr il => (if ij.1 == (val il).2 then weight m (val il).1 / weight m (val il).2 * speedup m (val il).1 ij.2 else 0)
              - (if ij.1 == (val il).1 then speedup m (val il).1 ij.2 else 0)
  end.
Let b (r : rows) : R := if r is inl j then capacity m j else 0.

Let pairs (F : 'I_n * 'I_k -> R) : \sum_ij F ij = \sum_i \sum_j F (i, j).
Proof. by rewrite pair_bigA /=; apply: eq_bigr => -[]. Qed.

Let row_capacity (f : columns -> R) j : row a f (inl j) = \sum_i f (i, j).
Proof.
rewrite /row pairs /=; apply: eq_bigr => i _; rewrite (bigD1 j) //= eqxx mul1r big1 ?addr0 // => j' /negbTE->.
by rewrite mul0r.
Qed.

Let row_envy (f : columns -> R) (il : {il : 'I_n * 'I_n | il.1 != il.2}) :
  row a f (inr il) = weight m (val il).1 / weight m (val il).2 * value m (val il).1 (fun j => f ((val il).2, j))
                     - value m (val il).1 (fun j => f ((val il).1, j)).
Proof.
have one l c i : \sum_ij (if ij.1 == l then c * speedup m i ij.2 else 0) * f ij
                 = c * value m i (fun j => f (l, j)).
  rewrite pairs /= (bigD1 l) //= eqxx [X in _ + X]big1 ?addr0 => [|l' /negbTE e].
    by rewrite /value mulr_sumr; apply: eq_bigr => j _; rewrite mulrA.
  by rewrite big1 // => j _; rewrite e mul0r.
rewrite -one -[X in _ - X]mul1r -one -sumrB.
by apply: eq_bigr => ij _; rewrite mulrBl mul1r.
Qed.

Let polyhedronE (f : columns -> R) :
  polyhedron a b xpred0 f <->
  feasible m (fun i j => f (i, j)) /\ envy_free m (fun i j => f (i, j)).
Proof.
split=> [[f0 fr]|[[x0 xc] ef]].
  split; first split=> [i j|j]; first exact: f0.
    by have /= := fr (inl j); rewrite row_capacity.
  move=> i l; case: (eqVneq i l) => [->|ne]; first by rewrite divff ?weight_neq0 // mul1r.
  by have /= := fr (inr (exist _ (i, l) ne)); rewrite row_envy /= subr_le0.
split=> [[i j] _|[j|[[i l] ne]]] /=; first exact: x0.
  by rewrite row_capacity; apply: xc.
by rewrite row_envy /= subr_le0; apply: ef.
Qed.

Theorem envy_free_vertex_nonzeros x :
  extreme_allocation (fun y => feasible m y /\ envy_free m y) x -> (nonzeros x <= k + n * (n - 1))%N.
Proof.
case=> px ext; pose f (ij : columns) := x ij.1 ij.2.
have ef : extreme (polyhedron a b xpred0) f.
  split=> [|g h /polyhedronE pg /polyhedronE ph mid [i j]]; first exact/polyhedronE.
  by rewrite (ext _ _ pg ph) // => i' j'; apply: (mid (i', j')).
have := vertex_support_rows ef; rewrite card_sum card_ord => le; apply: leq_trans le _; rewrite leq_add2l.
rewrite card_sig; have := cardC [pred il : 'I_n * 'I_n | il.1 == il.2]; rewrite card_prod card_ord => all_pairs.
have diagonal : #|[pred il : 'I_n * 'I_n | il.1 == il.2]| = n.
  rewrite -[RHS]card_ord -(card_image (f := fun i : 'I_n => (i, i))) => [|i l []] //.
  apply: eq_card => -[i l]; rewrite !inE /=; apply/eqP/imageP => [->|[i' _ [-> ->]]] //.
  by exists l.
rewrite mulnBr muln1 -[leqRHS](addKn n) -all_pairs diagonal.
by rewrite addnBA ?leq_addr // !addKn; apply: eq_leq; apply: eq_card => il; rewrite !inE.
Qed.

End Cooperative.

(** ** Two users

    They share at most one type at an extreme point of the optima of cooperative OEF, so that n + k - 1 is right for them,
    with any number of types: of two types that both hold, in the same ratio for both (else they would trade), one could
    take a little more of the one and less of the other, and the reverse. *)
Section TwoUsers.
Variables (R : realFieldType) (k : nat) (m : market R 2 k).
Hypothesis positive : forall l p, 0 < speedup m l p.
Implicit Types (x y z : allocation R 2 k) (p q j : 'I_k).

Let first : 'I_2 := ord0.
Let second : 'I_2 := ord_max.

Let sum2 (f : 'I_2 -> R) : \sum_i f i = f first + f second.
Proof. by rewrite !big_ord_recl big_ord0 addr0; congr (f _ + f _); apply: val_inj. Qed.

Let either (i : 'I_2) : i = first \/ i = second.
Proof. by case: i => [[|[|?]]] // lt; [left | right]; apply: val_inj. Qed.

Lemma two_users_share_one_type x p q :
  extreme_allocation (cooperative_oef m) x -> p != q ->
  ~ [/\ 0 < x first p, 0 < x first q, 0 < x second p & 0 < x second q].
Proof.
move=> [opt ext] pq [fp fq sp sq]; have pe := two_users_pareto_efficient opt.
have [[[x0 xc] ef] best] := opt.
have same : speedup m second p * speedup m first q = speedup m second q * speedup m first p.
  apply/eqP; rewrite eq_le; apply/andP; split; rewrite leNgt; apply/negP => lt.
    by apply: (pareto_efficient_no_exchange pe pq (i := second) (l := first)) => //; rewrite /larger_ratio [ltRHS]mulrC.
  by apply: (pareto_efficient_no_exchange pe pq (i := first) (l := second)) => //; rewrite /larger_ratio [ltLHS]mulrC.
pose swap j : R := only p (speedup m first q) j - only q (speedup m first p) j.
pose sign (i : 'I_2) : R := if i == first then 1 else -1.
have worth i : value m i swap = 0.
  rewrite /swap valueB !value_only; case: (either i) => ->; last by rewrite same subrr.
  by rewrite mulrC subrr.
pose room (ij : 'I_2 * 'I_k) := x ij.1 ij.2.
have [|[i j] /= xij|e e0 small] := @small_step R _ room (fun ij => sign ij.1 * swap ij.2).
- by move=> ij; apply: x0.
- rewrite /room /= in xij; rewrite /swap /only; case: eqP => [jp|_].
    by case: (either i) xij => ->; rewrite jp => zero; [move: fp | move: sp]; rewrite zero ltxx.
  case: eqP => [jq|_]; last by rewrite subrr mulr0.
  by case: (either i) xij => ->; rewrite jq => zero; [move: fq | move: sq]; rewrite zero ltxx.
pose moved c : allocation R 2 k := fun i j => x i j + c * (sign i * swap j).
have value_moved c i l : value m i (moved c l) = value m i (x l).
  by rewrite valueD !valueZ worth !mulr0 addr0.
have stays c : `|c| = e -> cooperative_oef m (moved c).
  move=> ce; split=> [|y py]; last first.
    have -> : total m (moved c) = total m x by apply: eq_bigr => i _; apply: value_moved.
    exact: best.
  split; last by move=> i l; rewrite /utility !value_moved; apply: ef.
  split=> [i j|j].
    rewrite /moved -ler_subl_addl sub0r; have := small (i, j).
    by rewrite normrM (gtr0_norm e0) -ce -normrM ler_norml => /andP[].
  have -> : given (moved c) j = given x j by rewrite /given !sum2 /moved /sign eqxx /=; ring.
  exact: xc.
have mid i j : x i j = (moved e i j + moved (- e) i j) / 2%:R by rewrite /moved; field.
have := ext _ _ (stays e (gtr0_norm e0)) (stays (- e) _) mid first p.
rewrite normrN (gtr0_norm e0) => /(_ erefl)/eqP; rewrite /moved addrC -subr_eq0 addrK /sign eqxx mul1r.
by rewrite /swap /only eqxx (negbTE pq) subr0 mulf_eq0 !gt_eqF.
Qed.

Theorem two_users_vertex_nonzeros x :
  extreme_allocation (cooperative_oef m) x -> (nonzeros x <= k.+1)%N.
Proof.
move=> ext; have x0 := ext.1.1.1.1.
have pos i j : x i j != 0 -> 0 < x i j by move=> ne; rewrite lt_neqAle eq_sym ne x0.
pose holds (i : 'I_2) j := x i j != 0; pose both j := holds first j && holds second j.
have one : (#|[set j | both j]| <= 1)%N.
  apply/card_le1_eqP => p q; rewrite !inE => /andP[fp sp] /andP[fq sq].
  by apply/eqP/negPn/negP => ne; apply: (two_users_share_one_type ext ne); split; apply: pos.
have -> : nonzeros x = (\sum_j (holds first j + holds second j))%N.
  rewrite /nonzeros -sum1dep_card big_mkcond /= -(pair_bigA _ (fun i j => nat_of_bool (holds i j))) /=.
  rewrite exchange_big; apply: eq_bigr => j _ /=; rewrite !big_ord_recl big_ord0 addn0.
  by rewrite (_ : lift _ _ = second) //; apply: val_inj.
apply: (@leq_trans (\sum_(j < k) (1 + both j))).
  by apply: leq_sum => j _; rewrite /both; case: (holds first j); case: (holds second j).
rewrite big_split /= sum_nat_const card_ord muln1 -addn1 leq_add2l; apply: leq_trans one.
by rewrite -sum1dep_card [leqRHS]big_mkcond /=; apply: leq_sum => j _; case: (both j).
Qed.

End TwoUsers.
