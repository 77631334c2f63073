#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Prepare this host for Polca, until the next boot: hugepages of 2 MiB on its NUMA nodes, and NICs
# taken from the kernel.
#
# usage: setup-host.sh [--hugepages MIB] [--node LIST] [--driver DRIVER] [--force] [--dry-run] [NIC...]
#        setup-host.sh --status
#        setup-host.sh --undo [--dry-run] [NIC...]
#
#   NIC               a PCI address (0000:3b:00.0, 3b:00.0) or a kernel interface (eth1)
#   --hugepages MIB   on each node; default 1024, or the present amount if that is more
#   --node LIST       only on these nodes: --node 0,1
#   --driver DRIVER   vfio-pci (the default, needs an IOMMU) or uio_pci_generic
#   --force           bind a NIC even if its interface is in use
#   --status          show hugepages, IOMMU, NICs and their drivers
#   --undo            restore the number of hugepages, and return these NICs to the kernel; without
#                     NICs: all NICs that this script bound
#   --dry-run         print the changes, but make none
#
# Exit codes: 0 done, 1 not done, 2 wrong usage.

set -eu

me=${0##*/}
SYS=${POLCA_SYS:-/sys} # tests use another tree
STATE=${POLCA_STATE:-/run/polca-setup} # state for --undo
driver=vfio-pci
hugepages=
nodes=
mode=setup
force=
dry=

say() { echo "$*"; }
warn() { echo "$me: $*" >&2; }
die() {
	warn "$*"
	exit 1
}
usage() {
	[ $# -eq 0 ] || warn "$*"
	echo "Try '$me --help'." >&2
	exit 2
}

# put TEXT FILE: write to a file of the kernel, and hide the shell's error message
put() {
	[ -n "$dry" ] || echo "$1" 2>/dev/null >"$2"
}

# did TEXT...: print a change, made or (--dry-run) not
did() { say "${dry:+would: }$*"; }

# ---- NICs

is_address() {
	case $1 in
	[0-9a-f][0-9a-f][0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7]) return 0 ;;
	esac
	return 1
}

# address NIC: its PCI address
address() {
	if is_address "$1" || is_address "0000:$1"; then
		a=$1
		is_address "$a" || a=0000:$a
		[ -d "$SYS/bus/pci/devices/$a" ] || die "$1: there is no such PCI device ($me --status lists the NICs)"
		case $(cat "$SYS/bus/pci/devices/$a/class") in
		0x02*) ;;
		*) die "$1: this PCI device is not a network card" ;;
		esac
		echo "$a"
		return
	fi
	[ -e "$SYS/class/net/$1" ] || die "$1: neither a PCI address nor an interface ($me --status lists the NICs)"
	[ -e "$SYS/class/net/$1/device" ] || die "$1: a virtual interface, without a PCI device: give it to Polca by af_xdp or af_packet"
	# a virtio interface's device is a child of the PCI device
	path=$(readlink -f "$SYS/class/net/$1/device")
	while [ -n "$path" ] && ! is_address "${path##*/}"; do
		path=${path%/*}
	done
	[ -n "$path" ] || die "$1: not a PCI device: give it to Polca by af_xdp or af_packet"
	echo "${path##*/}"
}

# driver_of ADDRESS: its driver, or nothing
driver_of() {
	[ ! -e "$SYS/bus/pci/devices/$1/driver" ] || basename "$(readlink -f "$SYS/bus/pci/devices/$1/driver")"
}

# interfaces ADDRESS: its kernel interfaces
interfaces() {
	for i in "$SYS/bus/pci/devices/$1"/net/* "$SYS/bus/pci/devices/$1"/virtio*/net/*; do
		[ ! -e "$i" ] || echo "${i##*/}"
	done
}

# node_of ADDRESS: its NUMA node; 0 if unknown
node_of() {
	n=$(cat "$SYS/bus/pci/devices/$1/numa_node" 2>/dev/null || echo 0)
	[ "$n" -ge 0 ] || n=0
	echo "$n"
}

group_of() {
	[ ! -e "$SYS/bus/pci/devices/$1/iommu_group" ] || basename "$(readlink -f "$SYS/bus/pci/devices/$1/iommu_group")"
}

# uses INTERFACE: what depends on it
uses() {
	[ ! -e "$SYS/class/net/$1/master" ] || echo "it belongs to $(basename "$(readlink -f "$SYS/class/net/$1/master")")"
	for upper in "$SYS/class/net/$1"/upper_*; do
		[ ! -e "$upper" ] || echo "${upper##*/upper_} is on top of it"
	done
	[ -z "${POLCA_SYS:-}" ] || return 0
	ip -o addr show dev "$1" scope global 2>/dev/null | while read -r _ _ family text _; do
		[ "$family" != inet ] && [ "$family" != inet6 ] || echo "it has address $text"
	done
	ip route show default 2>/dev/null | while read -r route; do
		case "$route " in *" dev $1 "*) echo "it has the default route" ;; esac
	done
}

check_free() {
	for i in $(interfaces "$1"); do
		why=$(uses "$i" | tr '\n' ',' | sed 's/,$//; s/,/, /g')
		[ -n "$why" ] || continue
		[ -n "$force" ] || die "$1: $i is in use: $why. If your own connection does not depend on it: --force"
		warn "$1: $i was in use: $why"
	done
}

check_vfio() {
	g=$(group_of "$1")
	[ -n "$g" ] || die "$1: there is no IOMMU, which vfio-pci needs. Turn it on: VT-d or AMD-Vi in the firmware's" \
		"set-up, and intel_iommu=on iommu=pt (Intel) on the kernel command line. Or: --driver uio_pci_generic"
	for other in "$SYS/kernel/iommu_groups/$g/devices"/*; do
		other=${other##*/}
		case " $addresses " in *" $other "*) continue ;; esac
		case $(cat "$SYS/bus/pci/devices/$other/class") in 0x0604*) continue ;; esac # a bridge
		d=$(driver_of "$other")
		case $d in '' | vfio-pci | pci-stub) continue ;; esac
		die "$1: shares IOMMU group $g with $other, which $d has: vfio gives out whole groups." \
			"Name that one too, or put the card into another slot"
	done
}

# uio_pci_generic does not program the IOMMU, so DMA only works if the IOMMU passes it through.
check_uio() {
	g=$(group_of "$1")
	[ -n "$g" ] || return 0
	[ "$(cat "$SYS/kernel/iommu_groups/$g/type" 2>/dev/null || echo identity)" != identity ] || return 0
	die "$1: the IOMMU would stop its DMA. Use --driver vfio-pci, or iommu=pt on the kernel command line"
}

load_driver() {
	[ ! -d "$SYS/bus/pci/drivers/$driver" ] || return 0
	did "load the module $driver"
	[ -z "$dry" ] || return 0
	modprobe "$driver" || die "the kernel has no module $driver: it is in Debian's linux-image-amd64, but not in cloud kernels"
	# load the soft dependency: not every modprobe does so
	[ "$driver" != vfio-pci ] || modprobe vfio_iommu_type1 || true
	[ -d "$SYS/bus/pci/drivers/$driver" ] || die "module $driver was loaded, but is not a PCI driver"
}

# give ADDRESS DRIVER: bind it; if DRIVER is empty, the kernel chooses
give() {
	dev=$SYS/bus/pci/devices/$1
	put "$2" "$dev/driver_override"
	[ ! -e "$dev/driver" ] || put "$1" "$dev/driver/unbind"
	put "$1" "$SYS/bus/pci/drivers_probe" || true
}

take() {
	was=$(driver_of "$1")
	names=$(interfaces "$1" | tr '\n' ' ')
	where="NUMA node $(node_of "$1")"
	g=$(group_of "$1")
	[ "$driver" != vfio-pci ] || where="$where, IOMMU group $g"
	if [ "$was" = "$driver" ]; then
		say "$1: has $driver already ($where)"
		return
	fi
	did "$1: ${was:-no driver}${names:+ (${names% })} -> $driver ($where)"
	[ -z "$dry" ] || return 0
	mkdir -p "$STATE"
	[ -e "$STATE/$1" ] || echo "$was" >"$STATE/$1"
	give "$1" "$driver"
	[ "$(driver_of "$1")" = "$driver" ] && return
	give "$1" ""
	rm -f "$STATE/$1"
	why="the kernel's log says why: dmesg | tail"
	[ "$driver" != uio_pci_generic ] || why="it needs a device with a legacy interrupt, which virtual functions have not: $why"
	die "$1: $driver cannot bind it; it is bound to $(driver_of "$1") again. $why"
}

give_back() {
	was=$(driver_of "$1")
	before=$(cat "$STATE/$1" 2>/dev/null || true)
	case $was in
	vfio-pci | uio_pci_generic) ;;
	*)
		say "$1: ${was:-no driver} has it, nothing to undo"
		rm -f "$STATE/$1"
		return
		;;
	esac
	did "$1: $was -> ${before:-whatever the kernel finds for it}"
	[ -z "$dry" ] || return 0
	[ -z "$before" ] || modprobe "$before" 2>/dev/null || true
	give "$1" ""
	rm -f "$STATE/$1"
	[ -n "$(driver_of "$1")" ] || die "$1: no driver of the kernel's takes it: load its module"
	say "$1: $(driver_of "$1") has it: $(interfaces "$1" | tr '\n' ' ')"
}

# ---- hugepages

huge_dir() { echo "$SYS/devices/system/node/node$1/hugepages/hugepages-2048kB"; }

all_nodes() {
	for n in "$SYS"/devices/system/node/node[0-9]*; do
		[ ! -d "$n" ] || echo "${n##*/node}"
	done
}

reserve() {
	dir=$(huge_dir "$1")
	[ -d "$dir" ] || die "node $1: there is no such NUMA node, or this kernel has no hugepages of 2 MiB"
	have=$(cat "$dir/nr_hugepages")
	pages=$(((${hugepages:-1024} + 1) / 2))
	[ -n "$hugepages" ] || [ "$have" -lt "$pages" ] || pages=$have
	if [ "$have" -ne "$pages" ]; then
		[ -z "$dry" ] || did "node $1: $pages hugepages of 2 MiB (had $have)"
		[ -z "$dry" ] || return 0
		mkdir -p "$STATE"
		[ -e "$STATE/node$1" ] || echo "$have" >"$STATE/node$1"
		if ! put "$pages" "$dir/nr_hugepages"; then
			rm -f "$STATE/node$1"
			warn "node $1: cannot write $dir/nr_hugepages: is /sys read-only, as in a container?" \
				"Run this on the host itself"
			return 1
		fi
		did "node $1: $pages hugepages of 2 MiB (had $have)"
	fi
	got=$(cat "$dir/nr_hugepages")
	say "node $1: $got hugepages of 2 MiB, $(cat "$dir/free_hugepages") free"
	[ "$got" -ge "$pages" ] && return
	warn "node $1: $got of $pages: memory is short or fragmented. Reserve them at boot:" \
		"hugepagesz=2M hugepages=N on the kernel command line (N of 2 MiB, for all nodes together)"
	return 1
}

# DPDK wants a mount only with eal.multi_process; systemd-based systems have one already.
mount_hugetlbfs() {
	! grep -q ' hugetlbfs ' /proc/mounts || return 0
	did "mount hugetlbfs at /dev/hugepages"
	[ -z "$dry" ] || return 0
	mkdir -p /dev/hugepages
	mount -t hugetlbfs hugetlbfs /dev/hugepages || warn "cannot mount hugetlbfs (wanted with eal.multi_process only)"
}

release() {
	for file in "$STATE"/node*; do
		[ -e "$file" ] || continue
		n=${file##*/node}
		did "node $n: $(cat "$file") hugepages of 2 MiB, as before"
		[ -z "$dry" ] || continue
		put "$(cat "$file")" "$(huge_dir "$n")/nr_hugepages"
		rm -f "$file"
	done
}

# ---- --status

status() {
	for n in $(all_nodes); do
		dir=$(huge_dir "$n")
		[ -d "$dir" ] || continue
		say "node $n: $(cat "$dir/nr_hugepages") hugepages of 2 MiB, $(cat "$dir/free_hugepages") free;" \
			"CPUs $(cat "$SYS/devices/system/node/node$n/cpulist")"
	done
	set -- "$SYS"/kernel/iommu_groups/*
	if [ -e "$1" ]; then say "IOMMU: on, $# groups"; else say "IOMMU: off"; fi
	printf '%-13s %-4s %-6s %-16s %-10s %s\n' address node group driver device interfaces
	for dev in "$SYS"/bus/pci/devices/*; do
		case $(cat "$dev/class") in 0x02*) ;; *) continue ;; esac
		a=${dev##*/}
		d=$(driver_of "$a")
		g=$(group_of "$a")
		id=$(cat "$dev/vendor"):$(cat "$dev/device")
		printf '%-13s %-4s %-6s %-16s %-10s %s\n' "$a" "$(node_of "$a")" "${g:--}" "${d:--}" \
			"$(echo "$id" | sed 's/0x//g')" "$(interfaces "$a" | tr '\n' ' ')"
	done
}

# ---- the command line

help() { sed -n '5,24s/^# \{0,1\}//p' "$0"; }

# it changes the host only when told what to do
if [ $# -eq 0 ]; then
	help >&2
	exit 2
fi
while [ $# -gt 0 ]; do
	case $1 in
	--hugepages | --node | --driver)
		[ $# -ge 2 ] || usage "$1 wants a value"
		case $1 in
		--hugepages) hugepages=$2 ;;
		--node) nodes=$2 ;;
		--driver) driver=$2 ;;
		esac
		shift
		;;
	--force) force=1 ;;
	--dry-run) dry=1 ;;
	--status) mode=status ;;
	--undo) mode=undo ;;
	-h | --help)
		help
		exit 0
		;;
	-*) usage "no option $1" ;;
	*) break ;;
	esac
	shift
done
case $hugepages in *[!0-9]*) usage "--hugepages: got $hugepages, expected a number of MiB" ;; esac
case $nodes in *[!0-9,]*) usage "--node: got $nodes, expected numbers, as 0,1" ;; esac
case $driver in
vfio-pci | uio_pci_generic) ;;
*) usage "--driver: got $driver, expected vfio-pci or uio_pci_generic" ;;
esac
if [ "$mode" = status ]; then
	status
	exit 0
fi
[ -n "$dry" ] || [ "$(id -u)" -eq 0 ] || die "must be run as root"

addresses=
for nic in "$@"; do
	case $nic in -*) usage "options come before the NICs: $nic" ;; esac
	a=$(address "$nic") || exit 1
	addresses="$addresses $a"
done
if [ "$mode" = undo ]; then
	if [ -z "$addresses" ]; then
		for file in "$STATE"/*:*; do
			[ ! -e "$file" ] || addresses="$addresses ${file##*/}"
		done
		release
	fi
	for a in $addresses; do
		give_back "$a"
	done
	exit 0
fi
# check all before changing any
for a in $addresses; do
	[ "$(driver_of "$a")" != "$driver" ] || continue
	check_free "$a"
	case $driver in
	vfio-pci) check_vfio "$a" ;;
	uio_pci_generic) check_uio "$a" ;;
	esac
done
result=0
[ -n "$nodes" ] || nodes=$(all_nodes)
for n in $(echo "$nodes" | tr ',' ' '); do
	reserve "$n" || result=1
done
[ $result -ne 0 ] || mount_hugetlbfs
[ -z "$addresses" ] || load_driver
for a in $addresses; do
	take "$a"
done
exit $result
