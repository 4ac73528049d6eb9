(** * Partial allocation: each keeps the part of its bundle that its presence costs the others *)

From Coq Require Import List NArith QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Optima Means Gaps Nash NashBounds.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Powers: the smallest whole numbers in proportion to the weights *)
Definition most_power : Z := 64.
Definition whole_weights (m : market) : Q * list Z :=
  let ws := map (fun u => Qred (weight u)) (users m) in
  let common := fold_right Z.lcm 1%Z (map (fun w => Zpos (Qden w)) ws) in
  let tops := map (fun w => Z.mul (Qnum w) (Z.div common (Zpos (Qden w)))) ws in
  let g := fold_right Z.gcd 0%Z tops in
  (mul (inject_Z common) (/ inject_Z g), map (fun t => Z.div t g) tops).

Fixpoint in_proportion (unit : Q) (ks : list Z) (us : list user) : bool :=
  match ks, us with
  | k :: ks, u :: us => Z.leb 0 k && Z.leb k most_power && same (inject_Z k) (mul unit (weight u)) && in_proportion
    unit ks us
  | [], [] => true
  | _, _ => false
  end.

Lemma in_proportion_ok unit us : forall ks, in_proportion unit ks us = true ->
  Forall2 (fun k u => inject_Z (Z.of_nat k) == unit * weight u) (map Z.to_nat ks) us.
Proof.
  induction us as [|u us IH]; intros [|k ks] e; try discriminate; [constructor|]; simpl in e.
  rewrite !andb_true_iff in e; destruct e as [[[k0 _] s] t]; apply Z.leb_le in k0; apply sameP in s.
  constructor; [rewrite Z2Nat.id by exact k0; rewrite s, mulE; reflexivity|exact (IH ks t)].
Qed.

Fixpoint fast_power (q : Q) (k : nat) : Q := match k with O => 1 | S k => mul q (fast_power q k) end.
Lemma fast_powerE q k : fast_power q k == power q k.
Proof. induction k as [|k IH]; simpl; [reflexivity|]; rewrite mulE, IH; reflexivity. Qed.
Fixpoint fast_powers (ks : list nat) (vs : list Q) : Q :=
  match ks, vs with k :: ks, v :: vs => mul (fast_power v k) (fast_powers ks vs) | _, _ => 1 end.
Lemma fast_powersE ks : forall vs, fast_powers ks vs == powers_of ks vs.
Proof.
  unfold powers_of; induction ks as [|k ks IH]; intros [|v vs]; try reflexivity.
  simpl; rewrite mulE, fast_powerE, IH; reflexivity.
Qed.

Definition fast_nash (m : market) (ks : list nat) (x : table) : Q := fast_powers ks (throughputs_now m x).
Lemma fast_nashE m ks x : fast_nash m ks x == nash_welfare m ks x.
Proof.
  unfold fast_nash; rewrite fast_powersE, nash_welfare_powers; apply powers_equal, throughputs_now_ok.
Qed.

(** ** Equilibria *)
Definition bought (m : market) (of : table * list Q) : bool :=
  match price_duals m (snd of) None with Some duals => is_equilibrium m (fst of) duals | None => false end.
Lemma bought_ok m of : bought m of = true -> maximises_nash m (fst of).
Proof.
  unfold bought; destruct (price_duals _ _ _) as [duals|]; [|discriminate]; intro e.
  exact (settled_maximises m (fst of) (is_equilibrium_ok m (fst of) duals e)).
Qed.

Lemma nobody_maximises m : users m = [] -> (forall there, In there (capacity m) -> 0 <= there) -> maximises_nash m [].
Proof.
  intros e c; split; [split; [split; [split; [rewrite e; reflexivity|intros b []]|split; [intros b s []|]]|]|].
  - intros j _; unfold given; simpl; apply nth_nonneg; exact c.
  - intros u b; unfold has; rewrite e; intros [].
  - split; [intros u b; unfold has; rewrite e; intros []|]. intros y powers sy _; unfold nash_welfare; rewrite e.
    destruct powers; apply Qle_refl.
Qed.

(** ** Parts *)
Definition grain : Q := 1 # 1000000000000.

Fixpoint is_part (part : Q) (b whole : list Q) : bool :=
  match b, whole with
  | share :: b, all :: whole => same share (mul part all) && is_part part b whole
  | [], [] => true
  | _, _ => false
  end.
Lemma is_part_ok part b : forall whole, is_part part b whole = true ->
  Forall2 (fun share all => share == part * all) b whole.
Proof.
  induction b as [|s b IH]; intros [|a whole] e; try discriminate; [constructor|]; simpl in e; apply andb_true_iff in e.
  destruct e as [h t]; apply sameP in h; rewrite mulE in h; constructor; [exact h|exact (IH whole t)].
Qed.

Definition part_fine (m : market) (ks : list nat) (together : table) (i : nat) (part : Q) (apart : table * list Q)
    (b whole : list Q) : bool :=
  let rest := market_without m i in
  let of := match users rest with [] => ([], []) | _ => apart end in
  let k := nth i ks 0%nat in
  let before := fast_nash rest (left_out i ks) (left_out i together) in
  let after := fast_nash rest (left_out i ks) (fst of) in
  match users rest with [] => true | _ => bought rest of end && lt 0 part && is_part part b whole
  && le (mul (fast_power part k) after) before && lt before (mul (fast_power (add part grain) k) after).

Lemma part_fine_ok m ks together i part apart b whole : valid m -> part_fine m ks together i part apart b whole = true
  ->
  keeps_part m ks together i part /\ Forall2 (fun share all => share == part * all) b whole.
Proof.
  intros v; unfold part_fine; cbv zeta; set (rest := market_without m i).
  set (of := match users rest with [] => ([], []) | _ => apart end); rewrite !andb_true_iff; intros [[[[h p] s] l] u].
  split; [|exact (is_part_ok _ _ _ s)]; apply ltP in p; apply leP in l; apply ltP in u.
  rewrite mulE, fast_powerE, !fast_nashE in l, u.
  exists (fst of); split.
  - revert h; unfold of; destruct (users rest) as [|u0 us] eqn:eu; intro h.
    + apply nobody_maximises; [exact eu|exact (proj1 (proj2 (proj2 (proj2 v))))].
    + exact (bought_ok rest apart h).
  - cbv zeta; fold rest; split; [exact p|split; [exact l|]].
    assert (power (add part grain) (nth i ks 0%nat) == power (part + (1 # 1000000000000)) (nth i ks 0%nat)) as e
      by (apply power_equal; rewrite addE; reflexivity).
    rewrite <- e; exact u.
Qed.

Fixpoint parts_fine (m : market) (ks : list nat) (together : table) (i : nat) (kept : list Q)
    (apart : list (table * list Q)) (x whole : table) : bool :=
  match kept, apart, x, whole with
  | part :: kept, of :: apart, b :: x, w :: whole =>
    part_fine m ks together i part of b w && parts_fine m ks together (S i) kept apart x whole
  | [], [], [], [] => true
  | _, _, _, _ => false
  end.

Definition check_partial m x kept (together : table * list Q) apart : result :=
  let '(unit, ks) := whole_weights m in
  if negb (valid_b m && feasible_b m x) then no "the market is not valid, or the allocation is not feasible"
  else if negb (lt 0 unit && in_proportion unit ks (users m)) then no "the weights make powers that are too high"
  else if bought m together && parts_fine m (map Z.to_nat ks) (fst together) 0 kept apart x (fst together)
  then Accepted (PartsLeft m x) else no "a user keeps another part, or the prices are not those of an equilibrium".

Lemma parts_fine_ok m ks together : valid m -> forall kept apart x whole i,
  parts_fine m ks together i kept apart x whole = true ->
  forall j b, nth_error x j = Some b -> exists part w, nth_error whole j = Some w /\
    keeps_part m ks together (i + j) part /\ Forall2 (fun share all => share == part * all) b w.
Proof.
  intro v; induction kept as [|part kept IH]; intros [|of apart] [|b0 x] [|w whole] i e j b eb; try discriminate;
    [destruct j; discriminate|].
  simpl in e; apply andb_true_iff in e; destruct e as [h t]; destruct j as [|j]; simpl in eb.
  - injection eb as ->; exists part, w; split; [reflexivity|]; rewrite Nat.add_0_r.
    exact (part_fine_ok _ _ _ _ _ _ _ _ v h).
  - replace (i + S j)%nat with (S i + j)%nat by lia; exact (IH apart x whole (S i) t j b eb).
Qed.

Lemma check_partial_sound m x kept together apart s : check_partial m x kept together apart = Accepted s ->
  s = PartsLeft m x /\ valid m /\ leaves_parts m x.
Proof.
  unfold check_partial; destruct (whole_weights m) as [unit ks].
  destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (feasible_b m x) eqn:f; [|discriminate]; apply feasible_ok in f; simpl negb; cbv iota.
  destruct (lt 0 unit) eqn:u0; [|discriminate]; apply ltP in u0.
  destruct (in_proportion _ _ _) eqn:p; [|discriminate]; simpl negb; cbv iota.
  destruct (bought m together) eqn:h; [|discriminate]; destruct (parts_fine _ _ _ _ _ _ _ _) eqn:pf; [|discriminate].
  intro e; injection e as <-; split; [reflexivity|split; [exact v|split; [exact f|]]].
  exists (map Z.to_nat ks), (fst together); split; [exists unit; split; [exact u0|exact (in_proportion_ok _ _ _ p)]|].
  split; [exact (bought_ok m together h)|]. exact (parts_fine_ok m _ _ v _ _ _ _ 0%nat pf).
Qed.
