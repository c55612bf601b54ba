# SPDX-License-Identifier: GPL-2.0-or-later
"""One NIC server: started, awaited by event, and ended."""

from __future__ import annotations

import contextlib
import re
import select
import shlex
import signal
import time
from pathlib import Path

from .errors import LabError
from .inotify import IN_CREATE, IN_MOVED_TO, Inotify
from .options import Options
from .process import Child, describe_exit

START_SECONDS = 20
STOP_SECONDS = 10
# Flag of a listening socket in /proc/net/unix (Linux include/linux/net.h, __SO_ACCEPTCON).
LISTENING = 0x10000
# What the sanitizers of gcc and clang begin a report with.
REPORT = re.compile(r"(ERROR|WARNING): [A-Z]\w+Sanitizer\b|: runtime error: ")
REPORT_LINES = 60


class Server:
    """The server of guest N."""

    def __init__(self, options: Options, program: list[str], guest: int, directory: Path) -> None:
        self.guest = guest
        self.socket = directory / f"nic.{guest}.sock"
        wrapper = shlex.split(options.wrap_server or "")
        extra = options.nic_arguments(guest)
        if not any(w in ("-S", "--stats-file") or w.startswith("--stats-file=") for w in extra):
            extra = [*extra, "--stats-file", str(directory / f"stats.{guest}")]
        if not any(w == "--control" or w.startswith("--control=") for w in extra):
            extra = [*extra, "--control", str(directory / f"control.{guest}")]
        command = [*wrapper, *program, "--socket", str(self.socket), *extra]
        (directory / f"server.{guest}.cmd").write_text(shlex.join(command) + "\n", "utf-8")
        self.child = Child(
            command, directory / f"server.{guest}.log", directory / f"server.{guest}.pid"
        )

    def wait_ready(self) -> None:
        """Return when the socket accepts connections."""
        deadline = time.monotonic() + START_SECONDS
        with contextlib.closing(Inotify(self.socket.parent, IN_CREATE | IN_MOVED_TO)) as news:
            poll = select.poll()
            poll.register(news, select.POLLIN)
            poll.register(self.child.pidfd, select.POLLIN)
            while not is_listening(self.socket):
                status = self.child.status()
                if status is not None:
                    raise LabError(self.failure(f"{describe_exit(status)} before it listened"))
                if time.monotonic() > deadline:
                    raise LabError(self.failure(f"did not listen within {START_SECONDS} s"))
                # The file appears before it listens; that gap alone is bridged by a short wait.
                poll.poll(2 if self.socket.exists() else START_SECONDS * 1000)
                news.drain()

    def failure(self, what: str) -> str:
        """A sentence about what went wrong, with the server's last words."""
        words = self.child.tail()
        return f"server {self.guest} {what}" + (f": {words}" if words else "")

    def sanitizer_report(self) -> list[str]:
        """Its log from the first report of a sanitizer on; no options of theirs can hide it."""
        with contextlib.suppress(OSError):
            lines = self.child.log.read_text("utf-8", "replace").splitlines()
            for number, line in enumerate(lines):
                if REPORT.search(line):
                    return lines[number : number + REPORT_LINES]
        return []

    def stop(self) -> str | None:
        """End it; returns what was wrong with the way it ended."""
        status = self.child.status()
        if status is not None:
            return self.failure(f"{describe_exit(status)} during the run")
        self.child.signal(signal.SIGTERM)
        status = self.child.wait(STOP_SECONDS)
        if status is None:
            self.child.signal(signal.SIGKILL)
            self.child.wait(STOP_SECONDS)
            return self.failure(f"did not end within {STOP_SECONDS} s of SIGTERM")
        if status not in (0, -signal.SIGTERM):
            return self.failure(describe_exit(status))
        return None


def is_listening(path: Path) -> bool:
    """Whether a socket exists at `path` and listens, found out without connecting to it."""
    if not path.is_socket():
        return False
    for line in Path("/proc/self/net/unix").read_text("utf-8").splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[7] == str(path):
            return bool(int(fields[3], 16) & LISTENING)
    return True  # bound under another name and moved here: that is done last
