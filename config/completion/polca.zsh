#compdef polca polca-bench
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca and polca-bench for zsh: a file _polca in a directory of $fpath. The candidates are the options,
# commands and modes that the program's --help shows.

_polca() {
	local command modes
	local -a list

	if (( CURRENT > 2 )) && [[ $words[2] != -* ]]; then
		command=$words[2]
		modes='/^Modes: /{s///;s/ \([^)]*\)(, |$)/\n/g;p;}'
	fi
	list=(${(f)"$($words[1] $command --help 2>/dev/null | sed -nE '
		/^Commands:/,/^$/s/^  ([a-z]+)  .*/\1/p
		'$modes'
		s/^ +(-[A-Za-z], )?(--[a-z_-]+).*/\2/p')"})
	compadd -a list || _files
}

_polca "$@"
