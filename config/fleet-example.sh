#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# fleet-example.sh - a fleet to try: three machines, each a network namespace of this host with an appliance and a
# member of etcd. Needs root. Nothing of it is reached from outside, and it ends with `stop` or the next boot.
#
#   config/fleet-example.sh            start all three, or what of them does not run
#   config/fleet-example.sh status     who leads, and how far each is
#   config/fleet-example.sh ctl N ...  polca-ctl at appliance N (1 to 3): ctl 2 sa table service
#   config/fleet-example.sh kill N     end appliance N with SIGKILL; kill etcdN: its member of etcd
#   config/fleet-example.sh isolate N  cut machine N off from the others; join N: end that
#   config/fleet-example.sh stop       end everything and remove it
set -u
. "$(dirname "$0")/common.sh"

DIR=/run/polca-fleet
BUILD=$ROOT/build
MACHINES="1 2 3"

usage() { sed -n 5,13p "$0" | cut -c3-; }
wrong() { printf '%s: %s\n\n' "$(basename "$0")" "$*" >&2; usage >&2; exit 2; }
space() { echo "polca-fleet-$1"; }
address() { echo "10.91.0.$1"; }
# `ip netns exec` and `ip -n` mount below /, which a chroot does not allow.
inside() { nsenter --net="/run/netns/$(space "$1")" "${@:2}"; }
socket() { echo "$DIR/$1/polca.sock"; }
ctl() { "$BUILD/app/polca-ctl/polca-ctl" -s "$(socket "$1")" "${@:2}"; }

# runs NAME N: whether polca or etcd of machine N runs. Its pid may belong to somebody else by now.
runs() {
    local pid
    pid=$(cat "$DIR/$2/$1.pid" 2>/dev/null) || return 1
    case "$(readlink "/proc/$pid/exe")" in */"$1" | */"$1 (deleted)") ;; *) return 1 ;; esac
}

# launch NAME N COMMAND...: start it in the namespace of machine N, on its own.
launch() {
    local name=$1 n=$2
    shift 2
    setsid nsenter --net="/run/netns/$(space "$n")" "$@" >>"$DIR/$n/$name.log" 2>&1 </dev/null &
    echo $! >"$DIR/$n/$name.pid"
}

# until_true SECONDS TEXT COMMAND...: wait for a condition, and say so every two seconds.
until_true() {
    local end=$((SECONDS + $1)) next=$((SECONDS + 2)) text=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        if [ "$SECONDS" -ge "$next" ]; then
            stage "  waiting: $text"
            next=$((SECONDS + 2))
        fi
        sleep 0.1
    done
}

make_network() {
    local n
    ip netns list | grep -q '^polca-fleet-hub\b' && return
    ip netns add polca-fleet-hub
    inside hub ip link add br0 up type bridge
    for n in $MACHINES; do
        ip netns add "$(space "$n")"
        inside "$n" ip link set lo up
        inside "$n" ip link add eth0 type veth peer name "m$n" netns polca-fleet-hub
        inside "$n" ip address add "$(address "$n")/24" dev eth0
        inside "$n" ip link set eth0 up
        inside hub ip link set "m$n" master br0 up
    done
}

start_etcd() {
    local n=$1 m cluster=
    for m in $MACHINES; do cluster+="${cluster:+,}etcd$m=http://$(address "$m"):2380"; done
    launch etcd "$n" etcd --name "etcd$n" --data-dir "$DIR/$n/etcd" \
        --listen-client-urls "http://$(address "$n"):2379" --advertise-client-urls "http://$(address "$n"):2379" \
        --listen-peer-urls "http://$(address "$n"):2380" --initial-advertise-peer-urls "http://$(address "$n"):2380" \
        --initial-cluster "$cluster" --auto-compaction-mode periodic --auto-compaction-retention 10m
}

start_polca() {
    local n=$1 m endpoints=
    for m in $MACHINES; do endpoints+="${endpoints:+, }\"http://$(address "$m"):2379\""; done
    cat >"$DIR/$n/polca.json" <<JSON
{
  "control": { "socket": "$(socket "$n")" },
  "eal": { "file_prefix": "polca-fleet-$n" },
  "workers": { "idle": "backoff" },
  "sa": { "enabled": true, "path": "$DIR/$n/sa" },
  "fleet": { "endpoints": [$endpoints], "name": "polca$n", "lease_s": 2 },
  "ports": [
    { "name": "port0", "back_to_back": "port1", "mac": "02:00:00:00:0$n:00", "addresses": ["192.0.2.$n/24"] },
    { "name": "port1", "back_to_back": "port0", "mac": "02:00:00:00:0$n:01", "addresses": ["192.0.2.1$n/24"] }
  ]
}
JSON
    launch polca "$n" "$BUILD/app/polca/polca" -c "$DIR/$n/polca.json"
}

answers() { ctl "$1" fleet status >/dev/null 2>&1; }
leads() { ctl "$1" fleet status --json 2>/dev/null | grep -q '"leads": *true'; }
# leader: the number of the appliance that leads.
leader() {
    local n
    for n in $MACHINES; do leads "$n" && echo "$n" && return; done
    return 1
}

start() {
    local n user=nobody
    # shellcheck disable=SC2086 # lists of words
    need_packages $PACKAGES_BUILD iproute2 etcd-server nftables || exit 1
    if [ ! -x "$BUILD/app/polca/polca" ] || [ ! -x "$BUILD/app/polca-ctl/polca-ctl" ]; then
        configure "$BUILD" -Dtests=false
        stage "building polca and polca-ctl in $BUILD"
        compile "$BUILD" app/polca/polca app/polca-ctl/polca-ctl
    fi
    getent passwd polca >/dev/null && user=polca
    stage "starting three machines in network namespaces; their files are in $DIR"
    make_network
    for n in $MACHINES; do
        mkdir -p "$DIR/$n" && chown "$user" "$DIR/$n" || exit 1
        runs etcd "$n" || start_etcd "$n"
        runs polca "$n" || start_polca "$n"
    done
    for n in $MACHINES; do
        until_true 60 "appliance $n to answer" answers "$n" ||
            die "appliance $n does not answer; see $DIR/$n/polca.log"
    done
    until_true 60 "a leader" eval 'leader >/dev/null' || die "no appliance leads; see $DIR/1/polca.log and $DIR/1/etcd.log"
    status
    cat <<'TEXT'

Try:
  config/fleet-example.sh ctl 2 sa set service service_id=7 service_gid=::ffff:192.0.2.1 service_name=seven
  config/fleet-example.sh ctl 3 sa table service      what one appliance stores, all have
  config/fleet-example.sh kill 1                      another one leads, if this one did
  config/fleet-example.sh status
  config/fleet-example.sh                             start it again
  config/fleet-example.sh stop
TEXT
}

status() {
    local n
    for n in $(leader) $MACHINES; do
        if answers "$n"; then
            ctl "$n" fleet status
            return
        fi
    done
    die "no appliance runs; '$0' starts them"
}

# end NAME N: SIGKILL, and wait until it is gone.
end() {
    runs "$1" "$2" || return 0
    kill -9 "$(cat "$DIR/$2/$1.pid")"
    until_true 20 "$1 $2 to end" eval "! runs $1 $2" || die "$1 of machine $2 does not end"
    rm -f "$DIR/$2/$1.pid"
}

stop() {
    local n
    for n in $MACHINES; do
        end polca "$n"
        end etcd "$n"
    done
    for n in hub $MACHINES; do
        ip netns list 2>/dev/null | grep -q "^polca-fleet-$n\b" && ip netns del "polca-fleet-$n"
    done
    rm -rf "$DIR"
    for n in $MACHINES; do rm -rf "/run/dpdk/polca-fleet-$n"; done
}

isolate() {
    inside "$1" nft "add table inet cut
        add chain inet cut in { type filter hook input priority 0; }
        add chain inet cut out { type filter hook output priority 0; }
        flush table inet cut
        add rule inet cut in iifname eth0 drop
        add rule inet cut out oifname eth0 drop"
}

join() { inside "$1" nft "add table inet cut; delete table inet cut"; }

# machine N: N must be one of the machines, and they must have been started.
machine() {
    case " $MACHINES " in *" ${1:-} "*) ;; *) wrong "got machine '${1:-}', expected one of: $MACHINES" ;; esac
    [ -d "$DIR/$1" ] || die "the fleet does not run; '$0' starts it"
}

command=${1:-start}
case $command in -h | --help) usage; exit 0 ;; esac
case $command in
start | status | stop) [ $# -le 1 ] || wrong "'$command' takes nothing more, got '$2'" ;;
kill | isolate | join) [ $# = 2 ] || wrong "'$command' wants a machine, one of: $MACHINES" ;;
ctl) [ $# -ge 2 ] || wrong "'ctl' wants a machine, one of: $MACHINES" ;;
*) wrong "no command '$command'" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root: it makes network namespaces"
case $command in
kill)
    machine "${2#etcd}"
    case $2 in etcd*) end etcd "${2#etcd}" ;; *) end polca "$2" ;; esac
    ;;
isolate | join)
    machine "$2"
    "$command" "$2"
    ;;
ctl)
    machine "$2"
    ctl "${@:2}"
    ;;
*) "$command" ;;
esac
