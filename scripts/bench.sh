#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: measure, as ratios to a limit taken in the same run
#
# usage: ./run bench GROUP [ARGUMENTS...]
#
#   GROUP        eth: the wire, the TAP and the guest's network; rdma: verbs; fabric: verbs between
#                servers, over the mesh and as RoCEv2
#   ARGUMENTS    for the benchmark; `./run bench eth --help` tells them
. "$(dirname "$0")/lib.sh"

main() {
	case ${1:-} in
	--help | -h) show_usage && exit 0 ;;
	"") usage_error "name a group" ;;
	eth | rdma | fabric) ;;
	*) usage_error "no group '$1'; there are eth, rdma and fabric" ;;
	esac
	case " $* " in
	*" --help "* | *" -h "*) exec "$ROOT/bench/run" "$@" ;;
	esac
	"$ROOT/bench/run" "$1" --check "${@:2}" || exit
	need build test bench lab
	build release || die "the build failed"
	exec "$ROOT/bench/run" "$@"
}

main "$@"
