# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual machine: QEMU's command line, the kernel's command line and the initramfs.

What makes the boot short under emulation: an uncompressed kernel entered through PVH, qboot in
place of SeaBIOS, a CPU model with PCLMULQDQ but without the features that cost an emulator most,
and a kernel command line without self-tests, watchdogs and keyboard probing.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import modules, recipe, tools, tsc
from .build import Lab
from .cpio import Archive
from .kernel import modules_archive
from .options import Options, interpreter

GUEST_FILES = Path(__file__).resolve().parents[1] / "guest"
# isa-debug-exit: a byte written to this port ends QEMU with (byte << 1) | 1.
EXIT_PORT = 0xF4
CPU = {"tcg": "Westmere", "kvm": "host"}
KERNEL_WORDS = """
    console=ttyS0 loglevel=5 panic=-1 oops=panic nokaslr mitigations=off rodata=off tsc=reliable
    no_timer_check random.trust_cpu=on cryptomgr.notests lsm=capability audit=0 nowatchdog
    8250.nr_uarts=2 i8042.noaux i8042.nokbd i8042.nopnp pci=hpmmiosize=16M cgroup_disable=memory
""".split()
SKIPPED_INITCALLS = """
    load_system_certificate_list init_encrypted ksm_init damon_stat_init crypto_kdf108_init
""".split()
KERNEL_WORDS.append("initcall_blacklist=" + ",".join(SKIPPED_INITCALLS))

# A PCI Express port for the NIC, open to hot-plug (for which the kernel keeps 16 MiB, see above: the
# doorbells are four).
PORT = ["-device", "pcie-root-port,id=port1,chassis=1,slot=1"]

DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
MOUNTS = """\
proc /proc proc defaults 0 0
sys /sys sysfs defaults 0 0
dev /dev devtmpfs defaults 0 0
devpts /dev/pts devpts defaults 0 0
shm /dev/shm tmpfs mode=1777 0 0
tmp /tmp tmpfs mode=1777 0 0
run /run tmpfs mode=755 0 0
tracefs /sys/kernel/tracing tracefs defaults 0 0
debugfs /sys/kernel/debug debugfs defaults 0 0
"""
# The images of a root on disks, by where the initramfs mounts them: later ones cover earlier ones.
DISKS = ("image", "modules", "uc")


@dataclass(frozen=True)
class Channels:
    """Where the guest's three lines to the host end: see guest/init."""

    output: Path
    kernel: Path
    control: int  # a connected socket that QEMU inherits
    monitor: int | None = None  # the same, for QMP


def qemu_program(options: Options, lab: Lab) -> list[str]:
    """The command that starts QEMU: the lab's, or the user's own."""
    return [options.qemu] if options.qemu else lab_qemu(lab)


def lab_qemu(lab: Lab) -> list[str]:
    """The command that starts the lab's QEMU."""
    share = lab.qemu / "usr/share"
    folders = ["-L", str(share / "qemu"), "-L", str(share / "seabios")]
    return tools.command(lab.qemu, "usr/bin/qemu-system-x86_64", *folders)


def qemu_environment(lab: Lab) -> dict[str, str]:
    """Where QEMU finds its loadable modules."""
    return {"QEMU_MODULE_DIR": str(lab.qemu / tools.LIBRARIES / "qemu")}


def base_arguments(accel: str, options: Options, kernel: Path, cmdline: str) -> list[str]:
    """A machine without any device but the exit port; its memory is open to the NIC server."""
    accelerator = f"tcg,thread={options.tcg_thread}" if accel == "tcg" else accel
    return [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-M", "q35,memory-backend=ram", "-accel", accelerator, "-cpu", CPU[accel]),
        *("-smp", str(options.vcpus), "-m", f"{options.mem}M"),
        *("-object", f"memory-backend-memfd,id=ram,size={options.mem}M,share=on"),
        *("-bios", "qboot.rom", "-kernel", str(kernel), "-append", cmdline),
        *("-device", f"isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4"),
    ]


def kernel_cmdline(options: Options, khz: int | None) -> str:
    """The kernel's command line; `khz` is the rate of the time stamp counter, if it is to be told."""
    words = [*KERNEL_WORDS]
    if khz:
        words.append(f"tsc_early_khz={khz}")
    return " ".join([*words, options.cmdline]).strip()


def qmp_arguments(guest: int, directory: Path) -> list[str]:
    """A monitor for host scripts."""
    return ["-qmp", f"unix:{directory}/qmp.{guest}.sock,server=on,wait=off"]


def disk_arguments(options: Options, lab: Lab) -> list[str]:
    """The disks that the root is made of."""
    words = []
    for number, image in enumerate(disk_images(options, lab)):
        file = str(image).replace(",", ",,")
        drive = f"file={file},format=raw,if=none,id=disk{number},readonly=on,file.locking=off"
        words += ["-drive", drive, "-device", f"virtio-blk-pci,drive=disk{number}"]
    return words


def saved_arguments(options: Options, lab: Lab, khz: int | None) -> list[str]:
    """A machine that is saved, and those made from it: the port for a NIC is there, and is empty."""
    cmdline = kernel_cmdline(options, khz)
    words = base_arguments("tcg", options, lab.vmlinux, cmdline)
    return [*words, *disk_arguments(options, lab), *PORT]


def arguments(options: Options, lab: Lab, accel: str, guest: int, directory: Path) -> list[str]:
    """Everything about guest N that stays the same over its boots."""
    khz = tsc.rate_khz() if accel == "tcg" else None
    kernel = options.kernel or lab.vmlinux
    words = base_arguments(accel, options, kernel, kernel_cmdline(options, khz))
    words += ["-initrd", str(directory / f"initrd.{guest}")]
    words += qmp_arguments(guest, directory)
    words += disk_arguments(options, lab)
    if options.share:
        path = str(options.share.resolve()).replace(",", ",,")
        fs = f"local,id=share,path={path},security_model=none,multidevs=remap"
        words += ["-fsdev", fs, "-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]
    if not options.no_nic:
        words += nic_arguments(directory / f"nic.{guest}.sock")
    tap = options.virtio_tap_name(guest)
    if tap:
        words += virtio_arguments(tap, guest, options)
    return words + (options.qemu_arg or [])


def disk_images(options: Options, lab: Lab) -> list[Path]:
    """What the guest's root is made of, as many of DISKS as it takes.

    A kernel of the user's own brings its modules in the initramfs, and with `tiny` needs no disk.
    """
    full = options.flavour == "full"
    userland = lab.full_image if full else lab.tiny_image
    assert userland is not None
    if options.kernel:
        return [userland] if full else []
    images = [userland, lab.modules_image]
    if options.uc:
        assert lab.uc_image is not None
        images.append(lab.uc_image)
    return images


def nic_device(socket: Path) -> dict[str, object]:
    """The NIC, behind the port as a card would be."""
    address = {"type": "unix", "path": str(socket)}
    return {"driver": "vfio-user-pci", "id": "nic", "bus": "port1", "socket": address}


def nic_arguments(socket: Path) -> list[str]:
    """The port and the NIC."""
    # vfio-user-pci takes a socket address, which only the JSON form can express.
    return [*PORT, "-device", json.dumps(nic_device(socket))]


def virtio_arguments(tap: str, guest: int, options: Options) -> list[str]:
    """A virtio-net device on a TAP, without vhost, for comparison."""
    queues = f",queues={options.vcpus}" if options.multi_queue_taps else ""
    netdev = f"tap,id=virtio,ifname={tap},script=no,downscript=no,vhost=off{queues}"
    mac = f"52:54:00:00:00:{guest:02x}"
    device = f"virtio-net-pci,netdev=virtio,mac={mac},host_mtu={options.tap_mtu}"
    if queues:
        device += f",mq=on,vectors={2 * options.vcpus + 2}"
    return ["-netdev", netdev, "-device", device]


def channel_arguments(channels: Channels) -> list[str]:
    """The devices for the channels.

    The output takes a serial port: a virtio console is faster for bulk, but for each line the guest
    waits until QEMU's main loop has come round, which on a busy host is long. It goes to a file, as
    a socket may not take it at once.
    """
    monitor = []
    if channels.monitor is not None:
        monitor = ["-chardev", f"socket,id=monitor,fd={channels.monitor}"]
        monitor += ["-qmp", "chardev:monitor"]
    return [
        *monitor,
        *("-chardev", f"file,id=kernel,path={channels.kernel},append=on"),
        *("-serial", "chardev:kernel"),
        *("-chardev", f"socket,id=control,fd={channels.control}"),
        *("-chardev", f"file,id=output,path={channels.output},append=on", "-serial", "chardev:output"),
        *("-device", "virtio-serial-pci", "-device", "virtconsole,chardev=control"),
    ]


def user_modules(options: Options, lab: Lab, out: Path) -> Path:
    """The modules of the initramfs: the few that find the disks, or all of the user's kernel."""
    if options.kernel is None:
        return lab.boot_modules_cpio
    if options.modules is None:  # a kernel with everything built in
        with out.open("wb") as file:
            Archive(file).close()
        return out
    names = recipe.MODULES + recipe.OPTIONAL_MODULES
    modules_archive(modules.find(options.modules), names, out, lab.buildroot)
    return out


def write_initrd(
    options: Options, lab: Lab, modules_cpio: Path, guest: int, boot: int, out: Path
) -> None:
    """The userland, the modules, and this guest's script and settings, one after the other."""
    disks = len(disk_images(options, lab))
    userland = lab.boot_cpio if disks else lab.tiny_cpio
    with out.open("wb") as file:
        for part in (userland, modules_cpio):
            with part.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
        archive = Archive(file)
        add_boot_files(archive, disks)
        add_run_files(archive, options, guest, boot)
        archive.close()


def saved_boot_files(options: Options, lab: Lab) -> bytes:
    """The same without anything of a run, and with the wish to be saved."""
    out = io.BytesIO()
    archive = Archive(out)
    add_boot_files(archive, len(disk_images(options, lab)))
    archive.file("lab/env", b"export LAB_SAVE=1\n")
    archive.close()
    return out.getvalue()


def payload(options: Options, guest: int, boot: int) -> bytes:
    """What a guest made from a saved boot gets: an archive with what is of this run, and a seed."""
    out = io.BytesIO()
    archive = Archive(out)
    add_run_files(archive, options, guest, boot)
    archive.file("lab/seed", os.urandom(256), 0o600)
    archive.close()
    return out.getvalue()


def add_run_files(archive: Archive, options: Options, guest: int, boot: int) -> None:
    """This guest's script, its files and its settings."""
    archive.file("lab/run", options.script(guest).read_bytes(), 0o755)
    for path in options.file or []:
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        archive.file(f"lab/{path.name}", path.read_bytes(), mode)
    archive.file("lab/env", guest_environment(options, guest, boot).encode())


def add_boot_files(archive: Archive, disks: int) -> None:
    """What guest/init and the scripts use, in /lab."""
    init = (GUEST_FILES / "init").read_bytes()
    archive.file("init", init, 0o755)
    archive.file("lab/init", init, 0o755)
    for name in ("nic-up", "virtio-up", "rxe-up", "barrier", "rping-done"):
        archive.file(f"lab/bin/{name}", (GUEST_FILES / name).read_bytes(), 0o755)
    for name in ("lab/dev/pts", "lab/dev/shm"):
        archive.directory(name)
    for name, target in DEVICE_LINKS.items():
        archive.symlink(f"lab/dev/{name}", target)
    archive.file("lab/fstab", MOUNTS.encode())
    if disks:
        used = DISKS[:disks]
        for name in (*used, "layer", "root.disk"):
            archive.directory(name)
        lines = [f"/dev/vd{letter} /{name} erofs ro 0 0\n" for letter, name in zip("abc", used)]
        lines.append("layer /layer tmpfs size=75% 0 0\n")
        archive.file("lab/fstab.disks", "".join(lines).encode())


def guest_environment(options: Options, guest: int, boot: int) -> str:
    """Shell text that sets what a script may ask about."""
    settings = {"GUEST": str(guest), "GUESTS": str(options.guests), "BOOT": str(boot)}
    settings["FLAVOUR"] = options.flavour
    settings["LAB_RUN"] = "/lab/run"
    settings["LAB_INTERPRETER"] = interpreter(options.script(guest))
    if not options.script(guest).read_bytes().startswith((b"#!", b"\x7fELF")):
        settings["LAB_RUN"] = "/bin/sh /lab/run"
    settings["LAB_DMESG"] = "1" if options.keep_logs else ""
    settings["LAB_SHARE"] = "1" if options.share else ""
    settings["LAB_NIC"] = "" if options.no_nic else "1"
    for word in options.env or []:
        name, _, value = word.partition("=")
        settings[name] = value
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
