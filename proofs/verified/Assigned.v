(** * Certificates of gangs: an assignment, what it costs, and that none costs less *)

From Coq Require Import List NArith QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Paid Rounds.
Import ListNotations.
Local Open Scope Q_scope.

Definition cost_at (row : list (option Q)) (t : option N) : option Q :=
  match t with
  | None => Some 0
  | Some j => match nth_error row (N.to_nat j) with Some c => c | None => None end
  end.
Fixpoint costs_at (rows : list (list (option Q))) (types : list (option N)) : option (list Q) :=
  match rows, types with
  | row :: rows, t :: types =>
    match cost_at row t, costs_at rows types with Some c, Some cs => Some (c :: cs) | _, _ => None end
  | _, _ => Some []
  end.

Definition doing (r : round) (types : list (option N)) (each : list Q) : list does :=
  combine (sizes r) (combine types each).
Definition is_round_b (r : round) : bool :=
  same_length (job_costs r) (sizes r) && forallb (fun row => same_length row (gpus r)) (job_costs r)
  && forallb (Z.leb 0) (gpus r).
Definition possible_b (r : round) (ds : list does) : bool :=
  Allocations.fits (out (map gpus_of ds)) (map inject_Z (gpus r)) && le (inject_Z (least_used r)) (fast_sum (map busy
    ds)).

(** The grain divides the bound and every cost. *)
Definition grain_fine (r : round) (bound : Q) (grain : option Q) : bool :=
  match grain with
  | None => true
  | Some g => lt 0 g && forallb (fun q => whole_b (mul q (/ g))) (bound :: flat_map (fun row =>
      flat_map (fun c => match c with Some c => [c] | None => [] end) row) (job_costs r))
  end.

Definition check_gangs r types v bound gap grain root cases : result :=
  if negb (is_round_b r && same_length types (sizes r)) then no "jobs, costs and types are not of one number"
  else match costs_at (job_costs r) types with
  | None => no "a job may not run there"
  | Some each =>
    if negb (possible_b r (doing r types each)) then no
      "more GPUs of a type are in use than there are, or too few are busy"
    else if negb (same (fast_sum each) v && gap_is gap v bound) then no "value, bound or gap is another"
    else if negb (grain_fine r bound grain) then no "the bound or a cost is no multiple of the grain"
    else if bounded_below r bound grain root cases then Accepted (RoundCosts r v bound)
    else no "a case is not bounded by its prices, is missing, or is one too many"
  end.

(** ** An assignment is what its jobs do *)

Lemma options_from_in row : forall i j c, nth_error row j = Some (Some c) ->
  In (Some (i + N.of_nat j)%N, c) (options_from row i).
Proof.
  induction row as [|[c0|] row IH]; intros i [|j] c e; try discriminate; simpl in *.
  - injection e as ->; rewrite N.add_0_r; left; reflexivity.
  - right; replace (i + N.pos (Pos.of_succ_nat j))%N with (N.succ i + N.of_nat j)%N by lia; exact (IH _ _ _ e).
  - replace (i + N.pos (Pos.of_succ_nat j))%N with (N.succ i + N.of_nat j)%N by lia; exact (IH _ _ _ e).
Qed.

Lemma done ss : forall rows ts each, List.length rows = List.length ss -> List.length ts = List.length ss ->
  Forall2 (fun '(row, t) c => costs_on row t c) (combine rows ts) each ->
  Forall2 done_by (map (fun '(size, row) => (size, (None, 0) :: options_from row 0)) (combine ss rows))
    (combine ss (combine (map (option_map N.of_nat) ts) each)) /\ List.length each = List.length ss.
Proof.
  induction ss as [|s ss IH]; intros [|row rows] [|t ts] each lr lt h; try discriminate; simpl in h |- *.
  - inversion h; subst; split; [constructor|reflexivity].
  - inversion h as [|x c xs each' hc hs]; subst.
    destruct (IH rows ts each' ltac:(simpl in lr; lia) ltac:(simpl in lt; lia) hs) as [d l].
    split; [|simpl; lia]; constructor; [|exact d]; split; [reflexivity|]; simpl.
    destruct t as [j|]; simpl in hc |- *; [right; exact (options_from_in row 0 j c hc)|left; rewrite hc; reflexivity].
Qed.

Lemma nth_vscale q l j : nth j (vscale q l) 0 == q * nth j l 0.
Proof. unfold vscale; revert j; induction l as [|x l IH]; intros [|j]; simpl; try ring; [apply mulE|apply IH]. Qed.
Lemma nth_unit i : forall j, nth j (unit_at i) 0 == if Nat.eqb i j then 1 else 0.
Proof. induction i as [|i IH]; intros [|[|j]]; simpl; try reflexivity; try (apply (IH 0%nat)); apply (IH (S j)). Qed.

(** GPUs that are in use, as [Meaning] counts them. *)
Lemma in_use_ok r ts each j : List.length ts = List.length (sizes r) -> List.length each = List.length (sizes r) ->
  in_use r ts j == given (map gpus_of (doing r (map (option_map N.of_nat) ts) each)) j.
Proof.
  unfold in_use, given, doing; generalize (sizes r); intro ss; revert ts each.
  induction ss as [|s ss IH]; intros [|t ts] [|c each] l1 l2; try discriminate; [reflexivity|].
  simpl in l1, l2 |- *; apply Qplus_comp; [|apply IH; lia].
  destruct t as [i|]; simpl; [|destruct j; reflexivity].
  rewrite Nat2N.id, nth_vscale, nth_unit; destruct (Nat.eqb i j); ring.
Qed.
Lemma in_use_all_ok r ts each : List.length ts = List.length (sizes r) -> List.length each = List.length (sizes r) ->
  in_use_all r ts == sum (map busy (doing r (map (option_map N.of_nat) ts) each)).
Proof.
  unfold in_use_all, doing; generalize (sizes r); intro ss; revert ts each.
  induction ss as [|s ss IH]; intros [|t ts] [|c each] l1 l2; try discriminate; [reflexivity|].
  simpl in l1, l2 |- *; apply Qplus_comp; [|apply IH; lia]. destruct t; reflexivity.
Qed.
Lemma cost_ok r ts each : List.length ts = List.length (sizes r) -> List.length each = List.length (sizes r) ->
  sum (map cost_of (doing r ts each)) == sum each.
Proof.
  unfold doing; generalize (sizes r); intro ss; revert ts each.
  induction ss as [|s ss IH]; intros [|t ts] [|c each] l1 l2; try discriminate; [reflexivity|].
  simpl in l1, l2 |- *; apply Qplus_comp; [reflexivity|apply IH; lia].
Qed.

Lemma assigned_does r types cost : is_round r -> assigned r types cost ->
  exists ds, Forall2 done_by (jobs_of r) ds /\ possible r ds /\ sum (map cost_of ds) == cost /\
    forall d, In d ds -> cost_of d = 0 \/ exists row, In row (job_costs r) /\ In (Some (cost_of d)) row.
Proof.
  intros [lr _] (lt & (each & h & e) & fit & used).
  destruct (done (sizes r) (job_costs r) types each lr lt h) as [d le].
  exists (doing r (map (option_map N.of_nat) types) each); split; [exact d|split; [split|split]].
  - intros j lj; rewrite <- (in_use_ok r types each j lt le). specialize (fit j lj).
    rewrite (map_nth inject_Z (gpus r) 0%Z j : nth j (map inject_Z (gpus r)) 0 = _); exact fit.
  - rewrite <- (in_use_all_ok r types each lt le); exact used.
  - rewrite (cost_ok r _ each) by (rewrite ?map_length; assumption); exact e.
  - intros [size [t c]] i; unfold doing in i; apply in_combine_r in i; apply in_combine_r in i; simpl.
    clear -h i lr lt; revert types lt each h i; generalize dependent (sizes r); intros ss lr.
    intros types _ each h i; destruct (In_nth_error _ _ i) as [n en].
    assert (at_ : exists x, nth_error (combine (job_costs r) types) n = Some x /\ (fun '(row,
      t) c => costs_on row t c) x c).
    { clear i; revert n en; induction h as [|x c' xs each' hc hs IH]; intros [|n] en; try discriminate; simpl in en.
      - injection en as ->; exists x; auto.
      - exact (IH n en). }
    destruct at_ as ([row t'] & en' & hc); apply nth_error_combine in en'; destruct en' as [er _].
    destruct t' as [j|]; simpl in hc; [right; exists row; split; [exact (nth_error_In _ _ er)|exact (nth_error_In _ _
      hc)]|
      left; exact hc].
Qed.

Lemma multiples g l : 0 < g -> (forall q, In q l -> is_whole (q / g)) -> is_whole (sum l / g).
Proof.
  intro p; induction l as [|q l IH]; intro h; simpl; [exists 0%Z; unfold Qdiv; change (inject_Z 0) with 0; ring|].
  destruct (h q (or_introl eq_refl)) as [a ea]; destruct (IH (fun q i => h q (or_intror i))) as [b eb].
  exists (a + b)%Z; rewrite inject_Z_plus, <- ea, <- eb; unfold sum, Qdiv; ring.
Qed.

Lemma costs_at_ok rows : forall types each, List.length types = List.length rows -> costs_at rows types = Some each ->
  Forall2 (fun '(row, t) c => costs_on row t c) (combine rows (map (option_map N.to_nat) types)) each.
Proof.
  induction rows as [|row rows IH]; intros [|t types] each l e; try discriminate; simpl in e.
  - injection e as <-; constructor.
  - destruct (cost_at row t) as [c|] eqn:ec; [|discriminate]; destruct (costs_at rows types) as [cs|] eqn:es;
    [|discriminate].
    injection e as <-; constructor; [|apply IH; [simpl in l; lia|exact es]].
    destruct t as [j|]; simpl in ec |- *; [|injection ec as <-; reflexivity].
    destruct (nth_error row (N.to_nat j)) as [c'|]; [|discriminate]; rewrite ec; reflexivity.
Qed.

Lemma there_and_back (types : list (option N)) : map (option_map N.of_nat) (map (option_map N.to_nat) types) = types.
Proof.
  induction types as [|[j|] types IH]; simpl; [reflexivity| |]; rewrite IH; [rewrite N2Nat.id|]; reflexivity.
Qed.

Lemma check_gangs_sound r types v bound gap grain root cases s :
  check_gangs r types v bound gap grain root cases = Accepted s -> meaning s.
Proof.
  unfold check_gangs, is_round_b; destruct (same_length (job_costs r) _) eqn:lr; [|discriminate];
    apply same_lengthP in lr.
  destruct (forallb _ (job_costs r)) eqn:rows; [|discriminate]; rewrite forallb_forall in rows.
  destruct (forallb _ (gpus r)) eqn:pos; [|discriminate]; rewrite forallb_forall in pos.
  destruct (same_length types _) eqn:lt; [|discriminate]; apply same_lengthP in lt; simpl negb; cbv iota.
  destruct (costs_at _ types) as [each|] eqn:ec; [|discriminate].
  destruct (possible_b r _) eqn:pb; [|discriminate]; unfold possible_b in pb; apply andb_true_iff in pb.
  destruct pb as [fb ub]; destruct (same (fast_sum each) v) eqn:ev; [|discriminate]; apply sameP in ev.
  destruct (gap_is gap v bound); [|discriminate]; destruct (grain_fine r bound grain) eqn:gf; [|discriminate].
  simpl negb; cbv iota; destruct (bounded_below _ _ _ _ _) eqn:bb; [|discriminate]; intro e; injection e as <-.
  assert (is : is_round r) by (split; [exact lr|intros row i; apply same_lengthP, rows, i]).
  assert (pos' : forall there, In there (gpus r) -> (0 <= there)%Z) by (intros z i; apply Z.leb_le, pos, i).
  split; [exact is|split].
  - exists (map (option_map N.to_nat) types). set (ts := map (option_map N.to_nat) types).
    assert (l1 : List.length ts = List.length (sizes r)) by (unfold ts; rewrite map_length; exact lt).
    assert (h := costs_at_ok (job_costs r) types each (eq_trans lt (eq_sym lr)) ec); fold ts in h.
    destruct (done (sizes r) (job_costs r) ts each lr l1 h) as [_ l2].
    split; [exact l1|split; [exists each; split; [exact h|rewrite <- ev, fast_sumE; reflexivity]|split]].
    + intros j lj; rewrite (in_use_ok r ts each j l1 l2); unfold ts; rewrite there_and_back, <- nth_out.
      rewrite <- (map_nth inject_Z (gpus r) 0%Z j : nth j (map inject_Z (gpus r)) 0 = _).
      apply fits_ok; [exact fb|rewrite map_length; exact lj].
    + rewrite (in_use_all_ok r ts each l1 l2); unfold ts; rewrite there_and_back.
      apply leP in ub; rewrite fast_sumE in ub; exact ub.
  - intros types' cost a; destruct (assigned_does r types' cost is a) as (ds & d & p & ce & from).
    pose proof (bounded_below_ok r bound grain root cases ds bb d p pos') as not_less; unfold less_than in not_less.
    rewrite <- ce; destruct grain as [g|]; [|apply lt_false in not_less; exact not_less].
    apply le_false in not_less; rewrite subE in not_less; unfold grain_fine in gf; apply andb_true_iff in gf.
    destruct gf as [g0 gf]; apply ltP in g0; rewrite forallb_forall in gf.
    assert (whole : forall q, whole_b (mul q (/ g)) = true -> is_whole (q / g)).
    { intros q w; apply whole_ok in w; destruct w as [z w]; exists z; rewrite <- w, mulE; reflexivity. }
    destruct (whole bound (gf bound (or_introl eq_refl))) as [b eb].
    destruct (multiples g (map cost_of ds) g0) as [c ecost].
    { intros q i; apply in_map_iff in i; destruct i as (d0 & <- & i); destruct (from d0 i) as [->|(row & ir & ic)].
      - exists 0%Z; unfold Qdiv; change (inject_Z 0) with 0; ring.
      - apply whole, gf; right; apply in_flat_map; exists row; split; [exact ir|]; apply in_flat_map.
        exists (Some (cost_of d0)); split; [exact ic|left; reflexivity]. }
    assert (more : inject_Z b - 1 < inject_Z c).
    { rewrite <- eb, <- ecost. apply (Qmult_lt_r _ _ g g0).
      setoid_replace ((bound / g - 1) * g) with (bound - g) by (field; lra).
      setoid_replace (sum (map cost_of ds) / g * g) with (sum (map cost_of ds)) by (field; lra). exact not_less. }
    assert (bc : (b <= c)%Z).
    { change 1 with (inject_Z 1) in more; unfold Qminus in more; rewrite <- inject_Z_opp, <- inject_Z_plus,
      <- Zlt_Qlt in more.
      lia. }
    apply (Qmult_le_r _ _ (/ g)); [apply Qinv_lt_0_compat; exact g0|]. fold (bound / g) (sum (map cost_of ds) / g).
    rewrite eb, ecost, <- Zle_Qle; exact bc.
Qed.
