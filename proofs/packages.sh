# shellcheck shell=bash
# To be sourced: install_packages WHAT PACKAGE... installs Debian's packages, or says what has to be installed.
install_packages() {
  local what=$1 as_root=() log
  shift
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
  fi
  if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
    echo "it needs $what; on Debian 12, as root: apt-get install $*" >&2
    return 1
  fi
  echo "installing $*"
  log=$(mktemp)
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1 || { cat "$log" >&2; return 1; }
  rm -f "$log"
}
