# SPDX-License-Identifier: GPL-2.0-or-later
"""Picks kernel modules with everything they need out of a modules directory, ready for a guest."""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from . import tools
from .errors import LabError


def name_of(path: str) -> str:
    """The module name of a file path: ".../nvme-rdma.ko.xz" is "nvme_rdma"."""
    return re.sub(r"\.ko(\.\w+)?$", "", path.rsplit("/", 1)[-1].strip()).replace("-", "_")


class ModuleTree:
    """A modules directory (".../lib/modules/RELEASE") of any kernel."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.release = directory.name
        if not (directory / "modules.dep").exists():
            raise LabError(f"{directory} has no modules.dep: run depmod on it")
        self.needs: dict[str, list[str]] = {}
        for line in self._lines("modules.dep"):
            path, _, rest = line.partition(":")
            self.needs[name_of(path)] = [path, *rest.split()]
        self.built_in = {name_of(line) for line in self._lines("modules.builtin")}
        self.soft: dict[str, list[str]] = {}
        for line in self._lines("modules.softdep"):
            words = line.split()
            if words[:1] == ["softdep"] and len(words) > 2:
                names = [w.replace("-", "_") for w in words[2:] if not w.endswith(":")]
                self.soft.setdefault(words[1].replace("-", "_"), []).extend(names)

    def _lines(self, file: str) -> list[str]:
        try:
            return (self.directory / file).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []

    def has(self, name: str) -> bool:
        """Whether the kernel has this module, built in or not."""
        return name in self.needs or name in self.built_in

    def closure(self, names: Iterable[str]) -> list[str]:
        """Paths of the named modules and of all they depend on, hard or soft."""
        paths: set[str] = set()
        todo = list(names)
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for path in self.needs.get(name, []):
                paths.add(path)
                todo += [name_of(path), *self.soft.get(name_of(path), [])]
        return sorted(paths)

    def install(self, names: Iterable[str], tree: Path, toolbox: Path) -> None:
        """Put the modules into `tree`, uncompressed, without debug data, with depmod's indexes."""
        target = tree / "usr/lib/modules" / self.release
        written = []
        for path in self.closure(names):
            plain = target / re.sub(r"\.(xz|zst|gz)$", "", path)
            plain.parent.mkdir(parents=True, exist_ok=True)
            plain.write_bytes(unpacked(self.directory / path, toolbox))
            written.append(str(plain))
        if written:
            # This drops signatures too; a kernel that insists on them would refuse ours anyway.
            strip = ("-g", "--remove-section=.BTF", *written)
            tools.run(toolbox, "usr/bin/x86_64-linux-gnu-strip", *strip)
        target.mkdir(parents=True, exist_ok=True)
        for file in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
            if (self.directory / file).exists():
                shutil.copyfile(self.directory / file, target / file)
        depmod(tree, self.release, toolbox)


def unpacked(path: Path, toolbox: Path) -> bytes:
    """The content of a module file, whatever it is compressed with."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return tools.run(toolbox, "usr/bin/zstd", "-dcq", data=data)
    return data


def depmod(tree: Path, release: str, toolbox: Path) -> None:
    """Index the modules in `tree`, which may keep them under /usr/lib or /lib."""
    if not (tree / "lib").exists():
        (tree / "lib").symlink_to("usr/lib")
    tools.run(toolbox, "usr/bin/kmod", "-b", str(tree), release, name="depmod")


def find(directory: Path) -> ModuleTree:
    """The modules in a directory a user named: one release, or a tree with lib/modules/RELEASE."""
    if (directory / "modules.dep").exists():
        return ModuleTree(directory.resolve())
    releases = [p.parent for p in directory.glob("lib/modules/*/modules.dep")]
    if len(releases) != 1:
        raise LabError(f"--modules {directory}: neither modules.dep nor one lib/modules/RELEASE")
    return ModuleTree(releases[0])
