# SPDX-License-Identifier: GPL-2.0-or-later
"""The program as the tests of this folder run it: once for its output, or as a server."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("ROCM_ERNIC", "rocm-ernic")
PATIENCE = 30  # seconds; nothing here takes one, but sanitizers and a busy machine do
SKIPPED = 77


def run(*args, **options):
    """Runs the program to its end."""
    options.setdefault("timeout", PATIENCE)
    return subprocess.run(
        [PROGRAM, *args], capture_output=True, text=True, check=False, **options
    )


class Server:
    """A running server; leaves the `with` block with SIGTERM. wrap: a command to put before."""

    def __init__(self, *args, wrap=(), **options):
        self.args = [*wrap, PROGRAM, *args]
        self.options = options
        self.folder = self.manager = self.process = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="ernic-notify-")
        path = os.path.join(self.folder, "socket")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(path)
        self.manager.settimeout(PATIENCE)
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            self.args,
            env=dict(os.environ, NOTIFY_SOCKET=path),
            stderr=subprocess.PIPE,
            text=True,
            **self.options,
        )
        try:
            assert self.notification() == "READY=1"
        except TimeoutError:
            self.process.kill()
            raise AssertionError(f"not ready: {self.process.communicate()[1]}") from None
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stderr.close()
        self.manager.close()
        shutil.rmtree(self.folder)

    def notification(self):
        """What the server tells its service manager next."""
        return self.manager.recv(100).decode()

    def stop(self, number=signal.SIGTERM):
        """Ends the server and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def wait(self):
        return self.process.wait(PATIENCE)


class Control:
    """A client of the control socket."""

    def __init__(self, path):
        self.socket = connect(path)
        self.file = self.socket.makefile("rwb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def say(self, line):
        """Sends a line of bytes and returns the answer."""
        self.file.write(line + b"\n")
        self.file.flush()
        return self.answer()

    def answer(self):
        line = self.file.readline()
        assert line.endswith(b"\n"), line
        return json.loads(line)

    def do(self, **command):
        return self.say(json.dumps(command).encode())


def connect(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(PATIENCE)
    client.connect(path)
    return client


def attach(client):
    """Does what a vfio-user client does first on its connection (spec vfio-user 3)."""
    body = struct.pack("<HH", 0, 1) + b'{"capabilities":{"max_msg_fds":8}}\0'
    client.sendall(struct.pack("<HHIII", 1, 1, 16 + len(body), 0, 0) + body)
    header = client.recv(16, socket.MSG_WAITALL)
    _, command, size, flags, error = struct.unpack("<HHIII", header)
    assert (command, flags, error) == (1, 1, 0), header
    client.recv(size - 16, socket.MSG_WAITALL)


def sections(text):
    """The stats file as {section: {name: value}}."""
    result, current = {}, None
    for line in text.splitlines():
        if line.startswith("["):
            current = result.setdefault(line.strip("[]"), {})
        elif line:
            name, value = line.split(" : ", 1)
            assert name not in current, f"{name} stands twice"
            current[name] = value
    return result


class Test(unittest.TestCase):
    """A test in an empty folder of its own, which is the current one."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ernic-cli-")
        self.before = os.getcwd()
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def refuses(self, args, *words, **options):
        """The program says one line with all of the words, ends with 1 and leaves nothing."""
        files = sorted(os.listdir("."))
        result = run(*args, **options)
        self.assertEqual(result.returncode, 1, f"{args}: {result.stderr}")
        self.assertEqual(result.stdout, "", args)
        self.assertRegex(result.stderr, r"\Arocm-ernic: [^\n]+\n\Z", args)
        for word in words:
            self.assertIn(word, result.stderr, args)
        self.assertEqual(sorted(os.listdir(".")), files, args)


def main():
    """Runs the tests of the calling script; one that only skipped says why and ends with 77."""
    if not shutil.which(PROGRAM):
        sys.exit(f"{PROGRAM}: not found; name the program in ROCM_ERNIC")
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    if len(result.skipped) < result.testsRun:
        sys.exit(0)
    print("skipped:", "; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(SKIPPED)
