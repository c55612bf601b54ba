# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the commands of ./run share. Sourced, never run.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
COMMAND=$(basename "$0" .sh)
# An ordinary user of Debian has neither in PATH; what comes first stays the user's.
export PATH="$PATH:/usr/sbin:/sbin"
JOBS=${ERNIC_JOBS:-$(nproc)}

# Exit codes of all commands: 0 done, 1 something failed, 2 wrong usage.
die() {
	echo "run $COMMAND: $*" >&2
	exit 1
}

usage_error() {
	echo "run $COMMAND: $(with_remedy "$*" "./run $COMMAND --help tells more")" >&2
	exit 2
}

# with_remedy TEXT REMEDY - in one line; a question keeps its mark, and no other.
with_remedy() {
	case $1 in
	*\?) echo "$1 ($2)" ;;
	*) echo "$1; $2" ;;
	esac
}

# unknown KIND WORD [KNOWN...] - refuses a word that is neither an option of the help nor KNOWN.
unknown() {
	local options
	mapfile -t options < <(show_usage | sed -n 's/^ *\(--[a-z-]*\).*/\1/p')
	usage_error "unknown $1 '$2'$(did_you_mean "$2" "${@:3}" --help "${options[@]}")"
}

# did_you_mean WORD KNOWN... - the one that is spelt much like it, if any is, as a question.
did_you_mean() {
	local program='import difflib, sys
print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.7))' near
	near=$(/usr/bin/python3 -c "$program" "$@" 2>/dev/null) || true
	echo "${near:+; did you mean $near?}"
}

# say TEXT - progress of a long command, with the seconds since it began.
say() {
	printf '[%4d s] %s\n' "$SECONDS" "$*"
}

# The text between the SPDX line and the first line of code of a command is its help.
show_usage() {
	awk '/^# summary: / { sub(/^# summary: /, ""); print; on = 1; next }
	     on && /^#/ { sub(/^# ?/, ""); print; next }
	     on { exit }' "$0"
}

# quiet LOG COMMAND... - runs it with its output in a file, shown only when it fails.
quiet() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 && return 0
	tail -n 60 "$log" >&2
	echo "run $COMMAND: failed: $* (all of its output: ${log#"$ROOT"/})" >&2
	return 1
}

# need GROUP... - makes sure the packages of these groups are installed (scripts/packages.txt).
need() {
	[[ $JOBS =~ ^[1-9][0-9]*$ ]] || usage_error "ERNIC_JOBS '$JOBS': give a number above 0"
	"$ROOT/scripts/setup.sh" "$@"
}

# writable DIR - or how to make it so: a run as root leaves files that its user cannot replace.
writable() {
	local first
	first=$(find "$1" -maxdepth 1 ! -writable -print -quit 2>/dev/null) || true
	[ -n "$first" ] || return 0
	echo "run $COMMAND: ${first#"$ROOT"/} belongs to $(stat -c %U "$first") and cannot be written" \
		"to; give the build back: sudo chown -R $(id -un) ${ROOT@Q}/build" >&2
	return 1
}

# configure PRESET - once; ninja does it again when it has to.
configure() {
	local dir=$ROOT/build/$1
	[ -f "$dir/build.ninja" ] ||
		quiet "$dir/configure.log" cmake -S "$ROOT" --preset "$1"
}

# build PRESET [TARGET...] - configures and builds, with a line of progress.
build() {
	local preset=$1 dir=$ROOT/build/$1 begin=$SECONDS
	shift
	say "build $preset"
	writable "$dir" || return 1
	configure "$preset" || return 1
	if [ -t 1 ]; then
		NINJA_STATUS="[%f/%t] " ninja -C "$dir" -j "$JOBS" "$@" | filter_ninja || return 1
	else
		quiet "$dir/build.log" ninja --quiet -C "$dir" -j "$JOBS" "$@" || return 1
	fi
	[ $((SECONDS - begin)) -lt 3 ] || say "build $preset took $((SECONDS - begin)) s"
}

# Leaves out what says nothing.
filter_ninja() {
	grep -v -e '^ninja: Entering directory' -e '^ninja: no work' || true
}

# presets - the names that ./run build takes.
presets() {
	sed -n 's/.*"name": "\([a-z]*\)", "inherits".*/\1/p' "$ROOT/CMakePresets.json"
}

check_preset() {
	presets | grep -qx -- "$1" && return 0
	usage_error "no preset '$1'; there are: $(presets | paste -s -d ' ')"
}
