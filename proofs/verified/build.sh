#!/usr/bin/env bash
# Compile the checker and its theorem, one line a theorem with what it rests on, and build the program: build/verify.
set -euo pipefail
cd "$(dirname "$0")"

# shellcheck source=proofs/packages.sh
. ../packages.sh
ready() { command -v ocamlfind >/dev/null && ocamlfind query zarith >/dev/null 2>&1 && command -v ocamlopt >/dev/null; }
ready || install_packages "OCaml and zarith" ocaml-findlib ocaml libzarith-ocaml-dev

[ -e build/checker.ml ] || rm -f Extract.vo # which writes it when it is compiled
../theorems/check.sh ../verified Verified

# beside what Coq has written stands what is not proved: integers of zarith, and a main program
cp integer.ml main.ml build
cd build
ulimit -s unlimited 2>/dev/null || true # tables make deep terms, for the compiler too
ocamlfind ocamlopt -O3 -w -a -package zarith,unix -linkpkg integer.ml checker.mli checker.ml main.ml -o verify.new
mv verify.new verify
