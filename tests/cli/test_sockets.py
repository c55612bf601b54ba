#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The server's socket: who may open it, what was there before, and inherited descriptors."""

import os
import resource
import signal
import socket
import stat

import program


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Sockets(program.Test):
    def test_permissions(self):
        os.umask(0)
        with program.Server("-s", "s", "--control", "c", "--socket-mode", "0660"):
            self.assertEqual(mode_of("s"), 0o660)
            self.assertEqual(mode_of("c"), 0o600)
        with program.Server("--socket-path=s"):
            self.assertEqual(mode_of("s"), 0o600)

    def test_a_stale_socket_is_replaced(self):
        with program.Server("-s", "s", "--control", "c") as server:
            server.stop(signal.SIGKILL)
        self.assertEqual(sorted(os.listdir(".")), ["c", "s"])
        with program.Server("-s", "s", "--control", "c"):
            with program.connect("s") as client:
                program.attach(client)
        self.assertEqual(os.listdir("."), [])

    def test_a_living_server_is_refused_and_not_disturbed(self):
        with program.Server("-s", "s", "--control", "c"):
            self.refuses(["-s", "s"], "--socket s", "living")
            self.refuses(["-s", "t", "--control", "c"], "--control c", "living")
            with program.connect("s") as client:
                program.attach(client)
                self.refuses(["-s", "s"], "--socket s", "living")
            with program.Control("c") as control:
                self.assertTrue(control.do(cmd="version")["ok"])

    def test_the_next_client_is_served(self):
        with program.Server("-s", "s"):
            for _ in range(3):
                with program.connect("s") as client:
                    program.attach(client)

    def test_inherited_listening_socket(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{self.folder}/inherited")
            listener.listen()
            fd = listener.fileno()
            with program.Server("--fd", str(fd), "-v", pass_fds=[fd]) as server:
                for _ in range(2):
                    with program.connect("inherited") as client:
                        program.attach(client)
                self.assertEqual(server.stop(), 0)
                self.assertIn(f"serves {self.folder}/inherited", server.process.stderr.read())
        self.assertTrue(os.path.exists("inherited"))  # it is not the server's to remove

    def test_inherited_connection_ends_with_its_client(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        fd = theirs.fileno()
        with program.Server("--fd", str(fd), pass_fds=[fd]) as server:
            theirs.close()
            program.attach(ours)
            ours.close()
            self.assertEqual(server.wait(), 0)
            self.assertIn("give --mac", server.process.stderr.read())

    def test_closed_standard_descriptors_are_not_mistaken(self):
        """Started without 0, 1 and 2, no socket may become the server's stderr."""
        wrap = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
        with program.Server("-s", "s", "-v", wrap=wrap) as server:
            with program.connect("s") as client:
                program.attach(client)
            for fd in range(3):
                target = os.readlink(f"/proc/{server.process.pid}/fd/{fd}")
                self.assertEqual(target, "/dev/null")

    def test_the_soft_limit_of_descriptors_is_raised_to_the_hard_one(self):
        wrap = ["prlimit", "--nofile=64:2048"]
        with program.Server("-s", "s", wrap=wrap) as server:
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            self.assertEqual(limits, (2048, 2048))
            self.assertEqual(server.stop(), 0)
            self.assertNotIn("RLIMIT_NOFILE", server.process.stderr.read())

    def test_a_low_hard_limit_is_mentioned(self):
        with program.Server("-s", "s", wrap=["prlimit", "--nofile=64:512"]) as server:
            self.assertEqual(server.stop(), 0)
            self.assertIn("only 512 descriptors", server.process.stderr.read())


if __name__ == "__main__":
    program.main()
