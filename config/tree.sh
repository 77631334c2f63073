# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Sourced, after common.sh and with RELEASE set, by the scripts that work in minimal Debian trees: make the base tree
# of a release once, copy it, run commands in the copy.

[ "$(id -u)" = 0 ] || die "needs root, for debootstrap and chroot"
need_packages debootstrap || exit 1

STORE=${POLCA_FRESH:-/var/cache/polca-fresh}
BASE=$STORE/$RELEASE
COPY=$STORE/copy-$$
SOURCE=/opt/polca # in the copy
umask 022
# root runs programs of these trees: no other user may have put them there
mkdir -p "$STORE" && chmod 700 "$STORE" || exit 1
[ "$(stat -c %u "$STORE")" = 0 ] || die "$STORE does not belong to root: remove it, or set POLCA_FRESH"

# mirror SUITE: the mirror from which this host's apt gets its own release with the suffix SUITE: "-security" or "".
mirror() {
    # shellcheck disable=SC2016 # apt-get's own variables
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
        awk -v own="$(. /etc/os-release && echo "$VERSION_CODENAME")$1" \
            '$2 == own && $3 == "main" && $4 == "Debian" { print $1; exit }'
}

# How this host's apt reaches its mirror: proxies and checks. None of this is written into the source tree.
apt_ways() { apt-config dump | grep -E '^Acquire::(http|https|Check|Retries)' || true; }

make_base() {
    local main log=$STORE/$RELEASE.log include=()
    main=$(mirror "")
    [ -n "$main" ] || die "this host's apt has no Debian mirror (apt-get update first?)"
    [ "${main#https}" = "$main" ] || include=(--include=ca-certificates)
    rm -rf --one-file-system "$BASE.new"
    stage "creating a minimal Debian tree ($RELEASE), once"
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    export http_proxy https_proxy
    watched "$log" debootstrap --variant=minbase "${include[@]}" "$RELEASE" "$BASE.new" "$main" ||
        { tail -n 20 "$log" >&2; rm -rf --one-file-system "$BASE.new"; die "debootstrap failed"; }
    : >"$BASE.new/etc/apt/sources.list"
    rm -f "$log"
    mv "$BASE.new" "$BASE"
}

remove_copy() { rm -rf --one-file-system "$COPY"; }

make_copy() {
    local old main security
    for old in "$STORE"/copy-*; do # left by a run that was killed
        [ -e "$old" ] && ! kill -0 "${old##*-}" 2>/dev/null && rm -rf --one-file-system "$old"
    done
    cp -a "$BASE" "$COPY" && mkdir -p "$COPY$SOURCE" || return 1
    cp -L /etc/resolv.conf /etc/hosts "$COPY/etc/"
    # the suites that this host's apt uses today
    main=$(mirror "") security=$(mirror -security)
    {
        echo "deb $main $RELEASE main"
        [ -z "$security" ] || echo "deb $security $RELEASE-security main"
    } >"$COPY/etc/apt/sources.list"
    apt_ways >"$COPY/etc/apt/apt.conf.d/90host"
    copy_sources "$COPY$SOURCE"
}

# inside COMMAND...: run it in the source tree of the copy, as root, with an environment of its own. Mounts and processes
# end with it.
inside() {
    # shellcheck disable=SC2016 # for the inner shells
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        root=$1 dir=$2
        shift 2
        # "ip netns exec" changes how / propagates, so / has to be a mount
        mount --bind "$root" "$root" && mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" &&
            mount --rbind /sys "$root/sys" && mount -t tmpfs tmpfs "$root/run" || exit 1
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            CI="${CI:-}" bash -c "cd \"\$0\" && exec \"\$@\"" "$dir" "$@"' - "$COPY" "$SOURCE" "$@"
}
