#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever a user gets wrong: one line that names it, exit status 1, nothing left behind."""

import os
import socket
import subprocess
import unittest

import program

CASES = [
    # what is given                                    what must be named
    ([], ["--socket", "--fd"]),
    (["-s", "s", "--frobnicate"], ["--frobnicate", "--help"]),
    (["-s", "s", "--stat-file", "x"], ["--stat-file", "--stats-file"]),
    (["-s", "s", "stray"], ["stray"]),
    (["-s"], ["--socket", "missing"]),
    (["-s", "s", "--tap"], ["--tap", "missing"]),
    (["-s", "s", "-s", "t"], ["--socket", "twice"]),
    (["-s", "s", "--eth-queues", "65"], ["--eth-queues", "65", "1 to 64"]),
    (["-s", "s", "--stats-interval-ms", "5"], ["--stats-interval-ms", "5", "10 to 60000"]),
    (["-s", "s", "--backend", "tcpp"], ["--backend", "tcpp", "loopback"]),
    (["-s", "s", "--backend", "loopback:mode=no"], ["--backend", "mode=no", "zeros"]),
    (["-s", "s", "--backend", "none:md5"], ["--backend", "none:md5"]),
    (["-s", "s", "--backend", "roce:x"], ["--backend", "roce:x", "no options"]),
    (["-s", "s", "--fault", "loss=2"], ["--fault", "loss=2", "loss=1%"]),
    (["-s", "s", "--fault", "lost=2%"], ["--fault", "lost=2%", "jitter"]),
    (["-s", "s", "--pcap", "no/such/folder/f"], ["--pcap", "no/such/folder/f", "give a path"]),
    (["-s", "s", "--pcap-rdma", "maybe"], ["--pcap-rdma", "maybe", "off"]),
    (["-s", "s", "-L", "loud"], ["--log-level", "loud", "debug"]),
    (["-s", "s", "-m", "ff:ff:ff:ff:ff:ff"], ["--mac", "ff:ff:ff:ff:ff:ff", "unicast"]),
    (["-s", "s", "--busy-poll-us", "-1"], ["--busy-poll-us -1", "0 to"]),
    (["-s", "s", "--control", "./s"], ["--control ./s", "--socket"]),
    (["-s", "s", "-S", "s"], ["--stats-file s", "--socket"]),
    (["-s", "s", "-l", "./s"], ["--log-file", "--socket"]),
    (["-s", "s", "--control", "c", "-S", "c"], ["--stats-file c", "--control"]),
    (["-s", "s", "--control", "c", "--pcap", "c"], ["--pcap c", "--control"]),
    (["-s", "s", "-l", "x", "--pcap", "x"], ["--pcap x", "--log-file"]),
    (["-s", "s", "-S", "x", "-l", "x"], ["--log-file x", "--stats-file"]),
    (["-s", "s", "--socket-mode", "9"], ["--socket-mode", "9", "octal"]),
    (["-s", "p" * 108], ["--socket", "at most 107"]),
    (["-s", "no/such/folder/s"], ["--socket", "no/such/folder/s", "give a path"]),
    (["-s", "."], ["--socket", "not a socket"]),
    (["-s", "s", "--control", "no/such/folder/c"], ["--control", "no/such/folder/c"]),
    (["-s", "s", "--control", "."], ["--control", "not a socket"]),
    (["-s", "s", "-S", "no/such/folder/f"], ["--stats-file", "no/such/folder/f"]),
    (["-s", "s", "-S", "/dev/null"], ["--stats-file", "/dev/null", "regular"]),
    (["-s", "s", "-S", "."], ["--stats-file", "regular"]),
    (["-s", "s", "-l", "no/such/folder/l"], ["--log-file", "no/such/folder/l"]),
    (["-s", "s", "--nic-profile", "no.ini"], ["--nic-profile", "no.ini"]),
    (["-s", "s", "--nic-profile", "generic"], ["--nic-profile", "generic", "generic-100g"]),
    (["-s", "s", "--tap", "ernic-none"], ["--tap", "ernic-none", "ip tuntap add"]),
    (["-s", "s", "--tap", "lo"], ["--tap lo", "no TAP", "ip tuntap add"]),
    (["--fd", "9"], ["--fd 9"]),
    (["--print-profile", "--nic-profile", "no.ini"], ["no.ini"]),
    (["--print-profile", "stray"], ["stray"]),
]


class BadInput(program.Test):
    def test_every_case(self):
        for args, words in CASES:
            with self.subTest(args=args):
                self.refuses(args, *words)

    def test_late_failure_removes_what_was_made(self):
        """The socket is made last; log, stats and control are there when it fails."""
        args = ["-l", "log", "-S", "stats", "--control", "c", "-v", "-s", "no/such/folder/s"]
        self.refuses(args, "--socket no/such/folder/s")

    def test_a_log_that_was_there_is_kept(self):
        with open("log", "w", encoding="ascii") as file:
            file.write("old\n")
        self.refuses(["-l", "log", "-s", "no/such/folder/s"], "--socket")
        with open("log", encoding="ascii") as file:
            self.assertEqual(file.readline(), "old\n")

    def test_a_capture_that_was_there_is_kept(self):
        with open("pcap", "w", encoding="ascii") as file:
            file.write("old\n")
        self.refuses(["--pcap", "pcap", "-s", "no/such/folder/s"], "--socket")
        self.refuses(["--pcap", "pcap", "-s", "s", "--tap", "ernic-none"], "--tap")
        with open("pcap", encoding="ascii") as file:
            self.assertEqual(file.read(), "old\n")

    def test_a_capture_fails_before_a_socket_is_made(self):
        bad = ["--pcap", "no/such/folder/f"]
        self.refuses([*bad, "-s", "no/such/folder/s"], "--pcap no/such/folder/f")
        self.refuses([*bad, "-s", "s", "--control", "no/such/folder/c"], "--pcap")
        self.refuses([*bad, "-s", "s", "--tap", "ernic-none"], "--pcap")
        self.refuses([*bad, "-s", "s", "--backend", "tcp:worker:localhost"], "--pcap")

    def test_a_capture_that_was_made_is_removed(self):
        self.refuses(["--pcap", "new", "-s", "no/such/folder/s"], "--socket")
        self.refuses(["--pcap", "new", "-s", "s", "--tap", "ernic-none"], "--tap")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_capture_that_cannot_begin(self):
        self.refuses(["--pcap", "/dev/full", "-s", "s", "--control", "c"], "--pcap /dev/full")

    def test_links_to_what_is_not_there_lead_to_one_file(self):
        os.symlink("file", "link")
        os.mkdir("folder")
        os.symlink("../link", "folder/far")
        os.symlink("loop", "loop")
        for other in ["link", "./folder/far"]:
            words = [f"--pcap {other}", "--log-file"]
            self.refuses(["-s", "s", "-l", "file", "--pcap", other], *words)
        self.refuses(["-s", "s", "-l", "link", "--pcap", "folder/far"], "--pcap", "--log-file")
        self.refuses(["-s", "s", "-l", "loop"], "--log-file loop")

    def test_profile_errors_name_file_line_and_key(self):
        with open("bad.ini", "w", encoding="ascii") as file:
            file.write("# comment\n[queues]\neth = 99\n")
        self.refuses(["-s", "s", "--nic-profile", "bad.ini"], "bad.ini:3", "queues.eth", "1 to 64")
        with open("needs.ini", "w", encoding="ascii") as file:
            file.write("[offload]\ntso = on\n")
        self.refuses(["-s", "s", "--nic-profile", "needs.ini"], "offload.tso", "offload.tx_csum")

    def test_descriptors_of_another_kind(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            self.refuses(["--fd", str(other.fileno())], "--fd", pass_fds=[other.fileno()])
        with open("/dev/null", encoding="ascii") as file:
            self.refuses(["--fd", str(file.fileno())], "--fd", pass_fds=[file.fileno()])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as alone:
            fd = alone.fileno()
            self.refuses(["--fd", str(fd)], f"--fd {fd}:", "not connected", pass_fds=[fd])

    def test_descriptors_that_were_not_passed(self):
        """None of these may be taken for a descriptor that the server opens itself."""
        for fd in range(3, 20):
            self.refuses(["--fd", str(fd), "--control", "c", "-S", "f"], f"--fd {fd}:")

    def test_a_hostile_name_stays_one_line(self):
        self.refuses(["-s", "s", "a\nb\x1b[2J"], "a?b?[2J")

    def test_output_that_cannot_be_written(self):
        for option in ["--help", "--version", "--print-profile", "--print-capabilities", "--limits"]:
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run(
                    [program.PROGRAM, option],
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    check=False,
                )
            self.assertEqual(result.returncode, 1, option)
            self.assertRegex(result.stderr, r"\Arocm-ernic: standard output [^\n]+\n\Z")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folders_that_cannot_be_written(self):
        os.mkdir("closed", 0o555)
        for option in ["--socket", "--control", "--stats-file", "--log-file"]:
            args = [option, "closed/x"] + (["-s", "s"] if option != "--socket" else [])
            self.refuses(args, f"{option} closed/x")


if __name__ == "__main__":
    program.main()
