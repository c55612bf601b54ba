#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The contract of lab/vm: statuses, reasons, output, and that nothing is left behind.
#
# usage: test_vm.sh [PATTERN]     only the tests whose name matches the shell pattern
#
# Every run gets a TMPDIR of its own, which must be empty afterwards, and whose name in a command
# line betrays processes that were left. ROCM_ERNIC names the NIC server; without one the tests
# that need it are skipped.
# shellcheck disable=SC2016 # scripts for the guest stand in single quotes
set -u

LAB=$(cd "$(dirname "$0")/../../lab" && pwd)
WORK=$(mktemp -d /tmp/lab-test.XXXXXX)
export TMPDIR=$WORK/tmp
chmod 755 "$WORK"
mkdir -m 1777 "$TMPDIR"
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0 skipped=0

# script NAME - makes a script for the guest or the host from stdin.
script() {
	cat >"$WORK/$1"
	chmod +x "$WORK/$1"
}

# vm FLAGS... - runs the lab; $status, $WORK/out and $WORK/err are the result. One CPU boots fastest,
# and where a test is not about booting, a saved boot is faster still.
vm() {
	"$LAB/vm" --vcpus 1 "$@" >"$WORK/out" 2>"$WORK/err"
	status=$?
}

fail() {
	echo "#   $*"
	return 1
}

expect_status() {
	[ "$status" -eq "$1" ] || fail "status $status, expected $1: $(tail -n 3 "$WORK/err")"
}

expect_text() { # FILE PATTERN
	grep -q -- "$2" "$WORK/$1" || fail "$1 lacks '$2': $(tail -n 3 "$WORK/$1")"
}

# The processes whose command line names our TMPDIR.
leftovers() {
	# The text comes on stdin, or grep would find itself.
	# shellcheck disable=SC2062 # not a pattern
	grep -lsaF --file=- /proc/[0-9]*/cmdline <<<"$TMPDIR/"
}

no_leftovers() {
	[ -z "$(leftovers)" ]
}

expect_clean() {
	[ -z "$(ls -A "$TMPDIR")" ] || fail "files left: $(ls "$TMPDIR")" || return
	no_leftovers || fail "processes left: $(leftovers)"
}

# Waits for a condition, at most two minutes: a busy machine boots slowly.
eventually() {
	local tries=2400
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

test_status_and_bytes_pass_through() {
	script bytes <<-'END'
		#!/bin/sh
		cat all-bytes
		seq 1 30000
		echo error >&2
		echo reopened >/dev/stderr
		exit 7
	END
	for ((i = 0; i < 256; i++)); do
		# shellcheck disable=SC2059
		printf "\\$(printf %03o "$i")"
	done >"$WORK/all-bytes"
	{
		cat "$WORK/all-bytes"
		seq 1 30000
		echo error
		echo reopened
	} >"$WORK/expected"
	vm --no-nic --file "$WORK/all-bytes" -- "$WORK/bytes"
	expect_status 7 && cmp "$WORK/expected" "$WORK/out" && expect_clean
}

test_guests_of_a_saved_boot_differ_in_what_must_not_be_equal() {
	script own <<-'END'
		echo "random $(od -An -tx8 -N16 /dev/urandom)"
		echo "time $(date +%s)"
		echo "$(cat data.txt) of $(hostname), boot $BOOT"
	END
	echo data >"$WORK/data.txt"
	vm --snapshot --no-nic --guests 2 --boots 2 --file "$WORK/data.txt" -- "$WORK/own"
	expect_status 0 && expect_clean || return
	for line in '\[1\] data of guest1, boot 1' '\[1\] data of guest1, boot 2' '\[2\] data of guest2, boot 1'; do
		expect_text out "^$line\$" || return
	done
	[ "$(grep -o 'random .*' "$WORK/out" | sort -u | wc -l)" -eq 4 ] || fail "equal random numbers" || return
	local now when
	now=$(date +%s)
	while read -r when; do
		[ $((now - when)) -ge 0 ] && [ $((now - when)) -lt 120 ] || fail "time $when, now $now" || return
	done < <(sed -n 's/.*time //p' "$WORK/out")
}

test_two_guests_have_prefixes_and_the_first_failure_counts() {
	script one <<<'echo "this is $GUEST of $GUESTS"; barrier met && echo met; barrier never'
	script two <<<'echo "this is $GUEST of $GUESTS"; barrier met && echo met; exit 9'
	vm --snapshot --no-nic --guests 2 --json "$WORK/json" -- "$WORK/one" "$WORK/two"
	expect_status 9 && expect_text out '^\[1\] this is 1 of 2$' &&
		expect_text out '^\[2\] this is 2 of 2$' && expect_text out '^\[1\] met$' &&
		expect_text out '^\[1\] barrier never: another guest ended' &&
		expect_text json '"status": 9' && expect_clean
}

test_time_out_is_124() {
	script forever <<<'echo started; sleep 1000'
	vm --snapshot --no-nic --timeout 5 -- "$WORK/forever"
	expect_status 124 && expect_text err 'guest 1 had not ended after 5 s' &&
		expect_clean
}

test_server_that_fails_is_125() {
	script unused <<<'true'
	script deaf <<<$'#!/bin/sh\necho "option --wrong: no such option" >&2; exit 1'
	vm --server "$WORK/deaf" -- "$WORK/unused"
	expect_status 125 && expect_text err 'server 1 ended with status 1 before it listened: option --wrong' &&
		expect_clean || return
	vm --server "$WORK/missing" -- "$WORK/unused"
	expect_status 2 && expect_text err "--server $WORK/missing: no such program" && expect_clean
}

test_qemu_that_fails_is_125() {
	script unused <<<'true'
	vm --no-nic --qemu-arg=-nonsense -- "$WORK/unused"
	expect_status 125 && expect_text err 'guest 1 never came up.*nonsense' && expect_clean || return
	vm --no-nic --qemu "$WORK/missing" -- "$WORK/unused"
	expect_status 2 && expect_text err "--qemu $WORK/missing: no such program" && expect_clean
}

test_qemu_alone_takes_arguments_and_keeps_the_cache() {
	"$LAB/qemu" -nope >"$WORK/out" 2>"$WORK/err"
	status=$?
	expect_status 1 && expect_text err '-nope: invalid option' || return
	"$LAB/qemu" -S -display none -nodefaults -pidfile "$TMPDIR/pid" 2>"$WORK/qemu" &
	eventually test -s "$TMPDIR/pid" || fail "did not start" || return
	[ "$(cat "$TMPDIR/pid")" = $! ] || fail "QEMU is another process"
	"$LAB/clean" --dry-run >"$WORK/out" 2>"$WORK/err"
	status=$?
	kill $!
	wait $!
	expect_status 125 && expect_text err 'a guest or a build is running' && expect_clean
}

test_panic_is_125_and_shown() {
	script panic <<<'echo c >/proc/sysrq-trigger; sleep 100'
	vm --no-nic -- "$WORK/panic"
	expect_status 125 && expect_text err 'guest 1 ended before its script did' &&
		expect_text err 'kernel:.*Kernel panic' && expect_clean
}

test_strict_fails_on_kernel_warning() {
	script warn <<<'echo "<4>WARNING: made up" >/dev/kmsg'
	vm --snapshot --no-nic -- "$WORK/warn"
	expect_status 0 || return
	vm --snapshot --no-nic --strict -- "$WORK/warn"
	expect_status 1 && expect_text err 'WARNING: made up' && expect_clean
}

test_files_share_environment_and_logs() {
	mkdir -m 777 "$WORK/share"
	echo from-host >"$WORK/share/in"
	echo beside >"$WORK/data.txt"
	script files <<-'END'
		cat /share/in data.txt
		echo "$COLOUR"
		echo from-guest >/share/out
		echo x >/tmp/x && echo y >/dev/shm/y && cat /tmp/x /dev/shm/y
		ping -V | grep -q iputils && echo iputils
	END
	vm --no-nic --share "$WORK/share" --file "$WORK/data.txt" --env "COLOUR=a 'b' \$c" \
		--keep-logs "$WORK/logs" -- "$WORK/files"
	printf '%s\n' from-host beside "a 'b' \$c" x y iputils >"$WORK/expected"
	expect_status 0 && cmp "$WORK/expected" "$WORK/out" && grep -q from-guest "$WORK/share/out" &&
		cmp "$WORK/out" "$WORK/logs/guest-1/output" &&
		grep -q 'Linux version' "$WORK/logs/guest-1/kernel" && expect_clean
}

test_output_that_cannot_be_written_leaves_the_status() {
	script seven <<<'sleep 1; exit 7'
	script taker <<-'END'
		#!/bin/sh
		rm -r "$PLACE" && : >"$PLACE"
	END
	mkdir "$WORK/place"
	vm --snapshot --no-nic --keep-logs "$WORK/place/logs" --json "$WORK/place/json" --env "PLACE=$WORK/place" \
		--host "$WORK/taker" -- "$WORK/seven"
	expect_status 7 && expect_text err "--keep-logs $WORK/place/logs: Not a directory" &&
		expect_text err "--json $WORK/place/json: Not a directory" && expect_clean || return
	! grep Traceback "$WORK/err"
}

test_interpreter_that_the_guest_lacks_is_named() {
	script python <<<'#!/usr/bin/python3'
	vm --snapshot --no-nic -- "$WORK/python"
	expect_status 127 && expect_text out 'no /usr/bin/python3,.*--flavour full' && expect_clean || return
	script awk <<<'#!/usr/bin/env none'
	vm --snapshot --no-nic -- "$WORK/awk"
	expect_status 127 && expect_text out 'no none, which the script names' && expect_clean
}

test_tools_find_their_libraries() {
	script tools <<-'END'
		bad=0
		for tool in bash busybox ip rdma tc ss bridge devlink ethtool ibv_devices ibv_devinfo \
		    ibv_rc_pingpong rping ucmatose ib_write_bw ib_send_lat ib_atomic_bw qperf nvme fio \
		    iperf3 curl tcpdump lspci setpci ping arping jq socat modprobe; do
		    program=$(command -v "$tool") || { echo "no $tool"; bad=1; continue; }
		    /lib64/ld-linux-x86-64.so.2 --list "$program" 2>&1 | grep 'not found' && bad=1
		done
		modprobe -a ib_uverbs rdma_rxe nvmet_rdma nvme_rdma sch_netem 8021q macvlan bonding || bad=1
		exit $bad
	END
	vm --no-nic --strict -- "$WORK/tools"
	expect_status 0 || { cat "$WORK/out" && return 1; }
}

test_host_script_kills_qemu_and_the_guest_boots_again() {
	script victim <<-'END'
		echo "boot $BOOT"
		[ "$BOOT" = 2 ] || sleep 1000
	END
	script killer <<-'END'
		#!/bin/sh
		await output.1 'boot 1' && kill -9 "$(cat "$LAB_DIR/qemu.1.pid")"
		await output.1 'boot 2'
		sleep 1000 &
	END
	vm --snapshot --no-nic --boots 2 --host "$WORK/killer" -- "$WORK/victim"
	expect_status 0 && expect_text out '^boot 1$' && expect_text out '^boot 2$' && expect_clean || return
	script killer <<<'await output.1 "boot 1" && kill -9 "$(cat "$LAB_DIR/qemu.1.pid")"'
	vm --snapshot --no-nic --host "$WORK/killer" -- "$WORK/victim"
	expect_status 125 && expect_text err 'killed by SIGKILL' && expect_clean
}

test_host_script_status_counts_and_barriers_include_it() {
	script guest <<<'barrier here 2 && echo met'
	script host <<<'barrier here 2 && echo met too; exit 3'
	vm --snapshot --no-nic --host "$WORK/host" -- "$WORK/guest"
	expect_status 3 && expect_text out '^met$' && expect_text out '^\[host\] met too$' && expect_clean
}

test_signals_leave_nothing() {
	script forever <<<'echo started; sleep 1000'
	local number
	for number in INT TERM KILL; do
		: >"$WORK/out"
		"$LAB/vm" --vcpus 1 --snapshot --no-nic -- "$WORK/forever" >"$WORK/out" 2>"$WORK/err" &
		if ! eventually grep -q started "$WORK/out"; then
			kill -9 $!
			fail "did not start"
			return
		fi
		kill -s "$number" $!
		wait $!
		status=$?
		expect_status $((128 + $(kill -l "$number"))) || return
		if [ "$number" = KILL ]; then # no process, but nobody to remove the files
			eventually no_leftovers || fail "processes left"
			rm -rf "${TMPDIR:?}"/*
		else
			expect_clean
		fi || return
	done
}

test_wrong_arguments_are_2() {
	script unused <<<'true'
	local arguments
	for arguments in "--guest 2" "--guests 0" "--guests x" "--vcpus" "--nic a --nic b" "--modules /" \
		"--share $WORK/none" "--env =x" "--flavour huge" "--no-nic --nic x"; do
		# shellcheck disable=SC2086 # words
		vm $arguments -- "$WORK/unused"
		expect_status 2 || fail "$arguments" || return
	done
	vm -- "$WORK/none"
	expect_status 2 && expect_text err 'no such file' || return
	vm --guests 3 -- "$WORK/unused" "$WORK/unused"
	expect_status 2 && expect_text err '2 scripts for 3 guests' && expect_clean
}

test_ordinary_user() {
	script who <<<'id -u'
	if [ "$(id -u)" -ne 0 ]; then
		vm --no-nic -- "$WORK/who"
		expect_status 0
		return
	fi
	# Nobody may not enter root's cache, so links to its files go where anybody may.
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/rocm-ernic/lab
	mkdir -p "$WORK/cache/rocm-ernic/lab"
	local part
	for part in $("$LAB/build" --flavour tiny --print-paths | sed -n "s|.*=$cache/\([^/]*\).*|\1|p" | sort -u); do
		cp -al "$cache/$part" "$WORK/cache/rocm-ernic/lab/" 2>/dev/null ||
			cp -a "$cache/$part" "$WORK/cache/rocm-ernic/lab/"
	done
	cp -a "$cache/index" "$WORK/cache/rocm-ernic/lab/"
	chmod 777 "$WORK/cache/rocm-ernic/lab"
	XDG_CACHE_HOME=$WORK/cache setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$LAB/vm" --vcpus 1 --no-nic -- "$WORK/who" >"$WORK/out" 2>"$WORK/err"
	status=$?
	expect_status 0 && expect_text out '^0$' && expect_clean
}

test_nic_comes_up() {
	need_server || return
	script nic <<-'END'
		. nic-up || exit
		ip -br addr show "$NIC"
		ethtool -i "$NIC"
		lspci -d 1dd8:
	END
	vm --vcpus 4 --strict --keep-logs "$WORK/nic-logs" -- "$WORK/nic"
	expect_status 0 && expect_text out '192.168.200.11/24' && expect_text out 'driver: ionic' &&
		expect_text out 'Ethernet controller' && [ -s "$WORK/nic-logs/guest-1/stats" ] && expect_clean
}

test_server_that_dies_in_the_run_is_125() {
	need_server || return
	script nic <<<'. nic-up; echo ready; sleep 1000'
	script killer <<<'await output.1 ready && kill -SEGV "$(cat "$LAB_DIR/server.1.pid")"'
	vm --snapshot --host "$WORK/killer" -- "$WORK/nic"
	expect_status 125 && expect_text err 'server 1 killed by SIGSEGV during the run' && expect_clean
}

# What a sanitizer says counts whatever status it ends the server with.
test_sanitizer_report_is_125() {
	need_server || return
	script nothing <<<'true'
	script reports <<-'END'
		#!/bin/sh
		echo "WARNING: ThreadSanitizer: data race (pid=$$)" >&2
		echo "  Write of size 8 by nobody" >&2
		exec "$@"
	END
	vm --snapshot --wrap-server "$WORK/reports" -- "$WORK/nothing"
	expect_status 125 && expect_text err 'server 1, what a sanitizer reported' &&
		expect_text err 'Write of size 8 by nobody' && expect_clean
}

test_taps_are_private() {
	need_server || return
	[ "$(id -u)" -eq 0 ] || { reason="needs root"; return 77; }
	script ping <<-'END'
		. nic-up && ping -c 1 -w 20 192.168.200.1 && barrier up || exit
		ping -c 1 -w 20 "192.168.200.$((13 - GUEST))" && barrier done
	END
	vm --snapshot --guests 2 --nic "--backend loopback --tap labtest%n" -- "$WORK/ping"
	expect_status 0 || return
	[ ! -e /sys/class/net/labtest1 ] || fail "the TAP is in our own namespace"
	expect_clean
}

need_server() {
	[ -n "${ROCM_ERNIC:-}" ] && return
	reason="ROCM_ERNIC names no server"
	return 77
}

run_one() { # NAME
	local code start=$SECONDS
	reason=
	"$1"
	code=$?
	case $code in
	0) passed=$((passed + 1)) && echo "ok - ${1#test_} ($((SECONDS - start)) s)" ;;
	77) skipped=$((skipped + 1)) && echo "ok - ${1#test_} # SKIP $reason" ;;
	*) failed=$((failed + 1)) && echo "not ok - ${1#test_}" ;;
	esac
}

for name in $(compgen -A function test_); do
	# shellcheck disable=SC2254 # a pattern
	case $name in
	test_${1:-*}) run_one "$name" ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
