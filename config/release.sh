#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# release.sh VERSION - make the commit and the tag of a release, in a clean tree whose tests have passed: VERSION gets
# the number, the top section of CHANGELOG.md number and date, and test/data/store a database that this version wrote,
# which later versions must read. Nothing is pushed.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,7p "$0" | cut -c3-; exit 0 ;;
esac
VERSION=${1:-}
[[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "got '$VERSION', expected a version as 1.2.3"
cd "$ROOT" || exit 1
BUILD=${BUILD:-build}
POLCA=$BUILD/app/polca/polca CTL=$BUILD/app/polca-ctl/polca-ctl
if [ ! -x "$POLCA" ] || [ ! -x "$CTL" ]; then
    die "$BUILD has no programs: build them first"
fi
[ -z "$(git status --porcelain)" ] || die "the tree has changes that are not committed"
! git rev-parse -q --verify "refs/tags/v$VERSION" >/dev/null || die "there is a tag v$VERSION already"
[ "$(sed -n 's/^## [^ ]* - //p' CHANGELOG.md | head -n 1)" = "not released" ] ||
    die "the top section of CHANGELOG.md is no '## VERSION - not released': what has changed?"

WHERE=$(mktemp -d)
trap 'rm -rf "$WHERE"' EXIT
cat >"$WHERE/polca.json" <<END
{ "control": { "socket": "$WHERE/socket" }, "eal": { "file_prefix": "release-$$" }, "workers": { "count": 1 },
  "sa": { "path": "$WHERE/sa", "map_mb": 64 }, "ports": [
    { "name": "port0", "back_to_back": "port1", "addresses": ["192.0.2.1/24"] },
    { "name": "port1", "back_to_back": "port0", "addresses": ["192.0.2.2/24"] } ] }
END
"$POLCA" -c "$WHERE/polca.json" >"$WHERE/log" 2>&1 &
PID=$!
until grep -q 'ready: ' "$WHERE/log"; do
    kill -0 $PID 2>/dev/null || { cat "$WHERE/log" >&2; die "polca does not start"; }
    sleep 0.1
done
# the records that dts/suites/service/test_package.py looks for
"$CTL" -s "$WHERE/socket" sa set service service_id=0x1234 service_gid=fe80::1 service_pkey=0xffff \
    service_lease=0xffffffff service_name=kept >/dev/null &&
    "$CTL" -s "$WHERE/socket" sa config add link from_lid=7 from_port=1 to_lid=8 to_port=1 >/dev/null
WRITTEN=$?
kill $PID
wait $PID || die "polca did not stop with status 0"
[ $WRITTEN = 0 ] || die "no database was written"

set -e
mkdir -p test/data/store
gzip -9n -c "$WHERE/sa/data.mdb" >"test/data/store/$VERSION.mdb.gz"
echo "$VERSION" >VERSION
sed -i "0,/^## .* - not released$/s//## $VERSION - $(date -u +%F)/" CHANGELOG.md
git add VERSION CHANGELOG.md test/data/store
git commit -q -m "config: release $VERSION" -m "What has changed is in CHANGELOG.md."
git tag -a "v$VERSION" -m "Polca $VERSION"
stage "v$VERSION is committed and tagged"
