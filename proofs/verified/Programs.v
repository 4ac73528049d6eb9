(** * Programs that the certificate holds: points, bounds, contradictions *)

From Coq Require Import List QArith Lqa Lia Bool String Ascii.
From Verified Require Import Syntax Meaning Sums Linear.
Import ListNotations.
Local Open Scope Q_scope.

Definition word (s : string) : text := map (fun c => Z.of_N (N_of_ascii c)) (list_ascii_of_string s).

Fixpoint same_text (a b : text) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => Z.eqb x y && same_text a b
  | _, _ => false
  end.

(** ** Multipliers and the rows that they name *)

(** Rows that no two multipliers may name are told apart by a number. *)
Fixpoint resolve (find : dual -> option (N * form)) (l : list dual) (seen : store unit) : option (list (Q * form)) :=
  match l with
  | [] => Some []
  | d :: l =>
    match find d with
    | None => None
    | Some (i, f) =>
      match at_ seen i with
      | Some _ => None
      | None =>
        match resolve find l (change_at (fun _ => tt) seen i) with
        | Some rest => Some ((rate d, f) :: rest)
        | None => None
        end
      end
    end
  end.

Lemma resolve_in find l : forall seen found q f,
  resolve find l seen = Some found -> In (q, f) found -> exists d i, In d l /\ find d = Some (i, f).
Proof.
  induction l as [|d l IH]; simpl; intros seen found q f e i; [injection e as <-; destruct i|].
  destruct (find d) as [[j g]|] eqn:fd; [|discriminate].
  destruct (at_ seen j); [discriminate|].
  destruct (resolve find l _) as [rest|] eqn:r; [|discriminate]; injection e as <-.
  destruct i as [e|i]; [injection e as <- <-; exists d, j; auto|].
  destruct (IH _ _ _ _ r i) as (d' & j' & i' & e'); exists d', j'; auto.
Qed.

(** ** Points *)

Definition between_b (lo : option Q) (x : Q) (hi : option Q) : bool :=
  match lo with Some l => le l x | None => true end && match hi with Some h => le x h | None => true end.

Lemma between_ok lo x hi : between_b lo x hi = true -> between lo x hi.
Proof.
  unfold between_b, between; rewrite andb_true_iff; intros [a b]; split.
  - destruct lo; [apply leP; exact a|exact I].
  - destruct hi; [apply leP; exact b|exact I].
Qed.

Definition whole_b (x : Q) : bool := Pos.eqb (Qden (Qred x)) 1.

Lemma whole_ok x : whole_b x = true -> is_whole x.
Proof.
  unfold whole_b; intro e; apply Pos.eqb_eq in e; exists (Qnum (Qred x)).
  rewrite <- (Qred_correct x) at 1; destruct (Qred x) as [n d]; simpl in *; subst; reflexivity.
Qed.

Definition within_b (v : variable) (x : Q) : bool :=
  between_b (lower v) x (upper v) && (if integer v then whole_b x else true).

Fixpoint all_within (l : list variable) (x : list Q) : bool :=
  match l, x with
  | [], [] => true
  | v :: l, q :: x => within_b v q && all_within l x
  | _, _ => false
  end.

Lemma all_within_ok l : forall x, all_within l x = true -> Forall2 within l x.
Proof.
  induction l as [|v l IH]; intros [|q x]; simpl; try discriminate; [constructor|].
  unfold within_b; rewrite !andb_true_iff; intros [[b i] r]; constructor; [|apply IH; exact r].
  split; [apply between_ok; exact b|]. intro e; rewrite e in i; apply whole_ok; exact i.
Qed.

Definition coordinate (s : store Q) (j : N) : Q := match at_ s j with Some q => q | None => 0 end.

Fixpoint row_at (s : store Q) (l : list (N * Q)) (acc : Q) : Q :=
  match l with [] => acc | (j, a) :: l => row_at s l (add acc (mul a (coordinate s j))) end.

Lemma coordinate_ok x j : coordinate (stored x) j = nth (N.to_nat j) x 0.
Proof.
  unfold coordinate; rewrite at_stored; destruct (nth_error x _) eqn:e.
  - symmetry; apply nth_error_nth; exact e.
  - symmetry; apply nth_overflow; apply nth_error_None; exact e.
Qed.

Lemma row_at_ok x l : forall acc,
  row_at (stored x) l acc == acc + sum (map (fun '(j, a) => a * nth (N.to_nat j) x 0) l).
Proof.
  induction l as [|[j a] l IH]; intro acc; simpl; [ring|].
  rewrite IH, addE, mulE, coordinate_ok; ring.
Qed.

Definition row_kept (s : store Q) (r : row) : bool := between_b (least r) (row_at s (terms r) 0) (most r).

Lemma between_eq lo x y hi : x == y -> between lo x hi -> between lo y hi.
Proof. unfold between; destruct lo, hi; intros e [a b]; split; auto; lra. Qed.

Lemma row_kept_ok x r : row_kept (stored x) r = true -> between (least r) (left_side r x) (most r).
Proof.
  intro k; apply between_ok in k; refine (between_eq _ _ _ _ _ k); rewrite row_at_ok; unfold left_side; ring.
Qed.

Definition satisfies_b (p : program) (x : list Q) : bool :=
  all_within (variables p) x && (let s := stored x in forallb (row_kept s) (rows p)).

Lemma satisfies_ok p x : satisfies_b p x = true -> satisfies p x.
Proof.
  unfold satisfies_b; rewrite andb_true_iff, forallb_forall; intros [v r]; split; [apply all_within_ok; exact v|].
  intros w i; apply row_kept_ok; apply r; exact i.
Qed.

(** Every term is of a variable, and none is twice in a row. *)
Fixpoint terms_fine (n : N) (l : list (N * Q)) (seen : store unit) : bool :=
  match l with
  | [] => true
  | (j, _) :: l =>
    N.ltb j n && (match at_ seen j with Some _ => false | None => true end)
    && terms_fine n l (change_at (fun _ => tt) seen j)
  end.
Definition rows_fine (p : program) : bool :=
  let n := N.of_nat (List.length (variables p)) in forallb (fun r => terms_fine n (terms r) Empty) (rows p).

(** ** Bounds *)

Definition signed (p : program) (q : Q) : Q := if maximize p then q else - q.
Definition slot (p : program) (v : variable) : list box := [(signed p (cost v), (lower v, upper v))].
Definition slot0 (v : variable) : list box := [(0, (lower v, upper v))].
Definition form_of (r : row) : form := Form [] (map (fun '(j, a) => (j, [a])) (terms r)) 0 (least r) (most r).

Definition the_row : text := word "row".
Definition find_row (s : store row) (d : dual) : option (N * form) :=
  match at_row d with
  | [i] => if same_text (of_row d) the_row then option_map (fun r => (i, form_of r)) (at_ s i) else None
  | _ => None
  end.
Definition rows_of (p : program) (duals : list dual) : option (list (Q * form)) :=
  resolve (find_row (stored (rows p))) duals Empty.

(** A number that the signed objective, less its offset, does not exceed. *)
Definition program_bound (p : program) (duals : list dual) : option Q :=
  match rows_of p duals with Some l => bound_of _ (slot p) (variables p) 0 l | None => None end.
Definition contradiction (p : program) (duals : list dual) : bool :=
  match rows_of p duals with
  | Some l => match bound_of _ slot0 (variables p) 0 l with Some m => lt m 0 | None => false end
  | None => false
  end.

Definition column (x : list Q) : table := map (fun q => [q]) x.

Lemma rows_keep p x duals l : satisfies p x -> rows_of p duals = Some l ->
  forall q f, In (q, f) l -> keeps (column x) 0 f.
Proof.
  intros [_ sat] r q f i. destruct (resolve_in _ _ _ _ _ _ r i) as (d & j & _ & e).
  unfold find_row in e; destruct (at_row d) as [|h [|? ?]]; try discriminate.
  destruct (same_text _ _); [|discriminate].
  rewrite at_stored in e; destruct (nth_error _ _) as [w|] eqn:ne; [|discriminate]; injection e as <- <-.
  apply nth_error_In in ne; unfold keeps; cbn [low high form_of].
  refine (between_eq _ _ _ _ _ (sat w ne)); unfold form_value, left_side; cbn [everywhere parts extra form_of].
  assert (sum (map (dot []) (column x)) == 0) as -> by (clear; induction x; simpl; [reflexivity|rewrite IHx; ring]).
  rewrite map_map. rewrite Qmult_0_l, Qplus_0_r, Qplus_0_l; apply sum_ext; intros [n a] _.
  unfold bundle, column; destruct (Nat.lt_ge_cases (N.to_nat n) (List.length x)) as [lt|ge].
  - rewrite (nth_indep _ [] [0]) by (rewrite map_length; exact lt).
    rewrite (map_nth (fun q => [q])); simpl; ring.
  - rewrite (nth_overflow x) by exact ge; rewrite (nth_overflow (map _ x)) by (rewrite map_length; exact ge).
    simpl; ring.
Qed.

Lemma boxed_column sl p x : (forall v, exists c, sl v = [(c, (lower v, upper v))]) -> satisfies p x ->
  Forall2 (fun s b => boxed (sl s) b) (variables p) (column x).
Proof.
  intros shape [f _]; induction f as [|v q l x [b _] f IH]; constructor; [|exact IH].
  destruct (shape v) as [c ->]; constructor; [exact b|constructor].
Qed.

Lemma costs_column p x : List.length (variables p) = List.length x ->
  costs _ (slot p) (variables p) (column x) == signed p (dot (map cost (variables p)) x).
Proof.
  unfold costs, column; generalize (variables p); intro l; revert x.
  induction l as [|v l IH]; intros [|q x]; simpl; try discriminate; intro e.
  - unfold signed; destruct (maximize p); reflexivity.
  - rewrite IH by lia; unfold signed; destruct (maximize p); ring.
Qed.

Lemma costs0 l x : costs _ slot0 l (column x) == 0.
Proof.
  unfold costs, column; revert x; induction l as [|v l IH]; intros [|q x]; simpl; try reflexivity.
  rewrite IH; ring.
Qed.

Lemma program_bound_ok p duals m x : program_bound p duals = Some m -> satisfies p x ->
  signed p (objective p x) <= signed p (offset p) + m.
Proof.
  unfold program_bound; destruct (rows_of p duals) as [l|] eqn:r; [|discriminate]; intros e s.
  pose proof (bound_of_ok _ _ _ _ _ _ (column x) 0 e
    (boxed_column _ _ _ (fun v => ex_intro _ _ eq_refl) s) (rows_keep _ _ _ _ s r)) as h.
  destruct s as [f _]; rewrite (costs_column p x (Forall2_len _ _ _ f)) in h.
  unfold objective, signed in *; destruct (maximize p); lra.
Qed.

Lemma contradiction_ok p duals : contradiction p duals = true -> forall x, ~ satisfies p x.
Proof.
  unfold contradiction; destruct (rows_of p duals) as [l|] eqn:r; [|discriminate].
  destruct (bound_of _ _ _ _ _) as [m|] eqn:e; [|discriminate]; intros neg x s; apply ltP in neg.
  pose proof (bound_of_ok _ _ _ _ _ _ (column x) 0 e
    (boxed_column _ _ _ (fun v => ex_intro _ _ eq_refl) s) (rows_keep _ _ _ _ s r)) as h.
  rewrite costs0 in h; lra.
Qed.

(** ** The two kinds of certificates *)

Definition no (s : string) : result := Rejected (word s).

Definition value_at (p : program) (x : list Q) : Q := add (offset p) (fast_dot (map cost (variables p)) x).

Definition gap_is (gap value bound : Q) : bool := 
  let d := sub bound value in same gap (if lt d 0 then - d else d).

Definition check_program_bound p x v bound gap duals : result :=
  if negb (rows_fine p) then no "a row has a strange term"
  else if negb (satisfies_b p x) then no "the point is not feasible"
  else match program_bound p duals with
  | None => no "a multiplier is of no row, or has the sign of a bound that there is not"
  | Some m =>
    if same v (value_at p x) && same bound (add (offset p) (signed p m)) && gap_is gap v bound
    then Accepted (IsBound p v bound) else no "value, bound or gap is another"
  end.

Definition check_program_infeasible p duals : result :=
  if negb (rows_fine p) then no "a row has a strange term"
  else if contradiction p duals then Accepted (NoPoint p) else no "the multipliers contradict nothing".

Lemma program_bound_meaning p x v bound gap duals s : check_program_bound p x v bound gap duals = Accepted s ->
  satisfies p x /\ objective p x == v /\ is_bound p bound.
Proof.
  unfold check_program_bound; destruct (negb (rows_fine p)); [discriminate|].
  destruct (satisfies_b p x) eqn:sat; [|discriminate]; simpl.
  destruct (program_bound p duals) as [m|] eqn:pb; [|discriminate].
  destruct (same v _) eqn:sv; [|discriminate]; destruct (same bound _) eqn:sb; [|discriminate]; intros _.
  apply sameP in sv; apply sameP in sb; apply satisfies_ok in sat; split; [exact sat|split].
  - unfold value_at in sv; rewrite sv, addE, fast_dotE; reflexivity.
  - intros y s'; pose proof (program_bound_ok _ _ _ _ pb s') as h.
    rewrite addE in sb; unfold signed in *; destruct (maximize p); lra.
Qed.

Lemma check_program_bound_sound p x v bound gap duals s :
  check_program_bound p x v bound gap duals = Accepted s -> meaning s.
Proof.
  intro e; destruct (program_bound_meaning _ _ _ _ _ _ _ e) as (sat & at_v & bounded).
  assert (s = IsBound p v bound) as ->; [|exact (conj (ex_intro _ x (conj sat at_v)) bounded)].
  revert e; unfold check_program_bound; destruct (negb _); [discriminate|]; destruct (negb _); [discriminate|].
  destruct (program_bound p duals); [|discriminate]; destruct (_ && _ && _); [congruence|discriminate].
Qed.

Lemma check_program_infeasible_sound p duals s :
  check_program_infeasible p duals = Accepted s -> meaning s.
Proof.
  unfold check_program_infeasible; destruct (negb (rows_fine p)); [discriminate|].
  destruct (contradiction p duals) eqn:c; [|discriminate]; intro e; injection e as <-.
  exact (contradiction_ok _ _ c).
Qed.
