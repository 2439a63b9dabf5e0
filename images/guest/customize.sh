#!/bin/sh
# The last step of the guest's build: $1 is its root folder. What differs from build to build goes, what every start would make again is made now.
set -eu
root=$1

# The image carries a time stamp of 0, so byte code that is checked by time would be compiled again at every start.
# The shell inside looks for the folders: the machine that builds may have another version. What compileall itself imports must not
# be compiled the usual way on its way in.
find "$root/usr" -name '*.pyc' -delete
chroot "$root" env PYTHONDONTWRITEBYTECODE=1 sh -c 'python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.*'
test -e "$root"/usr/lib/python3.*/__pycache__/enum.*.pyc

mkdir -p "$root/usr/share/scpslab" "$root/opt/scpslab" "$root/cell" "$root/var/lib/openvswitch"
# shellcheck disable=SC2016  # dpkg-query's own fields
chroot "$root" dpkg-query -W -f '${Package} ${Version}\n' bash curl iperf3 iproute2 lftp mininet openvswitch-switch ppp python3 tcpdump vsftpd \
	>"$root/usr/share/scpslab/packages.txt"
rm -f "$root"/var/lib/openvswitch/conf.db "$root"/var/lib/openvswitch/.conf.db.*
chroot "$root" ovsdb-tool create /usr/share/scpslab/ovs.db /usr/share/openvswitch/vswitch.ovsschema
rm -f "$root"/usr/share/scpslab/.ovs.db.*

rm -rf "$root"/var/cache/* "$root"/var/log/* "$root"/var/lib/apt/lists/* "$root"/etc/ssh/ssh_host_* "$root"/var/lib/dpkg/*-old
# The builder took the notices of copyright out of packages; the guest has none.
sed -i '/^path-include=/d' "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
# Where the packages came from is the builder's business.
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/apt.conf.d/99mmdebstrap
rm -f "$root"/etc/machine-id "$root"/var/lib/dbus/machine-id "$root"/var/lib/systemd/random-seed "$root"/etc/resolv.conf
: >"$root/etc/machine-id"
