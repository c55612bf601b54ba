# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes that end when the lab ends, however it ends.

Each child gets a kill signal from the kernel should we die, and orphans of our children become
our children (we are their "subreaper"), so that the last sweep finds every descendant.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Adopt the orphans of our descendants."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Child:
    """One process, with its pid in a pid file, and its output in a log file or a pipe."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        pid_file: Path,
        pass_fds: Sequence[int] = (),
        environment: dict[str, str] | None = None,
        pipe: bool = False,
    ) -> None:
        parent = os.getpid()

        def die_with_parent() -> None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before we asked
                os._exit(127)

        self.log = log
        with log.open("ab") as output:
            try:
                self.popen = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if pipe else output,
                    stderr=subprocess.STDOUT,
                    pass_fds=pass_fds,
                    env={**os.environ, **(environment or {})},
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
            except OSError as err:
                raise LabError(f"cannot start {command[0]}: {err.strerror}") from err
        self.pidfd = os.pidfd_open(self.popen.pid)
        self.started = time.monotonic()
        self.cpu_seconds = 0.0
        pid_file.write_text(f"{self.popen.pid}\n", "ascii")

    @property
    def pid(self) -> int:
        return self.popen.pid

    def status(self) -> int | None:
        """Exit status, negative for a signal, or None while it runs."""
        if self.popen.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return self.popen.returncode

    def wait(self, seconds: float) -> int | None:
        """Wait at most so long for the end; returns status()."""
        deadline = time.monotonic() + seconds
        while self.status() is None and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                _poll_readable(self.pidfd, deadline - time.monotonic())
        return self.status()

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.status() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)

    def tail(self, lines: int = 5) -> str:
        """The last lines of its log."""
        with contextlib.suppress(OSError):
            text = self.log.read_bytes()[-4096:].decode(errors="replace").strip()
            return "\n".join(text.splitlines()[-lines:])
        return ""

    def close(self) -> None:
        """Forget an ended process."""
        os.close(self.pidfd)


def describe_exit(status: int) -> str:
    """ "status 1" or "killed by SIGSEGV"."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _poll_readable(descriptor: int, seconds: float) -> None:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0, seconds * 1000))


def children() -> list[int]:
    """The pids of our direct children."""
    pids: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            pids += [int(word) for word in (task / "children").read_text("ascii").split()]
    return pids


def sweep(seconds: float = 5) -> None:
    """Kill every descendant that is left, and reap it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = children()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)  # killed, so this is short; its children come to us
