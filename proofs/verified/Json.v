(** * From the bytes of a file to a JSON value

    The reader is an automaton that looks at each byte once: [read] is a fold over the bytes, so it always ends, and
    takes as many steps as the file has bytes, but for the keys of an object, which are sorted.  A byte is a number from 0
    to 255; a string is the list of its code points.  What is refused is what [proofs/verifier/reading.py] refuses: what
    is no JSON, text that is no UTF-8, a key that stands twice in an object, integers of more than 4,000 characters that
    are no string, deep nesting. *)

From Coq Require Import ZArith List String Ascii Bool Lia.
From Verified Require Import Syntax ReadKeys.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

(** A number with a point or an exponent is no exact number, and no certificate may hold one; a schedule may: the float
    that is nearest to digits times a power of ten.  None: it has too many digits, or is no number. *)
Inductive json :=
| Null
| Bool (b : bool)
| Int (z : Z)
| Float (digits : option (Z * Z))
| Str (s : text)
| Arr (l : list json)
| Obj (l : list (text * json)).

(** Why nothing is proved: the file is no certificate; it does not prove what it states; or it may well prove it, and this
    program does not know the kind, or something in it. *)
Inductive fault := NoCertificate | NotProved | Unknown.

(** What is computed, or why it is not. *)
Inductive outcome (A : Type) :=
| Ok (a : A)
| Error (what : fault) (why : text).
Arguments Ok {A} a.
Arguments Error {A} what why.

Definition bind {A B : Type} (r : outcome A) (f : A -> outcome B) : outcome B :=
  match r with Ok a => f a | Error what why => Error what why end.
Notation "'let*' x := r 'in' e" := (bind r (fun x => e)) (at level 200, x pattern, r at level 100, e at level 200).

Fixpoint codes (s : string) : text :=
  match s with
  | EmptyString => []
  | String a rest => Z.of_N (N_of_ascii a) :: codes rest
  end.
Coercion codes : string >-> text.

Fixpoint same (a b : text) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => (x =? y) && same a b
  | _, _ => false
  end.

Lemma sameP a b : same a b = true <-> a = b.
Proof.
  revert b; induction a as [|x a IH]; intros [|y b]; simpl; split; try easy.
  - rewrite andb_true_iff, Z.eqb_eq, IH. intros [-> ->]. reflexivity.
  - intros [= -> ->]. rewrite andb_true_iff, Z.eqb_eq, IH. auto.
Qed.

Definition member (x : text) (l : list text) : bool := existsb (same x) l.

Lemma memberP x l : member x l = true <-> In x l.
Proof.
  unfold member. rewrite existsb_exists. split.
  - intros [y [Hy e]]. apply sameP in e. now subst.
  - intros H. exists x. split; [easy|]. now apply sameP.
Qed.

Fixpoint distinct (l : list text) : bool :=
  match l with
  | [] => true
  | x :: rest => negb (member x rest) && distinct rest
  end.

Lemma distinctP l : distinct l = true <-> NoDup l.
Proof.
  induction l as [|x l IH]; simpl.
  - split; [intros; constructor | easy].
  - rewrite andb_true_iff, negb_true_iff, IH. split.
    + intros [H D]. constructor; [|easy]. rewrite <- memberP. now rewrite H.
    + intros D. inversion D as [|? ? H D']. split; [|easy].
      destruct (member x l) eqn:e; [|easy]. apply memberP in e. easy.
Qed.

(** ** Limits *)
Definition most_plain_digits : Z := 4000.
Definition most_depth : Z := 900.

(** ** Bytes and numbers by name: the program makes each of them once *)
Definition space : Z := 32.
Definition newline : Z := 10.
Definition return_ : Z := 13.
Definition tab : Z := 9.
Definition zero : Z := 48.
Definition nine : Z := 57.
Definition small_n : Z := 110.
Definition small_t : Z := 116. Definition small_f : Z := 102.
Definition large_n : Z := 78. Definition large_i : Z := 73.
Definition quote : Z := 34.
Definition left_bracket : Z := 91.
Definition left_brace : Z := 123.
Definition minus_sign : Z := 45.
Definition right_bracket : Z := 93.
Definition comma : Z := 44.
Definition right_brace : Z := 125.
Definition point : Z := 46.
Definition small_e : Z := 101.
Definition large_e : Z := 69.
Definition plus_sign : Z := 43.
Definition small_a : Z := 97. Definition large_a : Z := 65.
Definition large_f : Z := 70.
Definition xDC00 : Z := 56320. Definition xD800 : Z := 55296.
Definition xDFFF : Z := 57343.
Definition x10000 : Z := 65536.
Definition x400 : Z := 1024.
Definition xDBFF : Z := 56319.
Definition backslash : Z := 92.
Definition slash : Z := 47.
Definition small_b : Z := 98.
Definition small_r : Z := 114.
Definition x80 : Z := 128. Definition xC2 : Z := 194.
Definition xE0 : Z := 224. Definition xC0 : Z := 192.
Definition xF0 : Z := 240. Definition x800 : Z := 2048.
Definition xF5 : Z := 245.
Definition small_u : Z := 117.
Definition sixteen : Z := 16.
Definition sixty_four : Z := 64.
Definition x10FFFF : Z := 1114111.
Definition colon : Z := 58.

(** ** The automaton *)

(** Where in a string: in plain text; after a backslash; in the four digits after "\u", where [high] is the first half
    of a surrogate pair that waits for the second; in a character of several bytes, of which [due] are to come. *)
Inductive in_string :=
| Plain
| Escape
| Digits (due : Z) (value : Z)
| Bytes (due : Z) (value : Z) (least : Z).

(** Where in a number; the last four are those of one with a point or an exponent; [Huge] has too many digits if it is
    none of these. *)
Inductive in_number :=
  Minus | Zero | Whole | Huge | Point | Fractional (scale : Z) | Exponent (scale : Z) | Sign (scale : Z) (minus : bool)
| Power (scale : Z) (minus : bool) (power : Z).

Inductive mode :=
| Value (empty : bool)                     (* a value is due; where [empty], the list may end instead *)
| Key (empty : bool)                       (* a key is due; where [empty], the object may end instead *)
| Colon (key : text)
| After                                    (* a comma is due, or the end of the list or object *)
| InString (key : bool) (rev : text) (at_ : in_string)
| InNumber (minus : bool) (at_ : in_number) (value : Z) (length : Z)
| InWord (due : text) (v : json)
| Done (v : json).

(** Lists and objects that are open, the innermost first, with what they hold so far, the last first. *)
Inductive frame :=
| OpenArr (held : list json)
| OpenObj (held : list (text * json)) (key : text).

Inductive state :=
| At (stack : list frame) (depth : Z) (m : mode)
| Failed (why : text).

Definition blank (c : Z) : bool := (c =? space) || (c =? newline) || (c =? return_) || (c =? tab).
Definition digit (c : Z) : bool := (zero <=? c) && (c <=? nine).

(** A value is complete: it goes into what is open. *)
Definition complete (stack : list frame) (depth : Z) (v : json) : state :=
  match stack with
  | [] => At [] depth (Done v)
  | OpenArr held :: rest => At (OpenArr (v :: held) :: rest) depth After
  | OpenObj held key :: rest => At (OpenObj ((key, v) :: held) [] :: rest) depth After
  end.

Definition open (stack : list frame) (depth : Z) (f : frame) (m : mode) : state :=
  if depth <? most_depth then At (f :: stack) (depth + 1) m
  else Failed "lists and objects are nested too deeply".

Definition close_object (rest : list frame) (depth : Z) (held : list (text * json)) : state :=
  if no_key_twice (map fst held) then complete rest (depth - 1) (Obj (rev' held))
  else Failed "a key stands twice in an object".

Definition word (c : Z) : option (text * json) :=
  if c =? small_n then Some (codes "ull", Null)
  else if c =? small_t then Some (codes "rue", Bool true)
  else if c =? small_f then Some (codes "alse", Bool false)
  else if c =? large_n then Some (codes "aN", Float None)
  else if c =? large_i then Some (codes "nfinity", Float None)
  else None.

Definition not_json : text := codes "not JSON that can be read".

Definition begin (stack : list frame) (depth : Z) (empty : bool) (c : Z) : state :=
  if c =? quote then At stack depth (InString false [] Plain)
  else if c =? left_bracket then open stack depth (OpenArr []) (Value true)
  else if c =? left_brace then open stack depth (OpenObj [] []) (Key true)
  else if c =? minus_sign then At stack depth (InNumber true Minus 0 1)
  else if c =? zero then At stack depth (InNumber false Zero 0 1)
  else if digit c then At stack depth (InNumber false Whole (c - zero) 1)
  else match word c with
       | Some (due, v) => At stack depth (InWord due v)
       | None =>
         if empty && (c =? right_bracket) then
           match stack with
           | OpenArr [] :: rest => complete rest (depth - 1) (Arr [])
           | _ => Failed not_json
           end
         else Failed not_json
       end.

Definition after (stack : list frame) (depth : Z) (c : Z) : state :=
  if blank c then At stack depth After
  else match stack with
       | OpenArr held :: rest =>
         if c =? comma then At stack depth (Value false)
         else if c =? right_bracket then complete rest (depth - 1) (Arr (rev' held))
         else Failed not_json
       | OpenObj held _ :: rest =>
         if c =? comma then At stack depth (Key false)
         else if c =? right_brace then close_object rest depth held
         else Failed not_json
       | [] => Failed not_json
       end.

(** What stands after a value, whatever is open: the byte that ends a number is looked at here. *)
Definition beyond (s : state) (c : Z) : state :=
  match s with
  | At stack depth After => after stack depth c
  | At stack depth (Done v) => if blank c then s else Failed not_json
  | _ => s
  end.

Definition number_ends (stack : list frame) (depth : Z) (v : json) (c : Z) : state :=
  beyond (complete stack depth v) c.

(** Digits of a float, below 0 once there are too many; and its exponent, which is beyond all floats at the most. *)
Definition most_float_digits : Z := 800.
Definition most_power : Z := 100000.
Definition grown (value length d : Z) : Z :=
  if (value <? 0) || (most_float_digits <? length) then -1 else value * newline + d.
Definition float_of (minus : bool) (value scale : Z) (down : bool) (power : Z) : json :=
  if value <? 0 then Float None
  else Float (Some (if minus then - value else value, (if down then - power else power) - scale)).

Definition in_number_step (stack : list frame) (depth : Z) (minus : bool) (n : in_number) (value length c : Z) : state :=
  let next n value := At stack depth (InNumber minus n value (length + 1)) in
  let point_or_end v :=
    if c =? point then next Point value
    else if (c =? small_e) || (c =? large_e) then next (Exponent 0) value
    else number_ends stack depth v c in
  let fractional scale := next (Fractional (scale + 1)) (grown value length (c - zero)) in
  let power scale down power := next (Power scale down (Z.min most_power (power * newline + (c - zero)))) value in
  match n with
  | Minus =>
    if c =? zero then next Zero 0
    else if digit c then next Whole (c - zero)
    else if c =? large_i then At stack depth (InWord (codes "nfinity") (Float None))
    else Failed not_json
  | Zero => point_or_end (Int 0)
  | Whole =>
    if digit c then if length <? most_plain_digits then next Whole (value * newline + (c - zero)) else next Huge (-1)
    else point_or_end (Int (if minus then - value else value))
  | Huge =>
    if digit c then next Huge (-1)
    else if c =? point then next Point (-1)
    else if (c =? small_e) || (c =? large_e) then next (Exponent 0) (-1)
    else Failed "an integer that is no string has too many digits"
  | Point => if digit c then fractional 0 else Failed not_json
  | Fractional scale =>
    if digit c then fractional scale
    else if (c =? small_e) || (c =? large_e) then next (Exponent scale) value
    else number_ends stack depth (float_of minus value scale false 0) c
  | Exponent scale =>
    if (c =? plus_sign) || (c =? minus_sign) then next (Sign scale (c =? minus_sign)) value
    else if digit c then power scale false 0 else Failed not_json
  | Sign scale down => if digit c then power scale down 0 else Failed not_json
  | Power scale down so_far =>
    if digit c then power scale down so_far
    else number_ends stack depth (float_of minus value scale down so_far) c
  end.

Definition hex (c : Z) : option Z :=
  if digit c then Some (c - zero)
  else if (small_a <=? c) && (c <=? small_f) then Some (c - 87)
  else if (large_a <=? c) && (c <=? large_f) then Some (c - 55)
  else None.

(** A character that was written as "\u" and four digits; the second half of a surrogate pair joins the first. *)
Definition joined (rev : text) (c : Z) : text :=
  match rev with
  | h :: rest =>
    if (- xDC00 <=? h) && (h <=? -xD800) && (xDC00 <=? c) && (c <=? xDFFF)
    then (x10000 + (- h - xD800) * x400 + (c - xDC00)) :: rest
    else if (xD800 <=? c) && (c <=? xDBFF) then - c :: rev else c :: rev
  | [] => if (xD800 <=? c) && (c <=? xDBFF) then [- c] else [c]
  end.

(** The first half of a pair waits as a negative number; alone, it is itself. *)
Definition settled (rev : text) : text := rev_append (map Z.abs rev) [].

Definition escaped (c : Z) : option Z :=
  if (c =? quote) || (c =? backslash) || (c =? slash) then Some c
  else if c =? small_b then Some 8
  else if c =? small_f then Some 12
  else if c =? small_n then Some newline
  else if c =? small_r then Some return_
  else if c =? small_t then Some tab
  else None.

Definition not_utf8 : text := codes "it is not UTF-8".

Definition in_string_step (stack : list frame) (depth : Z) (key : bool) (rev : text) (s : in_string) (c : Z) : state :=
  let next rev s := At stack depth (InString key rev s) in
  match s with
  | Plain =>
    if c =? quote then
      if key then At stack depth (Colon (settled rev)) else complete stack depth (Str (settled rev))
    else if c =? backslash then next rev Escape
    else if c <? space then Failed not_json
    else if c <? x80 then next (c :: rev) Plain
    else if c <? xC2 then Failed not_utf8
    else if c <? xE0 then next rev (Bytes 1 (c - xC0) x80)
    else if c <? xF0 then next rev (Bytes 2 (c - xE0) x800)
    else if c <? xF5 then next rev (Bytes 3 (c - xF0) x10000)
    else Failed not_utf8
  | Escape =>
    if c =? small_u then next rev (Digits 4 0)
    else match escaped c with Some e => next (e :: rev) Plain | None => Failed not_json end
  | Digits due value =>
    match hex c with
    | Some d =>
      let value := value * sixteen + d in
      if due =? 1 then next (joined rev value) Plain else next rev (Digits (due - 1) value)
    | None => Failed not_json
    end
  | Bytes due value least =>
    if (x80 <=? c) && (c <? xC0) then
      let value := value * sixty_four + (c - x80) in
      if due =? 1 then
        if (value <? least) || (x10FFFF <? value) || ((xD800 <=? value) && (value <=? xDFFF)) then Failed not_utf8
        else next (value :: rev) Plain
      else next rev (Bytes (due - 1) value least)
    else Failed not_utf8
  end.

Definition step (s : state) (c : Z) : state :=
  match s with
  | Failed _ => s
  | At stack depth m =>
    match m with
    | Value empty => if blank c then s else begin stack depth empty c
    | Key empty =>
      if blank c then s
      else if c =? quote then At stack depth (InString true [] Plain)
      else match stack with
           | OpenObj [] _ :: rest =>
             if empty && (c =? right_brace) then complete rest (depth - 1) (Obj []) else Failed not_json
           | _ => Failed not_json
           end
    | Colon key =>
      if blank c then s
      else if c =? colon then
        match stack with
        | OpenObj held _ :: rest => At (OpenObj held key :: rest) depth (Value false)
        | _ => Failed not_json
        end
      else Failed not_json
    | After => after stack depth c
    | InString key rev at_ => in_string_step stack depth key rev at_ c
    | InNumber minus n value length => in_number_step stack depth minus n value length c
    | InWord due v =>
      match due with
      | [] => beyond (complete stack depth v) c
      | x :: due =>
        if c =? x then match due with [] => complete stack depth v | _ => At stack depth (InWord due v) end
        else Failed not_json
      end
    | Done v => if blank c then s else Failed not_json
    end
  end.

Definition start : state := At [] 0 (Value false).

(** The loop stops where a byte is refused. *)
Fixpoint run (s : state) (bytes : list Z) : state :=
  match bytes with
  | [] => s
  | c :: rest => match s with Failed _ => s | _ => run (step s c) rest end
  end.

(** The end of the file is looked at as a blank: it ends a number. *)
Definition read (bytes : list Z) : outcome json :=
  match step (run start bytes) space with
  | At _ _ (Done v) => Ok v
  | At _ _ _ => Error NoCertificate (codes "not JSON that can be read: it breaks off")
  | Failed why => Error NoCertificate why
  end.
