#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: build the manual, as HTML
#
# usage: ./run docs
#
# Writes docs/_build/html/index.html; warnings are errors. The man page rocm-ernic(1) is made by
# the build of the program, from its table of options.
. "$(dirname "$0")/lib.sh"

main() {
	case ${1:-} in
	--help | -h) show_usage && exit 0 ;;
	"") ;;
	*) unknown argument "$1" ;;
	esac
	need docs
	quiet "$ROOT/docs/_build/html.log" sphinx-build -W --keep-going -n -q -b html \
		"$ROOT/docs" "$ROOT/docs/_build/html" || die "the manual has faults"
	say "docs/_build/html/index.html"
}

main "$@"
