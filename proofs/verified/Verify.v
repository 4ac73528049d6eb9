(** * The checker: from the bytes of a file to an answer, and to the line that is printed *)

From Coq Require Import ZArith List String.
From Verified Require Import Syntax Meaning Check Planned Json Decode ReadPlan Reader Printer.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** [Unreadable]: the file is no JSON. [Rejected]: it is no certificate, or proves nothing. [NotCovered]: it is of a kind
    that is not decided here, or has something that this program does not know. *)
Inductive answer :=
| Accepted (s : statement)
| Rejected (why : text)
| Unreadable (why : text)
| NotCovered (what : text).

Definition refused (what : fault) (why : text) : answer :=
  match what with
  | NoCertificate => Rejected (codes "it is not built like a certificate: " ++ why)
  | NotProved => Rejected why
  | Unknown => NotCovered why
  end.

Definition decided (r : result) : answer :=
  match r with
  | Syntax.Accepted s => Accepted s
  | Syntax.Rejected why => Rejected why
  | Syntax.NotCovered what => NotCovered what
  end.

(** A run begins with one of these keys, or has both of those; it comes first in [proofs/verifier], too. *)
Definition is_run (l : fields) : bool := has l "run" || (has l "rounds" && has l "trace").

(** Schedules that cannot be read are no schedules, and prove nothing false. *)
Definition of_schedules (j : json) : answer :=
  match plan_of j with
  | Ok p => decided (check_plan p)
  | Error Unknown what => NotCovered what
  | Error _ why => Unreadable why
  end.

(** A file packed by gzip begins so. *)
Definition packed (bytes : list Z) : bool := match bytes with 31 :: 139 :: _ => true | _ => false end.

(** A run is written as a line for each round, too: of such a file the first line is looked at. *)
Fixpoint first_line (found bytes : list Z) : list Z :=
  match bytes with c :: rest => if c =? newline then rev' found else first_line (c :: found) rest | [] => rev' found end.
Definition no_document (bytes : list Z) (why : text) : answer :=
  match read (first_line [] bytes) with
  | Ok (Obj l) => if is_run l then NotCovered "a run" else Unreadable why
  | _ => Unreadable why
  end.

Definition verify (bytes : list Z) : answer :=
  if packed bytes then NotCovered "a packed file" else
  match read bytes with
  | Error _ why => no_document bytes why
  | Ok (Obj l as j) =>
    if is_run l then NotCovered "a run"
    else if has l "certificate" then
      match certificate_of j with
      | Error what why => refused what why
      | Ok c => decided (check_certificate c)
      end
    else if has l "schedules" then of_schedules j
    else Unreadable "it is no certificate, no run and no schedule"
  | Ok _ => Unreadable "it is no certificate, no run and no schedule"
  end.

(** ** What is printed, and the exit status: the worst of those of all files, by [worse] *)
Definition line (a : answer) : text :=
  match a with
  | Accepted s => codes "accepted: " ++ print s
  | Rejected why => codes "REJECTED: " ++ why
  | Unreadable why => codes "cannot be read: " ++ why
  | NotCovered what => codes "NOT COVERED: " ++ what
  end.

Definition status (a : answer) : Z :=
  match a with Accepted _ => 0 | Rejected _ => 1 | Unreadable _ => 2 | NotCovered _ => 4 end.

(** ** What an answer is worth *)

(** What is accepted is so, whatever the file holds. *)
Theorem verify_sound bytes s : verify bytes = Accepted s -> meaning s.
Proof.
  unfold verify. destruct (packed bytes); [discriminate|].
  destruct (read bytes) as [[| | | | | |l]|what why]; try discriminate.
  2:{ unfold no_document; destruct (read _) as [[| | | | | |l]|]; try discriminate; now destruct (is_run l). }
  destruct (is_run l); [discriminate|].
  destruct (has l "certificate"); [|destruct (has l "schedules"); [|discriminate]].
  - destruct (certificate_of (Obj l)) as [c|what why]; [|now destruct what].
    destruct (check_certificate c) as [s'|why|what] eqn:found; cbn; try discriminate.
    intros [= <-]. exact (check_certificate_sound c s' found).
  - unfold of_schedules. destruct (plan_of (Obj l)) as [p|[] why]; try discriminate.
    destruct (check_plan p) as [s'|why|what] eqn:found; cbn; try discriminate.
    intros [= <-]. exact (check_plan_sound p s' found).
Qed.

(** What is printed after "accepted: " is the statement. *)
Lemma line_accepted bytes s : verify bytes = Accepted s -> line (verify bytes) = codes "accepted: " ++ print s.
Proof. now intros ->. Qed.
