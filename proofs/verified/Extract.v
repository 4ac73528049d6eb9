(** * What runs: the checker in OCaml, with zarith for the integers

    This mapping is trusted: each line says that a type or a function of Coq is one of OCaml, and nothing proves it.
    [integer.ml] has the few functions that zarith has otherwise. *)

From Coq Require Import ZArith QArith Ascii String List.
From Coq Require Extraction ExtrOcamlBasic ExtrOcamlString.
From Verified Require Import Syntax Json Verify.

Extraction Language OCaml.


Extract Inductive positive => "Integer.t" [ "Integer.double_and_one" "Integer.double" "Integer.one" ]
  "Integer.positive_case".
Extract Inductive Z => "Integer.t" [ "Integer.zero" "" "Integer.neg" ] "Integer.integer_case".
Extract Inductive N => "Integer.t" [ "Integer.zero" "" ] "Integer.natural_case".
Extract Inductive nat => "Integer.t" [ "Integer.zero" "Integer.succ" ] "Integer.peano_case".

Extract Inlined Constant Pos.succ => "Integer.succ".
Extract Inlined Constant Pos.add => "Integer.add".
Extract Inlined Constant Pos.mul => "Integer.mul".
Extract Inlined Constant Pos.eqb => "Integer.equal".
Extract Inlined Constant Pos.leb => "Integer.leq".
Extract Inlined Constant Pos.ltb => "Integer.lt".
Extract Constant Pos.compare => "(fun a b -> Integer.compared Eq Lt Gt a b)".
Extract Inlined Constant Pos.gcd => "Integer.gcd".

Extract Inlined Constant Z.add => "Integer.add".
Extract Inlined Constant Z.sub => "Integer.sub".
Extract Inlined Constant Z.mul => "Integer.mul".
Extract Inlined Constant Z.opp => "Integer.neg".
Extract Inlined Constant Z.abs => "Integer.abs".
Extract Inlined Constant Z.succ => "Integer.succ".
Extract Inlined Constant Z.pred => "Integer.pred".
Extract Inlined Constant Z.eqb => "Integer.equal".
Extract Inlined Constant Z.leb => "Integer.leq".
Extract Inlined Constant Z.ltb => "Integer.lt".
Extract Inlined Constant Z.geb => "Integer.geq".
Extract Inlined Constant Z.gtb => "Integer.gt".
Extract Inlined Constant Z.min => "Integer.min".
Extract Inlined Constant Z.max => "Integer.max".
Extract Constant Z.compare => "(fun a b -> Integer.compared Eq Lt Gt a b)".
Extract Constant Z.sgn => "(fun a -> Integer.of_int (Integer.sign a))".
Extract Inlined Constant Z.div_eucl => "Integer.div_floor".
Extract Constant Z.div => "(fun a b -> fst (Integer.div_floor a b))".
Extract Constant Z.modulo => "(fun a b -> snd (Integer.div_floor a b))".
Extract Inlined Constant Z.gcd => "Integer.gcd".
Extract Inlined Constant Z.ggcd => "Integer.reduced".
Extract Inlined Constant Z.land => "Integer.logand".
Extract Inlined Constant Z.lor => "Integer.logor".
Extract Inlined Constant Z.lxor => "Integer.logxor".
Extract Inlined Constant Z.shiftl => "Integer.shift".
Extract Constant Z.shiftr => "(fun a n -> Integer.shift a (Integer.neg n))".
Extract Constant Z.log2 => "Integer.log2".
Extract Constant Z.to_nat => "(Integer.max Integer.zero)".
Extract Constant Z.of_nat => "(fun n -> n)".
Extract Constant Z.to_N => "(Integer.max Integer.zero)".
Extract Constant Z.of_N => "(fun n -> n)".
Extract Constant N.to_nat => "(fun n -> n)".
Extract Constant N.of_nat => "(fun n -> n)".
Extract Constant Pos.to_nat => "(fun n -> n)".
Extract Constant Pos.of_succ_nat => "Integer.succ".
Extract Constant Z.to_pos => "(Integer.max Integer.one)".

Extract Inlined Constant Nat.add => "Integer.add".
Extract Inlined Constant Nat.mul => "Integer.mul".
Extract Inlined Constant Nat.eqb => "Integer.equal".
Extract Inlined Constant Nat.leb => "Integer.leq".
Extract Inlined Constant Nat.ltb => "Integer.lt".

Extraction "build/checker.ml" verify line status codes.
