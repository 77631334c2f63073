# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-run for fish: a file polca-run.fish in a directory of $fish_complete_path. What follows the
# options is a command of its own.

complete -c polca-run -x -a '(__fish_complete_subcommand)'
complete -c polca-run -n __fish_is_first_token -s s -l socket -r -F -d "polca's verbs socket"
complete -c polca-run -n __fish_is_first_token -s v -l version -d 'print the version'
complete -c polca-run -n __fish_is_first_token -s h -l help -d 'print help'
