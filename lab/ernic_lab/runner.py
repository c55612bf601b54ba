# SPDX-License-Identifier: GPL-2.0-or-later
"""One run of lab/vm: servers, guests and the host script in one event loop.

Everything that can happen is a readable descriptor: output and control sockets of the guests,
process descriptors of QEMU, the servers and the host script, the signal pipe, and the socket on
which host scripts wait at barriers. Whatever way the run ends, close() stops every process and
removes every file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from . import machine
from .barrier import Barriers
from .build import Lab
from .errors import LabError
from .guest import FAILED, Guest
from .inotify import Inotify
from .options import Options, find_server
from .process import Child, become_subreaper, describe_exit, sweep
from .server import Server

TIMED_OUT = 124
STALE_SECONDS = 60
HOST_TOOLS = Path(__file__).resolve().parents[1] / "host"
KEPT = ("output", "kernel", "qemu.log", "server.log", "stats")


class Interrupted(Exception):
    """A signal asked us to end."""


def say(text: str) -> None:
    """A line of the lab's own, apart from the guests' output."""
    sys.stdout.flush()
    print(f"lab: {text}", file=sys.stderr, flush=True)


class Run:
    """The state of a run."""

    def __init__(
        self, options: Options, lab: Lab, accel: str, saved: Path | None = None
    ) -> None:
        self.options = options
        self.accel = accel
        self.lab = lab
        self.saved = saved
        self.selector = selectors.DefaultSelector()
        self.status = 0
        self.servers: list[Server] = []
        self.guests: list[Guest] = []
        self.running: set[int] = set()
        self.host: Child | None = None
        self.deadline = time.monotonic() + options.timeout
        self.directory = make_directory()
        self.barriers = Barriers(options.guests, self.directory / "control.sock")
        self.modules_cpio = lab.modules_cpio

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    # Starting

    def start(self) -> None:
        """Start everything; LabError when something does not come up."""
        become_subreaper()
        self._catch_signals()
        if not self.options.no_nic:
            program = find_server(self.options.server)
            for guest in self._numbers():
                self.servers.append(Server(self.options, program, guest, self.directory))
            for server in self.servers:
                server.wait_ready()
                self._watch(server.child.pidfd, lambda s=server: self._server_ended(s))
        self.modules_cpio = machine.user_modules(
            self.options, self.lab, self.directory / "modules.cpio"
        )
        self._watch(self.barriers.listener, self._barrier_client)
        for number in self._numbers():
            guest = Guest(
                self.options, self.lab, self.accel, number, self.directory, self.saved
            )
            self.guests.append(guest)
            self._boot(guest)
        if self.options.host:
            self._start_host(self.options.host)

    def _numbers(self) -> range:
        return range(1, self.options.guests + 1)

    def _watch(self, what: int | socket.socket | Inotify, action: Callable[[], None]) -> None:
        self.selector.register(what, selectors.EVENT_READ, action)

    def _catch_signals(self) -> None:
        self.signals, writer = socket.socketpair()
        writer.setblocking(False)
        self.signal_writer = writer
        signal.set_wakeup_fd(writer.fileno())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._watch(self.signals, self._interrupted)

    def _interrupted(self) -> None:
        self.status = 128 + self.signals.recv(1)[0]
        raise Interrupted

    def _boot(self, guest: Guest) -> None:
        guest.start(self.modules_cpio)
        assert guest.child is not None
        self.running.add(guest.guest)
        self._watch(guest.news, guest.read_output)
        self._watch(guest.control, lambda: self._guest_control(guest))
        self._watch(guest.child.pidfd, lambda: self._guest_ended(guest))
        if guest.talk:
            self._watch(guest.talk.socket, lambda: self._restore(guest))

    def _restore(self, guest: Guest) -> None:
        assert guest.talk is not None
        if guest.restore():
            self.selector.unregister(guest.talk.socket)
            if guest.result.status:
                self._stop(guest)

    def _start_host(self, script: Path) -> None:
        environment = {
            "LAB_DIR": str(self.directory),
            "GUESTS": str(self.options.guests),
            "PATH": f"{HOST_TOOLS}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        }
        for word in self.options.env or []:
            name, _, value = word.partition("=")
            environment[name] = value
        path = str(script.resolve())
        runnable = os.access(path, os.X_OK) and script.read_bytes().startswith((b"#!", b"\x7fELF"))
        command = [path] if runnable else ["sh", path]
        log, pid_file = self.directory / "host.log", self.directory / "host.pid"
        self.host = Child(command, log, pid_file, environment=environment, pipe=True)
        assert self.host.popen.stdout is not None
        self.host_output = self.host.popen.stdout.fileno()
        self.host_partial = b""
        self._watch(self.host_output, self._host_said)
        self._watch(self.host.pidfd, self._host_ended)

    # Running

    def loop(self) -> None:
        """Serve events until all guests and the host script have ended."""
        while self.running or self.host is not None:
            for key, _ in self.selector.select(self._patience()):
                if key.fd in self.selector.get_map():  # not closed by an earlier event
                    key.data()
            self._check_time()

    def _patience(self) -> float:
        deadlines = [self.deadline]
        deadlines += [self._boot_deadline(g) for g in self.guests if self._is_booting(g)]
        return max(0.0, min(deadlines) - time.monotonic())

    def _is_booting(self, guest: Guest) -> bool:
        return guest.guest in self.running and not guest.up_at

    def _boot_deadline(self, guest: Guest) -> float:
        assert guest.child is not None
        return guest.child.started + self.options.boot_timeout

    def _check_time(self) -> None:
        now = time.monotonic()
        for guest in self.guests:
            if self._is_booting(guest) and now >= self._boot_deadline(guest):
                limit = f"{self.options.boot_timeout:g} s"
                guest.fail(FAILED, f"never came up: no script after {limit}")
                self._stop(guest)
        if now < self.deadline:
            return
        for guest in self.guests:
            if guest.guest in self.running:
                guest.fail(TIMED_OUT, f"had not ended after {self.options.timeout:g} s")
                self._stop(guest)
        if self.host is not None:
            self._fail(TIMED_OUT, f"--host had not ended after {self.options.timeout:g} s")
            self._host_gone()

    def _fail(self, status: int, reason: str) -> None:
        if reason:
            say(reason)
        self.status = self.status or status

    def _guest_control(self, guest: Guest) -> None:
        commands = guest.read_control()
        if commands is None:
            self.selector.unregister(guest.control)
            return
        for words in commands:
            if words[:1] == ["barrier"] and len(words) == 3:
                self.barriers.arrive(words[1], words[2], guest.answer)
            else:
                guest.obey(words)

    def _barrier_client(self) -> None:
        client = self.barriers.accept()
        if client is not None:
            self._watch(client, lambda: self._barrier_request(client))

    def _barrier_request(self, client: socket.socket) -> None:
        self.selector.unregister(client)
        self.barriers.request(client)

    def _stop(self, guest: Guest) -> None:
        assert guest.child is not None
        guest.child.signal(signal.SIGKILL)
        guest.child.wait(10)
        self._guest_ended(guest)

    def _guest_ended(self, guest: Guest) -> None:
        assert guest.child is not None
        if guest.child.status() is None:
            return
        watched = [guest.news, guest.control, guest.child.pidfd]
        if guest.talk:
            watched.append(guest.talk.socket)
        for what in watched:
            try:
                self.selector.unregister(what)
            except KeyError:
                pass  # closed by the guest's side before
        guest.end()
        result = guest.result
        self.running.discard(guest.guest)
        if not guest.is_last_boot and not result.status:
            self._boot(guest)
            return
        if result.status:
            self._report(guest)
        self.barriers.leave()

    def _report(self, guest: Guest) -> None:
        result = guest.result
        self._fail(result.status or 0, result.reason)
        result.trouble = guest.kernel_trouble()
        for line in result.trouble:
            say(f"guest {guest.guest} kernel: {line}")

    def _server_ended(self, server: Server) -> None:
        self.selector.unregister(server.child.pidfd)
        if self.options.allow_server_exit:
            return
        status = server.child.status()
        assert status is not None
        self._fail(FAILED, server.failure(f"{describe_exit(status)} during the run"))
        # Without its NIC a guest would only wait for its time to run out.
        guest = self.guests[server.guest - 1]
        if guest.guest in self.running:
            guest.result.status = FAILED
            self._stop(guest)

    # The host script

    def _host_said(self) -> None:
        data = os.read(self.host_output, 1 << 16)
        if not data:
            self.selector.unregister(self.host_output)
            return
        *lines, self.host_partial = (self.host_partial + data).split(b"\n")
        with (self.directory / "host.log").open("ab") as log:
            log.write(data)
        sys.stdout.buffer.write(b"".join(b"[host] " + line + b"\n" for line in lines))
        sys.stdout.buffer.flush()

    def _host_ended(self) -> None:
        assert self.host is not None
        status = self.host.status()
        if status is None:
            return
        if status != 0:
            reason = f"--host {self.options.host}: {describe_exit(status)}"
            self._fail(status if status > 0 else 128 - status, reason)
        self._host_gone()

    def _host_gone(self) -> None:
        assert self.host is not None
        self.host.signal(signal.SIGKILL)
        self.host.wait(5)
        os.set_blocking(self.host_output, False)
        try:
            while self.host_output in self.selector.get_map():
                self._host_said()
        except BlockingIOError:  # a background process of the script still has it open
            self.selector.unregister(self.host_output)
        self.selector.unregister(self.host.pidfd)
        self.host = None

    # Ending

    def finish(self) -> None:
        """Stop the servers and judge how they ended."""
        for server in self.servers:
            self._judge(server, server.stop())
        if self.options.strict:
            for guest in self.guests:
                trouble = guest.result.trouble or guest.kernel_trouble()
                if trouble and not self.status:
                    guest.result.trouble = trouble
                    self._fail(1, "\n".join([f"guest {guest.guest} kernel, --strict:", *trouble]))

    def _judge(self, server: Server, complaint: str | None) -> None:
        if complaint and not self.options.allow_server_exit and not self.status:
            self._fail(FAILED, complaint)
        if report := server.sanitizer_report():
            lines = "\n".join(report)
            self._fail(FAILED, f"server {server.guest}, what a sanitizer reported:\n{lines}")

    @contextlib.contextmanager
    def keeping(self, option: str) -> Iterator[None]:
        """What cannot be kept fails the run, with a line; the script's status comes first."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as err:
            self._fail(FAILED, f"{option}: {err.strerror or err}; give another place")

    def keep_logs(self, target: Path) -> None:
        """Copy the logs of every guest to DIR/guest-N."""
        for guest in self._numbers():
            folder = target / f"guest-{guest}"
            folder.mkdir(parents=True, exist_ok=True)
            for name in KEPT:
                first, dot, rest = name.partition(".")
                source = self.directory / f"{first}.{guest}{dot}{rest}"
                if source.exists():
                    shutil.copyfile(source, folder / name)
        if (self.directory / "host.log").exists():
            shutil.copyfile(self.directory / "host.log", target / "host.log")

    def close(self) -> None:
        """Leave nothing: no process, no file."""
        signal.set_wakeup_fd(-1)
        sweep()
        self.barriers.close()
        self.selector.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def summary(self) -> dict[str, object]:
        """What --json writes."""
        return {
            "status": self.status,
            "accel": self.accel,
            "kernel": str(self.options.kernel or self.lab.release),
            "flavour": self.options.flavour,
            "guests": [vars(guest.result) for guest in self.guests],
        }


def make_directory() -> Path:
    """The directory of this run, locked while we live; those of dead runs are removed."""
    parent = Path(tempfile.gettempdir())
    for old in parent.glob("ernic-lab.*"):
        remove_stale(old)
    directory = Path(tempfile.mkdtemp(prefix="ernic-lab."))
    # The longest name of a socket in here must fit into sockaddr_un (unix(7): 108 bytes).
    if len(str(directory / "control.sock")) > 100:
        directory.rmdir()
        raise LabError(f"TMPDIR {parent}: path too long for sockets; set a shorter TMPDIR")
    # Kept open, and so locked, for the life of the process.
    lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return directory


def remove_stale(directory: Path) -> None:
    """Remove the directory of a run that was killed; a living run holds its lock."""
    try:
        status = directory.stat()
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < STALE_SECONDS:
            return
        with (directory / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
    except OSError:
        pass  # in use, or gone already
