#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: boot a guest with the NIC and show it at work
#
# usage: ./run demo [--profile NAME]
#
#   --profile NAME   the NIC's profile (generic-100g): compat small-vm generic-100g generic-400g,
#                    or a file
#
# Installs what is missing, builds the server, builds the guest lab unless it is in the cache, and
# boots a guest. Shows the PCI device, its driver and its link; the RDMA device, a pingpong, RDMA
# WRITEs beside Soft-RoCE, and rping, all inside the guest; and, where a TAP can be made, a ping and a
# TCP transfer in each direction with the contents compared.
#
# A TAP takes root, or a kernel that lets users have network namespaces and a /dev/net/tun that is
# open to all. It lives in a private namespace: the host's network is not touched.
. "$(dirname "$0")/lib.sh"

profile=generic-100g

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--profile)
			[ $# -ge 2 ] || usage_error "--profile needs a value"
			profile=$2
			shift
			;;
		*) usage_error "unknown argument '$1'" ;;
		esac
		shift
	done
}

# How to become one who may make TAPs: nothing, a command, or status 1 for no way.
tap_maker() {
	[ "$(id -u)" != 0 ] || return 0
	unshare --user --map-root-user --net ip tuntap add dev probe mode tap 2>/dev/null || return 1
	echo unshare --user --map-root-user
}

main() {
	local maker flags=(--timeout 120 --vcpus 4)
	parse "$@"
	need build lab
	build release rocm-ernic || die "the build failed"
	"$ROOT/lab/build" --flavour tiny || die "the lab could not be built"
	say "boot a guest"
	if maker=$(tap_maker); then
		flags+=(--nic "--nic-profile $profile --tap ernic0" --env PEER=192.168.200.1)
		flags+=(--host "$ROOT/demo/host")
	else
		flags+=(--nic "--nic-profile $profile" --env PEER=)
	fi
	# shellcheck disable=SC2086 # words
	$maker "$ROOT/lab/vm" "${flags[@]}" -- "$ROOT/demo/guest.sh" || die "the guest did not make it"
	echo
	[[ " ${flags[*]} " = *" --host "* ]] ||
		say "left out: ping and TCP. They need a TAP, and this user may not make one: try as root."
	say "done"
}

main "$@"
