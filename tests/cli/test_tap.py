#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""TAP interfaces that are there, busy, or somebody else's; in a private network namespace."""

import os
import shutil
import subprocess
import sys
import unittest

import program

INSIDE = "ERNIC_TEST_NAMESPACE"


def enter_namespace():
    """Runs this script again where TAPs may be made, and never returns then."""
    if os.environ.get(INSIDE):
        return ""
    flags = "-mn" if os.geteuid() == 0 else "-rn"
    for command in "unshare", "ip":
        if not shutil.which(command):
            return f"takes the command {command}, which is not installed"
    probe = ["unshare", flags, "ip", "tuntap", "add", "dev", "t0", "mode", "tap"]
    result = subprocess.run(probe, capture_output=True, text=True, check=False)
    if result.returncode:
        cause = " ".join(result.stderr.split()) or "no reason given"
        return f"takes root, or user namespaces and the right to open /dev/net/tun ({cause})"
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", flags, sys.executable, "-B", *sys.argv])
    return ""


REASON = enter_namespace()


def other_users():
    """Whether this namespace has users besides its root."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return sum(int(line.split()[2]) for line in file) > 1


def make_tap(name, *words):
    subprocess.run(["ip", "tuntap", "add", "dev", name, "mode", "tap", *words], check=True)


@unittest.skipIf(REASON, REASON)
class Tap(program.Test):
    def test_a_tap_is_opened_and_let_go(self):
        make_tap("free0")
        for _ in range(2):
            with program.Server("-s", "s", "--tap", "free0", "-S", "stats"):
                with open("stats", encoding="ascii") as file:
                    self.assertEqual(program.sections(file.read())["Instance"]["tap"], "free0")

    def test_a_busy_tap_is_refused(self):
        make_tap("busy0")
        with program.Server("-s", "s", "--tap", "busy0"):
            self.refuses(["-s", "t", "--tap", "busy0"], "--tap busy0", "another program")

    def test_an_interface_that_is_no_tap_is_refused(self):
        subprocess.run(["ip", "link", "add", "bridge0", "type", "bridge"], check=True)
        self.refuses(["-s", "s", "--tap", "bridge0"], "--tap bridge0")
        subprocess.run(["ip", "tuntap", "add", "dev", "tun0", "mode", "tun"], check=True)
        self.refuses(["-s", "s", "--tap", "tun0"], "--tap tun0")

    @unittest.skipUnless(other_users(), "takes real root: a user's own namespace has one user")
    def test_somebody_elses_tap_is_refused(self):
        make_tap("other0", "user", "root")
        os.chmod(self.folder, 0o777)
        shutil.copy(program.PROGRAM, "program")  # where the other user can run it
        # Often everybody may open the device; where not, a copy of it in this mount namespace.
        subprocess.run(
            "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200",
            shell=True,
            check=False,
        )

        def become_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        probe = ["sh", "-c", "./program --version >/dev/null && test -w /dev/net/tun"]
        if subprocess.run(probe, preexec_fn=become_nobody, check=False).returncode:
            self.skipTest("another user may not run the program or open /dev/net/tun here")
        result = subprocess.run(
            ["./program", "-s", "s", "--tap", "other0"],
            preexec_fn=become_nobody,
            capture_output=True,
            text=True,
            timeout=program.PATIENCE,
            check=False,
        )
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Arocm-ernic: --tap other0: [^\n]*another user[^\n]*\n\Z")


if __name__ == "__main__":
    program.main()
