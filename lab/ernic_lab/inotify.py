# SPDX-License-Identifier: GPL-2.0-or-later
"""inotify(7), of which the standard library knows nothing: just enough to wait for files."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from .errors import LabError
from .process import LIBC

IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100


class Inotify:
    """A descriptor that is readable when something has happened to a path."""

    def __init__(self, path: Path, events: int) -> None:
        self.descriptor = LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        name = ctypes.c_char_p(os.fsencode(path))
        if self.descriptor < 0 or LIBC.inotify_add_watch(self.descriptor, name, events) < 0:
            error = os.strerror(ctypes.get_errno())
            raise LabError(f"cannot watch {path}: {error} (see sysctl fs.inotify)")

    def fileno(self) -> int:
        return self.descriptor

    def drain(self) -> None:
        """Forget what has happened so far."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 65536)

    def close(self) -> None:
        os.close(self.descriptor)
