# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes initramfs archives (cpio "newc"), every entry owned by root, without root or cpio(1).

The kernel unpacks archives that follow each other, so one made per run is simply appended.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


class Archive:
    """A cpio archive being written to `out`."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out
        self.count = 0
        self.directories: set[str] = set()

    def _entry(self, name: str, mode: int, data: bytes = b"") -> None:
        self.count += 1
        path = name.encode() + b"\0"
        # magic, then: inode, mode, uid, gid, links, mtime, size, device x2, rdevice x2, name, check
        numbers = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % number for number in numbers)
        self.out.write(header + path + bytes(-(len(header) + len(path)) % 4))
        self.out.write(data + bytes(-len(data) % 4))

    def directory(self, name: str) -> None:
        """Add a directory and those above it, once."""
        for depth in range(1, name.count("/") + 2):
            part = "/".join(name.split("/")[:depth])
            if part not in self.directories:
                self.directories.add(part)
                self._entry(part, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Add a regular file, and its directories."""
        if "/" in name:
            self.directory(os.path.dirname(name))
        self._entry(name, stat.S_IFREG | mode, data)

    def symlink(self, name: str, target: str) -> None:
        """Add a symbolic link; its directory must be there."""
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def tree(self, top: Path, prefix: str = "") -> None:
        """Add everything below `top`; sockets, devices and the like are left out."""
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(folders + files):
                path = Path(folder, name)
                inside = prefix + str(path.relative_to(top))
                if path.is_symlink():
                    self.symlink(inside, os.readlink(path))
                elif path.is_dir():
                    self.directory(inside)
                elif path.is_file():
                    self.file(inside, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def close(self) -> None:
        """End the archive, padded so that another may follow."""
        self._entry("TRAILER!!!", 0)
        self.out.write(bytes(-self.out.tell() % 512))


def write(tree: Path, out: Path) -> None:
    """Write everything below `tree` to an archive."""
    with out.open("wb") as file:
        archive = Archive(file)
        archive.tree(tree)
        archive.close()
