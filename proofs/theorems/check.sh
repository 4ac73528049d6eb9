#!/usr/bin/env bash
# Compile every theorem, then ask Coq what each rests on; one line a theorem; fails if one rests on an axiom.
# Of this folder, or of another beside it and its library: check.sh ../verified Verified.
set -euo pipefail
cd "$(dirname "$0")/${1:-.}"
# shellcheck source=proofs/packages.sh
. ../packages.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

ready() { # whether Coq and the libraries are there
  echo 'From mathcomp Require all_ssreflect all_algebra ring.' >"$scratch/ready.v"
  command -v coqtop >/dev/null && coqtop -q -batch -l "$scratch/ready.v" >"$scratch/ready.log" 2>&1
}

if ! ready; then
  install_packages "Coq 8.16 and mathcomp" \
    coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics
  ready || { cat "$scratch/ready.log" >&2; exit 1; }
fi

# a file that is not named in _CoqProject would not be checked
if [ "$(printf '%s\n' *.v | sort)" != "$(grep '\.v$' _CoqProject | sort)" ]; then
  echo "_CoqProject does not name the same files as there are here" >&2
  exit 1
fi
if grep -q '^-R \.\./theorems ' _CoqProject; then # it stands on these definitions
  (cd ../theorems && coq_makefile -f _CoqProject -o Makefile.coq && make --no-print-directory -f Makefile.coq Market.vo) \
    >"$scratch/make.log" 2>&1 || { cat "$scratch/make.log" >&2; exit 1; }
fi
mkdir -p build # of what is extracted
[ Makefile.coq -nt _CoqProject ] || coq_makefile -f _CoqProject -o Makefile.coq
make --no-print-directory -f Makefile.coq -j "${JOBS:-2}" >"$scratch/make.log" 2>&1 ||
  { cat "$scratch/make.log" >&2; exit 1; }

# a statement that begins with "Theorem" is one of the results; a "Lemma" is a step on the way
python3 ../ledger/coq.py . "${2:-FairSharing}"
