#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: check layout, static analysis, spelling, house rules
#
# usage: ./run lint [--quick] [--fix] [--list] [CHECK...]
#
#   CHECK      only these; --list names them
#   --quick    clang-tidy and cppcheck look only at C files that differ from the upstream branch
#              (or from the last commit, when there is none)
#   --fix      let clang-format lay out the C files
#
# Looks at the files that git knows, and those it would add. Exit status: 0 clean, 1 not.
. "$(dirname "$0")/lib.sh"

CHECKS="format spdx shell python spelling rooms headers budget cppcheck tidy"
DATABASE=$ROOT/build/debug

quick=
fix=
wanted=()

# The files of the tree that match the patterns. Files of test data are nobody's style.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" ':!tests/fuzz/corpus' |
		while read -r file; do
			if [ -f "$file" ]; then echo "$file"; fi
		done
}

# The C files that the slow analysers look at: those of the debug build, maybe only changed ones.
analysed() {
	local base
	{
		if [ -n "$quick" ]; then
			base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || echo HEAD)
			git diff --name-only --diff-filter=d "$base" -- '*.c'
			git ls-files --others --exclude-standard -- '*.c'
		else
			files '*.c'
		fi
	} | sort -u | grep -Fx -f <(in_database) || true
}

in_database() {
	sed -n "s|^  \"file\": \"$ROOT/\(.*\)\"[,]*\$|\1|p" "$DATABASE/compile_commands.json" | sort -u
}

# Files whose first line names an interpreter, or with its usual ending.
scripts_for() {
	local ending=$1 pattern=$2
	# shellcheck disable=SC2016 # an awk program
	{
		files "*.$ending"
		files | grep -v '\.[a-z]*$' |
			xargs -r awk -v pattern="$pattern" '$0 ~ pattern { print FILENAME } { nextfile }'
	} | sort -u
}

check_format() {
	local bad
	if [ -n "$fix" ]; then
		files '*.c' '*.h' | xargs -r clang-format -i
		return
	fi
	bad=$(files '*.c' '*.h' | xargs -r -P "$JOBS" -n 8 clang-format --dry-run -Werror 2>&1 |
		sed -n 's/^\([^ :]*\):[0-9].*clang-formatted.*/\1/p' | sort -u)
	[ -z "$bad" ] && return 0
	echo "not laid out (./run lint --fix format):"
	echo "$bad"
	return 1
}

check_spdx() {
	local bad
	bad=$(files '*.c' '*.h' '*.sh' '*.py' '*.cmake' '*CMakeLists.txt' | xargs -r awk '
		FNR == 1 { if (file && !good) print file; file = FILENAME; good = 0 }
		FNR <= 3 && /SPDX-License-Identifier: GPL-2.0-or-later/ { good = 1 }
		END { if (file && !good) print file }')
	[ -z "$bad" ] && return 0
	echo "no SPDX line among the first three:"
	echo "$bad"
	return 1
}

check_shell() {
	scripts_for sh '^#!.*(ba|da|/)sh' | xargs -r shellcheck -x
}

check_python() {
	scripts_for py '^#!.*python3' | xargs -r pyflakes3
}

check_spelling() {
	files | grep -v -e '^LICENSE$' -e '\.bin$' | xargs -r codespell --config .codespellrc
}

check_rooms() {
	files 'src/*.c' 'src/*.h' 'tests/unit/*.c' 'tests/unit/*.h' |
		xargs -r scripts/check_rooms.py && check_rooms_alone
}

# The wire and the verbs engine compile where the doors of vfio and ionic do not exist.
check_rooms_alone() {
	local fake room door status=0 file
	fake=$(mktemp -d)
	for room in vfio ionic; do
		mkdir "$fake/$room"
		for door in src/"$room"/*.h; do
			echo "#error \"$room is not for this room\"" >"$fake/$room/${door##*/}"
		done
	done
	for file in $(files 'src/base/*.c' 'src/net/*.c' 'src/rdma/*.c'); do
		gcc -std=gnu11 -D_GNU_SOURCE -I"$fake" -Isrc -fsyntax-only "$file" || status=1
	done
	rm -r "$fake"
	return $status
}

check_headers() {
	local file
	files 'src/*.h' 'tests/*.h' 'bench/*.h' | while read -r file; do
		echo "#include \"$ROOT/$file\"" |
			gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Isrc -I"$(dirname "$file")" \
				-I. -Itests -Itests/driver -Itests/unit/rdma -fsyntax-only -x c - ||
			echo "$file does not compile alone"
	done | grep . && return 1
	return 0
}

check_budget() {
	files '*.c' '*.h' | xargs -r scripts/check_budget.py
}

# <sys/queue.h>, near enough: cppcheck reads no system headers, and a definition may have no ";".
QUEUE_MACRO='-DLIST_FOREACH(var,head,field)=while(((var)=(head)->lh_first))'

check_cppcheck() {
	local list
	list=$(analysed)
	[ -n "$list" ] || return 0
	mkdir -p "$ROOT/build/cppcheck"
	cppcheck --file-list=- -j "$JOBS" --quiet --inline-suppr --error-exitcode=1 \
		--suppressions-list=scripts/cppcheck-suppressions.txt --std=c11 \
		--enable=warning,performance,portability \
		-I src -D_GNU_SOURCE "$QUEUE_MACRO" --cppcheck-build-dir="$ROOT/build/cppcheck" 2>&1 <<<"$list"
}

newest_header() {
	files '*.h' | xargs -r ls -t | head -n 1
}

# One line for each finding; how the analyser came to it is in the file.
check_tidy() {
	local all=$ROOT/build/tidy.txt status=0
	analysed | xargs -r -P "$JOBS" -n 1 scripts/tidy_one.sh "$DATABASE" "$ROOT/build/tidy" \
		"$(newest_header)" >"$all" || status=1
	sed -n "s|^$ROOT/\(.*: error: .*\)|\1|p" "$all" | sort -u
	[ $status = 0 ] || echo "more: build/tidy.txt"
	return $status
}

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--quick) quick=1 ;;
		--fix) fix=1 ;;
		--list) tr ' ' '\n' <<<"$CHECKS" && exit 0 ;;
		-*) unknown option "$1" ;;
		*)
			grep -qw -- "$1" <<<"$CHECKS" || usage_error "no check '$1'; there are: $CHECKS"
			wanted+=("$1")
			;;
		esac
		shift
	done
	# shellcheck disable=SC2206 # words
	[ ${#wanted[@]} -gt 0 ] || wanted=($CHECKS)
}

main() {
	local check bad=()
	parse "$@"
	need build lint
	cd "$ROOT"
	case " ${wanted[*]} " in
	*" tidy "* | *" cppcheck "*)
		quiet "$DATABASE/configure.log" cmake -S . --preset debug
		;;
	esac
	for check in "${wanted[@]}"; do
		if "check_$check"; then
			say "$check: clean"
		else
			say "$check: NOT CLEAN"
			bad+=("$check")
		fi
	done
	[ ${#bad[@]} -eq 0 ] || die "not clean: ${bad[*]}"
}

main "$@"
