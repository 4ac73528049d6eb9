(** * What is printed of a statement: the same words as [proofs/verifier] prints *)

From Coq Require Import ZArith NArith QArith List String Bool.
From Verified Require Lies Decisions.
From Verified Require Import Syntax Json Numbers Sha256 Rounds Print PrintPlan ReadMarkets Reader.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** ** Markets and programs: in full where they are small, and by their digest *)
Definition json_limits (row : list (option Q)) : text := json_list (map json_or_null row).
Definition json_place (i : nat) : text := natural (Z.of_nat i).
Definition gang_digested (g : gang) : text :=
  let gpus := Qred (gang_gpus g) in
  json_list [json_place (waiting g); if (Zpos (Qden gpus) =? 1)%Z then decimal (Qnum gpus) else json_number gpus;
             json_list (map json_place (allowed g));
             json_list (map (fun '(r, q) => json_list [json_string r; json_number q]) (takes g))].
Definition node_names (m : market) (e : entitlements) : list text := map name (users m) ++ groups e.
Definition entitlements_digested (m : market) (e : entitlements) : text :=
  json_list
    [json_list (map json_string (node_names m e));
     json_list (map (fun g => match g with Some g => json_place g | None => codes "null" end) (around e));
     json_list (map (fun '(r, f) => json_list [json_string r; json_string f]) (goods e));
     json_row (stock e); json_row (borrow_weight e); json_list (map decimal (tier e));
     json_list (map json_limits (guarantees e)); json_list (map json_limits (caps e));
     json_list (map json_row (in_hand e)); json_list (map json_row (pinned e));
     json_list (map gang_digested (pending e))].
Definition entitlements_shown (m : market) (e : entitlements) : text :=
  codes "entitlements of " ++ plural (size (node_names m e)) "users and groups" ++ codes ", "
    ++ plural (size (pending e)) "gangs wait" ++ codes "; ".

Definition market_digest (m : market) : text :=
  digest (json_list (
    [json_string (codes "market");
     json_list (map json_string (types m));
     json_row (capacity m);
     json_list (map (fun u => json_list [json_string (name u); json_row (speedup u); json_number (weight u);
                                         json_or_null (demand u)]) (users m))]
    ++ match entitled m with Some e => [entitlements_digested m e] | None => [] end)).

Definition user_shown (u : user) : text :=
  quoted (name u) ++ codes " " ++ row_shown (speedup u)
    ++ (if Qeq_bool (weight u) 1 then [] else codes " weight " ++ shown (weight u))
    ++ match demand u with None => [] | Some d => codes " demand " ++ shown d end.

Definition market_shown (m : market) : text :=
  codes "market " ++ market_digest m ++ codes ": " ++
  match entitled m with Some e => entitlements_shown m e | None => [] end ++
  (if most_shown <? size (users m) * size (types m)
   then plural (size (users m)) "users" ++ codes ", " ++ plural (size (types m)) "types"
   else commas (map (fun '(there, t) => shown there ++ codes " " ++ quoted t) (combine (capacity m) (types m)))
        ++ codes " for " ++ commas (map user_shown (users m))).

Definition signed (p : program) (q : Q) : Q := if maximize p then q else Qopp q.

Definition program_digest (p : program) : text :=
  let variable v :=
    json_list [json_number (signed p (cost v)); json_or_null (lower v); json_or_null (upper v); json_bool (integer v)]
      in
  let term '(at_, rate) := json_list [natural (Z.of_N at_); json_number rate] in
  let row r := json_list [json_list (map term (terms r)); json_or_null (least r); json_or_null (most r)] in
  digest (json_list
    (json_list [json_string (codes "program"); if maximize p then codes "1" else codes "-1"; json_number (signed p
      (offset p))]
     :: map variable (variables p) ++ map row (rows p))).

Definition program_shown (p : program) : text :=
  codes "program " ++ program_digest p ++ codes ": " ++ plural (size (variables p)) "variables"
    ++ (if existsb integer (variables p) then codes " with integers" else [])
    ++ codes ", " ++ plural (size (rows p)) "rows".

(** A round by its digest: jobs by what they may do, type -1 for waiting. *)
Definition round_shown (r : round) : text :=
  let option_ '((t, c) : option N * Q) :=
    json_list [match t with Some j => natural (Z.of_N j) | None => codes "-1" end; json_number c] in
  codes "round " ++ digest (json_list
    [json_string (codes "round"); json_list (map natural (sizes r));
     json_list (map (fun row => json_list (map option_ ((None, 0%Q) :: options_from row 0))) (job_costs r));
     json_list (map natural (gpus r)); natural (least_used r)])
    ++ codes ": " ++ plural (size (sizes r)) "jobs" ++ codes ", " ++ plural (size (gpus r)) "types"
    ++ codes ", at least " ++ natural (least_used r) ++ codes " GPUs in use".

(** ** Names of users, policies, properties *)
Definition user_named (m : market) (i : N) : text :=
  match nth_error (users m) (N.to_nat i) with Some u => quoted (name u) | None => codes "nobody" end.

Definition word_in {A : Type} (is : A -> bool) (known : list (string * A)) : text :=
  match find (fun '(_, a) => is a) known with Some (w, _) => codes w | None => [] end.

Definition policy_word (p : policy) : text :=
  codes (match p with MaxEfficiency => "max-efficiency" | OefNoncooperative => "oef-noncooperative"
                    | OefCooperative => "oef-cooperative" | MaxMin => "max-min" end).

Definition policy_shown (p : policy) (m : market) : text :=
  policy_word p ++
  match p with
  | OefCooperative =>
    if existsb (fun u => match demand u with Some _ => true | None => false end) (users m)
    then codes " (read so that envy counts all GPUs of the other, even beyond the own demand)" else []
  | _ => []
  end.

Definition filling_word (n : normaliser) : text :=
  codes (match n with OwnPartition => "water-filling" | EqualTime => "water-filling, equal-time"
                    | Isolated => "water-filling, isolated" end).

Definition ratios_to (n : normaliser) : text :=
  codes "ratios to " ++ codes (match n with OwnPartition => "own partitions" | EqualTime => "equal-time throughputs"
                                          | Isolated => "isolated throughputs" end).

Definition rule_shown (r : rule) (m : market) : text :=
  match r with
  | OfProgram p => policy_shown p m
  | WaterFilling n => filling_word n
  | NashWelfare => codes "nash-welfare"
  | OefEfficient | PartialAllocation | SplitEqually _ => Lies.rule_word r
  | OfAuthor author => quoted author
  end.

Definition property_word (p : property) : text :=
  codes (match p with
         | Feasibility => "feasibility" | SharingIncentive => "sharing_incentive" | EnvyFreeness => "envy_freeness"
         | WorkConservation => "work_conservation" | AdjacentTypes => "adjacent_types"
         | ParetoEfficiency => "pareto_efficiency" end).

Definition property_meaning (p : property) (m : market) : text :=
  match p with
  | Feasibility => codes "no share is negative, no type is given out more often than it is there"
  | SharingIncentive => codes "everybody gets at least what its weight's part of every type is worth to it"
  | EnvyFreeness => codes "nobody would get more out of another's shares, scaled by the two weights"
  | WorkConservation => codes "no GPU is idle that somebody who wants more could run on"
  | AdjacentTypes =>
    codes "nobody holds two types, and none of a type between them, in the order "
      ++ commas (map (fun '(_, t) => quoted t)
                   (filter (fun '(there, _) => negb (Qeq_bool there 0)) (combine (capacity m) (types m))))
      ++ codes " (types without GPUs do not count)"
  | ParetoEfficiency => codes "no feasible allocation gives nobody less and somebody more"
  end.

Definition owed_word (p : owed_property) : text :=
  codes (match p with
         | GuaranteeKept => "guarantee_kept" | CapKept => "cap_kept" | WholeGpus => "whole_gpu_conservation"
         | GroupFairness => "group_fairness" | PeersEnvyFree => "envy_within_peers"
         | GuaranteeIncentive => "guarantee_incentive" | NobodyStarves => "nobody_starves_while_lent" end).
Definition owed_meaning (p : owed_property) : text :=
  match p with
  | GuaranteeKept =>
    codes "each user and group holds its guarantee (at most all that there is), or all that it could use if"
      ++ codes " that is less"
  | CapKept => codes "no user and no group holds more than its cap"
  | WholeGpus => codes "no gang waits that fits free whole GPUs, free goods and the caps above it"
  | GroupFairness => codes
    "no GPU can move to a sibling of its tier that borrows less, by weight, than the giver then does"
  | PeersEnvyFree =>
    codes "nobody would get more with what another of its group and tier holds beyond its guarantee, scaled by"
      ++ codes " weights and within the own caps, in the place of what it holds so itself"
  | GuaranteeIncentive =>
    codes "everybody gets at least what its guarantee (at most all that there is) is worth to it, for what it"
      ++ codes " asks for"
  | NobodyStarves =>
    codes "no user could run more whole gangs (or any part, where nobody says what is asked for) within its"
      ++ codes " guarantee and the caps above it on what is idle and what others, and each group around that but not"
      ++ codes " around the user, hold beyond their guarantees and can be taken back"
  end.

Definition impossible (possible : bool) : text := if possible then [] else codes ", which gives out what is not there".

(** A weighted sum of shares: in full where it is short. *)
Definition shares_shown (weights : table) (m : market) : text :=
  let terms := flat_map (fun '(u, row) =>
    flat_map (fun '(w, t) =>
      if Qeq_bool w 0 then []
      else [shown w ++ codes " x[" ++ quoted (name u) ++ codes ", " ++ quoted t ++ codes "]"])
      (combine row (types m))) (combine (users m) weights) in
  if size terms <=? most_shown then match terms with [] => codes "0" | _ => join (codes " + ") terms end
  else codes "the sum of shares weighted by the table " ++ digest_of weights.

(** ** Statements *)
Definition about (said : text) (notes : list text) : text := said ++ codes " [" ++ join (codes "; ") notes ++ codes "]".
Definition allocation_shown (x : table) : text := codes "allocation " ++ table_shown x.

Definition bounded (what : text) (value bound : Q) : text :=
  codes "a feasible point of " ++ what ++ codes " has objective " ++ shown value ++ codes ", none is beyond "
    ++ shown bound ++ (if Qeq_bool value bound then codes ": optimal" else []).

Definition not_decided : text := codes "whether it is the policy's program is not decided here".

Definition always_or_not (always : bool) : text :=
  codes (if always then "whatever optima are chosen"
         else "by the two decisions given; where optima tie, the policy may choose others").

Definition rewards (named : text) (m : market) (who : N) (report : list Q) (gain : Q) (how : text) : text :=
  named ++ codes " rewards " ++ user_named m who ++ codes " for reporting " ++ row_shown report ++ codes ": "
    ++ shown gain ++ codes " more, " ++ how.

Definition extreme_shown (named : text) (m : market) (highest : bool) (weights : table) (value : Q) : text :=
  codes "over all optima of " ++ named ++ codes ", the " ++ codes (if highest then "maximum" else "minimum") ++ codes
    " of "
    ++ shares_shown weights m ++ codes " is " ++ shown value.

Definition better (what : text) (m : market) (who : N) (gain : Q) : text :=
  what ++ codes " is not Pareto-efficient: " ++ user_named m who ++ codes " could get " ++ shown gain ++ codes " more".

Definition told_shown (d : telling) : text :=
  match d with
  | FilledTold n rates _ =>
    ratios_to n ++ codes match rates with Some _ => " rise as far as they can, as " | None => " are lexicographically max-min, as " end
      ++ Decisions.told_word d ++ codes " makes them"
  end.
Definition owed_shown (m : market) (o : owed_told) : text :=
  let lent := table_shown [Meaning.lent_of m o] in
  codes "floors of groups, and GPUs that are lent, are as told: "
    ++ match floors_told o with [] => lent | floors => table_shown floors ++ codes " and " ++ lent end.
Definition told_notes (m : market) (d : telling) : list text :=
  match d with
  | FilledTold _ rates owed =>
    match owed with Some o => [owed_shown m o] | None => [] end
      ++ match rates with Some rates => [codes "the rates are, in each round, " ++ table_shown rates] | None => [] end
  end.

Definition goal_word (g : goal) : text :=
  codes match g with TotalEfficiency => "total_efficiency" | LeastGain => "least_gain" end.
Definition relaxed_word (p : relaxed) : text :=
  codes match p with
        | EnvyBy => "envy_freeness" | SharingBy => "sharing_incentive" | EqualBy => "equal_throughput"
        | EfficiencyBy => "pareto_efficiency"
        end.
Definition relaxed_unit (p : relaxed) : text :=
  codes match p with
        | EnvyBy => "the equal share of who envies; all GPUs of the other count"
        | SharingBy => "the user's equal share"
        | EqualBy => "the mean throughput per weight of equal shares"
        | EfficiencyBy => "the sum of gains over equal shares"
        end.
Definition points_shown (points : list (Q * Q)) : text :=
  let rows := map (fun '(e, v) => [e; v]) points in
  if size points <=? most_shown then commas (map row_shown rows) else codes "points " ++ digest_of rows.

Definition print (s : statement) : text :=
  match s with
  | IsBound p value bound => about (bounded (codes "the program") value bound) [program_shown p]
  | NoPoint p => about (codes "no point satisfies the program") [program_shown p]
  | IsOptimal m p x value =>
    about (codes "the allocation is optimal for " ++ policy_shown p m ++ codes ", objective " ++ shown value)
      [market_shown m; allocation_shown x]
  | IsBounded m p x value bound => about (bounded (policy_shown p m) value bound) [market_shown m; allocation_shown x]
  | NoAllocation m at_least =>
    about (codes "no feasible allocation gives "
             ++ join (codes " and ") (map (fun '(i, q) => user_named m i ++ codes " " ++ shown q) at_least))
      [market_shown m]
  | HasProperty m x p holds possible =>
    about (property_word p ++ codes (if holds then " holds" else " fails") ++ codes " for the allocation"
             ++ match p with Feasibility => [] | _ => impossible possible end)
      [codes "it means: " ++ property_meaning p m; market_shown m; allocation_shown x]
  | HasOwed m x p holds possible goods_told =>
    about (owed_word p ++ codes (if holds then " holds" else " fails") ++ codes " for the allocation"
             ++ impossible possible)
      [codes "it means: " ++ owed_meaning p
         ++ (if goods_told then [] else codes "; of GPUs only, since who would hold the further goods is not told");
       market_shown m; allocation_shown x]
  | Envies m x envious envied own theirs possible =>
    about (user_named m envious ++ codes " gets " ++ shown own ++ codes ", and would get " ++ shown theirs
             ++ codes " out of the shares of " ++ user_named m envied ++ impossible possible)
      [codes "shares are scaled by the two weights"; market_shown m; allocation_shown x]
  | Dominated m x who gain =>
    about (better (codes "the allocation") m who gain) [market_shown m; allocation_shown x]
  | OptimaDominated m r who gain =>
    about (better (codes "any optimum of " ++ rule_shown r m) m who gain) [market_shown m]
  | ParetoEfficient m x => about (codes "the allocation is Pareto-efficient") [market_shown m; allocation_shown x]
  | Rewards m r who report gain always =>
    let how := match r with SplitEqually _ => codes "and the policy leaves no choice" | _ => always_or_not always end in
    about (rewards (rule_shown r m) m who report gain how) [market_shown m]
  | LevelsAre m x n =>
    about (ratios_to n ++ codes " are lexicographically max-min, as " ++ filling_word n ++ codes " makes them")
      [market_shown m; allocation_shown x]
  | AsTold m x d => about (told_shown d) (told_notes m d ++ [market_shown m; allocation_shown x])
  | MaximisesNash m x => about (codes "the allocation maximises Nash welfare") [market_shown m; allocation_shown x]
  | NashWithin m x gap lowest highest owed =>
    about (codes "wherever Nash welfare is largest, the throughputs of the users are at least " ++ row_shown lowest
             ++ codes " and at most " ++ row_shown highest
             ++ codes "; the sum of weight * log throughput of this allocation is "
             ++ codes match owed with Some _ => "at most " | None => "less than " end ++ shown gap
             ++ codes " below the largest")
      (match owed with Some o => [codes "within entitlements; " ++ owed_shown m o] | None => [] end
         ++ [market_shown m; allocation_shown x])
  | SplitLeft m x after_trades =>
    about (codes "the allocation is that of " ++ Lies.rule_word (SplitEqually after_trades)) [market_shown m; allocation_shown x]
  | PartsLeft m x =>
    about (codes "the allocation is one that partial-allocation may leave, up to 1/10**12 of each bundle")
      [market_shown m; allocation_shown x]
  | BestEfficient m x value bound =>
    about (codes "the allocation is envy-free, gives everybody its equal share's worth and is Pareto-efficient, "
             ++ codes "with the total " ++ shown value ++ codes "; none with these three properties has more"
             ++ (if Qeq_bool value bound then [] else codes " than " ++ shown bound))
      [market_shown m; allocation_shown x]
  | FrontierIs m g p points gap efficient =>
    about (codes "the largest " ++ goal_word g
             ++ (if efficient then codes " of Pareto-efficient allocations" else []) ++ codes " where " ++ relaxed_word p
             ++ codes " fails by epsilon at most is, from epsilon " ++ shown (Meaning.first_point points)
             ++ codes " on, that of the lines through " ++ points_shown points ++ codes ", and level then"
             ++ (if Qeq_bool gap 0 then [] else codes ", or up to " ++ shown gap ++ codes " more"))
      [codes "points are (epsilon, value); an epsilon of 1 is " ++ relaxed_unit p
         ++ codes "; nobody holds what it cannot use or does not demand"
         ++ match g with
            | TotalEfficiency => []
            | LeastGain => codes "; gains are over equal shares, and nash_welfare is their geometric mean by weight"
            end;
       market_shown m]
  | RoundCosts r value bound =>
    about (codes "an assignment of jobs to types costs " ++ shown value ++ codes ", none costs less than " ++ shown
      bound
             ++ (if Qeq_bool value bound then codes ": optimal" else []))
      [round_shown r]
  | AsToldReward before after m who report gain =>
    about (codes "by what each of the two decisions tells, "
             ++ rewards (Decisions.told_word before) m who report gain (always_or_not false))
      [codes "rates, floors of groups and lent GPUs are as told; whether the policy's is not decided here";
       codes "on the truth " ++ join (codes "; ") (told_notes m before);
       codes "on the misreport " ++ join (codes "; ") (told_notes m after); market_shown m]
  | PlanKept p => about (plan_shown p) [batch_shown (of_batch p)]
  | ExtremeIs m r highest weights value =>
    about (extreme_shown (rule_shown r m) m highest weights value) [market_shown m]
  | AuthorsOptimum p m author x value =>
    about (codes "the embedded program, which the author of " ++ quoted author
             ++ codes " wrote, has this optimum: objective " ++ shown value)
      [not_decided; program_shown p; market_shown m; allocation_shown x]
  | AuthorsReward before after m author who report gain always =>
    about (codes "by the two embedded programs, which the author of " ++ quoted author ++ codes " wrote, "
             ++ rewards (quoted author) m who report gain (always_or_not always))
      [not_decided; codes "on the truth " ++ program_shown before ++ codes "; on the misreport " ++ program_shown after;
       market_shown m]
  | AuthorsExtreme p m author highest weights value =>
    about (extreme_shown (quoted author) m highest weights value) [not_decided; program_shown p; market_shown m]
  end.
