# SPDX-License-Identifier: GPL-2.0-or-later
"""Component "uc": the guests' RDMA driver and provider, changed to allow UC queue pairs.

The device serves UC, but the stock driver gives only RC queue pairs the address handle that a
connected queue pair needs, and the stock provider refuses the type. One expression in each
makes the difference. Content:

    uc.erofs    ionic_rdma.ko and the provider, at the places where they cover the stock ones

The provider is compiled from the upstream source of the very rdma-core that the guests have: it
and libibverbs share an interface that is private to each release.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from . import erofs, kernel, tools
from .errors import LabError
from .modules import ModuleTree

PLUGINS = f"{tools.LIBRARIES}/libibverbs"


@dataclass(frozen=True)
class Change:
    """A change to a source file: `pattern` must be found there exactly once."""

    file: str
    pattern: str
    replacement: str


DRIVER = Change("ionic_controlpath.c", r"(has_ah = )(\S+ == IB_QPT_)RC;", r"\1\2RC || \2UC;")
PROVIDER = Change(
    "providers/ionic/ionic_verbs.c", r"\((ex->qp_type == IBV_QPT_)RC\)", r"(\1RC || \1UC)"
)

# No libnl, no manual, no Python: only the provider is wanted, and what it links with.
CONFIGURE = """
    -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DNO_MAN_PAGES=1 -DNO_PYVERBS=1
    -DENABLE_RESOLVE_NEIGH=0 -DENABLE_VALGRIND=0
""".split()


@dataclass(frozen=True)
class Parts:
    """What the component is made of."""

    buildroot: Path
    kernel: Path
    release: str
    rdma_core: Path  # upstream tarball


def apply(change: Change, folder: Path) -> None:
    """Change the file in `folder`."""
    path = folder / change.file
    text, count = re.subn(change.pattern, change.replacement, path.read_text("utf-8"))
    if count != 1:
        raise LabError(
            f"{change.file}: what --uc changes was found {count} times, not once: this version of"
            " it needs another change (lab/ernic_lab/uc.py)"
        )
    path.write_text(text, "utf-8")


def unpack(tarball: Path, target: Path) -> None:
    """Unpack an upstream tarball without its top directory."""
    with tarfile.open(tarball) as tar:
        for member in tar:
            _, _, member.name = member.name.partition("/")
            if ".." in member.name.split("/"):
                raise LabError(f"{tarball.name}: {member.name} is outside")
            if member.name and (member.isfile() or member.isdir() or member.issym()):
                tar.extract(member, target, set_attrs=member.isfile())


def strip(parts: Parts, binary: Path) -> None:
    """Drop the debug data."""
    tools.run(parts.buildroot, "usr/bin/x86_64-linux-gnu-strip", "-g", str(binary))


def add_driver(parts: Parts, work: Path, stage: Path) -> None:
    """Compile the driver and put it where the modules' index has the stock one."""
    shutil.copytree(parts.kernel / "driver-src", work, dirs_exist_ok=True)
    apply(DRIVER, work / "ionic_rdma")
    (built,) = kernel.build_module(parts.buildroot, parts.release, work, "ionic_rdma")
    folder = f"usr/lib/modules/{parts.release}"
    stock = ModuleTree(parts.kernel / "modules" / folder).needs["ionic_rdma"][0]
    target = stage / folder / re.sub(r"\.(xz|zst|gz)$", "", stock)
    target.parent.mkdir(parents=True)
    shutil.copyfile(built, target)
    strip(parts, target)


def add_provider(parts: Parts, toolchain: Path, work: Path, stage: Path) -> None:
    """Compile the provider and put it where libibverbs looks for it."""
    unpack(parts.rdma_core, work / "rdma-core")
    apply(PROVIDER, work / "rdma-core")
    for command in (
        ("cmake", *CONFIGURE, "-S", "/build/rdma-core", "-B", "/build/out"),
        ("ninja", "-C", "/build/out", "ionic"),
    ):
        tools.chroot(toolchain, work, *command)
    (plugin,) = (work / "out/lib").glob("libionic-rdmav*.so")
    target = stage / PLUGINS / plugin.name
    target.parent.mkdir(parents=True)
    shutil.copyfile(plugin.parent / plugin.readlink(), target)
    strip(parts, target)


def make(parts: Parts, toolchain: Path, out: Path) -> None:
    """Write out/uc.erofs; `toolchain` is a tree with the packages that compile the provider."""
    for name in ("build", "proc", "tmp", "dev"):
        (toolchain / name).mkdir(exist_ok=True)
    stage, work = out / "stage", out / "work"
    work.mkdir()
    add_driver(parts, work, stage)
    add_provider(parts, toolchain, work, stage)
    erofs.write(stage, out / "uc.erofs", parts.buildroot)
    shutil.rmtree(work)
    shutil.rmtree(stage)
