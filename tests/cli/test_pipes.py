#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures and logs into pipes: the server waits for no reader, and says what it misses."""

import fcntl
import os
import signal

import program

HEAD = 28 + 44  # section and interface block
NO_WAIT = os.O_RDONLY | os.O_NONBLOCK
PIPE_SIZE = 4096  # the smallest


def count(control, name):
    return int(control.do(cmd="stats")["stats"]["Counters"][name])


def lines_lost(control):
    return count(control, "base_log_lines_lost")


class Pipes(program.Test):
    def setUp(self):
        super().setUp()
        os.mkfifo("pipe")

    def until(self, condition):
        """Asks the server something until the condition holds, so that its loop turns."""
        with program.Control("c") as control:
            while not condition(control):
                self.assertTrue(control.do(cmd="version")["ok"])

    def test_a_pipe_that_nobody_reads(self):
        words = "pipe: nobody reads this pipe; start its reader first"
        self.refuses(["-s", "s", "--pcap", "pipe"], f"--pcap {words}")
        self.refuses(["-s", "s", "--log-file", "pipe"], f"--log-file {words}")

    def test_capture_ends_with_its_reader_and_begins_anew(self):
        reader = os.open("pipe", NO_WAIT)
        with program.Server("-s", "s", "--control", "c", "--pcap", "pipe") as server:
            self.assertEqual(len(os.read(reader, 65536)), HEAD)
            with program.Control("c") as control:
                self.assertTrue(control.do(cmd="capture")["capturing"])
                self.assertFalse(control.do(cmd="capture", file="other")["ok"])
            os.close(reader)
            self.until(lambda control: not control.do(cmd="capture")["capturing"])
            with program.Control("c") as control:
                answer = control.do(cmd="capture", file="pipe")
                self.assertFalse(answer["ok"])
                self.assertIn("nobody reads", answer["error"])
                self.assertIn("reader", answer["remedy"])
                reader = os.open("pipe", NO_WAIT)
                self.assertTrue(control.do(cmd="capture", file="pipe")["capturing"])
            self.assertEqual(len(os.read(reader, 65536)), HEAD)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(os.read(reader, 65536), b"")
            os.close(reader)
            said = server.process.stderr.read()
        self.assertEqual(said.count("the capture"), 1, said)
        self.assertIn("the capture ends here", said)

    def test_a_log_that_nobody_reads_any_more(self):
        """Neither SIGHUP nor a line waits for a reader."""
        reader = os.open("pipe", NO_WAIT)
        with program.Server("-s", "s", "--control", "c", "-v", "-l", "pipe") as server:
            self.assertIn(b"rocm-ernic", os.read(reader, 65536))
            os.close(reader)
            server.process.send_signal(signal.SIGHUP)
            self.until(lambda control: count(control, "server_log_reopen_errors") == 1)
            self.until(lambda control: control.do(cmd="link", up=False) and lines_lost(control))
            self.assertEqual(server.stop(), 0)

    def test_a_device_takes_what_many_write(self):
        with program.Server("-s", "s", "-l", "/dev/null", "--pcap", "/dev/null") as server:
            self.assertEqual(server.stop(), 0)
        self.refuses(["-s", "s", "-l", "pipe", "--pcap", "pipe"], "--pcap pipe", "--log-file")

    def test_a_log_that_is_full(self):
        reader = os.open("pipe", NO_WAIT)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        with program.Server("-s", "s", "--control", "c", "-vv", "-l", "pipe") as server:
            with program.Control("c") as control:
                for up in range(10000):
                    self.assertTrue(control.do(cmd="link", up=up % 2 == 1)["ok"])
                    if lines_lost(control) > 10:
                        break
                self.assertGreater(lines_lost(control), 10)
            text = os.read(reader, 2 * PIPE_SIZE)
            self.assertEqual(server.stop(), 0)
        os.close(reader)
        self.assertEqual(text[-1:], b"\n")
        for line in text.splitlines():
            self.assertRegex(line, rb"^ *[0-9]+\.[0-9]{6} (warn|info|debug) ")


if __name__ == "__main__":
    program.main()
