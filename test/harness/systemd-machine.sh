#!/bin/bash
# A small machine of its own, with systemd as its first process: only the programs, the network and the devices are those of this machine.
# It has the files of the folder $1, and ends when this script is killed. $2: the checkout, which is in /opt/portico there. $3: Node.js.
set -euo pipefail
files=$1 checkout=$2 node=$3

if [ -z "${INSIDE:-}" ]; then
  # Its control groups are below one of its own.
  mkdir "$files.cgroups"
  mount -t cgroup2 none "$files.cgroups"
  group="$files.cgroups/${files##*/}"
  mkdir "$group"
  echo $$ >"$group/cgroup.procs"
  INSIDE=1 exec unshare --cgroup "$0" "$@"
fi

root=$(mktemp -d)
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir -p proc sys dev run tmp etc usr var/lib var/cache var/log opt/portico old
chmod 1777 tmp
for each in bin sbin lib lib64; do
  if [ -L "/$each" ]; then cp -P "/$each" "$each"; elif [ -d "/$each" ]; then mkdir "$each"; mount --bind "/$each" "$each"; fi
done
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
# The first process changes limits of the kernel, which are those of this machine, too.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --rbind /usr usr
mount -t tmpfs tmpfs usr/local/bin
touch usr/local/bin/node
mount --bind "$node" usr/local/bin/node
mount --bind "$checkout" opt/portico
mount -o remount,bind,ro opt/portico
mount -t tmpfs tmpfs run
for each in passwd group hosts resolv.conf ld.so.cache alternatives; do cp -rL "/etc/$each" etc 2>/dev/null || true; done
echo "passwd: files systemd
group: files systemd
hosts: files dns" >etc/nsswitch.conf
cp -r "$files/." .
pivot_root . old
umount -l old
cd /
mount --make-rshared /
# Only the units that it is given, and those that they name.
export container=test SYSTEMD_UNIT_PATH=/etc/systemd/system SYSTEMD_GENERATOR_PATH=/nowhere
exec /usr/lib/systemd/systemd --system --log-target=console --log-level=notice --show-status=no --unit=basic.target </dev/null
