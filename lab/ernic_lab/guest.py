# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest: its QEMU, what it prints, and what it says on the control channel.

States of a boot: started -> up (the script runs) -> exited (with the script's status) -> ended
(QEMU is gone). Ending in any earlier state is a failure, unless another boot is due.
"""

from __future__ import annotations

import re
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import machine
from .build import Lab
from .errors import LabError
from .inotify import IN_MODIFY, Inotify
from .options import Options
from .process import Child, describe_exit
from .snapshot import Talk, forget, restoring

FAILED = 125
TROUBLE = re.compile(
    r"WARNING: |BUG: |Oops|Kernel panic|general protection fault|UBSAN: |KASAN: |refcount_t: "
    r"|INFO: task .* blocked|possible circular locking"
)
TROUBLE_LINES = 30


@dataclass
class Result:
    """How one guest fared."""

    guest: int
    status: int | None = None
    reason: str = ""
    boots: int = 0
    boot_seconds: list[float] = field(default_factory=list)
    script_seconds: list[float] = field(default_factory=list)
    cpu_seconds: float = 0
    trouble: list[str] = field(default_factory=list)


class Guest:
    """Guest N of a run."""

    def __init__(
        self,
        options: Options,
        lab: Lab,
        accel: str,
        guest: int,
        directory: Path,
        saved: Path | None = None,
    ) -> None:
        self.options = options
        self.lab = lab
        self.guest = guest
        self.directory = directory
        self.prefix = f"[{guest}] ".encode() if options.guests > 1 else b""
        self.saved = saved
        if saved:
            self.arguments = [
                *machine.saved_arguments(options, lab, None),
                *machine.qmp_arguments(guest, directory),
                *("-S", "-incoming", "defer"),
            ]
        else:
            self.arguments = machine.arguments(options, lab, accel, guest, directory)
        self.result = Result(guest)
        self.output = (directory / f"output.{guest}").open("a+b", buffering=0)
        self.child: Child | None = None
        self.up_at = 0.0
        self.exited: int | None = None
        self.talk: Talk | None = None

    def start(self, modules_cpio: Path) -> None:
        """Start the next boot."""
        self.result.boots += 1
        if not self.saved:
            initrd = self.directory / f"initrd.{self.guest}"
            machine.write_initrd(
                self.options, self.lab, modules_cpio, self.guest, self.result.boots, initrd
            )
        (self.directory / f"qmp.{self.guest}.sock").unlink(missing_ok=True)
        self.news = Inotify(Path(self.output.name), IN_MODIFY)
        self.control, control = socket.socketpair()
        monitor = self._begin_restore() if self.saved else None
        self.up_at, self.exited = 0.0, None
        self.partial = b""
        self.commands = b""
        channels = machine.Channels(
            Path(self.output.name),
            self.directory / f"kernel.{self.guest}",
            control.fileno(),
            monitor.fileno() if monitor else None,
        )
        command = [
            *machine.qemu_program(self.options, self.lab),
            *self.arguments,
            *machine.channel_arguments(channels),
        ]
        try:
            self.child = Child(
                command,
                self.directory / f"qemu.{self.guest}.log",
                self.directory / f"qemu.{self.guest}.pid",
                [end.fileno() for end in (control, monitor) if end],
                machine.qemu_environment(self.lab) if not self.options.qemu else None,
            )
        finally:
            control.close()
            if monitor:
                monitor.close()

    def _begin_restore(self) -> socket.socket:
        """The talk that makes this guest of the saved boot; returns QEMU's end of it."""
        assert self.saved is not None
        ours, theirs = socket.socketpair()
        nic = None if self.options.no_nic else self.directory / f"nic.{self.guest}.sock"
        self.talk = Talk(ours, restoring(self.saved, nic))
        return theirs

    def restore(self) -> bool:
        """Go on with that talk; true when it is over, and the guest has what it goes on with."""
        assert self.talk is not None
        try:
            self.talk.read()
            if self.talk.done:
                data = machine.payload(self.options, self.guest, self.result.boots)
                self.control.sendall(f"{len(data)} {time.time():.0f}\n".encode() + data)
        except LabError as err:
            assert self.saved is not None
            forget(self.saved)
            self.fail(
                FAILED, f"could not go on from {self.saved}: {err}; the next run saves it anew"
            )
            return True
        except (EOFError, OSError):
            return True  # QEMU has ended, which the event loop will notice
        return self.talk.done

    @property
    def is_last_boot(self) -> bool:
        return self.result.boots >= self.options.boots

    def read_output(self) -> None:
        """Pass on what the script has printed since the last time."""
        self.news.drain()
        while data := self.output.read(1 << 16):
            self._show(data)

    def _show(self, data: bytes) -> None:
        if self.prefix:
            *lines, self.partial = (self.partial + data).split(b"\n")
            data = b"".join(self.prefix + line + b"\n" for line in lines)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def read_control(self) -> list[list[str]] | None:
        """The commands that have arrived, as words; None at the end."""
        try:
            data = self.control.recv(4096)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        *lines, self.commands = (self.commands + data)[-65536:].split(b"\n")
        return [line.decode(errors="replace").split() for line in lines]

    def obey(self, words: list[str]) -> None:
        """Note what the guest says of itself."""
        assert self.child is not None
        if words[:1] == ["up"]:
            self.up_at = time.monotonic()
            self.result.boot_seconds.append(round(self.up_at - self.child.started, 3))
        elif words[:1] == ["exit"] and len(words) == 2 and words[1].isdigit():
            self.exited = int(words[1]) & 0xFF
            self.result.script_seconds.append(round(time.monotonic() - self.up_at, 3))

    def answer(self, text: str) -> None:
        """Send a line to whoever reads the control channel in the guest."""
        try:
            self.control.sendall(text.encode() + b"\n")
        except OSError:
            pass  # it has just ended, which the event loop will notice

    def end(self) -> None:
        """Close this boot after QEMU has gone, and find its status."""
        assert self.child is not None
        self.read_output()
        for words in self.read_control() or []:
            self.obey(words)
        if self.partial:
            self._show(b"\n")
        self.news.close()
        self.control.close()
        if self.talk:
            self.talk.socket.close()
        self.child.close()
        self.result.cpu_seconds = round(self.result.cpu_seconds + self.child.cpu_seconds, 2)
        self._judge(self.child.status() or 0)

    def _judge(self, qemu_status: int) -> None:
        if self.result.status:
            return
        if self.exited is None:
            killed = qemu_status == -signal.SIGKILL and not self.is_last_boot
            if not killed:
                what = "ended before its script did" if self.up_at else "never came up"
                qemu = f"--qemu {self.options.qemu}" if self.options.qemu else "QEMU"
                self.fail(FAILED, f"{what}: {qemu} {describe_exit(qemu_status)}")
            return
        self.result.status = self.exited
        if qemu_status != self.exited << 1 | 1:
            ending = f"after its script ended with {self.exited}"
            self.fail(FAILED, f"QEMU {describe_exit(qemu_status)} {ending}")

    def fail(self, status: int, reason: str) -> None:
        """Record a failure, the first only, with QEMU's last words."""
        if self.result.status:
            return
        words = self.child.tail() if self.child else ""
        self.result.status = status
        self.result.reason = f"guest {self.guest} {reason}" + (f": {words}" if words else "")

    def kernel_trouble(self) -> list[str]:
        """The kernel log from the first warning, BUG or oops on."""
        try:
            log = (self.directory / f"kernel.{self.guest}").read_text("utf-8", "replace")
        except OSError:
            return []
        lines = log.replace("\r", "").splitlines()
        for number, line in enumerate(lines):
            if TROUBLE.search(line):
                return lines[number : number + TROUBLE_LINES]
        return []
