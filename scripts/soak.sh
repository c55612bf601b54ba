#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: run the tests that find more the longer they run
#
# usage: ./run soak [--seconds N] [--operations N] [--preset PRESET] [STAGE...]
#
#   STAGE           all of them when none is named:
#                     faults   RoCEv2 on a bad wire: each fault alone and all together, with SEND,
#                              WRITE, READ, atomics and a mix of them
#                     random   random sequences against models, with a new seed each round
#                     mesh     256 nodes join one mesh and leave it, again and again
#                     fuzz     ./run fuzz, every target
#   --seconds N     for random, for mesh, and for each fuzz target (600)
#   --operations N  of the faults stage, in all (1000000)
#   --preset PRESET what is soaked, but for fuzz (release)
#
# Says every round what it has done. A test that fails shows the end of its output, with the seed
# that repeats it, and all of it stays in build/soak; the rest goes on.
# Exit status: 0 nothing failed, 1 something did, 2 wrong usage.
. "$(dirname "$0")/lib.sh"

seconds=600
operations=1000000
preset=release
stages=()
STAGES_KNOWN="faults random mesh fuzz"
CELLS=35 # settings times kinds of operations of the fault matrix
failed=0

number() {
	[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage_error "$1 '${2:-}': give a number above 0"
}

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--seconds) number "$@" && seconds=$2 && shift ;;
		--operations) number "$@" && operations=$2 && shift ;;
		--preset)
			[ $# -ge 2 ] || usage_error "$1 needs a value"
			check_preset "$2"
			preset=$2
			shift
			;;
		-*) unknown option "$1" ;;
		*)
			[[ " $STAGES_KNOWN " == *" $1 "* ]] ||
				usage_error "no stage '$1'; there are: $STAGES_KNOWN"
			stages+=("$1")
			;;
		esac
		shift
	done
	# shellcheck disable=SC2206 # words
	[ ${#stages[@]} -gt 0 ] || stages=($STAGES_KNOWN)
}

program() {
	find "$ROOT/build/$preset/tests" -type f -name "$1" -perm -u+x -print -quit
}

# told PATTERN - the lines that match, with the time.
told() {
	local line
	while IFS= read -r line; do
		[[ $line =~ $1 && $line ]] && say "$line"
	done
	return 0
}

# soak PROGRAM [SHOWN] - once; its output is kept when it fails. Lines that match SHOWN are shown as
# they come.
soak() {
	local name=$1 shown=${2:-^$} log status=0
	log=$ROOT/build/soak/$name-$(date +%Y%m%d-%H%M%S-%N).log
	mkdir -p "${log%/*}"
	"$(program "$name")" 2>&1 | tee "$log" | told "$shown" || status=${PIPESTATUS[0]}
	case $status in
	0) rm "$log" ;;
	77)
		say "$name: skipped: $(tail -n 1 "$log")"
		rm "$log"
		;;
	*)
		failed=1
		say "$name: FAILED with $status; all of its output: ${log#"$ROOT"/}"
		grep -m 1 ERNIC_TEST_SEED "$log" || true
		tail -n 12 "$log"
		;;
	esac
	return 0
}

# rounds SECONDS PROGRAM... - one after the other until the time is up, a line now and then.
rounds() {
	local end=$((SECONDS + $1)) count=0 told=$SECONDS name
	shift
	while [ $SECONDS -lt $end ]; do
		for name in "$@"; do soak "$name"; done
		count=$((count + 1))
		[ $((SECONDS - told)) -lt 30 ] && continue
		say "$count rounds, $((end > SECONDS ? end - SECONDS : 0)) s to go"
		told=$SECONDS
	done
	say "$count rounds of $*"
}

stage_faults() {
	export ERNIC_TEST_OPS=$(((operations + CELLS - 1) / CELLS))
	say "faults: $ERNIC_TEST_OPS operations in each of $CELLS cells"
	soak unit_fabric_roce_faults '^faults '
	unset ERNIC_TEST_OPS
}

stage_random() {
	say "random: $seconds s"
	rounds "$seconds" unit_rdma_random driver_random driver_rdma_random
}

stage_mesh() {
	say "mesh: $seconds s"
	rounds "$seconds" unit_fabric_mesh_scale
}

stage_fuzz() {
	"$ROOT/scripts/fuzz.sh" --seconds "$seconds" || failed=1
}

wants() {
	[[ " ${stages[*]} " == *" $1 "* ]]
}

main() {
	parse "$@"
	need build test
	if [ "${stages[*]}" != fuzz ]; then
		build "$preset" || die "the build failed"
	fi
	wants faults && stage_faults
	wants random && stage_random
	wants mesh && stage_mesh
	wants fuzz && stage_fuzz
	[ $failed = 0 ] && say "nothing failed"
	exit $failed
}

main "$@"
