#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Reserve hugepages of 2 MiB on every NUMA node, until the next boot.
#
# usage: setup-hugepages.sh [MIB_PER_NODE]      (default 1024)

set -eu

usage() {
	echo "usage: $0 [MIB_PER_NODE]" >&2
	exit 2
}

[ $# -le 1 ] || usage
mib=${1:-1024}
case $mib in
'' | *[!0-9]*) usage ;;
esac
[ "$(id -u)" -eq 0 ] || { echo "$0: must be run as root" >&2; exit 1; }

pages=$(((mib + 1) / 2))
status=0
for dir in /sys/devices/system/node/node*/hugepages/hugepages-2048kB; do
	[ -d "$dir" ] || { echo "$0: this kernel has no hugepages of 2 MiB" >&2; exit 1; }
	node=${dir#/sys/devices/system/node/}
	node=${node%%/*}
	echo "$pages" > "$dir/nr_hugepages"
	got=$(cat "$dir/nr_hugepages")
	free=$(cat "$dir/free_hugepages")
	echo "$node: $got hugepages of 2 MiB, $free free"
	if [ "$got" -lt "$pages" ]; then
		echo "$0: $node: asked for $pages: memory is short or fragmented; reserve at boot instead:" \
			"hugepagesz=2M hugepages=$pages on the kernel command line" >&2
		status=1
	fi
done
# DPDK wants a mount only with eal.multi_process; systemd-based systems have it already.
if ! grep -q ' hugetlbfs ' /proc/mounts; then
	mkdir -p /dev/hugepages
	mount -t hugetlbfs hugetlbfs /dev/hugepages
	echo "mounted /dev/hugepages"
fi
exit $status
