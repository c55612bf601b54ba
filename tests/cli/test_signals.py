#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals: an orderly end with everything removed and written, and a log file opened anew."""

import fcntl
import os
import signal
import socket
import struct
import termios
import time

import program


class Signals(program.Test):
    def check_end(self, number, attached):
        args = ["-s", "s", "--control", "c", "-S", "stats", "--stats-interval-ms", "60000"]
        args += ["--nic-profile", "small-vm"]
        with program.Server(*args) as server, program.connect("s") as client:
            if attached:
                program.attach(client)
            os.remove("stats")
            start = time.monotonic()
            self.assertEqual(server.stop(number), 0)
            print(f"{number.name}: ended after {time.monotonic() - start:.3f} s", end=" ")
            self.assertEqual(server.notification(), "STOPPING=1")
            self.assertEqual(server.process.stderr.read(), "")
        self.assertEqual(os.listdir("."), ["stats"])
        with open("stats", encoding="ascii") as file:
            self.assertIn("Counters", program.sections(file.read()))

    def test_sigterm_and_sigint_end_the_server(self):
        self.check_end(signal.SIGTERM, attached=False)
        self.check_end(signal.SIGINT, attached=True)

    def test_a_client_in_the_middle_of_a_message_does_not_delay_the_end(self):
        with program.Server("-s", "s", "--control", "c") as server:
            with program.connect("s") as client, program.connect("c") as control:
                program.attach(client)
                client.sendall(b"\x01\x00\x09")
                control.sendall(b'{"cmd":')
                self.assertEqual(server.stop(), 0)

    def test_who_makes_the_server_wait_does_not_keep_it_alive(self):
        """An eventfd that is made blocking and full after it was given, and then signalled."""
        with program.Server("-s", "s") as server, program.connect("s") as client:
            program.attach(client)
            event = os.eventfd(0, os.EFD_NONBLOCK)
            assign, trigger = 4 | 32, 1 | 32
            for flags, fds in ((assign, [event]), (trigger, [])):
                if not fds:
                    os.set_blocking(event, True)
                    os.eventfd_write(event, 0xFFFFFFFFFFFFFFFE)
                body = struct.pack("<IIIII", 20, flags, 4, 0, 1)  # of the REQ interrupt
                message = struct.pack("<HHIII", 7, 8, 16 + len(body), 0, 0) + body
                socket.send_fds(client, [message], fds)
                if fds:
                    reply = client.recv(16, socket.MSG_WAITALL)
                    self.assertEqual(struct.unpack("<HHIII", reply)[3:], (1, 0))
            while any(fcntl.ioctl(client, termios.TIOCOUTQ, bytes(4))):  # not read yet
                time.sleep(0.01)
            # Either the signal finds it waiting, or it waits in spite of the signal until its time is up.
            self.assertIn(server.stop(), (0, -signal.SIGALRM))
            os.close(event)

    def test_sighup_opens_the_log_file_anew(self):
        with program.Server("-s", "s", "-v", "-l", "log", "--control", "c") as server:
            os.rename("log", "log.1")
            server.process.send_signal(signal.SIGHUP)
            with program.Control("c") as control:
                while not os.path.exists("log"):
                    control.do(cmd="version")
                control.do(cmd="link", up=False)
        with open("log.1", encoding="ascii") as file:
            self.assertIn("rocm-ernic", file.read())
        with open("log", encoding="ascii") as file:
            self.assertIn("link down", file.read())

    def test_sighup_without_a_log_file_changes_nothing(self):
        with program.Server("-s", "s", "--control", "c") as server:
            server.process.send_signal(signal.SIGHUP)
            with program.Control("c") as control:
                self.assertTrue(control.do(cmd="status")["ok"])
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    program.main()
