#compdef polca-ctl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Completion of polca-ctl for zsh: a file _polca_ctl in a directory of $fpath. The candidates come from polca-ctl
# itself, which asks a running polca for the numbers and names of what there is.

_polca_ctl() {
	local -a list
	local status_of_list

	list=("${(@f)$(polca-ctl --complete $((CURRENT - 1)) "${(@)words[1,CURRENT]}" 2>/dev/null)}")
	status_of_list=$?
	case $status_of_list in
	10) _files ;;                     # the name of a file
	11) compadd -Q -S '' -a list ;;   # "key=" or "A,B": more of the word may follow
	*) compadd -Q -a list ;;
	esac
}

_polca_ctl "$@"
