# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/clean: removes from the cache what no newest lab uses, or everything.

It waits for no one: while a guest runs, or a build, it refuses.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from . import cache, recipe
from .arguments import Parser
from .errors import LabError


def size_of(path: Path) -> int:
    """Bytes of disk below a path."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if not p.is_dir()]
    return sum(p.lstat().st_blocks * 512 for p in files)


def unused(debs: bool) -> list[Path]:
    """What the labs of this recipe, in any suite, do not need; downloads too if asked for."""
    kept: set[str] = set()
    indexes = list((cache.root() / "index").glob("*"))
    current = [p for p in indexes if p.name.endswith("." + recipe.fingerprint())]
    for path in current:
        kept |= set(json.loads(path.read_text("utf-8")).get("components", {}).values())
    # Saved boots are made again when they are needed.
    parts = (*recipe.SOURCES, "new", "snapshot")
    folders = [p for part in parts for p in cache.root().glob(f"{part}[-.]*")]
    rest = [p for p in indexes if p not in current] + [p for p in folders if p.name not in kept]
    if debs:
        rest += list((cache.root() / "apt").glob("*/debs"))
        rest += list((cache.root() / "apt").glob("*/sources"))
    return rest


def remove(paths: Iterable[Path], dry: bool) -> int:
    """Remove (or only name) the paths; returns the bytes."""
    total = 0
    for path in paths:
        total += size_of(path)
        print(("would remove " if dry else "remove ") + str(path))
        if dry:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return total


def main(arguments: list[str]) -> int:
    """The command lab/clean."""
    parser = Parser(
        prog="lab/clean",
        description="Remove old parts of the lab's cache; those of the present recipe stay.",
    )
    parser.add_argument("--debs", action="store_true", help="downloaded packages too")
    parser.add_argument("--all", action="store_true", help="the whole cache")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    options = parser.parse_args(arguments)
    if not cache.root().is_dir():
        return 0

    def busy() -> None:
        raise LabError("a guest or a build is running: try again when it has ended")

    with cache.lock("build.lock", fcntl.LOCK_EX, busy), cache.lock("use.lock", fcntl.LOCK_EX, busy):
        paths = list(cache.root().iterdir()) if options.all else unused(options.debs)
        total = remove(paths, options.dry_run)
    print(f"{total / 1e9:.2f} GB", file=sys.stderr)
    return 0
