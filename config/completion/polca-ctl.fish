# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-ctl for fish: a file polca-ctl.fish in a directory of $fish_complete_path. The candidates come
# from polca-ctl itself, which asks a running polca for the numbers and names of what there is.

function __polca_ctl
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    polca-ctl --complete (count $before) $before "$current" 2>/dev/null
    if test $status -eq 10
        __fish_complete_path "$current"
    end
end

complete -c polca-ctl -f -a '(__polca_ctl)'
