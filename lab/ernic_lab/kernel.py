# SPDX-License-Identifier: GPL-2.0-or-later
"""Component "kernel": the suite's stock kernel, its modules, the driver source, and ionic_rdma.

Debian builds the Ethernet driver (ionic) but leaves the RDMA driver (ionic_rdma) out, so that one
is built here from the very source package of the kernel, against its headers. Content:

    vmlinux         uncompressed, for a PVH boot: saves the guest the decompressor
    modules/usr/lib/modules/RELEASE
                    all modules, with updates/ionic_rdma.ko
    driver-src/     ionic_rdma/ and ionic/, with the Kbuild file that builds the former
    modules.erofs   the modules of the recipe, for the guest's root
    modules.cpio    the same for an initramfs
    boot.cpio       those few that a guest needs to find its root
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from . import cpio, erofs, recipe, tools
from .errors import LabError
from .modules import ModuleTree, depmod

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
RDMA_SOURCE = "drivers/infiniband/hw/ionic"
ETHERNET_SOURCE = "drivers/net/ethernet/pensando/ionic"


def extract_vmlinux(image: Path, toolbox: Path) -> bytes:
    """The ELF kernel inside a bzImage (Linux Documentation/arch/x86/boot.rst, "payload_offset")."""
    data = image.read_bytes()
    setup_sectors = data[0x1F1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = data[start : start + length]
    if not payload.startswith(ZSTD_MAGIC):
        raise LabError(f"{image.name}: the kernel is not compressed with zstd; use --kernel")
    # The last four bytes of the payload are its size, put there for the decompressor.
    return tools.run(toolbox, "usr/bin/zstd", "-dcq", data=payload[:-4])


def modules_archive(source: ModuleTree, names: Iterable[str], out: Path, toolbox: Path) -> None:
    """Write just these modules to `out`, an initramfs archive or an erofs image by its suffix."""
    stage = out.with_suffix(".stage")
    source.install(names, stage, toolbox)
    (stage / "lib").unlink(missing_ok=True)
    if out.suffix == ".erofs":
        erofs.write(stage, out, toolbox)
    else:
        cpio.write(stage, out)
    shutil.rmtree(stage)


def copy_sources(tar: tarfile.TarFile, wanted: dict[str, Path]) -> None:
    """Copy the files of some directories out of a tar stream, and stop when all are behind."""
    seen: set[str] = set()
    for member in tar:
        folder = os.path.dirname(member.name)
        if folder not in wanted:
            if len(seen) == len(wanted):
                return
            continue
        content = tar.extractfile(member) if member.isfile() else None
        if content is not None:
            seen.add(folder)
            wanted[folder].mkdir(exist_ok=True, parents=True)
            (wanted[folder] / os.path.basename(member.name)).write_bytes(content.read())


def unpack_driver_source(buildroot: Path, version: str, target: Path) -> None:
    """Take both drivers out of the kernel source package and write the Kbuild file."""
    tarball = buildroot / f"usr/src/linux-source-{version}.tar.xz"
    top = f"linux-source-{version}"
    wanted = {f"{top}/{RDMA_SOURCE}": target / "ionic_rdma"}
    wanted[f"{top}/{ETHERNET_SOURCE}"] = target / "ionic"
    # xz in a process of its own halves the time against the same in Python.
    unxz = tools.command(buildroot, "usr/bin/xz", "-dc", "-T0", str(tarball))
    with subprocess.Popen(unxz, stdout=subprocess.PIPE) as source:
        assert source.stdout is not None
        with tarfile.open(fileobj=source.stdout, mode="r|") as tar:
            copy_sources(tar, wanted)
        source.kill()
    for folder, place in wanted.items():
        if not place.is_dir():
            raise LabError(f"{tarball.name} has no {folder}")
    objects = " ".join(f"{p.stem}.o" for p in sorted((target / "ionic_rdma").glob("*.c")))
    (target / "ionic_rdma" / "Kbuild").write_text(
        f"ccflags-y := -I$(src)/../ionic\nobj-m := ionic_rdma.o\nionic_rdma-y := {objects}\n",
        "ascii",
    )


def build_module(buildroot: Path, release: str, source: Path, folder: str) -> list[Path]:
    """Compile the out-of-tree module in `source`/`folder` in place; returns the .ko files."""
    jobs = f"-j{os.cpu_count() or 1}"
    build = f"/usr/lib/modules/{release}/build"
    tools.chroot(
        buildroot, source, "make", "-s", "-C", build, f"M=/build/{folder}", jobs, "modules"
    )
    return sorted((source / folder).glob("*.ko"))


def find_image(unpacked: Path, release: str) -> Path:
    """Where this suite's packages keep the bzImage."""
    for name in (f"usr/lib/modules/{release}/vmlinuz", f"boot/vmlinuz-{release}"):
        if (unpacked / name).exists():
            return unpacked / name
    raise LabError(f"the kernel packages hold no vmlinuz for {release}")


def make(unpacked: Path, buildroot: Path, release: str, out: Path) -> None:
    """Fill the component directory `out` from the unpacked kernel packages."""
    (out / "vmlinux").write_bytes(extract_vmlinux(find_image(unpacked, release), buildroot))
    source = out / "driver-src"
    version = ".".join(release.split(".")[:2])
    unpack_driver_source(buildroot, version, source)
    modules = out / "modules/usr/lib/modules" / release
    modules.parent.mkdir(parents=True)
    place = f"usr/lib/modules/{release}"
    if not (unpacked / place).is_dir():
        place = f"lib/modules/{release}"
    shutil.move(unpacked / place, modules)
    (modules / "vmlinuz").unlink(missing_ok=True)
    if not any(modules.rglob("ionic_rdma.ko*")):
        add_ionic_rdma(buildroot, release, source, modules / "updates")
    depmod(out / "modules", release, buildroot)
    tree = ModuleTree(modules)
    missing = [name for name in recipe.MODULES if not tree.has(name)]
    if missing:
        raise LabError(f"kernel {release} lacks modules: {' '.join(missing)}")
    names = recipe.MODULES + recipe.OPTIONAL_MODULES
    modules_archive(tree, names, out / "modules.erofs", buildroot)
    modules_archive(tree, names, out / "modules.cpio", buildroot)
    modules_archive(tree, recipe.BOOT_MODULES, out / "boot.cpio", buildroot)


def add_ionic_rdma(buildroot: Path, release: str, source: Path, updates: Path) -> None:
    """Build the RDMA driver and put it into the directory `updates`."""
    updates.mkdir(exist_ok=True)
    for module in build_module(buildroot, release, source, "ionic_rdma"):
        shutil.copyfile(module, updates / module.name)
    for leftover in source.rglob("*"):
        if leftover.is_file() and leftover.suffix not in (".c", ".h") and leftover.name != "Kbuild":
            leftover.unlink()
