# SPDX-License-Identifier: GPL-2.0-or-later
"""A boot that is saved once, for guests to go on from.

An emulated CPU takes seconds to boot a kernel. A guest that differs from an earlier one only in what
comes after the boot need not: the machine is saved when its init has a root, modules and random
numbers but has not yet looked at script and settings (`be_saved` in guest/init), and without NIC. A
guest made from it gets both afterwards: the NIC by hot-plug, and an archive with the rest through the
control channel. It renews what must not be equal in two guests: random numbers, clock, name.

A saved boot is a component of the cache, made at its first use. Its key digests everything the machine
is made of, so it never is out of date. Of more than KEPT those go that nobody has used for a day.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import cache, machine, tsc
from .build import Lab
from .errors import LabError
from .options import Options
from .process import Child

KEPT = 12
SAFE_SECONDS = 86400
# What fits into the socket of the control channel without waiting for the guest.
PAYLOAD_MAX = 96 << 10
# The guest knows the rate of its CPU's counter from the saved boot: so much more or less is no matter.
TSC_TOLERANCE = 2e-4
MAPPED_RAM = {"capability": "mapped-ram", "state": True}  # only pages in use are written and read
EVENTS = {"capability": "events", "state": True}


def ensure(options: Options, lab: Lab) -> Path | None:
    """The saved boot for guests of these options, made first if it is missing.

    None when what their scripts bring is too large: such guests boot.
    """
    numbers = range(1, options.guests + 1)
    if any(len(machine.payload(options, number, 1)) > PAYLOAD_MAX for number in numbers):
        return None
    files = machine.saved_boot_files(options, lab)
    # How the emulator runs the CPUs is no part of the machine.
    alike = dataclasses.replace(options, tcg_thread="")
    key = cache.digest(*machine.saved_arguments(alike, lab, None), files.hex())
    khz = tsc.rate_khz() or 0
    with cache.lock("save.lock", fcntl.LOCK_EX), _tidy_end():
        _forget_other_rate(cache.root() / f"snapshot-{key}", khz)
        folder = cache.component("snapshot", key, lambda out: _make(options, lab, khz, out))
        os.utime(folder)
        _forget_oldest()
    return folder / "state"


def forget(state: Path) -> None:
    """Remove a saved boot that a guest could not go on from; the next run makes it anew."""
    shutil.rmtree(state.parent, ignore_errors=True)


def _forget_oldest() -> None:
    """Keep the newest, and what a run may still be using."""
    folders = {path: path.stat().st_mtime for path in cache.root().glob("snapshot-*")}
    for path in sorted(folders, key=folders.__getitem__, reverse=True)[KEPT:]:
        if folders[path] < time.time() - SAFE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _tidy_end() -> Iterator[None]:
    """A signal that ends us lets us remove what is half made."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _forget_other_rate(folder: Path, khz: int) -> None:
    """Remove what was saved on another machine, where time went at another rate, or is not whole."""
    if not folder.exists():
        return
    try:
        saved = int((folder / "khz").read_text("ascii"))
        whole = (folder / "state").exists()
    except (OSError, ValueError):
        whole = False
    if not whole or abs(saved - khz) > khz * TSC_TOLERANCE:
        shutil.rmtree(folder)


def _make(options: Options, lab: Lab, khz: int, out: Path) -> None:
    """Boot a guest and save it."""
    (out / "khz").write_text(f"{khz}\n", "ascii")
    print("lab: saving a boot, once, for guests like this one", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=out) as name:
        directory = Path(name)
        initrd = directory / "initrd"
        with initrd.open("wb") as file:
            for part in (lab.boot_cpio, lab.boot_modules_cpio):
                file.write(part.read_bytes())
            file.write(machine.saved_boot_files(options, lab))
        control, control_end = socket.socketpair()
        qmp, qmp_end = socket.socketpair()
        channels = machine.Channels(
            directory / "output", directory / "kernel", control_end.fileno(), qmp_end.fileno()
        )
        command = [
            *machine.lab_qemu(lab),
            *machine.saved_arguments(options, lab, khz or None),
            *("-initrd", str(initrd)),
            *machine.channel_arguments(channels),
        ]
        child = Child(
            command,
            directory / "log",
            directory / "pid",
            (channels.control, qmp_end.fileno()),
            machine.qemu_environment(lab),
        )
        control_end.close()
        qmp_end.close()
        try:
            _save(child, control, Talk(qmp, _saving(out / "state")), options.boot_timeout)
        finally:
            child.signal(signal.SIGKILL)
            child.wait(10)
            child.close()
            control.close()
            qmp.close()


def _save(child: Child, control: socket.socket, talk: Talk, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    said = b""
    waiting: list[socket.socket] = [control]
    while not talk.done:
        left = deadline - time.monotonic()
        ready = select.select([*waiting, child.pidfd], [], [], max(0.0, left))[0]
        if not ready or child.pidfd in ready:
            what = child.tail() or ("it ended" if ready else f"not saved after {seconds:g} s")
            raise LabError(f"cannot save a boot: {what}; leave --snapshot out")
        if control in ready:
            said += control.recv(4096)
            if b"saved\n" in said:
                waiting = [talk.socket]
        else:
            try:
                talk.read()
            except (EOFError, OSError):
                waiting = []  # it has ended
            except LabError as err:
                remedy = "see that its disk has 200 MB free, or leave --snapshot out"
                raise LabError(f"cannot save a boot in {cache.root()}: {err}; {remedy}") from err


class Talk:
    """A conversation with QEMU's monitor, a step whenever it has said something."""

    def __init__(self, monitor: socket.socket, steps: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self.socket = monitor
        self.steps = steps
        self.done = False
        self.partial = b""
        self.migrating = False

    def read(self) -> None:
        """Take what has arrived, and go on; LabError when QEMU refuses a step, EOFError at its end."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, said: dict[str, Any]) -> None:
        if "error" in said:
            raise LabError(f"QEMU: {said['error'].get('desc')}")
        if said.get("event") == "MIGRATION":
            status = said["data"]["status"]
            if status == "failed":
                raise LabError("QEMU: the saved boot cannot be written or read")
            if status == "completed":
                self._step()
        elif "QMP" in said or ("return" in said and not self.migrating):
            self._step()

    def _step(self) -> None:
        step = next(self.steps, None)
        if step is None:
            self.done = True
            return
        name, arguments = step
        # Its answer comes at once, and means nothing: an event tells the end.
        self.migrating = name.startswith("migrate") and "uri" in arguments
        command = {"execute": name, "arguments": arguments}
        self.socket.sendall(json.dumps(command).encode() + b"\n")


def _saving(state: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "qmp_capabilities", {}
    yield "migrate-set-capabilities", {"capabilities": [MAPPED_RAM, EVENTS]}
    yield "migrate", {"uri": f"file:{state}"}


def restoring(state: Path, nic: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The steps that make a guest of a saved boot, and plug in the NIC at that socket."""
    yield "qmp_capabilities", {}
    yield "migrate-set-capabilities", {"capabilities": [MAPPED_RAM, EVENTS]}
    yield "migrate-incoming", {"uri": f"file:{state}"}
    if nic is not None:
        yield "device_add", machine.nic_device(nic)
    yield "cont", {}


def wanted(options: Options, accel: str) -> bool:
    """Whether guests start from a saved boot; with KVM they boot as fast."""
    return options.snapshot and accel == "tcg"
