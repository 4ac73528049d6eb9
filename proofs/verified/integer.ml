(* The integers of the program: those of zarith, and the few functions that Coq has otherwise. Trusted, see Extract.v. *)
include Z

let double a = shift_left a 1
let double_and_one a = succ (double a)
let positive_case odd even one_ a =
  if equal a one then one_ () else if testbit a 0 then odd (shift_right a 1) else even (shift_right a 1)
let integer_case zero_ positive negative a =
  let s = sign a in if Stdlib.(s = 0) then zero_ () else if Stdlib.(s > 0) then positive a else negative (neg a)
let natural_case zero_ positive a = if Stdlib.(sign a = 0) then zero_ () else positive a
let peano_case zero_ more a = if Stdlib.(sign a = 0) then zero_ () else more (pred a)
let compared eq lt gt a b = let c = compare a b in if Stdlib.(c = 0) then eq else if Stdlib.(c < 0) then lt else gt

(* In Coq the quotient is rounded down, that by zero is zero, and the remainder is what is left. *)
let div_floor a b = if Stdlib.(sign b = 0) then (zero, a) else let q = fdiv a b in (q, sub a (mul b q))

(* The greatest common divisor, and the two numbers divided by it. *)
let reduced a b =
  let g = gcd a b in if Stdlib.(sign g = 0) then (g, (zero, zero)) else (g, (divexact a g, divexact b g))
let shift a n = let n = to_int n in if Stdlib.(n >= 0) then shift_left a n else shift_right a Stdlib.(- n)
let log2 a = if Stdlib.(sign a <= 0) then zero else of_int Stdlib.(numbits a - 1)
