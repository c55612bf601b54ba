#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: measure which lines the tests reach
#
# usage: ./run coverage [--guest] [--json]
#
#   --guest    run the guest tests too
#   --json     write the report for machines as build/coverage/coverage.json too
#
# Prints a table by file; the pages are build/coverage/html/index.html.
. "$(dirname "$0")/lib.sh"

main() {
	local guest='' json=() status=0
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--guest) guest=1 ;;
		--json) json=(--json "$ROOT/build/coverage/coverage.json") ;;
		*) unknown argument "$1" ;;
		esac
		shift
	done
	need build coverage
	build coverage || die "the build failed"
	find "$ROOT/build/coverage" -name '*.gcda' -delete
	if [ -n "$guest" ]; then
		"$ROOT/scripts/test.sh" --preset coverage || status=1
	else
		"$ROOT/scripts/test.sh" --preset coverage --fast || status=1
	fi
	mkdir -p "$ROOT/build/coverage/html"
	gcovr --root "$ROOT" --filter "$ROOT/src/" --exclude-throw-branches \
		--txt "$ROOT/build/coverage/coverage.txt" \
		--html-details "$ROOT/build/coverage/html/index.html" "${json[@]}" "$ROOT/build/coverage"
	cat "$ROOT/build/coverage/coverage.txt"
	exit $status
}

main "$@"
