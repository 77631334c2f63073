#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# check.sh - look at a change before it is committed: two minutes at most, without root. Prints what is wrong and exits
# with 1 if anything is.
#
#   config/check.sh                  every check, in the order of the list CHECKS below
#   config/check.sh names shell      only these
#   config/check.sh --without units  every check but these
#   config/check.sh --list           the names of the checks
#   config/check.sh --whole tidy     all modules instead of those that changed; takes many minutes
#   config/check.sh cppcheck         not in the list, as it takes minutes
#   config/check.sh --message FILE   the commit message in FILE, as a hook commit-msg
#   BASE=HEAD config/check.sh        modules that changed since BASE, here the uncommitted ones. By default BASE is
#                                    where this branch left origin/main, or else the commit before HEAD.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CHECKS="format names includes provider cycles citations documents spelling shell python commits tidy units"
KNOWN="$CHECKS cppcheck"

# clang-tidy and the unit suites are bounded so that all checks together end within two minutes.
TIDY_SECONDS=${TIDY_SECONDS:-60}
UNIT_SECONDS=60
WHOLE=
case ${1:-} in
-h | --help) sed -n 5,16p "$0" | cut -c3-; exit 0 ;;
--message)
    [ $# = 2 ] || die "--message wants the file with the message"
    exec /usr/bin/python3 "$ROOT/test/check_source.py" message "$2"
    ;;
--list) for c in $CHECKS; do echo "$c"; done; exit 0 ;;
--whole) WHOLE=1; shift ;;
--without)
    shift
    without=" $* "
    set --
    for c in $CHECKS; do case $without in *" $c "*) ;; *) set -- "$@" "$c" ;; esac; done
    ;;
-*) die "no option '$1'; there are: --without, --list, --whole, --message, --help" ;;
esac
RUN=${*:-$CHECKS}
for c in $RUN; do
    case " $KNOWN " in *" $c "*) ;; *) die "no check '$c'; there are: $KNOWN" ;; esac
done
cd "$ROOT" || exit 1
# root may check somebody else's clone
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$ROOT
[ -n "$(git rev-parse --git-dir 2>/dev/null)" ] || die "needs a git clone: it looks at tracked files and at commits"

default_base() {
    local base
    base=$(git merge-base HEAD origin/main 2>/dev/null)
    if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
        echo "$base"
    else
        git rev-parse --verify -q HEAD~1 || git rev-parse HEAD
    fi
}
BASE=${BASE:-$(default_base)}
git rev-parse --verify -q "$BASE^{commit}" >/dev/null || die "BASE: there is no commit $BASE"

# --- what is looked at ---

# tracked PATTERN...: files of the tree, also new ones that git does not ignore
tracked() { git ls-files -co --exclude-standard --deduplicate -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done; }

# scripts NAME: files without a suffix whose first line calls NAME
scripts() { tracked | grep -v '\.[a-z]*$' | xargs -r grep -lIE "^#! ?(/usr/bin/env |/bin/|/usr/bin/)$1( |\$)" 2>/dev/null; }

changed() { { git diff --name-only "$BASE" -- "$@"; git ls-files -o --exclude-standard -- "$@"; } | sort -u; }

# Folders of lib and app, and provider, with a change since BASE, or all.
modules() {
    if [ -n "$WHOLE" ]; then tracked 'lib/*.[ch]' 'app/*.[ch]' 'provider/*.[ch]'; else changed lib app provider; fi |
        sed -nE 's#^((lib|app)/[^/]+|provider)/.*#\1#p' | sort -u
}

# C sources of these modules, those that changed themselves first
sources() {
    local m all
    all=$(for m in $(modules); do tracked "$m/*.c"; done)
    { changed lib app provider | grep -Fx "$all"; echo "$all"; } | awk 'NF && !seen[$0]++'
}

# build/ as it is, with the tests; what does not exist yet is set up
set_up_build() {
    if [ -e build/build.ninja ]; then
        meson configure build -Dtests=true >/dev/null
    else
        configure build --werror -Dtests=true
    fi
}

# --- the checks: each prints what is wrong, and fails if anything is ---

# clang-format does not break comments, and looks at no other language.
check_format() {
    local status=0
    tracked {lib,app,provider,test,dts}/'*.[ch]' | xargs -r clang-format --dry-run --Werror || status=1
    /usr/bin/python3 test/check_source.py lines && return $status
}

check_names() { /usr/bin/python3 test/check_source.py names; }

check_includes() { /usr/bin/python3 test/check_source.py includes; }

# Programs without DPDK load it: it is compiled and linked without DPDK's headers and libraries, and so is each header
# of lib/ring that it uses. (node.c is a library of its own.)
check_provider() {
    local made status=0 flags=(-D_GNU_SOURCE -Wall -Werror -Ilib -Iprovider)
    made=$(mktemp)
    tracked 'lib/ring/*.h' | xargs -r -n 1 cc "${flags[@]}" -fsyntax-only -x c || status=1
    tracked 'provider/*.c' ':!provider/node.c' |
        xargs -r cc "${flags[@]}" -shared -fPIC -Wl,-z,defs -o "$made" -Wl,--no-as-needed -libverbs || status=1
    rm -f "$made"
    return $status
}

check_cycles() { /usr/bin/python3 test/check_cycles.py; }

check_citations() { /usr/bin/python3 test/check_conformance.py; }

check_documents() { /usr/bin/python3 test/check_docs.py; }

# Not names and numbers that others have written: test data, captures, pictures and an example of a subnet.
check_spelling() {
    tracked ':!test/data' ':!*.svg' ':!config/fabric-example.*' ':!config/codespell-words.txt' |
        xargs -r codespell --ignore-words config/codespell-words.txt
}

# -P: a script's `. common.sh` is beside the script
check_shell() { { tracked '*.sh' '*.bash'; scripts '(ba)?sh'; } | xargs -r shellcheck -x -P SCRIPTDIR; }

# Mistakes, not taste: names that do not exist or are not used, syntax, bare except, wrong escapes.
check_python() { { tracked '*.py'; scripts python3; } | xargs -r flake8 --isolated --select F,E7,E9,W6; }

check_commits() { /usr/bin/python3 test/check_source.py commits; }

check_tidy() {
    local files out limit=(timeout "$TIDY_SECONDS") status
    files=$(sources)
    [ -n "$files" ] || return 0
    set_up_build || return 1
    [ -z "$WHOLE" ] || limit=()
    # xargs -n 1: a file each, so that the first ones are finished when the time is over
    out=$(echo "$files" | "${limit[@]}" xargs -n 1 -P "$(nproc)" clang-tidy -p build --quiet 2>/dev/null)
    status=$?
    [ -z "$out" ] || echo "$out"
    # what was found before the time was over counts
    [ "$status" = 124 ] && [[ $out != *" error: "* ]] || return "$status"
    echo "clang-tidy: ended after $TIDY_SECONDS s, some files of $(modules | tr '\n' ' ')were not looked at" \
        "(config/test.sh --long analyse looks at all)"
}

# The macros of system headers that cppcheck has to know are in config/cppcheck.h.
check_cppcheck() {
    cppcheck -q -j "$(nproc)" --error-exitcode=1 --enable=warning,performance,portability --std=c11 \
        --suppressions-list=config/cppcheck-suppressions.txt --include=config/cppcheck.h -Ilib -Iapp -Iprovider \
        --template='{file}:{line}: {message} [{id}]' lib app provider 2>&1
}

# The folder of lib is the beginning of its tests' names: "rc: responder".
check_units() {
    local words tests status
    words=$({ modules; changed test | grep '^test/[^/]*/' | cut -d/ -f1,2; } | sed 's#.*/##; s/^polca-//; s/^polca$/app/' |
        sort -u | tr '\n' '|')
    [ -n "$words" ] || return 0
    set_up_build || return 1
    mapfile -t tests < <(meson test -C build --suite unit --list 2>/dev/null | sed 's/^.* \/ //' |
        grep -E "^(${words%|})(_| |\$)")
    [ ${#tests[@]} -gt 0 ] || return 0
    compile build # not counted
    timeout "$UNIT_SECONDS" meson test -C build --suite unit --no-rebuild --print-errorlogs --quiet "${tests[@]}"
    status=$?
    [ "$status" = 124 ] || return "$status"
    echo "unit tests: ended after $UNIT_SECONDS s, not all were run (config/test.sh unit runs all)"
}

failed=
for c in $RUN; do
    begin=$SECONDS
    if "check_$c"; then
        printf '%-10s ok, %d s\n' "$c" $((SECONDS - begin))
    else
        printf '%-10s FAILED, %d s\n' "$c" $((SECONDS - begin))
        failed+=" $c"
    fi
done
[ -z "$failed" ] || die "failed:$failed"
