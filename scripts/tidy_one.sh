#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs clang-tidy on one file, unless it was clean before and nothing has changed since: neither it,
# nor .clang-tidy, nor any header (NEWEST is the one that changed last).
# usage: tidy_one.sh DATABASE STAMPS NEWEST FILE
set -u

database=$1 stamp=$2/$4.ok newest=$3 file=$4
if [ "$stamp" -nt "$file" ] && [ "$stamp" -nt "$newest" ] &&
	[ "$stamp" -nt .clang-tidy ] && [ "$stamp" -nt tests/.clang-tidy ]; then
	exit 0
fi
mkdir -p "${stamp%/*}"
clang-tidy -p "$database" --quiet "$file" 2>/dev/null || exit 1
touch "$stamp"
