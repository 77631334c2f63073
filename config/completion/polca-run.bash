# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-run for bash. Source it, or install it as /usr/share/bash-completion/completions/polca-run. Up to
# the program the candidates are polca-run's options and commands; what follows is completed as the program's own.

_polca_run()
{
	local word=1

	while ((word < COMP_CWORD)) && [[ ${COMP_WORDS[word]} == -* ]]; do
		[[ ${COMP_WORDS[word]} == -s || ${COMP_WORDS[word]} == --socket ]] && ((word++))
		((word++))
	done
	if ((word < COMP_CWORD)); then
		# bash-completion's; without it, files
		declare -F _command_offset >/dev/null && _command_offset "$word"
	elif ((word > COMP_CWORD)); then
		mapfile -t COMPREPLY < <(compgen -f -- "$2") # the socket
	elif [[ $2 == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null |
			sed -nE 's/^ +(-[A-Za-z], )?(--[a-z_-]+).*/\2/p')" -- "$2")
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$2")
	fi
}

# files, where nothing else fits
complete -o default -F _polca_run polca-run
