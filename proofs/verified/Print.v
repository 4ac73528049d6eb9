(** * What is printed: numbers, names, tables, markets, with the same words as [proofs/verifier] *)

From Coq Require Import ZArith QArith Qreduction List String Bool.
From Verified Require Import Syntax Json Numbers Sha256.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition join (between : text) (l : list text) : text :=
  match l with
  | [] => []
  | first :: rest => first ++ flat_map (fun each => between ++ each) rest
  end.

Definition commas : list text -> text := join (codes ", ").

(** ** Numbers for print: exactly where they are short, else rounded, with the number of their digits *)
Definition most_shown_bits : Z := 400.
Definition bit_length (z : Z) : Z := if z =? 0 then 0 else Z.log2 (Z.abs z) + 1.

(** The integer nearest to a / b, of two as near the even one. *)
Definition nearest (a b : Z) : Z :=
  let '(q, r) := Z.div_eucl a b in
  match 2 * r ?= b with
  | Lt => q
  | Gt => q + 1
  | Eq => if Z.even q then q else q + 1
  end.

Definition ten_to (n : Z) : Z := Z.pow 10 n.

(** a / b, which is positive, to 53 bits as a float has them, times 10 ^ 9, as the nearest integer. *)
Definition billionths (a b : Z) : Z :=
  let about := Z.log2 a - Z.log2 b in
  let below := if about <? 0 then a * 2 ^ (- about) <? b else a <? b * 2 ^ about in
  let e := (if below then about - 1 else about) - 52 in
  let m := if e <? 0 then nearest (a * 2 ^ (- e)) b else nearest a (b * 2 ^ e) in
  if e <? 0 then nearest (m * ten_to 9) (2 ^ (- e)) else m * ten_to 9 * 2 ^ e.

Definition padded (width : nat) (s : text) : text := repeat 48 (width - List.length s) ++ s.

Definition rounded (num : Z) (den : positive) : text :=
  let exponent := (bit_length num - bit_length (Zpos den)) * 30103 / 100000 in
  let a := Z.abs num * (if exponent <? 0 then ten_to (- exponent) else 1) in
  let b := Zpos den * (if exponent <? 0 then 1 else ten_to exponent) in
  let n := billionths a b in
  let bits := Z.max (bit_length num) (bit_length (Zpos den)) in
  codes "about " ++ (if num <? 0 then codes "-" else []) ++ natural (n / ten_to 9) ++ codes "."
    ++ padded 9 (natural (n mod ten_to 9)) ++ codes "e" ++ decimal exponent
    ++ codes " (" ++ natural (bits * 30103 / 100000 + 1) ++ codes " digits)".

Definition shown (q : Q) : text :=
  let q := Qred q in
  if Z.max (bit_length (Qnum q)) (bit_length (Zpos (Qden q))) <=? most_shown_bits then exactly q
  else rounded (Qnum q) (Qden q).

(** ** Names, rows, tables *)

(** The hexadecimal digits of a number, so many of them. *)
Definition in_hex (count : nat) (x : Z) : text :=
  map (fun i => hex_digit (Z.land (Z.shiftr x (4 * Z.of_nat i)) 15)) (rev (seq 0 count)).

(** A character as it is printed: beyond ASCII by its number. *)
Definition in_ascii (c : Z) : text :=
  if c <? 127 then [c]
  else if c <? 256 then backslash :: 120 :: in_hex 2 c
  else if c <? 65536 then backslash :: 117 :: in_hex 4 c
  else backslash :: 85 :: in_hex 8 c.

(** A name in quotes, as Python writes it: in double ones where only single ones stand in it. *)
Definition quoted (s : text) : text :=
  let with_ := if existsb (Z.eqb 39) s && negb (existsb (Z.eqb quote) s) then quote else 39 in
  with_ :: flat_map (fun c => if (c =? with_) || (c =? backslash) then [backslash; c] else in_ascii c) s ++ [with_].

Definition row_shown (row : list Q) : text := codes "(" ++ commas (map shown row) ++ codes ")".

Definition most_shown : Z := 12.
Definition size {A : Type} (l : list A) : Z := Z.of_nat (List.length l).

(** ** What is digested: JSON without blanks *)
Definition json_list (l : list text) : text := codes "[" ++ join [comma] l ++ codes "]".
(** Control characters by a letter where they have one; these and all beyond ASCII by their numbers in UTF-16. *)
Definition json_character (c : Z) : text :=
  if (c =? quote) || (c =? backslash) then [backslash; c]
  else if c =? 8 then [backslash; small_b]
  else if c =? tab then [backslash; small_t]
  else if c =? newline then [backslash; small_n]
  else if c =? 12 then [backslash; small_f]
  else if c =? return_ then [backslash; small_r]
  else if c <? space then backslash :: 117 :: in_hex 4 c
  else if c <? 127 then [c]
  else if c <? 65536 then backslash :: 117 :: in_hex 4 c
  else backslash :: 117 :: in_hex 4 (55296 + (c - 65536) / 1024) ++ backslash :: 117 :: in_hex 4 (56320 + c mod 1024).
Definition json_string (s : text) : text := quote :: flat_map json_character s ++ [quote].
Definition json_number (q : Q) : text := json_string (exactly (Qred q)).
Definition json_or_null (q : option Q) : text := match q with Some q => json_number q | None => codes "null" end.
Definition json_row (row : list Q) : text := json_list (map json_number row).
Definition json_bool (b : bool) : text := if b then codes "true" else codes "false".

Definition digest_of (t : list (list Q)) : text :=
  codes "of digest " ++ digest (json_list [json_string (codes "table"); json_list (map json_row t)]).

Definition columns_of (t : list (list Q)) : Z := match t with row :: _ => size row | [] => 0 end.

Definition table_shown (t : list (list Q)) : text :=
  if size t * columns_of t <=? most_shown then commas (map row_shown t) else digest_of t.

Definition plural (n : Z) (what : text) : text := natural n ++ codes " " ++ what.
