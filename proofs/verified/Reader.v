(** * From the bytes of a file to a certificate

    Which keys each kind has, and which of them may be left out, is as in [proofs/verifier]. What this program does not
    know is said to be unknown, never passed over, such as speedups within bounds. *)

From Coq Require Import ZArith NArith QArith List String Ascii Bool.
From Verified Require Import Syntax Json Numbers Decode ReadKeys ReadRounds ReadOwed ReadMarkets.
From Verified Require Meaning.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Decisions *)
Definition policies : list (string * policy) :=
  [("max-efficiency", MaxEfficiency); ("oef-noncooperative", OefNoncooperative);
   ("oef-cooperative", OefCooperative); ("max-min", MaxMin)].

Definition normalisers : list (string * normaliser) :=
  [("own-partition", OwnPartition); ("equal-time", EqualTime); ("isolated", Isolated)].

(** Policies whose decisions are proved from the market, not by a program that is given. *)
Definition of_markets : list string :=
  map fst policies ++ ["equal-split"; "second-price-trading"; "water-filling"; "nash-welfare"; "partial-allocation";
                       "oef-efficient"].

Definition optimality_of (l : json) : outcome decision :=
  let* l := object_of (keys ["market"; "policy"; "allocation"; "value"; "duals"]) (keys ["variables"]) l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* p := field l "policy" (choice policies) in
  let* named := field l "variables" named_of in
  let* value := field l "value" number in
  let* duals := field l "duals" duals_of in
  Ok (Optimality m p x value duals named).

Definition filling_of (known : list text) (j : json) : outcome filling :=
  let* l := object_of (keys ["level"; "fixed"; "duals"]) [] j in
  let* level := field l "level" number in
  let* fixed := field l "fixed" (list_of (user_at known)) in
  let* duals := field l "duals" duals_of in
  Ok (Filling level fixed duals).

(** A row for each group. *)
Definition owed_of (m : market) (j : json) : outcome owed_told :=
  let* l := object_of (keys ["floors"]) (keys ["lent"]) j in
  let count := match entitled m with Some e => List.length (groups e) | None => O end in
  let* floors := field l "floors" (Decode.table count (type_count m)) in
  let* lent := field l "lent" (or_null (numbers (type_count m))) in
  Ok (OwedTold floors lent).

Definition levels_of (l : json) : outcome decision :=
  let* l := object_of (keys ["market"; "allocation"; "rounds"]) (keys ["normaliser"; "owed"; "rates"]) l in
  let* m := field l "market" (market_of true) in
  let* x := field l "allocation" (table_of m) in
  let* owed := field l "owed" (or_null (owed_of m)) in
  let* _ := require (match entitled m, owed with Some _, Some _ | None, None => true | _, _ => false end) NoCertificate
              "what is owed is what entitlements make of groups" in
  let* n := field l "normaliser" (or_null (choice normalisers)) in
  let* rounds := field l "rounds" (list_of (filling_of (names_of m))) in
  let* rates := field l "rates" (or_null (Decode.table (List.length rounds) (user_count m))) in
  let n := match n with Some n => n | None => OwnPartition end in
  Ok (match rates, owed with None, None => Levels m x n rounds | _, _ => Filled m x n rates owed rounds end).

Definition equilibrium_of (l : json) : outcome decision :=
  let* l := object_of (keys ["market"; "allocation"; "prices"]) (keys ["demand_duals"]) l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* prices := field l "prices" (numbers (type_count m)) in
  let* duals := field l "demand_duals" (some_numbers (user_count m)) in
  Ok (Equilibrium m x prices duals).

Definition embedded_of (l : json) : outcome decision :=
  let* l := object_of (keys ["program"; "point"; "value"; "bound"; "gap"; "duals"; "market"; "policy"; "shares"]) [] l
    in
  let* m := field l "market" (market_of true) in
  let* p := field l "program" program_of in
  let* point := field l "point" (list_of number) in
  let* value := field l "value" number in
  let* bound := field l "bound" number in
  let* gap := field l "gap" number in
  let* duals := field l "duals" duals_of in
  let* shares := field l "shares" (list_of (list_of natural_of)) in
  let* _ := exactly_many (user_count m) shares in
  let* _ := all_of (exactly_many (type_count m)) shares in
  let* author := field l "policy" name in
  let* _ := require (negb (existsb (is_kind author) of_markets)) NotProved
              "decisions of this policy are proved from the market, not by a program that is given" in
  Ok (Embedded p point value bound gap duals m author shares).

Fixpoint subject (d : decision) : market :=
  match d with
  | Optimality m _ _ _ _ _ | Levels m _ _ _ | Efficient m _ _ _ _ _ _ | Filled m _ _ _ _ _ | Equilibrium m _ _ _
  | Partial m _ _ _ _ | Traded m _ _ | Embedded _ _ _ _ _ _ m _ _ => m
  | Extreme of _ _ _ _ _ _ => subject of
  end.

(** Pairs of a user and a type. *)
Definition pairs_of (m : market) : json -> outcome (list (N * N)) :=
  let inside count j :=
    let* i := integer j in
    let* _ := require (i <? Z.of_nat count) NoCertificate "there is no such user or type" in Ok (Z.to_N i) in
  list_of (pair_of (inside (user_count m)) (inside (type_count m))).

(** A node has a circle, or multipliers. *)
Definition branch_of (m : market) (j : json) : outcome branch :=
  let* l := object_of (keys ["without"]) (keys ["circle"; "duals"]) j in
  let* lacks := field l "without" (pairs_of m) in
  let* circle := field l "circle" (or_null (pairs_of m)) in
  match circle with
  | Some ((_ :: _) as c) => Ok (Branch lacks c [])
  | _ => let* duals := field l "duals" duals_of in Ok (Branch lacks [] duals)
  end.

Definition efficient_of {A : Type} (made : market -> Syntax.table -> list Q -> Q -> Q -> Q -> list branch -> A) (l : json)
  : outcome A :=
  let* l := object_of (keys ["market"; "allocation"; "weights"; "value"; "bound"; "gap"; "nodes"]) [] l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* weights := field l "weights" (numbers (user_count m)) in
  let* value := field l "value" number in
  let* bound := field l "bound" number in
  let* gap := field l "gap" number in
  let* nodes := field l "nodes" (list_of (branch_of m)) in
  Ok (made m x weights value bound gap nodes).

Definition bought_of (m : market) (j : json) : outcome (Syntax.table * list Q) :=
  let* l := object_of (keys ["allocation"; "prices"]) [] j in
  let* x := field l "allocation" (table_of m) in
  let* prices := field l "prices" (numbers (type_count m)) in
  Ok (x, prices).

Definition of_partial (l : json) : outcome decision :=
  let* l := object_of (keys ["market"; "allocation"; "kept"; "together"; "apart"]) [] l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* kept := field l "kept" (numbers (user_count m)) in
  let* together := field l "together" (bought_of m) in
  let* each := field l "apart" (fun j => let* l := items j in exactly_many (user_count m) l) in
  let* apart := all_of (fun '(i, j) =>
    if Nat.eqb (user_count m) 1 then Ok ([], []) else bought_of (Meaning.market_without m i) j)
    (combine (seq 0 (user_count m)) each) in
  Ok (Partial m x kept together apart).

Definition trade_of (known kinds : list text) (j : json) : outcome trade :=
  let* l := object_of (keys ["buyer"; "seller"; "fast"; "slow"; "price"; "fast_amount"; "slow_amount"]) [] j in
  let* buyer := field l "buyer" (position known) in
  let* seller := field l "seller" (position known) in
  let* fast := field l "fast" (position kinds) in
  let* slow := field l "slow" (position kinds) in
  let* price := field l "price" number in
  let* bought := field l "fast_amount" number in
  let* paid := field l "slow_amount" number in
  Ok (Trade buyer seller fast slow price bought paid).
Definition of_trace (l : json) : outcome decision :=
  let* l := object_of (keys ["market"; "allocation"]) (keys ["trades"]) l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* trades := field l "trades" (or_null (list_of (trade_of (names_of m) (types m)))) in
  Ok (Traded m x trades).

(** The word that says what a certificate states, and the rest of it. *)
Definition opened (j : json) : outcome (text * fields) :=
  match j with
  | Obj l =>
    let* _ := require (has l "schema" && has l "certificate") NoCertificate "it has no keys schema and certificate" in
    let* _ := field l "schema" version in
    let* kind := field l "certificate" string_of in
    Ok (kind, filter (fun '(k, _) => negb (same k "schema" || same k "certificate")) l)
  | _ => unreadable "it has no keys schema and certificate"
  end.

(** A decision that is no range over optima. *)
Definition choice_of (kind : text) (l : fields) : outcome decision :=
  if is_kind kind "optimality" then optimality_of (Obj l)
  else if is_kind kind "levels" then levels_of (Obj l)
  else if is_kind kind "equilibrium" then equilibrium_of (Obj l)
  else if is_kind kind "bound" && has l "shares" then embedded_of (Obj l)
  else if is_kind kind "bound" then rejected "a bound on a bare program does not say whose shares it decides"
  else if is_kind kind "efficient" then efficient_of Efficient (Obj l)
  else if is_kind kind "partial" then of_partial (Obj l)
  else if is_kind kind "trace" then of_trace (Obj l)
  else rejected "a certificate inside of another is no decision".

Definition extreme_of (l : fields) : outcome decision :=
  let* l := object_of (keys ["of"; "sense"; "weights"; "allocation"; "value"; "duals"]) (keys ["variables"]) (Obj l) in
  let* of := field l "of" (fun j =>
    let* found := opened j in
    if is_kind (fst found) "extreme" then rejected "a range leaves no choice over which a range is certified"
    else choice_of (fst found) (snd found)) in
  let m := subject of in
  let* highest := field l "sense" (choice senses) in
  let* weights := field l "weights" (table_of m) in
  let* x := field l "allocation" (table_of m) in
  let* named := field l "variables" named_of in
  let* value := field l "value" number in
  let* duals := field l "duals" duals_of in
  Ok (Extreme of highest weights x value duals named).

Definition decision_of (j : json) : outcome decision :=
  let* found := opened j in
  if is_kind (fst found) "extreme" then extreme_of (snd found) else choice_of (fst found) (snd found).

(** ** Certificates *)
Definition properties : list (string * property) :=
  [("feasibility", Feasibility); ("sharing_incentive", SharingIncentive); ("envy_freeness", EnvyFreeness);
   ("work_conservation", WorkConservation); ("adjacent_types", AdjacentTypes); ("pareto_efficiency", ParetoEfficiency)].

Definition owed_properties : list (string * owed_property) :=
  [("guarantee_kept", GuaranteeKept); ("cap_kept", CapKept); ("whole_gpu_conservation", WholeGpus);
   ("group_fairness", GroupFairness); ("envy_within_peers", PeersEnvyFree);
   ("guarantee_incentive", GuaranteeIncentive); ("nobody_starves_while_lent", NobodyStarves)].

Definition property_of (j : json) : outcome (property + owed_property) :=
  choice (map (fun '(w, p) => (w, inl p)) properties ++ map (fun '(w, p) => (w, inr p)) owed_properties) j.

Definition answer_of (j : json) : outcome bool :=
  match j with
  | Str s => if is_kind s "HOLDS" then Ok true else if is_kind s "FAILS" then Ok false
             else rejected "the property does not get this answer"
  | _ => rejected "the property does not get this answer"
  end.

Definition of_property (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "allocation"; "property"; "answer"]) (keys ["speedups"]) l in
  let* m := field l "market" (market_of true) in
  let* x := field l "allocation" (table_of m) in
  let* p := field l "property" property_of in
  let* _ := require (absent l "speedups") NoCertificate "speedups are of no use here" in
  let* holds := field l "answer" answer_of in
  Ok (match p with inl p => Property m x p holds | inr p => OwedProperty m x p holds end).

Definition of_envy (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "allocation"; "user"; "envied"]) [] l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* i := field l "user" (user_at (names_of m)) in
  let* other := field l "envied" (user_at (names_of m)) in
  Ok (Envy m x i other).

Definition of_dominance (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "allocation"; "better"]) (keys ["optima"]) l in
  let* m := field l "market" (market_of true) in
  let* _ := require (match entitled m with None => true | _ => false end) NoCertificate
              "what users are entitled to is not supported here" in
  let* x := field l "allocation" (table_of m) in
  let* better := field l "better" (table_of m) in
  let* optima := field l "optima" (or_null (list_of decision_of)) in
  Ok (match optima with None => Dominance m x better | Some ds => DominanceOptima m x better ds end).

Definition of_pareto_weights (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "allocation"; "weights"; "prices"]) (keys ["demand_duals"]) l in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* weights := field l "weights" (numbers (user_count m)) in
  let* prices := field l "prices" (numbers (type_count m)) in
  let* duals := field l "demand_duals" (some_numbers (user_count m)) in
  Ok (ParetoWeights m x weights prices duals).

Definition of_misreport (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "policy"; "user"; "report"; "gain"; "truth"; "lie"]) [] l in
  let* m := field l "market" (market_of true) in
  let* p := field l "policy" string_of in
  let* i := field l "user" (user_at (names_of m)) in
  let* report := field l "report" (numbers (type_count m)) in
  let* gain := field l "gain" number in
  let* truth := field l "truth" decision_of in
  let* lie := field l "lie" decision_of in
  Ok (Misreport m p i report gain truth lie).

Definition nash_bounds_within (l : fields) : outcome certificate :=
  let* l := object_of (keys ["market"; "allocation"; "gap"; "lower"; "upper"; "costs"; "duals"; "owed"]) [] (Obj l) in
  let* m := field l "market" (market_of true) in
  let* x := field l "allocation" (table_of m) in
  let* costs := field l "costs" (numbers (user_count m)) in
  let* _ := require (match entitled m with Some _ => true | None => false end) NotProved "there are no entitlements" in
  let* owed := field l "owed" (owed_of m) in
  let* duals := field l "duals" duals_of in
  let* lower := field l "lower" (numbers (user_count m)) in
  let* upper := field l "upper" (numbers (user_count m)) in
  let* gap := field l "gap" amount in
  Ok (NashBoundsWithin m x gap lower upper costs owed duals).
Definition of_nash_bounds (l : fields) : outcome certificate :=
  if has l "costs" then nash_bounds_within l else
  let* l := object_of (keys ["market"; "allocation"; "gap"; "lower"; "upper"; "prices"; "demand_duals"]) [] (Obj l) in
  let* m := field l "market" (market_of false) in
  let* x := field l "allocation" (table_of m) in
  let* prices := field l "prices" (numbers (type_count m)) in
  let* duals := field l "demand_duals" (some_numbers (user_count m)) in
  let* lower := field l "lower" (numbers (user_count m)) in
  let* upper := field l "upper" (numbers (user_count m)) in
  let* gap := field l "gap" positive in
  Ok (NashBounds m x gap lower upper prices duals).

Definition of_bound (l : fields) : outcome certificate :=
  if has l "shares" then let* d := embedded_of (Obj l) in Ok (Decide d)
  else if has l "program" then
    let* l := object_of (keys ["program"; "point"; "value"; "bound"; "gap"; "duals"]) [] (Obj l) in
    let* p := field l "program" program_of in
    let* point := field l "point" (list_of number) in
    let* duals := field l "duals" duals_of in
    let* value := field l "value" number in
    let* bound := field l "bound" number in
    let* gap := field l "gap" number in
    Ok (ProgramBound p point value bound gap duals)
  else
    let* l := object_of (keys ["market"; "allocation"; "policy"; "value"; "bound"; "gap"; "duals"]) (keys ["variables"])
                (Obj l) in
    let* m := field l "market" (market_of false) in
    let* x := field l "allocation" (table_of m) in
    let* p := field l "policy" (choice policies) in
    let* named := field l "variables" named_of in
    let* duals := field l "duals" duals_of in
    let* value := field l "value" number in
    let* bound := field l "bound" number in
    let* gap := field l "gap" number in
    Ok (Bound m p x value bound gap duals named).

Definition of_infeasibility (l : fields) : outcome certificate :=
  if has l "program" then
    let* l := object_of (keys ["program"; "duals"]) [] (Obj l) in
    let* p := field l "program" program_of in
    let* duals := field l "duals" duals_of in
    Ok (ProgramInfeasible p duals)
  else
    let* l := object_of (keys ["market"; "at_least"; "duals"]) [] (Obj l) in
    let* m := field l "market" (market_of false) in
    let* least := field l "at_least" (list_of (pair_of (user_at (names_of m)) number)) in
    let* _ := require (no_key_twice (map (fun '(i, _) => [Z.of_N i]) least)) NoCertificate "a name stands twice" in
    let* duals := field l "duals" duals_of in
    Ok (Infeasible m least duals).

(** *** Trade-offs *)
Definition goals : list (string * option goal) :=
  [("total_efficiency", Some TotalEfficiency); ("least_gain", Some LeastGain); ("nash_welfare", None)].
Definition relaxations : list (string * relaxed) :=
  [("envy_freeness", EnvyBy); ("sharing_incentive", SharingBy); ("equal_throughput", EqualBy);
   ("pareto_efficiency", EfficiencyBy)].

Definition point_at (m : market) (j : json) : outcome tradeoff_point :=
  let* l := object_of (keys ["epsilon"; "value"; "allocation"]) (keys ["variables"]) j in
  let* epsilon := field l "epsilon" amount in
  let* value := field l "value" number in
  let* x := field l "allocation" (table_of m) in
  let* named := field l "variables" named_of in
  Ok (Reached epsilon value x named).
Definition line_over (j : json) : outcome tradeoff_line :=
  let* l := object_of (keys ["constant"; "slope"; "duals"]) (keys ["factors"]) j in
  let* constant := field l "constant" number in
  let* slope := field l "slope" number in
  let* duals := field l "duals" duals_of in
  Ok (Above constant slope duals).

Definition of_frontier (l : json) : outcome certificate :=
  let* l := object_of (keys ["market"; "goal"; "property"; "points"; "lines"; "gap"])
              (keys ["weights"; "prices"; "demand_duals"]) l in
  let* goal := field l "goal" (choice goals) in
  let* p := field l "property" (choice relaxations) in
  let* m := field l "market" (market_of false) in
  match goal with
  | None => not_covered "the largest Nash welfare where a property may fail"
  | Some goal =>
    let* points := field l "points" (list_of (point_at m)) in
    let* lines := field l "lines" (list_of line_over) in
    let* gap := field l "gap" number in
    let* weights := field l "weights" (some_numbers (user_count m)) in
    match weights with
    | None => Ok (Frontier m goal p points lines gap None)
    | Some weights =>
      let* prices := field l "prices" (numbers (type_count m)) in
      let* duals := field l "demand_duals" (some_numbers (user_count m)) in
      Ok (Frontier m goal p points lines gap (Some (weights, (prices, duals))))
    end
  end.

Definition certificate_of (j : json) : outcome certificate :=
  let* found := opened j in
  let '(kind, l) := found in
  if is_kind kind "property" then of_property (Obj l)
  else if is_kind kind "envy" then of_envy (Obj l)
  else if is_kind kind "dominance" then of_dominance (Obj l)
  else if is_kind kind "pareto_weights" then of_pareto_weights (Obj l)
  else if is_kind kind "misreport" then of_misreport (Obj l)
  else if is_kind kind "nash_bounds" then of_nash_bounds l
  else if is_kind kind "gangs" then of_gangs l
  else if is_kind kind "efficient" then efficient_of EfficientUpTo (Obj l)
  else if is_kind kind "frontier" then of_frontier (Obj l)
  else if is_kind kind "bound" then of_bound l
  else if is_kind kind "infeasibility" then of_infeasibility l
  else if is_kind kind "extreme" then let* d := extreme_of l in Ok (Decide d)
  else if existsb (is_kind kind) ["optimality"; "levels"; "equilibrium"; "partial"; "trace"]
    then let* d := choice_of kind l in Ok (Decide d)
  else unreadable "it is a certificate of no kind that there is".
