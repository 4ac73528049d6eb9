(** * What a policy reaches, and that it cannot be had: certificates on a market *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Policies.
Import ListNotations.
Local Open Scope Q_scope.

(** The value that a policy reaches, and a bound on all. *)
Definition reached_and_bound m p x duals named : option (Q * Q) :=
  if negb (valid_b m) then None
  else match reached p m x named with
  | None => None
  | Some t => match policy_bound p m duals with None => None | Some b => Some (t, b) end
  end.

Lemma reached_and_bound_ok m p x duals named t b :
  reached_and_bound m p x duals named = Some (t, b) -> valid m /\ reaches m p x t /\ none_beyond m p b.
Proof.
  unfold reached_and_bound; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v; simpl.
  destruct (reached p m x named) as [t'|] eqn:r; [|discriminate].
  destruct (policy_bound p m duals) as [b'|] eqn:pb; [|discriminate]; intro e; injection e as <- <-.
  split; [exact v|split; [exact (reached_ok _ _ _ _ _ v r)|exact (policy_bound_ok _ _ _ _ v pb)]].
Qed.

Lemma reaches_eq m p x t t' : t == t' -> reaches m p x t -> reaches m p x t'.
Proof.
  intros e [s h]; split; [exact s|]; destruct p.
  - rewrite <- e; exact h.
  - destruct h as [h l]; split; [rewrite <- e; exact h|exact l].
  - destruct h as [h l]; split; [rewrite <- e; exact h|exact l].
  - intros u b i; rewrite <- e; exact (h u b i).
Qed.

Lemma none_beyond_eq m p b b' : b == b' -> none_beyond m p b -> none_beyond m p b'.
Proof. intros e h y t r; rewrite <- e; exact (h y t r). Qed.

Definition unproved : result := no "the market is not valid, the allocation breaks a row, or a multiplier is not one".

Definition check_optimality m p x v duals named : result :=
  match reached_and_bound m p x duals named with
  | None => unproved
  | Some (t, b) =>
    if same t v && same b v then Accepted (IsOptimal m p x v) else no "the duals do not prove the point optimal"
  end.

Definition check_bound m p x v bound gap duals named : result :=
  match reached_and_bound m p x duals named with
  | None => unproved
  | Some (t, b) =>
    if same t v && same b bound && gap_is gap v bound then Accepted (IsBounded m p x v bound)
    else no "value, bound or gap is another"
  end.

Lemma check_optimality_sound m p x v duals named s :
  check_optimality m p x v duals named = Accepted s -> meaning s.
Proof.
  unfold check_optimality; destruct (reached_and_bound _ _ _ _ _) as [[t b]|] eqn:e; [|discriminate].
  destruct (same t v) eqn:st; [|discriminate]; destruct (same b v) eqn:sb; [|discriminate].
  intro h; injection h as <-; apply sameP in st; apply sameP in sb.
  destruct (reached_and_bound_ok _ _ _ _ _ _ _ e) as (va & r & n).
  split; [exact va|split; [exact (reaches_eq _ _ _ _ _ st r)|exact (none_beyond_eq _ _ _ _ sb n)]].
Qed.

Lemma check_bound_sound m p x v bound gap duals named s :
  check_bound m p x v bound gap duals named = Accepted s -> meaning s.
Proof.
  unfold check_bound; destruct (reached_and_bound _ _ _ _ _) as [[t b]|] eqn:e; [|discriminate].
  destruct (same t v) eqn:st; [|discriminate]; destruct (same b bound) eqn:sb; [|discriminate].
  destruct (gap_is _ _ _); [|discriminate].
  intro h; injection h as <-; apply sameP in st; apply sameP in sb.
  destruct (reached_and_bound_ok _ _ _ _ _ _ _ e) as (va & r & n).
  split; [exact va|split; [exact (reaches_eq _ _ _ _ _ st r)|exact (none_beyond_eq _ _ _ _ sb n)]].
Qed.

(** ** Throughputs that nobody can have together *)

Fixpoint floors (l : list (N * Q)) (s : store Q) : option (store Q) :=
  match l with
  | [] => Some s
  | (i, q) :: l => match at_ s i with Some _ => None | None => floors l (change_at (fun _ => q) s i) end
  end.

Lemma floors_in l : forall s t i q, floors l s = Some t -> at_ t i = Some q -> at_ s i = Some q \/ In (i, q) l.
Proof.
  induction l as [|[j p] l IH]; simpl; intros s t i q e h; [injection e as <-; left; exact h|].
  destruct (at_ s j) eqn:f; [discriminate|]; destruct (IH _ _ _ _ e h) as [g|g]; [|right; right; exact g].
  rewrite at_change in g; destruct (N.eqb_spec j i) as [->|_]; [|left; exact g].
  injection g as <-; right; left; reflexivity.
Qed.

(** Users get throughputs of at least what is stored. *)
Definition floor_row (w : text) (c : context) (s : store Q) (d : dual) : option (N * form) :=
  match at_row d with
  | [i] => match at_ s i with
           | Some q => own_row c w (fun i u => Form [] [(i, speedup u)] 0 (Some q) None) d
           | None => None
           end
  | _ => None
  end.

Lemma floor_row_kept w m s d k f y z : floor_row w (context_of m) s d = Some (k, f) ->
  (forall i q, at_ s i = Some q -> exists u b, said_of m y i u b /\ q <= value u b) -> keeps y z f.
Proof.
  unfold floor_row; destruct (at_row d) as [|i [|? ?]] eqn:ar; try discriminate.
  destruct (at_ s i) as [q|] eqn:e; [|discriminate]; intros r h.
  destruct (h i q e) as (u & c & sa & le); unfold said_of in sa; apply nth_error_combine in sa; destruct sa as [eu ec].
  unfold own_row in r; rewrite ar in r; destruct (same_text _ _); [|discriminate].
  cbn [user_at context_of] in r; rewrite at_stored, eu in r; simpl in r; injection r as _ <-.
  unfold keeps; cbn [low high]; split; [|exact I].
  rewrite form_own; unfold bundle; rewrite (nth_error_nth _ _ _ ec); unfold value in le; lra.
Qed.

Definition check_infeasible m (wanted : list (N * Q)) duals : result :=
  if negb (valid_b m) then no "the market is not valid"
  else if negb (forallb (fun '(i, _) => N.ltb i (N.of_nat (List.length (users m)))) wanted) then no
    "there is no such user"
  else match floors wanted Empty with
  | None => no "a user stands twice"
  | Some s =>
    let c := context_of m in
    match bound_by (alike 0 m) (either (sharing_row c) (floor_row at_least_word c s)) 0 duals with
    | Some b => if lt b 0 then Accepted (NoAllocation m wanted) else no "the multipliers contradict nothing"
    | None => no "a multiplier is of no row, or has the sign of a bound that there is not"
    end
  end.

Lemma check_infeasible_sound m wanted duals s : check_infeasible m wanted duals = Accepted s -> meaning s.
Proof.
  unfold check_infeasible; destruct (valid_b m) eqn:v; [|discriminate]; apply valid_ok in v; simpl.
  destruct (negb _); [discriminate|]; destruct (floors wanted Empty) as [t|] eqn:fl; [|discriminate].
  destruct (bound_by _ _ _ _) as [b|] eqn:e; [|discriminate]; destruct (lt b 0) eqn:neg; [|discriminate].
  intro h; injection h as <-; split; [exact v|]; intros y sen h; apply ltP in neg.
  assert (k : forall d k g, either (sharing_row (context_of m)) (floor_row at_least_word (context_of m) t) d = Some (k,
    g) -> keeps y 0 g).
  { unfold either; intros d k g; destruct (sharing_row _ d) as [[? ?]|] eqn:r.
    - intro r'; injection r' as <- <-; exact (sharing_row_kept m d _ _ y 0 v sen r).
    - intro r'; apply (floor_row_kept _ _ _ _ _ _ _ _ r'); intros i q f; apply h.
      destruct (floors_in _ _ _ _ _ fl f) as [f'|f']; [rewrite at_empty in f'; discriminate|exact f']. }
  pose proof (bound_by_ok m _ (alike_users 0 m) _ _ _ _ y 0 v sen e k) as le; rewrite sum_alike in le; lra.
Qed.
