# SPDX-License-Identifier: GPL-2.0-or-later
"""The arguments of lab/vm: parsed, completed and checked before anything is started."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import build, modules, recipe
from .arguments import Parser
from .errors import LabError

MAX_GUESTS = 16
DEFAULT_NIC = "--backend loopback"
TEXT_FLAGS = ("--nic", "--wrap-server", "--qemu-arg", "--cmdline", "--env")
MEMORY_MIB = {"tiny": 1024, "full": 1536}
# How the server may be told its socket, which the lab does.
SOCKET_ARGUMENT = re.compile(r"-s|--socket(-path)?(=|$)")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # what a shell can set
TAP_NAME_MAX = 15  # IFNAMSIZ of Linux, without its NUL
TAP_NAMES_TAKEN = ("lo", "br-ernic", "br-virtio")

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
    tcg_thread: str = "multi"
    suite: str = ""
    uc: bool = False
    snapshot: bool = False

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
        return self._nic_value(guest, "--tap", "-T")

    def nic_backend(self, guest: int) -> str | None:
        """What the server of this guest is told to carry messages with."""
        return self._nic_value(guest, "--backend", "-b")

    def _nic_value(self, guest: int, option: str, letter: str) -> str | None:
        arguments = [] if self.no_nic else self.nic_arguments(guest)
        for number, word in enumerate(arguments):
            if word in (option, letter):
                return arguments[number + 1] if number + 1 < len(arguments) else None
            if word.startswith(f"{option}="):
                return word.removeprefix(f"{option}=")
        return None


def number(low: float, high: float, kind: type = int):  # noqa: ANN201
    """An argparse type: a number in a range."""

    def convert(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            limits = f"from {low:.0f} to {high:.0f}"
            raise argparse.ArgumentTypeError(f"'{text}' is not a number {limits}")
        return value

    return convert


def make_parser() -> Parser:
    """The parser; its help is the reference of the flags."""
    parser = Parser(
        prog="lab/vm",
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
    add("--kernel", type=Path, metavar="PATH", help="vmlinux (PVH) or bzImage")
    add("--modules", type=Path, metavar="DIR", help="of that kernel, unless all are built in")
    add("--cmdline", default="", metavar="TEXT", help="added to the kernel's command line")
    add("--accel", choices=["auto", "tcg", "kvm"], default="auto", help="auto: KVM if it works")
    add("--tcg-thread", choices=["multi", "single"], default="multi",
        help="how TCG runs the vCPUs of a guest: at once, or in turns, which takes less CPU time")  # fmt: skip
    add("--snapshot", action="store_true",
        help="go on from a boot that was saved at the first use; the NIC is hot-plugged")  # fmt: skip
    add("--suite", default=recipe.suite(), help="Debian suite of the lab, default %(default)s")
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
        parser.exit(2, f"{parser.prog}: {err}\n")
    return options


def _check(options: Options) -> None:
    _check_counts(options)
    for script in options.scripts:
        _check_script("SCRIPT", script)
    if options.host:
        _check_script("--host", options.host)
        name = interpreter(options.host)
        if name and os.access(options.host, os.X_OK) and shutil.which(name) is None:
            reason = f"its first line names {name}, and this host has no {name}"
            raise LabError(f"--host {options.host}: {reason}; install it, or name another")
    for path in options.file or []:
        _check_file("--file", path)
    if options.share and not options.share.is_dir():
        raise LabError(f"--share {options.share}: not a directory; give one that exists")
    _check_machine(options)
    for word in options.env or []:
        name, equals, _ = word.partition("=")
        if not equals:
            raise LabError(f"--env {word}: give NAME=VALUE")
        if not VARIABLE.fullmatch(name):
            allowed = "letters, digits and _, and no digit first"
            raise LabError(f"--env {word}: '{name}' is no name of a variable; take {allowed}")
    _check_servers(options)
    _check_outputs(options)


def _check_counts(options: Options) -> None:
    guests = f"{options.guests} guest" + ("s" if options.guests > 1 else "")
    given = len(options.scripts)
    if given not in (1, options.guests):
        counts = "1" if options.guests == 1 else f"1 or {options.guests}"
        raise LabError(f"{given} scripts for {guests}: give {counts}, or --guests {given}")
    given = len(options.nic or [])
    if given > options.guests:
        raise LabError(f"--nic: {given} given for {guests}; leave some out, or --guests {given}")
    if options.nic and options.no_nic:
        raise LabError("--nic and --no-nic exclude each other: leave one out")


def _check_file(option: str, path: Path) -> None:
    if path.is_dir():
        raise LabError(f"{option} {path}: is a directory; give a file")
    if not path.exists():
        raise LabError(f"{option} {path}: no such file; give one that exists")
    if not os.access(path, os.R_OK):
        raise LabError(f"{option} {path}: not readable by this user; chmod a+r it")


def _check_script(option: str, path: Path) -> None:
    _check_file(option, path)
    if first_line(path).startswith(b"#!") and first_line(path).endswith(b"\r"):
        raise LabError(
            f"{option} {path}: its lines end in CRLF, so that the interpreter it names does not"
            f" exist; remove the CRs: sed -i 's/\\r$//' {shlex.quote(str(path))}"
        )


def first_line(path: Path) -> bytes:
    """The first line of a script, as much of it as a kernel would look at."""
    if not path.is_file():  # a pipe can be read but once, for the guest
        return b""
    with path.open("rb") as file:
        return file.readline(256).removesuffix(b"\n")


def interpreter(path: Path) -> str:
    """What the first line of a script names to run it: a path, or what env is to find."""
    line = first_line(path)
    words = line.removeprefix(b"#!").decode(errors="replace").split()
    if not line.startswith(b"#!") or not words:
        return ""
    if os.path.basename(words[0]) != "env":
        return words[0]
    return next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")


def _check_machine(options: Options) -> None:
    build.check_suite(options.suite)
    if options.modules and not options.kernel:
        raise LabError(f"--modules {options.modules}: it goes with --kernel; add that")
    if options.uc and options.kernel:
        raise LabError("--uc changes the driver of the lab's kernel: leave out --kernel")
    if options.kernel:
        _check_file("--kernel", options.kernel)
    if options.modules and not options.modules.is_dir():
        raise LabError(f"--modules {options.modules}: not a directory; give one that exists")
    if options.modules:
        modules.find(options.modules)
    if options.qemu:
        _check_program("--qemu", options.qemu, options.qemu)
    _check_snapshot(options)


def _check_snapshot(options: Options) -> None:
    """What a saved boot cannot have: the lab's own QEMU saved it, with the lab's own devices."""
    other = {
        "--kernel": options.kernel, "--qemu": options.qemu, "--qemu-arg": options.qemu_arg,
        "--share": options.share, "--virtio-tap": options.virtio_tap,
    }  # fmt: skip
    for option, value in other.items():
        if options.snapshot and value:
            raise LabError(f"--snapshot: a saved boot knows no {option}; leave one of them out")


def _check_program(option: str, value: str, program: str) -> None:
    if shutil.which(program) is not None:
        return
    if "/" not in program or not os.path.exists(program):
        raise LabError(f"{option} {value}: no such program; give a path, or one in PATH")
    if os.path.isdir(program):
        raise LabError(f"{option} {value}: is a directory; give a program")
    raise LabError(f"{option} {value}: is not executable by this user; give a program, or chmod +x")


def _words(option: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise LabError(f"{option} {text}: a quote has no end; close it") from err


def _check_servers(options: Options) -> None:
    if (options.server or os.environ.get("ROCM_ERNIC")) and not options.no_nic:
        find_server(options.server)
    wrapper = _words("--wrap-server", options.wrap_server or "")
    if wrapper:
        _check_program("--wrap-server", options.wrap_server or "", wrapper[0])
    for text in options.nic or []:
        for word in _words("--nic", text):
            if SOCKET_ARGUMENT.match(word):
                raise LabError(f"--nic {text}: the lab gives the socket; leave {word} out")
    for guest in range(1, options.guests + 1):
        _check_tap("--nic --tap", options.nic_tap(guest))
        _check_tap("--virtio-tap", options.virtio_tap_name(guest))
    _check_sharing(options)


def _check_sharing(options: Options) -> None:
    """What only one guest can have: a TAP has one cable, and a port one manager of a mesh."""
    owners: dict[str, int] = {}
    for guest in range(1, options.guests + 1):
        backend = options.nic_backend(guest) or ""
        port = backend.partition(",")[0].rpartition(":")[2]
        for option, value, remedy in (
            ("--nic --tap", options.nic_tap(guest), "{stem}%n gives each its own"),
            ("--virtio-tap", options.virtio_tap_name(guest), "{stem}%n gives each its own"),
            ("--nic --backend", backend if backend.startswith("tcp:manager:") else None,
                "give one more --nic, with --backend tcp:worker:127.0.0.1:{port}"),
        ):  # fmt: skip
            other = owners.setdefault(value, guest) if value else guest
            if other != guest:
                both = f"guests {other} and {guest} both get it"
                remedy = remedy.format(stem=str(value).rstrip("0123456789"), port=port)
                raise LabError(f"{option} {value}: {both}; {remedy}")


def _check_tap(option: str, name: str | None) -> None:
    if name is None:
        return
    if len(name.encode()) > TAP_NAME_MAX:
        raise LabError(f"{option} {name}: longer than {TAP_NAME_MAX} bytes; give a shorter name")
    if not name or name in (".", "..") or re.search(r"[/:\s]", name):
        raise LabError(f"{option} '{name}': no name for an interface; leave out spaces, / and :")
    if name in TAP_NAMES_TAKEN:
        raise LabError(f"{option} {name}: the lab's network has one already; take another name")


def _check_outputs(options: Options) -> None:
    if options.json == "":
        raise LabError("--json '': give a file, or - for stdout")
    if options.json not in (None, "-"):
        _check_output("--json", Path(str(options.json)))
    if options.keep_logs:
        _check_folder("--keep-logs", options.keep_logs)


def _check_output(option: str, path: Path) -> None:
    if path.is_dir():
        raise LabError(f"{option} {path}: is a directory; give a file")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise LabError(f"{option} {path}: not writable by this user; give another file")
    elif not path.parent.is_dir():
        raise LabError(f"{option} {path}: {path.parent} is no directory; make it, or give another")
    else:
        _try_to_write(option, path, path.parent)


def _check_folder(option: str, path: Path) -> None:
    """A directory that exists or can be made."""
    nearest = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise LabError(f"{option} {path}: {nearest} is no directory; give another")
    _try_to_write(option, path, nearest)


def _try_to_write(option: str, path: Path, folder: Path) -> None:
    """Permissions alone do not tell: root may write to all of /proc, and to nothing there."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as err:
        reason = f"cannot write to {folder}: {err.strerror}"
        raise LabError(f"{option} {path}: {reason}; give another place") from err


def find_server(given: str | None) -> list[str]:
    """The NIC server: given, $ROCM_ERNIC, the newest in a build tree, or in PATH."""
    wanted = given or os.environ.get("ROCM_ERNIC")
    if wanted:
        _check_program("--server" if given else "ROCM_ERNIC", wanted, wanted)
        return [os.path.abspath(shutil.which(wanted) or wanted)]
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
