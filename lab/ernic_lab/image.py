# SPDX-License-Identifier: GPL-2.0-or-later
"""Components "tiny" and "full": the two userlands of a guest.

`tiny` has just the programs of the recipe and the libraries they load. `full` is an unpacked
Debian. Both are read-only images that all guests share and lay a tmpfs over: against an initramfs
of the same content this saves an emulated CPU a third of its boot. `tiny` is an initramfs too,
for kernels of the user's own that may lack the drivers for a disk.

No maintainer script runs, so the few things guests need from them are done here.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from . import cpio, erofs, recipe, tools
from .cpio import Archive
from .debian import Apt, Package
from .errors import LabError

PROGRAM_DIRECTORIES = ("./usr/bin/", "./usr/sbin/", "./bin/", "./sbin/")
KMOD_NAMES = ("modprobe", "insmod", "rmmod", "lsmod", "modinfo", "depmod")
MOUNT_POINTS = "proc sys dev tmp run root mnt share lab var/tmp var/log etc/nvme".split()
ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "profile": "export PS1='guest# '\n",
}
USERS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}


def programs(apt: Apt, packages: Iterable[Package], names: Iterable[str]) -> list[str]:
    """Paths of the programs in the named packages, less those the recipe leaves out."""
    wanted = set(names)
    found = []
    for package in packages:
        if package.name not in wanted:
            continue
        deb = apt.directory / "debs" / package.file
        done = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], capture_output=True, check=True
        )
        listed = subprocess.run(["tar", "-t"], input=done.stdout, capture_output=True, check=True)
        for path in listed.stdout.decode().splitlines():
            if path.startswith(PROGRAM_DIRECTORIES) and not path.endswith("/"):
                found.append(path[2:])
    left_out = recipe.TINY_WITHOUT
    return [p for p in found if not any(fnmatch.fnmatch(p, pattern) for pattern in left_out)]


class TinyTree:
    """The tree of `tiny` in the making: `source` is the unpacked packages, `stage` the result."""

    def __init__(self, source: Path, stage: Path) -> None:
        self.source = source
        self.stage = stage
        self.loaded: set[Path] = set()

    def copy(self, path: str) -> None:
        """Copy a file or a symbolic link with all that it points to."""
        place = self.stage / path
        origin = self.source / path
        if os.path.lexists(place):
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            target = os.readlink(origin)
            place.symlink_to(target)
            inside = target.lstrip("/") if target.startswith("/") else None
            inside = inside or os.path.normpath(os.path.join(os.path.dirname(path), target))
            if (self.source / inside).exists():
                self.copy(inside)
            return
        shutil.copy(origin, place)

    def program(self, path: str) -> None:
        """Copy a program or plugin and the libraries it loads."""
        self.copy(path)
        with (self.source / path).open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return
        for library in tools.shared_objects(self.source, self.source / path):
            if library not in self.loaded:
                self.loaded.add(library)
                self._library(library)

    def _library(self, library: Path) -> None:
        name = str(library.relative_to(self.source))
        if library.parent == self.source / tools.LIBRARIES:
            self.copy(name)
        else:  # a private directory: put it where every program finds it
            target = self.stage / tools.LIBRARIES / library.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)


def busybox_applets(stage: Path, busybox: Path) -> None:
    """Link every applet that has no program of its own; the real tools win."""
    listed = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True)
    for applet in listed.stdout.split():
        places = [stage / "usr/bin" / applet, stage / "usr/sbin" / applet]
        if not any(os.path.lexists(place) for place in places):
            places[0].symlink_to("busybox")


def finish_tree(stage: Path) -> None:
    """What both userlands need and no unpacked package provides."""
    for name in MOUNT_POINTS:
        (stage / name).mkdir(parents=True, exist_ok=True)
    for name in ("usr/bin", "usr/sbin", "usr/lib64"):
        (stage / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if not os.path.lexists(stage / name):
            (stage / name).symlink_to(f"usr/{name}")
    loader = stage / "usr/lib64/ld-linux-x86-64.so.2"
    if not os.path.lexists(loader):
        loader.symlink_to(f"/{tools.LOADER}")
    for name in KMOD_NAMES:
        place = stage / "usr/sbin" / name
        place.unlink(missing_ok=True)
        place.symlink_to("../bin/kmod")
    shell = stage / "usr/bin/sh"
    if not os.path.lexists(shell):
        # Not busybox: its shell prefers its own applets (ip!) to the programs in PATH.
        shell.symlink_to("dash")
    busybox_applets(stage, stage / "usr/bin/busybox")
    for name, text in ETC.items():
        (stage / "etc" / name).write_text(text, "ascii")
    mtab = stage / "etc/mtab"
    if not os.path.lexists(mtab):
        mtab.symlink_to("/proc/self/mounts")


def make_tiny(
    apt: Apt, packages: list[Package], source: Path, toolbox: Path, out: Path
) -> None:
    """Write out/tiny.erofs, tiny.cpio and boot.cpio from the unpacked packages in `source`."""
    stage = out / "stage"
    tree = TinyTree(source, stage)
    for path in programs(apt, packages, recipe.TINY_PACKAGES):
        tree.program(path)
    tree.copy("usr/bin/busybox")
    for pattern in recipe.TINY_PLUGINS:
        for plugin in source.glob(pattern):
            tree.program(str(plugin.relative_to(source)))
    for path in recipe.TINY_FILES:
        tree.copy(path)
    for driver in recipe.VERBS_DRIVERS:
        tree.copy(f"etc/libibverbs.d/{driver}.driver")
    tree.copy(tools.LOADER)
    finish_tree(stage)
    for name, text in USERS.items():
        (stage / "etc" / name).write_text(text, "ascii")
    erofs.write(stage, out / "tiny.erofs", toolbox)
    cpio.write(stage, out / "tiny.cpio")
    shutil.rmtree(stage)
    write_boot(source, out / "boot.cpio")


def write_boot(source: Path, out: Path) -> None:
    """An initramfs with busybox alone: enough to reach the root on a disk."""
    with out.open("wb") as file:
        archive = Archive(file)
        archive.file("usr/bin/busybox", (source / "usr/bin/busybox").read_bytes(), 0o755)
        for name in ("bin", "sbin", "lib"):
            archive.symlink(name, f"usr/{name}")
        for name in ("proc", "sys", "dev", "usr/sbin", "usr/lib"):
            archive.directory(name)
        for name in ("sh", "mount", "umount", "mkdir", "cp"):
            archive.symlink(f"usr/bin/{name}", "busybox")
        archive.close()


def trim(tree: Path) -> None:
    """Remove what no guest needs."""
    for name in recipe.FULL_WITHOUT:
        shutil.rmtree(tree / name, ignore_errors=True)


def configure(tree: Path) -> None:
    """Do for `full` what its packages' maintainer scripts would have done."""
    for name, master in (("passwd", "passwd.master"), ("group", "group.master")):
        shutil.copy(tree / "usr/share/base-passwd" / master, tree / "etc" / name)
    certificates = sorted((tree / "usr/share/ca-certificates").rglob("*.crt"))
    store = tree / "etc/ssl/certs"
    store.mkdir(parents=True, exist_ok=True)
    bundle = "".join(c.read_text("utf-8").rstrip() + "\n" for c in certificates)
    (store / "ca-certificates.crt").write_text(bundle, "utf-8")
    for name, target in (("awk", "mawk"), ("which", "which.debianutils")):
        link = tree / "usr/bin" / name
        if not os.path.lexists(link) and (tree / "usr/bin" / target).exists():
            link.symlink_to(target)


def compile_python(tree: Path) -> None:
    """Byte-compile Python's library and packages, as their maintainer scripts would.

    Nothing checks it against the source at run time: the image is read-only, its time stamps are
    all zero. One process (-j1), because more would be started through sys.executable, which
    is the host's. A file that does not compile (a template, say) is no failure.
    """
    libraries = [p for p in (tree / "usr/lib").glob("python3*") if p.is_dir()]
    libraries.append(tree / recipe.FULL_TESTS)
    arguments = ["-q", "-j1", "--invalidation-mode", "unchecked-hash", "-s", str(tree)]
    environment = {**os.environ, "PYTHONHOME": str(tree / "usr")}
    python = tools.command(tree, "usr/bin/python3", "-m", "compileall", *arguments)
    subprocess.run(
        [*python, *map(str, libraries)], env=environment, capture_output=True, check=False
    )


def add_tests(tree: Path, rdma_core: Path) -> None:
    """Put the pyverbs tests of rdma-core's upstream tarball where the recipe wants them."""
    place = tree / recipe.FULL_TESTS
    place.mkdir(parents=True)
    with tarfile.open(rdma_core) as tar:
        for member in tar:
            _, _, path = member.name.partition("/")
            content = tar.extractfile(member) if os.path.dirname(path) == "tests" else None
            if content is not None:
                (place / os.path.basename(path)).write_bytes(content.read())
    if not (place / "run_tests.py").exists():
        raise LabError(f"{rdma_core.name} has no tests/run_tests.py")
    (place / "run_tests.py").chmod(0o755)


def make_full(tree: Path, buildroot: Path, rdma_core: Path, out: Path) -> None:
    """Write out/full.erofs from the unpacked packages in `tree`, which is changed on the way.

    `rdma_core` is the upstream tarball of the packages' rdma-core.
    """
    trim(tree)
    configure(tree)
    finish_tree(tree)
    add_tests(tree, rdma_core)
    compile_python(tree)
    erofs.write(tree, out / "full.erofs", buildroot)
