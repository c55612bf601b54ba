# SPDX-License-Identifier: GPL-2.0-or-later
"""The arguments of lab/vm: parsed, completed and checked before anything is started."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError

MAX_GUESTS = 16
DEFAULT_NIC = "--backend loopback"
TEXT_FLAGS = ("--nic", "--wrap-server", "--qemu-arg", "--cmdline", "--env")
MEMORY_MIB = {"tiny": 1024, "full": 1536}

DESCRIPTION = """\
Boot guests, each with its own NIC server, run a script as root in each, and exit with the first
status that is not 0; 124 when the time ran out, 125 when a guest or a server never came up or
broke down, with the reason. One SCRIPT serves all guests, or the n-th runs in guest n. In a
script: $GUEST is 1..N, $GUESTS is N, `. nic-up || exit` gives $NIC and $RDMA, `barrier NAME`
waits for the other guests. See lab/README.md.
"""
EPILOG = """\
--nic, --tap names and --virtio-tap: "%n" stands for the number of the guest.
environment: ROCM_ERNIC (the server), DEBIAN_MIRROR, LAB_SUITE, XDG_CACHE_HOME, TMPDIR
"""


@dataclass
class Options:
    """What lab/vm was asked to do."""

    scripts: list[Path]
    guests: int = 1
    nic: list[str] | None = None
    no_nic: bool = False
    vcpus: int = 4
    mem: int = 0
    flavour: str = "tiny"
    share: Path | None = None
    timeout: float = 600
    boot_timeout: float = 300
    boots: int = 1
    keep_logs: Path | None = None
    json: str | None = None
    strict: bool = False
    host: Path | None = None
    file: list[Path] | None = None
    env: list[str] | None = None
    server: str | None = None
    wrap_server: str | None = None
    allow_server_exit: bool = False
    virtio_tap: list[str] | None = None
    tap_mtu: int = 9216
    multi_queue_taps: bool = False
    qemu: str | None = None
    qemu_arg: list[str] | None = None
    kernel: Path | None = None
    modules: Path | None = None
    cmdline: str = ""
    accel: str = "auto"
    suite: str = ""
    uc: bool = False

    def script(self, guest: int) -> Path:
        """The script of guest 1..N."""
        return self.scripts[0] if len(self.scripts) == 1 else self.scripts[guest - 1]

    def nic_arguments(self, guest: int) -> list[str]:
        """The server's arguments for guest 1..N."""
        given = self.nic or [DEFAULT_NIC]
        return shlex.split(given[min(guest, len(given)) - 1].replace("%n", str(guest)))

    def virtio_tap_name(self, guest: int) -> str | None:
        """The TAP of the guest's virtio-net device."""
        given = self.virtio_tap or []
        return given[min(guest, len(given)) - 1].replace("%n", str(guest)) if given else None

    def nic_tap(self, guest: int) -> str | None:
        """The TAP that the server of this guest is told to use."""
        arguments = [] if self.no_nic else self.nic_arguments(guest)
        for number, word in enumerate(arguments):
            if word in ("--tap", "-T"):
                return arguments[number + 1] if number + 1 < len(arguments) else None
            if word.startswith("--tap="):
                return word.removeprefix("--tap=")
        return None


def number(low: float, high: float, kind: type = int):  # noqa: ANN201
    """An argparse type: a number in a range."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return value

    return convert


def make_parser() -> argparse.ArgumentParser:
    """The parser; its help is the reference of the flags."""
    parser = argparse.ArgumentParser(
        prog="lab/vm",
        allow_abbrev=False,
        usage="lab/vm [flags] -- SCRIPT [SCRIPT2 ...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("scripts", nargs="+", type=Path, metavar="SCRIPT", help="a program for the guest")
    _add_guest_flags(parser.add_argument_group("guests"))
    _add_nic_flags(parser.add_argument_group("NICs and networks"))
    _add_run_flags(parser.add_argument_group("the run"))
    _add_machine_flags(parser.add_argument_group("the machine"))
    return parser


def _add_guest_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--guests", type=number(1, MAX_GUESTS), default=1, metavar="N", help="default 1")
    add("--vcpus", type=number(1, 64), default=4, metavar="N", help="for each guest, default 4")
    add("--mem", type=number(256, 1 << 20), metavar="MIB", help="default 1024, full 1536")
    add("--flavour", choices=list(MEMORY_MIB), default="tiny", help="userland, default tiny")
    add("--share", type=Path, metavar="DIR", help="read-write at /share")
    add("--file", action="append", type=Path, metavar="SRC", help="copy beside the script, in /lab")
    add("--env", action="append", metavar="NAME=VALUE", help="set for the scripts")
    add("--boots", type=number(1, 100), default=1, metavar="N",
        help="boot each guest N times on the same server; $BOOT is 1..N; a QEMU that --host kills"
        " ends all boots but the last")  # fmt: skip


def _add_nic_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--nic", action="append", metavar='"ARGS"',
        help=f"arguments of the n-th server, the last of the rest; default {DEFAULT_NIC}")  # fmt: skip
    add("--no-nic", action="store_true", help="no server and no NIC")
    add("--server", metavar="PATH", help="default: $ROCM_ERNIC, the newest under build/, PATH")
    add("--wrap-server", metavar='"CMD"', help="put CMD before the server, as in valgrind")
    add("--allow-server-exit", action="store_true", help="a server that ends is no failure")
    add("--virtio-tap", action="append", metavar="IF", help="a virtio-net device too, on this TAP")
    add("--tap-mtu", type=number(68, 65521), default=9216, metavar="N", help="default 9216")
    add("--multi-queue-taps", action="store_true", help="make the TAPs multi-queue")


def _add_run_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--host", type=Path, metavar="SCRIPT", help="runs beside the guests; its status counts")
    add("--timeout", type=number(1, 1e6, float), default=600, metavar="S", help="default 600")
    add("--boot-timeout", type=number(1, 1e6, float), default=300, metavar="S", help="default 300")
    add("--keep-logs", type=Path, metavar="DIR", help="output, kernel, QEMU, server, stats")
    add("--json", metavar="FILE", help="write a summary ('-': stdout, after the output)")
    add("--strict", action="store_true", help="a kernel warning, BUG or oops makes the run fail")


def _add_machine_flags(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--qemu", metavar="PATH", help="a QEMU of your own, 10.1 or later")
    add("--qemu-arg", action="append", metavar="ARG", help="one more argument for QEMU")
    add("--kernel", type=Path, metavar="PATH", help="vmlinux (PVH) or bzImage; needs --modules")
    add("--modules", type=Path, metavar="DIR", help="modules of that kernel")
    add("--cmdline", default="", metavar="TEXT", help="added to the kernel's command line")
    add("--accel", choices=["auto", "tcg", "kvm"], default="auto", help="auto: KVM if it works")
    add("--suite", default="", help="Debian suite of the lab")
    add("--uc", action="store_true",
        help="an RDMA driver and provider that allow UC; the stock ones do not")  # fmt: skip


def joined(arguments: list[str]) -> list[str]:
    """Write "--nic VALUE" as "--nic=VALUE", so that a value may look like a flag."""
    result: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*result, word, *words]
        value = next(words, None) if word in TEXT_FLAGS else None
        result.append(word if value is None else f"{word}={value}")
    return result


def parse(arguments: list[str]) -> Options:
    """Parse and check; exits with 2 and a message when an argument is wrong."""
    parser = make_parser()
    options = Options(**vars(parser.parse_args(joined(arguments))))
    options.mem = options.mem or MEMORY_MIB[options.flavour]
    try:
        _check(options)
    except LabError as err:
        parser.error(str(err))
    return options


def _check(options: Options) -> None:
    if len(options.scripts) not in (1, options.guests):
        count = f"{len(options.scripts)} scripts for {options.guests} guests"
        raise LabError(f"{count}: give 1 or {options.guests}")
    if options.nic and len(options.nic) > options.guests:
        raise LabError(f"--nic: {len(options.nic)} given for {options.guests} guests")
    if options.nic and options.no_nic:
        raise LabError("--nic and --no-nic exclude each other")
    host = [options.host] if options.host else []
    for path in [*options.scripts, *(options.file or []), *host]:
        if path.is_dir() or not os.access(path, os.R_OK):
            raise LabError(f"{path}: not a readable file")
    if options.share and not options.share.is_dir():
        raise LabError(f"--share {options.share}: not a directory")
    if options.modules and not options.kernel:
        raise LabError("--modules goes with --kernel")
    if options.uc and options.kernel:
        raise LabError("--uc changes the driver of the lab's kernel: leave out --kernel")
    for path in (options.kernel, options.modules):
        if path and not path.exists():
            raise LabError(f"{path}: no such file or directory")
    for word in options.env or []:
        name, equals, _ = word.partition("=")
        if not equals or not name.isidentifier():
            raise LabError(f"--env {word}: give NAME=VALUE")
    for guest in range(1, options.guests + 1):
        try:
            options.nic_arguments(guest)
        except ValueError as err:
            raise LabError(f"--nic: {err}") from err


def find_server(given: str | None) -> list[str]:
    """The NIC server: given, $ROCM_ERNIC, the newest in a build tree, or in PATH."""
    wanted = given or os.environ.get("ROCM_ERNIC")
    if wanted:
        path = shutil.which(wanted)
        if path is None:
            source = "--server" if given else "ROCM_ERNIC"
            raise LabError(f"{source} {wanted}: no such program")
        return [os.path.abspath(path)]
    top = Path(__file__).resolve().parents[2]
    patterns = ("build/*/rocm-ernic", "build/*/src/rocm-ernic", "build/*/src/*/rocm-ernic")
    built = [p for pattern in patterns for p in top.glob(pattern)]
    built = [p for p in built if p.is_file() and os.access(p, os.X_OK)]
    if built:
        return [str(max(built, key=lambda p: p.stat().st_mtime))]
    path = shutil.which("rocm-ernic")
    if path is None:
        raise LabError("no rocm-ernic under build/ or in PATH: build it, or use --server PATH")
    return [path]
