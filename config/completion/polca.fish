# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca and polca-bench for fish: files polca.fish and polca-bench.fish in a directory of
# $fish_complete_path. The candidates are the options, commands and modes that the program's --help shows.

function __polca_help
    set -l before (commandline -opc)
    set -l words
    set -l modes
    if test (count $before) -gt 1; and not string match -q -- '-*' $before[2]
        set words $before[2]
        set modes '/^Modes: /{s///;s/ \([^)]*\)(, |$)/\n/g;p;}'
    end
    $before[1] $words --help 2>/dev/null | sed -nE -e '/^Commands:/,/^$/s/^  ([a-z]+)  .*/\1/p' -e "$modes" \
        -e 's/^ +(-[A-Za-z], )?(--[a-z_-]+).*/\2/p'
end

complete -c polca -a '(__polca_help)'
complete -c polca-bench -a '(__polca_help)'
