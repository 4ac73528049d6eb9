(** * Decisions: what a rule decides on a market, alone or inside of other certificates *)

From Coq Require Import List QArith Lqa Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Decided Optima Nash Limits
  Filling Filled Rated Lies Standing Efficient Parts Traded.
Import ListNotations.
Local Open Scope Q_scope.

(** What a certificate inside of another proves: all optima, what is chosen among them, and the statement. *)
Inductive answer :=
| Decided (o : optima) (c : chosen) (s : statement)
| Authors (p : program) (m : market) (author : text) (x : table) (v : Q)
(** Of a rule over whose decisions no range is certified. *)
| Alone (r : rule) (m : market) (x : table) (s : statement)
(** By what is told; over all of them no range is certified here. *)
| Told (d : telling) (m : market) (x : table)
| Refused (r : result).

Definition refused (s : string) : answer := Refused (no s).
Definition unknown (s : string) : answer := Refused (NotCovered (word s)).

Definition answer_fine (a : answer) : Prop :=
  match a with
  | Decided o c s => optima_fine o /\ chosen_fine o c /\ meaning s
  | Authors p m _ x v => authors_optimum p m x v
  | Alone r m x s => valid m /\ optimum m r x /\ meaning s
  | Told d m x => settles d m x
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
  if valid_b m && sensible_b m x && is_filling m (plain_limits m) n x rounds && norms_positive m n
  then Decided (optima_of_filling m n x) (Point x) (LevelsAre m x n)
  else refused "the allocation is not feasible, or the rounds do not show its levels".

Lemma decide_levels_fine m x n rounds : answer_fine (decide_levels m x n rounds).
Proof.
  unfold decide_levels; destruct (valid_b m) eqn:v; [|exact I]; apply valid_ok in v.
  destruct (sensible_b m x) eqn:s; [|exact I]; apply (sensible_ok m x v) in s.
  destruct (is_filling m _ n x rounds) eqn:f; [|exact I]; destruct (norms_positive m n) eqn:p; [|exact I].
  assert (fair : max_min_fair m n x) by exact (is_filling_ok m _ _ n x rounds v (plain_limits_hold m v) s f).
  split; [exact (optima_of_filling_ok m n x v fair p)|split; [exact fair|exact (conj v fair)]].
Qed.

Definition decide_filled m x n rates owed rounds : answer :=
  if negb (valid_b m) then refused "the market is not valid"
  else match limits_of m owed with
  | None => refused "what is told does not fit the entitlements"
  | Some (lim, inside) =>
    if negb (inside x && keeps_entitlements_b m x)
      then refused "the allocation is not feasible, or breaks caps or guarantees, or what is told"
    else if match rates with Some rates => is_rising m lim n x rates rounds | None => is_filling m lim n x rounds end
      then Told (FilledTold n rates owed) m x else refused "the rounds do not show how ratios rise"
  end.
Lemma decide_filled_fine m x n rates owed rounds : answer_fine (decide_filled m x n rates owed rounds).
Proof.
  unfold decide_filled; destruct (valid_b m) eqn:v; [|exact I]; apply valid_ok in v; simpl negb; cbv iota.
  destruct (limits_of m owed) as [[lim inside]|] eqn:el; [|exact I]; destruct (limits_of_ok _ _ _ _ v el) as [holds fits].
  destruct (inside x) eqn:ix; [|exact I]; destruct (keeps_entitlements_b m x) eqn:ke; [|exact I]; simpl negb; cbv iota.
  pose proof (fits x ix) as ax; destruct (holds x ax) as [sx _].
  destruct (match rates with Some _ => _ | None => _ end) eqn:e; [|exact I].
  split; [exact v|split; [exact (keeps_entitlements_ok m x (proj1 sx) ke)|split; [exact ax|]]].
  destruct rates as [rates|];
    [exact (is_rising_ok m lim _ n x rates rounds v holds ax e)|exact (is_filling_ok m lim _ n x rounds v holds ax e)].
Qed.

Definition decide_partial m x kept together apart : answer :=
  match check_partial m x kept together apart with Accepted s => Alone PartialAllocation m x s | r => Refused r end.
Lemma decide_partial_fine m x kept together apart : answer_fine (decide_partial m x kept together apart).
Proof.
  unfold decide_partial; destruct (check_partial _ _ _ _ _) as [s| |] eqn:e; [|exact I|exact I].
  destruct (check_partial_sound _ _ _ _ _ _ e) as [-> h]; exact (conj (proj1 h) (conj (proj2 h) h)).
Qed.

Definition decide_traded m x trades : answer :=
  match check_traded m x trades with Accepted s => Alone (SplitEqually (told_trades trades)) m x s | r => Refused r end.
Lemma decide_traded_fine m x trades : answer_fine (decide_traded m x trades).
Proof.
  unfold decide_traded; destruct (check_traded _ _ _) as [s| |] eqn:e; [|exact I|exact I].
  destruct (check_traded_sound _ _ _ _ e) as [-> h]; exact (conj (proj1 h) (conj (proj2 h) h)).
Qed.

(** No row of a program is kept by all of them, and none is asked for: no range over them is certified. *)
Definition optima_of_efficient (m : market) : optima := Optima m OefEfficient (fun _ _ => false) (fun _ => None).
Definition decide_efficient m x lambda v bound gap nodes : answer :=
  if is_best_efficient m x lambda v bound gap nodes then
    if same v bound then Decided (optima_of_efficient m) (Point x) (BestEfficient m x v bound)
    else refused "the allocation is not proved to be the best"
  else refused unproved_tree.

Lemma decide_efficient_fine m x lambda v bound gap nodes : answer_fine (decide_efficient m x lambda v bound gap nodes).
Proof.
  unfold decide_efficient; destruct (is_best_efficient _ _ _ _ _ _ _) eqn:e; [|exact I].
  destruct (same v bound) eqn:vb; [|exact I]; apply sameP in vb.
  destruct (is_best_efficient_ok _ _ _ _ _ _ _ e) as (va & sen & fair & tot & best).
  split; [split; [exact va|split; [discriminate|]]|split; [|exact (conj va (conj fair (conj tot best)))]].
  - intros y (s & _); split; [exact s|exists 0; discriminate].
  - split; [exact sen|split; [exact fair|]]; intros y h; pose proof (best y h); cbn [on_market optima_of_efficient]; lra.
Qed.

Definition told_range : answer := unknown "a range over all decisions by what is told".

(** Names of policies whose decisions are proved from the market. *)
Definition known_names : list text :=
  map word ["max-efficiency"; "oef-noncooperative"; "oef-cooperative"; "max-min"; "equal-split"; "second-price-trading";
            "water-filling"; "nash-welfare"; "partial-allocation"; "oef-efficient"]%string.

Definition places_fine (n : N) (m : market) (shares : list (list N)) : bool :=
  same_length shares (users m) && forallb (fun row => same_length row (capacity m) && forallb (fun j =>
    N.ltb j n) row) shares.

Definition decide_embedded p point v bound gap duals m (author : text) shares : answer :=
  match check_program_bound p point v bound gap duals with
  | Accepted _ =>
    let s := stored point in
    let x := map (map (coordinate s)) shares in
    if negb (feasible_b m x && keeps_entitlements_b m x)
    then refused "the allocation is not feasible, or breaks caps or guarantees"
    else if negb (same v bound) then refused "the duals do not prove the point optimal"
    else if existsb (same_text author) known_names then refused "its decisions are proved from the market"
    else if places_fine (N.of_nat (List.length (variables p))) m shares && valid_b m
      then Authors p m author x v else refused "the market is not valid, or the shares are not of its users"
  | r => Refused r
  end.

Lemma decide_embedded_fine p point v bound gap duals m author shares :
  answer_fine (decide_embedded p point v bound gap duals m author shares).
Proof.
  unfold decide_embedded; destruct (check_program_bound _ _ _ _ _ _) as [s| |] eqn:e; [|exact I|exact I]; cbv zeta.
  destruct (feasible_b m _) eqn:f; [|exact I]; destruct (keeps_entitlements_b m _) eqn:ke; [|exact I]; simpl negb; cbv
    iota.
  destruct (same v bound) eqn:vb; [|exact I]; apply sameP in vb; simpl negb; cbv iota.
  destruct (existsb _ _); [exact I|]; destruct (places_fine _ _ _); [|exact I].
  destruct (valid_b m) eqn:va; [|exact I]; simpl.
  apply valid_ok in va; apply feasible_ok in f; apply (keeps_entitlements_ok m _ f) in ke; destruct
    (program_bound_meaning _ _ _ _ _ _ _ e) as (sat & at_v &
    bounded).
  split; [exact va|split; [exact f|split; [exact ke|split]]].
  - intros y sy; specialize (bounded y sy); destruct (maximize p); rewrite vb; exact bounded.
  - exists point; split; [exact sat|split; [exact at_v|]]; exists (map (map N.to_nat) shares).
    clear; induction shares as [|row shares IH]; constructor; [|exact IH].
    induction row as [|j row IH']; constructor; [|exact IH']. symmetry; rewrite coordinate_ok; reflexivity.
Qed.

Definition decide_alone (d : decision) : answer :=
  match d with
  | Optimality m p x v duals named => decide_optimality m p x v duals named
  | Levels m x n rounds => decide_levels m x n rounds
  | Filled m x n rates owed rounds => decide_filled m x n rates owed rounds
  | Equilibrium m x prices demand_duals => decide_equilibrium m x prices demand_duals
  | Partial m x kept together apart => decide_partial m x kept together apart
  | Traded m x trades => decide_traded m x trades
  | Efficient m x lambda v bound gap nodes => decide_efficient m x lambda v bound gap nodes
  | Extreme _ _ _ _ _ _ _ => refused "a range leaves no choice over which a range is certified"
  | Embedded p point v bound gap duals m author shares => decide_embedded p point v bound gap duals m author shares
  end.

Definition decide (d : decision) : answer :=
  match d with
  | Extreme of highest w x v duals named =>
    match decide_alone of with
    | Decided o _ _ =>
      if is_extreme o highest w x v duals named
      then Decided o (Range highest w v) (ExtremeIs (on_market o) (by_rule o) highest w v)
      else refused "the extreme over all optima is another"
    | Authors _ _ _ _ _ => refused "an embedded program leaves no choice over which a range is certified"
    | Alone _ _ _ _ => refused "its decisions leave no choice over which a range is certified"
    | Told _ _ _ => told_range
    | r => r
    end
  | _ => decide_alone d
  end.

Lemma decide_alone_fine d : answer_fine (decide_alone d).
Proof.
  destruct d; try exact I.
  - apply decide_optimality_fine.
  - apply decide_levels_fine.
  - apply decide_filled_fine.
  - apply decide_equilibrium_fine.
  - apply decide_partial_fine.
  - apply decide_traded_fine.
  - apply decide_efficient_fine.
  - apply decide_embedded_fine.
Qed.

Lemma decide_fine d : answer_fine (decide d).
Proof.
  destruct d as [| | | | | | |of highest w x v duals named|]; try apply decide_alone_fine; simpl.
  pose proof (decide_alone_fine of) as h; destruct (decide_alone of) as [o c s|p m author y u|r m y s|d m y|r];
    [|exact I|exact I|exact I|exact h].
  destruct (is_extreme _ _ _ _ _ _ _) eqn:e; [|exact I]; destruct h as (fo & _ & _).
  pose proof (is_extreme_ok _ _ _ _ _ _ _ fo e) as ex.
  split; [exact fo|split; [exact ex|split; [exact (proj1 fo)|exact ex]]].
Qed.

Definition check_decision (d : decision) : result :=
  match decide d with
  | Decided _ _ s => Accepted s
  | Authors p m author x v => Accepted (AuthorsOptimum p m author x v)
  | Alone _ _ _ s => Accepted s
  | Told d m x => Accepted (AsTold m x d)
  | Refused r => r
  end.

Lemma check_decision_sound d s : check_decision d = Accepted s -> meaning s.
Proof.
  unfold check_decision; pose proof (decide_fine d) as h; destruct (decide d) as [o c t|p m author x v|r m x t|t m x|r]; simpl in h.
  - intro e; injection e as <-; apply h.
  - intro e; injection e as <-; exact h.
  - intro e; injection e as <-; apply h.
  - intro e; injection e as <-; exact h.
  - destruct r; [destruct h|discriminate|discriminate].
Qed.

(** By two decisions [x] and [y], of one policy, on [m'] and on [lie']. *)
Definition check_pair m who report gain truth x lie' y (s : statement) : result :=
  let lie := misreported truth who report in
  if negb (like_b m truth && like_b lie lie') then no "the decisions are not on the truth and on the misreport"
  else match nth_error (combine (users truth) x) (N.to_nat who), nth_error y (N.to_nat who) with
  | Some (u, b), Some c =>
    if same (sub (worth_now u c) (worth_now u b)) gain && lt 0 gain && negb (like_b truth lie) then Accepted s
    else no "the misreport does not gain this, or it is the truth"
  | _, _ => no "there is no such user"
  end.

Lemma check_pair_sound m who report gain truth x lie' y s s' (before : table -> Prop) (after : market -> table -> Prop) :
  before x -> after lie' y ->
  check_pair m who report gain truth x lie' y s = Accepted s' -> s' = s /\ rewarded truth who report gain before after.
Proof.
  intros h h'; unfold check_pair; cbv zeta; destruct (like_b m truth); [|discriminate].
  destruct (like_b (misreported _ _ _) lie') eqn:lk; [|discriminate]; apply like_ok in lk; simpl.
  destruct (nth_error (combine _ _) _) as [[u b]|] eqn:eb; [|discriminate].
  destruct (nth_error y _) as [c|] eqn:ec; [|discriminate].
  destruct (same _ gain) eqn:g; [|discriminate]; destruct (lt 0 gain) eqn:pos; [|discriminate].
  destruct (like_b truth _) eqn:nl; [discriminate|]; simpl; intro e; injection e as <-.
  apply sameP in g; apply ltP in pos; rewrite subE, !worth_now_ok in g; split; [reflexivity|].
  split; [exact pos|split; [intro l; apply like_ok in l; congruence|]].
  exists lie', x, y; split; [exact lk|split; [exact h|split; [exact h'|]]].
  exists u, b, c; split; [exact eb|split; [exact ec|]]; rewrite <- g; ring.
Qed.

(** A policy as a certificate names it, by what somebody tells. *)
Definition told_word (d : telling) : text :=
  match d with
  | FilledTold n rates owed =>
      word match rates with Some _ => "hierarchical-water-filling at rates that are told" | None => "water-filling" end ++
      word match owed with Some _ => " with entitlements" | None => "" end ++
      word match n with OwnPartition => "" | EqualTime => ", equal-time" | Isolated => ", isolated" end
  end.

(** An equal split leaves no choice; roots are rounded, so what is gained by parts must be more than that. *)
Definition no_choice (r : rule) : bool := match r with SplitEqually _ => true | _ => false end.
Definition sure_gain (m : market) (r : rule) (who : N) (gain : Q) : bool :=
  match r, nth_error (users m) (N.to_nat who) with
  | PartialAllocation, Some u => lt (mul grain (worth_now u (capacity m))) gain
  | PartialAllocation, None => false
  | _, _ => true
  end.
Definition check_rule_pair m policy_name who report gain r t x r' l y : result :=
  if same_rule r r' && same_text policy_name (rule_word r) && sure_gain t r who gain
  then check_pair m who report gain t x l y (Rewards t r who report gain (no_choice r))
  else no "the decisions are another policy's, or are rounded by as much as is gained".

Lemma check_rule_pair_sound m policy_name who report gain r t x r' l y s :
  valid t -> optimum t r x -> valid l -> optimum l r' y ->
  check_rule_pair m policy_name who report gain r t x r' l y = Accepted s -> meaning s.
Proof.
  intros vt ot vl ol; unfold check_rule_pair; destruct (same_rule r r') eqn:e; [|discriminate].
  apply same_rule_ok in e; subst r'; destruct (_ && _); [|discriminate]; intro h.
  destruct (check_pair_sound _ _ _ _ _ _ _ _ _ _ (optimum t r) (fun l y => valid l /\ optimum l r y) ot (conj vl ol) h)
    as [-> (pos & nl & lie & x' & y' & lk & ox & (vy & oy) & u & b & c & eb & ec & w)].
  split; [exact vt|split; [exact pos|split; [exact nl|]]]; exists lie; split; [exact lk|split; [exact vy|]]; cbv zeta.
  split; [exists x', y'; split; [exact ox|split; [exact oy|exists u, b, c; auto]]|].
  destruct r as [p|n| | | |after|author]; try discriminate; intros _ x2 y2 ox2 oy2.
  pose proof (split_alike _ _ _ _ ox ox2) as ex; pose proof (split_alike _ _ _ _ oy oy2) as ey.
  unfold said_of in *; apply nth_error_combine in eb; destruct eb as [eu eb].
  destruct (Forall2_at _ _ _ _ _ ex eb) as (b2 & eb2 & wb); destruct (Forall2_at _ _ _ _ _ ey ec) as (c2 & ec2 & wc).
  exists gain; split; [apply Qle_refl|]; exists u, b2, c2; split; [apply nth_error_combine; auto|split; [exact ec2|]].
  rewrite <- (worth_equal u b b2 wb), <- (worth_equal u c c2 wc); exact w.
Qed.

Definition check_misreport m policy_name who report gain truth lie : result :=
  let named a b := same_text policy_name a && same_text policy_name b in
  let another := no "the decisions are another policy's" in
  match decide truth, decide lie with
  | Decided o c _, Decided o' c' _ => check_rewards m policy_name who report gain o c o' c'
  | Authors p t author x _, Authors p' l author' y _ =>
    if named author author'
    then check_pair m who report gain t x l y (AuthorsReward p p' t author who report gain false) else another
  | Alone r t x _, Alone r' l y _ => check_rule_pair m policy_name who report gain r t x r' l y
  | Told d t x, Told d' l y =>
    if named (told_word d) (told_word d')
    then check_pair m who report gain t x l y (AsToldReward d d' t who report gain) else another
  | Refused r, _ | _, Refused r => r
  | _, _ => no "one decision is proved from the market, and the other by what somebody tells"
  end.

Lemma check_misreport_sound m policy_name who report gain truth lie s :
  check_misreport m policy_name who report gain truth lie = Accepted s -> meaning s.
Proof.
  unfold check_misreport; cbv zeta; pose proof (decide_fine truth) as h; pose proof (decide_fine lie) as h'.
  destruct (decide truth) as [o c t|p t author x v|r t x s0|d t x|r], (decide lie) as [o' c' t'|p' l author' y w|r' l y s1|d' l y|r'];
    simpl in h, h'; try discriminate; try (destruct r; [contradiction|discriminate|discriminate]);
    try (destruct r'; [contradiction|discriminate|discriminate]).
  - destruct h as (fo & fc & _), h' as (fo' & fc' & _); exact (check_rewards_sound _ _ _ _ _ _ _ _ _ _ fo fc fo' fc').
  - destruct (_ && _); [|discriminate]; intro e.
    destruct (check_pair_sound _ _ _ _ _ _ _ _ _ _ (fun x => exists v, authors_optimum p t x v)
      (fun l y => exists w, authors_optimum p' l y w) (ex_intro _ v h) (ex_intro _ w h') e) as [-> rw].
    exact (conj eq_refl rw).
  - destruct h as (vt & ot & _), h' as (vl & ol & _); exact (check_rule_pair_sound _ _ _ _ _ _ _ _ _ _ _ _ vt ot vl ol).
  - destruct (_ && _); [|discriminate]; intro e.
    destruct (check_pair_sound _ _ _ _ _ _ _ _ _ _ (settles d t) (settles d') h h' e) as [-> rw]; exact rw.
Qed.
