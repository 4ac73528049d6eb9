(** * Properties of entitlements, decided *)

From Coq Require Import List QArith Qminmax Qround Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Policies Served.
Import ListNotations.
Local Open Scope Q_scope.
Local Open Scope list_scope.

Lemma cells_ok (f : nat -> nat -> bool) (P : nat -> nat -> Prop) n w : (forall d c, f d c = true <-> P d c) ->
  forallb (fun d => forallb (f d) (seq 0 w)) (seq 0 n) = true <-> forall d c, (d < n)%nat -> (c < w)%nat -> P d c.
Proof.
  intro h; rewrite forallb_forall; split.
  - intros k d c ld lc; specialize (k d (proj2 (in_seq0 _ _) ld)); rewrite forallb_forall in k.
    apply h, k, in_seq0, lc.
  - intros k d i; apply in_seq0 in i; apply forallb_forall; intros c j; apply in_seq0 in j; apply h, k; assumption.
Qed.

(** ** Well formed *)
Definition amounts_b (width : nat) (row : list Q) : bool := Nat.eqb (List.length row) width && forallb (le 0) row.
Definition ends_b (width : nat) (row : list (option Q)) : bool :=
  Nat.eqb (List.length row) width && forallb (fun q => match q with Some q => le 0 q | None => true end) row.
Fixpoint pinned_fine (width : nat) (a b : table) : bool :=
  match a, b with
  | [], [] => true
  | row :: a, all :: b =>
    amounts_b width row && amounts_b width all && forallb (fun '(p, q) => le p q) (combine row all) && pinned_fine width a b
  | _, _ => false
  end.
Definition gang_fine (m : market) (g : gang) : bool :=
  (waiting g <? people m)%nat && le 0 (gang_gpus g) && some (allowed g) &&
  forallb (fun j => (j <? kinds m)%nat) (allowed g) && forallb (fun '(_, q) => le 0 q) (takes g).
Definition well_formed_b (m : market) (e : entitlements) : bool :=
  let n := nodes m e in
  let width := (kinds m + List.length (goods e))%nat in
  Nat.eqb (List.length (around e)) n &&
  forallb (fun d => match group_of e d with Some g => (people m <=? g)%nat && (g <? n)%nat | None => true end
                    && (List.length (path_in e (S deepest) d) <=? deepest)%nat) (seq 0 n) &&
  amounts_b (List.length (goods e)) (stock e) && amounts_b n (borrow_weight e) && Nat.eqb (List.length (tier e)) n &&
  Nat.eqb (List.length (guarantees e)) n && forallb (ends_b width) (guarantees e) &&
  Nat.eqb (List.length (caps e)) n && forallb (ends_b width) (caps e) &&
  Nat.eqb (List.length (in_hand e)) (people m) && forallb (amounts_b width) (in_hand e) &&
  pinned_fine width (pinned e) (in_hand e) && forallb (gang_fine m) (pending e).

Lemma amounts_ok w row : amounts_b w row = true -> amounts w row.
Proof.
  unfold amounts_b, amounts; rewrite andb_true_iff, Nat.eqb_eq, forallb_forall; intros [l h]; split; [exact l|].
  intros q i; apply leP, h, i.
Qed.
Lemma ends_ok w row : ends_b w row = true -> ends w row.
Proof.
  unfold ends_b, ends; rewrite andb_true_iff, Nat.eqb_eq, forallb_forall; intros [l h]; split; [exact l|].
  intros q i; apply leP, (h _ i).
Qed.
Lemma pinned_ok w a : forall b, pinned_fine w a b = true ->
  Forall2 (fun fixed all => amounts w fixed /\ Forall2 Qle fixed all) a b.
Proof.
  induction a as [|row a IH]; intros [|all b]; simpl; try discriminate; [constructor|].
  rewrite !andb_true_iff; intros [[[f g] h] r]; apply amounts_ok in f; apply amounts_ok in g.
  constructor; [split; [exact f|]|apply IH; exact r].
  apply Forall2_combine; [rewrite (proj1 f); symmetry; apply g|].
  intros p q i; rewrite forallb_forall in h; apply leP, (h (p, q) i).
Qed.

Lemma well_formed_ok m e : well_formed_b m e = true -> well_formed m e.
Proof.
  unfold well_formed_b, well_formed; cbv zeta; rewrite !andb_true_iff, !Nat.eqb_eq, !forallb_forall.
  intros [[[[[[[[[[[[a b] c] d] f] g] h] i] j] k] l] n] o].
  split; [exact a|split; [|split; [|split; [apply amounts_ok, c|split; [apply amounts_ok, d|split; [exact f|split;
    [exact g|split; [intros row r; apply ends_ok, h, r|split; [exact i|split; [intros row r; apply ends_ok, j, r|split;
    [exact k|split; [intros row r; apply amounts_ok, l, r|split; [apply pinned_ok, n|]]]]]]]]]]]]].
  - intros y z ly e1; specialize (b y (proj2 (in_seq0 _ _) ly)); rewrite e1, !andb_true_iff, Nat.leb_le, Nat.ltb_lt in b.
    lia.
  - intros y ly; specialize (b y (proj2 (in_seq0 _ _) ly)); rewrite andb_true_iff, !Nat.leb_le in b; apply b.
  - intros y z; specialize (o y z); unfold gang_fine in o; rewrite !andb_true_iff, Nat.ltb_lt, leP, !forallb_forall in o.
    destruct o as [[[[o1 o2] o3] o4] o5].
    split; [exact o1|split; [exact o2|split; [apply some_ok, o3|split]]].
    + intros t u; apply Nat.ltb_lt, o4, u.
    + intros t q u; apply leP, (o5 (t, q) u).
Qed.

Definition well_told (m : market) : bool := match entitled m with Some e => well_formed_b m e | None => true end.

(** ** What users could use *)
Fixpoint all_known {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some a :: l => match all_known l with Some r => Some (a :: r) | None => None end
  | None :: _ => None
  end.
Lemma all_known_at {A} (l : list (option A)) : forall r i a, all_known l = Some r -> nth_error l i = Some a ->
  exists b, a = Some b /\ nth_error r i = Some b.
Proof.
  induction l as [|[h|] l IH]; intros r [|i] a e n; simpl in *; try discriminate;
    destruct (all_known l) as [r'|]; try discriminate; injection e as <-; simpl.
  - injection n as <-; exists h; auto.
  - exact (IH r' i a eq_refl n).
Qed.

Definition could_cell (m : market) (e : entitlements) (x : table) (i : nat) (asked : list asked) (have : Q) (c : nat)
    : option (option Q) :=
  if (c <? kinds m)%nat then
    if endless c asked then Some None
    else match served (kinds m) asked (with_any c (given_to m e x i)) with
         | Some q => Some (Some (sub q have))
         | None => None
         end
  else Some (Some (Qred (good_waits m e x i c))).
Definition could_row (m : market) (e : entitlements) (x : table) (i : nat) (u : user) : option (list (option Q)) :=
  let asked := asks m e i u in
  match served (kinds m) asked (given_to m e x i) with
  | Some have => all_known (map (could_cell m e x i asked have) (seq 0 (columns m e x)))
  | None => None
  end.
Definition could_table (m : market) (e : entitlements) (x : table) : option (list (list (option Q))) :=
  all_known (map (fun '(i, u) => could_row m e x i u) (combine (seq 0 (List.length (users m))) (users m))).
Definition looked_up (t : list (list (option Q))) (i c : nat) : option Q := nth c (nth i t []) (Some 0).

Lemma nth_error_seq i k : (i < k)%nat -> nth_error (seq 0 k) i = Some i.
Proof.
  intro l; rewrite (nth_error_nth' _ 0%nat) by (rewrite seq_length; exact l); rewrite seq_nth by exact l; reflexivity.
Qed.

Lemma most_served_eq k asked room p q : p == q -> most_served k asked room p -> most_served k asked room q.
Proof.
  intros e [[f [d s]] h]; split; [exists f; split; [exact d|rewrite s; exact e]|].
  intros q' s'; rewrite <- e; exact (h q' s').
Qed.

Lemma in_mine m e x i c : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) -> 0 <= cell (mine m e x) i c.
Proof.
  intros w nn; assert (rows : forall b, In b (mine m e x) -> forall q, In q b -> 0 <= q).
  { unfold mine; destruct (now m e x); [|intros b ib q iq; exact (nn b q ib iq)].
    destruct w as (_ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & h & _); intros b ib; apply (h b ib). }
  unfold cell; apply nth_nonneg; destruct (Nat.lt_ge_cases i (List.length (mine m e x))) as [l|l].
  - apply rows, nth_In; exact l.
  - rewrite nth_overflow by exact l; intros q [].
Qed.

Lemma could_ok m e x t : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) ->
  could_table m e x = Some t -> could_use m e x (looked_up t).
Proof.
  intros w nn et i u c eu lc.
  assert (li : (i < List.length (users m))%nat) by (apply nth_error_Some; congruence).
  assert (at_i : nth_error (map (fun '(i, u) => could_row m e x i u) (combine (seq 0 (List.length (users m))) (users m))) i
                 = Some (could_row m e x i u)).
  { rewrite nth_error_map; assert (nth_error (combine (seq 0 (List.length (users m))) (users m)) i = Some (i, u)) as ->;
      [|reflexivity]. apply nth_error_combine; split; [apply nth_error_seq; exact li|exact eu]. }
  destruct (all_known_at _ _ _ _ et at_i) as (row & er & nr); unfold could_row in er.
  destruct (served _ _ _) as [have|] eqn:eh; [|discriminate]; apply served_ok in eh.
  assert (at_c : nth_error (map (could_cell m e x i (asks m e i u) have) (seq 0 (columns m e x))) c
                 = Some (could_cell m e x i (asks m e i u) have c)).
  { rewrite nth_error_map, (nth_error_seq _ _ lc); reflexivity. }
  destruct (all_known_at _ _ _ _ er at_c) as (q & ec & nq).
  unfold looked_up; rewrite (nth_error_nth _ _ [] nr), (nth_error_nth _ _ (Some 0) nq).
  unfold could_cell in ec; destruct (c <? kinds m)%nat eqn:lk.
  - exists have; split; [exact eh|]. destruct (endless c (asks m e i u)) eqn:en.
    + injection ec as <-; apply Nat.ltb_lt in lk; intro q'.
      apply (endless_ok _ _ _ _ lk en); [unfold with_any; rewrite Nat.eqb_refl; reflexivity|].
      intros j p; unfold with_any, given_to; destruct (Nat.eqb j c); [discriminate|intro h; injection h as <-].
      apply in_mine; assumption.
    + destruct (served _ _ (with_any _ _)) as [q'|] eqn:es; [|discriminate]; injection ec as <-; apply served_ok in es.
      apply (most_served_eq _ _ _ q'); [rewrite subE; ring|exact es].
  - injection ec as <-; eexists; split; [reflexivity|apply Qred_correct].
Qed.

(** ** The properties *)
Section Decided.
Variables (m : market) (e : entitlements) (x : table) (could : nat -> nat -> option Q).

Definition content (d c : nat) : bool :=
  negb (lt (holds m e x d c) (owed m e d c) && some_more_b (more m e x could d c)).
Definition guarantee_kept_b : bool :=
  forallb (fun d => forallb (content d) (seq 0 (columns m e x))) (seq 0 (nodes m e)).
Lemma guarantee_kept_ok : guarantee_kept_b = true <-> guarantee_kept m e x could.
Proof.
  apply (cells_ok content); intros d c; unfold content.
  rewrite <- ltP, <- some_more_ok, <- andb_true_iff, negb_true_iff; symmetry; apply not_true_iff_false.
Qed.

Definition within_cap (d c : nat) : bool := up_to_b (holds m e x d c) (limit_at (caps e) d c).
Definition cap_kept_b : bool :=
  forallb (fun d => forallb (within_cap d) (seq 0 (columns m e x))) (seq 0 (nodes m e)).
Lemma cap_kept_ok : cap_kept_b = true <-> cap_kept m e x.
Proof. apply (cells_ok within_cap); intros d c; apply up_to_ok. Qed.

Definition gang_fits_b (g : gang) (j : nat) : bool :=
  up_to_b (gang_gpus g) (more m e x could (waiting g) j) && le (gang_gpus g) (inject_Z (Qfloor (free m e x j))) &&
  forallb (fun '(c, q) => le q (free m e x c) && forallb (fun d => up_to_b q (room m e x d c)) (path e (waiting g)))
    (needs m e x g j).
Lemma gang_fits_ok g j : gang_fits_b g j = true <-> gang_fits m e x could g j.
Proof.
  unfold gang_fits_b, gang_fits; rewrite !andb_true_iff, up_to_ok, leP, forallb_forall.
  split; [intros [[a b] c]|intros (a & b & c)]; repeat split; auto.
  - specialize (c (c0, q) H); apply andb_true_iff in c; apply leP, c.
  - intros d i; specialize (c (c0, q) H); apply andb_true_iff in c; destruct c as [_ c]; rewrite forallb_forall in c.
    apply up_to_ok, c, i.
  - intros [c' q] i; apply andb_true_iff; split; [apply leP, (c c' q i)|apply forallb_forall; intros d k].
    apply up_to_ok, (c c' q i), k.
Qed.
Definition whole_gpus_b : bool :=
  forallb (fun g => nothing (gang_gpus g) || forallb (fun j => negb (gang_fits_b g j)) (allowed g)) (pending e).
Lemma whole_gpus_ok : whole_gpus_b = true <-> whole_gpus m e x could.
Proof.
  unfold whole_gpus_b, whole_gpus; rewrite forallb_forall; split.
  - intros h g j i nz a f; specialize (h g i); apply orb_true_iff in h; destruct h as [h|h].
    + apply nz, nothing_true, h.
    + rewrite forallb_forall in h; specialize (h j a); apply gang_fits_ok in f; rewrite f in h; discriminate.
  - intros h g i; destruct (nothing (gang_gpus g)) eqn:z; [reflexivity|]; apply nothing_false in z; simpl.
    apply forallb_forall; intros j a; apply negb_true_iff, not_true_iff_false; rewrite gang_fits_ok; exact (h g j i z a).
Qed.

(** What is asked of each sibling is worked out once. *)
Record sibling := Sibling { its_group : option nat; its_tier : Z; its_weight : Q; its_loan : Q; wants_one : bool; can_lose : bool }.
Definition sibling_of (j d : nat) : sibling :=
  let w := nth d (borrow_weight e) 0 in
  Sibling (group_of e d) (nth d (tier e) 0%Z) w (loan m e x d j) (lt 0 w && up_to_b 1 (more m e x could d j))
    (le 1 (movable m e x d j)).
Definition fair_pair (c d : sibling) : bool :=
  negb (same_group (its_group c) (its_group d) && Z.eqb (its_tier c) (its_tier d) && can_lose d)
  || le ((its_loan d - 1) * its_weight c) (its_weight d * its_loan c).
Definition group_fair_b : bool :=
  forallb (fun j => let all := map (sibling_of j) (seq 0 (nodes m e)) in
    forallb (fun c => negb (wants_one c) || forallb (fair_pair c) all) all) (seq 0 (kinds m)).
Lemma group_fair_ok : group_fair_b = true <-> group_fair m e x could.
Proof.
  unfold group_fair_b, group_fair; rewrite forallb_forall; split.
  - intros h c d j lc ld lj [sg st] w u mv; specialize (h j (proj2 (in_seq0 _ _) lj)); rewrite forallb_forall in h.
    specialize (h (sibling_of j c) (in_map _ _ _ (proj2 (in_seq0 _ _) lc))); simpl in h.
    apply ltP in w; apply up_to_ok in u; apply leP in mv; rewrite w, u in h; simpl in h; rewrite forallb_forall in h.
    specialize (h (sibling_of j d) (in_map _ _ _ (proj2 (in_seq0 _ _) ld))); unfold fair_pair in h; simpl in h.
    rewrite mv, (proj2 (same_group_ok _ _) sg), st, Z.eqb_refl in h; apply leP; exact h.
  - intros h j lj; apply in_seq0 in lj; apply forallb_forall; intros c ic; apply in_map_iff in ic.
    destruct ic as (c' & <- & ic); apply in_seq0 in ic; simpl.
    destruct (lt 0 _ && up_to_b 1 _) eqn:w; [|reflexivity]; simpl; apply andb_true_iff in w; destruct w as [w u].
    apply ltP in w; apply up_to_ok in u; apply forallb_forall; intros d id; apply in_map_iff in id.
    destruct id as (d' & <- & id); apply in_seq0 in id; unfold fair_pair; simpl.
    destruct (same_group _ _ && Z.eqb _ _ && _) eqn:sib; [|reflexivity]; simpl.
    rewrite !andb_true_iff, same_group_ok, Z.eqb_eq, leP in sib; destruct sib as [[sg st] mv]; apply leP.
    exact (h c' d' j ic id lj (conj sg st) w u mv).
Qed.

Record peer := Peer { its_place : nat; its_user : user; its_bundle : list Q; of_group : option nat; of_tier : Z }.
Definition peers : list peer :=
  map (fun '(i, (u, b)) => Peer i u b (group_of e i) (nth i (tier e) 0%Z))
    (combine (seq 0 (List.length (combine (users m) x))) (combine (users m) x)).
Definition no_envy (own : Q) (p q : peer) : bool :=
  negb (same_group (of_group p) (of_group q) && Z.eqb (of_tier p) (of_tier q)) ||
  le (worth_now (its_user p) (in_place m e (its_place p) (its_place q) (weight (its_user p) / weight (its_user q))
       (its_bundle p) (its_bundle q))) own.
Definition no_peer_is_envied_b : bool :=
  let all := peers in forallb (fun p => forallb (no_envy (worth_now (its_user p) (its_bundle p)) p) all) all.

Lemma peers_have i u b : nth_error (combine (users m) x) i = Some (u, b) ->
  In (Peer i u b (group_of e i) (nth i (tier e) 0%Z)) peers.
Proof.
  intro h; unfold peers; apply in_map_iff; exists (i, (u, b)); split; [reflexivity|].
  apply (combine_has _ _ i); [apply nth_error_seq, nth_error_Some; congruence|exact h].
Qed.
Lemma peers_are p : In p peers -> exists i u b, p = Peer i u b (group_of e i) (nth i (tier e) 0%Z) /\
  nth_error (combine (users m) x) i = Some (u, b).
Proof.
  unfold peers; rewrite in_map_iff; intros ([i [u b]] & <- & h); exists i, u, b; split; [reflexivity|].
  destruct (has_at _ _ _ _ h) as (k & e1 & e2).
  assert (l : (k < List.length (combine (users m) x))%nat) by (apply nth_error_Some; congruence).
  rewrite (nth_error_seq _ _ l) in e1; injection e1 as <-; exact e2.
Qed.
Lemma no_peer_ok : no_peer_is_envied_b = true <-> no_peer_is_envied m e x.
Proof.
  unfold no_peer_is_envied_b, no_peer_is_envied; cbv zeta; rewrite forallb_forall; split.
  - intros h i l u b v c ei el [sg st]; specialize (h _ (peers_have _ _ _ ei)); rewrite forallb_forall in h.
    specialize (h _ (peers_have _ _ _ el)); unfold no_envy in h; simpl in h.
    rewrite (proj2 (same_group_ok _ _) sg), st, Z.eqb_refl in h; apply leP in h; rewrite !worth_now_ok in h; exact h.
  - intros h p ip; apply forallb_forall; intros q iq.
    destruct (peers_are p ip) as (i & u & b & -> & ei), (peers_are q iq) as (l & v & c & -> & el).
    unfold no_envy; simpl; destruct (same_group _ _ && Z.eqb _ _) eqn:sib; [|reflexivity]; simpl.
    rewrite andb_true_iff, same_group_ok, Z.eqb_eq in sib; apply leP; rewrite !worth_now_ok.
    exact (h i l u b v c ei el sib).
Qed.

Definition has_owed_b (p : owed_property) : bool :=
  match p with
  | GuaranteeKept => guarantee_kept_b
  | CapKept => cap_kept_b
  | WholeGpus => whole_gpus_b
  | GroupFairness => group_fair_b
  | PeersEnvyFree => no_peer_is_envied_b
  end.
Lemma has_owed_ok p : has_owed_b p = true <-> has_owed m e x could p.
Proof.
  destruct p; simpl; [apply guarantee_kept_ok|apply cap_kept_ok|apply whole_gpus_ok|apply group_fair_ok|apply no_peer_ok].
Qed.
End Decided.

(** ** The certificate *)

(** Whether the market says anything of what a property is about. *)
Definition says (m : market) (e : entitlements) (p : owed_property) : bool :=
  match p with
  | GuaranteeKept =>
    existsb (existsb (fun g => match g with Some q => negb (nothing q) | None => true end)) (guarantees e)
  | CapKept => existsb (existsb (fun g => match g with Some _ => true | None => false end)) (caps e)
  | WholeGpus => usage_told m e
  | GroupFairness | PeersEnvyFree => true
  end.

Definition told_of_goods (m : market) (e : entitlements) (x : table) : bool := now m e x || negb (some (goods e)).

Definition check_owed m x p (holds : bool) : result :=
  if negb (valid_b m && shaped_b m x && not_negative x) then no "the market is not valid, or the allocation is not one"
  else match entitled m with
  | None => no "the market says no entitlements"
  | Some e =>
    if negb (well_formed_b m e) then no "the entitlements are not of the market's users and types"
    else if negb (says m e p) then no "the market says nothing of what the property is about"
    else match could_table m e x with
    | None => NotCovered (word "what users could use, which takes too many steps")
    | Some t =>
      if Bool.eqb (has_owed_b m e x (looked_up t) p) holds
      then Accepted (HasOwed m x p holds (feasible_b m x) (told_of_goods m e x))
      else no "the property does not get this answer"
    end
  end.

Lemma check_owed_sound m x p holds s : check_owed m x p holds = Accepted s -> meaning s.
Proof.
  unfold check_owed; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v.
  destruct (shaped_b m x) eqn:sh; [|discriminate]; apply shaped_ok in sh; simpl.
  destruct (not_negative x) eqn:n; [|discriminate]; pose proof (proj1 (not_negative_ok x) n) as nn; simpl.
  destruct (entitled m) as [e|] eqn:ee; [|discriminate].
  destruct (well_formed_b m e) eqn:w; [|discriminate]; apply well_formed_ok in w; simpl.
  destruct (says m e p); [|discriminate]; simpl; destruct (could_table m e x) as [t|] eqn:et; [|discriminate].
  apply (could_ok m e x t w nn) in et.
  destruct (Bool.eqb _ holds) eqn:b; [|discriminate]; apply eqb_prop in b; intro h; injection h as <-.
  split; [exact v|split; [exact sh|split; [apply feasible_ok|]]].
  exists e, (looked_up t); split; [exact ee|split; [exact w|split; [exact et|split]]].
  - destruct holds; [apply has_owed_ok; exact b|rewrite <- has_owed_ok, b; discriminate].
  - unfold told_of_goods; rewrite orb_true_iff, negb_true_iff; split; intros [h|h]; auto; right.
    + destruct (goods e); [reflexivity|discriminate].
    + rewrite h; reflexivity.
Qed.
