#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An idle server makes no system call: nothing between timers that are due, and none is due."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import unittest

import program

QUIET = 1.5  # seconds without anything to do


def can_trace():
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else "strace may not trace here"


REASON = can_trace()


@unittest.skipIf(REASON, REASON)
class Idle(program.Test):
    def trace_lines(self):
        with open("trace", encoding="ascii", errors="replace") as file:
            return file.read().splitlines()

    def check_quiet(self, *args, attached=False):
        wrap = ["strace", "-f", "-o", "trace", "--"]
        with program.Server("-s", "s", *args, wrap=wrap) as server, contextlib.ExitStack() as stack:
            if attached:
                program.attach(stack.enter_context(program.connect("s")))
            time.sleep(0.5)
            before = self.trace_lines()
            time.sleep(QUIET)
            after = self.trace_lines()
            pid = int(before[0].split()[0])
            os.kill(pid, signal.SIGTERM)
            server.wait()
        self.assertGreater(len(before), 10, "the trace is not written as it happens")
        return after[len(before) :]

    def test_without_a_client(self):
        self.assertEqual(self.check_quiet("--nic-profile", "small-vm"), [])

    def test_with_a_client_that_does_nothing(self):
        self.assertEqual(self.check_quiet("--control", "c", attached=True), [])

    def test_an_adaptive_spin_comes_to_rest(self):
        self.assertEqual(self.check_quiet("--busy-poll-us", "1000", attached=True), [])

    def test_with_a_stats_file_only_its_interval_wakes(self):
        lines = self.check_quiet("-S", "stats", "--stats-interval-ms", "500")
        waits = [line for line in lines if "epoll_pwait2(" in line]
        self.assertLessEqual(len(waits), QUIET / 0.5 + 1)


if __name__ == "__main__":
    program.main()
