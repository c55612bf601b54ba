#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: build and run the tests (--fast leaves the guests out)
#
# usage: ./run test [--fast] [--preset PRESET]
#        ./run test [--preset PRESET] [--label LABEL]... [NAME...]
#
#   --fast           what needs no guest, once, with the address and undefined-behaviour sanitizers,
#                    or in the build PRESET; not with a LABEL or a NAME
#   --preset PRESET  only this build (release, debug, clang, asan, tsan, fuzz, coverage), and all
#                    of its tests, guests included but for --fast; release when tests are named or labelled
#   --label LABEL    only tests with this label: unit cli driver fuzz lab guest
#   NAME             only tests whose name contains it, as `unit/loop` or `probe`
#
# Without --preset: everything in release; what needs no guest again with the address and
# undefined-behaviour sanitizers; the driver model, the only tests with threads, with the thread
# sanitizer too; the fuzz targets by clang, on their corpus. Ends with the reasons of skipped tests and `N passed, N failed, N skipped`.
# Exit status: 0 all passed, 1 a test failed or nothing ran, 2 wrong usage.
#
# ERNIC_TEST_TAP names a TAP for the tests that need one, where they may not make their own.
. "$(dirname "$0")/lib.sh"

fast=
preset=
labels=()
names=()
LABELS_KNOWN="unit cli driver fuzz lab guest"
results=()
broken=()
failed=

parse() {
	local chosen
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--fast) fast=1 ;;
		--preset | --label)
			[ $# -ge 2 ] || usage_error "$1 needs a value"
			if [ "$1" = --label ]; then add_label "$2"; else preset=$2; fi
			shift
			;;
		-*) unknown option "$1" ;;
		*) names+=("$1") ;;
		esac
		shift
	done
	[ -z "$preset" ] || check_preset "$preset"
	chosen=("${names[@]}" "${labels[@]}")
	[ -z "$fast" ] || [ ${#chosen[@]} -eq 0 ] ||
		usage_error "--fast takes no names or labels: leave it out, or '${chosen[*]}'"
}

add_label() {
	[[ " $LABELS_KNOWN " == *" $1 "* ]] || usage_error "no label '$1'; there are: $LABELS_KNOWN"
	labels+=("$1")
}

# Regular expression for any of the words.
any_of() {
	local IFS='|'
	echo "($*)"
}

# The ctest arguments that stand for what the user asked for.
selection() {
	[ ${#names[@]} -eq 0 ] || printf '%s\n' -R "$(any_of "${names[@]}")"
	[ ${#labels[@]} -eq 0 ] || printf '%s\n' -L "^$(any_of "${labels[@]}")\$"
	[ -z "$fast" ] || printf '%s\n' -LE '^guest$'
}

# none CTEST ARGUMENTS... - whether no test of the build answers to them.
none() {
	ctest --test-dir "$ROOT/build/$preset" -N "$@" 2>/dev/null | grep -q '^Total Tests: 0$'
}

# What was named exists; told before the build, from build files that are up to date.
check_names() {
	local dir=$ROOT/build/$preset name args
	{ writable "$dir" && configure "$preset"; } || die "the build failed"
	quiet "$dir/configure.log" ninja -C "$dir" build.ninja || die "the build failed"
	for name in "${names[@]}"; do
		! none -R "$name" || usage_error "no test's name contains '$name';" \
			"ctest -N --test-dir build/$preset lists them"
	done
	mapfile -t args < <(selection)
	! none "${args[@]}" || usage_error "the build $preset has no such test: ${names[*]:-any name}," \
		"label ${labels[*]:-any}; ctest -N --test-dir build/$preset lists its tests"
}

# What `lab/build` is to build: `full` and `--uc` take long, so only when a test asks for them.
lab_parts() {
	if grep -rqs -e '^# flavour: full' -e '--flavour full' "$ROOT/tests"; then
		echo --flavour=all
	else
		echo --flavour=tiny
	fi
	if grep -rqs -e '^# lab: .*--uc' "$ROOT/tests"; then echo --uc; fi
}

# prepare_lab BUILD CTEST ARGUMENTS... - when there are guests among the selected tests.
prepare_lab() {
	local build=$1 parts
	shift
	ctest --test-dir "$ROOT/build/$build" -N "$@" -L '^guest$' | grep -q 'Total Tests: 0' && return 0
	need lab
	mapfile -t parts < <(lab_parts)
	"$ROOT/lab/build" "${parts[@]}" || die "the lab could not be built"
}

# run_tests PRESET [CTEST ARGUMENTS...] - the selected tests of a build that exists.
run_tests() {
	local build=$1 args=() junit
	shift
	junit=$ROOT/build/$build/junit-${#results[@]}.xml
	mapfile -t args < <(selection)
	prepare_lab "$build" "${args[@]}" "$@"
	rm -f "$junit"
	say "test $build"
	ctest --test-dir "$ROOT/build/$build" --output-junit "$junit" --output-on-failure \
		--test-output-truncation head \
		-j "$JOBS" --timeout 600 "${args[@]}" "$@" 2>&1 | filter_ctest || failed=1
	results+=("$build=$junit")
}

# What ctest says that is neither a line for a test nor its output; the rest is in the summary.
CHATTER='^(Internal ctest|Test project| *Start |Total Test time|Label Time Summary|Errors while|
|Output from these tests|Use "--rerun-failed|The following tests|No tests were found|
|[[:space:]]*[0-9]+ - .*\(.*\)$|[0-9]+% tests passed|.* = .* sec\*proc|$)'

filter_ctest() {
	grep --line-buffered -Ev "${CHATTER//$'\n'|/}" || true
}

# stage PRESET[:TARGET] [CTEST ARGUMENTS...] - builds all or one target, and runs the selected tests.
# A build that fails is a failure like any other: the rest still runs.
stage() {
	local preset=${1%%:*} target=${1#"${1%%:*}"}
	shift
	if build "$preset" ${target:+"${target#:}"}; then
		run_tests "$preset" "$@"
	else
		failed=1
		broken+=("$preset")
	fi
}

all_stages() {
	local crowd=(-j $((2 * JOBS)))    # what has no guest waits for timers half of its time,
	local some=(-j $((3 * JOBS / 2))) # a guest for the other end, a thread for another
	if [ -n "$fast" ]; then
		stage asan "${crowd[@]}"
		return
	fi
	stage release -LE '^guest$' "${crowd[@]}"
	stage asan -L '^(unit|driver|cli|fuzz)$' "${crowd[@]}"
	stage tsan:driver_tests -L '^driver$' "${some[@]}"
	need fuzz
	stage fuzz -L '^fuzz$'
	# An emulated guest on a shared CI machine can be kept from its CPU for seconds, so that a
	# time-out in it strikes: there, and only there, it gets a second try, which shows in the output.
	stage release -L '^guest$' "${some[@]}" ${CI:+--repeat until-pass:2}
}

main() {
	parse "$@"
	need build test
	# Who names tests wants these, not four builds.
	[ $((${#names[@]} + ${#labels[@]})) -eq 0 ] || preset=${preset:-release}
	if [ -n "$preset" ]; then
		case $preset in
		clang | fuzz) need fuzz ;;
		esac
		[ $((${#names[@]} + ${#labels[@]})) -eq 0 ] || check_names
		stage "$preset"
	else
		all_stages
	fi
	[ ${#broken[@]} -eq 0 ] || echo "FAILED   to build: ${broken[*]}"
	"$ROOT/scripts/test_summary.py" "${results[@]}" || failed=1
	[ -z "$failed" ]
}

main "$@"
