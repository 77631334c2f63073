# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-ctl for bash. Source it, or install it as
# /usr/share/bash-completion/completions/polca-ctl. The candidates come from polca-ctl itself.

_polca_ctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]}

	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-s | --socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" --complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null)
	# "A,B": more may follow without a blank; after "FIELD=" its value does
	[[ $cur == *,* || ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _polca_ctl polca-ctl
