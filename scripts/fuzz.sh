#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: run the fuzz targets for a bounded time
#
# usage: ./run fuzz [--seconds N] [--save] [TARGET...]
#
#   TARGET       all of them when none is named; --list names them
#   --seconds N  for each target (60)
#   --save       add what reached new code to the corpus in tests/fuzz/corpus, reduced
#   --list       print the targets and exit
#
# New inputs go to build/fuzz/found/TARGET, what broke a target to build/fuzz/crashes/TARGET-*;
# run such a file again with build/fuzz/.../fuzz_TARGET FILE.
# Exit status: 0 nothing found, 1 something was, 2 wrong usage.
. "$(dirname "$0")/lib.sh"

seconds=60
save=
list=
targets=()

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--save) save=1 ;;
		--list) list=1 ;;
		--seconds)
			[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage_error "--seconds '${2:-}': give a number above 0"
			seconds=$2
			shift
			;;
		-*) unknown option "$1" ;;
		*) targets+=("$1") ;;
		esac
		shift
	done
}

known() {
	ninja -C "$ROOT/build/fuzz" -t targets all | sed -n 's/^fuzz_\([a-z_0-9]*\): phony$/\1/p'
}

program_of() {
	find "$ROOT/build/fuzz" -type f -name "fuzz_$1" -perm -u+x
}

# fuzz_one TARGET - one line when it is over; its log in build/fuzz/logs.
fuzz_one() {
	local target=$1 program log=$ROOT/build/fuzz/logs/$1.log
	local corpus=$ROOT/tests/fuzz/corpus/$1 found=$ROOT/build/fuzz/found/$1
	local crash=$ROOT/build/fuzz/crashes/$1-
	program=$(program_of "$target")
	mkdir -p "$found" "$corpus" "${log%/*}" "${crash%/*}"
	if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$crash" "$found" "$corpus" >"$log" 2>&1; then
		say "$target: nothing found in $(count_runs "$log") runs"
		return 0
	fi
	say "$target: FOUND something"
	grep -m 1 -A 12 -e '^==.*ERROR' -e 'runtime error' -e '^SUMMARY' "$log" || tail -n 12 "$log"
	ls "$crash"* 2>/dev/null || true
	return 1
}

count_runs() {
	sed -n 's/^stat::number_of_executed_units: *//p' "$1"
}

# Adds to the corpus what reaches code that the corpus does not.
save_one() {
	local target=$1
	"$(program_of "$target")" -merge=1 "$ROOT/tests/fuzz/corpus/$target" \
		"$ROOT/build/fuzz/found/$target" >"$ROOT/build/fuzz/logs/$target.merge.log" 2>&1
}

# Targets do not share anything, so as many run at once as there are cores.
fuzz_all() {
	local target bad=$ROOT/build/fuzz/failed
	rm -f "$bad"
	for target in "${targets[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do
			wait -n || true
		done
		{ fuzz_one "$target" || touch "$bad"; } &
	done
	wait
	[ ! -e "$bad" ]
}

main() {
	local target status=0
	parse "$@"
	need build fuzz
	configure fuzz || die "the build could not be configured"
	[ -z "$list" ] || { known && exit 0; }
	[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(known)
	[ ${#targets[@]} -gt 0 ] || die "no fuzz targets in this tree"
	for target in "${targets[@]}"; do
		known | grep -qx -- "$target" || usage_error "no target '$target'; --list names them"
	done
	build fuzz "${targets[@]/#/fuzz_}" || die "the build failed"
	say "${#targets[@]} targets, $seconds s each, $JOBS at once"
	fuzz_all || status=1
	if [ -n "$save" ] && [ $status = 0 ]; then
		for target in "${targets[@]}"; do save_one "$target"; done
	fi
	exit $status
}

main "$@"
