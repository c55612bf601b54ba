#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: boot a guest with the NIC, or two, and show it at work
#
# usage: ./run demo [SCENE] [--profile NAME]
#
#   SCENE            what to show:
#                      one   (the default) a guest, its driver and link; the RDMA device, a
#                            pingpong, RDMA WRITEs beside Soft-RoCE, and rping, all inside the
#                            guest; and, with a TAP, a ping and a TCP transfer in each direction
#                            with the contents compared
#                      mesh  two guests, each with a server of its own, which reach each other over
#                            TCP: ping, RDMA WRITEs and rping between them; needs no root
#                      roce  two guests on a bridge, one with the NIC and --backend roce, one with
#                            Soft-RoCE on virtio-net: the same; needs TAPs
#   --profile NAME   the NIC's profile (generic-100g): compat small-vm generic-100g generic-400g,
#                    or a file
#
# Installs what is missing, builds the server, builds the guest lab unless it is in the cache, and
# boots the guests.
#
# A TAP takes root, or a kernel that lets users have network namespaces and a /dev/net/tun that is
# open to all. It lives in a private namespace: the host's network is not touched. Where no TAP can
# be made, `one` leaves out what needs it, and `roce` says so and ends with 1.
. "$(dirname "$0")/lib.sh"

PROFILES="compat small-vm generic-100g generic-400g"
profile=generic-100g
scene=

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) show_usage && exit 0 ;;
		--profile)
			[ $# -ge 2 ] || usage_error "--profile needs a value"
			check_profile "$2"
			profile=$2
			shift
			;;
		one | mesh | roce)
			[ -z "$scene" ] || usage_error "one scene at a time, not '$scene' and '$1'"
			scene=$1
			;;
		*) unknown argument "$1" one mesh roce ;;
		esac
		shift
	done
}

# The server would say so too, but after the build.
check_profile() {
	[[ " $PROFILES " == *" $1 "* || -f $1 ]] ||
		usage_error "--profile '$1': no file and no profile; there are: $PROFILES"
}

# How to become one who may make TAPs: nothing, a command, or status 1 for no way.
tap_maker() {
	[ "$(id -u)" != 0 ] || return 0
	unshare --user --map-root-user --net ip tuntap add dev probe mode tap 2>/dev/null || return 1
	echo unshare --user --map-root-user
}

# boot FLAG... - lab/vm with what all scenes want.
boot() {
	local maker=${MAKER:-}
	# shellcheck disable=SC2086 # words
	$maker "$ROOT/lab/vm" --timeout 120 --vcpus 4 "$@" || die "the demo failed"
	echo
}

show_one() {
	local flags=()
	if MAKER=$(tap_maker); then
		flags+=(--nic "--nic-profile ${profile@Q} --tap ernic0" --env PEER=192.168.200.1)
		flags+=(--host "$ROOT/demo/host")
	else
		flags+=(--nic "--nic-profile ${profile@Q}" --env PEER=)
	fi
	boot "${flags[@]}" -- "$ROOT/demo/guest.sh"
	[[ " ${flags[*]} " = *" --host "* ]] ||
		say "left out: ping and TCP. They need a TAP, and this user may not make one: try as root."
}

# A TCP port that nobody listens on.
free_port() {
	/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

show_mesh() {
	local port
	port=$(free_port) || die "no free TCP port"
	say "two servers, one mesh: --backend tcp:manager:$port and tcp:worker:127.0.0.1:$port"
	boot --guests 2 --file "$ROOT/demo/pair.sh" \
		--nic "--nic-profile ${profile@Q} --backend tcp:manager:$port" \
		--nic "--nic-profile ${profile@Q} --backend tcp:worker:127.0.0.1:$port" \
		-- "$ROOT/demo/mesh.sh"
}

show_roce() {
	MAKER=$(tap_maker)
	say "guest 1 has the NIC, --backend roce; guest 2 has Soft-RoCE on virtio-net"
	boot --guests 2 --file "$ROOT/demo/pair.sh" --virtio-tap virt%n --host "$ROOT/demo/roce_host.sh" \
		--nic "--nic-profile ${profile@Q} --backend roce --tap ernic0" --nic "--backend none" \
		-- "$ROOT/demo/roce.sh"
}

main() {
	parse "$@"
	scene=${scene:-one}
	[ "$scene" != roce ] || tap_maker >/dev/null ||
		die "roce needs TAPs, and this user may not make one: try as root (mesh needs none)"
	need build lab
	build release installable || die "the build failed"
	"$ROOT/lab/build" --flavour tiny || die "the lab could not be built"
	say "boot"
	"show_$scene"
	say "done"
}

main "$@"
