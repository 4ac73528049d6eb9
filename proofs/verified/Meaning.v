(** * What a statement means

    To read it, this much Coq is enough: [A /\ B] is "and", [A -> B] is "if A then B", [f x y] is what mathematicians
    write f(x, y), [x == y] says that two fractions are the same number, [nth j l 0] is the entry of a list at position
    [j] (counted from 0).  Nothing here is run.

    "OEF" is Mo, Xu and Lau, Optimal Resource Efficiency with Fairness in Heterogeneous GPU Clusters, Middleware 2024.
    Its words are those of [proofs/theorems/Market.v], with weights, demands and numbers in the place of variables. *)

From Coq Require Import List QArith Qminmax.
From Verified Require Import Syntax.
From Verified Require Export Owed Gangs Plans SecondPrice.
Import ListNotations.
Local Open Scope Q_scope.

(** ** Programs that the certificate holds *)

(** low <= x <= high, where there are such bounds. *)
Definition between (low : option Q) (x : Q) (high : option Q) : Prop :=
  match low with Some l => l <= x | None => True end /\ match high with Some h => x <= h | None => True end.

Definition is_whole (x : Q) : Prop := exists z : Z, x == inject_Z z.

Definition within (v : variable) (x : Q) : Prop :=
  between (lower v) x (upper v) /\ (integer v = true -> is_whole x).
Definition left_side (r : row) (x : list Q) : Q :=
  sum (map (fun '(j, rate) => rate * nth (N.to_nat j) x 0) (terms r)).

(** The points that a program allows, one value for each variable, and how good they are. *)
Definition satisfies (p : program) (x : list Q) : Prop :=
  Forall2 within (variables p) x /\ forall r, In r (rows p) -> between (least r) (left_side r x) (most r).
Definition objective (p : program) (x : list Q) : Q := offset p + dot (map cost (variables p)) x.

Definition is_bound (p : program) (bound : Q) : Prop :=
  forall x, satisfies p x -> if maximize p then objective p x <= bound else bound <= objective p x.

(** ** Markets: OEF Sec. 2.3 and 4.2.3 *)
Section Market.
Variable m : market.

Definition total_weight : Q := sum (map weight (users m)).

(** Each user has a bundle: how many GPUs it holds of each type. *)
Definition shaped (x : table) : Prop :=
  length x = length (users m) /\ forall b, In b x -> length b = length (capacity m).
(** User [u] has the bundle [b]. *)
Definition has (x : table) (u : user) (b : list Q) : Prop := In (u, b) (combine (users m) x).
(** GPUs of type [j] that are given out. *)
Definition given (x : table) (j : nat) : Q := sum (map (fun b => nth j b 0) x).

(** OEF Eq. (4), (9b), (10b): no share is negative, no type is given out more often than it is there. *)
Definition feasible (x : table) : Prop :=
  shaped x /\ (forall b share, In b x -> In share b -> 0 <= share) /\
  (forall j, (j < length (capacity m))%nat -> given x j <= nth j (capacity m) 0).

(** sum_j w_i^j b^j *)
Definition value (u : user) (b : list Q) : Q := dot (speedup u) b.

(** *** Demands: a user runs on its fastest GPUs first, and on no more than it demands *)

(** Type [i] comes before type [j]: it is faster, or as fast and named earlier. *)
Definition comes_first (s : list Q) (i j : nat) : bool :=
  negb (Qle_bool (nth i s 0) (nth j s 0)) || (Qeq_bool (nth i s 0) (nth j s 0) && (i <? j)%nat).
Definition ahead (s b : list Q) (j : nat) : Q :=
  sum (map (fun i => if comes_first s i j then nth i b 0 else 0) (seq 0 (length s))).
(** How many GPUs of type [j] a user runs on, out of a bundle. *)
Definition uses (u : user) (b : list Q) (j : nat) : Q :=
  if Qeq_bool (nth j (speedup u) 0) 0 then 0
  else match demand u with
       | None => nth j b 0
       | Some d => Qmax 0 (Qmin (nth j b 0) (d - ahead (speedup u) b j))
       end.
Definition used (u : user) (b : list Q) : list Q := map (uses u b) (seq 0 (length (speedup u))).
(** A user's throughput; [value] where its demand is not limited. *)
Definition worth (u : user) (b : list Q) : Q :=
  match demand u with None => value u b | Some _ => value u (used u b) end.

(** The weight's part of every type. *)
Definition own_part (u : user) : list Q := map (fun there => weight u / total_weight * there) (capacity m).
Definition fair_share (u : user) : Q := worth u (own_part u).

(** What the file must say of a market for anything to be proved. *)
Definition valid : Prop :=
  users m <> [] /\ capacity m <> [] /\ length (types m) = length (capacity m) /\
  (forall there, In there (capacity m) -> 0 <= there) /\
  (forall u, In u (users m) ->
     length (speedup u) = length (capacity m) /\ (forall s, In s (speedup u) -> 0 <= s) /\ 0 < weight u /\
     match demand u with Some d => 0 < d | None => True end /\ 0 < fair_share u).

(** ** Properties: OEF Sec. 2.3.1 *)

Definition sharing_incentive (x : table) : Prop := forall u b, has x u b -> fair_share u <= worth u b.

Definition scaled (a : Q) (b : list Q) : list Q := map (fun share => a * share) b.
Definition envies (x : table) (u : user) (b : list Q) (v : user) (c : list Q) : Prop :=
  worth u b < worth u (scaled (weight u / weight v) c).
Definition envy_free (x : table) : Prop :=
  forall u b v c, has x u b -> has x v c -> ~ envies x u b v c.

Definition everybody_at_least (x y : table) : Prop :=
  forall u b c, In (u, (b, c)) (combine (users m) (combine x y)) -> worth u b <= worth u c.
Definition pareto_efficient (x : table) : Prop :=
  feasible x /\ forall y, feasible y -> everybody_at_least x y -> everybody_at_least y x.

(** GPUs of a type that nobody runs on. *)
Definition idle (x : table) (j : nat) : Q :=
  nth j (capacity m) 0 - sum (map (fun '(u, b) => nth j (used u b) 0) (combine (users m) x)).
Definition wants_more (u : user) (b : list Q) : Prop :=
  match demand u with Some d => sum (used u b) < d | None => True end.
Definition work_conserving (x : table) : Prop :=
  forall u b j, has x u b -> wants_more u b -> (j < length (capacity m))%nat -> 0 < idle x j ->
    nth j (speedup u) 0 == 0.

(** Between two types that a user holds, it holds every one of which there are GPUs. *)
Definition adjacent (x : table) : Prop :=
  forall b i j l, In b x -> (i < j < l)%nat -> 0 < nth i b 0 -> 0 < nth l b 0 ->
    ~ nth i (capacity m) 0 == 0 -> ~ nth j (capacity m) 0 == 0 -> ~ nth l (capacity m) 0 == 0 -> 0 < nth j b 0.

Definition has_property (x : table) (p : property) : Prop :=
  match p with
  | Feasibility => feasible x
  | SharingIncentive => sharing_incentive x
  | EnvyFreeness => envy_free x
  | WorkConservation => work_conserving x
  | AdjacentTypes => adjacent x
  | ParetoEfficiency => pareto_efficient x
  end.

(** *** With entitlements: those of [Owed], and envy, of what others hold beyond their guarantees *)
Definition no_peer_is_envied (e : entitlements) (x : table) : Prop :=
  forall i l u b v c, nth_error (combine (users m) x) i = Some (u, b) -> nth_error (combine (users m) x) l = Some (v,
    c) ->
    siblings e i l -> worth u (in_place m e i l (weight u / weight v) b c) <= worth u b.
(** What a bundle is worth for what user [i] asks for. *)
Definition worth_asked (e : entitlements) (i : nat) (u : user) (b : list Q) (t : Q) : Prop :=
  if usage_told m e then most_served (kinds m) (speedup u) (asks m e i u) (room_of b) t else t == worth u b.
Definition worths_are (e : entitlements) (x : table) (own sure : nat -> Q) : Prop :=
  forall i u b, nth_error (combine (users m) x) i = Some (u, b) ->
    worth_asked e i u b (own i) /\ worth_asked e i u (guaranteed m e i) (sure i).
Definition owed_is (e : entitlements) (x : table) (p : owed_property) (holds : bool) : Prop :=
  let answer (P : Prop) := if holds then P else ~ P in
  let given_what_they_could_use P := exists could, could_use m e x could /\ answer (P could) in
  match p with
  | CapKept => answer (cap_kept m e x)
  | PeersEnvyFree => answer (no_peer_is_envied e x)
  | GuaranteeKept => given_what_they_could_use (guarantee_kept m e x)
  | WholeGpus => given_what_they_could_use (whole_gpus m e x)
  | GroupFairness => given_what_they_could_use (group_fair m e x)
  | NobodyStarves =>
      exists could given, could_use m e x could /\
        (forall d c, (d < nodes m e)%nat -> (c < columns m e x)%nat -> given d c = gives m e x d c) /\
        answer (nobody_starves m e x could given)
  | GuaranteeIncentive =>
      exists own sure, worths_are e x own sure /\ answer (forall i, (i < people m)%nat -> sure i <= own i)
  end.

(** ** Policies *)

(** Feasible, and nobody holds what it cannot use or does not demand. *)
Definition sensible (x : table) : Prop :=
  feasible x /\ forall u b, has x u b ->
    (forall j, (j < length (capacity m))%nat -> nth j (speedup u) 0 == 0 -> nth j b 0 == 0) /\
    match demand u with Some d => sum b <= d | None => True end.

Definition total (x : table) : Q := sum (map (fun '(u, b) => value u b) (combine (users m) x)).

(** [reaches p x t]: policy [p] may choose [x], and what it wants to be large is [t] there. *)
Definition reaches (p : policy) (x : table) (t : Q) : Prop :=
  sensible x /\
  match p with
  (** OEF Eq. (4) *)
  | MaxEfficiency => total x == t
  (** OEF Eq. (9): throughput is the same for each unit of weight *)
  | OefNoncooperative => total x == t /\ exists level, forall u b, has x u b -> value u b == weight u * level
  (** OEF Eq. (10): nobody prefers another's GPUs, all of them counted even where it demands fewer *)
  | OefCooperative =>
      total x == t /\ forall u b v c, has x u b -> has x v c -> weight u / weight v * value u c <= value u b
  (** Gavel Sec. 4.1: everybody has at least [t] times the worth of its own part *)
  | MaxMin => forall u b, has x u b -> fair_share u * t <= value u b
  end.

Definition none_beyond (p : policy) (bound : Q) : Prop := forall y t, reaches p y t -> t <= bound.

(** *** Nash welfare: the product of throughputs, each to a power in proportion to the weight *)

Fixpoint power (q : Q) (n : nat) : Q := match n with O => 1 | S n => q * power q n end.
Definition product (l : list Q) : Q := fold_right Qmult 1 l.
Definition nash_welfare (powers : list nat) (x : table) : Q :=
  product (map (fun '(k, (u, b)) => power (value u b) k) (combine powers (combine (users m) x))).
(** Whole numbers in proportion to the weights. *)
Definition times_weights (unit : Q) (powers : list nat) : Prop :=
  0 < unit /\ Forall2 (fun k u => inject_Z (Z.of_nat k) == unit * weight u) powers (users m).
Definition by_weights (powers : list nat) : Prop := exists unit, times_weights unit powers.
Definition maximises_nash (x : table) : Prop :=
  sensible x /\ (forall u b, has x u b -> 0 < value u b) /\
  forall y powers, sensible y -> by_weights powers -> nash_welfare powers y <= nash_welfare powers x.

(** Within entitlements, as it is told what they make of groups.  A user's floor is what it can use of its guarantee; a
    guarantee without bound is none. *)
Definition floor_of (e : entitlements) (i : nat) (u : user) : list Q :=
  used u (map (fun j => match limit_at (guarantees e) i j with
    | Some g => match limit_at (caps e) i j with Some c => Qmin g c | None => g end
    | None => 0 end) (seq 0 (length (capacity m)))).
Definition people_in (e : entitlements) (g : nat) : list nat :=
  filter (fun i => existsb (Nat.eqb g) (path e i)) (seq 0 (people m)).
Definition lent_of (o : owed_told) : list Q := match lent_told o with Some l => l | None => capacity m end.
Definition within_told (e : entitlements) (o : owed_told) (y : table) : Prop :=
  sensible y /\
  (forall i u b j, nth_error (combine (users m) y) i = Some (u, b) -> (j < length (capacity m))%nat ->
    nth j (floor_of e i u) 0 <= nth j b 0 /\ up_to (nth j b 0) (limit_at (caps e) i j)) /\
  (forall j, (j < length (capacity m))%nat -> given y j <= nth j (lent_of o) 0) /\
  (forall g j, (g < length (groups e))%nat -> (j < length (capacity m))%nat ->
    let all := sum (map (fun i => cell y i j) (people_in e (people m + g))) in
    cell (floors_told o) g j <= all /\ up_to all (limit_at (caps e) (people m + g) j)).
Definition among (owed : option owed_told) (y : table) : Prop :=
  match entitled m, owed with
  | Some e, Some o => within_told e o y
  | None, None => sensible y
  | _, _ => False
  end.

(** Whoever is allowed and has as much Nash welfare as [x] is within bounds; and nobody has e^(unit * gap) times as much:
    that is more than all powers (1 + unit * gap / n)^n, or as much where the gap is 0.  With logarithms: sums of
    weight * log throughput differ by less than the gap, or not at all. *)
Definition nash_within (allowed : table -> Prop) (x : table) (gap : Q) (lowest highest : list Q) : Prop :=
  feasible x /\
  (forall u b, has x u b -> 0 < value u b /\ match demand u with Some d => sum b <= d | None => True end) /\
  forall unit powers, times_weights unit powers ->
    (forall y, allowed y -> nash_welfare powers x <= nash_welfare powers y ->
      forall i u b, nth_error (combine (users m) y) i = Some (u, b) ->
        nth i lowest 0 <= value u b <= nth i highest 0) /\
    (exists n, forall y, allowed y ->
      nash_welfare powers y <= power (1 + unit * gap / inject_Z (Z.of_nat n)) n * nash_welfare powers x).

(** *** Water filling: ratios of throughputs to what a normaliser says are lexicographically max-min *)

(** Gavel's normalisers: the worth of the own part, what it would be without a demand, and that scaled down where the
    part has more GPUs than the user demands. *)
Definition normal (n : normaliser) (u : user) : Q :=
  match n with
  | OwnPartition => fair_share u
  | EqualTime => value u (own_part u)
  | Isolated =>
    let gpus := sum (capacity m) * weight u / total_weight in
    value u (own_part u) * match demand u with Some d => Qmin 1 (d / gpus) | None => 1 end
  end.
(** Whoever has more elsewhere has it from somebody whose ratio is not larger than its own. *)
Definition fairest (allowed : table -> Prop) (n : normaliser) (x : table) : Prop :=
  allowed x /\ forall y, allowed y -> forall u b c, In (u, (b, c)) (combine (users m) (combine x y)) ->
    value u b < value u c ->
    exists v b' c', In (v, (b', c')) (combine (users m) (combine x y)) /\ value v c' < value v b' /\
      value v b' / normal n v <= value u b / normal n u.

Definition max_min_fair : normaliser -> table -> Prop := fairest sensible.

(** At rates that are told, ratios are to what a unit of weight is worth, in units of the mean weight. *)
Definition unit_of (n : normaliser) (u : user) : Q :=
  normal n u * total_weight / (inject_Z (Z.of_nat (length (users m))) * weight u).
(** Everybody has so much, of its unit. *)
Definition reach (n : normaliser) (y : table) (goals : list Q) : Prop :=
  forall i u b q, nth_error (combine (users m) y) i = Some (u, b) -> nth_error goals i = Some q ->
    unit_of n u * q <= value u b.
(** A round: nobody can rise further at these rates, and who is fixed has what it has wherever all have theirs. *)
Definition one_rise (allowed : table -> Prop) (n : normaliser) (had rate : list Q) (level : Q) (now_fixed : list N) : Prop :=
  (forall y l, allowed y -> reach n y (risen had rate l) -> l <= level) /\
  forall i, In i now_fixed -> 0 < nth (N.to_nat i) rate 0 /\
    forall y u b, allowed y -> reach n y (risen had rate level) ->
      nth_error (combine (users m) y) (N.to_nat i) = Some (u, b) ->
      value u b == unit_of n u * nth (N.to_nat i) (risen had rate level) 0.
(** Round after round, until all are fixed; who is fixed rises no more. *)
Fixpoint rises (allowed : table -> Prop) (n : normaliser) (x : table) (had : list Q) (done : list N)
    (rounds : list (list Q * (Q * list N))) : Prop := match rounds with
  | [] => forall i, (i < length (users m))%nat -> In (N.of_nat i) done
  | (rate, (level, now_fixed)) :: rounds =>
      length rate = length (users m) /\ (forall r, In r rate -> 0 <= r) /\ now_fixed <> [] /\
      (forall i, In i done -> nth (N.to_nat i) rate 0 == 0) /\
      one_rise allowed n had rate level now_fixed /\ reach n x (risen had rate level) /\
      rises allowed n x (risen had rate level) (now_fixed ++ done) rounds
  end.

(** *** Efficient OEF: envy-free, with fair shares, Pareto-efficient; the largest total of those *)
Definition efficient_and_fair (x : table) : Prop := envy_free x /\ sharing_incentive x /\ pareto_efficient x.

(** *** Trade-offs: a property fails by at most a part of the equal share, or of the mean throughput of equal shares *)
Definition goal_is (g : goal) (y : table) (t : Q) : Prop :=
  match g with
  | TotalEfficiency => total y == t
  | LeastGain => forall u b, has y u b -> fair_share u * t <= value u b
  end.
Definition fails_by (p : relaxed) (eps : Q) (y : table) : Prop :=
  match p with
  | EnvyBy => forall u b v c, has y u b -> has y v c ->
      weight u / weight v * value u c - eps * fair_share u <= value u b
  | SharingBy => forall u b, has y u b -> (1 - eps) * fair_share u <= value u b
  | EqualBy => exists level, forall u b, has y u b -> weight u * level <= value u b /\
      value u b <= weight u * level + eps * weight u * (sum (map fair_share (users m)) / total_weight)
  | EfficiencyBy => True
  end.
Definition within_by (g : goal) (p : relaxed) (eps : Q) (y : table) (t : Q) : Prop :=
  sensible y /\ goal_is g y t /\ fails_by p eps y.
(** The lines through points, and level after the last. *)
Fixpoint line_at (points : list (Q * Q)) (eps : Q) : Q :=
  match points with
  | [] => 0
  | (e, v) :: rest =>
      match rest with
      | [] => v
      | (e', v') :: _ => if Qle_bool eps e' then v + (eps - e) / (e' - e) * (v' - v) else line_at rest eps
      end
  end.
Definition first_point (points : list (Q * Q)) : Q := match points with (e, _) :: _ => e | [] => 0 end.
Definition frontier_is (g : goal) (p : relaxed) (points : list (Q * Q)) (gap : Q) (efficient : bool) : Prop :=
  forall eps, first_point points <= eps ->
    (exists y, within_by g p eps y (line_at points eps) /\ (efficient = true -> pareto_efficient y)) /\
    forall y t, within_by g p eps y t -> t <= line_at points eps + gap.

End Market.

(** ** Partial allocation: Cole, Gkatzelis and Goel, Mechanism Design for Fair Division, EC 2013 *)

Definition left_out {A} (i : nat) (l : list A) : list A := firstn i l ++ skipn (S i) l.
Definition market_without (m : market) (i : nat) : market :=
  Market (types m) (capacity m) (left_out i (users m)) (entitled m).
(** To the power of its weight, the part that a user keeps is the others' Nash welfare with it over theirs without it,
  up
    to 1/10^12. *)
Definition keeps_part (m : market) (powers : list nat) (together : table) (i : nat) (part : Q) : Prop :=
  exists apart, maximises_nash (market_without m i) apart /\
  let others := nash_welfare (market_without m i) (left_out i powers) in
  0 < part /\ power part (nth i powers 0%nat) * others apart <= others (left_out i together) /\
  others (left_out i together) < power (part + (1 # 1000000000000)) (nth i powers 0%nat) * others apart.
Definition leaves_parts (m : market) (x : table) : Prop :=
  feasible m x /\ exists powers together, by_weights m powers /\ maximises_nash m together /\
  forall i b, nth_error x i = Some b -> exists part whole, nth_error together i = Some whole /\
    keeps_part m powers together i part /\ Forall2 (fun share all => share == part * all) b whole.

(** ** What a rule may decide *)
Definition optimum (m : market) (r : rule) (x : table) : Prop :=
  match r with
  | OfProgram p => exists t, reaches m p x t /\ none_beyond m p t
  | NashWelfare => maximises_nash m x
  | WaterFilling n => max_min_fair m n x
  | OefEfficient =>
      sensible m x /\ efficient_and_fair m x /\ forall y, efficient_and_fair m y -> total m y <= total m x
  | PartialAllocation => leaves_parts m x
  | SplitEqually after_trades => is_split m after_trades x
  | OfAuthor _ => False
  end.

(** A sum of shares times weights. *)
Definition weighted (weights x : table) : Q := sum (map (fun '(w, b) => dot w b) (combine weights x)).
Definition extreme (m : market) (r : rule) (highest : bool) (weights : table) (v : Q) : Prop :=
  (exists x, optimum m r x /\ weighted weights x == v) /\
  forall x, optimum m r x -> if highest then weighted weights x <= v else v <= weighted weights x.

(** ** What is stated *)

Definition said_of (m : market) (x : table) (who : N) : user -> list Q -> Prop :=
  fun u b => nth_error (combine (users m) x) (N.to_nat who) = Some (u, b).

Definition keeps_entitlements (m : market) (x : table) : Prop :=
  match entitled m with
  | None => True
  | Some e =>
      well_formed m e /\ cap_kept m (at_rest e) x /\
      exists could, could_use m (at_rest e) x could /\ guarantee_kept m (at_rest e) x could
  end.
(** The program that somebody else wrote has this optimum, and some of its variables are the shares. *)
Definition authors_optimum (p : program) (m : market) (x : table) (v : Q) : Prop :=
  valid m /\ feasible m x /\ keeps_entitlements m x /\ is_bound p v /\
  exists point, satisfies p point /\ objective p point == v /\
    exists places, Forall2 (Forall2 (fun j share => nth j point 0 == share)) places x.

(** The same market: numbers may be written otherwise. *)
Definition like (m m' : market) : Prop :=
  types m = types m' /\ Forall2 Qeq (capacity m) (capacity m') /\ Forall2 like_user (users m) (users m') /\
  match entitled m, entitled m' with Some a, Some b => like_entitlements a b | None, None => True | _, _ => False end.
(** The market in which user [who] reports other speedups. *)
Fixpoint replaced (l : list user) (who : nat) (report : list Q) : list user :=
  match l, who with
  | [], _ => []
  | u :: l, O => User (name u) report (weight u) (demand u) :: l
  | u :: l, S who => u :: replaced l who report
  end.
Definition misreported (m : market) (who : N) (report : list Q) : market :=
  Market (types m) (capacity m) (replaced (users m) (N.to_nat who) report) (entitled m).

(** By two decisions that are given. *)
Definition rewarded (m : market) (who : N) (report : list Q) (gain : Q) (before : table -> Prop)
    (after : market -> table -> Prop) : Prop :=
  0 < gain /\ ~ like m (misreported m who report) /\
  exists lie x y, like (misreported m who report) lie /\ before x /\ after lie y /\
    exists u b c, said_of m x who u b /\ nth_error y (N.to_nat who) = Some c /\ worth u c == worth u b + gain.
(** What is told shows how the decision comes about. *)
Definition settles (d : telling) (m : market) (x : table) : Prop :=
  match d with
  | FilledTold n rates owed => valid m /\ keeps_entitlements m x /\ among m owed x /\
      match rates with
      | None => fairest m (among m owed) n x
      | Some rates => exists rounds, map fst rounds = rates /\
          rises m (among m owed) n x (map (fun _ => 0) (users m)) [] rounds
      end
  end.

Definition meaning (s : statement) : Prop :=
  match s with
  | IsBound p v bound => (exists x, satisfies p x /\ objective p x == v) /\ is_bound p bound
  | NoPoint p => forall x, ~ satisfies p x
  | IsOptimal m p x v => valid m /\ reaches m p x v /\ none_beyond m p v
  | IsBounded m p x v bound => valid m /\ reaches m p x v /\ none_beyond m p bound
  | NoAllocation m low =>
      valid m /\ forall y, sensible m y ->
        ~ (forall i least, In (i, least) low -> exists u b, said_of m y i u b /\ least <= value u b)
  | HasProperty m x p holds possible =>
      valid m /\ shaped m x /\ (if holds then has_property m x p else ~ has_property m x p) /\
      (possible = true <-> feasible m x)
  | HasOwed m x p holds possible goods_told =>
      valid m /\ shaped m x /\ (possible = true <-> feasible m x) /\
      exists e, entitled m = Some e /\ well_formed m e /\ owed_is m e x p holds /\
        (goods_told = true <-> (now m e x = true \/ goods e = []))
  | Envies m x i l own theirs possible =>
      valid m /\ (exists u b v c, said_of m x i u b /\ said_of m x l v c /\ worth u b == own /\
        worth u (scaled (weight u / weight v) c) == theirs /\ own < theirs) /\
      (possible = true <-> feasible m x)
  | Dominated m x i gain =>
      valid m /\ feasible m x /\ exists y, feasible m y /\ everybody_at_least m x y /\ 0 < gain /\
        exists u b c, said_of m x i u b /\ said_of m y i u c /\ worth u c == worth u b + gain
  | OptimaDominated m r i gain =>
      valid m /\ 0 < gain /\ exists y, feasible m y /\ (forall x, optimum m r x -> everybody_at_least m x y) /\
        exists u c, said_of m y i u c /\
          (forall x b, optimum m r x -> said_of m x i u b -> worth u b + gain <= worth u c) /\
          (exists x b, optimum m r x /\ said_of m x i u b /\ worth u b + gain == worth u c)
  | ParetoEfficient m x => valid m /\ pareto_efficient m x
  | LevelsAre m x n => valid m /\ max_min_fair m n x
  | AsTold m x d => settles d m x
  | MaximisesNash m x => valid m /\ maximises_nash m x
  | NashWithin m x gap lowest highest owed => valid m /\ keeps_entitlements m x /\
      match owed with Some _ => among m owed x | None => True end /\ nash_within m (among m owed) x gap lowest highest
  | PartsLeft m x => valid m /\ leaves_parts m x
  | SplitLeft m x after_trades => valid m /\ is_split m after_trades x
  | FrontierIs m g p points gap efficient => valid m /\ points <> [] /\ frontier_is m g p points gap efficient
  | BestEfficient m x v bound => valid m /\ efficient_and_fair m x /\ total m x == v /\
      forall y, efficient_and_fair m y -> total m y <= bound
  | RoundCosts r v bound =>
      is_round r /\ (exists types, assigned r types v) /\ forall types cost, assigned r types cost -> bound <= cost
  | ExtremeIs m r highest weights v => valid m /\ shaped m weights /\ extreme m r highest weights v
  | Rewards m r who report gain always =>
      valid m /\ 0 < gain /\ ~ like m (misreported m who report) /\
      exists lie, like (misreported m who report) lie /\ valid lie /\
      let gains x y more := exists u b c, said_of m x who u b /\ nth_error y (N.to_nat who) = Some c /\
                              worth u c == worth u b + more in
      (exists x y, optimum m r x /\ optimum lie r y /\ gains x y gain) /\
      (always = true -> forall x y, optimum m r x -> optimum lie r y -> exists more, gain <= more /\ gains x y more)
  | AuthorsOptimum p m _ x v => authors_optimum p m x v
  | AuthorsReward before after m _ who report gain always => always = false /\
      rewarded m who report gain (fun x => exists v, authors_optimum before m x v)
        (fun lie y => exists w, authors_optimum after lie y w)
  | AsToldReward before after m who report gain => rewarded m who report gain (settles before m) (settles after)
  | PlanKept p => plan_is_kept p
  (** Nothing is stated of these: no certificate of theirs is accepted. *)
  | _ => False
  end.
