#compdef polca-run
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-run for zsh: a file _polca-run in a directory of $fpath. What follows the options is a command of
# its own.

_arguments -S \
	'(-s --socket)'{-s,--socket}"[polca's verbs socket]:socket:_files" \
	'(- *)'{-v,--version}'[print the version]' \
	'(- *)'{-h,--help}'[print help]' \
	'(-):program:_command_names -e' \
	'*::arguments:_normal'
