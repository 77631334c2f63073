# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca and polca-bench for bash. Source it, or install it as /usr/share/bash-completion/completions/polca
# and .../polca-bench. The candidates are the options, commands and modes that the program's --help shows.

_polca_help()
{
	local command=${COMP_WORDS[1]}

	((COMP_CWORD > 1)) && [[ $command != -* ]] || command=
	mapfile -t COMPREPLY < <(compgen -W "$("$1" ${command:+"$command"} --help 2>/dev/null | sed -nE '
		/^Commands:/,/^$/s/^  ([a-z]+)  .*/\1/p
		'"${command:+/^Modes: /{s///;s/ \([^)]*\)(, |$)/ /g;p;\}}"'
		s/^ +(-[A-Za-z], )?(--[a-z_-]+).*/\2/p')" -- "$2")
}

# files, where nothing of the help fits
complete -o default -F _polca_help polca polca-bench
