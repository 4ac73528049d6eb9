(** * Properties of entitlements, decided *)

From Coq Require Import List QArith Qminmax Qround Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Programs Markets Allocations Served Could Starving.
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
    apply forallb_forall; intros j a; apply negb_true_iff, not_true_iff_false; rewrite gang_fits_ok; exact (h g j i z
      a).
Qed.

Definition content_user (given : nat -> nat -> Q) (i c : nat) : bool := negb (starves_b m e x could given i c).
Definition nobody_starves_b (given : nat -> nat -> Q) : bool :=
  forallb (fun i => forallb (content_user given i) (seq 0 (columns m e x))) (seq 0 (people m)).
Lemma nobody_starves_ok given : well_formed m e -> nobody_starves_b given = true <-> nobody_starves m e x could given.
Proof.
  intro w; apply (cells_ok (content_user given)); intros i c; unfold content_user.
  rewrite <- (starves_ok m e x could given i c w), negb_true_iff; symmetry; apply not_true_iff_false.
Qed.

(** What is asked of each sibling is worked out once. *)
Record sibling := Sibling { its_group : option nat; its_tier : Z; its_weight : Q; its_loan : Q; wants_one : bool;
  can_lose : bool }.
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

End Decided.

(** ** The certificate *)

(** Whether the market says anything of what a property is about. *)
Definition says (m : market) (e : entitlements) (p : owed_property) : bool :=
  match p with
  | GuaranteeKept | GuaranteeIncentive | NobodyStarves =>
    existsb (existsb (fun g => match g with Some q => negb (nothing q) | None => true end)) (guarantees e)
  | CapKept => existsb (existsb (fun g => match g with Some _ => true | None => false end)) (caps e)
  | WholeGpus => usage_told m e
  | GroupFairness | PeersEnvyFree => true
  end.

Definition told_of_goods (m : market) (e : entitlements) (x : table) : bool := now m e x || negb (some (goods e)).

(** The answer that a property gets; [None] where the most that is served was not found. *)
Definition given_could (m : market) (e : entitlements) (x : table) (f : (nat -> nat -> option Q) -> bool) : option bool
  :=
  option_map (fun t => f (looked_up t)) (could_table m e x).
Definition owed_answer (m : market) (e : entitlements) (x : table) (p : owed_property) : option bool :=
  match p with
  | CapKept => Some (cap_kept_b m e x)
  | PeersEnvyFree => Some (no_peer_is_envied_b m e x)
  | GuaranteeKept => given_could m e x (guarantee_kept_b m e x)
  | WholeGpus => given_could m e x (whole_gpus_b m e x)
  | GroupFairness => given_could m e x (group_fair_b m e x)
  | NobodyStarves =>
    let t := giving m e x in given_could m e x (fun could => nobody_starves_b m e x could (given_in t))
  | GuaranteeIncentive => option_map (forallb (fun '(own, sure) => le sure own)) (worths_table m e x)
  end.

Lemma answer_ok (b : bool) (P : Prop) : (b = true <-> P) -> if b then P else ~ P.
Proof. destruct b; intros [h k]; [apply h; reflexivity|intro p; specialize (k p); discriminate]. Qed.

Lemma given_could_ok m e x f P holds : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) ->
  (forall could, f could = true <-> P could) -> given_could m e x f = Some holds ->
  exists could, could_use m e x could /\ if holds then P could else ~ P could.
Proof.
  intros w nn h; unfold given_could; destruct (could_table m e x) as [t|] eqn:et; [|discriminate]; intro k; injection k
    as <-.
  exists (looked_up t); split; [exact (could_ok m e x t w nn et)|apply answer_ok, h].
Qed.

Lemma owed_answer_ok m e x p holds : well_formed m e -> (forall b share, In b x -> In share b -> 0 <= share) ->
  shaped m x -> owed_answer m e x p = Some holds -> owed_is m e x p holds.
Proof.
  intros w nn sh; unfold owed_answer, owed_is; destruct p.
  - apply given_could_ok; try assumption; apply guarantee_kept_ok.
  - intro h; injection h as <-; apply answer_ok, cap_kept_ok.
  - apply given_could_ok; try assumption; apply whole_gpus_ok.
  - apply given_could_ok; try assumption; apply group_fair_ok.
  - intro h; injection h as <-; apply answer_ok, no_peer_ok.
  - destruct (worths_table m e x) as [t|] eqn:et; [|discriminate]; simpl; intro h; injection h as <-.
    exists (fun i => fst (nth i t (0, 0))), (fun i => snd (nth i t (0, 0))); split; [exact (worths_ok m e x t et)|].
    apply answer_ok, all_worths_ok; unfold worths_table in et.
    rewrite <- (all_known_length _ _ et), map_length, combine_length, seq_length, combine_length, (proj1 sh).
    unfold people; lia.
  - cbv zeta; intro h; destruct (given_could_ok m e x _
      (fun could => nobody_starves m e x could (given_in (giving m e x))) holds w nn
      (fun could => nobody_starves_ok m e x could _ w) h) as (could & c & a).
    exists could, (given_in (giving m e x)); split; [exact c|split; [exact (giving_ok m e x)|exact a]].
Qed.

Definition check_owed m x p (holds : bool) : result :=
  if negb (valid_b m && shaped_b m x && not_negative x) then no "the market is not valid, or the allocation is not one"
  else match entitled m with
  | None => no "the market says no entitlements"
  | Some e =>
    if negb (well_formed_b m e) then no "the entitlements are not of the market's users and types"
    else if negb (says m e p) then no "the market says nothing of what the property is about"
    else match owed_answer m e x p with
    | None => NotCovered (word "what is served, which takes too many steps")
    | Some found =>
      if Bool.eqb found holds then Accepted (HasOwed m x p holds (feasible_b m x) (told_of_goods m e x))
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
  destruct (says m e p); [|discriminate]; simpl; destruct (owed_answer m e x p) as [found|] eqn:eo; [|discriminate].
  destruct (Bool.eqb found holds) eqn:b; [|discriminate]; apply eqb_prop in b; subst found; intro h; injection h as <-.
  split; [exact v|split; [exact sh|split; [apply feasible_ok|]]].
  exists e; split; [exact ee|split; [exact w|split; [exact (owed_answer_ok m e x p holds w nn sh eo)|]]].
  unfold told_of_goods; rewrite orb_true_iff, negb_true_iff; split; intros [h|h]; auto; right.
  - destruct (goods e); [reflexivity|discriminate].
  - rewrite h; reflexivity.
Qed.

(** ** Decisions keep caps and guarantees *)
Definition keeps_entitlements_b (m : market) (x : table) : bool :=
  match entitled m with
  | None => true
  | Some e =>
    let rest := at_rest e in
    well_formed_b m e && well_formed_b m rest && cap_kept_b m rest x &&
    match given_could m rest x (guarantee_kept_b m rest x) with Some kept => kept | None => false end
  end.
Lemma keeps_entitlements_ok m x : feasible m x -> keeps_entitlements_b m x = true -> keeps_entitlements m x.
Proof.
  intros (_ & nn & _); unfold keeps_entitlements_b, keeps_entitlements; destruct (entitled m) as [e|]; [|auto]; cbv
    zeta.
  destruct (well_formed_b m e) eqn:w; [|discriminate]; apply well_formed_ok in w.
  destruct (well_formed_b m (at_rest e)) eqn:w'; [|discriminate]; apply well_formed_ok in w'.
  destruct (cap_kept_b m (at_rest e) x) eqn:c; [|discriminate]; apply cap_kept_ok in c.
  destruct (given_could m (at_rest e) x _) as [kept|] eqn:g; [|discriminate]; simpl; intros ->.
  split; [exact w|split; [exact c|]].
  exact (given_could_ok m (at_rest e) x _ _ true w' nn (guarantee_kept_ok m (at_rest e) x) g).
Qed.
