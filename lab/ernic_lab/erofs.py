# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes read-only file system images (erofs), every entry owned by root.

Not compressed: guests share an image through the host's page cache, and an emulated CPU pays
dearly for decompression.
"""

from __future__ import annotations

from pathlib import Path

from . import tools
from .errors import LabError


def write(tree: Path, image: Path, toolbox: Path) -> None:
    """Write everything below `tree` to `image`; the same tree gives the same bytes."""
    same = ("--all-root", "-T0", "-U", "clear")
    tools.run(toolbox, "usr/bin/mkfs.erofs", "--quiet", *same, str(image), str(tree))
    if image.stat().st_size == 0:
        raise LabError(f"{image.name}: mkfs.erofs wrote nothing: is the disk full?")
