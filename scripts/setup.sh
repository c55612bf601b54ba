#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: install the Debian packages that are missing
#
# usage: ./run setup [--list] [GROUP...]
#
#   GROUP     build test bench lab lint fuzz coverage docs; all of them when none is named
#   --list    print the packages of the groups and what each is for, install nothing
#
# Installs with apt: directly as root, else through sudo; where neither is possible it prints the
# command and exits with 1. Says nothing when nothing is missing. The other commands call it with
# the groups that they need. The list is scripts/packages.txt.
. "$(dirname "$0")/lib.sh"

PACKAGES=$ROOT/scripts/packages.txt
GROUPS_KNOWN="build test bench lab lint fuzz coverage docs"

# The version in the name of clang's versioned packages: of the one installed, else of the suite's.
clang_version() {
	{ dpkg-query -W -f '${Depends}\n' clang 2>/dev/null || apt-cache depends clang; } |
		sed -n 's/.*clang-\([0-9][0-9]*\).*/\1/p' | head -n 1
}

# Lines "GROUP PACKAGE WHY" of the groups.
lines_of() {
	local group
	for group in "$@"; do
		grep "^$group " "$PACKAGES"
	done
}

packages_of() {
	local names
	names=$(lines_of "$@" | awk '{ print $2 }' | sort -u)
	case $names in
	*@clang@*) names=${names//@clang@/$(clang_version)} ;;
	esac
	echo "$names"
}

# Those of the groups' packages that are not installed.
missing_of() {
	local names
	names=$(packages_of "$@")
	# shellcheck disable=SC2086 # words
	{ dpkg-query -W -f '${db:Status-Status} ${Package}\n' $names 2>/dev/null || true; } |
		sed -n 's/^installed //p' | sort -u | comm -13 - <(echo "$names")
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif [ -t 0 ]; then
		sudo -- "$@"
	else
		sudo -n -- "$@"
	fi
}

apt() {
	quiet "$ROOT/build/setup.log" as_root env DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_MODE=l \
		apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

# True when apt's lists know every one of the packages.
lists_know() {
	local name
	for name in "$@"; do
		apt-cache show --no-all-versions "$name" >/dev/null 2>&1 || return 1
	done
}

install() {
	say "installing: $*"
	if lists_know "$@"; then
		apt install --no-install-recommends "$@" && return 0
		say "trying again with new package lists"
	fi
	apt update && apt install --no-install-recommends "$@"
}

can_install() {
	[ "$(id -u)" = 0 ] && return 0
	command -v sudo >/dev/null || return 1
	[ -t 0 ] || sudo -n true 2>/dev/null
}

check_groups() {
	local group
	for group in "$@"; do
		case " $GROUPS_KNOWN " in
		*" $group "*) ;;
		*) usage_error "no group '$group'; there are: $GROUPS_KNOWN" ;;
		esac
	done
}

# Where there is no dpkg the names are still the best hint; the build says what it misses.
no_dpkg() {
	command -v dpkg-query >/dev/null && return 1
	echo "run setup: not a Debian system; these packages by Debian's names are needed:" >&2
	packages_of "$@" | tr '\n' ' ' >&2
	echo >&2
}

main() {
	local missing list=''
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--list) list=1 ;;
		-*) unknown option "$1" ;;
		*) break ;;
		esac
		shift
	done
	check_groups "$@"
	# shellcheck disable=SC2086 # words
	[ $# -gt 0 ] || set -- $GROUPS_KNOWN
	if [ "$list" ]; then
		lines_of "$@"
		return 0
	fi
	no_dpkg "$@" && return 0
	missing=$(missing_of "$@" | tr '\n' ' ')
	[ "$missing" ] || return 0
	if ! can_install; then
		echo "run setup: packages are missing; as root:" >&2
		echo "  apt-get install --no-install-recommends $missing" >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # words
	install $missing || die "apt could not install: $missing"
}

main "$@"
