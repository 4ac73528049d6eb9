(** * SHA-256 (FIPS 180-4), by which markets and programs are named

    Nothing is proved of it but that it gives the digests of the standard's examples; a statement holds what it speaks of
    in full, and the digest is a name for it in print. *)

From Coq Require Import ZArith List String.
From Verified Require Import Syntax Json.
Import ListNotations.
Local Open Scope string_scope.
Local Open Scope list_scope.
Local Open Scope Z_scope.

Definition mask : Z := 4294967295.
Definition add32 (a b : Z) : Z := Z.land (a + b) mask.
Definition rotated (n x : Z) : Z := Z.lor (Z.shiftr x n) (Z.land (Z.shiftl x (32 - n)) mask).

Definition constants : list Z := [
  1116352408; 1899447441; 3049323471; 3921009573; 961987163; 1508970993; 2453635748; 2870763221;
  3624381080; 310598401; 607225278; 1426881987; 1925078388; 2162078206; 2614888103; 3248222580;
  3835390401; 4022224774; 264347078; 604807628; 770255983; 1249150122; 1555081692; 1996064986;
  2554220882; 2821834349; 2952996808; 3210313671; 3336571891; 3584528711; 113926993; 338241895;
  666307205; 773529912; 1294757372; 1396182291; 1695183700; 1986661051; 2177026350; 2456956037;
  2730485921; 2820302411; 3259730800; 3345764771; 3516065817; 3600352804; 4094571909; 275423344;
  430227734; 506948616; 659060556; 883997877; 958139571; 1322822218; 1537002063; 1747873779;
  1955562222; 2024104815; 2227730452; 2361852424; 2428436474; 2756734187; 3204031479; 3329325298].

Definition first_state : list Z := [1779033703; 3144134277; 1013904242; 2773480762; 1359893119; 2600822924; 528734635; 1541459225].

(** The 64 words of a block from its 16, the last first; [older] are those that came before, the last first. *)
Fixpoint schedule (count : nat) (words : list Z) : list Z :=
  match count with
  | O => words
  | S count =>
    match words with
    | w1 :: w2 :: w3 :: w4 :: w5 :: w6 :: w7 :: w8 :: w9 :: w10 :: w11 :: w12 :: w13 :: w14 :: w15 :: w16 :: _ =>
      let s0 := Z.lxor (Z.lxor (rotated 7 w15) (rotated 18 w15)) (Z.shiftr w15 3) in
      let s1 := Z.lxor (Z.lxor (rotated 17 w2) (rotated 19 w2)) (Z.shiftr w2 10) in
      schedule count (Z.land (w16 + s0 + w7 + s1) mask :: words)
    | _ => words
    end
  end.

Fixpoint rounds (ks ws : list Z) (a b c d e f g h : Z) : list Z :=
  match ks, ws with
  | k :: ks, w :: ws =>
    let s1 := Z.lxor (Z.lxor (rotated 6 e) (rotated 11 e)) (rotated 25 e) in
    let ch := Z.lxor (Z.land e f) (Z.land (mask - e) g) in
    let t1 := h + s1 + ch + k + w in
    let s0 := Z.lxor (Z.lxor (rotated 2 a) (rotated 13 a)) (rotated 22 a) in
    let maj := Z.lxor (Z.lxor (Z.land a b) (Z.land a c)) (Z.land b c) in
    rounds ks ws (add32 t1 (s0 + maj)) a b c (add32 d t1) e f g
  | _, _ => [a; b; c; d; e; f; g; h]
  end.

Definition block (state words : list Z) : list Z :=
  match state with
  | [a; b; c; d; e; f; g; h] =>
    map (fun '(x, y) => add32 x y) (combine state (rounds constants (rev (schedule 48 words)) a b c d e f g h))
  | _ => state
  end.

(** Bytes come one at a time: [word] is what there is of a word of four, [words] are those of the block, last first. *)
Record hashing := Hashing { hash : list Z; words : list Z; have : Z; word : Z; bytes_in : Z; total : Z }.

Definition put (s : hashing) (byte : Z) : hashing :=
  let 'Hashing hash words have word bytes_in total := s in
  let word := word * 256 + byte in
  if bytes_in =? 3 then
    if have =? 15 then Hashing (block hash (word :: words)) [] 0 0 0 (total + 1)
    else Hashing hash (word :: words) (have + 1) 0 0 (total + 1)
  else Hashing hash words have word (bytes_in + 1) (total + 1).

Definition bytes_of (count : nat) (x : Z) : list Z :=
  map (fun i => Z.land (Z.shiftr x (8 * Z.of_nat i)) 255) (rev (seq 0 count)).

Definition zeros (n : Z) : list Z := repeat 0 (Z.to_nat n).

(** The digest, as eight words. *)
Definition sha256 (message : list Z) : list Z :=
  let s := fold_left put message (Hashing first_state [] 0 0 0 0) in
  let padding := 128 :: zeros ((55 - total s) mod 64) ++ bytes_of 8 (8 * total s) in
  hash (fold_left put padding s).

Definition hex_digit (x : Z) : Z := if x <? 10 then 48 + x else 87 + x.

(** The first 128 bits in hexadecimal digits. *)
Definition digest (message : list Z) : text :=
  flat_map (fun byte => [hex_digit (Z.shiftr byte 4); hex_digit (Z.land byte 15)])
    (flat_map (bytes_of 4) (firstn 4 (sha256 message))).

(** The examples of the standard (FIPS 180-4, one block and two), and of no bytes. *)
Example digest_of_abc : digest (codes "abc") = codes "ba7816bf8f01cfea414140de5dae2223".
Proof. vm_compute. reflexivity. Qed.
Example digest_of_two_blocks :
  digest (codes "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") = codes "248d6a61d20638b8e5c026930c3e6039".
Proof. vm_compute. reflexivity. Qed.
Example digest_of_nothing : digest [] = codes "e3b0c44298fc1c149afbf4c8996fb924".
Proof. vm_compute. reflexivity. Qed.
