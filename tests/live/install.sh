#!/bin/sh
# Install Debian's Slurm, slurmdbd and MariaDB where they are absent. Nothing is started: policy-rc.d refuses it meanwhile.
set -e
missing=
for program in slurmctld slurmd slurmdbd mariadbd unshare nsenter ip; do
	PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "absent:$missing. Run this as root, or install slurm-wlm slurmdbd mariadb-server" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "absent:$missing, and there is no apt-get: install Slurm by hand" >&2; exit 1; }
policy=/usr/sbin/policy-rc.d
kept=
if [ -e $policy ]; then kept=$(mktemp); cp -p $policy "$kept"; fi
restore() { rm -f $policy; [ -z "$kept" ] || { cp -p "$kept" $policy; rm -f "$kept"; }; }
trap restore EXIT
trap 'exit 1' HUP INT TERM
printf '#!/bin/sh\nexit 101\n' > $policy
chmod 755 $policy
export DEBIAN_FRONTEND=noninteractive
timeout 300 apt-get update -qq
timeout 600 apt-get install -y -qq --no-install-recommends slurm-wlm slurm-wlm-basic-plugins slurmdbd mariadb-server \
	util-linux iproute2
