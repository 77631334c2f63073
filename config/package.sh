#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# package.sh [DIR] - build the Debian packages polca, polca-tools and polca-verbs for this Debian, put them into DIR
# (build-deb), and have lintian look at them. The version is that of VERSION, the changelog that of CHANGELOG.md. If DIR has the
# packages of these very sources already, nothing is done. Build dependencies that are missing are installed, for which
# it must be root.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,10p "$0" | cut -c3-; exit 0 ;;
esac
OUT=${1:-$ROOT/build-deb}
# shellcheck disable=SC2086 # a list of words
need_packages $PACKAGES_BUILD $PACKAGES_DEB || exit 1
mkdir -p "$OUT" && OUT=$(cd "$OUT" && pwd) || exit 1

# A copy of the sources, so that the build leaves nothing in this tree.
COPY=$OUT/polca-$(cat "$ROOT/VERSION")
rm -rf --one-file-system "$COPY"
mkdir "$COPY" || exit 1
trap 'rm -rf --one-file-system "$COPY"' EXIT
copy_sources "$COPY" || die "the sources could not be copied to $COPY"
cd "$COPY" || exit 1
sources=$(find app lib provider config debian docs meson* VERSION CHANGELOG.md -type f ! -name '*.sh' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
if [ "$sources" = "$(cat "$OUT/sources.sha256" 2>/dev/null)" ]; then
    stage "$OUT has the packages of these sources"
    exit 0
fi
rm -f "$OUT"/*.deb "$OUT/sources.sha256"
/usr/bin/python3 config/debian_changelog.py CHANGELOG.md >debian/changelog || die "CHANGELOG.md makes no debian/changelog"

stage "building the packages"
# with the linker of the distribution, whatever the caller's tests are linked with
watched "$OUT/build.log" env -u CC_LD dpkg-buildpackage -b -us -uc ||
    { tail -n 40 "$OUT/build.log" >&2; die "no packages were built (all that was said is in $OUT/build.log)"; }
stage "lintian"
lintian --allow-root --fail-on error,warning --info "$OUT"/polca_*.changes || die "lintian is not content"
echo "$sources" >"$OUT/sources.sha256"
stage "packages:"
ls -s --block-size=K "$OUT"/*.deb
