(** * What users and groups are owed, and what their shares mean to them

    The words of [Meaning] for entitlements: what "guaranteed", "lent" and "could use" mean is told here.  There is no
    paper of it: Kueue, KAI and Volcano have these quotas, and the properties are fairopt's own. *)

From Coq Require Import List QArith Qminmax Qround.
From Verified Require Import Syntax.
Import ListNotations.
Local Open Scope Q_scope.

Definition sum (l : list Q) : Q := fold_right Qplus 0 l.
(** a_0 b_0 + a_1 b_1 + ... *)
Fixpoint dot (a b : list Q) : Q :=
  match a, b with x :: a, y :: b => x * y + dot a b | _, _ => 0 end.

(** ** Numbers that may have no bound, [None] *)
Definition lesser (a b : option Q) : option Q :=
  match a, b with Some p, Some q => Some (Qmin p q) | None, b => b | a, None => a end.
Definition together (l : list (option Q)) : option Q :=
  fold_right (fun a b => match a, b with Some p, Some q => Some (p + q) | _, _ => None end) (Some 0) l.
Definition at_least_0 (a : option Q) : option Q := option_map (Qmax 0) a.
(** [q] is no more than [a]. *)
Definition up_to (q : Q) (a : option Q) : Prop := match a with Some most => q <= most | None => True end.
Definition some_more (a : option Q) : Prop := match a with Some q => 0 < q | None => True end.

(** Both are in the same group, or in none. *)
Definition same_group (g h : option nat) : bool :=
  match g, h with Some g, Some h => Nat.eqb g h | None, None => true | _, _ => false end.

(** ** What can be served: GPUs of each type go to who waits for some of certain types *)

(** Waiting for so many GPUs of any of these types. *)
Definition asked : Type := list nat * option Q.
Definition column (f : table) (j : nat) : Q := sum (map (fun row => nth j row 0) f).
(** [f]: for each that asks, how many GPUs of each of [k] types it is given, out of [room]. *)
Definition divides (k : nat) (asks : list asked) (room : nat -> option Q) (f : table) : Prop :=
  Forall2 (fun '(kinds, most) row => length row = k /\ up_to (sum row) most /\
             forall j, 0 <= nth j row 0 /\ (~ In j kinds -> nth j row 0 == 0)) asks f /\
  forall j, (j < k)%nat -> up_to (column f j) (room j).
(** It is worth so much, by what one GPU of each type is worth; and nothing else is worth more. *)
Definition serves k (worths : list Q) asks room (q : Q) : Prop :=
  exists f, divides k asks room f /\ sum (map (dot worths) f) == q.
Definition most_served k worths asks room (q : Q) : Prop :=
  serves k worths asks room q /\ forall q', serves k worths asks room q' -> q' <= q.

Section Owed.
Variables (m : market) (e : entitlements) (x : table).

(** Users, then groups; types, then further goods. *)
Definition people : nat := length (users m).
Definition nodes : nat := people + length (groups e).
Definition kinds : nat := length (capacity m).

(** The group that a node is in; the node, that group, and so on to the top.  Groups are at most 50 deep. *)
Definition deepest : nat := 51.
Definition group_of (d : nat) : option nat := nth d (around e) None.
Fixpoint path_in (steps : nat) (d : nat) : list nat :=
  match steps with
  | O => []
  | S steps => d :: match group_of d with Some g => path_in steps g | None => [] end
  end.
Definition path (d : nat) : list nat := path_in deepest d.
(** All nodes that are in a group, or ([None]) at the top. *)
Definition members_of (g : option nat) : list nat :=
  map fst (filter (fun '(_, over) => same_group over g) (combine (seq 0 nodes) (around e))).
Definition members (d : nat) : list nat := members_of (Some d).

(** Whether the shares are what users hold now: then it is told who has the further goods, too. *)
Definition now : bool :=
  forallb (fun '(b, c) => forallb (fun '(p, q) => Qeq_bool p q) (combine (firstn kinds b) c)) (combine (in_hand e) x).
Definition mine : table := if now then in_hand e else x.
Definition columns : nat := if now then kinds + length (goods e) else kinds.

Definition cell (t : table) (i c : nat) : Q := nth c (nth i t []) 0.
Definition limit_at (t : list (list (option Q))) (d c : nat) : option Q := nth c (nth d t []) None.
(** How much a node holds of a column (a group, what its members do), how much of that can be taken back, and what is
    there. *)
Fixpoint sum_in (t : table) (steps : nat) (d c : nat) : Q :=
  match steps with
  | O => 0
  | S steps => if (d <? people)%nat then cell t d c else sum (map (fun i => sum_in t steps i c) (members d))
  end.
Definition sum_of (t : table) (d c : nat) : Q := sum_in t deepest d c.
Definition holds (d c : nat) : Q := sum_of mine d c.
Definition stays : table :=
  map (fun '(b, c) => map (fun '(p, q) => Qmin p q) (combine b c)) (combine (pinned e) mine).
Definition movable (d c : nat) : Q := holds d c - sum_of stays d c.
Definition there (c : nat) : Q := nth c (capacity m ++ stock e) 0.
Definition free (c : nat) : Q := there c - column mine c.
(** A guarantee is at most all that there is. *)
Definition owed (d c : nat) : Q :=
  match limit_at (guarantees e) d c with Some g => Qmin g (there c) | None => there c end.
(** How much more its cap leaves a node; what it holds beyond its guarantee. *)
Definition room (d c : nat) : option Q := option_map (fun cap => cap - holds d c) (limit_at (caps e) d c).
Definition above (d c : nat) : Q := holds d c - owed d c.
Definition loan (d c : nat) : Q := Qmax 0 (above d c).

(** ** What users ask for: what they hold, of that type, and gangs; where neither is told of anybody, their demand *)
Definition usage_told : bool :=
  existsb (fun g => negb (Qeq_bool (gang_gpus g) 0)) (pending e) ||
  existsb (existsb (fun q => negb (Qeq_bool q 0))) (map (firstn kinds) (in_hand e)).
Definition gangs_of (i : nat) : list gang := filter (fun g => Nat.eqb (waiting g) i) (pending e).
Definition waits (i : nat) (on : list nat) : Q :=
  sum (map gang_gpus (filter (fun g => if list_eq_dec Nat.eq_dec (allowed g) on then true else false) (gangs_of i))).
Definition runs_on (s : list Q) : list nat := filter (fun j => negb (Qeq_bool (nth j s 0) 0)) (seq 0 (length s)).
Definition asks (i : nat) (u : user) : list asked :=
  if usage_told then
    map (fun j => ([j], Some (cell (in_hand e) i j))) (seq 0 kinds) ++
    map (fun on => (on, Some (waits i on))) (nodup (list_eq_dec Nat.eq_dec) (map allowed (gangs_of i)))
  else [(runs_on (speedup u), demand u)].

(** A gang on type [j] takes of a resource: the good of that type's flavor, else the first that is of no type. *)
Definition same_word (a b : text) : bool := if list_eq_dec Z.eq_dec a b then true else false.
Fixpoint first_good (fits : text * text -> bool) (l : list (text * text)) (c : nat) : option nat :=
  match l with [] => None | g :: l => if fits g then Some c else first_good fits l (S c) end.
Definition good_of (resource : text) (j : nat) : option nat :=
  match first_good (fun '(r, f) => same_word r resource && same_word f (nth j (types m) [])) (goods e) 0 with
  | Some c => Some c
  | None => first_good (fun '(r, f) => same_word r resource && negb (existsb (same_word f) (types m))) (goods e) 0
  end.
(** All that a gang takes on type [j]: GPUs, and goods where it is told who has them. *)
Definition needs (g : gang) (j : nat) : list (nat * Q) :=
  (j, gang_gpus g) :: flat_map (fun '(resource, q) =>
    match good_of resource j with Some c => if now && negb (Qeq_bool q 0) then [(kinds + c, q)%nat] else [] | None =>
      [] end)
    (takes g).

(** How much more of a column a user could use: of a type, the most that is served with any number of its GPUs, less the
    most that is served now; of a good, what its gangs take that wait. *)
Definition with_any (j : nat) (room : nat -> option Q) : nat -> option Q := fun i => if Nat.eqb i j then None else room
  i.
Definition one_each : list Q := repeat 1 kinds.
Definition given_to (i : nat) : nat -> option Q := fun j => Some (cell mine i j).
Definition good_waits (i c : nat) : Q :=
  if now then sum (flat_map (fun g => flat_map (fun '(resource, q) =>
    if existsb (fun j => match good_of resource j with Some c' => Nat.eqb (kinds + c') c | None => false end) (allowed
      g)
    then [q] else []) (takes g)) (gangs_of i)) else 0.
Definition could_use (could : nat -> nat -> option Q) : Prop :=
  forall i u c, nth_error (users m) i = Some u -> (c < columns)%nat ->
  if (c <? kinds)%nat then
    exists served, most_served kinds one_each (asks i u) (given_to i) served /\
      match could i c with
      | Some q => most_served kinds one_each (asks i u) (with_any c (given_to i)) (served + q)
      | None => forall q, exists q', q <= q' /\ serves kinds one_each (asks i u) (with_any c (given_to i)) q'
      end
  else exists q, could i c = Some q /\ q == good_waits i c.

(** ** What the file must say of entitlements for anything to be proved *)
Definition amounts (width : nat) (row : list Q) : Prop := length row = width /\ forall q, In q row -> 0 <= q.
Definition ends (width : nat) (row : list (option Q)) : Prop :=
  length row = width /\ forall q, In (Some q) row -> 0 <= q.
Definition well_formed : Prop :=
  let width := (kinds + length (goods e))%nat in
  length (around e) = nodes /\
  (forall d g, (d < nodes)%nat -> group_of d = Some g -> (people <= g < nodes)%nat) /\
  (forall d, (d < nodes)%nat -> (length (path_in (S deepest) d) <= deepest)%nat) /\
  amounts (length (goods e)) (stock e) /\ amounts nodes (borrow_weight e) /\ length (tier e) = nodes /\
  length (guarantees e) = nodes /\ (forall row, In row (guarantees e) -> ends width row) /\
  length (caps e) = nodes /\ (forall row, In row (caps e) -> ends width row) /\
  length (in_hand e) = people /\ (forall row, In row (in_hand e) -> amounts width row) /\
  Forall2 (fun fixed all => amounts width fixed /\ Forall2 Qle fixed all) (pinned e) (in_hand e) /\
  (forall g, In g (pending e) -> (waiting g < people)%nat /\ 0 <= gang_gpus g /\ allowed g <> [] /\
     (forall j, In j (allowed g) -> (j < kinds)%nat) /\ forall r q, In (r, q) (takes g) -> 0 <= q).

(** ** Properties, given what users could use *)
Variable could : nat -> nat -> option Q.

(** How much more of a column a node could use: a group, what its members could; no more than its cap leaves. *)
Fixpoint more_in (steps : nat) (d c : nat) : option Q :=
  match steps with
  | O => Some 0
  | S steps =>
    at_least_0 (lesser (if (d <? people)%nat then could d c else together (map (fun i => more_in steps i c) (members
      d)))
                  (room d c))
  end.
Definition more (d c : nat) : option Q := more_in deepest d c.

(** Nobody below its guarantee could use more. *)
Definition guarantee_kept : Prop :=
  forall d c, (d < nodes)%nat -> (c < columns)%nat -> ~ (holds d c < owed d c /\ some_more (more d c)).
(** Nobody holds more than its cap. *)
Definition cap_kept : Prop :=
  forall d c, (d < nodes)%nat -> (c < columns)%nat -> up_to (holds d c) (limit_at (caps e) d c).
(** No gang waits that fits free whole GPUs, free goods, and the caps above it. *)
Definition gang_fits (g : gang) (j : nat) : Prop :=
  up_to (gang_gpus g) (more (waiting g) j) /\ gang_gpus g <= inject_Z (Qfloor (free j)) /\
  forall c q, In (c, q) (needs g j) -> q <= free c /\ forall d, In d (path (waiting g)) -> up_to q (room d c).
Definition whole_gpus : Prop :=
  forall g j, In g (pending e) -> ~ gang_gpus g == 0 -> In j (allowed g) -> ~ gang_fits g j.
(** Among siblings of one tier: no GPU can move from [d] to [c], which wants it, and borrows less, by weight, than [d]
    then does. *)
Definition siblings (c d : nat) : Prop := group_of c = group_of d /\ nth c (tier e) 0%Z = nth d (tier e) 0%Z.
Definition group_fair : Prop :=
  forall c d j, (c < nodes)%nat -> (d < nodes)%nat -> (j < kinds)%nat -> siblings c d ->
    0 < nth c (borrow_weight e) 0 -> up_to 1 (more c j) -> 1 <= movable d j ->
    (loan d j - 1) * nth c (borrow_weight e) 0 <= nth d (borrow_weight e) 0 * loan c j.

(** What can be taken back of a node for others: no more than a group's members give, or it holds beyond its guarantee.
  *)
Fixpoint gives_in (steps : nat) (d c : nat) : Q :=
  match steps with
  | O => 0
  | S steps =>
    Qmax 0 (Qmin (above d c)
      (if (d <? people)%nat then movable d c else sum (map (fun i => gives_in steps i c) (members d))))
  end.
Definition gives (d c : nat) : Q := gives_in deepest d c.
(** What a node could have of so much that is idle, and of what others give, each so much ([given]); its groups take in
    what their caps leave. *)
Variable given : nat -> nat -> Q.
Fixpoint comes_in (steps : nat) (idle : Q) (d c : nat) : Q :=
  match steps with
  | O => 0
  | S steps =>
    match group_of d with
    | None => idle
    | Some g =>
      match room g c with Some r => Qmin (comes_in steps idle g c) (Qmax 0 r) | None => comes_in steps idle g c end
    end + sum (map (fun i => given i c) (members_of (group_of d))) - given d c
  end.
Definition lent (d c : nat) : Q := comes_in deepest 0 d c.
(** How much more of its guarantee a user could use and have, of what is idle or lent. *)
Definition owing (i c : nat) : Q :=
  let q := Qmin (comes_in deepest (free c) i c) (- above i c) in
  match lesser (more i c) (room i c) with Some r => Qmin r q | None => q end.
(** Whether it can have so much: of that, or of what is idle within the caps above it. *)
Definition can_have (i c : nat) (q : Q) : bool :=
  Qle_bool q (owing i c) ||
  (Qle_bool q (free c) && forallb (fun d => match room d c with Some r => Qle_bool q r | None => true end) (path i)).
(** What its gangs that wait take of a column, of those that can have all else that they take. *)
Definition takes_some (g : gang) (j : nat) : list (nat * Q) := filter (fun '(_, q) => negb (Qeq_bool q 0)) (needs g j).
Definition could_start (g : gang) (j c : nat) : bool :=
  forallb (fun '(c', q) => Nat.eqb c' c || can_have (waiting g) c' q) (takes_some g j).
Definition gang_sizes (i c : nat) : list Q :=
  flat_map (fun g => flat_map (fun j =>
    if could_start g j c
    then flat_map (fun '(c', q) => if Nat.eqb c' c then [q] else []) (takes_some g j) else []) (allowed g)) (gangs_of
      i).
Definition picked (which : list bool) (l : list Q) : Q := sum (map (fun '(b, q) => if b : bool then q else 0) (combine
  which l)).
(** What the shares give it beyond what it holds now: that comes before gangs that wait. *)
Definition ahead_of_gangs (i c : nat) : Q := holds i c - Qmin (cell (in_hand e) i c) (holds i c + owing i c).
Definition starves (i c : nat) : Prop :=
  0 < owing i c /\ 0 < lent i c /\
  (usage_told = true -> exists which, let q := picked which (gang_sizes i c) in
     ahead_of_gangs i c < q /\ q <= ahead_of_gangs i c + owing i c).
Definition nobody_starves : Prop := forall i c, (i < people)%nat -> (c < columns)%nat -> ~ starves i c.

(** What a peer's bundle [c] is to user [i], which has [b]: what it holds within its guarantee, and what the peer holds
    beyond its own, scaled, within its cap. *)
Definition sure (i : nat) (b : list Q) (j : nat) : Q :=
  let within cap := match cap with Some q => Qmin (nth j b 0) q | None => nth j b 0 end in
  Qmin (match limit_at (guarantees e) i j with Some g => Qmin (nth j b 0) g | None => 0 end) (within (limit_at (caps e)
    i j)).
Definition in_place (i l : nat) (scale : Q) (b c : list Q) : list Q :=
  map (fun j =>
    let q := sure i b j + scale * (nth j c 0 - sure l c j) in
    match limit_at (caps e) i j with Some cap => Qmin q cap | None => q end) (seq 0 kinds).
End Owed.
Definition guaranteed (m : market) (e : entitlements) (i : nat) : list Q := map (owed m e i) (seq 0 (kinds m)).
Definition room_of (b : list Q) (j : nat) : option Q := Some (nth j b 0).

(** ** Where users ask for their demands, whatever they hold or wait for; a guarantee without bound counts as none *)
Definition at_rest (e : entitlements) : entitlements :=
  let none := map (map (fun _ => 0)) (in_hand e) in
  Entitlements (groups e) (around e) (goods e) (stock e)
    (map (map (fun g => match g with Some g => Some g | None => Some 0 end)) (guarantees e))
    (caps e) (borrow_weight e) (tier e) none none [].

(** ** The same entitlements: numbers may be written otherwise *)
Definition like_limits (a b : list (list (option Q))) : Prop :=
  Forall2 (Forall2 (fun p q => match p, q with Some p, Some q => p == q | None, None => True | _, _ => False end)) a b.
Definition like_gang (g h : gang) : Prop :=
  waiting g = waiting h /\ gang_gpus g == gang_gpus h /\ allowed g = allowed h /\
  Forall2 (fun p q => fst p = fst q /\ snd p == snd q) (takes g) (takes h).
Definition like_entitlements (a b : entitlements) : Prop :=
  groups a = groups b /\ around a = around b /\ goods a = goods b /\ Forall2 Qeq (stock a) (stock b) /\
  like_limits (guarantees a) (guarantees b) /\ like_limits (caps a) (caps b) /\
  Forall2 Qeq (borrow_weight a) (borrow_weight b) /\ tier a = tier b /\
  Forall2 (Forall2 Qeq) (in_hand a) (in_hand b) /\ Forall2 (Forall2 Qeq) (pinned a) (pinned b) /\
  Forall2 like_gang (pending a) (pending b).
Definition like_user (u v : user) : Prop :=
  name u = name v /\ Forall2 Qeq (speedup u) (speedup v) /\ weight u == weight v /\
  match demand u, demand v with Some d, Some e => d == e | None, None => True | _, _ => False end.

(** ** Ratios that rise at rates *)
Definition risen (had rate : list Q) (level : Q) : list Q := map (fun '(h, r) => Qred (h + r * level)) (combine had
  rate).
