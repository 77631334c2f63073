# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-ctl for bash. Source it, or install it as
# /usr/share/bash-completion/completions/polca-ctl. The candidates come from polca-ctl itself, which
# asks a running polca for existing numbers and names.
#
# Aliases of polca-ctl that exist when this file is sourced are completed too. For a later alias:
#   complete -F _polca_ctl ALIAS

# Set cmd to the program and the words that an alias adds, and vars to its NAME=VALUE words.
_polca_ctl_resolve()
{
	local text=${BASH_ALIASES[$1]-} i
	# only words and variables are evaluated
	local special='[`;&|<>()]'

	vars=()
	cmd=("$1")
	[[ -n $text ]] || return
	if [[ $text =~ $special ]]; then
		read -ra cmd <<<"$text"
	else
		eval "cmd=($text)" 2>/dev/null
	fi
	for ((i = 0; i < ${#cmd[@]}; i++)); do
		if [[ ${cmd[i]##*/} == polca-ctl ]]; then
			cmd=("${cmd[@]:i}")
			return
		fi
		[[ ${cmd[i]} == [A-Za-z_]*=* ]] && vars+=("${cmd[i]}")
	done
}

# bash splits words at "=" and ":", as in --opcode=SEND, key=1 and lid:5: set words to the typed ones.
_polca_ctl_words()
{
	local i word glue=

	words=()
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ -z $word && ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]]; then
			glue=
		fi
		if ((i > 1)) && [[ -n $glue || $word =~ ^[=:]+$ ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		glue=
		[[ $word =~ ^[=:]+$ ]] && glue=yes
	done
}

_polca_ctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} typed i list
	local -a cmd vars words

	_polca_ctl_resolve "${COMP_WORDS[0]}"
	_polca_ctl_words
	words=("${cmd[@]:1}" "${words[@]}")
	typed=${words[-1]}
	list=$(env "${vars[@]}" "${cmd[0]}" --complete "${#words[@]}" polca-ctl "${words[@]}" 2>/dev/null)
	case $? in
	10) compopt -o default ;; # a file name: bash completes it
	11) compopt -o nospace ;; # "key=" or "A,B": more of the word may follow
	esac
	COMPREPLY=()
	[[ -n $list ]] && mapfile -t COMPREPLY <<<"$list"
	# bash only replaces the text after the last "=" or ":"
	[[ $cur =~ ^[=:]+$ ]] && cur=
	typed=${typed%"$cur"}
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$typed"}
	done
}

complete -F _polca_ctl polca-ctl
for _polca_ctl_alias in "${!BASH_ALIASES[@]}"; do
	if [[ ${BASH_ALIASES[$_polca_ctl_alias]} =~ (^|[[:space:]/])polca-ctl([[:space:]]|$) ]]; then
		complete -F _polca_ctl "$_polca_ctl_alias"
	fi
done
unset _polca_ctl_alias
