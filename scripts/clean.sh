#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: remove what was built in this tree
#
# usage: ./run clean [--lab]
#
#   --lab    remove the lab (kernel, QEMU, guest images) from the cache too
. "$(dirname "$0")/lib.sh"

main() {
	case ${1:-} in
	--help | -h) show_usage && exit 0 ;;
	--lab) "$ROOT/lab/clean" --all ;;
	"") ;;
	*) unknown argument "$1" ;;
	esac
	rm -rf "$ROOT/build" "$ROOT/docs/_build"
}

main "$@"
