#!/usr/bin/env bash
# Compile the checker and its theorem, one line a theorem with what it rests on, and build the program: build/verify.
set -euo pipefail
cd "$(dirname "$0")"

packages=(ocaml-findlib ocaml libzarith-ocaml-dev)
ready() { command -v ocamlfind >/dev/null && ocamlfind query zarith >/dev/null 2>&1 && command -v ocamlopt >/dev/null; }
if ! ready; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
  fi
  if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
    echo "it needs OCaml and zarith; on Debian 12, as root: apt-get install ${packages[*]}" >&2
    exit 1
  fi
  echo "installing ${packages[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

[ -e build/checker.ml ] || rm -f Extract.vo # which writes it when it is compiled
../theorems/check.sh ../verified Verified

# beside what Coq has written stands what is not proved: integers of zarith, and a main program
cp integer.ml main.ml build
cd build
ulimit -s unlimited 2>/dev/null || true # tables make deep terms, for the compiler too
ocamlfind ocamlopt -O3 -w -a -package zarith,unix -linkpkg integer.ml checker.mli checker.ml main.ml -o verify.new
mv verify.new verify
