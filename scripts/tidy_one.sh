#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs clang-tidy on one file, unless it was clean before and nothing has changed since: neither it,
# nor .clang-tidy, nor any header (NEWEST is the one that changed last).
# usage: tidy_one.sh DATABASE STAMPS NEWEST FILE
set -u

database=$1 stamp=$2/$4.ok newest=$3 file=$4
if [ "$stamp" -nt "$file" ] && [ "$stamp" -nt "$newest" ] && [ "$stamp" -nt .clang-tidy ]; then
	exit 0
fi
case $file in
tests/*) less=(--checks=-clang-analyzer-*) ;; # slow, and tests run under the sanitizers anyway
*) less=() ;;
esac
mkdir -p "${stamp%/*}"
clang-tidy -p "$database" --quiet "${less[@]}" "$file" 2>/dev/null || exit 1
touch "$stamp"
