#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: build into build/PRESET (release unless named)
#
# usage: ./run build [PRESET...]
#
#   release    what people run; asserts stay on
#   debug      not optimised
#   clang      debug, by clang
#   asan       with the address and undefined-behaviour sanitizers
#   tsan       with the thread sanitizer
#   fuzz       the libFuzzer targets
#   coverage   with gcov counters
#
# ERNIC_JOBS limits the jobs that run at once. Installing is CMake's:
#   cmake --install build/release --prefix /usr/local
. "$(dirname "$0")/lib.sh"

main() {
	local preset
	for preset in "$@"; do
		case $preset in
		--help | -h) show_usage && exit 0 ;;
		-*) unknown option "$preset" ;;
		esac
		check_preset "$preset"
	done
	[ $# -gt 0 ] || set -- release
	need build
	for preset in "$@"; do
		case $preset in
		clang | fuzz) need fuzz ;;
		esac
		build "$preset" || die "the build failed"
	done
}

main "$@"
