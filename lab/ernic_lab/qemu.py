# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/qemu: becomes the lab's QEMU, for hosts whose own is too old for vfio-user."""

from __future__ import annotations

import fcntl
import os
import signal

from . import build, cache, machine, recipe
from .errors import LabError


def main(arguments: list[str]) -> int:
    """The command lab/qemu; every argument is QEMU's."""
    with cache.lock("use.lock", fcntl.LOCK_SH) as lock:
        lab = build.ensure(recipe.suite(), ["tiny"])
        # QEMU keeps the lock, so that lab/clean leaves its files alone.
        os.set_inheritable(lock, True)
        # Python ignores it, and a program that it becomes would too.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        command = [*machine.lab_qemu(lab), *arguments]
        try:
            os.execve(command[0], command, {**os.environ, **machine.qemu_environment(lab)})
        except OSError as err:
            remedy = "build the lab anew: lab/clean --all"
            raise LabError(f"cannot start {command[0]}: {err.strerror}; {remedy}") from err
