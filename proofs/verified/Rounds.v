(** * Gangs of GPUs: an assignment of jobs to types, and that none costs less *)

From Coq Require Import List QArith Lqa Lia Bool String.
From Verified Require Import Syntax Meaning Sums Linear Programs Markets Allocations Paid.
Import ListNotations.
Local Open Scope Q_scope.

(** Jobs with what they may do: the size of the gang, and types with costs; no type: it waits. *)
Definition option_of := (option N * Q)%type.
Definition job := (Z * list option_of)%type.
(** What jobs do. *)
Definition does := (Z * option_of)%type.

Fixpoint options_from (row : list (option Q)) (j : N) : list option_of :=
  match row with
  | [] => []
  | Some c :: row => (Some j, c) :: options_from row (N.succ j)
  | None :: row => options_from row (N.succ j)
  end.
Definition jobs_of (r : round) : list job :=
  map (fun '(size, row) => (size, (None, 0) :: options_from row 0)) (combine (sizes r) (job_costs r)).

(** ** What is in use, and what it costs *)
Definition gpus_of (d : does) : list Q :=
  match d with (size, (Some j, _)) => vscale (inject_Z size) (unit_at (N.to_nat j)) | _ => [] end.
Definition busy (d : does) : Q := match d with (size, (Some _, _)) => inject_Z size | _ => 0 end.
Definition cost_of (d : does) : Q := snd (snd d).
Definition kind := (Z * N)%type.
Definition same_kind (k l : kind) : bool := Z.eqb (fst k) (fst l) && N.eqb (snd k) (snd l).
Definition is_of (k : kind) (d : does) : Q :=
  match d with (size, (Some j, _)) => if same_kind k (size, j) then 1 else 0 | _ => 0 end.
Definition how_many (k : kind) (ds : list does) : Q := sum (map (is_of k) ds).

Definition possible (r : round) (ds : list does) : Prop :=
  (forall j, (j < List.length (gpus r))%nat -> given (map gpus_of ds) j <= nth j (map inject_Z (gpus r)) 0) /\
  inject_Z (least_used r) <= sum (map busy ds).
Definition done_by (j : job) (d : does) : Prop := fst j = fst d /\ In (snd d) (snd j).

(** ** Limits of a case: how many gangs of a kind run, from and to *)
Definition limits := list (kind * (Z * option Z)).
Definition limit_of (l : limits) (k : kind) : Z * option Z :=
  match find (fun '(other, _) => same_kind k other) l with Some (_, ends) => ends | None => (0%Z, None) end.
Definition limited (l : limits) (k : kind) (ends : Z * option Z) : limits :=
  (k, ends) :: filter (fun '(other, _) => negb (same_kind k other)) l.
Definition keeps_end (n : Q) (ends : Z * option Z) : Prop :=
  inject_Z (fst ends) <= n /\ match snd ends with Some most => n <= inject_Z most | None => True end.
Definition keeps (l : limits) (ds : list does) : Prop := forall k ends, In (k, ends) l ->
  keeps_end (how_many k ds) ends.

(** ** A bound *)

(** What is paid for a toll at most; nothing where that is not bounded. *)
Definition toll_at_most (q : Q) (ends : Z * option Z) : option Q :=
  if nothing q then Some 0
  else if lt 0 q then match snd ends with Some most => Some (mul q (inject_Z most)) | None => None end
  else Some (mul q (inject_Z (fst ends))).

Fixpoint tolls_at_most (l : limits) (ts : list (kind * Q)) : option Q :=
  match ts with
  | [] => Some 0
  | (k, q) :: ts =>
    match toll_at_most q (limit_of l k), tolls_at_most l ts with Some a, Some b => Some (add a b) | _, _ => None end
  end.

(** The last toll of a kind counts. *)
Definition tolls_by_kind (t : tolled) : list (kind * Q) :=
  fold_left (fun found '(k, q) => (k, q) :: filter (fun '(other, _) => negb (same_kind k other)) found) (tolls t) [].

Definition toll_on (ts : list (kind * Q)) (d : does) : Q :=
  match d with
  | (size, (Some j, _)) => fast_sum (map (fun '(k, q) => if same_kind k (size, j) then q else 0) ts)
  | _ => 0
  end.
(** What a gang pays. *)
Definition pays (t : tolled) (ts : list (kind * Q)) (d : does) : Q :=
  match d with
  | (size, (Some j, _)) =>
    add (mul (inject_Z size) (sub (nth (N.to_nat j) (type_prices t) 0) (reward t))) (toll_on ts d)
  | _ => 0
  end.
Definition costs_with (t : tolled) (ts : list (kind * Q)) (d : does) : Q := add (cost_of d) (pays t ts d).

Definition least_of (f : does -> Q) (j : job) : Q :=
  match snd j with
  | [] => 0
  | o :: more => fold_left (fun least o => smaller least (f (fst j, o))) more (f (fst j, o))
  end.

Definition tolled_fine (r : round) (t : tolled) : bool :=
  same_length (type_prices t) (gpus r) && forallb (le 0) (type_prices t) && le 0 (reward t).

Definition bound_by_tolls (r : round) (jobs : list job) (t : tolled) (l : limits) : option Q :=
  let ts := tolls_by_kind t in
  if tolled_fine r t then
    match tolls_at_most l ts with
    | Some most =>
      Some (add (sub (sub (fast_sum (map (least_of (costs_with t ts)) jobs))
                        (fast_dot (type_prices t) (map inject_Z (gpus r)))) most)
              (mul (reward t) (inject_Z (least_used r))))
    | None => None
    end
  else None.

(** ** It is one *)

Lemma least_of_le f j d : done_by j d -> least_of f j <= f d.
Proof.
  destruct j as [size os], d as [size' o]; intros [e i]; simpl in e, i; subst size'; unfold least_of; simpl.
  assert (run : forall more b, let l := fold_left (fun least o => smaller least (f (size, o))) more b in
    l <= b /\ forall o, In o more -> l <= f (size, o)).
  { induction more as [|a more IH]; intro b; cbn -[smaller]; [split; [apply Qle_refl|intros ? []]|].
    destruct (IH (smaller b (f (size, a)))) as [h t].
    assert (s : smaller b (f (size, a)) <= b /\ smaller b (f (size, a)) <= f (size, a)).
    { unfold smaller; destruct (le b (f (size, a))) eqn:x; [apply leP in x|apply le_false in x]; lra. }
    split; [lra|]; intros o' [<-|i']; [lra|exact (t o' i')]. }
  destruct os as [|a os]; [destruct i|]; destruct (run os (f (size, a))) as [h t]; cbv zeta in h, t.
  destruct i as [<-|i]; [exact h|exact (t o i)].
Qed.

Lemma least_sum f jobs ds : Forall2 done_by jobs ds -> sum (map (least_of f) jobs) <= sum (map f ds).
Proof.
  induction 1 as [|j d jobs ds h t IH]; simpl; [lra|]; pose proof (least_of_le f j d h); unfold sum in *; lra.
Qed.

(** How much dearer one of them is than the best leaves room for. *)
Lemma least_sum_but f jobs ds j d : Forall2 done_by jobs ds -> In (j, d) (combine jobs ds) ->
  sum (map (least_of f) jobs) + (f d - least_of f j) <= sum (map f ds).
Proof.
  induction 1 as [|j' d' jobs ds h t IH]; [intros []|]; intros [e|i]; simpl.
  - injection e as -> ->; pose proof (least_sum f jobs ds t); unfold sum in *; lra.
  - pose proof (IH i); pose proof (least_of_le f j' d' h); unfold sum in *; lra.
Qed.

Lemma limit_of_kept l k ds : keeps l ds -> keeps_end (how_many k ds) (limit_of l k).
Proof.
  intro h; unfold limit_of; destruct (find _ l) as [[other ends]|] eqn:e.
  - apply find_some in e; destruct e as [i e]; unfold same_kind in e; apply andb_true_iff in e; destruct e as [e1 e2].
    apply Z.eqb_eq in e1; apply N.eqb_eq in e2; destruct k, other; simpl in e1, e2; subst; exact (h _ _ i).
  - split; [|exact I]; simpl. unfold how_many; apply sum_nonneg; intros [size [[j|] c]] _; simpl; [|lra].
    destruct (same_kind _ _); lra.
Qed.

Lemma tolls_paid l ds ts : forall most, keeps l ds -> tolls_at_most l ts = Some most ->
  sum (map (toll_on ts) ds) <= most.
Proof.
  intros most h; revert most; induction ts as [|[k q] ts IH]; simpl; intros most e.
  - injection e as <-; assert (sum (map (toll_on []) ds) == 0) as ->; [|lra].
    rewrite (sum_ext _ (fun _ => 0 * 0)); [rewrite sum_times; ring|]. intros [size [[j|] c]] _; reflexivity.
  - destruct (toll_at_most q (limit_of l k)) as [a|] eqn:ea; [|discriminate].
    destruct (tolls_at_most l ts) as [b|] eqn:eb; [|discriminate]; injection e as <-; rewrite addE.
    pose proof (IH b eq_refl) as rest.
    assert (sum (map (toll_on ((k, q) :: ts)) ds) == q * how_many k ds + sum (map (toll_on ts) ds)) as ->.
    { unfold how_many; rewrite <- sum_times, <- sum_plus; apply sum_ext; intros [size [[j|] c]] _; simpl; [|ring].
      rewrite !fast_sumE; simpl; fold (sum (map (fun '(k, q) => if same_kind k (size, j) then q else 0) ts)).
      destruct (same_kind k (size, j)); ring. }
    assert (q * how_many k ds <= a); [|lra]. clear -ea h.
    destruct (limit_of_kept l k ds h) as [low high]; unfold toll_at_most in ea.
    destruct (nothing q) eqn:z; [apply nothing_true in z; injection ea as <-; rewrite z; lra|].
    destruct (lt 0 q) eqn:p; [apply ltP in p|apply lt_false in p].
    + destruct (snd (limit_of l k)) as [m|]; [|discriminate]; injection ea as <-; rewrite mulE.
      rewrite !(Qmult_comm q); apply Qmult_le_compat_r; lra.
    + injection ea as <-; rewrite mulE; set (n := how_many k ds) in *; set (lo := inject_Z _) in *.
      assert (- q * lo <= - q * n) by (rewrite !(Qmult_comm (- q)); apply Qmult_le_compat_r; lra). lra.
Qed.

Theorem bound_by_tolls_ok r jobs t l ds b : Forall2 done_by jobs ds -> possible r ds -> keeps l ds ->
  (forall there, In there (gpus r) -> (0 <= there)%Z) -> bound_by_tolls r jobs t l = Some b ->
  b <= sum (map cost_of ds) /\
  forall j d, In (j, d) (combine jobs ds) ->
    b + (costs_with t (tolls_by_kind t) d - least_of (costs_with t (tolls_by_kind t)) j) <= sum (map cost_of ds).
Proof.
  intros h [fit used] kept pos; unfold bound_by_tolls, tolled_fine; cbv zeta; set (ts := tolls_by_kind t).
  destruct (same_length _ _) eqn:len; [|discriminate]; apply same_lengthP in len.
  destruct (forallb _ _) eqn:pp; [|discriminate]; rewrite forallb_forall in pp.
  destruct (le 0 (reward t)) eqn:rp; [|discriminate]; apply leP in rp; simpl.
  destruct (tolls_at_most l ts) as [most|] eqn:tm; [|discriminate]; intro e; injection e as <-.
  pose proof (tolls_paid l ds ts most kept tm) as tolled.
  assert (paid : sum (map (pays t ts) ds) == dot (out (map gpus_of ds)) (type_prices t)
    - reward t * sum (map busy ds) + sum (map (toll_on ts) ds)).
  { clear; induction ds as [|[size [[j|] c]] ds IH]; simpl in *; [ring| |].
    - fold (sum (map (pays t ts) ds)) (sum (map busy ds)) (sum (map (toll_on ts) ds)).
      rewrite IH, dot_vadd, dot_vscale, dot_unit, addE, mulE, subE; ring.
    - fold (sum (map (pays t ts) ds)) (sum (map busy ds)) (sum (map (toll_on ts) ds)).
      rewrite IH; ring. }
  assert (room : dot (out (map gpus_of ds)) (type_prices t) <= dot (type_prices t) (map inject_Z (gpus r))).
  { apply dot_fits.
    - rewrite map_length; exact len.
    - intros q i; apply leP, pp, i.
    - intros j lj; rewrite map_length in lj; rewrite nth_out; exact (fit j lj).
    - intros q i; apply in_map_iff in i; destruct i as (z & <- & i); change 0 with (inject_Z 0); rewrite <- Zle_Qle;
        exact (pos z i). }
  assert (earned : reward t * inject_Z (least_used r) <= reward t * sum (map busy ds)).
  { rewrite !(Qmult_comm (reward t)); apply Qmult_le_compat_r; assumption. }
  assert (both : sum (map (costs_with t ts) ds) == sum (map cost_of ds) + sum (map (pays t ts) ds)).
  { rewrite <- sum_plus; apply sum_ext; intros d _; apply addE. }
  split.
  - rewrite addE, !subE, mulE, fast_sumE, fast_dotE; pose proof (least_sum (costs_with t ts) jobs ds h); lra.
  - intros j d i; rewrite addE, !subE, mulE, fast_sumE, fast_dotE.
    pose proof (least_sum_but (costs_with t ts) jobs ds j d h i); lra.
Qed.

(** ** Cases *)

(** Where costs are multiples of a grain, so are their sums: what costs less costs less by the grain. *)
Definition less_than (bound : Q) (grain : option Q) (x : Q) : bool :=
  match grain with Some g => le x (sub bound g) | None => lt x bound end.

Lemma less_down bound grain x y : x <= y -> less_than bound grain y = true -> less_than bound grain x = true.
Proof. unfold less_than; destruct grain; intros h; [rewrite !leP|rewrite !ltP]; lra. Qed.

(** What is left of a job's types in an assignment that costs less. *)
Definition left_of (less : Q -> bool) (root : Q) (f : does -> Q) (j : job) : job :=
  let best := least_of f j in
  (fst j, filter (fun o => less (add root (sub (f (fst j, o)) best))) (snd j)).

Definition most_waiting : N := 1000.
Fixpoint follow (bounded : tolled -> limits -> bool) (cases : list case) (waiting : list limits) : bool :=
  match cases, waiting with
  | [], [] => true
  | Split size j most :: cases, l :: waiting =>
    let ends := limit_of l (size, j) in
    N.leb (N.of_nat (List.length waiting) + 2 + N.of_nat (List.length l)) most_waiting &&
    follow bounded cases (limited l (size, j) (fst ends, Some most)
                            :: limited l (size, j) ((most + 1)%Z, snd ends) :: waiting)
  | Bounded t :: cases, l :: waiting => bounded t l && follow bounded cases waiting
  | _, _ => false
  end.

Definition leaf (r : round) (less : Q -> bool) (jobs : list job) (t : tolled) (l : limits) : bool :=
  match bound_by_tolls r jobs t l with Some b => negb (less b) | None => false end.

Lemma limited_kept l k ends ds : keeps l ds -> keeps_end (how_many k ds) ends -> keeps (limited l k ends) ds.
Proof.
  intros h e k' ends' [i|i]; [injection i as <- <-; exact e|]; apply filter_In in i; exact (h _ _ (proj1 i)).
Qed.

Lemma how_many_whole k ds : exists z, how_many k ds == inject_Z z.
Proof.
  unfold how_many; induction ds as [|[size [[j|] c]] ds [z IH]]; simpl; [exists 0%Z; reflexivity| |].
  - fold (sum (map (is_of k) ds)); destruct (same_kind k (size, j)); [exists (1 + z)%Z|exists z]; rewrite IH;
      rewrite ?inject_Z_plus; [reflexivity|ring].
  - exists z; fold (sum (map (is_of k) ds)); rewrite IH; ring.
Qed.

Lemma follow_ok bounded cases : forall waiting, follow bounded cases waiting = true ->
  forall l ds, In l waiting -> keeps l ds -> exists t l', bounded t l' = true /\ keeps l' ds.
Proof.
  induction cases as [|c cases IH]; intros [|l waiting] e l0 ds i k; try contradiction; try discriminate;
    try (destruct c; discriminate).
  destruct c as [size j most|t]; cbn -[most_waiting limited limit_of] in e; apply andb_true_iff in e;
    destruct e as [e1 e2].
  - destruct i as [<-|i]; [|apply (IH _ e2 l0 ds); [right; right; exact i|exact k]].
    destruct (limit_of_kept l (size, j) ds k) as [low high]; destruct (how_many_whole (size, j) ds) as [z ez].
    destruct (Z_le_gt_dec z most) as [few|more].
    + apply (IH _ e2 (limited l (size, j) (fst (limit_of l (size, j)), Some most)) ds); [left; reflexivity|].
      apply limited_kept; [exact k|]; split; [exact low|]; simpl; rewrite ez, <- Zle_Qle; exact few.
    + apply (IH _ e2 (limited l (size, j) ((most + 1)%Z, snd (limit_of l (size, j)))) ds); [right; left; reflexivity|].
      apply limited_kept; [exact k|]; split; [|exact high]; simpl; rewrite ez, <- Zle_Qle; lia.
  - destruct i as [<-|i]; [exists t, l; split; assumption|exact (IH _ e2 l0 ds i k)].
Qed.

Definition bounded_below (r : round) (bound : Q) (grain : option Q) (root : tolled) (cases : option (list case)) :
  bool :=
  let jobs := jobs_of r in
  let less := less_than bound grain in
  match bound_by_tolls r jobs root [] with
  | None => false
  | Some b =>
    negb (less b) ||
    match cases with
    | None => false
    | Some cases =>
      let ts := tolls_by_kind root in
      follow (leaf r less (map (left_of less b (costs_with root ts)) jobs)) cases [[]]
    end
  end.

Lemma left_done less root f jobs ds : Forall2 done_by jobs ds ->
  (forall j d, In (j, d) (combine jobs ds) -> less (add root (sub (f d) (least_of f j))) = true) ->
  Forall2 done_by (map (left_of less root f) jobs) ds.
Proof.
  induction 1 as [|j d jobs ds h t IH]; intro all; constructor.
  - destruct h as [e i]; split; [exact e|]; simpl; apply filter_In; split; [exact i|].
    specialize (all j d (or_introl eq_refl)); destruct j, d; simpl in *; subst; exact all.
  - apply IH; intros j' d' i; apply all; right; exact i.
Qed.

Lemma bounded_below_ok r bound grain root cases ds : bounded_below r bound grain root cases = true ->
  Forall2 done_by (jobs_of r) ds -> possible r ds -> (forall there, In there (gpus r) -> (0 <= there)%Z) ->
  less_than bound grain (sum (map cost_of ds)) = false.
Proof.
  unfold bounded_below; intros e h fits pos; destruct (bound_by_tolls r (jobs_of r) root []) as [b|] eqn:eb;
    [|discriminate].
  assert (k : keeps [] ds) by (intros ? ? []).
  destruct (bound_by_tolls_ok r _ root [] ds b h fits k pos eb) as [above more].
  apply not_true_iff_false; intro small; pose proof (less_down _ _ _ _ above small) as lb; rewrite lb in e; simpl in e.
  destruct cases as [cases|]; [|discriminate].
  destruct (follow_ok _ _ _ e [] ds (or_introl eq_refl) k) as (t & l & leaf_ok & kept); unfold leaf in leaf_ok.
  destruct (bound_by_tolls r _ t l) as [b'|] eqn:eb'; [|discriminate]; apply negb_true_iff in leaf_ok.
  assert (kept_jobs := left_done (less_than bound grain) b (costs_with root (tolls_by_kind root)) (jobs_of r) ds h).
  destruct (bound_by_tolls_ok r (map (left_of (less_than bound grain) b (costs_with root (tolls_by_kind root)))
    (jobs_of r))
    t l ds b') as [above' _]; try assumption.
  { apply kept_jobs; intros j d i; refine (less_down _ _ _ _ _ small); rewrite addE, subE; exact (more j d i). }
  rewrite (less_down _ _ _ _ above' small) in leaf_ok; discriminate.
Qed.
