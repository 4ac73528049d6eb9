(** * What a certificate holds, and what a checker answers

    Data only.  Numbers are fractions of whole numbers ([Q]); they need not be in lowest terms.  Positions of users,
    GPU types, variables and rows are counted from 0.  Whatever a file names by a word (a user) stands here as a
    position, except for the names that a statement prints.  Nothing here is known to fit together: that lists have
    the same length, that weights are positive and so on is for the checker to find out. *)

From Coq Require Import List QArith.
Import ListNotations.

(** Words and names: the numbers of their characters in Unicode. *)
Definition text := list Z.

(** ** Markets *)

(** A user: its throughput on one GPU of each type, its weight, and the most GPUs that it can use at once ([None]: any
    number). *)
Record user := User { name : text; speedup : list Q; weight : Q; demand : option Q }.

(** A row for each user, a column for each type. *)
Definition table := list (list Q).

(** ** Entitlements: what users and groups are guaranteed, may take, hold and wait for

    Nodes are the users, then the groups; columns are the types, then further goods, each of a resource and a flavor. *)

(** GPUs that a user waits for, all of one of the types; what else the gang takes, by resource. *)
Record gang := Gang { waiting : nat; gang_gpus : Q; allowed : list nat; takes : list (text * Q) }.
(** By node: the group that it is in, guarantee and cap by column ([None]: no bound), weight, tier.  By user and column:
    what it holds, and what of that cannot be taken back. *)
Record entitlements := Entitlements {
  groups : list text; around : list (option nat); goods : list (text * text); stock : list Q;
  guarantees : list (list (option Q)); caps : list (list (option Q)); borrow_weight : list Q; tier : list Z;
  in_hand : table; pinned : table; pending : list gang }.

(** GPU types, how many GPUs there are of each, users, and entitlements where they are told.  There are no bounds of
    speedups. *)
Record market :=
  Market { types : list text; capacity : list Q; users : list user; entitled : option entitlements }.

(** ** Programs *)

(** [None] is no bound. *)
Record variable := Column { cost : Q; lower : option Q; upper : option Q; integer : bool }.
(** The constraint lower <= sum of rates times variables <= upper. *)
Record row := Row { terms : list (N * Q); least : option Q; most : option Q }.
Record program := Program { maximize : bool; offset : Q; variables : list variable; rows : list row }.

(** A multiplier of the row that a word and positions name: ["capacity"; 0], ["envy_free"; 0; 1], ["row"; 4]. *)
Record dual := Dual { of_row : text; at_row : list N; rate : Q }.

(** ** Gangs of GPUs *)

(** Jobs: how many GPUs the gang of each has, all of one type, and what it costs on each type; [None]: it may not run
    there.  GPUs of each type, and how many at least have to be in use. *)
Record round := Round { sizes : list Z; job_costs : list (list (option Q)); gpus : list Z; least_used : Z }.
(** Prices of types, a reward for each GPU in use, and what a gang of a size pays on a type besides. *)
Record tolled := Tolled { type_prices : list Q; reward : Q; tolls : list (Z * N * Q) }.
(** At most so many gangs of a size run on a type, or more of them; or no such assignment costs less. *)
Inductive case := Split (size : Z) (at_type : N) (at_most : Z) | Bounded (paid : tolled).

(** ** Schedules of a batch of jobs, which have workers and parameter servers (PS) *)

Inductive part := Workers | Ps.
(** A tenant with what it owns, or a server with what it holds: so many devices of each type. *)
Record holder := Holder { holder_name : text; has_workers : list Z; has_ps : list Z }.
(** How much a job's completion is worth, by its time; a step lasts a slot. *)
Inductive utility :=
  LinearUtility (slope height : Q) | PowerUtility (scale : Q) (exponent : N) | StepUtility (steps : list Q).
(** [work]: mini-batches.  Times of a mini-batch on one worker, and of an update, by type. *)
Record job := Job {
  job_name : text; tenant : nat; arrival : Z; chunks : Z; work : Z; minibatch_time : list Q; update_time : list Q;
  gradient : Q; utility_of : utility }.
(** Types by name and bandwidth. *)
Record batch := Batch {
  worker_types : list (text * Q); ps_types : list (text * Q); tenants : list holder; servers : list holder;
  jobs : list job }.
(** Devices of a type: on which server how many. *)
Record placed := Placed { of_type : nat; spots : list (nat * Z) }.
Record schedule := Schedule {
  of_job : nat; from_slot : Z; to_slot : Z; workers : placed; ps : placed; one_server : bool }.
(** A job is offered a schedule, or none, in its tenant's own share or in what all have, and is admitted or not. *)
Record offer := Offer {
  offered : nat; own_share : bool; at_place : option schedule; worker_cost : Q; ps_cost : Q; utility_told : Q; origin : Z;
  admitted : bool }.
Record plan := Plan { planned_by : text; of_batch : batch; schedules : list schedule; offers : list offer }.

(** Beside entitlements: floors of groups by type, and GPUs of each type that are lent ([None]: all). *)
Record owed_told := OwedTold { floors_told : table; lent_told : option (list Q) }.

(** ** Trades between users: GPUs of a fast type for slow ones, at a price in these; positions of users and types *)
Record trade := Trade {
  buyer : nat; seller : nat; fast_type : nat; slow_type : nat; trade_price : Q; fast_amount : Q; slow_amount : Q }.

(** ** Words *)

Inductive policy := MaxEfficiency | OefNoncooperative | OefCooperative | MaxMin.
Inductive property :=
  Feasibility | SharingIncentive | EnvyFreeness | WorkConservation | AdjacentTypes | ParetoEfficiency.
Inductive owed_property :=
  GuaranteeKept | CapKept | WholeGpus | GroupFairness | PeersEnvyFree | GuaranteeIncentive | NobodyStarves.
(** What is wanted to be large, and what may fail by epsilon. *)
Inductive goal := TotalEfficiency | LeastGain.
Inductive relaxed := EnvyBy | SharingBy | EqualBy | EfficiencyBy.
Inductive normaliser := OwnPartition | EqualTime | Isolated.

(** ** Certificates *)

(** A round of water filling: the level, who is fixed there, multipliers. *)
Record filling := Filling { level : Q; fixed : list N; held_by : list dual }.

(** A point of a trade-off, which an allocation reaches; and a line over epsilon that nothing is above. *)
Record tradeoff_point := Reached { epsilon : Q; reaches_value : Q; reached_by : table; named_values : list (text * Q) }.
Record tradeoff_line := Above { constant : Q; slope : Q; line_duals : list dual }.

(** A node of a tree: nobody holds a type that a pair of a user and a type names; a circle of such pairs, or multipliers. *)
Record branch := Branch { lacks : list (N * N); circle : list (N * N); bounded_by : list dual }.

(** What a policy decides.  [named] are values of a program's variables that are no shares, by name. *)
Inductive decision :=
| Optimality (m : market) (p : policy) (x : table) (value : Q) (duals : list dual) (named : list (text * Q))
| Levels (m : market) (x : table) (n : normaliser) (rounds : list filling)
(** By what is told: ratios rise alike or, in each round, as fast as it is told for each user. *)
| Filled (m : market) (x : table) (n : normaliser) (rates : option table) (owed : option owed_told)
    (rounds : list filling)
| Equilibrium (m : market) (x : table) (prices : list Q) (demand_duals : option (list Q))
(** What each keeps of its bundle in [together]; bundles and prices of all, and of all but each (nothing is asked of a
    user alone). *)
| Partial (m : market) (x : table) (kept : list Q) (together : table * list Q) (apart : list (table * list Q))
(** An equal split; and what second-price trading makes of it, by these trades. *)
| Traded (m : market) (x : table) (trades : option (list trade))
(** The largest total among envy-free, efficient allocations with fair shares; a tree bounds it. *)
| Efficient (m : market) (x : table) (lambda : list Q) (value bound gap : Q) (nodes : list branch)
(** Over all optima of a decision, the largest ([highest]) or smallest sum of shares times weights. *)
| Extreme (of : decision) (highest : bool) (weights : table) (x : table) (value : Q) (duals : list dual)
    (named : list (text * Q))
(** The program of a policy's author; [shares] says which variable is whose share. *)
| Embedded (p : program) (point : list Q) (value bound gap : Q) (duals : list dual) (m : market) (policy_name : text)
    (shares : list (list N)).

Inductive certificate :=
| ProgramBound (p : program) (point : list Q) (value bound gap : Q) (duals : list dual)
| ProgramInfeasible (p : program) (duals : list dual)
| Bound (m : market) (p : policy) (x : table) (value bound gap : Q) (duals : list dual) (named : list (text * Q))
| Infeasible (m : market) (at_least : list (N * Q)) (duals : list dual)
| Property (m : market) (x : table) (p : property) (holds : bool)
| OwedProperty (m : market) (x : table) (p : owed_property) (holds : bool)
| Envy (m : market) (x : table) (envious envied : N)
| Dominance (m : market) (x better : table)
(** The same of every optimum: each user's most at any of them. *)
| DominanceOptima (m : market) (x better : table) (optima : list decision)
| ParetoWeights (m : market) (x : table) (lambda prices : list Q) (demand_duals : option (list Q))
| Misreport (m : market) (policy_name : text) (who : N) (report : list Q) (gain : Q) (truth lie : decision)
| NashBounds (m : market) (x : table) (gap : Q) (lowest highest prices : list Q) (demand_duals : option (list Q))
(** Within entitlements: what a unit of throughput costs each, and multipliers. *)
| NashBoundsWithin (m : market) (x : table) (gap : Q) (lowest highest costs : list Q) (owed : owed_told) (duals : list dual)
| Gangs (r : round) (types : list (option N)) (value bound gap : Q) (grain : option Q) (root : tolled)
    (cases : option (list case))
(** The same, where value and bound need not meet. *)
| EfficientUpTo (m : market) (x : table) (lambda : list Q) (value bound gap : Q) (nodes : list branch)
(** [efficient]: weights, prices and demand duals that prove each point efficient. *)
| Frontier (m : market) (g : goal) (p : relaxed) (points : list tradeoff_point) (lines : list tradeoff_line) (gap : Q)
    (efficient : option (list Q * (list Q * option (list Q))))
| Decide (d : decision).

(** ** Answers *)

(** A policy as a statement names it. *)
Inductive rule :=
| OfProgram (p : policy) | WaterFilling (n : normaliser) | NashWelfare | OefEfficient | PartialAllocation
| SplitEqually (after_trades : bool) | OfAuthor (policy_name : text).

(** What somebody tells of a decision, beside the market: rates of water filling, and what entitlements make of groups. *)
Inductive telling := FilledTold (n : normaliser) (rates : option table) (owed : option owed_told).

(** What is proved.  [possible]: whether the allocation is feasible. *)
Inductive statement :=
| IsBound (p : program) (value bound : Q)
| NoPoint (p : program)
| IsOptimal (m : market) (p : policy) (x : table) (value : Q)
| IsBounded (m : market) (p : policy) (x : table) (value bound : Q)
| NoAllocation (m : market) (at_least : list (N * Q))
| HasProperty (m : market) (x : table) (p : property) (holds possible : bool)
(** [goods_told]: whether the shares say who has the further goods, or there are none. *)
| HasOwed (m : market) (x : table) (p : owed_property) (holds possible goods_told : bool)
| Envies (m : market) (x : table) (envious envied : N) (own theirs : Q) (possible : bool)
| Dominated (m : market) (x : table) (who : N) (gain : Q)
| OptimaDominated (m : market) (r : rule) (who : N) (gain : Q)
| ParetoEfficient (m : market) (x : table)
(** [always]: whatever optima are chosen; else by the two decisions that the certificate gives. *)
| Rewards (m : market) (r : rule) (who : N) (report : list Q) (gain : Q) (always : bool)
| LevelsAre (m : market) (x : table) (n : normaliser)
| AsTold (m : market) (x : table) (d : telling)
| MaximisesNash (m : market) (x : table)
| NashWithin (m : market) (x : table) (gap : Q) (lowest highest : list Q) (owed : option owed_told)
| PartsLeft (m : market) (x : table)
| SplitLeft (m : market) (x : table) (after_trades : bool)
| BestEfficient (m : market) (x : table) (value bound : Q)
(** Points are of epsilon and value. *)
| FrontierIs (m : market) (g : goal) (p : relaxed) (points : list (Q * Q)) (gap : Q) (efficient : bool)
| RoundCosts (r : round) (value bound : Q)
| ExtremeIs (m : market) (r : rule) (highest : bool) (weights : table) (value : Q)
| AuthorsOptimum (p : program) (m : market) (policy_name : text) (x : table) (value : Q)
(** The same on the truth and on the misreport, by two programs of the policy's author. *)
| AuthorsReward (before after : program) (m : market) (policy_name : text) (who : N) (report : list Q) (gain : Q)
    (always : bool)
(** The same on the truth and on the misreport, by what each of the two tells. *)
| AsToldReward (before after : telling) (m : market) (who : N) (report : list Q) (gain : Q)
| PlanKept (p : plan)
(** Over all optima of a program of the policy's author. *)
| AuthorsExtreme (p : program) (m : market) (policy_name : text) (highest : bool) (weights : table) (value : Q).

(** [NotCovered]: the certificate may be right, but is of a kind that is not decided here. *)
Inductive result := Accepted (s : statement) | Rejected (why : text) | NotCovered (what : text).
